"""Chromium for tests of pages: /usr/bin/chromium, one on the PATH, or playwright's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
              "--disable-sync", "--no-first-run")  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium for the block; skip the test if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs pip install 'hoicli[dev-browser]'")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        except api.Error as error:
            problem = f"needs a Chromium (apt install chromium, or playwright install chromium): {error.message[:80]}"
            pytest.skip(problem)
        with browser:
            yield browser
