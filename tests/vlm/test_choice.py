"""Multiple choice: the released scripts' figures, cases that follow by hand, and what may not change a number."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from hoicli.commands.doctor import schema_text
from hoicli.converters.containers.source import Source
from hoicli.records.intake import ErrorPolicy
from hoicli.vlm.answers import read_answers
from hoicli.vlm.bank import SETTINGS, Bank, Question, read_bank
from hoicli.vlm.choice import METRICS, tally_answers
from hoicli.vlm.task_scores import Measured
from tests.support import questions as made
from tests.support.project import CHOICE, GT, PREDICTIONS, SHARED, Hoicli, dumped, records_of, refusal, written

GOLDEN = json.loads((Path(__file__).parent / "golden/choice.json").read_text())["figures"]
PUBLISHED = SHARED / "data/crosshoi-bench"


def measured(bank: Path, answers: Path, *, released: bool = False) -> Measured:
    policy = ErrorPolicy()
    questions = read_bank(str(bank), policy)
    given = read_answers([Source(str(answers))], questions, policy, released=released)
    return tally_answers(given, released=released)


def rows(hoicli: Hoicli, *arguments: object) -> dict[str, Any]:
    return {row["metric"]: row for row in records_of(hoicli("vlm-eval", *arguments))}


@pytest.mark.parametrize("case", GOLDEN)
def test_the_released_figures(case: str, tmp_path: Path) -> None:
    dataset, setting, what, *_ = case.split()
    questions = made.questions(dataset, setting)
    content = made.answers(questions, what) if what in made.MANNERS else made.dump(questions, dataset)
    name = {"person": "bank_person.json", "pair": "bank_ho.json"}.get(setting, "bank.json")
    bank, answers = dumped(tmp_path / name, questions), dumped(tmp_path / "answers.json", content)
    scores = measured(bank, answers, released=True).scores()
    if GOLDEN[case] is None:  # the script divides by zero: nothing was chosen, or nothing right
        assert scores["micro_f1", "full"].value == 0.0
    else:
        assert {name: scores[name, "full"].value for name in GOLDEN[case]} == pytest.approx(GOLDEN[case], rel=1e-13)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the published questions")
@pytest.mark.parametrize("file", made.FILES.items(), ids=str)
def test_the_published_questions(file: tuple[tuple[str, str], str]) -> None:
    (dataset, setting), name = file
    bank = read_bank(str(PUBLISHED / name), ErrorPolicy())
    counts = {"hico": (1274, 1274), "vcoco": (647, 499), "swig": (1852, 1851)}
    assert (bank.dataset, bank.setting) == (dataset, setting)
    assert (len(bank.questions), len(bank.by_image)) == counts[dataset]


def test_each_figure(tmp_path: Path) -> None:
    bank = {
        "a.jpg": {"gt_choices": ["ride a/an horse", "hold a/an horse"], "wrong_choices": ["feed a/an horse"]},
        "b.jpg": {
            "QA_0": {"gt_choices": ["ride a/an horse"], "wrong_choices": ["kiss a/an horse"]},
            "QA_1": {"gt_choices": [], "wrong_choices": ["feed a/an horse"]},
        },
        "c.jpg": {"gt_choices": ["hug a/an person"], "wrong_choices": ["kiss a/an person"]},
    }
    answers = {
        "a.jpg": {"QA_0": ["ride a/an horse", "feed a/an horse", "feed a/an horse", "fly"]},
        "b.jpg": {"QA_0": ["ride a/an horse"], "QA_1": []},
    }
    paths = dumped(tmp_path / "bank.json", bank), dumped(tmp_path / "answers.json", answers)
    scores = {name: score.value for (name, _), score in measured(*paths).scores().items()}
    assert scores["instance_f1"] == pytest.approx((1 / 2 + 1 + 1 + 0) / 4)
    assert scores["precision"] == pytest.approx(2 / 3)
    assert scores["recall"] == pytest.approx(2 / 4)
    assert scores["micro_f1"] == pytest.approx(2 * 2 / (3 + 4))
    assert scores["exact_match"] == pytest.approx(2 / 4)
    # riding 1; holding, feeding (chosen once, never right) and hugging 0; kissing is in no mean
    assert scores["macro_f1"] == pytest.approx(1 / 4)
    released = {name: score.value for (name, _), score in measured(*paths, released=True).scores().items()}
    assert released["exact_match"] == pytest.approx(1 / 3)  # by image, and not for the empty answer
    assert released["precision"] == pytest.approx(2 / 4)  # feeding is wrong twice


@pytest.mark.parametrize(
    ("chosen", "value"), [([], 1), (["fly a/an kite"], 1), (["hold a/an cup", "fly a/an kite"], 0)]
)
def test_where_nothing_is_right(chosen: list[str], value: int, tmp_path: Path) -> None:
    """What was not offered counts for nothing; to the released script it is an answer, and a wrong one."""
    bank = {"a.jpg": {"gt_choices": [], "wrong_choices": ["hold a/an cup"]},
            "b.jpg": {"gt_choices": ["ride a/an horse"], "wrong_choices": []}}  # fmt: skip
    answers = {"a.jpg": {"QA_0": chosen}, "b.jpg": {"QA_0": ["ride a/an horse"]}}
    paths = dumped(tmp_path / "bank.json", bank), dumped(tmp_path / "answers.json", answers)
    scores = measured(*paths).scores()
    assert [scores[name, "full"].value for name in ("instance_f1", "exact_match")] == [(1 + value) / 2] * 2
    assert measured(*paths, released=True).scores()["instance_f1", "full"].value == (1 + (not chosen)) / 2


BOXES = {"human": [0, 0, 100, 100], "object": [200, 0, 300, 100]}


@pytest.mark.parametrize(("setting", "row", "chosen"), [
    ("pair", {}, True),
    ("pair", {"human": [0, 0, 50, 100]}, False),  # one half is not more than one half
    ("pair", {"object": [200, 0, 240, 100]}, False),
    ("person", {"object": [200, 0, 240, 100]}, True),
    ("scene", {"human": [0, 0, 50, 100]}, True),
    ("pair", {"name": "ride a/an dog"}, False),
    ("pair", {"name": "hold a/an dog"}, False),  # an option, but of another object
    ("person", {"name": "hold a/an dog"}, True),
    ("scene", {"name": "kiss a/an horse"}, False),  # not offered
])  # fmt: skip
def test_what_a_detector_chooses(setting: str, row: dict[str, Any], chosen: bool, tmp_path: Path) -> None:
    boxes = {key: BOXES[key] for key in ("human", "object")[: SETTINGS.index(setting)]}
    question = {"gt_choices": ["ride a/an horse"], "wrong_choices": ["hold a/an dog"], "boxes": boxes}
    dump = {
        "h_boxes": [row.get("human", BOXES["human"])], "o_boxes": [row.get("object", BOXES["object"])],
        "ho_scores": [0.5], "ao_names": [row.get("name", "ride a/an horse")],
    }  # fmt: skip
    bank = dumped(tmp_path / "bank.json", {"a.jpg": question})
    found = measured(bank, dumped(tmp_path / "dump.json", {"a.jpg": dump}))
    assert found.n["precision", "full"] == chosen


def test_which_predictions_count(tmp_path: Path) -> None:
    """The five best of an image, and what scores as much as the fifth."""
    names = [f"{verb} a/an horse" for verb in ("ride", "hold", "feed", "kiss", "wash", "walk", "hug")]
    boxes = [[0, 0, 1, 1]] * 7
    dump = {"h_boxes": boxes, "o_boxes": boxes, "ho_scores": [0.8, 0.7, 0.8, 0.1, 0.9, 0.2, 0.2]}
    bank = dumped(tmp_path / "bank.json", {"a.jpg": {"gt_choices": names, "wrong_choices": []}})
    answers = dumped(tmp_path / "dump.json", {"a.jpg": {**dump, "ao_names": names}})
    assert measured(bank, answers).n["precision", "full"] == 6


def test_records_and_their_dump_choose_alike(hoicli: Hoicli) -> None:
    """A detector's own records, and the same in the released form (which leaves two images out)."""
    dumps = PREDICTIONS, CHOICE / "detector.json"
    given = [rows(hoicli, "--questions", CHOICE / "pair.json", path) for path in dumps]
    assert [given[0][name] for name in METRICS] == [given[1][name] for name in METRICS]


