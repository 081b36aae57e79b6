"""`hoicli vocab`: the label sets, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hoicli.vocabulary.labels import Vocabulary


@command(
    reads="nothing",
    writes="one row for each interaction, verb, object, split or image",
    examples=[
        ("hoicli vocab", "HICO-DET's 600 interactions"),
        ("hoicli vocab hico --list objects", "its objects in all three numberings"),
        ("""hoicli vocab hico | jq -r 'select(.frequency == "rare") | .verb + " " + .object'""", "the rare classes"),
        ("hoicli vocab vcoco --list verbs", "V-COCO's actions and their roles"),
    ],
    see=["synsets", "validate", "convert"],
)
def vocab(
    dataset: str = argument("hico", "DATASET", "hico, vcoco or swig.", offer=options.DATASETS),
    what: str = option(
        "interactions",
        "--list WHAT",
        "interactions, verbs, objects, splits or (test) images.",
        one_of=("interactions", "verbs", "objects", "splits", "images"),
    ),
    *,
    out: options.Listing,
) -> None:
    """List the interactions of a dataset, or its verbs, objects, zero-shot splits or test images.

    Ids are 0-based. Objects have all numbers in use: COCO's order, HICO-DET's alphabetical order, COCO's ids; objects
    of SWIG-HOI have the WordNet 3.0 offset of their noun.
    """
    from hoicli.errors import UsageError
    from hoicli.vocabulary.datasets import load

    vocabulary = load(dataset)
    rows = list(_rows(vocabulary, what))
    if not rows:
        raise UsageError(f"--list {what}: {vocabulary.name} has none")
    out.write(rows)


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
