"""A protocol as text: in words, as `eval --explain` says what it does, and as the JSON that `eval --explain --format
jsonl` writes and a file of `--protocol` is.

    {"name": "hico-75", "like": "hico", "threshold": 0.75}

A file names the row it is `like` and what differs, or everything (formats/protocol.schema.json). Another package adds
such an object as a dict, under an entry point of the group `hoicli.protocols` that has the protocol's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields, replace
from hashlib import sha256
from typing import Any

import orjson

from hoicli.errors import DataError, UsageError, arg, did_you_mean, write_number
from hoicli.evaluation.protocols import ALL_BY_ONE, COUNTED_IMAGES, FAR_EDGES, NO_SHIFT, PROTOCOLS, Protocol, Shift
from hoicli.evaluation.recall_grids import EVERY_RECALL, GRID_ARANGE, GRID_LINSPACE, GRID_TENTHS, GRIDS
from hoicli.io.messages import display_name
from hoicli.io.plugins import plugin
from hoicli.records.parsing import Record, is_number, read_object, short
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

ENDING = ".json"
"""A `--protocol` that ends so is a file."""
LARGEST = 1 << 20
"""The most bytes of a file."""
MOST_POINTS = 1001
"""The most points of a recall grid: COCO has 101."""
EVERY = "every"
"""The grid of a protocol that has none."""
WORDS = ("title", "source", "remark")
"""The fields that change no number, and are not in the digest."""
_OF_VIEWS = ("changed", "view", "part", "mean_of", "filters")
_NOT_GIVEN = ("roles", *_OF_VIEWS)
"""The fields of a row that its file does not have: the dataset decides about `roles`."""
_LATER = ("pairs_only", "first_free", "union_margin")
"""Fields that came after 1.0: where they have their default, they are neither in digests nor in what is written, so
that a file keeps its digest, and earlier releases read it."""


_TOGETHER = {
    "any_object_when_none": "goes with person_first",
    "first_free": "does not go with every_overlap, person_first or whole_image",
}
"""What fields have to do with others, for messages."""


def explain_protocol(protocol: Protocol, subjects: Sequence[str] = (SUBJECT,)) -> str:
    """Return in words what a protocol does, as `eval --explain` prints it: a line each for its name and source, boxes,
    matching, what counts and how results are averaged, and perhaps its remark. subjects: labels of subjects."""
    width = "x2 - x1 + 1 (inclusive pixels)" if protocol.inclusive else "x2 - x1 (edges)"
    overlap = "" if protocol.touching_overlap else ", 0 where boxes only touch"
    if protocol.union_margin:
        overlap += f", {write_number(protocol.union_margin)} added to the union"
    predictions = _shift_text(protocol.prediction_shift)
    if protocol.last_pixel_shift != NO_SHIFT:
        predictions += f", {_shift_text(protocol.last_pixel_shift)} where the record says they are last pixels (.mat)"
    shifts = f"predictions {predictions}, ground truth {_shift_text(protocol.truth_shift)}"
    # which labels must agree
    labels = ""
    if protocol.roles and not (protocol.person_first or protocol.pairs_only):
        labels = "; boxes of different labels do not overlap"
    elif protocol.same_subject:
        labels = "; subjects of different labels do not overlap"
    elif protocol.person_subject:
        labels = f"; the subject must be labelled {' or '.join(subjects)}"
    sign = ">" if protocol.strict else ">="

    # what counts
    limits = [
        f"the interactions called {protocol.classes!r}" if protocol.classes else "",
        f"the best {protocol.triplets_per_image} triplets an image" if protocol.triplets_per_image else "",
        f"the best {protocol.predictions_per_class:,} predictions a class" if protocol.predictions_per_class else "",
        "only images with an image-level label for the object (Known Object)" if protocol.known_object else "",
        "no_interaction dropped from both sides" if protocol.drop_no_interaction else "",
        "only pairs of two boxes, on both sides, whatever the object's label" if protocol.pairs_only else "",
        f"only images that annotate {protocol.images}" if protocol.images != "all" else "",
    ]
    counted = "; ".join(filter(None, limits)) or "every prediction of one of the interactions"

    # what is averaged, and the text
    mean = "all of them (0 for one without ground truth or predictions)"
    if protocol.only_annotated_classes:
        mean = "the classes with ground truth"
    classes = "; the classes are the verbs, with any object" if protocol.by_verb else ""
    boxes = f"width {width}{overlap}; {shifts}{labels}"
    if protocol.whole_image:
        boxes = "not looked at: image-level labels"
    lines = [
        f"{protocol.name}: {protocol.title} ({protocol.source})",
        f"boxes    {boxes}",
        f"match    {_match_rule(protocol, f'{sign} {protocol.threshold}')}",
        f"counted  {counted}",
        f"mean     {_grid_name(protocol.grid)}, over {mean}{classes}",
        *([f"note     {protocol.remark}"] if protocol.remark else []),
    ]
    return "\n  ".join(lines)


def _match_rule(protocol: Protocol, enough: str) -> str:
    """Return in words which ground truth a prediction is matched with and when it is true. enough: the overlap that it
    needs, as text."""
    if protocol.whole_image:
        return (
            "the best triplet of a class in an image is the image's score of the class; true if the image has the "
            "label, not counted if the label is ambiguous, else false"
        )
    if protocol.every_overlap:
        return (
            f"all ground truth of the class with min(IoU_subject, IoU_object) {enough}; true if a higher score has "
            "not taken all of it; takes all that is left of it"
        )
    if protocol.first_free:
        return (
            f"the first ground truth of the class with IoU_subject and IoU_object {enough} that no higher score has "
            "taken; true if there is one"
        )
    if not protocol.person_first:
        return (
            "the ground truth of the class with the largest min(IoU_subject, IoU_object), first of equals; "
            f"true if {enough} and not taken by a higher score"
        )
    absent = "any" if protocol.any_object_when_none else "an empty one"
    return (
        "the person with the largest IoU, first of equals, doing anything; ignored if nobody annotated them; "
        f"true if both IoU {enough}, they do it and no higher score took them; without an object, {absent} will do"
    )


def _shift_text(shift: Shift) -> str:
    """Return in words what is added to the four coordinates of a box."""
    names_of_shifts = {NO_SHIFT: "as recorded (0-based)", ALL_BY_ONE: "+1 on all four", FAR_EDGES: "+1 on x2 and y2"}
    return names_of_shifts.get(shift, "plus " + " ".join(f"{number:g}" for number in shift))


def _grid_name(grid: tuple[float, ...]) -> str:
    """Return in words how average precision is computed with a grid of recall values (EVERY_RECALL for no grid)."""
    names: dict[tuple[float, ...], str] = {
        GRID_ARANGE: "11-point AP at recall arange(0, 1.1, 0.1)",
        GRID_LINSPACE: "11-point AP at recall linspace(0, 1, 11)",
        GRID_TENTHS: "11-point AP at recall i/10",
        EVERY_RECALL: "area under the precision envelope at every recall",
    }
    if grid in names:
        return names[grid]
    return f"{len(grid)}-point AP at recall {grid[0]:g} to {grid[-1]:g}"


def protocol_record(row: Protocol) -> Record:
    """Return the protocol as the JSON object that a protocol file would have for it. A grid that has a name is written
    by its name."""
    unused = _unused_later_fields(row)
    record: Record = {name: getattr(row, name) for name in _file_fields() if name not in unused}
    grid_names: dict[tuple[float, ...], Any] = {grid: name for name, grid in GRIDS.items()} | {EVERY_RECALL: EVERY}
    return {**record, "grid": grid_names.get(row.grid, list(row.grid))}


def read_protocol(path: str, vocabulary: Vocabulary, rows: Mapping[str, Protocol]) -> Protocol:
    """Return the protocol that a file describes, or that another installed package adds, for a dataset.

    path: the file, or the name under which the package adds it. rows: the dataset's published protocols by name, which
    the file may say it is `like`. Signatures state a digest of what the protocol computes, or the package with its
    version. Raises `DataError` that names the file and the field, `UsageError` if it is of another dataset."""
    record = record_of(path)
    make_error = _error_maker(path)
    dataset = record.get("dataset", vocabulary.name)
    if dataset in DATASETS and dataset != vocabulary.name:
        raise UsageError(f"{arg('protocol', path)}: of {dataset}, not {vocabulary.name}; name protocols of one dataset")
    row = _make_protocol(record, vocabulary, rows, make_error)
    _check_together(row, vocabulary, make_error)
    # `changed` is what signatures state besides the name: here `row:` with the package, or with the digest.
    if not path.endswith(ENDING) and (added := plugin("protocols", path)):
        return replace(row, changed=(("row", added.owner),))
    # left out of the digest: words about the protocol, the fields of its views, and newer fields that are not set
    meaningless = {*WORDS, *_OF_VIEWS, *_unused_later_fields(row)}
    computed = {name: value for name, value in asdict(row).items() if name not in meaningless}
    digest = sha256(orjson.dumps(computed, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]
    return replace(row, changed=(("row", digest),))


def _unused_later_fields(row: Protocol) -> set[str]:
    """Return the names of those fields of _LATER that have their default in a protocol."""
    defaults = {field.name: field.default for field in fields(Protocol)}
    return {name for name in _LATER if getattr(row, name) == defaults[name]}


MakeError = Callable[[str, str], DataError]
"""Returns the error to raise, given the name of a bad field and what is wrong with it."""


def _error_maker(path: str) -> MakeError:
    """Return a function that makes a `DataError` about a field of this file, from the field's name and the problem."""
    return lambda field, problem: DataError(problem, place=display_name(path), field=field)


