"""A slow evaluator in plain Python, written from the protocols' descriptions and sharing no code with hoicli.

It loops over classes, images, predictions and ground truth as the released evaluators do. Tests hold the kernel to it
on random data (ties, duplicates, degenerate boxes and all), and the benchmark measures how much faster the kernel is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.project import Record

Box = tuple[float, ...]

SHIFT_OF_TRUTH = {
    "hico": (1, 1, 1, 1), "hico-ko": (1, 1, 1, 1), "qpic": (1, 1, 1, 1), "diag": (1, 1, 1, 1),
    "inp-cc": (1, 1, 1, 1), "upt": (0, 0, 1, 1), "swig": (0, 0, 0, 0), "ggnet": (0, 0, 0, 0),
    "ggnet-ko": (0, 0, 0, 0),
}  # fmt: skip
GGNET = ("ggnet", "ggnet-ko")


def overlap(protocol: str, a: Box, b: Box) -> float:
    """IoU of a predicted box and a ground-truth box as the protocol's code computes it."""
    width, height = (min(a[at + 2], b[at + 2]) - max(a[at], b[at]) for at in (0, 1))
    strict = protocol in ("qpic", "diag", *GGNET)
    if strict and min(width, height) <= 0:
        return 0.0
    one = int(strict or protocol in ("hico", "hico-ko"))  # both ends of a box belong to it
    width, height = width + one, height + one
    if min(width, height) <= 0:
        return 0.0
    both = width * height
    margin = 1e-6 if protocol in GGNET else 0.0
    return both / (margin + sum((box[2] - box[0] + one) * (box[3] - box[1] + one) for box in (a, b)) - both)


def average_precision(protocol: str, hits: list[bool], positives: int) -> tuple[float, float]:
    """(AP, largest recall) of hits in ranking order."""
    precision, recall = [], []
    found = 0
    for rank, hit in enumerate(hits, start=1):
        found += hit
        precision.append(found / rank)
        recall.append(found / positives if positives else 0.0)
    ap = 0.0
    for step in range(11):
        # numpy.arange's and torch.linspace's multiples of 0.1 are not i / 10 everywhere
        point = step / 10
        if step == 3 and protocol not in ("inp-cc", "swig"):
            point = 0.1 * 3
        if step in (6, 7) and protocol in ("hico", "hico-ko", "qpic", "diag", *GGNET):
            point = 0.1 * step
        reached = [p for p, r in zip(precision, recall, strict=True) if r >= point]
        ap += (max(reached) if reached else 0.0) / 11
    return ap, max(recall, default=0.0)


def everything(image: str, subject: Box, object_: Box) -> bool:
    return bool(image or subject or object_)


