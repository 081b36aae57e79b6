"""The folder and the pictures: whole or not at all, nothing of others lost, whatever a record holds."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.explorers import STRANGE, chunks_of, facts_of, write_scenes
from tests.support.project import Hoicli, refusal, saved
from tests.support.tiny import png


def tree(folder: Path) -> dict[str, bytes | str]:
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return {str(one.relative_to(folder)): os.readlink(one) if one.is_symlink() else one.read_bytes() for one in paths}


def test_pictures_have_names_of_their_own(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, _, images = write_scenes(tmp_path)
    words = ("explore", "--gt", gt, one, "--images", images, "-o", tmp_path / "page")
    result = hoicli(*words)
    assert result.code == 0
    assert result.err.splitlines()[-1] == (
        f'hoicli: --images {images}: no picture of 3 of 40 images (the first: "image_005.png"); their boxes are drawn '
        "on blank sheets"
    )
    named = facts_of(tmp_path / "page", "images")
    assert [number for number, name in enumerate(named["picture"]) if not name] == [5, 6, 7]
    assert named["picture"][12] == "pictures/000012.png"
    drawn = tmp_path / "page/pictures/000012.png"
    assert drawn.read_bytes() == png(48, 40)
    assert drawn.is_symlink()
    first = tree(tmp_path / "page")
    assert hoicli(*words).code == 0  # an explorer is replaced
    assert tree(tmp_path / "page") == first
    for name in ("index.html", "page.css", "page.js"):  # nothing is loaded from elsewhere
        text = (tmp_path / "page" / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"https?:|@import|url\(|(inner|outer)HTML|insertAdjacent|eval\(|Function\(", text)


def test_one_file(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, two, images = write_scenes(tmp_path)
    for name, words in (("page.html", ()), ("page", ()), ("again.HTM", ())):
        assert hoicli("explore", "--gt", gt, one, two, *words, "-o", tmp_path / name).code == 0
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "again.HTM").read_bytes()
    file, folder = chunks_of(tmp_path / "page.html"), chunks_of(tmp_path / "page")
    assert file.keys() == folder.keys()
    notes = (file["facts"].pop("note"), folder["facts"].pop("note"))
    assert notes == ("no picture: this page is one file", "no picture: --images was not given")
    np.testing.assert_equal(file, folder)
    text = (tmp_path / "page.html").read_text()
    policy = re.findall(r"(?:script|style)-src 'sha256-([^']+)'", text)
    inside = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", text, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256("".join(one).encode()).digest()).decode() for one in inside}
    assert (len(inside), digests) == (2, set(policy))
    assert not re.findall(r"\b(?:src|href)=\"(?!#)|unsafe-inline", text.partition("<style>")[0])
    before = (tmp_path / "page.html").read_bytes()
    broken = saved(tmp_path / "broken.jsonl", one.read_text() + "{")
    for name in ("page.html", "new.html"):
        assert hoicli("explore", "--gt", gt, broken, "-o", tmp_path / name).code == 1
    assert (tmp_path / "page.html").read_bytes() == before
    result = hoicli("explore", "--gt", gt, one, "--images", images, "-o", tmp_path / "new.html")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"--images {images}: one file holds no pictures; leave it out, or give -o DIR" in result.err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".", "new"))]
    gt = gt.rename(tmp_path / "gt.html")
    result = hoicli("explore", "--gt", gt, one, "-o", gt)
    assert (result.code, f"-o {gt}: is an input, too" in result.err, gt.stat().st_size > 0) == (2, True, True)


def test_only_images_inside_the_folder(hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    images = tmp_path / "images"
    (images / "sub").mkdir(parents=True)
    os.mkfifo(images / "pipe.png")
    (images / "in.png").symlink_to(tmp_path / "secret.png")  # the folder's owner may link as they please
    names = ["../secret.png", "sub/../../secret.png", "..\\secret.png", str(tmp_path / "secret.png"), "C:\\one.png", "",
             ".", "sub", "one.png\0", "x" * 5000, STRANGE, "pipe.png", None, 7, ["in.png"], "in.png"]  # fmt: skip
    record = {"boxes": [[0, 0, 9, 9], [0, 0, 19, 19]], "labels": ["person", "cup"]}
    gt, preds = tmp_path / "gt.jsonl", tmp_path / "preds.jsonl"
    hoi = {"subject": 0, "object": 1, "verb": "hold"}
    gt.write_text("".join(
        json.dumps({**record, "image_id": f"{number:02d}", "file_name": name, "hois": [hoi]}) + "\n"
        for number, name in enumerate(names)
    ))  # fmt: skip
    preds.write_text(json.dumps({**record, "image_id": "00", "hois": [{**hoi, "score": 0.5}]}) + "\n")
    assert hoicli("explore", "--gt", gt, preds, "--images", images, "-o", tmp_path / "page").code == 0
    found = facts_of(tmp_path / "page", "images")
    assert [bool(name) for name in found["picture"]] == [False] * (len(names) - 1) + [True]
    assert found["width"] == [None] * len(names)
    assert os.listdir(tmp_path / "page/pictures") == [f"{len(names) - 1:06d}.png"]


def test_no_folder_of_others_is_touched(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, _, images = write_scenes(tmp_path, images=4)
    folder = tmp_path / "page"
    folder.mkdir()
    assert hoicli("explore", "--gt", gt, one, "-o", folder).code == 0  # it is empty
    (folder / "notes.txt").write_text("mine")
    before = tree(folder)
    assert f"-o {folder}: there are other files in it" in refusal(hoicli("explore", "--gt", gt, one, "-o", folder), 2)
    assert tree(folder) == before
    (folder / "notes.txt").unlink()
    assert hoicli("explore", "--gt", gt, one, "--images", images, "-o", folder).code == 0  # its own are replaced
    result = hoicli("explore", "--gt", gt, one, "--images", folder / "pictures", "-o", folder)
    assert (result.code, f"-o {folder}: is an input, too" in result.err) == (2, True)
    for name in ("data/results.csv", "pictures/mine.png"):  # where its own files are, too
        (folder / name).write_text("mine")
        result = hoicli("explore", "--gt", gt, one, "-o", folder)
        assert (result.code, f"-o {folder}: there are other files in it" in result.err) == (2, True)
        (folder / name).unlink()
    broken = saved(tmp_path / "broken.jsonl", one.read_text() + "{")
    before = tree(folder)
    assert hoicli("explore", "--gt", gt, broken, "-o", folder).code == 1
    assert hoicli("explore", "--gt", gt, broken, "-o", tmp_path / "new").code == 1
    assert tree(folder) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".", "new"))]
    assert images.is_dir()


@pytest.mark.parametrize(("words", "said"), [
    (("--serve", "-o", "page"), "give -o PAGE.html, the page to write, or --serve to look at it now; one of the two"),
    ((), "give -o PAGE.html, the page to write, or --serve to look at it now"),
    (("-o", "-"), "give -o DIR or -o PAGE.html, what to write, or --serve to look at the page now"),
    (("-o", "page", "two.jsonl", "three.jsonl"), "three.jsonl: the page shows one model or two"),
    (("-o", "page", "--slice", "verb"), "--slice verb: the page filters by verb, object and frequency anyway"),
    (("-o", "page", "--slice", "none"), "--slice none: there is no such slice or file"),
])  # fmt: skip
def test_wrong_calls(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write_scenes(tmp_path, images=2)
    (tmp_path / "three.jsonl").write_bytes((tmp_path / "one.jsonl").read_bytes())
    assert said in refusal(hoicli("explore", "--gt", "gt.jsonl", "one.jsonl", *words), 2)
    assert not (tmp_path / "page").exists()


def test_match_records_and_empty_streams_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, _, _ = write_scenes(tmp_path, images=4)
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--protocol", "diag", "--gt", gt, one, "-o", matches).code == 0
    assert (
        "explore needs the predictions themselves" in hoicli("explore", "--gt", gt, matches, "-o", tmp_path / "p").err
    )
    (tmp_path / "empty").write_text("")
    assert hoicli("explore", "--gt", gt, tmp_path / "empty", "-o", tmp_path / "p").code == 1
    assert not (tmp_path / "p").exists()


def test_the_ground_truth_may_come_from_a_pipe_and_models_may_have_one_image(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, _, _ = write_scenes(tmp_path, images=4)
    compressed = saved(tmp_path / "gt.jsonl.gz", gzip.compress(gt.read_bytes()))
    (tmp_path / "few.jsonl").write_text(one.read_text().splitlines()[0] + "\n")
    words = ("--name", "a", "--name", "b", "-o", tmp_path / "page", one, tmp_path / "few.jsonl")
    assert hoicli("explore", "--gt", compressed, *words).code == 0
    assert [model["name"] for model in facts_of(tmp_path / "page")["models"]] == ["a", "b"]
