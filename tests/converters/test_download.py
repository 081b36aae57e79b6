"""Downloads from a server on this machine that behaves well, and in every other way."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hoicli.converters import download as downloads
from hoicli.converters.download import checksum, download
from hoicli.converters.named import NAMED, Part
from hoicli.errors import DataError, UsageError
from hoicli.io.working import alone

CONTENT = bytes(range(256)) * 4096
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Server:
    """Serves CONTENT. stop_after: bytes after which a response ends; ranges: whether it resumes; status: what it
    answers instead of 200; length: what it gives as Content-Length; asked: the Range header of each request."""

    url: str = ""
    stop_after: int | None = None
    ranges: bool = True
    status: int = 200
    location: str = ""
    length: str = ""
    asked: list[str | None] = field(default_factory=list)

    def part(self, checksum: str = SHA, most: int = 1 << 24) -> Part:
        return Part("set.bin", f"{self.url}/files/set.bin", checksum, most)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            start = int(wanted[6:-1]) if wanted and state.ranges else 0
            if state.status != 200 or start >= len(CONTENT):
                self.send_response(state.status if state.status != 200 else 416)
                if state.location:
                    self.send_header("Location", state.location)
                self.end_headers()
                return
            self.send_response(206 if wanted and state.ranges else 200)
            self.send_header("Content-Length", state.length or str(len(CONTENT) - start))
            self.end_headers()
            end = len(CONTENT) if state.stop_after is None else start + state.stop_after
            self.wfile.write(CONTENT[start:end])

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
    assert server.asked == [None]
    assert [path.name for path in tmp_path.iterdir()] == ["set.bin"]


def test_gits_id_of_a_file_is_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert checksum(tmp_path / "hello", "git:") == "git:ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


@pytest.mark.parametrize("ranges", [True, False], ids=["resumed", "all again"])
def test_a_broken_download_goes_on_where_it_stopped(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.stop_after, server.ranges = 300_000, ranges
    with pytest.raises(DataError, match=r"the connection broke.*goes on where"):
        download(server.part(), tmp_path)
    assert (tmp_path / "set.bin.part").stat().st_size == 300_000
    assert not (tmp_path / "set.bin").exists()
    server.stop_after = None
    assert download(server.part(), tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]


def test_a_download_that_was_complete_but_not_checked_is_checked(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENT)
    assert download(server.part(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("before", [b"", b"something else"], ids=["new", "resumed on other bytes"])
def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path, before: bytes) -> None:
    (tmp_path / "set.bin.part").write_bytes(before)
    part = server.part() if before else server.part(checksum="sha256:" + "0" * 64)
    with pytest.raises(DataError, match="is not the published file"):
        download(part, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 302, "location": "https://elsewhere.example/x"}, "redirects to https://elsewhere.example/x; get"),
        ({"status": 404}, "HTTP 404; try later"),
        ({"status": 503}, "HTTP 503; try later"),
    ],
)
def test_a_server_that_refuses(server: Server, tmp_path: Path, change: dict[str, object], said: str) -> None:
    for name, value in change.items():
        setattr(server, name, value)
    with pytest.raises(DataError) as failed:
        download(server.part(), tmp_path)
    assert str(failed.value).startswith(f"{server.url}/files/set.bin: {said}")


def test_a_file_that_does_not_end_is_stopped(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sends more than 1,000 bytes"):
        download(server.part(most=1000), tmp_path)


def test_too_much_is_not_kept_to_grow_again(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sends more than 600,000 bytes"):
        download(server.part(most=600_000), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", ["\xb2", "9" * 5000, "-5", "x"], ids=["superscript", "5,000 digits", "-5", "x"])
def test_a_length_that_is_none_is_not_believed(server: Server, tmp_path: Path, length: str) -> None:
    server.length = length
    assert download(server.part(), tmp_path).read_bytes() == CONTENT


def test_nothing_is_complete_that_was_not_begun(server: Server, tmp_path: Path) -> None:
    server.status = 416
    with pytest.raises(DataError, match="HTTP 416; try later"):
        download(server.part(), tmp_path)


def test_a_file_that_another_process_downloads_is_left_alone(server: Server, tmp_path: Path) -> None:
    with open(tmp_path / "set.bin.part", "ab") as held:
        alone(held.fileno(), tmp_path)
        with pytest.raises(DataError, match=r"set\.bin\.part: is written by another run"):
            download(server.part(), tmp_path)
    assert server.asked == []
    assert download(server.part(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_what_stands_where_a_download_goes_is_not_written_to(server: Server, tmp_path: Path, kind: str) -> None:
    precious, partial = tmp_path / "precious", tmp_path / "set.bin.part"
    precious.write_text("mine")
    if kind == "link":
        partial.symlink_to(precious)
    elif kind == "hard link":
        os.link(precious, partial)
    else:
        os.mkfifo(partial)
    with pytest.raises(DataError, match=r"set\.bin\.part: is a link, or no plain file; remove it"):
        download(server.part(), tmp_path)
    assert (precious.read_text(), server.asked) == ("mine", [])


def test_a_silent_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(downloads, "PATIENCE", 0.2)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/set.bin"
        with pytest.raises(DataError, match=r"fell silent|timed out"):
            download(Part("set.bin", url, SHA), tmp_path)


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^https://127\.0\.0\.1:9/set\.bin: no connection \(.*goes on"):
        download(Part("set.bin", "https://127.0.0.1:9/set.bin", SHA), tmp_path)


@pytest.mark.parametrize("url", ["http://example.org/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "http://[::2]/x"])
def test_only_https(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="not https"):
        download(Part("x", url, SHA), tmp_path)


def test_every_published_address_is_https_at_a_fixed_place_with_a_checksum() -> None:
    parts = [part for row in NAMED.values() for part in row.parts]
    assert parts
    for part in parts:
        assert part.url.startswith("https://")
        assert part.checksum.partition(":")[0] in ("sha256", "git")
        assert "/main/" not in part.url
        assert "/master/" not in part.url
