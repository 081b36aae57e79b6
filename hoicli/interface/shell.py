"""How a command runs in the shell: its options as typer takes them, its help page, and where its result goes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import typer
from typer.core import TyperCommand

from hoicli.errors import UsageError, arg
from hoicli.interface import choices
from hoicli.interface.checks import FIGURE
from hoicli.interface.command import Command, check_arguments, run_function
from hoicli.interface.options import Argument, Option, Parameter, notation, output
from hoicli.interface.results import Records, Result, look_of
from hoicli.interface.unconverted import keep_texts
from hoicli.io.file_claims import watch_files
from hoicli.io.messages import note
from hoicli.io.outputs import write_output

EXIT_CODES = {
    0: "done",
    1: "the data is wrong; one line on stderr says where, and what to do",
    2: "the call is wrong; nothing was written",
}
"""What exit codes mean, unless a command's page says otherwise."""

_UNBROKEN = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"| \| \S+(?: -\S+ (?=\S))?| [->]\S* (?=[^\s|>-])""")
"""The parts of an example that are never broken into two lines: a quoted text, the command after a pipe, an option with
its value."""

_FIXED_HYPHEN = "\u2011"
"""Stands for a hyphen while help is wrapped, so that no name of an option or a command is broken into two lines."""

_WIDTH = Option("W", "The width of --plot in inches.")
_FONT_SIZE = Option("S", "The text size of --plot in points (8; with --style slide 14).")
_STYLE = Option("", "What --plot is for: paper, or a slide.", one_of="figures.styles:SHEETS")
_QUIET = Option("", "Print only errors on stderr: no notes, no progress.")
_LOG = Option("", "What stderr has: text, or each message as one line of JSON.", one_of=("text", "json"))


def parameters_in_shell(command: Command) -> list[Parameter]:
    """Return the parameters of the command's function, then the options that only the shell has: where and how the
    result is drawn and written, and what stderr gets (--quiet and --log, which `messages.set_log_options` reads)."""
    function_names = {parameter.name for parameter in command.parameters}
    added: list[tuple[str, Any, Any, Option]] = []  # name, type, default, option
    if command.plot:
        added += [
            ("plot", str | None, None, Option("FILE", command.plot, check=FIGURE)),
            ("width", float | None, None, _WIDTH),
            ("font_size", float | None, None, _FONT_SIZE),
            ("style", str, "paper", _STYLE),
        ]
    if command.listed is not None:
        added.append(("format", str, "auto", notation(command.piped)))
    added += [("output", str, "-", output()), ("quiet", bool, False, _QUIET), ("log", str, "text", _LOG)]
    parameters = (Parameter(name, kind, default, option, option.text) for name, kind, default, option in added)
    return [*command.parameters, *(parameter for parameter in parameters if parameter.name not in function_names)]


def application(command: Command) -> typer.Typer:
    """Return the command as an application of typer, which parses arguments by the signature that is given here to
    `run_command`: a parameter for each of the command's, declared as typer wants it."""
    parameters = parameters_in_shell(command)

    def run_command(**values: Any) -> None:
        """Run the command with the values that typer parsed."""
        _run(command, parameters, values)

    in_help = sorted(parameters, key=lambda parameter: not isinstance(parameter.option, Argument))
    run_command.__signature__ = inspect.Signature(list(map(_typer_parameter, in_help)))  # type: ignore[attr-defined]
    run_command.__doc__ = command.about.replace("-", _FIXED_HYPHEN)  # no line of the help ends at these hyphens
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=type("Command", (ManualCommand,), {"page": command}))(run_command)
    return app


def _typer_type(parameter: Parameter) -> Any:
    """Return the type that typer parses a parameter as: a flag, a text, or a list of texts. Numbers are texts to typer
    (`_value` converts them)."""
    takes_many = isinstance(parameter.option, Argument) and parameter.option.metavar.endswith("...")
    if parameter.option.several or parameter.option.repeated or takes_many:
        return list[str] | None
    if parameter.kind is bool:
        return bool
    return str if isinstance(parameter.default, str) else str | None


