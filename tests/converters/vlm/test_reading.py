"""Answers of vision-language models as records: what is read, what is left out and said, and what is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.converters.vlm.claims import PHRASE
from hoicli.converters.vlm.forms import read_answer
from hoicli.converters.vlm.frames import QWEN_PIXELS, parse_frame, resized_by_qwen
from hoicli.converters.vlm.spoken_names import split_phrase, verbs_of
from hoicli.converters.vlm.spoken_text import LONGEST, Spoken, final_part, span_of, values_in
from hoicli.errors import DataError, UsageError
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.spoken_words import SpokenWords
from tests.support.project import FIXTURES, Hoicli, Record, Result, dumped, refusal, saved, triplets_of, written

PERSON, THING = [100, 200, 300, 400], [250, 300, 500, 450]
RIDE = {"person_bbox": PERSON, "object_bbox": THING, "object": "bicycle", "verb": "ride"}


def row(answer: object, **more: object) -> dict[str, object]:
    return {"file_name": "a.jpg", "width": 1000, "height": 500, "response": answer, **more}


@pytest.fixture
def convert(hoicli: Hoicli, tmp_path: Path) -> Any:
    def call(*rows: Record, options: tuple[object, ...] = ("--coords", "pixels")) -> tuple[list[Any], Result]:
        path = written(tmp_path / "answers.jsonl", rows)
        result = hoicli("convert", "--from", "vlm", path, *options)
        return [json.loads(line) for line in result.out.splitlines()], result

    return call


def triplets(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [triplet[:4] for triplet in triplets_of(record)]


RIDES = [(PERSON, "ride", "bicycle", THING)]


def values(text: str) -> tuple[list[Any], bool]:
    return values_in(final_part(text))


@pytest.mark.parametrize(("text", "expected"), [
    ('[{"a": 1}]', [[{"a": 1}]]),
    ('Sure! ```json\n[{"a": 1}]\n``` Hope it helps [1].', [[{"a": 1}]]),
    ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
    ('{"a": "would not"}\n{"a": 2}', [{"a": "would not"}, {"a": 2}]),  # words of a value are no prose beside it
    ("{\u201ca\u201d: \u201ethe \u2018b\u2019\u201c, \u2018c\u2019: 1}", [{"a": "the \u2018b\u2019", "c": 1}]),
    ('{"a": 1} I hope this helps. Feel free to ask!', [{"a": 1}]),
    ('<think>[{"a": 0}]</think>[{"a": 1}]', [[{"a": 1}]]),
    ('[{"a": 0}] no</think> [{"a": 1}]', [[{"a": 1}]]),
    ("<think>x</think><answer>[{'a': 1}]</answer>", [[{"a": 1}]]),
    ("[{'a': 'person's hat', 'b': \"it's\"}]", [[{"a": "person's hat", "b": "it's"}]]),
    ('[{"a": 1, // one\n "b": 2, # two\n "c": 3,},]', [[{"a": 1, "b": 2, "c": 3}]]),
    ("[{'a': True, 'b': None, c: (1, 2.5)}]", [[{"a": True, "b": None, "c": [1, 2.5]}]]),
    ('[{"a": 1} {"a": 2}]', [[{"a": 1}, {"a": 2}]]),
    (r'["\"x\" \u00e9 \q \ud83d\ude00"]', [['"x" é q 😀']]),
    ('I see [{"a": 1}].', []),
    ('[{"a": NaN}]', []),
    ("", []),
])  # fmt: skip
def test_values_in_a_text(text: str, expected: list[Any]) -> None:
    assert values(text) == (expected, False)


@pytest.mark.parametrize(
    "text",
    ['```\n{"a": 1}\n```\n```\n{"a": 2}\n```', '<think> [{"a": 1}]', "<answer>[1]</answer> no", "<answer>[1]",
     "<answer>[1]</answer><answer>[2]</answer>", "[" + "1, " * LONGEST + "1]"],
)  # fmt: skip
def test_texts_that_do_not_say_what_counts(text: str) -> None:
    assert read_answer(text).form == ""
    with pytest.raises(ValueError, match=r"thought|<answer>|fences|characters"):
        values(text)


def test_any_cut_keeps_the_complete_items_and_nothing_else() -> None:
    items = [{"bbox": [1, 2, 3, 4], "label": "person"}, {"bbox": [5, 6, 7, 8], "label": "dog"}, {"n": {"bbox": [1, 2]}}]
    for text in (json.dumps(items), json.dumps({"interactions": items}), json.dumps(items).replace('"', "'")):
        ends = [text.index("}, {") + 1, text.rindex("}, {") + 1, text.rindex("}]") + 1]
        start = text.index("[")
        for end in range(start + 1, len(text) - 1):
            found, cut = values("Here: ```json\n" + text[:end])
            value = found[0] if found else []
            listed = value["interactions"] if isinstance(value, dict) and "interactions" in value else value
            if end <= text.rindex("]"):
                assert cut
            if end < ends[0]:
                assert listed == [] or "label" not in listed, text[:end]
            else:
                assert listed == items[: sum(end >= place for place in ends)], text[:end]


@given(
    st.text(alphabet="[]{}()\"'\\,:/#*\n 1a<>think", max_size=300)
    | st.lists(st.sampled_from(["<box>[1,2,3,4]</box>", "<ref>", "man", "</ref>", " is riding ", "<loc_1>", "_"])).map(
        "".join
    )
)
def test_no_text_breaks_the_reader(text: str) -> None:
    read_answer(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, list | dict))
)
def test_json_is_read_as_json(value: Any) -> None:
    assert values(json.dumps(value)) == ([value], False)
    read_answer(value)


def test_a_span_is_that_of_whole_words() -> None:
    text = Spoken.starting_at("grides, ride it", 5)
    assert span_of(text, "ride") == (13, 17)
    assert span_of(text, "rid") is None


@pytest.mark.parametrize(("said", "label", "verbs"), [
    ("ride and sit_on, Riding", None, ["ride", "sit_on", "riding"]),
    (["ride", "sit on", "ride"], None, ["ride", "sit_on"]),
    ("sit on the dining table", "dining_table", ["sit_on"]),
    ("sit at a/an dining_table", "dining table", ["sit_at"]),
    ("**washing** the train", "train", ["washing"]),
    ("no_interaction with a/an dog", "dog", ["no_interaction"]),
    ("hold/carry", None, []),
    ("about to start riding", None, []),
    ("going for a ride on", None, ["going_for_ride_on"]),
    ("bicycle", "bicycle", ["bicycle"]),
    (7, None, []),
])  # fmt: skip
def test_verbs(said: object, label: str | None, verbs: list[str]) -> None:
    assert verbs_of(said, label) == verbs


@pytest.mark.parametrize(("said", "verbs", "label"), [
    ("riding a bicycle", ["riding"], "bicycle"),
    ("talking on the cell phone", ["talking_on"], "cell_phone"),
    ("hold and ride bicycle", ["hold", "ride"], "bicycle"),
    ("ride a/an horse", ["ride"], "horse"),
    ("no_interaction with a/an dog", ["no_interaction"], "dog"),
])  # fmt: skip
def test_phrases(said: str, verbs: list[str], label: str | None) -> None:
    assert split_phrase(said) == (verbs, label)


@pytest.mark.parametrize(("said", "verb"), [
    ("sitting_on", "sit_on"), ("Sit On", "sit_on"), ("swing", "swing"), ("no_interaction", "no_interaction"),
    ("fondle", None), ("ing", None),
])  # fmt: skip
def test_the_vocabularys_spelling(said: str, verb: str | None) -> None:
    assert SpokenWords(load("hico")).look_up_verb(said).label == verb


def test_every_gerund_of_hico_finds_its_verb() -> None:
    words = SpokenWords(load("hico"))
    for verb in set(load("hico").verbs) - {"no_interaction"}:
        first, _, rest = verb.partition("_")
        stem = first[:-1] if first.endswith("e") and first not in ("tie", "lie") else first
        stem = {"tie": "ty", "lie": "ly"}.get(first, stem)
        for gerund in (stem + "ing", stem + stem[-1] + "ing", first + "ing"):
            found = words.look_up_verb(f"{gerund}_{rest}" if rest else gerund).label
            assert found in (verb, None)
            if gerund == stem + "ing":
                assert found == verb


@pytest.mark.parametrize(("name", "box", "pixels"), [
    ("pixels", [10, 20, 30, 40], [10, 20, 30, 40]),
    ("1000", [100, 200, 300, 400], [100, 100, 300, 200]),
    ("1000-yx", [200, 100, 400, 300], [100, 100, 300, 200]),
    ("relative", [0.1, 0.2, 0.3, 0.4], [100, 100, 300, 200]),
    ("resized:500x250", [50, 50, 150, 100], [100, 100, 300, 200]),
    ("qwen2.5", [101, 101, 302, 202], [101 * 1000 / 1008, 101 * 500 / 504, 302 * 1000 / 1008, 202 * 500 / 504]),
])  # fmt: skip
def test_frames_lead_to_pixels_and_back(name: str, box: list[float], pixels: list[float]) -> None:
    frame = parse_frame(name)
    assert parse_frame(str(frame)) == frame
    assert frame.scale_to_pixels(box, (1000, 500)) == pytest.approx(pixels)
    assert frame.scale_from_pixels(pixels, (1000, 500)) == box
    if frame.kind in ("1000", "1000-yx"):
        with pytest.raises(DataError, match="a number of a box is too large for a prompt"):
            frame.scale_from_pixels([0, 0, 1e308, 1e308], (10, 10))
    if name != "pixels":
        with pytest.raises(DataError, match="the image's size is not known"):
            frame.scale_to_pixels(box, None)


@pytest.mark.parametrize(("size", "bounds", "copy"), [
    ((1000, 500), QWEN_PIXELS, (1008, 504)),  # 35.7 and 17.9 patches of 28
    ((640, 427), QWEN_PIXELS, (644, 420)),  # 22.9 and 15.25
    ((20, 20), QWEN_PIXELS, (56, 56)),  # too small: both sides grow by 2.8
    ((4000, 3000), (3136, 1_003_520), (1148, 840)),  # too large: by the root of 11.96, and down
    ((8000, 30), (3136, 1_003_520), (8008, 28)),
    ((4000, 3000), QWEN_PIXELS, (4004, 2996)),
])  # fmt: skip
def test_the_copy_that_qwen_makes(size: tuple[int, int], bounds: tuple[int, int], copy: tuple[int, int]) -> None:
    assert resized_by_qwen(*size, *bounds) == copy


@pytest.mark.parametrize("name", ["", "1000-xy", "resized:0x5", "resized:5", "qwen2.5:5-4", "qwen2.5:1-2000000", "px"])
def test_unknown_frames_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"choose from 1000 \(Qwen2-VL, Qwen3-VL, InternVL\), 1000-yx"):
        parse_frame(name)


@pytest.mark.parametrize(("item", "reason"), [
    ({"person_bbox": [1, 2, 3]}, "a triplet without a person or an object, or with a box that is not four numbers"),
    ({"object_bbox": None}, "a triplet without a person or an object, or"),
    ({"object_bbox": None, "object": None, "verb": "walk"}, "a triplet without a person or an object, or"),
    ({"object": None, "verb": "ride"}, "a triplet whose object has no name"),
    ({"verb": None}, "a pair without a verb that can be read"),
])  # fmt: skip
def test_what_cannot_be_read_is_left_out_and_said(convert: Any, item: dict[str, object], reason: str) -> None:
    records, result = convert(row("[]"), row(json.dumps([{**RIDE, **item}, RIDE])))
    assert [triplets(record) for record in records] == [RIDES]
    assert records[0]["boxes"] == [PERSON, THING]  # what is left out leaves no box behind
    assert f"left out: {reason}" in result.err
    assert "1 (the first: " in result.err
    assert "answers.jsonl:2)" in result.err


def test_faults_are_counted_by_kind_with_the_first_place(convert: Any) -> None:
    _, result = convert(row("I see nothing."), row(json.dumps([RIDE, RIDE])[:-3]), row("No."))
    assert [line.partition(": ")[2].rpartition("(")[0] for line in result.err.splitlines()[-2:]] == [
        "left out: an answer that is no JSON, and no box tokens: 2 ",
        "left out: the unfinished end of an answer that was cut off: 1 ",
    ]
    assert result.err.splitlines()[-2].endswith("answers.jsonl:1)")


@pytest.mark.parametrize(("label", "is_phrase"), [
    ("man riding bike", True), ("a man on a horse", True), ("person holding cup", True), ("man rides bike", True),
    ("bicycle being ridden by a man", True), ("dog catching frisbee", True), ("riding a bicycle", True),
    ("man in a red shirt", False), ("dining table", False), ("sleeping cat", False),
    ("red and white umbrella", False), ("baby stroller", False),
])  # fmt: skip
def test_a_phrase_is_no_objects_name(convert: Any, label: str, is_phrase: bool) -> None:
    (found,), result = convert(row([{"bbox_2d": PERSON, "label": label}]))
    words = f"left out: {PHRASE}: 1 (the first: "
    assert (not found["boxes"], words in result.err, f'"{label.removeprefix("a ")}" 1' in result.err) == (
        is_phrase,
    ) * 3


def test_all_that_is_left_out_is_listed(convert: Any, tmp_path: Path) -> None:
    said = [{**RIDE, "mood": "fine"}, {"bbox": [1, 2, 3], "label": "dog"}, {"bbox": THING}]
    rows = row("I see\nnothing."), row("No."), {"response": "[]"}, row(said)
    options = ("--coords", "pixels", "--on-error", "skip", "--left-out", tmp_path / "left.jsonl")
    _, result = convert(*rows, options=options)
    assert "could not be read: they give no record\n" in result.err
    listed = [json.loads(line) for line in (tmp_path / "left.jsonl").read_text().splitlines()]
    assert [(one["place"].rpartition(":")[2], one["reason"], one["said"]) for one in listed] == [
        ("1", "an answer that is no JSON, and no box tokens", "I see\nnothing."),
        ("2", "an answer that is no JSON, and no box tokens", "No."),
        ("3", "names no image; put its file_name or image_id into the row", ""),
        ("4", "a key that is not read (what stands beside it is)", "mood"),
        ("4", "a box that is not four numbers", ""),
        ("4", "a box without a name that can be read", ""),
    ]


def test_an_empty_list_is_an_answer_and_nonsense_is_none(convert: Any) -> None:
    records, _ = convert(row("[]"), row("?", file_name="b.jpg"), row('{"interactions": []}', file_name="c.jpg"))
    assert [(record["image_id"], record["boxes"], record["hois"]) for record in records] == [
        ("a", [], []),
        ("c", [], []),
    ]


def test_scores_are_kept_where_they_are_given(convert: Any) -> None:
    records, result = convert(row(json.dumps([{**RIDE, "confidence": 0.5}, {**RIDE, "verb": "hold", "score": "0.25"}])))
    assert [hoi["score"] for hoi in records[0]["hois"]] == [0.5, 0.25]
    assert "no score" not in result.err
    assert result.err.count("\n") == 1
    records, result = convert(row(json.dumps([{**RIDE, "score": "high"}, {**RIDE, "verb": "hold", "score": 0.5}])))
    assert [hoi.get("score") for hoi in records[0]["hois"]] == [None, 0.5]
    assert "1 of 2 triplets have no score: good for mF1" in result.err
    assert "left out: a score that is no number (its triplet is kept): 1" in result.err
    _, result = convert(row(json.dumps([RIDE])))
    assert "1 of 1 triplets have no score" in result.err


def test_rows_of_one_image_are_taken_together(convert: Any) -> None:
    pair = [{"bbox_2d": PERSON, "label": "person"}, {"bbox_2d": THING, "label": "bicycle"}]
    lines = "\n".join(json.dumps(one) for one in (pair, pair[::-1]))
    records, _ = convert(
        row(lines, action="riding", object_category="bicycle"),
        row(json.dumps([{"pair_id": 1, "person_bbox": PERSON, "object_bbox": THING}]), action="hold", object="bicycle"),
    )
    assert len(records) == 1
    assert triplets(records[0]) == [(PERSON, "ride", "bicycle", THING), (PERSON, "hold", "bicycle", THING)]
    assert records[0]["labels"] == ["person", "bicycle"]


def test_the_convention_is_asked_for(convert: Any) -> None:
    records, result = convert(row("[]"), row(json.dumps([RIDE])), options=())
    assert (result.code, records) == (2, [])
    assert "answers.jsonl:2: nothing says what the boxes' numbers mean; tell it with --coords: 1000 (" in result.err


def test_a_row_may_say_its_convention(convert: Any) -> None:
    in_thousandths = row(json.dumps([RIDE]), coords="1000")
    records, _ = convert(in_thousandths, options=())
    assert records[0]["boxes"] == [[100, 100, 300, 200], [250, 150, 500, 225]]
    assert convert(in_thousandths, options=("--coords", "1000"))[0] == records


@pytest.mark.parametrize(("said", "option", "both"), [
    ({"coords": "1000"}, "pixels", "coords: 1000, but the option is --coords pixels"),
    ({"coords": "1000"}, "1000-yx", "coords: 1000, but the option is --coords 1000-yx"),
    ({"coords": "resized:500x250"},
     "resized:1000x500",
     "coords: resized:500x250, but the option is --coords resized:1000x500"),
    ({"box_scale": [500, 250]}, "pixels", "box_scale: resized:500x250, but the option is --coords pixels"),
])  # fmt: skip
def test_the_option_does_not_override_a_row(convert: Any, said: dict[str, Any], option: str, both: str) -> None:
    rows = row(json.dumps([RIDE])), row(json.dumps([RIDE]), **said)
    records, result = convert(*rows, options=("--coords", option, "--on-error", "skip"))
    assert (result.code, records) == (2, [])
    assert f"answers.jsonl:2: {both}" in result.err


def test_sizes_come_from_the_ground_truth(convert: Any, tmp_path: Path) -> None:
    bare = {"file_name": "x/a.jpg", "response": [RIDE]}
    _, result = convert(bare, options=("--coords", "1000"))
    assert result.code == 1
    assert "answers.jsonl:1: the image's size is not known; give the record width and height" in result.err
    truth = tmp_path / "gt.jsonl"
    truth.write_text('{"image_id": "a", "width": 1000, "height": 500, "boxes": [], "labels": [], "hois": []}\n')
    records, _ = convert(bare, options=("--coords", "1000", "--image-list", truth))
    assert records[0]["boxes"][0] == [100, 100, 300, 200]
    assert records[0]["file_name"] == "a.jpg"


def test_a_datasets_own_subjects_act(convert: Any, tmp_path: Path) -> None:
    """In a dataset whose subjects are surgeons and robots, these act, and persons do not."""
    own: dict[str, Any] = {"name": "theatre", "subjects": ["surgeon", "robot"], "verbs": ["hold"]}
    own |= {"objects": ["scalpel"], "interactions": [["hold", "scalpel"]]}
    (tmp_path / "own.json").write_text(json.dumps(own))
    boxes = {"surgeon": PERSON, "robot": [0, 0, 9, 9], "person": [1, 1, 9, 9], "scalpel": THING}
    said = [
        {"subject": {"label": name, "bbox": box}, "verb": "hold", "object": {"label": "scalpel", "bbox": THING}}
        for name, box in boxes.items()
    ]
    objects = [{"id": f"{name}.1", "bbox": box} for name, box in boxes.items()]
    by_id = [{"subject": f"{name}.1", "predicate": "hold", "object": "scalpel.1"} for name in boxes]
    plain = [{"person_box": PERSON, "object_box": THING, "object": "scalpel", "verb": "hold"}]
    named = [{"subject": name.title(), "subject_box": box, **plain[0]} for name, box in boxes.items()]
    named = [{key: value for key, value in one.items() if key != "person_box"} for one in named]
    for answer, people in (
        (said, ["surgeon", "robot"]),
        ({"objects": objects, "relationships": by_id}, ["surgeon", "robot"]),
        (named, ["surgeon", "robot"]),
        (plain, ["surgeon"]),
    ):
        records, result = convert(row(answer), options=("--coords", "pixels", "--dataset", tmp_path / "own.json"))
        assert result.code == 0, result.err
        assert [records[0]["labels"][hoi["subject"]] for hoi in records[0]["hois"]] == people
        assert ("a triplet whose subject is no person: 2" in result.err) == (answer is not plain)


def test_answers_to_multiple_choice_questions_are_no_triplets(hoicli: Hoicli) -> None:
    """They gave no image, and exit code 0."""
    said = refusal(hoicli("convert", FIXTURES / "choice/answers.jsonl"))
    assert said.endswith(":1: answers a multiple-choice question, without boxes; hoicli vlm-eval reads it")


def detections(path: Path) -> Path:
    record = {"image_id": "a", "width": 9, "height": 9, "boxes": [PERSON, THING, PERSON, THING],
              "labels": ["person", "bicycle", "cat", "cat"], "scores": [0.9, 0.8, 0.7, 0.6]}  # fmt: skip
    path.write_text(json.dumps(record) + "\n")
    return path


GRAPH = {
    "objects": [{"id": "man.1", "bbox": [0, 0, 20, 40]}, {"id": "sky", "bbox": [0, 0, 100, 20]},
                {"id": "woman.2", "bbox": [50, 0, 70, 40]}, {"id": "rider.3", "bbox": [0, 50, 20, 70]}],
    "relationships": [{"subject": "woman.2", "predicate": "next to", "object": "man.1"},
                      {"subject": "rider.3", "predicate": "under", "object": "sky"}],
}  # fmt: skip


def test_a_scene_graph_keeps_all_its_boxes_and_the_datasets_names(convert: Any, tmp_path: Path) -> None:
    """A man is a man where the dataset has one, and a rider, which it has not, is its person, not its first subject."""
    own = tmp_path / "graphs.json"
    names = ["airplane", "man", "person", "sky", "woman"]
    pairs = [["next_to", "man"], ["under", "sky"]]
    fields = {"subjects": names, "verbs": ["next_to", "under"], "objects": names, "interactions": pairs}
    own.write_text(json.dumps({"name": "graphs", **fields}))
    rows = row(GRAPH, box_scale=[500.0, 500]), row("I see a man.", file_name="b.jpg"), row(GRAPH, file_name="c.jpg")
    (found,), result = convert(*rows[:2], options=("--dataset", own, "--scores", "ones"))
    assert [found["labels"][hoi[end]] for hoi in found["hois"] for end in ("subject", "object")] == [
        *("woman", "man"),
        *("person", "sky"),
    ]
    boxes = dict(zip(found["labels"], found["boxes"], strict=True))
    assert boxes["woman"] == [100, 0, 140, 40]
    assert len(boxes) == len(found["boxes"]) == 4
    assert (found["scores"], found["caveats"]) == ([1.0] * 4, ["scores_of_1"])
    assert [hoi["score"] for hoi in found["hois"]] == [1.0, 1.0]
    assert "hoicli: 1 of 2 answers (50.00%) could not be read: they give no record" in result.err
    assert "have no score" not in result.err
    (found,), result = convert(rows[2], options=("--coords", "pixels", "--to-vocabulary"))
    assert found["labels"] == ["person"] * 3, "HICO-DET has no sky"
    assert "scores" not in found


@pytest.mark.parametrize(("copy", "words"), [([500], "500"), ([0, 5.0], "0x5"), ({"w": 5}, "{'w': 5}")])
def test_a_copy_without_a_size_is_refused(convert: Any, copy: object, words: str) -> None:
    _, result = convert(row(GRAPH, box_scale=copy), options=())
    assert (result.code, f"answers.jsonl:1: box_scale resized:{words}: choose from " in result.err) == (2, True)


def test_boxes_of_a_detector_are_named_by_index(convert: Any, tmp_path: Path) -> None:
    said = [
        {"subject": 0, "object": 1, "verbs": ["ride", "sit on"]},
        {"person": "person", "object": "bicycle", "verb": "hold"},
        {"subject_id": "0", "object_id": "2", "verb": "pet"},
        {"subject": 0, "object": 7, "verb": "pet"},
    ]
    records, result = convert(row(json.dumps(said)), options=("--boxes", detections(tmp_path / "boxes.jsonl")))
    assert records[0]["boxes"] == [PERSON, THING, PERSON, THING]
    assert records[0]["scores"] == [0.9, 0.8, 0.7, 0.6]
    assert records[0]["hois"] == [
        {"subject": 0, "object": 1, "verb": "ride"},
        {"subject": 0, "object": 1, "verb": "sit_on"},
        {"subject": 0, "object": 2, "verb": "pet"},
    ]
    assert "left out: a triplet without a person or an object, or with a box that is not four numbers: 1" in result.err
    assert "left out: a triplet with the index of a box that is not there: 1" in result.err


def test_containers(hoicli: Hoicli, tmp_path: Path) -> None:
    phrase = {"triplet_id": 0, "file_name": "a.jpg", "person_bbox": PERSON, "object_bbox": THING,
              "ground_truth": "hold bicycle", "prediction": "ride bicycle", "raw_output": "ride bi"}  # fmt: skip
    grounding = {"image_id": 17, "image_path": "test/a.jpg", "action": "ride", "object_category": "bicycle",
                 "predicted_pairs": [{"person_box": PERSON, "object_box": THING, "pair_id": 1}]}  # fmt: skip
    content = json.dumps([{**RIDE}])
    batch = {"custom_id": "a", "response": {"body": {"choices": [{"message": {"content": content}}]}}}
    documents: dict[str, Any] = {
        "list": [{"file_name": "a.jpg", "text": content}],
        "lines": {"file_name": "a.jpg", "generated_text": content},
        "phrases": [phrase],
        "grounding": [grounding],
        "batch": batch,
        "map": {"a.jpg": content},
        "hoi-r1": {"outputs": [content, content], "preds": [None, []],
                   "gt_paths": [{"image": "a.jpg"}, {"file_name": "a.jpg"}]},
        "mllms": {"a": [{"obj_class": "bicycle", "action": "ride", "score": 0.5, "hoi_id": 3, "sub_bbox": PERSON,
                         "obj_bbox": THING}]},
    }  # fmt: skip
    own_pixels = {"phrases", "grounding", "mllms"}
    for name, document in documents.items():
        path = dumped(tmp_path / f"{name}.json", document)
        options = () if name in own_pixels else ("--coords", "pixels")
        result = hoicli("convert", "--from", "vlm", path, *options)
        assert result.code == 0, (name, result.err)
        records = [json.loads(line) for line in result.out.splitlines()]
        assert [(record["image_id"], triplets(record)) for record in records] == [("a", RIDES)], name
        assert ("taken as pixels; --coords says otherwise" in result.err) == (name in own_pixels)
        if name not in ("batch", "map", "mllms"):  # the others could be anything
            detected = hoicli("convert", path, *options)
            assert detected.out == result.out, (name, detected.err)


@pytest.mark.parametrize(("document", "words"), [
    ('{"outputs": ["x"], "gt_paths": []}', "outputs and gt_paths are not lists of one length"),
    ('[{"file_name": "a.jpg"}]', "[0]: has no answer; put the model's text under 'response'"),
    ('[{"response": "[]"}]', "[0]: names no image; put its file_name or image_id into the row"),
    ('{"image_id": "a", "response": "[]"}\n{"image_id": "b",', ":2: the line is cut off"),
    ('[{"file_name": "a.jpg", "response": "[]"}, {"file', "[1]: not readable"),
    ("<html>", "is a web page"),
    ("<answer>", "holds no answers"),
])  # fmt: skip
def test_files_that_hold_no_answers(hoicli: Hoicli, tmp_path: Path, document: str, words: str) -> None:
    path = saved(tmp_path / "x.json", document)
    result = hoicli("convert", "--from", "vlm", "--coords", "1000", path)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert words in result.err
    assert str(path) in result.err


def test_a_bad_row_is_skipped_when_asked(convert: Any) -> None:
    records, result = convert(
        row("[]"), {"response": "[]"}, row([RIDE]), options=("--coords", "pixels", "--on-error", "skip")
    )
    assert [triplets(record) for record in records] == [RIDES]
    assert "skipped 1 item; the first: " in result.err


@pytest.mark.parametrize(("fields", "image_id"), [
    ({"file_name": "d/a.jpg"}, "a"),
    ({"image_id": "b", "file_name": "a.jpg"}, "b"),
    ({"image_id": "b.jpg"}, "b"),
    ({"image_id": 7, "file_name": "COCO_val2014_000000000007.jpg"}, 7),
    ({"image_id": 3, "file_name": "HICO_test2015_00000007.jpg"}, "HICO_test2015_00000007"),
    ({"image_id": 3}, 3),
])  # fmt: skip
def test_which_image_a_row_is_about(convert: Any, fields: dict[str, Any], image_id: object) -> None:
    records, _ = convert({"response": "[]", **fields})
    assert [record["image_id"] for record in records] == [image_id]


def test_to_vocabulary(convert: Any) -> None:
    said = [{**RIDE, "verb": "riding, fondling"}, {**RIDE, "object": "unicorn"}, {**RIDE, "object": "Dining table"}]
    records, result = convert(row(said), options=("--coords", "pixels", "--to-vocabulary"))
    assert [(hoi["verb"], records[0]["labels"][hoi["object"]]) for hoi in records[0]["hois"]] == [
        ("ride", "bicycle"), ("ride", "dining_table"),
    ]  # fmt: skip
    assert "left out: a verb outside the vocabulary: 1" in result.err
    assert "left out: an object outside the vocabulary: 1" in result.err
    things = [{"bbox_2d": THING, "label": name} for name in ("unicorn", "Cell phone", "woman")]
    records, result = convert(row(things), options=("--coords", "pixels", "--to-vocabulary"))
    assert records[0]["labels"] == ["cell_phone", "person"]
    assert "left out: an object outside the vocabulary: 1" in result.err


@pytest.mark.parametrize(("verb", "name"), [
    ("sit\u2011on", "tennis\u2011racket"), ("\u201csit on\u201d", "\u2018tennis racket\u2019"),
    ("sit\u00a0on", "tennis\u2013racket"),
    ("sit on\u2026", "tennis racket\u200b"), ("\uff53it on", "\uff54ennis racket"),
    ("s\u00eft on", "t\u00e9nnis racket"),
])  # fmt: skip
def test_typographic_signs_of_an_answer(convert: Any, verb: str, name: str) -> None:
    said = row(json.dumps([{**RIDE, "object": name, "verb": verb}]))
    (found,), result = convert(said, options=("--coords", "pixels", "--to-vocabulary"))
    assert triplets(found) == [(PERSON, "sit_on", "tennis_racket", THING)]
    assert "left out" not in result.err


def test_an_accent_that_parts_two_labels_parts_them() -> None:
    words = SpokenWords(replace(load("hico"), objects=("person", "bar", "b\u00e4r"), interactions=()))
    assert [words.look_up_object(name).label for name in ("bar", "B\u00c4R", "b\u00e2r")] == ["bar", "b\u00e4r", "bar"]


@pytest.mark.parametrize("answer", [
    '{"subject": [1, 2, 3, 4], "object": [5, 6, 7, 8], "object_class": "bicycle", "verb": "ride", "verb": "hold"}',
    '{"interactions": [], "interactions": []}',
    '{"verb": "ride", "Verb": "hold"}',
])  # fmt: skip
def test_a_key_twice_is_two_conclusions(answer: str) -> None:
    claims = read_answer(answer)
    assert (claims.form, claims.triplets, claims.reports) == (
        "",
        [],
        [("an answer with a key twice in one object", "")],
    )
