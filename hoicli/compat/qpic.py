"""The evaluators of QPIC, RLIP, RLIPv2 and CQL (hitachi-rd-cv/qpic datasets/hico_eval.py, vcoco_eval.py)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from hoicli.compat import query_evaluators
from hoicli.compat.query_evaluators import Outputs, Triplet
from hoicli.errors import UsageError

PERSON = 0
"""The number of a person's label in every released dataset; hoicli's, too."""
RLIP_LINE = (
    "mAP: {mAP} mAP rare (unseen): {mAP rare}  mAP non-rare (seen): {mAP non-rare}  mean max recall: {mean max recall}"
)
"""What RLIP prints."""


class HICOEvaluator(query_evaluators.HICODETEvaluator):
    """Takes the place of QPIC's class of this name, and of RLIP's, whose `args` may ask for pair NMS."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], subject_category_id: int,
        rare_triplets: Collection[Triplet], non_rare_triplets: Collection[Triplet], correct_mat: Any, args: Any = None,
    ) -> None:  # fmt: skip
        check_subject(subject_category_id)
        nms = query_evaluators.nms_of(args)
        if hasattr(args, "use_nms_filter"):
            self.line = RLIP_LINE
        super().__init__(preds, gts, rare_triplets, non_rare_triplets, correct_mat, nms)


class VCOCOEvaluator(query_evaluators.VCOCOEvaluator):
    """Takes the place of QPIC's class of this name."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], subject_category_id: int, correct_mat: Any,
        args: Any = None,
    ) -> None:  # fmt: skip
        check_subject(subject_category_id)
        super().__init__(preds, gts, correct_mat)


def check_subject(subject_category_id: int) -> None:
    """Raise `UsageError` if persons have another label than 0."""
    if np.ndim(subject_category_id) or subject_category_id != PERSON:
        raise UsageError(f"subject_category_id={subject_category_id}: persons are label {PERSON} here; give {PERSON}")
