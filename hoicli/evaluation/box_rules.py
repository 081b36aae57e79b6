"""The rules of COCO, PASCAL VOC and Diag-HOI for boxes: how they are matched with annotated ones, and their metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from hoicli.evaluation.box_matching import COCO_CAP
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.recall_grids import EVERY_RECALL, GRID_ARANGE
from hoicli.io.row_tables import rows_by_name

AREAS = {"all": (0.0, math.inf), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
"""COCO's ranges of areas in pixels. What is in another range is ignored, and so is what matches it."""
COCO_IOU = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95)
"""numpy.linspace(0.5, 0.95, 10), as pycocotools has it."""
GRID_HUNDREDTHS = tuple(number * 0.01 for number in range(101))
"""numpy.linspace(0, 1, 101)."""
FREE, BEST, ANY = "free", "best", "any"
"""What a detection takes, the best-scored first: the free annotated box that it overlaps most; the one that it overlaps
most, or nothing if that is taken; all that it overlaps enough."""
DRAWN_ANEW = {"hico": 0.7, "hico-det-sg": 0.7}
"""The datasets that draw an object anew for each class, with the IoU from which on two of its boxes are one: 36 % of
HICO-DET's test boxes have such a double, which a detector does not find twice (docs/commands/audit.md)."""


@dataclass(frozen=True)
class BoxMetric:
    """One metric of boxes: average precision, or recall if `recall` is set. threshold: the IoU that a match needs, None
    for the mean over all thresholds of the rule; area: the range of object sizes, a key of AREAS; cap: how many
    detections of a label count in an image, the best-scored first, None for all."""

    name: str
    threshold: float | None = 0.5
    recall: bool = False
    area: str = "all"
    cap: int | None = None


@dataclass(frozen=True)
class BoxRule:
    """How boxes are matched and measured. protocol: its name, source, IoU convention, recall grid, and the rule in
    words (`remark`). takes: which annotated box a detection takes (FREE, BEST or ANY). thresholds: the IoU thresholds
    at which boxes are matched."""

    protocol: Protocol
    takes: str
    metrics: tuple[BoxMetric, ...]
    thresholds: tuple[float, ...] = (0.5,)

    def explain(self) -> str:
        """Return the rule in words, in three lines: its name and source, what it does, and its metrics."""
        protocol = self.protocol
        metrics = ", ".join(metric.name for metric in self.metrics)
        return f"{protocol.name}: {protocol.title} ({protocol.source})\n  {protocol.remark}\n  metrics: {metrics}"


def _coco_metrics() -> tuple[BoxMetric, ...]:
    """Return the twelve metrics that `COCOeval.summarize` prints, in its order."""
    precision = partial(BoxMetric, threshold=None, cap=COCO_CAP)
    recall = partial(precision, recall=True)
    sizes = [area for area in AREAS if area != "all"]
    return (
        *(precision("AP"), precision("AP50", threshold=0.5), precision("AP75", threshold=0.75)),
        *(precision(f"AP_{area}", area=area) for area in sizes),
        *(recall(f"AR@{cap}", cap=cap) for cap in (1, 10, COCO_CAP)),
        *(recall(f"AR_{area}", area=area) for area in sizes),
    )


_VOC = (BoxMetric("AP50"), BoxMetric("recall50", recall=True))
# a maker of protocols that measure boxes in whole pixels
_by_pixels = partial(Protocol, source="VOCdevkit VOCevaldet.m", inclusive=True, grid=EVERY_RECALL)
_MOST_OVERLAPPED = (
    "a detection takes the annotated box that it overlaps most, IoU >= 0.5 of boxes x2 - x1 + 1 wide, and is false if "
    "a better-scored one has taken that; AP is "
)
_RULES = (
    BoxRule(
        Protocol(
            name="coco-boxes",
            title="COCO",
            source="cocodataset/cocoapi PythonAPI/pycocotools/cocoeval.py",
            grid=GRID_HUNDREDTHS,
            remark="a detection takes the free annotated box that it overlaps most, of boxes x2 - x1 wide; at most 100 "
            "of a label and image count; AP reads 101 points; AP and AR are means over IoU 0.5, 0.55, ... 0.95",
        ),
        FREE,
        _coco_metrics(),
        COCO_IOU,
    ),
    BoxRule(
        _by_pixels("voc-boxes", "PASCAL VOC since 2010", remark=f"{_MOST_OVERLAPPED}the area under the envelope"),
        BEST,
        _VOC,
    ),
    BoxRule(
        _by_pixels("voc07-boxes", "PASCAL VOC 2007", grid=GRID_ARANGE, remark=f"{_MOST_OVERLAPPED}read at 11 points"),
        BEST,
        _VOC,
    ),
    BoxRule(
        _by_pixels(
            "diag-boxes",
            "recall of boxes as Diag-HOI prints it",
            source="the paper's section 6.7, which has no code; found as its code finds pairs",
            remark="an annotated box is found if any detection overlaps it, IoU >= 0.5 of boxes x2 - x1 + 1 wide",
        ),
        ANY,
        _VOC[1:],
    ),
)
BOX_RULES = rows_by_name("_RULES (hoicli/evaluation/box_rules.py)", ((rule.protocol.name, rule) for rule in _RULES))
"""The rules by name."""
