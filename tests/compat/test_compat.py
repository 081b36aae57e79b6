"""Each release's records are still valid, and still give the numbers that it gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hoicli
from hoicli.commands.doctor import kinds, schema_text

HERE = Path(__file__).parent
RELEASES = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
KINDS = {
    "ground_truth": ["gt.jsonl", "vcoco_gt.jsonl", "dataset_gt.jsonl", "shoe_gt.jsonl"],
    "prediction": ["predictions.jsonl", "other.jsonl", "vcoco_predictions.jsonl", "dataset_predictions.jsonl"],
    "match": ["match.jsonl", "vcoco_match.jsonl"],
    "result": ["rows.jsonl"],
    "similarity": ["similarity.jsonl"],
    "dataset": ["dataset.json"],
    "protocol": ["protocol.json"],
    "recipe": ["recipe.json"],
}
MOVED: dict[tuple[str, str], dict[str, float]] = {
    # a 24th pair, whose only triplet is of no_interaction, is one, too (noint:pairs in the signature)
    ("1.0", "pairstats"): {
        "diag/pairs_per_image/full": 24 / 7, "diag/pairs_per_image/non_rare": 24 / 7,
        "diag/pair_precision/full": 100 * 8 / 24, "diag/pair_precision/rare": 100 / 24,
        "diag/pair_precision/non_rare": 100 * 8 / 24, "diag/pair_precision_own_images/non_rare": 100 * 8 / 24,
        "diag/neg_share/full": 100 * 9 / 24,
    }
}  # fmt: skip
"""What a later release computes otherwise, on purpose; CHANGELOG.md says why."""


def numbers(folder: Path) -> dict[str, dict[str, Any]]:
    (gt, predictions), of_vcoco, of_own, of_shoe = (
        (folder / f"{kind}gt.jsonl", folder / f"{kind}predictions.jsonl")
        for kind in ("", "vcoco_", "dataset_", "shoe_")
    )
    results = {
        "eval": hoicli.evaluate(gt, predictions, protocol="all"),
        "eval of matches": hoicli.evaluate(predictions=folder / "match.jsonl"),
        "eval by a protocol's file": hoicli.evaluate(gt, predictions, protocol=str(folder / "protocol.json")),
        "diagnose": hoicli.diagnose(gt, [predictions]),
        "pairstats": hoicli.pairstats(gt, [predictions]),
        "compare": hoicli.compare(gt, [predictions, folder / "other.jsonl"], bootstrap=50),
        "vcoco": hoicli.evaluate(*of_vcoco, dataset="vcoco"),
        "vcoco of matches": hoicli.evaluate(predictions=folder / "vcoco_match.jsonl"),
        "own": hoicli.evaluate(*of_own, dataset=str(folder / "dataset.json")),
        "shoe": hoicli.shoe_eval(*of_shoe, sim=folder / "similarity.jsonl"),
        "robust": hoicli.robust(folder / "rows.jsonl"),
    }
    return {name: result.to_dict(drop_none=False) for name, result in results.items()}


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_release_s_records_give_its_numbers(release: Path) -> None:
    assert {file.name for file in release.iterdir()} == {name for names in KINDS.values() for name in names} | {
        "numbers.json", "shoe_predictions.jsonl"
    }  # fmt: skip
    now, then = numbers(release), json.loads((release / "numbers.json").read_text())
    for name, values in then.items():
        values |= MOVED.get((release.name, name), {})
        assert {key: now[name].get(key) for key in values} == pytest.approx(values, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_release_s_records_are_valid(kind: str) -> None:
    """By today's schema, in which no later release may forbid what an earlier one wrote."""
    jsonschema = pytest.importorskip("jsonschema")
    assert set(KINDS) == set(kinds())
    check = jsonschema.Draft202012Validator(json.loads(schema_text(kind)))
    for release in RELEASES:
        for name in KINDS[kind]:
            text = (release / name).read_text()
            for line in text.splitlines() if name.endswith("l") else [text]:
                check.validate(json.loads(line))


LATER = {"iscrowd": "1.1", "gt_order": "1.1", "pairs_only": "1.1", "first_free": "1.1", "union_margin": "1.1"}
"""The fields that came later, with their version."""


@pytest.mark.parametrize("kind", kinds())
def test_each_field_says_what_it_means_and_since_when(kind: str) -> None:
    def look(node: Any, path: str) -> None:
        if isinstance(node, list):
            for one in node:
                look(one, path)
        if not isinstance(node, dict):
            return
        for name, field in node.get("properties", {}).items():
            assert field.get("description") or "$ref" in field, f"{path}.{name}"
            assert field.get("x-since") == LATER.get(name, "1.0"), f"{path}.{name}"
        for key, value in node.items():
            look(value, f"{path}.{key}")

    look(json.loads(schema_text(kind)), kind)
