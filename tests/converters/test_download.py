"""Downloads from a server on this machine that behaves well, and in every other way."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hoicli.converters import store
from hoicli.converters.named import NAMED, NamedTruth
from hoicli.converters.store import checksum, download
from hoicli.errors import DataError
from tests.support.llm_stub import dripping
from tests.support.project import GT, Hoicli, complaint

CONTENT = (GT).read_bytes()
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Server:
    """Serves CONTENT. stop_after: bytes after which a response ends; status: what it answers instead of 200."""

    url: str = ""
    stop_after: int | None = None
    status: int = 200
    location: str = ""

    def row(self, checksum: str = SHA) -> NamedTruth:
        return NamedTruth("hico:few", "a few images", f"{self.url}/files/gt.jsonl", checksum)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            if state.status == 200:
                self.wfile.write(CONTENT[: state.stop_after])

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.url = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield state
        running.shutdown()


def test_a_file_is_fetched_and_added(
    server: Server, hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOICLI_DATA", str(tmp_path))
    monkeypatch.setitem(NAMED, "hico:few", server.row())
    fetched = hoicli("data", "fetch", "hico:few")
    assert fetched.code == 0, fetched
    assert fetched.out.strip() == str(tmp_path / "hico" / "few.jsonl")
    assert [path.name for path in (tmp_path / "hico").iterdir()] == ["few.jsonl"]


def test_gits_id_of_a_file_is_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert checksum(tmp_path / "hello", "git:") == "git:ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


@pytest.mark.parametrize(("stop_after", "checksum"), [(300, SHA), (None, "sha256:" + "0" * 64)])
def test_what_is_not_the_whole_file_is_refused(
    server: Server, tmp_path: Path, stop_after: int | None, checksum: str
) -> None:
    server.stop_after = stop_after
    with pytest.raises(DataError, match="is not the published file"):
        download(server.row(checksum), tmp_path)


def test_what_does_not_end_is_stopped(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LARGEST", 600)
    with pytest.raises(DataError, match="sends more than 600 bytes"):
        download(server.row(), tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 302, "location": "https://elsewhere.example/x"}, "no download (HTTP Error 302: Found); try"),
        ({"status": 404}, "no download (HTTP Error 404: Not Found); try again later"),
    ],
)
def test_a_server_that_refuses(server: Server, tmp_path: Path, change: dict[str, object], said: str) -> None:
    for name, value in change.items():
        setattr(server, name, value)
    assert complaint(DataError, download, server.row(), tmp_path).startswith(f"{server.url}/files/gt.jsonl: {said}")


def test_a_silent_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(store, "PATIENCE", 0.2)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/set.bin"
        with pytest.raises(DataError, match="timed out"):
            download(NamedTruth("a:b", "", url, SHA), tmp_path)


@pytest.mark.parametrize("again", [b"HTTP/1.1 100 Continue\r\n\r\n", b"H"], ids=["please go on", "a status line"])
def test_a_server_that_does_not_come_to_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bytes) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with dripping(b"", again) as url, pytest.raises(DataError, match="timed out"):
        download(NamedTruth("a:b", "", f"{url}/set.bin", SHA), tmp_path)


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^https://127\.0\.0\.1:9/set\.bin: no download \(.*try again later"):
        download(NamedTruth("a:b", "", "https://127.0.0.1:9/set.bin", SHA), tmp_path)


def test_every_published_address_is_https_at_a_fixed_place_with_a_checksum() -> None:
    for row in NAMED.values():
        assert row.url.startswith("https://")
        assert row.checksum.partition(":")[0] in ("sha256", "git")
        assert "/main/" not in row.url
        assert "/master/" not in row.url
