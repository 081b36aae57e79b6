"""A server on this machine that is asked again at once, and with no key but a test's own."""

from __future__ import annotations

import pytest

from hoicli.shoe import client


@pytest.fixture(autouse=True)
def _near_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "RETRIES", 2)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
