"""What the page knows: its facts as one script, and every column as a script of its own."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from hoicli.diagnosis.applied import ORACLES
from hoicli.diagnosis.columns import RELATIONS, STATES, ErrorTable, TruthTable
from hoicli.diagnosis.run import DiagnosedModel
from hoicli.errors import visible
from hoicli.evaluation.slices import Slice
from hoicli.explorer.columns import IOU_STEPS, chunks, model_columns, truth_columns
from hoicli.figures.styles import SERIES, STYLES
from hoicli.records.parsing import Record
from hoicli.version import __version__

SCRIPTS = ("data", "query", "parts", "drawing", "state", "filters", "views", "image", "start")
"""The page's scripts in their order; one file in the folder."""


@dataclass(frozen=True)
class Explored:
    """What an explorer shows: one or two models with the columns of each, the ground truth, the facts of the images by
    their ids (`pictures.image_facts`), and slices of images with their parts [parts, N] and of triplets.
    """

    models: Sequence[DiagnosedModel]
    tables: Sequence[ErrorTable]
    truth: TruthTable
    facts: Mapping[str, Record]
    of_images: Sequence[tuple[Slice, Any]] = ()
    of_triplets: Sequence[Slice] = ()

    @property
    def title(self) -> str:
        """The heading."""
        names = " and ".join(model.name for model in self.models)
        return f"{names} on {self.models[0].vocabulary.title}"


def page_files(explored: Explored, pictures: Sequence[str], note: str) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every file but the pictures. pictures: of each image, its address, "" for none at hand; note:
    what the page says where a picture is not at hand."""
    yield "page.css", "\n".join([_inks(), _own("kit.css"), _own("page.css")]).encode()
    yield "page.js", "\n".join(_own(f"{name}.js") for name in SCRIPTS).encode()
    yield "data/facts.js", b"explorer.facts(" + orjson.dumps(_facts(explored, note)) + b");\n"
    yield "data/images.js", b"explorer.images(" + orjson.dumps(_images(explored, pictures)) + b");\n"
    yield from chunks("truth", truth_columns(explored.truth))
    for number, table in enumerate(explored.tables):
        yield from chunks(f"model{number}", model_columns(table))
    title = html.escape(visible(f"{explored.title} - hoicli"))
    yield "index.html", _own("index.html").replace("TITLE", title).replace("VERSION", __version__).encode()


def _inks() -> str:
    """The colours of error types and series as a style sheet, which stands before the others."""
    inks = {f"e-{name}": style for name, style in STYLES.items()} | {f"s{at}": style for at, style in enumerate(SERIES)}
    return "\n".join(f".{name} {{ --ink: {style.colour}; }}" for name, style in inks.items())


def _own(name: str) -> str:
    return files("hoicli.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _facts(explored: Explored, note: str) -> Record:
    """Everything but columns. Arrays by class hold null where a class has no ground truth."""
    first = explored.models[0]
    vocabulary, protocol = first.vocabulary, first.diagnosis.protocol
    subsets = first.diagnosis.subsets(vocabulary)
    every = max(subsets, key=lambda name: len(subsets[name]))
    images = len(explored.truth.image_ids)
    return {
        "version": __version__,
        "title": visible(explored.title),
        "dataset": visible(vocabulary.title),
        "protocol": protocol.name,
        "threshold": protocol.threshold,
        "qualifier": vocabulary.qualifier,
        "types": [[name, STYLES[name].words] for name in STATES],
        "oracles": [[name, STYLES[name].words] for name in ORACLES],
        "relations": RELATIONS,
        "steps": IOU_STEPS,
        "verbs": [visible(name) for name in vocabulary.verbs],
        "labels": [visible(name) for name in vocabulary.objects],
        "classes": [[vocabulary.verb_ids[verb], visible(name)] for verb, name in vocabulary.interactions],
        "positives": first.diagnosis.positives.tolist(),
        "every": every,
        "groups": {name: sorted(members) for name, members in vocabulary.groups.items()},
        "images": images,
        "triplets": len(explored.truth.image),
        "note": note,
        "image_slices": [
            {
                "name": visible(slice_.name),
                "parts": [visible(part) for part in slice_.parts],
                "members": [np.flatnonzero(part).tolist() for part in members],
            }
            for slice_, members in explored.of_images
        ],
        "triplet_slices": [
            {"name": visible(slice_.name), "parts": list(slice_.parts)} for slice_ in explored.of_triplets
        ],
        "models": [_model(model, table) for model, table in zip(explored.models, explored.tables, strict=True)],
    }


def _model(model: DiagnosedModel, table: ErrorTable) -> Record:
    """A model's numbers: those of `diagnose --per-class`, row by row."""
    classes = len(model.vocabulary.interactions)
    number = model.vocabulary.interaction_ids
    means: dict[str, Any] = {"mAP": {}, "delta_mAP": {}, "mean_max_recall": {}, "count": {}}
    of_class: dict[str, Any] = {"AP": {}, "delta_AP": {}, "count": {}}
    signature = ""
    for row in model.rows(per_class=True, order=(), tags={}):
        metric, kind, signature = row["metric"], row.get("error") or row["oracle"], row["signature"]
        if "verb" in row:
            column = of_class[metric].setdefault(kind, [None] * classes)
            column[number[row["verb"], row[model.vocabulary.qualifier]]] = row["value"]
        else:
            means[metric].setdefault(kind, {})[row["subset"]] = row["value"]
    return {
        "name": visible(model.name),
        "signature": signature,
        "predictions": len(table.score),
        "uncounted": table.uncounted,
        "mAP": means["mAP"].get("none", {}),
        "recall": means["mean_max_recall"].get("none", {}),
        "gains": means["delta_mAP"],
        "counts": means["count"],
        "ap": of_class["AP"].get("none", [None] * classes),
        "class_gains": of_class["delta_AP"],
        "class_counts": of_class["count"],
    }


def _images(explored: Explored, pictures: Sequence[str]) -> Record:
    facts = [explored.facts[image_id] for image_id in explored.truth.image_ids]
    return {
        "id": [visible(image_id) for image_id in explored.truth.image_ids],
        "file": [visible(fact["file_name"] or "") for fact in facts],
        "width": [fact["width"] for fact in facts],
        "height": [fact["height"] for fact in facts],
        "picture": list(pictures),
    }
