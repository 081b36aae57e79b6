"""Pair statistics: how well humans and objects are paired before, and told apart after, interaction classification.

HICO-DET by protocol `diag`: equal labels and IoU >= 0.5 on both boxes, no_interaction dropped from both sides, only
images that annotate other interactions. V-COCO by protocol `vcoco-s1`: a pair belongs to the annotated person its
subject overlaps most, whatever the labels, and needs IoU >= 0.5 on both boxes; pairs of people whom nobody annotated
count neither way; statements without an object are no pairs, nor are those that a record leaves to its `unstated`.
Measures as in Diag-HOI (IJCV), sections 4.1 and 4.2, with the choices of its
released code: neu-vi/Diag-HOI pair_localization.py, action_analysis/binary_classification_hicodet.py and
action_analysis/action_map_hicodet.py.

Subsets. A ground-truth pair belongs to `rare` (`non_rare`) if some interaction of it does, so it may belong to both. A
subset's figures are those of a dataset that annotates only its interactions: images without any are left out, and a
detected pair that finds only pairs of other subsets found nothing. Negative AP exists for `full` alone, because a pair
that does something else does interact. Interaction mAP of a subset takes a verb's ground truth and predictions of the
subset's interactions. V-COCO has `full` alone, and its interaction mAP is over action-roles.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson

from hoicli.average_precision import enveloped_ap, interpolated_ap, max_recall
from hoicli.diagnosis.gather import protocol_of
from hoicli.errors import DataError, UsageError
from hoicli.geometry import iou, pair_nms
from hoicli.matching import TRUE_POSITIVE, Batch, Filters, GroundTruth
from hoicli.protocols import Protocol
from hoicli.records import problems
from hoicli.scenes import (
    BATCH,
    Bools,
    ErrorPolicy,
    Floats,
    ImageRegister,
    Ints,
    Scenes,
    columns_of,
    expanded,
    rank_by_id,
    sound_lines,
)
from hoicli.streams import Line
from hoicli.vocabulary import SUBJECT, Vocabulary

STEPS = 101
"""Recall values of the negative AP: 0, 0.01, ..., 1."""
NOT_RELEASED = "--as-released: for HICO-DET only; the released pair statistics of vcoco fail at their first pair"
"""neu-vi/Diag-HOI pair_localization.py hands `get_overlap` single boxes as if they were lists of boxes."""
RELEASED_STEPS = 110
"""The released code's go on to 1.09, where no precision is, so that a perfect ranking scores 101/110 (voc_ap)."""


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep: which detected pairs there are.

    nms: pair NMS drops a pair whose IoU_subject ** alpha * IoU_object ** beta with a better one of its object label
    exceeds this. det_threshold: a pair needs both boxes' scores at least this high. None: off.
    """

    nms: float | None = None
    det_threshold: float | None = None
    alpha: float = 1.0
    beta: float = 0.5

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures."""
        settings = {}
        if self.det_threshold is not None:
            settings["det"] = f"{self.det_threshold:g}"
        if self.nms is not None:
            settings["nms"] = f"{self.nms:g}/{self.alpha:g}/{self.beta:g}"
        return settings


def sweeps(
    nms: Sequence[float], det_thresholds: Sequence[float], *, alpha: float = 1.0, beta: float = 0.5
) -> list[Sweep]:
    """All pairs first, then each NMS threshold, then each detection threshold: one thing changes at a time (Table 3).

    Raises `UsageError` for values that mean nothing.
    """
    for value in nms:
        Filters.checked(top_k=None, nms=value, nms_alpha=alpha, nms_beta=beta)
    # the exponents are wrong without a threshold too
    Filters.checked(top_k=None, nms=None, nms_alpha=alpha, nms_beta=beta)
    rows = [Sweep(), *(Sweep(nms=value, alpha=alpha, beta=beta) for value in nms)]
    rows += [Sweep(det_threshold=value) for value in det_thresholds]
    return list(dict.fromkeys(rows))


