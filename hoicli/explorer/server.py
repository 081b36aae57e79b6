"""An explorer served on this machine alone: nothing is written, and pictures stay where they are."""

from __future__ import annotations

from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from hoicli.explorer.pictures import TYPES
from hoicli.io.messages import note

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
"""The host names that a request may have. A request with another one comes from a page elsewhere whose name was made to
lead to this machine (DNS rebinding), and which could then read everything."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The page's own policy, and that nobody may frame it, which only a header can say."""

KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


class Explorer(ThreadingHTTPServer):
    """Serves the page's files and pictures. Any other address is not found, whatever lies on disk."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes], pictures: Mapping[str, Path]) -> None:
        """Listen at a free port. files: {address: content}; pictures: {address: the picture's file}."""
        self.files, self.pictures = files, pictures
        super().__init__((ADDRESS, 0), _RequestHandler)  # the port 0 stands for any free one
        self.hosts = {f"{name}:{self.server_port}" for name in NAMES}

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: the errors here are browsers that leave in the middle of an answer."""

    def run(self) -> None:
        """Serve until Ctrl-C."""
        with self:
            note(f"the explorer is at {self.url} (Ctrl-C ends it)", requested=True)
            try:
                self.serve_forever()
            except KeyboardInterrupt as stop:
                if type(stop) is not KeyboardInterrupt:  # a signal that asks the process to end
                    raise

    @property
    def url(self) -> str:
        """Return the page's address for a browser on this machine."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _RequestHandler(BaseHTTPRequestHandler):
    """Answers one request to an `Explorer`."""

    server: Explorer
    server_version, sys_version = "hoicli", ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer with the file of an address; refuse a request that does not call this machine by its own name."""
        if self.headers.get("Host", "") not in self.server.hosts:
            self._answer(403, b"only for this machine, by its own name\n", "text/plain; charset=utf-8")
            return
        name = urlsplit(self.path).path.removeprefix("/") or "index.html"
        ending = name.rpartition(".")[2]
        if name == "favicon.ico":  # browsers ask for it by themselves, and complain where it is not
            self._answer(204, b"", "image/x-icon")
            return
        content = self.server.files.get(name)
        if content is None and name in self.server.pictures:
            try:
                content = self.server.pictures[name].read_bytes()
            except OSError:
                content = None
        if content is None:
            self._answer(404, b"not there\n", "text/plain; charset=utf-8")
        else:
            self._answer(200, content, KINDS.get(ending) or TYPES[ending])  # of a page's file, or of a picture

    def _answer(self, code: int, content: bytes, kind: str) -> None:
        """Send an answer with a status code and a media type, and with headers that keep other pages out."""
        self.send_response(code)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: stderr is for the user."""
