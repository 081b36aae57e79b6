"""Published tables as result rows, to stand over one's own line.

Every figure is copied from the place that its row names in `source`: the README of a repository, at the commit in
SOURCES, or one of the papers. A row says whether it compares with one's own (`comparable`), by which protocol, and in
`note` what a reader must know. What is printed there without its evaluator being named, or was made on other data,
does not compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from hoicli.corruption.catalogue import ROHOI, SEVERITIES, family_of
from hoicli.io.streams import Line
from hoicli.records.parsing import dump
from hoicli.records.results import Row, row_ends, signature
from hoicli.tables.published_figures import (
    DIAG_HICO,
    DIAG_VCOCO,
    HICO,
    ROHOI_HICO,
    ROHOI_TABLE_1,
    ROHOI_TABLE_4,
    ROHOI_VCOCO,
    SHOE,
    SHOE_VCOCO,
    SWIG,
    UNSEEN,
    VCOCO,
)
from hoicli.vocabulary.datasets import load

SOURCES: Mapping[str, str] = {
    "ada-cm": "ltttpku/ADA-CM Readme.md, Model Zoo (9405627)",
    "cdn": "YueLiao/CDN README.md, Results (71c5702)",
    "cmd-se": "ltttpku/CMD-SE-release README.md, Models (bf85d64)",
    "diag": "Diagnosing Human-object Interaction Detectors (Diag-HOI), arXiv version, Tables 2 and 3",
    "diag-text": "Diagnosing Human-object Interaction Detectors (Diag-HOI), arXiv version, Oddities of mAP improvement",
    "gen-vlkt": "YueLiao/gen-vlkt README.md, Regular and Zero-shot HOI Detection Results (191fc74)",
    "hoiclip": "Artanic30/HOICLIP README.md, Regular and Zero-shot HOI Detection Results (ee4db06)",
    "hotr": "kakaobrain/HOTR README.md (d3cb632)",
    "inp-cc": "ltttpku/INP-CC README.md (3d78987)",
    "ppdm": "YueLiao/PPDM README.md, Results on HICO-DET and HOI-A (6565a5d)",
    "qpic": "hitachi-rd-cv/qpic README.md, Results (257f314)",
    "rlip": "JacobYuan7/RLIP README.md, Fully-finetuning (700364d)",
    "rlipv2": "JacobYuan7/RLIPv2 README.md, Fully fine-tuning (2adae60)",
    "rohoi": "RoHOI (arXiv 2507.09111), Table 1",
    "scg": "fredzzhang/spatially-conditioned-graphs README.md, Testing (a44093e)",
    "shoe": "SHOE, supplement, Table 2",
    "shoe-vcoco": "SHOE, supplement, Table 4",
    "thid": "scwangdyd/promting_hoi README.md (29938cc)",
    "upt": "fredzzhang/upt README.md, Model Zoo (1927430)",
}
"""Where figures are printed: a file of a repository, with its commit, or a paper."""

HICO_TEST = {"data": "hico", "gt": "hico-test"}
"""What tables on HICO-DET are of, as signatures write it of one's own (`converters.named`); of the other datasets no
digest is known that one's own ground truth could be compared by."""

NOT_NAMED = "copied from another paper's table, which does not name the evaluator: not comparable"

NOTES: Mapping[str, str] = {
    "qpic": "who evaluated is not said; by the official code, it seems",
    "scg": "Default by its own Python (upt) or the official code, which is not said",
    "rlip": "with pair NMS, as its scripts have it",
    "rlipv2": "with pair NMS, as its scripts have it",
    "rohoi": NOT_NAMED,
    "shoe": "made with the paper's own similarities and readings, which are not published: not comparable",
    "shoe-vcoco": "made with the paper's own similarities and readings, which are not published: not comparable",
}
"""What a reader of a source's figures must know."""

HOICLIP_VCOCO = "by its author's word read from the training log, which is not the official code: not comparable"
DIAG_VCOCO_NOTE = "its released code does not run on V-COCO as it is: not to the digit, not comparable"

INCOMPARABLE = frozenset({NOT_NAMED, NOTES["shoe"], HOICLIP_VCOCO, DIAG_VCOCO_NOTE})


@dataclass(frozen=True)
class _Figure:
    """What a column of a set holds."""

    metric: str
    subset: str
    protocol: str
    n: int
    unit: str = "%"
    more: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def _lines(text: str) -> Iterator[list[str]]:
    """The cells of each line of a table of `figures`."""
    for line in text.strip().splitlines():
        yield [cell.strip() for cell in line.split("|")]


def _means(protocols: Iterable[str], counts: Mapping[str, int]) -> list[_Figure]:
    """Columns of mAP: for each protocol the subsets, of so many classes each."""
    return [_Figure("mAP", subset, protocol, n) for protocol in protocols for subset, n in counts.items()]


