"""The ground truth of a dataset, indexed for matching."""

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
from hoicli.evaluation.slice_parts import image_parts, triplet_parts
from hoicli.evaluation.slices import IMAGES, Part, Slice
from hoicli.records import caveats
from hoicli.records.fingerprint import Hashes, hash_order, row_hashes, total_of
from hoicli.records.kit import Bools, Floats, Ints, among, distinct, expand_runs, find, run_starts, starts_of
from hoicli.records.scenes import Scenes, are_subjects, box_kinds
from hoicli.vocabulary.labels import Vocabulary

Argument = TypeVar("Argument", bound=Hashable)
Column = TypeVar("Column", bound="NDArray[Any]")


def _cache_columns(method: Callable[[GroundTruth, Argument], Column]) -> Callable[[GroundTruth, Argument], Column]:
    """Decorate a method of `GroundTruth` that computes an array from one argument (a protocol, slice or part), so that
    it is computed only once for each argument. Callers share the array, so it is made read-only."""

    @wraps(method)
    def compute_once(self: GroundTruth, argument: Argument) -> Column:
        """Return the method's array for this argument, from the cache if it is there."""
        key = (method.__name__, argument)
        if key not in self.cache:
            self.cache[key] = method(self, argument)
            self.cache[key].setflags(write=False)
        column: Column = self.cache[key]
        return column

    return compute_once


class TripletIndex:
    """An index of the ground-truth triplets of a few images, which finds them by their owner (an image, or a person)
    and their class. Triplets of one owner and class are in the order of annotation. The time that a search takes does
    not depend on how many other images the ground truth has."""

    def __init__(self, owner: Ints, triplet: Ints, interaction: Ints, classes: int) -> None:
        """Sort K triplets by owner and class. owner, triplet, interaction [K]: the number of each triplet's owner, the
        triplet's row in the ground truth, and its class, -1 for none; a triplet without a class is never found."""
        self._classes = classes
        key = np.where(interaction < 0, -1, owner * classes + interaction)  # one number for each (owner, class)
        order = np.argsort(key, kind="stable")
        self._triplet = triplet[order]
        key = key[order]
        first = run_starts(key)
        self._keys = key[first]  # each (owner, class) once, ascending
        self._bounds = np.append(first, len(key))  # where the triplets of each begin in `_triplet`, and the end

    def find(self, owner: Ints, interaction: Ints) -> tuple[Ints, Ints, Ints]:
        """Look up M pairs of an owner and a class: owner [M], interaction [M], where -1 is never found.

        Return three columns about the pairs that have triplets: the pair's position in the arguments, where its
        triplets begin in this index, and how many there are. `join_rows` takes these."""
        keys = owner * self._classes + interaction
        key_index, is_key = find(self._keys, keys)
        rows = np.flatnonzero(is_key & (owner >= 0) & (interaction >= 0))
        start = self._bounds[key_index[rows]]
        end = self._bounds[key_index[rows] + 1]
        return rows, start, end - start

    def join_rows(self, rows: Ints, start: Ints, count: Ints) -> tuple[Ints, Ints]:
        """Return every combination of a row and one of its triplets, as two columns: the row, ascending, and the
        triplet's row in the ground truth. The arguments are what `find` returned."""
        position, entry = expand_runs(start, count)
        return rows[position], self._triplet[entry]


