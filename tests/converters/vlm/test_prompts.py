"""Prompts, and that the answers they ask for are read back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hoicli.converters.vlm.frames import resized_by_qwen
from hoicli.vocabulary.datasets import load
from tests.support.project import EIGHT, Hoicli, parsed, records_of, refusal, saved, triplets_of, written
from tests.support.questions import batch_result

GT = EIGHT / "gt.jsonl"


def truth() -> dict[str, dict[str, Any]]:
    return {record["image_id"]: record for record in parsed(GT.read_text())}


def triplets(record: dict[str, Any]) -> set[tuple[Any, ...]]:
    return {(tuple(person), verb, label, tuple(other)) for person, verb, label, other, _ in triplets_of(record)}


def close(found: set[tuple[Any, ...]], expected: set[tuple[Any, ...]], within: float) -> bool:
    """The same triplets, their boxes equal but for the rounding of a convention."""

    def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return one[1:3] == other[1:3] and all(
            abs(a - b) <= within for at in (0, 3) for a, b in zip(one[at], other[at], strict=True)
        )

    return len(found) == len(expected) and all(any(alike(one, other) for other in expected) for one in found)


@pytest.mark.parametrize(("coords", "write", "within"), [
    ("pixels", lambda box, _, __: box, 0),
    ("1000", lambda box, w, h: [round(1000 * v / side) for v, side in zip(box, (w, h, w, h), strict=True)], 0.33),
    ("1000-yx", lambda box, w, h: [round(1000 * box[at] / (h, w)[at % 2 == 0]) for at in (1, 0, 3, 2)], 0.33),
    ("relative", lambda box, w, h: [v / side for v, side in zip(box, (w, h, w, h), strict=True)], 1e-9),
    ("resized:100x50",
     lambda box, w, h: [v * n / s for v, n, s in zip(box, (100, 50) * 2, (w, h) * 2, strict=True)],
     1e-9),
    ("qwen2.5:3136-100352",
     lambda box, w, h: [
         v * n / s for v, n, s in zip(box, resized_by_qwen(w, h, 3136, 100352) * 2, (w, h) * 2, strict=True)
     ],
     1e-9),
])  # fmt: skip
def test_a_model_that_knows_the_truth_gets_it_back(
    hoicli: Hoicli, tmp_path: Path, coords: str, write: Any, within: float
) -> None:
    prompts = parsed(hoicli("prompts", "--coords", coords, GT).out)
    assert [prompt["image_id"] for prompt in prompts] == list(truth())
    answered = tmp_path / "answers.jsonl"
    with answered.open("w") as file:
        for prompt in prompts:
            record = truth()[prompt["image_id"]]
            size = record["width"], record["height"]
            answer: dict[str, Any] = {"interactions": []}
            for hoi in record["hois"]:
                ends = (("person_box", hoi["subject"]), ("object_box", hoi["object"]))
                said = {key: write(record["boxes"][end], *size) for key, end in ends}
                said |= {"object": record["labels"][hoi["object"]].replace("_", " ")}
                answer["interactions"].append({**said, "verbs": [hoi["verb"].replace("_", " ")]})
            jsonschema.validate(answer, prompt["response_format"]["json_schema"]["schema"])
            assert prompt["coords"] == coords
            file.write(json.dumps({**prompt, "response": f"```json\n{json.dumps(answer)}\n```"}) + "\n")
    records = records_of(hoicli("convert", "--from", "vlm", answered))
    assert len(records) == len(truth())
    for record in records:
        original = truth()[record["image_id"]]
        assert close(triplets(record), triplets(original), within)
        assert {key: record[key] for key in ("file_name", "width", "height")} == {
            key: original[key] for key in ("file_name", "width", "height")
        }


def test_prompts_for_qwen_say_the_size_that_the_model_sees(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    path.write_text(
        '{"image_id": "a", "width": 6000, "height": 4000, "boxes": [[0, 0, 3000, 4000]], "labels": ["cup"]}\n'
    )
    for coords, size, recorded in (
        ("qwen2.5", (4368, 2912), "qwen2.5:3136-12845056"),
        ("qwen2.5:3136-1003520", (1204, 812), "qwen2.5:3136-1003520"),
    ):
        (prompt,) = parsed(hoicli("prompts", "--coords", coords, path).out)
        assert f"in pixels of the image, which is {size[0]} wide and {size[1]} high." in prompt["prompt"]
        assert (prompt["coords"], prompt["width"], prompt["height"]) == (recorded, 6000, 4000)


def test_pairs_show_numbered_boxes_and_their_answers_are_read_with_them(hoicli: Hoicli, tmp_path: Path) -> None:
    result = hoicli("prompts", "--task", "pairs", "--coords", "pixels", GT)
    prompts = parsed(result.out)
    asked = [record for record in truth().values() if record["hois"]]
    assert [prompt["image_id"] for prompt in prompts] == [record["image_id"] for record in asked]
    assert result.err == f"hoicli: {len(asked)} prompts; {8 - len(asked)} images without a pair have none\n"
    answered = tmp_path / "answers.jsonl"
    with answered.open("w") as file:
        for prompt in prompts:
            record = truth()[prompt["image_id"]]
            pairs = re.findall(r"\((\d+), (\d+)\)", prompt["prompt"])
            assert {(int(subject), int(thing)) for subject, thing in pairs} == {
                (hoi["subject"], hoi["object"]) for hoi in record["hois"]
            }
            for index in {int(number) for pair in pairs for number in pair}:
                label = record["labels"][index].replace("_", " ")
                assert f"{index}: {label} {record['boxes'][index]}\n" in prompt["prompt"]
            answer = {"interactions": [{"subject": hoi["subject"], "object": hoi["object"], "verbs": [hoi["verb"]]}
                                       for hoi in record["hois"]]}  # fmt: skip
            jsonschema.validate(answer, prompt["response_format"]["json_schema"]["schema"])
            file.write(json.dumps({**prompt, "response": json.dumps(answer)}) + "\n")
    records = parsed(hoicli("convert", "--from", "vlm", "--boxes", GT, answered).out)
    for record in records:
        original = truth()[record["image_id"]]
        assert triplets(record) == triplets(original)
        assert record["boxes"] == original["boxes"]


def test_pairs_are_those_of_the_record_else_everybody_with_everything(hoicli: Hoicli, tmp_path: Path) -> None:
    boxes = [[0, 0, 10, 10], [5, 5, 20, 20], [1, 1, 2, 2]]
    plain = {"image_id": "a", "boxes": boxes, "labels": ["person", "cup", "person"]}
    path = tmp_path / "boxes.jsonl"
    path.write_text(
        json.dumps(plain) + "\n" + json.dumps({**plain, "image_id": "b", "pairs": [{"subject": 2, "object": 1}]}) + "\n"
    )
    prompts = parsed(hoicli("prompts", "--task", "pairs", "--coords", "pixels", path).out)
    shown = [re.findall(r"\(\d, \d\)", prompt["prompt"]) for prompt in prompts]
    assert shown == [["(0, 1)", "(0, 2)", "(2, 0)", "(2, 1)"], ["(2, 1)"]]
    assert "0: person" not in prompts[1]["prompt"]


def test_a_closed_vocabulary_is_listed(hoicli: Hoicli) -> None:
    detect = parsed(hoicli("prompts", "--vocabulary", "hico", GT).out)[0]
    assert "- dining table: clean, eat at, sit at\n" in detect["prompt"]
    assert detect["prompt"].count("\n- ") == 80
    assert "no interaction" not in detect["prompt"]
    assert "no interaction" not in json.dumps(detect["response_format"])
    pairs = parsed(hoicli("prompts", "--task", "pairs", "--vocabulary", "hico", GT).out)[0]
    assert re.findall(r"^- [^:]*", pairs["prompt"], re.MULTILINE) == ["- bench"]
    vcoco = parsed(hoicli("prompts", "--vocabulary", "vcoco", GT).out)[0]
    assert "Objects: person, bicycle," in vcoco["prompt"]


def test_candidates_are_a_detectors_best(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    hois = [
        {"subject": 0, "object": 1, "verb": verb, "score": score}
        for verb, score in (("ride", 0.2), ("hold", 0.9), ("walk", 0.2), ("no_interaction", 1.0), ("fly", 0.95))
    ]
    record = {"image_id": "a", "boxes": [[0, 0, 9, 9], [1, 1, 5, 5]], "labels": ["person", "bicycle"], "hois": hois}
    path.write_text(json.dumps(record) + "\n" + json.dumps({**record, "image_id": "b", "hois": []}) + "\n")
    result = hoicli("prompts", "--vocabulary", "hico", "--candidates", "2", path)
    (prompt,) = parsed(result.out)
    assert "may have:\n- bicycle: hold, ride\nReply" in prompt["prompt"]
    assert '"enum": ["hold", "ride"]' in json.dumps(prompt["response_format"])
    assert prompt["candidates"] == 2
    assert "1 images without a pair or a candidate have none" in result.err


def test_a_long_prompt_says_its_size(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "images.jsonl", '{"image_id": "a"}\n')
    long = hoicli("prompts", "--vocabulary", "swig", path)
    assert "has 150,906 characters (about 37,700 tokens), without the image; --candidates K shortens" in long.err
    short = hoicli("prompts", "--vocabulary", "swig", "--candidates", "0", path)
    assert (short.err, parsed(short.out)[0]["candidates"]) == ("hoicli: 1 prompts\n", 0)
    assert f"Verbs: {load('swig').verbs[0]}, " in parsed(short.out)[0]["prompt"]


@pytest.mark.parametrize(("options", "code", "words"), [
    (("--coords", "miles"), 2, "--coords miles: choose from 1000"),
    (("--coords", "qwen2.5"), 1, "images.jsonl:1: width: the image's size is not known"),
    (("--coords", "pixels"), 1, "images.jsonl:1: width: missing; a prompt in pixels says how large the image is"),
    (("--task", "pairs"), 1, "images.jsonl:1: width: the image's size is not known"),
    (("--candidates", "5"), 2, "--candidates 5: lists a dataset's interactions"),
    (("--candidates", "5", "--vocabulary", "vcoco"), 2, "--candidates 5: lists a dataset's interactions"),
])  # fmt: skip
def test_what_is_refused(hoicli: Hoicli, tmp_path: Path, options: tuple[str, ...], code: int, words: str) -> None:
    path = tmp_path / "images.jsonl"
    path.write_text('{"image_id": "a", "boxes": [[1, 2, 3, 4], [1, 2, 3, 4]], "labels": ["person", "cup"]}\n')
    result = hoicli("prompts", *options, path)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert words in result.err


def test_candidates_of_ground_truth_would_tell_the_answer(hoicli: Hoicli) -> None:
    said = refusal(hoicli("prompts", "--vocabulary", "hico", "--candidates", "5", GT))
    assert "hois[0].score: missing; candidates are a detector's best" in said


def test_an_image_is_asked_about_once(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "twice.jsonl", 2 * GT.read_text().splitlines(keepends=True)[0])
    done = hoicli("prompts", path)
    assert (done.code, len(done.out.splitlines())) == (1, 1)
    assert f"image 'HICO_test2015_00000001' is at {path}:1 already; keep one line an image" in done.err


ANSWER: dict[str, Any] = {"person_box": [100, 200, 300, 400], "object_box": [250, 300, 500, 450]}
ANSWER |= {"object": "bicycle", "verbs": ["ride"]}


@pytest.mark.parametrize("first", ["answered", "failed"])
def test_results_of_openais_batches_find_their_images(hoicli: Hoicli, tmp_path: Path, first: str) -> None:
    """And what has no answer is counted."""
    sizes = tmp_path / "gt.jsonl"
    record = {"image_id": "b", "file_name": "b.png", "width": 1000, "height": 500}
    record |= {"boxes": [], "labels": [], "hois": []}
    written(sizes, [record])
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    failed = {"id": "r", "custom_id": "a", "response": None, "error": error}
    slow = {"custom_id": "c", "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}
    lines = [batch_result("b", json.dumps({"interactions": [ANSWER]})), failed, slow]
    path = written(tmp_path / "results.jsonl", lines if first == "answered" else lines[::-1])
    read = hoicli("convert", "--coords", "1000", "--image-list", sizes, path)
    assert read.code == 0, read.err
    found = json.loads(read.out)
    assert (found["image_id"], found["hois"]) == ("b", [{"subject": 0, "object": 1, "verb": "ride"}])
    assert found["boxes"] == [[100, 100, 300, 200], [250, 150, 500, 225]]
    assert "a batch result without an answer (This request could not be executed in time.): 1" in read.err
    assert "a batch result without an answer (HTTP 429 slow): 1" in read.err
