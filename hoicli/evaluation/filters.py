"""Filters that remove predictions before matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hoicli.errors import UsageError, arg, write_number

UNCOUNTED = {"uncounted": "allowed"}
"""The setting in signatures that says that most triplets have no class, so that a number is about the others alone.
Such numbers are refused without the user's leave (`allow_uncounted`)."""


class PairNms(NamedTuple):
    """The arguments of `records.boxes.pair_nms`."""

    threshold: float
    alpha: float = 1.0
    beta: float = 0.5

    def __str__(self) -> str:
        return "/".join(map(write_number, self))


@dataclass(frozen=True)
class Filters:
    """Which predictions are removed before matching: all but the best `top_k` triplets of an image, then those that
    pair NMS suppresses, which is CDN's order. The smaller of `top_k` and a protocol's own cap applies. allow_uncounted:
    compute numbers even if most triplets have no class. Raises `UsageError` for values out of range."""

    top_k: int | None = None
    nms: PairNms | None = None
    allow_uncounted: bool = False

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"{arg('top_k', self.top_k)}: give a whole number of at least 1")
        if self.nms is None:
            return
        if not 0 <= self.nms.threshold <= 1:
            raise UsageError(f"{arg('nms', self.nms.threshold)}: the threshold is an overlap, between 0 and 1")
        if not (self.nms.alpha >= 0 and self.nms.beta >= 0):  # so is NaN
            raise UsageError(f"{arg('nms', str(self.nms))}: the exponents must be at least 0")

    @classmethod
    def from_options(cls, top_k: int | None, nms: float | str | None, allow_uncounted: bool) -> Filters:
        """Return the filters of options. nms: a threshold, or threshold/alpha/beta; else raises `UsageError`."""
        if nms is None:
            return cls(top_k, None, allow_uncounted)
        try:
            numbers = [float(number) for number in str(nms).split("/")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3):
            raise UsageError(f"{arg('nms', nms)}: give a number, or three as in 0.7/1/0.5")
        return cls(top_k, PairNms(*numbers), allow_uncounted)

    @property
    def removes(self) -> bool:
        """Whether these filters may remove predictions."""
        return self.top_k is not None or self.nms is not None

    def signature(self) -> dict[str, str]:
        """Return the settings in force, for signatures; empty if nothing is removed."""
        settings = {}
        if self.top_k is not None:
            settings["topk"] = str(self.top_k)
        if self.nms is not None:
            settings["nms"] = str(self.nms)
        return settings
