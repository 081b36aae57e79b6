"""V-COCO: its four protocols by hand, against the slow evaluator, and against the released one's own numbers."""

from __future__ import annotations

import gzip
import json
import math
import pickle
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from hoicli.cli import run
from hoicli.commands.doctor import schema_text
from hoicli.errors import DataError
from hoicli.evaluation import pairing
from tests.support import kernel, vcoco_reference
from tests.support.project import FIXTURES, Data, Hoicli, Record, parsed, records, written
from tests.support.vcoco import VCOCO, datasets, with_labels

FOLDER = FIXTURES / "vcoco"
TRUTH, PREDICTIONS = FOLDER / "ground_truth.jsonl", FOLDER / "predictions.jsonl"
NAMES = ("vcoco-agent", "vcoco-s1", "vcoco-s2", "vcoco-qpic")


evaluate = partial(kernel.evaluate, vocabulary=VCOCO)


def agrees(truth: list[Record], predictions: list[Record]) -> None:
    """Every class of every protocol, and which classes are averaged."""
    for name, ours in evaluate(truth, predictions).items():
        slow = vcoco_reference.evaluate(name, truth, predictions, VCOCO.roles_of)
        numbers = {VCOCO.interaction_ids[pair]: result for pair, result in slow.items()}
        assert {number for number, counts in enumerate(ours.in_mean) if counts} == set(numbers), name
        for number, (ap, positives) in numbers.items():
            assert ours.positives[number] == positives, (name, VCOCO.interactions[number])
            assert math.isclose(ours.ap[number], ap, abs_tol=1e-12), (name, VCOCO.interactions[number])


@given(datasets())
def test_every_protocol_equals_the_slow_evaluator(data: Data) -> None:
    agrees(*data)


def test_the_fixtures_equal_the_slow_evaluator() -> None:
    agrees(records(TRUTH), records(PREDICTIONS))


PERSON, NEAR, FAR = [0, 0, 9, 19], [0, 0, 9, 9], [100, 100, 109, 119]
"""NEAR shares exactly half of PERSON's area, and all of its own: IoU 0.5."""
CUP = [20, 0, 29, 9]


def said(subject: int, what: str, object_: int | None = None, score: float | None = None) -> Record:
    """A hoi of `hold_obj` or `hold`."""
    verb, _, role = what.rpartition("_") if what.endswith(("_obj", "_instr")) else (what, "", None)
    hoi: Record = {"subject": subject, "object": object_, "verb": verb}
    return hoi | ({"role": role} if role else {}) | ({} if score is None else {"score": score})


def image(boxes: list[Any], labels: Sequence[str | None], hois: list[Record], **more: Any) -> Record:
    return {"image_id": 1, "boxes": boxes, "labels": list(labels), "hois": hois, **more}


def ap(
    truth: Record | list[Record], predictions: Record | list[Record], what: str, protocol: str = "vcoco-s1"
) -> float:
    both = tuple(records if isinstance(records, list) else [records] for records in (truth, predictions))
    hoi = said(0, what)
    results = evaluate(both[0], both[1])[protocol]
    number = VCOCO.interaction_ids[hoi["verb"], hoi.get("role", "")]
    assert results.in_mean[number]
    agrees(both[0], both[1])
    return float(results.ap[number])


HOLDS = image([PERSON, CUP], ["person", "cup"], [said(0, "hold_obj", 1)])
EMPTY_HANDED = image([PERSON], ["person"], [said(0, "hold_obj")])


def holding(person: list[Any], thing: list[Any] | None, score: float = 0.5) -> Record:
    boxes = [person] if thing is None else [person, thing]
    labels = ["person", "cup"][: len(boxes)]
    return image(boxes, labels, [said(0, "hold_obj", None if thing is None else 1, score)])


@pytest.mark.parametrize("protocol", NAMES)
def test_a_class_without_predictions_has_ap_0(protocol: str) -> None:
    what = "hold" if protocol == "vcoco-agent" else "hold_obj"
    nothing = image([PERSON], ["person"], [])
    assert ap(HOLDS, nothing, what, protocol) == 0
    assert ap([HOLDS, HOLDS | {"image_id": 2}], [HOLDS | nothing], what, protocol) == 0


