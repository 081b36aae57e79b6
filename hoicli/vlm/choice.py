"""The figures of multiple choice: macro, instance and micro F1, exact match (CrossHOI-Bench, arXiv 2508.18753).

Of each question the chosen options are right (tp) or wrong (fp); what was not offered counts for nothing. Instance F1
is the mean over questions of their F1, micro F1 that of all options together, macro F1 the mean over interactions of
theirs; an interaction is in that mean if a question has it as right, or it was chosen. Exact match is the share of
questions of which all right options and no wrong one were chosen. A question without a right option has F1 1 if nothing
was chosen, else 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Weights
from hoicli.vlm.answers import Answers
from hoicli.vlm.bank import Class, Question, class_of
from hoicli.vlm.measured import Key, Measured, share

METRICS = ("macro_f1", "instance_f1", "micro_f1", "exact_match", "precision", "recall")
"""In the order of the rows. The last two are micro F1's."""
MACRO, INSTANCE, MICRO, EXACT, PRECISION, RECALL = ((metric, "full") for metric in METRICS)


@dataclass(frozen=True)
class Tallied(Measured):
    """Per question: image [Q], the number of its image by name; tp, fp, right [Q]; f1 [Q]; exact [Q], 0 or 1; counted
    [Q], 0 for a question that the released script passes over. Per (image, class) that occurs: `cell` [3, C, I] of tp,
    fp and right. per_image: exact match is over images, as released."""

    image: Ints
    images: int
    tp: Ints
    fp: Ints
    right: Ints
    f1: Floats
    exact: Ints
    counted: Ints
    cell: Floats
    per_image: bool = False

    def counts(self) -> dict[Key, int]:
        """Interactions, questions, right options, questions or images, chosen and right options."""
        questions = int(self.counted.sum())
        tp, fp, right = (int((column * self.counted).sum()) for column in (self.tp, self.fp, self.right))
        classes = int(self.cell.sum(axis=2).any(axis=0).sum())
        every = self.images if self.per_image else len(self.image)
        return {MACRO: classes, INSTANCE: questions, MICRO: right, EXACT: every, PRECISION: tp + fp, RECALL: right}

    def rounds(self, weights: Weights) -> dict[Key, Floats]:
        """[R] each of METRICS, by how often each image counts."""
        drawn = weights[self.image].astype(np.float64)  # [Q, R]
        counted = self.counted @ drawn
        tp, fp, right = ((column * self.counted) @ drawn for column in (self.tp, self.fp, self.right))
        every = weights.sum(axis=0) if self.per_image else drawn.sum(axis=0)
        classes = _f1(*(part @ weights for part in self.cell))
        known = ~np.isnan(classes)
        return {
            MACRO: share(np.where(known, classes, 0.0).sum(axis=0), known.sum(axis=0)),
            INSTANCE: share(((self.f1 * self.counted)[:, np.newaxis] * drawn).sum(axis=0), counted),
            MICRO: share(2 * tp, tp + fp + right),
            EXACT: share(self.exact @ drawn, every),
            PRECISION: share(tp, tp + fp),
            RECALL: share(tp, right),
        }


def _f1(tp: Floats | Ints, fp: Floats | Ints, right: Floats | Ints) -> Floats:
    """The F1 of counts, NaN where all are 0; with the operations of the released script, for its last digit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = tp / (tp + fp), tp / right
        both = 2 * (precision * recall) / (precision + recall)
    found: Floats = np.where(tp > 0, both, np.where(fp + right > 0, 0.0, np.nan))
    return found


def tallied(answers: Answers, *, released: bool = False) -> Tallied:
    """What the answers are worth. released: as CrossHOI-Bench's scripts count. A wrong option counts as often as it is
    named, and an answer that names a right one twice matches nothing exactly; nothing chosen matches nothing exactly,
    even where nothing is right; exact match is a share of images; of a detector, images without predictions count in
    exact match alone."""
    bank = answers.bank
    questions = sorted(bank.questions, key=lambda question: question.key)  # sums must not depend on the file's order
    place = {name: at for at, name in enumerate(sorted(bank.by_image))}
    image = np.array([place[question.image_id] for question in questions], dtype=np.int64)
    counts: Ints = np.zeros((6, len(questions)), dtype=np.int64)  # tp, fp, right, exact, counted, empty
    cells: dict[Class, Floats] = {}
    for at, question in enumerate(questions):
        empty, exactly, by_option = _counts(question, answers.given.get(question.key, []), released=released)
        counted = not (released and answers.detected) or question.image_id in answers.images
        counts[:, at] = (*np.sum([*by_option.values(), [0, 0, 0]], axis=0), exactly, counted, empty)
        for option, kinds in by_option.items() if counted else ():
            interaction = class_of(option)
            if bank.counts(interaction):
                cells.setdefault(interaction, np.zeros((3, len(place))))[:, image[at]] += kinds
    cell = np.zeros((3, len(cells), len(place)))
    for row, interaction in enumerate(sorted(cells)):
        cell[:, row] = cells[interaction]
    tp, fp, right, exact, each, unanswered = counts
    f1 = _f1(tp, fp, right)
    f1 = np.where(np.isnan(f1), unanswered, f1)  # nothing is right: right if nothing was chosen
    return Tallied(image, len(place), tp, fp, right, f1, exact, each, cell, per_image=released)


def _counts(question: Question, named: list[str], *, released: bool) -> tuple[bool, bool, dict[str, list[int]]]:
    """(whether nothing is chosen, whether the match is exact, how often each option is rightly chosen, wrongly chosen,
    right) of an answer."""
    right = question.right if released else tuple(dict.fromkeys(question.right))
    if not released:  # what was not offered counts for nothing, also where nothing is right
        named = [option for option in dict.fromkeys(named) if option in question.listed]
    by_option: dict[str, list[int]] = {}
    left = list(right)
    for option in named:
        kinds = by_option.setdefault(option, [0, 0, 0])
        if option in left:
            left.remove(option)
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
