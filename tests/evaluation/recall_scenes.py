"""Files of records for recall, and its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson

from tests.support.graphs import dataset
from tests.support.project import Hoicli, Record


def written(folder: Path, **streams: list[Record]) -> dict[str, Path]:
    """The streams as files by name, and the dataset's file as `dataset`."""
    files = {"dataset": folder / "graphs.json"}
    files["dataset"].write_text(json.dumps(dataset()))
    for name, records in streams.items():
        files[name] = folder / f"{name}.jsonl"
        files[name].write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return files


def rows(hoicli: Hoicli, files: dict[str, Path], *options: object) -> list[dict[str, Any]]:
    """The rows of `hoicli recall` on the files `gt` and `preds`."""
    result = hoicli("recall", "--dataset", files["dataset"], "--gt", files["gt"], *options, files["preds"])
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def values(found: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """(constraint, metric) -> value of the means."""
    return {(row["constraint"], row["metric"]): row["value"] for row in found if "verb" not in row}