@dataclass(frozen=True)
class PairBatch:
    """Some images' predictions beside the pairs that were handed to interaction classification.

    scenes: the predictions, T triplets. verb_score [T]: of the verb alone, the triplet's score where there is none.
    pairs: the same images and boxes, with the P pairs in the place of triplets (verb 0, interaction -1) and their
    interactiveness as score. box_scores [B], None if some record has none. scored: pairs whose interactiveness is
    known; the others have 0.
    """

    scenes: Scenes
    verb_score: Floats
    pairs: Scenes
    box_scores: Floats | None
    scored: int


def read_pair_batches(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    box_scores: bool = False,
    batch: int = BATCH,
) -> Iterator[PairBatch]:
    """The prediction records of a stream with their pairs. `box_scores`: every record needs `scores`.

    The pairs of a record are its `pairs`; without that key, the distinct (subject, object) of its triplets. A pair
    without interactiveness has the best verb score of its triplets, or 0. Pairs whose subject is no person, and
    triplets of no interaction or of no_interaction, make no pair (protocol `diag`); V-COCO: those without object.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on.
    """
    register = ImageRegister(known)
    lines = iter(lines)
    check = partial(problems, vocabulary=vocabulary, scored=True, besides=("scores",))
    while chunk := list(islice(lines, batch)):
        scenes = columns_of(chunk, vocabulary, scored=True)
        extras = None if scenes is None else _extras(chunk, need_scores=box_scores)
        if scenes is None or extras is None or not register.add_all(scenes.image_ids, chunk):
            sound = sound_lines(chunk, register, check, policy)
            chunk = list(_with_box_scores(sound, policy) if box_scores else sound)
            scenes, extras = columns_of(chunk, vocabulary, scored=True), _extras(chunk, need_scores=box_scores)
            if scenes is None or extras is None:
                raise AssertionError("a record passed the careful check and failed the fast one")
        if scenes.image_ids:
            yield _pair_batch(scenes, extras, vocabulary)


def _with_box_scores(lines: Iterable[Line], policy: ErrorPolicy) -> Iterator[Line]:
    """The lines that have `scores`; the others go to the policy."""
    for line in lines:
        if orjson.loads(line.data).get("scores") is None:
            policy.handle(
                DataError(
                    "missing; --det-threshold needs a detection score for each box", place=line.place, field="scores"
                )
            )
        else:
            yield line


@dataclass(frozen=True)
class _Extras:
    """What `Scenes` leaves out of N records: pairs with box indices of their own image, and scores.

    verb_score [H] of the H triplets that the records state, stated [N] of each; count [N] pairs, -1 for a record
    without the key; subject, object, interactiveness [P] (NaN where missing).
    """

    verb_score: Floats
    stated: Ints
    box_scores: Floats | None
    count: Ints
    subject: Ints
    object: Ints
    interactiveness: Floats


def _extras(lines: Iterable[Line], *, need_scores: bool) -> _Extras | None:
    """None if something is wrong with a record that `records.problems` (or `_with_box_scores`) can name.

    The records are sound otherwise: `scenes.columns_of` has passed them.
    """
    verb_score: list[Any] = []
    stated: list[int] = []
    box_scores: list[Any] = []
    has_scores = True
    count: list[int] = []
    subject: list[Any] = []
    object_: list[Any] = []
    interactiveness: list[Any] = []
    limit: list[int] = []
    try:
        for line in lines:
            record = orjson.loads(line.data)
            verb_score += [hoi.get("verb_score", hoi["score"]) for hoi in record["hois"]]
            stated.append(len(record["hois"]))
            boxes, scores, pairs = len(record["boxes"]), record.get("scores"), record.get("pairs")
            if scores is None:
                has_scores = False
            elif type(scores) is not list or len(scores) != boxes:
                return None
            else:
                box_scores += scores
            if pairs is None:
                count.append(-1)
                continue
            if type(pairs) is not list:
                return None
            count.append(len(pairs))
            limit += [boxes] * len(pairs)
            subject += [pair["subject"] for pair in pairs]
            object_ += [pair["object"] for pair in pairs]
            interactiveness += [pair.get("interactiveness", _MISSING) for pair in pairs]
    except (KeyError, TypeError, AttributeError):
        return None
    given = [value for value in interactiveness if value is not _MISSING]
    numbers, indices = chain(verb_score, box_scores, given), chain(subject, object_)
    if not set(map(type, numbers)) <= {int, float} or not set(map(type, indices)) <= {int}:
        return None
    try:
        rows = [np.array(column, dtype=np.int64) for column in (subject, object_)]
        values = [np.array(column, dtype=np.float64) for column in (verb_score, box_scores, given)]
    except OverflowError:
        return None
    if any(((row < 0) | (row >= np.array(limit, dtype=np.int64))).any() for row in rows):
        return None
    if not all(np.isfinite(value).all() for value in values) or (need_scores and not has_scores):
        return None
    return _Extras(
        verb_score=values[0],
        stated=np.array(stated, dtype=np.int64),
        box_scores=values[1] if has_scores else None,
        count=np.array(count, dtype=np.int64),
        subject=rows[0],
        object=rows[1],
        interactiveness=np.array(interactiveness, dtype=np.float64),
    )


