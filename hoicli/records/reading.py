"""Image records of a dataset's vocabulary, from lines to checked `Scenes`, with V-COCO's own fields: roles, missing
objects, people without annotations, and unstated statements.

A V-COCO detector makes two kinds of statements about a person: that they do an action (a hoi without `role` and
object), and which object fills a role of it (a hoi with `role`; its object is null if none does). `Scenes` have one
triplet for each statement that the protocols rank:

- Ground truth: a person does every action with an annotated role.
- Predictions with `unstated` (official dumps with missing keys): every box labelled person states every class, those
  left out with the score and the object box that `unstated` gives, as UPT's cache does for the released evaluator.
- Other predictions: a person does an action with the largest score of its roles, unless the record has the action, as
  QPIC's generate_vcoco_official.py computes agent scores.

What a record lists in `left_out` (statements of an official dump whose score is NaN, which the released evaluator
skips) is neither filled in nor derived."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import (
    NO_BOX,
    NUMBERS,
    RawImages,
    integers,
    join_columns,
    numbers,
    raw_images,
    read_columns,
    require,
)
from hoicli.records.detections import ArrayLine, Detections
from hoicli.records.image import problems, rare_field_problems, truth_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Ints, distinct, runs_of, starts_of
from hoicli.records.parsing import Problem, Record
from hoicli.records.scenes import Scenes, add_boxes, add_triplets, are_subjects, class_columns, class_table
from hoicli.vocabulary.labels import Spelled, Vocabulary

FIELDS = ("annotated", "unstated", "left_out")
"""V-COCO's own fields of images; of ground truth the first alone is read."""


def read_scenes(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    scored: bool,
    policy: ErrorPolicy,
    known_ids: Container[str] | None = None,
    processes: int = 1,
) -> Iterator[Scenes]:
    """Yield the image records of a stream as batches of columns, whose names are numbers of the vocabulary.

    scored: whether the records are predictions, which need scores. policy: whether a bad record stops the reading or is
    counted and left out. known_ids: the allowed images, None for any. processes: how many share the work.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on."""
    build = partial(scenes_of, vocabulary=vocabulary, scored=scored)
    check = checker(vocabulary, scored=scored)
    return read_columns(lines, build, check, policy, register=ImageRegister(known_ids), processes=processes)


def checker(
    vocabulary: Vocabulary, *, scored: bool, optional_fields: Container[str] = ()
) -> Callable[[Record], Iterator[Problem]]:
    """Return a function that yields the problems of a record: some for every record that `scenes_of` refuses, none for
    any other (tests/records/test_reading.py compares the two on thousands of broken records).

    optional_fields: the names of further fields of predictions to check, as `image.problems` takes them."""
    if scored:
        return partial(problems, vocabulary=vocabulary, scored=True, optional_fields=optional_fields)
    return partial(truth_problems, vocabulary=vocabulary)


def scenes_of(lines: Sequence[Line], vocabulary: Vocabulary, *, scored: bool) -> Scenes:
    """Return the image records on the lines as columns. Raises an error that `columns.attempt` catches for bad ones."""
    images = [line.image for line in lines if isinstance(line, ArrayLine)]
    if scored and images and len(images) == len(lines):
        return scenes_of_detections(images, vocabulary)
    return numbered_scenes(named_scenes(lines, vocabulary, scored=scored), vocabulary, scored=scored)


def scenes_of_detections(images: Sequence[Detections], vocabulary: Vocabulary) -> Scenes:
    """Return the predictions of images given as arrays as columns, with the actions that roles imply."""
    names = [column.name for column in fields(Detections)[1:]]  # all but the image's id
    column = {name: np.concatenate([getattr(image, name) for image in images]) for name in names}
    box_start = starts_of([len(image.boxes) for image in images])
    hoi_start = starts_of([len(image.score) for image in images])
    first = np.repeat(box_start[:-1], np.diff(hoi_start))  # [T] the row of the first box of each triplet's image
    role_names = [None, *vocabulary.roles]
    raw = RawImages(
        image_ids=[image.image_id for image in images],
        boxes=column["boxes"].astype(np.float64),
        box_start=box_start,
        subject=column["subject"] + first,
        object=np.where(column["object"] < 0, NO_BOX, column["object"] + first),
        score=column["score"],
        hoi_start=hoi_start,
        labels=column["labels"],
        verbs=column["verb"],
        of_hoi={"role": [role_names[role] for role in column["role"].tolist()]} if vocabulary.roles else {},
    )
    return numbered_scenes(raw, vocabulary, scored=True)


