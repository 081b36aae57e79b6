"""Foreign formats to records and back: the table of formats, and finding out which one a file is.

Each format is a module with `sniff(source) -> bool` and `read(source, context) -> records`, or `write(records, path,
context)`, or both. Its docstring says the index bases, the box convention and what it shifts; everything it yields is
0-based `[x1, y1, x2, y2]` with names instead of numbers. A new format is a module, a row here, and a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from hoicli.converters.numbers import ObjectNumbers, whole_number
from hoicli.errors import DataError
from hoicli.records import Record
from hoicli.records import image_id_of as image_id_of  # where formats look for it
from hoicli.vocabulary import Vocabulary

if TYPE_CHECKING:
    from hoicli.converters.postprocessing import PostProcessing
    from hoicli.converters.source import Source
    from hoicli.scenes import ErrorPolicy


T = TypeVar("T")


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
        Format("vlm", _PREDICTIONS, "answers of vision-language models, text or JSON; HOI-R1, hoi-benchmarks", "vlm"),
    )
}


class Converter(Protocol):
    """What a format's module offers (`write`, or `sniff` and `read`, may be missing: see its row)."""

    def sniff(self, source: Source) -> bool: ...
    def read(self, source: Source, context: Context) -> Iterator[Record]: ...
    def write(self, records: Iterable[Record], path: str, context: Context) -> None: ...


@dataclass
class Context:
    """What a conversion knows besides the file, and what it found out.

    images: image ids in the order of a source that has only positions or numbers, from `--images`; None if not given.
    image_numbers, image_sizes: from the file of `--images`, where it has them: the image id of each `img_id`, and each
    image's width and height.
    logits: how raw outputs become triplets (`--activation` and its like).
    format, target: the names of FORMATS that are read and written.
    split: "test" or "train", for sources that hold both.
    verb_base, object_order: how a file's verbs and objects are numbered, where that is not as its format has them.
    coords, boxes, to_vocabulary: what `--coords`, `--boxes` and `--to-vocabulary` say, for answers of models.
    announce: says an assumption once (joins by position, derived labels).
    dropped: what was left out, by reason: [count, first place].
    """

    vocabulary: Vocabulary
    policy: ErrorPolicy
    announce: Callable[[str], None]
    format: str = ""
    target: str = ""
    images: Sequence[str] | None = None
    image_numbers: Mapping[int, str] = field(default_factory=dict)
    image_sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    logits: PostProcessing | None = None
    split: str = "test"
    verb_base: int | None = None
    object_order: str | None = None
    coords: str | None = None
    boxes: str | None = None
    to_vocabulary: bool = False
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)

    def verb(self, number: Any, field_name: str, *, base: int) -> str:
        """The verb of a number that the format counts from `base`. Raises `DataError` naming the field."""
        return entry(self.vocabulary.verbs, number, field_name, base=self.base(base))

    def base(self, base: int) -> int:
        """From which number verbs are counted in this file, `base` being the format's."""
        return base if self.verb_base is None else self.verb_base

    def objects(self, order: str, hint: str = "") -> ObjectNumbers:
        """The objects by their numbers in this file, `order` (of OBJECT_ORDERS) being the format's."""
        return ObjectNumbers.of(self.vocabulary, self.object_order or order, hint)

    def drop(self, reason: str, place: str, count: int = 1) -> None:
        """Count something that is left out; the summary says how many, why, and where the first was."""
        total, first = self.dropped.get(reason, (0, place))
        self.dropped[reason] = (total + count, first)

    def each(
        self, items: Iterable[tuple[str, Any]], build: Callable[[Any], Record], source: Source
    ) -> Iterator[Record]:
        """`build` on every (field, item), with whatever is wrong about an item told as `file: field: what`.

        A `DataError` that `build` raises names the field within the item; a missing key or a wrong type it stumbles
        over is named here. Under `--on-error skip` the item is dropped and counted; where the list itself breaks off,
        what came before is kept.
        """
        for where, item in self._until_broken(items):
            try:
                record = build(item)
            except DataError as error:
                self.policy.handle(
                    DataError(error.problem, place=source.name, field=where + error.field, code=error.code)
                )
            except KeyError as error:
                problem = f"has no {error.args[0]!r}; is this really the format? (--from NAME chooses another)"
                self.policy.handle(DataError(problem, place=source.name, field=where))
            except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
                problem = f"is not shaped as expected ({error}); --from NAME chooses another format"
                self.policy.handle(DataError(problem, place=source.name, field=where))
            else:
                yield record

    def _until_broken(self, items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        try:
            yield from items
        except DataError as error:
            self.policy.handle(error)


def guarded(step: Callable[[], T], source: Source) -> T:
    """A step of a format's module, with what it stumbles over outside of any item told as the file's fault.

    Of its items `Context.each` tells the place. A format is read by what its project writes; of anything else it is
    enough to say that it is something else.
    """
    try:
        return step()
    except KeyError as error:
        problem = f"has no {error.args[0]!r}; is this really the format? (--from NAME chooses another)"
        raise DataError(problem, place=source.name) from None
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        problem = f"is not shaped as expected ({error}); --from NAME chooses another format"
        raise DataError(problem, place=source.name) from None


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


def entry(items: Sequence[T], index: Any, field_name: str, *, base: int = 0) -> T:
    """`items[index - base]`, strictly: raises `DataError` naming the field for anything but the number of an item."""
    number = (index if type(index) is int else whole_number(index, field_name)) - base
    if not 0 <= number < len(items):
        shown = str(index).strip()
        raise DataError(f"id {shown}, but there are {len(items)}, counted from {base}", field=field_name)
    return items[number]


class BoxTable:
    """Collects an image's boxes, the same box of the same label once, in the order of first appearance."""

    def __init__(self) -> None:
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self._index: dict[tuple[str, tuple[float, ...]], int] = {}

    def add(self, box: Sequence[float], label: str) -> int:
        """The index of the box, new or not."""
        key = (label, tuple(box))
        if key not in self._index:
            self._index[key] = len(self.boxes)
            self.boxes.append(list(box))
            self.labels.append(label)
        return self._index[key]