_MISSING = float("nan")
"""Known by identity: JSON has no NaN, so no record can hold it."""


def _pair_batch(scenes: Scenes, extras: _Extras, vocabulary: Vocabulary) -> PairBatch:
    if vocabulary.roles:
        # What a record leaves unsaid comes after what it says, image by image: no pair was handed on for it.
        own = np.arange(len(scenes.score)) - scenes.hoi_start[scenes.image_of_hoi] < extras.stated[scenes.image_of_hoi]
        paired = actual_triplets(scenes, vocabulary)
        extras = replace(extras, verb_score=extras.verb_score[paired[own]])
        scenes = _with_triplets(scenes, np.flatnonzero(own & paired))
    boxes = len(scenes.boxes)
    listed = extras.count >= 0
    image = np.repeat(np.arange(len(listed)), np.maximum(extras.count, 0))
    first_box = scenes.box_start[image]
    subject, object_ = extras.subject + first_box, extras.object + first_box

    # The pairs of triplets, in the order of their first triplets.
    triplet = np.flatnonzero(actual_triplets(scenes, vocabulary))
    keys, first, inverse = np.unique(
        scenes.subject[triplet] * boxes + scenes.object[triplet], return_index=True, return_inverse=True
    )
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, inverse, extras.verb_score[triplet])

    # A listed pair without interactiveness takes that of its triplets.
    score, silent = extras.interactiveness, np.isnan(extras.interactiveness)
    place, met = _find(keys, subject * boxes + object_)
    score = np.where(silent, 0.0, score)
    borrowed = silent & met
    score[borrowed] = best[place[borrowed]]
    sound = _can_be_pairs(scenes, vocabulary, subject, object_)

    image_of_key = scenes.image_of_box[keys // boxes] if boxes else keys
    derived = np.flatnonzero(~listed[image_of_key])
    derived = derived[np.argsort(first[derived])]
    columns = [
        np.concatenate([mine[sound], other[derived]])
        for mine, other in ((image, image_of_key), (subject, keys // max(boxes, 1)), (object_, keys % max(boxes, 1)))
    ]
    scores = np.concatenate([score[sound], best[derived]])
    order = np.argsort(columns[0], kind="stable")
    images, subjects, objects = (column[order] for column in columns)
    zeros = np.zeros(len(order), dtype=np.int64)
    start = np.searchsorted(images, np.arange(len(listed) + 1))
    pairs = replace(
        scenes,
        subject=subjects,
        object=objects,
        verb=zeros,
        interaction=zeros - 1,
        score=scores[order],
        hoi_start=start,
    )
    known = len(derived) + int((sound & (~silent | borrowed)).sum())
    return PairBatch(scenes, extras.verb_score, pairs, extras.box_scores, known)


def actual_triplets(scenes: Scenes, vocabulary: Vocabulary) -> Bools:
    """[T] the triplets that the protocol looks at and that have an object: of `diag`, those of a person, of one of the
    interactions, not no_interaction; of `vcoco-s1`, those of an action-role."""
    protocol = protocol_of(vocabulary)
    actual = _can_be_pairs(scenes, vocabulary, scenes.subject, scenes.object) & (scenes.interaction >= 0)
    if protocol.classes:
        actual &= np.isin(scenes.interaction, sorted(vocabulary.subsets[protocol.classes]))
    if vocabulary.no_interaction is not None:
        actual &= scenes.verb != vocabulary.verb_ids[vocabulary.no_interaction]
    return actual


def _can_be_pairs(scenes: Scenes, vocabulary: Vocabulary, subject: Ints, object_: Ints) -> Bools:
    """Whether each (subject, object) can be a pair: the subject a person; or, in V-COCO, whose protocol looks at no
    labels, whether there is an object (a box of zeros is none, as official dumps write it)."""
    if not len(scenes.boxes):
        return np.zeros(len(subject), dtype=bool)
    if vocabulary.roles:
        present: Bools = (object_ >= 0) & scenes.boxes[object_].any(axis=1)
        return present
    person: Bools = scenes.labels[subject] == vocabulary.object_ids[SUBJECT]
    return person


def _find(ascending: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """(place in `ascending`, whether it is there) of each wanted value."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place: Ints = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return place, ascending[place] == wanted


class TruthPairs:
    """The Q distinct (human box, object box) of the ground truth that the dataset's protocol counts.

    subject, object [Q] rows of the ground truth's boxes; image [Q], ascending; start [N + 1] bounds them by image.
    triplet [C] the rows of the counted triplets and pair [C] which pair each of them belongs to. members: by subset
    (full and the vocabulary's groups) the [Q] pairs with some interaction of it; `classes` its interactions, a [K]
    mask. Boxes are distinct by their place in the record, as the released code tells them apart.
    """

    def __init__(self, truth: GroundTruth) -> None:
        scenes, boxes = truth.scenes, max(len(truth.scenes.boxes), 1)
        self.truth = truth
        self.protocol = protocol_of(truth.vocabulary)
        self.triplet = np.flatnonzero(truth.counted(self.protocol) & (scenes.object >= 0))
        keys, self.pair = np.unique(
            scenes.subject[self.triplet] * boxes + scenes.object[self.triplet], return_inverse=True
        )
        self.subject, self.object = keys // boxes, keys % boxes
        self.image: Ints = scenes.image_of_box[self.subject]
        self.start = np.searchsorted(self.image, np.arange(len(scenes.image_ids) + 1))
        interactions = len(truth.vocabulary.interactions)
        self.classes = {"full": np.ones(interactions, dtype=bool)}
        for name, ids in truth.vocabulary.groups.items():
            self.classes[name] = np.isin(np.arange(interactions), sorted(ids))
        self.members = {
            name: np.bincount(self.pair, weights=mask[scenes.interaction[self.triplet]], minlength=len(keys)) > 0
            for name, mask in self.classes.items()
        }

    def images(self, subset: str) -> Bools:
        """[N] the images that annotate an interaction of the subset; all, where the protocol counts in all."""
        if self.protocol.images == "all":
            return np.ones(len(self.truth.scenes.image_ids), dtype=bool)
        counts = np.bincount(self.image[self.members[subset]], minlength=len(self.truth.scenes.image_ids))
        return counts > 0

    @cached_property
    def rank(self) -> Ints:
        """[N] each image's place among all images sorted by id, for ties that no order of lines can sway."""
        return rank_by_id(self.truth.scenes.image_ids)

    def join(
        self, scenes: Scenes, image: Ints, subject: Ints, object_: Ints, person: Ints | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Which detected pairs match which true ones: rows of the arguments, ascending, of self, and the smaller IoU.

        image [P] images of the ground truth, subject and object_ [P] rows of `scenes.boxes`. person [P]: the
        ground-truth person each belongs to, where the protocol looks at that first and at no label.
        """
        row, mate = expanded(self.start[image], self.start[image + 1] - self.start[image])
        truth, protocol = self.truth.scenes, self.protocol
        if person is not None:
            of_person = person[row] == self.subject[mate]
            row, mate = row[of_person], mate[of_person]
        overlap = np.full(len(row), np.inf)
        for mine, theirs in ((subject, self.subject), (object_, self.object)):
            if person is None:
                same = scenes.labels[mine[row]] == truth.labels[theirs[mate]]
                row, mate, overlap = row[same], mate[same], overlap[same]
            side = iou(
                np.ascontiguousarray(scenes.boxes[mine[row]].T) + np.array(protocol.prediction_shift)[:, np.newaxis],
                np.ascontiguousarray(truth.boxes[theirs[mate]].T) + np.array(protocol.truth_shift)[:, np.newaxis],
                inclusive=protocol.inclusive,
                touching_overlap=protocol.touching_overlap,
            )
            enough = side >= protocol.threshold
            row, mate, overlap = row[enough], mate[enough], np.minimum(overlap, side)[enough]
        return row, mate, overlap


@dataclass(frozen=True)
class PairResults:
    """One subset under one setting. Fractions in [0, 1]; None where there is nothing to divide by.

    images it has, pairs detected in them, truth_pairs annotated; recall, precision; neg_ap over `negatives` pairs that
    match no true one; inter_map, inter_recall (mean maximal recall) over `verbs`.
    """

    subset: str
    images: int
    pairs: int
    truth_pairs: int
    recall: float | None
    precision: float | None
    neg_ap: float | None
    negatives: int
    inter_map: float | None
    inter_recall: float | None
    verbs: int

    @property
    def pairs_per_image(self) -> float | None:
        """Mean detected pairs an image."""
        return self.pairs / self.images if self.images else None


class _Localised:
    """Under one setting: the triplets on correctly localised pairs, and the true pairs that some triplet localises."""

    def __init__(self, images: int, truth_pairs: int) -> None:
        self.interaction: list[Ints] = []
        self.score: list[Floats] = []
        self.hit: list[Bools] = []
        self.image: list[Ints] = []
        self.position: list[Ints] = []
        self.found = np.zeros(truth_pairs, dtype=bool)
        self.answered = np.zeros(images, dtype=bool)


class PairStatistics:
    """Gathers batches of images in any order; results() when all is in.

    one_to_one: a detected pair finds one true pair at most. as_released: the released code's numbers to the digit, see
    `results`. images, pairs: how many were added; scored: pairs among them whose interactiveness is known. Raises
    `UsageError` for a dataset without a protocol for it, and for `as_released` beyond HICO-DET.
    """

    def __init__(
        self, truth: GroundTruth, settings: Sequence[Sweep], *, one_to_one: bool = False, as_released: bool = False
    ) -> None:
        self._truth = TruthPairs(truth)
        if as_released and self._truth.protocol.person_first:
            raise UsageError(NOT_RELEASED)
        self._settings = list(settings)
        self._one_to_one, self._as_released = one_to_one, as_released
        self._image: list[Ints] = []
        self._position: list[Ints] = []
        self._score: list[Floats] = []
        self._kept: list[list[Bools]] = [[] for _ in settings]
        self._row: list[Ints] = []
        self._mate: list[Ints] = []
        self._overlap: list[Floats] = []
        self._localised = [_Localised(len(truth.scenes.image_ids), len(self._truth.image)) for _ in settings]
        self._seen = np.zeros(len(truth.scenes.image_ids), dtype=bool)
        self.pairs = 0
        self.scored = 0
        self.images = 0

    def add(self, batch: PairBatch) -> None:
        """Match a batch. Raises `DataError` for an image that the ground truth does not have."""
        pairs, position = batch.pairs, self._truth.truth.position
        missing = [image_id for image_id in pairs.image_ids if image_id not in position]
        if missing:
            raise DataError(f"image {missing[0]!r} is not in the ground truth", field="image_id")
        image = np.array([position[image_id] for image_id in pairs.image_ids], dtype=np.int64)
        self._seen[image] = True
        image_of_pair = image[pairs.image_of_hoi]
        person, ignored = self._people(pairs)
        row, mate, overlap = self._truth.join(pairs, image_of_pair, pairs.subject, pairs.object, person)
        self._row.append(row + self.pairs)
        self._mate.append(mate)
        self._overlap.append(overlap)
        self._image.append(image_of_pair)
        self._position.append(np.arange(len(pairs.score)) - pairs.hoi_start[pairs.image_of_hoi])
        self._score.append(pairs.score)
        everything: _Classified | None = None
        for setting, kept, localised in zip(self._settings, self._kept, self._localised, strict=True):
            keep = surviving_pairs(batch, setting)
            kept.append(keep & ~ignored)
            triplets = _surviving_triplets(batch, keep, setting)
            if triplets.all():
                everything = everything or self._classify(batch, triplets)
                self._gather(everything, localised)
            else:
                self._gather(self._classify(batch, triplets), localised)
        self.pairs += len(pairs.score)
        self.scored += batch.scored
        self.images += len(image)

    def _people(self, pairs: Scenes) -> tuple[Ints | None, Bools]:
        """([P] the annotated person each pair belongs to, None for a protocol that does not look at the person first;
        [P] whether nobody looked at what that person does)."""
        protocol, truth = self._truth.protocol, self._truth.truth
        if not protocol.person_first or not len(pairs.score):
            return None, np.zeros(len(pairs.score), dtype=bool)
        person, _ = Batch(pairs, truth).best_people(protocol)
        ignored = np.zeros(len(person), dtype=bool)
        ignored[person >= 0] = ~truth.scenes.annotated[person[person >= 0]]
        return person, ignored

    def _classify(self, batch: PairBatch, triplets: Bools) -> _Classified:
        """The triplets on pairs that match a true pair, and the rest that interaction mAP needs of a batch."""
        chosen = np.flatnonzero(triplets)
        scenes = _with_triplets(batch.scenes, chosen)
        matched = Batch(scenes, self._truth.truth)
        protocol = self._truth.protocol
        code = matched.match(protocol, Filters()).code
        counted = np.flatnonzero(code <= TRUE_POSITIVE)
        keys, first, inverse = np.unique(
            scenes.subject[counted] * len(scenes.boxes) + scenes.object[counted],
            return_index=True,
            return_inverse=True,
        )
        subject, object_ = keys // max(len(scenes.boxes), 1), keys % max(len(scenes.boxes), 1)
        image = matched.image[scenes.image_of_box[subject]]
        person = matched.best_people(protocol)[0][counted[first]] if protocol.person_first else None
        row, mate, _ = self._truth.join(scenes, image, subject, object_, person)
        correct = np.zeros(len(keys), dtype=bool)
        correct[row] = True
        # All others on a correct pair are duplicates or have the wrong verb.
        rows = counted[correct[inverse]]
        return _Classified(
            interaction=scenes.interaction[rows],
            score=batch.verb_score[chosen[rows]],
            hit=code[rows] == TRUE_POSITIVE,
            image=matched.image_of_hoi[rows],
            position=chosen[rows] - batch.scenes.hoi_start[scenes.image_of_hoi[rows]],
            found=mate,
            answered=image,
        )

    @staticmethod
    def _gather(part: _Classified, into: _Localised) -> None:
        into.interaction.append(part.interaction)
        into.score.append(part.score)
        into.hit.append(part.hit)
        into.image.append(part.image)
        into.position.append(part.position)
        into.found[part.found] = True
        into.answered[part.answered] = True

    def results(self) -> Iterator[tuple[Sweep, list[PairResults]]]:
        """Each setting's results for full and for the vocabulary's groups.

        Pair recall and precision as pair_localization.py has them: a detected pair finds every true pair it matches; a
        true pair is found by the first detected pair, in the record's order, that matches it; the pairs that found
        some make the precision. one_to_one (section 4.1, "only one of them is counted towards recall"): by descending
        interactiveness each detected pair takes, of the true pairs it matches and nobody has, the one with the largest
        smaller IoU; what it would also match stays in the denominator.

        as_released: images without a line count nowhere; negative AP is a sum over 110 recall values, of which 101
        can be reached; verbs with localised predictions but no true positive leave the interaction mAP, and the
        triplets of images without predictions stay in its ground truth.
        """
        image, position, score = (_joined(parts) for parts in (self._image, self._position, self._score))
        row, mate, overlap = (_joined(parts) for parts in (self._row, self._mate, self._overlap))
        for setting, kept, localised in zip(self._settings, self._kept, self._localised, strict=True):
            keep = _joined(kept).astype(bool)
            of_kept = keep[row]
            rows, mates, overlaps = row[of_kept], mate[of_kept], overlap[of_kept]
            neg_ap, negatives = self._negative_ap(keep, rows, image, position, score)
            results = []
            for subset, members in self._truth.members.items():
                images = self._truth.images(subset)
                if self._as_released:
                    images &= self._seen
                counted = members & images[self._truth.image]
                detected = int((keep & images[image]).sum())
                matches = counted[mates]
                found, finders = self._located(rows[matches], mates[matches], overlaps[matches], image, position, score)
                inter_map, inter_recall, verbs = self._interaction_map(localised, subset)
                wanted = int(counted.sum())
                results.append(
                    PairResults(
                        subset=subset,
                        images=int(images.sum()),
                        pairs=detected,
                        truth_pairs=wanted,
                        recall=found / wanted if wanted else None,
                        precision=finders / detected if detected else None,
                        neg_ap=neg_ap if subset == "full" else None,
                        negatives=negatives if subset == "full" else 0,
                        inter_map=inter_map,
                        inter_recall=inter_recall,
                        verbs=verbs,
                    )
                )
            yield setting, results

    def _located(
        self, row: Ints, mate: Ints, overlap: Floats, image: Ints, position: Ints, score: Floats
    ) -> tuple[int, int]:
        """(true pairs found, detected pairs that found one) of matches: detected row, true mate, smaller IoU."""
        if not self._one_to_one:
            order = np.lexsort((row, mate))
            first = np.r_[True, np.diff(mate[order]) != 0] if len(order) else np.zeros(0, dtype=bool)
            return int(first.sum()), len(np.unique(row[order][first]))
        order = np.lexsort((mate, -overlap, position[row], self._truth.rank[image[row]], -score[row]))
        busy, taken = set[int](), set[int]()
        for detected, true in zip(row[order].tolist(), mate[order].tolist(), strict=True):
            if detected not in busy and true not in taken:
                busy.add(detected)
                taken.add(true)
        return len(taken), len(busy)

    def _negative_ap(
        self, keep: Bools, row: Ints, image: Ints, position: Ints, score: Floats
    ) -> tuple[float | None, int]:
        """(AP of "does not interact", pairs that do not); least interactive first, ties by image id and position."""
        interacts = np.zeros(len(keep), dtype=bool)
        interacts[row] = True
        rows = np.flatnonzero(keep & self._truth.images("full")[image])
        negatives = len(rows) - int(interacts[rows].sum())
        if negatives == 0 or self.scored == 0:
            return None, negatives
        order = rows[np.lexsort((position[rows], self._truth.rank[image[rows]], score[rows]))]
        rank = np.flatnonzero(~interacts[order]) + 1
        grid = tuple((np.arange(RELEASED_STEPS if self._as_released else STEPS) * 0.01).tolist())
        bounds, positives = np.array([0, negatives]), np.array([negatives])
        return float(interpolated_ap(rank, bounds, positives, grid)[0]), negatives

    def _interaction_map(self, localised: _Localised, subset: str) -> tuple[float | None, float | None, int]:
        """(mAP over verbs by verb score, mean maximal recall, verbs) on correctly localised pairs."""
        vocabulary, truth = self._truth.truth.vocabulary, self._truth
        # What is told apart on a pair: its verb, or, where an action has roles, the action-role.
        verb_of = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
        if vocabulary.roles:
            verb_of = np.arange(len(verb_of))
        wanted = localised.found[truth.pair]
        if self._as_released:
            wanted = wanted | ~localised.answered[truth.image[truth.pair]]
        annotated = truth.truth.scenes.interaction[truth.triplet]
        verbs = verb_of[annotated[wanted & truth.classes[subset][annotated]]]
        positives = np.bincount(verbs, minlength=int(verb_of.max()) + 1)

        interaction = _joined(localised.interaction)
        chosen = np.flatnonzero(truth.classes[subset][interaction])
        verb, score = verb_of[interaction[chosen]], _joined(localised.score)[chosen]
        position, image = _joined(localised.position)[chosen], _joined(localised.image)[chosen]
        order = np.lexsort((position, truth.rank[image], -score, verb))
        hit = _joined(localised.hit).astype(bool)[chosen][order]
        bounds = np.searchsorted(verb[order], np.arange(len(positives) + 1))
        hits = np.flatnonzero(hit)
        hit_bounds = np.searchsorted(hits, bounds)
        rank = hits + 1 - np.repeat(bounds[:-1], np.diff(hit_bounds))
        # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
        grid = truth.protocol.grid
        ap = interpolated_ap(rank, hit_bounds, positives, grid) if grid else enveloped_ap(rank, hit_bounds, positives)
        in_mean = positives > 0
        if self._as_released:
            in_mean &= (np.diff(hit_bounds) > 0) | (np.diff(bounds) == 0)
        if not (in_mean.any() and localised.answered.any()):
            return None, None, 0
        recall = max_recall(hit_bounds, positives)
        return float(ap[in_mean].mean()), float(recall[in_mean].mean()), int(in_mean.sum())


@dataclass(frozen=True)
class _Classified:
    """R triplets on localised pairs (hit: true positives), the true pairs found, and the images with predictions."""

    interaction: Ints
    score: Floats
    hit: Bools
    image: Ints
    position: Ints
    found: Ints
    answered: Ints


def surviving_pairs(batch: PairBatch, setting: Sweep) -> Bools:
    """[P] the pairs of a batch that a setting leaves.

    Raises `UsageError` where a detection threshold meets records without box scores.
    """
    pairs = batch.pairs
    keep = np.ones(len(pairs.score), dtype=bool)
    if setting.det_threshold is not None:
        high = _confident(batch, setting.det_threshold)
        keep &= high[pairs.subject] & high[pairs.object]
    if setting.nms is not None:
        keep = pair_nms(pairs, keep, threshold=setting.nms, alpha=setting.alpha, beta=setting.beta)
    return keep


def _surviving_triplets(batch: PairBatch, keep: Bools, setting: Sweep) -> Bools:
    """[T] the triplets that go on when only the pairs of `keep` do; a triplet of no listed pair stays through NMS."""
    scenes, pairs, boxes = batch.scenes, batch.pairs, len(batch.scenes.boxes)
    triplets = np.ones(len(scenes.score), dtype=bool)
    if setting.det_threshold is not None:
        high = _confident(batch, setting.det_threshold)
        triplets &= high[scenes.subject] & high[scenes.object]
    if setting.nms is not None:
        keys = pairs.subject * boxes + pairs.object
        wanted = scenes.subject * boxes + scenes.object
        kept, gone = (np.unique(keys[rows]) for rows in (keep, ~keep))
        triplets &= _find(kept, wanted)[1] | ~_find(gone, wanted)[1]
    return triplets


def _confident(batch: PairBatch, threshold: float) -> Bools:
    """[B] the boxes with a detection score of at least the threshold."""
    if batch.box_scores is None:
        raise UsageError("a detection threshold needs `scores` in every record")
    return batch.box_scores >= threshold


def _with_triplets(scenes: Scenes, rows: Ints) -> Scenes:
    """The same images and boxes with some of the triplets, in their order."""
    if len(rows) == len(scenes.score):
        return scenes
    return replace(
        scenes,
        subject=scenes.subject[rows],
        object=scenes.object[rows],
        verb=scenes.verb[rows],
        interaction=scenes.interaction[rows],
        score=scenes.score[rows],
        hoi_start=np.searchsorted(rows, scenes.hoi_start),
    )


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def pair_rows(
    setting: Sweep,
    results: Sequence[PairResults],
    *,
    protocol: Protocol,
    signature: str,
    tags: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Result rows of one setting, metric by metric; percent but for pairs_per_image. A value may be null.

    `n`: the images of pairs_per_image, the true pairs of pair_recall, the detected pairs of pair_precision, the pairs
    without interaction of neg_ap, the verbs (V-COCO: action-roles) of inter_map.
    """
    for metric in ("pairs_per_image", "pair_recall", "pair_precision", "neg_ap", "inter_map"):
        for result in results:
            if metric == "neg_ap" and result.subset != "full":
                continue
            value, n, unit = {
                "pairs_per_image": (result.pairs_per_image, result.images, "pairs"),
                "pair_recall": (result.recall, result.truth_pairs, "%"),
                "pair_precision": (result.precision, result.pairs, "%"),
                "neg_ap": (result.neg_ap, result.negatives, "%"),
                "inter_map": (result.inter_map, result.verbs, "%"),
            }[metric]
            yield {
                "metric": metric,
                "subset": result.subset,
                "value": 100.0 * value if value is not None and unit == "%" else value,
                "n": n,
                "unit": unit,
                "nms": setting.nms,
                "det_threshold": setting.det_threshold,
                "protocol": protocol.name,
                "tags": dict(tags),
                "signature": signature,
            }
