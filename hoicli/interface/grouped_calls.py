"""`--by`: a command called once for each group of its records, as if its files held this group alone.

So the rows of a group are those of a call with its ground truth and its predictions, and `--tag` with its fields. The
files are read once more than a single call reads them, to see which line is where; the groups share the processors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import orjson

from hoicli.errors import HoicliError, UsageError, arg
from hoicli.evaluation.groups import Group, Grouping
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.interface.inputs import IOU_TAG, SLICE_TAGS, Inputs, read_similarities
from hoicli.interface.option_values import names_of, tags_of, text_of
from hoicli.interface.results import Records, Result
from hoicli.io.forks import work_in_turns
from hoicli.io.messages import Progress, kept_notes, note
from hoicli.io.spawned_workers import processors
from hoicli.records.parsing import dump
from hoicli.records.result_rows import ROW_KEYS, Row

Values = Mapping[str, Any]

_ALONE = {
    "explain": "reads nothing",
    "train": "reads the training set for each group",
    "reasons": "writes one file",
}
"""Options that do not go together with --by, and why."""


@dataclass
class _GroupResult:
    """What a call for one group gave: rows, or records as lines of JSON; and its notes. name: of the group; above,
    failed: the sentences and the error of a `Result`; readable: its function; piped: the command's name if the stream
    of records ends with a line that says whether it is whole."""

    name: str
    rows: list[Row] | None = None
    lines: bytes = b""
    notes: Sequence[str] = field(default_factory=list)
    hint: str = ""
    above: Sequence[str] = ()
    failed: HoicliError | None = None
    readable: Callable[[Sequence[Row]], Sequence[Row]] | None = None
    piped: str = ""


def call_by_group(call: Callable[[Values], Any], values: Values) -> Result | Records:
    """Call a command for each group of its records, and return all rows, group after group, with the group's fields as
    tags; or all records, with these fields in each.

    call: takes the values of the command's arguments and returns its result. Raises `UsageError` for fields that rows
    or records cannot have, and for options that do not go together with --by."""
    by = _check_fields(values)
    for name, reason in _ALONE.items():
        if values.get(name):
            raise UsageError(f"{arg(name)}: {reason}; leave out {arg('by')}")
    groups, others = _divide_inputs(by, values)
    calls = [(group, {**values, **others, **_arguments_of_group(group, values)}) for group in groups]
    results = _call_groups(partial(_call_group, call), calls)
    first = next(results)
    results = chain([first], results)
    if first.rows is None:
        return Records(_iterate_records(results), piped=first.piped)
    of_groups = list(results)
    _print_notes({result.name: result.notes for result in of_groups})
    above_of_groups = ([f"{result.name}: {sentence}" for sentence in result.above] for result in of_groups)
    return Result(
        list(chain.from_iterable(result.rows or () for result in of_groups)),
        hint=first.hint,
        above=list(chain.from_iterable(above_of_groups)),
        failed=_failure_of_groups(of_groups),
        readable=first.readable,
    )


def _check_fields(values: Values) -> list[str]:
    """Return the names of the fields of --by. Raises `UsageError` for a name that is empty or occurs twice, and for one
    that rows have a key or a tag of."""
    by = names_of(values["by"])
    tags = tags_of(values["tag"]) if values.get("tag") is not None else {}
    if not all(by) or len(set(by)) != len(by):
        raise UsageError(f"{arg('by', ','.join(by))}: give names of fields, each once, with commas between")
    if tagged := [name for name in by if name in tags]:
        raise UsageError(f"{arg('tag', tagged[0])}: {arg('by', tagged[0])} gives rows this tag; choose another name")
    reserved = {*ROW_KEYS, *SLICE_TAGS, IOU_TAG, "model"}
    if taken := [name for name in by if name in reserved]:
        problem = f"rows have a {taken[0]} of their own; give the records' field another name"
        raise UsageError(f"{arg('by', taken[0])}: {problem}")
    return by


def _divide_inputs(by: Sequence[str], values: Values) -> tuple[list[Group], dict[str, Any]]:
    """Return the groups of the command's ground truth and predictions, and the arguments that are the same for all
    groups but that only one call could read, or whose default depends on the files' names."""
    dataset = text_of(values.get("dataset"))
    of_protocols = [PROTOCOLS[name].dataset for name in names_of(values.get("protocol")) if name in PROTOCOLS]
    inputs = Inputs(dataset, values, within=dataset or next(iter(of_protocols), "hico"), gt=values["gt"])
    grouping, others = Grouping(by, inputs.policy), dict[str, Any]()
    if values["gt"] is not None:
        grouping.add_truth(inputs.truth(values["gt"]))
    if "name" in values:  # several models, a file each
        models = inputs.models(values["predictions"], values["name"])
        others["name"] = [model.model for model in models] if models[0].tagged else None
    else:
        models = [inputs.predictions(values["predictions"])]
    for model in models:
        grouping.add_predictions(model)
    if values.get("sim") is not None:
        others["sim"] = read_similarities(values["sim"], values.get("wordnet"), inputs.policy)
    return grouping.finish(lacking_allowed=values.get("only_predicted", False)), others


