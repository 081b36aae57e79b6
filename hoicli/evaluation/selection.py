"""Which rows apply to which dataset, and which of them a benchmark's table has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from hoicli.evaluation.protocols import NO_SHIFT, PROTOCOLS, Protocol
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


def adapted(row: Protocol, vocabulary: Vocabulary) -> Protocol:
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
    own = {row.name: replace(row, dataset=vocabulary.name) for row in PROTOCOLS.values() if row.dataset == files}
    if files in TABLES:
        return own
    models = (row for row in PROTOCOLS.values() if row.dataset == _model(vocabulary) and not row.whole_image)
    return {row.name: adapted(row, vocabulary) for row in models} | own


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
    return replace(adapted(row, vocabulary), classes=main.classes)
