"""Small inputs that once cost minutes, gigabytes, or a source: each must now come to its end, or to one line."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.converters.containers.source import Source
from hoicli.converters.containers.text import literal
from hoicli.converters.vlm import spoken_text as answers
from tests.hostile.readers import CORPUS, FOREIGN, GT, PREDICTIONS
from tests.support.costs import LARGER, require_linear
from tests.support.project import ROOT, Hoicli, MonkeyPatch, refusal

MEMBERS = 45_000
"""Of a list, in an answer that is just short enough to be read."""
UNCLOSED = '{"a":' * 25 + '{"b":[' + ",".join("1" * MEMBERS) + '],"c":"x'
WRAPPED = {
    "wrappers that are not closed": UNCLOSED,
    "the same in a fence": "```\n" + UNCLOSED,
    "half a list over and over": '{"a": ' * 25 + "[" + ",".join("1" * MEMBERS) + " x",
}


def answered(folder: Path, answer: str) -> Path:
    path = folder / "a.jsonl"
    row = {"file_name": "a_1.jpg", "width": 640, "height": 480, "response": answer}
    path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("name", WRAPPED)
def test_an_end_is_tried_a_few_times(hoicli: Hoicli, tmp_path: Path, name: str, monkeypatch: MonkeyPatch) -> None:
    read = 0
    value = answers._ValueReader.value

    def counted(reader: answers._ValueReader, depth: int) -> Any:
        nonlocal read
        read += 1
        return value(reader, depth)

    monkeypatch.setattr(answers._ValueReader, "value", counted)
    path = answered(tmp_path, WRAPPED[name])
    assert hoicli("convert", "--from", "vlm", "--coords", "pixels", path).code == 0
    assert MEMBERS < read < 8 * MEMBERS


def located(count: int) -> list[dict[str, Any]]:
    return [{"label": f"cup{number}", "box": [1, 2, 3, 4]} for number in range(count)]


def named(count: int) -> list[dict[str, Any]]:
    return [{"subject": "person", "object": f"cup{number}", "verb": "hold"} for number in range(count)]


def spaced(count: int) -> list[dict[str, Any]]:
    verb = "a" + " " * count + "b"
    return [{"human_box": [1, 2, 3, 4], "object_box": [1, 2, 3, 4], "object": "cup", "verb": verb}]


ANSWERS: dict[str, tuple[int, Callable[[int], str]]] = {
    "boxes and their names": (3000, lambda count: json.dumps(located(count) + named(count))),
    "a verb with a run of spaces": (50_000, lambda count: json.dumps(spaced(count))),
    "boxes without end": (60_000, lambda count: "<box></box>" * count),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_costs_its_length(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    size, made = ANSWERS[name]

    def work(answer: str) -> None:
        path = answered(tmp_path, answer)
        assert hoicli("convert", "--from", "vlm", "--coords", "pixels", path).code == 0

    require_linear(work, made(size // LARGER), made(size))


def test_an_answer_without_end_is_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = '[{"human_box":[1,2,3,4],"object_box":[1,2,3,4],"object":"cup","verb":"hold"}] '
    path.write_text(json.dumps({"file_name": "a_1.jpg", "response": whole + " " * 100_000 + whole}) + "\n")
    result = hoicli("convert", "--from", "vlm", "--coords", "pixels", path)
    assert result.out == ""
    assert "an answer of more than 100,000 characters: 1 " in result.err


def crowd(count: int, **more: Any) -> dict[str, Any]:
    """A record of nested boxes, each with a label of its own."""
    boxes = [[300 - at % 300, 220 - at % 220, 310 + at, 230 + at] for at in range(count)]
    hois = [{"subject": at, "object": at, "verb": "hold"} for at in range(count)]
    return {"image_id": "a", "boxes": boxes, "labels": [f"l{at}" for at in range(count)], "hois": hois, **more}


def test_masks_in_a_crowd(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "crowd.jsonl"

    def work(count: int) -> None:
        path.write_text(json.dumps(crowd(count)) + "\n")
        assert len(json.loads(hoicli("mask", path).out)["masks"]) == count

    require_linear(work, 400 // LARGER, 400)
    path.write_text(json.dumps(crowd(1001)) + "\n")
    said = refusal(hoicli("mask", path))
    assert said == f"{path}:1: boxes: more than 1,000 instances to mask in an image"


def test_the_masks_of_a_crowd_fit_into_a_comment(hoicli: Hoicli, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    path, images, out = tmp_path / "crowd.jsonl", tmp_path / "images", tmp_path / "out"
    images.mkdir()
    out.mkdir()
    (images / "b.jpg").write_bytes((CORPUS / "b.jpg").read_bytes())
    record = crowd(1000, file_name="b.jpg")
    path.write_text(json.dumps({**record, "boxes": [[0, 0, 9, 9]] * 1000}) + "\n")
    result = hoicli("mask", "--images", images, "--save-images", out, path)
    assert result.code == 0, result.err
    assert len(json.loads(result.out)["masks"]) == 1000


def pictures(folder: Path, *names: str) -> Path:
    """Records of copies of one image in `images`."""
    for name in names:
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((CORPUS / "b.jpg").read_bytes())
    records = [{**crowd(0), "image_id": name, "file_name": name} for name in names]
    (folder / "p.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder / "p.jsonl"


@pytest.mark.parametrize("command", ["mask", "corrupt"])
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_an_image_that_is_no_file(hoicli: Hoicli, tmp_path: Path, command: str, kind: str) -> None:
    pytest.importorskip("cv2")
    records = pictures(tmp_path, "a.jpg")
    image, out = tmp_path / "images/a.jpg", tmp_path / "out"
    out.mkdir()
    image.unlink()
    os.mkfifo(image) if kind == "pipe" else image.symlink_to(kind)
    said = refusal(hoicli(command, "--images", image.parent, "--save-images", out, records))
    assert said.startswith(f"{records}:1: file_name: ")
    assert "no file" in said or "no such file" in said
    assert not list(out.rglob("*.jpg"))


@pytest.mark.parametrize("command", ["mask", "corrupt"])
def test_a_linked_folder_inside_is_not_followed(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    pytest.importorskip("cv2")
    records = pictures(tmp_path, "sub/a.jpg")
    before = (tmp_path / "images/sub/a.jpg").read_bytes()
    link = tmp_path / "out" / ("sub" if command == "mask" else "jpeg/5")
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "images" / ("sub" if command == "mask" else "."))
    options = ("--corruption", "jpeg", "--severity", "5") if command == "corrupt" else ()
    words = (command, "--images", tmp_path / "images", "--save-images", tmp_path / "out", *options, records)
    assert "by a link; remove the link" in refusal(hoicli(*words))
    assert (tmp_path / "images/sub/a.jpg").read_bytes() == before
    assert len(list((tmp_path / "images").rglob("*.*"))) == 1


@pytest.mark.parametrize(("images", "out"), [("images", "images/sub"), ("images/sub", "images")])
def test_masked_images_never_replace_an_image(hoicli: Hoicli, tmp_path: Path, images: str, out: str) -> None:
    pytest.importorskip("cv2")
    records = pictures(tmp_path, "a.jpg", "sub/a.jpg", "sub/sub/a.jpg")
    before = {path: path.read_bytes() for path in (tmp_path / images).rglob("*.jpg")}
    lines = records.read_text().replace('"hois": []', '"hois": [{"subject": 0, "object": 0, "verb": "x"}]')
    lines = lines.replace('"boxes": []', '"boxes": [[0, 0, 9, 9]]').replace('"labels": []', '"labels": ["cup"]')
    names = ("a.jpg", "sub/a.jpg") if out == "images" else ("sub/a.jpg", "a.jpg")
    chosen = [line for name in names for line in lines.splitlines() if json.loads(line)["file_name"] == name]
    records.write_text("\n".join(chosen) + "\n")
    result = hoicli("mask", "--images", tmp_path / images, "--save-images", tmp_path / out, records)
    assert result.code == 1
    assert "an image could be overwritten" in result.err
    assert {path: path.read_bytes() for path in before} == before


def test_corrupted_images_never_replace_an_image(hoicli: Hoicli, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    records = pictures(tmp_path, "jpeg/5/a.jpg")
    folder = tmp_path / "images"
    words = ("corrupt", "--images", folder, "--save-images", folder, "--corruption", "jpeg", "--severity")
    assert "lies where --save-images" in refusal(hoicli(*words, 5, records))
    assert hoicli(*words, 4, records).code == 0


def test_triplets_of_an_image(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "l.npz"
    logits, boxes, ones = np.full((167, 600), 3, np.float16), np.full((167, 8), 0.5), np.ones((167, 1))
    np.savez(path, pred_logits=logits, pred_boxes=boxes, box_scores=ones, sizes=[480, 640], image_ids=[1])
    said = refusal(hoicli("convert", "--from", "logits", "--image-list", GT, path))
    assert said.endswith("l.npz: .pred_logits: 100,200 triplets, at most 100,000 an image; raise --threshold (0.1)")


def test_a_string_of_backslashes_costs_its_length() -> None:
    assert literal(rb"""["\\", 'a"b', "it's", '\x00\u00e9']""") == ["\\", 'a"b', "it's", "\0é"]

    def work(count: int) -> None:
        long = "\\\\" * count
        assert literal(f"{{'a': '{long}'}}".encode()) == {"a": "\\" * count}

    require_linear(work, 500_000 // LARGER, 500_000)


def test_a_compressed_file_in_a_pipe_is_measured_as_it_comes(tmp_path: Path) -> None:
    packed = gzip.compress((FOREIGN / "anno.mat").read_bytes() + bytes(100_000))
    script = "import sys; from hoicli.converters.containers.source import Source; print(Source('-').stored)"
    done = subprocess.run([sys.executable, "-c", script], input=packed, capture_output=True, check=True, cwd=ROOT)
    assert int(done.stdout) == len(packed)
    (tmp_path / "a.mat.gz").write_bytes(packed)
    assert Source(str(tmp_path / "a.mat.gz")).stored == len(packed)


def test_a_line_out_of_a_compressed_file_is_shorter(hoicli: Hoicli, tmp_path: Path) -> None:
    line = PREDICTIONS.read_bytes().splitlines()[0]
    padding = np.random.default_rng(0).integers(97, 101, 17 << 20, dtype=np.uint8).tobytes()
    data = line[:-1] + b',"x":"' + padding + b'"}\n'
    (tmp_path / "p.jsonl").write_bytes(data)
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(data, compresslevel=1))
    assert hoicli("eval", "--gt", GT, tmp_path / "p.jsonl").code == 0
    said = refusal(hoicli("eval", "--gt", GT, tmp_path / "p.jsonl.gz"))
    assert said.startswith(f"{tmp_path}/p.jsonl.gz:1: a line of more than 16 MiB; write one image a line")


def test_what_nobody_reads_is_not_looked_up(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"

    def work(count: int) -> None:
        hois = [{"subject": 0, "object": 0, "verb": f"q{at}"} for at in range(count)]
        path.write_text(json.dumps({"image_id": "a", "boxes": [[0, 0, 1, 1]], "labels": ["cup"], "hois": hois}) + "\n")
        rows = [json.loads(line) for line in hoicli("validate", path, "--format", "jsonl").out.splitlines()]
        unknown = next(row for row in rows if row["check"] == "unknown-label")
        assert (unknown["count"], "unknown verb 'q0'" in unknown["example"]) == (count, True)

    require_linear(work, 20_000 // LARGER, 20_000)


def _rows(count: int, **keys: Any) -> str:
    """Result rows of `count` models; `#` in a text is the model's number."""

    def made(number: int) -> dict[str, Any]:
        row = {"metric": "mAP", "subset": "full", "value": number, "n": 1, "unit": "%", "protocol": "hico"}
        row |= {"tags": {"model": f"m{number}"}, "signature": "protocol:hico|data:hico"}
        row |= json.loads(json.dumps(keys).replace("#", str(number)))
        return row

    return "".join(json.dumps(made(number)) + "\n" for number in range(count))


ROWS_TO_TABLES: dict[str, tuple[int, dict[str, Any], tuple[str, ...]]] = {
    "a note each": (2500, {"note": "n#"}, ()),
    "a setting each": (2500, {"signature": "protocol:hico|data:hico|gt:#"}, ()),
    "a mean over very many runs": (10_000, {"tags": {"model": "m", "seed": "#"}}, ("--over", "seed")),
}


@pytest.mark.parametrize("name", ROWS_TO_TABLES)
def test_a_table_costs_its_rows(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    size, keys, arguments = ROWS_TO_TABLES[name]

    def work(rows: str) -> None:
        (tmp_path / "rows.jsonl").write_text(rows)
        assert hoicli("table", *arguments, tmp_path / "rows.jsonl").code == 0

    require_linear(work, _rows(size // LARGER, **keys), _rows(size, **keys))
