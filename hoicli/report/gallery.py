"""Pictures of errors: one HTML page, complete in itself, to be opened from the disk.

Items go in, one error each with its boxes; `index.html` comes out, a card per item with the ground truth in cyan and
the prediction in red. Images are embedded, each once however many cards show it, so the page can be mailed as it is; no
image library is needed for that. The page loads nothing: its content security policy forbids it, and allows no script
but its own, so a label or a file name that holds markup is text and stays text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from shutil import copyfileobj
from typing import IO, Any

from hoicli.errors import UsageError
from hoicli.report.plots import STYLES
from hoicli.streams import atomic_path

LARGEST_IMAGE = 8 * 1024 * 1024
"""Bytes; a larger image is not embedded, for a page of such would not open."""

CARD = 340.0
"""CSS pixels an image may be wide and high on the page."""

TEXT = 13.0
"""CSS pixels of the labels in an image."""

NOT_AT_HAND = "image not at hand"

Size = tuple[float, float]
Pair = Sequence[Sequence[float]]
"""A subject's box and, where there is an object, its box."""


def write_gallery(folder: str, items: Iterable[Mapping[str, Any]], images: str | None, limit: int) -> int:
    """Write folder/index.html with a card for each of the first `limit` items; returns how many there are.

    An item holds `image_id`, `file_name` (optional), `width` and `height` (or None), `error` (a key of STYLES), `verb`,
    `label`, `score` and `rank` (None for a missed ground truth), `predicted` and `truth` (None, or [subject box, object
    box], the subject's alone where there is no object) and `truth_name`. `images` is the folder that file names are
    looked up in. The page appears whole or not at all; items are read one at a time. Raises `UsageError` for folders
    that cannot be used.
    """
    target = Path(folder)
    if limit < 1:
        raise ValueError(f"limit is {limit}; a gallery shows 1 item or more")
    if images is not None and not Path(images).is_dir():
        raise UsageError(f"--images {images}: there is no such folder")
    if target.exists() and not target.is_dir():
        raise UsageError(f"--gallery {folder}: is a file; give a folder")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"--gallery {folder}: there is no folder {target.parent}; make it first")
    made = not target.exists()
    target.mkdir(exist_ok=True)
    try:
        with (
            atomic_path(str(target / "index.html"), "--gallery") as temporary,
            tempfile.TemporaryFile() as cards,
            open(temporary, "wb") as page,
        ):
            summary = _Summary()
            pictures = _Pictures(Path(images) if images is not None else None)
            items = iter(items)
            for item in itertools.islice(items, limit):
                _write_card(cards, item, pictures)
                summary.add(item)
            page.write(_head(summary, more=next(items, None) is not None))
            cards.seek(0)
            copyfileobj(cards, page)
            page.write(_TAIL)
    except BaseException:
        if made:
            target.rmdir()
        raise
    return summary.cards


class _Summary:
    """What the filters need to know of the cards: how many of each type, and the range of scores."""

    def __init__(self) -> None:
        self.cards = 0
        self.errors: Counter[str] = Counter()
        self.low, self.high = 0.0, 1.0

    def add(self, item: Mapping[str, Any]) -> None:
        self.cards += 1
        self.errors[item["error"]] += 1
        if item.get("score") is not None:
            self.low, self.high = min(self.low, item["score"]), max(self.high, item["score"])


