"""`hoicli vocab`: the label sets, as rows; and those of records, as the file of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.commands import options
from hoicli.commands.checks import READ, READ_DATASET
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option
from hoicli.errors import DataError, UsageError
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

OWN = "Options for a dataset of your own (--from)"


@command(
    reads="nothing; with --from ground truth, with --senses - labels, a line each",
    writes="one row for each interaction, verb, object, split, image or sense; with --from the file of a dataset",
    examples=[
        ("hoicli vocab", "HICO-DET's 600 interactions"),
        ("hoicli vocab hico --list objects", "its objects in all three numberings"),
        ("""hoicli vocab hico | jq -r 'select(.frequency == "rare") | .verb + " " + .object'""", "the rare classes"),
        ("hoicli vocab vcoco --list verbs", "V-COCO's actions and their roles"),
        ("hoicli vocab --from gt.jsonl -o own.json", "a dataset of your own from its ground truth, for --dataset"),
        ("hoicli vocab own.json", "its classes"),
        ('hoicli vocab --senses "ride motorcycle"', "the WordNet senses of a verb and an object"),
        ("hoicli vocab --pos v --senses hopping_on", "of a verb that is in no benchmark"),
        (
            "hoicli vocab --list verbs | jq -r .verb | hoicli vocab --pos v --senses - | "
            "jq -r 'select(.chosen) | .sense'",
            "the sense of each of HICO-DET's verbs",
        ),
    ],
    see=["shoe-sim", "validate", "convert"],
)
def vocab(
    dataset: str | None = argument(
        None,
        "DATASET",
        "hico (default), vcoco, swig, hoia, hoiw, ambiguous-hoi, hico-det-sg, pastanet-hoi, hoi-coco or FILE.json.",
        offer=options.DATASETS,
        mark=READ_DATASET,
    ),
    what: str = option(
        "interactions",
        "--list WHAT",
        "interactions, verbs, objects, splits or (test) images.",
        one_of=("interactions", "verbs", "objects", "splits", "images"),
    ),
    from_: str | None = option(
        None,
        "--from FILE",
        "Make the file of a dataset from this ground truth: its subjects, verbs, objects and interactions.",
        mark=READ,
        panel=OWN,
    ),
    train: str | None = option(
        None,
        "--train FILE",
        "The training set: how often it has each interaction, and so which are rare (fewer than 10).",
        mark=READ,
        panel=OWN,
    ),
    name: str | None = option(
        None, "--name NAME", "The dataset's name in signatures (default: that of the file).", panel=OWN
    ),
    senses: list[str] | None = option(
        None,
        "--senses LABEL",
        "Instead: the WordNet senses that a verb, an object, or both (the verb first) may have, and the one that the "
        "dataset's label has; repeatable; - reads one a line of stdin.",
    ),
    pos: str | None = option(None, "--pos", "Of --senses, only objects (n) or only verbs (v).", one_of=("n", "v")),
    wordnet: str | None = options.WORDNET,
    *,
    out: options.Listing,
) -> None:
    """List the interactions of a dataset, or its verbs, objects, zero-shot splits or test images.

    Ids are 0-based. Objects have all numbers in use: COCO's order, HICO-DET's alphabetical order, COCO's ids; objects
    of SWIG-HOI have the WordNet 3.0 offset of their noun. With --from, the file of a dataset of your own is written
    (hoicli doctor --schema dataset), which every --dataset takes; edit it as you like.

    A prediction's label keeps all its senses: shoe-eval takes the one most similar to the ground truth's. A label of
    the dataset, as ground truth, has the one chosen in a curated table; `why` says so where it is not obvious.
    """
    if from_ is not None:
        if dataset is not None or out.format_ != "auto":
            raise UsageError("--from writes the file of a dataset: leave DATASET and --format out")
        _make(from_, train, name, out.output)
        return
    if train is not None or name is not None:
        raise UsageError("--train and --name go with --from GT.jsonl")
    vocabulary = load(dataset or "hico")
    if senses is None and (pos is not None or wordnet is not None):
        raise UsageError("--pos and --wordnet go with --senses LABEL")
    if senses is not None:
        out.write(_senses(senses, pos, wordnet, vocabulary))
        return
    rows = list(_rows(vocabulary, what))
    if not rows:
        raise UsageError(f"--list {what}: {vocabulary.name} has none")
    out.write(rows)


def _senses(labels: list[str], pos: str | None, wordnet: str | None, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """The rows of --senses, and a note of the labels that have none."""
    from hoicli.wordnet.selection import choose
    from hoicli.wordnet.senses import sense_rows

    choose(wordnet)
    found = {label: list(sense_rows(label, pos, vocabulary)) for label in _labels(labels)}
    if unknown := [label for label, rows in found.items() if not rows]:
        shown = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        note(f"{len(unknown)} without a sense in WordNet: {shown}; such a label is similar only to an equal one")
    return [row for rows in found.values() for row in rows]


def _labels(given: list[str]) -> Iterator[str]:
    for label in given:
        if label != "-":
            yield label
            continue
        for line in Stream(["-"], "labels"):
            try:
                yield line.data.decode().strip()
            except UnicodeDecodeError:
                raise DataError("not UTF-8; write one label a line", place=line.place) from None


def _make(truth: str, train: str | None, name: str | None, output: str) -> None:
    """Write the file of the dataset that ground truth shows."""
    from hoicli.io.outputs import open_output
    from hoicli.records.seen import Seen, dataset_name, dataset_of, in_one_spelling, tell_doubts, written

    name = name or dataset_name(truth if output == "-" else output)
    if not name:
        raise UsageError("--from: name the dataset with --name NAME")
    parts = []
    for path in (truth, train):
        if path is not None:
            parts.append(Seen())
            parts[-1].add_stream(Stream([path], "ground truth"))
    parts = in_one_spelling(parts)
    seen, training = parts[0], parts[1] if len(parts) > 1 else None
    if not seen.pairs:
        raise DataError("no triplets in it: a dataset's classes are those of its ground truth", place=truth)
    content = dataset_of(seen, training, name)
    with open_output(output) as write:
        write(written(content).encode())
    tell_doubts(seen, training)
    subjects = ", ".join(f"{label} ({count:,})" for label, count in seen.subjects.most_common(5))
    more = ", ..." if len(seen.subjects) > 5 else ""
    kinds = ", ".join(f"{len(content[key]):,} {key}" for key in ("verbs", "objects", "interactions"))
    note(f"{name}: {kinds} in {seen.images:,} images; subjects: {subjects}{more}")


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
    if not vocabulary.coco_ids:
        for number, name in enumerate(vocabulary.objects):
            yield {"id": number, "object": name, "subject": name in vocabulary.subjects}
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
        if vocabulary.training_counts:
            row["training"] = vocabulary.training_counts[number]
        if vocabulary.subsets:
            row["in"] = [subset for subset, members in vocabulary.subsets.items() if number in members]
        if vocabulary.unseen:
            row["unseen_in"] = [split for split, members in vocabulary.unseen.items() if number in members]
        yield row
