"""How released code scores and ranks the triplets of one image's queries; also for the drop-in evaluators.

Functions keep the precision of their input, as the released code does, since equal scores depend on it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.records.arrays import read_array
from hoicli.records.interaction_arrays import verbs_and_objects
from hoicli.records.kit import Floats, Ints
from hoicli.vocabulary.datasets import VCOCO_ORDERS, load, verb_and_role
from hoicli.vocabulary.labels import Vocabulary

Arrays = dict[str, Any]
"""The arrays of one image, as `Evaluator.update` takes them."""

MOST_TRIPLETS = 100
"""How many of an image's best triplets the released evaluators keep (`max_hois`)."""
NO_OBJECT = 80
"""The object label that QPIC's V-COCO, and everyone's after it, gives to what is no object."""

_GEN_VLKT_VCOCO = (
    "0:41 16:80 17:53 0:53 2:80 8:53 9:80 23:80 21:37 0:73 2:13 5:73 27:73 1:80 22:36 20:30 0:80 8:80 2:56 5:63 "
    "19:63 0:40 24:40 5:31 28:31 0:76 5:80 5:76 16:76 17:80 5:37 2:17 3:17 4:80 5:29 10:80 14:29 18:80 5:53 0:48 "
    "8:48 0:67 19:80 0:24 13:24 11:80 11:57 0:17 0:15 11:59 15:29 3:80 12:67 0:31 10:31 5:36 10:36 0:79 27:80 "
    "0:39 24:39 2:59 5:48 0:30 0:38 5:32 6:38 7:32 5:0 5:17 0:47 5:18 8:47 25:32 0:44 5:55 8:55 9:44 0:63 6:80 "
    "2:3 3:3 0:43 5:43 16:43 17:55 7:80 0:34 6:34 15:80 2:57 0:77 13:49 0:42 9:42 5:62 0:28 13:28 2:20 3:20 5:15 "
    "0:56 5:60 24:41 14:80 13:26 5:16 0:46 13:46 5:28 9:43 0:37 13:37 8:54 0:0 0:35 0:65 0:54 0:26 13:80 13:0 "
    "0:32 14:32 5:54 0:1 2:1 3:1 5:1 25:80 5:67 5:6 0:29 0:36 3:7 26:63 0:3 13:30 0:25 5:45 17:51 0:52 8:52 0:33 "
    "5:13 12:80 22:80 5:35 15:32 26:80 13:25 5:40 10:37 5:33 13:33 3:6 5:44 0:20 21:80 5:20 3:8 5:23 13:67 11:56 "
    "5:19 5:42 0:55 13:32 5:30 13:36 26:67 5:52 8:46 20:80 28:80 0:14 11:60 0:16 0:72 5:72 5:7 5:41 2:61 24:80 "
    "0:27 5:27 17:27 5:10 26:10 11:13 17:18 0:64 5:64 5:66 16:42 17:0 5:5 3:2 10:30 5:4 5:46 2:28 13:29 5:26 8:50 "
    "17:46 0:18 17:48 26:0 5:3 5:24 0:45 26:27 0:49 8:49 5:34 13:31 17:54 5:38 8:51 17:47 13:40 26:48 26:62 13:74 "
    "5:61 26:19 5:65 26:18 0:50 0:13 26:33 0:7 13:41 24:45 13:38 13:39 5:47 5:56 2:24 26:60 0:78 5:39 26:55 26:66 "
    "26:72 5:74 0:8 17:45 26:23 5:25 0:66 2:26 26:52 2:60 13:77 0:51 13:34 5:2 3:5 17:50 5:14 13:73 5:50"
)
"""The interactions of V-COCO that GEN-VLKT and HOICLIP score (datasets/vcoco_text_label.py), in their order: the number
of QPIC's action-role, and of COCO's object, with 80 for none."""
VCOCO_INTERACTIONS = 263
"""How many there are."""
_VCOCO_ACTIONS_AND_OBJECTS = np.array([entry.split(":") for entry in _GEN_VLKT_VCOCO.split()], dtype=np.int64).T


class Ranked(NamedTuple):
    """The best triplets [T] of an image, best first: the query, the class and the score of each."""

    query: Ints
    number: Ints
    score: Floats


def best_of_queries(scores: NDArray[Any], limit: int | None = MOST_TRIPLETS) -> Ranked:
    """Return the best triplets by `scores` [Q, K], of equal ones the first. limit: None for all."""
    flat = scores.ravel()
    candidates = np.arange(flat.size)
    if limit is not None and limit < flat.size and not np.isnan(flat).any():
        # to sort all takes several times as long
        candidates = np.flatnonzero(flat >= np.partition(flat, -limit)[-limit])
    best = candidates[np.argsort(-flat[candidates], kind="stable")[:limit]]
    query, number = np.divmod(best, max(scores.shape[-1], 1))
    return Ranked(query, number, flat[best])


def score_interactions(scores: NDArray[Any], object_scores: NDArray[Any], object_of: Ints) -> NDArray[Any]:
    """Return [Q, C] GEN-VLKT's scores: the interaction's plus its object's squared. object_of [C]: the objects."""
    combined: NDArray[Any] = scores + (object_scores * object_scores)[:, object_of]
    return combined


