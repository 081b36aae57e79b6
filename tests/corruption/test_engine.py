"""`hoicli corrupt`: files and records, the same in any number of processes and after any interruption; faults told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import cv2
import jsonschema
import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from hoicli.commands.doctor import schema_text
from hoicli.corruption.catalogue import CORRUPTIONS, LIMITS, RECIPES, ROHOI, WEATHER, Recipe
from hoicli.corruption.effects import EFFECTS, corrupt, draw
from hoicli.corruption.engine import cell_record
from hoicli.corruption.quality import Original
from hoicli.corruption.recipes import read_recipe
from hoicli.errors import DataError
from hoicli.io.spawned_workers import ordered_map
from tests.support.pictures import textured
from tests.support.project import EIGHT, GT, PATIENCE, ROOT, Hoicli, dumped, parsed, records_of, refusal, saved, written

IMAGES = EIGHT / "images"


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three small PNG images and a JPEG in a folder of their own, and gt.jsonl beside it."""
    images = tmp_path / "images"
    (images / "sub").mkdir(parents=True)
    records = []
    for number, name in enumerate(["a.png", "b.png", "sub/c.png", "d.jpg"]):
        PIL.Image.fromarray(textured(40 + 4 * number, 56)).save(images / name)
        records.append(
            {
                "image_id": f"image-{number}", "file_name": name, "width": 56, "height": 40 + 4 * number,
                "boxes": [[4, 5, 30, 36], [20, 10, 50, 30]], "labels": ["person", "bench"],
                "hois": [{"subject": 0, "object": 1, "verb": "sit_on"}], "source": {"kept": number},
            }
        )  # fmt: skip
    written(tmp_path / "gt.jsonl", records)
    return tmp_path


def call(folder: Path, *options: object, out: str = "out") -> list[object]:
    return ["corrupt", "--images", folder / "images", "--save-images", folder / out, *options, folder / "gt.jsonl"]


def test_records_alone_are_those_of_the_files(hoicli: Hoicli, folder: Path) -> None:
    whole = parsed(hoicli(*call(folder, "--severity", 5)).out)
    for record in whole:
        del record["psnr"], record["ssim"]
    (folder / "images").rename(folder / "elsewhere")
    alone = hoicli("corrupt", "--records-only", "--severity", 5, folder / "gt.jsonl")
    assert parsed(alone.out) == whole
    assert len({json.dumps(record["boxes"]) for record in whole if record["corruption"] == "zoom_blur"}) == 4


def test_records_alone_read_images_where_the_size_is_missing(hoicli: Hoicli, folder: Path) -> None:
    whole = parsed(hoicli("corrupt", "--records-only", "--corruption", "perspective", folder / "gt.jsonl").out)
    sized = parsed((folder / "gt.jsonl").read_text())
    sizes = {record["image_id"]: {key: record.pop(key) for key in ("width", "height")} for record in sized}
    written(folder / "gt.jsonl", sized)
    options = ("--records-only", "--corruption", "perspective", folder / "gt.jsonl")
    found = parsed(hoicli("corrupt", "--images", folder / "images", *options).out)
    assert [record | sizes[record["image_id"]] for record in found] == whole
    assert "file_name: no such file" in refusal(hoicli("corrupt", "--images", folder, *options))


@pytest.mark.parametrize(("width", "limit"), [(40_000, "at most 30,000 a side"), (20_000, "more than 64,000,000")])
def test_a_record_alone_can_be_too_large(hoicli: Hoicli, tmp_path: Path, width: int, limit: str) -> None:
    (tmp_path / "gt.jsonl").write_text(json.dumps({"file_name": "a.jpg", "width": width, "height": 20_000}))
    said = refusal(hoicli("corrupt", "--records-only", tmp_path / "gt.jsonl"))
    assert f"gt.jsonl:1: width: 'a.jpg' is {width} x 20000 pixels, {limit}" in said.replace(";", ",")


def test_every_list_of_what_moves_is_the_catalogue_s() -> None:
    moving = sorted(name for name, row in CORRUPTIONS.items() if row.moves)
    for page in ("commands/corrupt.md", "commands/robust.md", "python.md"):
        lists = re.findall(r"\b((?:[a-z_]+, )+(?:and )?[a-z_]+)", " ".join((ROOT / "docs" / page).read_text().split()))
        assert moving in [sorted(one.replace("and ", "").split(", ")) for one in lists], page


