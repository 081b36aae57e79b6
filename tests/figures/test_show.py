"""`hoicli show`: what is drawn where, which images, what is written, and what names out of records cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hoicli.figures.overlays import INKS, TRUTH_INK, Layer, Overlay, Pair, draw_overlay
from hoicli.figures.showing import picture_names
from tests.support.project import EIGHT, FIXTURES, GT, PREDICTIONS, Hoicli, parsed, refusal, written

IMAGES = EIGHT / "images"


def record(image_id: str, **more: Any) -> dict[str, Any]:
    hois = [
        {"subject": 0, "object": 1, "verb": "ride", "score": 0.75},
        {"subject": 0, "object": 1, "verb": "hold", "score": 0.5},
    ]
    boxes = {"boxes": [[10, 20, 40, 80], [30, 50, 90, 90]], "labels": ["person", "kite"]}
    return {"image_id": image_id, **boxes, "hois": hois, **more}


def listed(folder: Path) -> list[dict[str, Any]]:
    return parsed((folder / "shown.jsonl").read_text())


def colours(path: Path, box: tuple[int, int, int, int]) -> set[str]:
    with Image.open(path) as picture:
        pixels = np.asarray(picture.crop(box)).reshape(-1, 3)
    return {"#" + bytes(pixel.tolist()).hex() for pixel in np.unique(pixels, axis=0)}


@pytest.mark.parametrize(("width", "height"), [(8, 6), (640, 427), (427, 640), (4000, 2500), (3000, 60), (60, 3000)])
def test_boxes_stand_where_they_are_on_pictures_of_any_size(width: int, height: int) -> None:
    """A solid subject and a broken object, in the stream's colour, scaled as the picture."""
    subject, object_ = (
        [width * 0.1, height * 0.6, width * 0.3, height * 0.95],
        [width * 0.5, height * 0.6, width * 0.9, height * 0.95],
    )
    layer = Layer("model", INKS[0], [Pair(subject, object_, ["ride kite 0.75"])])
    made = draw_overlay(Overlay("a", (width, height), [layer]), Image.new("RGB", (width, height), "#808080"), 640)
    assert 480 <= max(made.width, made.height) <= 760  # with its caption
    scale = min(640, max(480, width, height)) / max(width, height)
    for x, whole in ((subject[0], True), (object_[2], False)):  # edges that the line between the two does not cross
        top, bottom = round(height * 0.6 * scale), round(height * 0.95 * scale)
        column = [made.getpixel((round(x * scale), y)) for y in range(top, bottom)]
        share = sum(pixel == (255, 59, 48) for pixel in column) / len(column)
        if len(column) > 40:  # else the label covers it
            assert share > 0.9 if whole else 0.3 < share < 0.8


def overlay(count: int, labels: list[str]) -> Overlay:
    """Pairs of one person with things beside them."""
    things = [[200 + 20 * n, 60, 300 + 20 * n, 220] for n in range(count)]
    pairs = [Pair([50, 40, 120, 200], o, labels) for o in things]
    layers = [Layer("gt", TRUTH_INK, []), Layer("model", INKS[0], pairs)]
    return Overlay("a", (640, 480), layers)


def test_labels_stand_below_the_picture_and_numbers_apart() -> None:
    short, long = (draw_overlay(overlay(6, labels), None, 640) for labels in (["eat cake"], ["eat cake 0.5"] * 30))
    assert short.crop((0, 0, 640, 480)).tobytes() == long.crop((0, 0, 640, 480)).tobytes()  # words hide nothing
    assert long.height > short.height  # all of them are there
    in_ink = (np.asarray(short)[:480] == (255, 59, 48)).all(axis=2)
    one = (np.asarray(draw_overlay(overlay(1, ["eat cake"]), None, 640))[:480] == (255, 59, 48)).all(axis=2)
    number = one[22:38, 50:66].sum()
    assert in_ink[:38, 50:200].sum() == pytest.approx(6 * number, rel=0.2)  # six grounds, none on another


def test_a_subject_that_is_no_person_is_named(hoicli: Hoicli, tmp_path: Path) -> None:
    preds = written(tmp_path / "p.jsonl", [record("a"), record("b", labels=["dog", "kite"])])
    assert hoicli("show", "--top", "1", "-o", tmp_path / "out", preds).code == 0
    assert [row["drawn"]["p"] for row in listed(tmp_path / "out")] == [["ride kite 0.75"], ["dog ride kite 0.75"]]