class _Pictures:
    """The images at hand, each written out as a symbol of the page when a card first shows it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, tuple[str, Size] | None] = {}

    def use(self, page: IO[bytes], file_name: object) -> tuple[str, Size] | None:
        """(id of the symbol, width and height of the image), or None when the image is not at hand."""
        if self._folder is None or not isinstance(file_name, str):
            return None
        if file_name not in self._known:
            self._known[file_name] = self._embed(page, file_name)
        return self._known[file_name]

    def _embed(self, page: IO[bytes], file_name: str) -> tuple[str, Size] | None:
        data = _image_bytes(self._folder, file_name)
        found = _kind_and_size(data)
        if found is None:
            return None
        kind, (width, height) = found
        name = f"i{len(self._known)}"
        # `use` scales no image, so each is drawn one unit wide and high, and the card stretches it to its own size.
        page.write(
            f'<svg class="store" aria-hidden="true"><defs><image id="{name}" width="1" height="1" '
            f'preserveAspectRatio="none" href="data:{kind};base64,'.encode()
        )
        page.write(base64.b64encode(data))
        page.write(b'"/></defs></svg>\n')
        return name, (width, height)


def _image_bytes(folder: Path | None, file_name: str) -> bytes:
    """What the file holds; nothing where the name leads out of the folder, or to no file, or to one too large.

    The name is not trusted, the folder is: links that its owner put there are followed.
    """
    posix, windows = PurePosixPath(file_name), PureWindowsPath(file_name)
    if folder is None or posix.is_absolute() or windows.anchor or ".." in {*posix.parts, *windows.parts}:
        return b""
    try:
        path = folder / file_name
        if not path.is_file() or path.stat().st_size > LARGEST_IMAGE:  # is_file: a pipe would block for ever
            return b""
        return path.read_bytes()
    except (OSError, ValueError):  # unreadable; or a name that no file can have
        return b""


def _kind_and_size(data: bytes) -> tuple[str, Size] | None:
    """("image/png" or "image/jpeg", (width, height)) by the bytes themselves; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        size = struct.unpack(">II", data[16:24])
        return ("image/png", size) if all(size) else None
    if data.startswith(b"\xff\xd8\xff"):
        size = _jpeg_size(data)
        return ("image/jpeg", size) if all(size) else None
    return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height from the frame header; (0, 0) when there is none. Segments before it are stepped over."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame, not a table or an extension
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no length follows
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _write_card(page: IO[bytes], item: Mapping[str, Any], pictures: _Pictures) -> None:
    error, score = item["error"], item.get("score")
    style = STYLES[error]
    name = f"{item['verb']} {item['label']}"
    truth_name = item.get("truth_name")
    picture = pictures.use(page, item.get("file_name"))
    facts = ["no score" if score is None else f"score {score:.3f}"]
    if item.get("rank") is not None:
        facts.append(f"rank {item['rank']}")
    drawing = _drawing(item, name, picture)
    words = f"{name} {truth_name or ''}".lower().replace("_", " ")
    truth = f'<p class="t">truth: {_text(truth_name)}</p>' if truth_name and truth_name != name else ""
    page.write(
        (
            f'<article class="card" data-error="{error}" data-score="{"" if score is None else format(score, ".6g")}" '
            f'data-words="{_text(words)}">{drawing}'
            f'<p><span class="type" style="border-color:{style.colour}">{style.words}</span> '
            f'<button type="button" class="name" title="show this class only">{_text(name)}</button></p>{truth}'
            f'<p class="facts">{", ".join(facts)}<br>{_text(item["image_id"])}</p></article>\n'
        ).encode()
    )


