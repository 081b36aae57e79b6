"""What tests of explorers share: scenes of two detectors that err in every way, and a written explorer read back."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.tiny import png

Record = dict[str, Any]

VERBS = {
    "bicycle": ("ride", "hold", "wash"),
    "horse": ("ride", "feed", "hold"),
    "cup": ("hold", "drink_with"),
}
STRANGE = "\"><script>alert(1)</script>&'\N{SNOWMAN}\u202e"
"""A name as a hostile file would have it."""


def scenes(images: int = 40, seed: int = 0) -> tuple[list[Record], list[Record], list[Record]]:
    """(ground truth, predictions of one detector, of another) of `images` images of HICO-DET's classes."""
    draw = random.Random(seed)
    truth: list[Record] = []
    found: tuple[list[Record], list[Record]] = ([], [])
    for number in range(images):
        name = f"image_{number:03d}" + (STRANGE if number == 7 else "")
        boxes: list[list[float]] = []
        labels: list[str] = []
        hois: list[Record] = []
        for _ in range(draw.randint(1, 3)):
            thing, at = draw.choice(sorted(VERBS)), len(boxes)
            x, y = draw.uniform(0, 300), draw.uniform(0, 200)
            boxes += [[x, y, x + 80, y + 160], [x + 40, y + 60, x + 140, y + 170]]
            labels += ["person", thing]
            chosen = draw.sample(VERBS[thing], draw.randint(1, 2))
            hois += [{"subject": at, "object": at + 1, "verb": verb} for verb in chosen]
        whole = {"image_id": name, "file_name": f"{name}.png", "width": 480, "height": 400}
        truth.append({**whole, "boxes": boxes, "labels": labels, "hois": hois})
        for records, noise in zip(found, (12.0, 25.0), strict=True):
            if number == 3:
                continue  # an image without predictions
            records.append({"image_id": name, **_detected(draw, boxes, labels, hois, noise)})
    return truth, *found


def _detected(draw: random.Random, boxes: list[Any], labels: list[str], hois: list[Any], noise: float) -> Record:
    """Every annotated pair twice, moved; each with every verb of its object; and pairs of boxes that do not belong."""
    moved = [[value + draw.gauss(0, noise) for value in box] for _ in range(2) for box in boxes]
    moved = [[min(x1, x2 - 1), min(y1, y2 - 1), x2, y2] for x1, y1, x2, y2 in moved]
    people = [at for at, label in enumerate(labels * 2) if label == "person"]
    things = [at for at, label in enumerate(labels * 2) if label != "person"]
    said = []
    for person in people:
        for thing in things:
            if draw.random() < 0.6:
                for verb in VERBS[(labels * 2)[thing]]:
                    right = any(
                        (hoi["subject"], hoi["object"], hoi["verb"]) == (person % len(boxes), thing % len(boxes), verb)
                        for hoi in hois
                    )
                    score = round(draw.betavariate(5, 3) if right else draw.betavariate(2, 5), 4)
                    said.append({"subject": person, "object": thing, "verb": verb, "score": score})
    if draw.random() < 0.3:  # and a pair beyond all ground truth
        moved += [[450.0, 375.0, 470.0, 395.0], [455.0, 380.0, 478.0, 398.0]]
        said.append({"subject": len(moved) - 2, "object": len(moved) - 1, "verb": "hold", "score": 0.875})
    return {"boxes": moved, "labels": [*(labels * 2), "person", "cup"][: len(moved)], "hois": said}


def write_scenes(folder: Path, images: int = 40, seed: int = 0) -> tuple[Path, Path, Path, Path]:
    """(gt, one model, another, folder of pictures); pictures of all images but two, one of which is no picture."""
    paths = tuple(folder / f"{name}.jsonl" for name in ("gt", "one", "two"))
    for path, records in zip(paths, scenes(images, seed), strict=True):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    pictures = folder / "images"
    pictures.mkdir()
    for record in scenes(images, seed)[0]:
        if "/" not in record["file_name"]:
            (pictures / record["file_name"]).write_bytes(png(48, 40))
    (pictures / "image_005.png").unlink(missing_ok=True)
    (pictures / "image_006.png").write_bytes(b"<svg onload=alert(1)>")
    return (*paths, pictures)  # type: ignore[return-value]


def facts_of(folder: Path, name: str = "facts") -> Any:
    """What data/facts.js or data/images.js says."""
    text = (folder / "data" / f"{name}.js").read_text()
    return json.loads(text.removeprefix(f"explorer.{name}(").removesuffix(");\n"))


def columns_of(folder: Path, prefix: str) -> dict[str, NDArray[Any]]:
    """The columns of `truth` or of a model (`model0`), as the page decodes them."""
    found = {}
    for path in sorted((folder / "data").glob(f"{prefix}.*.js")):
        match = re.fullmatch(r'explorer\.chunk\("([^"]+)","([if][1248])","([A-Za-z0-9+/=]*)"\);\n', path.read_text())
        assert match is not None
        assert match[1] == path.name.removesuffix(".js")
        found[match[1].removeprefix(f"{prefix}.")] = np.frombuffer(base64.b64decode(match[3]), dtype=f"<{match[2]}")
    return found


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
