"""Where the project and the published material are, and what a run of the command gives."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
EIGHT = ROOT / "tests/eight"
"""Eight made-up images small enough to read; README.md there says what each is for."""
GT, PREDICTIONS, OTHER = (EIGHT / f"{name}.jsonl" for name in ("gt", "predictions", "other"))
PAIR = ("--gt", GT, PREDICTIONS)
FOREIGN, VCOCO, SWIG, OWN, SHOE = (FIXTURES / name for name in ("foreign", "vcoco", "swig", "own", "shoe"))
SAMPLE, ROBUST, GRAPHS, CHOICE, VLM = (FIXTURES / name for name in ("sample", "robust", "graphs", "choice", "vlm"))
Record = dict[str, Any]
"""A line of a file, parsed: of an image, or a row."""
Data = tuple[list[Record], list[Record]]
"""(ground truth, predictions)."""
NAMED = os.environ.get("HOICLI_SHARED")
SHARED = ROOT.parent / "shared" if NAMED is None else Path(NAMED)
"""Published annotations and golden numbers, which are not part of the repository; tests that need them skip without.
The variable names another folder; empty it says that there is none."""
THERE = NAMED != "" and (SHARED / "golden").is_dir()
NO_GOLDEN = "needs the released evaluators' own numbers"
NO_ANNOTATIONS = "needs HICO-DET's annotations: hoicli data fetch hico:test"
PATIENCE = 600.0
"""Seconds after which a test gives up what it waits for: on a busy machine a process takes half a minute to begin."""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Hoicli = Callable[..., Result]
MonkeyPatch = pytest.MonkeyPatch


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def records(path: Path) -> list[Record]:
    return parsed(path.read_text())


def written(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def records_of(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return parsed(result.out)


def refusal(result: Result, code: int = 1) -> str:
    """The one line of a command that failed, or with code 2 was called wrongly, and wrote nothing."""
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1), result
    return result.err.strip()


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def complaint(kind: type[Exception], call: Callable[..., object], *given: object, **options: object) -> str:
    with pytest.raises(kind) as caught:
        call(*given, **options)
    return str(caught.value)


def dumped(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def changed(source: Path, target: Path, change: Callable[[Any], object]) -> Path:
    content = json.loads(source.read_text())
    change(content)
    return dumped(target, content)


def triplets_of(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    """(the subject's box, verb, the object's label, its box, score or None) of each triplet of a record."""
    boxes, labels = record["boxes"], record["labels"]
    ends = [(hoi["subject"], hoi["object"], hoi) for hoi in record["hois"]]
    return [(boxes[a], hoi["verb"], labels[b], boxes[b], hoi.get("score")) for a, b, hoi in ends]


def without_gt(signature: object) -> str:
    """A signature without the digests of its ground truth and its order, which differ from test to test."""
    text = str(signature)
    assert re.search(r"\|gt:([a-z-]+-)?[0-9a-f]{8}\|", text), text
    return re.sub(r"(gt|listed):[^|]*\|", "", text)
