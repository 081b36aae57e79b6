"""Pictures of errors: one HTML page, complete in itself, to be opened from the disk.

Items go in, one error each with its boxes; `index.html` comes out, a card per item with the ground truth in cyan and
the prediction in red. Images are embedded, each once however many cards show it, so the page can be mailed as it is; no
image library is needed for that. The page loads nothing: its content security policy forbids it, and allows no script
but its own, so a label or a file name that holds markup is text and stays text.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any

from hoicli.errors import UsageError
from hoicli.figures.drawing import NOT_AT_HAND, drawing
from hoicli.figures.drawing import STYLE as DRAWING_STYLE
from hoicli.figures.markup import escaped
from hoicli.figures.pictures import LARGEST_IMAGE, Pictures
from hoicli.figures.styles import STYLES
from hoicli.io.outputs import atomic_path, check_page_folder

__all__ = ["LARGEST_IMAGE", "NOT_AT_HAND", "write_gallery"]


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
    check_page_folder(folder, "--gallery")
    made = not target.exists()
    target.mkdir(exist_ok=True)
    try:
        with (
            atomic_path(str(target / "index.html"), "--gallery") as temporary,
            tempfile.TemporaryFile() as cards,
            open(temporary, "wb") as page,
        ):
            summary = _Summary()
            pictures = Pictures(Path(images) if images is not None else None)
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
            with suppress(OSError):  # Ctrl-C or SIGTERM when the page is there already
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


def _write_card(page: IO[bytes], item: Mapping[str, Any], pictures: Pictures) -> None:
    error, score = item["error"], item.get("score")
    style = STYLES[error]
    name = f"{item['verb']} {item['label']}"
    truth_name = item.get("truth_name")
    picture = pictures.use(page, item.get("file_name"))
    facts = ["no score" if score is None else f"score {score:.3f}"]
    if item.get("rank") is not None:
        facts.append(f"rank {item['rank']}")
    scene = drawing(item, name, picture)
    words = f"{name} {truth_name or ''}".lower().replace("_", " ")
    truth = f'<p class="t">truth: {escaped(truth_name)}</p>' if truth_name and truth_name != name else ""
    page.write(
        (
            f'<article class="card" data-error="{error}" data-score="{"" if score is None else format(score, ".6g")}" '
            f'data-words="{escaped(words)}">{scene}'
            f'<p><span class="type" style="border-color:{style.colour}">{style.words}</span> '
            f'<button type="button" class="name" title="show this class only">{escaped(name)}</button></p>{truth}'
            f'<p class="facts">{", ".join(facts)}<br>{escaped(item["image_id"])}</p></article>\n'
        ).encode()
    )


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
<style>{_STYLE}{DRAWING_STYLE}</style>
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
.type { padding: 1px 6px; border-left: 6px solid; background: #eee; }
.card .name { border: 0; padding: 0; background: none; font-weight: 600; text-align: left; overflow-wrap: anywhere; }
.card .name:hover { text-decoration: underline; }
.t { color: #007480; }
.facts { color: #555; font-size: 12px; }
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