def score_actions(scores: NDArray[Any], object_scores: NDArray[Any]) -> NDArray[Any]:
    """Return [Q, 29] GEN-VLKT's scores of V-COCO's action-roles: that of the best interaction of each. scores [Q, 263]:
    of the interactions; object_scores [Q, 81 or more]: sigmoids, that of NO_OBJECT among them."""
    action, object_of = _VCOCO_ACTIONS_AND_OBJECTS
    combined = score_interactions(scores, object_scores, object_of)
    return np.stack([combined[:, action == number].max(axis=1) for number in range(len(VCOCO_ORDERS["qpic"]))], axis=1)


def best_of_interactions(
    scores: NDArray[Any], object_scores: NDArray[Any], vocabulary: Vocabulary, limit: int | None = MOST_TRIPLETS
) -> Ranked:
    """Return the best triplets of an image by GEN-VLKT's scores, as its HICO-DET evaluator takes them: it looks up each
    score and takes the first triplet with it (`np.where(...)[0][0]`), so triplets of equal scores repeat the first."""
    combined = score_interactions(scores, object_scores, verbs_and_objects(vocabulary)[1])
    ranked = best_of_queries(combined, limit)
    is_new_score = np.append(True, np.diff(ranked.score) != 0)[: len(ranked.score)]
    first_of_score = np.maximum.accumulate(np.where(is_new_score, np.arange(len(is_new_score)), 0))
    return Ranked(ranked.query[first_of_score], ranked.number[first_of_score], ranked.score)


def interaction_pairs(
    subject_boxes: NDArray[Any], object_boxes: NDArray[Any], ranked: Ranked, vocabulary: Vocabulary
) -> Arrays:
    """Return the arrays of an image from triplets of interactions, with two boxes [Q, 4] for each triplet."""
    verb_of, object_of = verbs_and_objects(vocabulary)
    boxes, label = (subject_boxes[ranked.query], object_boxes[ranked.query]), object_of[ranked.number]
    return paired_arrays(boxes, label, np.arange(len(label)), vocabulary) | {
        "verb": verb_of[ranked.number],
        "score": ranked.score,
    }


def paired_arrays(boxes: tuple[NDArray[Any], NDArray[Any]], label: Ints, pair: Ints, vocabulary: Vocabulary) -> Arrays:
    """Return the arrays of boxes, labels and rows of an image whose boxes come in pairs. boxes: [P, 4] of the subjects,
    which are persons, and [P, 4] of the objects, whose labels are label [P]; pair [T]: the pair of each triplet."""
    person = np.full(len(label), vocabulary.object_ids[vocabulary.subjects[0]])
    corners, labels = np.concatenate(boxes).reshape(-1, 4), np.concatenate([person, label])
    return {"boxes": corners, "labels": labels, "subject": pair, "object": pair + len(label)}


@cache
def vcoco_verbs_and_roles() -> tuple[Ints, Ints]:
    """Return the verb [29] and the role [29], -1 for none, of QPIC's action-roles in hoicli's numbers."""
    vocabulary, entries = load("vcoco"), [verb_and_role(entry) for entry in VCOCO_ORDERS["qpic"]]
    verb = [vocabulary.verb_ids[verb] for verb, _ in entries]
    return np.array(verb), np.array([vocabulary.roles.index(role) if role else -1 for _, role in entries])


def read_correct_mat(
    correct_mat: Any, verbs: int, objects: int, *, more_objects: bool = True, place: str = "correct_mat"
) -> NDArray[Any]:
    """Return the factor of the score of each verb with each object [verbs, objects]. more_objects: whether there may be
    further columns, which are not read. Raises `DataError` for others."""
    array = read_array(correct_mat, "correct_mat")
    is_table = array.ndim == 2 and len(array) == verbs and array.dtype.kind in "bfiu"
    fits = is_table and (array.shape[1] == objects or (more_objects and array.shape[1] > objects))
    if not fits or not np.isfinite(array).all():
        problem = f"has shape {array.shape} and dtype {array.dtype}, wants finite numbers ({verbs}, {objects})"
        raise DataError(problem, place=place)

    return array


def read_vcoco_correct_mat(correct_mat: Any, *, more_objects: bool = True) -> NDArray[Any]:
    """Return [29, 81] the factor of the score of each action-role with each object label: that of `correct_mat`
    [29, 80], and 1 with no object. more_objects: as in `read_correct_mat`, which says what is raised."""
    factors = read_correct_mat(correct_mat, len(VCOCO_ORDERS["qpic"]), NO_OBJECT, more_objects=more_objects)
    return np.append(factors, np.ones((len(factors), 1)), axis=1)


def state_roles(arrays: Arrays) -> Arrays:
    """Return the arrays of an image of V-COCO with verbs and roles in place of the numbers of QPIC's 29 action-roles
    (`verb`), and -1 for the label NO_OBJECT, for a box of that label, and for the object of an action without role."""
    verb_of, role_of = vcoco_verbs_and_roles()
    role = role_of[arrays["verb"]]
    is_nothing = arrays["labels"] == NO_OBJECT
    labels = np.where(is_nothing, -1, arrays["labels"])
    no_object = is_nothing[arrays["object"]] | (role < 0)
    object_ = np.where(no_object, -1, arrays["object"])
    return arrays | {"labels": labels, "verb": verb_of[arrays["verb"]], "role": role, "object": object_}
