"""A pair of senses and how alike it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoicli.records.parsing import Record

Pair = tuple[str, str, str]
"""(pos, a, b), a < b."""

NAMES = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}
"""The parts of speech; labels are nouns and verbs, and the other two are for `--pairs` with `lexical` alone."""

SCALE = 4
"""The highest rating."""


@dataclass(frozen=True)
class Rated:
    """How alike a pair is, in [0, 1], None where the backend has no answer; each model's rating, where models gave
    them; the measure's own number, where that is on another scale; and the rule by which several raters became one,
    where that is not the mean."""

    similarity: float | None
    scores: Mapping[str, int] | None = None
    raw: float | None = None
    merge: str | None = None


def pair_of(pos: str, first: str, second: str) -> Pair:
    """The pair of two different senses."""
    return (pos, first, second) if first < second else (pos, second, first)


def row(pair: Pair, rated: Rated) -> Record:
    """A line of the table."""
    record: Record = dict(zip(("pos", "a", "b"), pair, strict=True))
    if rated.scores is not None:
        record["scores"] = dict(sorted(rated.scores.items()))
    record["similarity"] = rated.similarity
    if rated.merge is not None:
        record["merge"] = rated.merge
    return record
