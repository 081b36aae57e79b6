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
    """The rules of a row of HICO-DET, or of V-COCO, for another dataset.

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
    """The dataset whose rows apply to one that has none."""
    return "vcoco" if vocabulary.roles else "hico"


def _benchmark(vocabulary: Vocabulary) -> str:
    """The dataset, one of TABLES, whose table a dataset has: its own, else that of the one whose rules it takes."""
    name = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    return name if name in TABLES else _model(vocabulary)


def table_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The names of the rows that `all` means."""
    return TABLES[_benchmark(vocabulary)]


@cache
def rows_of(vocabulary: Vocabulary) -> Mapping[str, Protocol]:
    """The rows that apply to a dataset, by name: its own, and without a table of its own also those of HICO-DET or
    V-COCO adapted to it."""
    files = OF_ITS_FILES.get(vocabulary.name, vocabulary.name)
    own_protocols = {
        row.name: replace(row, dataset=vocabulary.name) for row in PROTOCOLS.values() if row.dataset == files
    }
    if files in TABLES:
        return own_protocols
    models = (row for row in PROTOCOLS.values() if row.dataset == _model(vocabulary) and not row.whole_image)
    return {row.name: adapt_protocol(row, vocabulary) for row in models} | own_protocols


def main_protocol(vocabulary: Vocabulary) -> Protocol:
    """The main protocol of a dataset: its own, `hico`, or with roles `vcoco-s1`."""
    return rows_of(vocabulary)[MAIN[_benchmark(vocabulary)]]


def distinct(rows: Iterable[Protocol]) -> list[Protocol]:
    """One row of each name: the views of a protocol count once."""
    return list({row.name: row for row in rows}.values())


def protocol_of(vocabulary: Vocabulary) -> Protocol:
    """The protocol whose definition of a correct box the error types use: `diag`, or with roles `vcoco-s1`, adapted to
    a dataset that has neither (SWIG-HOI: over the classes its own protocol scores)."""
    row = PROTOCOLS[DIAGNOSED[_model(vocabulary)]]
    if row.dataset == vocabulary.name:
        return row
    main = main_protocol(vocabulary)
    return replace(adapt_protocol(row, vocabulary), classes=main.classes)


def chosen_protocols(names: Iterable[str], dataset: str | Vocabulary | None = None) -> list[Protocol]:
    """The rows that `--protocol` names, in order of first mention, each once; those of files and of other packages
    last. A name may be several with commas; `all` is the table of the dataset. No names: the table of a shipped
    dataset, the main row of a file's. Without a `dataset` it is that of the named rows, HICO-DET for `all` alone.

    Raises `UsageError` for unknown names, names of another dataset, and two rows of one name; and what `load` and
    `read_protocol` raise."""
    every = [part.strip() for part in chain.from_iterable(text.split(",") for text in names)]
    brought = [part for part in dict.fromkeys(every) if _is_brought(part)]
    listed = [part for part in every if part not in brought]
    unknown = sorted({name for name in listed if name not in PROTOCOLS and name != "all"})
    if unknown:
        meant = did_you_mean(unknown[0].lower(), PROTOCOLS)
        names_text = ", ".join([*PROTOCOLS, *plugin_names("protocols")]) + (meant and f" ({meant})")
        raise UsageError(f"{arg('protocol')}: unknown {', '.join(map(repr, unknown))}; choose from all, {names_text}")
    if dataset is None:
        of_rows = (PROTOCOLS[name].dataset for name in listed if name != "all")
        dataset = next(of_rows, None) or (dataset_of(brought[0]) if brought else "hico")
    vocabulary = load(dataset) if isinstance(dataset, str) else dataset
    rows = rows_of(vocabulary)
    if others := [name for name in listed if name != "all" and name not in rows]:
        theirs = PROTOCOLS[others[0]].dataset
        fix = f"choose from {', '.join(rows)}" if vocabulary.own else "name protocols of one dataset"
        raise UsageError(f"{arg('protocol', ', '.join(others))}: of {theirs}, not {vocabulary.name}; {fix}")
    if not every:
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
    """The only row that `--protocol` names, None without one. Raises as `chosen_protocols`, and `UsageError` for
    several."""
    rows = chosen_protocols(names, dataset) if names else []
    if len(rows) > 1:
        raise UsageError(f"{arg('protocol', ','.join(names))}: one protocol says what is right; name one")
    return rows[0] if rows else None


def explicit(names: Iterable[str]) -> frozenset[str]:
    """The protocols that `--protocol` names, without `all`; those of files by their names."""
    listed = {part.strip() for part in chain.from_iterable(text.split(",") for text in names)} - {"all"}
    return frozenset(str(record_of(part)["name"]) if part.endswith(ENDING) else part for part in listed)


def _is_brought(name: str) -> bool:
    """Whether a name is that of a file, or of a row that another package adds."""
    return name.endswith(ENDING) or (name not in (*PROTOCOLS, "all") and plugin("protocols", name) is not None)
