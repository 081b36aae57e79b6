"""Similarities of WordNet senses as `shoe-sim` writes them: read, checked, looked up by the thousand.

A line is `{"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.625}` with anything besides, of which
`merge` says by what rule several raters became one, where it was not the mean. Similarity is symmetric and 1 of a sense
with itself, so each pair has one line; a pair that two lines rate differently is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import is_number, parse
from hoicli.similarity.rules import RULES

if TYPE_CHECKING:
    from hoicli.arrays.kit import Bools, Floats, Ints

BATCH = 4096
"""Lines whose fields are checked together."""

POS = {"v": "verb", "n": "noun"}
"""The parts of speech that interactions have: senses of verbs and of objects."""

_SENSE = re.compile(r".+\.([nv])\.\d+")


class SimilarityTable:
    """Similarities of pairs of senses. `read` makes one; `values` looks pairs up; `digest` names its content, `rules`
    how its raters became one."""

    def __init__(
        self, senses: Sequence[str], first: Ints, second: Ints, similarity: Floats, rules: Iterable[str] = ("mean",)
    ) -> None:
        """senses [S] names; first, second [P] rows of it; similarity [P] in [0, 1]. A pair occurs once."""
        self.rules = sorted(set(rules))
        self._ids = {sense: number for number, sense in enumerate(senses)}
        key = _keys(first, second, len(senses))
        order = np.argsort(key, kind="stable")
        self._key, self._similarity = key[order], similarity[order]

    @classmethod
    def read(cls, lines: Iterable[Line], policy: ErrorPolicy, canonical: Callable[[str], str] = str) -> SimilarityTable:
        """The table of all lines, in whatever order, of one file or of several, senses under their `canonical` names.

        Raises `DataError` with file and line for a bad line or for a pair rated twice and differently; where the policy
        skips, bad lines are dropped, and all lines of a pair they disagree about.
        """
        columns = _Columns(canonical)
        lines = iter(lines)
        while chunk := list(islice(lines, BATCH)):
            if not columns.add(chunk):
                good = [line for line in chunk if _is_good(line, policy)]
                if not columns.add(good):
                    raise AssertionError("a line passed the careful check and failed the fast one")
        return columns.table(policy)

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self._key)

    def values(self, first: Sequence[str], second: Sequence[str]) -> Floats:
        """[M] similarity of each first[i] with second[i]: 1 of equal senses, NaN where the table has no such pair."""
        a, b = (np.array([self._ids.get(sense, -1) for sense in side], dtype=np.int64) for side in (first, second))
        found = np.full(len(a), np.nan)
        known = np.flatnonzero((a >= 0) & (b >= 0))
        if len(self._key) and len(known):
            key = _keys(a[known], b[known], len(self._ids))
            at = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
            hit = self._key[at] == key
            found[known[hit]] = self._similarity[at[hit]]
        found[np.fromiter((x == y for x, y in zip(first, second, strict=True)), dtype=bool, count=len(a))] = 1.0
        return found

    def digest(self) -> str:
        """Eight hexadecimal digits that two tables share when they hold the same pairs and similarities."""
        names = sorted(self._ids)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[self._ids[name] for name in names]] = np.arange(len(names))
        count = max(len(names), 1)
        key = _keys(rank[self._key // count], rank[self._key % count], count)
        order = np.argsort(key, kind="stable")
        content = hashlib.sha256("\n".join(names).encode())
        content.update(key[order].astype("<i8").tobytes())
        content.update(self._similarity[order].astype("<f8").tobytes())
        return content.hexdigest()[:8]


def _keys(first: Ints, second: Ints, count: int) -> Ints:
    """[P] one number a pair, the same either way round."""
    return np.minimum(first, second) * count + np.maximum(first, second)


class _Columns:
    """The lines' fields, gathered."""

    def __init__(self, canonical: Callable[[str], str]) -> None:
        self._canonical = cache(canonical)
        self._ids: dict[str, int] = {}
        self._first: list[int] = []
        self._second: list[int] = []
        self._similarity: list[float] = []
        self._files: list[str] = []
        self._numbers: list[int] = []
        self._rules: set[str] = set()

    def add(self, lines: Sequence[Line]) -> bool:
        """Take all of the lines, or none if any of them is bad."""
        try:
            records = [orjson.loads(line.data) for line in lines]
            rows = [(record["pos"], record["a"], record["b"], record["similarity"]) for record in records]
            rules = {record.get("merge", "mean") for record in records}
        except (ValueError, KeyError, TypeError):
            return False
        if not all(map(_is_row, rows)) or not rules <= set(RULES):
            return False
        self._rules |= rules
        ids, canonical = self._ids, self._canonical
        for (_, a, b, similarity), line in zip(rows, lines, strict=True):
            self._first.append(ids.setdefault(canonical(a), len(ids)))
            self._second.append(ids.setdefault(canonical(b), len(ids)))
            self._similarity.append(similarity)
            self._files.append(line.file)
            self._numbers.append(line.number)
        return True

    def table(self, policy: ErrorPolicy) -> SimilarityTable:
        """The table, each pair once."""
        names = list(self._ids)
        first, second = (np.array(side, dtype=np.int64) for side in (self._first, self._second))
        similarity = np.array(self._similarity, dtype=np.float64)
        key = _keys(first, second, len(names))
        order = np.argsort(key, kind="stable")
        begins = np.r_[True, key[order][1:] != key[order][:-1]][: len(order)]
        leader = np.empty(len(order), dtype=np.int64)
        leader[order] = order[begins][np.cumsum(begins) - 1]
        keep: Bools = leader == np.arange(len(order))
        disputed = np.flatnonzero(similarity != similarity[leader])
        for row in disputed.tolist():
            at = int(leader[row])
            policy.handle(
                DataError(
                    f"{names[first[row]]} and {names[second[row]]} are {similarity[row]:g} here and "
                    f"{similarity[at]:g} at {self._files[at]}:{self._numbers[at]}; keep one line a pair "
                    "(hoicli shoe-sim --merge joins tables)",
                    place=f"{self._files[row]}:{self._numbers[row]}",
                    field="similarity",
                )
            )
        keep[leader[disputed]] = False
        return SimilarityTable(names, first[keep], second[keep], similarity[keep], self._rules)