def evaluate(
    protocol: str,
    truth: list[Record],
    predictions: list[Record],
    interactions: list[tuple[str, str]],
    threshold: float = 0.5,
    inside: Callable[[str, Box, Box], bool] = everything,
) -> dict[tuple[str, str], tuple[float, float, int]]:
    """{(verb, object): (AP, largest recall, ground truth)} in fractions, for every one of `interactions`, on the part
    of the data that `inside` tells from an image and the recorded boxes of a triplet in it: ground truth outside is
    ignored, a prediction goes with the ground truth that it belongs to, and if it belongs to none, by its own boxes."""
    shift = SHIFT_OF_TRUTH[protocol]
    annotated: dict[tuple[str, str], dict[str, list[tuple[Box, Box, bool]]]] = defaultdict(lambda: defaultdict(list))
    known: dict[str, set[str]] = defaultdict(set)
    with_boxes, with_interactions = set(), set()
    for record in truth:
        image = str(record["image_id"])
        if record["boxes"]:
            with_boxes.add(image)
        for _, name in record.get("image_hois", ()):
            known[image].add(name)
        for hoi in record["hois"]:
            pair = (hoi["verb"], record["labels"][hoi["object"]])
            if "image_hois" not in record:
                known[image].add(pair[1])
            if protocol == "diag" and hoi["verb"] == "no_interaction":
                continue
            with_interactions.add(image)
            ends = [record["boxes"][hoi[side]] for side in ("subject", "object")]
            boxes = [tuple(x + d for x, d in zip(box, shift, strict=True)) for box in ends]
            recorded = (tuple(record["boxes"][hoi[side]]) for side in ("subject", "object"))
            annotated[pair][image].append((boxes[0], boxes[1], inside(image, *recorded)))

    found: dict[tuple[str, str], list[tuple[float, str, int, Box, Box, bool]]] = defaultdict(list)
    for record in predictions:
        image = str(record["image_id"])
        hois = list(enumerate(record["hois"]))
        if protocol == "diag":
            hois = [(index, hoi) for index, hoi in hois if hoi["verb"] != "no_interaction"]
        if protocol in ("qpic", *GGNET):
            hois = sorted(hois, key=lambda item: -item[1]["score"])[:100]
        for index, hoi in hois:
            name = record["labels"][hoi["object"]]
            if protocol in ("qpic", "diag") and record["labels"][hoi["subject"]] != "person":
                continue
            if protocol == "qpic" and image not in with_boxes:
                continue
            if protocol == "diag" and image not in with_interactions:
                continue
            if protocol in ("hico-ko", "ggnet-ko") and name not in known[image]:
                continue
            boxes = [tuple(record["boxes"][hoi[side]]) for side in ("subject", "object")]
            own = inside(image, *boxes)
            if protocol in ("hico", "hico-ko"):
                boxes = [tuple(x + 1 for x in box) for box in boxes]
            found[hoi["verb"], name].append((hoi["score"], image, index, boxes[0], boxes[1], own))

    results = {}
    for pair in interactions:
        positives = sum(counts for rows in annotated[pair].values() for _, _, counts in rows)
        ranked = sorted(found[pair], key=lambda item: (-item[0], item[1], item[2]))
        if protocol in ("inp-cc", "swig"):
            ranked = ranked[:19_999]
        taken: set[tuple[str, int]] = set()
        hits = []
        for _, image, _, subject, object_, own in ranked:
            best, best_row, counts = 0.0, -1, own
            for row, (truth_subject, truth_object, _) in enumerate(annotated[pair][image]):
                both = min(overlap(protocol, subject, truth_subject), overlap(protocol, object_, truth_object))
                if protocol in GGNET and both > threshold and (image, row) not in taken:
                    best, best_row = both, row
                    break  # the first free one
                if both > best:
                    best, best_row = both, row
            enough = best > threshold if protocol in ("upt", *GGNET) else best >= threshold
            if enough:
                counts = annotated[pair][image][best_row][2]
            hit = enough and (image, best_row) not in taken
            if hit:
                taken.add((image, best_row))
            if counts:
                hits.append(hit)
        ap, recall = average_precision(protocol, hits, positives)
        results[pair] = (ap, recall, positives)
    return results


