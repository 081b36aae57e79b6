"""Filters that remove predictions before matching."""

from __future__ import annotations

from dataclasses import dataclass

from hoicli.errors import UsageError, arg

UNCOUNTED = {"uncounted": "allowed"}
"""What a signature says where a number is about the smaller part alone: without leave it is refused."""


@dataclass(frozen=True)
class Filters:
    """Keep the best `top_k` triplets of an image, then apply pair NMS at `nms`: CDN's order. The smaller of `top_k` and
    a protocol's own cap applies. `allow_uncounted`: compute numbers even if most labels have no class
    (`coverage.check_counted`). Raises `UsageError` for values out of range.
    """

    top_k: int | None = None
    nms: float | None = None
    nms_alpha: float = 1.0
    nms_beta: float = 0.5
    allow_uncounted: bool = False

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"{arg('top_k', self.top_k)}: give a whole number of at least 1")
        if self.nms is not None and not 0 <= self.nms <= 1:
            raise UsageError(f"{arg('nms', self.nms)}: the threshold is an overlap, between 0 and 1")
        if not (self.nms_alpha >= 0 and self.nms_beta >= 0):  # so is NaN
            raise UsageError(f"{arg('nms', self._nms)}: the exponents must be at least 0")

    @classmethod
    def of(cls, top_k: int | None, nms: float | str | None, allow_uncounted: bool) -> Filters:
        """nms: a threshold, or threshold/alpha/beta as a signature has it. Raises `UsageError` for anything else."""
        if nms is None:
            return cls(top_k, allow_uncounted=allow_uncounted)
        text = str(nms)
        try:
            threshold, alpha, beta = map(float, text.split("/") if "/" in text else (text, "1", "0.5"))
        except ValueError:  # no numbers, or not three
            raise UsageError(f"{arg('nms', nms)}: give a number, or three as in 0.7/1/0.5") from None
        return cls(top_k, threshold, alpha, beta, allow_uncounted)

    @property
    def removes(self) -> bool:
        """Whether anything is removed."""
        return self.top_k is not None or self.nms is not None

    def allowance(self) -> dict[str, str]:
        """The leave that match records pass on to who makes a mean of them; signatures have it where it was needed."""
        return dict(UNCOUNTED) if self.allow_uncounted else {}

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures; empty if there are none."""
        settings = {}
        if self.top_k is not None:
            settings["topk"] = str(self.top_k)
        if self.nms is not None:
            settings["nms"] = self._nms
        return settings

    @property
    def _nms(self) -> str:
        return f"{self.nms:g}/{self.nms_alpha:g}/{self.nms_beta:g}"
