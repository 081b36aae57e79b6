"""What no released code fixes breaks ties by values: records whose boxes and triplets are listed in another order give
the same numbers."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tests.support.orders import ORDERS, reordered, tied_world
from tests.support.project import FIXTURES, Hoicli, Record, parsed, records_of, refusal, written

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
    people = "vcoco" in options  # whose order is signed, though no number of these worlds depends on it
    mute = re.compile(r"\|gt:[^|]*" + r"|\|listed:[^|]*" * people)
    rows = [{**row, "signature": mute.sub("", row["signature"])} for row in parsed(result.out)]
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


RIDERS: Record = {
    "image_id": "1",
    "boxes": [[0, 0, 100, 100], [0, 0, 200, 100], [20, 0, 120, 100]],
    "labels": ["person", "bicycle", "person"],
    "hois": [{"subject": 0, "object": 1, "verb": "ride"}, {"subject": 2, "object": 1, "verb": "ride"}],
}
"""Two people ride a bicycle; a prediction between them belongs to the one that is listed first."""
BETWEEN: Record = {
    "image_id": "1",
    "boxes": [[10, 0, 110, 100], [0, 0, 200, 100], [0, 0, 100, 100]],
    "labels": ["person", "bicycle", "person"],
    "hois": [
        {"subject": 0, "object": 1, "verb": "ride", "score": 0.9},
        {"subject": 2, "object": 1, "verb": "ride", "score": 0.5},
    ],
}


def reversed_hois(record: Record) -> Record:
    return {**record, "hois": record["hois"][::-1]}


def listed_in(rows: list[Record]) -> set[str]:
    return {dict(part.partition(":")[::2] for part in row["signature"].split("|")).get("listed", "") for row in rows}


@pytest.mark.parametrize("command", ["eval", "diagnose", "diagnose --as-released", "curves", "claim", "compare"])
def test_an_order_that_moves_numbers_is_signed(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    preds = written(tmp_path / "preds.jsonl", [BETWEEN])
    options = {"claim": ("50",), "compare": ("--name", "a,b", "--no-errors", preds)}.get(command, ())
    made = []
    for truth in (RIDERS, reversed_hois(RIDERS)):
        gt = written(tmp_path / "gt.jsonl", [truth])
        made.append(records_of(hoicli(*command.split(), "--format", "jsonl", "--gt", gt, preds, *options)))
    first, second = map(listed_in, made)
    assert len(first) == len(second) == 1
    assert first != second
    assert "" not in first | second


def test_the_order_changes_the_number_and_its_signature_alone(hoicli: Hoicli, tmp_path: Path) -> None:
    preds, values = written(tmp_path / "preds.jsonl", [BETWEEN]), []
    for truth in (RIDERS, reversed_hois(RIDERS)):
        gt = written(tmp_path / "gt.jsonl", [truth])
        direct = hoicli("eval", "--protocol", "hico", "--format", "jsonl", "--gt", gt, preds).out
        matched = tmp_path / "match.jsonl"
        assert hoicli("match", "--protocol", "hico", "--gt", gt, preds, "-o", matched).code == 0
        assert hoicli("eval", "--format", "jsonl", matched).out == direct
        assert hoicli("eval", "--format", "jsonl", "--gt", gt, matched).out == direct
        values.append(parsed(direct)[0]["value"] * 600)
        other = written(tmp_path / "other.jsonl", [reversed_hois(truth)])
        assert "in another order" in refusal(hoicli("eval", "--gt", other, matched))
    assert values == pytest.approx([600 / 11, 100])  # precision is 1 at 6 of 11 points of recall, or at all


@pytest.mark.parametrize("call", [
    ("eval", "--protocol", "hico,qpic,diag", "--per-class"),
    ("eval", "--boxes", "--protocol", "coco-boxes,voc-boxes", "--per-class"),
    ("diagnose", "--as-released"),
    ("pairstats", "--as-released", "--interactiveness"),
    *(("recall", "--as-released", name, "--k", "3,20") for name in ("openpsg", "sgg-benchmark", "r1-sgg")),
], ids=" ".join)  # fmt: skip
def test_numbers_of_one_signature_are_equal_in_any_order(hoicli: Hoicli, tmp_path: Path, call: tuple[str, ...]) -> None:
    for seed in range(2):
        chance, (truth, found) = random.Random(seed), tied_world(seed, HICO)
        preds = written(tmp_path / "preds.jsonl", found)
        values: dict[str, float] = {}
        for order in ("as they are", *ORDERS, *ORDERS):
            listed = [reordered(record, order, chance) if order in ORDERS else record for record in truth]
            gt = written(tmp_path / "gt.jsonl", listed)
            for row in parsed(hoicli(*call, "--format", "jsonl", "--gt", gt, preds).out):
                identity = json.dumps({**row, "value": None}, sort_keys=True)
                assert values.setdefault(identity, row["value"]) == row["value"], (seed, order, row)
            if call[0] == "diagnose":
                matched = hoicli("match", "--protocol", "diag", "--gt", gt, preds, "-o", tmp_path / "matched.jsonl")
                assert matched.code == 0
                direct = hoicli(*call, "--format", "jsonl", "--gt", gt, preds).out
                assert hoicli(*call, "--format", "jsonl", tmp_path / "matched.jsonl").out == direct


def test_no_order_is_signed_where_every_order_is_alike(hoicli: Hoicli, tmp_path: Path) -> None:
    """One triplet of each class, or equal ones; nor that of the triplets of several classes."""
    one, two = RIDERS["hois"]
    several = {**RIDERS, "hois": [one, {**two, "verb": "hold"}]}
    preds = written(tmp_path / "preds.jsonl", [BETWEEN])
    for truth in (several, reversed_hois(several), {**RIDERS, "hois": [one, one]}):
        result = hoicli("eval", "--format", "jsonl", "--gt", written(tmp_path / "gt.jsonl", [truth]), preds)
        assert listed_in(parsed(result.out)) == {""}


@pytest.mark.parametrize("form", ["anno_bbox.mat", "test_hico.json", "anno_list.json"])
def test_forms_of_one_ground_truth_list_triplets_in_one_order(hoicli: Hoicli, form: str) -> None:
    """Each form of HICO-DET's annotations, read by its converter, to the pixel by which their boxes differ."""

    def pairs_of_classes(name: str) -> dict[tuple[str, ...], list[list[int]]]:
        pairs: dict[tuple[str, ...], list[list[int]]] = {}
        for record in parsed(hoicli("convert", FIXTURES / "foreign" / name).out):
            for hoi in record["hois"]:
                ends = hoi["subject"], hoi["object"]
                corners = [round(value, -1) for end in ends for value in record["boxes"][end]]
                pairs.setdefault((record["image_id"], hoi["verb"], record["labels"][hoi["object"]]), []).append(corners)
        return pairs

    expected = pairs_of_classes("instances_test2015.json")
    assert max(map(len, expected.values())) > 1
    assert pairs_of_classes(form) == expected


