"""hoicli's own records as an input of `convert`, so that `convert --to` starts from them. Nothing is shifted;
--box-form may say that their boxes are no corners."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import corners
from hoicli.converters.vlm.rows import is_answers
from hoicli.records.image import image_id_problems, problems
from hoicli.records.parsing import Problem, Record, parse


def sniff(source: Source) -> bool:
    """JSON lines, the first with an image_id and no answer of a model."""
    return source.kind == "json-lines" and "image_id" in source.first_line() and not is_answers(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """The records, each checked, with their boxes as corners."""

    def check(record: Record) -> Iterator[Problem]:
        hois = record.get("hois")
        scored = isinstance(hois, list) and any("score" in hoi for hoi in hois if isinstance(hoi, dict))
        return problems(record, None if context.open_names else context.vocabulary, scored=scored)

    for record in _checked(source, context, check):
        if form := context.options.get("box_form"):
            record["boxes"] = [corners(box, "boxes", form=form) for box in record["boxes"]]
        yield record


def images(source: Source, context: Context) -> Iterator[Record]:
    """The records as a list of images, of any dataset, since only the image's name is used."""
    return _checked(source, context, image_id_problems)


def _checked(source: Source, context: Context, check: Callable[[Record], Iterator[Problem]]) -> Iterator[Record]:
    for line in source.lines():
        with context.policy.item():
            record = parse(line)
            for problem in check(record):
                raise problem.error(line.place)
            yield record
