"""Image records: what a line must hold, and where exactly a bad one is wrong (formats/ has the JSON Schemas).

Records are checked twice. `hoicli.records.reading` turns thousands of lines at a time into arrays, which is fast and
notices only *that* a line is wrong. `problems` then goes through that one record and says *what* is wrong, *where*, and
what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, TypeGuard

from hoicli.errors import arg
from hoicli.records.caveats import CAVEATS
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, is_number, json_type, short
from hoicli.vocabulary.datasets import records_of, suggestion
from hoicli.vocabulary.labels import Vocabulary

NULLS = ("label", "object")
"""What may be null in records of any dataset, as in V-COCO's."""


def problems(
    record: Mapping[str, Any],
    vocabulary: Vocabulary | None,
    *,
    scored: bool,
    optional_fields: Container[str] | None = None,
    nulls: Container[str] = (),
) -> Iterator[Problem]:
    """Yield a problem for everything in a parsed image record that no metric can use, in reading order; nothing for a
    good record.

    vocabulary: the labels and verbs that the record may use; None for any. scored: whether it is a prediction, whose
    triplets need a `score`. optional_fields: those of OPTIONAL_FIELDS that the caller reads, None for all; faults of
    other fields are no matter. nulls: which of "label" and "object" may be null."""
    nulls = NULLS if _has_roles(vocabulary) else nulls
    if {"protocol", "gt", "predictions"} <= record.keys() and "boxes" not in record:
        yield Problem("", "a match record, without boxes (of hoicli match); give the predictions that were matched")
        return
    yield from image_id_problems(record)
    for key in ("boxes", "labels", "hois"):
        if key not in record:
            hint = _rename_hint(record, key)
            yield Problem(key, f"missing{hint}; every image line has {key} (an empty list where there are none)")
        elif type(record[key]) is not list:
            yield Problem(key, f"{json_type(record[key])}; it must be an array")
    boxes, labels, hois = (record.get(key) for key in ("boxes", "labels", "hois"))
    if type(boxes) is list:
        yield from _box_problems(boxes)
    if type(labels) is list:
        yield from _label_problems(labels, vocabulary, null="label" in nulls)
        yield from _count_problems("labels", labels, record, "label")
    if type(hois) is list:
        count = _box_count(record)
        for index, hoi in enumerate(hois):
            yield from _hoi_problems(f"hois[{index}]", hoi, count, vocabulary, scored=scored, null="object" in nulls)
    if _has_roles(vocabulary):
        yield from _role_problems(record, vocabulary)
    yield from rare_field_problems(record, vocabulary, scored=scored)
    yield from optional_field_problems(record, optional_fields)


def optional_field_problems(record: Mapping[str, Any], names: Container[str] | None = None) -> Iterator[Problem]:
    """Yield the problems of the OPTIONAL_FIELDS, which not every reader uses. names: None for all."""
    for name, problems_of_field in OPTIONAL_FIELDS.items():
        if names is None or name in names:
            yield from problems_of_field(record)


_RARE_FIELDS = frozenset({"image_hois", "ambiguous_hois", "caveats", "annotated", "iscrowd", "unstated", "left_out"})


def rare_field_problems(record: Mapping[str, Any], vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Problem]:
    """Yield the problems of the fields that few records have: image-level labels, caveats, and flags of boxes."""
    if record.keys().isdisjoint(_RARE_FIELDS):  # fast readers call this for every record
        return
    for key in ("image_hois", "ambiguous_hois"):
        yield from _image_hoi_problems(key, record.get(key), vocabulary)
    if not scored and record.get("image_hois") == [] and record.get("hois"):
        # an empty list would say that nothing happens; the Known Object setting, which evaluates a class on images with
        # its object alone, would then drop every prediction
        text = "empty, but the image has triplets; name what happens in it, or leave the field out where nobody said"
        yield Problem("image_hois", text)
    yield from _caveat_problems(record.get("caveats"))
    if not scored:
        yield from _flag_problems("iscrowd", record)
    if _has_roles(vocabulary):
        yield from statement_problems(record, vocabulary, scored=scored)


def truth_problems(record: Mapping[str, Any], vocabulary: Vocabulary | None) -> Iterator[Problem]:
    """Yield the problems of a ground-truth record, scores among them. The fields of OPTIONAL_FIELDS are not checked."""
    yield from problems(record, vocabulary, scored=False, optional_fields=())
    yield from score_problems(record)