def _row(column: _Figure, value: str, model: str, source: str, settings: Mapping[str, str], note: str = "") -> Row:
    note = note or NOTES.get(source, "")
    ends = row_ends(column.protocol, {"model": model}, {**settings, **column.settings, "published": source})
    row: Row = {
        "metric": column.metric,
        "subset": column.subset,
        **column.more,
        "value": float(value),
        "n": column.n,
        "unit": column.unit,
        "protocol": ends["protocol"],
        "tags": ends["tags"],
        "comparable": note not in INCOMPARABLE,
        "signature": ends["signature"],
        "source": SOURCES[source],
    }
    return {**row, "note": note} if note else row


def _rows(
    cells: Sequence[str],
    columns: Sequence[_Figure],
    model: str,
    source: str,
    settings: Mapping[str, str],
    note: str = "",
) -> Iterator[Row]:
    """The rows of some figures, `-` where there is none."""
    for column, value in zip(columns, (text for cell in cells for text in cell.split()), strict=True):
        if value != "-":
            yield _row(column, value, model, source, settings, note)


@cache
def _counts(split: str = "", *, ignored: bool = False) -> dict[str, int]:
    """Subset -> its classes of HICO-DET: full, rare, non_rare, or the parts of a zero-shot split; without
    no_interaction, if `ignored`."""
    vocabulary = load("hico")
    every = set(range(len(vocabulary.interactions))) - set(vocabulary.no_interaction_ids if ignored else ())
    if split:
        unseen = every & set(vocabulary.unseen[split])
        return {"unseen": len(unseen), "seen": len(every - unseen), "full": len(every)}
    rare, common = (len(every & set(vocabulary.members(name))) for name in ("rare", "non_rare"))
    return {"full": len(every), "rare": rare, "non_rare": common}


def _hico() -> Iterator[Row]:
    for model, source, default, known, *figures in _lines(HICO):
        yield from _rows(figures, _means(filter(None, (default, known)), _counts()), model, source, HICO_TEST)
    for model, printed in _lines(ROHOI_HICO):
        yield from _rows([printed], _means(["hico"], _counts()), model, "rohoi", HICO_TEST)


def _vcoco() -> Iterator[Row]:
    columns = _means(["vcoco-s1", "vcoco-s2"], {"24": 24})
    for model, source, figures in _lines(VCOCO):
        note = HOICLIP_VCOCO if source == "hoiclip" else ""
        yield from _rows([figures], columns, model, source, {"data": "vcoco"}, note)
    for model, figures in _lines(ROHOI_VCOCO):
        yield from _rows([figures], columns, model, "rohoi", {"data": "vcoco"})


def _zero_shot() -> Iterator[Row]:
    for model, source, protocol, split, figures in _lines(UNSEEN):
        ignored = protocol == "inp-cc"
        settings = {**HICO_TEST, "split": split} | ({"noint": "ignored"} if ignored else {})
        columns = _means([protocol], _counts(split, ignored=ignored))
        yield from _rows([figures], columns, model, source, settings)


def _swig() -> Iterator[Row]:
    columns = _means(["swig"], {"non_rare": 1307, "rare": 2841, "zero_shot": 1391, "full": 5539})
    for model, source, figures in _lines(SWIG):
        yield from _rows([figures], columns, model, source, {"data": "swig"})


_PAIR_METRICS = ("pairs_per_image", "pair_recall", "pair_precision", "mAP", "neg_ap", "inter_map")


def _pairs(text: str, settings: Mapping[str, str], note: str = "") -> Iterator[Row]:
    units, among = {"pairs_per_image": "pairs"}, {"pair_precision": {"among": "all-pairs"}}
    columns = [
        _Figure(metric, "full", "diag", 1, units.get(metric, "%"), settings=among.get(metric, {}))
        for metric in _PAIR_METRICS
    ]
    for model, figures in _lines(text):
        yield from _rows([figures], columns, model, "diag", {**settings, "released": "yes"}, note)


def _diagnose() -> Iterator[Row]:
    settings = {**HICO_TEST, "released": "yes"}
    for model, figures in _lines(DIAG_HICO):
        column = _Figure("mAP", "full", "diag", 1, more={"oracle": "none"})
        yield _row(column, figures.split()[_PAIR_METRICS.index("mAP")], model, "diag", settings)
    for oracle, value in (("false_positive", "33.1"), ("false_negative", "12.94")):
        column = _Figure("delta_mAP", "full", "diag", 1, more={"oracle": oracle})
        yield _row(column, value, "CDN (R50)", "diag-text", settings)


