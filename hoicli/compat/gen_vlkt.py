"""The evaluators of GEN-VLKT, HOICLIP and EoID (YueLiao/gen-vlkt datasets/hico_eval_triplet.py, vcoco_eval.py)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from hoicli.api.network_outputs.ranking_rules import (
    NO_OBJECT,
    VCOCO_INTERACTIONS,
    Arrays,
    best_of_interactions,
    interaction_pairs,
    score_actions,
)
from hoicli.compat import cdn
from hoicli.compat.query_evaluators import Outputs, Triplet, check_query_boxes, option_of, read_outputs
from hoicli.errors import UsageError

LINE = (
    "mAP full: {{mAP}} mAP {rare}: {{mAP {rare}}}  mAP {non_rare}: {{mAP {non_rare}}}  "
    "mean max recall: {{mean max recall}}"
)
"""The line that the released code prints, with the names of the two groups and then the means filled in."""
GROUPS = {"default": ("rare", "non-rare"), "unseen_object": ("unseen-obj", "seen-obj")}
"""What the two groups of classes are called, by `zero_shot_type`; ("unseen", "seen") for every other type."""


class HICOEvaluator(cdn.HICOEvaluator):
    """Takes the place of GEN-VLKT's class of this name, and of HOICLIP's, whose `args` have `eval_location`.

    preds have `hoi_scores` [Q, 600] and `obj_scores` [Q, 80] besides the boxes of the queries; a score is that of the
    interaction plus the square of its object's. HOICLIP leaves classes without predictions out of the two groups."""

    protocol = "gen-vlkt"

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], rare_triplets: Collection[Triplet],
        non_rare_triplets: Collection[Triplet], correct_mat: Any, args: Any,
    ) -> None:  # fmt: skip
        if getattr(args, "eval_location", False):
            raise UsageError("eval_location: an evaluation of boxes without classes is not served; leave it out")
        rare, non_rare = GROUPS.get(str(option_of(args, "zero_shot_type")), ("unseen", "seen"))
        self.means = {"rare": f"mAP {rare}", "non_rare": f"mAP {non_rare}"}
        self.line = LINE.format(rare=rare, non_rare=non_rare)
        super().__init__(preds, gts, rare_triplets, non_rare_triplets, correct_mat, args)
        self.groups_need_predictions = hasattr(args, "eval_location")  # HOICLIP's, even if it is off
        # the released code prints these two
        if self.nms is not None:
            print("eval use_nms_filter ...")
        print(len(preds), len(gts), sep="\n")

    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        names = ("boxes", "hoi_scores", "obj_scores", "sub_ids", "obj_ids")
        widths = {"hoi_scores": len(self._vocabulary.interactions), "obj_scores": len(self._vocabulary.objects)}
        boxes, scores, object_scores, subject, object_ = read_outputs(outputs, names, place, widths)
        check_query_boxes(boxes, subject, object_, place)
        ranked = best_of_interactions(scores, object_scores, self._vocabulary)
        return interaction_pairs(boxes[subject], boxes[object_], ranked, self._vocabulary)


class VCOCOEvaluator(cdn.VCOCOEvaluator):
    """Takes the place of GEN-VLKT's class of this name, which ignores `use_nms_filter` as CDN's does. preds
    have `hoi_scores` [Q, 263] and `obj_scores` [Q, 81] in place of the verbs' scores."""

    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        widths = {"hoi_scores": VCOCO_INTERACTIONS, "obj_scores": NO_OBJECT + 1}
        scores, object_scores = read_outputs(outputs, tuple(widths), place, widths)
        verb_scores = score_actions(scores, object_scores).astype(np.float64)  # theirs stand in an array of doubles
        return super()._predicted_arrays({**outputs, "verb_scores": verb_scores}, place)
