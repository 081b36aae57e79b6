"""The figures of multiple choice: macro, instance and micro F1, exact match (CrossHOI-Bench, arXiv 2508.18753).

A chosen option is right (tp) or wrong (fp); what was not offered counts for nothing. Instance F1 is the mean of the F1
of each question, micro F1 the F1 of all options together, macro F1 the mean of the F1 of each interaction; an
interaction is in that mean if a question has it as right, or it was chosen. Exact match is the share of questions in
which all right options and no wrong one were chosen. A question without a right option has F1 1 if nothing was chosen,
else 0.
"""

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
"""In the order of the rows. The last two are micro F1's."""
MACRO, INSTANCE, MICRO, EXACT, PRECISION, RECALL = ((metric, "full") for metric in METRICS)


@dataclass(frozen=True)
class Tallied(Measured):
    """The values of METRICS. cell [3, C, images]: how often the options of each interaction that occurs are rightly
    chosen, wrongly chosen and right, in each image."""

    cell: Floats = field(kw_only=True)

    def rounds(self, weights: Weights) -> dict[Key, Floats]:
        """Return each of METRICS [R], given how often each image counts in a round."""
        classes = _f1(*(part @ weights for part in self.cell))
        defined = ~np.isnan(classes)
        macro = share(np.where(defined, classes, 0.0).sum(axis=0), defined.sum(axis=0))
        return {MACRO: macro, **super().rounds(weights)}


def _f1(tp: Floats | Ints, fp: Floats | Ints, right: Floats | Ints) -> Floats:
    """Return the F1 of counts, NaN where all are 0, by the operations of the released script, so that the last digit
    agrees."""
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = tp / (tp + fp), tp / right
        harmonic_mean = 2 * (precision * recall) / (precision + recall)
    f1: Floats = np.where(tp > 0, harmonic_mean, np.where(fp + right > 0, 0.0, np.nan))
    return f1


def tally_answers(answers: Answers, *, released: bool = False) -> Tallied:
    """Return the metrics of the answers. n counts questions (macro F1: interactions; micro F1 and recall: right
    options; precision: chosen options). The signature has the digest of the questions, how many were not answered, how
    many answers were refused, and for a detector which predictions count.

    released: count as CrossHOI-Bench's scripts do. A wrong option counts as often as it is named; an answer that names
    a right one twice matches nothing exactly, nor does an empty one, even where no option is right; exact match is a
    share of images; for a detector, images without predictions count in exact match alone."""
    bank = answers.bank
    counts = _count_answers(answers, released=released)
    images, image, counted = len(bank.by_image), counts.image, counts.counted
    f1_or_nan = _f1(counts.tp, counts.fp, counts.right)
    # a question of which nothing is right is answered rightly if nothing was chosen
    f1: Floats = np.where(np.isnan(f1_or_nan), counts.is_empty, f1_or_nan)
    tp, fp, right = (column * counted for column in (counts.tp, counts.fp, counts.right))
    of_questions: dict[Key, tuple[Floats | Ints, Floats | Ints]] = {
        INSTANCE: (f1 * counted, counted),
        MICRO: (2 * tp, tp + fp + right),
        PRECISION: (tp, tp + fp),
        RECALL: (tp, right),
    }
    questions_per_image = np.ones(images, np.int64) if released else np.bincount(image, minlength=images)
    of_images = {EXACT: (np.bincount(image, counts.exact, images), questions_per_image)}
    interactions = int(counts.cell.sum(axis=2).any(axis=0).sum())
    n = {MACRO: interactions, INSTANCE: int(counted.sum()), MICRO: int(right.sum())}
    n |= {EXACT: int(questions_per_image.sum()), PRECISION: int((tp + fp).sum()), RECALL: int(right.sum())}
    shares = [Shares(image, of_questions), Shares(np.arange(images), of_images)]
    return Tallied(images, n, shares, "crosshoi", _settings(answers), cell=counts.cell)


class _AnswerCounts(NamedTuple):
    """The counts of the answers to Q questions, in the order of their keys. image [Q]: the image of each question, a
    number by its name; tp, fp, right [Q]: how many options are rightly chosen, wrongly chosen and right; exact [Q]:
    whether the match is exact; counted [Q]: whether the question counts in more than exact match; is_empty [Q]: whether
    nothing is chosen; cell: that of `Tallied`."""

    image: Ints
    tp: Ints
    fp: Ints
    right: Ints
    exact: Ints
    counted: Ints
    is_empty: Ints
    cell: Floats


def _count_answers(answers: Answers, *, released: bool) -> _AnswerCounts:
    """Return the counts of the answers; a question without an answer counts as one that names nothing."""
    bank = answers.bank
    questions = sorted(bank.questions, key=lambda question: question.key)  # sums must not depend on the file's order
    place = {name: number for number, name in enumerate(sorted(bank.by_image))}
    image = np.array([place[question.image_id] for question in questions], dtype=np.int64)
    kinds_and_exact: Ints = np.zeros((4, len(questions)), dtype=np.int64)
    counted, is_empty = np.zeros_like(kinds_and_exact[:2])
    answered = {image_id for image_id, _ in answers.choices}
    cells: dict[Class, Floats] = {}
    for number, question in enumerate(questions):
        nothing_chosen, exactly, by_option = _counts(question, answers.choices.get(question.key, []), released=released)
        kinds_and_exact[:, number] = (*np.sum([*by_option.values(), [0, 0, 0]], axis=0), exactly)
        counted[number] = not (released and answers.detected) or question.image_id in answered
        is_empty[number] = nothing_chosen
        for option, kinds in by_option.items() if counted[number] else ():
            interaction = class_of(option)
            if bank.counts(interaction):
                cells.setdefault(interaction, np.zeros((3, len(place))))[:, image[number]] += kinds
    cell = np.zeros((3, len(cells), len(place)))
    for row, interaction in enumerate(sorted(cells)):
        cell[:, row] = cells[interaction]
    tp, fp, right, exact = kinds_and_exact
    return _AnswerCounts(image, tp, fp, right, exact, counted, is_empty, cell)


def _settings(answers: Answers) -> dict[str, str]:
    """Return what the signature says of the questions and of the answers."""
    bank = answers.bank
    settings = {"data": bank.dataset, "gt": bank.digest, "setting": bank.setting}
    settings |= {"choose": f"top:{BEST}"} if answers.detected else {}
    settings |= {"missing": str(answers.missing)} if answers.missing else {}
    return settings | ({"refused": str(answers.refused)} if answers.refused else {})


def _counts(question: Question, named: list[str], *, released: bool) -> tuple[bool, bool, dict[str, list[int]]]:
    """Return (whether nothing is chosen, whether the match is exact, how often each option is rightly chosen, wrongly
    chosen, right) for an answer. named: the options that it names."""
    right = question.right if released else tuple(dict.fromkeys(question.right))
    if not released:  # what was not offered counts for nothing, also where nothing is right
        named = [option for option in dict.fromkeys(named) if option in question.listed]
    by_option: dict[str, list[int]] = {}
    unmatched = list(right)
    for option in named:
        kinds = by_option.setdefault(option, [0, 0, 0])
        if option in unmatched:
            unmatched.remove(option)
            kinds[0] += 1
        elif option in question.wrong:
            kinds[1] += 1
    for option in right:
        by_option.setdefault(option, [0, 0, 0])[2] += 1
    if not named:
        return True, not right and not released, by_option
    offered = [option for option in named if option in question.listed]
    exact = bool(offered) and len(offered) == len(right) and set(offered) == set(right)
    return False, exact, by_option
