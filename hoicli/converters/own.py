"""hoicli's own records as an input of `convert`, so that `convert --to` starts from them; and what
`hoicli.Evaluator.state()` gave, saved with `numpy.savez`: the predictions of a process of a training script.

Nothing is shifted. --box-form may say that the boxes of records are no corners; another dataset's state is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import corners
from hoicli.converters.vlm.answer_rows import is_answers
from hoicli.records.detections import NAMES, check_detections, images_of_state
from hoicli.records.image import image_id_problems, problems
from hoicli.records.parsing import Record, parse, short


def is_records(source: Source) -> bool:
    """Return whether a file has hoicli's records: JSON lines, the first with an image_id and no answer of a model."""
    return source.kind == "json-lines" and "image_id" in source.first_line() and not is_answers(source)


def is_state(source: Source) -> bool:
    """Return whether a file is the saved state of an Evaluator: an .npz with the array triplet_counts."""
    return source.kind == "npz" and bool(arrays(source, ("triplet_counts",)))


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each line of a JSONL file, checked, with its boxes as corners."""
    vocabulary = None if context.open_names else context.vocabulary
    box_form = context.options.get("box_form")
    for line in source.lines():
        with context.policy.item():
            record = parse(line)
            hois = record.get("hois")
            has_scores = isinstance(hois, list) and any("score" in hoi for hoi in hois if isinstance(hoi, dict))
            scored = has_scores or "unstated" in record or "left_out" in record  # keys that only predictions have
            for problem in problems(record, vocabulary, scored=scored):
                raise problem.error(line.place)  # the first one
            if box_form:
                record["boxes"] = [corners(box, "boxes", form=box_form) for box in record["boxes"]]
            yield record


def read_state(source: Source, context: Context) -> Iterator[Record]:
    """Return one record for each image in the saved state of an Evaluator: its predictions as columns of numbers."""
    vocabulary = context.vocabulary

    def build(item: tuple[str, dict[str, Any]]) -> Record:
        """Return the record of an image. item: its id, and its predictions as the arrays that `detections` takes."""
        image_id, predictions = item
        return check_detections(image_id, predictions, vocabulary).to_record(vocabulary, scored=True)

    states = images_of_state(arrays(source, NAMES), vocabulary, source.name)
    items = ((f"image {short(image_id)}.", (image_id, predictions)) for image_id, predictions in states)
    return context.each(items, build, source)


def images(source: Source, context: Context) -> Iterator[Record]:
    """Yield the records of a JSONL file, of any dataset, that is read as a list of images: only the ids are checked."""
    for line in source.lines():
        with context.policy.item():
            record = parse(line)
            for problem in image_id_problems(record):
                raise problem.error(line.place)
            yield record
