"""V-COCO's own files: its annotations, and the detections that its evaluator reads (s-gupta/v-coco, vsrl_eval.py).

vsrl: vcoco_{train,val,trainval,test}.json with COCO's instances file and the split's .ids, in any order.

    VSRL        a list of actions: {"action_name", "role_name": ["agent", ...], "image_id": [N], "ann_id": [N],
                "label": [N], "role_object_id": flat K x N, role by role; 0 where a role has no object}
    INSTANCES   COCO's {"images", "annotations": [{"id", "image_id", "category_id", "bbox", "area"}], "categories"}
    IDS         one COCO image id per line: the images to convert, in this order; without it all of VSRL

Boxes are COCO's [x, y, w, h], 0-based, and become x2 = x + w - 1, y2 = y + h - 1, clipped to the image, as the official
evaluator has them; boxes that it leaves out (no area, marked `ignore`) are left out here. Every COCO box of an image is
kept; a person missing in VSRL is `annotated: false`, and ignored in matching. Each action of a person gives one triplet
for each role, with a null object if the role has none. Image ids are COCO's numbers.

vcoco: the official list of detections, pickled or JSON; and back to a pickle.

    {"image_id": 328, "person_box": [x1, y1, x2, y2], "hold_agent": score, "hold_obj": [x1, y1, x2, y2, score], ...}

One dictionary a person, query or pair; `<action>_agent` says that the person does the action, `<action>_<role>` what
fills the role. Each dictionary stays a separate person box, since the evaluator takes it as a separate detection; equal
role boxes of an image are merged. Boxes are read unchanged. The three notations for a role without object stay
different, because scenario 1 treats them differently: NaN (QPIC, iCAN) becomes `object: null`, zeros stay a box of
zeros (empty, too), and the tiny box [0, 0, 0.1, 0.1] (UPT) stays a box, which is not empty.

Keys that a dictionary does not have count as UPT's cache (fredzzhang/upt utils.py, CacheTemplate) fills them: score 0
and the tiny box. The record then says `"unstated": {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}`. A score of NaN is
no statement, as in the evaluator: it is left out and counted. If a reader would otherwise fill in or derive the
statement, the record lists it: `"left_out": [{"subject": 0, "verb": "hold", "role": "obj"}]` (no role: the action
itself).

Writing (`--to vcoco-pkl`) gives one dictionary for each subject box; if a subject has several objects for one role,
more dictionaries follow. Roles without object are written as NaN. The readers raise `DataError`.
"""

from __future__ import annotations

import math
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, require_scores, run_step
from hoicli.converters.numbers import whole_number
from hoicli.errors import DataError, Place
from hoicli.io.opened_files import FIRST
from hoicli.io.outputs import open_output
from hoicli.records.names import number_or_name
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary, normalise

# Annotations

LOST_OBJECT = "roles whose object has no valid box (the role is taken as empty)"

Action = tuple[str, tuple[int, ...]]
"""An action and the annotation ids that fill its roles, 0 for none."""

_NUMBERS = re.compile(rb"[\d.e+\s]+")


def is_vsrl(source: Source) -> bool:
    """Whether a file is V-COCO's list of actions or one of its companions: COCO's instances, or a list of image ids."""
    is_split = source.kind == "unknown" and _NUMBERS.fullmatch(source.data[:FIRST]) is not None
    return _is_actions(source) or _is_instances(source) or is_split


def _is_actions(source: Source) -> bool:
    """Whether a file is V-COCO's list of actions (VSRL)."""
    return source.first_has("action_name", "role_object_id")


def _is_instances(source: Source) -> bool:
    """Whether a file is COCO's instances."""
    return source.mapping_has("images", "annotations", "categories")


