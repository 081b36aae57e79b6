"""A command is one function that can be called in two ways: from the shell (`shell.py`), and from Python (here).

    @command(
        reads="predictions with --gt, or match records",
        writes="result rows",
        examples="hoicli eval --gt gt.jsonl preds.jsonl  # every protocol side by side",
        see=["match", "diagnose"],
    )
    def evaluate(gt: Truth = None, predictions: Predictions = None, *, seed: Seed = 0) -> Result: ...

Both take the same parameters with the same defaults, make the same checks (`checks.py`), and name parameters in
messages as the caller wrote them (`errors.arg`).
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from itertools import chain
from numbers import Integral, Real
from textwrap import dedent, fill
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from hoicli.errors import IN_PYTHON, UsageError, did_you_mean
from hoicli.interface import options
from hoicli.interface.checks import Count, OneOf, Read, Values, Written
from hoicli.interface.options import Argument, Names, Numbers, Option, Parameter, Path, Piped
from hoicli.interface.results import Notes, Records, Result
from hoicli.io import file_claims
from hoicli.io.messages import kept_notes
from hoicli.io.opened_files import parts_of
from hoicli.io.outputs import descriptor
from hoicli.records.intake import policies_of_call

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

DECLARED: dict[str, Command] = {}
"""The commands, by the module each is declared in."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command: its function, and what its help says besides the docstring. It is used as a decorator.

    reads, writes: which records (or files) come in and go out. examples: command lines, the most common first, each
    with `# what it does` behind it; each runs in the folder of the one before, so they may be a session. see: related
    commands. exits: meanings of exit codes, where this command's differ. piped: the format of rows (a --format) if
    --format is auto and stdout is no terminal. plot: the help of --plot, "" for a command without figures. listed: a
    function that gets the arguments by name and returns whether the command then writes rows, so that --format applies;
    None for a command that never does. (Those whose function returns a `Result` always do.)"""

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
        """Decorate a function: declare it as the command of its module, and return it as Python callers get it, with
        checks of its arguments and the whole help as its docstring."""
        always_rows = (lambda _: True) if function.__annotations__["return"] == "Result" else None
        declared = replace(self, function=function, listed=self.listed or always_rows)
        DECLARED[function.__module__] = declared
        called_from_python = wrap_for_python(function)
        called_from_python.__doc__ = declared.documentation
        return called_from_python

    @property
    def parameters(self) -> list[Parameter]:
        """Return the function's parameters, in its order."""
        return parameters_of(self.function)

    @property
    def name(self) -> str:
        """Return the command's name in the shell: that of its module, with hyphens."""
        return str(self.function.__module__).rpartition(".")[2].replace("_", "-")

    @property
    def about(self) -> str:
        """Return the function's docstring without its section "Arguments:"."""
        return _split_docstring(self.function)[0]

    @property
    def example_lines(self) -> list[tuple[str, str]]:
        """Return (command line, what it does) of each text "COMMAND # PURPOSE" in `examples`. There, an indented line
        continues the one above."""
        examples = re.findall(r"^(\S.*(?:\n .*)*)", dedent(self.examples), re.MULTILINE)
        parts = (" ".join(example.split()).partition(" # ") for example in examples)
        return [(command_line, purpose) for command_line, _, purpose in parts]

    @property
    def documentation(self) -> str:
        """Return what Python's `help()` shows: the docstring, and the text of every argument, including the arguments
        that commands share, which the function's own docstring does not describe."""
        texts = [
            fill(f"    {parameter.name}: {parameter.text}", 100, subsequent_indent=" " * 8)
            for parameter in self.parameters
        ]
        return "\n".join([self.about, "", f"Reads {self.reads}; gives {self.writes}.", "", "Arguments:", *texts])


command = Command
"""The decorator of commands, in lower case, as decorators are written."""


