"""The report's gallery by its content: cards, embedded images, and everything hostile a record may hold."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from hoicli.figures.drawing import NOT_AT_HAND
from hoicli.figures.pictures import LARGEST_IMAGE
from hoicli.figures.styles import STYLES
from hoicli.report.document import Document
from hoicli.report.gallery import gallery_section
from hoicli.report.html import render
from tests.support.page import Page
from tests.support.tiny import jpeg, png

HOSTILE = "\"'><script>alert(1)</script>&\x00\ud800"


def item(error: str = "interaction", **changes: Any) -> dict[str, Any]:
    return {
        "image_id": "one",
        "file_name": "one.png",
        "width": 640,
        "height": 480,
        "error": error,
        "verb": "sit_on",
        "label": "bench",
        "score": 0.25,
        "rank": 17,
        "predicted": [[10, 20, 110, 220], [50.5, 100, 300, 400]],
        "truth": [[12, 22, 112, 222], [52, 102, 302, 402]],
        "truth_name": "lie_on bench",
        "relation": "repair",
        "iou": [0.8299, 0.57],
        **changes,
    }


MISSED = item("missed_gt", score=None, rank=None, predicted=None, truth_name="sit_on bench", relation="own", iou=None)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "one.png").write_bytes(png())
    (folder / "two.jpg").write_bytes(jpeg())
    return folder


def made(items: list[dict[str, Any]], images: Path | None = None, **options: Any) -> Page:
    section = gallery_section(items, None if images is None else str(images), **options)
    return Page(render(Document("errors", ["lead"], [], [section])).decode())


def test_a_card_per_item(images: Path) -> None:
    page = made([item(), MISSED, item("association", truth=None, truth_name=None, relation="none", iou=None)], images)
    assert len(page.all("article", class_="card")) == 3
    text = "".join(page.text)
    for words in (
        "Interaction", "sit_on bench", "truth, which it could become: lie_on bench",
        "score 0.250, IoU 0.82 and 0.57, rank 17; one", "no score; one", "truth: sit_on bench",
        "no ground truth touches it", "score 0.250, rank 17; one",
    ):  # fmt: skip
        assert words in text
    assert len(page.all("g", class_="gt")) == 2
    assert len(page.all("g", class_="pr")) == 2
    assert page.all("rect", class_="o", x="50.5", y="100", width="249.5", height="300")


def test_the_types_that_cost_most_come_first() -> None:
    page = made([item("duplicate"), item("human_box"), MISSED], gains={"human_box": 2.0, "missed_gt": 7.5})
    marks = [mark["class"] for mark in page.all("i")]
    assert marks == ["mark e-missed_gt", "mark e-human_box", "mark e-duplicate"]


def test_nothing_to_show() -> None:
    assert gallery_section([], None).blocks == []


def test_an_image_is_embedded_once(images: Path) -> None:
    page = made([item(), item(file_name="two.jpg"), item("duplicate"), item(file_name="none.png")], images)
    assert [image["href"] for image in page.all("image")] == [
        "data:image/png;base64," + base64.b64encode(png()).decode(),
        "data:image/jpeg;base64," + base64.b64encode(jpeg()).decode(),
    ]
    ids = [image["id"] for image in page.all("image")]
    assert [use["href"] for use in page.all("use")] == ["#" + ids[0], "#" + ids[1], "#" + ids[0]]
    assert page.text.count(NOT_AT_HAND) == 1


def test_whose_size_counts(images: Path) -> None:
    """The record's, in whose pixels the boxes are; else the image's; else enough for the boxes."""
    unknown: dict[str, Any] = {"width": None, "height": None}
    page = made(
        [item(), item(**unknown), item(file_name="two.jpg", **unknown), item(file_name="none", **unknown)], images
    )
    boxes = [svg["viewbox"] for svg in page.all("svg") if "viewbox" in svg]
    assert boxes == ["0 0 640 480", "0 0 4 3", "0 0 5 7", "0 0 317.1 422.1"]


def test_only_images_inside_the_folder(tmp_path: Path, images: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    (images / "sub").mkdir()
    (images / "page.png").write_bytes(b"<svg onload=alert(1)>")
    (images / "cut.png").write_bytes(png()[:20])
    (images / "cut.jpg").write_bytes(jpeg()[:12])
    (images / "empty.png").write_bytes(png(0, 3))
    (images / "large.png").write_bytes(png() + bytes(LARGEST_IMAGE))
    os.mkfifo(images / "pipe.png")
    names: list[object] = ["../secret.png", "sub/../../secret.png", "..\\secret.png", "sub\\..\\..\\secret.png"]
    names += [str(tmp_path / "secret.png"), "C:\\one.png", "C:one.png", "\\one.png", "", ".", "sub"]
    names += ["one.png\0", "x" * 5000, HOSTILE, "page.png", "cut.png", "cut.jpg", "empty.png", "large.png", "pipe.png"]
    names += [None, 7, ["one.png"]]
    page = made([item(file_name=name) for name in names], images)
    assert not page.all("image")
    assert page.text.count(NOT_AT_HAND) == len(names)
    nameless = item()
    del nameless["file_name"]
    assert NOT_AT_HAND in made([nameless], images).text
    (images / "sub" / "in.png").symlink_to(tmp_path / "secret.png")  # the folder's owner may link as they please
    assert len(made([item(file_name="sub/in.png")], images).all("image")) == 1


def test_hostile_text_stays_text() -> None:
    page = made([item(image_id=HOSTILE, verb=HOSTILE, label=HOSTILE, truth_name=HOSTILE, file_name=HOSTILE), MISSED])
    assert not page.all("script")
    assert len(page.all("article")) == 2
    assert "\"'><script>alert(1)</script>&\\x00" in "".join(page.text)
    assert "\x00" not in page.raw
    assert all(set(card) == {"class"} for card in page.all("article"))


def test_the_same_input_gives_the_same_bytes(images: Path) -> None:
    items = [item(error) for error in STYLES if not error.startswith("false")]
    assert made(items, images).raw == made(items, images).raw


def test_pictures_that_the_folder_lacks_are_told(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [item(), item(image_id="b", file_name="none.jpg"), item(), item(image_id="c", file_name=None)]
    made(items[:1], images)
    made(items)
    assert capsys.readouterr().err == ""
    made(items, images)
    assert capsys.readouterr().err == (
        f'hoicli: --images {images}: no picture of 2 of the gallery\'s 3 images (the first: "none.jpg"); their boxes '
        "stand on empty sheets\n"
    )


def test_boxes_beyond_the_image_and_without_area() -> None:
    page = made([item(predicted=[[-50, -20, 900, 700], [30, 30, 30, 30]], truth=[[9, 9, 3, 3], [1, 1, 2, 2]])])
    assert all(float(rectangle["width"]) >= 0 for rectangle in page.all("rect"))
    assert all(0 <= float(text["y"]) <= 480 for text in page.all("text"))
