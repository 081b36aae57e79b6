"""The evaluators of GEN-VLKT, HOICLIP and EoID (YueLiao/gen-vlkt datasets/hico_eval_triplet.py, vcoco_eval.py)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from hoicli.compat import query_evaluators
from hoicli.compat.cdn import write_json_file
from hoicli.compat.class_numbers import verbs_and_objects
from hoicli.compat.query_evaluators import MOST_TRIPLETS, Arrays, Outputs, Triplet, nms_of, read_outputs
from hoicli.errors import UsageError

GROUPS = {"default": ("rare", "non-rare"), "unseen_object": ("unseen-obj", "seen-obj")}
"""What the two groups of classes are called, by `zero_shot_type`; ("unseen", "seen") for every other type."""


class HICOEvaluator(query_evaluators.HICODETEvaluator):
    """Takes the place of GEN-VLKT's class of this name, and of HOICLIP's, whose `args` have `eval_location`.

    preds have `hoi_scores` [Q, 600] and `obj_scores` [Q, 80] besides the boxes of the queries; a score is that of the
    interaction plus the square of its object's. HOICLIP leaves classes without predictions out of the two groups."""

    protocol = "gen-vlkt"
    line = "mAP full: {mAP} mAP rare: {mAP rare}  mAP non-rare: {mAP non-rare}  mean max recall: {mean max recall}"

    def __init__(
        self,
        preds: Sequence[Outputs],
        gts: Sequence[Outputs],
        rare_triplets: Collection[Triplet],
        non_rare_triplets: Collection[Triplet],
        correct_mat: Any,
        args: Any,
    ) -> None:
        if getattr(args, "eval_location", False):
            raise UsageError("eval_location: an evaluation of boxes without classes is not served; leave it out")
        rare, non_rare = GROUPS.get(args.zero_shot_type, ("unseen", "seen"))
        self.means = {"rare": f"mAP {rare}", "non_rare": f"mAP {non_rare}"}
        self.line = self.line.replace("non-rare", non_rare).replace("mAP rare", f"mAP {rare}")
        super().__init__(preds, gts, rare_triplets, non_rare_triplets, correct_mat, nms_of(args))
        self.groups_need_predictions = hasattr(args, "eval_location")
        if self._nms is not None:
            print("eval use_nms_filter ...")
        write_json_file(self, getattr(args, "json_file", None))
        print(len(preds), len(gts), sep="\n")

    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        names = ("boxes", "hoi_scores", "obj_scores", "sub_ids", "obj_ids")
        boxes, scores, object_scores, subject, object_ = read_outputs(outputs, names, place)
        verb_of, object_of = verbs_and_objects(self._vocabulary)
        flat = (scores + (object_scores * object_scores)[:, object_of]).ravel()
        order = np.argsort(-flat, kind="stable")[:MOST_TRIPLETS]
        # of equal scores, the released code takes the first as often as there are such (`np.where(...)[0][0]`)
        is_new = np.append(True, np.diff(flat[order]) != 0)[: len(order)]
        order = order[np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
        query, number = np.divmod(order, len(verb_of))
        # a query's object box has a label for each interaction: it is there once for every triplet
        people, label = np.zeros(len(query), dtype=np.int64), object_of[number]
        pair = np.arange(len(query))
        return {
            "boxes": np.concatenate([boxes[subject[query]], boxes[object_[query]]]).reshape(-1, 4),
            "labels": np.concatenate([people, label]),
            "subject": pair, "object": pair + len(query), "verb": verb_of[number], "score": flat[order],
        }  # fmt: skip
