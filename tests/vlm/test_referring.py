"""Referring: exact match, and the similarity of verbs by a measure or a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.records.intake import ErrorPolicy
from hoicli.vlm.referring import measure_referring, needed_pairs, read_senses, similarities
from hoicli.vlm.result_files import Referring
from hoicli.vlm.task_scores import Score
from tests.support.project import FIXTURES, Hoicli, dumped, refusal, saved

ROWS = FIXTURES / "choice/referred.json"


def similar(rows: list[Referring], backend: str) -> dict[tuple[str, str], float]:
    return similarities(read_senses(rows, "hico"), backend, ErrorPolicy())[0]


def values(hoicli: Hoicli, *arguments: object) -> dict[str, Any]:
    result = hoicli("vlm-eval", *arguments)
    assert result.code == 0, result.err
    return {row["metric"]: row for row in map(json.loads, result.out.splitlines())}


def test_exact_match(hoicli: Hoicli) -> None:
    """Equal but for case and spaces: 2 of 7, one of which has failed; as released, of 6."""
    found = values(hoicli, ROWS)["exact_match"]
    assert (found["value"], found["n"]) == (pytest.approx(200 / 7), 7)
    found = values(hoicli, "--as-released", "hoi-benchmarks", ROWS)["exact_match"]
    assert (found["value"], found["n"]) == (pytest.approx(200 / 6), 6)
    assert "|released:hoi-benchmarks|" in found["signature"]


@pytest.mark.parametrize(
    ("truth", "found", "similarity"),
    [
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
    ],
)
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
    direct = values(hoicli, "--dataset", "hico", ROWS)["verb_similarity"]
    by_table = values(hoicli, "--dataset", "hico", "--sim", table, ROWS)["verb_similarity"]
    assert by_table["value"] == pytest.approx(direct["value"], rel=1e-12)
    assert "|sim:lexical@wordnet3.0." in direct["signature"]
    assert by_table["signature"] == direct["signature"]  # the table is what `lexical` gives
    table.write_text(table.read_text().replace('"similarity":0.', '"similarity":0.0', 1))
    changed = values(hoicli, "--dataset", "hico", "--sim", table, ROWS)["verb_similarity"]
    assert "|sim:table-" in changed["signature"]
    shortened = saved(tmp_path / "short.jsonl", "".join(table.read_text().splitlines(keepends=True)[:-3]))
    said = refusal(hoicli("vlm-eval", "--dataset", "hico", "--sim", shortened, ROWS))
    assert said.splitlines()[-1].startswith(f"{shortened}: 3 of ")
    assert "--needed" in said


def test_senses_of_a_dataset() -> None:
    """HICO-DET's sense of `sit_on`, whatever the form of the verb; WordNet's first without a dataset."""
    rows = [Referring("a", "sitting on bench", "lying on bench"), Referring("a", "running a marathon", "jogging")]
    with_dataset, without = (needed_pairs(read_senses(rows, name)) for name in ("hico", None))
    assert with_dataset
    assert without
    toasting = [Referring("a", "toasting wine glass", "crisping wine glass")]
    assert needed_pairs(read_senses(toasting, "hico")) != needed_pairs(read_senses(toasting, None))


def test_no_rows_are_no_mean() -> None:
    found = measure_referring(
        [Referring("a", "x", "", failed=True)], "lexical", None, ErrorPolicy(), released=True
    ).scores()
    assert found == dict.fromkeys((("exact_match", "full"), ("verb_similarity", "full")), Score(None, 0))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"prediction": "x"}, "ground_truth: null is no phrase"),
        ({"ground_truth": "x", "prediction": 3}, "prediction: 3 is no phrase"),
    ],
)
def test_bad_rows_are_refused(hoicli: Hoicli, tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    path = dumped(tmp_path / "rows.json", [{"file_name": "a.jpg", **row}])
    assert problem in refusal(hoicli("vlm-eval", "--task", "refer", path))


def test_what_failed_matches_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    row = {"file_name": "a.jpg", "ground_truth": "riding bicycle", "prediction": "riding bicycle"}
    path.write_text(json.dumps([row, {**row, "status": "failed"}]))
    for found in values(hoicli, path).values():
        assert (found["value"], found["n"]) == (50.0, 2)
        assert "|failed:1|" in found["signature"]
    assert values(hoicli, "--as-released", "hoi-benchmarks", path)["exact_match"]["n"] == 1
