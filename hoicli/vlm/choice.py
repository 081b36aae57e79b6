"""The figures of multiple choice: macro, instance and micro F1, exact match (CrossHOI-Bench, arXiv 2508.18753).

A chosen option is right (tp) or wrong (fp); what was not offered counts for nothing. Instance F1 is the mean of the F1
of each question, micro F1 the F1 of all options together, macro F1 the mean of the F1 of each interaction; an
interaction is in that mean if a question has it as right, or it was chosen. Exact match is the share of questions in
which all right options and no wrong one were chosen. A question without a right option has F1 1 if nothing was chosen,
else 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Weights
from hoicli.vlm.answers import BEST, Answers
from hoicli.vlm.bank import Class, Question, class_of
from hoicli.vlm.task_scores import Key, Measured, Shares, share

METRICS = ("macro_f1", "instance_f1", "micro_f1", "exact_match", "precision", "recall")
"""In the order of the rows. Precision and recall are those of all options together, as in micro F1."""
MACRO, INSTANCE, MICRO, EXACT, PRECISION, RECALL = ((metric, "full") for metric in METRICS)


@dataclass(frozen=True)
class Tallied(Measured):
    """The values of METRICS. class_counts [3, C, images]: how often the options of each of the C interactions that
    occur are rightly chosen, wrongly chosen and right, in each image."""

    class_counts: Floats = field(kw_only=True)

    def rounds(self, weights: Weights) -> dict[Key, Floats]:
        """Return each of METRICS [R] in R rounds of resampling. weights [images, R]: how often each image counts."""
        class_f1 = _f1(*(counts @ weights for counts in self.class_counts))
        defined = ~np.isnan(class_f1)
        macro = share(np.where(defined, class_f1, 0.0).sum(axis=0), defined.sum(axis=0))
        return {MACRO: macro, **super().rounds(weights)}


def _f1(tp: Floats | Ints, fp: Floats | Ints, right: Floats | Ints) -> Floats:
    """Return the F1 of counts of right choices (tp), wrong choices (fp) and right options, NaN where all are 0. The
    operations are those of the released script, so that the last digit agrees."""
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = tp / (tp + fp), tp / right
        harmonic_mean = 2 * (precision * recall) / (precision + recall)
    f1: Floats = np.where(tp > 0, harmonic_mean, np.where(fp + right > 0, 0.0, np.nan))
    return f1


def tally_answers(answers: Answers, *, released: bool = False) -> Tallied:
    """Return the metrics of the answers. Their n counts questions, but for macro F1 interactions, for micro F1 and
    recall right options, and for precision chosen options.

    released: count as CrossHOI-Bench's scripts do. There a wrong option counts as often as it is named. An answer that
    names a right option twice, and an empty one, is no exact match, even where no option is right. Exact match is a
    share of images. For a detector, images without predictions count in exact match alone."""
    bank = answers.bank
    counts = _count_answers(answers, released=released)
    # counted: 1 for each question that counts, 0 for those of an image without predictions of a detector, if `released`
    images, image, counted = len(bank.by_image), counts.image, counts.counted
    f1_or_nan = _f1(counts.tp, counts.fp, counts.right)
    # Where no option is right, choosing nothing is the right answer: F1 is 1 for it, else 0.
    f1: Floats = np.where(np.isnan(f1_or_nan), counts.is_empty, f1_or_nan)
    tp, fp, right = (column * counted for column in (counts.tp, counts.fp, counts.right))
    # a value is the sum of the first column over the sum of the second
    of_questions: dict[Key, tuple[Floats | Ints, Floats | Ints]] = {
        INSTANCE: (f1 * counted, counted),
        MICRO: (2 * tp, tp + fp + right),
        PRECISION: (tp, tp + fp),
        RECALL: (tp, right),
    }
    questions_per_image = np.ones(images, np.int64) if released else np.bincount(image, minlength=images)
    of_images = {EXACT: (np.bincount(image, counts.exact, images), questions_per_image)}
    interactions = int(counts.class_counts.sum(axis=2).any(axis=0).sum())
    n = {MACRO: interactions, INSTANCE: int(counted.sum()), MICRO: int(right.sum())}
    n |= {EXACT: int(questions_per_image.sum()), PRECISION: int((tp + fp).sum()), RECALL: int(right.sum())}
    shares = [Shares(image, of_questions), Shares(np.arange(images), of_images)]
    return Tallied(images, n, shares, "crosshoi", _settings(answers), class_counts=counts.class_counts)


class _AnswerCounts(NamedTuple):
    """The counts of the answers to Q questions, in the order of their keys. image [Q]: the number of each question's
    image, in the order of image ids; tp, fp, right [Q]: how many options are rightly chosen, wrongly chosen and right;
    exact [Q]: 1 if the match is exact, else 0; counted [Q]: 1 if the question counts in all metrics, 0 if in exact
    match alone; is_empty [Q]: 1 if nothing is chosen, else 0; class_counts [3, C, images]: how often the options of
    each interaction are rightly chosen, wrongly chosen and right, in each image."""

    image: Ints
    tp: Ints
    fp: Ints
    right: Ints
    exact: Ints
    counted: Ints
    is_empty: Ints
    class_counts: Floats


def _count_answers(answers: Answers, *, released: bool) -> _AnswerCounts:
    """Return the counts of the answers; a question without an answer counts as one that names nothing."""
    bank = answers.bank
    questions = sorted(bank.questions, key=lambda question: question.key)  # sums must not depend on the file's order
    place = {name: number for number, name in enumerate(sorted(bank.by_image))}
    image = np.array([place[question.image_id] for question in questions], dtype=np.int64)
    tp, fp, right, exact, counted, is_empty = np.zeros((6, len(questions)), dtype=np.int64)
    answered_images = {image_id for image_id, _ in answers.choices}
    leaves_out = released and answers.detected  # the released script leaves out a detector's images without predictions
    counts_by_class: dict[Class, Floats] = {}  # of each interaction [3, images]: tp, fp and right options
    for number, question in enumerate(questions):
        named = answers.choices.get(question.key, [])
        is_empty[number], exact[number], option_counts = _count_answer(question, named, released=released)
        counted[number] = not leaves_out or question.image_id in answered_images
        for option, counts in option_counts.items():
            tp[number] += counts[0]
            fp[number] += counts[1]
            right[number] += counts[2]
            interaction = class_of(option)
            if counted[number] and bank.has_class(interaction):
                by_image = counts_by_class.setdefault(interaction, np.zeros((3, len(place))))
                by_image[:, image[number]] += counts
    class_counts = np.zeros((3, len(counts_by_class), len(place)))
    for row, interaction in enumerate(sorted(counts_by_class)):
        class_counts[:, row] = counts_by_class[interaction]
    return _AnswerCounts(
        image=image, tp=tp, fp=fp, right=right, exact=exact, counted=counted, is_empty=is_empty,
        class_counts=class_counts,
    )  # fmt: skip


def _settings(answers: Answers) -> dict[str, str]:
    """Return {setting: text} of the signature: the questions' digest, how many have no answer, how many answers were
    refused, and which of a detector's predictions count."""
    bank = answers.bank
    settings = {"data": bank.dataset, "gt": bank.digest, "setting": bank.setting}
    settings |= {"choose": f"top:{BEST}"} if answers.detected else {}
    settings |= {"missing": str(answers.missing)} if answers.missing else {}
    return settings | ({"refused": str(answers.refused)} if answers.refused else {})


def _count_answer(question: Question, named: list[str], *, released: bool) -> tuple[bool, bool, dict[str, list[int]]]:
    """Return (whether nothing is chosen, whether the match is exact, {option: how often it is rightly chosen, wrongly
    chosen, right}) for an answer. named: the options that it names; released: count as CrossHOI-Bench's scripts do, for
    which a repeated option counts each time and an empty answer is no exact match."""
    right = question.right if released else tuple(dict.fromkeys(question.right))
    if not released:  # what was not offered counts for nothing, also where nothing is right
        named = [option for option in dict.fromkeys(named) if option in question.listed]
    counts: dict[str, list[int]] = {}
    unmatched = list(right)
    for option in named:
        option_counts = counts.setdefault(option, [0, 0, 0])
        if option in unmatched:
            unmatched.remove(option)
            option_counts[0] += 1
        elif option in question.wrong:
            option_counts[1] += 1
    for option in right:
        counts.setdefault(option, [0, 0, 0])[2] += 1
    if not named:
        return True, not right and not released, counts
    offered = [option for option in named if option in question.listed]
    is_exact = bool(offered) and len(offered) == len(right) and set(offered) == set(right)
    return False, is_exact, counts