def error_types(
    truth: Record, predicted: Record, interactions: Sequence[tuple[str, str]], reading: str = "shared"
) -> tuple[list[str | None], list[int | None], list[int | None]]:
    """(type of each prediction or None, true positive of each ground truth, the ground truth each prediction repairs)
    of an image, by protocol diag's boxes and Diag-HOI's definitions. Ground truth counts without no_interaction, and so
    do its boxes. Of equal scores the first class comes first, and ground truth takes repairs class by class; the
    released code has the record's order for both."""
    class_of = {pair: number for number, pair in enumerate(interactions)}
    gt = [hoi for hoi in truth["hois"] if hoi["verb"] != "no_interaction"]
    gt = [hoi for hoi in gt if (hoi["verb"], truth["labels"][hoi["object"]]) in class_of]
    present = {index for hoi in gt for index in (hoi["subject"], hoi["object"])}
    dropped = {index for hoi in truth["hois"] for index in (hoi["subject"], hoi["object"])} - present

    def iou(box: int, truth_box: int) -> float:
        if predicted["labels"][box] != truth["labels"][truth_box] or truth_box in dropped:
            return 0.0
        shifted = tuple(x + 1.0 for x in truth["boxes"][truth_box])
        return overlap("diag", tuple(float(x) for x in predicted["boxes"][box]), shifted)

    own, others = range(len(predicted["boxes"])), range(len(truth["boxes"]))
    near = {box: [index for index in others if iou(box, index) >= 0.5] for box in own}

    def number(record: Record, hoi: Record) -> int:
        return 0 if reading == "released" else class_of.get((hoi["verb"], record["labels"][hoi["object"]]), -1)

    hois = predicted["hois"]
    ranked = sorted(range(len(hois)), key=lambda row: (-hois[row]["score"], number(predicted, hois[row]), row))
    types: list[str | None] = [None] * len(ranked)
    found: list[int | None] = [None] * len(gt)
    counted = []
    for row in ranked:
        hoi = predicted["hois"][row]
        label = predicted["labels"][hoi["object"]]
        no_class = (hoi["verb"], label) not in class_of or hoi["verb"] == "no_interaction"
        person = predicted["labels"][hoi["subject"]] == "person"
        if no_class or not gt or (reading == "released" and not person):
            continue
        counted.append(row)
        humans, things = near[hoi["subject"]] if person else [], near[hoi["object"]]
        joined = [g for g, item in enumerate(gt) if item["subject"] in humans and item["object"] in things]
        same = [g for g in joined if gt[g]["verb"] == hoi["verb"]]
        if same:
            best = max(
                same,
                key=lambda g: (min(iou(hoi["subject"], gt[g]["subject"]), iou(hoi["object"], gt[g]["object"])), -g),
            )
            types[row] = "true_positive" if found[best] is None else "duplicate"
            found[best] = row if found[best] is None else found[best]
        elif humans and things:
            types[row] = "interaction" if joined else "association"
        else:
            types[row] = "object_box" if humans else "human_box" if things else "both_boxes"
    verbs = [item["verb"] for item in gt]
    order = []
    for row in counted:
        hoi = predicted["hois"][row]
        person = predicted["labels"][hoi["subject"]] == "person"  # else its category is wrong, and so is the human box
        has_human = {g for g, item in enumerate(gt) if person and item["subject"] in near[hoi["subject"]]}
        has_thing = {g for g, item in enumerate(gt) if item["object"] in near[hoi["object"]]}
        both, right = has_human & has_thing, bool(near[hoi["subject"]])
        order.append(Candidate(row, types[row] or "", hoi["verb"], has_human, has_thing, both, right))
    turns = sorted(range(len(gt)), key=lambda g: number(truth, gt[g]))
    return types, found, repaired(order, verbs, found, len(types), reading, turns)


@dataclass
class Candidate:
    """A prediction as `repaired` sees it: its place, type and verb, the ground truth whose human box, whose object box
    and both of whose boxes it has, and whether its human box is anybody's."""

    row: int
    error: str
    verb: object
    humans: set[int]
    things: set[int]
    pairs: set[int]
    human_is_right: bool

    def fits(self, released: bool) -> set[int]:
        """The ground truth it could repair, for all its boxes say."""
        if released:
            return self.humans | (set() if self.human_is_right else self.things)
        if self.error == "interaction":
            return self.pairs
        if self.error == "association":
            return self.humans | self.things
        return {"object_box": self.humans, "human_box": self.things}.get(self.error, set())


def repaired(
    order: Sequence[Candidate],
    verbs: Sequence[object],
    found: Sequence[int | None],
    length: int,
    reading: str,
    turns: Sequence[int],
) -> list[int | None]:
    """The ground truth that each of `length` predictions repairs. order: the candidates of an image from the best score
    on; verbs: of its ground truth in annotation order; found: the true positive of each; turns: the
    order in which they take."""
    repairs: list[int | None] = [None] * length
    if reading == "independent":
        for error in ("interaction", "association", "object_box", "human_box"):
            alone = [one for one in order if one.error in (error, "true_positive")]
            for row, g in enumerate(repaired(alone, verbs, found, length, "shared", turns)):
                repairs[row] = g if g is not None else repairs[row]
        return repairs

    def able(g: int) -> list[Candidate]:
        """Those that could repair g, were they free."""
        above = order
        for at, one in enumerate(order):
            if one.row == found[g]:
                above = order[:at]
                break
        chosen = [one for one in above if g in one.fits(reading == "released") and one.error != "true_positive"]
        return chosen if reading == "released" else [one for one in chosen if one.error != "duplicate"]

    def waits(one: Candidate, g: int) -> bool:
        """Whether an association error leaves g alone as ground truth of its own verb is still to come."""
        if reading == "released" or one.error != "association" or verbs[g] == one.verb:
            return False
        return any(verbs[later] == one.verb and one in able(later) for later in turns[turns.index(g) + 1 :])

    for may_wait in (True, False):
        for g in turns:
            if g in repairs:
                continue
            for one in able(g):
                if repairs[one.row] is None and not (may_wait and waits(one, g)):
                    repairs[one.row] = g
                    break
    return repairs
