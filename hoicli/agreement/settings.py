"""What `agree` is asked for, and how a signature says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hoicli.errors import UsageError, arg
from hoicli.resampling.draws import Resampling

LEVELS = (2, 1000)
"""How many rating levels are allowed: there is a row for each level and rater. Human scales have at most 101."""


@dataclass(frozen=True)
class AgreementSettings:
    """levels: ratings go from 0 to levels - 1. permutations, seed: of Spearman's p. merge: a rule of RULES by which all
    models are one; None: the mean, as SHOE's similarity is one, but a vote in the table of subsets, as the supplement's
    Table 1 is one. resampling: of the intervals, None for none. subsets, distribution, votes: the rows that are asked
    for besides. group: the key of the items' groups, "" for none."""

    levels: int = 5
    permutations: int = 10_000
    seed: int = 0
    merge: str | None = None
    resampling: Resampling | None = None
    subsets: bool = False
    distribution: bool = False
    votes: bool = False
    group: str = ""

    @classmethod
    def checked(
        cls, *, levels: int, permutations: int, seed: int, merge: str | None, bootstrap: int | None, subsets: bool,
        distribution: bool, votes: bool, group: str | None,
    ) -> AgreementSettings:  # fmt: skip
        """From a call's options; raises `UsageError` for values that mean nothing."""
        if not LEVELS[0] <= levels <= LEVELS[1]:
            raise UsageError(f"{arg('levels', levels)}: give a whole number from {LEVELS[0]} to {LEVELS[1]:,}")
        if not 0 <= seed < 2**32:
            raise UsageError(f"{arg('seed', seed)}: give a number from 0 to {2**32 - 1}")
        if permutations < 0:
            raise UsageError(f"{arg('permutations', permutations)}: give a whole number of at least 0")
        if group is not None and not group.strip():
            raise UsageError(f"{arg('group')}: name the key that says which group an item is of")
        resampling = Resampling.asked(bootstrap, seed)
        return cls(levels, permutations, seed, merge, resampling, subsets, distribution, votes, group or "")

    def drawn(self) -> dict[str, str]:
        """For the signatures of rows that have an interval."""
        return {} if self.resampling is None else self.resampling.signature()


def signed_rule(rule: str, models: Sequence[str]) -> str:
    """How a signature names the rule, and where it matters who is listed first."""
    if rule != "majority":
        return rule
    if list(models) == sorted(models):
        return "majority,ties-to-first-by-name"
    return "majority,ties-to-first-of-" + "+".join(map(signed_name, models))


def signed_name(name: str) -> str:
    """A name as a signature has room for it: without what stands between settings."""
    return re.sub(r"[|:\s]", "_", name)