def named_scenes(
    lines: Sequence[Line],
    vocabulary: Vocabulary,
    *,
    scored: bool,
    of_image: Sequence[str] = (),
    of_hoi: Mapping[str, Any] | None = None,
) -> RawImages:
    """Return the image records on the lines as columns, with numbers of the vocabulary for labels and verbs, and with
    the fields that `numbered_scenes` needs. of_image, of_hoi: further fields to keep, of records, and of triplets with
    the value for one that lacks the field. Raises an error that `columns.attempt` catches for bad records."""
    has_roles = bool(vocabulary.roles)  # V-COCO: objects and their labels may be null
    objects: Mapping[Any, int] = vocabulary.object_ids
    if has_roles:
        objects = Spelled(dict(vocabulary.object_ids) | {None: -1})
    box_flags = () if scored else ("iscrowd",)
    # FIELDS: V-COCO's own ones, whether a person is annotated and (of predictions alone) what is said of the unstated
    vcoco_fields: Sequence[str] = ()
    if has_roles:
        vcoco_fields = FIELDS if scored else ("annotated",)

    def check(record: Record) -> None:
        """Raise `ValueError` if a rare field of the record is bad."""
        require(not any(rare_field_problems(record, vocabulary, scored=scored)))

    return raw_images(
        lines,
        check=check,
        scores=NUMBERS if scored else (type(None),),
        nulls=has_roles,
        truth=not scored,
        label=objects.__getitem__,
        verb=vocabulary.verb_ids.__getitem__,
        of_image=("image_hois", "ambiguous_hois", "caveats", *box_flags, *vcoco_fields, *of_image),
        of_hoi={"role": None, **(of_hoi or {})} if has_roles else of_hoi or {},
    )


def numbered_scenes(raw: RawImages, vocabulary: Vocabulary, *, scored: bool) -> Scenes:
    """Return images of `named_scenes` as `Scenes`: with classes, image-level labels, flags of boxes, and caveats as a
    bit mask. Raises an error that `columns.attempt` catches for a bad field."""
    labels, verbs = integers(raw.labels), integers(raw.verbs)
    image_hois, ambiguous_hois = raw.each("image_hois"), raw.each("ambiguous_hois")
    known_count, known_object, derived_masks = _known_objects(image_hois, raw, labels, vocabulary, scored=scored)
    image_label_count, image_label, unmarked_masks = _image_labels(image_hois, ambiguous_hois, vocabulary)
    caveat_masks = np.array([caveats.mask(names) if names else 0 for names in raw.each("caveats")], dtype=np.int64)
    crowd = np.zeros(len(labels), dtype=bool)
    if not scored:  # ground truth
        crowd = np.array(raw.box_values("iscrowd", missing=False), dtype=bool)
        caveat_masks |= derived_masks | unmarked_masks
    if vocabulary.roles:
        annotated = np.array(raw.box_values("annotated", missing=True), dtype=bool)
        interaction = _role_classes(raw, verbs, vocabulary)
    else:
        annotated, interaction = np.ones(len(labels), dtype=bool), class_table(vocabulary)[verbs, labels[raw.object]]
    scenes = Scenes(
        **raw.images(),
        labels=labels,
        crowd=crowd,
        annotated=annotated,
        verb=verbs,
        interaction=interaction,
        known_count=known_count,
        known=known_object,
        image_label_count=image_label_count,
        image_label=image_label,
        caveats=caveat_masks,
    )
    return _complete(scenes, raw, vocabulary, scored=scored) if vocabulary.roles else scenes


def scores_by_box(raw: RawImages, scenes: Scenes) -> Floats:
    """Return [B] the score of each box, from the field `scores` of its record; NaN if the record does not have it. The
    object box of V-COCO's `unstated`, which no detector gave, has an infinite score: then only the score of the person
    counts. raw, scenes: the same images before and after `numbered_scenes`."""
    scores = np.full(len(scenes.boxes), np.inf)
    scores[stated_in_record(scenes.box_start, np.diff(raw.box_start))] = numbers(raw.box_values("scores", np.nan))
    return scores


