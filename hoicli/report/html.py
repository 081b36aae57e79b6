"""A document as one HTML page that loads nothing: style sheet, drawings and pictures are inside.

Its content security policy allows styles and `data:` pictures only, and no script; text of any origin is escaped. It is
made for a screen of any width, light or dark, and for paper. The explorer's page shares kit.css and the look of a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hoicli.figures.drawing import drawing
from hoicli.figures.markup import escaped
from hoicli.figures.pictures import Pictures, Size
from hoicli.figures.styles import LOOKS, STYLES
from hoicli.io.messages import note
from hoicli.records.parsing import short
from hoicli.report.document import Block, Cell, Code, Document, Figures, Gallery, Lines, Link, Paragraph, Table, Words

LONGEST_SIDE = 480
"""Pixels of an embedded picture in a report: a card's width on a screen of middling density."""

LONG = 20
"""Letters of a cell from which on it may be broken into lines."""

PHONE = 44
"""Letters of a line of a table from which on it may be wider than a phone: there its caption says that it scrolls."""

TRUTHS = {
    "own": "truth",
    "repair": "truth, which it could become",
    "nearest": "nearest truth",
    "none": "no ground truth touches it",
}
"""How the ground truth beside an error is to it (`diagnosis.beside.RELATIONS`), in words."""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(document: Document) -> bytes:
    """The document as a page."""
    return b"".join(pieces(document))


def pieces(document: Document) -> Iterator[bytes]:
    """The page in pieces, none larger than a table or a picture."""
    yield _head(document).encode()
    pictures: dict[str | None, Pictures] = {}
    for section in document.sections:
        yield f'<section id="{section.id}">\n<h2>{escaped(section.title)}</h2>\n'.encode()
        for block in section.blocks:
            yield from (piece.encode() for piece in _block(block, pictures))
        yield b"</section>\n"
    yield b"</main>\n</body>\n</html>\n"


def sheet(name: str) -> str:
    """A style sheet that lies beside this file."""
    return files("hoicli.report").joinpath(name).read_text(encoding="utf-8")


def inks() -> str:
    """The colours of error types and series as a style sheet, which stands before the others."""
    return "\n".join(f".{name} {{ --ink: {style.colour}; }}" for name, style in LOOKS.items())


