"""Where similarities of senses come from: the table of backends, and one way to ask them all.

| backend | similarity |
| --- | --- |
| `wordnet:MEASURE` | path, wup, lch, lin, res, jcn on WordNet's hierarchy |
| `lexical` | hoicli's own, from WordNet's graph and glosses |
| `llm` | the mean of language models' ratings 0..4, divided by 4 (SHOE) |
| `table:FILE` | what a table says |

A pair is (pos, a, b) with a before b in alphabetical order; a sense is 1 with itself and never asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from hoicli.arrays.kit import Ints
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.similarity.merge import read_tables
from hoicli.similarity.pairs import NAMES, Pair, Rated
from hoicli.similarity.rules import BACKENDS, MEASURES
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.measures import RESCALED, raw_similarities, rescaled
from hoicli.wordnet.selection import open_wordnet


class Backend(Protocol):
    """Rates pairs, all at once: what a backend has to load or to wait for, it does once."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """What each of the pairs is rated, in their order."""


def offline_backend(name: str, policy: ErrorPolicy) -> Backend:
    """A backend that needs no network, by its name. Raises `UsageError` for another name."""
    kind, _, what = name.partition(":")
    if kind == "wordnet" and what in MEASURES:
        return Measure(what)
    if name == "lexical":
        return Lexical()
    if kind == "table" and what:
        return TableFile(what, policy)
    raise UsageError(f"--backend {name}: choose from {', '.join(BACKENDS)}")


def synsets_of(wordnet: Lexicon, pairs: Iterable[Pair]) -> dict[str, int]:
    """The synset of each sense in the pairs. Raises `DataError` for a sense that WordNet does not have as such."""
    found: dict[str, int] = {}
    for pos, sense in dict.fromkeys((pos, sense) for pos, *senses in pairs for sense in senses):
        try:
            found[sense] = wordnet.index(sense)
        except KeyError:
            raise DataError(f"{sense!r} is no sense of {wordnet.title}; name one like pet.v.01") from None
        if wordnet.graph.pos(found[sense]) != pos:
            raise DataError(f"{sense!r} is no sense of a {NAMES[pos]}; compare senses of one part of speech")
    return found


class Measure:
    """One of `measures`. The first of two senses is the one asked (wup is not quite symmetric): a table's pairs come
    by name."""

    def __init__(self, measure: str) -> None:
        self._measure = measure

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses; `raw` where the measure's own numbers go beyond 1."""
        wordnet = open_wordnet()
        rows = _rows(wordnet, pairs)
        raw = raw_similarities(wordnet.graph, self._measure, rows)
        values = rescaled(wordnet.graph, self._measure, rows, raw).tolist()
        if self._measure not in RESCALED:
            return list(map(Rated, values))
        return [Rated(value, raw=own) for value, own in zip(values, raw.tolist(), strict=True)]


class Lexical:
    """`hoicli.wordnet.lexical`, which is imported with SciPy where it is needed."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        """Each pair by its senses."""
        from hoicli.wordnet.lexical import similarities

        wordnet = open_wordnet()
        return list(map(Rated, similarities(wordnet.graph, _rows(wordnet, pairs)).tolist()))

    def knows(self, word: str, pos: str) -> bool:
        """Whether `rate_words` takes the word."""
        return bool(open_wordnet().word_senses(word, pos))

    def rate_words(self, words: Sequence[tuple[str, str, str]]) -> list[float]:
        """How alike two words of a part of speech are, which is less than their most alike senses where they have
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
        """Each pair by its names, whatever word the table names a sense by."""
        tables = read_tables(Stream([self._path], "table"), self._policy, open_wordnet().canonical)
        known = tables.merged(tables.rule)
        return [known.get(pair, Rated(None)) for pair in pairs]


def _rows(wordnet: Lexicon, pairs: Sequence[Pair]) -> Ints:
    """[P, 2] the synsets of each pair."""
    row = synsets_of(wordnet, pairs)
    return np.array([(row[a], row[b]) for _, a, b in pairs], dtype=np.int64).reshape(-1, 2)