def _file_fields() -> dict[str, Field[Any]]:
    """Return the dataclass fields of `Protocol` that a protocol file may set, by name."""
    return {field.name: field for field in fields(Protocol) if field.name not in _NOT_GIVEN}


def record_of(path: str) -> Record:
    """Return the JSON object of a protocol file, or the one that another installed package adds under this name. Its
    field names, `name`, `like`, and the type of `dataset` are checked; `DataError` says what is wrong."""
    make_error = _error_maker(path)
    if path.endswith(ENDING):
        record = read_object(path, "protocol", "a few fields", limit=LARGEST)
    else:
        added = plugin("protocols", path)
        if added is None or not isinstance(added.value, Mapping):
            problem = "the entry point must name a dict, with the fields of a protocol's file"
            raise make_error("hoicli.protocols", problem)
        record = {**added.value, "name": path}
    field_names = ["like", *_file_fields()]
    for name in record:
        if name not in field_names:
            meant = did_you_mean(name, field_names, f"the fields are {', '.join(field_names)}")
            raise make_error(short(name).strip('"'), f"there is no such field; {meant}")
    if "name" not in record:
        raise make_error("name", "missing; rows and signatures name the protocol by it")
    name = record["name"]
    if type(name) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}", name) or name == "all":
        raise make_error("name", "must be a word of at most 40 letters, digits, _ . + -")
    if name in PROTOCOLS:
        raise make_error("name", f"{name} is the published protocol; a file needs a name of its own")
    like = record.get("like")
    if "like" in record and (type(like) is not str or like not in PROTOCOLS):
        raise make_error("like", f"{short(like)} is no protocol; choose from {', '.join(PROTOCOLS)}")
    if "like" not in record and "grid" not in record:
        raise make_error("grid", f"missing; say which protocol it is like, or a grid: {', '.join(GRIDS)}, {EVERY}")
    if type(record.get("dataset", "")) is not str:
        raise make_error("dataset", f"{short(record['dataset'])}: must be a string")
    return dict(record)