def test_exactly_half_is_enough_of_person_and_of_object() -> None:
    """20 rows against 10 are 0.5, against 9 less. To QPIC the annotation is a row and a column larger: 100 of 231."""
    truth = image([PERSON, PERSON], ["person", "cup"], [said(0, "hold_obj", 1)])
    for person, thing, hit in [
        (NEAR, PERSON, 1), (PERSON, NEAR, 1), (NEAR, NEAR, 1), ([0, 0, 9, 8], PERSON, 0), (PERSON, [0, 0, 9, 8], 0),
    ]:  # fmt: skip
        assert ap(truth, holding(person, thing), "hold_obj") == hit
        assert ap(truth, holding(person, thing), "hold", "vcoco-agent") == (hit or person == PERSON)
        assert ap(truth, holding(person, thing), "hold_obj", "vcoco-qpic") == 0


@pytest.mark.parametrize(
    ("thing", "first", "second"),
    [
        (None, 1, 1),  # null: NaN in official dumps
        ([0, 0, 0, 0], 1, 1),
        ([0.0, 0.0, 0.1, 0.1], 0, 1),  # UPT's default is small, not empty
        (CUP, 0, 1),
    ],
)
def test_scenario_1_wants_an_empty_role_and_2_does_not_care(thing: list[Any] | None, first: int, second: int) -> None:
    assert ap(EMPTY_HANDED, holding(PERSON, thing), "hold_obj", "vcoco-s1") == first
    assert ap(EMPTY_HANDED, holding(PERSON, thing), "hold_obj", "vcoco-s2") == second
    assert ap(EMPTY_HANDED, holding(PERSON, thing), "hold_obj", "vcoco-qpic") == 1


@pytest.mark.parametrize("thing", [None, [0, 0, 0, 0], [0.0, 0.0, 0.1, 0.1]])
@pytest.mark.parametrize("protocol", NAMES[1:])
def test_an_empty_role_is_wrong_where_there_is_an_object(thing: list[Any] | None, protocol: str) -> None:
    assert ap(HOLDS, holding(PERSON, thing), "hold_obj", protocol) == 0


def test_without_people_every_prediction_is_false() -> None:
    """The released code cannot take the largest of no overlaps; a false positive is what it means."""
    nobody = image([CUP], ["cup"], []) | {"image_id": 2}
    false = holding(PERSON, CUP, 0.9) | {"image_id": 2}
    true = holding(PERSON, CUP, 0.5)
    for protocol, what in (("vcoco-agent", "hold"), ("vcoco-s1", "hold_obj"), ("vcoco-s2", "hold_obj")):
        assert ap([HOLDS, nobody], [true, false], what, protocol) == 0.5
        assert ap([HOLDS, nobody], [true], what, protocol) == 1


