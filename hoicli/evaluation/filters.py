"""What is removed from predictions before any protocol looks at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoicli.errors import UsageError

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Filters:
    """What to remove before any protocol looks: the best `top_k` triplets of an image stay, then pair NMS at `nms`.

    In CDN's order, where the 100 best of an image are taken before NMS; a protocol's own cap joins `top_k`.
    `allow_uncounted` lets numbers be computed although most of the labels are of no class (`pairing.check_counted`).
    """

    top_k: int | None = None
    nms: float | None = None
    nms_alpha: float = 1.0
    nms_beta: float = 0.5
    allow_uncounted: bool = False

    @classmethod
    def checked(
        cls,
        *,
        top_k: int | None,
        nms: float | None,
        nms_alpha: float,
        nms_beta: float,
        allow_uncounted: bool = False,
    ) -> Filters:
        """From a command's options; raises `UsageError` for values that mean nothing."""
        if top_k is not None and top_k < 1:
            raise UsageError(f"--top-k {top_k}: give a whole number of at least 1")
        if nms is not None and not 0 <= nms <= 1:
            raise UsageError(f"--nms {nms:g}: the threshold is an overlap, between 0 and 1")
        if min(nms_alpha, nms_beta) < 0:
            raise UsageError("--nms-alpha, --nms-beta: exponents of an overlap, at least 0")
        return cls(top_k, nms, nms_alpha, nms_beta, allow_uncounted)

    @property
    def removes(self) -> bool:
        """Whether anything is removed."""
        return self.top_k is not None or self.nms is not None

    def allowance(self) -> dict[str, str]:
        """What `allow_uncounted` adds to a signature."""
        return {"uncounted": "allowed"} if self.allow_uncounted else {}

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures; nothing when there are none."""
        settings = self.allowance()
        if self.top_k is not None:
            settings["topk"] = str(self.top_k)
        if self.nms is not None:
            settings["nms"] = f"{self.nms:g}/{self.nms_alpha:g}/{self.nms_beta:g}"
        return settings
