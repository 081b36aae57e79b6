"""Which protocols apply to which dataset, which of them a benchmark's table has, and which `--protocol` names. A "row"
is a protocol, as a row of the table PROTOCOLS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

from hoicli.errors import UsageError, arg, did_you_mean
from hoicli.evaluation.protocol_files import ENDING, dataset_of, read_protocol, record_of
from hoicli.evaluation.protocols import NO_SHIFT, PROTOCOLS, Protocol
from hoicli.io.plugins import names as plugin_names
from hoicli.io.plugins import plugin
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

TABLES: Mapping[str, tuple[str, ...]] = {
    "hico": ("hico", "hico-ko", "qpic", "upt", "diag", "inp-cc"),
    "swig": ("swig",),
    "vcoco": ("vcoco-agent", "vcoco-s1", "vcoco-s2", "vcoco-qpic"),
    "hoia": ("hoia",),
    "ambiguous-hoi": ("ambiguous-hoi",),
}
"""The default table of each benchmark: what `all` means, and what is evaluated where nothing is named. PROTOCOLS says
what exists; a row that is added there is in no table before it is named."""

ALSO_REPORTED: Mapping[str, tuple[str, ...]] = {"hico": ("gen-vlkt", "ggnet", "ggnet-ko")}
"""Protocols in no table by which papers report numbers, too: `claim` tries them beside the table."""

MAIN = {name: table[0] for name, table in TABLES.items()} | {"vcoco": "vcoco-s1"}
"""The main protocol of each benchmark."""

DIAGNOSED = {"hico": "diag", "vcoco": "vcoco-s1"}
"""The protocol whose definition of a correct box the error types use."""

OF_ITS_FILES = {"hico-det-sg": "hico", "hoiw": "hoia"}
"""Datasets with the files or the evaluator of another: its rows apply as they are."""

_ROLE_CLASSES = {"": "", "agent": "agent", "25": "roles", "29": "every_action"}
"""The sets of classes of V-COCO's rows, as every dataset with roles has them (`Vocabulary.members`)."""


def adapt_protocol(protocol: Protocol, vocabulary: Vocabulary) -> Protocol:
    """Return a protocol of HICO-DET or V-COCO with the same rules for another dataset.

    Classes and subsets become the dataset's. Boxes are compared as recorded: a shift of the coordinates of one side
    corrects HICO-DET's or V-COCO's own files, or repeats what a released loader did to them, and means nothing for
    other boxes. A shift of both sides by the same amount changes no overlap; it stays, so that results are equal to the
    last bit."""
    same_shift = protocol.prediction_shift == protocol.truth_shift
    subsets: tuple[str, ...] = ()
    if vocabulary.subsets and not protocol.roles:
        subsets = ("full", *vocabulary.groups, *vocabulary.subsets)
    remarks = (f"the rules of {protocol.dataset}, boxes as recorded", protocol.remark)
    return replace(
        protocol,
        dataset=vocabulary.name,
        # V-COCO's sets of classes are named by their sizes
        classes=_ROLE_CLASSES[protocol.classes] if protocol.roles else "",
        subsets=subsets,
        prediction_shift=protocol.prediction_shift if same_shift else NO_SHIFT,
        truth_shift=protocol.truth_shift if same_shift else NO_SHIFT,
        last_pixel_shift=NO_SHIFT,
        drop_no_interaction=protocol.drop_no_interaction and vocabulary.no_interaction is not None,
        remark="; ".join(filter(None, remarks)),
    )


def _dataset_to_follow(vocabulary: Vocabulary) -> str:
    """Return the dataset whose protocols apply to one without its own: V-COCO for verbs with roles, else HICO-DET."""
    return "vcoco" if vocabulary.roles else "hico"


def _table_name(vocabulary: Vocabulary) -> str:
    """Return the key of TABLES for a dataset: its own table if it has one, else that of HICO-DET or V-COCO."""
    name = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    return name if name in TABLES else _dataset_to_follow(vocabulary)


def also_reported(vocabulary: Vocabulary) -> list[Protocol]:
    """Return the protocols of ALSO_REPORTED for a dataset."""
    if vocabulary.own:
        return []
    names = ALSO_REPORTED.get(_table_name(vocabulary), ())
    protocols = protocols_for(vocabulary)
    return [protocols[name] for name in names if name in protocols]


@cache
def protocols_for(vocabulary: Vocabulary) -> Mapping[str, Protocol]:
    """Return the protocols that apply to a dataset, by name: those made for the dataset and, if it has no table in
    TABLES, also those of HICO-DET (or V-COCO, for verbs with roles), adapted to it."""
    benchmark = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    made_for_it = {
        row.name: replace(row, dataset=vocabulary.name) for row in PROTOCOLS.values() if row.dataset == benchmark
    }
    if benchmark in TABLES:
        return made_for_it
    followed = _dataset_to_follow(vocabulary)
    adapted = {
        row.name: adapt_protocol(row, vocabulary)
        for row in PROTOCOLS.values()
        if row.dataset == followed and not row.whole_image
    }
    return adapted | made_for_it


