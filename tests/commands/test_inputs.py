"""No file that a run reads is written over, however it learned of the file (`hoicli.io.file_claims`)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.project import EIGHT, FIXTURES, GT, PREDICTIONS, Hoicli, refusal

DATA = ("--gt", "gt.jsonl", "preds.jsonl")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fixtures, and a file of each other kind, in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(GT, "gt.jsonl")
    shutil.copy(PREDICTIONS, "preds.jsonl")
    shutil.copy(PREDICTIONS, "other.jsonl")
    shutil.copytree(EIGHT / "images", "images")
    ids = [json.loads(line)["image_id"] for line in GT.read_text().splitlines()]
    Path("parts.txt").write_text("".join(f"{image_id}\tday\n" for image_id in ids))
    Path("own.json").write_text(json.dumps({"name": "own", "like": "diag"}))
    os.link("other.jsonl", "cell.png")
    os.link(IMAGE, "image.png")
    os.link(IMAGE, "image.html")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


SLICE, PROTOCOL = ("--slice", "parts.txt"), ("--protocol", "own.json")
IMAGE = "images/" + sorted(path.name for path in (EIGHT / "images").iterdir())[0]
CALLS = [
    *((name, *SLICE, *DATA, "-o", "parts.txt") for name in ("eval", "match", "diagnose")),
    *((name, *PROTOCOL, *DATA, "-o", "own.json") for name in ("eval", "match", "diagnose", "confusion", "curves")),
    *(("compare", *options, *DATA, "other.jsonl", "-o", options[1]) for options in (SLICE, PROTOCOL)),
    ("show", "--images", "images", *DATA, "-o", "image.png"),
    ("corrupt", "--images", "images", "--save-images", "out", "--corruption", "jpeg", "gt.jsonl", "-o", IMAGE),
    ("mask", "--images", "images", "--save-images", "masked", "gt.jsonl", "-o", IMAGE),
]  # fmt: skip


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
@pytest.mark.parametrize("linked", [False, True], ids=["", "linked"])
def test_every_file_that_is_read_stays(hoicli: Hoicli, words: tuple[str, ...], linked: bool) -> None:
    Path("out").mkdir()
    Path("masked").mkdir()
    *words_, target = words
    if linked:
        name = f"linked{Path(target).suffix}"
        os.link(target, name)
        target = name
    before = contents()
    assert f"hoicli: {words[-2]} {target}: is an input, too (" in refusal(hoicli(*words_, target), 2).splitlines()[-1]
    assert contents() == before


def test_no_folder_for_temporary_files(hoicli: Hoicli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = FIXTURES / "foreign/instances_test2015.json"
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(here / "nowhere")])
        result = hoicli("eval", "--gt", dump, "preds.jsonl")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith("TMPDIR: no folder takes temporary files")
