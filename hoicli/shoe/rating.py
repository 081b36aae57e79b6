"""The work of `shoe-sim`: the pairs to rate, and the lines to write from their ratings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, parse
from hoicli.shoe.backends import rate_words, synsets_of
from hoicli.shoe.labels import normalised
from hoicli.shoe.pairs import NAMES, Pair, Rated, pair_of, row
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import candidates

LABELS = ("n", "v")
"""The parts of speech that labels have."""

Words = tuple[str, str, str]
"""(pos, first, second)."""


class TableWork:
    """A table: one line for each of the pairs that has a rating."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.pairs: Sequence[Pair] = sorted(pairs)

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """The lines to write, from the ratings of `pairs`."""
        for pair, found in zip(self.pairs, rated, strict=True):
            if found.similarity is not None:
                yield row(pair, found)


class PairLines(TableWork):
    """Lines {pos, a, b} of words or senses, written back with a `similarity`. The similarity of two words is that of
    their most similar senses (`lexical` has its own measure of words); equal words, and words that share a sense, have
    1. If a word has no sense, the similarity is null, and a note names the first such word. A WordNet measure compares
    in the order of the line, as in nltk.
    """

    def __init__(self, lines: Iterable[Line], policy: ErrorPolicy, backend: str | None = None) -> None:
        """`backend`: the one of OFFLINE that will rate the pairs, None for language models."""
        self._lexical = backend == "lexical"
        self._ordered = backend is not None and not self._lexical
        self._senseless: dict[str, str] = {}
        self._lines: list[tuple[Record, float | Words | list[Pair]]] = []
        for line in lines:
            with policy.item(line.place):
                record = parse(line)
                self._lines.append((record, self._needed(record, line.place)))
        super().__init__({pair for _, want in self._lines if isinstance(want, list) for pair in want})

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """The lines with their answers."""
        found = dict(zip(self.pairs, rated, strict=True))
        words = list(dict.fromkeys(want for _, want in self._lines if isinstance(want, tuple)))
        by_words = dict(zip(words, rate_words(words) if words else [], strict=True))
        for record, want in self._lines:
            if isinstance(want, list):
                answers = [found[pair] for pair in want if found[pair].similarity is not None]
                best = max(answers, key=lambda one: one.similarity or 0.0, default=Rated(None))
                # Of two senses it is a line of a table, where models are named.
                named = best.scores and all(_is_sense(record[key]) for key in ("a", "b"))
                yield {**record, "similarity": best.similarity, **(best.told if named else {})}
            else:
                yield {**record, "similarity": by_words[want] if isinstance(want, tuple) else want}
        if self._senseless:
            word, place = next(iter(self._senseless.items()))
            note(f"words without a WordNet sense: {len(self._senseless):,} (the first: {word!r}, {place})")

    def _needed(self, record: Record, place: str) -> float | Words | list[Pair]:
        """What a line needs: 1.0 for equal words, two words, or pairs of senses (empty if a word has no sense)."""
        pos = str(record.get("pos"))
        if pos not in (NAMES if self._lexical else LABELS):
            raise DataError("neither n nor v; say what part of speech the words are", field="pos")
        for key in ("a", "b"):
            if type(record.get(key)) is not str or not record[key].strip():
                raise DataError("missing, or no word; give a word or a sense like pet.v.01", field=key)
        words = [record["a"], record["b"]]
        if normalised(words[0]) == normalised(words[1]):
            return 1.0
        known = open_wordnet().word_senses
        if self._lexical and not any(map(_is_sense, words)) and all(known(word, pos) for word in words):
            return pos, words[0], words[1]
        pools = [senses_of(word, pos) for word in words]
        for word, pool in zip(words, pools, strict=True):
            if not pool:
                self._senseless.setdefault(word, place)
        if set(pools[0]) & set(pools[1]):
            return 1.0
        if self._ordered:
            return [(pos, first, second) for first in pools[0] for second in pools[1]]
        return sorted({pair_of(pos, first, second) for first in pools[0] for second in pools[1]})


def _is_sense(word: str) -> bool:
    """Whether a text looks like a sense's name, pet.v.01."""
    return word.count(".") >= 2 and word.rpartition(".")[2].isdecimal()


def senses_of(word: str, pos: str) -> list[str]:
    """The named sense under WordNet's name, or all senses that a word may have. Raises `DataError` for an unknown name
    of a sense.
    """
    if _is_sense(word):
        wordnet = open_wordnet()
        return [wordnet.graph.names[number] for number in synsets_of(wordnet, [(pos, word, word)]).values()]
    return list(candidates(word, pos)) if pos in LABELS else []
