"""The subset of images with one human-object pair: the supplement's 575 classes, and every clause of its reading."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hoicli.shoe.shoe_evaluation import single_pair_images
from tests.support.project import SHOE, Hoicli, Record
from tests.support.shoe import FILES, image, read, rows_of


def pairs_of(*hois: tuple[int, int | None], boxes: list[list[float]], labels: list[str], name: str = "a") -> Record:
    """An image of these boxes, each of these two holding each other."""
    listed = [{"subject": one, "object": other, "verb": "hold"} for one, other in hois]
    return {"image_id": name, "boxes": boxes, "labels": labels, "hois": listed}


def shifted(left: float) -> list[float]:
    """A box 100 wide: two of them that lie d apart have an IoU of (100 - d) / (100 + d)."""
    return [left, 0.0, left + 100.0, 50.0]


def drawn(*left: float) -> Record:
    """A person drawn at these places, each time holding the one cup."""
    count = len(left)
    boxes = [*map(shifted, left), CUP]
    return pairs_of(*((at, count) for at in range(count)), boxes=boxes, labels=["person"] * count + ["cup"])


CUP, CUPS = [1000.0, 0.0, 1040.0, 40.0], ["person", "cup"]


@pytest.mark.parametrize(
    ("record", "single"),
    [
        (image(("pet", "giraffe"), ("wash", "giraffe")), True),  # two classes on one pair, each with boxes of its own
        (image(("pet", "giraffe"), ("pet", "Giraffe ")), True),
        (image(("pet", "giraffe"), ("pet", "zebra")), False),  # one box, two things
        (image(("pet", "giraffe"), ("pet", "giraffe", None, [200, 0, 210, 10])), False),
        (image(), False),
        (image(("wash", None)), True),
        (image(("wash", None), ("wash", "giraffe")), False),
        # The person drawn twice, 11 and 12 apart: 89 / 111 and 88 / 112
        (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(11), CUP], labels=["person", *CUPS]), True),
        (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(12), CUP], labels=["person", *CUPS]), False),
        # An IoU of 4 / 5 is not above 0.8: the second lies within the first
        (pairs_of((0, 2), (1, 2), boxes=[[0, 0, 50, 10], [0, 0, 40, 10], CUP], labels=["person", *CUPS]), False),
        # People and things drawn anew for each of three interactions
        (
            pairs_of((0, 3), (1, 4), (2, 5), boxes=[*map(shifted, (0, 1, 2, 300, 301, 302))],
                     labels=["person"] * 3 + ["cup"] * 3),
            True,
        ),
        # A chain: the ends are 20 apart (80 / 120), and the one between joins them, whatever comes first
        (drawn(0, 10, 20), True),
        (drawn(0, 20, 10), True),
        ({**drawn(0, 20, 10), "hois": drawn(0, 20, 10)["hois"][:2]}, False),  # the one between is in no pair
        (drawn(*(10 * (at * 17 % 41) for at in range(41))), True),
        # Another label joins nothing; two people who hug, each other's object, are two pairs
        (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(0), CUP], labels=["person", "Person ", "cup"]), True),
        (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(0), CUP], labels=["man", "person", "cup"]), False),
        (pairs_of((0, 1), (1, 0), boxes=[shifted(0), shifted(60)], labels=["person", "person"]), False),
    ],
)  # fmt: skip
def test_one_human_object_pair(record: Record, single: bool) -> None:
    other = image(("pet", "giraffe"), image_id="other")
    assert single_pair_images(read([record, other])).tolist() == [single, True]
    # No order of boxes matters
    count = len(record["boxes"])
    back = {at: count - 1 - at for at in range(count)} | {None: None}
    turned = {
        "image_id": "a",
        "boxes": record["boxes"][::-1],
        "labels": record["labels"][::-1],
        "hois": [{**hoi, "subject": back[hoi["subject"]], "object": back[hoi["object"]]} for hoi in record["hois"]],
    }
    assert single_pair_images(read([other, turned])).tolist() == [True, single]


def test_the_single_hoi_subset_of_the_supplement(hoicli: Hoicli, tmp_path: Path, hico_test: Path) -> None:
    """The caption of its Table 2: 575 classes, which 4,054 of HICO-DET's test images show; the rows are over them."""
    truth, found = tmp_path / "gt.jsonl", tmp_path / "found.jsonl"
    found.write_text('{"image_id": "HICO_test2015_00000001", "boxes": [], "labels": [], "hois": []}\n')
    given = ("shoe-eval", "--format", "jsonl", "--single-hoi", "--sim", SHOE / "sim.jsonl", "--gt")
    result = hoicli(*given, hico_test, found)
    assert (
        "hoicli: --single-hoi: 4,054 of 9,658 images have one human-object pair (boxes of one label that overlap at "
        "IoU > 0.8 are one) and show 575 classes\n"
    ) in result.err
    rows = rows_of(result.out)
    assert (rows["mf1"]["n"], rows["gt_miss_rate"]["n"]) == (575, 6616)
    lines = hico_test.read_text().splitlines(keepends=True)
    random.Random(2).shuffle(lines)
    truth.write_text("".join(lines))
    assert hoicli(*given, truth, found).out == result.out


def test_single_hoi(hoicli: Hoicli) -> None:
    result = hoicli("shoe-eval", "--format", "jsonl", "--single-hoi", *FILES, SHOE / "predictions.jsonl")
    assert result.err.startswith(
        "hoicli: --single-hoi: 7 of 8 images have one human-object pair (boxes of one label that overlap at IoU > 0.8 "
        "are one) and show 10 classes\n"
    )
    rows = rows_of(result.out)
    assert {row["subset"] for row in rows.values()} == {"single_hoi"}
    assert (rows["mf1"]["n"], rows["gt_miss_rate"]["n"], rows["prediction_miss_rate"]["n"]) == (10, 10, 11)
    assert all("|images:one-pair,boxes-as-one-above-iou-0.8|" in row["signature"] for row in rows.values())
    whole = hoicli("shoe-eval", "--format", "jsonl", *FILES, SHOE / "predictions.jsonl")
    assert "images:" not in whole.out
