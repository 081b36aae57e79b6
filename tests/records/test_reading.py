"""The two roads to a record agree: what the fast columns refuse, the careful check can name, and nothing else."""

from __future__ import annotations

import copy
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.errors import DataError
from hoicli.io.opened_files import repeated_key
from hoicli.io.streams import Line
from hoicli.records.columns import attempt
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import checker, concatenate, read_scenes, scenes_of
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from tests.support.kernel import lines
from tests.support.project import EIGHT, Hoicli, MonkeyPatch, refusal
from tests.support.strategies import parts_of

HICO, VCOCO = load("hico"), load("vcoco")
OWN = "own classes? hoicli vocab --from GT.jsonl -o FILE.json"
GOOD: dict[str, Any] = {
    "image_id": "a", "width": 64, "height": 48, "boxes": [[0, 0, 9.5, 9], [20, 20, 39, 39]],
    "labels": ["person", "kite"], "hois": [{"subject": 0, "object": 1, "verb": "fly", "score": 0.5}],
    "image_hois": [["fly", "kite"]], "caveats": ["derived_labels"],
}  # fmt: skip


def read(
    *records: Any, vocabulary: Vocabulary = HICO, scored: bool = True, skip: ErrorPolicy | None = None, **known: Any
) -> list[str]:
    given = lines(records, "p.jsonl")
    found = read_scenes(given, vocabulary, scored=scored, policy=skip or ErrorPolicy(), **known)
    return list(concatenate(found, vocabulary).image_ids)


def first_error(*records: Any, **options: Any) -> str:
    with pytest.raises(DataError) as raised:
        read(*records, **options)
    return str(raised.value)


def with_(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **changes}


def with_hoi(**changes: Any) -> dict[str, Any]:
    return with_(hois=[{**GOOD["hois"][0], **changes}])


@pytest.mark.parametrize(("record", "message"), [
    (with_hoi(object=9), "hois[0].object: index 9, but the line has 2 boxes; indices are 0-based"),
    (with_hoi(subject=-1), "hois[0].subject: index -1, but the line has 2 boxes; indices are 0-based"),
    (with_hoi(subject=True), "hois[0].subject: true is no index; it must be the integer index of a box"),
    (with_hoi(object=None),
     "hois[0].object: null is no index; it must be the integer index of a box; "
     "the dataset has no action without an object (V-COCO records? --dataset vcoco)"),
    (with_(labels=[None, "kite"]),
     "labels[0]: null is no name; labels are strings (V-COCO records? --dataset vcoco)"),
    (with_hoi(verb="work_on_computer"),
     "hois[0].verb: unknown verb 'work_on_computer'; V-COCO records? --dataset vcoco; own classes? hoicli "
     "vocab --from GT.jsonl -o FILE.json"),
    (with_hoi(verb="riding"),
     "hois[0].verb: unknown verb 'riding'; SWIG-HOI records? --dataset swig (or did you mean 'ride'?); "
     "own classes? hoicli vocab --from GT.jsonl -o FILE.json (a model's own words? hoicli shoe-eval scores "
     "them, hoicli convert --to-vocabulary maps its answers to the dataset's)"),
    (with_hoi(verb="flyy"), f"hois[0].verb: unknown verb 'flyy'; did you mean 'fly'? {OWN}"),
    (with_hoi(verb="qqqq"), f"hois[0].verb: unknown verb 'qqqq'; `hoicli vocab` lists the known ones; {OWN}"),
    (with_hoi(verb=3), "hois[0].verb: 3 is no name; verbs are strings"),
    (with_hoi(score="0.5"), 'hois[0].score: "0.5" is no score; give a finite number'),
    (with_(labels=["person", "Kites"]), f"labels[1]: unknown object 'Kites'; did you mean 'kite'? {OWN}"),
    (with_(labels=["human", "kite"]), "labels[0]: unknown object 'human'; did you mean 'person'?"),
    (with_(hois=[{**{key: GOOD["hois"][0][key] for key in ("subject", "object", "score")}, "predicate": "fly"}]),
     "hois[0].verb: missing (is it 'predicate'? rename that); every interaction names its verb"),
    ({"image_id": "a", "response": "x"},
     "boxes: missing (a model's answer? hoicli convert --from vlm); every image line has boxes (an empty list "
     "where there are none)"),
    (with_(labels=["person"]), "labels: 1 labels for 2 boxes; give one label a box"),
    (with_(boxes=[[0, 0, 9], [1, 2, 3, 4]]),
     "boxes[0]: [0, 0, 9] is no box; give four finite numbers [x1, y1, x2, y2]"),
    (with_(boxes={"a": 1}), "boxes: an object; it must be an array"),
    (with_(image_id=1.5), "image_id: a number; it must be a string or an integer"),
    (with_(image_id=""), "image_id: empty; give the image's file name without its extension, or its number"),
    (with_(image_id=" \t"), "image_id: empty; give the image's file name without its extension, or its number"),
    (with_(hois=[[0, 1]]), "hois[0]: an array; it must be an object with subject, object and verb"),
    (with_(image_hois=[["fly"]]), 'image_hois[0]: ["fly"] is no image label; give [verb, object]'),
    (with_(caveats=["last_pixel"]),
     'caveats[0]: "last_pixel" is none of derived_labels, pairs_only, unmarked_people, last_pixels, '
     "unmarked_ambiguous, whole_image, token_scores, scores_of_1; leave it as convert wrote it"),
    (with_(caveats="pairs_only"), "caveats: a string; it must be an array of names, as convert writes it"),
    ([1],
     "an array, not an object; a list of records becomes lines (jq -c '.[]' FILE), a foreign dump goes through "
     "`hoicli convert` first"),
])  # fmt: skip
def test_messages_name_the_field_and_the_mend(record: Any, message: str) -> None:
    assert first_error(record) == f"p.jsonl:1: {message}"


