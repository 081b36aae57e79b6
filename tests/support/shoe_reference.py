"""SHOE in plain Python, line by line after Algorithms 1 and 2 of its supplement, sharing no code with hoicli.

It loops as the algorithms do, keeps their epsilon and their (0, 0) pairs, and works on floats; tests hold the arrays of
hoicli.shoe to it on random data. Numbers in comments are the algorithms' lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.support.project import Record
from tests.support.reference import overlap

Class = tuple[str, str | None]
EPSILON = 1e-8


def similarity_of(
    label: str | None,
    sense: str | None,
    other: str | None,
    named: str | None,
    candidates: Callable[[str], list[str]],
    table: dict[frozenset[str], float],
) -> float:
    """S of a ground-truth label with its sense and a predicted label, perhaps with a sense of its own."""
    if label is None or other is None:
        return 1.0 if label is other else 0.0
    same = label.lower().replace("_", " ").split() == other.lower().replace("_", " ").split()
    pool = [named] if named else candidates(other)
    if sense is None or not pool:
        return float(same)
    if same and not named:
        return 1.0
    return max(1.0 if sense == candidate else table.get(frozenset((sense, candidate)), 0.0) for candidate in pool)


def combined(verb: float, thing: float, alone: bool, how: str, weight: float) -> float:
    if alone:
        return verb
    if how == "min":
        return min(verb, thing)
    total = weight * verb + (1 - weight) * thing if how == "mean" else verb**weight * thing ** (1 - weight)
    return round(total, 9)


def overlaps(truth: Record, item: Record, record: Record, hoi: Record) -> float:
    """The smaller IoU of the two subjects and the two objects; 0 where one alone has an object."""
    subjects = overlap("swig", truth["boxes"][item["subject"]], record["boxes"][hoi["subject"]])
    if item["object"] is None or hoi["object"] is None:
        return subjects if item["object"] is hoi["object"] else 0.0
    return min(subjects, overlap("swig", truth["boxes"][item["object"]], record["boxes"][hoi["object"]]))


def label_of(record: Record, hoi: Record) -> str | None:
    return None if hoi["object"] is None else str(record["labels"][hoi["object"]])


def evaluate(
    truths: list[Record],
    predictions: list[Record],
    sigma: Callable[[Record, Record, Record, Record], float],
    *,
    delta: float,
    area: str = "envelope",
    keep: Callable[[Record], bool] = bool,
    everywhere: bool = False,
    floor: float = 0.0,
) -> dict[str, Any]:
    """soft_map over all predictions (`everywhere`: over those to `keep`), mf1 and the miss rates over those to `keep`,
    in fractions; None where undefined. floor: the least similarity of a match.

    sigma(truth, its hoi, prediction, its hoi) is the combined similarity.
    """
    found = {str(record["image_id"]): record for record in predictions}
    empty: Record = {"boxes": [], "labels": [], "hois": []}
    pairs: dict[Class, list[tuple[float, float, bool, str, int]]] = defaultdict(list)  # S_k and L_k
    count: dict[Class, int] = defaultdict(int)
    for truth in truths:  # Algorithm 1, 5
        image = str(truth["image_id"])
        record = found.get(image, empty)
        if everywhere:
            record = {**record, "hois": [hoi for hoi in record["hois"] if keep(hoi)]}
        taken, nearest = match(truth, record, record["hois"], sigma, delta, floor)
        for item, (place, value) in zip(truth["hois"], taken, strict=True):
            k = (item["verb"], label_of(truth, item))
            count[k] += 1  # 11
            if place is None:
                pairs[k].append((0.0, 0.0, True, image, -1))  # 20
            else:
                pairs[k].append((record["hois"][place].get("score", 0.0), value, False, image, place))  # 17
        for place, k in nearest:
            pairs[k].append((record["hois"][place].get("score", 0.0), 0.0, False, image, place))  # 28
    areas = []
    for k in count:  # 32
        # 33; the (0, 0) pairs last among scores of 0
        ranked = sorted(pairs[k], key=lambda pair: (-pair[0], *pair[2:]))
        areas.append(area_under([value for _, value, *_ in ranked], count[k], area))

    tp: dict[Class, float] = defaultdict(float)
    fp: dict[Class, float] = defaultdict(float)
    fn: dict[Class, float] = defaultdict(float)
    missed = unmatched = kept = 0
    for truth in truths:  # Algorithm 2, 5
        record = found.get(str(truth["image_id"]), empty)
        hois = [hoi for hoi in record["hois"] if keep(hoi)]  # 2
        taken, nearest = match(truth, record, hois, sigma, delta, floor)
        for item, (place, value) in zip(truth["hois"], taken, strict=True):
            k = (item["verb"], label_of(truth, item))
            tp[k] += value  # 15
            fp[k] += 1 - value if place is not None else 0.0  # 16
            fn[k] += place is None  # 19
            missed += place is None
        for _, k in nearest:
            fp[k] += 1  # 26
        kept += len(hois)
        unmatched += len(hois) - sum(place is not None for place, _ in taken)
    f1 = []
    for k in count:  # 30
        precision = tp[k] / (tp[k] + fp[k] + EPSILON)  # 32
        recall = tp[k] / (tp[k] + fn[k] + EPSILON)  # 33
        f1.append(2 * precision * recall / (precision + recall + EPSILON))  # 34
    return {
        "soft_map": sum(areas) / len(areas) if areas else None,
        "mf1": sum(f1) / len(f1) if f1 else None,
        "gt_miss_rate": missed / sum(count.values()) if count else None,
        "prediction_miss_rate": unmatched / kept if kept else None,
    }


def match(
    truth: Record,
    record: Record,
    hois: list[Record],
    sigma: Callable[[Record, Record, Record, Record], float],
    delta: float,
    floor: float = 0.0,
) -> tuple[list[tuple[int | None, float]], list[tuple[int, Class]]]:
    """([(matched prediction or None, its similarity)] of the ground truth, [(unmatched prediction, class it counts
    against)]): lines 8 to 31 of Algorithm 1."""
    matched = [False] * len(hois)  # 8
    taken: list[tuple[int | None, float]] = []
    for item in truth["hois"]:  # 9
        candidates = [
            place
            for place, hoi in enumerate(hois)
            if not matched[place]
            and overlaps(truth, item, record, hoi) >= 0.5
            and sigma(truth, item, record, hoi) >= floor
        ]  # 12
        if candidates:  # 13
            best = min(
                candidates,
                key=lambda place: (-sigma(truth, item, record, hois[place]), -hois[place].get("score", 0.0), place),
            )  # 14, and the rule for ties
            taken.append((best, sigma(truth, item, record, hois[best])))  # 16
            matched[best] = True  # 18
        else:
            taken.append((None, 0.0))
    against = []
    for place, hoi in enumerate(hois):  # 23
        if not matched[place] and truth["hois"]:
            nearest = max(truth["hois"], key=lambda item: sigma(truth, item, record, hoi))  # 24, the first of equals
            if sigma(truth, nearest, record, hoi) >= delta:  # 26
                against.append((place, (nearest["verb"], label_of(truth, nearest))))
    return taken, against


def area_under(gains: list[float], positives: int, area: str) -> float:
    """Lines 35 to 39."""
    precision, recall = [], []
    tp = 0.0
    for i, gain in enumerate(gains, start=1):
        tp += gain  # 35
        fp = i - tp  # 36
        precision.append(tp / (tp + fp + EPSILON))  # 37
        recall.append(tp / (positives + EPSILON))  # 38
    if area == "11-point":
        # Without the epsilon of line 38 a recall of 3/10 reaches the point 0.3 of other protocols' grid or not by the
        # last digit of a float; it is rounded away.
        recall = [round(r, 6) for r in recall]
        points = [step / 10 for step in range(11)]
        return (
            sum(max((p for p, r in zip(precision, recall, strict=True) if r >= point), default=0.0) for point in points)
            / 11
        )
    if area == "trapezoid":
        curve = [(0.0, 1.0), *zip(recall, precision, strict=True)]
        return sum((b[0] - a[0]) * (b[1] + a[1]) / 2 for a, b in pairwise(curve))
    total, before = 0.0, 0.0
    for i, r in enumerate(recall):
        total += (r - before) * (max(precision[i:]) if area == "envelope" else precision[i])
        before = r
    return total


def plain_map(truths: list[Record], predictions: list[Record], area: str = "envelope") -> float | None:
    """mAP by equal labels: a prediction belongs to the ground truth of its class with the largest min(IoU), the first
    of equals; the best score takes it."""
    found = {str(record["image_id"]): record for record in predictions}
    classes = {(item["verb"], label_of(truth, item)) for truth in truths for item in truth["hois"]}
    areas = []
    for k in classes:
        rows = []
        positives = 0
        for truth in truths:
            image = str(truth["image_id"])
            items = [item for item in truth["hois"] if (item["verb"], label_of(truth, item)) == k]
            positives += len(items)
            record = found.get(image, {"hois": []})
            for place, hoi in enumerate(record["hois"]):
                if (hoi["verb"], label_of(record, hoi)) == k:
                    rows.append((-hoi["score"], image, place, truth, items, record, hoi))
        taken: set[tuple[str, int]] = set()
        gains = []
        for _, image, _, truth, items, record, hoi in sorted(rows, key=lambda row: row[:3]):
            best, at = 0.0, None
            for number, item in enumerate(items):
                both = overlaps(truth, item, record, hoi)
                if both >= 0.5 and both > best:
                    best, at = both, number
            gains.append(float(at is not None and (image, at) not in taken))
            if at is not None:
                taken.add((image, at))
        areas.append(area_under(gains, positives, area))
    return sum(areas) / len(areas) if areas else None
