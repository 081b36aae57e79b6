"""The site's hook for mkdocs: README.md as its tour, formats/README.md and CHANGELOG.md beside docs/, and the reference
of `import hoicli`, made from the docstrings. Links that leave these pages go to the files, which are copied.
"""

from __future__ import annotations

import inspect
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hoicli
from hoicli.interface.command import DECLARED, Command

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "tour.md", "formats/README.md": "formats/README.md", "CHANGELOG.md": "CHANGELOG.md"}
"""The pages that are not in docs/, by their path from the root: where they stand in the site."""
REFERENCE = "reference.md"
WORKER = "assets/iframe-worker.js"
"""What lets the search run without a server."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/, and every file that a page links to."""
    from mkdocs.structure.files import File

    for path, place in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, REFERENCE, content=reference()))
    files.append(File.generated(config, WORKER, abs_src_path=str(Path(__file__).with_name(Path(WORKER).name))))
    for linked in sorted(_linked()):
        files.append(File.generated(config, linked, abs_src_path=str(ROOT / linked)))
    return files


def _linked() -> set[str]:
    """The files outside docs/ that pages link to, by their path from the root; pages of the site are none of them."""
    found = set()
    for page in [*(ROOT / path for path in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve().relative_to(ROOT)
            if target.parts[0] not in {"docs"} and str(target) not in PAGES and (ROOT / target).is_file():
                found.add(str(target))
    return found


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between files as links between the site's pages."""
    here = page.file.src_uri
    source = next((path for path, place in PAGES.items() if place == here), f"docs/{here}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        place = PAGES.get(target, target.removeprefix("docs/"))
        return os.path.relpath(place, posixpath.dirname(here) or ".")

    return markdown if here == REFERENCE else _LINK.sub(moved, markdown)


def reference() -> str:
    """The page of `import hoicli`: each name with its signature, its docstring and what its arguments mean."""
    things = {name: getattr(hoicli, name) for name in hoicli.__all__}  # which imports, and so declares, every command
    commands = {one.function.__name__: one for one in DECLARED.values()}
    text = ["# Reference", inspect.cleandoc(hoicli.__doc__ or "")]
    for name, thing in things.items():
        text.append(f"## hoicli.{name} {{: #{name} }}")
        if name in commands:
            text.append(_command(name, commands[name]))
        elif inspect.isclass(thing):
            text.append(_class(thing))
        elif callable(thing):
            text += [_signature(name, thing), inspect.getdoc(thing) or ""]
        else:
            text.append(f"By name: {', '.join(f'`{key}`' for key in thing)}.")
    for kind in ("HoicliError", "DataError", "UsageError", "HoicliWarning"):
        text += [f"## hoicli.errors.{kind}", inspect.getdoc(getattr(hoicli.errors, kind)) or ""]
    return "\n\n".join(text) + "\n"


def _command(name: str, command: Command) -> str:
    texts = [(one, one.text.replace("|", r"\|")) for one in command.parameters]
    rows = [f"| `{one.name}` | `{one.default!r}` | {text} |" for one, text in texts]
    table = "\n".join(["| argument | default | |", "| --- | --- | --- |", *rows])
    return "\n\n".join([f"Reads {command.reads}; gives {command.writes}.", command.about, table])


def _class(kind: type) -> str:
    text = [_signature(kind.__name__, kind), inspect.getdoc(kind) or ""]
    for name, method in vars(kind).items():
        if not name.startswith("_") and inspect.getdoc(method):
            shown = _signature(name, method) if callable(method) else f"`{name}`"
            text += [f"### {kind.__name__}.{name}", shown, inspect.getdoc(method) or ""]
    return "\n\n".join(text)


def _signature(name: str, function: Any) -> str:
    """Names and defaults; types are in the texts."""
    given = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in given]
    shown = inspect.Signature(plain)
    line = f"{name}{shown}"
    if len(line) > 80:
        line = f"{name}(\n    " + ",\n    ".join(_arguments(plain)) + ",\n)"
    return f"```python\n{line}\n```"


def _arguments(parameters: list[inspect.Parameter]) -> Iterator[str]:
    for before, one in zip([None, *parameters], parameters, strict=False):
        if one.kind is one.KEYWORD_ONLY and (before is None or before.kind is not one.KEYWORD_ONLY):
            yield "*"
        yield str(one)
