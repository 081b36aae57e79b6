"""Similarities of WordNet senses as `shoe-sim` writes them: read, checked and looked up in arrays.

A line is `{"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.625}` with optional keys; `merge` is the
rule that combined several raters, if not the mean. Similarity is symmetric, and 1 of a sense with itself, so each pair
has one line; two lines that rate a pair differently are an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import orjson

from hoicli.arrays.columns import read_columns, require
from hoicli.arrays.kit import Bools, Floats, Ints, find, joined
from hoicli.arrays.triplets import Numbered
from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Problem, Record, is_number, short
from hoicli.similarity.rules import RULES

BATCH = 4096
"""Lines whose fields are checked together."""

POS = {"v": "verb", "n": "noun"}
"""The parts of speech that interactions have: senses of verbs and of objects."""

_SENSE = re.compile(r".+\.([nv])\.\d+")


class SimilarityTable:
    """Similarities of pairs of senses. `read` creates a table; `values` looks pairs up; `digest` identifies its
    content, `rules` are the rules that combined its raters."""

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
        """The table of all lines, in any order, of one or several files, with senses under their `canonical` names.
        Raises `DataError` with file and line for a bad line or a pair with two different ratings; if the policy skips,
        bad lines are dropped, and all lines of such a pair.
        """
        numbered = Numbered[str]()
        columns = partial(_columns, numbered, cache(canonical))
        parts = list(read_columns(lines, columns, _problems, policy, batch=BATCH))
        first, second = (joined([getattr(part, side) for part in parts], np.int64) for side in ("first", "second"))
        similarity = joined([part.similarity for part in parts], np.float64)
        places = list(chain.from_iterable(part.places for part in parts))
        names = list(numbered)
        _, earliest, pair = np.unique(_keys(first, second, len(names)), return_index=True, return_inverse=True)
        leader = earliest[pair]  # the first line of each line's pair
        keep: Bools = leader == np.arange(len(leader))
        disputed = np.flatnonzero(similarity != similarity[leader])
        for row in disputed.tolist():
            policy.handle(
                DataError(
                    f"{names[first[row]]} and {names[second[row]]} are {similarity[row]:g} here and "
                    f"{similarity[leader[row]]:g} at {places[leader[row]]}; keep one line a pair "
                    "(hoicli shoe-sim --merge joins tables)",
                    place=places[row],
                    field="similarity",
                )
            )
        keep[leader[disputed]] = False
        rules = set().union(*(part.rules for part in parts))
        return cls(names, first[keep], second[keep], similarity[keep], rules)

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self._key)

    def values(self, first: Sequence[str], second: Sequence[str]) -> Floats:
        """[M] similarity of each first[i] and second[i]: 1 for equal senses, NaN if the table lacks the pair."""
        a, b = (np.array([self._ids.get(sense, -1) for sense in side], dtype=np.int64) for side in (first, second))
        found = np.full(len(a), np.nan)
        known = np.flatnonzero((a >= 0) & (b >= 0))
        at, hit = find(self._key, _keys(a[known], b[known], len(self._ids)))
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


@dataclass(frozen=True)
class _Columns:
    """M lines: first, second [M] the numbers of their senses; similarity [M]; places [M] as messages name
    them."""

    first: Ints
    second: Ints
    similarity: Floats
    places: list[str]
    rules: set[str]


def _columns(numbered: Numbered[str], canonical: Callable[[str], str], lines: list[Line]) -> _Columns:
    """Lines as columns; raises an error that `columns.attempt` expects for a line with `_problems`."""
    records = [orjson.loads(line.data) for line in lines]
    rows = [(record["pos"], record["a"], record["b"], record["similarity"]) for record in records]
    rules = {record.get("merge", "mean") for record in records}
    require(all(map(_is_row, rows)) and rules <= set(RULES))
    first, second = (numbered.of([canonical(row[side]) for row in rows]) for side in (1, 2))
    similarity = np.array([row[3] for row in rows], dtype=np.float64)
    return _Columns(first, second, similarity, [line.place for line in lines], rules)


def _is_row(row: tuple[Any, Any, Any, Any]) -> bool:
    """Whether (pos, a, b, similarity) are what they must be; `_problem` says why not."""
    pos, a, b, similarity = row
    if type(a) is not str or type(b) is not str or type(similarity) not in (float, int):
        return False
    found_a, found_b = _SENSE.fullmatch(a), _SENSE.fullmatch(b)
    if found_a is None or found_b is None or not found_a[1] == found_b[1] == pos:
        return False
    return bool(similarity == 1 if a == b else 0 <= similarity <= 1)


def _problems(record: Record) -> Iterator[Problem]:
    """What is wrong with a line and what to do, in reading order."""
    pos = record.get("pos")
    if type(pos) is not str or pos not in POS:
        yield Problem("pos", f"{_shown(record, 'pos')}; it is v (verbs) or n (objects); hoicli shoe-sim writes it")
        return
    for key in ("a", "b"):
        sense = record.get(key)
        found = _SENSE.fullmatch(sense) if type(sense) is str else None
        if found is None:
            yield Problem(key, f"{_shown(record, key)} is no sense; name one as WordNet does, for example pet.v.01")
        elif found[1] != pos:
            yield Problem(
                key, f"{sense} is a {POS[found[1]]}, but pos says {POS[pos]}; compare senses of one part of speech"
            )
    similarity = record.get("similarity")
    if not is_number(similarity) or not 0 <= float(similarity or 0) <= 1:
        yield Problem("similarity", f"{_shown(record, 'similarity')} is no similarity; give a number from 0 to 1")
    elif record.get("a") == record.get("b") and similarity != 1:
        yield Problem("similarity", f"{similarity} of a sense with itself; that is 1, leave the line out")
    if record.get("merge", "mean") not in RULES:
        yield Problem("merge", f"{_shown(record, 'merge')} is none of {', '.join(RULES)}; hoicli shoe-sim writes it")


def _shown(record: Record, key: str) -> str:
    return short(record[key]) if key in record else "missing"
