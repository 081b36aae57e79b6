"""`mask` and `curriculum`: rectangles against rasterised masks, levels worked by hand, what is refused."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.io.streams import Line
from hoicli.robustness.masking_levels import EPSILON, LEVELS, Epoch, decisions, read_epochs
from hoicli.robustness.masks import (
    blacken,
    block_of,
    chosen_boxes,
    mask_rectangle,
    masks_of,
    pixelate,
    random_shares,
)
from tests.support.project import FIXTURES, Hoicli, Record, parsed, records_of, refusal, saved, written

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
IMAGES = FIXTURES / "robust" / "images"
SCENES = FIXTURES / "robust" / "ground_truth.jsonl"
STILL = (0.0, 0.0, 0.0, 0.0)

RECORD: Record = {
    "image_id": "a",
    "width": 100,
    "height": 80,
    "boxes": [[10, 20, 29, 59], [50, 20, 69, 39], [0, 70, 9, 79]],
    "labels": ["person", "cup", "dog"],
    "hois": [{"subject": 0, "object": 1, "verb": "hold"}, {"subject": 0, "object": 2, "verb": "no_interaction"}],
}


def masks(record: Record, ratio: float = 0.5) -> list[list[int]]:
    return masks_of(record, ratio=ratio, expand=0.0)


def test_a_rectangle_by_hand() -> None:
    # 20 by 40 pixels at ratio 0.5 about the centre (20, 40): 10 by 20
    assert mask_rectangle((10, 20, 30, 60), ratio=0.5, outwards=STILL, size=None) == (15, 30, 24, 49)
    # the left edge a fifth of 20 outwards: 6 .. 30, centre 18, still 10 wide
    assert mask_rectangle((10, 20, 30, 60), ratio=0.5, outwards=(0.2, 0, 0, 0), size=None) == (13, 30, 22, 49)
    assert mask_rectangle((10, 20, 30, 60), ratio=0.5, outwards=(0, 0, 0, 0.1), size=None) == (15, 32, 24, 51)
    # cut to the image
    assert mask_rectangle((90, 0, 110, 10), ratio=1, outwards=STILL, size=(100, 80)) == (90, 0, 99, 9)
    assert mask_rectangle((-20, -20, 2, 2), ratio=1, outwards=STILL, size=(100, 80)) == (0, 0, 1, 1)
    assert mask_rectangle((200, 0, 210, 10), ratio=1, outwards=STILL, size=(100, 80)) is None
    assert mask_rectangle((-20, 0, -10, 10), ratio=1, outwards=STILL, size=None) is None
    # never nothing
    assert mask_rectangle((3, 3, 4, 4), ratio=0.4, outwards=STILL, size=None) == (3, 3, 3, 3)


edges = st.tuples(st.floats(2, 80), st.floats(2, 60), st.floats(1, 40), st.floats(1, 40)).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)


@given(edges, st.sampled_from([0.4, 0.5, 0.6]), st.tuples(*[st.floats(0, 0.1)] * 4))
def test_a_rectangle_has_the_cover_ratio_and_stays_within_its_instance(
    box: tuple[float, float, float, float], ratio: float, outwards: tuple[float, float, float, float]
) -> None:
    """However small the instance is, and wherever its edges move."""
    for shares in (STILL, outwards):
        rectangle = mask_rectangle(box, ratio=ratio, outwards=shares, size=None)
        assert rectangle is not None
        x1, y1, x2, y2 = rectangle
        for low, high, first, last in ((box[0], box[2], x1, x2), (box[1], box[3], y1, y2)):
            assert abs((last + 1 - first) - ratio * (high - low)) <= 1
            assert first >= low - 1
            assert last <= high + 1


def test_a_masked_record_by_hand() -> None:
    assert masks(RECORD) == [[15, 30, 24, 49], [55, 25, 64, 34]]  # no_interaction is none
    assert RECORD.keys() == {"image_id", "width", "height", "boxes", "labels", "hois"}  # the input is left alone


def test_an_instance_is_masked_once() -> None:
    """As HICO-DET has it: the same person drawn for two verbs, and another person beside."""
    boxes = [[10, 10, 49, 69], [12, 11, 50, 69], [40, 10, 79, 69], [10, 10, 49, 69]]
    record = {
        **RECORD,
        "boxes": boxes,
        "labels": ["person", "person", "person", "horse"],
        "hois": [{"subject": number, "object": 3, "verb": "ride"} for number in range(3)],
    }
    assert chosen_boxes(record) == [0, 2, 3]
    assert len(masks(record)) == 3


def test_a_mask_is_used_where_there_is_one() -> None:
    segments = [[[10, 20, 11, 20, 11, 30], [3, 25, 4, 25, 4, 40]], None, None]
    assert masks({**RECORD, "segmentations": segments}, 1.0) == [
        [3, 20, 10, 39],
        [50, 20, 69, 39],
    ]  # around both polygons; the box
    assert masks({**RECORD, "segmentations": [[], None, None]}, 1.0) == [[50, 20, 69, 39]]


def test_chance_is_of_the_box_alone() -> None:
    draws = [random_shares(seed, image, box) for seed in range(2) for image in ("a", "b") for box in range(2)]
    assert len(set(draws)) == 8
    assert all(0 <= draw < 1 for four in draws for draw in four)
    # written down: no machine and no version may change what a seed means
    assert random_shares(0, "a", 0) == pytest.approx((0.8929795, 0.3911382, 0.5193158, 0.8311400), abs=1e-7)


def run(hoicli: Hoicli, *arguments: object) -> list[Record]:
    return records_of(hoicli("mask", *arguments))


def pixels_of(path: Path) -> Pixels:
    return np.asarray(cv2.imread(str(path)), dtype=np.uint8)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_masked_images(hoicli: Hoicli, out: Path) -> None:
    records = run(hoicli, "--ratio", "high", "--images", IMAGES, "--save-images", out, SCENES)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in IMAGES.iterdir())
    for record in records:
        before, after = (pixels_of(folder / record["file_name"]) for folder in (IMAGES, out))
        expected = blacken(before, record["masks"])
        assert np.array_equal(after, expected)
        assert not np.array_equal(after, before)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    run(hoicli, "--ratio", "high", "--images", IMAGES, "--save-images", out, SCENES)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    other = run(hoicli, "--ratio", "high", "--seed", "1", SCENES)
    assert [record["masks"] for record in other] != [record["masks"] for record in records]
    run(hoicli, "--ratio", "clean", "--images", IMAGES, "--save-images", out, SCENES)
    plain = {path.name: path.read_bytes() for path in IMAGES.iterdir()}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == plain


def test_rectangles_need_no_image(hoicli: Hoicli) -> None:
    records = run(hoicli, "--ratio", "low", SCENES)
    small = run(hoicli, "--ratio", "low", "--rectangles", SCENES)
    assert small == [{"image_id": record["image_id"], "masks": record["masks"]} for record in records]
    named, number = (run(hoicli, "--ratio", ratio, SCENES) for ratio in ("middle", "0.5"))
    assert named == number


def test_an_image_tells_the_size_that_a_record_lacks(hoicli: Hoicli, tmp_path: Path) -> None:
    record = json.loads(SCENES.read_text().splitlines()[0])
    del record["width"], record["height"]
    record["boxes"][0] = [300, 200, 400, 300]
    path = written(tmp_path / "r.jsonl", [record])
    (masked,) = run(hoicli, "--ratio", "1", "--images", IMAGES, "--save-images", tmp_path, path)
    assert masked["masks"][0][2:] == [319, 239]
    assert (masked["width"], masked["height"]) == (320, 240)


@pytest.mark.parametrize(("change", "message"), [
    ({"file_name": "../scene_01.png"}, "file_name: '../scene_01.png' leads out of the folder;"),
    ({"file_name": "..\\x.png"}, "file_name: '..\\\\x.png' leads out of the folder;"),
    ({"file_name": "none.png"}, "file_name: no such file: 'IMAGES/none.png'; is --images right?"),
    ({"file_name": "text.png"}, "file_name: 'text.png' is no image that can be read"),
    ({"width": 321}, "width: the record says 321 x 240, the file has 320 x 240 pixels; give the right image or"),
    ({"boxes": [[0, 0, 1e300, 1]] * 3}, "boxes[0]: is no place in an image"),
    ({"boxes": [[0, 0, 1]] * 3}, "boxes[0]: [0, 0, 1] is no box;"),
    ({"segmentations": ["x", None, None]}, "segmentations[0]: no polygons; give COCO's, or null"),
    ({"segmentations": [[[1, 2, 3, 4, 5, 1e300]], None, None]}, "segmentations[0]: a polygon is [x1, y1,"),
])  # fmt: skip
def test_a_bad_record_is_one_clear_line(
    hoicli: Hoicli, tmp_path: Path, out: Path, change: Record, message: str
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name in ("scene_01.png", "good.png"):
        (images / name).write_bytes((IMAGES / "scene_01.png").read_bytes())
    (images / "text.png").write_text("no image")
    record = json.loads(SCENES.read_text().splitlines()[0])
    lines = [{**record, "image_id": "bad", **change}, {**record, "file_name": "good.png"}]
    path = written(tmp_path / "r.jsonl", lines)
    assert refusal(hoicli("mask", "--images", images, "--save-images", out, path)).startswith(
        f"{path}:1: {message.replace('IMAGES', str(images))}"
    )
    assert list(out.iterdir()) == []
    skipped = hoicli("mask", "--images", images, "--save-images", out, "--on-error", "skip", path)
    assert (skipped.code, skipped.out.count("\n")) == (0, 1)
    assert skipped.err.startswith(f"hoicli: skipped 1 line; the first: {path}:1: ")
    assert [file.name for file in out.iterdir()] == ["good.png"]


def test_what_vcoco_leaves_open(hoicli: Hoicli, tmp_path: Path) -> None:
    record = {**RECORD, "labels": ["person", None, "dog"], "hois": [{"subject": 0, "object": None, "verb": "walk"}]}
    path = written(tmp_path / "r.jsonl", [record])
    (masked,) = run(hoicli, path)
    assert len(masked["masks"]) == 1
    path.write_text(json.dumps({**record, "hois": [{"subject": None, "object": None, "verb": "walk"}]}))
    assert f"{path}:1: hois[0].subject: null is no index" in hoicli("mask", path).err


def test_two_records_of_one_file(hoicli: Hoicli, tmp_path: Path, out: Path) -> None:
    """The second would be painted over the first: told before anything is written, or left out."""
    record = json.loads(SCENES.read_text().splitlines()[0])
    again = {**record, "image_id": "b", "file_name": "./scene_01.png", "boxes": [[0, 0, 9, 9]] * len(record["boxes"])}
    path = written(tmp_path / "r.jsonl", [record, again])
    result = hoicli("mask", "--images", IMAGES, "--save-images", out, path)
    assert (result.code, result.out, list(out.iterdir())) == (1, "", [])
    said = f"image 'scene_01.png' is at {path}:1 already; keep one line a file"
    assert result.err.startswith(f"{path}:2: file_name: {said}")
    skipped = hoicli("mask", "--images", IMAGES, "--save-images", out, "--on-error", "skip", path)
    assert (skipped.code, skipped.out.count("\n")) == (0, 1)
    assert skipped.err.startswith(f"hoicli: skipped 1 line; the first: {path}:2: file_name: ")
    painted = (out / "scene_01.png").read_bytes()
    path.write_text(json.dumps(record) + "\n")
    assert hoicli("mask", "--images", IMAGES, "--save-images", out, path).out == skipped.out
    assert (out / "scene_01.png").read_bytes() == painted


@pytest.mark.parametrize(("arguments", "message"), [
    (("--ratio", "heavy"), "--ratio heavy: choose clean, low, middle, high, or a number from 0 to 1\n"),
    (("--ratio", "nan"), "--ratio nan: choose"),
    (("--save-images", "fixtures"), "--images and --save-images go together: "),
    (("--images", "/nowhere", "--save-images", "."), "--images /nowhere: there is no such folder\n"),
    (("--images", ".", "--save-images", "./."), "--save-images ./.: is the folder of the images; give another"),
    (("--pixelate", "1.5"), "--pixelate 1.5: give a probability from 0 to 1; SAMPL's baseline has 0.5\n"),
    (("--pixelate", "1", "--ratio", "low"), "--pixelate takes the place of masks: leave out --ratio\n"),
])  # fmt: skip
def test_a_wrong_call(hoicli: Hoicli, arguments: tuple[str, ...], message: str) -> None:
    said = refusal(hoicli("mask", *arguments, SCENES), 2)
    assert f"{said}\n".startswith(f"hoicli: {message}")


def slow_pixelate(pixels: Pixels, block: int) -> Pixels:
    """Block by block, with exact fractions."""
    found = pixels.copy()
    for y in range(0, pixels.shape[0], block):
        for x in range(0, pixels.shape[1], block):
            part = pixels[y : y + block, x : x + block]
            for channel in range(pixels.shape[2]):
                values = part[..., channel].ravel().tolist()
                mean = Fraction(sum(values), len(values))
                found[y : y + block, x : x + block, channel] = math.floor(mean + Fraction(1, 2))
    return found


@given(st.integers(0, 2**31), st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3]), st.integers(2, 25))
def test_pixelation_is_that_of_a_slow_painter(seed: int, high: int, wide: int, channels: int, block: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (high, wide, channels), dtype=np.uint8)
    before = pixels.copy()
    found = pixelate(pixels, block)
    assert found.dtype == np.uint8
    assert np.array_equal(found, slow_pixelate(pixels, block))
    assert np.array_equal(pixelate(found, block), found)
    assert np.array_equal(pixels, before)
    assert np.array_equal(pixelate(pixels, 10**9), pixelate(pixels, max(high, wide, 2)))


def test_who_is_pixelated_depends_on_seed_and_image_alone() -> None:
    def chosen(probability: float, seed: int = 0) -> list[bool]:
        ids = [{"image_id": str(number)} for number in range(2000)]
        return [block_of(record, probability=probability, seed=seed) == 8 for record in ids]

    assert not any(chosen(0))
    assert all(chosen(1))
    half, more = chosen(0.5), chosen(0.7)
    assert np.mean(half) == pytest.approx(0.5, abs=0.03)
    assert all(later for before, later in zip(half, more, strict=True) if before)  # the same draws
    assert np.mean(np.equal(half, chosen(0.5, seed=1))) == pytest.approx(0.5, abs=0.04)
    # written down: no machine and no version may change what a seed means
    assert "".join(str(int(one)) for one in half[:24]) == "011010101001010110110001"


def test_pixelated_images(hoicli: Hoicli, out: Path) -> None:
    options = ("--pixelate", "0.5", "--seed", "3")
    records = run(hoicli, *options, "--images", IMAGES, "--save-images", out, SCENES)
    given = parsed(SCENES.read_text())
    assert [{key: value for key, value in record.items() if key != "pixelated"} for record in records] == given
    assert {record["pixelated"] for record in records} == {0, 8}
    for record in records:
        before, after = (pixels_of(folder / record["file_name"]) for folder in (IMAGES, out))
        if record["pixelated"]:
            assert np.array_equal(after, pixelate(before, 8))
            assert not np.array_equal(after, before)
        else:
            assert (out / record["file_name"]).read_bytes() == (IMAGES / record["file_name"]).read_bytes()
    assert run(hoicli, *options, SCENES) == records  # no image is needed, and none changes what is chosen
    small = run(hoicli, *options, "--rectangles", SCENES)
    assert small == [{"image_id": record["image_id"], "pixelated": record["pixelated"]} for record in records]


def history(*epochs: tuple[int, float]) -> list[Epoch]:
    return [Epoch(number, level, score) for number, (level, score) in enumerate(epochs)]


def test_a_curriculum_by_hand() -> None:
    made = decisions(history((0, 10), (0, 20), (0, 25), (0, 25.5), (1, 26), (1, 25.74)), threshold=0.1)
    assert [decision["epoch"] for decision in made] == [0, 1, 2, 3, 4, 5, 6]
    assert [decision["relative_change"] for decision in made][:2] == [None, None]
    changes = [decision["relative_change"] for decision in made[2:]]
    assert changes == pytest.approx([1.0, 0.25, 0.02, 0.5 / 25.5, -0.01])
    # the largest change so far is 1, so a level is unlocked when the change is below 0.1: after the fourth epoch, ...
    assert [decision["threshold"] for decision in made[2:]] == pytest.approx([0.1 * (1 + EPSILON)] * 5)
    assert [decision["upgrade"] for decision in made] == [False, False, False, False, True, True, True]
    assert [decision["unlocked"] for decision in made[3:]] == ["clean", "low", "middle", "high"]
    # ... and a new level, of which nothing is known, is tried first; of two new ones the lower
    assert [decision["severity"] for decision in made] == ["clean"] * 4 + ["low", "middle", "middle"]
    last = made[-1]
    assert [*last["memory"].values()] == [4, 2, 0, 0]
    assert [*last["scores"].values()] == pytest.approx([25.5 / 5, 25.74 / 3, 25.74, 25.74])


def test_clean_takes_its_turn() -> None:
    """Of levels that do equally well, the one that was used least is next; at par the lower."""
    used = history((0, 10.0), (1, 10.0), (2, 10.0), (3, 10.0))
    assert [decision["severity"] for decision in decisions(used)][-1] == "clean"
    assert decisions([*used, Epoch(4, 0, 10.0)])[-1]["severity"] == "low"
    assert decisions([*used, Epoch(4, 0, 10.0), Epoch(5, 1, 9.0)])[-1]["severity"] == "middle"
    # a level that does better keeps its turn longer: 30 / 3 against 9 / 2 of the others
    better = history((0, 9.0), (1, 9.0), (2, 30.0), (2, 30.0), (3, 9.0))
    assert decisions(better)[-1]["severity"] == "middle"


def test_a_stand_still_unlocks_and_high_is_the_end() -> None:
    made = decisions(history(*[(0, 20.0)] * 6))
    assert [decision["unlocked"] for decision in made] == ["clean", "clean", "low", "middle", "high", "high", "high"]
    assert [decision["upgrade"] for decision in made] == [False, False, True, True, True, False, False]


def test_a_score_of_zero_says_nothing_about_the_next() -> None:
    made = decisions(history((0, 0.0), (0, 5.0), (0, 10.0), (0, 10.5)))
    assert [decision["relative_change"] for decision in made] == [None, None, None, 1.0, pytest.approx(0.05)]
    assert made[-1]["upgrade"]


def test_what_was_trained_is_unlocked() -> None:
    made = decisions(history((2, 10.0)))
    assert made[-1]["unlocked"] == "middle"
    assert [*made[-1]["scores"].values()] == [10.0, 10.0, 5.0]  # nothing known of clean and low but the present score
    assert made[-1]["severity"] == "clean"


halvable = st.just(0.0) | st.floats(1e-300, 100)  # half of the least number is 0, so scaling would not be exact there
scores = st.lists(st.tuples(st.integers(0, 3), halvable), max_size=12)


@given(scores, st.randoms(), st.floats(0.01, 2))
def test_neither_order_nor_scale_decides(pairs: list[tuple[int, float]], shuffle: random.Random, factor: float) -> None:
    epochs = history(*pairs)
    told = [{"epoch": epoch.epoch, "severity": epoch.level, "score": epoch.score} for epoch in epochs]
    lines = [Line("e", number, orjson.dumps(record)) for number, record in enumerate(told, start=1)]
    shuffle.shuffle(lines)
    assert read_epochs(lines) == epochs
    made = decisions(epochs)
    for decision in made:
        assert decision["severity"] in decision["scores"]
        assert sum(decision["memory"].values()) == decision["epoch"]
    unlocked = [LEVELS.index(decision["unlocked"]) for decision in made]
    assert unlocked == sorted(unlocked)
    doubled = decisions([Epoch(epoch.epoch, epoch.level, 2 * epoch.score) for epoch in epochs])  # exact in binary
    assert [decision["severity"] for decision in doubled] == [decision["severity"] for decision in made]


def test_the_filter(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "epochs.jsonl", "")
    start = hoicli("curriculum", path)
    assert json.loads(start.out)["severity"] == "clean"
    assert json.loads(start.out)["epoch"] == 0
    lines = ['{"epoch": 3, "severity": "clean", "score": 10}', '{"epoch": 4, "severity": 0, "score": 20}']
    path.write_text("\n".join([*lines, '{"epoch": 5, "severity": "clean", "score": 20.1}']))
    (line,) = hoicli("curriculum", path).out.splitlines()
    assert json.loads(line) == {
        "epoch": 6,
        "severity": "low",
        "ratio": 0.4,
        "relative_change": pytest.approx(0.005),
        "largest_change": 1.0,
        "threshold": pytest.approx(0.1),
        "upgrade": True,
        "unlocked": "low",
        "memory": {"clean": 3, "low": 0, "middle": 0, "high": 0},
        "scores": {"clean": 20.1 / 4, "low": 20.1},
    }
    every = hoicli("curriculum", "--every", path).out.splitlines()
    assert [json.loads(each)["epoch"] for each in every] == [3, 4, 5, 6]
    assert every[-1] == line
    calmer = json.loads(hoicli("curriculum", "--threshold", "0.004", path).out)
    assert (calmer["severity"], calmer["upgrade"]) == ("clean", False)
    assert hoicli("curriculum", "--threshold", "0", path).err == "hoicli: --threshold 0: give a number above 0\n"


@pytest.mark.parametrize(("line", "message"), [
    ('{"epoch": 1, "severity": "clean", "score": 3}', "epoch: epoch 1 is at {path}:1 already; keep one line an"),
    ('{"epoch": 3, "severity": "clean", "score": 3}', "epoch: there is no epoch 2; changes are between"),
    ('{"epoch": -1, "severity": "clean", "score": 3}', "epoch: missing or no whole number of at least 0"),
    ('{"epoch": 2, "severity": "extreme", "score": 3}', "severity: choose clean, low, middle, high, or 0 to 3"),
    ('{"epoch": 2, "severity": "low", "score": -1}', "score: missing or no finite number of at least 0"),
    ('{"epoch": 2, "severity": "low", "score": NaN}', "score: nan: numbers must be finite"),
    ("[]", "an array, not an object"),
])  # fmt: skip
def test_a_bad_epoch_is_one_clear_line(hoicli: Hoicli, tmp_path: Path, line: str, message: str) -> None:
    path = saved(tmp_path / "epochs.jsonl", '{"epoch": 1, "severity": "clean", "score": 10}\n' + line + "\n")
    assert refusal(hoicli("curriculum", path)).startswith(f"{path}:2: {message.format(path=path)}")
