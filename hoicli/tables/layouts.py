"""The layouts of tables that papers print: which columns each has, and which result rows belong in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from hoicli.records.metrics import metrics_of
from hoicli.records.oracles import ORACLES
from hoicli.records.result_rows import Row, settings_of


@dataclass(frozen=True)
class Slot:
    """A column of a layout. group, head: what is printed over it; metric, subset: those of its values. protocols: the
    protocol that papers use, then those that may stand in for it where a model has no value by it. oracle: the oracle
    of its values, "none" for values without one; split: their zero-shot split, "" for any."""

    group: str
    head: str
    metric: str
    subset: str
    protocols: tuple[str, ...]
    oracle: str = "none"
    split: str = ""

    def takes(self, row: Row) -> bool:
        """Return whether a result row, which is a mean, belongs in this column."""
        if (row["metric"], row["subset"], str(row.get("oracle", "none"))) != (self.metric, self.subset, self.oracle):
            return False
        is_of_split = not self.split or settings_of(row).get("split") == self.split
        return is_of_split and row.get("protocol", "") in self.protocols


@dataclass(frozen=True)
class Layout:
    """An entry of LAYOUTS. columns: takes the rows to be laid out and returns the columns. fits: whether a row calls
    for this layout if the user names none. lines: keys of rows that name a line besides the tags. n: whether lines are
    added that say over how many cases the values are."""

    name: str
    description: str
    columns: Callable[[Sequence[Row]], Sequence[Slot]]
    fits: Callable[[Row], bool]
    lines: tuple[str, ...] = ()
    n: bool = False


_FREQUENCIES = (("full", "Full"), ("rare", "Rare"), ("non_rare", "Non-rare"))
"""HICO-DET's subsets of classes by how often they are annotated, and their heads."""
_STAND_INS = ("qpic", "upt", "inp-cc", "gen-vlkt", "ggnet")
"""Protocols whose classes are HICO-DET's 600, or those of them with ground truth, in the order of preference."""

_SPLITS = {"rare_first": "RF-UC", "non_rare_first": "NF-UC", "unseen_object": "UO", "unseen_verb": "UV"}
_SPLITS |= {"unseen_action": "UA"} | {f"uc{number}": f"UC{number}" for number in range(5)}
"""The zero-shot splits of HICO-DET as papers call them."""

_HICO = [
    Slot(group, head, "mAP", subset, protocols)
    for (group, protocols), (subset, head) in product(
        (("Default", ("hico", *_STAND_INS)), ("Known Object", ("hico-ko", "ggnet-ko"))), _FREQUENCIES
    )
]
_VCOCO = [Slot("", head, "mAP", "24", (protocol,)) for protocol, head in (("vcoco-s1", "S1"), ("vcoco-s2", "S2"))]
_SWIG = [
    Slot("", head, "mAP", subset, ("swig",))
    for subset, head in (("non_rare", "Non-rare"), ("rare", "Rare"), ("zero_shot", "Unseen"), ("full", "Full"))
]


def _zero_shot(rows: Sequence[Row]) -> list[Slot]:
    """Return the columns unseen, seen and full for each zero-shot split that the rows have, and the harmonic mean if
    they have that: first HICO-DET's splits in the order of papers, then others."""
    splits = dict.fromkeys(settings_of(row).get("split", "") for row in rows if row["subset"] == "unseen")
    in_order = sorted(splits, key=lambda split: [*_SPLITS, split].index(split))
    columns = [("Unseen", "mAP", "unseen"), ("Seen", "mAP", "seen"), ("Full", "mAP", "full")]
    if any(row["metric"] == "hm" for row in rows):
        columns.append(("HM", "hm", "full"))
    return [
        Slot(_SPLITS.get(split, split), head, metric, subset, ("hico", *_STAND_INS), split=split)
        for split, (head, metric, subset) in product(in_order, columns)
    ]


def _subset_and_protocols(rows: Iterable[Row]) -> tuple[str, tuple[str, ...]]:
    """Return the subset of the rows (of several, that of all classes or else the first) and their protocols."""
    rows = list(rows)
    subsets = dict.fromkeys(str(row["subset"]) for row in rows)
    subset = next((name for name in ("full", "24") if name in subsets), next(iter(subsets), "full"))
    return subset, tuple(dict.fromkeys(str(row.get("protocol", "")) for row in rows))


