"""`hoicli vocab`: the label sets, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoicli.commands import choices
from hoicli.commands.checks import Read
from hoicli.commands.common import Format, Output
from hoicli.commands.manual import page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hoicli.vocabulary.labels import Vocabulary

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LISTS = ("interactions", "verbs", "objects", "splits", "images")


@app.command(
    cls=page(
        reads="nothing, or a file of SWIG-HOI's metadata",
        writes="a row an interaction, verb, object, split or image",
        examples=[
            ("hoicli vocab", "HICO-DET's 600 interactions"),
            ("hoicli vocab hico --list objects", "its objects in all three numberings"),
            (
                """hoicli vocab hico | jq -r 'select(.frequency == "rare") | .verb + " " + .object'""",
                "the rare classes",
            ),
            ("hoicli vocab vcoco --list verbs", "V-COCO's actions and their roles"),
        ],
        see=["synsets", "validate", "convert"],
    )
)
def vocab(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="hico, vcoco or swig; or a file to compare with swig: swig_v1_categories.py.",
            autocompletion=choices.datasets,
        ),
        Read(besides=("hico", "vcoco", "swig")),
    ] = "hico",
    what: Annotated[
        str,
        typer.Option(
            "--list",
            metavar="WHAT",
            help="interactions, verbs, objects, splits or (test) images.",
            autocompletion=choices.one_of(*LISTS),
        ),
    ] = "interactions",
    format_: Format = "auto",
    output: Output = "-",
) -> None:
    """List the interactions of a dataset, or its verbs, objects, zero-shot splits or test images.

    Ids are 0-based. Objects carry all numberings in use: COCO order, HICO-DET's alphabetical order, COCO ids; those of
    SWIG-HOI the WordNet 3.0 offset of their noun. A file of SWIG-HOI's metadata is parsed, never run.
    """
    from pathlib import Path

    from hoicli.errors import UsageError
    from hoicli.io.messages import note
    from hoicli.io.outputs import open_output
    from hoicli.tables.notations import chosen_format, render
    from hoicli.vocabulary.categories import differences, read_categories
    from hoicli.vocabulary.datasets import DATASETS, load

    if what not in LISTS:
        raise UsageError(f"--list {what}: choose from {', '.join(LISTS)}")
    output_format = chosen_format(format_, output)
    is_file = dataset not in DATASETS and (dataset == "-" or Path(dataset).suffix != "" or Path(dataset).exists())
    vocabulary = read_categories(dataset) if is_file else load(dataset)
    rows = list(_rows(vocabulary, what))
    if not rows:
        raise UsageError(f"--list {what}: {vocabulary.name} has none")
    with open_output(output) as write:
        write(render(rows, output_format))
    if is_file:
        found = differences(vocabulary)
        for text in found:
            note(text)
        note(
            "hoicli evaluates with its own swig, not with this file" if found else "the same as swig, as hoicli has it"
        )


def _rows(vocabulary: Vocabulary, what: str) -> Iterator[dict[str, Any]]:
    if what == "verbs":
        roles = vocabulary.roles_of if vocabulary.roles else {}
        for number, verb in enumerate(vocabulary.verbs):
            yield {"id": number, "verb": verb, **({"roles": list(roles[verb])} if roles else {})}
    elif what == "objects":
        yield from _object_rows(vocabulary)
    elif what == "splits":
        aliases = {name: alias for alias, name in vocabulary.split_aliases.items()}
        for name, unseen in vocabulary.unseen.items():
            yield {
                "split": name,
                "alias": aliases.get(name),
                "unseen": len(unseen),
                "seen": len(vocabulary.interactions) - len(unseen),
            }
    elif what == "images":
        yield from ({"column": number, "image_id": name} for number, name in enumerate(vocabulary.test_images))
    else:
        yield from _interaction_rows(vocabulary)


def _object_rows(vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    if vocabulary.noun_ids:
        for number, (name, noun) in enumerate(vocabulary.noun_ids.items()):
            yield {"id": number, "object": name, "noun_id": noun}
        return
    alphabetical = {name: number for number, name in enumerate(vocabulary.alphabetical_objects)}
    for number, name in enumerate(vocabulary.objects):
        yield {
            "object": name,
            "coco_order": number,
            "alphabetical": alphabetical[name],
            "coco_id": vocabulary.coco_ids[name],
        }


def _interaction_rows(vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """The classes, each with the groups and sets it belongs to, in a dataset that has them."""
    frequency = vocabulary.group_of
    for number, (verb, name) in enumerate(vocabulary.interactions):
        row: dict[str, Any] = {"id": number, "verb": verb, vocabulary.qualifier: name or None}
        if vocabulary.groups:
            row["frequency"] = frequency[number]
        if vocabulary.subsets:
            row["in"] = [subset for subset, members in vocabulary.subsets.items() if number in members]
        if vocabulary.unseen:
            row["unseen_in"] = [split for split, members in vocabulary.unseen.items() if number in members]
        yield row
