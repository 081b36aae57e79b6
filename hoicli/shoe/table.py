"""Similarities of WordNet senses as `shoe-sim` writes them: read, checked and looked up in arrays.

A line is `{"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.625}`, and may say where that is from:
`scores` has each model's rating, `measure` names an offline backend, `prompt` is the digest of what models were asked,
`date` when, `merge` the rule that combined several raters, if not the mean (formats/similarity.schema.json).
Similarity is symmetric, and 1 of a sense with itself, so each pair
has one line; two lines that rate a pair differently are an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from operator import eq, or_
from statistics import median, multimode
from typing import Any

import numpy as np
import orjson

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.columns import numbers, read_columns, require
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, find, joined
from hoicli.records.parsing import Problem, Record, is_number, short
from hoicli.records.triplets import Numbered
from hoicli.shoe.pairs import DATES, NAMES, RULES, SCALE, SENSE, Pair, Rated, is_rating

BATCH = 4096
"""Lines whose fields are checked together."""

ROUNDED = 0.005
"""How far a similarity may be from what its scores give: tables are written with two digits, too."""

RATINGS = {(int, rating) for rating in range(SCALE + 1)}
"""What a model may rate, with its type: true is no rating."""


@dataclass(frozen=True)
class Sources:
    """Where the similarities of some lines are from: the rules that combined raters, their names (models and
    measures), and the digests of prompts."""

    rules: frozenset[str] = frozenset(("mean",))
    raters: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()

    def __or__(self, other: Sources) -> Sources:
        return Sources(self.rules | other.rules, self.raters | other.raters, self.prompts | other.prompts)

    def signature(self) -> dict[str, str]:
        """What is known of it, for signatures."""
        signed = {"raters": self.raters, "prompt": self.prompts}
        signed |= {"merge": self.rules} if self.rules - {"mean"} or len(self.raters) > 1 else {}
        shown = {key: sorted(re.sub(r"[|\s]+", "_", name) for name in names) for key, names in signed.items()}
        return {key: "+".join(names) for key, names in shown.items() if names}


class SimilarityTable:
    """Similarities of pairs of senses. `read` and `of` create a table; `values` looks pairs up; `digest` identifies its
    content, `sources` is where that is from."""

    def __init__(
        self, senses: Sequence[str], first: Ints, second: Ints, similarity: Floats, sources: Sources | None = None
    ) -> None:
        """senses [S] names; first, second [P] rows of it; similarity [P] in [0, 1]. A pair occurs once."""
        self.sources = sources or Sources()
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
        named = _Named(canonical)
        parts = list(read_columns(lines, partial(_columns, named), problems, policy, batch=BATCH))
        first, second = (joined([getattr(part, side) for part in parts], np.int64) for side in ("first", "second"))
        similarity = joined([part.similarity for part in parts], np.float64)
        places = list(chain.from_iterable(part.places for part in parts))
        names = list(named.senses)
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
        sources = reduce(or_, (part.sources for part in parts), Sources(frozenset()))
        return cls(names, first[keep], second[keep], similarity[keep], sources)

    @classmethod
    def of(cls, pairs: Sequence[Pair], rated: Sequence[Rated]) -> SimilarityTable:
        """The table of rated pairs, each once."""
        numbered = Numbered[str]()
        first, second = (numbered.of([pair[side] for pair in pairs]) for side in (1, 2))
        similarity = np.array([found.similarity for found in rated], dtype=np.float64)
        sources = Sources(raters=frozenset(found.measure for found in rated if found.measure is not None))
        return cls(list(numbered), first, second, similarity, sources)

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self._key)

    def values(self, first: Sequence[str], second: Sequence[str]) -> Floats:
        """[M] similarity of each first[i] and second[i]: 1 for equal senses, NaN if the table lacks the pair."""
        found = self.at(self.numbers(first), self.numbers(second))
        found[np.fromiter(map(eq, first, second), dtype=bool, count=len(first))] = 1.0
        return found

    def numbers(self, senses: Sequence[str]) -> Ints:
        """[M] the number of each sense here, -1 of one that the table lacks."""
        return np.fromiter((self._ids.get(sense, -1) for sense in senses), dtype=np.int64, count=len(senses))

    def at(self, first: Ints, second: Ints) -> Floats:
        """[M] similarity of different senses, given by their numbers: NaN if the table lacks the pair."""
        found = np.full(len(first), np.nan)
        known = np.flatnonzero((first >= 0) & (second >= 0))
        at, hit = find(self._key, _keys(first[known], second[known], len(self._ids)))
        found[known[hit]] = self._similarity[at[hit]]
        return found

    def signature(self) -> dict[str, str]:
        """Which table it is, for signatures: its digest, and where it is from."""
        return {"sim": self.digest(), **self.sources.signature()}

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
    sources: Sources


class _Named(dict[str, int]):
    """A dictionary that numbers the names of senses, all names of one sense alike. senses: the canonical ones."""

    def __init__(self, canonical: Callable[[str], str]) -> None:
        super().__init__()
        self.senses = Numbered[str]()
        self._canonical = canonical

    def __missing__(self, name: str) -> int:
        number = self[name] = self.senses[self._canonical(name)]
        return number


def _columns(named: _Named, lines: list[Line]) -> _Columns:
    """Lines as columns; raises an error that `columns.attempt` expects for a line with `problems`."""
    records = [orjson.loads(line.data) for line in lines]
    pos, a, b, similar = ([record[key] for record in records] for key in ("pos", "a", "b", "similarity"))
    keys = set().union(*records)
    said = {key: {record.get(key) for record in records} - {None} for key in keys & {"measure", "prompt", "date"}}
    rules = {record.get("merge", "mean") for record in records} if "merge" in keys else {"mean"}
    scores = [record["scores"] for record in records if record.get("scores") is not None] if "scores" in keys else []
    ratings = {(type(rating), rating) for given in scores for rating in given.values()}
    require(all(map(_is_named, {*zip(pos, a, strict=True), *zip(pos, b, strict=True)})) and rules <= set(RULES))
    measures, prompts, dates = (said.get(key, set()) for key in ("measure", "prompt", "date"))
    require(all(type(value) is str and value for value in (*measures, *prompts)))
    require(all(type(date) is str and DATES.fullmatch(date) for date in dates))
    require(all(type(given) is dict for given in scores) and ratings <= RATINGS)
    similarity = numbers(similar)
    require(bool(((similarity >= 0) & (similarity <= 1)).all()))
    require(bool((similarity[np.fromiter(map(eq, a, b), dtype=bool, count=len(a))] == 1).all()))
    require(not scores or all(map(follows, records)))
    first, second = (np.fromiter(map(named.__getitem__, side), dtype=np.int64, count=len(side)) for side in (a, b))
    raters, digests = ({name for text in texts for name in text.split("+")} for texts in (measures, prompts))
    sources = Sources(frozenset(rules), frozenset(raters.union(*scores)), frozenset(digests))
    return _Columns(first, second, similarity, [line.place for line in lines], sources)


def by_scores(record: Record) -> list[float]:
    """The similarities that a line's scores give by its rule, of equally frequent ratings each; none where it has no
    scores, or another rater beside them (`measure`)."""
    if not record.get("scores") or record.get("measure") is not None:
        return []
    ratings, rule = list(record["scores"].values()), record.get("merge", "mean")
    if rule == "mean":
        return [sum(ratings) / (SCALE * len(ratings))]
    return [value / SCALE for value in ([median(ratings)] if rule == "median" else multimode(ratings))]


def follows(record: Record) -> bool:
    """Whether a line's similarity is what its scores give; a sense is 1 with itself, whatever anyone says."""
    possible = by_scores(record)
    near = any(abs(value - record["similarity"]) <= ROUNDED for value in possible)
    return near or not possible or record.get("a") == record.get("b")


