"""`convert --from logits`: the post-processing against plain Python, the forms of a file, and hostile archives."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from hoicli.converters.inpcc import sigmoid
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, Record, refusal, triplets_of
from tests.support.project import records_of as rows

FIXTURE = FIXTURES / "foreign" / "logits.npz"
HICO = load("hico")
QUERIES, CLASSES = 4, len(HICO.interactions)
RAW = ("--from", "logits")

Arrays = dict[str, Any]


def arrays(seed: int, images: int | None = None, classes: int = CLASSES) -> Arrays:
    """What a model leaves: float32 numbers, some of the boxes beyond the image."""
    generator = np.random.default_rng(seed)
    batch = () if images is None else (images,)
    numbers = {
        "pred_logits": generator.normal(-3, 2, (*batch, QUERIES, classes)),
        "pred_boxes": generator.uniform(0.05, 0.6, (*batch, QUERIES, 8)),
        "box_scores": generator.uniform(0.3, 1, (*batch, QUERIES, 1)),
    }
    sizes = generator.integers(100, 700, (*batch, 2))
    return {name: array.astype(np.float32) for name, array in numbers.items()} | {"sizes": sizes}


def saved(path: Path, content: Arrays) -> Path:
    np.savez(path, **content)
    return path


def expected(
    content: Arrays, *, activation: str, power: float, threshold: float
) -> list[tuple[str, str, float, list[float]]]:
    """(verb, object, score, eight numbers) of one image in plain Python, after INP-CC's PostProcess."""
    logits = [[float(x) for x in row] for row in content["pred_logits"]]
    height, width = (float(side) for side in content["sizes"])
    boxes = []
    for row in content["pred_boxes"]:
        numbers: list[float] = []
        for x, y, w, h in (map(float, row[:4]), map(float, row[4:])):
            sides = [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
            clamped = [min(max(side, 0.0), 1.0) for side in sides]
            numbers += [side * scale for side, scale in zip(clamped, (width, height, width, height), strict=True)]
        boxes.append(numbers)
    found = []
    for query, row in enumerate(logits):
        box_score = float(content["box_scores"][query][0])
        total = sum(math.exp(x) for x in row)
        for column, x in enumerate(row):
            probability = 1 / (1 + math.exp(-x)) if activation == "sigmoid" else math.exp(x) / total
            score = probability * box_score**power
            if score > threshold:
                found.append((query, column, score))
    return [(*HICO.interactions[column], score, boxes[query]) for query, column, score in found]


def said(record: Record) -> list[tuple[str, str, float, list[float]]]:
    found = triplets_of(record)
    return [(verb, label, score, person + thing) for person, verb, label, thing, score in found]


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
@pytest.mark.parametrize("power", [0.0, 1.0, 2.8])
def test_it_equals_plain_python(hoicli: Hoicli, tmp_path: Path, activation: str, power: float) -> None:
    content = arrays(3)
    threshold = 0.05 if activation == "sigmoid" else 0.001
    options = ["--activation", activation, "--lambda", power, "--threshold", threshold]
    (record,) = rows(hoicli("convert", *RAW, *options, saved(tmp_path / "a.npz", content)))
    wanted = expected(content, activation=activation, power=power, threshold=threshold)
    assert len(wanted) > 20
    assert [item[:2] for item in said(record)] == [item[:2] for item in wanted]
    np.testing.assert_allclose([item[2] for item in said(record)], [item[2] for item in wanted], rtol=1e-12)
    np.testing.assert_allclose([item[3] for item in said(record)], [item[3] for item in wanted], rtol=0, atol=1e-9)
    assert {record["labels"][hoi["subject"]] for hoi in record["hois"]} == {"person"}
    assert (record["image_id"], [record["height"], record["width"]]) == ("a", content["sizes"].tolist())


def test_the_threshold_itself_is_left_out(hoicli: Hoicli, tmp_path: Path) -> None:
    content = arrays(4)
    content["pred_logits"][:] = -20
    content["pred_logits"][1, 3], content["box_scores"][:] = 0, 1
    for threshold, count in ((0.5, 0), (0.49, 1)):
        (record,) = rows(hoicli("convert", *RAW, "--threshold", threshold, saved(tmp_path / "a.npz", content)))
        assert len(record["hois"]) == count


def test_the_sigmoid_has_no_overflow() -> None:
    extreme = np.array([-np.inf, -1e4, 0.0, 1e4])
    np.testing.assert_array_equal(sigmoid(extreme), [0.0, 0.0, 0.5, 1.0])


def logits_of(truth: list[Record], form: str, path: Path) -> Path:
    """What a perfect detector leaves: one query for each annotated triplet, its boxes as corners or as centres."""
    number = {pair: at for at, pair in enumerate(HICO.interactions)}
    count = max(len(record["hois"]) for record in truth)
    logits, boxes = np.full((len(truth), count, CLASSES), -20.0), np.zeros((len(truth), count, 2, 4))
    sizes = np.array([[record["height"], record["width"]] for record in truth])
    for image, record in enumerate(truth):
        for query, hoi in enumerate(record["hois"]):
            logits[image, query, number[hoi["verb"], record["labels"][hoi["object"]]]] = 5
            pair = np.array([record["boxes"][hoi[end]] for end in ("subject", "object")])
            boxes[image, query] = pair / sizes[image][[1, 0, 1, 0]]
    if form == "cxcywh":
        boxes = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], axis=-1)
    arrays = {"pred_logits": logits, "pred_boxes": boxes.reshape(-1, count, 8), "box_scores": boxes[..., :1, 0] * 0 + 1}
    return saved(path, {**arrays, "sizes": sizes, "image_ids": np.array([record["image_id"] for record in truth])})