def stated_in_record(starts: Ints, counts: Ints) -> Bools:
    """Return a mask of the boxes, or triplets, that stand in their records; added ones (`unstated`) come last. starts:
    [N + 1] where each image's begin; counts: [N] of those in the record."""
    image = runs_of(starts)
    place_in_image = np.arange(len(image)) - starts[image]
    stated: Bools = place_in_image < counts[image]
    return stated


def _known_objects(
    image_hois: list[Any], raw: RawImages, labels: Ints, vocabulary: Vocabulary, *, scored: bool
) -> tuple[Ints, Ints, Ints]:
    """Return ([N] how many different objects each image is known to contain; [K] these objects, as ids, image by image;
    [N] as a bit mask, the caveat that they were derived from triplets). HICO-DET's Known Object setting evaluates a
    class only on images that are known to contain its object.

    They are the objects in the image-level labels `image_hois` (pairs of verb and object for each image, None without
    them), whatever the verb, and in the image's own triplets. A record without image-level labels has only the latter,
    which lack what is not visible."""
    derived_mask, object_count = caveats.mask([caveats.DERIVED_LABELS]), len(vocabulary.objects)
    derived = np.array([derived_mask if pairs is None else 0 for pairs in image_hois], dtype=np.int64)
    named_keys: list[int] = []
    for image, pairs in enumerate(image_hois):
        if pairs:
            named_keys += [image * object_count + vocabulary.object_ids[name] for _, name in pairs]
    # a key stands for an image and an object: image * object_count + object
    keys = np.array([] if scored else named_keys, dtype=np.int64)
    if not vocabulary.roles and not scored:  # where objects may be absent there is no Known Object setting
        keys = np.append(keys, raw.image_of_hoi * object_count + labels[raw.object])
    image_of_known, known_object = np.divmod(distinct(keys), object_count)
    return np.bincount(image_of_known, minlength=len(image_hois)), known_object, derived


def _image_labels(image_hois: list[Any], ambiguous_hois: list[Any], vocabulary: Vocabulary) -> tuple[Ints, Ints, Ints]:
    """Return ([N] how many image-level labels each image has; [L] these labels: an interaction's number, ~number for an
    ambiguous one; [N] the caveat of records that do not say what is ambiguous).

    image_hois, ambiguous_hois: [verb, object] each, or None. Others are left out."""
    counts: list[int] = []
    labels: list[int] = []
    ids = vocabulary.interaction_ids
    for happening, ambiguous in zip(image_hois, ambiguous_hois, strict=True):
        before = len(labels)
        if happening or ambiguous:
            labels += [ids[verb, name] for verb, name in happening or () if (verb, name) in ids]
            labels += [~ids[verb, name] for verb, name in ambiguous or () if (verb, name) in ids]
        counts.append(len(labels) - before)
    unmarked_mask = caveats.mask([caveats.UNMARKED_AMBIGUOUS])
    masks = [unmarked_mask if ambiguous is None else 0 for ambiguous in ambiguous_hois]
    return (np.array(counts, dtype=np.int64), np.array(labels, dtype=np.int64), np.array(masks, dtype=np.int64))


def concatenate(batches: Iterable[Scenes], vocabulary: Vocabulary) -> Scenes:
    """Return many `Scenes` as one, in their order; one without images if there are none."""
    return join_columns(chain([scenes_of((), vocabulary, scored=False)], batches))


def _role_classes(raw: RawImages, verbs: Ints, vocabulary: Vocabulary) -> Ints:
    """Return [T] the class of each triplet's verb and role. Raises what `columns.attempt` catches for any other."""
    role_names = raw.of_hoi["role"] or [None] * len(verbs)
    roles = np.fromiter(map(_role_ids(vocabulary).__getitem__, role_names), dtype=np.int64, count=len(role_names))
    classes = class_table(vocabulary)[verbs, roles]
    require(not ((classes < 0) | ((roles == 0) & (raw.object >= 0))).any())
    return classes


def _role_ids(vocabulary: Vocabulary) -> dict[str | None, int]:
    """Return, by role, its column in `class_table`. The role None is the verb alone, without a role."""
    return {role: number for number, role in enumerate((None, *vocabulary.roles))}


