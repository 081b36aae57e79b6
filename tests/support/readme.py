"""What the documents show is what the commands print: `python -m tests.support.readme [FILE...]` runs them all again.

The documents are README.md and docs/**/*.md. Each is run by itself, in a new folder where `fixtures` and `formats` are
those of the repository and files made by its earlier blocks stay:

- In a block marked `console`, a line that begins with `$ ` is a command for the shell; what follows up to the next
  command is its standard output and error together. A command that fails ends the run with a message, unless the line
  `<!-- errors -->` stands above the block: there, some command is meant to fail.
- A block marked `python` is a program; the lines `# -> ` at its end are what it prints.
- A line that begins with `Contents:` has links to the headings of the second level.
- On the page of a command, what stands between the marks `<!-- help -->` and `<!-- /help -->` is `hoicli help COMMAND`.
- Between `<!-- codes -->` and `<!-- /codes -->` are the codes of errors, between `<!-- metrics -->` and
  `<!-- /metrics -->` the metrics of each command.

The list of metrics in formats/result.schema.json is written, too, and hoicli/__init__.pyi.

tests/project/test_readme.py holds the documents to it, tests/project/test_recipes.py the recipes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hoicli
from hoicli.errors import CODES
from hoicli.records.metrics import metric_rows
from tests.support.forks import put_hoicli

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
DOCUMENTS = {str(path.relative_to(ROOT)): path for path in (README, *sorted(DOCS.rglob("*.md")))}
"""Each document by its path from the repository's root."""

