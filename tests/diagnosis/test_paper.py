"""Diag-HOI by its text where its code differs: protocol diag-paper, no_interaction counted, and what becomes of every
prediction from the match stream alone, worked out by hand; and types of errors by other rules, with the mAP that
eval gives by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import EIGHT, FIXTURES, PAIR, Hoicli, dumped, parsed, refusal, saved, written

HUMAN, KITE, FAR = [0, 0, 9, 9], [20, 0, 29, 9], [50, 50, 59, 59]
# HICO-DET's boxes are compared 1-based with predictions 0-based: [1, 1, 10, 10], 100 pixels, of which these have some.
HALF, MORE, WHOLE = [1, 1, 5, 10], [1, 1, 6, 10], [1, 1, 10, 10]
ON_KITE = [21, 1, 30, 10]


def image(name: str, boxes: list[list[int]], labels: str, *hois: tuple[Any, ...]) -> dict[str, Any]:
    """A record; a triplet is (subject, object, verb), with a score (and a score of the verb) if it is predicted."""
    keys = ("subject", "object", "verb", "score", "verb_score")
    triplets = [dict(zip(keys, hoi, strict=False)) for hoi in hois]
    return {"image_id": name, "boxes": boxes, "labels": labels.split(), "hois": triplets}


def values(text: str, metric: str, key: str = "oracle") -> dict[str | None, float]:
    rows = [json.loads(line) for line in text.splitlines()]
    return {row.get(key): row["value"] for row in rows if (row["metric"], row["subset"]) == (metric, "full")}


@pytest.mark.parametrize(
    ("subject", "ap", "paper", "kind"),
    [(MORE, 600 / 11, 50.0, "true_positive"), (HALF, 600 / 11, 0.0, "human_box")],
    ids=["0.6", "0.5"],
)
def test_the_example(hoicli: Hoicli, tmp_path: Path, subject: list[int], ap: float, paper: float, kind: str) -> None:
    """Two ground truths of a class, one prediction."""
    fly = (0, 1, "fly")
    truth = [image(name, [HUMAN, KITE], "person kite", fly) for name in ("a", "b")]
    gt = written(tmp_path / "gt.jsonl", truth)
    predictions = written(tmp_path / "p.jsonl", [image("a", [subject, ON_KITE], "person kite", (*fly, 0.9, 0.9))])
    for protocol, expected, error, found in (("diag", ap, "true_positive", 50.0), ("diag-paper", paper, kind, paper)):
        given = ("--protocol", protocol, "--gt", gt, predictions)
        rows = hoicli("diagnose", *given).out
        assert values(rows, "mAP")["none"] == pytest.approx(expected)
        assert values(rows, "count", "error")[error] == 1
        assert values(hoicli("eval", *given).out, "mAP")[None] == pytest.approx(expected)
        matches = tmp_path / "m.jsonl"
        assert hoicli("match", *given, "-o", matches).code == 0
        assert hoicli("diagnose", "--protocol", protocol, matches).out == rows
        pairs = hoicli("pairstats", *given).out
        assert values(pairs, "pair_recall")[None] == found
        assert values(pairs, "mAP")[None] == pytest.approx(expected)
    text = " ".join(hoicli("diagnose", "--explain").out.split())
    assert "with IoU 0.6, AP is 6/11 = 54.55 by diag (6 of the recalls are reached) and 50.00 by diag-paper" in text
    assert "with IoU 0.5, 54.55 and 0.00" in text


def test_pairs_by_the_area(hoicli: Hoicli, tmp_path: Path) -> None:
    """Two pairs that do nothing, first and third of three by 1 - the verb's score: precision 1 and 2/3."""
    boxes = [WHOLE, ON_KITE, FAR, [80, 80, 89, 89]]
    gt = written(tmp_path / "gt.jsonl", [image("a", [HUMAN, KITE], "person kite", (0, 1, "fly"))])
    triplets = [(0, at, "fly", score, score) for at, score in ((1, 0.5), (2, 0.1), (3, 0.9))]
    predictions = written(tmp_path / "p.jsonl", [image("a", boxes, "person kite kite kite", *triplets)])
    for protocol, expected, recall in (("diag", (51 + 50 * 2 / 3) / 101, "101-points"), ("diag-paper", 5 / 6, "every")):
        out = hoicli("pairstats", "--protocol", protocol, "--gt", gt, predictions).out
        assert values(out, "neg_ap")[None] == pytest.approx(100 * expected)
        assert f"recall:{recall}" in next(line for line in out.splitlines() if '"neg_ap"' in line)


