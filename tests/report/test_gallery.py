"""The page of errors by its content: cards, filters, embedded images, and everything hostile a record may hold."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import UsageError
from hoicli.figures.drawing import NOT_AT_HAND
from hoicli.figures.pictures import LARGEST_IMAGE
from hoicli.figures.styles import STYLES
from hoicli.report.gallery import write_gallery
from tests.support.page import Page

HOSTILE = "\"'><script>alert(1)</script>&\x00\ud800"


def png(width: int = 4, height: int = 3) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg(width: int = 5, height: int = 7) -> bytes:
    """As far as a frame header goes: an application segment, padding, a Huffman table, then the frame."""
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 8, 8, height, width, 0)
    return b"\xff\xd8\xff\xe0\x00\x04ab" + b"\xff\xff\xc4\x00\x03x" + frame + b"\xff\xd9"


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
        **changes,
    }


MISSED = item("missed_gt", score=None, rank=None, predicted=None, truth_name="sit_on bench")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "one.png").write_bytes(png())
    (folder / "two.jpg").write_bytes(jpeg())
    return folder


def page_in(folder: Path) -> Page:
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def made(tmp_path: Path, items: list[dict[str, Any]], images: Path | None = None) -> Page:
    write_gallery(str(tmp_path / "page"), items, None if images is None else str(images))
    return page_in(tmp_path / "page")


def test_a_card_per_item(tmp_path: Path, images: Path) -> None:
    page = made(tmp_path, [item(), MISSED, item("association", predicted=None)], images)
    cards = page.all("article", class_="card")
    assert [card["data-error"] for card in cards] == ["interaction", "missed_gt", "association"]
    assert [card["data-score"] for card in cards] == ["0.25", "", "0.25"]
    assert cards[0]["data-words"] == "sit on bench lie on bench"
    for text in ("Interaction", "sit_on bench", "truth: lie_on bench", "score 0.250, rank 17; one", "no score; one"):
        assert text in "".join(page.text)
    assert "truth: sit_on bench" not in "".join(page.text)  # it is the card's own name
    assert len(page.all("g", class_="gt")) == 3
    assert len(page.all("g", class_="pr")) == 1
    assert page.all("rect", class_="o", x="50.5", y="100", width="249.5", height="300")


def test_filters(tmp_path: Path) -> None:
    page = made(tmp_path, [item(), MISSED, item(score=-2.0), item(score=3.0)])
    buttons = [button["data-filter"] for button in page.all("button") if "data-filter" in button]
    assert buttons == ["", "interaction", "missed_gt"]  # no button for a type without cards
    text = "".join(page.text)
    assert "All 4" in text
    assert "Interaction 3" in text
    assert page.all("input", id="words", type="search")
    assert page.all("input", id="score", min="-2", max="3", value="-2")  # a score need not be a probability


def test_nothing_to_show(tmp_path: Path) -> None:
    page = made(tmp_path, [])
    assert not page.all("article")
    assert "0 of 0" in page.text


def test_an_image_is_embedded_once(tmp_path: Path, images: Path) -> None:
    page = made(tmp_path, [item(), item(file_name="two.jpg"), item("duplicate"), item(file_name="none.png")], images)
    assert [image["href"] for image in page.all("image")] == [
        "data:image/png;base64," + base64.b64encode(png()).decode(),
        "data:image/jpeg;base64," + base64.b64encode(jpeg()).decode(),
    ]
    ids = [image["id"] for image in page.all("image")]
    assert [use["href"] for use in page.all("use")] == ["#" + ids[0], "#" + ids[1], "#" + ids[0]]
    assert page.text.count(NOT_AT_HAND) == 1


def test_whose_size_counts(tmp_path: Path, images: Path) -> None:
    """The record's, in whose pixels the boxes are; else the image's; else enough for the boxes."""
    unknown: dict[str, Any] = {"width": None, "height": None}
    page = made(
        tmp_path,
        [item(), item(**unknown), item(file_name="two.jpg", **unknown), item(file_name="none", **unknown)],
        images,
    )
    boxes = [svg["viewbox"] for svg in page.all("svg") if "viewbox" in svg]
    assert boxes == ["0 0 640 480", "0 0 4 3", "0 0 5 7", "0 0 317.1 422.1"]


def test_only_images_inside_the_folder(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    (images / "sub").mkdir()
    (images / "page.png").write_bytes(b"<svg onload=alert(1)>")
    (images / "cut.png").write_bytes(png()[:20])
    (images / "cut.jpg").write_bytes(jpeg()[:12])
    (images / "empty.png").write_bytes(png(0, 3))
    (images / "large.png").write_bytes(png() + bytes(LARGEST_IMAGE))
    os.mkfifo(images / "pipe.png")
    names: list[object] = ["../secret.png", "sub/../../secret.png", "..\\secret.png", "sub\\..\\..\\secret.png"]
    names += [
        str(tmp_path / "secret.png"),
        "C:\\one.png",
        "C:one.png",
        "\\one.png",
        "",
        ".",
        "sub",
        "one.png\0",
        "x" * 5000,
    ]
    names += [HOSTILE, "page.png", "cut.png", "cut.jpg", "empty.png", "large.png", "pipe.png", None, 7, ["one.png"]]
    page = made(tmp_path, [item(file_name=name) for name in names], images)
    assert not page.all("image")
    assert page.text.count(NOT_AT_HAND) == len(names)
    nameless = item()
    del nameless["file_name"]
    assert NOT_AT_HAND in made(tmp_path, [nameless], images).text
    (images / "sub" / "in.png").symlink_to(tmp_path / "secret.png")  # the folder's owner may link as they please
    assert len(made(tmp_path, [item(file_name="sub/in.png")], images).all("image")) == 1


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    page = made(
        tmp_path,
        [item(image_id=HOSTILE, verb=HOSTILE, label=HOSTILE, truth_name=HOSTILE, file_name=HOSTILE), MISSED],
    )
    assert len(page.all("script")) == 1
    assert len(page.all("article")) == 2
    assert "\"'><script>alert(1)</script>&\\x00" in "".join(page.text)
    assert "\x00" not in page.raw
    allowed = {"class", "data-error", "data-score", "data-words"}
    assert all(set(card) == allowed for card in page.all("article"))


def test_the_page_is_alone(tmp_path: Path, images: Path) -> None:
    """Nothing is loaded from anywhere, and no script runs but the page's own."""
    page = made(tmp_path, [item(), MISSED], images)
    assert "http:" not in page.raw
    assert "https:" not in page.raw
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "a", "base")]
    for tag, attributes in page.elements:
        assert not {"src", "action", "onclick", "onload"} & set(attributes)
        assert attributes.get("href", "#").startswith(("#", "data:image/")), tag
    policy = page.all("meta", http_equiv="Content-Security-Policy")[0]["content"]
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, images: Path) -> None:
    items = [item(error) for error in STYLES if not error.startswith("false")]
    first = made(tmp_path, items, images).raw
    assert made(tmp_path, items, images).raw == first
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["index.html"]