@pytest.mark.long
def test_every_file_has_a_record_and_every_record_a_file(hoicli: Hoicli, folder: Path) -> None:
    result = hoicli(*call(folder, "--jobs", 1))
    assert (result.code, result.err) == (0, "")
    records = parsed(result.out)
    assert len(records) == 4 * 20 * 5
    assert {record["file_name"] for record in records} == set(files_of(folder / "out"))
    assert [record["image_id"] for record in records[::100]] == [f"image-{number}" for number in range(4)]
    cells = [(record["corruption"], record["severity"]) for record in records[:100]]
    assert cells == [(name, severity) for name in ROHOI for severity in range(1, 6)]
    for record in records:
        name = record["file_name"].split("/", 2)
        assert name[:2] == [record["corruption"], str(record["severity"])]
        assert (record["recipe"], record["seed"]) == ("hoicli-1", 0)
        assert len(record["visibility"]) == len(record["boxes"]) == 2
        assert record["source"] == {"kept": int(record["image_id"][-1])}
        pixels = np.asarray(PIL.Image.open(folder / "out" / record["file_name"]))
        original = np.asarray(PIL.Image.open(folder / "images" / name[2]))
        assert pixels.shape == original.shape
        assert (record["psnr"], record["ssim"]) == (Original(original).psnr(pixels), Original(original).ssim(pixels))
    picked = records[3 * 5 + 2]
    source = np.asarray(PIL.Image.open(folder / "images" / "a.png"))
    expected = corrupt(source, "glass_blur", 3, image_id="image-0")
    assert (np.asarray(PIL.Image.open(folder / "out" / picked["file_name"])) == expected).all()


def as_jpeg(pixels: NDArray[np.uint8], quality: int) -> PIL.Image.Image:
    file = BytesIO()
    PIL.Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return PIL.Image.open(file)


def test_a_jpeg_of_the_jpeg_corruption_is_the_compressed_file_itself(hoicli: Hoicli, folder: Path) -> None:
    assert hoicli(*call(folder, "--corruption", "jpeg")).code == 0
    source = np.asarray(PIL.Image.open(folder / "images" / "d.jpg"))
    for severity, (quality,) in enumerate(CORRUPTIONS["jpeg"].levels, start=1):
        made = PIL.Image.open(folder / f"out/jpeg/{severity}/d.jpg")
        expected = as_jpeg(source, quality)
        assert made.quantization == expected.quantization  # type: ignore[attr-defined]
        assert np.abs(np.asarray(made).astype(int) - np.asarray(expected)).max() <= 1


@pytest.mark.parametrize(("options", "cells"), [
    (("--corruption", "jpeg", "--severity", "3"), [("jpeg", 3)]),
    (("--corruption", "zoom_blur,jpeg", "--severity", "5,1"),
     [(n, s) for n in ("jpeg", "zoom_blur") for s in (1, 5)]),
    (("--corruption", "jpeg", "--corruption", "moire", "--severity", "2-4"),
     [(n, s) for n in ("jpeg", "moire") for s in (2, 3, 4)]),
    pytest.param(("--corruption", "all", "--severity", "1"), [(name, 1) for name in ROHOI], marks=pytest.mark.long),
])  # fmt: skip
def test_what_is_asked_for_is_made(
    hoicli: Hoicli, folder: Path, options: tuple[str, ...], cells: list[tuple[str, int]]
) -> None:
    records = parsed(hoicli(*call(folder, *options)).out)
    assert Counter((r["corruption"], r["severity"]) for r in records) == dict.fromkeys(cells, 4)
    assert list(dict.fromkeys((r["corruption"], r["severity"]) for r in records)) == cells