def _drawing(item: Mapping[str, Any], name: str, picture: tuple[str, Size] | None) -> str:
    """The image, or a grey sheet of its size, under the boxes."""
    pairs: list[tuple[str, Pair, str]] = [
        (kind, item[key], words)
        for kind, key, words in (("gt", "truth", item.get("truth_name") or name), ("pr", "predicted", name))
        if item.get(key) is not None
    ]
    width, height = _canvas(item, picture, [pair for _, pair, _ in pairs])
    unit = max(width, height) / CARD  # one CSS pixel in the image's pixels
    size = f'width="{width:g}" height="{height:g}"'
    if picture is None:
        sheet = (
            f'<rect {size} class="sheet"/><text x="{width - 6 * unit:g}" y="{height - 6 * unit:g}" '
            f'font-size="{TEXT * unit:.4g}" class="note">{NOT_AT_HAND}</text>'
        )
    else:
        sheet = f'<use href="#{picture[0]}" transform="scale({width:g} {height:g})"/>'
    shapes = []
    for kind, pair, words in pairs:
        (x1, y1), (x2, y2) = _centre(pair[0]), _centre(pair[-1])
        words = words if len(words) <= 40 else words[:39] + "\N{HORIZONTAL ELLIPSIS}"
        # The prediction's label over its boxes, the truth's under them: apart, off the scene, and inside the image.
        line = TEXT * unit
        x = max(min(*(box[0] for box in pair), width - 0.58 * line * len(words)), 0.3 * line)
        if kind == "pr":
            y = min(max(min(box[1] for box in pair) - 0.4 * line, line), height - 1.6 * line)
        else:
            y = max(min(max(box[3] for box in pair) + 1.1 * line, height - 0.4 * line), 2.2 * line)
        rectangles = "".join(_rectangle(box, name) for box, name in zip(pair, "so", strict=False))
        shapes.append(
            f'<g class="{kind}">{rectangles}'
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'
            f'<circle cx="{x1:g}" cy="{y1:g}" r="{3 * unit:.4g}"/><circle cx="{x2:g}" cy="{y2:g}" r="{3 * unit:.4g}"/>'
            f'<text x="{x:.5g}" y="{y:.5g}" font-size="{TEXT * unit:.4g}">{_text(words)}</text></g>'
        )
    return f'<svg viewBox="0 0 {width:g} {height:g}">{sheet}{"".join(shapes)}</svg>'


def _canvas(item: Mapping[str, Any], picture: tuple[str, Size] | None, pairs: Sequence[Pair]) -> Size:
    """The record's size, in whose pixels the boxes are; else the image's own; else what holds all boxes."""
    if item.get("width") and item.get("height"):
        return float(item["width"]), float(item["height"])
    if picture is not None:
        return picture[1]
    boxes = [box for pair in pairs for box in pair]
    return max([1.0, *(1.05 * box[2] for box in boxes)]), max([1.0, *(1.05 * box[3] for box in boxes)])


