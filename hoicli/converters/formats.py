"""Foreign formats to records and back: the table of formats, and the detection of a file's format.

Each format is a module with `sniff(source) -> bool` and `read(source, context) -> records`, or `write(records, path,
context)`, or both. Its docstring says the index bases, the box convention and what it shifts; everything it yields is
0-based `[x1, y1, x2, y2]` with names instead of numbers. A new format is a module, a row here, and a fixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from hoicli.converters.context import Context
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record

if TYPE_CHECKING:
    from hoicli.converters.containers.source import Source


@dataclass(frozen=True)
class Format:
    """A row of `hoicli convert --list`.

    joint: several paths form one source (a file and its companion). folder: it is written as a folder. dataset: the
    only dataset with such files; "" if --dataset has to say it. numbers: what the file numbers in an order that it does
    not state, so that files of other datasets may look the same: "verbs", "objects", "interactions". named: it states
    the names of all its labels, so that without --dataset any are taken.
    """

    name: str
    module: str
    holds: str
    dataset: str
    description: str
    reads: bool
    writes: bool
    joint: bool
    folder: bool
    numbers: frozenset[str]
    named: bool


def _format(name: str, module: str, holds: str, dataset: str, traits: str, description: str) -> Format:
    """A row of the table. Trait "writes": the format is read and written; "write-only": it is only written."""
    said = set(traits.split())
    flags = {"reads": "write-only" not in said, "writes": bool(said & {"writes", "write-only"})}
    flags |= {"joint": "joint" in said, "folder": "folder" in said, "named": "names" in said}
    numbers = frozenset(said & {"verbs", "objects", "interactions"})
    return Format(name, module, holds, dataset, description, numbers=numbers, **flags)


_GT, _PRED = "ground truth", "predictions"
# fmt: off
_TABLE = (
    # name, module, what it holds, dataset, traits, description
    ("records", "own", "records", "", "", "hoicli's own JSONL, ground truth or predictions"),
    ("coco-rel", "coco_rel", "graphs", "", "writes names",
     "scene graphs: COCO with rel_annotations (SGG-Benchmark's PSG, VG150), with or without scores"),
    ("vsrl", "vsrl", _GT, "vcoco", "joint",
     "V-COCO's vcoco_test.json with COCO's instances file and the split's .ids"),
    ("qpic-vcoco", "hoia_vcoco", _GT, "vcoco", "verbs objects",
     "test_vcoco.json of QPIC, CDN: the HOI-A layout with V-COCO's 29 action-roles"),
    ("ppdm-vcoco-gt", "hoia_vcoco", _GT, "vcoco", "verbs objects", "the same in PPDM's verb order (--from only)"),
    ("pocket-vcoco", "pocket_vcoco", _GT, "vcoco", "", "instances_vcoco_*.json of fredzzhang/vcoco (UPT, PViC)"),
    ("pocket", "pocket", _GT, "hico", "", "instances_*.json of hicodet (UPT, PViC, SCG), either object order"),
    ("hoia", "hoia", _GT, "hico", "verbs objects",
     "trainval_hico.json, test_hico.json of PPDM, QPIC, CDN; test_hico_ann.json of INP-CC; HOI-A (--dataset hoia)"),
    ("ambiguous", "ambiguous", _GT, "ambiguous-hoi", "joint",
     "Ambiguous-HOI's gt_ambiguous_hoi.pkl, with ambi_names.pkl for the images without its classes"),
    ("swig", "swig", _GT, "swig", "", "swig_{train,val,trainval,test,dev}_1000.json of SWIG-HOI"),
    ("hico-mat", "hico_mat", _GT, "hico", "joint",
     "anno_bbox.mat, with anno.mat for complete image-level labels; anno.mat alone for these"),
    ("no-frills", "no_frills", _GT, "hico", "", "anno_list.json of no_frills_hoi_det"),
    ("vcoco", "vcoco", _PRED, "vcoco", "", "V-COCO's official list of people, .pkl or .json (QPIC, UPT's cache, iCAN)"),
    ("vcoco-pkl", "vcoco", _PRED, "vcoco", "write-only", "the same as a pickle"),
    ("vcoco-json", "vcoco", _PRED, "vcoco", "write-only", "the same as JSON"),
    ("qpic-vcoco-list", "vcoco_list", _PRED, "vcoco", "verbs objects",
     "V-COCO lists of boxes and interactions, QPIC's verb order"),
    ("ppdm-vcoco-list", "vcoco_list", _PRED, "vcoco", "verbs objects", "the same in PPDM's verb order (--from only)"),
    ("cdn", "cdn", _PRED, "hico", "verbs objects",
     "results.json of CDN, MUREN (text in text); the same list as .json or .pkl (Diag-HOI)"),
    ("cdn-json", "cdn", _PRED, "", "write-only", "the list of CDN's dictionaries as plain JSON"),
    ("gen-vlkt", "gen_vlkt", _PRED, "hico", "interactions",
     "results.json of GEN-VLKT, HOICLIP: boxes without a class, 600 interactions"),
    ("ppdm", "ppdm", _PRED, "hico", "verbs objects", "predictions of PPDM, GGNet: COCO ids 1-90, verbs 1-117"),
    ("ican", "ican", _PRED, "", "interactions",
     "pickles of iCAN, TIN, VCL, HOI-CL, DJ-RN: pairs with the scores of 600 classes"),
    ("image-scores", "image_scores", _PRED, "hico", "",
     "scores of HICO's 600 classes for whole images: a matrix as .npy, .npz, .mat or .csv"),
    ("inpcc", "inpcc", _PRED, "", "",
     "preds.pkl, dets.pkl of INP-CC, THID, CMD-SE, or {image: [[hoi, score, 8 numbers]]}"),
    ("inpcc-json", "inpcc", _PRED, "", "write-only", "{image number: [[hoi, score, 8 numbers]]}"),
    ("mat", "detections_mat", _PRED, "hico", "writes folder", "a folder of detections_01..80.mat of UPT, PViC, SCG"),
    ("logits", "logits", _PRED, "", "joint",
     ".npz of pred_logits, pred_boxes, box_scores (INP-CC, THID) before post-processing, or a folder of them"),
    ("diag-pairs", "diag_pairs", "pairs", "", "objects", "box_pairs lists of Diag-HOI, .pkl or .json"),
    ("vlm", "vlm.reading", _PRED, "", "", "answers of vision-language models, text or JSON; HOI-R1, hoi-benchmarks"),
)
# fmt: on
FORMATS: dict[str, Format] = {row[0]: _format(*row) for row in _TABLE}
"""By name, in the order in which `detect` tries them."""


class Converter(Protocol):
    """The functions of a format's module (`write`, or `sniff` and `read`, may be missing: see its row)."""

    def sniff(self, source: Source) -> bool: ...
    def read(self, source: Source, context: Context) -> Iterator[Record]: ...
    def write(self, records: Iterable[Record], path: str, context: Context) -> None: ...


def converter(name: str) -> Converter:
    """The module of a format."""
    return cast("Converter", import_module(f"hoicli.converters.{FORMATS[name].module}"))


def detect(source: Source) -> str:
    """The name of the format of `source`. Raises `DataError` that describes the file if it is in none of them."""
    for row in FORMATS.values():
        if row.reads and converter(row.name).sniff(source):
            return row.name
    from hoicli.converters.vlm.rows import benchmark_in

    if said := benchmark_in(source):
        raise DataError(f"no records, but {said}", place=source.name)
    raise DataError(
        f"not a format hoicli knows ({source.describe()}); `hoicli convert --list` names them, "
        f"{arg('from_', like='NAME')} forces one, "
        "and a format of your own becomes records (`hoicli doctor --schema prediction`)",
        place=source.name,
    )