def score_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each score in a ground-truth record, since triplets with scores are predictions."""
    for index, hoi in _hois(record):
        if hoi.get("score") is not None:
            text = "ground truth has no scores, so these are predictions; give the ground truth here (swapped?)"
            yield Problem(f"hois[{index}].score", text)


def _hois(record: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (its position in `hois`, the triplet) for every triplet of an unchecked record that is a JSON object."""
    hois = record.get("hois")
    for index, hoi in enumerate(hois if type(hois) is list else ()):
        if type(hoi) is dict:
            yield index, hoi


def _box_count(record: Mapping[str, Any]) -> int | None:
    """Return how many boxes the record has, None if `boxes` is not a list."""
    boxes = record.get("boxes")
    return len(boxes) if type(boxes) is list else None


def _count_problems(field: str, values: list[Any], record: Mapping[str, Any], noun: str) -> Iterator[Problem]:
    """Yield a problem unless there is a value for each box. noun: what messages call a value, such as "label"."""
    count = _box_count(record)
    if count not in (None, len(values)):
        yield Problem(field, f"{len(values)} {noun}s for {count} boxes; give one {noun} a box")


def _index_problems(field: str, item: Mapping[str, Any], key: str, count: int | None) -> Iterator[Problem]:
    """Yield the problems of `item[key]`, the index of a box. field: where `item` is; count: of boxes, or None."""
    value = item.get(key)
    if key not in item:
        yield Problem(f"{field}.{key}", f"missing{_rename_hint(item, key)}; it is the index of a box")
    elif type(value) is not int:
        yield Problem(f"{field}.{key}", f"{short(value)} is no index; it must be the integer index of a box")
    elif count is not None and not 0 <= value < count:
        yield Problem(f"{field}.{key}", f"index {value}, but the line has {count} boxes; indices are 0-based")


_OTHERWISE = {
    "predicate": "verb", "action": "verb", "hoi": "hois", "bbox": "boxes", "bboxes": "boxes", "confidence": "score",
    "subject_id": "subject", "object_id": "object", "image": "image_id", "classes": "labels", "label": "labels",
}  # fmt: skip
"""The name of our field, by the name that other formats have for it."""


def _rename_hint(item: Mapping[str, Any], key: str) -> str:
    """Return a hint at another name under which `item`, which has no `key`, may have the field; "" for none."""
    if "response" in item:
        return " (a model's answer? hoicli convert --from vlm)"
    for name in item:
        if _OTHERWISE.get(name) == key:
            return f" (is it {name!r}? rename that)"
    return ""


def _caveat_problems(caveats: Any) -> Iterator[Problem]:
    """Yield the problems of `caveats`, which must be a list of names in CAVEATS."""
    if caveats is None:
        return
    if type(caveats) is not list:
        yield Problem("caveats", f"{json_type(caveats)}; it must be an array of names, as convert writes it")
        return
    for index, name in enumerate(caveats):
        if type(name) is not str or name not in CAVEATS:
            caveat_names = ", ".join(CAVEATS)
            yield Problem(f"caveats[{index}]", f"{short(name)} is none of {caveat_names}; leave it as convert wrote it")


def _has_roles(vocabulary: Vocabulary | None) -> TypeGuard[Vocabulary]:
    """Return whether there is a vocabulary and its verbs have roles, as V-COCO's do."""
    return vocabulary is not None and bool(vocabulary.roles)


def _role_problems(record: Mapping[str, Any], vocabulary: Vocabulary) -> Iterator[Problem]:
    """Yield the problems of the triplets' `role`, a field of datasets whose verbs have roles, such as V-COCO."""
    for index, hoi in _hois(record):
        roles = vocabulary.find_roles(hoi["verb"]) if type(hoi.get("verb")) is str else None
        if roles is None:
            continue
        role = hoi.get("role")
        field = f"hois[{index}].role"
        roles_text = f"{hoi['verb']} has {', '.join(roles) or 'none'}"
        if role is None and hoi.get("object") is not None:
            fix = f"say which role the object has ({roles_text}), or make it null for the action alone"
            yield Problem(field, f"missing; {fix}")
        elif role is not None and role not in roles:
            yield Problem(field, f"{short(role)} is no role of it; {roles_text}")


