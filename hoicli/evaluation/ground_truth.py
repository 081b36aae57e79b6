"""The ground truth of a dataset, indexed for matching; and which images and triplets are in each part of a slice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.named import truth_settings
from hoicli.errors import DataError
from hoicli.evaluation.filters import UNCOUNTED
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import FILE, IMAGES, Part, Slice
from hoicli.records import caveats
from hoicli.records.fingerprint import Hashes, hash_order, row_hashes, total_of
from hoicli.records.kit import Bools, Floats, Ints, among, distinct, expand_runs, find, run_starts, starts_of
from hoicli.records.scenes import Scenes, are_subjects, box_kinds
from hoicli.vocabulary.labels import Vocabulary

Argument = TypeVar("Argument", bound=Hashable)
Column = TypeVar("Column", bound="NDArray[Any]")


def _cache_columns(method: Callable[[GroundTruth, Argument], Column]) -> Callable[[GroundTruth, Argument], Column]:
    """Decorate a method of `GroundTruth` so that it is computed once for each argument (a protocol, slice or part).
    The column that it returns is shared, and so read-only."""

    @wraps(method)
    def cached(self: GroundTruth, argument: Argument) -> Column:
        key = (method.__name__, argument)
        if key not in self.kept:
            self.kept[key] = method(self, argument)
            self.kept[key].setflags(write=False)
        column: Column = self.kept[key]
        return column

    return cached


class Annotations:
    """An index of the ground-truth triplets of a few images, which finds them by owner and class. The owner is an image
    or a person. Triplets of one owner and class are in the order of annotation. The time that a search takes does not
    depend on how many other images the ground truth has."""

    def __init__(self, owner: Ints, triplet: Ints, interaction: Ints, classes: int) -> None:
        """owner, triplet, interaction [K]: the owner of each triplet, its row in the ground truth, and its class, -1
        for none; a triplet without a class is never found. classes: how many classes there are."""
        self._classes = classes
        key = np.where(interaction < 0, -1, owner * classes + interaction)
        order = np.argsort(key, kind="stable")
        self._triplet, key = triplet[order], key[order]
        first = run_starts(key)
        self._keys, self._bounds = key[first], np.append(first, len(key))

    def find(self, owner: Ints, interaction: Ints) -> tuple[Ints, Ints, Ints]:
        """Look up each pair of owner and class [M]. Return the rows of the arguments that have triplets, and for each
        of these rows where its triplets begin in the index, and how many there are."""
        keys = owner * self._classes + interaction
        key_index, known = find(self._keys, keys)
        rows = np.flatnonzero(known & (owner >= 0) & (interaction >= 0))
        first = self._bounds[key_index[rows]]
        return rows, first, self._bounds[key_index[rows] + 1] - first

    def join_rows(self, rows: Ints, first: Ints, count: Ints) -> tuple[Ints, Ints]:
        """Return every pair of a row and one of its triplets, as two columns, given what `find` returned (or some rows
        of it): the rows ascending, the triplets as rows of `scenes`."""
        run, entry = expand_runs(first, count)
        return rows[run], self._triplet[entry]


class GroundTruth:
    """All annotated images of a dataset, indexed for joining. Columns that every batch needs are computed once (and
    read-only): the time of a batch must not depend on the size of the ground truth.
    """

    def __init__(self, scenes: Scenes, vocabulary: Vocabulary, name: str = "ground truth") -> None:
        """name: what messages call the ground truth."""
        self.scenes = scenes
        self.vocabulary = vocabulary
        self.name = name
        self.position = {image_id: place for place, image_id in enumerate(scenes.image_ids)}
        self.told_of_labels = False
        """Whether a note said that its image-level labels are derived."""
        self.kept: dict[tuple[str, Hashable], Any] = {}
        self.caveats = scenes.every_caveat & caveats.TRUTH

    def serves(self, protocol: Protocol) -> bool:
        """Return whether the protocol can be computed, given the caveats of the ground truth."""
        return not protocol.refuses & self.caveats

    def settings(self, protocol: Protocol) -> dict[str, str]:
        """Return the settings that the ground truth adds to the signatures of a protocol's rows: which annotations it
        has, in which order where the protocol depends on it, and caveats."""
        return {
            **self.signed,
            **truth_settings(self.total, self.order(protocol)),
            **caveats.settings(self.caveats & protocol.depends_on),
        }

    @property
    def signed(self) -> dict[str, str]:
        """The settings in signatures that say which annotations these are, and whether most are left uncounted."""
        return {**truth_settings(self.total), **(UNCOUNTED if self.uncounted else {})}

    @cached_property
    def classless(self) -> Ints:
        """[N, 2] how many triplets of each image have no class, and how many triplets it has."""
        image = self.scenes.image_of_hoi[self.scenes.interaction < 0]
        start = self.scenes.hoi_start
        return np.stack([np.bincount(image, minlength=len(start) - 1), np.diff(start)], axis=1)

    @cached_property
    def uncounted(self) -> bool:
        """Whether more than half of the triplets have no class. Numbers, which would be about the smaller part alone,
        then need the user's leave (`allow_uncounted`)."""
        return 2 * int((self.scenes.interaction < 0).sum()) > len(self.scenes.interaction)

    @cached_property
    def total(self) -> int:
        """The sum of the images' hashes, from which the digest in signatures is made."""
        return total_of(self.scenes.hashes)

    def order(self, protocol: Protocol) -> int:
        """Return the sum of the images' `orders` under a protocol, for signatures."""
        return total_of(self.orders(protocol))

    def orders(self, protocol: Protocol) -> Hashes:
        """Return [N] a hash, for each image, of the order of annotations that results under a protocol may depend on: a
        prediction belongs to the first of several triplets of its class, or people, that it overlaps equally. The hash
        is 0 where no order would change a result."""
        if protocol.whole_image:
            return np.zeros(len(self.scenes.image_ids), dtype=np.uint64)
        return self._orders_of_people if protocol.person_first else self._orders_of_triplets

    @cached_property
    def _orders_of_triplets(self) -> Hashes:
        """[N] a hash of the order in which each image lists the triplets of one class, which differ by their boxes."""
        rows = np.flatnonzero(self.scenes.interaction >= 0)
        item = row_hashes(*self._corners(rows).T)
        return hash_order(self.scenes.image_of_hoi[rows], self.scenes.interaction[rows], item, self.scenes.hashes)

    @cached_property
    def _orders_of_people(self) -> Hashes:
        """[N] a hash of the order in which each image lists its people, who differ by their boxes and actions."""
        scenes, (rows, _) = self.scenes, self.people
        actions = np.zeros(len(scenes.boxes), dtype=np.uint64)
        every_triplet = np.arange(len(scenes.subject))
        np.add.at(actions, scenes.subject, row_hashes(scenes.interaction, *self._corners(every_triplet).T))
        item = row_hashes(*scenes.boxes[rows].T, actions[rows])
        return hash_order(scenes.image_of_box[rows], np.zeros_like(rows), item, scenes.hashes)

    @cached_property
    def order_of_boxes(self) -> int:
        """The sum of hashes of the order in which each image lists the boxes of one label; compare `order`."""
        scenes = self.scenes
        rows = np.flatnonzero(scenes.labels >= 0)
        item = row_hashes(*scenes.boxes[rows].T, scenes.crowd[rows])
        return total_of(hash_order(scenes.image_of_box[rows], scenes.labels[rows], item, scenes.hashes))

    def _corners(self, rows: Ints) -> Floats:
        """Return [M, 8] the corners of the subject and object box of some triplets, zeros for no object."""
        boxes = np.concatenate([self.scenes.boxes, np.zeros((1, 4))])  # no object is -1: the last row
        return np.concatenate([boxes[self.scenes.subject[rows]], boxes[self.scenes.object[rows]]], axis=1)

    @cached_property
    def image_labels(self) -> tuple[Ints, Ints]:
        """The classes that happen in each image, and those that are ambiguous there, as two ascending columns of keys
        (image * interactions + class). In an image without image-level labels, the classes of its triplets happen."""
        scenes, classes = self.scenes, len(self.vocabulary.interactions)
        image = np.repeat(np.arange(len(scenes.image_ids)), scenes.label_count)
        unclear = scenes.label < 0  # an ambiguous class c is stored as ~c
        stated = image * classes + np.where(unclear, ~scenes.label, scenes.label)
        derived = (scenes.caveats & caveats.mask([caveats.DERIVED_LABELS]) > 0)[scenes.image_of_hoi]
        labelled_here = (scenes.image_of_hoi * classes + scenes.interaction)[derived & (scenes.interaction >= 0)]
        return distinct(np.concatenate([stated[~unclear], labelled_here])), distinct(stated[unclear])

    def rows_of(self, image_ids: Sequence[str]) -> Ints:
        """Return [M] the index of each image in `scenes`. Raises `DataError` for an image that is not there."""
        try:
            return np.fromiter(map(self.position.__getitem__, image_ids), dtype=np.int64, count=len(image_ids))
        except KeyError as error:
            raise DataError(f"image {error.args[0]!r} is not in the ground truth", field="image_id") from None

    def unseen(self, protocol: Protocol, seen_ids: Iterable[str]) -> tuple[list[str], Ints, Ints]:
        """Return the ids of the images that are not among `seen_ids`, and two columns about the triplets that a
        protocol counts in them: the image of each, as an index into these ids, and its row in `scenes`."""
        known_ids = set(seen_ids)
        absent = np.array([image_id not in known_ids for image_id in self.position], dtype=bool)
        rows = np.flatnonzero(self.counted_triplets(protocol) & absent[self.scenes.image_of_hoi])
        image_ids = [self.scenes.image_ids[image] for image in np.flatnonzero(absent).tolist()]
        return image_ids, (np.cumsum(absent) - 1)[self.scenes.image_of_hoi[rows]], rows

    def index_by_class(self, images: Ints) -> Annotations:
        """Return an index of the triplets of some images, whose owner is the image, as an index into `images`."""
        owner, rows = self._triplets_of(images)
        return Annotations(owner, rows, self.scenes.interaction[rows], len(self.vocabulary.interactions))

    def index_by_person(self, images: Ints) -> Annotations:
        """Return an index of the triplets of some images, whose owner is the person (the row of the subject's box)."""
        _, rows = self._triplets_of(images)
        subject, interaction = self.scenes.subject[rows], self.scenes.interaction[rows]
        return Annotations(subject, rows, interaction, len(self.vocabulary.interactions))

    def _triplets_of(self, images: Ints) -> tuple[Ints, Ints]:
        """Return, of each triplet of some images, the image as an index into `images`, and the row in `scenes`."""
        start = self.scenes.hoi_start
        return expand_runs(start[images], start[images + 1] - start[images])

    @cached_property
    def _known_start(self) -> Ints:
        """[N + 1] where the known objects of each image begin."""
        return starts_of(self.scenes.known_count)

    def knows(self, images: Ints, image: Ints, label: Ints) -> Bools:
        """Return [M] whether an image-level label of `image` [M] (indexes `images`) names the object `label` [M]."""
        start = self._known_start
        owner, entry = expand_runs(start[images], start[images + 1] - start[images])
        known_labels = np.zeros((len(images), len(self.vocabulary.objects)), dtype=bool)
        known_labels[owner, self.scenes.known[entry]] = True
        is_known: Bools = known_labels[image, label]
        return is_known

    @cached_property
    def kinds(self) -> Ints:
        """[B] the label by which each box is compared (`box_kinds`)."""
        return box_kinds(self.scenes.labels, self.vocabulary)

    @cached_property
    def people(self) -> tuple[Ints, Ints]:
        """[P] the boxes labelled person (a label of `subjects`), and [N + 1] where those of each image begin."""
        rows = np.flatnonzero(are_subjects(self.scenes.labels, self.vocabulary))
        return rows, np.searchsorted(rows, self.scenes.box_start)

    def scored_classes(self, protocol: Protocol) -> Bools:
        """Return [interactions] whether a protocol scores each class."""
        numbers = np.arange(len(self.vocabulary.interactions))
        if not protocol.classes:
            return numbers >= 0
        return among(numbers, self.vocabulary.members(protocol.classes))

    @_cache_columns
    def members(self, part: Part) -> Bools:
        """Return [T] whether each triplet is in a part of the data, by its image or by its boxes."""
        members: Bools = self.slice_members(part.slice)[part.number]
        return members[self.scenes.image_of_hoi] if part.slice.of == IMAGES else members

    @_cache_columns
    def slice_members(self, slice_: Slice) -> Bools:
        """Return [parts, N or T] whether each image, or each triplet, is in each part of a slice."""
        parts_of = image_parts if slice_.of == IMAGES else triplet_parts
        return parts_of(slice_, self.scenes, self.vocabulary)

    @_cache_columns
    def counted_triplets(self, protocol: Protocol) -> Bools:
        """Return [T] whether a protocol counts each triplet of the ground truth."""
        if protocol.view:
            on_all_data = self.counted_triplets(protocol.matching)
            return on_all_data if protocol.part is None else on_all_data & self.members(protocol.part)
        counts = self.scenes.interaction >= 0
        if protocol.classes:
            counts &= self.scored_classes(protocol)[self.scenes.interaction]
        if protocol.drop_no_interaction:
            counts &= ~among(self.scenes.interaction, self.vocabulary.no_interaction_ids)
        return counts

    def annotated_classes(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Return what is to be found under a protocol, triplets or image-level labels: the image and class of each."""
        if protocol.whole_image:
            return np.divmod(self.image_labels[0], len(self.vocabulary.interactions))
        rows, columns = self.counted_triplets(protocol), (self.scenes.image_of_hoi, self.scenes.interaction)
        image, interaction = columns if rows.all() else (column[rows] for column in columns)
        return image, interaction

    @_cache_columns
    def counted_before(self, protocol: Protocol) -> Ints:
        """Return [T + 1] how many triplets a protocol counts before each one."""
        return starts_of(self.counted_triplets(protocol))

    @_cache_columns
    def present_boxes(self, protocol: Protocol) -> Bools:
        """Return [B] whether a protocol uses each ground-truth box: a box of dropped triplets alone is not used."""
        dropped, used = (np.zeros(len(self.scenes.boxes), dtype=bool) for _ in range(2))
        counted = self.counted_triplets(protocol.matching)
        for rows, boxes in ((~counted, dropped), (counted, used)):
            boxes[self.scenes.subject[rows]] = True
            boxes[self.scenes.object[rows]] = True
        return used | ~dropped

    @_cache_columns
    def annotated_images(self, protocol: Protocol) -> Bools:
        """Return [N] whether a protocol counts predictions in each image."""
        if protocol.images == "all":
            return np.ones(len(self.scenes.image_ids), dtype=bool)
        if protocol.images == "boxes":
            return np.diff(self.scenes.box_start) > 0
        return np.diff(self.counted_before(protocol.matching)[self.scenes.hoi_start]) > 0


def image_parts(slice_: Slice, truth: Scenes, vocabulary: Vocabulary) -> Bools:
    """Return [parts, N] whether each image is in each part. Raises `DataError` for a FILE that names none of them."""
    if slice_.measure == FILE:
        members = np.zeros((len(slice_.parts), len(truth.image_ids)), dtype=bool)
        for image, image_id in enumerate(truth.image_ids):
            members[list(slice_.images.get(image_id, ())), image] = True
        if not members.any():
            raise DataError(
                f"names {min(slice_.images)!r} and others, but no image of the ground truth", place=slice_.name
            )
        return members
    if slice_.measure == "people":
        people = np.isin(truth.labels, sorted(vocabulary.subject_ids))
        counts = _distinct(truth.image_of_box[people], truth.boxes[people], len(truth.image_ids))
    else:
        paired = truth.object >= 0
        pairs = np.stack([truth.subject[paired], truth.object[paired]], axis=1)
        counts = _distinct(truth.image_of_hoi[paired], pairs, len(truth.image_ids))
    return _one_of(np.searchsorted(slice_.cuts, counts, side="right"), len(slice_.parts))


def triplet_parts(slice_: Slice, scenes: Scenes, vocabulary: Vocabulary) -> Bools:
    """Return [parts, T] whether each triplet, predicted or annotated, is in each part of a slice of triplets, by its
    boxes. A triplet whose subject has no label of a subject is in no part of the slice `subject`."""
    if slice_.measure == "subject":
        labels = scenes.labels[scenes.subject] if len(scenes.labels) else scenes.subject
        members: Bools = np.array([[vocabulary.object_ids[part]] for part in slice_.parts]) == labels
        return members
    if not len(scenes.boxes):
        return _one_of(np.full(len(scenes.subject), len(slice_.parts) - 1), len(slice_.parts))
    subject, object_ = scenes.boxes[scenes.subject], scenes.boxes[scenes.object]
    value = object_area(object_) if slice_.measure == "objects" else centre_distance(subject, object_)
    number = np.searchsorted(slice_.cuts, value, side="right")
    number[scenes.object < 0] = len(slice_.parts) - 1  # `no_object`, the last part in a dataset with roles
    return _one_of(number, len(slice_.parts))


def object_area(boxes: Floats) -> Floats:
    """Return [M] the area of each box [M, 4], (x2 - x1) * (y2 - y1) in pixels; 0 for an inverted box."""
    with np.errstate(over="ignore"):
        area: Floats = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0).prod(axis=1)
    return area


def centre_distance(subject: Floats, object_: Floats) -> Floats:
    """Return [M] the distance of the centres of two boxes, divided by the mean of their diagonals; 0 for one centre.

    So it does not depend on the size of the image: two equal squares side by side are 0.71 apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        apart = _length((subject[:, :2] + subject[:, 2:]) / 2 - (object_[:, :2] + object_[:, 2:]) / 2)
        size = (_length(subject[:, 2:] - subject[:, :2]) + _length(object_[:, 2:] - object_[:, :2])) / 2
        distance = np.where(apart > 0, np.inf, 0.0)
        np.divide(apart, size, out=distance, where=size > 0)
    return distance


def _length(vectors: Floats) -> Floats:
    length: Floats = np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2)
    return length


def _distinct(image: Ints, rows: Floats | Ints, images: int) -> Ints:
    """Return [images] how many different rows each image has. image, rows: the image of each row, and the rows."""
    keys = np.unique(np.column_stack([image, rows]), axis=0)
    return np.bincount(keys[:, 0].astype(np.int64), minlength=images)


def _one_of(number: Ints, parts: int) -> Bools:
    """Return [parts, M] whether each of M members is in each part, where it is in the one part of its number [M]."""
    members: Bools = np.arange(parts)[:, np.newaxis] == number
    return members