def test_a_person_at_exactly_the_threshold(hoicli: Hoicli, tmp_path: Path) -> None:
    """V-COCO compares pixels as they are; strict, half of the person is nobody, and of no pair."""
    (tmp_path / "strict.json").write_text('{"name": "strict", "like": "vcoco-s1", "strict": true}')
    person = image("a", [HUMAN, KITE], "person kite", (0, 1, "hold")) | {"annotated": [True, False]}
    person["hois"][0]["role"] = "obj"
    half = image("a", [[0, 0, 4, 9], KITE], "person kite", (0, 1, "hold", 0.9))
    half["hois"][0]["role"] = "obj"
    pair = ("--dataset", "vcoco", "--gt", written(tmp_path / "gt", [person]), written(tmp_path / "p", [half]))
    for protocol, error, found in (("vcoco-s1", "true_positive", 100.0), (tmp_path / "strict.json", "human_box", 0.0)):
        record = json.loads(hoicli("diagnose", "--protocol", protocol, "--emit", "predictions", *pair).out)
        assert record["predictions"][0]["error"] == error
        assert values(hoicli("pairstats", "--protocol", protocol, *pair).out, "pair_recall")[None] == found


def test_no_interaction_counts_where_it_is_asked_for(hoicli: Hoicli, tmp_path: Path) -> None:
    """The second kite is annotated with no_interaction alone. Without it flying it is an object box error; with it, one
    of interaction, and the prediction of no_interaction is right, in a class of its own."""
    boxes = [HUMAN, KITE, [50, 50, 59, 59]]
    gt = written(tmp_path / "gt", [image("a", boxes, "person kite kite", (0, 1, "fly"), (0, 2, "no_interaction"))])
    triplets = ((0, 1, "fly", 0.9), (0, 2, "fly", 0.8), (0, 2, "no_interaction", 0.7))
    predicted = image("a", [WHOLE, ON_KITE, [51, 51, 60, 60]], "person kite kite", *triplets)
    pair = ("--gt", gt, written(tmp_path / "p", [predicted]))
    without, counted = hoicli("diagnose", *pair).out, hoicli("diagnose", "--with-no-interaction", *pair).out
    found = [{name: n for name, n in values(out, "count", "error").items() if n} for out in (without, counted)]
    assert found == [{"true_positive": 1, "object_box": 1}, {"true_positive": 2, "interaction": 1}]
    assert {json.loads(line)["n"] for line in counted.splitlines() if '"mAP"' in line and '"full"' in line} == {2}
    assert [out.count("|noint:counted|") for out in (without, counted)] == [0, counted.count("\n")]
    released = hoicli("diagnose", "--with-no-interaction", "--as-released", *pair)
    none = hoicli("diagnose", "--with-no-interaction", "--dataset", "vcoco", *pair)
    assert hoicli("match", "--protocol", "diag", *pair, "-o", tmp_path / "m").code == 0
    matched = hoicli("diagnose", "--with-no-interaction", tmp_path / "m")
    assert [result.out for result in (released, none, matched)] == [""] * 3
    said = ("released code never does", "vcoco has no such classes", "leave them out; give the predictions, with --gt")
    assert all(text in result.err for text, result in zip(said, (released, none, matched), strict=True))