@pytest.mark.parametrize("key", ["image_id", "boxes", "labels", "hois"])
def test_a_missing_key_is_named(key: str) -> None:
    record = {name: value for name, value in GOOD.items() if name != key}
    assert first_error(GOOD | {"image_id": "b"}, record).startswith(f"p.jsonl:2: {key}: missing; every image line ")


def test_a_missing_score_asks_whether_this_is_ground_truth() -> None:
    record = with_()
    del record["hois"][0]["score"]
    assert first_error(record) == (
        "p.jsonl:1: hois[0].score: missing; every predicted interaction has a score (is this the ground truth? "
        "answers of a model have none: hoicli convert --from vlm --scores ones)"
    )
    assert read(record, scored=False) == ["a"]


def test_a_score_in_the_ground_truth_says_that_these_are_predictions() -> None:
    """With them as ground truth every detector finds itself: mAP 100, in silence."""
    assert first_error(with_(), scored=False) == (
        "p.jsonl:1: hois[0].score: ground truth has no scores, so these are predictions; give the ground truth "
        "here (swapped?)"
    )


LINE = orjson.dumps(GOOD)


@pytest.mark.parametrize(("data", "message"), [
    (LINE.replace(b'"score":0.5', b'"score":NaN'),
     "hois[0].score: nan: numbers must be finite; correct what wrote it, or drop the item"),
    (LINE.replace(b"9.5", b"1e999"), ""),
    (LINE[:-20], "the line is cut off (no closing bracket); write the file again, or pass --on-error skip"),
    (LINE + b",", "a comma after the closing bracket; leave it out"),
    (LINE.replace(b"}]", b"}, ]", 1), "a comma before a closing bracket, which JSON does not have"),
])  # fmt: skip
def test_a_line_that_is_no_json_is_told_by_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^p.jsonl:1: {re.escape(message)}"):
        list(read_scenes([Line("p.jsonl", 1, data)], HICO, scored=True, policy=ErrorPolicy()))


def test_an_image_twice_names_both_lines(monkeypatch: MonkeyPatch) -> None:
    message = "p.jsonl:3: image_id: image 'a' is at p.jsonl:1 already; keep one line an image"
    assert first_error(GOOD, with_(image_id="b"), GOOD) == message
    monkeypatch.setattr("hoicli.records.columns.BATCH", 2)  # across batches too
    records = [*(with_(image_id=str(number)) for number in range(1, 8)), with_(image_id=3)]
    assert first_error(*records).startswith("p.jsonl:8: image_id: image '3' is at p.jsonl:3 already")