def test_pictures_that_the_folder_lacks_are_told(
    tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item(), item(image_id="b", file_name="none.jpg"), item(), item(image_id="c", file_name=None)]
    made(tmp_path, items[:1], images)
    made(tmp_path, items)
    assert capsys.readouterr().err == ""
    made(tmp_path, items, images)
    assert capsys.readouterr().err == (
        f'hoicli: --images {images}: no picture of 2 of the gallery\'s 3 images (the first: "none.jpg"); their boxes '
        "stand on empty sheets\n"
    )


def test_boxes_beyond_the_image_and_without_area(tmp_path: Path) -> None:
    page = made(
        tmp_path, [item(predicted=[[-50, -20, 900, 700], [30, 30, 30, 30]], truth=[[9, 9, 3, 3], [1, 1, 2, 2]])]
    )
    assert all(float(rectangle["width"]) >= 0 for rectangle in page.all("rect"))
    assert all(0 <= float(text["y"]) <= 480 for text in page.all("text"))


def test_whole_or_not_at_all(tmp_path: Path) -> None:
    broken = [item(), {**item(), "error": "none such"}]
    with pytest.raises(KeyError):
        made(tmp_path, broken)
    assert not list(tmp_path.iterdir())
    before = made(tmp_path, [item()]).raw
    with pytest.raises(KeyError):
        made(tmp_path, broken)
    assert page_in(tmp_path / "page").raw == before
    assert len(list((tmp_path / "page").iterdir())) == 1


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder, images, words in (
        (tmp_path / "page", tmp_path / "none", "there is no such folder"),
        (tmp_path / "file", None, "is a file; give a folder"),
        (tmp_path / "a" / "b", None, "make it first"),
    ):
        with pytest.raises(UsageError, match=words):
            write_gallery(str(folder), [item()], None if images is None else str(images))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
