"""Made-up multiple-choice questions in the manner of CrossHOI-Bench, answers to them, and a detector's dump about them;
and results of grounding in the manner of hoi-benchmarks.

Names of files, images and classes are such that the released scripts take them (tests/questions/golden). What is odd in
the published files is odd here: options listed twice, or as right and wrong; questions without a right option, with
fewer than four options, of an image's several with other options; options that are in no class of macro F1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from hoicli.vocabulary.datasets import load

Json = dict[str, Any]

FILES = {
    ("hico", "scene"): "hicodet/our_test/crosshoi_bench_allscene_final.json",
    ("hico", "person"): "hicodet/our_test/crosshoi_bench_hum_box_final.json",
    ("hico", "pair"): "hicodet/our_test/crosshoi_bench_hum_obj_box_final.json",
    ("vcoco", "scene"): "vcoco/our_test/vcoco_newbench_none.json",
    ("vcoco", "person"): "vcoco/our_test/vcoco_newbench_person.json",
    ("vcoco", "pair"): "vcoco/our_test/vcoco_newbench_ho.json",
    ("swig", "scene"): "swighoi/our_test/swighoi_newbench_none.json",
    ("swig", "person"): "swighoi/our_test/swighoi_newbench_person.json",
    ("swig", "pair"): "swighoi/our_test/swighoi_newbench_ho.json",
}
"""What the benchmark calls its files, by dataset and setting."""
MANNERS = ("perfect", "all", "random", "good", "empty", "wrong", "malformed", "missing")
IMAGES = 40


@cache
def _names(dataset: str) -> tuple[str, ...]:
    if dataset == "swig":
        return load("swig").verbs[:60]
    things = ("person", "horse", "bicycle", "dining_table", "cup")
    verbs = [pair for pair in load("hico").interactions if pair[1] in things]
    names = [f"{verb} a/an {name}" if verb != "no_interaction" else f"{verb} with a/an {name}" for verb, name in verbs]
    if dataset == "hico":
        return (*names, "lick a/an bicycle", "cut_ with a/an horse")
    spaced = [name.replace("_", " ") for name in names]
    return (*spaced, "look at a/an frisbee", "work on a/an laptotp", "sit on a/an bench")


def questions(dataset: str, setting: str) -> Json:
    random = Random(f"questions {dataset} {setting}")
    begin = {"hico": "HICO_test2015_", "vcoco": "COCO_val2014_", "swig": "arranging_"}[dataset]
    found: Json = {}
    for number in range(1, IMAGES + 1):
        several = 1 if dataset == "hico" else random.choice((1, 1, 2, 3))
        asked = {f"QA_{at}": _question(random, dataset, setting) for at in range(several)}
        found[f"{begin}{number:08}.jpg"] = asked["QA_0"] if dataset == "hico" else asked
    return found


def _question(random: Random, dataset: str, setting: str) -> Json:
    names = _names(dataset)
    if dataset != "swig" and random.random() < 0.6:  # one object, as in most
        name = random.choice(names).split(" a/an ")[1]
        alike = [text for text in names if text.endswith(" a/an " + name)]
        names = tuple(alike) if len(alike) >= 4 else names
    options = random.sample(names, random.choice((3, 4, 4, 4, 4, 5)))
    right = options[: random.choice((0, 1, 1, 2, 2, 3, len(options)))]
    wrong = options[len(right) :]
    if random.random() < 0.1 and right:
        wrong = [*wrong, right[0]]
    if random.random() < 0.1 and wrong:
        wrong = [*wrong, wrong[-1]]
    question: Json = {"gt_choices": right, "wrong_choices": wrong}
    if setting != "scene":
        boxes: Json = {"human": _box(random)}
        if setting == "pair" or dataset != "hico":
            boxes["object"] = _box(random)
        if dataset != "hico":
            boxes["object_class"] = right[0].split(" a/an ")[1] if right and " a/an " in right[0] else "person"
        question["boxes"] = boxes
    return question


def _box(random: Random) -> list[float]:
    x, y = random.randrange(1200) / 4, random.randrange(1000) / 4
    return [x, y, x + random.randrange(40, 800) / 4, y + random.randrange(40, 800) / 4]


def each(bank: Json) -> Iterator[tuple[str, str, Json]]:
    for file_name, entry in bank.items():
        for name, question in (entry if "QA_0" in entry else {"QA_0": entry}).items():
            yield file_name, name, question


def answers(bank: Json, manner: str) -> Json:
    random = Random(f"answers {manner}")
    found: Json = {}
    for file_name, name, question in each(bank):
        chosen = _chosen(random, manner, question["gt_choices"], question["wrong_choices"])
        random.shuffle(chosen)
        if manner == "missing" and random.random() < 0.3:
            continue
        found.setdefault(file_name, {})[name] = chosen
        if manner == "malformed":
            found[file_name][name + "_reasoning"] = "Reasoning: ..."
    return found


def _chosen(random: Random, manner: str, right: list[str], wrong: list[str]) -> list[str]:
    if manner == "malformed":
        return [random.choice([*right, *wrong, "None", "fly a/an kite"]) for _ in range(random.randrange(6))]
    if manner == "good":
        return [t for t in right if random.random() < 0.8] + [t for t in wrong if random.random() < 0.2]
    whole = {"perfect": right, "all": right + wrong, "wrong": wrong, "empty": list[str]()}
    if manner in whole:
        return list(whole[manner])
    return [text for text in right + wrong if random.random() < 0.5]


def dump(bank: Json, dataset: str) -> Json:
    """A detector's output as released: several predictions of an option, boxes near those of the questions or
    elsewhere, some that overlap by exactly one half, equal scores; some images are left out, some have nothing."""
    random = Random(f"dump {dataset}")
    found: Json = {}
    for file_name, _, question in each(bank):
        image = found.setdefault(file_name, {"h_boxes": [], "o_boxes": [], "ho_scores": [], "ao_names": []})
        boxes = question.get("boxes", {})
        for option in question["gt_choices"] + question["wrong_choices"]:
            for _ in range(random.randrange(3)):
                name = option if " a/an " in option else f"{option} a/an {random.choice(('person', 'person', 'dog'))}"
                image["h_boxes"].append(_near(random, boxes.get("human")))
                image["o_boxes"].append(_near(random, boxes.get("object")))
                image["ho_scores"].append(random.randrange(1, 30) / 30)
                image["ao_names"].append(name)
    for at, file_name in enumerate(bank):
        if at % 9 == 4:
            del found[file_name]
        elif at % 9 == 7:
            found[file_name] = {"h_boxes": [], "o_boxes": [], "ho_scores": [], "ao_names": []}
    return found


def _near(random: Random, box: list[float] | None) -> list[float]:
    if box is None or random.random() < 0.2:
        return _box(random)
    x1, y1, x2, y2 = box
    if random.random() < 0.2:
        return [x1, y1, x1 + (x2 - x1) / 2, y2]
    return [side + random.randrange(-20, 20) / 4 for side in box]


def grounding(seed: int, questions: int = 120) -> list[Json]:
    """Results of grounding: pairs that are equal, or differ in the object alone; predictions near the true boxes or
    elsewhere, some that overlap by exactly one half, some without area; questions without a pair."""
    random = Random(f"grounding {seed}")
    rows = []
    for number in range(questions):
        truth = [_pair(_sized(random), _sized(random)) for _ in range(random.choice((0, 1, 1, 1, 2, 3, 6)))]
        if truth and random.random() < 0.3:
            truth.append(_pair(truth[0]["person_bbox"], _moved(random, truth[0]["object_bbox"])))
        if truth and random.random() < 0.2:
            truth.append(dict(truth[0]))
        found = [
            _pair(_moved(random, pair["person_bbox"]), _moved(random, pair["object_bbox"]))
            for pair in truth
            for _ in range(random.randrange(3))
        ]
        random.shuffle(found)
        if random.random() < 0.1:
            found.append(_pair([30.0, 30.0, 10.0, 10.0], [0.0, 0.0, 0.0, 0.0]))
        row = {"image_id": number, "image_path": f"{number % 80}.jpg", "action": "riding", "object_category": "horse"}
        rows.append({**row, "predicted_pairs": found, "gt_pairs": truth, "status": "success"})
    return rows


def _pair(person: list[float], other: list[float]) -> Json:
    return {"person_bbox": person, "object_bbox": other}


def _sized(random: Random) -> list[float]:
    x, y, side = random.randrange(2000) / 4, random.randrange(1600) / 4, random.choice((40, 128, 400, 1200))
    return [x, y, x + random.randrange(side // 3, side) / 4, y + random.randrange(side // 3, side) / 4]


def _moved(random: Random, box: list[float]) -> list[float]:
    if random.random() < 0.15:
        return _sized(random)
    if random.random() < 0.1:
        return [box[0], box[1], box[0] + (box[2] - box[0]) / 2, box[3]]
    by = random.choice((0.0, 0.0625, 0.25))
    sides = (box[2] - box[0], box[3] - box[1]) * 2
    return [at + random.choice((-by, 0.0, by)) * side for at, side in zip(box, sides, strict=True)]


def batch_result(custom_id: str, text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    body = {"object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 200}}
    return {"id": "r", "custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}
