"""Protocols as files: a row in JSON, which `eval --explain --format jsonl` writes and `--protocol FILE` reads.

    {"name": "hico-75", "like": "hico", "threshold": 0.75}

A file names the row it is `like` and what differs, or everything (formats/protocol.schema.json)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, asdict, fields, replace
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from typing import Any

import orjson

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.protocols import COUNTED_IMAGES, EVERY_RECALL, GRIDS, PROTOCOLS, Protocol, protocols
from hoicli.io.inputs import open_input
from hoicli.io.messages import display_name
from hoicli.records.parsing import Record, is_number, short
from hoicli.vocabulary.datasets import DATASETS, load

ENDING = ".json"
"""A `--protocol` that ends so is a file."""
LARGEST, MOST_POINTS = 1 << 20, 1001
"""Bytes of a file; points of a recall grid: COCO has 101."""
EVERY = "every"
"""The grid of a protocol that has none."""
WORDS = ("title", "source", "remark")
"""The fields that change no number, and are not in the digest."""
_OF_VIEWS = ("changed", "view", "part", "mean_of")


def chosen_protocols(names: Iterable[str], dataset: str | None = None) -> list[Protocol]:
    """The rows that `--protocol` names: as `protocols`, and after them those of files. Raises what `protocols` and
    `read_protocol` raise, and `UsageError` for files of several datasets or with one name."""
    listed = [part.strip() for text in names for part in text.split(",")]
    files = [read_protocol(part) for part in dict.fromkeys(listed) if part.endswith(ENDING)]
    others = [part for part in listed if not part.endswith(ENDING)]
    dataset = dataset or (files[0].dataset if files and set(others) <= {"all"} else None)
    rows = protocols(others, dataset) if others else []
    dataset = rows[0].dataset if rows else dataset
    for number, row in enumerate(files):
        if row.dataset != dataset:
            raise UsageError(
                f"--protocol: {row.name} is of {row.dataset}, not {dataset}; name protocols of one dataset"
            )
        if any(row.name == other.name for other in files[:number]):
            raise UsageError(f"--protocol: two files are called {row.name}; give one another name")
    return rows + files


def explicit(names: Iterable[str]) -> frozenset[str]:
    """The protocols that `--protocol` names, without `all`; those of files by their names."""
    listed = {part.strip() for text in names for part in text.split(",")} - {"all"}
    return frozenset(read_protocol(part).name if part.endswith(ENDING) else part for part in listed)


def protocol_record(row: Protocol) -> Record:
    """The row as its file has it."""
    record: Record = {column.name: getattr(row, column.name) for column in _columns()}
    grids: dict[tuple[float, ...], Any] = {grid: name for name, grid in GRIDS.items()} | {EVERY_RECALL: EVERY}
    return {**record, "grid": grids.get(row.grid, list(row.grid))}


@cache
def read_protocol(path: str) -> Protocol:
    """The protocol of a file. Its signature has a digest of what it computes. Raises `DataError` that names the file
    and the field."""
    place = display_name(path)
    with open_input(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError("too large for a protocol; one is a JSON object of a few fields", place=place)
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(f"not JSON ({error}); hoicli schema protocol says what it holds", place=place) from None
    if type(record) is not dict:
        raise DataError("must be one JSON object; hoicli schema protocol says what it holds", place=place)

    def bad(field: str, problem: str) -> DataError:
        return DataError(problem, place=place, field=field)

    row = _row(record, bad)
    _check_together(row, bad)
    numbers = {name: value for name, value in asdict(row).items() if name not in (*WORDS, *_OF_VIEWS)}
    digest = sha256(orjson.dumps(numbers, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]
    return replace(row, changed=(("row", digest),))


Bad = Callable[[str, str], DataError]


def _columns() -> list[Field[Any]]:
    return [column for column in fields(Protocol) if column.name not in _OF_VIEWS]


def _row(record: Mapping[str, Any], bad: Bad) -> Protocol:
    """The row of the file: the one it is like, with the fields that it has."""
    columns = {column.name: column for column in _columns()}
    for name in record:
        if name not in columns and name != "like":
            near = get_close_matches(name, ["like", *columns], n=1)
            meant = f"did you mean {near[0]}?" if near else f"the fields are like, {', '.join(columns)}"
            raise bad(short(name).strip('"'), f"there is no such field; {meant}")
    like = record.get("like")
    if "like" in record and (type(like) is not str or like not in PROTOCOLS):
        raise bad("like", f"{short(like)} is no protocol; choose from {', '.join(PROTOCOLS)}")
    if like is None and (missing := [name for name in ("name", "grid") if name not in record]):
        raise bad(
            missing[0], f"missing; a protocol has a name, and a grid unless it is like another: {', '.join(GRIDS)}"
        )
    if "name" not in record:
        raise bad("name", "missing; rows and signatures name the protocol by it")
    values = {name: _value(columns[name], value, bad) for name, value in record.items() if name != "like"}
    if type(like) is str:
        return replace(PROTOCOLS[like], **{"title": f"like {like}", "source": "a file", "remark": "", **values})
    return Protocol(**{"title": "a protocol of a file", "source": "a file", **values})


def _value(column: Field[Any], value: Any, bad: Bad) -> Any:
    """A field's value, checked by itself."""
    name = column.name
    if name == "name":
        if type(value) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}", value) or value == "all":
            raise bad(name, "must be a word of at most 40 letters, digits, _ . + -")
        if value in PROTOCOLS:
            raise bad(name, f"{value} is the published protocol; a file needs a name of its own")
        return value
    if name == "grid":
        return _grid(value, bad)
    if name.endswith("_shift"):
        if type(value) is not list or len(value) != 4 or not all(is_number(x) and abs(x) <= 100 for x in value):
            raise bad(name, "must be four numbers, added to x1, y1, x2, y2: [0, 0, 1, 1]")
        return tuple(map(float, value))
    if name == "threshold":
        if not is_number(value) or not 0 < value <= 1:
            raise bad(name, f"{short(value)} is no IoU; give a number above 0, at most 1")
        return float(value)
    if name in ("triplets_per_image", "predictions_per_class"):
        if value is not None and (type(value) is not int or not 1 <= value <= 1_000_000_000):
            raise bad(name, f"{short(value)}: must be a whole number of at least 1, or null for no limit")
        return value
    if name == "subsets":
        if type(value) is not list or not all(type(one) is str for one in value) or len(set(value)) < len(value):
            raise bad(name, "must be an array of different names of the dataset's subsets")
        return tuple(value)
    known = {"images": COUNTED_IMAGES, "dataset": tuple(DATASETS)}.get(name)
    if known is not None and value not in known:
        raise bad(name, f"{short(value)}: choose {', '.join(known)}")
    wanted = type("" if column.default is MISSING else column.default)
    if type(value) is not wanted:
        raise bad(name, f"{short(value)}: must be {'true or false' if wanted is bool else 'a string'}")
    if wanted is str and not (len(value) <= 1000 and value.isprintable()):
        raise bad(name, "must be a line of at most 1,000 printable characters")
    return value


