"""Similarities of WordNet senses as `shoe-sim` writes them: checked, looked up in arrays, and joined.

A line is `{"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.625}`, and may say where that is from:
`scores` has each model's rating, `measure` names an offline backend, `prompt` is the digest of what models were asked,
`date` when, `merge` the rule that combined several raters, if not the mean (formats/similarity.schema.json). Similarity
is symmetric, and 1 of a sense with itself, so each pair has one line; two lines that rate a pair differently are an
error, unless tables are joined."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, islice, repeat
from operator import eq, itemgetter
from statistics import median, multimode

import numpy as np
import orjson

from hoicli.errors import DataError, write_number
from hoicli.io.streams import Line
from hoicli.records.columns import attempt, check_types, require
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints, find
from hoicli.records.parsing import Record, is_number, parse, short
from hoicli.records.triplets import Numbered
from hoicli.shoe.settings import RULES

Pair = tuple[str, str, str]
"""(part of speech, sense a, sense b), a < b."""


@dataclass(frozen=True)
class SensePairs:
    """P pairs of different senses of one part of speech. names: senses, sorted; first, second [P]: the places in
    `names` of the senses of each pair, the smaller place first."""

    pos: str
    names: Sequence[str]
    first: Ints
    second: Ints

    @classmethod
    def from_names(cls, pos: str, pairs: Sequence[Pair]) -> SensePairs:
        """Return pairs of this part of speech that are given by names."""
        names = sorted({sense for _, *senses in pairs for sense in senses})
        place = {name: number for number, name in enumerate(names)}
        places = np.array([(place[a], place[b]) for _, a, b in pairs], dtype=np.int64).reshape(-1, 2)
        return cls(pos, names, *places.T)

    def __len__(self) -> int:
        """Return P."""
        return len(self.first)

    def by_name(self) -> list[Pair]:
        """Return the pairs by name."""
        sides = (map(self.names.__getitem__, side.tolist()) for side in (self.first, self.second))
        return [(self.pos, a, b) for a, b in zip(*sides, strict=True)]


SCALE = 4
"""The highest rating."""

DATES = re.compile(r"\d{4}-\d\d-\d\d(?:/\d{4}-\d\d-\d\d)?")
"""A day, or the first and the last of several (ISO 8601)."""

ROUNDED = 0.005
"""How far a similarity may be from what its scores give: tables are written with two digits, too."""
BATCH = 1024
"""How many lines are checked together."""
MOST_SENSES = 1 << 31
"""More senses than any table has, so that two numbers of senses fit into one."""

_SENSE = re.compile(r".+\.([nv])\.\d+")  # of a verb or of a noun, as WordNet names it
_FIELDS = itemgetter("pos", "a", "b", "similarity")
_KEYS = {"pos", "a", "b", "similarity", "measure"}


@dataclass(frozen=True)
class Rated:
    """The rating of a pair of senses. similarity: in [0, 1], None if the backend has no answer.

    The other fields say where it is from. scores: {model: its rating, 0 to 4}; measure: the name of an offline backend;
    prompt: the digest of what the models were asked; date: the day or days (DATES) on which they answered; merge: the
    rule that combined several raters, if not the mean."""

    similarity: float | None
    scores: Mapping[str, int] | None = None
    merge: str | None = None
    measure: str | None = None
    prompt: str | None = None
    date: str | None = None

    @cached_property
    def fields(self) -> Record:
        """Return the keys of a line that say what the rating is and where it is from, as far as they have values."""
        content = {"scores": self.scores and dict(sorted(self.scores.items())), "similarity": self.similarity}
        content |= {key: getattr(self, key) for key in ("merge", "measure", "prompt", "date")}
        return {key: value for key, value in content.items() if value is not None or key == "similarity"}

    def line(self, pair: Pair) -> Record:
        """Return the line of a table for this rating of a pair."""
        pos, a, b = pair
        return {"pos": pos, "a": a, "b": b, **self.fields}


def pair_of(pos: str, first: str, second: str) -> Pair:
    """Return the pair of two different senses with the alphabetically first one first, as tables have it."""
    return (pos, first, second) if first < second else (pos, second, first)


def days_of(dates: Iterable[str | None]) -> str | None:
    """Return the period of several dates (DATES), "first day/last day" or a single day; None for no dates."""
    days = sorted(chain.from_iterable(date.split("/") for date in dates if date is not None))
    if not days:
        return None
    return days[0] if days[0] == days[-1] else f"{days[0]}/{days[-1]}"


def is_rating(value: object) -> bool:
    """Return whether a value is a whole number from 0 to SCALE."""
    return type(value) is int and 0 <= value <= SCALE


class SimilarityTable:
    """Similarities of pairs of senses, made by `read` or `from_pairs`; `values` looks pairs up."""

    def __init__(self, senses: Numbered[str], key: Ints, similarity: Floats, **sources: set[str]) -> None:
        """Make a table of P pairs. senses: {name: number}; key [P]: the numbers of two senses as one (`_keys`), each
        pair once; similarity [P]: in [0, 1]. sources: what signatures say of them; raters (models and measures), prompt
        (digests of what they were asked), merge (how several ratings were combined)."""
        self._ids, self._sources = senses, sources
        order = np.argsort(key)
        self._key = key[order]
        self._similarity = similarity[order] + 0.0  # turns -0.0, whose digest differs, into 0.0

    @classmethod
    def read(cls, lines: Iterable[Line], policy: ErrorPolicy, canonical: Callable[[str], str] = str) -> SimilarityTable:
        """Return the table of all lines, in any order, of one or several files. canonical: (sense's name) -> the name
        under which it is stored. Raises `DataError` with file and line for a bad line or a pair with two different
        ratings; if the policy skips, bad lines are dropped, and all lines of such a pair."""
        reading, lines = _Reading(canonical), iter(lines)
        while batch := list(islice(lines, BATCH)):
            is_added = attempt(reading.add_batch, batch)
            for line in () if is_added else batch:  # one by one, as some line is unusual or bad
                with policy.item(line.place):
                    reading.add(parse(line))
        key = np.fromiter(reading.pairs, dtype=np.int64, count=len(reading.pairs))
        similarity = np.fromiter(reading.pairs.values(), dtype=np.float64, count=len(key))
        usable = ~np.isnan(similarity)  # NaN marks a pair with two different ratings
        raters, prompts = reading.raters | split_names(reading.measures), split_names(reading.prompts)
        return cls(reading.senses, key[usable], similarity[usable], raters=raters, prompt=prompts, merge=reading.rules)

    @classmethod
    def from_pairs(cls, pairs: Sequence[Pair], rated: Sequence[Rated]) -> SimilarityTable:
        """Return the table of pairs with their ratings by a measure; each pair must be there once."""
        senses = Numbered[str]()
        first, second = senses.numbers_of([a for _, a, _ in pairs]), senses.numbers_of([b for _, _, b in pairs])
        similarity = np.array([rating.similarity for rating in rated], dtype=np.float64)
        return cls(senses, _keys(first, second), similarity, raters=split_names(rating.measure for rating in rated))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._key)

    @property
    def raters(self) -> set[str]:
        """Return the models and the measures that the similarities are from, as far as lines name them."""
        return self._sources["raters"]

    def values(self, first: Sequence[str], second: Sequence[str]) -> Floats:
        """Return [M]: the similarity of each sense first[i] to second[i], 1 for equal senses, NaN for unknown pairs."""
        similarity = self.look_up(self.numbers(first), self.numbers(second))
        similarity[np.fromiter(map(eq, first, second), dtype=bool, count=len(first))] = 1.0
        return similarity

    def numbers(self, senses: Sequence[str]) -> Ints:
        """Return [M]: the number of each sense in this table, -1 for a sense that it lacks."""
        return np.fromiter((self._ids.get(sense, -1) for sense in senses), dtype=np.int64, count=len(senses))

    def look_up(self, first: Ints, second: Ints) -> Floats:
        """Return [M]: the similarity of different senses, given by their numbers; NaN if the table lacks the pair."""
        similarity = np.full(len(first), np.nan)
        both_known = np.flatnonzero((first >= 0) & (second >= 0))
        place, in_table = find(self._key, _keys(first[both_known], second[both_known]))
        similarity[both_known[in_table]] = self._similarity[place[in_table]]
        return similarity

    def signature(self) -> dict[str, str]:
        """Return {setting: text} that identifies the table in signatures: its digest, and where its similarities are
        from. The mean of a single rater, which combines nothing, is not named."""
        sources = dict(self._sources)
        if sources.get("merge") == {"mean"} and len(sources["raters"]) < 2:
            del sources["merge"]
        signature = {"sim": self.digest()}
        for key, names in sources.items():
            if names:  # a signature's settings are separated by "|" and have no spaces
                signature[key] = "+".join(sorted(re.sub(r"[|\s]+", "_", name) for name in names))
        return signature

    def digest(self) -> str:
        """Return eight hexadecimal digits that two tables share when they hold the same pairs and similarities."""
        # The senses are numbered again by name, as their numbers depend on the order of lines.
        names = sorted(self._ids)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[self._ids[name] for name in names]] = np.arange(len(names))
        first, second = np.divmod(self._key, MOST_SENSES)  # a key is two numbers of senses as one
        key = _keys(rank[first], rank[second], len(names))
        order = np.argsort(key, kind="stable")
        content = hashlib.sha256("\n".join(names).encode())
        content.update(key[order].astype("<i8").tobytes())
        content.update(self._similarity[order].astype("<f8").tobytes())
        return content.hexdigest()[:8]


def _keys(first: Ints, second: Ints, count: int = MOST_SENSES) -> Ints:
    """Return [P]: one number for each two senses' numbers (below `count`), the same for both orders."""
    return np.minimum(first, second) * count + np.maximum(first, second)


class _Reading:
    """A table while its lines are read. senses: {canonical name: number}; pairs: {one of `_keys`: similarity, NaN for a
    pair with two ratings}; measures, prompts, raters, rules: what the lines say of where they are from."""

    def __init__(self, canonical: Callable[[str], str]) -> None:
        """Begin without lines. canonical: (sense's name) -> the name under which it is stored."""
        self.senses, self.pairs = Numbered[str](), dict[int, float]()
        self._number = cache(lambda name: self.senses[canonical(name)])
        self.measures, self.prompts = set[str | None](), set[str | None]()
        self.raters, self.rules = set[str](), set[str]()

    def add_batch(self, lines: Sequence[Line]) -> bool:
        """Add many lines at once, checked together as columns, and return True. Only plain lines can be added in this
        fast way: those that say no more than the similarity and the measure. For any other line among them, and for a
        pair with two ratings, raise an exception (as `require` does) that `columns.attempt` turns into None."""
        require(b'"scores"' not in lines[0].data)  # a table with scores: do not try
        # All lines are parsed as one array. Each is a record of its own if it begins with a brace and none has others.
        text = b",".join([line.data for line in lines])
        require(all(line.data.startswith(b"{") for line in lines) and text.count(b"{") == len(lines))
        records = orjson.loads(b"[%b]" % text)
        require(len(records) == len(lines) and b"\\" not in text)
        require(set().union(*records) <= _KEYS)
        pos, *sides, similarity = zip(*map(_FIELDS, records), strict=True)  # columns; sides: the two senses, a and b
        measures = Counter(map(dict.get, records, repeat("measure")))
        require(all(name is None or (type(name) is str and name) for name in measures))
        # No key is repeated: there is a colon for each key, besides those in the names of measures.
        colons = sum(count * (name or "").count(":") for name, count in measures.items())
        require(text.count(b":") == sum(map(len, records)) + colons)
        require(all(pos == tuple(map(_pos_of, side)) for side in sides) and None not in pos)
        require(not any(map(eq, *sides)))
        check_types(similarity, float, int)
        require(min(similarity) >= 0 and max(similarity) <= 1)
        first, second = (np.fromiter(map(self._number, side), dtype=np.int64) for side in sides)
        # what is stored of each pair, which is the new similarity unless another line had one
        stored = map(self.pairs.setdefault, _keys(first, second).tolist(), similarity)
        require(all(map(eq, stored, similarity)))
        self.measures |= measures.keys()
        self.rules.add("mean")
        return True

    def add(self, record: Record) -> None:
        """Add one line of any kind. Raises `DataError` for a bad one, and for a pair that another rates differently."""
        check_line(record)
        names, similarity = (record["a"], record["b"]), record["similarity"]
        first, second = sorted(map(self._number, names))
        key = first * MOST_SENSES + second
        if self.pairs.setdefault(key, similarity) != similarity:
            similarity_before, self.pairs[key] = self.pairs[key], np.nan
            numbers = f"{write_number(similarity)} here and {write_number(similarity_before)} on another line"
            problem = f"{names[0]} and {names[1]} are {numbers}; keep one line a pair (hoicli shoe-sim --merge joins "
            problem += "tables)"
            raise DataError(problem, field="similarity")
        self.measures.add(record.get("measure"))
        self.prompts.add(record.get("prompt"))
        self.raters.update(record.get("scores") or ())
        self.rules.add(record.get("merge", "mean"))


def split_names(names: Iterable[str | None]) -> set[str]:
    """Return the single names in texts that may join several names with plus signs (`a+b`)."""
    return set(chain.from_iterable(name.split("+") for name in names if name is not None))


@lru_cache(maxsize=1 << 17)
def _pos_of(sense: str) -> str | None:
    """Return the part of speech in a sense's name ("v" of pet.v.01), None for a text that is no such name."""
    match = _SENSE.fullmatch(sense)
    return None if match is None else match[1]


def check_line(record: Record, *, joined: bool = False) -> None:
    """Raise `DataError` with the field's name if a line of a table is not as it must be. joined: whether lines of one
    pair are about to be joined (`table_joining`); then a line with scores needs no similarity."""
    pos, similarity, scores = record.get("pos"), record.get("similarity"), record.get("scores")
    if pos not in ("v", "n"):
        raise _wrong(record, "pos", "is neither v (verbs) nor n (objects)")
    for key in ("a", "b"):
        if type(record.get(key)) is not str or _pos_of(record[key]) != pos:
            raise _wrong(record, key, f"is no sense of pos {pos}; name one as WordNet does, for example pet.v.01")
    if scores is not None and not (type(scores) is dict and all(map(is_rating, scores.values()))):
        raise _wrong(record, "scores", "is no object of ratings 0 to 4 by model")
    if record.get("merge", "mean") not in RULES:
        raise _wrong(record, "merge", f"is none of {', '.join(RULES)}")
    for key in ("measure", "prompt"):
        if record.get(key) is not None and (type(record[key]) is not str or not record[key]):
            raise _wrong(record, key, "is no name")
    date = record.get("date")
    if date is not None and (type(date) is not str or not DATES.fullmatch(date)):
        raise _wrong(record, "date", "is no date; write 2026-01-31, or 2026-01-31/2026-02-02")
    if joined and similarity is None and scores:
        return
    if not is_number(similarity) or not 0 <= record["similarity"] <= 1:
        raise _wrong(record, "similarity", "is no similarity; give a number from 0 to 1")
    if record["a"] == record["b"]:
        if similarity != 1:
            raise _wrong(record, "similarity", "of a sense with itself is 1; leave the line out")
    elif scores and record.get("measure") is None:
        possible = possible_similarities(record)
        if all(abs(value - record["similarity"]) > ROUNDED for value in possible):
            possible_text = " or ".join(f"{value:g}" for value in possible)
            raise _wrong(record, "similarity", f"is not what its scores give, {possible_text}; correct one of the two")


def _wrong(record: Record, key: str, problem: str) -> DataError:
    """Return the error for a key of a line, with the value and what is wrong with it; "missing" without a value."""
    return DataError(f"{short(record[key])} {problem}" if key in record else "missing", field=key)


def possible_similarities(record: Record) -> list[float]:
    """Return the similarities that a line's scores can give by its rule (`merge`). Only a majority vote can have
    several, one for each of the most frequent ratings."""
    ratings, rule = list(record["scores"].values()), record.get("merge", "mean")
    if rule == "mean":
        return [sum(ratings) / (SCALE * len(ratings))]
    return [value / SCALE for value in ([median(ratings)] if rule == "median" else multimode(ratings))]
