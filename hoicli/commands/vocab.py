"""`hoicli vocab`: the labels of datasets, as rows; and the file of a dataset of your own, from its ground truth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from hoicli.errors import DataError, UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ, READ_DATASET
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of, texts_of
from hoicli.interface.options import Argument, Given, Names, Option
from hoicli.interface.results import Result, instead
from hoicli.io.messages import note
from hoicli.records.metrics import metric_rows
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.records.kit import Bools

OWN = "Options for a dataset of your own (--from)"
LISTS = ("interactions", "verbs", "objects", "splits", "images", "metrics")


@dataclass(frozen=True, repr=False)
class Labels(Result):
    """The rows of a dataset's labels. In Python, also the names in the order of their numbers, as the outputs of a
    network have them."""

    vocabulary: Vocabulary = field(kw_only=True, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return (function, arguments) that make the result again, for pickles."""
        return partial(Labels, vocabulary=self.vocabulary), (self.rows, self.notes)

    @property
    def verbs(self) -> list[str]:
        """Return the verbs in the order of their numbers."""
        return list(self.vocabulary.verbs)

    @property
    def objects(self) -> list[str]:
        """Return the objects in the order of their numbers; COCO's objects in COCO's order."""
        return list(self.vocabulary.objects)

    @property
    def valid(self) -> Bools:
        """Return [verbs, objects] whether each pair of a verb and an object is an interaction of the dataset. Raises
        `UsageError` for V-COCO, where a verb takes any object."""
        from hoicli.records.scenes import class_table

        if self.vocabulary.roles:
            raise UsageError(f"valid: {self.vocabulary.name} has a class for each verb and role, whatever the object")
        return class_table(self.vocabulary) >= 0


@command(
    reads="nothing; with --from ground truth",
    writes="a row for each interaction, verb, object, split, image, metric or sense; with --from the file of a dataset",
    examples="""
        hoicli vocab  # HICO-DET's 600 interactions
        hoicli vocab hico --list objects  # its objects in all three numberings
        hoicli vocab hico | jq -r 'select(.frequency == "rare") | .verb + " " + .object'  # the rare classes
        hoicli vocab vcoco --list verbs  # V-COCO's actions and their roles
        hoicli vocab --list metrics | jq -r 'select(.commands | test("pairstats")) | .name + ": " + .says'
            # what each metric of a command is
        hoicli vocab --from gt.jsonl -o own.json  # a dataset of your own from its ground truth, for --dataset
        hoicli vocab --from label_studio.json -o own.json  # the same from what an annotation tool exports
        hoicli vocab own.json  # its classes
        hoicli vocab --senses "ride motorcycle"  # the WordNet senses of a verb and an object
        hoicli vocab --senses hopping_on | jq 'select(.pos == "v")'  # the senses of a verb that is in no benchmark
    """,
    see=["shoe-sim", "validate", "convert"],
    listed=lambda values: values["from_"] is None,
)
def vocab(
    dataset: Annotated[options.Path | None, Argument("DATASET", offer=options.DATASETS, check=READ_DATASET)] = None,
    *,
    list_: Annotated[str, Option("WHAT", one_of=LISTS)] = "interactions",
    from_: Annotated[Given | None, Option("FILE", check=READ, panel=OWN)] = None,
    train: Annotated[Given | None, Option("FILE", check=READ, panel=OWN)] = None,
    on_error: options.OnError = "stop",
    senses: Annotated[Names, Option("LABEL", repeated=True)] = None,
    wordnet: options.WordNet = None,
    output: Annotated[str, options.output()] = "-",
) -> Labels:
    """List the interactions of a dataset, or its verbs, objects, zero-shot splits or test images; or the metrics.

    Ids are 0-based. Objects have all numbers in use: COCO's order, HICO-DET's alphabetical order, COCO's ids; objects
    of SWIG-HOI have the WordNet 3.0 number of their noun. --from writes the file of your own dataset (hoicli doctor
    --schema dataset), which every --dataset takes; edit it as you like.

    Arguments:
        dataset: hico (default), vcoco, swig, hoia, hoiw, ambiguous-hoi, hico-det-sg, pastanet-hoi, hoi-coco or
            FILE.json.
        list_: interactions, verbs, objects, splits or (test) images; or metrics, all that the rows of any command
            measure.
        from_: Make the file of a dataset from this ground truth, in any format that convert reads: its subjects, verbs,
            objects and interactions.
        train: The training set's ground truth: adds how often each interaction occurs, and which are rare (fewer than
            10).
        senses: List instead the WordNet senses of a verb, an object, or both (the verb first), and which one a label of
            the dataset's ground truth has (`why` says why, if it is not obvious); repeatable.
    """
    lists_other = list_ != LISTS[0]
    if wordnet is not None and senses is None:
        raise UsageError(f"{arg('wordnet')} goes with {arg('senses', like='LABEL')}")
    if from_ is not None:
        if dataset is not None and os.path.isfile(os.fspath(dataset)):
            joined = f"join JSONL files (cat {from_} {dataset} | hoicli vocab --from -)"
            raise UsageError(
                f"{dataset}: {arg('from_')} takes one file: {joined}, and give the training set's with {arg('train')}"
            )
        others = {"DATASET": dataset is not None, arg("list_"): lists_other, arg("senses"): senses is not None}
        if excess := [name for name, is_given in others.items() if is_given]:
            raise UsageError(f"{arg('from_')} writes the file of a dataset: leave {excess[0]} out")
        return instead(_make_dataset(from_, train, output, on_error))
    if train is not None:
        raise UsageError(f"{arg('train')} goes with {arg('from_', like='GT.jsonl')}")
    vocabulary = load(text_of(dataset) or "hico")
    if senses is not None:
        if lists_other:
            raise UsageError(f"{arg('senses')} lists senses: leave {arg('list_', list_)} out")
        return Labels(_senses(texts_of(senses), text_of(wordnet), vocabulary), vocabulary=vocabulary)
    rows = list(_rows(vocabulary, list_))
    if not rows:
        raise UsageError(f"{arg('list_', list_)}: {vocabulary.name} has none")
    return Labels(rows, vocabulary=vocabulary)


