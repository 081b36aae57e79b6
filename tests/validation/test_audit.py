"""An audit against clean sets with one thing planted, a slow twin, and what may not change a candidate."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.boxes import iou
from hoicli.validation.candidates import Rules
from hoicli.validation.ground_truth_audit import KINDS, Audit
from tests.support.audit_found import COMMON, found, world
from tests.support.kernel import Given, ground_truth, lines, share_out
from tests.support.project import GT, PREDICTIONS, Data, Hoicli, Record, refusal
from tests.support.strategies import datasets

HICO = PROTOCOLS["hico"]
Row = dict[str, Any]
VERBS = ("ride", "hold", "walk")


def clean(images: int = 6) -> list[Record]:
    """Annotations without a fault: two people, each with a bicycle that they ride and hold."""
    boxes = [[10, 10, 60, 120], [5, 80, 70, 140], [200, 10, 260, 130], [190, 90, 270, 150]]
    labels = ["person", "bicycle", "person", "bicycle"]
    ends = [(person, verb) for person in (0, 2) for verb in VERBS[: 2 + person // 2]]
    hois = [{"subject": person, "object": person + 1, "verb": verb} for person, verb in ends]
    record = {"boxes": boxes, "labels": labels, "hois": hois}
    return [{"image_id": f"image_{number}", **copy.deepcopy(record)} for number in range(images)]


def predicted(truth: Sequence[Record], seed: int) -> list[Record]:
    """What a good model predicts: everything annotated, a little off and with a high score, and wrong verbs with low
    ones."""
    chance, made = Random(seed), []
    for record in truth:
        boxes = [[edge + chance.uniform(-1, 1) for edge in box] for box in record["boxes"]]
        right = {(hoi["subject"], hoi["object"], hoi["verb"]) for hoi in record["hois"]}
        pairs = dict.fromkeys((subject, object_) for subject, object_, _ in sorted(right))
        hois = [
            {"subject": subject, "object": object_, "verb": verb,
             "score": 0.9 if (subject, object_, verb) in right else 0.05}
            for subject, object_ in pairs for verb in (*VERBS, "wash")
        ]  # fmt: skip
        made.append({"image_id": record["image_id"], "boxes": boxes, "labels": list(record["labels"]), "hois": hois})
    return made


def audited(truth: Sequence[Record], *models: Sequence[Record], rules: Rules | None = None) -> list[Row]:
    streams = [(f"m{number}", Given(lines(records))) for number, records in enumerate(models)]
    made = Audit(ground_truth(truth), HICO, rules or Rules(), streams)
    rows = [*made.candidates(None), *made.means()]
    return json.loads(json.dumps(rows))  # type: ignore[no-any-return]


def candidates(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["metric"] == "candidate"]


def two_models(truth: Sequence[Record]) -> Data:
    return predicted(truth, 1), predicted(truth, 2)


def test_a_clean_set_has_no_candidates() -> None:
    truth = clean()
    rows = audited(truth, *two_models(truth))
    counts = [(row["kind"], row["value"]) for row in rows if row["metric"] == "candidates"]
    assert counts == [(kind, 0) for kind in KINDS]
    deltas = [row["value"] for row in rows if row["metric"] == "audit_delta_mAP" and row["subset"] == "full"]
    assert deltas == [0.0] * 8


def drawn_again() -> tuple[list[Record], Data]:
    """(ground truth with a person's box once more, what two models predict)."""
    truth = clean()
    models = two_models(truth)
    truth[3]["boxes"].append([11, 10, 60, 119])
    truth[3]["labels"].append("person")
    return truth, models


def test_a_box_drawn_twice_is_found_and_nothing_else() -> None:
    truth, models = drawn_again()
    truth[3]["hois"][1]["subject"] = 4  # who holds is drawn again
    (found,) = candidates(audited(truth, *models))
    assert (found["kind"], found["image_id"], found["boxes"], found["label"]) == (
        "near_duplicate", "image_3", [0, 4], "person",
    )  # fmt: skip
    assert (found["hois"], found["verbs"]) == ([0, 1], [["ride"], ["hold"]])


def test_a_triplet_annotated_twice_costs_recall_until_it_is_merged() -> None:
    truth, models = drawn_again()
    truth[3]["hois"].append({"subject": 4, "object": 1, "verb": "ride"})
    rows = audited(truth, *models)
    (found,) = candidates(rows)
    assert found["kind"] == "near_duplicate"
    full = [row for row in rows if row.get("subset") == "full" and "model" in row["tags"]]
    of = {(row["metric"], row["tags"]["annotations"]): row["value"] for row in full}
    clean_rows = audited(clean(), *models)
    (best, *_) = [row["value"] for row in clean_rows if row["metric"] == "mAP" and row["subset"] == "full"]
    assert of["mAP", "as_given"] < of["mAP", "duplicates_merged"] == best
    assert of["audit_delta_mAP", "duplicates_merged"] == best - of["mAP", "as_given"]


def test_a_wrong_verb_is_found_from_both_sides_and_nothing_else() -> None:
    truth = clean()
    models = two_models(truth)
    truth[2]["hois"][0]["verb"] = "walk"
    found, missing = candidates(audited(truth, *models))
    assert (found["kind"], found["image_id"], found["verb"], found["hoi"]) == ("contradicted", "image_2", "walk", 0)
    assert found["boxes"] == missing["boxes"] == [0, 1]
    assert [(model["model"], model["verb"]) for model in found["models"]] == [("m0", "ride"), ("m1", "ride")]
    assert all(model["own_score"] <= 0.1 for model in found["models"])
    assert (missing["kind"], missing["verb"]) == ("missing_label", "ride")
    # 11 true positives of "ride" score the same and none higher; five of "walk" are wrong with that score
    assert missing["value"] == pytest.approx(11 / 12 * 1 / 2)
    assert found["value"] == pytest.approx(missing["value"] * 5 / 6)


def test_a_wrong_object_is_found_although_its_box_has_another_label() -> None:
    truth = clean()
    models = two_models(truth)
    truth[2]["labels"][1] = "horse"
    found = candidates(audited(truth, *models))
    assert {row["image_id"] for row in found} == {"image_2"}
    assert [(row["kind"], row["verb"], row["object"], row["boxes"]) for row in found] == [
        ("contradicted", "hold", "horse", [0, 1]),
        ("contradicted", "ride", "horse", [0, 1]),
        ("missing_label", "hold", "bicycle", [0, None]),
        ("missing_label", "ride", "bicycle", [0, None]),
    ]
    assert {model["object"] for row in found[:2] for model in row["models"]} == {"bicycle"}


def test_a_dropped_label_is_found_and_nothing_else() -> None:
    truth = clean()
    models = two_models(truth)
    del truth[4]["hois"][0]
    rows = audited(truth, *models)
    (found,) = candidates(rows)
    assert (found["kind"], found["image_id"], found["verb"], found["object"]) == (
        "missing_label", "image_4", "ride", "bicycle",
    )  # fmt: skip
    assert (found["boxes"], found["n"]) == ([0, 1], 2)
    full = [row for row in rows if (row["metric"], row["subset"]) == ("mAP", "full")]
    of = {row["tags"]["annotations"]: row["value"] for row in full}
    whole = audited(clean(), *models)
    assert of["missing_added"] == next(row["value"] for row in whole if row["metric"] == "mAP") > of["as_given"]


def test_an_unannotated_pair_is_found_with_the_boxes_of_the_surest() -> None:
    truth = clean()
    models = two_models(truth)
    truth[1]["boxes"], truth[1]["labels"] = truth[1]["boxes"][:2], truth[1]["labels"][:2]
    truth[1]["hois"] = truth[1]["hois"][:2]
    found = candidates(audited(truth, *models))
    assert {(row["kind"], row["verb"]) for row in found} == {("missing_label", verb) for verb in VERBS}
    for row in found:
        assert (row["boxes"], row["image_id"]) == ([None, None], "image_1")
        assert any(row["where"] == [model[1]["boxes"][2], model[1]["boxes"][3]] for model in models)


def test_one_of_two_models_is_enough_unless_more_are_asked_for() -> None:
    truth = clean()
    first, second = two_models(truth)
    del truth[4]["hois"][0]
    second[4]["hois"] = [hoi for hoi in second[4]["hois"] if (hoi["subject"], hoi["verb"]) != (0, "ride")]
    assert candidates(audited(truth, first, second, rules=Rules(votes=2))) == []
    (found,) = candidates(audited(truth, first, second))
    assert (found["kind"], found["n"], [model["model"] for model in found["models"]]) == ("missing_label", 1, ["m0"])
    third = predicted(truth, 3)
    assert candidates(audited(truth, first, second, third)) == []  # two of three


def test_one_example_makes_nobody_sure() -> None:
    truth = clean(2)
    models = two_models(truth)
    del truth[0]["hois"][4]  # of the two that walk
    (found,) = candidates(audited(truth, *models))
    assert (found["verb"], found["value"]) == ("walk", pytest.approx(1 / 2 * 1 / 2))
    assert candidates(audited(truth, *models, rules=Rules(sure=0.3))) == []


@given(datasets(least=0))
@settings(max_examples=20)
def test_duplicates_are_every_two_boxes_of_a_label_that_overlap(case: Data) -> None:
    truth, _ = case
    expected = set()
    for record in truth:
        for one, other in combinations(range(len(record["boxes"])), 2):
            boxes = [[x1, y1, x2 + 1, y2 + 1] for x1, y1, x2, y2 in (record["boxes"][one], record["boxes"][other])]
            if record["labels"][one] == record["labels"][other] and all(b[2] > b[0] and b[3] > b[1] for b in boxes):
                value = float(iou(*np.array(boxes, dtype=float)[:, :, None], inclusive=False)[0])
                if value >= 0.4:
                    expected.add((record["image_id"], one, other, round(value, 9)))
    found = candidates(audited(truth, rules=Rules(same=0.4)))
    assert {(row["image_id"], *row["boxes"], round(row["value"], 9)) for row in found} == expected
    assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
    assert [row["value"] for row in found] == sorted((row["value"] for row in found), reverse=True)


def test_the_command_in_shares_of_the_file(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = clean(40)
    models = two_models(truth)
    truth[2]["hois"][0]["verb"] = "walk"
    del truth[4]["hois"][0]
    models[1][4]["hois"] = []
    for name, records in (("gt", truth), ("one", models[0]), ("two", models[1])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ("audit", "--gt", tmp_path / "gt.jsonl", tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    whole = hoicli(*words)
    assert [json.loads(line)["kind"] for line in whole.out.splitlines() if '"candidate"' in line] == [
        "contradicted", "missing_label", "missing_label",
    ]  # fmt: skip
    assert hoicli(*words, "--votes", "2").err == "hoicli: --votes 1 finds 2 missing_label (now 1)\n"
    share_out(monkeypatch, 4096)
    assert hoicli(*words) == whole


@pytest.mark.parametrize(("words", "message"), [
    (("--votes", "3", PREDICTIONS), "--votes 3: give a whole number from 1 to 1"),
    (("--sure", "20"), "--sure 20: give a number from 0 to 1"),
    (("--same", "0"), "--same 0: give a number above 0, up to 1"),
    (("--protocol", "hico-image", PREDICTIONS), "--protocol hico-image: has no boxes"),
])  # fmt: skip
def test_a_wrong_call(hoicli: Hoicli, words: tuple[object, ...], message: str) -> None:
    assert message in refusal(hoicli("audit", "--gt", GT, *words), 2)


@pytest.mark.long
def test_what_the_page_says_about_300_images_with_25_errors_of_each_kind() -> None:
    made = world(300, COMMON)
    of = [found(made, Rules(), 1, 25, seed) for seed in range(4)]
    mean = {key: sum(each[key] for each in of) / 4 for key in set().union(*of)}
    wrong = mean["contradicted", "wrong verb"] + mean["contradicted", "wrong object"]
    assert wrong > 1.5 * mean["contradicted", "false"]  # most contradicted triplets are wrong
    assert all(mean["missing_label", error] > 8 for error in ("wrong verb", "wrong object", "missing triplet"))
    wider = found(made, Rules(sure=0.1), 1, 25, 0)
    assert wider["contradicted", "wrong verb"] > of[0]["contradicted", "wrong verb"]
    assert found(made, Rules(), 0, 25, 0)["near_duplicate", "box twice"] == 25
