"""Image records with free-text labels as columns, for an open vocabulary.

A *name* is a label together with the WordNet sense that the record may give for it (`verb_synset` of a triplet,
`synsets` of the boxes). Names are numbered in order of appearance; an action without an object has the name NOTHING.
Scores may be missing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np

from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import NO_BOX, NUMBERS, Images, check_types, join_columns, raw_images, read_columns
from hoicli.records.image import NULLS, problems, score_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Ints, rank_by_id, starts_of
from hoicli.records.parsing import Problem, Record, is_number

Name = tuple[str | None, str | None]
"""(label as it is spelled in the record, its WordNet sense as the record gives it, or None)."""

NOTHING: Name = (None, None)
"""The object of an action without object."""

UNLABELLED: Name = (None, "")
"""An object whose label is null: V-COCO's predictions do not say what it is."""

Key = TypeVar("Key")


class Numbered(dict[Key, int]):
    """A dictionary that numbers its keys: looking up a new key adds it with the next number, from 0 on."""

    def __missing__(self, key: Key) -> int:
        """Add a key that was looked up and is not there, and return its number."""
        number = self[key] = len(self)
        return number

    def numbers_of(self, keys: Sequence[Key]) -> Ints:
        """Return [M] the number of each key; new keys are added."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int64, count=len(keys))


@dataclass(frozen=True)
class Triplets(Images):
    """Images whose labels are free text.

    box_label [B]: the label of each box, as a row of `labels`, which has the spelling of the record, or "" for null.
    verb, label [T]: the names (label and sense) of each triplet's verb and object, as rows of `verbs` and `objects`.
    role [T]: whether the triplet names a role (V-COCO). caveats [N]: the caveats of each record as a bit mask
    (`records.caveats`). size [N, 2]: the width and height of each image, NaN where the record does not say."""

    box_label: Ints
    verb: Ints
    label: Ints
    role: Bools
    labels: list[str]
    verbs: list[Name]
    objects: list[Name]
    caveats: Ints
    size: Floats

    def select_images(self, keep: Bools) -> Triplets:
        """Return only the images of a mask [N], with their boxes and triplets; names keep their numbers."""
        keep_box = keep[self.image_of_box]
        keep_hoi = keep[self.image_of_hoi]
        # where each box that is kept will stand; at the end what NO_BOX (-1) looks up, which is NO_BOX again
        new_row = np.append(np.cumsum(keep_box) - 1, NO_BOX)
        columns = {name: getattr(self, name)[keep_box] for name in ("boxes", "box_label")}
        columns |= {name: getattr(self, name)[keep_hoi] for name in ("verb", "label", "role", "score")}
        columns |= {name: new_row[getattr(self, name)[keep_hoi]] for name in ("subject", "object")}
        columns |= {name: starts_of(np.diff(getattr(self, name))[keep]) for name in ("box_start", "hoi_start")}
        columns |= {"caveats": self.caveats[keep], "size": self.size[keep]}
        if len(self.hashes):  # they may not be computed
            columns["hashes"] = self.hashes[keep]
        return replace(self, image_ids=list(compress(self.image_ids, keep.tolist())), **columns)

    def sort_keys(self, rows: Ints) -> list[Ints | Floats]:
        """Return columns for `numpy.lexsort` of these triplets: by names of object and verb, role, boxes (`ends`). The
        record's order plays no role."""
        # repr, since a name may contain None, which cannot be compared with text
        verb_rank = rank_by_id([repr(name) for name in self.verbs])
        label_rank = rank_by_id([repr(name) for name in self.objects])
        return [
            *self.ends(rows),
            self.role[rows].astype(np.int64),
            verb_rank[self.verb[rows]],
            label_rank[self.label[rows]],
        ]

    def select_triplets(self, keep: Bools | Ints) -> Triplets:
        """Return only some triplets, with all images. keep: a mask [T], or rows, image by image."""
        names = ("subject", "object", "verb", "label", "role", "score")
        columns = {name: getattr(self, name)[keep] for name in names}
        counts = np.bincount(self.image_of_hoi[keep], minlength=len(self.image_ids))
        return replace(self, **columns, hoi_start=starts_of(counts))


def read_triplets(
    lines: Iterable[Line],
    *,
    policy: ErrorPolicy,
    known_ids: Container[str] | None = None,
    truth: bool = False,
    unlabelled: bool = False,
) -> list[Triplets]:
    """Return all image records of a stream in batches; without records, one empty batch.

    known_ids: the images that may occur, None for any. truth: whether there are no scores. unlabelled: whether labels
    may be null. Raises `DataError` for the first bad record, unless the policy skips it."""
    build = partial(named_images, truth=truth, unlabelled=unlabelled)
    check = partial(open_problems, truth=truth, unlabelled=unlabelled)
    parts = list(read_columns(lines, build, check, policy, register=ImageRegister(known_ids)))
    return parts or [build([])]


