"""The site: every page of it, every link within it, and no request to another host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.browsers import chromium
from tests.support.readme import DOCS, ROOT

LOADED = re.compile(r'<(?:script|img|link rel="(?:stylesheet|icon|preconnect)")[^>]*(?:src|href)="?([^" >]+)')


@pytest.mark.long
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """mkdocs is strict: a broken link, or a page that the menu lacks, fails."""
    pytest.importorskip("material", reason="pip install mkdocs-material (it is in the extra dev)")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", ".mkdocs.yml", "-d", str(tmp_path)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "", "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    pages = {path.relative_to(tmp_path).with_suffix(".md") for path in tmp_path.rglob("*.html")}
    written = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    named = {path.with_name("index.md") if path.name == "README.md" else path for path in written}
    assert named <= pages
    assert {Path("tour.md"), Path("reference.md"), Path("formats/index.md")} <= pages
    for page in tmp_path.rglob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert loaded, page
        for address in loaded:
            assert not re.match(r"\w+:|//", address), f"{page} loads {address}"
            assert (page.parent / address.split("?")[0]).is_file() or page.name == "404.html", f"{page}: {address}"
    index = (tmp_path / "search/search_index.js").read_text(encoding="utf-8")  # which search reads without a server
    assert json.loads(index.removeprefix("var __index = "))["docs"]
    assert "assets/iframe-worker.js" in LOADED.findall((tmp_path / "index.html").read_text(encoding="utf-8"))
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert "hoicli.evaluate" in reference
    assert "Evaluator.update" in reference
    for address in (tmp_path.as_uri(), served_at(tmp_path)):
        assert "confusion" in found_by_search(address, "confusion")


def served_at(folder: Path) -> str:
    """Serve a folder over http while the tests run, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def found_by_search(address: str, words: str) -> str:
    """Return the first result of the site's search, as a browser shows it."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/index.html")
        page.set_default_timeout(60_000)
        page.locator(".md-search__input").click()
        page.keyboard.type(words)
        return page.locator(".md-search-result__item h1").first.inner_text()
