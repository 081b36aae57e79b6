"""What `hoicli CMD --help` shows beyond the options: streams, examples, exit codes and related commands.

    @command(
        reads="predictions with --gt, or match records",
        writes="result rows",
        examples=[("hoicli eval --gt gt.jsonl preds.jsonl", "every protocol side by side")],
        see=["match", "diagnose"],
    )
    def evaluate(...) -> None: ...

tests/commands/test_help.py runs the examples as shown. Options declared with a `panel` are listed under
that title, the rest under "Options".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import typer
from typer.core import TyperCommand

from hoicli.commands.checks import check, located, marks
from hoicli.commands.values import unconverted
from hoicli.errors import UsageError
from hoicli.io.claims import watched

EXIT_CODES = {
    0: "done",
    1: "the data is wrong; one line on stderr says where, and what to do",
    2: "the call is wrong; nothing was written",
}
"""What exit codes mean, unless a command's page says otherwise."""

_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""")
"""A word of a command line with its quotes; long lines are broken only between words."""

_NUMBER = re.compile(r"valid (integer|float|number)\b")
"""The part of typer's message, in all its versions, that names the expected kind of number."""


@dataclass(frozen=True)
class Page:
    """The facts of one command.

    reads, writes: which records (or files) come in and go out. examples: (command line, what it does), the most common
    first; each runs in the folder of the one before, so they may be a session. see: related commands. exits: exit codes
    whose meaning differs from EXIT_CODES."""

    reads: str
    writes: str
    examples: Sequence[tuple[str, str]]
    see: Sequence[str]
    exits: Mapping[int, str]


DECLARED: dict[str, typer.Typer] = {}
"""The typer application of each command, by the module it is declared in."""


def command(
    *,
    reads: str,
    writes: str,
    examples: Sequence[tuple[str, str]],
    see: Sequence[str],
    exits: Mapping[int, str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares the function as the command of its module, with this page; see `Page`."""
    page = Page(reads, writes, examples, see, exits or {})

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        app = DECLARED[function.__module__] = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=type("Command", (ManualCommand,), {"page": page}))(_ungrouped(function))
        return function

    return declare


def _ungrouped(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer can read it: a parameter whose type is a dataclass becomes the options that are its
    fields."""
    signature = inspect.signature(function, eval_str=True)
    declared = {name: one.annotation for name, one in signature.parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in declared.items() if is_dataclass(kind)}
    options = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    def called(**values: Any) -> None:
        made = {name: group(**{key: values.pop(key) for key in options[name]}) for name, group in groups.items()}
        function(**values, **made)

    flat = [each for name, one in signature.parameters.items() for each in options.get(name, {name: one}).values()]
    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    called.__doc__, called.__signature__ = function.__doc__, signature.replace(parameters=by_name)  # type: ignore[attr-defined]
    return called


class ManualCommand(TyperCommand):
    """A command whose help is a page of a manual."""

    page: Page

    def get_params(self, ctx: Any) -> list[Any]:
        return unconverted(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does, with two more rules: an option with one value may not be given twice (typer takes the last
        silently); the message for a bad number is hoicli's own."""
        values, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.params:
            several = getattr(param, "multiple", False) or getattr(param, "count", False)
            harmless = getattr(param, "is_flag", False) and not param.secondary_opts
            if not several and not harmless and sum(each is param for each in given) > 1:
                raise UsageError(
                    f"{self.name}: {'/'.join((*param.opts, *param.secondary_opts))} is given twice; keep one"
                )
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            wanted, wrong = _NUMBER.search(error.message), error.param
            if wanted is None or wrong is None:
                raise
            kind = "a whole number" if wanted[1] == "integer" else "a number"
            raise UsageError(f"{_shown_name(wrong)} {values.get(str(wrong.name))}: give {kind}") from None

    def invoke(self, ctx: Any) -> Any:
        """Find named ground truth, check inputs and outputs, then run the command."""
        assert self.callback is not None
        marked = marks(self.callback)
        ctx.params.update(located(marked, ctx.params))
        with watched():
            check(marked, {param.name: _shown_name(param) for param in self.params}, ctx.params)
            return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line shows the arguments' metavars, whose dots say where several are allowed."""
        metavars = [param.metavar for param in self.params if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(f"[{metavar}]" for metavar in metavars)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Streams, arguments and options, the options under the titles they were declared with."""
        with formatter.section("Streams"):
            formatter.write_dl([("reads", self.page.reads), ("writes", self.page.writes)])
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                panels.setdefault("Arguments", []).append((str(param.metavar), _argument_help(param)))
            elif record := param.get_help_record(ctx):
                panels.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples, exit codes and related commands."""
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for number, (command, purpose) in enumerate(self.page.examples):
                lines = wrapped(command, formatter.width - formatter.current_indent)
                blank = "\n" if number else ""
                formatter.write(blank + "".join(f"{indent}{line}\n" for line in (f"# {purpose}", *lines)))
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in {**EXIT_CODES, **self.page.exits}.items()])
        with formatter.section("See also"):
            formatter.write_text(", ".join(f"hoicli {name}" for name in self.page.see))


def _shown_name(param: Any) -> str:
    """What messages call a parameter: -o, --gt, PREDS."""
    return str(param.metavar).rstrip(".") if param.param_type_name == "argument" else str(param.opts[0])


def _argument_help(param: Any) -> str:
    """An argument's help with its default, as options show theirs."""
    default = param.default
    return str(param.help) + (f"  [default: {default}]" if isinstance(default, str) else "")


def wrapped(command: str, width: int) -> list[str]:
    """A command line in lines of at most `width` columns, continued with backslashes: broken before a pipe if the next
    command fits on a line, never between an option and its value."""
    if len(command) <= width:
        return [command]
    words = _WORD.findall(command)
    room = width - 6  # four columns of indent, two for the backslash
    lines: list[str] = []
    line = ""
    for number, word in enumerate(words):
        together = [word, *words[number + 1 : number + 2]] if word[0] in "->" else [word]
        if word == "|":
            end = next((at for at in range(number + 1, len(words)) if words[at] == "|"), len(words))
            together = words[number : end if len(" ".join(words[number:end])) <= room else number + 2]
        if line and len(line) + 1 + len(" ".join(together)) > width - 2:
            lines.append(f"{line} \\")
            line = f"    {word}"
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