def _typer_parameter(parameter: Parameter) -> inspect.Parameter:
    """Return a parameter of the signature that typer reads: its type, and its declaration in place of a default."""
    kind, declared = _typer_type(parameter), _typer_default(parameter)
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


def _typer_default(parameter: Parameter) -> Any:
    """Return a typer.Argument or typer.Option that declares a parameter; typer reads it as the parameter's default
    value in the signature."""
    option = parameter.option
    values = option.offer or option.one_of
    is_number = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    default = str(parameter.default) if is_number else parameter.default
    completion = choices.completer(values, several=option.several) if values else None
    metavar = option.metavar or "|".join(name for name, _ in choices.entries(values)) or None
    shown: dict[str, Any] = {"metavar": metavar, "help": parameter.text, "autocompletion": completion}
    if isinstance(option, Argument):
        return typer.Argument(default, **shown)
    name = f"--{parameter.name.rstrip('_').replace('_', '-')}"
    names = [option.short, name] if option.short else [name]
    if parameter.kind is bool and default:  # a flag that is on by default has one that turns it off
        names = [f"{name}/--no-{name[2:]}"]
    return typer.Option(default, *names, rich_help_panel=option.panel or None, **shown)


def _run(command: Command, parameters: Sequence[Parameter], values: dict[str, Any]) -> None:
    """Run one call from the shell: check the values, call the function, draw and write its result. values: what typer
    parsed, by parameter. Raises `HoicliError` if the result says that the command failed although it has rows."""
    values = {parameter.name: _value(parameter, values[parameter.name]) for parameter in parameters}
    function_values = {parameter.name: values[parameter.name] for parameter in command.parameters}
    shell_values = {name: value for name, value in values.items() if name not in function_values}
    output = str(values.get("output") or "-")
    with watch_files():
        check_arguments(parameters, values)
        _check_row_options(command, function_values, shell_values, output)
        look = None
        if command.plot:
            # plot_kind: an option of the function that makes sense only with --plot
            kinds = [parameter for parameter in command.parameters if parameter.name == "plot_kind"]
            others_given = {kind.name: function_values[kind.name] != kind.default for kind in kinds}
            look = look_of(*(shell_values[name] for name in ("plot", "width", "font_size", "style")), **others_given)
        result = run_function(command.function, function_values)
        if isinstance(result, str):
            write_output(output, result.encode(errors="surrogateescape"))
        elif isinstance(result, Records):
            result.write(output)
        elif isinstance(result, Result):
            if look is not None and shell_values["plot"] is not None and result.draw is not None:
                result.draw(shell_values["plot"], look)
            _write_rows(command, result, shell_values, output)
        if isinstance(result, Records | Result) and result.failed is not None:
            raise result.failed


def _check_row_options(
    command: Command, function_values: dict[str, Any], shell_values: dict[str, Any], output: str
) -> None:
    """Raise `UsageError` for --plot and --format if this call writes no rows, and for a file name whose ending is that
    of another format than the rows have. function_values, shell_values: the options of the function, and those that
    only the shell has; output: the file's name."""
    if command.listed is not None and command.listed(function_values):
        from hoicli.tables.notations import chosen_format

        chosen_format(shell_values["format"], output)  # raises for the wrong ending
        if shell_values.get("plot") is not None and function_values.get("by") and "predictions" in function_values:
            others = "hoicli robust --plot draws the rows of eval --by corruption,severity"
            raise UsageError(f"{arg('plot')}: draws one test set; give one group without {arg('by')} ({others})")
    elif row_options := [name for name in ("plot", "format") if shell_values.get(name) not in (None, "auto")]:
        raise UsageError(f"{' and '.join(map(arg, row_options))}: no rows are written here; leave it out")


def _write_rows(command: Command, result: Result, shell_values: dict[str, Any], output: str) -> None:
    """Write the rows of a result to the file `output`, and its notes to stderr. The sentences above a table go to
    stderr, too, unless stdout is a terminal that shows them with the table. In HTML the tables are a page."""
    from hoicli.tables.notations import chosen_format, note_json_lines, shown_notation

    chosen = shell_values.get("format", "auto")  # not every command has --format
    notation = chosen_format(chosen, output, piped=result.piped or command.piped)
    if notation != "table" or output != "-" or not sys.stdout.isatty():
        for sentence in result.above:
            note(sentence)
    text = result.render_rows(shown_notation(notation, output))
    if notation == "html":
        from hoicli.tables.html_page import html_page

        text = html_page(f"hoicli {command.name}", text)
    write_output(output, text)
    if notation == "jsonl":
        note_json_lines(output)
    if result.hint and notation == "table" and shell_values.get("plot") is None:
        note(result.hint)