@pytest.mark.parametrize("form", ["cxcywh", "xyxy"])
def test_corners_read_as_centres_are_asked_about(form: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """By `convert`, and by `eval` that converts on its own: mAP is 0.00 for a perfect detector."""
    lines = (GT).read_bytes().splitlines()
    path = logits_of([record for line in lines if (record := orjson.loads(line))["hois"]], form, tmp_path / "a.npz")
    for command in (("convert", *RAW), ("eval", "--gt", GT)):
        result = hoicli(*command, path)
        assert result.code == 0
        assert "--box-form xyxy: as corners)" in result.err
        assert ("are these corners? " in result.err, "clipped to it" in result.err) == (form == "xyxy",) * 2
    told = hoicli("convert", *RAW, "--box-form", form, path).err
    assert "these corners" not in told
    assert "clipped" not in told


def test_boxes_that_reach_beyond_the_image_are_counted(hoicli: Hoicli, tmp_path: Path) -> None:
    content = arrays(4)
    content["pred_logits"][:, 0], content["pred_boxes"][:] = 5, 0.5
    content["pred_boxes"][1, :4] = [0.9, 0.5, 0.4, 0.2]
    assert "hoicli: 1 of 8 boxes" in hoicli("convert", *RAW, saved(tmp_path / "a.npz", content)).err


def test_the_fixture_gives_the_predictions(hoicli: Hoicli) -> None:
    """Scores to float32's precision; what is at most 0.1 is left out."""
    found = rows(hoicli("convert", FIXTURE))
    originals = [orjson.loads(line) for line in (PREDICTIONS).read_bytes().splitlines()]
    assert [record["image_id"] for record in found] == [record["image_id"] for record in originals]
    for record, original in zip(found, originals, strict=True):
        ours, wanted = sorted(said(record)), sorted(item for item in said(original) if item[2] > 0.1)
        assert [item[:2] for item in ours] == [item[:2] for item in wanted]
        np.testing.assert_allclose([item[2] for item in ours], [item[2] for item in wanted], rtol=1e-5)
        for item, other in zip(ours, wanted, strict=True):
            inside = np.minimum(other[3], [record["width"], record["height"]] * 4)
            np.testing.assert_allclose(item[3], inside, rtol=0, atol=1e-3)


def test_a_batch_is_its_images(hoicli: Hoicli, tmp_path: Path) -> None:
    content = arrays(5, images=3)
    names = ["one", "two", "three"]
    batch = saved(tmp_path / "batch.npz", {**content, "image_ids": np.array([f"{name}.jpg" for name in names])})
    together = rows(hoicli("convert", batch))
    assert [record.pop("file_name") for record in together] == ["one.jpg", "two.jpg", "three.jpg"]
    folder = tmp_path / "dump"
    folder.mkdir()
    parts = [{key: array[index] for key, array in content.items()} for index, _ in enumerate(names)]
    files = [saved(folder / f"{name}.npz", part) for name, part in zip(names, parts, strict=True)]
    assert rows(hoicli("convert", *files)) == together


@pytest.mark.parametrize("change", [
    lambda c: {**c, "box_scores": c["box_scores"][..., 0]},
    lambda c: {**c, "pred_logits": np.asfortranarray(c["pred_logits"])},
    lambda c: {**c, "pred_logits": c["pred_logits"].astype(">f4")},
])  # fmt: skip
@pytest.mark.parametrize("images", [None, 2])
def test_other_ways_to_save_the_same(hoicli: Hoicli, tmp_path: Path, images: int | None, change: Any) -> None:
    content = arrays(6, images=images)
    if images is not None:
        content["image_ids"] = np.array(["a", "b"])
    before = rows(hoicli("convert", saved(tmp_path / "a.npz", content)))
    after = rows(hoicli("convert", *RAW, saved(tmp_path / "a.npz", change(content))))
    for record, other in zip(after, before, strict=True):
        assert record.pop("file_name", "a.npz") == "a.npz"
        assert [hoi["verb"] for hoi in record["hois"]] == [hoi["verb"] for hoi in other["hois"]]
        scores = [[hoi["score"] for hoi in each["hois"]] for each in (record, other)]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)
        assert record["boxes"] == other["boxes"]


