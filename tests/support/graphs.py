"""Made-up scene graphs: ground truth with any object as subject, and a detector that scores every verb of every pair.

Coordinates are quarters of a pixel, so that they are the same in single precision; `random.Random` gives the same
numbers everywhere. Some boxes overlap their ground truth by exactly one half, some are a few pixels wide, some images
have no relations, some no predictions, and the last verb is never annotated.
"""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

from tests.support.project import Record

OBJECTS = ("person", "dog", "table", "cup", "tree", "hat")
VERBS = ("on", "holding", "near", "wearing", "under", "looking_at", "flying_over")
KS = (20, 50, 100)


def dataset() -> dict[str, Any]:
    """The dataset's file."""
    return {
        "name": "graphs",
        "subjects": list(OBJECTS),
        "verbs": list(VERBS),
        "objects": list(OBJECTS),
        "interactions": [[verb, name] for verb in VERBS for name in OBJECTS],
    }


def truth(seed: int, images: int = 60) -> list[Record]:
    """Ground truth; several verbs for a pair, no triplet twice."""
    random = Random(f"truth {seed}")
    return [_annotated(random, f"{seed}_{number:04}", number) for number in range(images)]


def _annotated(random: Random, image_id: str, number: int) -> Record:
    count = random.randrange(2, 9)
    boxes = [_box(random, tiny=number % 10 == 7) for _ in range(count)]
    labels = [random.choice(OBJECTS) for _ in boxes]
    wanted = 0 if number % 9 == 4 else random.randrange(1, 9)
    triplets = {
        (random.randrange(count), random.randrange(count), min(random.randrange(6), random.randrange(7)))
        for _ in range(wanted)
    }
    hois = [{"subject": s, "object": o, "verb": VERBS[v]} for s, o, v in sorted(triplets) if s != o and v < 6]
    return {"image_id": image_id, "boxes": boxes, "labels": labels, "hois": hois}


def _box(random: Random, *, tiny: bool) -> list[float]:
    x, y = random.randrange(400) / 4, random.randrange(400) / 4
    width, height = (random.randrange(4, 16) if tiny else 2 * random.randrange(20, 200) for _ in range(2))
    return [x, y, x + width / 4, y + height / 4]


def predictions(records: list[Record], seed: int, *, silent: int = 11) -> list[Record]:
    """A detector's output on some ground truth: every verb of every pair, with the scores of boxes and of verbs; the
    triplet's score is their product. Every `silent`-th image has none (0: every image has some)."""
    random = Random(f"predictions {seed}")
    return [_detected(random, record, silent=bool(silent) and at % silent == 3) for at, record in enumerate(records)]


def _detected(random: Random, record: Record, *, silent: bool) -> Record:
    if silent:
        return {"image_id": record["image_id"], "boxes": [], "labels": [], "scores": [], "hois": []}
    boxes = [_moved(random, box) for box in record["boxes"]] + [_box(random, tiny=False)]
    labels = [name if random.random() < 0.85 else random.choice(OBJECTS) for name in record["labels"]]
    labels.append(random.choice(OBJECTS))
    scores = [random.uniform(0.2, 1.0) for _ in boxes]
    annotated = {(hoi["subject"], hoi["object"], hoi["verb"]) for hoi in record["hois"]}
    hois = []
    for subject in range(len(boxes)):
        for object_ in range(len(boxes)):
            if subject == object_:
                continue
            logits = [random.gauss(0, 1) + 2.0 * ((subject, object_, verb) in annotated) for verb in VERBS]
            total = sum(map(math.exp, logits))
            for verb, logit in zip(VERBS, logits, strict=True):
                verb_score = math.exp(logit) / total
                score = scores[subject] * scores[object_] * verb_score
                ends = {"subject": subject, "object": object_}
                hois.append({**ends, "verb": verb, "score": score, "verb_score": verb_score})
    random.shuffle(hois)
    return {"image_id": record["image_id"], "boxes": boxes, "labels": labels, "scores": scores, "hois": hois}


def answers(records: list[Record], seed: int) -> list[Record]:
    """A language model's answers on some ground truth, as R1-SGG writes them: a file's object for each image. Boxes are
    pixels of a copy of twice the size. Some are no JSON, some have boxes alone, some nothing."""
    random = Random(f"answers {seed}")
    rows = []
    for at, record in enumerate(records):
        boxes, said = [_moved(random, box) for box in record["boxes"]], []
        labels = [name if random.random() < 0.85 else random.choice(OBJECTS) for name in record["labels"]]
        ids = [f"{name.replace('_', ' ')}.{number}" for number, name in enumerate(labels, start=1)]
        wanted = [(hoi["subject"], hoi["verb"], hoi["object"]) for hoi in record["hois"]]
        wanted += [(random.randrange(len(ids)), random.choice(VERBS), random.randrange(len(ids))) for _ in range(18)]
        wanted = list(dict.fromkeys(wanted))
        random.shuffle(wanted)
        for subject, verb, object_ in wanted[: 0 if at % 7 == 2 else random.randrange(1, 30)]:
            said.append({"subject": ids[subject], "predicate": verb.replace("_", " "), "object": ids[object_]})
        things = [{"id": own, "bbox": [2 * side for side in box]} for own, box in zip(ids, boxes, strict=True)]
        graph = {"objects": [], "relationships": []} if at % 11 == 5 else {"objects": things, "relationships": said}
        text = "There is nothing." if at % 9 == 8 else json.dumps(graph)
        response = f"<think>So.</think><answer>{text}</answer>"
        rows.append({"image_id": record["image_id"], "response": response, "box_scale": [512.0, 512.0]})
    return rows


def _moved(random: Random, box: list[float]) -> list[float]:
    x1, y1, x2, y2 = box
    kind = random.randrange(6)
    if kind == 0:  # IoU 0.5 to the bit, between edges
        return [x1, y1, x1 + (x2 - x1) / 2, y2]
    if kind == 1:
        return _box(random, tiny=False)
    by = [random.randrange(-24, 25) / 4 * min(1.0, (x2 - x1) / 20) for _ in range(4)]
    return [round(4 * (side + off)) / 4 for side, off in zip((x1, y1, x2 + 8, y2 + 8), by, strict=True)]
