"""How recall at K is computed: the published metric, and what the released evaluators do otherwise.

A prediction finds every ground-truth triplet of its image with the same three labels whose boxes it overlaps by at
least 0.5 each; several predictions may find one. Lu et al. 2016 (R@K), Chen et al. and Tang et al. 2019 (mR@K), Zellers
et al. 2018 (graph constraint), Tang et al. 2020 (zR@K), Zhang et al. 2022 (F1@K).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoicli.evaluation.protocols import EVERY_RECALL, Protocol

PROTOCOL = "sgg"
"""The protocol in rows and signatures."""


@dataclass(frozen=True)
class Convention:
    """One way to compute it.

    name: the value of `--as-released`, "" for the published metric. matching: the IoU and its threshold.
    every_verb: mR@K averages over all verbs of the dataset, where one without ground truth counts 0, rather than over
    those that have some. silent_images: images without a prediction count 0 rather than not at all. most: how many
    predictions of an image are ranked without graph constraint, and so the largest K there; None for all.
    """

    name: str
    matching: Protocol
    every_verb: bool = False
    silent_images: bool = True
    most: int | None = None

    def settings(self) -> dict[str, str]:
        """What it adds to a signature."""
        return {"released": self.name} if self.name else {}


_EDGES = Protocol(
    name=PROTOCOL,
    title="scene-graph recall",
    source="Jingkang50/OpenPSG openpsg/evaluation/sgg_metrics.py, with mmdet's bbox_overlaps",
    grid=EVERY_RECALL,
)

PUBLISHED = Convention("", _EDGES)
RELEASED: Mapping[str, Convention] = {
    row.name: row
    for row in (
        Convention("openpsg", _EDGES, every_verb=True, silent_images=False, most=100),
        Convention(
            "sgg-benchmark",
            replace(
                _EDGES,
                source="Maelic/SGG-Benchmark structures/box_ops.py box_iou, data/datasets/evaluation/sgg_metrics.py",
                inclusive_overlap=True,
            ),
            every_verb=True,
            most=100,
        ),
    )
}
"""The released evaluators, by the name of their project."""