_ERRORS = "<!-- errors -->"
_BLOCK = re.compile(rf"^({_ERRORS}\n)?```(console|python)\n(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
_OUTPUT = "# -> "
SHELL = ["bash", "-o", "pipefail", "-c"]
"""How an example is run: it fails, too, if a command fails whose output another one reads."""
DONE = (0, 3, 141)
"""The exit codes of an example that does not fail: 3 says that a model is worse, 141 that `head` has read enough."""
_CONTENTS = re.compile(r"^Contents:.*$", re.MULTILINE)
_HELP = re.compile(r"(?<=<!-- help -->\n).*?(?=<!-- /help -->)", re.DOTALL)

_CODES = re.compile(r"(?<=<!-- codes -->\n).*?(?=<!-- /codes -->)", re.DOTALL)
_METRICS = re.compile(r"(?<=<!-- metrics -->\n).*?(?=<!-- /metrics -->)", re.DOTALL)

STUB = ROOT / "hoicli/__init__.pyi"
RESULTS = ROOT / "formats/result.schema.json"


def commands(text: str) -> list[str]:
    return [line for _, kind, block in _BLOCK.findall(text) if kind == "console" for line in _commands(block)]


def page_of(command: str) -> Path:
    return DOCS / "commands" / f"{command}.md"


def without_help(text: str) -> str:
    """A document without the part that is made from the command's own options."""
    return _HELP.sub("", text)


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(text: str) -> list[tuple[int, str]]:
    """(level, heading) of a document, its blocks aside."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [(len(level), heading) for level, heading in re.findall(r"^(#+) (.+)$", plain, re.MULTILINE)]


def rewritten(path: Path) -> str:
    """A document with the outputs that its blocks have now.

    Raises RuntimeError if one of its commands or programs fails and is not meant to.
    """
    help_block = f"```console\n$ hoicli help {path.stem}\n```\n"
    text = _HELP.sub(lambda _: help_block, path.read_text())
    rows = [f"| {exit_code} | `{code}` | {means} |" for exit_code, of in CODES.items() for code, means in of.items()]
    table = "\n".join(["| exit | code | what it means |", "| --- | --- | --- |", *rows])
    text = _CODES.sub(lambda _: f"{table}\n", text)
    text = _METRICS.sub(lambda _: metric_tables(), text)
    contents = " · ".join(f"[{heading}](#{anchor(heading)})" for level, heading in headings(text) if level == 2)
    text = _CONTENTS.sub(lambda _: f"Contents: {contents}", text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shown in ("fixtures", "formats"):
            (folder / shown).symlink_to(ROOT / shown)
        put_hoicli(folder / ".bin")
        try:
            return _BLOCK.sub(lambda block: _run_block(folder, *block.groups("")), text)
        except RuntimeError as error:
            raise RuntimeError(f"{path}: {error}") from None


def metrics_by_command() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in metric_rows():
        tables.setdefault(row["commands"].split(", ")[0], []).append(row)
    return tables


def metric_tables() -> str:
    parts = []
    for command, rows in metrics_by_command().items():
        page = f"commands/{command.split()[0]}.md"
        parts += [
            f"## {command}\n",
            f"[The command]({page}).\n",
            "| metric | what it is | unit | better | source | signed |",
        ]
        parts.append("| --- | --- | --- | --- | --- | --- |")
        for row in rows:
            others = row["commands"].split(", ")[1:]
            says = row["says"] + (f" Also {', '.join(others)}." if others else "")
            cells = (f"`{row['name']}`", says, row["unit"], row["better"] or "", row["source"] or "ours", row["signed"])
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def schema_with_metrics(text: str) -> str:
    """The schema of rows with the metrics that there are."""
    of_commands = [
        f"{', '.join(dict.fromkeys(row['name'] for row in rows))} ({command})"
        for command, rows in metrics_by_command().items()
    ]
    description = f"hoicli vocab --list metrics says what each is: {'; '.join(of_commands)}"
    return re.sub(
        r'("metric": \{\s*"type": "string",\s*"description": )"[^"]*"',
        lambda match: f"{match[1]}{json.dumps(description)}",
        text,
    )


def stub() -> str:
    """What type checkers know of `hoicli`: the public names, each imported from its module."""
    modules = {**vars(hoicli)["_MODULES"], "__version__": "version"}
    lines = [f"from hoicli.{module} import {name} as {name}\n" for name, module in modules.items()]
    about = '"""The names of `hoicli` for type checkers; `__init__.py` imports each when it is first used."""\n'
    return "".join([about, "\nfrom hoicli import errors as errors\n", *sorted(lines), "\n__all__: list[str]\n"])


def _commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def _run_block(folder: Path, errors: str, kind: str, block: str) -> str:
    """A block with its outputs. errors: the mark above it that a command is meant to fail, or ""."""
    if kind == "python":
        return f"{errors}```python\n{_run_python(block, folder)}"
    parts, failed = [], ""
    for command in _commands(block):
        done = _run([*SHELL, command], folder)
        output = done.stdout
        parts.append(f"$ {command}\n{output}{'' if output.endswith(chr(10)) or not output else chr(10)}")
        if done.returncode not in DONE:
            failed += f"{parts[-1]}(exit code {done.returncode})\n"
    if failed and not errors:
        raise RuntimeError(
            f"an example fails; mend it, or if it is meant to, write {_ERRORS} above its block\n{failed}"
        )
    if errors and not failed:
        raise RuntimeError(f"no example fails; leave out {_ERRORS} above the block\n{''.join(parts)}")
    return f"{errors}```console\n{''.join(parts)}"


def _run_python(block: str, folder: Path) -> str:
    program = "".join(line for line in block.splitlines(keepends=True) if not line.startswith(_OUTPUT))
    done = _run([sys.executable, "-c", program], folder)
    if done.returncode:
        raise RuntimeError(f"{program}\n{done.stdout}")
    return program + "".join(f"{_OUTPUT}{line}\n" for line in done.stdout.splitlines())


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    environment["HOICLI_DATA"] = str(folder / "annotations")
    return subprocess.run(
        words, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def main(names: list[str]) -> None:
    """Write the documents named, or all, with the outputs that they have now; and the schema of rows, and the stub."""
    STUB.write_text(stub())
    RESULTS.write_text(schema_with_metrics(RESULTS.read_text()))
    paths = [Path(name) for name in names] or list(DOCUMENTS.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs, failed = [pool.submit(rewritten, path) for path in paths], []
        for path, run in zip(paths, runs, strict=True):
            if error := run.exception():
                failed.append(str(error))
            elif run.result() != path.read_text():
                path.write_text(run.result())
                print(path)
    sys.exit("\n".join(failed) or None)


if __name__ == "__main__":
    main(sys.argv[1:])
