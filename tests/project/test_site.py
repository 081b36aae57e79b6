"""The site: every page of it, every link within it, and no request to another host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    written = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")} - {Path("README.md")}
    named = {path.with_name("index.md") if path.name == "README.md" else path for path in written}
    assert named <= pages
    assert {Path("index.md"), Path("reference.md"), Path("formats/index.md")} <= pages
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
