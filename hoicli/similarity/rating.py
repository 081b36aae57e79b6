"""The work of `shoe-sim`: find out which pairs are wanted, have them rated, write what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, dump, parse
from hoicli.similarity.backends import Backend, Lexical, Measure, synsets_of
from hoicli.similarity.merge import read_tables
from hoicli.similarity.pairs import NAMES, Pair, Rated, pair_of, row
from hoicli.wordnet.selection import open_wordnet
from hoicli.wordnet.senses import candidates

LABELS = ("n", "v")
"""The parts of speech that labels have."""

Words = tuple[str, str, str]
"""(pos, first, second)."""


class Work(Protocol):
    """Pairs that are wanted, and the lines to write when they are rated. `strict`: every pair must have an answer."""

    pairs: Sequence[Pair]
    strict: bool

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """The lines to write, of the ratings of `pairs`."""


class TableWork:
    """A table: a line a pair, without those that nobody could rate."""

    strict = True

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.pairs: Sequence[Pair] = sorted(pairs)

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """The table's lines."""
        for pair, found in zip(self.pairs, rated, strict=True):
            if found.similarity is not None:
                yield row(pair, found)


class PairLines:
    """Lines {pos, a, b} of words or senses, to be written again as they came, with a `similarity`.

    Two words are as alike as their most alike senses (`lexical` has a measure of words of its own); equal ones, and
    those that share a sense, are 1. A line with a word that has no sense has similarity null, which is said with the
    first such word and line. A measure of WordNet is asked in the order of the line, as nltk is, and where its own
    numbers go beyond 1 they come along as `raw`.
    """

    strict = False

    def __init__(self, lines: Iterable[Line], policy: ErrorPolicy, backend: Backend | None = None) -> None:
        """`backend`: who will rate them, None for language models."""
        self._lexical = backend if isinstance(backend, Lexical) else None
        self._ordered = isinstance(backend, Measure)
        self._senseless: dict[str, str] = {}
        self._lines: list[tuple[Record, float | Words | list[Pair]]] = []
        for line in lines:
            try:
                record = parse(line)
                self._lines.append((record, self._wanted(record, line.place)))
            except DataError as error:
                policy.handle(DataError(error.problem, place=line.place, field=error.field))
        self.pairs: Sequence[Pair] = sorted(
            {pair for _, want in self._lines if isinstance(want, list) for pair in want}
        )

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """The lines with their answers."""
        known = dict(zip(self.pairs, rated, strict=True))
        words = list(dict.fromkeys(want for _, want in self._lines if isinstance(want, tuple)))
        by_words = dict(zip(words, self._lexical.rate_words(words) if self._lexical and words else [], strict=True))
        for record, want in self._lines:
            if isinstance(want, list):
                answers = [known[pair] for pair in want if known[pair].similarity is not None]
                best = max(answers, key=lambda found: found.similarity or 0.0, default=Rated(None))
                yield {**record, "similarity": best.similarity, **({} if best.raw is None else {"raw": best.raw})}
            else:
                yield {**record, "similarity": by_words[want] if isinstance(want, tuple) else want}
        if self._senseless:
            word, place = next(iter(self._senseless.items()))
            unit = "word" if len(self._senseless) == 1 else "words"
            note(
                f"no WordNet sense for {len(self._senseless):,} {unit}: similarity null (the first: {word!r}, {place})"
            )

    def _wanted(self, record: Record, place: str) -> float | Words | list[Pair]:
        """What a line asks for: 1 for what is equal, two words, or pairs of senses (none where a word has no sense)."""
        pos = str(record.get("pos"))
        if pos not in (NAMES if self._lexical else LABELS):
            raise DataError("neither n nor v; say what part of speech the words are", field="pos")
        for key in ("a", "b"):
            if type(record.get(key)) is not str or not record[key].strip():
                raise DataError("missing, or no word; give a word or a sense like pet.v.01", field=key)
        words = [record["a"], record["b"]]
        if _spelled(words[0]) == _spelled(words[1]):
            return 1.0
        if self._lexical and not any(map(_is_sense, words)) and all(self._lexical.knows(word, pos) for word in words):
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
    """Whether a text has the look of a sense's name, pet.v.01."""
    return word.count(".") >= 2 and word.rpartition(".")[2].isdecimal()


def _spelled(word: str) -> str:
    """The spelling in which words are compared."""
    return "_".join(word.replace("_", " ").lower().split())


def senses_of(word: str, pos: str) -> list[str]:
    """The sense that is named (as WordNet names it), or all senses that a word may have.

    Raises `DataError` for what looks like a sense and is none.
    """
    if _is_sense(word):
        wordnet = open_wordnet()
        return [wordnet.name(number) for number in synsets_of(wordnet, [(pos, word, word)]).values()]
    return list(candidates(word, pos)) if pos in LABELS else []


def merge(paths: Sequence[str], rule: str, policy: ErrorPolicy, output: str) -> None:
    """Join tables."""
    table = read_tables(Stream(paths, "tables"), policy).merged(rule)
    write_rows((row(pair, rated) for pair, rated in table.items()), output)
    policy.report()


def rate_offline(name: str, backend: Backend, work: Work, policy: ErrorPolicy, output: str) -> None:
    """Rate with a backend that needs no network. Raises `DataError` when a table has not got what is wanted."""
    rated = backend.rate(work.pairs)
    missing = [pair for pair, found in zip(work.pairs, rated, strict=True) if found.similarity is None]
    if missing and work.strict:
        _, a, b = missing[0]
        problem = f"{len(missing):,} of {len(work.pairs):,} pairs are not in it, the first {a} and {b}"
        policy.handle(DataError(f"{problem}; rate them too, or pass --on-error skip", place=name))
    write_rows(work.rows(rated), output)
    policy.report()


def write_rows(rows: Iterable[Record], output: str, error: DataError | None = None) -> None:
    """Write lines, then raise the error if there is one: stdout has the lines by then, a file does not appear."""
    with open_output(output) as write:
        for record in rows:
            write(dump(record))
        if error is not None:
            raise error
