"""Backends that give similarities of senses, all with one interface.

| backend | similarity |
| --- | --- |
| `wordnet:MEASURE` | path, wup, lch, lin, res, jcn on WordNet's hierarchy |
| `lexical` | hoicli's own, from WordNet's graph and glosses |
| `llm` | the mean of language models' ratings 0..4, divided by 4 (SHOE) |
| `table:FILE` | what a table says |

A pair is (pos, a, b) with a before b in alphabetical order; a sense is 1 with itself and never asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints
from hoicli.shoe.merge import read_tables
from hoicli.shoe.pairs import BACKENDS, NAMES, OFFLINE, Pair, Rated
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.measures import RESCALED, raw_similarities, rescaled
from hoicli.wordnet.selection import open_wordnet


class Backend(Protocol):
    """Rates all pairs in one call, so that a backend loads or waits only once."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """The rating of each pair, in order."""


def offline_backend(name: str, policy: ErrorPolicy) -> Backend:
    """A backend that needs no network, by its name. Raises `UsageError` for another name."""
    kind, _, what = name.partition(":")
    if name in OFFLINE:
        return Lexical() if name == "lexical" else Measure(what)
    if kind == "table" and what:
        return TableFile(what, policy)
    raise UsageError(f"{arg('backend', name)}: choose from {', '.join(BACKENDS)}")


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


class Measure:
    """One of `measures`. It is computed from the first sense to the second (wup is not quite symmetric)."""

    def __init__(self, measure: str) -> None:
        self._measure = measure

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses; `raw` if the measure's own values exceed 1."""
        wordnet = open_wordnet()
        rows = _rows(wordnet, pairs)
        raw = raw_similarities(wordnet.graph, self._measure, rows)
        values = rescaled(wordnet.graph, self._measure, rows, raw).tolist()
        beyond = raw.tolist() if self._measure in RESCALED else [None] * len(values)
        return _alike(values, beyond, f"wordnet:{self._measure}")


class Lexical:
    """`hoicli.wordnet.lexical`, imported with SciPy on first use."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses."""
        from hoicli.wordnet.lexical import similarities

        wordnet = open_wordnet()
        return _alike(similarities(wordnet.graph, _rows(wordnet, pairs)).tolist(), [None] * len(pairs), "lexical")

    def knows(self, word: str, pos: str) -> bool:
        """Whether `rate_words` takes the word."""
        return bool(open_wordnet().word_senses(word, pos))

    def rate_words(self, words: Sequence[tuple[str, str, str]]) -> list[float]:
        """The similarity of two words of one part of speech, lower than that of their most similar senses if they have
        many; each (pos, first, second), both known."""
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
        tables = read_tables(Stream([self._path], "table"), self._policy, open_wordnet().canonical)
        known = tables.merged(tables.rule)
        return [known.get(pair, Rated(None)) for pair in pairs]


def _alike(values: Sequence[float], raw: Sequence[float | None], measure: str) -> list[Rated]:
    """The ratings of values by a measure (of another WordNet than the embedded one, if that is in use); equal ones are
    one object, since a measure has few values."""
    wordnet = open_wordnet().signature
    named = measure if wordnet is None else f"{measure}@{wordnet}"
    keys = list(zip(values, raw, strict=True))
    rated = {(value, own): Rated(value, raw=own, measure=named) for value, own in set(keys)}
    return [rated[key] for key in keys]


def _rows(wordnet: Lexicon, pairs: Sequence[Pair]) -> Ints:
    """[P, 2] the synsets of each pair."""
    row = synsets_of(wordnet, pairs)
    sides = [[row[pair[side]] for pair in pairs] for side in (1, 2)]
    return np.array(sides, dtype=np.int64).T