def _is_row(row: tuple[Any, Any, Any, Any]) -> bool:
    """Whether (pos, a, b, similarity) are what they must be; `_problem` says why not."""
    pos, a, b, similarity = row
    if type(a) is not str or type(b) is not str or type(similarity) not in (float, int):
        return False
    found_a, found_b = _SENSE.fullmatch(a), _SENSE.fullmatch(b)
    if found_a is None or found_b is None or not found_a[1] == found_b[1] == pos:
        return False
    return bool(similarity == 1 if a == b else 0 <= similarity <= 1)


def _is_good(line: Line, policy: ErrorPolicy) -> bool:
    """Whether the line is good; what is wrong with it goes to the policy."""
    try:
        record = parse(line)
        for field, text in _problems(record):
            raise DataError(text, place=line.place, field=field)
    except DataError as error:
        policy.handle(error)
        return False
    return True


def _problems(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it and what to do), in reading order."""
    pos = record.get("pos")
    if type(pos) is not str or pos not in POS:
        yield "pos", f"{_shown(record, 'pos')}; it is v (verbs) or n (objects); hoicli shoe-sim writes it"
        return
    for key in ("a", "b"):
        sense = record.get(key)
        found = _SENSE.fullmatch(sense) if type(sense) is str else None
        if found is None:
            yield key, f"{_shown(record, key)} is no sense; name one as WordNet does, for example pet.v.01"
        elif found[1] != pos:
            yield key, f"{sense} is a {POS[found[1]]}, but pos says {POS[pos]}; compare senses of one part of speech"
    similarity = record.get("similarity")
    if not is_number(similarity) or not 0 <= float(similarity or 0) <= 1:
        yield "similarity", f"{_shown(record, 'similarity')} is no similarity; give a number from 0 to 1"
    elif record.get("a") == record.get("b") and similarity != 1:
        yield "similarity", f"{similarity} of a sense with itself; that is 1, leave the line out"
    if record.get("merge", "mean") not in RULES:
        yield "merge", f"{_shown(record, 'merge')} is none of {', '.join(RULES)}; hoicli shoe-sim writes it"


def _shown(record: dict[str, Any], key: str) -> str:
    if key not in record:
        return "missing"
    text = orjson.dumps(record[key]).decode()
    return text if len(text) <= 60 else text[:57] + "..."
