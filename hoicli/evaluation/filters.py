"""Filters that remove predictions before matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hoicli.errors import UsageError, arg, write_number

UNCOUNTED = {"uncounted": "allowed"}
"""The setting in signatures that says that most triplets have no class, so that a number is about the others alone.
Such numbers are refused without the user's leave (`allow_uncounted`)."""


class PairNms(NamedTuple):
    """The settings of pair NMS, which removes triplets whose two boxes overlap those of a better-scored triplet.

    A triplet is removed if IoU(subjects)^alpha * IoU(objects)^beta exceeds the threshold (`records.boxes.pair_nms`)."""

    threshold: float
    alpha: float = 1.0
    beta: float = 0.5

    def __str__(self) -> str:
        """Return the three numbers as signatures have them: `0.7/1/0.5`."""
        return "/".join(map(write_number, self))


@dataclass(frozen=True)
class Filters:
    """Which predictions are removed before matching: first all but the `top_k` best triplets of each image, then those
    that pair NMS suppresses (CDN's code has this order). If a protocol has a cap of its own, the smaller one applies.

    top_k, nms: None to remove nothing. allow_uncounted: compute metrics even if most triplets have no class in the
    vocabulary and so do not count. Raises `UsageError` for values out of range."""

    top_k: int | None = None
    nms: PairNms | None = None
    allow_uncounted: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` for a value out of range."""
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"{arg('top_k', self.top_k)}: give a whole number of at least 1")
        if self.nms is None:
            return
        if not 0 <= self.nms.threshold <= 1:
            raise UsageError(f"{arg('nms', self.nms.threshold)}: the threshold is an overlap, between 0 and 1")
        if not (self.nms.alpha >= 0 and self.nms.beta >= 0):  # written so that NaN is refused, too
            raise UsageError(f"{arg('nms', str(self.nms))}: the exponents must be at least 0")

    @classmethod
    def from_options(cls, top_k: int | None, nms: float | str | None, allow_uncounted: bool) -> Filters:
        """Return the filters that the options --top-k, --nms and --allow-uncounted ask for. nms: a threshold, or a text
        threshold/alpha/beta such as 0.7/1/0.5. Raises `UsageError` for any other text and for values out of range."""
        if nms is None:
            return cls(top_k, nms=None, allow_uncounted=allow_uncounted)
        try:
            numbers = [float(number) for number in str(nms).split("/")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3):
            raise UsageError(f"{arg('nms', nms)}: give a number, or three as in 0.7/1/0.5")
        return cls(top_k, nms=PairNms(*numbers), allow_uncounted=allow_uncounted)  # threshold, or also alpha and beta

    @property
    def removes(self) -> bool:
        """Whether these filters may remove predictions."""
        return self.top_k is not None or self.nms is not None

    def signature(self) -> dict[str, str]:
        """Return the settings that these filters add to signatures: topk and nms, each only if it is in use."""
        settings = {}
        if self.top_k is not None:
            settings["topk"] = str(self.top_k)
        if self.nms is not None:
            settings["nms"] = str(self.nms)
        return settings