def _value(parameter: Parameter, parsed: Any) -> Any:
    """Return a parameter's value from what typer parsed: a text, a list of texts, a flag or None. A text is converted
    if the parameter is a number, and an empty list becomes None.

    Typer could convert numbers itself, but would load Pydantic for that, which takes as long as reading a ground truth.
    Raises `UsageError` for what is no number."""
    number_type = next((kind for kind in (int, float) if parameter.kind in (kind, kind | None)), None)
    if isinstance(parsed, list | tuple) and not parsed:
        return None
    if parsed is None or number_type is None:
        return parsed
    try:
        return number_type(parsed)
    except ValueError:
        expected = "a whole number" if number_type is int else "a number"
        raise UsageError(f"{parameter.option_text(parsed)}: give {expected}") from None


class ManualCommand(TyperCommand):
    """A command of typer whose help is laid out like a page of a manual. page: what the help says."""

    page: Command

    def get_params(self, ctx: Any) -> list[Any]:
        """Return typer's parameters, without typer's conversion of their values (`keep_texts`)."""
        return keep_texts(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, but refuse an option with one value that is given twice (typer takes the last). A flag
        may be repeated, unless it has an opposite (--x/--no-x)."""
        _, _, params_given = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.params:
            takes_several = getattr(param, "multiple", False) or getattr(param, "count", False)
            is_plain_flag = getattr(param, "is_flag", False) and not param.secondary_opts
            times_given = sum(param_given is param for param_given in params_given)
            if not takes_several and not is_plain_flag and times_given > 1:
                names = "/".join((*param.opts, *param.secondary_opts))
                raise UsageError(f"{self.name}: {names} is given twice; keep one")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line: [OPTIONS] and the arguments' metavars, such as [PREDS...]."""
        metavars = [param.metavar for param in self.params if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(f"[{metavar}]" for metavar in metavars)]

    def get_help(self, ctx: Any) -> str:
        """Return the wrapped help, with its hyphens put back."""
        return super().get_help(ctx).replace(_FIXED_HYPHEN, "-")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of streams (what is read and written), arguments and options; each option under the title
        that is declared for it (`Option.panel`), else under "Options"."""
        with formatter.section("Streams"):
            formatter.write_dl([("reads", self.page.reads), ("writes", self.page.writes)])
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                default_text = f"  [default: {param.default}]" if isinstance(param.default, str) else ""
                panels.setdefault("Arguments", []).append((str(param.metavar), f"{param.help}{default_text}"))
            elif record := param.get_help_record(ctx):
                panels.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name, text.replace("-", _FIXED_HYPHEN)) for name, text in records])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of examples, exit codes and related commands, at the end of the help."""
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for number, (command_line, purpose) in enumerate(self.page.example_lines):
                lines = wrap_command_line(command_line, formatter.width - formatter.current_indent)
                blank_line = "\n" if number else ""
                formatter.write(blank_line + "".join(f"{indent}{line}\n" for line in (f"# {purpose}", *lines)))
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in {**EXIT_CODES, **self.page.exits}.items()])
        with formatter.section("See also"):
            formatter.write_text(", ".join(f"hoicli {name}" for name in self.page.see).replace("-", _FIXED_HYPHEN))


def wrap_command_line(command: str, width: int) -> list[str]:
    """Return a command line as lines of at most `width` characters, all but the last with a backslash at the end."""
    if len(command) <= width:
        return [command]
    # spaces where no line may end become NUL while the text is wrapped; a line may end before the part, at its first
    # character
    unbroken = _UNBROKEN.sub(lambda match: match[0][:1] + match[0][1:].replace(" ", "\0"), command)
    lines = wrap(unbroken, width - 2, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines).replace("\0", " ").splitlines()