def _arguments_of_group(group: Group, values: Values) -> dict[str, Any]:
    """Return the arguments of the call for a group that differ from the command's."""
    arguments: dict[str, Any] = {"by": None, "gt": group.truth, "predictions": group.predictions}
    if "name" not in values:
        (arguments["predictions"],) = group.predictions
    if "tag" in values and not values.get("emit"):
        arguments["tag"] = {**tags_of(values["tag"]), **group.tags}
    return arguments


def _call_groups(
    work: Callable[[tuple[Group, Values]], _GroupResult], calls: Sequence[tuple[Group, Values]]
) -> Iterator[_GroupResult]:
    """Yield the result of the call for each group, in order; several processes take turns."""
    processes = min(processors(), len(calls))
    with Progress("groups", total=len(calls), unit=" groups") as progress:
        for _, result in work_in_turns(work, calls, lambda: calls, processes):  # forks have the same list
            yield result
            progress.advance()


def _call_group(call: Callable[[Values], Any], group_call: tuple[Group, Values]) -> _GroupResult:
    """Call the command for one group, and return what it gave, which can be sent from one process to another."""
    group, values = group_call
    with kept_notes() as notes:
        result = call(values)
        if isinstance(result, Result):
            return _GroupResult(
                group.name, result.rows, notes=notes, hint=result.hint, above=result.above, failed=result.failed,
                readable=result.readable,
            )  # fmt: skip
        lines = b"".join(line if isinstance(line, bytes) else dump(line) for line in result.lines)
        return _GroupResult(group.name, lines=_add_fields(lines, group), notes=notes, piped=result.piped)


def _add_fields(lines: bytes, group: Group) -> bytes:
    """Return records, as lines of JSON, with the fields of their group before the others. Raises `UsageError` if the
    records have such a field already."""
    records = lines.splitlines(keepends=True)
    of_records = orjson.loads(records[0]).keys() if records else ()
    if taken := next((name for name in group.fields if name in of_records), None):
        raise UsageError(f"{arg('by', taken)}: the records written have a {taken} of their own; give it another name")
    fields = orjson.dumps(dict(group.fields))[:-1] + b","
    return b"".join(fields + record[1:] for record in records)


def _iterate_records(results: Iterator[_GroupResult]) -> Iterator[bytes]:
    """Yield the records of all groups, several lines at a time; then print the notes."""
    notes: dict[str, Sequence[str]] = {}
    for result in results:
        notes[result.name] = result.notes
        yield result.lines
    _print_notes(notes)


def _failure_of_groups(results: Sequence[_GroupResult]) -> HoicliError | None:
    """Return one error for all groups whose call ended with one, of the kind of the first; None if there is none."""
    failed = {result.name: result.failed for result in results if result.failed is not None}
    if not failed:
        return None
    first = next((error for error in failed.values() if error.code == "worse"), next(iter(failed.values())))
    return type(first)("; ".join(f"{name}: {error}" for name, error in failed.items()), code=first.code)


def _print_notes(notes: Mapping[str, Sequence[str]]) -> None:
    """Print the notes of all groups, collapsed. notes: by the name of the group."""
    for message in collapse_notes(notes):
        note(message)


def collapse_notes(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield one note for all notes that differ only in their numbers: as it stands if all groups have the same, else
    that of the first group with the number of groups. notes: by the name of the group."""
    alike: dict[str, dict[str, str]] = {}  # the notes of the groups, by what they have in common
    for name, messages in notes.items():
        for message in messages:
            alike.setdefault(re.sub(r"\d[\d.,]*", "#", message.replace(f" ({name})", "")), {}).setdefault(name, message)
    for by_group in alike.values():
        (first_name, first), *others = by_group.items()
        if len(by_group) == len(notes) and len(set(by_group.values())) == 1:
            yield first
        else:
            yield f"{first_name}: {first}" + (f" (so or alike in {len(others)} more groups)" if others else "")