def _shoe(data: str, text: str, metrics: Sequence[str], subset: str, source: str) -> Iterator[Row]:
    columns = [_Figure(metric, subset, "shoe", 1) for metric in metrics]
    for model, figures in _lines(text):
        yield from _rows([figures], columns, model, source, {"data": data})


ROHOI_DATASETS = ("hico", "vcoco")
"""The datasets of RoHOI's Table 1."""


def rohoi_indices(dataset: str) -> dict[str, tuple[float, float, float]]:
    """Model -> (clean value, MRI, CRI) of RoHOI's Table 1, for those that have them. `dataset`: of ROHOI_DATASETS."""
    found = {}
    for model, *columns in _lines(ROHOI_TABLE_1):
        if figures := columns[ROHOI_DATASETS.index(dataset)]:
            clean, index, composite = map(float, figures.split())
            found[model] = clean, index, composite
    return found


def rohoi_means() -> dict[str, dict[str, float]]:
    """Model -> corruption -> its mean over severities, percent, of RoHOI's Table 4: V-COCO, of five models."""
    return {model: dict(zip(ROHOI, map(float, text.split()), strict=True)) for model, text in _lines(ROHOI_TABLE_4)}


def rohoi_rows(dataset: str, *, tags: Mapping[str, str] | None = None) -> list[Row]:
    """`clean`, `mri` and `cri` of every model, and on V-COCO its `mean` by corruption where Table 4 has them, in the
    order of the paper: to stand beside one's own, never to be ranked with them, as its images are not published and its
    constants not stated. So all have `comparable` False, and the table in their signature."""
    subset = "24" if dataset == "vcoco" else "full"
    rows: list[Row] = []

    def add(table: int, model: str, metric: str, value: float, n: int, unit: str, part: Mapping[str, str]) -> None:
        settings = {"data": dataset, "of": f"mAP/{subset}", "published": f"rohoi-table-{table}"}
        named = {"protocol": "published", "tags": {"model": model, **(tags or {})}, "comparable": False}
        value_of = {"metric": metric, "subset": subset, **part, "value": value, "n": n, "unit": unit}
        rows.append({**value_of, **named, "signature": signature(settings)})

    cells = len(ROHOI) * len(SEVERITIES)
    for model, (clean, index, composite) in rohoi_indices(dataset).items():
        add(1, model, "clean", clean, 1, "%", {})
        add(1, model, "mri", index, cells, "%", {})
        add(1, model, "cri", composite, cells, "ratio", {})
    for model, means in rohoi_means().items() if dataset == "vcoco" else ():
        for corruption, value in means.items():
            part = {"corruption": corruption, "family": family_of(corruption)}
            add(4, model, "mean", value, len(SEVERITIES), "%", part)
    return rows


def _robust(dataset: str) -> Iterator[Row]:
    for row in rohoi_rows(dataset):
        yield {**row, "source": f"RoHOI (arXiv 2507.09111), Table {4 if 'corruption' in row else 1}"}


SETS: Mapping[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "hico": ("HICO-DET: Default and Known Object", _hico),
    "zero-shot": ("HICO-DET: unseen, seen and full of the zero-shot splits", _zero_shot),
    "vcoco": ("V-COCO: scenario 1 and 2", _vcoco),
    "swig": ("SWIG-HOI: non-rare, rare, unseen, full", _swig),
    "robust": ("RoHOI on HICO-DET: clean, MRI, CRI", partial(_robust, "hico")),
    "robust-vcoco": ("RoHOI on V-COCO: the same, and means by corruption", partial(_robust, "vcoco")),
    "pairs": ("Diag-HOI on HICO-DET: pairs and interaction classification", partial(_pairs, DIAG_HICO, HICO_TEST)),
    "pairs-vcoco": ("Diag-HOI on V-COCO: the same", partial(_pairs, DIAG_VCOCO, {"data": "vcoco"}, DIAG_VCOCO_NOTE)),
    "diagnose": ("Diag-HOI on HICO-DET: mAP without no_interaction, and the two gains that are printed", _diagnose),
    "shoe": (
        "SHOE on HICO-DET's images of one pair: miss rates and mF1",
        partial(_shoe, "hico", SHOE, ("gt_miss_rate", "prediction_miss_rate", "mf1"), "single_hoi", "shoe"),
    ),
    "shoe-vcoco": (
        "SHOE on V-COCO: mAP and SHOE-mAP",
        partial(_shoe, "vcoco", SHOE_VCOCO, ("map", "soft_map"), "full", "shoe-vcoco"),
    ),
}
"""The published tables by name: what each holds, and its rows."""


def published_lines(name: str) -> list[Line]:
    """The rows of a published table as lines of a stream, which `table` reads before those of files."""
    return [Line(f"--published {name}", number, dump(row)) for number, row in enumerate(SETS[name][1](), start=1)]
