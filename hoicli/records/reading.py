"""Image records of a dataset's vocabulary, from lines to checked `Scenes`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import BATCH, NUMBERS, Made, integers, made_of_columns, require, typed
from hoicli.records.image import contradicts_itself, problems, truth_problems
from hoicli.records.images import RawImages, concatenated, raw_images
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Ints
from hoicli.records.parsing import Record
from hoicli.records.roles import RoleColumns, class_table
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Spelled, Vocabulary


def read_scenes(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    scored: bool,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    batch: int = BATCH,
    processes: int = 1,
) -> Iterator[Scenes]:
    """The image records of a stream as batches of columns, read by some `processes`. `scored`: predictions, which need
    scores.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on; a
    record whose image is not in `known` is bad too.
    """
    return made_of_scenes(
        lines,
        lambda scenes: scenes,
        vocabulary,
        scored=scored,
        policy=policy,
        known=known,
        batch=batch,
        processes=processes,
    )


def made_of_scenes(
    lines: Iterable[Line],
    make: Callable[[Scenes], Made | None],
    vocabulary: Vocabulary,
    *,
    scored: bool,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    batch: int = BATCH,
    processes: int = 1,
) -> Iterator[Made]:
    """What `make` makes of each batch that `read_scenes` reads, in its order; it has the batch's `image_ids`, and is
    None if one of them is not in `known`. Several `processes` take turns with the batches."""
    check = partial(problems, scored=True, besides=()) if scored else truth_problems
    return made_of_columns(
        lines,
        partial(scenes_of, vocabulary=vocabulary, scored=scored),
        make,
        partial(check, vocabulary=vocabulary),
        policy,
        register=ImageRegister(known),
        batch=batch,
        processes=processes,
    )


def scenes_of(
    lines: Iterable[Line], vocabulary: Vocabulary, *, scored: bool, besides: Callable[[Record], None] | None = None
) -> Scenes:
    """The lines as columns; `besides` is called with each record, for its other fields. Raises an exception that
    `columns.attempt` expects for a record with `records.problems`. The two agree on what a good record is;
    tests/records/test_reading.py compares them on thousands of broken records.
    """
    roles = RoleColumns(vocabulary, scored=scored) if vocabulary.roles else None
    objects = Spelled[str | None](dict(vocabulary.object_ids) | ({} if roles is None else {None: -1}))
    image_hois: list[tuple[Any, Any]] = []
    masks: list[int] = []

    def add(record: Record) -> None:
        require(scored or not contradicts_itself(record))
        image_hois.append((record.get("image_hois"), record.get("ambiguous_hois")))
        masks.append(caveats.of_record(record.get("caveats")))
        if roles is not None:
            roles.add(record)
        if besides is not None:
            besides(record)

    raw = raw_images(
        lines,
        add,
        scores=NUMBERS if scored else (type(None),),
        nulls=roles is not None,
        truth=not scored,
        label=objects.__getitem__,
        verb=vocabulary.verb_ids.__getitem__,
    )
    labels, verbs = integers(raw.labels), integers(raw.verbs)
    return numbered_scenes(raw, labels, verbs, roles, vocabulary, scored=scored, image_hois=image_hois, masks=masks)


def numbered_scenes(
    raw: RawImages,
    labels: Ints,
    verbs: Ints,
    roles: RoleColumns | None,
    vocabulary: Vocabulary,
    *,
    scored: bool,
    image_hois: list[tuple[Any, Any]] | None = None,
    masks: list[int] | None = None,
) -> Scenes:
    """`raw` with its labels [B] and verbs [T] as numbers of the vocabulary. roles: what the vocabulary with roles needs
    to know. image_hois, masks: (image_hois, ambiguous_hois) and the caveats of each image, None without any.

    Raises `ValueError` for a role that a verb does not have.
    """
    images = len(raw.image_ids)
    image_hois = image_hois or [(None, None)] * images
    known_count, known, derived = _known_objects(
        [pairs for pairs, _ in image_hois], raw, labels, vocabulary, scored=scored
    )
    label_count, label, unmarked = _image_labels(image_hois, vocabulary)
    scenes = Scenes(
        **raw.images(),
        labels=labels,
        annotated=np.ones(len(labels), dtype=bool) if roles is None else roles.annotated(raw),
        verb=verbs,
        interaction=(
            class_table(vocabulary)[verbs, labels[raw.object]]
            if roles is None
            else roles.interactions(verbs, raw.object)
        ),
        known_count=known_count,
        known=known,
        label_count=label_count,
        label=label,
        caveats=np.array(masks or [0] * images, dtype=np.int64) | (0 if scored else derived | unmarked),
    )
    return scenes if roles is None else roles.completed(scenes)


def _known_objects(
    image_hois: list[Any], raw: RawImages, labels: Ints, vocabulary: Vocabulary, *, scored: bool
) -> tuple[Ints, Ints, Ints]:
    """(`known_count` and `known` of `Scenes`, [N] the caveat mask of images whose objects come from triplets).
    Image-level labels name the objects of any verb, including `no_interaction` and invisible instances; a record
    without them uses its own triplets, which miss invisible instances.
    """
    without, objects = caveats.mask([caveats.DERIVED_LABELS]), len(vocabulary.objects)
    derived = np.array([without if pairs is None else 0 for pairs in image_hois], dtype=np.int64)
    named: list[int] = []
    for row, pairs in enumerate(image_hois):
        if pairs is None:
            continue
        typed([pairs], list)
        typed(pairs, list)
        typed(chain.from_iterable(pairs), str)
        named += [row * objects + vocabulary.object_ids[name] for _, name in pairs]
    keys = np.array([] if scored else named, dtype=np.int64)
    if not vocabulary.roles and not scored:  # where objects may be absent there is no Known Object setting
        keys = np.append(keys, raw.image_of_hoi * objects + labels[raw.object])
    image, known = np.divmod(np.unique(keys), objects)
    return np.bincount(image, minlength=len(image_hois)), known, derived


def _image_labels(image_hois: list[tuple[Any, Any]], vocabulary: Vocabulary) -> tuple[Ints, Ints, Ints]:
    """`label_count` and `label` of `Scenes` from (image_hois, ambiguous_hois) of each record, and [N] the caveat mask
    of images that do not say what is ambiguous. Labels of no interaction are left out."""
    counts: list[int] = []
    labels: list[int] = []
    ids = vocabulary.interaction_ids
    for happening, ambiguous in image_hois:
        before = len(labels)
        labels += [ids[verb, name] for verb, name in happening or () if (verb, name) in ids]
        if ambiguous is not None:
            typed([ambiguous], list)
            typed(ambiguous, list)
            typed(chain.from_iterable(ambiguous), str)
            require(all(name in vocabulary.object_ids for _, name in ambiguous))
            labels += [~ids[verb, name] for verb, name in ambiguous if (verb, name) in ids]
        counts.append(len(labels) - before)
    unmarked = caveats.mask([caveats.UNMARKED_AMBIGUOUS])
    masks = [unmarked if ambiguous is None else 0 for _, ambiguous in image_hois]
    return (np.array(counts, dtype=np.int64), np.array(labels, dtype=np.int64), np.array(masks, dtype=np.int64))


def concatenate(batches: Iterable[Scenes], vocabulary: Vocabulary) -> Scenes:
    """Many `Scenes` as one, in their order; an empty one for none."""
    return concatenated(chain([scenes_of((), vocabulary, scored=False)], batches))