@pytest.mark.parametrize(("people", "hois", "what"), [(5, 1, "people"), (1, 5, "triplets of one class")])
def test_crowds_are_refused_by_name(people: int, hois: int, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says the image and what it has too many of."""
    monkeypatch.setattr(pairing, "MOST_PAIRS", 4)
    truth = image([PERSON] * people + [CUP], ["person"] * people + ["cup"], [said(0, "hold_obj", people)] * hois)
    with pytest.raises(DataError, match=rf"^image '1': [56] pairs of predicted and annotated {what}, at most 4 are"):
        evaluate([truth], [holding(PERSON, CUP)])


def test_predictions_on_people_nobody_annotated_are_ignored() -> None:
    truth = image([FAR, PERSON, CUP], ["person", "person", "cup"], [said(1, "hold_obj", 2)])
    hois = [said(0, "hold_obj", 2, 0.9), said(1, "hold_obj", 2, 0.5)]
    found = image([FAR, PERSON, CUP], ["person", "person", "cup"], hois)
    for protocol, what in (("vcoco-agent", "hold"), ("vcoco-s1", "hold_obj"), ("vcoco-s2", "hold_obj")):
        assert ap(truth, found, what, protocol) == 0.5
        assert ap(truth | {"annotated": [False, True, True]}, found, what, protocol) == 1
    # QPIC's evaluator does not know them
    assert ap(truth | {"annotated": [False, True, True]}, found, "hold_obj", "vcoco-qpic") == 0.5
    # even who overlaps nobody belongs to the first: a prediction far from all is ignored with them
    stray = holding([300, 300, 309, 309], CUP, 0.9)
    both = image(stray["boxes"] + found["boxes"], ["person"] * 5, stray["hois"] + [said(3, "hold_obj", 4, 0.5)])
    assert ap(truth | {"annotated": [False, True, True]}, both, "hold_obj") == 1
    assert ap(truth | {"annotated": [True, True, True]}, both, "hold_obj") == 0.5


def test_the_best_person_decides_whatever_they_do() -> None:
    """The second best does it, and overlaps by more than half, but is not asked; QPIC's evaluator asks."""
    other = [0, 0, 9, 15]
    truth = image([PERSON, other, CUP], ["person", "person", "cup"], [said(1, "hold_obj", 2)])
    found = holding([0, 0, 9, 18], CUP)
    assert ap(truth, found, "hold_obj") == 0
    assert ap(truth, found, "hold", "vcoco-agent") == 0
    assert ap(truth, found, "hold_obj", "vcoco-qpic") == 1
    assert ap(truth, holding([0, 0, 9, 16], CUP), "hold_obj") == 1


def test_a_wrong_object_leaves_the_person_to_the_next() -> None:
    hois = [said(0, "hold_obj", 1, 0.9), said(0, "hold_obj", 2, 0.8)]
    found = image([PERSON, FAR, CUP], ["person", "cup", "cup"], hois)
    assert ap(HOLDS, found, "hold_obj") == 0.5


def test_an_action_that_is_not_said_has_the_best_score_of_its_roles() -> None:
    """0.6 of the roles ranks it before another's 0.5; said with 0.4, after."""
    truth = image([PERSON, FAR], ["person", "person"], [said(0, "hit_instr"), said(0, "hit_obj")])
    roles = [said(0, "hit_instr", None, 0.3), said(0, "hit_obj", None, 0.6)]
    other = said(1, "hit", None, 0.5)
    assert ap(truth, image([PERSON, FAR], ["person", "person"], [*roles, other]), "hit", "vcoco-agent") == 1
    stated = said(0, "hit", None, 0.4)
    assert ap(truth, image([PERSON, FAR], ["person", "person"], [*roles, other, stated]), "hit", "vcoco-agent") == 0.5


def test_what_a_record_leaves_unstated_is_stated_at_score_0() -> None:
    """UPT's cache: everybody does everything, with a tiny object; so recall is never lost."""
    unstated = {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}
    hois = [said(0, "hold_obj", 1), said(0, "eat_obj", 1), said(0, "eat_instr")]
    truth = image([PERSON, CUP], ["person", "cup"], hois)
    found = holding(PERSON, CUP) | {"labels": ["person", None]}
    assert ap(truth, found, "eat", "vcoco-agent") == 0
    assert ap(truth, found | {"unstated": unstated}, "eat", "vcoco-agent") == 1
    assert ap(truth, found | {"unstated": unstated}, "eat_obj") == 0
    assert ap(truth, found | {"unstated": unstated}, "eat_instr") == 0
    assert ap(truth, found | {"unstated": unstated}, "eat_instr", "vcoco-s2") == 1
    # hold is stated by its role alone: of an official list, the missing hold_agent is 0, not the best of the roles
    other = image([FAR, PERSON], ["person", "person"], [said(0, "hold", None, 0.2), said(1, "hold_obj", None, 0.9)])
    assert ap(truth, other, "hold", "vcoco-agent") == 1
    assert ap(truth, other | {"unstated": unstated}, "hold", "vcoco-agent") == 0.5


@pytest.mark.parametrize(("label", "score"), [("person", 1.0), ("dog", 0.0), (None, 0.0)])
def test_qpic_s_evaluator_compares_labels(label: str | None, score: float) -> None:
    truth = image([PERSON, CUP], ["person", "cup"], [said(0, "hold_obj", 1), said(0, "walk")])
    found = image([PERSON, CUP], [label, "cup"], [said(0, "hold_obj", 1, 0.5), said(0, "walk", None, 0.5)])
    assert ap(truth, found, "hold_obj", "vcoco-qpic") == ap(truth, found, "walk", "vcoco-qpic") == score
    assert ap(truth, found | {"labels": ["person", label]}, "hold_obj", "vcoco-qpic") == 0
    assert ap(truth, found, "hold_obj") == 1  # the official one has no labels to compare


def test_qpic_s_100_are_counted_without_the_actions_of_roles() -> None:
    """100 agents of `hold` before it take no place; 100 roles do."""
    boxes = [PERSON, CUP, FAR]
    crowd = [said(2, "hold", None, 0.9)] * 100
    found = image(boxes, ["person", "cup", "person"], [*crowd, said(0, "hold_obj", 1, 0.5)])
    assert ap(HOLDS, found, "hold_obj", "vcoco-qpic") == 1
    crowd = [said(2, "carry_obj", 1, 0.9)] * 100
    found = image(boxes, ["person", "cup", "person"], [*crowd, said(0, "hold_obj", 1, 0.5)])
    assert ap(HOLDS, found, "hold_obj", "vcoco-qpic") == 0
    assert ap(HOLDS, found, "hold_obj", "vcoco-s1") == 1


def test_the_rows_of_eval(hoicli: Hoicli, tmp_path: Path) -> None:
    dump = with_labels(tmp_path / "p.jsonl", PREDICTIONS)
    result = hoicli("eval", "--dataset", "vcoco", "--gt", TRUTH, "--per-class", dump)
    given = parsed(result.out)
    means = {(row["protocol"], row["subset"]): row for row in given if row["metric"] == "mAP"}
    assert [(name, subset, row["n"]) for (name, subset), row in means.items()] == [
        ("vcoco-agent", "full", 21), ("vcoco-s1", "24", 19), ("vcoco-s1", "25", 20), ("vcoco-s2", "24", 19),
        ("vcoco-s2", "25", 20), ("vcoco-qpic", "24", 19), ("vcoco-qpic", "29", 24),
    ]  # fmt: skip
    slow = {name: vcoco_reference.evaluate(name, records(TRUTH), records(dump), VCOCO.roles_of) for name in NAMES}
    for (name, subset), row in means.items():
        chosen = [
            result for pair, (result, _) in slow[name].items() if subset != "24" or (pair[1] and pair[0] != "point")
        ]
        assert row["value"] == pytest.approx(100 * sum(chosen) / len(chosen))
    assert means["vcoco-s1", "24"]["value"] < means["vcoco-s2", "24"]["value"]
    classes = {(row["protocol"], row["verb"], row["role"]): row for row in given if row["metric"] == "AP"}
    assert len(classes) == 21 + 20 + 20 + 24
    assert classes["vcoco-s1", "eat", "instr"]["value"] == 0
    assert classes["vcoco-s2", "eat", "instr"]["value"] == 100
    assert result.err.splitlines() == [
        "hoicli: 1 of 8 ground-truth images have no predictions: their triplets are missed",
        "hoicli: vcoco-qpic: 325 of 866 predictions have an object box without a label, as official V-COCO lists do, "
        "and match no object there; it needs a dump with labels",
        "hoicli: no ground truth of lay_instr, carry_obj, throw_obj, ski_instr, snowboard_instr, lay and 4 more: "
        "left out of the means",
    ]


def test_ground_truth_of_pairs_alone_is_asked_about(hoicli: Hoicli, tmp_path: Path) -> None:
    """Both scenarios are one number then; the caveat `pairs_only`, which refuses it, may be missing."""
    whole = records(TRUTH)
    pairs = [{**record, "hois": [hoi for hoi in record["hois"] if hoi["object"] is not None]} for record in whole]
    for truth, is_asked in ((whole, False), (pairs, True)):
        path = written(tmp_path / "gt.jsonl", truth)
        said = hoicli("eval", "--dataset", "vcoco", "--gt", path, FIXTURES / "vcoco/predictions.jsonl").err
        assert ("every annotated action has an object, so both scenarios are the same" in said) == is_asked


def test_classes_without_ground_truth_are_named(hoicli: Hoicli, tmp_path: Path) -> None:
    every = [said(0, f"{verb}_{role}" if role else verb) for verb, role in VCOCO.interactions if verb != "read"]
    truth = written(tmp_path / "gt.jsonl", [image([PERSON], ["person"], every)])
    found = written(tmp_path / "p.jsonl", [image([PERSON], ["person"], [said(0, "read_obj", None, 0.5)])])
    result = hoicli("eval", "--protocol", "vcoco-s1", "--gt", truth, found)
    assert result.err == "hoicli: no ground truth of read_obj: left out of the means\n"
    means = {row["subset"]: (row["value"], row["n"]) for row in parsed(result.out) if row["metric"] == "mAP"}
    assert means == {"24": (0.0, 23), "25": (0.0, 24)}
    nobody = written(tmp_path / "nobody.jsonl", [image([], [], [])])
    result = hoicli("eval", "--protocol", "vcoco-s1", "--gt", nobody, found)
    assert [row["value"] for row in parsed(result.out)] == [None] * 2


def test_fixtures_and_what_is_written_of_them_fit_the_schemas(hoicli: Hoicli) -> None:
    pair = ("--dataset", "vcoco", "--gt", TRUTH, PREDICTIONS)
    for kind, text in (
        ("ground_truth", TRUTH.read_text()),
        ("prediction", PREDICTIONS.read_text()),
        ("match", hoicli("match", *pair).out),
        ("result", hoicli("eval", "--per-class", *pair).out),
    ):
        validator = jsonschema.Draft202012Validator(json.loads(schema_text(kind)))
        assert text
        for row in parsed(text):
            validator.validate(row)


@pytest.mark.parametrize("protocol", ["all", *NAMES])
def test_match_then_eval_is_eval(hoicli: Hoicli, tmp_path: Path, protocol: str) -> None:
    options = ("--dataset", "vcoco", "--protocol", protocol, "--gt", TRUTH)
    dump = with_labels(tmp_path / "p.jsonl", PREDICTIONS)
    direct = hoicli("eval", *options, "--per-class", dump).out
    (tmp_path / "m.jsonl").write_text(hoicli("match", *options, dump).out)
    assert hoicli("eval", "--per-class", tmp_path / "m.jsonl").out == direct
    assert direct.count("\n") > 40


def test_objects_without_any_label_are_not_found_by_label(hoicli: Hoicli, tmp_path: Path) -> None:
    """vcoco-qpic on an official list would be 0 by construction: of the dump, of its matches, and asked by name."""
    options = ("--dataset", "vcoco", "--gt", TRUTH, PREDICTIONS)
    (tmp_path / "m.jsonl").write_text(hoicli("match", *options).out)
    for call in (options, (tmp_path / "m.jsonl",)):
        result = hoicli("eval", *call)
        assert {row["protocol"] for row in parsed(result.out)} == {"vcoco-agent", "vcoco-s1", "vcoco-s2"}
        assert "left out: vcoco-qpic: no object of the predictions has a label" in result.err
        named = hoicli("eval", "--protocol", "vcoco-qpic,vcoco-s1", *call[2:] or call)
        assert (named.code, named.out, "cannot serve vcoco-qpic" in named.err) == (1, "", True)


@pytest.fixture(params=["json", "pkl"])
def golden(request: pytest.FixtureRequest, shared: Path, vcoco_600: tuple[Path, Path], tmp_path: Path) -> list[Record]:
    """The rows for the golden predictions, read as JSON or as the pickle that people have."""
    truth, found = vcoco_600
    if request.param == "pkl":
        source, found = shared / "golden/vcoco-600/predictions.json.gz", tmp_path / "p.pkl"
        found.write_bytes(pickle.dumps(json.loads(gzip.decompress(source.read_bytes()))))
    options = ["--protocol", "vcoco-agent,vcoco-s1,vcoco-s2", "--gt", str(truth), "--per-class", "--format", "jsonl"]
    assert run(["eval", *options, "-o", str(tmp_path / "rows"), str(found)]) == 0
    return records(tmp_path / "rows")


def test_every_printed_number(golden: list[Record], shared: Path) -> None:
    """Per class to the two decimals that vsrl_eval.py prints, with the positives, and the averages."""
    expected = json.loads((shared / "golden/vcoco-600/expected.json").read_text())
    for protocol, name, subset in (
        ("vcoco-agent", "agent", "full"), ("vcoco-s1", "scenario_1", "25"), ("vcoco-s2", "scenario_2", "25"),
    ):  # fmt: skip
        mine = [row for row in golden if row["protocol"] == protocol]
        aps = [row for row in mine if row["metric"] == "AP"]
        classes = {"-".join(filter(None, (row["verb"], row["role"]))): (row["value"], row["n"]) for row in aps}
        assert classes.keys() == expected[name]["per_class"].keys()
        for label, (value, positives) in expected[name]["per_class"].items():
            assert classes[label][1] == positives
            assert classes[label][0] == pytest.approx(value, abs=0.0050001), (protocol, label)
        (mean,) = (row["value"] for row in mine if (row["metric"], row["subset"]) == ("mAP", subset))
        assert mean == pytest.approx(expected[name]["average"], abs=0.0050001)
        if subset == "25":
            (mean,) = (row["value"] for row in mine if (row["metric"], row["subset"]) == ("mAP", "24"))
            of_24 = [value for label, (value, _) in classes.items() if label != "point-instr"]
            assert mean == pytest.approx(sum(of_24) / 24)
