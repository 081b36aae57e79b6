"""Text of any origin in each notation of a table: what each would read as more than text stands as text.

Image ids, labels, tags and raters come from files that anyone may have written. In every notation a character that
does not print is written out (`hoicli.errors.visible`), so that a cell can neither steer a terminal nor hide a part of
itself. JSONL is not here: JSON escapes by itself, and keeps the text as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping

from hoicli.errors import visible

_MARKDOWN = re.compile(r"[\\`*{}\[\]#|~!$]|\b_|_\b")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LATEX = str.maketrans(
    {
        **{special: f"\\{special}" for special in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def markdown(text: str) -> str:
    """As text of GitHub-flavoured Markdown, in a table's cell or elsewhere; `_` within a word is plain there."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def latex(text: str) -> str:
    """As text of LaTeX, of its ten special characters and of three that its first fonts lack."""
    return visible(text).translate(_LATEX)


def csv_cell(value: object) -> object:
    """A cell of CSV; numbers stay. Text that a spreadsheet would run as a formula begins with `'`."""
    if not isinstance(value, str):
        return value
    formula = value.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(value)
    return f"'{visible(value)}" if formula else visible(value)


def page(text: str) -> str:
    """As text of a page."""
    return html.escape(visible(text))


ESCAPES: Mapping[str, Callable[[str], str]] = {
    "table": visible,
    "csv": str,  # its writer escapes every cell (`csv_cell`)
    "md": markdown,
    "latex": latex,
    "html": page,
}
"""What each notation of `texts.TextTable` does to a text."""