def _centre(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _rectangle(box: Sequence[float], kind: str) -> str:
    x1, y1, x2, y2 = box
    width, height = max(x2 - x1, 0), max(y2 - y1, 0)
    return f'<rect class="{kind}" x="{x1:g}" y="{y1:g}" width="{width:g}" height="{height:g}"/>'


def _text(value: object) -> str:
    """Someone's text as HTML text or attribute: markup escaped, control characters and half surrogates replaced."""
    text = "".join(letter if letter >= " " and letter != "\x7f" else "\ufffd" for letter in str(value))
    return html.escape(text.encode("utf-8", "replace").decode())


def _head(summary: _Summary, *, more: bool) -> bytes:
    buttons = "".join(
        f'<button type="button" data-filter="{name}" aria-pressed="false">'
        f'<i style="background:{style.colour}"></i>{style.words} <b>{summary.errors[name]}</b></button>'
        for name, style in STYLES.items()
        if summary.errors[name]
    )
    step = (summary.high - summary.low) / 100
    left_out = f"<span>the first {summary.cards}; there are more</span>" if more else ""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hoicli: errors</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<div class="bar">
<button type="button" data-filter="" aria-pressed="true">All <b>{summary.cards}</b></button>{buttons}
</div>
<div class="bar">
<label>class <input id="words" type="search" placeholder="ride bicycle"></label>
<label title="a missed ground truth has no score and stays">score from
<input id="score" type="range" min="{summary.low:g}" max="{summary.high:g}" step="{step:g}" value="{summary.low:g}">
<output id="least">{summary.low:.2f}</output></label>
<span id="shown">{summary.cards} of {summary.cards}</span>{left_out}
<span class="key"><i class="gt"></i>ground truth <i class="pr"></i>prediction
 <i class="s"></i>subject <i class="o"></i>object</span>
</div>
</header>
<main>
""".encode()


_STYLE = """
:root { color-scheme: light; }
body { margin: 0; font: 14px/1.4 system-ui, sans-serif; color: #222; background: #f3f3f3; }
header { position: sticky; top: 0; z-index: 1; padding: 8px 12px; background: #fff; border-bottom: 1px solid #ccc; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; }
.bar + .bar { margin-top: 8px; }
.bar:first-child { gap: 6px; }
button { font: inherit; color: inherit; border: 1px solid #bbb; border-radius: 4px; background: #fff; padding: 2px 8px;
  cursor: pointer; }
button[aria-pressed=true] { background: #222; color: #fff; border-color: #222; }
.bar i { display: inline-block; width: 10px; height: 10px; margin-right: 5px; border: 1px solid #666; }
.bar input { font: inherit; vertical-align: middle; }
.key { color: #555; margin-left: auto; }
.key i { width: 22px; height: 0; border: 0; border-top: 2px solid #555; vertical-align: middle; margin-left: 10px; }
.key i.gt { border-color: #00b8c8; } .key i.pr { border-color: #f22; } .key i.o { border-top-style: dashed; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 12px; padding: 12px;
  align-items: start; }
.card { min-width: 0; background: #fff; border: 1px solid #ddd; border-radius: 4px; padding: 8px;
  content-visibility: auto; contain-intrinsic-size: auto 420px; }
.card[hidden] { display: none; }
.card p { margin: 6px 0 0; overflow-wrap: anywhere; }
.card svg { display: block; width: 100%; max-height: 320px; }
.store { position: absolute; width: 0; height: 0; }
.store image { image-orientation: none; } /* boxes are in stored pixels, whatever the camera's rotation mark says */
.type { padding: 1px 6px; border-left: 6px solid; background: #eee; }
.card .name { border: 0; padding: 0; background: none; font-weight: 600; text-align: left; overflow-wrap: anywhere; }
.card .name:hover { text-decoration: underline; }
.t { color: #007480; }
.facts { color: #555; font-size: 12px; }
.sheet { fill: #ddd; }
.note { fill: #777; text-anchor: end; }
g { filter: drop-shadow(0 0 1px rgb(0 0 0 / 70%)); }
g.gt { --ink: #0ff; } g.pr { --ink: #ff1f1f; }
g rect, g line { fill: none; stroke: var(--ink); stroke-width: 2px; vector-effect: non-scaling-stroke; }
g.gt rect, g.gt line { stroke-width: 3.5px; } /* wider, so that it shows on both sides of a prediction lying on it */
g .o { stroke-dasharray: 6 4; }
g circle { fill: var(--ink); }
g text { fill: var(--ink); stroke: #000; stroke-width: 2.5px; paint-order: stroke; vector-effect: non-scaling-stroke;
  stroke-linejoin: round; font-weight: 600; }
g.pr text { fill: #ff8a80; }
"""

_SCRIPT = """
"use strict";
const cards = Array.from(document.querySelectorAll(".card"));
const buttons = Array.from(document.querySelectorAll("[data-filter]"));
const words = document.getElementById("words");
const score = document.getElementById("score");
let error = "";
function update() {
  const wanted = words.value.toLowerCase().replaceAll("_", " ").split(" ").filter(Boolean);
  const least = Number(score.value);
  const all = score.value === score.min;
  let shown = 0;
  for (const card of cards) {
    const own = card.dataset;
    const fits = (!error || own.error === error) && wanted.every(word => own.words.includes(word)) &&
      (all || own.score === "" || Number(own.score) >= least);
    card.hidden = !fits;
    shown += fits;
  }
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.filter === error));
  document.getElementById("least").value = least.toFixed(2);
  document.getElementById("shown").textContent = shown + " of " + cards.length;
}
document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.className === "name") words.value = words.value === button.textContent ? "" : button.textContent;
  else error = error === button.dataset.filter ? "" : button.dataset.filter;
  update();
});
words.addEventListener("input", update);
score.addEventListener("input", update);
update();
"""

_TAIL = f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n".encode()
