"""The corpus of answers, fixtures/vlm/forms.jsonl: each is read to the triplets it tells, or refused for its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.vlm.answer_records import read
from hoicli.converters.vlm.forms import read_answer
from hoicli.errors import HoicliError
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, ROOT, saved, triplets_of

CORPUS = [json.loads(line) for line in (FIXTURES / "vlm/forms.jsonl").read_text().splitlines()]


def converted(entry: dict[str, Any], folder: Path) -> tuple[list[dict[str, Any]], str]:
    row = {"image_id": entry["id"], **{key: entry[key] for key in ("width", "height", "response")}}
    row |= entry.get("row", {})
    path = saved(folder / "answers.jsonl", json.dumps(row) + "\n")
    options = {"coords": entry["coords"]} if "coords" in entry else {}
    if "boxes" in entry:
        shown = {"image_id": entry["id"], "width": row["width"], "height": row["height"], **entry["boxes"]}
        (folder / "boxes.jsonl").write_text(json.dumps(shown) + "\n")
        options["boxes"] = str(folder / "boxes.jsonl")
    context = Context(load("hico"), ErrorPolicy(), options=options)
    try:
        records = list(read(Source(str(path)), context))
    except HoicliError as error:
        return [], str(error)
    return records, "\n".join(
        [*context.notes, *(f"{reason} ({place})" for reason, (_, place) in context.dropped.items())]
    )


@pytest.mark.parametrize("entry", CORPUS, ids=[entry["id"] for entry in CORPUS])
def test_an_answer_is_read_or_refused_as_its_entry_says(entry: dict[str, Any], tmp_path: Path) -> None:
    records, said = converted(entry, tmp_path)
    found = [triplet for record in records for triplet in triplets_of(record)]
    told = entry.get("triplets", [])
    assert [triplet[1:3] for triplet in found] == [tuple(triplet[1:3]) for triplet in told], said
    for triplet, expected in zip(found, told, strict=True):
        assert triplet[0] == pytest.approx(expected[0]), said
        assert triplet[3] == pytest.approx(expected[3]), said
    for words in (entry.get("refused"), entry.get("note"), *entry.get("left_out", ())):
        assert words is None or words in said, said
    if "refused" not in entry and "left_out" not in entry:
        dropped = [line for line in said.splitlines() if line.endswith("answers.jsonl:1)") and "score" not in line]
        assert dropped == [] or "located" in entry or "note" in entry, said
    if entry.get("located"):
        assert len(records[0]["boxes"]) == entry["located"], said
    assert read_answer(entry["response"]).form == entry["form"], said


def test_the_examples_of_the_docs_are_read() -> None:
    _, shapes, _ = (ROOT / "docs/vlm.md").read_text().split("```", 2)
    for line in shapes.splitlines():
        if line.startswith("    "):
            reading = read_answer(line.strip())
            form = "tokens" if "<" in line else "json"
            assert (reading.form, reading.reports) == (form, [])
            assert len(reading.triplets) == (form == "json")


def test_no_triplet_of_messy_answers_is_lost(tmp_path: Path) -> None:
    path = FIXTURES / "vlm/messy.jsonl"
    context = Context(load("hico"), ErrorPolicy(), options={"to_vocabulary": True})
    records = list(read(Source(str(path)), context))
    assert (len(records), sum(len(record["hois"]) for record in records)) == (37, 105)
    assert sum(count for count, _ in context.dropped.values()) == 3  # the answers that have none
