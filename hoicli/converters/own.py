"""hoicli's own records as an input of `convert`, so that `convert --to` starts from them; and what
`hoicli.Evaluator.state()` gave, saved with `numpy.savez`: the predictions of a process of a training script.

Nothing is shifted. --box-form may say that the boxes of records are no corners; another dataset's state is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import corners
from hoicli.converters.vlm.answer_rows import is_answers
from hoicli.records.detections import NAMES, detections, given_of
from hoicli.records.image import image_id_problems, problems
from hoicli.records.parsing import Record, parse, short


def is_records(source: Source) -> bool:
    """Whether a file is JSON lines, the first of which has an image_id and no answer of a model."""
    return source.kind == "json-lines" and "image_id" in source.first_line() and not is_answers(source)


def is_state(source: Source) -> bool:
    """Whether a file is an .npz with the counts of an Evaluator's state."""
    return source.kind == "npz" and bool(arrays(source, ("triplet_counts",)))


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image, checked, with its boxes as corners."""
    vocabulary, box_form = None if context.open_names else context.vocabulary, context.options.get("box_form")
    for line in source.lines():
        with context.policy.item():
            record = parse(line)
            hois = record.get("hois")
            scored = not {"unstated", "left_out"}.isdisjoint(record)  # which say something of predictions only
            scored |= isinstance(hois, list) and any("score" in hoi for hoi in hois if isinstance(hoi, dict))
            for problem in problems(record, vocabulary, scored=scored):
                raise problem.error(line.place)
            if box_form:
                record["boxes"] = [corners(box, "boxes", form=box_form) for box in record["boxes"]]
            yield record


def read_state(source: Source, context: Context) -> Iterator[Record]:
    """Return one record for each image in an Evaluator's state."""
    vocabulary, images = context.vocabulary, given_of(arrays(source, NAMES), context.vocabulary, source.name)
    items = ((f"image {short(image[0])}.", image) for image in images)
    return context.each(
        items, lambda item: detections(item[0], item[1], vocabulary).record(vocabulary, scored=True), source
    )


def images(source: Source, context: Context) -> Iterator[Record]:
    """Yield the records as a list of images. They may be of any dataset, since only the image's name is used."""
    for line in source.lines():
        with context.policy.item():
            record = parse(line)
            for problem in image_id_problems(record):
                raise problem.error(line.place)
            yield record