def statement_problems(record: Mapping[str, Any], vocabulary: Vocabulary, *, scored: bool) -> Iterator[Problem]:
    """Yield the problems of V-COCO's fields: `annotated`, of each box's person; in predictions also `unstated`, which
    stands for every (person, verb, role) without a triplet, and `left_out`, the exceptions from `unstated`."""
    yield from _flag_problems("annotated", record)
    if not scored:
        return
    unstated = record.get("unstated")
    if unstated is not None:
        stated = unstated if type(unstated) is dict else {}
        if not is_number(stated.get("score")) or not _is_box(stated.get("object")):
            yield Problem("unstated", "must be an object with a score and an object box, as convert writes it")
    left_out = record.get("left_out")
    if left_out is not None and type(left_out) is not list:
        yield Problem("left_out", f"{json_type(left_out)}; it must be an array of statements, as convert writes it")
        return
    count = _box_count(record) or 0
    for index, item in enumerate(left_out or ()):
        if not _is_statement(item, count, vocabulary):
            text = "must say the subject, the verb and the role of a statement, as convert writes it"
            yield Problem(f"left_out[{index}]", text)


def _is_statement(item: Any, box_count: int, vocabulary: Vocabulary) -> bool:
    """Return whether an item of `left_out` has a subject (the index of a box), a verb, and a role of that verb or
    none."""
    if type(item) is not dict or type(item.get("verb")) is not str:
        return False
    roles = vocabulary.find_roles(item["verb"])
    if roles is None or item.get("role") not in (None, *roles):
        return False
    return type(item.get("subject")) is int and 0 <= item["subject"] < box_count


def _box_list_problems(
    field: str, record: Mapping[str, Any], is_valid: Callable[[object], bool], values_text: str, noun: str
) -> Iterator[Problem]:
    """Yield the problems of an optional field with a value for each box, which `is_valid` checks. values_text, noun:
    what messages call the values, and one of them."""
    values = record.get(field)
    if values is None:
        return
    if type(values) is not list or not all(map(is_valid, values)):
        yield Problem(field, f"must be an array of {values_text}, one a box")
    else:
        yield from _count_problems(field, values, record, noun)


