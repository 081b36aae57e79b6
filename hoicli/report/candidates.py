"""The page of an audit: its candidates drawn on their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoicli.errors import visible
from hoicli.records.parsing import Record
from hoicli.records.results import Row
from hoicli.report.document import Block, Document, Gallery, Paragraph, Section
from hoicli.report.html import render

WORDS = {
    "near_duplicate": (
        "Near-duplicate boxes",
        "Two boxes of one label that overlap so much that they may be one person or object, drawn once for one class "
        "and once for another. The one is cyan, the other red, each with the verbs that name it.",
    ),
    "contradicted": (
        "Contradicted annotations",
        "The annotated pair is cyan. Every model named has another class there with confidence, and the annotated one "
        "not at all, or no higher than its false positives of it.",
    ),
    "missing_label": (
        "Labels that may be missing",
        "The pair that the models put the class on is red. Nothing of the class is annotated near; where the pair "
        "itself is annotated, its labels stand below.",
    ),
}
"""Kind -> (title, what is drawn)."""


def candidate_page(rows: Sequence[Row], shown: Sequence[Record], images: str | None, name: str) -> bytes:
    """The page as bytes. rows: of an audit; shown: its candidates with `file_name`, `width` and `height` of their
    images; images: the folder of these; name: of the ground truth."""
    counts = {row["kind"]: row for row in rows if row["metric"] == "candidates"}
    sections = []
    for kind, row in counts.items():
        title, words = WORDS[kind]
        items = [_item(found) for found in shown if found["kind"] == kind]
        first = f"{row['value']:,} in {row['n']:,} images" + (f"; the first {len(items):,}." if items else ".")
        blocks: list[Block] = [Paragraph([f"{first} {words}"])]
        if items:
            blocks.append(Gallery(items, images))
        sections.append(Section(kind, title, blocks))
    lead = "Candidates to look at, surest first. None of them is an error for sure: that is for a person to say."
    if images is None:
        lead += " No folder of images was given (--images), so the boxes stand on empty sheets."
    return render(Document(f"An audit of {visible(name)}", [lead], [], sections))


def _item(row: Mapping[str, Any]) -> Record:
    """A candidate as `Gallery` takes it."""
    blank = {key: row.get(key) for key in ("image_id", "file_name", "width", "height")}
    if row["kind"] == "near_duplicate":
        name, under = str(row["label"]), f"boxes {row['boxes'][0]} and {row['boxes'][1]}"
        under += f"; classes that name both: {row['shared']}"
        facts = f"IoU {int(row['value'] * 1000 + 1e-9) / 1000:.3f}, rank {row['rank']}"
        boxes = [[box] for box in row["where"]]
        names = [", ".join(verbs) or name for verbs in row["verbs"]]
        drawn = {"truth": boxes[0], "predicted": boxes[1], "truth_name": names[0], "predicted_name": names[1]}
        return {**blank, **drawn, "words": (name, under, facts)}
    name = " ".join(str(row[key]) for key in ("verb", "role", "object") if row.get(key))
    facts = f"sureness {row['value']:.2f}, rank {row['rank']}, {row['worth']:.4f} points of mAP at most"
    if row["kind"] == "contradicted":
        under = "; ".join(map(_instead, row["models"]))
        return {**blank, "truth": row["where"], "predicted": None, "truth_name": name, "words": (name, under, facts)}
    under = "; ".join(f"{model['model']}: {model['score']:.3f}" for model in row["models"])
    under += f"; annotated: {', '.join(row['annotated'])}" if row["annotated"] else "; the pair is not annotated"
    under += {"happens": "; the image is labelled with it", "ambiguous": "; its image label is ambiguous"}.get(
        row["image_label"] or "", ""
    )
    return {**blank, "truth": None, "predicted": row["where"], "truth_name": None, "words": (name, under, facts)}


def _instead(model: Mapping[str, Any]) -> str:
    """What a model says in place of the annotation."""
    other = " ".join(str(model[key]) for key in ("verb", "role") if model.get(key))
    own = "nothing" if model["own_score"] is None else f"{model['own_score']:.3f}"
    there = ", annotated too" if model["annotated"] else ""
    return f"{model['model']}: {other} {model['score']:.3f}{there}, this {own}"