def _diagnose(rows: Sequence[Row]) -> list[Slot]:
    """Return the columns of a diagnosis: the mAP, then what repairing each type of error adds to it."""
    subset, protocols = _subset_and_protocols(row for row in rows if row["metric"] == "delta_mAP")
    protocols = protocols or ("diag",)
    gains = [
        Slot("mAP gained by repairing", oracle.head, "delta_mAP", subset, protocols, oracle=oracle.name)
        for oracle in ORACLES.values()
    ]
    return [Slot("", "mAP", "mAP", subset, protocols), *gains]


def _column_by_metric(command: str, is_typical: Callable[[Row], bool]) -> Callable[[Sequence[Row]], list[Slot]]:
    """Return a function that takes rows and returns a column for each metric that a command prints (and that papers
    have a head for), all of one subset and of the same protocols: those of the rows for which `is_typical` holds."""
    heads = {metric.name: metric.head for metric in metrics_of(command) if metric.head}

    def columns(rows: Sequence[Row]) -> list[Slot]:
        """Return the columns for these rows."""
        subset, protocols = _subset_and_protocols(row for row in rows if row["metric"] in heads and is_typical(row))
        return [
            Slot(group="", head=head, metric=metric, subset=subset, protocols=protocols)
            for metric, head in heads.items()
        ]

    return columns


def _is_map_by(*protocols: str) -> Callable[[Row], bool]:
    """Return a function that says whether a row is a mAP by one of these protocols."""
    return lambda row: row["metric"] == "mAP" and row.get("protocol") in protocols


LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("robust", "of hoicli robust: clean, MRI, CRI and what is lost",
               _column_by_metric("robust", lambda _: True), lambda row: row["metric"] == "mri"),
        Layout("shoe", "of hoicli shoe-eval: SHOE's mAP, mF1 and miss rates, beside mAP",
               _column_by_metric("shoe-eval", lambda row: row.get("protocol") == "shoe"),
               lambda row: row.get("protocol") == "shoe"),
        Layout("pairs", "of hoicli pairstats: how many pairs, recall, precision, negative AP, interaction mAP",
               _column_by_metric("pairstats", lambda row: "oracle" not in row),
               lambda row: row["metric"] == "pair_recall", ("nms", "det_threshold"), n=True),
        Layout("diagnose", "of hoicli diagnose: mAP, and what repairing each error gains",
               _diagnose, lambda row: row["metric"] == "delta_mAP", n=True),
        Layout("vcoco", "AP role in scenario 1 and 2", lambda _: _VCOCO, _is_map_by("vcoco-s1", "vcoco-s2")),
        Layout("swig", "non-rare, rare, unseen, full", lambda _: _SWIG, _is_map_by("swig")),
        Layout("zero-shot", "unseen, seen, full and HM of each split",
               _zero_shot, lambda row: row["metric"] == "mAP" and row["subset"] == "unseen"),
        Layout("hico", "Default and Known Object: full, rare, non-rare",
               lambda _: _HICO,
               lambda row: row["subset"] in dict(_FREQUENCIES)
               and _is_map_by("hico", "hico-ko", "ggnet-ko", *_STAND_INS)(row)),
    )
}  # fmt: skip
"""The layouts by name. If the user names none, the first one that fits is taken."""


def layout_of(rows: Collection[Row]) -> Layout | None:
    """Return the first layout that fits some of the rows; None if none does, or for differences between models."""
    if any("p_bootstrap" in row for row in rows):
        return None
    means = [row for row in rows if "metric" in row and is_mean(row)]
    return next((layout for layout in LAYOUTS.values() if any(map(layout.fits, means))), None)


_KEYS_OF_PARTS = frozenset(
    ("verb", "object", "image_id", "error", "step", "corruption", "family", "severity", "p_bootstrap", "raters")
)
"""Keys of rows that are about a part of the data, such as a class or a corruption, or are differences."""


def is_mean(row: Row) -> bool:
    """Return whether a row is about all classes and images: neither about a part of them, nor a difference."""
    return _KEYS_OF_PARTS.isdisjoint(row)


def column_head(row: Row, column: str) -> str:
    """Return the head of the column that a row's value is printed in: the row's value of the key `column`. For rows of
    `audit`, it is what the value means: the IoU of near-duplicates, how sure another finding is, or a number."""
    if row["metric"] == "candidate":
        return "IoU" if row["kind"] == "near_duplicate" else "sure"
    return "candidates" if row["metric"] == "candidates" else str(row[column])
