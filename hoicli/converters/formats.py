"""Foreign formats to records and back: the table of formats, and finding out which one a file is.

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
from hoicli.errors import DataError
from hoicli.records.names import image_id_of as image_id_of  # where formats look for it
from hoicli.records.parsing import Record

if TYPE_CHECKING:
    from hoicli.converters.containers.source import Source


@dataclass(frozen=True)
class Format:
    """A row of `hoicli convert --list`.

    joint: several paths together make one source (a file and its companion). folder: it is written as one. dataset: the
    only one whose files look like this; "" where it has to be said (--dataset). numbers: what the file has numbers for
    in place of names, in an order that it does not say, as files of other datasets may have: "verbs", "objects",
    "interactions".
    """

    name: str
    holds: str
    description: str
    module: str
    reads: bool = True
    writes: bool = False
    joint: bool = False
    folder: bool = False
    dataset: str = ""
    numbers: frozenset[str] = frozenset()


_VERBS_AND_OBJECTS = frozenset({"verbs", "objects"})
_GT, _PREDICTIONS = "ground truth", "predictions"

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("records", "records", "hoicli's own JSONL, ground truth or predictions", "own"),
        Format(
            "vsrl",
            _GT,
            "V-COCO's vcoco_test.json with COCO's instances file and the split's .ids",
            "vsrl",
            joint=True,
            dataset="vcoco",
        ),
        Format(
            "qpic-vcoco",
            _GT,
            "test_vcoco.json of QPIC, CDN: the HOI-A layout with V-COCO's 29 action-roles",
            "hoia_vcoco",
            dataset="vcoco",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "ppdm-vcoco-gt",
            _GT,
            "the same in PPDM's verb order (--from only)",
            "hoia_vcoco",
            dataset="vcoco",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "pocket-vcoco",
            _GT,
            "instances_vcoco_*.json of fredzzhang/vcoco (UPT, PViC)",
            "pocket_vcoco",
            dataset="vcoco",
        ),
        Format(
            "pocket", _GT, "instances_*.json of hicodet (UPT, PViC, SCG), either object order", "pocket", dataset="hico"
        ),
        Format(
            "hoia",
            _GT,
            "trainval_hico.json, test_hico.json of PPDM, QPIC, CDN; test_hico_ann.json of INP-CC, THID",
            "hoia",
            dataset="hico",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format("swig", _GT, "swig_{train,val,trainval,test,dev}_1000.json of SWIG-HOI", "swig", dataset="swig"),
        Format(
            "hico-mat",
            _GT,
            "anno_bbox.mat, with anno.mat for complete image-level labels",
            "hico_mat",
            joint=True,
            dataset="hico",
        ),
        Format("no-frills", _GT, "anno_list.json of no_frills_hoi_det", "no_frills", dataset="hico"),
        Format(
            "vcoco",
            _PREDICTIONS,
            "V-COCO's official list of people, .pkl or .json (QPIC, UPT's cache, iCAN)",
            "vcoco",
            dataset="vcoco",
        ),
        Format("vcoco-pkl", _PREDICTIONS, "the same as a pickle", "vcoco", reads=False, writes=True, dataset="vcoco"),
        Format("vcoco-json", _PREDICTIONS, "the same as JSON", "vcoco", reads=False, writes=True, dataset="vcoco"),
        Format(
            "qpic-vcoco-list",
            _PREDICTIONS,
            "V-COCO lists of boxes and interactions, QPIC's verb order",
            "vcoco_list",
            dataset="vcoco",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "ppdm-vcoco-list",
            _PREDICTIONS,
            "the same in PPDM's verb order (--from only)",
            "vcoco_list",
            dataset="vcoco",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "cdn",
            _PREDICTIONS,
            "results.json of CDN, MUREN (text in text); the same list as .json or .pkl (Diag-HOI)",
            "cdn",
            dataset="hico",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "cdn-json", _PREDICTIONS, "the list of CDN's dictionaries as plain JSON", "cdn", reads=False, writes=True
        ),
        Format(
            "gen-vlkt",
            _PREDICTIONS,
            "results.json of GEN-VLKT, HOICLIP: boxes without a class, 600 interactions",
            "gen_vlkt",
            dataset="hico",
            numbers=frozenset({"interactions"}),
        ),
        Format(
            "ppdm",
            _PREDICTIONS,
            "predictions of PPDM, GGNet: COCO ids 1-90, verbs 1-117",
            "ppdm",
            dataset="hico",
            numbers=_VERBS_AND_OBJECTS,
        ),
        Format(
            "inpcc",
            _PREDICTIONS,
            "preds.pkl, dets.pkl of INP-CC, THID, CMD-SE, or {image: [[hoi, score, 8 numbers]]}",
            "inpcc",
        ),
        Format(
            "inpcc-json", _PREDICTIONS, "{image number: [[hoi, score, 8 numbers]]}", "inpcc", reads=False, writes=True
        ),
        Format(
            "mat",
            _PREDICTIONS,
            "a folder of detections_01..80.mat of UPT, PViC, SCG",
            "detections_mat",
            writes=True,
            folder=True,
            dataset="hico",
        ),
        Format(
            "logits",
            _PREDICTIONS,
            ".npz of pred_logits, pred_boxes, box_scores (INP-CC, THID) before post-processing, or a folder of them",
            "logits",
            joint=True,
        ),
        Format(
            "diag-pairs",
            "pairs",
            "box_pairs lists of Diag-HOI, .pkl or .json",
            "diag_pairs",
            numbers=frozenset({"objects"}),
        ),
        Format(
            "vlm",
            _PREDICTIONS,
            "answers of vision-language models, text or JSON; HOI-R1, hoi-benchmarks",
            "vlm.reading",
        ),
    )
}


class Converter(Protocol):
    """What a format's module offers (`write`, or `sniff` and `read`, may be missing: see its row)."""

    def sniff(self, source: Source) -> bool: ...
    def read(self, source: Source, context: Context) -> Iterator[Record]: ...
    def write(self, records: Iterable[Record], path: str, context: Context) -> None: ...


def converter(name: str) -> Converter:
    """The module of a format."""
    return cast("Converter", import_module(f"hoicli.converters.{FORMATS[name].module}"))


def detect(source: Source) -> str:
    """The name of the format `source` is in (FORMATS-IN-THE-WILD: how to tell files apart).

    Raises `DataError` when it is none of them, saying what was seen.
    """
    for row in FORMATS.values():
        if row.reads and converter(row.name).sniff(source):
            return row.name
    raise DataError(
        f"not a format hoicli knows ({source.describe()}); `hoicli convert --list` names them, --from NAME forces one",
        place=source.name,
    )