def _complete(scenes: Scenes, raw: RawImages, vocabulary: Vocabulary, *, scored: bool) -> Scenes:
    """Return `scenes` with the triplets added that records of V-COCO imply, after those in the records: for an image
    with `unstated`, every (person, class) that has no triplet; for another image, the actions of people who only have
    triplets with roles. A statement is what a record says of a person and a class; those in `left_out` are not added.
    raw: the same images, whose fields have been checked; scored: whether they are predictions."""
    unstated, classes = raw.each("unstated"), len(vocabulary.interactions)
    has_unstated = np.array([statement is not None for statement in unstated], dtype=bool)
    statements = [statement for statement in unstated if statement is not None]
    if statements:
        # the object box that all unstated statements of an image share becomes a box of the image, without a label (-1)
        boxes = np.array([statement["object"] for statement in statements], dtype=np.float64)
        scenes, added_boxes, _ = add_boxes(scenes, np.flatnonzero(has_unstated), boxes, np.full(len(boxes), -1))

    table, verbs, roles = class_table(vocabulary), vocabulary.verb_ids, _role_ids(vocabulary)  # table[verb, role]
    left_out_keys = [  # a key stands for a subject box and a class: subject * classes + class
        (scenes.box_start[image] + item["subject"]) * classes + table[verbs[item["verb"]], roles[item.get("role")]]
        for image, items in enumerate(raw.each("left_out"))
        for item in items or ()
    ]
    left_out = np.array(left_out_keys, dtype=np.int64)
    if statements:
        image_of_box = scenes.image_of_box
        # every (person, class) of these images that has neither a triplet nor was left out gets a triplet
        people = np.flatnonzero(are_subjects(scenes.labels, vocabulary) & has_unstated[image_of_box])
        every_key = (people[:, np.newaxis] * classes + np.arange(classes)).ravel()
        stated_keys = np.concatenate([scenes.subject * classes + scenes.interaction, left_out])
        subject, interaction = np.divmod(every_key[~np.isin(every_key, stated_keys)], classes)
        # which of the `statements` is about each new triplet's image
        statement_row = (np.cumsum(has_unstated) - 1)[image_of_box[subject]]
        verb_of, is_agent = class_columns(vocabulary)  # is_agent: the class is a verb alone, which has no object
        scenes = add_triplets(
            scenes,
            image_of_box[subject],
            subject=subject,
            object_=np.where(is_agent[interaction], -1, added_boxes[statement_row]),
            verb=verb_of[interaction],
            interaction=interaction,
            score=np.array([statement["score"] for statement in statements], dtype=np.float64)[statement_row],
        )
    return _add_agents(scenes, vocabulary, ~has_unstated, left_out, scored=scored)


def _add_agents(scenes: Scenes, vocabulary: Vocabulary, images: Bools, left_out: Ints, *, scored: bool) -> Scenes:
    """Return `scenes` with a triplet of the verb alone (V-COCO's agent) for every (subject, verb) that has only
    triplets with roles. Its score is the largest of theirs (NaN in ground truth, if not `scored`), as in QPIC.

    left_out: numbers of (subject's box, class) not to add."""
    verb_of, is_agent = class_columns(vocabulary)
    verb_count = len(vocabulary.verbs)
    key = scenes.subject * verb_count + scenes.verb  # (subject, verb) of each triplet as one number
    is_action = is_agent[scenes.interaction]
    # the agents among what was left out; len(is_agent) is the number of classes
    subject, left_out_class = np.divmod(left_out[is_agent[left_out % len(is_agent)]], len(is_agent))
    # what needs no triplet: the (subject, verb) that have one, and those that were left out
    taken = np.concatenate([key[is_action], subject * verb_count + verb_of[left_out_class]])
    candidates = np.flatnonzero(~is_action & images[scenes.image_of_hoi] & ~np.isin(key, taken))
    candidates = candidates[np.argsort(key[candidates], kind="stable")]
    agent_keys, first = np.unique(key[candidates], return_index=True)
    if not len(agent_keys):
        return scenes
    score = np.maximum.reduceat(scenes.score[candidates], first) if scored else np.full(len(agent_keys), np.nan)
    subject, verb = np.divmod(agent_keys, verb_count)
    return add_triplets(
        scenes,
        scenes.image_of_hoi[candidates[first]],
        subject=subject,
        object_=np.full(len(agent_keys), -1, dtype=np.int64),
        verb=verb,
        interaction=class_table(vocabulary)[verb, 0],
        score=score,
    )
