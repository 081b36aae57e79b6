"""The official evaluator of V-COCO (s-gupta/v-coco vsrl_eval.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import hoicli
from hoicli.compat.files import read_json
from hoicli.compat.query_evaluators import mean_of
from hoicli.errors import DataError, UsageError

ApAndCount = tuple[float, int]
"""The AP of a class in percent, NaN without ground truth, and how many people do it."""

NO_TRUTH = (math.nan, 0)
"""Those of an action that no image is annotated with."""


class VCOCOeval:
    """Takes the place of the class of this name. rows: hoicli's result rows of all three tables with their signatures,
    once `_do_eval` has been called."""

    def __init__(self, vsrl_annot_file: str, coco_annot_file: str, split_file: str) -> None:
        """vsrl_annot_file, coco_annot_file, split_file: V-COCO's annotations, COCO's boxes, the ids of the images."""
        print("loading vcoco annotations...")
        self.truth = list(hoicli.convert([vsrl_annot_file, coco_annot_file, split_file], dataset="vcoco"))
        try:
            actions = read_json(vsrl_annot_file, "vsrl_annot_file", list)
            self._roles = {action["action_name"]: action["role_name"][1:] for action in actions}
        except (KeyError, TypeError):
            problem = "no list of actions; give V-COCO's annotations, such as vcoco_test.json"
            raise DataError(problem, place=vsrl_annot_file) from None
        self.rows: list[dict[str, Any]] = []

    def _do_eval(self, detections_file: str, ovr_thresh: float = 0.5) -> None:
        """Print the AP of agents, then of roles in both scenarios. detections_file: the official list of people, as a
        pickle. ovr_thresh: the overlap that makes a box right."""
        if not isinstance(ovr_thresh, int | float) or not 0 < ovr_thresh <= 1:
            raise UsageError(f"ovr_thresh={ovr_thresh!r}: give an overlap above 0, at most 1")
        result_rows = hoicli.evaluate(
            self.truth, detections_file, dataset="vcoco", protocol=["vcoco-agent", "vcoco-s1", "vcoco-s2"],
            iou=None if ovr_thresh == 0.5 else [ovr_thresh], per_class=True,
        ).rows  # fmt: skip
        self.rows = [row for row in result_rows if row["metric"] == "mAP"]
        tables: dict[str, dict[tuple[str, str], ApAndCount]] = {}
        for row in result_rows:
            if row["metric"] == "AP":
                ap = math.nan if row["value"] is None else row["value"]
                tables.setdefault(row["protocol"], {})[row["verb"], row["role"] or ""] = ap, row["n"]
        self._print_agents(tables["vcoco-agent"])
        self._print_roles(tables["vcoco-s1"], "scenario_1")
        self._print_roles(tables["vcoco-s2"], "scenario_2")

    def _print_agents(self, aps: Mapping[tuple[str, str], ApAndCount]) -> None:
        """Print the table of agents, whose mean is over all actions, those without ground truth included."""
        print("---------Reporting Agent AP (%)------------------")
        for verb in self._roles:
            ap, count = aps.get((verb, ""), NO_TRUTH)
            print(f"{verb: >20}: AP = {ap:0.2f} (#pos = {count:d})")
        aps_with_truth = [ap for ap, _ in aps.values() if not math.isnan(ap)]
        print(f"Average Agent AP = {sum(aps_with_truth) / len(self._roles):.2f}", "-" * 45, sep="\n")

    def _print_roles(self, aps: Mapping[tuple[str, str], ApAndCount], scenario: str) -> None:
        """Print the table of roles, whose mean is over those with ground truth."""
        print("---------Reporting Role AP (%)------------------")
        for verb, roles in self._roles.items():
            for role in roles:
                ap, count = aps.get((verb, role), NO_TRUTH)
                print(f"{verb + '-' + role: >23}: AP = {ap:0.2f} (#pos = {count:d})")
        average = mean_of(ap for ap, _ in aps.values() if not math.isnan(ap))
        print(f"Average Role [{scenario}] AP = {average:.2f}", "-" * 45, sep="\n")