def _grid(value: Any, bad: Bad) -> tuple[float, ...]:
    """The recall values that a file names or lists."""
    if type(value) is str and value in (*GRIDS, EVERY):
        return GRIDS.get(value, EVERY_RECALL)
    if type(value) is not list or not 1 <= len(value) <= MOST_POINTS or not all(map(is_number, value)):
        raise bad("grid", f"must be {', '.join(GRIDS)}, {EVERY}, or an array of 1 to {MOST_POINTS:,} recall values")
    if not all(before < after for before, after in zip([-math.inf, *value], value, strict=False)):
        raise bad("grid", "must ascend, each recall value once")
    if not 0 <= value[0] <= value[-1] <= 1:
        raise bad("grid", "recall values lie between 0 and 1")
    return tuple(map(float, value))


def _check_together(row: Protocol, bad: Bad) -> None:
    """Raises a `DataError` for fields that the dataset does not have, or that do not go together."""
    vocabulary = load(row.dataset)
    for name, subsets in (("classes", [row.classes] if row.classes else []), ("subsets", row.subsets)):
        for subset in subsets:
            if subset not in vocabulary.subsets:
                has = ", ".join(vocabulary.subsets) or "none"
                raise bad(name, f"{row.dataset} has no subset {short(subset)}; it has {has}")
    roles = bool(vocabulary.roles)
    for name, fits in (
        ("person_first", roles),
        ("any_object_when_none", row.person_first),
        ("known_object", not roles),
        ("person_subject", not roles),
        ("drop_no_interaction", vocabulary.no_interaction is not None),
    ):
        if getattr(row, name) and not fits:
            why = "goes with person_first" if name == "any_object_when_none" else f"is nothing for {row.dataset}"
            raise bad(name, f"{why}; leave it out")