@pytest.mark.parametrize(("image_id", "known", "mend"), [
    (1, ["a_1", "b_1"], "make one kind of both with hoicli convert --id number"),
    ("a_1", ["1"], "hoicli convert --id number makes it '1'"),
    ("/data/a_1.png", ["a_1"], "hoicli convert --id name makes it 'a_1'"),
    ("a_1.png", ["a_1"], "hoicli convert --id name makes it 'a_1'"),
    ("b/a_1.png", ["b/a_1"], "hoicli convert --id path makes it 'b/a_1'"),
    ("a_1", ["a_1.png"], "make one kind of both with hoicli convert --id name"),
])  # fmt: skip
def test_an_image_that_the_ground_truth_does_not_have(image_id: Any, known: list[str], mend: str) -> None:
    problem = f"{str(image_id)!r} is not in the ground truth (which names images as {known[0]!r}); {mend}"
    assert first_error(with_(image_id=image_id), known_ids=known) == f"p.jsonl:1: image_id: {problem}"


def test_skipping_drops_counts_and_keeps_the_rest(capsys: pytest.CaptureFixture[str], monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("hoicli.records.columns.BATCH", 2)
    policy = ErrorPolicy(skip=True)
    records = [GOOD, with_hoi(object=9) | {"image_id": "b"}, GOOD, with_(image_id="c")]
    assert read(*records, skip=policy) == ["a", "c"]
    policy.report()
    assert capsys.readouterr().err == (
        "hoicli: skipped 2 lines; the first: p.jsonl:2: hois[0].object: index 9, but the line has 2 boxes; "
        "indices are 0-based\n"
    )


def test_unknown_keys_are_no_problem() -> None:
    record = with_(camera={"make": None}, hois=[{**GOOD["hois"][0], "note": [1]}])
    assert read(record) == ["a"]


GOOD_ROLES: dict[str, Any] = {
    "image_id": 7,
    "boxes": [[0, 0, 9.5, 9], [20, 20, 39, 39], [1, 1, 2, 2]],
    "labels": ["person", "kite", None],
    "annotated": [True, False, True],
    "unstated": {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]},
    "left_out": [{"subject": 0, "verb": "eat", "role": "instr"}, {"subject": 1, "verb": "stand"}],
    "hois": [
        {"subject": 0, "object": 1, "verb": "hit", "role": "obj", "score": 0.5},
        {"subject": 0, "object": None, "verb": "hit", "role": "instr", "score": 0.5},
        {"subject": 1, "object": None, "verb": "walk", "score": 0.5},
    ],
}


def without_(*path: Any) -> dict[str, Any]:
    """GOOD_ROLES with the last of `path` put in place of what the rest of it leads to."""
    record = copy.deepcopy(GOOD_ROLES)
    node: Any = record
    *keys, last, value = path
    for key in keys:
        node = node[key]
    node[last] = value
    return record