def test_images_can_be_named_themselves(hoicli: Hoicli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    options = ("--save-images", "out", "--corruption", "pixelate", "--severity", "1")
    records = parsed(hoicli("corrupt", *options, "images/a.png", "images/sub/c.png").out)
    assert [(r["image_id"], r["file_name"]) for r in records] == [
        ("a", "pixelate/1/images/a.png"), ("c", "pixelate/1/images/sub/c.png"),
    ]  # fmt: skip
    assert "boxes" not in records[0]
    images = (folder / "images/sub/c.png", "images/b.png")
    records = parsed(hoicli("corrupt", "--images", "images/sub", *options, *images).out)
    assert [r["file_name"] for r in records] == ["pixelate/1/c.png", "pixelate/1/b.png"]


def test_processes_shards_and_order_change_nothing(hoicli: Hoicli, folder: Path) -> None:
    names = "motion_blur,shot_noise,packet_loss,screen_crack,elastic"
    cells = ("--corruption", names, "--severity", "1,4", "--seed", 5)
    alone = hoicli(*call(folder, "--jobs", 1, *cells))
    together = hoicli(*call(folder, "--jobs", 3, *cells, out="together"))
    assert together.out == alone.out
    expected = files_of(folder / "out")
    assert files_of(folder / "together") == expected
    lines = []
    for number in (1, 2, 3):
        lines += hoicli(*call(folder, "--jobs", 1, "--shard", f"{number}/3", *cells, out="sharded")).out.splitlines()
    assert sorted(lines) == sorted(alone.out.splitlines())
    assert files_of(folder / "sharded") == expected
    records = (folder / "gt.jsonl").read_text().splitlines(keepends=True)
    (folder / "gt.jsonl").write_text("".join(reversed(records)))
    backwards = hoicli(*call(folder, "--jobs", 1, *cells, out="backwards")).out.splitlines()
    assert sorted(backwards) == sorted(alone.out.splitlines())
    assert files_of(folder / "backwards") == expected
    some = hoicli(*call(folder, "--jobs", 1, "--corruption", "shot_noise", "--severity", 4, "--seed", 5, out="some"))
    assert set(some.out.splitlines()) <= set(alone.out.splitlines())
    assert all(expected[name] == data for name, data in files_of(folder / "some").items())


def test_a_finished_file_is_left_and_its_record_comes_all_the_same(hoicli: Hoicli, folder: Path) -> None:
    options = ("--jobs", 1, "--corruption", "occlusion,elastic,jpeg")
    first = hoicli(*call(folder, *options))
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*.*")}
    expected = files_of(folder / "out")
    missing, broken, foreign = (folder / f"out/elastic/{severity}/b.png" for severity in (1, 2, 3))
    missing.unlink()
    broken.write_bytes(broken.read_bytes()[:-30])  # as a power cut leaves it
    PIL.Image.fromarray(textured(44, 56)).save(foreign)  # an image, but none of ours
    again = hoicli(*call(folder, *options))
    assert again.out == first.out
    assert files_of(folder / "out") == expected
    changed = {path for path, stamp in before.items() if path.stat().st_mtime_ns != stamp}
    assert changed == {missing, broken, foreign}


def test_a_file_of_other_settings_is_made_anew(hoicli: Hoicli, folder: Path) -> None:
    options = ("--jobs", 1, "--corruption", "gaussian_noise", "--severity", 1)
    seeds = [hoicli(*call(folder, *options, "--seed", seed)).out for seed in (0, 1, 0)]
    assert seeds[0] == seeds[2]
    assert [r["psnr"] for r in parsed(seeds[0])] != [r["psnr"] for r in parsed(seeds[1])]
    fresh = hoicli(*call(folder, *options, out="fresh"))
    assert fresh.out == seeds[0]
    assert files_of(folder / "fresh") == files_of(folder / "out")
    shutil.copy(folder / "images/b.png", folder / "images/a.png")  # another picture under the same name
    (folder / "gt.jsonl").write_text('{"image_id": "image-0", "file_name": "a.png"}\n')
    hoicli(*call(folder, *options))
    made, again = (folder / name / "gaussian_noise/1/a.png" for name in ("out", "fresh"))
    assert made.read_bytes() != again.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_leaves_whole_files_and_is_taken_up(hoicli: Hoicli, tmp_path: Path, jobs: int) -> None:
    command = [sys.executable, "-m", "hoicli", "corrupt", "--images", str(IMAGES), "--jobs", str(jobs), "--severity",
               "5", "--corruption", "moire,zoom_blur"]  # fmt: skip
    out = tmp_path / "killed"
    process = subprocess.Popen([*command, "--save-images", str(out), str(GT)], stdout=subprocess.DEVNULL, cwd=ROOT)
    deadline = time.monotonic() + PATIENCE
    while len(list(out.rglob("*.jpg"))) < 4 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = {name: data for name, data in files_of(out).items() if not Path(name).name.startswith(".")}
    assert len(left) >= 4
    for name in left:
        PIL.Image.open(out / name).load()
    again = hoicli(*command[3:], "--save-images", out, GT)
    whole = hoicli(*command[3:], "--save-images", tmp_path / "whole", GT)
    assert again.out == whole.out
    assert files_of(out) == files_of(tmp_path / "whole")  # what was half written is gone, too


def test_a_bad_image_stops_the_run_or_is_left_out(hoicli: Hoicli, folder: Path) -> None:
    good = hoicli(*call(folder, "--corruption", "jpeg", out="good")).out.splitlines()
    cut = folder / "images/b.png"
    cut.write_bytes(cut.read_bytes()[:-200])
    for jobs in (1, 2):
        result = hoicli(*call(folder, "--corruption", "jpeg", "--jobs", jobs, out=f"stop{jobs}"))
        assert (result.code, result.err.count("\n")) == (1, 1)
        assert result.err.startswith(f"{folder}/gt.jsonl:2: file_name: 'b.png' is damaged (")
        result = hoicli(*call(folder, "--corruption", "jpeg", "--jobs", jobs, "--on-error", "skip", out=f"skip{jobs}"))
        assert result.code == 0
        assert result.out.splitlines() == good[:5] + good[10:]
        assert result.err.startswith(
            f"hoicli: skipped 1 image; the first: {folder}/gt.jsonl:2: file_name: 'b.png' is dama"
        )
        assert not list((folder / f"skip{jobs}").rglob("*b.png*"))


@pytest.mark.parametrize(("line", "message"), [
    ('{"image_id": 1}', "file_name: missing; it names the image under --images"),
    ('{"image_id": 1, "file_name": "../x.png"}', "file_name: '../x.png' leads out of the folder; "),
    ('{"image_id": 1, "file_name": "/etc/x.png"}', "file_name: '/etc/x.png' leads out of the folder; "),
    ('{"image_id": 1, "file_name": "nothing.png"}', "file_name: no such file: "),
    ('{"image_id": 1.5, "file_name": "a.png"}', "image_id: a number; it must be a string or an integer"),
    ('{"image_id": 1, "file_name": "a.png", "boxes": [[1, 2, 3]]}', "boxes[0]: [1, 2, 3] is no box; "),
    ('{"image_id": 1, "file_name": "a.png", "width": 57, "height": 40}', "width: the record says 57 x 40, "),
    ('{"image_id": 1, "file_name": "a.png"}\n{"image_id": 1, "file_name": "b.png"}', "2: image_id: image '1' is"),
    ('{"image_id": 1, "file_name": "a.png"}\n{"image_id": 2, "file_name": "./a.png"}', "keep one line a file"),
    ('{"image_id": 1, "file_name": "a.png"', "the line is cut off"),
])  # fmt: skip
def test_a_bad_record_is_one_clear_line(hoicli: Hoicli, folder: Path, line: str, message: str) -> None:
    (folder / "gt.jsonl").write_text(line + "\n")
    said = refusal(hoicli(*call(folder, "--corruption", "jpeg", "--severity", 1)))
    assert said.startswith(f"{folder}/gt.jsonl:")
    assert message in said
    (folder / "gt.jsonl").write_text(f'{line}\n{{"image_id": "good", "file_name": "b.png"}}\n')
    skipped = hoicli(*call(folder, "--corruption", "jpeg", "--severity", 1, "--on-error", "skip"))
    assert skipped.code == 0
    assert "skipped 1 image; the first: " in skipped.err


OUT = ("--save-images", "out")


@pytest.mark.parametrize(("options", "message"), [
    ((), "corrupt: give the folder to write the images to with --save-images DIR, or --records-only (not both)"),
    ((*OUT, "--records-only"), "--save-images DIR, or --records-only (not both)"),
    ((*OUT, "--corruption", "mist,zzz"), "--corruption mist: no corruption; hoicli corrupt --list shows them"),
    ((*OUT, "--corruption", "noise"), "no corruption; choose one of gaussian_noise, shot_noise, "),
    ((*OUT, "--corruption", "JPEG"), "no corruption; did you mean 'jpeg'?"),
    ((*OUT, "--severity", "6"), "--severity 6: give 1 to 5, several with commas, a range like 2-4, or all"),
    ((*OUT, "--shard", "3"), "--shard 3: write K/N, K from 1 to N, for example 3/16"),
    ((*OUT, "--shard", "4/3"), "--shard 4/3: write K/N"),
    ((*OUT, "--jobs", "0"), "--jobs 0: give a whole number from 1 to 1,024"),
    ((*OUT, "--recipe", "fog"), "--recipe fog: there is no such recipe; choose hoicli-1 or imagenet-c, or F"),
    ((*OUT, "--recipe", "imagenet-c", "--corruption", "moire"), "moire: recipe imagenet-c has no constants"),
    ((*OUT, "--images", "nowhere"), "--images nowhere: there is no such folder"),
    (("--save-images", "gt.jsonl"), "--save-images gt.jsonl: cannot be created ("),
    (("--preview", "images/a.png", "--shard", "1/2", "-o", "a.png"),
     "--preview: draws this image alone; leave out --shard, RECORDS"),
])  # fmt: skip
def test_a_wrong_call_is_one_clear_line(
    hoicli: Hoicli, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(folder)
    assert message in refusal(hoicli("corrupt", *options, "gt.jsonl"), 2)


def test_a_preview_needs_a_picture_to_write_to(hoicli: Hoicli, folder: Path) -> None:
    said = refusal(hoicli("corrupt", "--preview", folder / "images/a.png"), 2)
    assert "--preview: give the picture to draw with -o FILE.png (or .jpg)" in said


def test_results_of_workers_come_in_order_and_their_faults_are_told() -> None:
    assert list(ordered_map(str, range(200), 2)) == [str(number) for number in range(200)]
    assert list(ordered_map(str, [], 4)) == []
    with pytest.raises(DataError, match="a worker process was killed"):
        list(ordered_map(os._exit, [1, 2, 3], 2))
    with pytest.raises(RuntimeError, match=r"ValueError: invalid literal .*'[ab]'"):
        list(ordered_map(int, ["a", "b"], 2))


def test_list_explains_all(hoicli: Hoicli) -> None:
    listed = hoicli("corrupt", "--list", "--format", "jsonl")
    rows = parsed(listed.out)
    assert {row["recipe"] for row in rows} == {"hoicli-1"}
    assert listed.err == (
        "hoicli: RoHOI-style, recipe hoicli-1: RoHOI's paper publishes no constants; these are hoicli's "
        "own, except speckle_noise's from ImageNet-C\n"
        "hoicli: not RoHOI's, made where --corruption names them: night, rain, fog, snow\n"
    )
    assert [row["corruption"] for row in rows] == list(CORRUPTIONS)
    assert rows[0]["severity_1"] == {"radius_px": 12, "sigma_px": 4}
    assert all(row["source"] for row in rows)
    table = hoicli("corrupt", "--list", "--format", "table").out.splitlines()
    assert len(table) == 1 + len(CORRUPTIONS)
    assert table[0].split()[:3] == ["corruption", "family", "description"]
    named = parsed(hoicli("corrupt", "--list", "--corruption", "weather,jpeg", "--format", "jsonl").out)
    assert {row["corruption"] for row in named} == {*WEATHER, "jpeg"}


def test_a_recipe_is_named_wherever_its_numbers_stand(hoicli: Hoicli, folder: Path) -> None:
    published = hoicli(*call(folder, "--recipe", "imagenet-c", "--severity", 3))
    records = parsed(published.out)
    shared = [name for name, row in CORRUPTIONS.items() if row.published]
    assert [record["corruption"] for record in records[:12]] == shared
    assert len(records) == 4 * 12
    assert {record["recipe"] for record in records} == {"imagenet-c"}
    source = np.asarray(PIL.Image.open(folder / "images/a.png"))
    for name in ("pixelate", "elastic"):
        expected = corrupt(source, name, 3, image_id="image-0", recipe=RECIPES["imagenet-c"])
        assert (np.asarray(PIL.Image.open(folder / f"out/{name}/3/a.png")) == expected).all()
        assert (corrupt(source, name, 3, image_id="image-0") != expected).any()
    # the same folder by another recipe: made anew
    ours = parsed(hoicli(*call(folder, "--severity", 3, "--corruption", "pixelate")).out)
    assert [record["psnr"] for record in ours] != [r["psnr"] for r in records if r["corruption"] == "pixelate"]
    rows = parsed(hoicli("corrupt", "--list", "--recipe", "imagenet-c", "--format", "jsonl").out)
    assert [row["corruption"] for row in rows] == shared
    assert {row["recipe"] for row in rows} == {"imagenet-c"}
    assert all("ImageNet-C" in row["source"] for row in rows)


def a_recipe(**changes: object) -> dict[str, object]:
    qualities = [{"quality": value} for value in (60, 50, 40, 30, 20)]
    return {"name": "mild", "corruptions": {"jpeg": qualities}, **changes}


def test_a_file_is_a_recipe(hoicli: Hoicli, folder: Path) -> None:
    path = dumped(folder / "mild.json", a_recipe())
    records = parsed(hoicli(*call(folder, "--recipe", path, "--corruption", "all")).out)
    assert len(records) == 4 * 5
    (name,) = {record["recipe"] for record in records}
    assert re.fullmatch("mild@[0-9a-f]{8}", name)
    source = np.asarray(PIL.Image.open(folder / "images/d.jpg"))
    with PIL.Image.open(folder / "out/jpeg/1/d.jpg") as made:
        assert made.quantization == as_jpeg(source, 60).quantization  # type: ignore[attr-defined]
    path.write_text(json.dumps(a_recipe(name="other")))  # a name changes no number
    (row,) = parsed(hoicli("corrupt", "--list", "--recipe", path, "--format", "jsonl").out)
    assert row["recipe"] == name.replace("mild", "other")
    assert row["severity_1"] == {"quality": 60}
    levels = [{"quality": value} for value in (61, 50, 40, 30, 20)]
    path.write_text(json.dumps(a_recipe(corruptions={"jpeg": levels})))
    (row,) = parsed(hoicli("corrupt", "--list", "--recipe", path, "--format", "jsonl").out)
    assert row["recipe"].startswith("mild@")
    assert row["recipe"] != name
    sheet = folder / "sheet.png"
    assert hoicli("corrupt", "--preview", folder / "images/a.png", "--recipe", path, "-o", sheet).code == 0
    refused = hoicli(*call(folder, "--recipe", path, "--corruption", "moire"))
    assert (refused.code, refused.err) == (
        2, f"hoicli: --corruption moire: recipe {row['recipe']} has no constants for it, only for jpeg\n"
    )  # fmt: skip


def test_every_constant_may_stand_in_a_file(tmp_path: Path) -> None:
    """The recipes that have a name, written as files, are taken, and give the same levels."""
    for recipe in RECIPES.values():
        corruptions = {name: [dict(zip(CORRUPTIONS[name].constants, level, strict=True)) for level in levels]
                       for name, levels in recipe.levels.items()}  # fmt: skip
        path = tmp_path / "copy.json"
        record = {"name": "copy", "corruptions": corruptions}
        path.write_text(json.dumps(record))
        schema = json.loads(schema_text("recipe"))
        jsonschema.Draft202012Validator(schema).validate(record)
        made = read_recipe(str(path))
        assert made.levels == recipe.levels
        assert made.name.startswith("copy@")
    unused = LIMITS.keys() - {name for row in CORRUPTIONS.values() for name in row.constants}
    assert not unused, f"LIMITS of hoicli/corruption/catalogue.py has {', '.join(unused)}, which no row of _ROWS has"


@pytest.mark.parametrize("edge", [1, 2])
@pytest.mark.parametrize("name", EFFECTS)
def test_the_limits_of_a_file_can_be_drawn(name: str, edge: int) -> None:
    """The least and the largest of every constant: pixels, and boxes, without a fault."""
    constants = CORRUPTIONS[name].constants
    level = tuple((int if LIMITS[each][2] else float)(LIMITS[each][edge - 1]) for each in constants)
    recipe = Recipe("edge", "", {name: (level,) * 5}, (name,))
    image = textured(40, 56)
    assert corrupt(image, name, 3, recipe=recipe).shape == image.shape
    drawn = draw(name, image.shape, image_id="", seed=0, recipe=recipe)
    record = {"image_id": 1, "file_name": "a.png", "boxes": [[3, 4, 30, 20], [0, 0, 56, 40]]}
    made = cell_record(record, (name, 3), 0, (None, None), image.shape, drawn, recipe=recipe)
    assert all(0 <= share <= 1 for share in made["visibility"])


@pytest.mark.parametrize(("text", "message"), [
    ("[1]", "an array, not a JSON object; hoicli doctor --schema recipe says what it holds"),
    (json.dumps(a_recipe(nme=1)), "nme: there is no such field; a recipe has name and corruptions"),
    (json.dumps(a_recipe(name="a|b")), "name: must be a word of at most 40 letters, digits, _ . -"),
    (json.dumps(a_recipe(name="hoicli-1")), "name: hoicli-1 is hoicli's own recipe; a file needs a"),
    (json.dumps(a_recipe(corruptions={"jpg": 1})), "corruptions.jpg: there is no such corruption; hoicli"),
    (json.dumps(a_recipe(corruptions={"jpeg": [1]})), "corruptions.jpeg: 1 level; give an array of 5, the "),
    (json.dumps(a_recipe(corruptions={"jpeg": [1] * 5})), "corruptions.jpeg[0]: give an object with quality, and"),
    (json.dumps(a_recipe(corruptions={"gaussian_blur": [{"sigma_px": 1e9}] * 5})),
     "corruptions.gaussian_blur[0].sigma_px: 1000000000.0; give a number from 0.1 to 300"),
    ("9" * (1 << 20) + "9", "too large for a recipe"),
])  # fmt: skip
def test_a_bad_recipe_is_one_clear_line(hoicli: Hoicli, folder: Path, text: str, message: str) -> None:
    path = saved(folder / "bad.json", text)
    said = refusal(hoicli(*call(folder, "--recipe", path)))
    assert said.startswith(f"{path}: ")
    assert message in said


def test_boxes_stay_where_they_are_told_to(hoicli: Hoicli, folder: Path) -> None:
    options = ("--severity", 5, "--corruption", "motion_blur,perspective,occlusion,screen_crack")
    moved, kept = (parsed(hoicli(*call(folder, *options, "--boxes", way)).out) for way in ("moved", "kept"))
    given = parsed((folder / "gt.jsonl").read_text())
    assert {record["recipe"] for record in moved} == {"hoicli-1"}
    assert {record["recipe"] for record in kept} == {"hoicli-1+kept"}
    for one, other, number in zip(moved, kept, range(16), strict=True):
        assert other["boxes"] == given[number // 4]["boxes"]
        assert (one["boxes"] == other["boxes"]) == (one["corruption"] == "occlusion")
        assert (one["psnr"], one["ssim"], one["file_name"]) == (other["psnr"], other["ssim"], other["file_name"])
    assert hoicli(*call(folder, "--boxes", "gone")).code == 2


PREVIEWS = [
    ((), ROHOI, range(1, 6), 128, 2),
    (("--corruption", "weather,vignette", "--severity", "1,5"), ("vignette", *WEATHER), (1, 5), 192, 1),
]


@pytest.mark.parametrize(("options", "names", "severities", "width", "blocks"), PREVIEWS)
def test_the_preview_is_a_picture_of_what_was_asked_for(
    hoicli: Hoicli, tmp_path: Path, options: tuple[str, ...], names: tuple[str, ...], severities: Sequence[int],
    width: int, blocks: int,
) -> None:  # fmt: skip
    path = tmp_path / "sheet.png"
    source = IMAGES / "HICO_test2015_00000001.jpg"
    assert hoicli("corrupt", "--preview", source, *options, "-o", path).code == 0
    assert path.stat().st_size < 4e6
    image, sheet = np.asarray(PIL.Image.open(source)), np.asarray(PIL.Image.open(path)).astype(int)
    height = round(image.shape[0] * width / image.shape[1])
    row, block, rows = 22 + 2 * (height + 4), (1 + len(severities)) * (width + 4) + 12, len(names) // blocks
    assert sheet.shape == (22 + rows * row + 22, blocks * block, 3)  # between a line of heads and one of explanation

    def shown(number: int, column: int, below: int) -> NDArray[np.int_]:
        """The tile of a corruption, the clean one in column 0; below: 1 for the middle at full size."""
        y, x = 22 + number % rows * row + 22 + below * (height + 4), number // rows * block + column * (width + 4)
        tile: NDArray[np.int_] = sheet[y : y + height, x : x + width]
        return tile

    every = [(at, column) for at in range(len(names)) for column in range(1, 1 + len(severities))]
    assert len({shown(*place, 0).tobytes() for place in every}) == len(every)
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    number = names.index("vignette")
    worst = corrupt(image, "vignette", severities[-1])
    for column, whole in ((0, image), (len(severities), worst)):
        small = cv2.resize(whole, (width, height), interpolation=cv2.INTER_AREA)
        assert np.abs(shown(number, column, 0) - small).mean() < 4
        assert np.abs(shown(number, column, 1) - whole[top : top + height, left : left + width]).mean() < 4


@pytest.mark.parametrize("missing", ["cv2", "PIL.Image"])
def test_without_the_extra_it_says_how_to_get_it(
    hoicli: Hoicli, folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert refusal(hoicli(*call(folder)), 2) == "hoicli: corrupt needs OpenCV and Pillow: pip install 'hoicli[images]'"


def test_the_list_needs_no_extra() -> None:
    """In a process of its own, which has loaded neither before."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('cv2', 'PIL', 'PIL.Image'))); from hoicli.cli import run; "
        "sys.exit(run(['corrupt', '--list']) or run(['corrupt', '--list', '--recipe', 'imagenet-c']))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count(b'"recipe":"hoicli-1"') == len(CORRUPTIONS)


@pytest.mark.parametrize("name", ["photo.webp", "photo.GIF", "photo.tif"])
def test_other_pictures_are_told_what_to_be(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"RIFF\x10\0\0\0WEBPVP8 ")
    assert "give JPEG or PNG" in refusal(hoicli("corrupt", tmp_path / name, "--save-images", tmp_path / "out"))


def test_the_whole_grid_in_one_pipe(hoicli: Hoicli, folder: Path) -> None:
    """`--with-clean` adds the originals, byte for byte and in every shard; eval and robust take the one stream."""
    options = ("--with-clean", "--corruption", "jpeg,zoom_blur", "--severity", "1,5")
    whole = hoicli(*call(folder, *options))
    truth = parsed(whole.out)
    clean = [record for record in truth if record["corruption"] == "clean"]
    assert [record["file_name"] for record in clean[:2]] == ["clean/0/a.png", "clean/0/b.png"]
    about_clean = {key: clean[0][key] for key in ("severity", "recipe", "psnr", "ssim", "visibility")}
    assert about_clean == {"severity": 0, "recipe": "hoicli-1", "psnr": None, "ssim": 1.0, "visibility": [1.0, 1.0]}
    assert files_of(folder / "out/clean/0") == files_of(folder / "images")
    shards = "".join(hoicli(*call(folder, *options, "--shard", f"{part}/2", out="two")).out for part in (2, 1))
    alone = hoicli("corrupt", "--records-only", *options, folder / "gt.jsonl").out
    for record in truth:
        del record["psnr"], record["ssim"]
    assert parsed(alone) == truth

    def predict(records: str) -> list[dict[str, object]]:
        """What a detector prints that finds everything, but less surely at severity 5."""
        predictions: list[dict[str, object]] = []
        for record in parsed(records):
            hois = [{**hoi, "score": 1 - record["severity"] / 10} for hoi in record["hois"]]
            fields = {key: record[key] for key in ("image_id", "file_name", "labels")}
            boxes = [[3 * record["severity"], 5, 30, 36], [20, 10, 50, 30]]
            predictions.append({**fields, "boxes": boxes, "hois": hois})
        return predictions

    rows = []
    for records in (whole.out, shards):
        (folder / "truth.jsonl").write_text(records)
        preds = written(folder / "preds.jsonl", predict(records))
        by = ("--by", "corruption,severity,recipe", "--protocol", "qpic")
        rows.append(hoicli("eval", "--gt", folder / "truth.jsonl", *by, preds).out)
    assert rows[0] == rows[1]
    (folder / "rows.jsonl").write_text(rows[0])
    (mri,) = [row for row in records_of(hoicli("robust", folder / "rows.jsonl")) if row["metric"] == "mri"]
    assert (mri["n"], "recipe:hoicli-1" in mri["signature"]) == (4, True)
