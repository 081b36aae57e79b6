"""A call from Python: its notes are kept for the caller, and messages name its arguments instead of options."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial, wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeAlias, TypeVar

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.views import Views
from hoicli.io.messages import kept_notes
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import parse_tags
from hoicli.vocabulary.labels import Vocabulary

Thresholds: TypeAlias = "float | str | Sequence[float | str] | None"
"""A threshold or several, or a range as in "0.5:0.95:0.05"."""
Names: TypeAlias = "str | Sequence[str] | None"
"""A name, several with commas between or as a list, or none."""

VIEW_TAGS = ("iou", "slice", "part")
"""The tags of rows at other thresholds and of parts of the data."""

_OPTION = re.compile(
    r"hoicli [a-z][^;`]*|--(?P<name>[a-z][a-z-]*)"
    r"(?: (?P<value>[a-z0-9][\w.-]*(?::\w[\w.-]*)*)(?=[:;,)?`]| \(|$))?"
)
"""A command line that a message recommends, or an option with or without a value before the end of a clause."""

_RENAMED = {"from": "source_format", "lambda": "power", "tag": "tags", "slice": "slices"}
"""Arguments whose name is not the option's: two of these are Python's own words."""
_KINDS: dict[str, tuple[Any, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "True or False"),
    "str": (str, "a text"),
    "None": (type(None), "None"),
    "Path": ((str, os.PathLike), "a path"),
    "Names": ((str, list, tuple, type(None)), "a name, or a list of names"),
    "Sequence[str]": ((list, tuple), "a list of texts"),
    "Thresholds": ((Real, str, list, tuple, type(None)), "a number, or a list of numbers"),
}
_ITEMS = {"Names": (str,), "Sequence[str]": (str,), "Thresholds": (Real, str)}
"""What the lists among them hold."""

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def typed_call(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """The function, which refuses arguments that it does not have, one that is missing, and a number, text or flag of
    another type than annotated, with a `UsageError`. NumPy's numbers and texts are taken as Python's."""
    signature = inspect.signature(function)
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    shown = f"hoicli.{function.__qualname__.removesuffix('.__init__')}"
    annotated = {name: str(parameter.annotation).split(" | ") for name, parameter in signature.parameters.items()}
    kinds = {name: of for name, of in annotated.items() if _KINDS.keys() >= set(of)}

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        for name in kwargs.keys() - signature.parameters.keys() if not open_ended else ():
            known = [other for other in signature.parameters if other not in ("self", "cls")]
            near = get_close_matches(_RENAMED.get(name, name), known, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"the arguments are {', '.join(known)}"
            raise UsageError(f"{shown}: no argument {name!r}; {meant}")
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{shown}: {error}; help({shown}) has them all") from None
        for name in (name for name in kinds if name in bound.arguments):
            bound.arguments[name] = value = _plain(bound.arguments[name])
            if not any(map(partial(_is_a, value), kinds[name])):
                words = " or ".join(_KINDS[kind][1] for kind in kinds[name])
                raise UsageError(f"{name}={_shown(value)}: give {words}")
        return function(*bound.args, **bound.kwargs)

    return call


def _is_a(value: object, kind: str) -> bool:
    """Whether a value is of a kind; a flag is no number."""
    if isinstance(value, list | tuple) and kind in _ITEMS:
        return all(isinstance(item, _ITEMS[kind]) and not isinstance(item, bool) for item in value)
    return isinstance(value, _KINDS[kind][0]) and (kind == "bool" or not isinstance(value, bool))


def _plain(value: Any) -> Any:
    """NumPy's numbers, and lists and arrays of them, as Python's: a float32 as the decimal that it prints as, since
    signatures have that."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if not hasattr(value, "dtype") or not hasattr(value, "tolist") or not hasattr(value, "ndim"):
        return value
    if value.ndim:
        return [_plain(item) for item in value]
    return float(str(value)) if getattr(value.dtype, "kind", "") == "f" else value.tolist()


def _shown(value: object) -> str:
    """An argument as it was given, its beginning if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def called() -> Iterator[list[str]]:
    """In the block notes go to the list, and an error's message names arguments."""
    with kept_notes() as notes:
        try:
            yield notes
        except UsageError as error:
            raise UsageError(in_python(str(error))) from None
        except DataError as error:
            raise placed(error) from None
        notes[:] = map(in_python, notes)


def placed(error: DataError, place: str = "") -> DataError:
    """The error of a call, at `place` if it has none of its own."""
    problem = in_python(error.problem)
    return DataError(problem, place=error.place or place, field=error.field, code=error.code)


def in_python(message: str) -> str:
    """A message with `--top-k 3` as `top_k=3`, and `--split rf` as `split='rf'`; command lines stay."""

    def argument(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        name, value = _RENAMED.get(found["name"], found["name"].replace("-", "_")), found["value"]
        if value is None:
            return name
        return f"{name}={value if re.fullmatch('[0-9.]+', value) else repr(value)}"

    return _OPTION.sub(argument, message)


def policy_of(on_error: str, unit: str = "line") -> ErrorPolicy:
    """What `on_error` asks for. Raises `UsageError` for another value than stop and skip."""
    if on_error not in ("stop", "skip"):
        raise UsageError(f"--on-error {on_error}: choose stop or skip")
    return ErrorPolicy(skip=on_error == "skip", unit=unit)


def checked_tags(tags: Mapping[str, str] | None, *taken: str) -> dict[str, str]:
    """The tags of rows. Raises `UsageError` for a name that is empty or has a =, and for one that rows have already."""
    if not isinstance(tags, Mapping | None) or not all(isinstance(key, str) for key in tags or {}):
        raise UsageError(f"tags={tags!r}: give a value for each name, as {{'model': 'mine'}}")
    for key in tags or {}:
        if not key or "=" in key:
            raise UsageError(f"tags: {key!r} is no name of a tag")
    try:
        return parse_tags([f"{key}={value}" for key, value in (tags or {}).items()], taken=taken)
    except UsageError as error:
        raise UsageError(str(error).replace("--tag ", "tags: ")) from None


def views_of(iou: Thresholds, slices: Names, vocabulary: Vocabulary) -> Views:
    """What `--iou` and `--slice` ask for. Raises `UsageError` for a threshold or a slice that there is not."""
    several = iou if isinstance(iou, list | tuple) else () if iou is None else (iou,)
    return Views.parse([str(each) for each in several], names_of(slices), vocabulary)


def names_of(given: Names) -> list[str]:
    """Names given as one (commas between several), as a list, or not at all."""
    return [name.strip() for text in ([given] if isinstance(given, str) else given or ()) for name in text.split(",")]