def read_annotations(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of the split, or of the list of actions if no split's ids are given."""
    sources = [source, *source.companions]
    vsrl = next((file_source for file_source in sources if _is_actions(file_source)), None)
    instances = next(
        (file_source for file_source in sources if file_source is not vsrl and _is_instances(file_source)), None
    )
    split = [file_source for file_source in sources if file_source not in (vsrl, instances)]
    if vsrl is None or instances is None or len(split) > 1:
        problem = "give VSRL.json,INSTANCES.json,IDS.txt together (vcoco_test.json, instances_vcoco_all_2014.json, ids)"
        if vsrl is None and instances is not None:
            problem = f"is COCO's annotations: boxes alone, without triplets; for V-COCO {problem}"
        raise DataError(problem, place=source.name)
    actions, images = _actions(vsrl, context)
    if split:
        images = _ids(split[0])
    coco = run_step(lambda: _Instances(instances.mapping, {*images}), instances, "")

    def build(image: Mapping[str, Any]) -> Record:
        return _record(image, coco, actions, context, vsrl.name)

    items = ((f"image {image_id}", coco.images[image_id]) for image_id in images if image_id in coco.images)
    yield from context.each(items, build, instances)
    for image_id in images:
        if image_id not in coco.images:
            context.drop(f"images that {instances.name} does not have", f"image {image_id}")


def _actions(vsrl: Source, context: Context) -> tuple[dict[int, list[Action]], list[int]]:
    """Return the actions of each annotated person by annotation id (an empty list for a person who does nothing), and
    the ids of the images in ascending order."""
    actions: dict[int, list[Action]] = {}
    images: set[int] = set()
    roles_of = context.vocabulary.roles_of
    for where, column in vsrl.items():
        people = run_step(partial(_people_of, column, roles_of), vsrl, where)
        for image, person, action in people:
            images.add(image)
            actions_of_person = actions.setdefault(person, [])
            if action is not None:
                actions_of_person.append(action)
    return actions, sorted(images)


def _people_of(column: Any, roles_of: Mapping[str, tuple[str, ...]]) -> list[tuple[int, int, Action | None]]:
    """Return (image id, annotation id, action) of each person in the list of one action; the action is None for a
    person who does not do it. column: the list of one action, an item of VSRL. roles_of: the roles of each verb."""
    verb = normalise(str(column["action_name"]))
    if verb not in roles_of:
        raise DataError(f"{verb!r} is no V-COCO action", field=".action_name")
    columns = [column[key] for key in ("image_id", "ann_id", "label")]
    roles = [str(role) for role in column["role_name"]]
    if roles != ["agent", *roles_of[verb]]:
        expected = ", ".join(("agent", *roles_of[verb]))
        raise DataError(f"{roles} are not the roles of {verb}: {expected}", field=".role_name")
    count, role_objects = len(columns[0]), column["role_object_id"]
    if {len(each) for each in columns} != {count} or len(role_objects) != count * len(roles):
        problem = f"image_id, ann_id, label and role_object_id / {len(roles)} differ in length; fetch the file again"
        raise DataError(problem)
    objects_by_role = [role_objects[number * count : (number + 1) * count] for number in range(1, len(roles))]
    fillers = zip(*objects_by_role, strict=True) if objects_by_role else [()] * count  # for each person
    people: list[tuple[int, int, Action | None]] = []
    for image, person, label, objects in zip(*columns, fillers, strict=True):
        action = (verb, tuple(whole_number(filler, ".role_object_id") for filler in objects)) if label == 1 else None
        people.append((whole_number(image, ".image_id"), whole_number(person, ".ann_id"), action))
    return people


def _ids(split: Source) -> list[int]:
    """Return the image ids of a split's file, which has one on each line; NumPy writes them like 2.94e+02."""
    ids = []
    for number, line in enumerate(split.data.decode("utf-8", "replace").split("\n"), start=1):
        try:
            ids += [whole_number(float(line), "")] if line.strip() else []
        except (ValueError, DataError):
            problem = f"{line.strip()[:40]!r} is no image id; give one COCO image id a line"
            raise DataError(problem, place=Place.in_file(split.name, number)) from None
    return ids


class _Instances:
    """COCO's instances, of the chosen images only. images: the rows of the images by id. annotations: the rows of each
    image's annotations, in the file's order. names: the name of each category by id."""

    def __init__(self, content: Mapping[str, Any], chosen: set[int]) -> None:
        self.images = {row["id"]: row for row in content["images"] if row["id"] in chosen}
        self.annotations: dict[int, list[Mapping[str, Any]]] = {}
        for row in content["annotations"]:
            if row["image_id"] in chosen:
                self.annotations.setdefault(row["image_id"], []).append(row)
        self.names = {row["id"]: normalise(row["name"]) for row in content["categories"]}


def _action_triplets(
    subject: int, verb: str, fillers: Sequence[int], box_index_of: Mapping[int, int], context: Context, place: str
) -> Iterator[Record]:
    """Yield a triplet for each role of a person's action, or one without an object for an action without roles.
    subject: the index of the person's box. fillers: the annotation id that fills each role, 0 for none. box_index_of:
    the index of each annotation's box. place: where the action stands, for the count of objects without a valid box."""
    if not fillers:
        yield {"subject": subject, "object": None, "verb": verb}
    for role, filler in zip(context.vocabulary.roles_of[verb], fillers, strict=True):
        if filler and filler not in box_index_of:
            context.drop(LOST_OBJECT, f"{place}, {verb} {role}")
        yield {"subject": subject, "object": box_index_of.get(filler), "verb": verb, "role": role}


def _record(
    image: Mapping[str, Any], coco: _Instances, actions: Mapping[int, list[Action]], context: Context, file: str
) -> Record:
    """Return the record of an image. image: its row in COCO's instances. actions: the actions of each person, by
    annotation id. file: the name of the list of actions, for the places of what is left out."""
    width, height, annotations = image["width"], image["height"], coco.annotations.get(image["id"], ())
    boxes: list[list[float]] = []
    labels: list[str] = []
    annotated: list[bool] = []
    box_index_of: dict[int, int] = {}
    for row in annotations:
        box = _corners(row, width, height)
        if box is None:
            continue
        if row["category_id"] not in coco.names:
            raise DataError(f"no category {row['category_id']}", field=f", annotation {row['id']}")
        box_index_of[row["id"]] = len(boxes)
        boxes.append(box)
        labels.append(coco.names[row["category_id"]])
        annotated.append(labels[-1] != SUBJECT or row["id"] in actions)
    hois: list[Record] = []
    for row in annotations:
        place = f"{file}: annotation {row['id']}"
        for verb, fillers in actions.get(row["id"], ()):
            if row["id"] in box_index_of:
                hois += _action_triplets(box_index_of[row["id"]], verb, fillers, box_index_of, context, place)
            else:
                context.drop("actions of people without a valid box", place)
    head = {"image_id": image["id"], "file_name": image["file_name"], "width": width, "height": height}
    return {**head, "boxes": boxes, "labels": labels, "annotated": annotated, "hois": hois}


def _corners(row: Mapping[str, Any], width: float, height: float) -> list[float] | None:
    """Return an annotation's box as [x1, y1, x2, y2], clipped as the official evaluator does it; None for a box that
    the evaluator leaves out: one marked `ignore`, or without an area."""
    if row.get("ignore") == 1:
        return None
    x, y, w, h = row["bbox"]
    x1, x2 = (min(width - 1.0, max(0.0, side)) for side in (x, x + max(0.0, w - 1.0)))
    y1, y2 = (min(height - 1.0, max(0.0, side)) for side in (y, y + max(0.0, h - 1.0)))
    return [x1, y1, x2, y2] if row["area"] > 0 and x2 > x1 and y2 > y1 else None


# Detections, read

UNSTATED = {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}


def read_detections(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of the official list of detections, in the order of first appearance."""
    images: dict[Any, list[tuple[str, dict[str, Any]]]] = {}
    for where, item in _people(source, context):
        images.setdefault(item["image_id"], []).append((where, item))
    items = (("", image) for image in images.items())  # the builder's errors name the dictionary
    known_keys, counts = _keys(context.vocabulary), Counter[str]()

    def build(image: tuple[int | str, list[tuple[str, dict[str, Any]]]]) -> Record:
        image_id, people = image
        boxes = [_numbers(person.get("person_box"), 4, f"{where}.person_box") for where, person in people]
        objects = BoxTable()
        hois: list[dict[str, Any]] = []
        left_out: list[dict[str, Any]] = []
        for subject, (where, person) in enumerate(people):
            stated_keys = known_keys.keys() & person.keys()
            for key in (key for key in person if key not in ("image_id", "person_box")):
                field = f"{where}.{str(key)[:40]}"
                if key not in stated_keys:
                    context.drop("keys that are no V-COCO action", f"{source.name}: {field}")
                    continue
                verb, role = known_keys[key]
                *box, score = _numbers(person[key] if role else [person[key]], 5 if role else 1, field)
                verb_and_role = {"verb": verb, "role": role} if role else {"verb": verb}
                if math.isnan(score):
                    context.drop("statements with a score of NaN", f"{source.name}: {field}")
                    left_out.append({"subject": subject, **verb_and_role})
                    continue
                has_object = role and not all(map(math.isnan, box))
                object_ = len(people) + objects.add(box, "") if has_object else None  # role boxes come after the people
                hois.append({"subject": subject, "object": object_, "verb": verb, "score": score, **verb_and_role})
            counts.update(people=1, incomplete=len(stated_keys) != len(known_keys))
        complete = all(known_keys.keys() <= person.keys() for _, person in people)
        if complete:  # no missing key is filled in, but a reader may derive an action's score from its roles
            acting = {(hoi["subject"], hoi["verb"]) for hoi in hois if "role" in hoi}
            left_out = [item for item in left_out if "role" not in item and (item["subject"], item["verb"]) in acting]
        labels = [SUBJECT] * len(people) + [None] * len(objects.boxes)
        record: Record = {"image_id": image_id, "boxes": boxes + objects.boxes, "labels": labels, "hois": hois}
        return {
            **record,
            **({} if complete else {"unstated": UNSTATED}),
            **({"left_out": left_out} if left_out else {}),
        }

    yield from context.each(items, build, source)
    if counts["incomplete"]:
        context.announce(
            f"{counts['incomplete']:,} of {counts['people']:,} dictionaries lack keys: what they do not state counts "
            "as UPT's cache fills it, score 0 and the box [0, 0, 0.1, 0.1]"
        )


def _people(source: Source, context: Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place in the file, dictionary) for each person whose dictionary names an image; its image_id is made an
    integer or a text. A dictionary without an image goes to the error policy."""
    for where, item in source.items():
        image_id = item.get("image_id") if isinstance(item, dict) else None
        number = int(image_id) if isinstance(image_id, float) and image_id.is_integer() else image_id
        if isinstance(number, bool) or not isinstance(number, int | str):
            problem = "has no image_id, the number of its COCO image; add it"
            context.policy.handle(DataError(problem, place=source.name, field=where))
            continue
        yield where, {**item, "image_id": number}


def _keys(vocabulary: Vocabulary) -> dict[str, tuple[str, str]]:
    """Return (verb, role) of each key of a detection, such as `hold_agent` and `hold_obj`, verb by verb; the role is ""
    for the agent, whose key says that the person does the action."""
    return {_key(verb, role): (verb, role) for verb, roles in vocabulary.roles_of.items() for role in ("", *roles)}


def _numbers(values: Any, count: int, field: str) -> list[float]:
    """Return `count` numbers as floats, NaN for null. Raises `DataError` for any other content."""
    try:
        numbers = [math.nan if value is None else float(value) for value in values]  # JSON has null for NaN
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != count or any(map(math.isinf, numbers)):
        expected = {1: "a score", 4: "a box of four numbers", 5: "a box and a score: five numbers"}[count]
        raise DataError(f"is not {expected}", field=field)
    return numbers


# Detections, written


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write the official list of detections, pickled. Raises `DataError` for a statement without a score."""
    people: list[dict[str, Any]] = []
    for record in records:
        require_scores(record, context.target)
        people += _dictionaries(record, context.vocabulary)
    with open_output(path) as output:
        output(pickle.dumps(people, protocol=2))


def _dictionaries(record: Record, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries of a record's people, in the order of their boxes. Each has every key, as the evaluator
    requires: a key that the record does not state gets a score of NaN, which the evaluator skips, or the values of the
    record's `unstated`. If a key has several values, further dictionaries of the same person hold the others."""
    image_id = number_or_name(record["image_id"])
    hois: dict[int, list[dict[str, Any]]] = {}
    for hoi in record["hois"]:
        hois.setdefault(int(hoi["subject"]), []).append(hoi)
    unstated = record.get("unstated")
    left_out: dict[int, set[str]] = {}
    for item in record.get("left_out") or ():
        left_out.setdefault(item["subject"], set()).add(_key(item["verb"], item.get("role")))
    silent: dict[str, Any] = {"score": math.nan, "object": [math.nan] * 4}
    all_people = [index for index, label in enumerate(record["labels"]) if unstated and label == SUBJECT]
    for subject in sorted({*hois, *all_people}):
        silent_keys = left_out.get(subject, set())
        stated = _collect_values(record, hois.get(subject, []), silent_keys)
        for repetition in range(max(map(len, stated.values()), default=1)):
            default = unstated if unstated and repetition == 0 else silent
            person: dict[str, Any] = {"image_id": image_id, "person_box": record["boxes"][subject]}
            for key, (_, role) in _keys(vocabulary).items():
                fallback, values = silent if key in silent_keys else default, stated.get(key, ())
                filler = [*fallback["object"], fallback["score"]] if role else fallback["score"]
                person[key] = values[repetition] if repetition < len(values) else filler
            yield person


def _key(verb: str, role: str | None) -> str:
    """Return the key of a verb and its role in the official list; without a role, that of the action itself."""
    return f"{verb}_{role or 'agent'}"


def _collect_values(record: Record, hois: list[dict[str, Any]], left_out: set[str]) -> dict[str, list[Any]]:
    """Return the values of each key that is stated about one person. hois: the person's triplets. left_out: the keys
    that stay without a value. If only roles of an action are stated, the action gets their best score, unless it is in
    `left_out` or the record says what unstated keys count as."""
    stated: dict[str, list[Any]] = {}
    best: dict[str, float] = {}
    for hoi in hois:
        value, role = hoi["score"], hoi.get("role")
        if role is not None:
            action = _key(hoi["verb"], None)
            best[action] = max(value, best.get(action, -math.inf))
            box = [math.nan] * 4 if hoi["object"] is None else record["boxes"][hoi["object"]]
            value = [*box, value]
        stated.setdefault(_key(hoi["verb"], role), []).append(value)
    if not record.get("unstated"):
        for action, score in best.items():
            if action not in left_out:
                stated.setdefault(action, [score])
    return stated
