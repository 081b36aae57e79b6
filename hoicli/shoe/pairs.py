"""A pair of senses, its similarity, and where that may come from. Nothing heavy is imported: help and shell completion
read the names of backends and rules here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hoicli.records.parsing import Record

Pair = tuple[str, str, str]
"""(pos, a, b), a < b."""

NAMES = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}
"""The parts of speech; labels are nouns and verbs, and the other two are for `--pairs` with `lexical` alone."""

SCALE = 4
"""The highest rating."""

OFFLINE = (*(f"wordnet:{name}" for name in ("path", "wup", "lch", "lin", "res", "jcn")), "lexical")
"""Backends that need neither a network nor a file."""

BACKENDS = (*OFFLINE, "llm", "table")

RULES = ("mean", "median", "majority")
"""Rules that combine several ratings; majority: the most frequent, of equally frequent ones that of the model listed
first."""

SENSE = re.compile(r".+\.([nv])\.\d+")
"""A sense of a verb or of a noun, as WordNet names it; its part of speech is the group."""

DATES = re.compile(r"\d{4}-\d\d-\d\d(?:/\d{4}-\d\d-\d\d)?")
"""A day, or the first and the last of several (ISO 8601)."""


@dataclass(frozen=True)
class Rated:
    """similarity: in [0, 1], None if the backend has no answer.

    Where it is from: scores, each model's rating, or measure, the name of an offline backend; prompt, the digest of
    what the models were asked; date, the day or days (DATES) on which they answered; merge, the rule that combined
    several raters, if not the mean."""

    similarity: float | None
    scores: Mapping[str, int] | None = None
    merge: str | None = None
    measure: str | None = None
    prompt: str | None = None
    date: str | None = None

    @cached_property
    def told(self) -> Record:
        """What a line of a table says of it."""
        told = {"scores": self.scores and dict(sorted(self.scores.items())), "similarity": self.similarity}
        told |= {key: getattr(self, key) for key in ("merge", "measure", "prompt", "date")}
        return {key: value for key, value in told.items() if value is not None or key == "similarity"}


def pair_of(pos: str, first: str, second: str) -> Pair:
    """The pair of two different senses."""
    return (pos, first, second) if first < second else (pos, second, first)


def row(pair: Pair, rated: Rated) -> Record:
    """A line of the table."""
    pos, a, b = pair
    return {"pos": pos, "a": a, "b": b, **rated.told}


def days_of(dates: Iterable[str | None]) -> str | None:
    """Several dates as one: the first day and the last; None for none."""
    days = sorted(day for date in dates if date is not None for day in date.split("/"))
    return None if not days else days[0] if days[0] == days[-1] else f"{days[0]}/{days[-1]}"


def is_rating(value: object) -> bool:
    """A whole number from 0 to SCALE."""
    return type(value) is int and 0 <= value <= SCALE
