"""How time and memory grow with the number of images, measured and drawn.

    python -m tests.support.growth [--images 1000,10000,100000,1000000] [--triplets 10] [--folder bench-output]
                           [--out fixtures/scale/growth.svg]

Makes dumps of so many images (a million take 1.3 GB), runs each command once on each, prints a Markdown table and draws
both curves. Above a million, `FOR_LARGE` alone are run. What was measured is kept in FOLDER/growth-TRIPLETS.jsonl, so
that an interrupted run goes on where it was; --again measures anew. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from hoicli.io.outputs import atomic_path
from tests.bench.measuring import HOICLI, PYTHON, Table, apart, machine, measure, say

FLOOR = "floor: every line"
COMMANDS = ("eval --protocol hico", "eval --protocol all", "match --protocol hico", "diagnose", "pairstats", "validate")
LARGE, FOR_LARGE = 1_000_000, (FLOOR, "eval --protocol hico")
"""What is run on more images than that."""
BLOCK = 10_000
"""Images made at a time; a smaller dump is the beginning of a larger one."""

COLOURS = ("#555555", "#0072B2", "#56B4E9", "#009E73", "#D55E00", "#CC79A7", "#E69F00")
"""The floor's grey and Okabe and Ito's, in the order of `FLOOR` and `COMMANDS`."""


@dataclass(frozen=True)
class Point:
    """One command on one dump."""

    command: str
    images: int
    seconds: float
    peak: float
    """MiB."""


def make_dump(truth: Path, predictions: Path, images: int, triplets: int) -> None:
    """Ground truth of two people with an object, two triplets each image; `triplets` predictions of shifted boxes."""
    from hoicli.vocabulary.datasets import load

    interactions = load("hico").interactions
    of_object: dict[str, list[str]] = {}
    for verb, name in interactions:
        of_object.setdefault(name, []).append(verb)
    with (
        atomic_path(str(truth)) as truth_part,
        atomic_path(str(predictions)) as predictions_part,
        open(truth_part, "wb") as truth_file,
        open(predictions_part, "wb") as predictions_file,
    ):
        for start in range(0, images, BLOCK):
            for annotated, found in _block(start, min(BLOCK, images - start), triplets, of_object):
                truth_file.write(orjson.dumps(annotated) + b"\n")
                predictions_file.write(orjson.dumps(found) + b"\n")


def _block(start: int, count: int, triplets: int, of_object: dict[str, list[str]]) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng([17, start])
    names = list(of_object)
    corners = rng.uniform(0, 300, (BLOCK, 3, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(40, 300, (BLOCK, 3, 2))], axis=2)
    # each person and the object twice: once near, once astray
    shifted = np.repeat(boxes, 2, axis=1) + rng.normal(0, 1, (BLOCK, 6, 4)) * np.tile([5, 40], 3)[:, None]
    shifted[..., 2:] = np.maximum(shifted[..., 2:], shifted[..., :2] + 1)
    choice = rng.integers(0, len(names), BLOCK).tolist()
    first = rng.integers(0, 1000, BLOCK).tolist()
    scores = rng.random((BLOCK, triplets)).tolist()
    rows = zip(boxes.round().tolist(), shifted.round(2).tolist(), choice, first, scores, strict=True)
    made = []
    for image, (real, found, thing, verb, ranks) in enumerate(rows, start=start):
        if image == start + count:
            break
        name = names[thing]
        verbs = of_object[name]
        image_id = f"image_{image:07}"
        people, wide = ("person", "person"), len(verbs)
        annotated = {
            "image_id": image_id,
            "width": 640,
            "height": 640,
            "boxes": real,
            "labels": [*people, name],
            "hois": [{"subject": s, "object": 2, "verb": verbs[(verb + s) % wide]} for s in (0, 1)],
        }
        # eight pairs, then the next verb
        hois = [
            {"subject": i & 3, "object": 4 + (i >> 2 & 1), "verb": verbs[(verb + (i >> 3)) % wide], "score": score}
            for i, score in enumerate(ranks)
        ]
        labels = [*people, *people, name, name]
        made.append((annotated, {"image_id": image_id, "boxes": found, "labels": labels, "hois": hois}))
    return made


def measured(folder: Path, sizes: Sequence[int], triplets: int, *, repeat: int = 3, again: bool = False) -> list[Point]:
    """Every command on a dump of each size (`repeat` times up to 10,000 images) that was not measured before."""
    kept = folder / f"growth-{triplets}.jsonl"
    if again:
        kept.unlink(missing_ok=True)
    points = [Point(**json.loads(line)) for line in kept.read_text().splitlines()] if kept.exists() else []
    for images in sizes:
        truth, found = (folder / f"growth_{images}_{triplets}_{name}.jsonl" for name in ("gt", "predictions"))
        if not found.exists():
            say(f"making {images:,} images")
            apart(make_dump, truth, found, images, triplets)
        runs: dict[str, tuple[str, ...]] = {FLOOR: (*PYTHON, "-m", "tests.bench.floor", "lines", str(found))}
        runs |= {name: (*HOICLI, *name.split(), "--gt", str(truth), str(found)) for name in COMMANDS}
        for name, command in runs.items():
            if images > LARGE and name not in FOR_LARGE:
                continue
            if any((point.command, point.images) == (name, images) for point in points):
                continue
            cost = measure(command, repeat if images <= 10_000 else 1)
            points.append(Point(name, images, round(cost.seconds, 3), round(cost.peak, 1)))
            with kept.open("a") as stream:
                stream.write(json.dumps(asdict(points[-1])) + "\n")
            say(f"  {cost.seconds:8.2f} s  {cost.peak:6.0f} MiB  {images:9,} images  {name}")
    return [point for point in points if point.images in sizes]


def table(points: Sequence[Point]) -> Table:
    """A row a command: seconds and MiB for each size."""
    sizes = sorted({point.images for point in points})
    by_place = {(point.command, point.images): point for point in points}
    header = ("seconds / peak MiB", *(f"{size:,} images" for size in sizes))
    rows = []
    for name in (FLOOR, *COMMANDS):
        found = [by_place.get((name, size)) for size in sizes]
        rows.append((name, *(f"{point.seconds:.2f} / {point.peak:.0f}" if point else "" for point in found)))
    return Table(header, rows)


def draw(points: Sequence[Point], path: str) -> None:
    """Seconds and memory against images, both logarithmic; the same points give the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings: Any = {"svg.hashsalt": "hoicli", "svg.fonttype": "none", "font.size": 9.0, "font.family": "sans-serif"}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(7.0, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2)
        for ax, what, title in zip(panels, ("seconds", "peak"), ("seconds", "peak memory, MiB"), strict=True):
            for name, colour in zip((FLOOR, *COMMANDS), COLOURS, strict=True):
                line = sorted((point.images, getattr(point, what)) for point in points if point.command == name)
                style = "--" if name == FLOOR else "-"
                ax.plot(
                    *zip(*line, strict=True), style, marker="o", markersize=3, color=colour, label=name, linewidth=1.2
                )
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlabel("images")
            ax.set_title(title, fontsize=9.0)
            ax.grid(True, color="#dddddd", linewidth=0.5)
            ax.spines[["top", "right"]].set_visible(False)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        with atomic_path(path, "--out") as temporary:
            figure.savefig(temporary, format=Path(path).suffix[1:], metadata={"Date": None})


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.growth", description="Growth of time and memory.")
    parser.add_argument("--folder", type=Path, default=Path("bench-output"), help="for dumps and measurements")
    parser.add_argument("--images", default="1000,10000,100000,1000000", help="sizes, with commas between")
    parser.add_argument("--triplets", type=int, default=10, help="predictions an image")
    parser.add_argument("--out", help="the figure, an .svg")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.images.split(",")]
    points = measured(options.folder, sizes, options.triplets, again=options.again)
    print(f"{machine()}- {options.triplets} predicted triplets an image, each command run once "
          f"(thrice up to 10,000 images)\n\n{table(points).markdown()}", end="")  # fmt: skip
    if options.out:
        draw(points, options.out)


if __name__ == "__main__":
    main()
