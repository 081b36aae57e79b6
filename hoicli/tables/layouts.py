"""The kinds of result rows and how a table lays out each, and the tables that papers print: which rows a layout takes,
and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoicli.records.results import Row, settings_of

HIGHER, LOWER = 1, -1

BETTER: Mapping[str, int] = {
    **dict.fromkeys(("mAP", "AP", "mean_max_recall", "max_recall", "progressive_mAP"), HIGHER),
    **dict.fromkeys(("pair_recall", "pair_precision", "neg_ap", "interactiveness_ap", "inter_map"), HIGHER),
    **dict.fromkeys(("soft_map", "mf1", "map", "soft_ap", "f1", "ap"), HIGHER),
    **dict.fromkeys(("clean", "mri", "cri", "cri_term"), HIGHER),
    **dict.fromkeys(("gt_miss_rate", "prediction_miss_rate", "mPD", "relative_drop", "sigma"), LOWER),
}
"""Whether the higher or the lower value of a metric is the better one. Of any other it is not known, and none of its
values is set apart: a gain of mAP by a repaired error says how much is lost by that error, in both senses."""


def better(metric: str) -> int | None:
    """HIGHER, LOWER, or None where it is not known."""
    return HIGHER if "R@" in metric or metric.startswith("F1@") else BETTER.get(metric)


@dataclass(frozen=True)
class Slot:
    """A column of a layout: what it is called, and whose values it holds. protocols: the one that papers use, then
    those that may stand in for it where a model has no other. oracle, split: of the rows that have one."""

    group: str
    head: str
    metric: str
    subset: str
    protocols: tuple[str, ...]
    oracle: str = "none"
    split: str = ""

    def takes(self, row: Row) -> bool:
        """Whether a mean stands in it."""
        if (row["metric"], row["subset"], str(row.get("oracle", "none"))) != (self.metric, self.subset, self.oracle):
            return False
        split = not self.split or settings_of(row).get("split") == self.split
        return split and row.get("protocol", "") in self.protocols


@dataclass(frozen=True)
class Layout:
    """A row of LAYOUTS. places: its columns, of the rows to be laid out; fits: whether a row asks for this layout where
    none is named; lines: keys of rows that tell lines apart besides tags; n: with lines of what values are over."""

    name: str
    description: str
    places: Callable[[Sequence[Row]], Sequence[Slot]]
    fits: Callable[[Row], bool]
    lines: tuple[str, ...] = ()
    n: bool = False


_FREQUENCIES = (("full", "Full"), ("rare", "Rare"), ("non_rare", "Non-rare"))
_STAND_INS = ("qpic", "upt", "inp-cc")
"""Protocols whose classes are HICO-DET's 600, or those of them with ground truth, in the order of preference."""

_SPLITS = {
    "rare_first": "RF-UC",
    "non_rare_first": "NF-UC",
    "unseen_object": "UO",
    "unseen_verb": "UV",
    **{f"uc{number}": f"UC{number}" for number in range(5)},
}
"""The zero-shot splits of HICO-DET as papers call them."""

_ORACLES = {
    "duplicate": "Duplicate",
    "interaction": "Interaction",
    "association": "Association",
    "object_box": "Object",
    "human_box": "Human",
    "both_boxes": "Both",
    "missed_gt": "Missed",
    "false_positive": "All FP",
    "false_negative": "All FN",
}

_ROBUST = {"clean": "Clean", "mri": "MRI", "cri": "CRI", "relative_drop": "Drop (%)"}
_SHOE = {
    "soft_map": "SHOE-mAP",
    "mf1": "SHOE mF1",
    "gt_miss_rate": "GT miss",
    "prediction_miss_rate": "Pred. miss",
    "map": "mAP",
}
_PAIRS = {
    "pairs_per_image": "Pairs",
    "pair_recall": "Recall",
    "pair_precision": "Precision",
    "neg_ap": "Neg. AP",
    "inter_map": "Inter. mAP",
    "mAP": "mAP",
}