def test_images_by_number_and_sizes_from_the_ground_truth(hoicli: Hoicli, tmp_path: Path) -> None:
    content = {key: array for key, array in arrays(7, images=2).items() if key != "sizes"}
    path = saved(tmp_path / "dump.npz", {**content, "image_ids": np.array([2, 7])})
    said = refusal(hoicli("convert", path))
    assert said.startswith(f"{path}: [0].sizes: the image's size is not known; save sizes (height, width)")
    found = rows(hoicli("convert", path, "--image-list", GT))
    assert [record["image_id"] for record in found] == ["HICO_test2015_00000002", "HICO_test2015_00000007"]
    lines = (GT).read_bytes().splitlines()
    truth = {record["image_id"]: record for record in map(orjson.loads, lines)}
    for record in found:
        sizes = [truth[record["image_id"]][key] for key in ("width", "height")]
        assert [record[key] for key in ("width", "height")] == sizes


@pytest.mark.parametrize("rule", [(), ("--id", "path"), ("--id", "number")])
def test_sizes_of_images_of_one_name_in_two_folders(hoicli: Hoicli, tmp_path: Path, rule: tuple[str, ...]) -> None:
    names = ["a/f_2.jpg", "b/f_7.jpg"] if "number" in rule else ["a/f_1.jpg", "b/f_1.jpg"]
    content = {key: array for key, array in arrays(7, images=2).items() if key != "sizes"}
    path = saved(tmp_path / "dump.npz", {**content, "image_ids": np.array(names)})
    images = tmp_path / "images.jsonl"
    empty: Record = {"boxes": [], "labels": [], "hois": []}
    of = [{"image_id": name[:-4], "file_name": name, "width": 30 + at, "height": 20} for at, name in enumerate(names)]
    images.write_bytes(b"\n".join(orjson.dumps(one | empty) for one in of))
    found = rows(hoicli("convert", path, *rule, "--image-list", images))
    assert [record["width"] for record in found] == [30, 31]
    assert [record["image_id"] for record in found] == ([2, 7] if "number" in rule else ["a/f_1", "b/f_1"])


@pytest.mark.parametrize("count", [14130, 5539])
def test_the_columns_of_swig(hoicli: Hoicli, tmp_path: Path, count: int) -> None:
    swig = load("swig")
    content = arrays(8, classes=count)
    content["pred_logits"][:] = -20
    content["pred_logits"][2, count - 1] = 9
    content["box_scores"][:] = 1
    path = saved(tmp_path / "hugging_12.npz", content)
    (record,) = rows(hoicli("convert", "--dataset", "swig", path))
    last = max(swig.subsets["evaluated"]) if count == 5539 else 14129
    assert [item[:2] for item in said(record)] == [swig.interactions[last]]
    refused = hoicli("convert", path)
    assert refused.err.startswith(f"{path}: pred_logits: {count:,} classes, but hico has 600; --dataset names another")


def test_standard_input(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "a.npz", {**arrays(11), "image_ids": np.array("a")})
    with path.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        assert rows(hoicli("convert", "-")) == rows(hoicli("convert", path))