@pytest.mark.parametrize(("record", "message"), [
    (without_("hois", 0, "role", "instrument"), 'hois[0].role: "instrument" is no role of it; hit has instr, obj'),
    (without_("hois", 2, "role", "obj"), 'hois[2].role: "obj" is no role of it; walk has none'),
    (without_("hois", 0, "role", ["obj"]), 'hois[0].role: ["obj"] is no role of it; hit has instr, obj'),
    (without_("hois", 0, "role", None),
     "hois[0].role: missing; say which role the object has (hit has instr, obj), or make it null for the action "
     "alone"),
    (without_("annotated", [True]), "annotated: 1 flags for 3 boxes; give one flag a box"),
    (without_("annotated", [1, 0, 1]), "annotated: must be an array of true and false, one a box"),
    (without_("unstated", "score", "0"),
     "unstated: must be an object with a score and an object box, as convert writes it"),
    (without_("left_out", 0, "role", "obj_"),
     "left_out[0]: must say the subject, the verb and the role of a statement, as convert writes it"),
    (without_("labels", 0, 3), "labels[0]: 3 is no name; labels are strings"),
    (without_("hois", 1, "object", 3), "hois[1].object: index 3, but the line has 3 boxes; indices are 0-based"),
    (without_("hois", 1, "subject", None),
     "hois[1].subject: null is no index; it must be the integer index of a box"),
])  # fmt: skip
def test_messages_about_roles(record: Any, message: str) -> None:
    assert first_error(record, vocabulary=VCOCO) == f"p.jsonl:1: {message}"


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3),
    st.sampled_from(["person", "kite", "fly", "obj", "instr", "hit", "walk", "hold"]),
    st.lists(st.integers(0, 2), max_size=5), st.builds(dict), st.builds(lambda: [[]]),
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("good", "vocabulary"), [(GOOD, HICO), (GOOD_ROLES, VCOCO)], ids=["hico", "vcoco"])
@settings(max_examples=600)
@given(data=st.data(), scored=st.booleans(), bare=st.booleans())
def test_the_fast_and_the_careful_check_agree(
    good: dict[str, Any], vocabulary: Vocabulary, data: st.DataObject, scored: bool, bare: bool
) -> None:
    """Of a good record with up to three of its parts replaced by junk, or taken away; bare: without scores before."""
    record = copy.deepcopy(good)
    for hoi in record["hois"] if bare else ():
        del hoi["score"]
    for _ in range(data.draw(st.integers(0, 3))):
        if places := list(parts_of(record)):
            node, key = places[data.draw(st.integers(0, len(places) - 1))]
            if data.draw(st.booleans()):
                node[key] = data.draw(JUNK)
            else:
                del node[key]
    columns = attempt(partial(scenes_of, vocabulary=vocabulary, scored=scored), lines([record]))
    found = list(checker(vocabulary, scored=scored)(record))
    assert (columns is None) == bool(found), found
    if columns is not None and vocabulary is HICO:
        assert columns.image_ids == [str(record["image_id"])]
        assert columns.boxes.tolist() == [[float(x) for x in box] for box in record["boxes"]]
        assert all(math.isnan(score) for score in columns.score) or scored


def test_what_eval_does_not_read_does_not_cost_a_line_its_place() -> None:
    """A wrong `scores` or width is validate's affair: whether a neighbour is bad must not decide about the line."""
    odd = with_(scores=["x"], width=-1, hois=[{**GOOD["hois"][0], "verb_score": None}])
    for neighbours in ([], [with_(image_id="b", labels=[])]):
        policy = ErrorPolicy(skip=True)
        assert read(odd, *neighbours, skip=policy) == ["a"]
        assert policy.skipped == len(neighbours)
    assert {problem.field for problem in problems(odd, HICO, scored=True)} == {"width", "scores", "hois[0].verb_score"}


TWICE = (
    b'{"image_id":"a","boxes":[[0,0,9,9],[1,1,5,5]],"labels":["person","bicycle"],"hois":[{"subject":0,"object":1,'
    b'"verb":"ride","verb":"hold","score":0.5}]}'
)


@pytest.mark.parametrize(("data", "key"), [
    (TWICE, "verb"),
    (TWICE.replace(b'"verb":"ride",', b"").replace(b'"boxes"', b'"hois":[],"boxes"'), "hois"),
    (TWICE.replace(b'"verb":"ride"', b'"v\\u0065rb" :"ride"'), "verb"),
    (TWICE.replace(b'"verb":"ride",', b"").replace(b'"image_id"', b'"more":{"a":{"b":1,"b":[2]}},"image_id"'), "b"),
    (TWICE.replace(b'"verb":"ride",', b""), None),
    (TWICE.replace(b'"verb":"ride",', b'"x":{"verb":1},"y":[[{"verb":2}],3],"z":"\\"verb\\":",'), None),
    (TWICE.replace(b'"verb":"ride",', b"").replace(b'"a"', b'"a:b"'), None),
    (TWICE.replace(b'"a"', b'"a:b"'), "verb"),
    (b'{"a":[{"b":1},"cd",{"b":2}]}', None),
    (b'{"a":[{"b":1,"b":2,"b":3},"cd"]}', "b"),
    (b'{"a":[[1,{"b":1,"b":2}]]}', "b"),
    (b"[1, 2]", None),
])  # fmt: skip
def test_a_key_that_occurs_twice(data: bytes, key: str | None) -> None:
    assert repeated_key(data, orjson.loads(data)) == key


