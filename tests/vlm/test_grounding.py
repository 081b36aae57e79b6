"""Grounding and referring: the released scripts' figures, exact match, the similarity of verbs, cases that follow by
hand, records as answers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hoicli.converters.containers.source import Source
from hoicli.records.intake import ErrorPolicy
from hoicli.vlm.referring import measure_referring, needed_pairs, read_senses, similarities
from hoicli.vlm.result_files import Referring, measure_grounding, read_results
from hoicli.vlm.result_files import grounding as of_row
from hoicli.vlm.task_scores import Score
from tests.support.project import FIXTURES, Hoicli, dumped, records_of, refusal, saved
from tests.support.questions import Json, grounding

GOLDEN = json.loads((Path(__file__).parent / "golden/grounding.json").read_text())["figures"]


def written(folder: Path, rows: Any) -> Path:
    return dumped(folder / "results.json", rows)


def values(path: Path, *, released: bool = False) -> dict[str, float | None]:
    recalls = measure_grounding(read_results([Source(str(path))], ErrorPolicy(), of_row), released=released).scores()
    return {" ".join(key): recall.value for key, recall in recalls.items()}


@pytest.mark.parametrize("case", GOLDEN)
def test_the_released_figures(case: str, tmp_path: Path) -> None:
    found = values(written(tmp_path, grounding(int(case))), released=True)
    assert {name: found[name] for name in GOLDEN[case]} == pytest.approx(GOLDEN[case], rel=1e-13)


PERSON, OBJECT = [0, 0, 100, 100], [200, 0, 300, 100]


def pair(person: list[int] = PERSON, other: list[int] = OBJECT) -> Json:
    return {"person_bbox": person, "object_bbox": other}


@pytest.mark.parametrize(("found", "recall"), [
    ([pair()], 1.0),
    ([], 0.0),
    ([pair(other=[0, 0, 1, 1])], 0.1),  # a mean of 0.5: the person alone is enough
    ([pair(other=[200, 0, 250, 100])], 0.6),  # 0.75 reaches six thresholds
    ([pair([0, 0, 1, 1]), pair()], 1.0),
])  # fmt: skip
def test_by_hand(found: list[Json], recall: float, tmp_path: Path) -> None:
    path = written(tmp_path, [{"image_path": "a.jpg", "gt_pairs": [pair()], "predicted_pairs": found}])
    assert values(path)["AR full"] == pytest.approx(recall)
    assert values(path)["AR small"] is None  # there is no small object


def test_the_released_thresholds_are_a_little_more(tmp_path: Path) -> None:
    """Of one IoU of 1 and one of 1/2 the mean is 0.75, which is enough at 0.75, and not at 0.7500000000000002."""
    found = [pair(other=[200, 0, 250, 100])]
    path = written(tmp_path, [{"image_path": "a.jpg", "gt_pairs": [pair()], "predicted_pairs": found}])
    given = [values(path, released=released) for released in (False, True)]
    assert [each["AR full"] for each in given] == pytest.approx([0.6, 0.5])
    assert [each["AR@0.75 full"] for each in given] == [1.0, 1.0]


def test_order_matters(tmp_path: Path) -> None:
    """The loose prediction takes the pair that is the exact one's, where it comes first."""
    truth = [pair(), pair(other=[200, 0, 300, 76])]
    loose, exact = pair(other=[200, 0, 300, 88]), pair()  # IoU of objects: 0.88 and 0.864; 1 and 0.76

    def found(*predicted: Json) -> float | None:
        return values(written(tmp_path, [{"image_path": "a.jpg", "gt_pairs": truth, "predicted_pairs": predicted}]))[
            "AR full"
        ]

    assert found(loose, exact) == pytest.approx(18 / 20)  # at 0.9 and 0.95 one alone
    assert found(exact, loose) == pytest.approx(19 / 20)


def test_every_spelling_of_the_keys(tmp_path: Path) -> None:
    live = {"image_id": "a.jpg", "ground_truth_pairs": [{"person_box": PERSON, "object_box": OBJECT}],
            "predicted_pairs": [{"person_box": PERSON, "object_box": OBJECT, "pair_id": 1}]}  # fmt: skip
    assert values(written(tmp_path, {"results": [live]}))["AR full"] == 1.0
    lines = saved(tmp_path / "rows.jsonl", json.dumps(live) + "\n" + json.dumps({**live, "predicted_pairs": []}) + "\n")
    assert values(lines)["AR full"] == 0.5


def test_order_of_rows_is_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = grounding(7)
    orders = (rows, Random(0).sample(rows, len(rows)))
    printed = [hoicli("vlm-eval", "--bootstrap", 20, written(tmp_path, order)).out for order in orders]
    assert printed[0] == printed[1] != ""


