"""How released code scores and ranks the triplets of one image's queries; also for the drop-in evaluators.

Functions keep the precision of their input, as the released code does, since equal scores depend on it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class Ranked(NamedTuple):
    """The best triplets [T] of an image, best first: the query, the class and the score of each."""

    query: Ints
    number: Ints
    score: Floats


def best_of_queries(scores: NDArray[Any], most: int | None = MOST_TRIPLETS) -> Ranked:
    """Return the best triplets of an image, of equal scores the first. scores [Q, K]: those of each class for each
    query; most: how many to return, None for all."""
    flat = scores.ravel()
    candidates = np.arange(flat.size)
    if most is not None and most < flat.size and not np.isnan(flat).any():
        candidates = np.flatnonzero(flat >= np.partition(flat, -most)[-most])  # to sort all takes several times as long
    best = candidates[np.argsort(-flat[candidates], kind="stable")[:most]]
    query, number = np.divmod(best, max(scores.shape[-1], 1))
    return Ranked(query, number, flat[best])


def score_interactions(scores: NDArray[Any], object_scores: NDArray[Any], object_of: Ints) -> NDArray[Any]:
    """Return [Q, C] GEN-VLKT's scores: that of the interaction plus the square of its object's. scores [Q, C],
    object_scores [Q, objects]: sigmoids; object_of [C]: the object of each interaction."""
    combined: NDArray[Any] = scores + (object_scores * object_scores)[:, object_of]
    return combined


def best_of_interactions(
    scores: NDArray[Any], object_scores: NDArray[Any], vocabulary: Vocabulary, most: int | None = MOST_TRIPLETS
) -> Ranked:
    """Return the best triplets of an image by GEN-VLKT's scores, as its HICO-DET evaluator takes them: of equal scores
    the first, as often as there are such (`np.where(...)[0][0]`). The arguments are those of `score_interactions` and
    `best_of_queries`."""
    combined = score_interactions(scores, object_scores, verbs_and_objects(vocabulary)[1])
    ranked = best_of_queries(combined, most)
    is_new = np.append(True, np.diff(ranked.score) != 0)[: len(ranked.score)]
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(is_new)), 0))
    return Ranked(ranked.query[first], ranked.number[first], ranked.score)


def interaction_pairs(
    subject_boxes: NDArray[Any], object_boxes: NDArray[Any], ranked: Ranked, vocabulary: Vocabulary
) -> Arrays:
    """Return the arrays of an image from its triplets of interactions. A query's object box has a label for each
    interaction, so there are two boxes for each triplet. subject_boxes, object_boxes [Q, 4]: those of the queries."""
    verb_of, object_of = verbs_and_objects(vocabulary)
    pair = np.arange(len(ranked.query))
    person = np.full(len(pair), vocabulary.object_ids[vocabulary.subjects[0]])
    return {
        "boxes": np.concatenate([subject_boxes[ranked.query], object_boxes[ranked.query]]).reshape(-1, 4),
        "labels": np.concatenate([person, object_of[ranked.number]]),
        "subject": pair, "object": pair + len(pair), "verb": verb_of[ranked.number], "score": ranked.score,
    }  # fmt: skip


@cache
def vcoco_verbs_and_roles() -> tuple[Ints, Ints]:
    """Return the verb [29] and the role [29], -1 for none, of QPIC's action-roles in hoicli's numbers."""
    vocabulary, entries = load("vcoco"), [verb_and_role(entry) for entry in VCOCO_ORDERS["qpic"]]
    verb = [vocabulary.verb_ids[verb] for verb, _ in entries]
    return np.array(verb), np.array([vocabulary.roles.index(role) if role else -1 for _, role in entries])


def allow_no_object(correct_mat: NDArray[Any]) -> NDArray[Any]:
    """Return [29, 81] the factor of the score of each action-role with each object label: that of `correct_mat`
    [29, 80], and 1 with no object."""
    return np.append(correct_mat, np.ones((len(correct_mat), 1)), axis=1)


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