def main_protocol(vocabulary: Vocabulary) -> Protocol:
    """Return the main protocol of a dataset: its own, else `hico`, or `vcoco-s1` for a dataset with roles."""
    return protocols_for(vocabulary)[MAIN[_table_name(vocabulary)]]


def unique_by_name(rows: Iterable[Protocol]) -> list[Protocol]:
    """Return one protocol of each name: of all views of a protocol, which share its name, only one remains."""
    return list({row.name: row for row in rows}.values())


def diagnosed_protocol(vocabulary: Vocabulary) -> Protocol:
    """Return the protocol by which a dataset's errors are typed: `diag`, or `vcoco-s1` for a dataset with roles. For
    any dataset but HICO-DET and V-COCO the protocol is adapted, and scores the classes of the dataset's main one."""
    row = PROTOCOLS[DIAGNOSED[_dataset_to_follow(vocabulary)]]
    if row.dataset == vocabulary.name:
        return row
    return replace(adapt_protocol(row, vocabulary), classes=main_protocol(vocabulary).classes)


def choose_protocols(names: Iterable[str], dataset: str | Vocabulary | None = None) -> list[Protocol]:
    """Return the protocols that `--protocol` names, in order of first mention, each once; those of files and packages
    last.

    names: the option's texts, each with one name or several between commas; `all` means the table of the dataset. If
    there are none, it is that table for a shipped dataset, or the main protocol for a dataset from a file. dataset: its
    name, file or vocabulary; None means that of the named protocols, or HICO-DET. Raises `UsageError` for unknown
    names, names of another dataset, and two protocols of one name; `DataError` for a bad file."""
    asked_for = [part.strip() for part in chain.from_iterable(text.split(",") for text in names)]
    external = [name for name in dict.fromkeys(asked_for) if _is_external(name)]  # of a file or a package
    listed = [name for name in asked_for if name not in external]
    _check_known(listed)
    if dataset is None:
        named_datasets = (PROTOCOLS[name].dataset for name in listed if name != "all")
        dataset = next(named_datasets, None)
        if dataset is None:
            dataset = dataset_of(external[0]) if external else "hico"
    vocabulary = load(dataset) if isinstance(dataset, str) else dataset
    rows = protocols_for(vocabulary)
    if others := [name for name in listed if name != "all" and name not in rows]:
        theirs = PROTOCOLS[others[0]].dataset
        fix = f"choose from {', '.join(rows)}" if vocabulary.own else "name protocols of one dataset"
        raise UsageError(f"{arg('protocol', ', '.join(others))}: of {theirs}, not {vocabulary.name}; {fix}")
    if not asked_for:
        listed = [main_protocol(vocabulary).name] if vocabulary.own else ["all"]
    chosen: dict[str, Protocol] = {}
    for name in listed:
        several = TABLES[_table_name(vocabulary)] if name == "all" else [name]
        chosen |= {each: rows[each] for each in several}
    for name in external:
        row = read_protocol(name, vocabulary, rows)
        if row.name in chosen:
            problem = f"there is another protocol called {row.name}; give one another name"
            raise UsageError(f"{arg('protocol', name)}: {problem}")
        chosen[row.name] = row
    return list(chosen.values())


def _check_known(names: Sequence[str]) -> None:
    """Raise `UsageError` if a name is neither `all` nor that of a published protocol; the message suggests others."""
    unknown = sorted({name for name in names if name not in PROTOCOLS and name != "all"})
    if unknown:
        meant = did_you_mean(unknown[0].lower(), PROTOCOLS)
        suggestion = f" ({meant})" if meant else ""
        known = ", ".join(["all", *PROTOCOLS, *plugin_names("protocols")])
        quoted = ", ".join(map(repr, unknown))
        raise UsageError(f"{arg('protocol')}: unknown {quoted}; choose from {known}{suggestion}")


def one_protocol(names: Sequence[str], dataset: str | None) -> Protocol | None:
    """Return the protocol that `--protocol` names, None if it names none. dataset: None for that of the protocol.
    Raises `UsageError` if it names several."""
    rows = choose_protocols(names, dataset) if names else []
    if len(rows) > 1:
        raise UsageError(f"{arg('protocol', ','.join(names))}: one protocol says what is right; name one")
    return rows[0] if rows else None


def names_asked_for(names: Iterable[str]) -> frozenset[str]:
    """Return the names of the protocols that the user asked for one by one, by name or file, and not through `all`."""
    listed = {part.strip() for part in chain.from_iterable(text.split(",") for text in names)} - {"all"}
    files = {part for part in listed if part.endswith(ENDING)}
    return frozenset(listed - files | {str(record_of(file)["name"]) for file in files})


def _is_external(name: str) -> bool:
    """Return whether a name of `--protocol` is no published protocol but a file, or a protocol that another installed
    package adds (an entry point of the group `hoicli.protocols`)."""
    return name.endswith(ENDING) or (name not in (*PROTOCOLS, "all") and plugin("protocols", name) is not None)
