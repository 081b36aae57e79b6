"""Image records as answers to grounding: each interaction of an image is a question for all its pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records import caveats
from hoicli.records.images import NO_BOX
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints, find
from hoicli.records.triplets import Name, Numbered, Triplets, read_triplets
from hoicli.vlm.results import Grounding, Oddities, Pair

_CONCERNED = caveats.mask([caveats.PAIRS_ONLY, caveats.WHOLE_IMAGE, caveats.BY_TOKENS])
"""The caveats that its numbers depend on: which pairs there are, where they are, and in which order they are taken."""


def grounding_of(truth: Stream, predictions: Stream, policy: ErrorPolicy) -> tuple[list[Grounding], dict[str, str]]:
    """(a question for every (image, verb, object) of the ground truth, sorted; what caveats add to signatures).

    The pairs found are the predictions with this verb and object, by descending score, equal ones and those without a
    score in their order. Equal pairs count as often as they are there, as in result files. Raises `DataError` for a bad
    record, and for a prediction about an image that the ground truth does not have."""
    asked = read_triplets(truth, policy=policy, truth=True)
    place = {name: at for at, name in enumerate(asked.image_ids)}
    found = read_triplets(predictions, policy=policy, known=place.keys())
    image = np.array([place[name] for name in found.image_ids], dtype=np.int64)
    true, told = (np.flatnonzero(side.object != NO_BOX) for side in (asked, found))
    if not len(true):
        raise DataError("no interaction in it; give the ground truth of images that have some", place=truth.name)
    true_image, told_image = asked.image_of_hoi[true], image[found.image_of_hoi[told]]
    keys = _keys((asked, true, true_image), (found, told, told_image))
    questions, first, question = np.unique(keys[0], return_index=True, return_inverse=True)
    truths = [sorted(pairs) for pairs in _by_question(asked, true, question, len(questions))]

    odd = Oddities()
    question, known = find(questions, keys[1])
    if not known.all():
        where = f"{predictions.name}: image {asked.image_ids[told_image[~known][0]]}"
        what = "predictions of interactions that the image does not have, for which nobody asked"
        odd.count(what, where, int(np.count_nonzero(~known)))
    told, told_image, question = told[known], told_image[known], question[known]
    limits = np.nan_to_num(asked.size, nan=np.inf)[told_image]
    sides = found.boxes[found.subject[told]], found.boxes[found.object[told]]
    outside = np.any([(box.min(axis=1) < 0) | (box[:, 2:] > limits).any(axis=1) for box in sides], axis=0)
    if outside.any():
        where = f"{predictions.name}: image {asked.image_ids[told_image[outside][0]]}"
        odd.count("predicted pairs with a box outside the picture", where, int(np.count_nonzero(outside)))
    odd.report()
    score = found.score[told]
    unscored = int(np.count_nonzero(np.isnan(score)))
    if 0 < unscored < len(score):
        note(f"{unscored:,} of {len(score):,} predictions have no score: they come after those of a question that do")
    missing = len(np.setdiff1d(true_image, image))
    if missing:
        note(f"images with questions and without predictions, where nothing is found: {missing:,}")
    order = np.lexsort((-score, question))  # NaN comes last
    founds = _by_question(found, told[order], question[order], len(questions))
    images = [asked.image_ids[at] for at in true_image[first].tolist()]
    rows = [
        Grounding(name, tuple(pairs), tuple(best)) for name, pairs, best in zip(images, truths, founds, strict=True)
    ]
    bits = int(np.bitwise_or.reduce(np.concatenate([asked.caveats, found.caveats])))
    return sorted(rows), caveats.settings(bits & _CONCERNED)


def _keys(*sides: tuple[Triplets, Ints, Ints]) -> list[Ints]:
    """Of each side's triplets, given with their images, a number for the image, verb and object."""
    verbs, objects = Numbered[str](), Numbered[str]()
    names = [(verbs.of(_plain(side.verbs)), objects.of(_plain(side.objects))) for side, _, _ in sides]
    return [
        (image * len(verbs) + verb[side.verb[rows]]) * len(objects) + name[side.label[rows]]
        for (side, rows, image), (verb, name) in zip(sides, names, strict=True)
    ]


def _plain(names: Sequence[Name]) -> list[str]:
    """The spellings in which names are compared."""
    return ["_".join((label or "").replace("_", " ").lower().split()) for label, _ in names]


def _by_question(side: Triplets, rows: Ints, question: Ints, count: int) -> Iterator[list[Pair]]:
    """The pairs of each question, in the order of `rows`."""
    order = np.argsort(question, kind="stable")
    boxes = [list(map(tuple, side.boxes[column[rows[order]]].tolist())) for column in (side.subject, side.object)]
    pairs: list[Pair] = list(zip(*boxes, strict=True))
    begin = 0
    for size in np.bincount(question, minlength=count).tolist():
        yield pairs[begin : begin + size]
        begin += size