def test_rows_without_an_order_meet_rows_with_one(hoicli: Hoicli, tmp_path: Path) -> None:
    """As rows of hoicli 1.0 do; two orders are told apart."""
    gt, preds = written(tmp_path / "gt.jsonl", [RIDERS]), written(tmp_path / "preds.jsonl", [BETWEEN])
    rows = parsed(hoicli("eval", "--protocol", "hico", "--gt", gt, preds, "--tag", "model=new").out)
    mute = re.compile(r"\|listed:[^|]*")
    old = [{**row, "tags": {"model": "old"}, "signature": mute.sub("", row["signature"])} for row in rows]
    other = [
        {**row, "tags": {"model": "other"}, "signature": mute.sub("|listed:00000000", row["signature"])} for row in rows
    ]
    both = hoicli("table", written(tmp_path / "both.jsonl", rows + old))
    assert both.code == 0
    assert "does not say in which order" in both.out
    assert (
        "listed:00000000" in hoicli("table", written(tmp_path / "three.jsonl", rows + rows_as("b", rows) + other)).out
    )
    cells = [
        {**row, "tags": {"corruption": name, **({"severity": "1"} if name != "clean" else {})}}
        for name, of in (("clean", old), ("fog", rows))
        for row in of
    ]
    robust = hoicli("robust", "--unit", "percent", "--allow-missing", written(tmp_path / "cells.jsonl", cells))
    assert robust.code == 0, robust.err
    assert "in which order" in robust.err


def rows_as(model: str, rows: list[Record]) -> list[Record]:
    return [{**row, "tags": {"model": model}} for row in rows]


VCOCO = FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl", "vcoco"
OWN = FIXTURES / "own/gt.jsonl", FIXTURES / "own/predictions.jsonl", str(FIXTURES / "own/site.json")


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("diagnose", VCOCO), ("confusion", VCOCO), ("shoe-eval", VCOCO), ("audit of wide duplicates", OWN)],
)
def test_nor_in_other_datasets(hoicli: Hoicli, tmp_path: Path, name: str, dataset: tuple[Path, Path, str]) -> None:
    truth, found = (parsed(path.read_text()) for path in dataset[:2])
    for record in found:  # many equal scores
        record["hois"] = [{**hoi, "score": round(hoi["score"], 1)} for hoi in record["hois"]]
    chance, options = random.Random(name), ("--dataset", dataset[2])
    expected = numbers(hoicli, name, tmp_path, truth, found, *options)
    for order in CALLS[name][1]:
        listed, guessed = ([reordered(record, order, chance) for record in side] for side in (truth, found))
        assert numbers(hoicli, name, tmp_path, listed, found, *options) == expected, (order, "ground truth")
        assert numbers(hoicli, name, tmp_path, truth, guessed, *options) == expected, (order, "predictions")
