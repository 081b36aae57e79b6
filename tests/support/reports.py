"""What tests of reports share: a dump, its report as a page, and its numbers as they are printed."""

from __future__ import annotations

import json
from typing import Any

from tests.support.page import Page
from tests.support.project import FIXTURES, Hoicli, Result

GT, PREDICTIONS = FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl"
VCOCO = ("--dataset", "vcoco", "--gt", FIXTURES / "vcoco/ground_truth.jsonl")
DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def rows_of(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def page_of(hoicli: Hoicli, *arguments: object) -> Page:
    result = hoicli("report", *arguments)
    assert result.code == 0, result.err
    return Page(result.out)


def shown(value: float | None, *, signed: bool = False) -> str:
    """A value as every table prints it: written apart from the report's own `number`."""
    if value is None:
        return DASH
    text = f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
    if float(text.replace(",", "")) == 0:
        return text.lstrip("-")
    return ("+" if signed and value > 0 else "") + text.replace("-", MINUS)
