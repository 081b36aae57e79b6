"""A report as one HTML page that loads nothing and runs nothing: style sheet, drawings and pictures are inside.

Its content security policy allows no script at all, styles and `data:` pictures only; text of any origin is escaped. It
is made for a screen of any width, light or dark, and for paper.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from hoicli.figures.drawing import drawing
from hoicli.figures.markup import escaped
from hoicli.figures.pictures import Pictures
from hoicli.figures.styles import STYLES
from hoicli.report.document import (
    Block,
    Cell,
    Code,
    Document,
    Figures,
    Gallery,
    Lines,
    Paragraph,
    Section,
    Table,
    Words,
)
from hoicli.report.style import STYLE

LONGEST_SIDE = 480
"""Pixels of an embedded picture: a card's width on a screen of middling density."""

LONG = 20
"""Letters of a cell from which on it may be broken into lines."""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(document: Document) -> bytes:
    """The document as a page."""
    page = io.BytesIO()
    title = escaped(document.title)
    page.write(
        f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{_words(document.lead)}</p>
""".encode()
    )
    page.write(_headlines(document))
    links = "".join(f'<li><a href="#{section.id}">{escaped(section.title)}</a></li>' for section in document.sections)
    page.write(f"<nav><ul>{links}</ul></nav>\n</header>\n<main>\n".encode())
    for section in document.sections:
        _write_section(page, section)
    page.write(b"</main>\n</body>\n</html>\n")
    return page.getvalue()


def _headlines(document: Document) -> bytes:
    tiles = "".join(
        f'<div><dt>{escaped(item.label)}</dt><dd class="big">{_value(item.value)}</dd>'
        f"<dd>{escaped(item.note)}</dd></div>"
        for item in document.headlines
    )
    return f'<dl class="headlines">{tiles}</dl>\n'.encode() if tiles else b""


def _write_section(page: IO[bytes], section: Section) -> None:
    page.write(f'<section id="{section.id}">\n<h2>{escaped(section.title)}</h2>\n'.encode())
    for block in section.blocks:
        _write_block(page, block)
    page.write(b"</section>\n")


def _write_block(page: IO[bytes], block: Block) -> None:
    if isinstance(block, Paragraph):
        page.write(f"<p>{_words(block.words)}</p>\n".encode())
    elif isinstance(block, Table):
        page.write(_table(block).encode())
    elif isinstance(block, Figures):
        figures = "".join(
            f"<figure>{figure.svg}<figcaption>{escaped(figure.caption)}</figcaption></figure>\n"
            for figure in block.figures
        )
        page.write(f'<div class="figures">{figures}</div>\n'.encode() if figures else b"")
    elif isinstance(block, Lines):
        lines = "".join(f"<code>{escaped(line)}</code>" for line in block.lines)
        page.write(f'<pre tabindex="0">{lines}</pre>\n'.encode())
    else:
        _write_gallery(page, block)


def _words(words: Words) -> str:
    return "".join(f"<code>{escaped(word.text)}</code>" if isinstance(word, Code) else escaped(word) for word in words)


def _table(table: Table) -> str:
    """A table in a box of its own that scrolls sideways where it is too wide; a folded one opens under its caption."""
    caption = escaped(table.caption)
    body = "".join(f"<tr>{_line(table, line)}</tr>\n" for line in table.lines)
    box = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table>'
        f"<thead>{_heads(table)}</thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
    if table.folded:
        return f"<details><summary>{caption}</summary>\n{box}</details>\n"
    return f'<div class="table"><p class="caption">{caption}</p>\n{box}</div>\n'


def _heads(table: Table) -> str:
    above = ""
    if any(table.groups):
        starts = [at for at, group in enumerate(table.groups) if group]
        ends = [*starts[1:], len(table.heads)]
        groups = "".join(
            f'<th scope="colgroup" class="group" colspan="{end - start}">{escaped(table.groups[start])}</th>'
            for start, end in zip(starts, ends, strict=True)
        )
        above = f'<tr><td colspan="{starts[0]}"></td>{groups}</tr>\n' if starts[0] else f"<tr>{groups}</tr>\n"
    if not any(table.heads):
        return above
    heads = "".join(
        f'<th scope="col"{"" if at < table.names else _number_class(table, at)}>{escaped(head)}</th>'
        for at, head in enumerate(table.heads)
    )
    return f"{above}<tr>{heads}</tr>"


def _number_class(table: Table, at: int) -> str:
    """A value's place: flush right, and set off where a group of columns begins."""
    return ' class="n first"' if at < len(table.groups) and table.groups[at] else ' class="n"'


def _line(table: Table, line: Sequence[Cell]) -> str:
    names = "".join(
        f'<th scope="row">{_name(cell)}</th>' if at == 0 else f"<td{_long_class(cell)}>{_name(cell)}</td>"
        for at, cell in enumerate(line[: table.names])
    )
    values = "".join(
        f"<td{_number_class(table, at)}>{_value(cell)}</td>" for at, cell in enumerate(line[table.names :], table.names)
    )
    return names + values


def _long_class(cell: Cell) -> str:
    return ' class="long"' if len(cell.text) > LONG else ""


def _name(cell: Cell) -> str:
    swatch = f'<i class="mark e-{cell.mark}"></i>' if cell.mark in STYLES else ""
    return f"{swatch}<code>{escaped(cell.text)}</code>" if cell.code else f"{swatch}{escaped(cell.text)}"


def _value(cell: Cell) -> str:
    interval = f' <span class="interval">{escaped(cell.interval)}</span>' if cell.interval else ""
    bar = (
        ""
        if cell.share is None
        else f'<i class="bar"><i style="width:{100 * min(max(cell.share, 0), 1):.1f}%"></i></i>'
    )
    return f"{escaped(cell.text)}{interval}{bar}"


def _write_gallery(page: IO[bytes], gallery: Gallery) -> None:
    """A card for each error; pictures are written out where they are first shown."""
    pictures = Pictures(None if gallery.images is None else Path(gallery.images), longest=LONGEST_SIDE)
    page.write(b'<div class="gallery">\n')
    for item in gallery.items:
        style = STYLES[item["error"]]
        name = f"{item['verb']} {item['label']}".strip()
        picture = pictures.use(page, item.get("file_name"))
        truth = item.get("truth_name")
        facts = ["no score" if item["score"] is None else f"score {item['score']:.3f}"]
        told = f'<p class="truth">truth: {escaped(truth.strip())}</p>' if truth and truth.strip() != name else ""
        page.write(
            (
                f'<article class="card">{drawing(item, name, picture)}'
                f'<p><i class="mark e-{item["error"]}"></i>{style.words}: <b>{escaped(name)}</b></p>{told}'
                f'<p class="facts">{", ".join(facts)}; {escaped(item["image_id"])}</p></article>\n'
            ).encode()
        )
    page.write(b"</div>\n")