@pytest.mark.parametrize(("protocol", "options"), [("diag", ()), ("diag", ("--as-released",)), ("vcoco-s1", ())])
def test_predictions_of_matches_alone(hoicli: Hoicli, tmp_path: Path, protocol: str, options: tuple[str, ...]) -> None:
    """The bytes are those with the ground truth; every missed one is there, in images without predictions, too."""
    of_vcoco = protocol != "diag"
    folder = FIXTURES / "vcoco" if of_vcoco else EIGHT
    gt = folder / ("ground_truth.jsonl" if of_vcoco else "gt.jsonl")
    filters = ("--protocol", protocol, "--gt", gt, "--top-k", "20", folder / "predictions.jsonl")
    expected = hoicli("diagnose", "--emit", "predictions", *options, *filters).out
    assert hoicli("match", *filters, "-o", tmp_path / "m").code == 0
    assert hoicli("diagnose", "--emit", "predictions", *options, tmp_path / "m").out == expected
    missed = sum(gt["missed"] for line in expected.splitlines() for gt in json.loads(line)["gt"])
    if protocol == "diag" and not options:  # --as-released leaves images without predictions out
        assert missed == values(hoicli("diagnose", *filters).out, "count", "error")["missed_gt"]


OF_VCOCO = ("--gt", FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl")


def means(found: list[dict[str, Any]]) -> dict[str, tuple[float, str]]:
    rows = [row for row in found if row["metric"] == "mAP" and row.get("oracle", "none") == "none"]
    return {row["subset"]: (row["value"], row["signature"]) for row in rows}


@pytest.mark.parametrize("differs", [
    {"threshold": 0.75},
    {"triplets_per_image": 2, "grid": "every"},
    {"inclusive": False, "truth_shift": [0, 0, 0, 0], "images": "all", "strict": True},
], ids=str)  # fmt: skip
def test_a_protocol_of_a_file(hoicli: Hoicli, tmp_path: Path, differs: dict[str, Any]) -> None:
    path = dumped(tmp_path / "mine.json", {"name": "mine", "like": "diag", **differs})
    diagnosed = hoicli("diagnose", "--protocol", path, *PAIR).out
    assert means(parsed(diagnosed)) == means(parsed(hoicli("eval", "--protocol", path, *PAIR).out))
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--protocol", path, *PAIR, "-o", matches).code == 0
    assert hoicli("diagnose", "--protocol", path, matches).out == diagnosed
    emitted = parsed(hoicli("diagnose", "--protocol", path, "--emit", "predictions", *PAIR).out)
    assert {record["protocol"] for record in emitted} == {"mine"}


def test_scenario_2(hoicli: Hoicli) -> None:
    found = parsed(hoicli("diagnose", "--protocol", "vcoco-s2", *OF_VCOCO).out)
    assert means(found) == means(parsed(hoicli("eval", "--protocol", "vcoco-s2", *OF_VCOCO).out))


@pytest.mark.parametrize(("options", "said"), [
    (("--protocol", "qpic"),
     'error types and pairs need the classes and the matching of diag; give a file that is "like": "diag"'),
    (("--protocol", "hico"), "error types and pairs need the classes and the matching of diag"),
    (("--protocol", "hico-image"), "error types and pairs need the classes and the matching of diag"),
    (("--protocol", "vcoco-agent"), "error types and pairs need the classes and the matching of vcoco-s1"),
    (("--protocol", "diag,upt"), "one protocol says what is right; name one"),
    (("--protocol", "none.json"), "none.json: no such file"),
])  # fmt: skip
def test_protocols_whose_errors_have_no_types(hoicli: Hoicli, options: tuple[str, ...], said: str) -> None:
    result = hoicli("diagnose", *options, *PAIR)
    assert (result.out, result.err.count("\n")) == ("", 1)
    assert said in result.err


def test_the_released_code_has_one_protocol(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "mine.json", '{"name": "mine", "like": "diag", "threshold": 0.75}')
    said = refusal(hoicli("diagnose", "--as-released", "--protocol", path, *PAIR), 2)
    assert said == "hoicli: --as-released: the released code has no other protocol than diag"
