"""Whatever folders a source names its images in, no image and no triplet of it is lost or joined in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.foreign import Fixture, fixtures
from tests.support.project import FIXTURES, Hoicli, Record, Result

NAMES = [f"{folder}{name}.jpg" for folder in ("", "a/", "a/b/", "b\\", "test2015/") for name in ("x_1", "x_2", "y_3")]
NUMBERED = "the file numbers its images, --image-list names them"
WITHOUT_NAMES = {
    **dict.fromkeys(("logits", "detections_mat", "rows_mat", "hoidet", "inpcc", "swig_inpcc", "inpcc_json"), NUMBERED),
    "state": "the file has ids of images, no names of files",
    "label_studio": "each name begins with the number of an upload",
    **dict.fromkeys(("vcoco_ids", "vcoco_instances", "vcoco_vsrl", "vcoco_official", "vcoco_cache"), "COCO's numbers"),
}
"""The makers of tests/foreign whose files do not name images as the test does, each with the reason. All others are
tried: a new maker is, too, unless it stands here."""


def answers(truth: list[Record], predictions: list[Record], path: Path) -> None:
    """A row for each triplet, as a model is asked for pairs one by one."""
    with path.open("w") as file:
        for record in predictions:
            for hoi in record["hois"]:
                ends = {
                    end: {"label": record["labels"][hoi[end]], "bbox": record["boxes"][hoi[end]]}
                    for end in hoi
                    if end in ("subject", "object")
                }
                said = [{**ends, "predicate": hoi["verb"]}]
                file.write(json.dumps({"file_name": record["file_name"], "response": said}) + "\n")


FOREIGN = {**fixtures(), "answers": Fixture(answers, "answers.jsonl")}
OPTIONS: dict[str, tuple[object, ...]] = {
    "coco_rel": ("--dataset", FIXTURES / "graphs/dataset.json"),
    "cvat": ("--dataset", FIXTURES / "own/site.json"),
    "gen_vlkt": ("--dataset", "hico"),
    "answers": ("--from", "vlm", "--coords", "pixels"),
}


def in_posix(name: str) -> str:
    return name.replace("\\", "/").removesuffix(".jpg")


def left_out(result: Result) -> list[str]:
    return [line.partition(" (the first")[0] for line in result.err.splitlines() if "left out" in line]


@pytest.mark.parametrize("maker", [name for name in FOREIGN if name not in WITHOUT_NAMES])
@settings(max_examples=4, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(NAMES), min_size=8, max_size=8, unique=True))
def test_every_image_and_triplet_is_there(
    hoicli: Hoicli, tmp_path_factory: pytest.TempPathFactory, maker: str, names: list[str]
) -> None:
    """The same source under other names has the same images, triplets and notes of what was left out."""
    fixture = FOREIGN[maker]
    gt, predictions = fixture.records()
    gt = [record for record in gt if not fixture.images or record["image_id"] in fixture.images]
    path = tmp_path_factory.mktemp("source") / fixture.file
    options = OPTIONS.get(maker, ())

    def converted(called: list[str], *more: object) -> tuple[list[Record], Result]:
        name_of = {record["image_id"]: name for record, name in zip(gt, called, strict=False)}
        sides = [[record for record in side if record["image_id"] in name_of] for side in (gt, predictions)]
        truth, found = ([{**one, "file_name": name_of[one["image_id"]]} for one in side] for side in sides)
        fixture.make(truth, found, path)
        result = hoicli("convert", *options, *more, path)
        return [json.loads(line) for line in result.out.splitlines()], result

    def content(records: list[Record]) -> list[Any]:
        return [(record["boxes"], record["labels"], record["hois"], record.get("pairs")) for record in records]

    plain, before = converted([f"plain_{number}.jpg" for number in range(len(gt))])
    found, after = converted(names)
    assert (after.code, content(found)) == (0, content(plain)), after.err
    assert left_out(after) == left_out(before)
    paths = [in_posix(names[int(record["image_id"].removeprefix("plain_"))]) for record in plain]
    bases = [name.rpartition("/")[2] for name in paths]
    twice = len(set(bases)) < len(bases)
    assert [record["image_id"] for record in found] == (paths if twice else bases)
    assert ("their paths are their ids" in after.err) == twice
    assert [record["image_id"] for record in converted(names, "--id", "path")[0]] == paths
    by_name, chosen = converted(names, "--id", "name")
    assert (chosen.code, "or give --id path" in chosen.err) == ((1, True) if twice else (0, False)), chosen.err
    assert twice or content(by_name) == content(plain)