def test_a_sheet_has_one_legend(hoicli: Hoicli, tmp_path: Path) -> None:
    heights = {}
    for count in (1, 2):
        preds = written(tmp_path / "p.jsonl", [record(f"{number}") for number in range(count)])
        for out in ("sheet.png", "folder"):
            assert hoicli("show", "--size", "480", "-o", tmp_path / out, preds).code == 0
        with Image.open(tmp_path / "sheet.png") as sheet, Image.open(tmp_path / "folder/0.png") as picture:
            heights[count] = sheet.height - picture.height
    assert heights == {1: 16, 2: 16}  # the gaps of the sheet: its legend is that of the picture


def test_a_folder_says_what_is_drawn(hoicli: Hoicli, tmp_path: Path) -> None:
    out = tmp_path / "drawn"
    result = hoicli("show", "--gt", GT, "--images", IMAGES, "--top", "1", "--first", "2", "-o", out, PREDICTIONS)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert sorted(path.name for path in out.iterdir()) == [
        ".hoicli-files", "HICO_test2015_00000001.png", "HICO_test2015_00000002.png", "shown.jsonl",
    ]  # fmt: skip
    assert listed(out)[0] == {
        "image_id": "HICO_test2015_00000001",
        "file": "HICO_test2015_00000001.png",
        "drawn": {
            "ground truth": ["sit on bench", "no interaction bench"],
            "predictions": ["no interaction bench 0.86"],
        },
    }
    with Image.open(out / "HICO_test2015_00000001.png") as picture:
        assert (picture.width, picture.height > 427) == (640, True)
    again = hoicli("show", "--images", IMAGES, "--first", "1", "-o", out, PREDICTIONS)  # replaced, without ground truth
    assert (again.code, len(list(out.iterdir()))) == (0, 3)
    (out / "mine.txt").write_text("")
    assert "there are other files in it" in refusal(hoicli("show", "--images", IMAGES, "-o", out, PREDICTIONS), 2)


def test_only_images_with_what_is_asked_for(hoicli: Hoicli, tmp_path: Path) -> None:
    def shown(*words: str) -> dict[str, dict[str, list[str]]]:
        out = tmp_path / "drawn"
        assert hoicli("show", "--gt", GT, *words, "-o", out, PREDICTIONS).code == 0
        return {row["image_id"][-1]: row["drawn"] for row in listed(out)}

    assert list(shown("--first", "3")) == ["1", "2", "3"]
    assert list(shown("--image-id", "HICO_test2015_00000005,HICO_test2015_00000002")) == ["5", "2"]
    assert (
        refusal(hoicli("show", "--gt", GT, "--image-id", "nobody", "-o", tmp_path / "x", PREDICTIONS))
        == "hoicli: no stream has image 'nobody'; name images as the records do (image_id)"
    )


ACROSS = "are they those of the picture as its EXIF mark turns it?"


@pytest.mark.parametrize(("more", "said"), [
    ({"width": 40, "height": 60}, f"the record says 40 x 60, the file has 60 x 40 pixels ({ACROSS}"),
    ({"width": 60, "height": 50}, "the record says 60 x 50, the file has 60 x 40 pixels; "),
    ({}, f"the boxes reach to 20, 58, the file has 60 x 40 pixels ({ACROSS}"),
    ({"boxes": [[0, 0, 9, 9], [0, 0, 9, 9], [2, 30, 20, 58]], "labels": ["person", "kite", "kite"]}, ACROSS),
    ({"width": 60, "height": 40}, ""),
    ({"width": 601, "height": 401}, ""),  # another scale
    ({"boxes": [[2, 3, 20, 41], [0, 0, 9, 9]]}, ""),
    ({"boxes": [[2, 3, 90, 70], [0, 0, 9, 9]]}, ""),  # in neither
])  # fmt: skip
@pytest.mark.parametrize("command", ["show", "explore", "corrupt", "mask"])
def test_a_picture_of_another_shape_or_turned_by_its_camera(
    hoicli: Hoicli, tmp_path: Path, command: str, more: dict[str, Any], said: str
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "images").mkdir()
    Image.new("RGB", (60, 40)).save(tmp_path / "images/a.jpg", exif=exif)
    line = {**record("a", file_name="a.jpg"), "boxes": [[2, 30, 20, 58], [0, 0, 9, 9]], **more}
    hoi = {"subject": 0, "object": 1, "verb": "fly"}
    gt = written(tmp_path / "gt.jsonl", [{**line, "hois": [hoi]}])
    preds = written(tmp_path / "preds.jsonl", [{**line, "hois": [{**hoi, "score": 0.5}]}])
    out = tmp_path / "out"
    words = {
        "show": ["show", "--gt", gt, "-o", out],
        "explore": ["explore", "--gt", gt, preds, "-o", out],
        "corrupt": ["corrupt", "--corruption", "jpeg", "--severity", "1", "--save-images", out, gt],
        "mask": ["mask", "--save-images", out, gt],
    }[command]
    if command in ("corrupt", "mask") and more.get("width", 60) == 601:
        said = "the record says 601 x 401, the file has 60 x 40 pixels; "  # whose pixels are read
    result = hoicli(*words, "--images", tmp_path / "images")
    assert (result.code, said in result.err, "Traceback" in result.err) == (int(bool(said)), True, False), result.err