def shared_options(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations, Annotated[type, Option], of the options that a function takes as a group: `**shared:
    Unpack[GROUP]`, where GROUP is a class in `options`. They are by name, in the order of help; {} without a group."""
    annotation = function.__annotations__.get("shared", "")  # the text "Unpack[GROUP]"
    if not annotation:
        return {}
    group = vars(options)[annotation.removeprefix("Unpack[").removesuffix("]")]
    annotations = get_type_hints(group, include_extras=True)
    return {name: annotations[name] for name in options.DEFAULTS if name in annotations}


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a command's signature as its help shows it: the options of a shared group stand one by one in place of
    `**shared`, and `tag` and `output` come last."""
    written = inspect.signature(function)
    parameters = [parameter for parameter in written.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    for name, annotation in shared_options(function).items():
        kind = get_args(annotation)[0]  # the type that Python takes
        default = options.DEFAULTS.get(name)
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return written.replace(parameters=sorted(parameters, key=lambda parameter: parameter.name in ("tag", "output")))


@cache
def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a command's function, each with its `Option`. Its help text is the option's, or if that
    has none the one in the docstring, under "Arguments:"."""
    # not typing.get_type_hints: on Python 3.10 it hides the Option of an argument whose default is None
    annotations = inspect.get_annotations(function, eval_str=True) | shared_options(function)
    _, texts = _split_docstring(function)
    parameters = []
    for name, parameter in signature_of(function).parameters.items():
        kind: Any = annotations.get(name)
        option = Option()
        if hasattr(kind, "__metadata__"):  # it is Annotated[type, Option(...)]
            option = next(data for data in kind.__metadata__ if isinstance(data, Option))
            kind = get_args(kind)[0]
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


@contextmanager
def python_call(notes: list[str] | None = None) -> Iterator[list[str]]:
    """Run the block as a call from Python: notes go into a list instead of to stderr, and messages name arguments as
    Python does. notes: the list, None for a new one. Gives the list."""
    token = IN_PYTHON.set(True)
    try:
        with kept_notes(notes) as notes:
            yield notes
    finally:
        IN_PYTHON.reset(token)


def wrap_for_python(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Return a function for callers from Python that checks the arguments, calls `function`, and adds its notes to the
    result. It raises `UsageError` for an argument that does not exist, that is missing, or that has another type than
    declared. Numbers of NumPy may be given in place of Python's."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        """Check the arguments, run the function, write its records if `output` asks for it, add the notes."""
        with python_call() as notes, file_claims.watch_files():
            values = bind_arguments(function, args, kwargs)
            result = run_function(function, values)
            output = values.get("output")
            if isinstance(result, Records) and output not in (None, "-"):
                result.write(os.fspath(output))
            if isinstance(result, Result):
                result.notes[:0] = [*notes, *result.above]  # before the notes that it has
            elif isinstance(result, Notes):
                result += notes
            elif isinstance(result, Records):
                result.notes += notes
                result.lines = _iterate_in_call(result.lines, result.notes)
            returned: Returned = result
            return returned

    call.__signature__ = signature_of(function)  # type: ignore[attr-defined]
    return call


def run_function(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a command's function, from the shell or from Python, and return what it returns; with `by`, call it for each
    group of the records. The rows of a `Result` are signed with the number of bad lines that were skipped."""
    with policies_of_call() as policies:
        if values.get("by") is None or "predictions" not in values:  # robust and validate do it themselves
            result = function(**values)
        else:
            from hoicli.interface.grouped_calls import call_by_group

            result = call_by_group(partial(run_function, function), values)
    return result.signed_by(policies) if isinstance(result, Result) else result


def _iterate_in_call(lines: Iterator[Any], notes: list[str]) -> Iterator[Any]:
    """Yield the items of `lines`, which computes each when it is asked for: long after the call from Python returned,
    so each is computed in a `python_call` of its own. notes: the list that gets its notes."""
    while True:
        with python_call(notes):
            try:
                line = next(lines)
            except StopIteration:
                return
        yield line


def bind_arguments(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every parameter of a call from Python, checked, with defaults for those not given. Raises
    `UsageError` for an argument that does not exist, that is missing, or that has another type than declared."""
    signature, function_name = signature_of(function), f"hoicli.{function.__qualname__.removesuffix('.__init__')}"
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    for name in kwargs.keys() - signature.parameters.keys():
        likely_name = f"{name}_" if f"{name}_" in names else name  # `from_` for `from`, which is Python's own word
        suggestion = did_you_mean(likely_name, names, f"the arguments are {', '.join(names)}")
        raise UsageError(f"{function_name}: no argument {name!r}; {suggestion}")
    try:
        arguments = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{function_name}: {error}; help({function_name}) has them all") from None
    parameters = parameters_of(function)
    for parameter in parameters:
        if parameter.name in arguments.arguments:
            arguments.arguments[parameter.name] = _convert_argument(parameter, arguments.arguments[parameter.name])
    arguments.apply_defaults()
    check_arguments(parameters, arguments.arguments)
    return dict(arguments.arguments)


def _convert_argument(parameter: Parameter, value: Any) -> Any:
    """Return the value of an argument from Python, with numbers of NumPy as Python's. Raises `UsageError` if it is not
    of the declared type. A type that may be a stream is left to the stream's reader to check."""
    union_members = get_args(parameter.kind) or (parameter.kind,)
    if parameter.kind not in _UNION_NAMES and not set(union_members) <= _TYPES.keys():
        return value
    value = _to_python_numbers(value)
    if not _is_a(value, parameter.kind):
        expected = _UNION_NAMES.get(parameter.kind) or " or ".join(_TYPES[member][1] for member in union_members)
        raise UsageError(f"{parameter.name}={_shorten_value(value)}: give {expected}")
    return value


def check_arguments(parameters: Sequence[Parameter], values: Values) -> None:
    """Make the checks that the parameters declare (`checks.py`), of a call from the shell or from Python.

    Raises `UsageError` if a count is out of range, a name is unknown, two inputs are stdin, a folder to read does not
    exist, an option is an empty text, or an output cannot be written, is also an input, or is also another output
    (`file_claims`, which gets to know inputs and outputs here). Raises `DataError` if stdout is closed."""
    checks = [(parameter, parameter.option.effective_check, values.get(parameter.name)) for parameter in parameters]
    for parameter, _, value in checks:
        items = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(item, str) and not item for item in items):
            raise UsageError(f"{parameter.option_text()}: is empty; give a value, or leave it out (an unset variable?)")
    # --output first: if another option names the same file, the message is about that one
    for parameter, check, value in sorted(checks, key=lambda row: row[0].name != "output"):
        if isinstance(check, Count | OneOf):
            check.refuse(value, parameter.option_text(value))
        elif isinstance(check, Written) and value is not None:
            check.refuse(os.fspath(value), parameter.option_text())
            file_claims.register_output(os.fspath(value), parameter.option_text(), whole=check.whole)

    inputs: list[tuple[Parameter, str]] = []
    for parameter, check, value in checks:
        if isinstance(check, Read):
            piped = isinstance(parameter.option, Piped) and not IN_PYTHON.get()
            # "a.mat,b.mat" is two files
            parts = chain.from_iterable(map(parts_of, check.paths(value, values, piped=piped)))
            inputs += [(parameter, path) for path in parts]
    # a path such as /dev/stdin has stdin's descriptor, 0, too
    if not IN_PYTHON.get() and sum(path == "-" or descriptor(path) == 0 for _, path in inputs) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")
    for parameter, path in inputs:
        name = path if isinstance(parameter.option, Argument) else f"{parameter.option_text()} {path}"
        file_claims.register_input(path, "stdin" if path == "-" else name)
    for parameter, check, value in checks:
        if isinstance(check, Read) and check.folder and value is not None and not os.path.isdir(value):
            raise UsageError(f"{parameter.option_text(value)}: there is no such folder", code="no-such-folder")


_TYPES: dict[Any, tuple[Any, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
    str: (str, "a text"),
    type(None): (type(None), "None"),
    os.PathLike[str]: (os.PathLike, "a path"),
}
"""Of each type that an argument may be declared with: the type that values must have, and how messages call it."""
_UNION_NAMES: dict[Any, str] = {
    Names: "a name, or a list of names",
    Numbers: "a number, or a list of numbers",
    Path: "a path",
    Path | None: "a path or None",
}
"""How messages call some unions of types."""


def _is_a(value: object, kind: Any) -> bool:
    """Return whether a value is of the declared type `kind`, a type in _TYPES or a union of these. True and False do
    not count as numbers."""
    if kind in (Names, Numbers) and isinstance(value, list | tuple):
        return all(_is_a(item, str if kind == Names else float | str) for item in value)
    union_members = [member for member in get_args(kind) or (kind,) if member in _TYPES]
    accepted_types = tuple(_TYPES[member][0] for member in union_members)
    # to isinstance, True is an int, too
    return isinstance(value, accepted_types) and (bool in union_members or not isinstance(value, bool))


def _to_python_numbers(value: Any) -> Any:
    """Return a number of NumPy, or a list or an array of them, as Python's; anything else is unchanged. A float32
    becomes the decimal number that it prints as (0.7, not 0.699999988), since signatures of results show it."""
    if isinstance(value, list | tuple) and len(value) < 1000:
        return [_to_python_numbers(item) for item in value]
    if not hasattr(value, "dtype") or not hasattr(value, "tolist") or not hasattr(value, "ndim"):
        return value
    if value.ndim:
        return [_to_python_numbers(item) for item in value]
    return float(str(value)) if getattr(value.dtype, "kind", "") == "f" else value.tolist()


def _shorten_value(value: object) -> str:
    """Return an argument as it was given, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