_HICO = [
    Slot(group, head, "mAP", subset, protocols)
    for group, protocols in (("Default", ("hico", *_STAND_INS)), ("Known Object", ("hico-ko",)))
    for subset, head in _FREQUENCIES
]
_VCOCO = [Slot("", head, "mAP", "24", (protocol,)) for protocol, head in (("vcoco-s1", "S1"), ("vcoco-s2", "S2"))]
_SWIG = [
    Slot("", head, "mAP", subset, ("swig",))
    for subset, head in (("non_rare", "Non-rare"), ("rare", "Rare"), ("zero_shot", "Unseen"), ("full", "Full"))
]


def _zero_shot(rows: Sequence[Row]) -> list[Slot]:
    """Unseen, seen and full of each split that there is, HICO-DET's in the order of the papers."""
    found = dict.fromkeys(settings_of(row).get("split", "") for row in rows if row["subset"] == "unseen")
    return [
        Slot(_SPLITS.get(split, split), head, "mAP", subset, ("hico", *_STAND_INS), split=split)
        for split in sorted(found, key=lambda split: [*_SPLITS, split].index(split))
        for subset, head in (("unseen", "Unseen"), ("seen", "Seen"), ("full", "Full"))
    ]


def _own(rows: Iterable[Row]) -> tuple[str, tuple[str, ...]]:
    """The subset that rows are of (full, where there are several), and their protocols."""
    rows = list(rows)
    subsets = dict.fromkeys(str(row["subset"]) for row in rows)
    subset = next((name for name in ("full", "24") if name in subsets), next(iter(subsets), "full"))
    return subset, tuple(dict.fromkeys(str(row.get("protocol", "")) for row in rows))


def _diagnose(rows: Sequence[Row]) -> list[Slot]:
    subset, protocols = _own(row for row in rows if row["metric"] == "delta_mAP")
    protocols = protocols or ("diag",)
    gains = [
        Slot("mAP gained by repairing", head, "delta_mAP", subset, protocols, oracle)
        for oracle, head in _ORACLES.items()
    ]
    return [Slot("", "mAP", "mAP", subset, protocols), *gains]


def _flat(metrics: Mapping[str, str], of: Callable[[Row], bool]) -> Callable[[Sequence[Row]], list[Slot]]:
    """Columns of metrics, of the rows' own subset and protocols."""

    def places(rows: Sequence[Row]) -> list[Slot]:
        subset, protocols = _own(row for row in rows if row["metric"] in metrics and of(row))
        return [Slot("", head, metric, subset, protocols) for metric, head in metrics.items()]

    return places


def _of(*protocols: str) -> Callable[[Row], bool]:
    return lambda row: row["metric"] == "mAP" and row.get("protocol") in protocols


LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("robust", "clean, MRI, CRI and what is lost",
               _flat(_ROBUST, lambda _: True), lambda row: row["metric"] == "mri"),
        Layout("shoe", "SHOE's mAP, mF1 and miss rates, beside mAP",
               _flat(_SHOE, lambda row: row.get("protocol") == "shoe"), lambda row: row.get("protocol") == "shoe"),
        Layout("pairs", "pairs: how many, recall, precision, negative AP, interaction mAP",
               _flat(_PAIRS, lambda row: "oracle" not in row), lambda row: row["metric"] == "pair_recall",
               ("nms", "det_threshold"), n=True),
        Layout("diagnose", "mAP, and what repairing each error gains",
               _diagnose, lambda row: row["metric"] == "delta_mAP", n=True),
        Layout("vcoco", "AP role in scenario 1 and 2", lambda _: _VCOCO, _of("vcoco-s1", "vcoco-s2")),
        Layout("swig", "non-rare, rare, unseen, full", lambda _: _SWIG, _of("swig")),
        Layout("zero-shot", "unseen, seen and full of each split",
               _zero_shot, lambda row: row["metric"] == "mAP" and row["subset"] == "unseen"),
        Layout("hico", "Default and Known Object: full, rare, non-rare",
               lambda _: _HICO,
               lambda row: row["subset"] in dict(_FREQUENCIES) and _of("hico", "hico-ko", *_STAND_INS)(row)),
    )
}  # fmt: skip
"""The layouts by name, in the order in which rows choose one."""