def _senses(labels: list[str], wordnet: str | None, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return the rows of --senses: each WordNet sense of each label. Print a note of labels without any. wordnet:
    another WordNet than the embedded one, as --wordnet names it."""
    from hoicli.wordnet.lexicon import use_wordnet
    from hoicli.wordnet.sense_rows import sense_rows

    use_wordnet(wordnet)
    senses_by_label = {label: list(sense_rows(label, vocabulary)) for label in labels}
    if unknown := [label for label, rows in senses_by_label.items() if not rows]:
        first_labels = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        note(f"{len(unknown)} without a sense in WordNet: {first_labels}; such a label is similar only to an equal one")
    return list(chain.from_iterable(senses_by_label.values()))


def _make_dataset(truth: Given, train: Given | None, output: str, on_error: str) -> str:
    """Return the content of a dataset's file (JSON), made from the labels in ground truth. train: the training set's,
    for how often each interaction occurs. The dataset is named after the output file, or if that is stdout after the
    first file of ground truth. Raises `UsageError` if there is no name, `DataError` if there are no triplets."""
    from hoicli.interface.inputs import Inputs
    from hoicli.records.intake import policy_of
    from hoicli.records.seen import (
        LabelCounts,
        dataset_name,
        describe_dataset,
        format_content,
        tell_doubts,
        unify_spellings,
    )
    from hoicli.tables.notations import check_lines

    check_lines(output, arg("output"), "the file of a dataset is JSON; end the name in .json")
    inputs = Inputs(None, {"on_error": on_error})
    streams = [inputs.truth(truth, name="from_")]
    if train is not None:
        streams.append(inputs.truth(train, name="train"))
    name = dataset_name(streams[0].name if output == "-" else output)
    if not name:
        raise UsageError(f"{arg('from_')}: name the dataset with {arg('output', like='NAME.json')}")

    labels_seen = [LabelCounts() for _ in streams]  # of the ground truth, then of the training set
    for labels, stream in zip(labels_seen, streams, strict=True):
        labels.add_stream(stream, policy_of(on_error))
    labels_seen = unify_spellings(labels_seen)
    truth_seen = labels_seen[0]
    if not truth_seen.pairs:
        problem = "no triplets in it: a dataset's classes are those of its ground truth"
        raise DataError(problem, place=streams[0].name)

    content = describe_dataset(labels_seen, name)
    tell_doubts(labels_seen)
    subjects = ", ".join(f"{label} ({count:,})" for label, count in truth_seen.subjects.most_common(5))
    more = ", ..." if len(truth_seen.subjects) > 5 else ""
    numbers = ", ".join(f"{len(content[key]):,} {key}" for key in ("verbs", "objects", "interactions"))
    note(f"{name}: {numbers} in {truth_seen.images:,} images; subjects: {subjects}{more}")
    return format_content(content)


def _rows(vocabulary: Vocabulary, what: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of --list WHAT, one of LISTS."""
    if what == "verbs":
        roles = vocabulary.roles_of if vocabulary.roles else {}
        for number, verb in enumerate(vocabulary.verbs):
            yield {"id": number, "verb": verb, **({"roles": list(roles[verb])} if roles else {})}
    elif what == "objects":
        yield from _object_rows(vocabulary)
    elif what == "splits":
        aliases = {name: alias for alias, name in vocabulary.split_aliases.items()}
        for name, unseen in vocabulary.unseen.items():
            seen = len(vocabulary.interactions) - len(unseen)
            yield {"split": name, "alias": aliases.get(name), "unseen": len(unseen), "seen": seen}
    elif what == "metrics":
        yield from metric_rows()
    elif what == "images":
        yield from ({"column": number, "image_id": name} for number, name in enumerate(vocabulary.test_images))
    else:
        yield from _interaction_rows(vocabulary)


def _object_rows(vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield a row for each object, with its numbers: in SWIG-HOI that of its WordNet noun, in datasets of COCO's
    objects those of all three numberings, elsewhere its place."""
    alphabetical = {name: number for number, name in enumerate(vocabulary.alphabetical_objects)}
    for number, name in enumerate(vocabulary.noun_ids or vocabulary.objects):
        if vocabulary.noun_ids:
            yield {"id": number, "object": name, "noun_id": vocabulary.noun_ids[name]}
        elif vocabulary.coco_ids:
            numbers = {"alphabetical": alphabetical[name], "coco_id": vocabulary.coco_ids[name]}
            yield {"object": name, "coco_order": number, **numbers}
        else:
            yield {"id": number, "object": name, "subject": name in vocabulary.subjects}


def _interaction_rows(vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield a row for each interaction. If the dataset has them, with its frequency group (rare or not), its number of
    training instances, its subsets, and the zero-shot splits in which it is unseen."""
    frequency = vocabulary.group_of
    for number, (verb, name) in enumerate(vocabulary.interactions):
        row: dict[str, Any] = {"id": number, "verb": verb, vocabulary.qualifier: name or None}
        if vocabulary.groups:
            row["frequency"] = frequency[number]
        if vocabulary.training_counts:
            row["training"] = vocabulary.training_counts[number]
        if vocabulary.subsets:
            row["in"] = [subset for subset, classes in vocabulary.subsets.items() if number in classes]
        if vocabulary.unseen:
            row["unseen_in"] = [split for split, classes in vocabulary.unseen.items() if number in classes]
        yield row
