"""A command is one function with two doors: the shell's (`shell.py`), and Python's, which is here.

    @command(
        reads="predictions with --gt, or match records",
        writes="result rows",
        examples="hoicli eval --gt gt.jsonl preds.jsonl  # every protocol side by side",
        see=["match", "diagnose"],
    )
    def evaluate(gt: Truth = None, predictions: Predictions = None, *, seed: Seed = 0) -> Result: ...

Both doors take the same parameters with the same defaults, check them by the same marks, and name them in messages as
the caller wrote them (`errors.arg`).
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from numbers import Integral, Real
from textwrap import dedent, fill
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from hoicli.errors import IN_PYTHON, UsageError, did_you_mean
from hoicli.interface import options
from hoicli.interface.checks import Count, OneOf, Read, Values, Written
from hoicli.interface.options import Argument, Names, Numbers, Option, Parameter, Path, Piped
from hoicli.interface.results import Notes, Records, Result
from hoicli.io import file_claims as claims
from hoicli.io.messages import kept_notes
from hoicli.io.opened_files import parts_of
from hoicli.io.outputs import descriptor

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

DECLARED: dict[str, Command] = {}
"""The commands, by the module each is declared in."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A function and the facts of its page; called with a function, it declares that as the command of its module, and
    returns it as Python calls it.

    reads, writes: which records (or files) come in and go out. examples: command lines, the most common first, each
    with `# what it does` behind it (`shown`); each runs in the folder of the one before, so they may be a session. see:
    related commands. exits: exit codes with a meaning of their own. piped: the notation of rows where --format does not
    choose and no terminal reads. plot: the help of --plot, "" for a command without. listed: a function that says for
    the values given whether the command writes rows, so that --format applies; without it, only a function that returns
    a `Result` does."""

    reads: str
    writes: str
    examples: str
    see: Sequence[str]
    exits: Mapping[int, str] = field(default_factory=dict)
    piped: str = "jsonl"
    plot: str = ""
    listed: Callable[[Mapping[str, Any]], bool] | None = None
    function: Any = None

    def __call__(self, function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        always = (lambda _: True) if function.__annotations__["return"] == "Result" else None
        declared = replace(self, function=function, listed=self.listed or always)
        DECLARED[function.__module__] = declared
        called_from_python = wrap_for_python(function)
        called_from_python.__doc__ = declared.documentation
        return called_from_python

    @property
    def parameters(self) -> list[Parameter]:
        """Return what the function takes, in its order."""
        return parameters_of(self.function)

    @property
    def about(self) -> str:
        """Return the docstring without the texts of arguments."""
        return _split_docstring(self.function)[0]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Return (command line, what it does) of each example; an indented line continues the one above."""
        lines = re.findall(r"^(\S.*(?:\n .*)*)", dedent(self.examples), re.MULTILINE)
        parts = (" ".join(line.split()).partition(" # ") for line in lines)
        return [(line, purpose) for line, _, purpose in parts]

    @property
    def documentation(self) -> str:
        """Return what `help()` shows: the docstring with the text of every argument, those that commands share among
        them."""
        texts = [
            fill(f"    {parameter.name}: {parameter.text}", 100, subsequent_indent=" " * 8)
            for parameter in self.parameters
        ]
        return "\n".join([self.about, "", f"Reads {self.reads}; gives {self.writes}.", "", "Arguments:", *texts])


command = Command
"""As commands use it."""


def shared_by(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options, by name, of the group that a function takes as `**shared: Unpack[GROUP]`."""
    annotation = function.__annotations__.get("shared", "")
    group = vars(options)[annotation[len("Unpack[") : -1]] if annotation else None
    types_by_name = get_type_hints(group, include_extras=True) if group else {}
    return {name: types_by_name[name] for name in options.DEFAULTS if name in types_by_name}


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature as both doors show it: options of a shared group one by one, tags and output last."""
    plain = inspect.signature(function)
    parameters = [parameter for parameter in plain.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=options.DEFAULTS.get(name), annotation=kind)
        for name, (kind, *_) in ((name, get_args(annotated)) for name, annotated in shared_by(function).items())
    ]
    return plain.replace(
        parameters=sorted([*parameters, *shared], key=lambda parameter: parameter.name in ("tag", "output"))
    )