def dataset_of(path: str) -> str:
    """Return the name of the shipped dataset that a protocol file is for: the one it names, else that of the protocol
    it is like, else HICO-DET. Raises `DataError` if it names a dataset that is not shipped."""
    record = record_of(path)
    default = PROTOCOLS[record["like"]].dataset if "like" in record else "hico"
    dataset = record.get("dataset", default)
    if dataset not in DATASETS:
        raise _error_maker(path)("dataset", f"{short(dataset)} is not shipped; give its file with {arg('dataset')}")
    return str(dataset)


def _make_protocol(
    record: Record, vocabulary: Vocabulary, rows: Mapping[str, Protocol], make_error: MakeError
) -> Protocol:
    """Return the protocol that the object of a file describes: the one in `rows` that it is `like`, if it names one,
    with the file's fields in place of that one's."""
    file_fields = _file_fields()
    values = {
        name: _check_value(file_fields[name], value, make_error) for name, value in record.items() if name != "like"
    }
    values["dataset"] = vocabulary.name
    like = record.get("like")
    if like is None:
        defaults = {"title": "no published protocol", "source": "a file", "roles": bool(vocabulary.roles)}
        return Protocol(**{**defaults, **values})
    if like not in rows:
        raise make_error("like", f"{like} is not of {vocabulary.name}; choose from {', '.join(rows)}")
    words = {"title": f"like {like}", "source": "a file", "remark": ""}
    return replace(rows[like], **{**words, **values})


