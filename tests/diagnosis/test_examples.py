"""Which errors the gallery and the report show, and the truth beside them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hoicli.diagnosis.examples import Examples
from hoicli.diagnosis.gather import typed_batches
from hoicli.diagnosis.repairs import Reading
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.intake import ErrorPolicy
from tests.support.kernel import ground_truth, lines
from tests.support.project import Hoicli

Record = dict[str, Any]

LABELS = ["person", "person", "cup", "chair"]
BOXES = [[100.0 * index, 0.0, 100.0 * index + 50, 50.0] for index in range(len(LABELS))]


def scene(image_id: str, *hois: tuple[int, int, str] | tuple[int, int, str, float]) -> Record:
    """Two people, a cup and a chair."""
    said = [dict(zip(("subject", "object", "verb", "score"), hoi, strict=False)) for hoi in hois]
    return {"image_id": image_id, "boxes": BOXES, "labels": LABELS, "hois": said}


def examples(
    truth: Sequence[Record], parts: Sequence[Sequence[Record]], limit: int = 40, reading: Reading = "shared"
) -> list[Record]:
    """Those of predictions in several parts, each with examples of its own, put together in their order."""
    annotated = ground_truth(truth)
    whole = Examples(limit)
    for part in parts:
        found = Examples(limit)
        for batch in typed_batches(lines(part), annotated, Filters(), ErrorPolicy(), reading):
            found.add(*batch, PROTOCOLS["diag"])
        whole.merge(found)
    whole.add_unseen(annotated, {record["image_id"] for part in parts for record in part}, PROTOCOLS["diag"])
    return list(whole.items())


@pytest.mark.parametrize("reading", ["shared", "released"])
def test_a_duplicate_is_shown_with_its_own_truth(reading: Reading) -> None:
    """Not with the ground truth of another triplet, which the released code lets it repair."""
    truth = [scene("one", (0, 2, "hold"), (0, 3, "sit_on"))]
    predictions = [scene("one", (0, 2, "hold", 0.9), (0, 2, "hold", 0.8))]
    shown = [item for item in examples(truth, [predictions], reading=reading) if item["error"] == "duplicate"]
    assert [(item["verb"], item["label"], item["truth_name"]) for item in shown] == [("hold", "cup", "hold cup")]
    assert shown[0]["truth"] == [BOXES[0], BOXES[2]]


def test_another_error_is_shown_with_what_it_could_repair() -> None:
    truth = [scene("one", (0, 2, "hold"), (0, 3, "sit_on"))]
    items = examples(truth, [[scene("one", (0, 3, "carry", 0.9), (1, 3, "carry", 0.8))]])
    assert [(item["error"], item["truth_name"], item["predicted"]) for item in items] == [
        ("interaction", "sit_on chair", [BOXES[0], BOXES[3]]),
        ("association", "sit_on chair", [BOXES[1], BOXES[3]]),
        ("missed_gt", "hold cup", None),
    ]
    assert [item["relation"] for item in items] == ["repair", "nearest", "own"]
    assert items[1]["iou"] == [0.0, pytest.approx(0.925, abs=1e-3)]


# More ties than there is room for


def many() -> tuple[list[Record], list[Record]]:
    """90 images, a third without predictions, with duplicates, interaction and association errors of one score, and
    missed ground truth: more of each than is shown."""
    hois: tuple[tuple[int, int, str], ...] = ((0, 2, "hold"), (0, 3, "sit_on"), (1, 2, "wash"))
    said = [(0, 2, "hold"), (0, 2, "hold"), (0, 3, "carry"), (1, 3, "carry"), (1, 2, "carry"), (0, 3, "hold")]
    truth = [scene(f"image_{number}", *hois) for number in range(90)]
    predictions = [scene(f"image_{number}", *((*hoi, 0.5) for hoi in said)) for number in range(60)]
    return truth, predictions


def test_ties_beyond_the_limit_are_the_same_in_any_order() -> None:
    truth, predictions = many()
    expected = examples(truth, [predictions], limit=7)
    assert [item["rank"] for item in expected if item["error"] == "duplicate"] == list(range(1, 8))
    for seed in range(5):
        shuffle = random.Random(seed)
        shuffle.shuffle(truth)
        shuffle.shuffle(predictions)
        cut = shuffle.randrange(60)
        assert examples(truth, [predictions[:cut], predictions[cut:]], limit=7) == expected


@pytest.mark.parametrize("command", ["diagnose", "report", "explore"])
def test_the_same_bytes_in_any_order_and_sharding(
    command: str, hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, predictions = many()
    gt, preds, page = tmp_path / "gt.jsonl", tmp_path / "preds.jsonl", tmp_path / "page"

    def made() -> dict[str, bytes]:
        for path, records in ((gt, truth), (preds, predictions)):
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        option = {"diagnose": ("--gallery", page), "report": ("-o", tmp_path / "report.html"), "explore": ("-o", page)}
        assert hoicli(command, "--gt", gt, preds, *option[command]).code == 0
        written = [tmp_path / "report.html"] if command == "report" else sorted(page.rglob("*.*"))
        return {str(path): path.read_bytes() for path in written}

    expected = made()
    if command == "report":
        assert next(iter(expected.values())).count(b"<article") == 4 * 3
    random.Random(1).shuffle(truth)
    random.Random(2).shuffle(predictions)
    assert made() == expected
    monkeypatch.setattr("hoicli.io.streams.SHARE", 4096)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    assert made() == expected
