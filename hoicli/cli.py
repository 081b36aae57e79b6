"""The typer application: names, help, lazy loading and exit codes. No logic.

Importing this module, `--help` and a wrong option load neither numpy, scipy nor nltk: a command's module is imported
when its help or its run is asked for, and imports the library inside its function.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from hoicli.commands import COMMANDS as COMMANDS
from hoicli.commands import GROUPS
from hoicli.errors import CODES, DataError, DeclarationError, HoicliError, Place, UsageError, did_you_mean
from hoicli.interface.unconverted import keep_texts
from hoicli.io import process
from hoicli.io.messages import report, set_log_options
from hoicli.io.process import close_stdout_quietly, hold_standard_streams
from hoicli.version import __version__

EXITS = {code: exit_code for exit_code, codes in CODES.items() for code in codes}
EXIT_SIGNAL = 128
"""The exit code of a process ended by a signal is this plus the signal's number, as in shells."""

COLLECTED_AFTER = 100_000
"""After how many new objects Python looks for garbage in reference cycles. Its default of 700 would take a tenth of the
start-up, which creates a hundred thousand objects that stay."""

# The base class of typer's usage errors: some typer versions import it from click, others have their own copy.
_CallError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


class LazyGroup(TyperGroup):
    """The group of all commands. A command's module, `hoicli.commands.NAME`, is imported only when the command is
    needed; importing it declares the command (`interface.command`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return typer's parameters, without typer's slow conversion of their values."""
        return keep_texts(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands in `hoicli --help`, without importing a command."""
        for title, lines in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(lines.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return (name, command, its arguments) of a command line, as typer does. Raises `UsageError` for a name that
        is no command. Its message suggests a command that begins like it (`eval` for `ev` or `evaluate`), else the one
        with the most similar spelling."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            similar = [
                command for command in COMMANDS if name and (name.startswith(command) or command.startswith(name))
            ]
            suggestion = did_you_mean(similar[0] if similar else name, COMMANDS, "hoicli --help lists them")
            raise UsageError(f"no command {name!r}; {suggestion}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the module of a command and return the command as typer has it; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module("hoicli.interface.shell").application(_load_page(cmd_name)))
        command.name = cmd_name
        command.short_help = COMMANDS[cmd_name]
        return command


app = typer.Typer(
    name="hoicli",
    cls=LazyGroup,
    help="Evaluate human-object interaction (HOI) detectors: small commands that read and write JSONL, and pipe.",
    epilog="A first session: hoicli convert preds.json | hoicli eval --gt gt.jsonl\n\nThen: hoicli help COMMAND",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(value: bool) -> None:
    """Print the version and end, if `value`: --version was given."""
    if value:
        print(f"hoicli {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Declare the options of hoicli itself, before the command's name."""


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 if it is done, that of the error (`errors.CODES`), or 128 plus
    the number of the signal that ended it.

    arguments: without "hoicli"; None for those of this process. Every failure is one line on stderr. HOICLI_DEBUG=1
    shows the traceback of an internal error.
    """
    # hoicli does no linear algebra: without this, NumPy's import starts threads that only cost time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.path.expanduser("~") == "~":  # in a container the user may have no name: libraries do not load without a home
        os.environ["HOME"] = os.sep
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    with set_log_options(arguments):
        return _flush_stdout(_run_command_line(arguments))


def _run_command_line(arguments: list[str]) -> int:
    """Run a command line, print the message of a failure, and return the exit code."""
    try:
        command = typer.main.get_command(app)
        if "_HOICLI_COMPLETE" in os.environ:  # the user pressed the Tab key, and the shell asks for completions
            command.main(prog_name="hoicli")
        if arguments[:1] == ["help"]:  # hoicli help eval
            arguments = [*arguments[1:2], "--help"]
        with command.make_context("hoicli", [*arguments] or ["--help"]) as context:
            command.invoke(context)
        return 0
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:  # the reader has seen enough: `hoicli ... | head`
        close_stdout_quietly()
        return 0
    except HoicliError as error:
        return _fail(error)
    except _CallError as error:
        name = " ".join(["hoicli", *(argument for argument in arguments[:1] if argument in COMMANDS)])
        return _fail(UsageError(f"{_call_problem(error)} ({name} --help shows how)", place=Place(name)))
    except process.EndedError as ended:
        _fail(HoicliError(f"ended by {ended}", code="interrupted"))
        return EXIT_SIGNAL + ended.number
    except (KeyboardInterrupt, typer.Abort):
        return _fail(HoicliError("interrupted", code="interrupted"))
    except OSError as error:
        return _fail(DataError(error.strerror or str(error), place=error.filename or "hoicli", code="unreadable"))
    except MemoryError:
        problem = "out of memory; split the input (one line is one image) or use a larger machine"
        return _fail(DataError(problem, code="out-of-memory"))
    except UnicodeEncodeError as error:  # the name of a file, or an option, has bytes that are no UTF-8
        quoted = error.object[max(0, error.start - 20) : error.end].split()[-1]
        problem = f"{quoted} is no UTF-8 and cannot be written; rename what is called so"
        return _fail(DataError(problem, code="unwritable"))
    except Exception as error:
        if os.environ.get("HOICLI_DEBUG"):
            raise
        if isinstance(error, ImportError):
            return _fail(UsageError(f"{error}; hoicli is not whole: install it again", code="missing-package"))
        if isinstance(error, DeclarationError):
            return _fail(HoicliError(f"internal error: {error}"))
        problem = f"internal error ({type(error).__name__}: {error}); please report it, HOICLI_DEBUG=1 shows where"
        return _fail(HoicliError(problem))


def _call_problem(error: Any) -> str:
    """Return what is wrong with a call that typer refused. For an option that the command does not have, it says which
    one may be meant: typer's own suggestions go by spelling alone."""
    page = getattr(getattr(error.ctx, "command", None), "page", None)
    if type(error).__name__ != "NoSuchOption" or page is None:
        return " ".join(error.format_message().split())
    from hoicli.interface.shell import parameters_in_shell
    from hoicli.interface.suggestions import suggest_option

    suggestion = suggest_option(error.option_name, parameters_in_shell(page), _commands_with)
    return f"no option {error.option_name}" + (f"; {suggestion}" if suggestion else "")


def _commands_with(option: str) -> list[str]:
    """Return the first three commands that have an option. option: its name in Python, without a `_` at its end."""
    from hoicli.interface.shell import parameters_in_shell

    parameters_by_command = {name: parameters_in_shell(_load_page(name)) for name in COMMANDS}
    names_by_command = {
        name: {each.name.strip("_") for each in parameters} for name, parameters in parameters_by_command.items()
    }
    return [name for name, option_names in names_by_command.items() if option in option_names][:3]


def _load_page(name: str) -> Any:
    """Return the declaration of a command (`interface.command.Command`), whose module is imported for it."""
    module = import_module(f"hoicli.commands.{name.replace('-', '_')}").__name__
    return import_module("hoicli.interface.command").DECLARED[module]


def _fail(error: HoicliError) -> int:
    """Print the error's message, if it has one, and return its exit code."""
    if error.problem:
        report(error)
    return EXITS.get(error.code, 1)


def _flush_stdout(code: int) -> int:
    """Flush stdout and return the exit code of the run: `code`, or that of an error of writing, since a full disk may
    show only now. A closed pipe (`hoicli ... | head`) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        close_stdout_quietly()
    except OSError as error:
        close_stdout_quietly()
        if code == 0:
            problem = f"cannot be written ({error.strerror}); make room, or write elsewhere"
            return _fail(DataError(problem, place=Place("<stdout>"), code="unwritable"))
    return code


def main() -> None:
    """Run the `hoicli` command as this process, and end the process with its exit code."""
    process.alone = True
    gc.set_threshold(COLLECTED_AFTER)
    process.catch_signals()
    try:
        hold_standard_streams()
        code = run()
        process.release_signals()  # nothing is left to clean up
    except KeyboardInterrupt as ended:  # it came outside `run`
        code = EXIT_SIGNAL + getattr(ended, "number", signal.SIGINT)
    # end by the same signal: a shell then sees 128 + number, and a scheduler its own signal
    if code - EXIT_SIGNAL in process.ENDING:
        process.release_signals()
        os.kill(os.getpid(), code - EXIT_SIGNAL)
    sys.exit(code)
