"""Which ground truths the cells of a benchmark may have: one that stands, and others where boxes move."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hoicli.corruption.catalogue import CORRUPTIONS
from hoicli.corruption.effects import EFFECTS
from hoicli.errors import DataError
from tests.robustness.test_rows import SIGNATURE, Row, falling, gather, grid_rows, row


def test_the_corruptions_that_move_boxes_are_those_that_say_where_to() -> None:
    moving = {name: effect.motion is not None for name, effect in EFFECTS.items()}
    assert {name: row.moves for name, row in CORRUPTIONS.items()} == moving


def signed(truths: Mapping[tuple[str, int], str], model: str = "") -> list[Row]:
    """The rows of cells with the ground truth of each; (clean, 0) are the original images."""
    tags = {"model": model} if model else {}
    return [
        row(35.0 - at, name, level or None, tags=tags, signature=f"protocol:hico|data:hico|gt:{truth}|topk:9")
        for at, ((name, level), truth) in enumerate(truths.items())
    ]


ONE = {
    ("clean", 0): "aaaaaaaa", ("jpeg", 1): "aaaaaaaa", ("jpeg", 2): "aaaaaaaa",
    ("elastic", 1): "eeeeeee1", ("elastic", 2): "eeeeeee2",
}  # fmt: skip
"""A right benchmark: boxes move in elastic, otherwise with each severity."""


def test_moved_ground_truth_is_no_other_and_signatures_name_the_one_that_stands() -> None:
    (grid,), _ = gather(signed(ONE))
    assert grid.settings == "protocol:hico|data:hico|gt:aaaaaaaa|topk:9"
    kept = dict.fromkeys(ONE, "aaaaaaaa")  # boxes as annotated
    models = [*signed(ONE, "a"), *signed(ONE, "b")]
    unsaid = [{**each, "signature": SIGNATURE} for each in signed(ONE)]
    several = [each for each in signed({**ONE, ("jpeg", 3): "bbbbbbbb"}) if each["tags"].get("severity") != "3"]
    for rows in (signed(kept), models, unsaid, several):
        assert gather(rows)[0][0].cells["elastic", 2] == 31
    moving = {cell: truth for cell, truth in ONE.items() if cell[0] == "elastic"}
    (grid,), _ = gather(signed(moving), allow_missing=True)
    assert "gt:" not in grid.settings
    mist = {("clean", 0): "aaaaaaaa", ("mist", 1): "ffffffff"}  # nobody knows whether its boxes move
    assert gather(signed(mist))[0][0].cells


@pytest.mark.parametrize(("changes", "line", "said"), [
    ({("jpeg", 1): "bbbbbbbb", ("jpeg", 2): "bbbbbbbb"}, 2, "jpeg 1 of the model is of the ground truth bbbbbbbb"),
    ({("clean", 0): "bbbbbbbb"}, 2, "jpeg 1 of the model is of the ground truth aaaaaaaa"),
    ({("jpeg", 2): "bbbbbbbb"}, 3, "jpeg 2 of the model is of the ground truth bbbbbbbb"),
    ({("elastic", 2): "eeeeeee1"}, 5, "elastic 2 of the model is of the ground truth eeeeeee1"),
    ({("mist", 1): "ffffffff", ("mist", 2): "ffffffff"}, 7, "mist 2 of the model is of the ground truth ffffffff"),
])  # fmt: skip
def test_another_ground_truth_is_refused(changes: dict[tuple[str, int], str], line: int, said: str) -> None:
    with pytest.raises(DataError, match=rf"^rows.jsonl:{line}: signature: {said}, but rows.jsonl:1 of"):
        gather(signed({**ONE, **changes}))
    kept = [{**each, "tags": {**each["tags"], "recipe": "hoicli-1+kept"}} for each in signed(ONE)]
    with pytest.raises(DataError, match=r"^rows.jsonl:4: signature: elastic 1 of the model"):
        gather(kept)


@pytest.mark.parametrize(("cell", "line"), [(("jpeg", 1), 2), (("elastic", 1), 4)])
def test_one_ground_truth_in_another_order_is_refused(cell: tuple[str, int], line: int) -> None:
    """Even where boxes move: with the truth of the original images, they do not."""
    orders = {**dict.fromkeys(ONE, "aaaaaaaa|listed:11111111"), cell: "aaaaaaaa|listed:22222222"}
    with pytest.raises(
        DataError, match=rf"^rows.jsonl:{line}: .*aaaaaaaa, listed in another order than in rows.jsonl:1;"
    ):
        gather(signed(orders))


def test_models_of_different_ground_truths_are_not_ranked() -> None:
    other = dict.fromkeys([cell for cell in ONE if cell[0] != "elastic"], "bbbbbbbb")
    for changes, line in ((other, 6), ({("elastic", 2): "eeeeeee3"}, 10)):
        text = rf"^rows.jsonl:{line}: signature: .* of model b is of the ground truth .*, but rows.jsonl:{line - 5} "
        with pytest.raises(DataError, match=text):
            gather([*signed(ONE, "a"), *signed({**ONE, **changes}, "b")])


def test_one_value_at_all_severities_is_named() -> None:
    remarks = gather(grid_rows({**falling(), "jpeg": [21.5] * 5, "moire": [0.0] * 5, "vignette": [100.0] * 5}))[1]
    assert "the model has one value at all severities of jpeg: the same predictions?" in remarks
    assert not any("same predictions" in text for text in gather(grid_rows(falling()))[1])
