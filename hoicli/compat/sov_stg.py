"""The HICO-DET evaluator of SOV-STG (cjw2021/SOV-STG datasets/hico_eval.py): QAHOI's, with another pair NMS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hoicli.compat import qahoi
from hoicli.compat.query_evaluators import Outputs


class HICOEvaluator(qahoi.HICOEvaluator):
    """Takes the place of SOV-STG's class of this name, whose `nms_beta` is 0.5 if it is not given."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], dataset_path: Any, out_dir: Any, epoch: Any,
        bins_num: int = 10, use_nms: bool = True, nms_thresh: float = 0.5, nms_alpha: float = 1.0,
        nms_beta: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__(preds, gts, dataset_path, out_dir, epoch, bins_num, use_nms, nms_thresh, nms_alpha, nms_beta)
