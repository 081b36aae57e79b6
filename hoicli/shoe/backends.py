"""Backends that give similarities of senses, all with one interface: a measure on WordNet's hierarchy (`wordnet:path`),
hoicli's own from its graph and glosses (`lexical`), or a table that somebody made.

A pair is (pos, a, b) with a before b in alphabetical order; a sense is 1 with itself and never asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hoicli.errors import DataError
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.pairs import NAMES, Pair, Rated
from hoicli.shoe.table import SimilarityTable
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.measures import raw_similarities, rescaled
from hoicli.wordnet.selection import open_wordnet


class Backend(Protocol):
    """Rates all pairs in one call, so that a backend loads or waits only once."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """The rating of each pair, in order."""


def offline_backend(name: str, policy: ErrorPolicy) -> Backend:
    """A backend that needs no network: one of OFFLINE, or table:FILE."""
    kind, _, path = name.partition(":")
    return TableFile(path, policy) if kind == "table" else Offline(name)


def synsets_of(wordnet: Lexicon, pairs: Sequence[Pair]) -> dict[str, int]:
    """The synset of each sense in the pairs. Raises `DataError` for a sense that WordNet lacks, or of another part of
    speech."""
    found: dict[str, int] = {}
    for pos, sense in sorted({(pos, sense) for pos, *senses in pairs for sense in senses}):
        try:
            found[sense] = wordnet.index(sense)
        except KeyError:
            raise DataError(f"{sense!r} is no sense of {wordnet.title}; name one like pet.v.01") from None
        if wordnet.graph.pos(found[sense]) != pos:
            raise DataError(f"{sense!r} is no sense of a {NAMES[pos]}; compare senses of one part of speech")
    return found


class Offline:
    """A measure of the WordNet in use, one of OFFLINE. It is computed from the first sense to the second (wup is not
    quite symmetric)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses; equal ratings are one object, since a measure has few values."""
        wordnet = open_wordnet()
        synset = synsets_of(wordnet, pairs)
        rows = np.array([[synset[pair[side]] for pair in pairs] for side in (1, 2)], dtype=np.int64).T
        if self.name == "lexical":
            from hoicli.wordnet.lexical import similarities  # brings SciPy along

            values = similarities(wordnet.graph, rows).tolist()
        else:
            measure = self.name.removeprefix("wordnet:")
            raw = raw_similarities(wordnet.graph, measure, rows)
            values = rescaled(wordnet.graph, measure, rows, raw).tolist()
        named = self.name if wordnet.signature is None else f"{self.name}@{wordnet.signature}"
        rated = {value: Rated(value, measure=named) for value in set(values)}
        return [rated[value] for value in values]


def rate_words(words: Sequence[tuple[str, str, str]]) -> list[float]:
    """The lexical similarity of two words of one part of speech, lower than that of their most similar senses if they
    have many; each (pos, first, second), both known."""
    from hoicli.wordnet.lexical import word_similarities

    wordnet = open_wordnet()
    found: dict[tuple[str, str, str], float] = {}
    for pos in dict.fromkeys(pos for pos, _, _ in words):
        own = [(first, second) for at, first, second in words if at == pos]
        senses = {word: wordnet.word_senses(word, pos) for pair in own for word in pair}
        values = word_similarities(wordnet.graph, own, senses).tolist()
        found |= {(pos, *pair): value for pair, value in zip(own, values, strict=True)}
    return [found[item] for item in words]


class TableFile:
    """A table of similarities from a file."""

    def __init__(self, path: str, policy: ErrorPolicy) -> None:
        self._path = path
        self._policy = policy

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses, under any of a sense's names in the table."""
        table = SimilarityTable.read(Stream([self._path], "table"), self._policy, open_wordnet().canonical)
        found = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs]).tolist()
        return [Rated(None if math.isnan(value) else value) for value in found]
