"""Downloads from a server on this machine that behaves well, and in every other way."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hoicli.converters import store
from hoicli.converters.named import NAMED, Part
from hoicli.converters.store import checksum, download
from hoicli.errors import DataError

CONTENT = bytes(range(256)) * 4096
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Server:
    """Serves CONTENT. stop_after: bytes after which a response ends; status: what it answers instead of 200; asked:
    how often."""

    url: str = ""
    stop_after: int | None = None
    status: int = 200
    location: str = ""
    asked: int = 0

    def part(self, checksum: str = SHA, most: int = 1 << 24) -> Part:
        return Part("set.bin", f"{self.url}/files/set.bin", checksum, most)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked += 1
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


def test_a_file_arrives_whole_and_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    assert download(server.part(), tmp_path).read_bytes() == CONTENT
    assert download(server.part(), tmp_path) == tmp_path / "set.bin"
    assert server.asked == 1
    assert [path.name for path in tmp_path.iterdir()] == ["set.bin"]


def test_gits_id_of_a_file_is_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert checksum(tmp_path / "hello", "git:") == "git:ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


def broken(server: Server) -> Part:
    server.stop_after = 300_000
    return server.part()


REFUSED: dict[str, tuple[Callable[[Server], Part], str]] = {
    "broken": (broken, r"is not the published file"),
    "another file": (lambda server: server.part(checksum="sha256:" + "0" * 64), "is not the published file"),
    "too much": (lambda server: server.part(most=600_000), "sends more than 600,000 bytes"),
}


@pytest.mark.parametrize(("made", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_the_whole_file_leaves_nothing(
    server: Server, tmp_path: Path, made: Callable[[Server], Part], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        download(made(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


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
    with pytest.raises(DataError) as failed:
        download(server.part(), tmp_path)
    assert str(failed.value).startswith(f"{server.url}/files/set.bin: {said}")


def test_a_silent_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(store, "PATIENCE", 0.2)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/set.bin"
        with pytest.raises(DataError, match="timed out"):
            download(Part("set.bin", url, SHA), tmp_path)


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^https://127\.0\.0\.1:9/set\.bin: no download \(.*try again later"):
        download(Part("set.bin", "https://127.0.0.1:9/set.bin", SHA), tmp_path)


def test_every_published_address_is_https_at_a_fixed_place_with_a_checksum() -> None:
    parts = [part for row in NAMED.values() for part in row.parts]
    assert parts
    for part in parts:
        assert part.url.startswith("https://")
        assert part.checksum.partition(":")[0] in ("sha256", "git")
        assert "/main/" not in part.url
        assert "/master/" not in part.url