def _head(document: Document) -> str:
    title = escaped(document.title)
    tiles = "".join(
        f'<div><dt>{escaped(item.label)}</dt><dd class="big">{_value(item.value)}</dd>'
        f"<dd>{escaped(item.note)}</dd></div>"
        for item in document.headlines
    )
    headlines = f'<dl class="headlines">{tiles}</dl>\n' if tiles else ""
    said = "".join(f"<li>{_words(words)}</li>" for words in document.findings)
    findings = f'<ul class="findings">{said}</ul>\n' if said else ""
    links = "".join(f'<li><a href="#{part.id}">{escaped(part.title)}</a></li>' for part in document.sections)
    nav = f"<nav><ul>{links}</ul></nav>\n" if len(document.sections) > 1 else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{inks()}
{sheet("kit.css")}
{sheet("page.css")}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{_words(document.lead)}</p>
{findings}{headlines}{nav}</header>
<main>
"""


def _block(block: Block, pictures: dict[str | None, Pictures]) -> Iterator[str]:
    """pictures: by their folder, those that the page has."""
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
        folder = None if block.images is None else Path(block.images)
        yield from _gallery(block, folder, pictures.setdefault(block.images, Pictures(folder, longest=LONGEST_SIDE)))


def _words(words: Words) -> str:
    return "".join(map(_word, words))


def _word(word: str | Code | Link) -> str:
    if isinstance(word, str):
        return escaped(word)
    if isinstance(word, Code):
        return f"<code>{escaped(word.text)}</code>"
    return f'<a href="#{word.to}">{escaped(word.text)}</a>'


def _table(table: Table) -> str:
    """A table in a box of its own that scrolls sideways where it is too wide; a folded one opens under its caption."""
    caption, id_ = escaped(table.caption), f' id="{table.id}"' if table.id else ""
    wide = " wide" if _letters(table) > PHONE else ""
    body = "".join(f"<tr>{_line(table, line)}</tr>\n" for line in table.lines)
    box = (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{caption}"><table>'
        f"<thead>{_heads(table)}</thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
    if table.folded:
        look = ' class="wide"' if wide else ""
        return f"<details{look}{id_}><summary>{caption}</summary>\n{box}</details>\n"
    return f'<div class="table{wide}"{id_}><p class="caption">{caption}</p>\n{box}</div>\n'


def _letters(table: Table) -> int:
    """About how wide a table is: the letters of the widest cell of each column, as far as it is kept on a line, and the
    space between columns."""
    columns = zip(table.heads, *([cell.text for cell in line] for line in table.lines), strict=True)
    widest = (max(map(len, column)) for column in columns)
    first = table.lines[0] if table.lines else ()
    drawn = sum(10 * (cell.share is not None) + 3 * bool(cell.mark) for cell in first)
    return sum(wide + 2 for wide in widest) + drawn + sum(map(bool, table.groups))


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


def _gallery(gallery: Gallery, folder: Path | None, pictures: Pictures) -> Iterator[str]:
    """A card for each error; a picture is written out where it is first shown."""
    wide = " wide" if any("scene" in item for item in gallery.items) else ""
    yield f'<div class="gallery{wide}">\n'
    missing: dict[str, str] = {}
    for item in gallery.items:
        file_name = item.get("file_name")
        yield pictures.symbol(file_name)
        picture = pictures.known(file_name)
        if picture is None:
            missing[item["image_id"]] = short(file_name or f"{item['image_id']}, without file_name")
        yield card(item, picture) + "\n"
    yield "</div>\n"
    if folder is not None and missing:
        images = len({item["image_id"] for item in gallery.items})
        note(
            f"--images {folder}: no picture of {len(missing):,} of the gallery's {images:,} images "
            f"(the first: {next(iter(missing.values()))}); their boxes stand on empty sheets"
        )


def card(item: Mapping[str, Any], picture: tuple[str, Size] | None) -> str:
    """An error: its drawing, and in words its type, class, truth, score, IoU and image; of an item with `words`
    (heading, what stands under it, facts), these.

    item: of `Gallery`; picture: see `drawing`. The explorer's page makes the same card (explorer/page/drawing.js;
    tests/explorer/test_browser.py compares them).
    """
    if "words" in item:
        name, under, facts = item["words"]
        scene = item["scene"] if "scene" in item else drawing(item, item.get("predicted_name", name), picture)
        return _card(scene, f"<b>{escaped(name)}</b>", under, [facts], item)
    error, score = item["error"], item.get("score")
    name = f"{item['verb']} {item['label']}".strip()
    facts = ["no score" if score is None else f"score {score:.3f}", *_overlap(item.get("iou"))]
    facts += [f"rank {item['rank']}"] if item.get("rank") is not None else []
    heading = f"{_swatch(error)}{STYLES[error].words}: <b>{escaped(name)}</b>"
    return _card(drawing(item, name, picture), heading, _truth(item), facts, item)


def _card(scene: str, heading: str, under: str, facts: Sequence[str], item: Mapping[str, Any]) -> str:
    """scene, heading: markup; under, facts: text."""
    return (
        f'<article class="card">{scene}<p>{heading}</p><p class="truth">{escaped(under)}</p>'
        f'<p class="facts">{escaped(", ".join(facts))}; {escaped(item["image_id"])}</p></article>'
    )


def _overlap(iou: Sequence[float | None] | None) -> list[str]:
    """The IoU of the boxes with the truth beside them, rounded down: 0.499 is not 0.50."""
    values = [f"{int(value * 1e4 + 1e-9) // 100 / 100:.2f}" for value in iou or () if value is not None]
    return [f"IoU {' and '.join(values)}"] if values else []


def _truth(item: Mapping[str, Any]) -> str:
    """What would have been right."""
    truth, words = (item.get("truth_name") or "").strip(), TRUTHS[item.get("relation") or "own"]
    return f"{words}: {truth}" if truth else words