def test_images_that_are_not_there_are_counted_and_blank(hoicli: Hoicli, tmp_path: Path) -> None:
    """Damaged, a folder, a name that leads out, none: and a number that names its file."""
    images = tmp_path / "images"
    images.mkdir()
    (images / "bad.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    (images / "folder.png").mkdir()
    Image.new("RGB", (100, 100), "#123456").save(images / "COCO_val2014_000000000328.png")
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    names = {"a": "bad.jpg", "b": "folder.png", "c": "../secret.png", "d": None, "e": str(tmp_path / "secret.png")}
    preds = written(
        tmp_path / "p.jsonl",
        [
            *(record(image_id, **({"file_name": name} if name else {})) for image_id, name in names.items()),
            record("328"),
        ],
    )
    out = tmp_path / "drawn"
    result = hoicli("show", "--images", images, "-o", out, preds)
    assert result.code == 0
    assert 'no picture of 5 of 6 images (the first: "bad.jpg"); their boxes are drawn on blank sheets' in result.err
    assert "#123456" in colours(out / "328.png", (400, 20, 470, 60))
    assert "#d8d8d8" in colours(out / "c.png", (0, 0, 480, 480))


def test_hostile_ids_stay_in_the_folder() -> None:
    ids = ["../../etc/passwd", "..", "a/b", "a_b", "A_b", "", "\0", "x" * 500, ".hidden", "日本", "CON"]
    names = picture_names(ids)
    assert len({name.casefold() for name in names}) == len(ids)
    assert all(
        name.endswith(".png") and "/" not in name and not name.startswith(".") and len(name) < 120 for name in names
    )


def test_any_labels_and_the_nulls_of_vcoco(hoicli: Hoicli, tmp_path: Path) -> None:
    vcoco = FIXTURES / "vcoco"
    out = tmp_path / "drawn"
    assert hoicli("show", "--gt", vcoco / "ground_truth.jsonl", "-o", out, vcoco / "predictions.jsonl").code == 0
    free = record("f", labels=["young woman", "dragon\u202e"])
    free["hois"][0]["verb"] = "befriend <b>"
    preds = written(tmp_path / "p.jsonl", [free])
    page = tmp_path / "p.png"
    assert hoicli("show", "-o", page, preds).code == 0


def test_nothing_is_written_where_a_line_is_bad(hoicli: Hoicli, tmp_path: Path) -> None:
    preds = tmp_path / "p.jsonl"
    preds.write_text(json.dumps(record("a")) + "\n" + json.dumps(record("b", boxes=[[1, 2, 3]])) + "\n")
    for out in ("drawn", "sheet.png"):
        result = hoicli("show", "-o", tmp_path / out, preds)
        assert (result.code, result.err.startswith(f"{preds}:2: boxes[0]: ")) == (1, True)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl"]
    result = hoicli("show", "--on-error", "skip", "-o", tmp_path / "drawn", preds)
    assert (result.code, [row["image_id"] for row in listed(tmp_path / "drawn")]) == (0, ["a"])


@pytest.mark.parametrize(("words", "message"), [
    ((PREDICTIONS,), "show: say where to write with -o: FILE.png for one sheet"),
    (("-o", "x.png"), "show: give predictions, or ground truth with --gt"),
    (("-o", "x.jpg", PREDICTIONS), "-o x.jpg: give a name in .png for one sheet, or a folder"),
    (("-o", "x.png", "--first", "all", PREDICTIONS), "--first all: too much for one sheet"),
    (("-o", "x.png", "--first", "0", PREDICTIONS), "--first 0: draws nothing"),
])  # fmt: skip
def test_a_wrong_call(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = hoicli("show", *words)
    assert (result.code, result.out, list(tmp_path.iterdir())) == (2, "", [])
    assert message in result.err