def _flag_problems(field: str, record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of an optional field that lists true or false for each box."""
    return _box_list_problems(field, record, lambda flag: type(flag) is bool, "true and false", "flag")


def _size_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of `width` and `height`."""
    for key in ("width", "height"):
        if key in record and not (is_number(record[key]) and record[key] > 0):
            yield Problem(key, f"{short(record[key])} is no size; give a number of pixels, or leave it out")


def _verb_score_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the triplets' `verb_score`."""
    for index, hoi in _hois(record):
        if "verb_score" in hoi and not is_number(hoi["verb_score"]):
            yield Problem(f"hois[{index}].verb_score", f"{short(hoi['verb_score'])} is no score; give a finite number")


def _pair_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of `pairs`, the detected pairs of boxes with their interactiveness."""
    pairs = record.get("pairs")
    if pairs is not None and type(pairs) is not list:
        yield Problem("pairs", f"{json_type(pairs)}; it must be an array")
        return
    count = _box_count(record)
    for index, pair in enumerate(pairs or ()):
        field = f"pairs[{index}]"
        if type(pair) is not dict:
            yield Problem(field, f"{json_type(pair)}; it must be an object with subject and object")
            continue
        for key in ("subject", "object"):
            yield from _index_problems(field, pair, key, count)
        if "interactiveness" in pair and not is_number(pair["interactiveness"]):
            text = f"{short(pair['interactiveness'])} is no score; give a finite number, or leave it out"
            yield Problem(f"{field}.interactiveness", text)


OPTIONAL_FIELDS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Problem]]] = {
    "size": _size_problems,
    "box_scores": lambda record: _box_list_problems("scores", record, is_number, "finite numbers", "score"),
    "verb_scores": _verb_score_problems,
    "pairs": _pair_problems,
}
"""The optional fields that not every reader uses, each with the function that yields its problems."""
RECORD_FIELDS = frozenset({
    *("image_id", "img_id", "file_name", "width", "height", "boxes", "labels", "hois", "scores", "synsets"),
    *("visibility", "masks", "pixelated", "segmentations", *_RARE_FIELDS, *OPTIONAL_FIELDS),
})  # fmt: skip
"""The fields that mean something in every record, unlike those that only `hoicli corrupt` adds."""


def image_id_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the image's id."""
    if "image_id" not in record:
        text = f"missing{_rename_hint(record, 'image_id')}; every image line names its image"
        yield Problem("image_id", f"{text} (foreign files go through `hoicli convert`)")
    elif type(record["image_id"]) not in (str, int):
        yield Problem("image_id", f"{json_type(record['image_id'])}; it must be a string or an integer")
    elif is_blank(record["image_id"]):
        yield Problem("image_id", "empty; give the image's file name without its extension, or its number")


def _is_box(value: Any) -> bool:
    """Return whether a value is a list of four finite numbers."""
    return type(value) is list and len(value) == 4 and all(map(is_number, value))


def _box_problems(boxes: list[Any]) -> Iterator[Problem]:
    """Yield a problem for each box that is not four finite numbers."""
    for index, box in enumerate(boxes):
        if not _is_box(box):
            yield Problem(f"boxes[{index}]", f"{short(box)} is no box; give four finite numbers [x1, y1, x2, y2]")


UNKNOWN_LABEL = "unknown-label"


def unknown_label(field: str, what: str, name: str, vocabulary: Vocabulary) -> Problem:
    """Return the problem of a name that the vocabulary does not have. Its text is made when it is shown, since to look
    for a similar name is slow. what: "verb" or "object"."""
    hint = ""
    if what == "verb" and name.replace(" ", "_").partition("_")[0].endswith("ing"):
        convert = f"hoicli convert {arg('to_vocabulary')}"
        hint = f" (a model's own words? hoicli shoe-eval scores them, {convert} maps its answers to the dataset's)"
    quoted = repr(name if len(name) <= 200 else name[:197] + "...")
    return Problem(field, lambda: f"unknown {what} {quoted}; {suggestion(name, vocabulary, what)}{hint}", UNKNOWN_LABEL)


def _label_problems(labels: list[Any], vocabulary: Vocabulary | None, *, null: bool) -> Iterator[Problem]:
    """Yield the problems of `labels`. null: whether a label may be null."""
    for index, label in enumerate(labels):
        if label is None and null:
            continue
        if type(label) is not str:
            hint = f" ({records_of('vcoco')})" if label is None and vocabulary is not None else ""
            yield Problem(f"labels[{index}]", f"{short(label)} is no name; labels are strings{hint}")
        elif vocabulary is not None and label not in vocabulary.object_ids:
            yield unknown_label(f"labels[{index}]", "object", label, vocabulary)


def _hoi_problems(
    field: str, hoi: Any, box_count: int | None, vocabulary: Vocabulary | None, *, scored: bool, null: bool
) -> Iterator[Problem]:
    """Yield the problems of one triplet. field: its path, such as "hois[3]"; null: whether it may have no object."""
    if type(hoi) is not dict:
        yield Problem(field, f"{json_type(hoi)}; it must be an object with subject, object and verb")
        return
    yield from _index_problems(field, hoi, "subject", box_count)
    if hoi.get("object", 0) is not None or (vocabulary is None and not null):
        yield from _index_problems(field, hoi, "object", box_count)
    elif not null:
        problem = "null is no index; it must be the integer index of a box; the dataset has no action without an object"
        yield Problem(f"{field}.object", f"{problem} ({records_of('vcoco')})")
    if "verb" not in hoi:
        yield Problem(f"{field}.verb", f"missing{_rename_hint(hoi, 'verb')}; every interaction names its verb")
    elif type(hoi["verb"]) is not str:
        yield Problem(f"{field}.verb", f"{short(hoi['verb'])} is no name; verbs are strings")
    elif vocabulary is not None and hoi["verb"] not in vocabulary.verb_ids:
        yield unknown_label(f"{field}.verb", "verb", hoi["verb"], vocabulary)
    if scored and "score" not in hoi:
        doubt = "is this the ground truth? answers of a model have none: hoicli convert --from vlm --scores ones"
        text = f"missing{_rename_hint(hoi, 'score')}; every predicted interaction has a score ({doubt})"
        yield Problem(f"{field}.score", text)
    elif scored and not is_number(hoi["score"]):
        yield Problem(f"{field}.score", f"{short(hoi['score'])} is no score; give a finite number")


def _image_hoi_problems(key: str, image_hois: Any, vocabulary: Vocabulary | None) -> Iterator[Problem]:
    """Yield the problems of a list of image-level labels, [verb, object] each; none if it is None."""
    if image_hois is None:
        return
    if type(image_hois) is not list:
        yield Problem(key, f"{json_type(image_hois)}; it must be an array of [verb, object]")
        return
    for index, pair in enumerate(image_hois):
        field = f"{key}[{index}]"
        if type(pair) is not list or list(map(type, pair)) != [str, str]:
            yield Problem(field, f"{short(pair)} is no image label; give [verb, object]")
        elif vocabulary is not None and pair[1] not in vocabulary.object_ids:
            yield unknown_label(field, "object", pair[1], vocabulary)
