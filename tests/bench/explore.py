"""The page's part on the explorer: building it, and in a real browser what a reader waits for.

    python -m tests.bench.explore FOLDER    only the second table, of an explorer of two models that is there

Needs playwright (pip install 'hoicli[dev-browser]') and a Chromium for the browser's table, which is empty without.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.bench import hico
from tests.bench.measuring import HOICLI, Options, Process, Table, say

HEADER = ("in Chromium, from disk", "ms")
REPEAT = 5
FILTERS = {
    "filter by type": {"type": "association"},
    "by verb": {"type": "", "verb": "hold"},
    "by object": {"verb": "", "object": "person"},
    "by score": {"object": "", "from": "0.5"},
    "by IoU": {"from": "", "iou": "0.3"},
    "by slice": {"iou": "", "slice": "objects:small"},
    "all, ordered by gain": {"slice": "", "sort": "gain"},
    "all, ordered by IoU": {"sort": "iou"},
}
"""What is changed, each after the one before, in the view of all errors."""

TIMED = """async changes => {
  const begin = performance.now();
  await go(changes, true);
  document.body.offsetHeight;
  return performance.now() - begin;
}"""


def prepare(options: Options) -> None:
    """The dump of the HICO-DET part as records."""
    if not all(path.is_file() for path in hico.records(options)):
        hico.convert(options)


def processes(options: Options) -> list[Process]:
    truth, found = map(str, hico.records(options))
    one, two = (str(options.folder / name) for name in ("explorer", "explorer-of-two"))
    return [
        Process("explore", (*HOICLI, "explore", "--gt", truth, "-o", one, found)),
        Process("explore, two models", (*HOICLI, "explore", "--gt", truth, "--name", "a,b", "-o", two, found, found)),
    ]


def facts(options: Options) -> str:
    pages = [options.folder / name for name in ("explorer", "explorer-of-two")]
    sizes = [sum(path.stat().st_size for path in page.rglob("*") if path.is_file()) / 1e6 for page in pages]
    text = (pages[0] / "data" / "facts.js").read_text().split('"')[5]
    known = json.loads(gzip.decompress(base64.b64decode(text)))
    (model,) = known["models"]
    return (
        f"{known['images']:,} images, {model['predictions']:,} predictions that count of "
        f"{model['predictions'] + model['uncounted']:,}; {sizes[0]:.0f} and {sizes[1]:.0f} MB without pictures"
    )


def waiting(options: Options) -> Table:
    """What a reader of the page of two models waits for."""
    return Table(HEADER, [*in_browser(options.folder / "explorer-of-two")])


def in_browser(folder: Path) -> list[tuple[str, ...]]:
    """(what, milliseconds): the median of REPEAT, of first views each in a new browser context."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if find_spec("playwright") is None or browser is None:
        say("no playwright or no Chromium: the browser's table stays empty")
        return []
    from playwright.sync_api import sync_playwright

    rows: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(REPEAT):
            for what, view in {"first view": "", "first view of errors": "#view=errors",
                               "first view of A right, B wrong": "#view=compare"}.items():  # fmt: skip
                page: Any = started.new_context(viewport={"width": 1280, "height": 900}).new_page()
                begin = time.perf_counter()
                page.goto(f"{folder.resolve().as_uri()}/index.html{view}")
                page.wait_for_selector("html[data-drawn]")
                rows.setdefault(what, []).append(1000 * (time.perf_counter() - begin))
                page.context.close()
        page = started.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{folder.resolve().as_uri()}/index.html#view=errors")
        page.wait_for_selector("html[data-drawn]")
        for changes in FILTERS.values():  # what they need is loaded once
            page.evaluate(TIMED, changes)
        for _ in range(REPEAT):
            for what, changes in FILTERS.items():
                page.evaluate("selected = { key: '', found: null }")  # nothing is remembered
                rows.setdefault(what, []).append(page.evaluate(TIMED, changes))
        started.close()
    return [(what, f"{sorted(times)[len(times) // 2]:.0f}") for what, times in rows.items()]


if __name__ == "__main__":
    print(Table(HEADER, [*in_browser(Path(sys.argv[1]))]).markdown())