def test_actions_of_vcoco_have_the_benchmarks_names(tmp_path: Path) -> None:
    record = {
        "image_id": "COCO_val2014_000000000001",
        "boxes": [[0, 0, 9, 9], [5, 5, 9, 9]], "labels": ["person", "tennis_racket"],
        "hois": [{"subject": 0, "object": 1, "verb": "hit", "role": "instr", "score": 0.9},
                 {"subject": 0, "object": 1, "verb": "look", "role": "obj", "score": 0.8},
                 {"subject": 0, "object": None, "verb": "walk", "role": None, "score": 0.7}],
    }  # fmt: skip
    right = ["hit with a/an tennis racket", "look at a/an tennis racket"]
    question = {"gt_choices": right, "wrong_choices": ["hit a/an tennis racket"]}
    bank = dumped(tmp_path / "bank.json", {"COCO_val2014_000000000001.jpg": question})
    assert measured(bank, dumped(tmp_path / "records.jsonl", record)).scores()["exact_match", "full"].value == 1.0


def test_answers_in_text(hoicli: Hoicli) -> None:
    result = hoicli("vlm-eval", "--questions", CHOICE / "scene.json", CHOICE / "answers.jsonl")
    assert result.err.splitlines() == [
        f'hoicli: choices that were not offered, which count for nothing: 1 (the first: {CHOICE}/answers.jsonl:6: "E")',
        "hoicli: answers that are not understood, which count as empty: 1 (the first: "
        f'{CHOICE}/answers.jsonl:7: "I cannot tell from this picture.": more than letters and options)',
    ]
    found = {row["metric"]: row["value"] for row in map(json.loads, result.out.splitlines())}
    assert found["exact_match"] == pytest.approx(100 * 5 / 7)
    assert found["micro_f1"] == pytest.approx(100 * 2 * 10 / (10 + 13))
    for row in map(json.loads, result.out.splitlines()):
        assert "|refused:1|" in row["signature"]
        jsonschema.validate(row, json.loads(schema_text("result")))


