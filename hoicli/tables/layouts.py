"""The tables that papers print: which rows a layout takes, and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hoicli.records.metrics import printed_by
from hoicli.records.oracles import ORACLES
from hoicli.records.result_rows import Row, settings_of


@dataclass(frozen=True)
class Slot:
    """A column of a layout: its group and head, and the metric and subset of its values. protocols: the one that papers
    use, then those that stand in for it where a model has no value by it. oracle: the rows' oracle, "none" if they have
    none; split: the zero-shot split of the rows, "" for any."""

    group: str
    head: str
    metric: str
    subset: str
    protocols: tuple[str, ...]
    oracle: str = "none"
    split: str = ""

    def takes(self, row: Row) -> bool:
        """Return whether a mean belongs in this column."""
        if (row["metric"], row["subset"], str(row.get("oracle", "none"))) != (self.metric, self.subset, self.oracle):
            return False
        split = not self.split or settings_of(row).get("split") == self.split
        return split and row.get("protocol", "") in self.protocols


@dataclass(frozen=True)
class Layout:
    """An entry of LAYOUTS. places: makes the columns for the rows to be laid out. fits: whether a row asks for this
    layout if none is named. lines: keys of rows that name a line besides the tags. n: whether there are lines that say
    how many cases the values are over."""

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

_HICO = [
    Slot(group, head, "mAP", subset, protocols)
    for (group, protocols), (subset, head) in product(
        (("Default", ("hico", *_STAND_INS)), ("Known Object", ("hico-ko",))), _FREQUENCIES
    )
]
_VCOCO = [Slot("", head, "mAP", "24", (protocol,)) for protocol, head in (("vcoco-s1", "S1"), ("vcoco-s2", "S2"))]
_SWIG = [
    Slot("", head, "mAP", subset, ("swig",))
    for subset, head in (("non_rare", "Non-rare"), ("rare", "Rare"), ("zero_shot", "Unseen"), ("full", "Full"))
]


def _zero_shot(rows: Sequence[Row]) -> list[Slot]:
    """Return the columns unseen, seen and full of each zero-shot split of the rows, HICO-DET's in the papers' order."""
    splits = dict.fromkeys(settings_of(row).get("split", "") for row in rows if row["subset"] == "unseen")
    return [
        Slot(_SPLITS.get(split, split), head, "mAP", subset, ("hico", *_STAND_INS), split=split)
        for split, (subset, head) in product(
            sorted(splits, key=lambda split: [*_SPLITS, split].index(split)),
            (("unseen", "Unseen"), ("seen", "Seen"), ("full", "Full")),
        )
    ]


def _own(rows: Iterable[Row]) -> tuple[str, tuple[str, ...]]:
    """Return the subset of the rows (of several the one of all classes, if it is among them) and their protocols."""
    rows = list(rows)
    subsets = dict.fromkeys(str(row["subset"]) for row in rows)
    subset = next((name for name in ("full", "24") if name in subsets), next(iter(subsets), "full"))
    return subset, tuple(dict.fromkeys(str(row.get("protocol", "")) for row in rows))


def _diagnose(rows: Sequence[Row]) -> list[Slot]:
    """Return the columns of a diagnosis: the mAP, then what repairing each type of error adds to it."""
    subset, protocols = _own(row for row in rows if row["metric"] == "delta_mAP")
    protocols = protocols or ("diag",)
    gains = [
        Slot("mAP gained by repairing", oracle.head, "delta_mAP", subset, protocols, oracle.name)
        for oracle in ORACLES.values()
    ]
    return [Slot("", "mAP", "mAP", subset, protocols), *gains]


def _heads(command: str) -> dict[str, str]:
    """Return the head of each metric that a command prints and that papers' tables have a head for."""
    return {metric.name: metric.head for metric in printed_by(command) if metric.head}


def _flat(command: str, of: Callable[[Row], bool]) -> Callable[[Sequence[Row]], list[Slot]]:
    """Return what makes a column for each metric of a command, with the rows' own subset and protocols. of: whether a
    row counts towards these two."""
    metrics = _heads(command)

    def places(rows: Sequence[Row]) -> list[Slot]:
        subset, protocols = _own(row for row in rows if row["metric"] in metrics and of(row))
        return [Slot("", head, metric, subset, protocols) for metric, head in metrics.items()]

    return places


def _is_map_by(*protocols: str) -> Callable[[Row], bool]:
    return lambda row: row["metric"] == "mAP" and row.get("protocol") in protocols


LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("robust", "clean, MRI, CRI and what is lost",
               _flat("robust", lambda _: True), lambda row: row["metric"] == "mri"),
        Layout("shoe", "SHOE's mAP, mF1 and miss rates, beside mAP",
               _flat("shoe-eval", lambda row: row.get("protocol") == "shoe"),
               lambda row: row.get("protocol") == "shoe"),
        Layout("pairs", "pairs: how many, recall, precision, negative AP, interaction mAP",
               _flat("pairstats", lambda row: "oracle" not in row), lambda row: row["metric"] == "pair_recall",
               ("nms", "det_threshold"), n=True),
        Layout("diagnose", "mAP, and what repairing each error gains",
               _diagnose, lambda row: row["metric"] == "delta_mAP", n=True),
        Layout("vcoco", "AP role in scenario 1 and 2", lambda _: _VCOCO, _is_map_by("vcoco-s1", "vcoco-s2")),
        Layout("swig", "non-rare, rare, unseen, full", lambda _: _SWIG, _is_map_by("swig")),
        Layout("zero-shot", "unseen, seen and full of each split",
               _zero_shot, lambda row: row["metric"] == "mAP" and row["subset"] == "unseen"),
        Layout("hico", "Default and Known Object: full, rare, non-rare",
               lambda _: _HICO,
               lambda row: row["subset"] in dict(_FREQUENCIES) and _is_map_by("hico", "hico-ko", *_STAND_INS)(row)),
    )
}  # fmt: skip
"""The layouts by name, in the order in which rows choose one."""


def layout_of(rows: Collection[Row]) -> Layout | None:
    """Return the layout that rows ask for; None if they ask for none, or are differences between models."""
    if any("p_bootstrap" in row for row in rows):
        return None
    plain = [row for row in rows if "metric" in row and is_mean(row)]
    return next((layout for layout in LAYOUTS.values() if any(map(layout.fits, plain))), None)


_PARTS = ("verb", "object", "image_id", "error", "step", "corruption", "family", "severity", "p_bootstrap", "raters")


def is_mean(row: Row) -> bool:
    """Return whether a row is about all classes and images: neither about a part of them, nor a difference."""
    return not any(key in row for key in _PARTS)


def column_head(row: Row, column: str) -> str:
    """Return the head over a row's value: the row's value of the key `column`; for an audit, what the value means."""
    if row["metric"] == "candidate":
        return "IoU" if row["kind"] == "near_duplicate" else "sure"
    return "candidates" if row["metric"] == "candidates" else str(row[column])
