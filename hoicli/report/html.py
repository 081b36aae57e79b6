"""A document as one HTML page that loads nothing: style sheet, drawings and pictures are inside.

Its content security policy allows styles and `data:` pictures only, and of scripts none but the page's own, which only
a gallery with filters has; text of any origin is escaped. It is made for a screen of any width, light or dark, and for
paper.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hoicli.figures.drawing import drawing
from hoicli.figures.markup import escaped
from hoicli.figures.pictures import Pictures
from hoicli.figures.styles import LOOKS, STYLES
from hoicli.report.document import Block, Cell, Code, Document, Figures, Gallery, Lines, Paragraph, Table, Words

LONGEST_SIDE = 480
"""Pixels of an embedded picture in a report: a card's width on a screen of middling density."""

LONG = 20
"""Letters of a cell from which on it may be broken into lines."""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(document: Document) -> bytes:
    """The document as a page."""
    return b"".join(pieces(document))


def pieces(document: Document) -> Iterator[bytes]:
    """The page in pieces, none larger than a table or a picture."""
    filters = any(isinstance(block, Gallery) and block.filters for part in document.sections for block in part.blocks)
    script = _packaged("gallery.js") if filters else ""
    yield _head(document, script).encode()
    for section in document.sections:
        yield f'<section id="{section.id}">\n<h2>{escaped(section.title)}</h2>\n'.encode()
        for block in section.blocks:
            yield from (piece.encode() for piece in _block(block))
        yield b"</section>\n"
    yield f"</main>\n{f'<script>{script}</script>' if script else ''}</body>\n</html>\n".encode()


def _packaged(name: str) -> str:
    """A file that lies beside this one."""
    return files("hoicli.report").joinpath(name).read_text(encoding="utf-8")


def _head(document: Document, script: str) -> str:
    title, policy = escaped(document.title), POLICY
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    inks = "\n".join(f".{name} {{ --ink: {style.colour}; }}" for name, style in LOOKS.items())
    tiles = "".join(
        f'<div><dt>{escaped(item.label)}</dt><dd class="big">{_value(item.value)}</dd>'
        f"<dd>{escaped(item.note)}</dd></div>"
        for item in document.headlines
    )
    headlines = f'<dl class="headlines">{tiles}</dl>\n' if tiles else ""
    links = "".join(f'<li><a href="#{part.id}">{escaped(part.title)}</a></li>' for part in document.sections)
    nav = f"<nav><ul>{links}</ul></nav>\n" if len(document.sections) > 1 else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{inks}
{_packaged("page.css")}</style>
</head>
<body{' class="wide"' if script else ""}>
<header>
<h1>{title}</h1>
<p>{_words(document.lead)}</p>
{headlines}{nav}</header>
<main>
"""


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield f"<p>{_words(block.words)}</p>\n"
    elif isinstance(block, Table):
        yield _table(block)
    elif isinstance(block, Figures):
        figures = "".join(
            f"<figure>{figure.svg}<figcaption>{escaped(figure.caption)}</figcaption></figure>\n"
            for figure in block.figures
        )
        yield f'<div class="figures">{figures}</div>\n' if figures else ""
    elif isinstance(block, Lines):
        lines = "".join(f"<code>{escaped(line)}</code>" for line in block.lines)
        yield f'<pre tabindex="0">{lines}</pre>\n'
    else:
        yield from _gallery(block)


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
    cells = []
    for at, cell in enumerate(line):
        if at >= table.names:
            cells.append(f"<td{_number_class(table, at)}>{_value(cell)}</td>")
        elif at:
            long = ' class="long"' if len(cell.text) > LONG else ""
            cells.append(f"<td{long}>{_name(cell)}</td>")
        else:
            cells.append(f'<th scope="row">{_name(cell)}</th>')
    return "".join(cells)


def _name(cell: Cell) -> str:
    name = f"<code>{escaped(cell.text)}</code>" if cell.code else escaped(cell.text)
    return _swatch(cell.mark) + name if cell.mark else name


def _swatch(error: str) -> str:
    """The colour of an error type."""
    return f'<i class="mark e-{error}"></i>'


def _value(cell: Cell) -> str:
    interval = f' <span class="interval">{escaped(cell.interval)}</span>' if cell.interval else ""
    share = 100 * min(max(cell.share or 0.0, 0.0), 1.0)
    bar = "" if cell.share is None else f'<i class="bar"><i style="width:{share:.1f}%"></i></i>'
    return f"{escaped(cell.text)}{interval}{bar}"


def _gallery(gallery: Gallery) -> Iterator[str]:
    """A card for each error; a picture is written out where it is first shown."""
    folder = None if gallery.images is None else Path(gallery.images)
    pictures = Pictures(folder, longest=None if gallery.filters else LONGEST_SIDE)
    if gallery.filters:
        yield _filters(gallery.items)
    yield '<div class="gallery">\n'
    for item in gallery.items:
        file_name = item.get("file_name")
        yield pictures.symbol(file_name)
        name = f"{item['verb']} {item['label']}".strip()
        yield _card(item, name, drawing(item, name, pictures.known(file_name)), filters=gallery.filters)
    yield "</div>\n"


def _card(item: Mapping[str, Any], name: str, scene: str, *, filters: bool) -> str:
    """An error: its drawing, and in words its type, class, truth, score and rank among its type's, and image."""
    error, score, truth = item["error"], item.get("score"), (item.get("truth_name") or "").strip()
    words = f"{name} {truth}".lower().replace("_", " ")
    shown = f'<button type="button" class="name" title="show this class only">{escaped(name)}</button>'
    told = f'<p class="truth">truth: {escaped(truth)}</p>' if truth not in ("", name) else ""
    facts = ["no score" if score is None else f"score {score:.3f}"]
    facts += [f"rank {item['rank']}"] if item.get("rank") is not None else []
    return (
        f'<article class="card" data-error="{error}" data-score="{"" if score is None else format(score, ".6g")}" '
        f'data-words="{escaped(words)}">{scene}'
        f"<p>{_swatch(error)}{STYLES[error].words}: {shown if filters else f'<b>{escaped(name)}</b>'}</p>{told}"
        f'<p class="facts">{", ".join(facts)}; {escaped(item["image_id"])}</p></article>\n'
    )


def _filters(items: Sequence[Mapping[str, Any]]) -> str:
    """What shows the cards of one type, of a class, or from a score on; gallery.js makes it work."""
    counts = Counter(item["error"] for item in items)
    buttons = "".join(
        f'<button type="button" data-filter="{name}" aria-pressed="false">'
        f"{_swatch(name)}{style.words} <b>{counts[name]}</b></button>"
        for name, style in STYLES.items()
        if counts[name]
    )
    scores = [item["score"] for item in items if item.get("score") is not None]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    return f"""<div class="filters">
<div><button type="button" data-filter="" aria-pressed="true">All <b>{len(items)}</b></button>{buttons}</div>
<div><label>class <input id="words" type="search" placeholder="ride bicycle"></label>
<label title="a missed ground truth has no score and stays">score from
<input id="score" type="range" min="{low:g}" max="{high:g}" step="{(high - low) / 100:g}" value="{low:g}">
<output id="least">{low:.2f}</output></label>
<span id="shown">{len(items)} of {len(items)}</span></div>
</div>
"""
