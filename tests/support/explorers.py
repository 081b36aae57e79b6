"""What tests of explorers share: scenes of two detectors that err in every way, and a written page read back."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.project import ROOT, Data, Record, written
from tests.support.tiny import png

VERBS = {"bicycle": ("ride", "hold", "wash"), "horse": ("ride", "feed", "hold"), "cup": ("hold", "drink_with", "wash")}
STRANGE = "\"><script>alert(1)</script>&'\N{SNOWMAN}\u202e"
"""A name as a hostile file would have it."""


def scenes(images: int = 40, seed: int = 0) -> tuple[list[Record], list[Record], list[Record]]:
    """(ground truth, predictions of one detector, of another) of `images` images with some of HICO-DET's classes. The
    other is worse but for one verb of each object. Objects are of all sizes, and near or far."""
    draw = random.Random(seed)
    truth: list[Record] = []
    found: Data = ([], [])
    for number in range(images):
        name = f"image_{number:03d}" + (STRANGE if number == 7 else "")
        boxes: list[list[float]] = []
        labels: list[str] = []
        hois: list[Record] = []
        for _ in range(draw.randint(1, 3)):
            thing, at = draw.choice(sorted(VERBS)), len(boxes)
            x, y, away, side = draw.uniform(0, 200), draw.uniform(0, 200), draw.uniform(0, 150), draw.uniform(20, 140)
            boxes += [[x, y, x + 80, y + 160], [x + away, y + 60, x + away + side, y + 60 + side]]
            labels += ["person", thing]
            chosen = draw.sample(VERBS[thing], draw.randint(1, 2))
            hois += [{"subject": at, "object": at + 1, "verb": verb} for verb in chosen]
        if number == 3:  # which has no predictions: a class that is missed wholly
            boxes += [[10.0, 10.0, 60.0, 150.0], [40.0, 60.0, 140.0, 160.0]]
            labels += ["person", "bicycle"]
            hois.append({"subject": len(boxes) - 2, "object": len(boxes) - 1, "verb": "park"})
        whole = {"image_id": name, "file_name": f"{name}.png", "width": 480, "height": 400}
        truth.append({**whole, "boxes": boxes, "labels": labels, "hois": hois})
        for records, second in zip(found, (False, True), strict=True):
            if number == 3:
                continue  # an image without predictions
            records.append({"image_id": name, **_detected(draw, boxes, labels, hois, second)})
    return truth, *found


def _detected(draw: random.Random, boxes: list[Any], labels: list[str], hois: list[Any], second: bool) -> Record:
    """Every annotated pair twice, moved by a share of its size; each with every verb of its object; and pairs of boxes
    that do not belong together."""
    noise = (0.16 if second else 0.1) * draw.choice((0.5, 1.0, 2.0))
    moved = [[value + draw.gauss(0, noise * (box[2] - box[0])) for value in box] for _ in range(2) for box in boxes]
    moved = [[min(x1, x2 - 1), min(y1, y2 - 1), x2, y2] for x1, y1, x2, y2 in moved]
    people = [at for at, label in enumerate(labels * 2) if label == "person"]
    things = [at for at, label in enumerate(labels * 2) if label != "person"]
    said = []
    for person in people:
        for thing in things:
            if draw.random() < 0.6:
                for number, verb in enumerate(VERBS[(labels * 2)[thing]]):
                    ends = person % len(boxes), thing % len(boxes)
                    right = any((hoi["subject"], hoi["object"], hoi["verb"]) == (*ends, verb) for hoi in hois)
                    sure = 20 if number == 0 and second else 5
                    score = round(draw.betavariate(sure, 3) if right else draw.betavariate(2, sure), 4)
                    said.append({"subject": person, "object": thing, "verb": verb, "score": score})
    if draw.random() < 0.3:  # and a pair beyond all ground truth, of a class with and of one without any
        moved += [[450.0, 375.0, 470.0, 395.0], [455.0, 380.0, 478.0, 398.0]]
        pair = {"subject": len(moved) - 2, "object": len(moved) - 1}
        said += [{**pair, "verb": "hold", "score": 0.875}, {**pair, "verb": "inspect", "score": 0.125}]
    return {"boxes": moved, "labels": [*(labels * 2), "person", "cup"][: len(moved)], "hois": said}


def write_scenes(folder: Path, images: int = 40, seed: int = 0) -> tuple[Path, Path, Path, Path]:
    """(gt, one model, another, folder of pictures); pictures of all images but two, one of which is no picture."""
    made = scenes(images, seed)
    names = ("gt", "one", "two")
    paths = [written(folder / f"{name}.jsonl", found) for name, found in zip(names, made, strict=True)]
    pictures = folder / "images"
    pictures.mkdir()
    for record in made[0]:
        if "/" not in record["file_name"]:
            (pictures / record["file_name"]).write_bytes(png(48, 40))
    (pictures / "image_005.png").unlink(missing_ok=True)
    (pictures / "image_006.png").write_bytes(b"<svg onload=alert(1)>")
    return (*paths, pictures)  # type: ignore[return-value]


def chunks_of(page: Path) -> dict[str, Any]:
    """Every column and JSON value of a page, a folder or one file, as the page decodes it."""
    if page.is_dir():
        texts = [path.read_text() for path in sorted((page / "data").iterdir())]
        form = r'explorer\.take\("([^"]+)","(\w+)","([A-Za-z0-9+/=]*)"\);\n'
    else:
        texts = [line + "\n" for line in page.read_text().splitlines() if ' id="data/' in line]
        form = r'<script type="text/plain" id="data/([^"]+)" data-kind="(\w+)">([A-Za-z0-9+/=]*)</script>\n'
    found = {}
    for text in texts:
        match = re.fullmatch(form, text)
        assert match is not None, text[:80]
        data = gzip.decompress(base64.b64decode(match[3]))
        found[match[1]] = json.loads(data) if match[2] == "json" else np.frombuffer(data, dtype=f"<{match[2]}")
    return found


def facts_of(page: Path, name: str = "facts") -> Any:
    """What the page knows but columns; name: or "images"."""
    return chunks_of(page)[name]


def columns_of(page: Path, prefix: str) -> dict[str, NDArray[Any]]:
    """The columns of `truth`, of a model (`model0`), or of the numbers of classes on a part (`view0`)."""
    start = f"{prefix}."
    return {name.removeprefix(start): of for name, of in chunks_of(page).items() if name.startswith(start)}


def predictions_of(folder: Path, model: str = "model0") -> list[tuple[Any, ...]]:
    """Every prediction of a written explorer, in its order: (-score, image, verb, object, type, relation, place of the
    truth beside it in its image, its IoU in steps, its boxes)."""
    facts, images, truth, columns = (
        facts_of(folder), facts_of(folder, "images"), columns_of(folder, "truth"), columns_of(folder, model)
    )  # fmt: skip
    first = {image: int(np.searchsorted(truth["image"], image)) for image in range(len(images["id"]))}
    rows = []
    for row in range(len(columns["score"])):
        image = int(columns["image"][row])
        verb, name = facts["classes"][columns["interaction"][row]]
        beside = int(columns["truth"][row])
        boxes = columns["boxes"].reshape(-1, 4)[columns["start"][image] :]
        ends = [boxes[columns[end][row]].tolist() for end in ("subject", "object")]
        steps = int(columns["iou_subject"][row]), int(columns["iou_object"][row])
        rows.append((-float(columns["score"][row]), images["id"][image], facts["verbs"][verb], name,
                     facts["types"][columns["error"][row]][0], facts["relations"][columns["relation"][row]],
                     None if beside < 0 else beside - first[image], steps, ends))  # fmt: skip
    return rows


def photographed(folder: Path, sized: bool) -> tuple[Path, Path, dict[tuple[int, int], tuple[int, int, int]]]:
    """(gt, predictions, the colour at some places of the stored pixels) of eight photographs of 96 x 64 in
    `folder`/images, each of another Exif orientation; sized: whether the records say how large they are."""
    from PIL import Image

    colours = {(24, 16): (220, 30, 30), (72, 16): (30, 200, 30), (24, 48): (30, 30, 220), (72, 48): (230, 220, 40)}
    picture = Image.new("RGB", (96, 64))
    for (x, y), colour in colours.items():
        picture.paste(colour, (x - 24, y - 16, x + 24, y + 16))
    (folder / "images").mkdir()
    records = []
    for turned in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turned
        name = f"turned_{turned}"
        picture.save(folder / "images" / f"{name}.jpg", exif=exif, quality=95)
        size = {"width": 96, "height": 64} if sized else {}
        boxes = {"boxes": [[2.0, 2.0, 40.0, 60.0], [50.0, 2.0, 90.0, 60.0]], "labels": ["person", "cup"]}
        records.append({"image_id": name, "file_name": f"{name}.jpg", **size, **boxes})
    hoi = {"subject": 0, "object": 1, "verb": "hold"}
    gt = written(folder / "gt.jsonl", [{**record, "hois": [hoi]} for record in records])
    said = [{**record, "hois": [{**hoi, "score": 0.5}]} for record in records]
    return gt, written(folder / "preds.jsonl", said), colours


@contextmanager
def serving(words: Sequence[str]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """(the address, the process) of `hoicli explore --serve`."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's job in the background ignores Ctrl-C
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hoicli", "explore", "--serve", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "Ctrl-C ends it" in line)
        yield re.findall(r"http://127\.0\.0\.1:\d+/", said)[0], process
    finally:
        process.kill()
        process.communicate()