def test_a_class_may_be_hidden(hoicli: Hoicli, tmp_path: Path) -> None:
    content = arrays(12)
    content["pred_logits"][:, 5] = -np.inf
    for activation in ("sigmoid", "softmax"):
        raw = (*RAW, "--activation", activation, "--threshold", 0)
        (record,) = rows(hoicli("convert", *raw, saved(tmp_path / "a.npz", content)))
        assert HICO.interactions[5] not in {item[:2] for item in said(record)}


PROBLEMS: dict[str, tuple[Any, str]] = {
    "verbs": (
        lambda c: c.update(pred_logits=np.zeros((QUERIES, 117), "f4")),
        "pred_logits: 117 classes, but hico has 600; --dataset names another (a column is a verb and an object)",
    ),
    "no logits": (lambda c: c.pop("pred_logits"), "has no array pred_logits; it needs pred_logits,"),
    "no size": (lambda c: c.pop("sizes"), ".sizes: the image's size is not known; save sizes (height, width), or give"),
    "four numbers": (
        lambda c: c.update(pred_boxes=c["pred_boxes"][:, :4]),
        "pred_boxes: shape [4, 4], but pred_logits makes it [4, 8]",
    ),
    "NaN": (lambda c: c["pred_logits"].__setitem__((2, 7), np.nan), ".pred_logits[2, 7]: nan: numbers must be finite"),
    "inf": (lambda c: c["pred_logits"].__setitem__((2, 7), np.inf), ".pred_logits[2, 7]: inf: numbers must be finite"),
    "no probability": (
        lambda c: c["box_scores"].__setitem__((2, 0), 6),
        ".box_scores[2]: 6.0: no probability; save its sigmoid",
    ),
    "no image": (
        lambda c: c.update({key: np.stack([c[key]] * 2) for key in list(c)}),
        "image_ids: missing; a file of 2 images names each of them",
    ),
    "a stranger": (lambda c: c.update(image_ids=np.array(99999)), "image number 99999 is not among"),
}


@pytest.mark.parametrize(("change", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_wrong_array_is_one_line(hoicli: Hoicli, tmp_path: Path, change: Any, message: str) -> None:
    content = arrays(14)
    change(content)
    path = saved(tmp_path / "a.npz", content)
    assert refusal(hoicli("convert", path)).startswith(f"{path}: {message}")


def test_a_bad_image_can_be_skipped(hoicli: Hoicli, tmp_path: Path) -> None:
    content = arrays(15, images=3)
    content["pred_logits"][1, 0, 0] = np.nan
    path = saved(tmp_path / "a.npz", {**content, "image_ids": np.array(["a", "b", "c"])})
    result = hoicli("convert", "--on-error", "skip", path)
    assert [record["image_id"] for record in rows(result)] == ["a", "c"]
    assert "skipped 1 item; the first: " in result.err


@pytest.mark.parametrize(("options", "message"), [
    (("--activation", "relu"), "--activation relu: choose sigmoid or softmax"),
    (("--threshold", "1"), "--threshold 1: scores lie between 0 and 1"),
    (("--lambda", "-1"), "--lambda -1: an exponent, at least 0"),
])  # fmt: skip
def test_settings_that_mean_nothing_are_refused(hoicli: Hoicli, options: tuple[str, ...], message: str) -> None:
    assert refusal(hoicli("convert", *RAW, *options, FIXTURE), 2) == f"hoicli: {message}"


def test_a_file_that_lacks_an_array_is_one_item(hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    good = arrays(7, images=None)
    saved(tmp_path / "raw/a.npz", good)
    saved(tmp_path / "raw/b.npz", {key: array for key, array in good.items() if key != "box_scores"})
    found = hoicli("convert", *sorted((tmp_path / "raw").iterdir()), "--on-error", "skip")
    assert [record["image_id"] for record in rows(found)] == ["a"]
    assert "b.npz: has no array box_scores; it needs pred_logits, pred_boxes, box_scores" in found.err


def test_an_image_list_of_raw_outputs_has_no_options_of_another_format(hoicli: Hoicli, tmp_path: Path) -> None:
    images = saved(tmp_path / "dump.npz", {**arrays(7, images=2), "image_ids": np.array(["a", "b"])})
    call = ("convert", FIXTURES / "foreign/predictions_ppdm.json", "--verb-base", "1")
    assert rows(hoicli(*call, "--image-list", images)) == rows(hoicli(*call))
