"""A report as GitHub-flavoured Markdown: the same sections and tables, without drawings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hoicli.errors import visible
from hoicli.report.document import Cell, Code, Document, Figures, Gallery, Lines, Link, Paragraph, Section, Table, Words
from hoicli.tables.escaping import markdown


def render(document: Document) -> bytes:
    """The document as text that ends in a line end."""
    parts = [f"# {markdown(document.title)}", _words(document.lead)]
    if document.findings:
        parts.append("\n".join(f"- {_words(words)}" for words in document.findings))
    if document.headlines:
        tiles = (
            f"- **{_cell(item.value)}** {markdown(item.label)} ({markdown(item.note)})" for item in document.headlines
        )
        parts.append("\n".join(tiles))
    for section in document.sections:
        parts += _section(section)
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _section(section: Section) -> Iterator[str]:
    yield f"## {markdown(section.title)}"
    for block in section.blocks:
        if isinstance(block, Paragraph):
            yield _words(block.words)
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Lines):
            yield "\n".join(f"    {visible(line)}" for line in block.lines)  # no fence that a file's name could close
        elif isinstance(block, Gallery):
            yield f"{len(block.items):,} errors are drawn in the HTML report."
        elif not isinstance(block, Figures):
            raise AssertionError(f"no way to write a {type(block).__name__}")


def _table(table: Table) -> Iterator[str]:
    heads, group = [], ""
    for at, head in enumerate(table.heads):
        group = (table.groups[at] or group) if table.groups else ""
        heads.append(" ".join(filter(None, (group, head))) if at >= table.names else head)
    rows = [
        map(markdown, heads),
        ("---" if at < table.names else "---:" for at in range(len(heads))),
        *(map(_cell, line) for line in table.lines),
    ]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if table.folded:
        yield f"<details><summary>{markdown(table.caption)}</summary>\n\n{body}\n\n</details>"
    else:
        yield f"**{markdown(table.caption)}**"
        yield body


def _cell(cell: Cell) -> str:
    text = _code(cell.text).replace("|", "\\|") if cell.code else markdown(cell.text)
    return f"{text} {markdown(cell.interval)}" if cell.interval else text


def _words(words: Words) -> str:
    return "".join(map(_word, words))


def _word(word: str | Code | Link) -> str:
    """A link leads to a heading of GitHub's making, so that in a file it is the name of the table alone."""
    if isinstance(word, str):
        return markdown(word)
    return _code(word.text) if isinstance(word, Code) else f"see {markdown(word.text)}"


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row; one line, as spans and table cells are."""
    text = visible(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
