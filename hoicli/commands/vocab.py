"""`hoicli vocab`: the label sets, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoicli.commands.common import Format, Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hoicli.vocabulary import Vocabulary

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LISTS = ("interactions", "verbs", "objects", "splits", "images")


@app.command(
    epilog='Example: hoicli vocab hico --format jsonl | jq -r \'select(.frequency == "rare") | .verb + " " + .object\''
)
def vocab(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="hico.")] = "hico",
    what: Annotated[
        str, typer.Option("--list", metavar="WHAT", help="interactions, verbs, objects, splits or (test) images.")
    ] = "interactions",
    format_: Format = "auto",
    output: Output = "-",
) -> None:
    """List the interactions of a dataset, or its verbs, objects, zero-shot splits or test images.

    Ids are 0-based. Objects carry all three numberings in use: COCO order, HICO-DET's alphabetical order, COCO ids.
    """
    from hoicli.errors import UsageError
    from hoicli.report.tables import chosen_format, render
    from hoicli.streams import open_output
    from hoicli.vocabulary import load

    if what not in LISTS:
        raise UsageError(f"--list {what}: choose from {', '.join(LISTS)}")
    output_format = chosen_format(format_, output)
    rows = list(_rows(load(dataset), what))
    with open_output(output) as write:
        write(render(rows, output_format))


def _rows(vocabulary: Vocabulary, what: str) -> Iterator[dict[str, Any]]:
    if what == "verbs":
        yield from ({"id": number, "verb": verb} for number, verb in enumerate(vocabulary.verbs))
    elif what == "objects":
        alphabetical = vocabulary.alphabetical_objects
        for number, name in enumerate(vocabulary.objects):
            yield {
                "object": name,
                "coco_order": number,
                "alphabetical": alphabetical.index(name),
                "coco_id": vocabulary.coco_ids[name],
            }
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
        frequency = vocabulary.group_of
        for number, (verb, name) in enumerate(vocabulary.interactions):
            yield {
                "id": number,
                "verb": verb,
                "object": name,
                "frequency": frequency[number],
                "unseen_in": [split for split, members in vocabulary.unseen.items() if number in members],
            }
