"""Which rows apply to which dataset, which of them a benchmark's table has, and which `--protocol` names."""

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

MAIN = {name: table[0] for name, table in TABLES.items()} | {"vcoco": "vcoco-s1"}
"""The main protocol of each benchmark."""

DIAGNOSED = {"hico": "diag", "vcoco": "vcoco-s1"}
"""The protocol whose definition of a correct box the error types use."""

OF_ITS_FILES = {"hico-det-sg": "hico", "hoiw": "hoia"}
"""Datasets with the files or the evaluator of another: its rows apply as they are."""

_ROLE_CLASSES = {"": "", "agent": "agent", "25": "roles", "29": "every_action"}
"""The sets of classes of V-COCO's rows, as every dataset with roles has them (`Vocabulary.members`)."""


def adapt_protocol(row: Protocol, vocabulary: Vocabulary) -> Protocol:
    """Return the rules of a row of HICO-DET, or of V-COCO, as a row for another dataset.

    Classes and subsets are the dataset's. Ground truth and predictions are compared as recorded: a shift of one side
    mends coordinates of HICO-DET's or V-COCO's own files, or repeats what a released loader did to them, and means
    nothing for other boxes. A shift of both sides alike moves nothing, and stays, so that results are the same to the
    last bit.
    """
    alike = row.prediction_shift == row.truth_shift
    named = ("full", *vocabulary.groups, *vocabulary.subsets) if vocabulary.subsets and not row.roles else ()
    return replace(
        row,
        dataset=vocabulary.name,
        classes=_ROLE_CLASSES[row.classes] if row.roles else "",
        subsets=named,
        prediction_shift=row.prediction_shift if alike else NO_SHIFT,
        truth_shift=row.truth_shift if alike else NO_SHIFT,
        last_pixel_shift=NO_SHIFT,
        drop_no_interaction=row.drop_no_interaction and vocabulary.no_interaction is not None,
        remark="; ".join(filter(None, (f"the rules of {row.dataset}, boxes as recorded", row.remark))),
    )


def _model(vocabulary: Vocabulary) -> str:
    """Return the dataset whose rows apply to a dataset that has no rows of its own."""
    return "vcoco" if vocabulary.roles else "hico"


def _benchmark(vocabulary: Vocabulary) -> str:
    """Return the key of TABLES whose table a dataset has: its own, else that of the dataset whose rules it takes."""
    name = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    return name if name in TABLES else _model(vocabulary)


def table_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the names of the rows that `all` means for a dataset."""
    return TABLES[_benchmark(vocabulary)]


@cache
def rows_of(vocabulary: Vocabulary) -> Mapping[str, Protocol]:
    """Return the rows that apply to a dataset, by name: its own, and if it has no table of its own, also those of
    HICO-DET or V-COCO adapted to it."""
    benchmark = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    own_protocols = {
        row.name: replace(row, dataset=vocabulary.name) for row in PROTOCOLS.values() if row.dataset == benchmark
    }
    if benchmark in TABLES:
        return own_protocols
    models = (row for row in PROTOCOLS.values() if row.dataset == _model(vocabulary) and not row.whole_image)
    return {row.name: adapt_protocol(row, vocabulary) for row in models} | own_protocols


def main_protocol(vocabulary: Vocabulary) -> Protocol:
    """Return the main protocol of a dataset: its own, else `hico`, or `vcoco-s1` for a dataset with roles."""
    return rows_of(vocabulary)[MAIN[_benchmark(vocabulary)]]


def distinct(rows: Iterable[Protocol]) -> list[Protocol]:
    """Return one row of each name, so that the views of a protocol count once."""
    return list({row.name: row for row in rows}.values())


def protocol_of(vocabulary: Vocabulary) -> Protocol:
    """Return the protocol whose definition of a correct box the error types use: `diag`, or with roles `vcoco-s1`. It
    is adapted to a dataset that has neither, and then scores the classes of that dataset's main protocol (SWIG-HOI)."""
    row = PROTOCOLS[DIAGNOSED[_model(vocabulary)]]
    if row.dataset == vocabulary.name:
        return row
    main = main_protocol(vocabulary)
    return replace(adapt_protocol(row, vocabulary), classes=main.classes)


def chosen_protocols(names: Iterable[str], dataset: str | Vocabulary | None = None) -> list[Protocol]:
    """Return the rows that `--protocol` names, in order of first mention, each once; rows from files and from other
    packages come last. A text may hold several names with commas; `all` is the table of the dataset. Without names, it
    is the table of a shipped dataset, or the main row of a dataset from a file. Without a `dataset`, it is that of the
    named rows, or HICO-DET for `all` alone.

    Raises `UsageError` for unknown names, names of another dataset, and two rows of one name; and what `load` and
    `read_protocol` raise."""
    asked_for = [part.strip() for part in chain.from_iterable(text.split(",") for text in names)]
    brought = [part for part in dict.fromkeys(asked_for) if _is_brought(part)]
    listed = [part for part in asked_for if part not in brought]
    unknown = sorted({name for name in listed if name not in PROTOCOLS and name != "all"})
    if unknown:
        meant = did_you_mean(unknown[0].lower(), PROTOCOLS)
        names_text = ", ".join([*PROTOCOLS, *plugin_names("protocols")]) + (meant and f" ({meant})")
        raise UsageError(f"{arg('protocol')}: unknown {', '.join(map(repr, unknown))}; choose from all, {names_text}")
    if dataset is None:
        named_datasets = (PROTOCOLS[name].dataset for name in listed if name != "all")
        dataset = next(named_datasets, None) or (dataset_of(brought[0]) if brought else "hico")
    vocabulary = load(dataset) if isinstance(dataset, str) else dataset
    rows = rows_of(vocabulary)
    if others := [name for name in listed if name != "all" and name not in rows]:
        theirs = PROTOCOLS[others[0]].dataset
        fix = f"choose from {', '.join(rows)}" if vocabulary.own else "name protocols of one dataset"
        raise UsageError(f"{arg('protocol', ', '.join(others))}: of {theirs}, not {vocabulary.name}; {fix}")
    if not asked_for:
        listed = [main_protocol(vocabulary).name] if vocabulary.own else ["all"]
    chosen = {
        name: rows[name]
        for name in chain.from_iterable(table_of(vocabulary) if part == "all" else [part] for part in listed)
    }
    for name in brought:
        row = read_protocol(name, vocabulary, rows)
        if row.name in chosen:
            raise UsageError(
                f"{arg('protocol', name)}: there is another protocol called {row.name}; give one another name"
            )
        chosen[row.name] = row
    return list(chosen.values())


def one_protocol(names: Sequence[str], dataset: str | None) -> Protocol | None:
    """Return the only row that `--protocol` names, None without names. Raises `UsageError` for several rows."""
    rows = chosen_protocols(names, dataset) if names else []
    if len(rows) > 1:
        raise UsageError(f"{arg('protocol', ','.join(names))}: one protocol says what is right; name one")
    return rows[0] if rows else None


def explicit(names: Iterable[str]) -> frozenset[str]:
    """Return the names of the protocols that `--protocol` asks for by name or file, without `all`."""
    listed = {part.strip() for part in chain.from_iterable(text.split(",") for text in names)} - {"all"}
    return frozenset(str(record_of(part)["name"]) if part.endswith(ENDING) else part for part in listed)


def _is_brought(name: str) -> bool:
    """Return whether the user or another package brings this protocol: it is a file, or an entry point's row."""
    return name.endswith(ENDING) or (name not in (*PROTOCOLS, "all") and plugin("protocols", name) is not None)
