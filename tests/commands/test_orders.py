"""What no released code fixes breaks ties by values: records whose boxes and triplets are listed in another order give
the same numbers."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.orders import ORDERS, Record, reordered, tied_world
from tests.support.project import FIXTURES, Hoicli, parsed, written

HICO = (
    *(("ride", "bicycle"), ("hold", "bicycle"), ("repair", "bicycle"), ("no_interaction", "bicycle")),
    *(("fly", "kite"), ("carry", "kite"), ("kiss", "person")),
)
ALL, ACROSS = ORDERS, ("boxes", "across")
"""ACROSS: of one class, the protocol's matching reads the order."""
CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "shoe-eval": (("--sim", "lexical", "--per-class", "--bootstrap", "3"), ALL),
    "shoe-eval optimal": (("--sim", "lexical", "--assignment", "optimal"), ALL),
    "shoe-eval of ranks": (("--sim", "lexical", "--min-rank", "0.5", "--filter-map"), ALL),
    "recall": (("--k", "1,2,3"), ALL),
    "eval boxes": (("--boxes", "--protocol", "diag-boxes"), ALL),
    "diagnose": (("--per-class", "--progressive", "all"), ACROSS),
    "diagnose independent": (("--independent",), ACROSS),
    "confusion": (("--top", "all"), ACROSS),
    "audit": (("--top", "all", "--sure", "0"), ACROSS),
    "audit of wide duplicates": (("--top", "all", "--sure", "0", "--same", "0.3"), ACROSS),
    "pairstats": ((), ACROSS),
    "pairstats of triplets' scores": (("--verb-score", "triplet", "--interactiveness"), ACROSS),
    "pairstats one to one": (("--one-to-one",), ACROSS),
    "curves": ((), ACROSS),
    "eval": (("--per-class",), ACROSS),
}
"""A command, with a name for what it is asked -> (its options, the orders that change nothing)."""


def numbers(
    hoicli: Hoicli, name: str, folder: Path, truth: list[Record], found: list[Record], *options: str
) -> list[Record]:
    """The rows of a call but for what in a signature says how the ground truth is listed."""
    gt, preds = written(folder / "gt.jsonl", truth), written(folder / "preds.jsonl", found)
    result = hoicli(name.split()[0], *CALLS[name][0], *options, "--format", "jsonl", "--gt", gt, preds)
    assert result.code == 0, result.err
    rows = [{**row, "signature": re.sub(r"\|gt:[^|]*", "", row["signature"])} for row in parsed(result.out)]
    for row in rows:
        if row["metric"] == "candidate":  # without places, and what lies on one of several equal boxes
            for key in ("boxes", "hoi", "hois", *(("n", "verbs") if row["kind"] == "near_duplicate" else ())):
                row.pop(key, None)
            row["where"] = sorted(row["where"]) if row["kind"] == "near_duplicate" else row["where"]
    return rows


@pytest.mark.parametrize("name", CALLS)
def test_order_inside_a_record_means_nothing(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    for seed in range(4):
        chance, (truth, found) = random.Random(seed), tied_world(seed, HICO)
        expected = numbers(hoicli, name, tmp_path, truth, found)
        for order in CALLS[name][1]:
            listed, guessed = ([reordered(record, order, chance) for record in side] for side in (truth, found))
            assert numbers(hoicli, name, tmp_path, listed, found) == expected, (seed, order, "ground truth")
            assert numbers(hoicli, name, tmp_path, truth, guessed) == expected, (seed, order, "predictions")


VCOCO = FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl", "vcoco"
OWN = FIXTURES / "own/gt.jsonl", FIXTURES / "own/predictions.jsonl", str(FIXTURES / "own/site.json")


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("diagnose", VCOCO), ("confusion", VCOCO), ("shoe-eval", VCOCO), ("audit of wide duplicates", OWN)],
)
def test_nor_does_it_in_other_datasets(
    hoicli: Hoicli, tmp_path: Path, name: str, dataset: tuple[Path, Path, str]
) -> None:
    truth, found = (parsed(path.read_text()) for path in dataset[:2])
    for record in found:  # many equal scores
        record["hois"] = [{**hoi, "score": round(hoi["score"], 1)} for hoi in record["hois"]]
    chance, options = random.Random(name), ("--dataset", dataset[2])
    expected = numbers(hoicli, name, tmp_path, truth, found, *options)
    for order in CALLS[name][1]:
        listed, guessed = ([reordered(record, order, chance) for record in side] for side in (truth, found))
        assert numbers(hoicli, name, tmp_path, listed, found, *options) == expected, (order, "ground truth")
        assert numbers(hoicli, name, tmp_path, truth, guessed, *options) == expected, (order, "predictions")