@cache
def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function with their options. Texts that annotations lack come from the docstring."""
    # not typing.get_type_hints, which hides the marks of an argument whose default is None on Python 3.10
    hints, texts = inspect.get_annotations(function, eval_str=True) | shared_by(function), _split_docstring(function)[1]
    parameters = []
    for name, parameter in signature_of(function).parameters.items():
        kind, option = hints.get(name), Option()
        if hasattr(kind, "__metadata__"):
            kind, option = get_args(kind)[0], next(data for data in kind.__metadata__ if isinstance(data, Option))
        parameters.append(Parameter(name, kind, parameter.default, option, option.text or texts.get(name, "")))
    return parameters


_ARGUMENTS = re.compile(r"\n*^Arguments:\n((?:(?:    .*)?(?:\n|\Z))+)", re.MULTILINE)
_TEXT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _split_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return (the docstring without its section "Arguments:", the text of each argument in that section)."""
    doc = inspect.getdoc(function) or ""
    section = _ARGUMENTS.search(doc)
    if section is None:
        return doc, {}
    texts = {name: " ".join(text.split()) for name, text in _TEXT.findall(section[1])}
    return f"{doc[: section.start()]}\n\n{doc[section.end() :]}".strip(), texts


# Python's door


@contextmanager
def python_call(notes: list[str] | None = None) -> Iterator[list[str]]:
    """In the block a call from Python runs: notes are kept, and messages name arguments as Python does. notes: a list
    to add the notes to; without it the block gets a new one."""
    token = IN_PYTHON.set(True)
    try:
        with kept_notes() as kept_list:
            try:
                yield kept_list if notes is None else notes
            finally:
                if notes is not None:
                    notes += kept_list
    finally:
        IN_PYTHON.reset(token)


