"""A report as GitHub-flavoured Markdown: the same sections and tables, without drawings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from hoicli.figures.markup import plain
from hoicli.report.document import Cell, Code, Document, Figures, Gallery, Lines, Paragraph, Section, Table, Words

BAR = 10
"""Characters of a full bar."""
_EIGHTHS = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"


def render(document: Document) -> bytes:
    """The document as text that ends in a line end."""
    parts = [f"# {_text(document.title)}", _words(document.lead)]
    if document.headlines:
        tiles = (f"- **{_cell(item.value)}** {_text(item.label)} ({_text(item.note)})" for item in document.headlines)
        parts.append("\n".join(tiles))
    for section in document.sections:
        parts += _section(section)
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _section(section: Section) -> Iterator[str]:
    yield f"## {_text(section.title)}"
    for block in section.blocks:
        if isinstance(block, Paragraph):
            yield _words(block.words)
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Lines):
            yield _listing(block.lines)
        elif isinstance(block, Gallery):
            yield f"{len(block.items):,} errors are drawn in the HTML report."
        elif not isinstance(block, Figures):
            raise AssertionError(f"no way to write a {type(block).__name__}")


def _table(table: Table) -> Iterator[str]:
    heads, group = [], ""
    for at, head in enumerate(table.heads):
        group = (table.groups[at] or group) if table.groups else ""
        heads.append(" ".join(filter(None, (group, head))) if at >= table.names else head)
    barred = {at for line in table.lines for at, cell in enumerate(line) if cell.share is not None}

    def row(cells: Sequence[str], beside: Sequence[str]) -> str:
        """A line of the table; columns with bars have another column, `beside`, right of them."""
        pairs = (f"{cell} | {beside[at]}" if at in barred else cell for at, cell in enumerate(cells))
        return f"| {' | '.join(pairs)} |"

    rows = [
        row([_text(head) for head in heads], [""] * len(heads)),
        row(["---" if at < table.names else "---:" for at in range(len(heads))], ["---"] * len(heads)),
        *(row([_cell(cell) for cell in line], [_bar(cell.share) for cell in line]) for line in table.lines),
    ]
    body = "\n".join(rows)
    if table.folded:
        yield f"<details><summary>{_text(table.caption)}</summary>\n\n{body}\n\n</details>"
    else:
        yield f"**{_text(table.caption)}**"
        yield body


def _cell(cell: Cell) -> str:
    text = _code(cell.text).replace("|", "\\|") if cell.code else _text(cell.text)
    return f"{text} {_text(cell.interval)}" if cell.interval else text


def _bar(share: float | None) -> str:
    eighths = round(8 * BAR * min(max(share or 0.0, 0.0), 1.0))
    return "\u2588" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _words(words: Words) -> str:
    return "".join(_code(part.text) if isinstance(part, Code) else _text(part) for part in words)


def _listing(lines: Sequence[str]) -> str:
    """An indented block: no fence that a file's name could close."""
    return "\n".join(f"    {plain(line)}" for line in lines)


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row; one line, as spans and table cells are."""
    text = plain(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _text(text: str) -> str:
    """Text of any origin, with nothing in it that Markdown or HTML would read as more."""
    return re.sub(r"([\\`*{}\[\]#|~!$]|\b_|_\b)", r"\\\1", html.escape(plain(text), quote=False))
