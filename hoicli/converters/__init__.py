"""Foreign formats to records and back: the table of formats, and finding out which one a file is.

Each format is a module with `sniff(source) -> bool` and `read(source, context) -> records`, or `write(records, path,
context)`, or both. Its docstring says the index bases, the box convention and what it shifts; everything it yields is
0-based `[x1, y1, x2, y2]` with names instead of numbers. A new format is a module, a row here, and a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from hoicli.errors import DataError
from hoicli.records import Record
from hoicli.vocabulary import Vocabulary

if TYPE_CHECKING:
    from hoicli.converters.source import Source
    from hoicli.scenes import ErrorPolicy


T = TypeVar("T")


@dataclass(frozen=True)
class Format:
    """A row of `hoicli convert --list`. `joint`: several paths together make one source (a file and its companion)."""

    name: str
    holds: str
    description: str
    module: str
    reads: bool = True
    writes: bool = False
    joint: bool = False


_GT, _PREDICTIONS = "ground truth", "predictions"

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("records", "records", "hoicli's own JSONL, ground truth or predictions", "own"),
        Format("pocket", _GT, "instances_*.json of hicodet (UPT, PViC, SCG), either object order", "pocket"),
        Format(
            "hoia",
            _GT,
            "trainval_hico.json, test_hico.json of PPDM, QPIC, CDN; test_hico_ann.json of INP-CC, THID",
            "hoia",
        ),
        Format("hico-mat", _GT, "anno_bbox.mat, with anno.mat for complete image-level labels", "hico_mat", joint=True),
        Format("no-frills", _GT, "anno_list.json of no_frills_hoi_det", "no_frills"),
        Format(
            "cdn",
            _PREDICTIONS,
            "results.json of CDN, MUREN (text in text); the same list as .json or .pkl (Diag-HOI)",
            "cdn",
        ),
        Format(
            "cdn-json", _PREDICTIONS, "the list of CDN's dictionaries as plain JSON", "cdn", reads=False, writes=True
        ),
        Format(
            "gen-vlkt",
            _PREDICTIONS,
            "results.json of GEN-VLKT, HOICLIP: boxes without a class, 600 interactions",
            "gen_vlkt",
        ),
        Format("ppdm", _PREDICTIONS, "predictions of PPDM, GGNet: COCO ids 1-90, verbs 1-117", "ppdm"),
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
            "mat", _PREDICTIONS, "a folder of detections_01..80.mat of UPT, PViC, SCG", "detections_mat", writes=True
        ),
        Format("diag-pairs", "pairs", "box_pairs lists of Diag-HOI, .pkl or .json", "diag_pairs"),
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
    split: "test" or "train", for sources that hold both.
    announce: says an assumption once (joins by position, derived labels).
    dropped: what was left out, by reason: [count, first place].
    """

    vocabulary: Vocabulary
    policy: ErrorPolicy
    announce: Callable[[str], None]
    images: Sequence[str] | None = None
    split: str = "test"
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)

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
                self.policy.handle(DataError(error.problem, place=source.name, field=where + error.field))
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


def image_id_of(file_name: str) -> str:
    """The image id of a file name: no folder, no extension ("test2015/HICO_test2015_00000001.jpg")."""
    return PurePosixPath(file_name.replace("\\", "/")).stem


def entry(items: Sequence[T], index: Any, field_name: str, *, base: int = 0) -> T:
    """`items[index - base]`, strictly: raises `DataError` naming the field for anything but the number of an item.

    Accepts what files hold for integers: NumPy's, floats without a fraction, and the odd "27\n" of HOI-A files.
    """
    try:
        number = int(index) - base
    except (ValueError, OverflowError):  # a NaN, an infinity, a word
        number = -1
    if not 0 <= number < len(items) or (not isinstance(index, str) and index != number + base):
        raise DataError(f"id {index}, but there are {len(items)}, counted from {base}", field=field_name)
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