def test_what_is_odd_is_said(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = [
        {"image_path": "a.jpg", "gt_pairs": [pair()], "predicted_pairs": [{"person_bbox": PERSON}, pair()]},
        {"image_path": "b.jpg", "gt_pairs": [], "predicted_pairs": [pair()], "status": "error"},
    ]
    result = hoicli("vlm-eval", written(tmp_path, rows))
    assert result.code == 0
    told = ["without one of the boxes", "without a pair to find", "requests that failed"]
    assert all(text in line for text, line in zip(told, result.err.splitlines(), strict=True))


@pytest.mark.parametrize(("row", "problem"), [
    ({"predicted_pairs": []}, "gt_pairs: missing"),
    ({"gt_pairs": [{"person_bbox": PERSON}]}, "gt_pairs[0]: has no person_bbox or no object_bbox"),
    ({"gt_pairs": [pair()], "predicted_pairs": [3]}, "predicted_pairs[0]: 3 is no pair"),
    ({"gt_pairs": [pair()], "detections": [pair()]}, "predicted_pairs: missing"),
    ({"gt_pairs": [pair()], "detections": [pair()], "status": "success"}, "predicted_pairs: missing"),
])  # fmt: skip
def test_bad_rows_are_refused(hoicli: Hoicli, tmp_path: Path, row: Json, problem: str) -> None:
    path = written(tmp_path, [{"image_path": "a.jpg", **row}])
    assert f"{path}: [0]: {problem}" in refusal(hoicli("vlm-eval", "--task", "ground", path))


def test_what_failed_has_found_nothing_and_a_file_counts_once(hoicli: Hoicli, tmp_path: Path) -> None:
    row = {"image_path": "a.jpg", "gt_pairs": [pair()], "predicted_pairs": [pair()]}
    path, copy = written(tmp_path, [row, {**row, "status": "failed"}]), tmp_path / "copy.json"
    first = json.loads(hoicli("vlm-eval", path).out.splitlines()[0])
    assert (first["value"], first["n"]) == (50.0, 2)
    assert "|failed:1|" in first["signature"]
    copy.write_bytes(path.read_bytes())
    assert f"{copy}: the same content as {path}; give each file once" in refusal(hoicli("vlm-eval", path, copy))


@pytest.mark.parametrize(("scale", "told"), [(1000, "thousandths"), (1, "fractions"), (None, "")])
def test_another_scale_is_noticed(hoicli: Hoicli, tmp_path: Path, scale: int | None, told: str) -> None:
    rows = []
    for width, height in ((640, 480), (480, 640), (500, 333)):
        boxes = [[60, 90, 200, 300], [180, 220, 330, 320]]
        sides = (width, height, width, height)
        found = [[scale * v / side for v, side in zip(box, sides, strict=True)] for box in boxes] if scale else boxes
        row = {"image_path": f"{width}.jpg", "gt_pairs": [pair(*boxes)]}
        rows.append({**row, "predicted_pairs": [pair(*found)]})
    wrong = {"image_path": "x.jpg", "gt_pairs": [pair()], "predicted_pairs": [pair([0, 0, 1, 1], [0, 0, 1, 1])]}
    result = hoicli("vlm-eval", written(tmp_path, [*rows, wrong]))
    assert result.code == 0
    assert (f"the predicted boxes look like {told} of the picture" in result.err) == bool(told)
    assert ("look like" in result.err) == bool(told)


def test_equal_pairs_count_as_often_as_they_are_there(tmp_path: Path) -> None:
    """As in the released scripts: two equal true pairs need two predicted ones."""
    for found, value in (([pair()], 0.5), ([pair(), pair()], 1.0)):
        rows = [{"image_path": "a.jpg", "gt_pairs": [pair(), pair()], "predicted_pairs": found}]
        assert values(written(tmp_path, rows))["AR full"] == value


ROWS = FIXTURES / "choice/referred.json"


def similar(rows: list[Referring], backend: str) -> dict[tuple[str, str], float]:
    return similarities(read_senses(rows, "hico"), backend, ErrorPolicy())[0]


def means(hoicli: Hoicli, *arguments: object) -> dict[str, Any]:
    return {row["metric"]: row for row in records_of(hoicli("vlm-eval", *arguments))}


def test_exact_match(hoicli: Hoicli) -> None:
    """Equal but for case and spaces: 2 of 7, one of which has failed; as released, of 6."""
    found = means(hoicli, ROWS)["exact_match"]
    assert (found["value"], found["n"]) == (pytest.approx(200 / 7), 7)
    found = means(hoicli, "--as-released", "hoi-benchmarks", ROWS)["exact_match"]
    assert (found["value"], found["n"]) == (pytest.approx(200 / 6), 6)
    assert "|released:hoi-benchmarks|" in found["signature"]


@pytest.mark.parametrize(("truth", "found", "similarity"), [
    ("riding bicycle", "riding bicycle", 1.0),
    ("riding bicycle", "riding a motorcycle", 1.0),  # the same verb; the object's box was given
    ("riding bicycle", "Rides a bike.", 1.0),
    ("hugging person", "embracing person", 1.0),  # one sense
    ("riding bicycle", "", 0.0),
    ("riding bicycle", "xqzt", 0.0),
    ("sitting on bench", "sitting down", 1.0),
    ("riding bicycle", "never riding a bicycle", 0.0),
    ("riding bicycle", "isn't riding a bicycle", 0.0),
    ("riding bicycle", "riding a bicycle? No.", 0.0),
])  # fmt: skip
def test_similar_verbs(truth: str, found: str, similarity: float) -> None:
    rated = similar([Referring("a", truth, found)], "wordnet:wup")
    assert rated[truth, found] == pytest.approx(similarity)


def test_near_verbs_are_between() -> None:
    rows = [Referring("a", "washing airplane", text) for text in ("cleaning airplane", "boarding airplane")]
    found = similar(rows, "lexical")
    near, far = (found[row.truth, row.answer] for row in rows)
    assert 0 <= far < near < 1


def test_a_table_is_the_measure_it_was_made_with(hoicli: Hoicli, tmp_path: Path) -> None:
    """--needed, shoe-sim --pairs, --sim table: the way that answers of language models take."""
    pairs, table = tmp_path / "pairs.jsonl", tmp_path / "sim.jsonl"
    assert hoicli("vlm-eval", "--dataset", "hico", "--needed", ROWS, "-o", pairs).code == 0
    assert hoicli("shoe-sim", "--backend", "lexical", "--pairs", pairs, "-o", table).code == 0
    direct = means(hoicli, "--dataset", "hico", ROWS)["verb_similarity"]
    by_table = means(hoicli, "--dataset", "hico", "--sim", table, ROWS)["verb_similarity"]
    assert by_table["value"] == pytest.approx(direct["value"], rel=1e-12)
    assert "|sim:lexical@wordnet3.0." in direct["signature"]
    assert by_table["signature"] == direct["signature"]  # the table is what `lexical` gives
    table.write_text(table.read_text().replace('"similarity":0.', '"similarity":0.0', 1))
    changed = means(hoicli, "--dataset", "hico", "--sim", table, ROWS)["verb_similarity"]
    assert "|sim:table-" in changed["signature"]
    shortened = saved(tmp_path / "short.jsonl", "".join(table.read_text().splitlines(keepends=True)[:-3]))
    refused = hoicli("vlm-eval", "--dataset", "hico", "--sim", shortened, ROWS)
    assert (refused.code, refused.out, "--needed" in refused.err) == (1, "", True)
    assert refused.err.splitlines()[-1].startswith(f"{shortened}: 3 of ")


def test_senses_of_a_dataset() -> None:
    """HICO-DET's sense of `sit_on`, whatever the form of the verb; WordNet's first without a dataset."""
    rows = [Referring("a", "sitting on bench", "lying on bench"), Referring("a", "running a marathon", "jogging")]
    with_dataset, without = (needed_pairs(read_senses(rows, name)) for name in ("hico", None))
    assert with_dataset
    assert without
    toasting = [Referring("a", "toasting wine glass", "crisping wine glass")]
    assert needed_pairs(read_senses(toasting, "hico")) != needed_pairs(read_senses(toasting, None))


def test_no_rows_are_no_mean() -> None:
    failed = [Referring("a", "x", "", failed=True)]
    found = measure_referring(failed, "lexical", None, ErrorPolicy(), released=True).scores()
    assert found == dict.fromkeys((("exact_match", "full"), ("verb_similarity", "full")), Score(None, 0))


@pytest.mark.parametrize(("row", "problem"), [
    ({"prediction": "x"}, "ground_truth: null is no phrase"),
    ({"ground_truth": "x", "prediction": 3}, "prediction: 3 is no phrase"),
])  # fmt: skip
def test_bad_rows_of_referring_are_refused(hoicli: Hoicli, tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    path = dumped(tmp_path / "rows.json", [{"file_name": "a.jpg", **row}])
    assert problem in refusal(hoicli("vlm-eval", "--task", "refer", path))


def test_what_failed_matches_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    row = {"file_name": "a.jpg", "ground_truth": "riding bicycle", "prediction": "riding bicycle"}
    path.write_text(json.dumps([row, {**row, "status": "failed"}]))
    for found in means(hoicli, path).values():
        assert (found["value"], found["n"]) == (50.0, 2)
        assert "|failed:1|" in found["signature"]
    assert means(hoicli, "--as-released", "hoi-benchmarks", path)["exact_match"]["n"] == 1
