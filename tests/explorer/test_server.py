"""--serve: for this machine alone, nothing but the page's own files, and only to be read."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoicli.explorer.server import Explorer
from tests.support.explorers import serving, write_scenes
from tests.support.project import PATIENCE
from tests.support.tiny import png


@contextmanager
def running(explorer: Explorer) -> Iterator[Explorer]:
    with explorer:
        thread = threading.Thread(target=explorer.serve_forever, args=(0.02,))
        thread.start()
        yield explorer
        explorer.shutdown()
        thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Explorer]:
    (tmp_path / "one.png").write_bytes(png())
    (tmp_path / "secret").write_text("secret")
    pictures = {"pictures/000000.png": tmp_path / "one.png", "pictures/000001.png": tmp_path / "gone.png"}
    with running(Explorer({"index.html": b"<p>page</p>", "data/facts.js": b"x"}, pictures)) as made:
        yield made


def asked(
    server: Explorer, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.putrequest(method, path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_page_and_its_pictures(server: Explorer) -> None:
    code, content, headers = asked(server, "/")
    assert (code, content, headers["Content-Type"]) == (200, b"<p>page</p>", "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert asked(server, "/data/facts.js")[0] == 200
    assert asked(server, "/pictures/000000.png")[1:2] == (png(),)
    assert asked(server, "/", f"localhost:{server.server_port}")[0] == 200
    assert asked(server, "/favicon.ico")[:2] == (204, b"")


def test_nothing_else_is_there(server: Explorer, tmp_path: Path) -> None:
    for path in ("/secret", "/../secret", "/pictures/../secret", "/pictures/..%2fsecret", "/%2e%2e/secret",
                 "//etc/passwd",
                 f"{tmp_path}/secret", "/pictures/", "/data", "/pictures/000001.png", "/index.html/..", "/\0",
                 "/pictures/000000.png\\..\\secret"):  # fmt: skip
        try:
            code, content, _ = asked(server, path)
        except http.client.InvalidURL:
            continue
        assert (code, b"secret" in content) == (404, False), path


def test_only_this_machine_asks_by_its_own_name(server: Explorer) -> None:
    """A name elsewhere that leads here (DNS rebinding) has its own Host."""
    port = server.server_port
    with_port = (f"evil.example:{port}", f"127.0.0.1:{port}.evil.example", "localhost:1")
    for host in ("", "evil.example", "127.0.0.1", *with_port):
        assert asked(server, "/", host)[0] == 403, host
    assert server.server_address[0] == "127.0.0.1"


def test_it_is_only_read(server: Explorer) -> None:
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"):
        assert asked(server, "/", method=method)[0] == 501, method


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_it_says_where_it_is_and_ends_when_asked(tmp_path: Path, ending: signal.Signals, code: int) -> None:
    gt, one, _, images = write_scenes(tmp_path, images=4)
    with serving(["--gt", str(gt), "--images", str(images), str(one)]) as (url, process):
        port = int(url.rstrip("/").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as opened:
            opened.sendall(f"GET /page.js HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            assert opened.recv(20).startswith(b"HTTP/1.1 200")
        process.send_signal(ending)
        assert process.wait(timeout=PATIENCE) == code
        assert process.stderr is not None
        assert process.stderr.read().count("\n") == (1 if code else 0)