def wrap_for_python(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Return the function for callers from Python, who get its notes with a command's result. Its arguments are
    checked: it raises `UsageError` for one that does not exist, that is missing, or that has another type than
    declared. NumPy's numbers are taken as Python's."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        """Run one call from Python, with its arguments checked and its notes added to the result."""
        with python_call() as notes, claims.watch_files():
            values = bound(function, args, kwargs)
            result: Any = function(**values)  # type: ignore[call-arg]
            output = values.get("output")
            if isinstance(result, Records) and output not in (None, "-"):
                result.write(os.fspath(output))
            if isinstance(result, Result):
                result.notes[:0] = [*notes, *result.above]
            elif isinstance(result, Notes):
                result += notes
            elif isinstance(result, Records):
                result.notes += notes
                result.lines = _iterate_in_call(result.lines, result.notes)
            returned: Returned = result
            return returned

    call.__signature__ = signature_of(function)  # type: ignore[attr-defined]
    return call


def _iterate_in_call(lines: Iterator[Any], notes: list[str]) -> Iterator[Any]:
    """Yield the lines of records. Each is made in a `python_call` of its own, when it is asked for."""
    while True:
        with python_call(notes):
            try:
                line = next(lines)
            except StopIteration:
                return
        yield line


def bound(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every parameter of a call from Python; raises as the function of `wrap_for_python` does."""
    signature, function_name = signature_of(function), f"hoicli.{function.__qualname__.removesuffix('.__init__')}"
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    for name in kwargs.keys() - signature.parameters.keys():
        meant = did_you_mean(
            f"{name}_" if f"{name}_" in names else name, names, f"the arguments are {', '.join(names)}"
        )
        raise UsageError(f"{function_name}: no argument {name!r}; {meant}")
    try:
        arguments = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{function_name}: {error}; help({function_name}) has them all") from None
    parameters = parameters_of(function)
    for parameter in parameters:
        members = get_args(parameter.kind) or (parameter.kind,)
        if parameter.name in arguments.arguments and (parameter.kind in _SAID or set(members) <= _TYPES.keys()):
            arguments.arguments[parameter.name] = value = _plain(arguments.arguments[parameter.name])
            if not _is_a(value, parameter.kind):
                expected = _SAID.get(parameter.kind) or " or ".join(_TYPES[each][1] for each in members)
                raise UsageError(f"{parameter.name}={_shorten_value(value)}: give {expected}")
    arguments.apply_defaults()
    check(parameters, arguments.arguments)
    return dict(arguments.arguments)


def check(parameters: Sequence[Parameter], values: Values) -> None:
    """Raise `UsageError` if a count is out of range, a name is unknown, two inputs are stdin, a folder to read does not
    exist, or an output cannot be written, is also an input, or is also another output (`claims`, which from here on
    knows them). Raises `DataError` if stdout is closed."""
    marked = [(parameter, parameter.option.check, values.get(parameter.name)) for parameter in parameters]
    for parameter, mark, value in sorted(marked, key=lambda each: each[0].name != "output"):
        if isinstance(mark, Count | OneOf):
            mark.refuse(value, parameter.option_text(value))
        elif isinstance(mark, Written) and value is not None:
            if isinstance(value, str) and not value:
                raise UsageError(f"{parameter.option_text()}: the name is empty; give one (an unset variable?)")
            mark.refuse(os.fspath(value), parameter.option_text())
            claims.writes(os.fspath(value), parameter.option_text(), whole=mark.whole)
    inputs = [(parameter, path) for parameter, mark, value in marked if isinstance(mark, Read)
              for path in _inputs(parameter, mark, value, values)]  # fmt: skip
    if not IN_PYTHON.get() and sum(path == "-" or descriptor(path) == 0 for _, path in inputs) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")
    for parameter, path in inputs:
        name = path if isinstance(parameter.option, Argument) else f"{parameter.option_text()} {path}"
        claims.reads(path, "stdin" if path == "-" else name)
    for parameter, mark, value in marked:
        if isinstance(mark, Read) and mark.folder and value is not None and not os.path.isdir(value):
            raise UsageError(f"{parameter.option_text(value)}: there is no such folder", code="no-such-folder")


def _inputs(parameter: Parameter, mark: Read, value: Any, values: Values) -> Iterator[str]:
    """Yield the files that a parameter names to be read. mark: its mark; value: of it; values: of the whole call."""
    if isinstance(value, str) and not value and mark.names:
        raise UsageError(f"{parameter.option_text()}: the name is empty; give one (an unset variable?)")
    for path in mark.paths(value, values, piped=isinstance(parameter.option, Piped) and not IN_PYTHON.get()):
        yield from parts_of(path)


_TYPES: dict[Any, tuple[Any, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
    str: (str, "a text"),
    type(None): (type(None), "None"),
    os.PathLike[str]: (os.PathLike, "a path"),
}
"""The types of arguments that are checked here, what is taken for each, and how messages call it; what is read as a
stream is checked by its reader."""
_SAID: dict[Any, str] = {
    Names: "a name, or a list of names",
    Numbers: "a number, or a list of numbers",
    Path: "a path",
    Path | None: "a path or None",
}
"""How messages call some unions of types."""


def _is_a(value: object, kind: Any) -> bool:
    """Return whether a value is of a declared type; True and False are no numbers."""
    if kind in (Names, Numbers) and isinstance(value, list | tuple):
        return all(_is_a(item, str if kind == Names else float | str) for item in value)
    union_members = [each for each in get_args(kind) or (kind,) if each in _TYPES]
    accepted_types = tuple(_TYPES[each][0] for each in union_members)
    return isinstance(value, accepted_types) and (bool in union_members or not isinstance(value, bool))


def _plain(value: Any) -> Any:
    """Return NumPy's numbers, and lists and arrays of them, as Python's. A float32 becomes the decimal that it prints
    as, since signatures have that; anything else is unchanged."""
    if isinstance(value, list | tuple) and len(value) < 1000:
        return [_plain(item) for item in value]
    if not hasattr(value, "dtype") or not hasattr(value, "tolist") or not hasattr(value, "ndim"):
        return value
    if value.ndim:
        return [_plain(item) for item in value]
    return float(str(value)) if getattr(value.dtype, "kind", "") == "f" else value.tolist()


def _shorten_value(value: object) -> str:
    """Return an argument as it was given, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
