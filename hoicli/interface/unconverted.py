"""Typer's parameters without its conversion of values; apart from `hoicli.interface.shell`, since `hoicli --help` needs
this alone and should not wait for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any


def keep_texts(params: Sequence[Any]) -> list[Any]:
    """Return the typer parameters of a command, changed so that typer does not convert their values: since 0.29 it
    would load Pydantic for that, which is slow (`shell._value` converts numbers instead)."""
    for param in params:
        if hasattr(param, "get_runtime_param"):  # typer 0.29 or later
            param.process_value = partial(_call_back, param)
    return list(params)


def _call_back(param: Any, ctx: Any, value: Any) -> Any:
    """Return the value of a typer parameter after its callback, if it has one. It replaces typer's `process_value`,
    which would also convert the value."""
    return value if param.callback is None else param.callback(ctx, param, value)
