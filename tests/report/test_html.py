"""The page by a strict parser: it loads nothing, and text of any origin stays text."""

from __future__ import annotations

import base64
import builtins
import html as entities
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hoicli.report.document import Cell, Document, Paragraph, Section, Table, number, pivoted, value_cell
from hoicli.report.html import POLICY
from hoicli.report.html import render as to_html
from hoicli.report.markdown import render as to_markdown
from tests.support.page import Page
from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import DASH, GT, MINUS, PREDICTIONS, page_of

HOSTILE = "<script>alert(1)</script>\"'&|`*_[x](y)\x00"


def test_loads_and_runs_nothing(hoicli: Hoicli) -> None:
    raw = hoicli("report", "--gt", GT, "--images", FIXTURES / "images", PREDICTIONS).out
    page = Page(raw)
    assert page.all("meta", content=POLICY)
    assert POLICY.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert "http" not in raw.replace('http-equiv="Content-Security-Policy"', "")
    assert "url(" not in raw
    assert "@import" not in raw
    assert not {"script", "link", "iframe", "object", "embed", "form", "img"} & {name for name, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert len(page.all("figure")) == len(page.all("svg", role="img")) == 7
    for attributes in page.all("svg", role="img"):
        assert attributes["aria-label"]


def test_pictures_are_embedded_once_and_scaled(tmp_path: Path, hoicli: Hoicli) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    for path in (FIXTURES / "images").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    name = "HICO_test2015_00000001.jpg"
    with image.open(folder / name) as picture:
        picture.resize((2400, 1600)).save(folder / name)
    page = page_of(hoicli, "--gt", GT, "--images", folder, PREDICTIONS)
    pictures = page.all("image")
    assert pictures
    assert {attributes["href"].split(",")[0] for attributes in pictures} == {"data:image/jpeg;base64"}
    assert len({attributes["href"] for attributes in pictures}) == len(pictures)
    assert len(page.all("use")) > len(pictures)
    sides = []
    for attributes in pictures:
        with image.open(io.BytesIO(base64.b64decode(attributes["href"].split(",")[1]))) as picture:
            sides.append(max(picture.size))
    assert max(sides) == 480
    (folder / name).write_bytes((folder / name).read_bytes()[:3000])  # cut off: an empty sheet, no traceback
    (folder / "HICO_test2015_00000007.jpg").write_bytes(b"GIF89a")
    less = page_of(hoicli, "--gt", GT, "--images", folder, PREDICTIONS)
    assert len(less.all("image")) == len(pictures) - 2


def test_without_pillow_and_matplotlib(tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in ("matplotlib", "PIL", "cv2"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    for name in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    page = page_of(hoicli, "--gt", GT, "--images", FIXTURES / "images", PREDICTIONS)
    assert page.all("image")
    assert len(page.all("figure")) == 7


def test_same_input_same_bytes(tmp_path: Path, hoicli: Hoicli) -> None:
    first = hoicli("report", "--gt", GT, PREDICTIONS).out
    assert hoicli("report", "--gt", GT, "-o", tmp_path / "r.html", PREDICTIONS).code == 0
    assert (tmp_path / "r.html").read_text() == first
    shuffled = tmp_path / PREDICTIONS.name
    shuffled.write_bytes(b"".join(reversed(PREDICTIONS.read_bytes().splitlines(keepends=True))))
    assert hoicli("report", "--gt", GT, shuffled).out == first
    assert str(tmp_path) not in first
    assert not re.search(r"\b20\d\d-\d\d-\d\d", first)


def test_hostile_text_stays_text(tmp_path: Path, hoicli: Hoicli) -> None:
    gt, predictions = tmp_path / "g<b>&'.jsonl", tmp_path / "p`|<i>.jsonl"
    for source, target in ((GT, gt), (PREDICTIONS, predictions)):
        records = [json.loads(line) for line in source.read_text().splitlines()]
        for record in records:
            record["image_id"] += HOSTILE
            if "file_name" in record:
                record["file_name"] = HOSTILE
        target.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = tmp_path / "rows.jsonl"
    row = {"metric": HOSTILE, "subset": HOSTILE, "value": 1.5, HOSTILE: HOSTILE, "tags": {HOSTILE: HOSTILE}}
    agree = {"metric": HOSTILE, "subset": HOSTILE, "value": 1.5, "unit": HOSTILE, "protocol": "agree"}
    robust = {"metric": "mri", "subset": HOSTILE, "value": 1.5, "protocol": HOSTILE, "tags": {"model": HOSTILE}}
    part = {**robust, "metric": "mean", "corruption": HOSTILE, "family": HOSTILE, "severity": 3}
    rows.write_text("".join(json.dumps(each) + "\n" for each in (row, agree, robust, part)))
    options = ("--title", HOSTILE[:-1], "--tag", f"model={HOSTILE[:-1]}", "--rows", rows, "--images", tmp_path)
    raw = hoicli("report", *options, "--gt", gt, predictions).out
    page = Page(raw)
    assert page.titles[0] == HOSTILE[:-1]
    assert "<script" not in raw
    assert not page.all("script")
    assert "".join(page.text).count(HOSTILE[:-1]) > 10
    markdown = hoicli("report", *options, "--gt", gt, predictions, "--format", "md").out
    outside = re.sub(r"(`+).*?\1", "", re.sub(r"(?m)^    .*$", "", markdown.replace("\\`", "")))
    assert "<script" not in outside
    assert entities.escape("<script>") in markdown
    for line in markdown.splitlines():
        assert not line.startswith("| ") or line.endswith(" |")


def test_an_interval_is_shown() -> None:
    row = {
        "metric": "mAP",
        "subset": "full",
        "value": 33.1,
        "unit": "%",
        "ci_low": 32.512,
        "ci_high": 33.696,
        "protocol": "p",
    }
    assert value_cell(row) == Cell("33.10", "[32.51, 33.70]")
    table = pivoted([row], "t", index=("protocol",))
    document = Document("t", ["lead"], [], [Section("a", "A", [Paragraph(["words"]), table])])
    page = Page(to_html(document).decode())
    assert page.table("protocol", "full") == [["p", "33.10 [32.51, 33.70]"]]
    assert b"| p | 33.10 \\[32.51, 33.70\\] |" in to_markdown(document)


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (None, "%", True, DASH),
        (1234567, "triplets", False, "1,234,567"),
        (-1.239, "%", True, f"{MINUS}1.24"),
        (-0.001, "%", True, "0.00"),
        (0.0, "%", True, "0.00"),
        (2.0, "%", True, "+2.00"),
        (0.12345, "kappa", False, "0.123"),
        (0.00123, "probability", False, "0.0012"),
    ],
)
def test_numbers(value: float | None, unit: str, signed: bool, text: str) -> None:
    assert number(value, unit, signed=signed) == text


def test_a_table_of_nothing_is_drawn() -> None:
    empty = Table("nothing", ["a"], [], 1)
    document = Document("t", [], [], [Section("s", "S", [empty])])
    assert Page(to_html(document).decode()).tables == [[["a"]]]
    assert b"| a |\n| --- |" in to_markdown(document)