def _check_value(field: Field[Any], value: Any, make_error: MakeError) -> Any:
    """Return the value of one field as `Protocol` has it (arrays become tuples, numbers floats). Raises an error of
    `make_error` if its type or range is wrong. Whether fields go together is checked later, by `_check_together`."""
    name = field.name
    if name == "grid":
        return _check_grid(value, make_error)
    if name.endswith("_shift"):
        if type(value) is not list or len(value) != 4 or not all(is_number(x) and abs(x) <= 100 for x in value):
            raise make_error(name, "must be four numbers, added to x1, y1, x2, y2: [0, 0, 1, 1]")
        return tuple(map(float, value))
    if name == "threshold":
        if not is_number(value) or not 0 < value <= 1:
            raise make_error(name, f"{short(value)} is no IoU; give a number above 0, at most 1")
        return float(value)
    if name in ("triplets_per_image", "predictions_per_class"):
        if value is not None and (type(value) is not int or not 1 <= value <= 1_000_000_000):
            raise make_error(name, f"{short(value)}: must be a whole number of at least 1, or null for no limit")
        return value
    if name == "subsets":
        if type(value) is not list or not all(type(item) is str for item in value) or len(set(value)) < len(value):
            raise make_error(name, "must be an array of different names of the dataset's subsets")
        return tuple(value)
    if name == "union_margin":
        if not is_number(value) or not 0 <= value <= 1:
            raise make_error(name, f"{short(value)}: must be a number from 0 to 1, added to the union of two boxes")
        return float(value)
    if name == "images" and value not in COUNTED_IMAGES:
        raise make_error(name, f"{short(value)}: choose {', '.join(COUNTED_IMAGES)}")
    # the other fields are flags or texts, as their default is; those without a default are texts
    expected_type = type("" if field.default is MISSING else field.default)
    if type(value) is not expected_type:
        raise make_error(name, f"{short(value)}: must be {'true or false' if expected_type is bool else 'a string'}")
    if expected_type is str and not (len(value) <= 1000 and value.isprintable()):
        raise make_error(name, "must be a line of at most 1,000 printable characters")
    return value


def _check_grid(value: Any, make_error: MakeError) -> tuple[float, ...]:
    """Return the recall values at which precision is read, from the name of a grid or a list of values; () if the area
    under the whole curve is taken (EVERY). Raises the error that `make_error` makes for anything else."""
    if value == EVERY:
        return EVERY_RECALL
    if type(value) is str and value in GRIDS:
        return GRIDS[value]
    is_list = type(value) is list and 1 <= len(value) <= MOST_POINTS and all(map(is_number, value))
    if not is_list or value != sorted(set(value)) or not 0 <= value[0] <= value[-1] <= 1:
        points = f"1 to {MOST_POINTS:,} recall values from 0 to 1, ascending, each once"
        raise make_error("grid", f"must be {', '.join(GRIDS)}, {EVERY}, or an array of {points}")
    return tuple(map(float, value))


def _check_together(row: Protocol, vocabulary: Vocabulary, make_error: MakeError) -> None:
    """Raise an error of `make_error` if a field means nothing for the dataset, or does not go with another field."""
    for name, subsets, choices in (
        ("classes", [row.classes] if row.classes else [], list(vocabulary.subsets)),
        ("subsets", row.subsets, ["full", *vocabulary.groups, *vocabulary.subsets]),
    ):
        for subset in subsets:
            if subset not in choices:
                has = ", ".join(choices) or "none"
                raise make_error(name, f"{vocabulary.name} has no {short(subset)}; it has {has}")
    roles = bool(vocabulary.roles)
    for name, fits in (
        ("person_first", roles),
        ("any_object_when_none", row.person_first),
        ("pairs_only", roles and not row.person_first),
        ("first_free", not (row.every_overlap or row.person_first or row.whole_image)),
        ("known_object", not roles),
        ("person_subject", not roles),
        ("drop_no_interaction", vocabulary.no_interaction is not None),
    ):
        if getattr(row, name) and not fits:
            why = _TOGETHER.get(name, f"means nothing for {vocabulary.name}")
            raise make_error(name, f"{why}; leave it out")
