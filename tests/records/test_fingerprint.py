"""The digest of ground truth: what changes it, what does not, and that both readers agree."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hoicli.records.columns import Images
from hoicli.records.fingerprint import total_of
from hoicli.records.reading import scenes_of
from hoicli.records.triplets import named_images
from hoicli.vocabulary.datasets import load
from tests.support.kernel import lines
from tests.support.project import Hoicli, Record, written

IMAGE: Record = {
    "image_id": "a",
    "boxes": [[0, 0, 10, 10], [5, 5, 20, 20], [0, 0, 10, 10], [50, 50, 60, 60]],
    "labels": ["person", "bicycle", "person", "dog"],
    "hois": [{"subject": 0, "object": 1, "verb": "ride"}, {"subject": 2, "object": 1, "verb": "hold"}],
    "image_hois": [["ride", "bicycle"], ["hold", "bicycle"]],
    "ambiguous_hois": [["walk", "bicycle"]],
}
OTHER: Record = {**IMAGE, "image_id": "b", "hois": []}
ACTIONS: Record = {
    "image_id": "a",
    "boxes": [[0, 0, 10, 10], [5, 5, 20, 20], [30, 0, 40, 10]],
    "labels": ["person", "bicycle", "person"],
    "hois": [{"subject": 0, "object": 1, "verb": "hit", "role": "obj"}, {"subject": 2, "object": None, "verb": "run"}],
    "annotated": [True, True, False],
}


def totals(records: list[Record], dataset: str = "hico") -> int:
    """The total of the records, by both readers."""
    read: list[Images] = [
        scenes_of(lines(records), load(dataset), scored=False),
        named_images(lines(records), truth=True),
    ]
    assert [len(images.hashes) for images in read] == [len(records)] * 2
    first, second = (total_of(images.hashes) for images in read)
    assert first == second
    return first


def edited(record: Record, *path: Any) -> Record:
    """The record with another value (the last of `path`) at a place."""
    *way, key, value = path
    changed = item = deepcopy(record)
    for step in way:
        item = item[step]
    item[key] = value
    return changed


@pytest.mark.parametrize(
    "path",
    [
        ("image_id", "c"),
        ("image_hois", None),
        ("image_hois", [["ride", "bicycle"]]),
        ("image_hois", [["ride", "bicycle"], ["hold", "dog"]]),
        ("ambiguous_hois", None),
        ("ambiguous_hois", []),
        ("caveats", ["derived_labels"]),
        ("labels", 0, "dog"),
        ("labels", 1, "dog"),
        ("labels", 3, "person"),
        ("boxes", 0, [0, 0, 10, 11]),
        ("boxes", 1, [5, 20, 5, 20]),
        ("boxes", 3, [50, 50, 60, 61]),
        ("hois", 0, "verb", "hold"),
        ("hois", 0, "subject", 2),
        ("hois", 0, "subject", 1),
        ("hois", 0, "verb_synset", "ride.v.10"),
        ("synsets", [None, "bicycle.n.01", None, None]),
        ("hois", []),
    ],
    ids=str,
)
def test_whatever_a_metric_reads_changes_the_digest(path: tuple[Any, ...]) -> None:
    changed = edited(IMAGE, *path)
    if not changed["hois"]:
        changed["image_hois"] = IMAGE["image_hois"]
    assert totals([changed]) != totals([IMAGE])


def test_an_image_without_labels_is_not_one_with_an_empty_list() -> None:
    empty, without = {**OTHER, "image_hois": []}, {**OTHER, "image_hois": None}
    assert totals([empty]) != totals([without])
    assert totals([without]) == totals([{key: without[key] for key in without if key != "image_hois"}])


@pytest.mark.parametrize(
    "path",
    [
        ("labels", 1, "dog"),
        ("boxes", 2, [30, 0, 40, 11]),
        ("annotated", [True, True, True]),
        ("hois", 1, "verb", "walk"),
        ("hois", 1, "subject", 0),
        ("hois", 0, "role", "instr"),
        ("hois", 0, "object", None),
    ],
    ids=str,
)
def test_actions_and_people_without_any_change_the_digest(path: tuple[Any, ...]) -> None:
    assert totals([edited(ACTIONS, *path)], "vcoco") != totals([ACTIONS], "vcoco")


def test_the_order_of_lines_boxes_triplets_and_labels_does_not() -> None:
    turned = {
        **IMAGE,
        "boxes": IMAGE["boxes"][::-1],
        "labels": IMAGE["labels"][::-1],
        "hois": [{**hoi, "subject": 3 - hoi["subject"], "object": 3 - hoi["object"]} for hoi in IMAGE["hois"][::-1]],
        "image_hois": IMAGE["image_hois"][::-1],
    }
    assert totals([OTHER, turned]) == totals([IMAGE, OTHER])
    assert (totals([IMAGE]) + totals([OTHER])) % 2**64 == totals([IMAGE, OTHER])
    swapped = [{**IMAGE, "image_id": "b"}, {**OTHER, "image_id": "a"}]
    assert totals(swapped) != totals([IMAGE, OTHER])
    assert totals([{**IMAGE, "width": 640, "file_name": "a.jpg"}]) == totals([IMAGE])


def test_what_nobody_checks_may_be_anything() -> None:
    odd = {**IMAGE, "synsets": 3, "annotated": [1], "hois": [{**hoi, "role": ["x"]} for hoi in IMAGE["hois"]]}
    scenes = scenes_of(lines([odd]), load("hico"), scored=False)
    assert total_of(scenes.hashes) == totals([IMAGE])
    several: list[Any] = [3, [3], [[[]]], [["ride"]], [[{}, "x"]]]
    for labels in several:
        named_images(lines([{**IMAGE, "image_hois": labels}]), truth=True)


@pytest.mark.parametrize("command", ["eval", "recall", "validate"])
def test_triplets_beside_an_empty_list_of_labels_are_a_fault(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    gt = written(tmp_path / "gt.jsonl", [{**IMAGE, "image_hois": []}])
    result = hoicli(command, *(() if command == "validate" else ("--gt", gt)), gt)
    assert result.code == 1
    assert "gt.jsonl:1: image_hois: empty, but the image has triplets" in result.out + result.err


def test_an_image_in_which_nothing_happens_may_say_so(hoicli: Hoicli, tmp_path: Path) -> None:
    gt = written(tmp_path / "gt.jsonl", [IMAGE, {**OTHER, "image_hois": []}])
    assert hoicli("validate", gt).code == 0


def test_typographic_signs_change_no_digest() -> None:
    """In both readers: a record of a site's own label, by a keyboard's signs and by typographic ones."""
    names = ("hair drier", "hair\u00a0drier", "\u201chair_drier\u201d", "hair drier\u200b", "\uff48air drier")
    assert len({totals([{**IMAGE, "labels": ["person", "bicycle", "person", name]}]) for name in names}) == 1
