"""Foreign formats to records and back: the table of formats, and the detection of a file's format.

Each format is a module with `read(source, context) -> records` (or another function, which its row names), or with
`write(records, path, context)`, or both. Its docstring says the index bases, the box convention and what it shifts;
everything it yields is 0-based `[x1, y1, x2, y2]` with names instead of numbers. A new format is a module and a row
here; another package's is an entry point in the group `hoicli.formats` whose object is such a row (`Format`), and is
read where --from names it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.plugins import iterate_plugin, names, plugin
from hoicli.io.row_tables import check_row, rows_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hoicli.converters.containers.source import Source
    from hoicli.converters.context import Context
    from hoicli.records.parsing import Record

HOLDS = ("ground truth", "predictions", "pairs", "graphs", "records")
"""What a format may hold."""
NUMBERED = frozenset({"verbs", "objects", "interactions"})
"""What the files of a format may number."""


@dataclass(frozen=True)
class Format:
    """One format, a row of `hoicli convert --list`.

    module: the name of its module (below hoicli.converters if it is hoicli's own), or MODULE:NAME if the function that
    reads it is not called `read`. holds: one of HOLDS. dataset: the only dataset with such files; "" if --dataset has
    to name it. signs: how `detect` recognises a file, all of several signs must hold: `[key ...]` means the keys of a
    list's first item, `{key ...}` the keys of a dictionary, a name means a function of the module or a kind of
    container; "" for a format that only --from chooses. joint: whether several paths form one source. numbers: what, of
    NUMBERED, the file numbers in an order that it does not state. boxes: whether --box-form may say what the four
    numbers of a box are. named: whether the file states the names of all its labels, so that it may be of the user's
    own dataset, and without --dataset have any labels if `dataset` is "". owner: the package and version that added the
    format, "" for hoicli's own."""

    name: str
    module: str
    holds: str
    description: str
    dataset: str = ""
    signs: str = ""
    reads: bool = True
    writes: bool = False
    joint: bool = False
    numbers: frozenset[str] = frozenset()
    boxes: bool = False
    named: bool = False
    owner: str = ""

    def __post_init__(self) -> None:
        """Check the fields that need no other module. Raises `DeclarationError` that names the format and the field."""
        check_row(
            f"format {self.name}",  # then for each field: its name, whether it is right, and the message if it is not
            ("holds", self.holds in HOLDS, f"{self.holds!r}; choose {', '.join(HOLDS)}"),
            ("numbers", self.numbers <= NUMBERED, f"give some of {', '.join(sorted(NUMBERED))}"),
        )

    @property
    def options(self) -> set[str]:
        """Return the options of `convert`, by their Python names, that only some formats accept and this one does."""
        numbering_options = {NUMBERED_BY[kind] for kind in self.numbers & NUMBERED_BY.keys()}
        return numbering_options | ({"box_form"} if self.boxes else set()) | _OPTIONS.get(self.name, set())

    @property
    def converter(self) -> ModuleType:
        """Import the Python module that reads and writes this format, and return it."""
        module = self.module.partition(":")[0]
        return import_module(module if self.owner else f"hoicli.converters.{module}")

    def read(self, source: Source, context: Context) -> Iterator[Record]:
        """Return the records of a file in this format. Errors of a reader from another package name that package."""
        function_name = self.module.partition(":")[2] or "read"
        records: Iterator[Record] = getattr(self.converter, function_name)(source, context)
        return iterate_plugin(records, f"{self.name} of {self.owner}") if self.owner else records


NUMBERED_BY = {"verbs": "verb_base", "objects": "object_order"}
"""The option that says how a file numbers verbs or objects."""
_OPTIONS = {
    "hico-mat": {"part"},
    "no-frills": {"part"},
    "vlm": {"coords", "boxes", "to_vocabulary", "synonyms", "explain_words", "scores"},
    "logits": {"activation", "lambda_", "threshold"},
}


_GT, _PRED = "ground truth", "predictions"
_TWO, _CLASSES = frozenset({"verbs", "objects"}), frozenset({"interactions"})
# fmt: off
_TABLE = (
    Format("records", "own", "records", "hoicli's own JSONL, ground truth or predictions", signs="is_records",
        boxes=True),
    Format("coco-rel", "coco_rel", "graphs",
        "scene graphs: COCO with rel_annotations (SGG-Benchmark's PSG, VG150), with or without scores",
        signs="{images annotations rel_annotations}", writes=True, named=True),
    Format("label-studio", "annotation_tools:read_tasks", _GT, "Label Studio's JSON export with relations",
        signs="[data annotations]", named=True),
    Format("cvat", "annotation_tools:read_cvat", _GT,
        "CVAT for images 1.1 (annotations.xml): boxes with an action attribute, in groups", signs="is_cvat",
        named=True),
    Format("vsrl", "vcoco:read_annotations", _GT,
        "V-COCO's vcoco_test.json with COCO's instances file and the split's .ids", dataset="vcoco", signs="is_vsrl",
        joint=True),
    Format("qpic-vcoco", "hoi_lists", _GT,
        "test_vcoco.json of QPIC, CDN: the HOI-A layout with V-COCO's 29 action-roles", dataset="vcoco",
        signs="[hoi_annotation annotations] is_truth is_vcoco", numbers=_TWO, boxes=True),
    Format("ppdm-vcoco-gt", "hoi_lists", _GT, "the same in PPDM's verb order (--from only)", dataset="vcoco",
        numbers=_TWO, boxes=True),
    Format("pocket-vcoco", "pocket:read_vcoco", _GT, "instances_vcoco_*.json of fredzzhang/vcoco (UPT, PViC)",
        dataset="vcoco", signs="{annotations classes action_to_object}"),
    Format("pocket", "pocket", _GT, "instances_*.json of hicodet (UPT, PViC, SCG), either object order",
        dataset="hico", signs="{annotation filenames correspondence}", writes=True, named=True),
    Format("hoia", "hoi_lists", _GT,
        "trainval_hico.json, test_hico.json of PPDM, QPIC, CDN; test_hico_ann.json of INP-CC; HOI-A (--dataset hoia)",
        dataset="hico", signs="[hoi_annotation annotations] is_truth", writes=True, numbers=_TWO, boxes=True),
    Format("corre", "correspondence", _GT,
        "corre_hico.npy of QPIC, CDN, PPDM, of any dataset: which verbs go with which objects", reads=False,
        writes=True),
    Format("ambiguous", "box_pairs:read_ambiguous", _GT,
        "Ambiguous-HOI's gt_ambiguous_hoi.pkl, with ambi_names.pkl for the images without its classes",
        dataset="ambiguous-hoi", signs="is_ambiguous", joint=True),
    Format("swig", "hoi_lists", _GT, "swig_{train,val,trainval,test,dev}_1000.json of SWIG-HOI", dataset="swig",
        signs="[box_annotations hoi_annotations]", boxes=True),
    Format("hico-mat", "hico_mat", _GT,
        "anno_bbox.mat, with anno.mat for complete image-level labels; anno.mat alone for these", dataset="hico",
        signs="sniff", joint=True),
    Format("no-frills", "hico_mat:read_list", _GT, "anno_list.json of no_frills_hoi_det", dataset="hico",
        signs="[image_path_postfix hois]"),
    Format("vcoco", "vcoco_detections:read_detections", _PRED,
        "V-COCO's official list of people, .pkl or .json (QPIC, UPT's cache, iCAN)", dataset="vcoco",
        signs="[image_id person_box]"),
    Format("vcoco-pkl", "vcoco_detections", _PRED, "the same as a pickle", dataset="vcoco", reads=False, writes=True),
    Format("qpic-vcoco-list", "hoi_lists", _PRED, "V-COCO lists of boxes and interactions, QPIC's verb order",
        dataset="vcoco", signs="is_scored_vcoco", numbers=_TWO, boxes=True),
    Format("ppdm-vcoco-list", "hoi_lists", _PRED, "the same in PPDM's verb order (--from only)", dataset="vcoco",
        numbers=_TWO, boxes=True),
    Format("cdn", "hoi_lists", _PRED,
        "results.json of CDN, MUREN (text in text); the same list as .json or .pkl (Diag-HOI, QPIC)", dataset="hico",
        signs="is_query_list has_classes", numbers=_TWO, boxes=True),
    Format("cdn-json", "hoi_lists", _PRED, "the list of CDN's dictionaries as plain JSON", reads=False, writes=True),
    Format("gen-vlkt", "hoi_lists", _PRED,
        "results.json of GEN-VLKT, HOICLIP: boxes without a class, 600 interactions", dataset="hico",
        signs="is_query_list is_classless", numbers=_CLASSES, boxes=True),
    Format("ppdm", "hoi_lists", _PRED, "predictions of PPDM, GGNet: COCO ids 1-90, verbs 1-117", dataset="hico",
        signs="[file_name] is_scored", numbers=_TWO, boxes=True),
    Format("ican", "box_pairs:read_ican", _PRED,
        "pickles of iCAN, TIN, VCL, HOI-CL, DJ-RN: pairs with the scores of 600 classes", signs="is_ican",
        numbers=_CLASSES),
    Format("image-scores", "matrices:read_scores", _PRED,
        "scores of HICO's 600 classes for whole images: a matrix as .npy or .mat", dataset="hico", signs="is_scores"),
    Format("inpcc", "inpcc", _PRED,
        "preds.pkl, dets.pkl of INP-CC, THID, CMD-SE, or {image: [[hoi, score, 8 numbers]]}", signs="sniff"),
    Format("ppdm-mat", "matrices:read_rows", _PRED,
        "the same folder in rows, for iCAN's and PPDM's evaluation: iCAN, PPDM, GEN-VLKT, HOICLIP", dataset="hico",
        signs="is_rows"),
    Format("mat", "matrices:read_cells", _PRED, "a folder of detections_01..80.mat of UPT, PViC, SCG",
        dataset="hico", signs="is_cells"),
    Format("state", "own:read_state", _PRED,
        ".npz of hoicli.Evaluator.state(), as each process of a training script saves it", signs="is_state"),
    Format("logits", "inpcc:read_outputs", _PRED,
        ".npz of pred_logits, pred_boxes, box_scores (INP-CC, THID) before post-processing",
        signs="npz", joint=True, boxes=True),
    Format("hoidet", "box_pairs:read_hoidet", _PRED,
        "JSON of HOIDet: an image's boxes, and its pairs with the score of one of 600 classes", dataset="hico",
        signs="[h_idx o_idx hoi_class]", numbers=_CLASSES, boxes=True),
    Format("diag-pairs", "box_pairs:read_diag", "pairs", "box_pairs lists of Diag-HOI, .pkl or .json",
        signs="[box_pairs]", numbers=frozenset({"objects"})),
    Format("vlm", "vlm.answer_records", _PRED,
        "answers of vision-language models, text or JSON; HOI-R1, hoi-benchmarks",
        signs="sniff"),
)
# fmt: on


class _Formats(dict[str, Format]):
    """hoicli's own formats by name, in the order of `detect`. The look-up of another name imports a package's."""

    def __missing__(self, name: str) -> Format:
        """Return the format of that name from another package's entry point; Python calls this for a name that is not
        among hoicli's own. Raises KeyError if no package has it, and `UsageError` if the entry point is no `Format`."""
        row = plugin("formats", name) if name else None
        if row is None:
            raise KeyError(name)
        if not isinstance(row.value, Format):
            problem = f"its entry point in hoicli.formats is a {type(row.value).__name__}"
            raise UsageError(f"{name} of {row.owner}: {problem}, not a hoicli.converters.formats.Format")
        return replace(row.value, name=name, owner=row.owner)


FORMATS = _Formats(rows_by_name("_TABLE (hoicli/converters/formats.py)", ((row.name, row) for row in _TABLE)))


def offer_names(*, written: bool) -> list[tuple[str, str]]:
    """Return the name and description of each format that --from takes, or that --to takes if `written`. Formats of
    other packages have a name only, since listing them imports nothing."""
    own_formats = [(row.name, row.description) for row in FORMATS.values() if (row.writes if written else row.reads)]
    return own_formats + [(name, "of another package") for name in names("formats") if name not in FORMATS]


def detect(source: Source) -> str:
    """Return the name of a file's format: the first in FORMATS whose `signs` the file shows all of. Raises `DataError`
    for a file of no known format; if it is nearly in one (_NEARLY), the error says what to change."""
    if source.first_has("annotator", "annotation_id"):
        problem = "is Label Studio's JSON-MIN, which has no relations; export as JSON"
        raise DataError(problem, place=source.name, code="unknown-format")
    for row in FORMATS.values():  # a row's signs are one text: [a b], {a b} and words, which are split here
        signs = _SIGN.findall(row.signs)
        if signs and all(_shows(source, sign, row) for sign in signs):
            return row.name
    for keys, problem in _NEARLY.items():
        if _shows(source, keys, FORMATS["records"]):  # these signs are keys alone, for which the row plays no role
            raise DataError(problem, place=source.name, code="unknown-format")
    raise DataError(
        f"not a format hoicli knows ({source.describe()}); `hoicli convert --list` names them, "
        f"{arg('from_', like='NAME')} forces one, "
        "and a format of your own becomes records (`hoicli doctor --schema prediction`)",
        place=source.name,
        code="unknown-format",
    )


_NEARLY = {
    "[image_id hois]": "is a list of records; make a line of each: jq -c '.[]' FILE",
    "[person_box]": "is V-COCO's list of people without image_id; add to each the number of its COCO image",
    "[image_id category_id bbox]": "is COCO's list of detected boxes, which has no triplets; give the file of these",
    "{images annotations}": "is COCO's annotations without triplets (rel_annotations, rel_categories); give those",
}
"""Files that are nearly in a format: the sign of each (as in `Format.signs`), and what the user is told."""
_SIGN = re.compile(r"\[.*?]|{.*?}|\w+")


def _shows(source: Source, sign: str, row: Format) -> bool:
    """Return whether a file shows one of the signs of a format (`row`): "[a b]" if it is a list whose first item has
    the keys a and b, "{a b}" if it is a dictionary with them. Any other sign is a function of the format's module that
    looks at the file, or, if the module has no such function, the kind of container that the file must be ("npz")."""
    if sign[0] in "[{":
        keys = sign[1:-1].split()
        return source.first_has(*keys) if sign[0] == "[" else source.mapping_has(*keys)
    recognises = getattr(row.converter, sign, None)
    return source.kind == sign if recognises is None else bool(recognises(source))