def layout_of(rows: Collection[Row]) -> Layout | None:
    """The layout that rows ask for; None for those of none, and for differences between models."""
    if any("p_bootstrap" in row for row in rows):
        return None
    plain = [row for row in rows if "metric" in row and is_mean(row)]
    return next((layout for layout in LAYOUTS.values() if any(map(layout.fits, plain))), None)


_PARTS = ("verb", "object", "image_id", "error", "step", "corruption", "family", "severity", "p_bootstrap", "raters")


def is_mean(row: Row) -> bool:
    """Whether a row is about all classes and images, and not about a part of them or a difference."""
    return not any(key in row for key in _PARTS)


PARTS = ("corruption", "family", "severity")
"""The keys that say which part of a corrupted benchmark a row is of."""

_MEAN = ("protocol", "step", "oracle", "error", "nms", "det_threshold", "constraint", "setting")
"""The keys that identify a mean over classes or images, besides its subset."""
_OF_WHAT = ("subset", "verb", "object", "role")
_ROBUSTNESS = frozenset({"rank", "clean", "mri", "cri", "relative_drop", "worst", "sigma", "cri_term"})


@dataclass(frozen=True)
class Kind:
    """A row of `KINDS`.

    index: the keys that name a line of its table, as far as its rows have them. columns: of these keys, the first that
    a row has heads its column below the metric; () for a line a row, with all that the row says side by side. mean:
    whether its rows are about all classes and images.
    """

    name: str
    tells: Callable[[Row], bool]
    index: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("protocol",)
    mean: bool = False


def _has(key: str) -> Callable[[Row], bool]:
    return lambda row: key in row


def _measures(*metrics: str) -> Callable[[Row], bool]:
    return lambda row: row.get("metric") in metrics


def column_head(row: Row, column: str) -> str:
    """What stands above a row's value: what the key `column` says; of what an audit found, what the value is."""
    if row["metric"] == "candidate":
        return "IoU" if row["kind"] == "near_duplicate" else "sure"
    return "candidates" if row["metric"] == "candidates" else str(row[column])


KINDS = (
    # findings, senses, vocabularies: no values of a metric, a table of their own keys
    Kind("other", lambda row: "metric" not in row),
    # between two models: in a mean, a class or a type of error; and how many classes differ
    Kind("difference", _has("p_bootstrap"),
         ("protocol", "metric", "verb", "object", "role", "error", "oracle", "subset"), ()),
    Kind("classes", _measures("classes_better", "classes_worse"), ("protocol", "metric"), ("subset",)),
    # what an audit of the ground truth found, and how much of it
    Kind("candidate", _measures("candidate", "candidates"),
         ("metric", "kind", "rank", "image_id", "verb", "object", "role", "label", "boxes", "n")),
    Kind("image", _has("image_id"), ("image_id",), ("subset",)),
    Kind("confusion", _has("predicted"), ("kind", "truth", "predicted")),
    # curves: points by their threshold, means of curves by recall, calibration by bin of scores
    Kind("point", _has("threshold"), (*_OF_WHAT, "threshold", "rank")),
    Kind("level", _has("recall"), (*_OF_WHAT, "recall")),
    Kind("bin", _has("bin_low"), (*_OF_WHAT, "bin_low", "bin_high")),
    Kind("class", lambda row: not row.keys().isdisjoint(("verb", "object")),
         ("verb", "object", "role", "n"), ("oracle", "error", "constraint", "protocol")),
    Kind("robustness",
         lambda row: row["metric"] in _ROBUSTNESS or (row["metric"] == "mean" and any(key in row for key in PARTS)),
         _MEAN, ("subset",), mean=True),
    # of a detector's boxes: a dozen metrics
    Kind("boxes", lambda row: str(row.get("protocol")).endswith("-boxes"),
         ("protocol", "metric"), ("subset",), mean=True),
    Kind("mean", lambda _: True, _MEAN, ("subset",), mean=True),
)  # fmt: skip
"""The kind of a row is the first one that recognises it."""


def kind_of(row: Row) -> Kind:
    """The kind of a row of any command."""
    return next(kind for kind in KINDS if kind.tells(row))
