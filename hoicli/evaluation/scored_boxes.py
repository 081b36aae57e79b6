"""The labelled, scored boxes of a detector, read from prediction records: each has the score that its record states, or
the best score of its triplets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.io.streams import Line
from hoicli.records.columns import RawImages
from hoicli.records.kit import Floats, Ints
from hoicli.records.reading import named_scenes, numbered_scenes, scores_by_box, stated_in_record
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class DetectedBoxes:
    """The D detections of some images. row [D]: the box of each detection, an index into the boxes of `scenes`,
    ascending; score [D]: its score.

    numbers: four counts. `records`: records that have boxes; `scored`: how many of these state scores of boxes;
    `boxes`: boxes that have a score; `unlabelled`: how many of these have no label and are no detections."""

    image_ids: Sequence[str]
    scenes: Scenes
    row: Ints
    score: Floats
    numbers: Counter[str]


def read_detections(lines: Sequence[Line], vocabulary: Vocabulary) -> DetectedBoxes:
    """Return the labelled boxes of some lines of prediction records as detections.

    A box has the score that its record's `scores` states. In a record without `scores`, a box has the best score of the
    triplets that name it, boxes that no triplet names are left out, and of boxes with equal label and corners only the
    best-scored stays. For a bad record this raises what makes `columns.attempt` look for the bad line."""
    raw = named_scenes(lines, vocabulary, scored=True, of_image=("scores",))  # with each record's scores of boxes
    scenes = numbered_scenes(raw, vocabulary, scored=True)
    score = scores_by_box(raw, scenes)
    without_score = np.isnan(score)
    score = np.where(without_score, _best_triplet_scores(raw, scenes), score)
    is_scored = np.isfinite(score)
    is_scored[_find_repeated(scenes, score, np.flatnonzero(is_scored & without_score))] = False
    is_labelled = scenes.labels >= 0
    row = np.flatnonzero(is_scored & is_labelled)
    has_boxes = np.diff(raw.box_start) > 0  # of each record
    states_scores = np.array([scores is not None for scores in raw.each("scores")], dtype=bool)
    numbers = Counter(
        records=int(has_boxes.sum()),
        scored=int((has_boxes & states_scores).sum()),
        boxes=int(is_scored.sum()),
        unlabelled=int((is_scored & ~is_labelled).sum()),
    )
    return DetectedBoxes(scenes.image_ids, scenes, row, score[row], numbers)


def _best_triplet_scores(raw: RawImages, scenes: Scenes) -> Floats:
    """Return [B] for each box the best score of the triplets in its record that name it, -inf if none does. `scenes`
    may have more triplets than the records (`raw`); those that were added do not count."""
    best = np.full(len(scenes.boxes), -np.inf)
    is_stated = stated_in_record(scenes.hoi_start, np.diff(raw.hoi_start))
    for box_of_triplet in (scenes.subject, scenes.object):
        triplets = np.flatnonzero(is_stated & (box_of_triplet >= 0))
        np.maximum.at(best, box_of_triplet[triplets], scenes.score[triplets])
    return best


def _find_repeated(scenes: Scenes, score: Floats, candidates: Ints) -> Ints:
    """Return those of the `candidates` (boxes) that repeat a better-scored one of the same image, label and corners."""
    boxes = np.column_stack([scenes.image_of_box[candidates], scenes.labels[candidates], scenes.boxes[candidates]])
    # equal boxes stand together, the best-scored first: a box that equals its predecessor repeats it
    order = np.lexsort((-score[candidates], *boxes.T))
    repeats_previous = (boxes[order[1:]] == boxes[order[:-1]]).all(axis=1)
    repeated: Ints = candidates[order[1:][repeats_previous]]
    return repeated