def _is_named(named: tuple[Any, Any]) -> bool:
    """Whether (pos, sense) are what they must be; `problems` says why not."""
    pos, sense = named
    found = SENSE.fullmatch(sense) if type(sense) is str else None
    return found is not None and found[1] == pos


def problems(record: Record, *, joined: bool = False) -> Iterator[Problem]:
    """What is wrong with a line and what to do, in reading order. joined: with other lines to one, so its similarity is
    left out where it has scores."""
    pos, similarity, rule = record.get("pos"), record.get("similarity"), record.get("merge", "mean")
    if pos not in ("v", "n"):
        yield Problem("pos", f"{_shown(record, 'pos')}; it is v (verbs) or n (objects); hoicli shoe-sim writes it")
        return
    for key in ("a", "b"):
        sense = record.get(key)
        found = SENSE.fullmatch(sense) if type(sense) is str else None
        if found is None:
            yield Problem(key, f"{_shown(record, key)} is no sense; name one as WordNet does, for example pet.v.01")
        elif found[1] != pos:
            kinds = f"{sense} is a {NAMES[found[1]]}, but pos says {NAMES[pos]}"
            yield Problem(key, f"{kinds}; compare senses of one part of speech")
    left_out = joined and similarity is None and bool(record.get("scores"))
    sound = is_number(similarity) and 0 <= float(similarity or 0) <= 1
    if not sound and not left_out:
        yield Problem("similarity", f"{_shown(record, 'similarity')} is no similarity; give a number from 0 to 1")
    elif sound and record.get("a") == record.get("b") and similarity != 1:
        yield Problem("similarity", f"{similarity} of a sense with itself; that is 1, leave the line out")
    if rule not in RULES:
        yield Problem("merge", f"{_shown(record, 'merge')} is none of {', '.join(RULES)}; hoicli shoe-sim writes it")
        return
    scores, date = record.get("scores"), record.get("date")
    if scores is not None and not (type(scores) is dict and all(map(is_rating, scores.values()))):
        yield Problem("scores", f"{_shown(record, 'scores')}; it is an object of ratings 0 to 4 by model, or left out")
    elif sound and not follows(record):
        told = " or ".join(f"{value:g}" for value in by_scores(record))
        yield Problem("similarity", f"{similarity:g}, but its scores give {told} by {rule}; correct one of the two")
    for key in ("measure", "prompt"):
        if record.get(key) is not None and (type(record[key]) is not str or not record[key]):
            yield Problem(key, f"{_shown(record, key)} is no name; hoicli shoe-sim writes it, or leave it out")
    if date is not None and (type(date) is not str or not DATES.fullmatch(date)):
        yield Problem("date", f"{_shown(record, 'date')} is no date; write 2026-01-31, or 2026-01-31/2026-02-02")


def _shown(record: Record, key: str) -> str:
    return short(record[key]) if key in record else "missing"