def test_order_is_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    random = Random(0)
    bank = made.questions("vcoco", "person")
    answers = made.answers(bank, "good")
    shuffled = [dict(random.sample(list(content.items()), len(content))) for content in (bank, answers)]
    printed = []
    for one, other in ((bank, answers), shuffled):
        paths = dumped(tmp_path / "q_person.json", one), dumped(tmp_path / "a.json", other)
        printed.append(hoicli("vlm-eval", "--bootstrap", 40, "--questions", *paths).out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize(("row", "problem"), [
    ({"response": "A or B"}, "no answer names an option (the first that is not read: "),
    ({"response": "A", "options": {"A": "ride a/an horse", "B": "ride a/an horse"}},
     "options: several letters stand for one option"),
    ({"response": "A", "options": {"A": "ride a/an horse"}}, 'options: without "hold a/an horse"'),
    ({"response": "A", "setting": "pair"}, 'setting: "pair", but the questions are of the setting scene'),
    ({"file_name": "", "response": "A"}, "names no image"),
])  # fmt: skip
def test_bad_answers_are_refused(hoicli: Hoicli, tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    asked = {"gt_choices": ["ride a/an horse"], "wrong_choices": ["hold a/an horse"]}
    bank = dumped(tmp_path / "q.json", {"a.jpg": asked})
    good = {"file_name": "a.jpg", "options": {"A": "ride a/an horse", "B": "hold a/an horse"}}
    path = dumped(tmp_path / "a.jsonl", good | row)
    said = refusal(hoicli("vlm-eval", "--questions", bank, path))
    assert f"{path}:1: " in said
    assert problem in said


def test_answers_nobody_asked_for_and_those_given_twice(hoicli: Hoicli, tmp_path: Path) -> None:
    bank = dumped(tmp_path / "q.json", {"a.jpg": {"gt_choices": ["ride a/an horse"], "wrong_choices": []}})
    right = {"QA_0": ["ride a/an horse"]}
    answers = dumped(tmp_path / "a.json", {"a.jpg": {**right, "QA_1": []}, "b.jpg": {"QA_0": []}})
    result = hoicli("vlm-eval", "--questions", bank, answers)
    assert result.code == 0
    assert "answers to questions that nobody asked, left out: 2" in result.err
    result = hoicli("vlm-eval", "--questions", bank, answers, dumped(tmp_path / "b.json", {"a.jpg": right}))
    assert result.code == 1
    assert "is answered already" in result.err


def test_both_boxes_need_a_name(hoicli: Hoicli, tmp_path: Path) -> None:
    bank = made.questions("vcoco", "pair")
    answers = dumped(tmp_path / "a.json", made.answers(bank, "good"))
    said = refusal(hoicli("vlm-eval", "--questions", dumped(tmp_path / "bank.json", bank), answers))
    assert "end its name in _person.json or _ho.json, as theirs do" in said
    for name, setting in (("vcoco_newbench_person.json", "person"), ("vcoco_newbench_ho.json", "pair")):
        assert read_bank(str(dumped(tmp_path / name, bank)), ErrorPolicy()).setting == setting


def test_the_missing_are_in_the_signature(hoicli: Hoicli, tmp_path: Path) -> None:
    content = json.loads((CHOICE / "saved.json").read_text())
    del content["HICO_test2015_00000007.jpg"]
    found = rows(hoicli, "--questions", CHOICE / "pair.json", dumped(tmp_path / "a.json", content))
    assert "|missing:2|" in found["macro_f1"]["signature"]
    assert found["instance_f1"]["n"] == 5


@pytest.mark.parametrize("name", ["scene.json", "pair.json"])
def test_prompts_are_answered(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    """A model that names every right letter matches everything exactly."""
    asked = hoicli("prompts", "--task", "choice", "--coords", "pixels", CHOICE / name)
    lines = [json.loads(line) for line in asked.out.splitlines()]
    every = made.each(json.loads((CHOICE / name).read_text()))
    questions = {(file.rsplit(".")[0], key): question for file, key, question in every}
    for line in lines:
        question = questions[line["image_id"], line["question"]]
        texts = [text for text in line["options"].values() if text != "None"]
        assert sorted(texts) == sorted(question["gt_choices"] + question["wrong_choices"])
        right = [letter for letter, text in line["options"].items() if text in question["gt_choices"]]
        jsonschema.validate({"answer": right}, line["response_format"]["json_schema"]["schema"])
        line["response"] = json.dumps({"answer": right})
    assert len(lines) == len(questions)
    path = written(tmp_path / "answers.jsonl", lines)
    found = rows(hoicli, "--questions", CHOICE / name, path)
    assert {found[metric]["value"] for metric in METRICS} == {100.0}


def test_a_batch_is_answered(hoicli: Hoicli, tmp_path: Path) -> None:
    """Results have no options: what a letter stands for is known by the id of the request alone. One of each fault is
    counted."""
    call = ("prompts", "--task", "choice", "--coords", "pixels", CHOICE / "pair.json")
    lines = [json.loads(line) for line in hoicli(*call).out.splitlines()]
    bank = {(q.image_id, q.name): q for q in read_bank(str(CHOICE / "pair.json"), ErrorPolicy()).questions}
    results, plain = [], []
    for line in lines:
        right = bank[line["image_id"], line["question"]].right
        text = ", ".join(letter for letter, option in line["options"].items() if option in right)
        results.append(made.batch_result(line["custom_id"], text))
        plain.append({"custom_id": line["custom_id"], "response": text})
    path = tmp_path / "results.jsonl"
    for answered in (results, plain):
        path.write_text("".join(json.dumps(row) + "\n" for row in reversed(answered)))
        found = rows(hoicli, "--questions", CHOICE / "pair.json", path)
        assert {found[metric]["value"] for metric in METRICS} == {100.0}
    other = lines[1]["custom_id"][:-8] + "00000000"  # another order of its options, or another setting
    failed = {"custom_id": lines[0]["custom_id"], "response": None, "error": {"message": "expired"}}
    path.write_text("".join(json.dumps(row) + "\n" for row in (*results[2:], failed, made.batch_result(other, "A"))))
    told = hoicli("vlm-eval", "--questions", CHOICE / "pair.json", path)
    assert f"batch results without an answer: 1 (the first: {path}:{len(lines) - 1}: expired)" in told.err
    assert f"nobody asked, left out: 1 (the first: {path}:{len(lines)}: {other} " in told.err
    assert f"2 of {len(lines)} questions have no answer" in told.err


def test_the_id_of_a_prompt_is_of_its_letters() -> None:
    question = Question("a" * 60, "a.jpg", "QA_0", ("ride a/an horse",), ("hold a/an horse",))
    assert Bank("", (), "hico", "scene").request_id(question).startswith("choice-")  # longer ids are not taken
    short = replace(question, image_id="a")
    other = replace(short, wrong=("feed a/an horse",))
    asked = (("scene", short), ("pair", short), ("scene", other))
    ids = [Bank("", (), "hico", setting).request_id(each) for setting, each in asked]
    assert all(each.startswith("a-QA_0-") and len(each) == 15 for each in ids)
    assert len(set(ids)) == 3


def test_boxes_in_thousandths_need_the_size(hoicli: Hoicli) -> None:
    asked = ("prompts", "--task", "choice", CHOICE / "pair.json")
    assert "--image-list" in hoicli(*asked).err
    told = hoicli(*asked, "--image-list", GT)
    assert "the person is box [498, 117, 622, 815]" in json.loads(told.out.splitlines()[0])["prompt"]
