"""How recall at K is computed: the published metric, and what the released evaluators do otherwise.

A prediction finds every ground-truth triplet of its image with the same three labels whose boxes it overlaps by at
least 0.5 each; several predictions may find one. Lu et al. 2016 (R@K), Chen et al. and Tang et al. 2019 (mR@K), Zellers
et al. 2018 (graph constraint), Tang et al. 2020 (zR@K), Zhang et al. 2022 (F1@K)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.recall_grids import EVERY_RECALL

PROTOCOL = "sgg"
"""The name of the protocol in rows and signatures."""
CONSTRAINTS = ("graph", "none")
"""With graph constraint only the best prediction of each pair of boxes is ranked; without, all are."""
NOTHING, BOXES, PREDICTIONS = range(3)
"""What is predicted of an image: nothing or an empty record, boxes without a triplet, or triplets."""


@dataclass(frozen=True)
class Convention:
    """One way to compute recall at K: as published, or as a released evaluator does.

    name: the value of `--as-released`, "" for the published metric. matching: the IoU and its threshold.
    every_verb: mR@K averages over all verbs of the dataset, where one without ground truth counts 0, rather than over
    those that have some. left_out: images in which only this is predicted (NOTHING, BOXES) are in no mean; other images
    without predicted triplets count 0. repeats: a triplet that is annotated twice on the same two boxes counts twice.
    constraints: those of CONSTRAINTS that it has. limit: how many predictions of an image are ranked without graph
    constraint, and so the largest K there; None for all. relative: whether it has R@K-relative."""

    name: str
    matching: Protocol
    every_verb: bool = False
    left_out: tuple[int, ...] = ()
    repeats: bool = False
    constraints: tuple[str, ...] = CONSTRAINTS
    limit: int | None = None
    relative: bool = False


_EDGES = Protocol(
    name=PROTOCOL,
    title="scene-graph recall",
    source="Jingkang50/OpenPSG openpsg/evaluation/sgg_metrics.py, with mmdet's bbox_overlaps",
    grid=EVERY_RECALL,
)

PUBLISHED = Convention("", _EDGES, relative=True)
RELEASED: Mapping[str, Convention] = {
    row.name: row
    for row in (
        Convention("openpsg", _EDGES, every_verb=True, left_out=(NOTHING, BOXES), limit=100),
        Convention(
            "sgg-benchmark",
            replace(
                _EDGES,
                source="Maelic/SGG-Benchmark structures/box_ops.py box_iou, data/datasets/evaluation/sgg_metrics.py",
                inclusive_overlap=True,
            ),
            every_verb=True,
            limit=100,
            relative=True,
        ),
        Convention(
            "r1-sgg",
            replace(_EDGES, source="gpt4vision/R1-SGG src/utils/sgg_metrics.py, bounding_box.py", inclusive=True),
            every_verb=True,
            left_out=(BOXES,),
            repeats=True,
            constraints=("none",),
        ),
    )
}
"""The released evaluators, by the name of their project."""