class GroundTruth:
    """All annotated images of a dataset, indexed for joining. Columns that every batch needs are computed once (and
    read-only): the time of a batch must not depend on the size of the ground truth."""

    def __init__(self, scenes: Scenes, vocabulary: Vocabulary, name: str = "ground truth") -> None:
        """Index annotated images. name: what messages call the ground truth."""
        self.scenes = scenes
        self.vocabulary = vocabulary
        self.name = name
        self.position = {image_id: place for place, image_id in enumerate(scenes.image_ids)}
        self.is_group = False
        """Whether it is a part of the ground truth that was given, a group of `--by`."""
        self.told_of_labels = False
        """Whether the user was told already that image-level labels are derived from triplets."""
        self.cache: dict[tuple[str, Hashable], Any] = {}
        """Arrays by (name of the method that computes them, its argument), for `_cache_columns`."""
        self.caveats = scenes.every_caveat & caveats.TRUTH

    def serves(self, protocol: Protocol) -> bool:
        """Return whether the protocol can be computed: none of the caveats of the ground truth rules it out."""
        return not protocol.refuses & self.caveats

    def settings(self, protocol: Protocol) -> dict[str, str]:
        """Return the settings that the ground truth adds to the signatures of a protocol's rows, as text by key: a
        digest of the annotations (and one of their order, where the protocol depends on it), UNCOUNTED if most triplets
        have no class, and caveats (facts about the annotations' origin that change the protocol's numbers)."""
        uncounted = UNCOUNTED if self.uncounted else {}
        digests = truth_settings(self.hash_sum, self.order_hash(protocol))
        return {**digests, **uncounted, **caveats.settings(self.caveats & protocol.depends_on)}

    @property
    def signed(self) -> dict[str, str]:
        """The settings that identify this ground truth in any signature, as text by key: a digest of its annotations,
        and UNCOUNTED if most of its triplets have no class and are left out."""
        uncounted = UNCOUNTED if self.uncounted else {}
        return {**truth_settings(self.hash_sum), **uncounted}

    @cached_property
    def classless_counts(self) -> Ints:
        """[N, 2] for each image how many of its triplets have no class, and how many triplets it has."""
        image_of_classless = self.scenes.image_of_hoi[self.scenes.interaction < 0]
        without_class = np.bincount(image_of_classless, minlength=len(self.scenes.image_ids))
        return np.stack([without_class, np.diff(self.scenes.hoi_start)], axis=1)

    @cached_property
    def uncounted(self) -> bool:
        """Whether more than half of the triplets have no class. Metrics would then be about the smaller part alone, so
        the user must ask for them explicitly (`allow_uncounted`)."""
        return 2 * int((self.scenes.interaction < 0).sum()) > len(self.scenes.interaction)

    @cached_property
    def has_pairs_alone(self) -> bool:
        """Whether every annotated action (a person's verb) has an object in some triplet. In V-COCO's official files
        many have none, so this is then not all of the ground truth."""
        scenes = self.scenes
        action = scenes.subject * len(self.vocabulary.verbs) + scenes.verb  # one number for each person and verb
        has_object = scenes.object >= 0
        return bool(len(action)) and bool(np.isin(action[~has_object], action[has_object]).all())

    @cached_property
    def hash_sum(self) -> int:
        """The sum of the hashes of all images' annotations, which identifies the ground truth: signatures have a digest
        of the sum. The order of images does not change it."""
        return total_of(self.scenes.hashes)

    def order_hash(self, protocol: Protocol) -> int:
        """Return one number that identifies the order of annotations within images, where a protocol's results may
        depend on the order: the sum of `order_hashes`. Signatures have a digest of it."""
        return total_of(self.order_hashes(protocol))

    def order_hashes(self, protocol: Protocol) -> Hashes:
        """Return [N] for each image a hash of the order of its annotations, 0 where no other order could change a
        result. Order matters because of ties: a prediction that overlaps several triplets of its class (or several
        people) equally belongs to the first of them."""
        if protocol.whole_image:
            return np.zeros(len(self.scenes.image_ids), dtype=np.uint64)
        if protocol.person_first:
            return self._order_hashes_of_people
        return self._order_hashes_of_triplets

    @cached_property
    def _order_hashes_of_triplets(self) -> Hashes:
        """[N] for each image, a hash of the order in which it lists triplets of one class on different boxes, or 0."""
        rows = np.flatnonzero(self.scenes.interaction >= 0)
        box_hashes = row_hashes(*self._corners(rows).T)
        return hash_order(self.scenes.image_of_hoi[rows], self.scenes.interaction[rows], box_hashes, self.scenes.hashes)

    @cached_property
    def _order_hashes_of_people(self) -> Hashes:
        """[N] for each image, a hash of the order in which it lists people of different boxes or actions, or 0."""
        scenes = self.scenes
        every_triplet = np.arange(len(scenes.subject))
        triplet_hashes = row_hashes(scenes.interaction, *self._corners(every_triplet).T)
        hash_of_actions = np.zeros(len(scenes.boxes), dtype=np.uint64)  # by box: the sum over the person's triplets
        np.add.at(hash_of_actions, scenes.subject, triplet_hashes)
        people, _ = self.people
        person_hashes = row_hashes(*scenes.boxes[people].T, hash_of_actions[people])
        same_key = np.zeros_like(people)  # all people of an image are compared with each other
        return hash_order(scenes.image_of_box[people], same_key, person_hashes, scenes.hashes)

    @cached_property
    def box_order_hash(self) -> int:
        """One number that identifies the order in which images list different boxes of the same label. Signatures of
        box metrics state it, since of several boxes that a detection overlaps equally the first is matched."""
        scenes = self.scenes
        rows = np.flatnonzero(scenes.labels >= 0)
        box_hashes = row_hashes(*scenes.boxes[rows].T, scenes.crowd[rows])
        return total_of(hash_order(scenes.image_of_box[rows], scenes.labels[rows], box_hashes, scenes.hashes))

    def _corners(self, rows: Ints) -> Floats:
        """Return an array [M, 8] of the subject and object box of M triplets, zeros where there is no object."""
        boxes = np.concatenate([self.scenes.boxes, np.zeros((1, 4))])  # no object is -1: the last row
        return np.concatenate([boxes[self.scenes.subject[rows]], boxes[self.scenes.object[rows]]], axis=1)

    @cached_property
    def image_labels(self) -> tuple[Ints, Ints]:
        """The image-level labels of all images as two ascending columns: the classes that happen in an image, and those
        that are ambiguous there. An entry is (image * number of classes + class). In an image without image-level
        labels, the classes of its triplets happen."""
        scenes = self.scenes
        classes = len(self.vocabulary.interactions)
        image = np.repeat(np.arange(len(scenes.image_ids)), scenes.image_label_count)
        unclear = scenes.image_label < 0  # an ambiguous class c is stored as ~c
        stated = image * classes + np.where(unclear, ~scenes.image_label, scenes.image_label)
        without_labels = scenes.caveats & caveats.mask([caveats.DERIVED_LABELS]) > 0  # [N] images
        gives_label = without_labels[scenes.image_of_hoi] & (scenes.interaction >= 0)  # [T] triplets
        derived = (scenes.image_of_hoi * classes + scenes.interaction)[gives_label]
        return distinct(np.concatenate([stated[~unclear], derived])), distinct(stated[unclear])

    def find_images(self, image_ids: Sequence[str]) -> Ints:
        """Return the rows in `scenes` of images given by id. Raises `DataError` for an image that is not there."""
        try:
            return np.fromiter(map(self.position.__getitem__, image_ids), dtype=np.int64, count=len(image_ids))
        except KeyError as error:
            raise DataError(f"image {error.args[0]!r} is not in the ground truth", field="image_id") from None

    def find_unseen(self, protocol: Protocol, seen_ids: Iterable[str]) -> tuple[list[str], Ints, Ints]:
        """Return the ids of the images that are not among `seen_ids`, and two columns about the triplets that a
        protocol counts in them: the image of each, as an index into these ids, and its row in `scenes`."""
        ids_to_skip = set(seen_ids)
        is_unseen = np.array([image_id not in ids_to_skip for image_id in self.position], dtype=bool)
        rows = np.flatnonzero(self.counted_triplets(protocol) & is_unseen[self.scenes.image_of_hoi])
        image_ids = [self.scenes.image_ids[image] for image in np.flatnonzero(is_unseen).tolist()]
        index_in_ids = np.cumsum(is_unseen) - 1  # by image: how many unseen images come before it
        return image_ids, index_in_ids[self.scenes.image_of_hoi[rows]], rows

    def index_by_class(self, images: Ints) -> TripletIndex:
        """Return an index that finds the triplets of some images by image (its position in `images`) and class."""
        image, rows = self._list_triplets(images)
        return TripletIndex(image, rows, self.scenes.interaction[rows], len(self.vocabulary.interactions))

    def index_by_person(self, images: Ints) -> TripletIndex:
        """Return an index that finds the triplets of some images by person (the row of the subject's box) and class."""
        _, rows = self._list_triplets(images)
        person = self.scenes.subject[rows]
        return TripletIndex(person, rows, self.scenes.interaction[rows], len(self.vocabulary.interactions))

    def _list_triplets(self, images: Ints) -> tuple[Ints, Ints]:
        """Return two columns about all triplets of some images (rows of `scenes`): the image of each, as a position in
        `images`, and the triplet's row."""
        start = self.scenes.hoi_start
        return expand_runs(start[images], start[images + 1] - start[images])

    @cached_property
    def _known_start(self) -> Ints:
        """[N + 1] where the known objects of each image begin in `scenes.known`. An object is known in an image if some
        image-level label of the image names it (HICO-DET's Known Object setting)."""
        return starts_of(self.scenes.known_count)

    def are_known_objects(self, images: Ints, image: Ints, label: Ints) -> Bools:
        """Return a mask of the M predictions whose object is known: an image-level label of their image names it.
        images: the images of a batch, as rows of `scenes`; image, label [M]: of each prediction the image, as a
        position in `images`, and the object's label."""
        start = self._known_start
        position, entry = expand_runs(start[images], start[images + 1] - start[images])
        is_known = np.zeros((len(images), len(self.vocabulary.objects)), dtype=bool)  # of each image, each label
        is_known[position, self.scenes.known[entry]] = True
        of_predictions: Bools = is_known[image, label]
        return of_predictions

    @cached_property
    def kinds(self) -> Ints:
        """[B] the label of each box as matching compares it: as recorded, but one and the same for all labels of
        subjects if the dataset has several (`box_kinds`)."""
        return box_kinds(self.scenes.labels, self.vocabulary)

    @cached_property
    def people(self) -> tuple[Ints, Ints]:
        """Two columns: [P] the rows of the boxes that are labelled as a subject (person), ascending; and [N + 1] where
        those of each image begin in the first column."""
        rows = np.flatnonzero(are_subjects(self.scenes.labels, self.vocabulary))
        return rows, np.searchsorted(rows, self.scenes.box_start)

    def scored_classes(self, protocol: Protocol) -> Bools:
        """Return a mask of the dataset's classes that a protocol scores."""
        numbers = np.arange(len(self.vocabulary.interactions))
        if not protocol.classes:
            return numbers >= 0
        return among(numbers, self.vocabulary.members(protocol.classes))

    @_cache_columns
    def members(self, part: Part) -> Bools:
        """Return a mask of the T triplets that are in one part of a slice: by their image, or else by their boxes."""
        members: Bools = self.slice_members(part.slice)[part.number]
        return members[self.scenes.image_of_hoi] if part.slice.of == IMAGES else members

    @_cache_columns
    def slice_members(self, slice_: Slice) -> Bools:
        """Return a mask for each part of a slice: [parts, N] of the images in each part, or [parts, T] of the triplets
        in it if it is a slice of triplets."""
        parts_of = image_parts if slice_.of == IMAGES else triplet_parts
        return parts_of(slice_, self.scenes, self.vocabulary)

    @_cache_columns
    def counted_triplets(self, protocol: Protocol) -> Bools:
        """Return a mask of the T triplets that a protocol counts: those of a class that it scores, without
        no_interaction if it drops that, and without those that lack an object box if it counts pairs only; for a view,
        also only those in the view's part of the data."""
        if protocol.view:  # the protocol at another threshold, which changes nothing here, or on a part of the data
            on_all_data = self.counted_triplets(protocol.matching)
            return on_all_data if protocol.part is None else on_all_data & self.members(protocol.part)
        counts = self.scenes.interaction >= 0
        if protocol.classes:
            counts &= self.scored_classes(protocol)[self.scenes.interaction]
        if protocol.pairs_only:
            counts &= self.scenes.object >= 0
        if protocol.drop_no_interaction:
            counts &= ~among(self.scenes.interaction, self.vocabulary.no_interaction_ids)
        return counts

    def annotated_classes(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Return two columns, the image and the class of everything that a detector has to find under a protocol: of
        each triplet that counts, or of each image-level label if the protocol classifies whole images."""
        if protocol.whole_image:
            happening, _ambiguous = self.image_labels  # each label as image * number of classes + class
            return np.divmod(happening, len(self.vocabulary.interactions))
        counted = self.counted_triplets(protocol)
        if counted.all():  # the columns themselves, which saves a copy of the whole ground truth
            return self.scenes.image_of_hoi, self.scenes.interaction
        return self.scenes.image_of_hoi[counted], self.scenes.interaction[counted]

    @_cache_columns
    def counted_before(self, protocol: Protocol) -> Ints:
        """Return [T + 1] how many of the triplets before each one a protocol counts; the last number counts all."""
        return starts_of(self.counted_triplets(protocol))

    @_cache_columns
    def present_boxes(self, protocol: Protocol) -> Bools:
        """Return a mask of the B boxes that a protocol uses: all but those that belong only to triplets which it does
        not count. A box without any triplet is used."""
        counted = self.counted_triplets(protocol.matching)
        return self._boxes_in(counted) | ~self._boxes_in(~counted)

    def _boxes_in(self, triplets: Bools) -> Bools:
        """Return a mask of the B boxes that are the subject or object of one of the triplets in a mask [T]."""
        is_used = np.zeros(len(self.scenes.boxes), dtype=bool)
        is_used[self.scenes.subject[triplets]] = True
        is_used[self.scenes.object[triplets]] = True
        return is_used

    @_cache_columns
    def annotated_images(self, protocol: Protocol) -> Bools:
        """Return a mask of the N images in which a protocol counts predictions: all, or those with boxes, or those with
        triplets, as `Protocol.images` says."""
        if protocol.images == "all":
            return np.ones(len(self.scenes.image_ids), dtype=bool)
        if protocol.images == "boxes":
            return np.diff(self.scenes.box_start) > 0
        counted_before = self.counted_before(protocol.matching)[self.scenes.hoi_start]  # in all images before each one
        return np.diff(counted_before) > 0  # whether the image itself has some