def merge(parts: Sequence[Triplets]) -> Triplets:
    """Return the images of all parts (at least one) joined in order; labels and names are numbered anew."""
    labels = Numbered[str]()
    verbs = Numbered[Name]()
    objects = Numbered[Name]()
    numbered = [
        replace(
            part,
            box_label=labels.numbers_of(part.labels)[part.box_label],
            verb=verbs.numbers_of(part.verbs)[part.verb],
            label=objects.numbers_of(part.objects)[part.label],
        )
        for part in parts
    ]
    return replace(join_columns(numbered), labels=list(labels), verbs=list(verbs), objects=list(objects))


def open_problems(record: Record, *, truth: bool = False, unlabelled: bool = False) -> Iterator[Problem]:
    """Yield a problem for everything in a record that `named_images` cannot read, in reading order.

    The rules are those of `image.problems` without a vocabulary, except that scores may be missing, an object may be
    null, image-level labels are not checked, and senses must be texts. unlabelled: whether labels may be null."""
    nulls = NULLS if unlabelled else ("object",)  # NULLS are labels and objects
    for problem in problems(record, None, scored=False, optional_fields=(), nulls=nulls):
        if not problem.field.startswith(("image_hois", "ambiguous_hois")):
            yield problem
    hois = record.get("hois")
    for index, hoi in enumerate(hois if type(hois) is list else ()):
        if type(hoi) is not dict:
            continue
        if hoi.get("score") is not None and not is_number(hoi["score"]):
            yield Problem(f"hois[{index}].score", "no finite number; give one, or leave the score out")
        if type(hoi.get("verb_synset")) not in (str, type(None)):
            yield Problem(f"hois[{index}].verb_synset", "no sense; name one, for example ride.v.10, or leave it out")
    boxes = record.get("boxes")
    synsets = record.get("synsets")
    if synsets is None:
        pass
    elif type(synsets) is not list or not all(type(sense) in (str, type(None)) for sense in synsets):
        yield Problem("synsets", "must be an array of senses (or null), one a box, for example train.n.01")
    elif type(boxes) is list and len(synsets) != len(boxes):
        yield Problem("synsets", f"{len(synsets)} senses for {len(boxes)} boxes; give one a box, null where unknown")
    if truth:
        yield from score_problems(record)


def named_images(lines: list[Line], *, truth: bool = False, unlabelled: bool = False) -> Triplets:
    """Return the records on the lines as columns. truth: without scores. unlabelled: labels may be null. Raises what
    `columns.attempt` catches for `open_problems`."""
    score_types = (type(None),) if truth else (*NUMBERS, type(None))
    raw = raw_images(
        lines,
        scores=score_types,
        nulls=True,
        truth=truth,
        of_image=("caveats", "synsets", "width", "height"),
        of_hoi={"verb_synset": None, "role": None},
    )
    box_senses = raw.box_values("synsets", None)
    verb_senses = raw.of_hoi["verb_synset"]
    roles = raw.of_hoi["role"]
    check_types(box_senses, str, type(None))
    check_types(verb_senses, str, type(None))
    # Numbered: gives each new key the next number. A name is (label, its WordNet sense or None).
    labels = Numbered[str]()
    verbs = Numbered[Name]()
    objects = Numbered[Name]()
    names_of_boxes = list(zip(raw.labels, box_senses, strict=True))
    if unlabelled and None in raw.labels:  # a null label has a name of its own, UNLABELLED, and "" among the labels
        names_of_boxes = [name if name[0] is not None else UNLABELLED for name in names_of_boxes]
        raw = replace(raw, labels=["" if label is None else label for label in raw.labels])
    box_label = labels.numbers_of(list(raw.labels))
    verb = verbs.numbers_of(list(zip(raw.verbs, verb_senses or [None] * len(raw.verbs), strict=True)))
    check_types(labels, str)
    check_types([text for text, _ in verbs], str)
    names_of_boxes.append(NOTHING)  # which is what NO_BOX (-1) looks up
    label = objects.numbers_of([names_of_boxes[row] for row in raw.object.tolist()])
    has_role = [role is not None for role in roles] or np.zeros(len(verb))
    caveat_masks = [caveats.read_caveats(caveat_names) for caveat_names in raw.each("caveats")]
    widths = [_pixels(side) for side in raw.each("width")]
    heights = [_pixels(side) for side in raw.each("height")]
    return Triplets(
        **raw.images(),
        box_label=box_label,
        verb=verb,
        label=label,
        labels=list(labels),
        verbs=list(verbs),
        objects=list(objects),
        role=np.array(has_role, dtype=bool),
        caveats=np.array(caveat_masks, dtype=np.int64),
        size=np.array([widths, heights], dtype=np.float64).T,
    )


def _pixels(side: Any) -> float:
    """Return a record's `width` or `height` in pixels as a float; NaN if it is missing or no positive number."""
    return float(side) if is_number(side) and side > 0 else np.nan
