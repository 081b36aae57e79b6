"""How a parameter gets the value that the shell gives.

Since 0.29 typer loads Pydantic and builds a validator for every parameter, also for text and for what is not given.
That takes as long as reading a ground truth, and nothing but a number needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any


def unconverted(params: Sequence[Any]) -> list[Any]:
    """The parameters of a command, which convert words to numbers alone; any typer before 0.29 keeps its own way."""
    for param in params:
        own = getattr(param, "get_runtime_param", None)
        if own is not None and not isinstance(own, partial):
            param.get_runtime_param = partial(_Value, own)
    return list(params)


class _Value:
    """What typer calls a runtime parameter; `own` builds typer's."""

    def __init__(self, own: Callable[[], Any]) -> None:
        self._own = own

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value; by typer's validator if it is words and the parameter no text."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if param.type_descriptor.annotation in (str, list[str]) or not isinstance(value, str | list | tuple):
            return value
        return self._own().coerce(value, param=param, ctx=ctx)