def test_a_key_that_occurs_twice_is_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    """In each record."""
    good = TWICE.replace(b'"verb":"ride",', b"")
    found, truth = tmp_path / "found.jsonl", tmp_path / "gt.jsonl"
    annotated = good.replace(b',"score":0.5', b"")
    truth.write_bytes(annotated + b"\n" + annotated.replace(b'"a"', b'"b"'))
    found.write_bytes(TWICE + b"\n" + good.replace(b'"a"', b'"b"') + b"\n")
    assert "found.jsonl:1: the key 'verb' occurs twice in one object" in refusal(hoicli("eval", "--gt", truth, found))
    found.write_bytes(good + b"\n" + TWICE.replace(b'"a"', b'"b"') + b"\n")
    assert "found.jsonl:2: the key 'verb' occurs twice in one object" in refusal(hoicli("eval", "--gt", truth, found))
    refused = hoicli("validate", "--gt", truth, found, "--format", "csv")
    assert (refused.code, "found.jsonl:2: the key 'verb' occurs twice" in refused.out) == (1, True)


BOXES = b'{"bbox": [0, 0, 9, 9], "category_id": 0}, {"bbox": [1, 1, 5, 5], "category_id": 1}'
HOI = b'{"subject_id": 0, "object_id": 1, "category_id": 3, "score": 0.5}'
IMAGE = b'{"filename": "HICO_test2015_00000001.jpg", "predictions": [' + BOXES + b'], "hoi_prediction": [' + HOI + b"]}"


@pytest.mark.parametrize(("text", "words"), [
    (b"[" + IMAGE + b"," + IMAGE.replace(b'3, "score"', b'3, "category_id": 4, "score"') + b"]", "[1]: the key 'cat"),
    (b'{"7": [[1, 0.5, 0, 0, 9, 9, 1, 1, 5, 5]], "7": []}', "the key '7' occurs twice"),
    (b'{"a.jpg": "[]", "b.jpg": "[]", "a.jpg": "{}"}', "the key 'a.jpg' occurs twice"),
    (b'[{"file_name": "a.jpg", "response": "[]", "response": "{}"}]', "[0]: the key 'response' occurs twice"),
])  # fmt: skip
def test_a_foreign_file_with_a_key_twice(hoicli: Hoicli, tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "dump.json").write_bytes(text)
    options = ("--coords", "1000") if b".jpg" in text and b"hoi" not in text else ()
    result = hoicli("convert", *options, tmp_path / "dump.json")
    assert (result.code, words in result.err) == (1, True)


@pytest.mark.parametrize(("name", "text", "call"), [
    ("own.json", '{"name": "own", "name": "x", "verbs": ["a"], "objects": ["b"]}', ["vocab"]),
    ("own.json", '{"iou": 0.5, "iou": 0.6}', ["eval", "--gt", "gt.jsonl", "gt.jsonl", "--protocol"]),
    ("own.json", '{"name": "r", "name": "s"}', ["corrupt", "--images", ".", "-o", "out", "--recipe"]),
    ("sim.jsonl",
     '{"pos": "n", "a": "cat.n.01", "b": "dog.n.01", "similarity": 0.5, "similarity": 0.7}',
     ["shoe-sim", "--merge", "mean"]),
])  # fmt: skip
def test_small_files_with_a_key_twice(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, name: str, text: str, call: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text + "\n")
    Path("gt.jsonl").write_bytes(TWICE.replace(b'"verb":"ride",', b"") + b"\n")
    assert "occurs twice in one object; keep one of the two" in refusal(hoicli(*call, name))


def test_match_records_are_called_so(hoicli: Hoicli) -> None:
    gt, matches = EIGHT / "gt.jsonl", EIGHT / "expected" / "matches.jsonl"
    calls: list[list[object]] = [["convert", matches], ["match", "--gt", gt, matches], ["vocab", "--from", matches]]
    calls += [["shoe-eval", "--sim", "lexical", "--gt", gt, matches]]
    calls += [["shoe-sim", "--backend", "lexical", "--gt", gt, matches], ["eval", "--gt", matches, matches]]
    for words in calls:
        result = hoicli(*words)
        assert (result.code, "a match record" in result.err) == (1, True)
