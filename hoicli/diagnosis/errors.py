"""The type of every prediction.

Within an image, by protocol `diag` (a box is correct when it matches a ground-truth box of its label with IoU >= 0.5):

1. a prediction that belongs to a ground-truth triplet of its class is its true positive, or a duplicate;
2. both boxes correct: an interaction error (wrong verb) where some ground-truth pair joins exactly those two, else an
   association error (the two do not interact);
3. only the human box correct: an object box error; only the object box: a human box error; neither: both boxes.

What could repair a ground truth is in `hoicli.diagnosis.repairs`. (Diag-HOI section 3.1; neu-vi/Diag-HOI
map_improvement_hicodet.py precompute_data.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from hoicli.arrays.kit import Bools, Floats, Ints, expanded
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.protocols import Protocol
from hoicli.records.outcomes import TRUE_POSITIVE
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERRORS = (
    "true_positive",
    "duplicate",
    "interaction",
    "association",
    "object_box",
    "human_box",
    "both_boxes",
)
"""What a counted prediction is, in the order of the definition; `missed_gt` is about ground truth."""
MISSED = "missed_gt"
HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX, BOTH_BOXES = range(len(ERRORS))
NOT_COUNTED = 255


@dataclass(frozen=True)
class Located:
    """A matched batch without its boxes: all that the error types need, from a `Batch` or from match records.

    Predictions: image [T] of image_ids; subject, object [T] predicted boxes; interaction, score [T]; counted, hit [T];
    truth [T] the row of the ground truth below that a prediction belongs to (taken or not), else -1. Ground truth that
    the protocol counts, image by image in annotation order: truth_image, truth_subject, truth_object (boxes),
    truth_interaction [G]. box_match, truth_box_match [K]: each (predicted box, ground-truth box) that match. An object
    is -1 where there is none. action_of [C] is `actions` of the vocabulary. person [T], of a protocol that looks at the
    person first: the ground-truth box of the person each prediction belongs to, -1 where its subject overlaps nobody
    enough.
    """

    image_ids: list[str]
    image: Ints
    subject: Ints
    object: Ints
    interaction: Ints
    score: Floats
    counted: Bools
    hit: Bools
    truth: Ints
    truth_image: Ints
    truth_subject: Ints
    truth_object: Ints
    truth_interaction: Ints
    box_match: Ints
    truth_box_match: Ints
    action_of: Ints
    person: Ints | None = None


@cache
def actions(vocabulary: Vocabulary) -> Ints:
    """[C] what the subject of each class does: its verb; in a dataset with roles the class, a verb in one role."""
    classes = vocabulary.interactions
    if vocabulary.roles:
        return np.arange(len(classes))
    return np.array([vocabulary.verb_ids[verb] for verb, _ in classes], dtype=np.int64)


@dataclass(frozen=True)
class Typed:
    """The type of each prediction of a batch, and which boxes are those of which ground truth.

    error [T] indexes ERRORS (NOT_COUNTED for what the protocol drops). Predictions with the same boxes (of V-COCO, and
    without an object the same action) fare alike but for true positives and duplicates: alike [T] numbers their groups,
    kind [P] is the type of each group. group, truth [K] are all (group, ground truth) of one image; human, thing, pair
    [K] say whether the group's human box, its object box, or both together are that ground truth's. may_repair [T]
    marks the predictions that are looked at as repairs.
    """

    error: NDArray[np.uint8]
    alike: Ints
    kind: NDArray[np.uint8]
    group: Ints
    truth: Ints
    human: Bools
    thing: Bools
    pair: Bools
    may_repair: Bools


def located(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Located:
    """The batch (made with `all_boxes`) and its outcomes as `Located`."""
    scenes, truth = batch.predictions, batch.truth.scenes
    start = truth.hoi_start[batch.image]
    count = truth.hoi_start[batch.image + 1] - start
    image, laid = expanded(start, count)  # the ground truth of the batch's images, one image after another
    counted = batch.truth.counted(protocol)[laid]
    row_of = np.where(counted, np.cumsum(counted) - 1, -1)
    rows = laid[counted]
    belongs = np.full(len(scenes.score), -1, dtype=np.int64)
    owner = outcomes.row[outcomes.enough]
    first = (np.cumsum(count) - count - start)[scenes.image_of_hoi[owner]]
    belongs[owner] = row_of[first + outcomes.truth[outcomes.enough]]
    box, truth_box = batch.matched_boxes(protocol)
    return Located(
        image_ids=scenes.image_ids,
        image=scenes.image_of_hoi,
        subject=scenes.subject,
        object=np.where(batch.empty_object, -1, scenes.object) if protocol.person_first else scenes.object,
        interaction=scenes.interaction,
        score=scenes.score,
        counted=outcomes.code <= TRUE_POSITIVE,
        hit=outcomes.code == TRUE_POSITIVE,
        truth=belongs,
        truth_image=image[counted],
        truth_subject=truth.subject[rows],
        truth_object=truth.object[rows],
        truth_interaction=truth.interaction[rows],
        box_match=box,
        truth_box_match=truth_box,
        action_of=actions(batch.truth.vocabulary),
        person=batch.found_people(protocol) if protocol.person_first else None,
    )


class BoxMatches:
    """Which predicted box matches which ground-truth box."""

    def __init__(self, found: Located) -> None:
        self._width = int(max(found.truth_box_match.max(initial=0), found.truth_subject.max(initial=0))) + 1
        self._width = max(self._width, int(found.truth_object.max(initial=0)) + 1)
        self._keys = np.unique(found.box_match * self._width + found.truth_box_match)

    def __call__(self, box: Ints, truth_box: Ints) -> Bools:
        """Row by row, whether the two match."""
        if len(self._keys) == 0:
            return np.zeros(len(box), dtype=bool)
        key = box * self._width + truth_box
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        matched: Bools = self._keys[at] == key
        return matched


def error_types(found: Located) -> Typed:
    """The error types of a batch. Images do not see one another."""
    boxes = int(max(found.subject.max(initial=-1), found.object.max(initial=-1), found.box_match.max(initial=-1))) + 1
    correct = np.zeros(boxes, dtype=bool)
    correct[found.box_match] = True

    # Everything about two boxes is decided once for each pair of them, not for each of its verbs.
    key = found.subject * boxes + found.object
    _, first, alike = np.unique(key, return_index=True, return_inverse=True)
    group, truth = beside(found.image[first], found.truth_image)
    matches = BoxMatches(found)
    human = matches(found.subject[first][group], found.truth_subject[truth])
    thing = matches(found.object[first][group], found.truth_object[truth])
    joined = np.zeros(len(first), dtype=bool)
    joined[group[human & thing]] = True

    right_human, right_thing = correct[found.subject[first]], correct[found.object[first]]
    kind = np.select(
        [right_human & right_thing & joined, right_human & right_thing, right_human, right_thing],
        [INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    return Typed(each_error(found, kind[alike]), alike, kind, group, truth, human, thing, human & thing, found.counted)


def each_error(found: Located, kind: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[T] the type of each prediction, given what it is where it belongs to no ground truth of its class."""
    error = kind.copy()
    error[found.truth >= 0] = DUPLICATE
    error[found.hit] = HIT
    error[~found.counted] = NOT_COUNTED
    return error


def beside(image: Ints, truth_image: Ints) -> tuple[Ints, Ints]:
    """All (row of `image`, row of `truth_image`) of one image; `truth_image` is ascending."""
    start = np.searchsorted(truth_image, image)
    return expanded(start, np.searchsorted(truth_image, image, side="right") - start)
