"""Requests over http and https with a timeout that holds for the whole answer, and without redirects."""

from __future__ import annotations

import io
import socket
import time
import urllib.request
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any

from hoicli.io.opened_files import RawReader


class _Answer(HTTPResponse):
    """An answer that must have arrived completely at a deadline; reading it later raises `TimeoutError`."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **keywords: Any) -> None:
        """Begin to read an answer from a socket. deadline: a time of `time.monotonic`."""
        super().__init__(sock, *args, **keywords)
        self._timed = _TimedReader(sock, self.fp.detach(), deadline)
        self.fp = io.BufferedReader(self._timed)

    def allow(self, seconds: float) -> None:
        """Set the deadline to so many seconds from now."""
        self._timed.deadline = time.monotonic() + seconds


class _TimedReader(RawReader):
    """A reader of a socket that raises `TimeoutError` after a deadline. The socket's own timeout would not do: it
    begins anew with every byte that arrives, so a slow server could keep a request waiting forever."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        """Wrap the socket's own reader `raw`. deadline: a time of `time.monotonic`."""
        self._sock, self._raw, self.deadline = sock, raw, deadline

    def readinto(self, buffer: Any) -> int | None:
        """Read the next bytes into `buffer` and return how many."""
        self._sock.settimeout(_seconds_left(self.deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the socket's reader, too."""
        self._raw.close()
        super().close()


def _seconds_left(deadline: float) -> float:
    """Return how many seconds are left until a deadline, a time of `time.monotonic`. Raises `TimeoutError` after it."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


class _Http(HTTPConnection):
    """An HTTP connection whose timeout holds for everything together: connecting, one request and its whole answer."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """Start the clock. The arguments are HTTPConnection's."""
        super().__init__(*args, **keywords)
        self._deadline = time.monotonic() + (self.timeout or 0)
        self._create_connection = self._open_socket  # which HTTPConnection calls to connect

    def _open_socket(self, address: tuple[str, int], *_: Any) -> socket.socket:
        """Return a socket to the first of a host's addresses that answers. Raises `OSError` if none does in time."""
        last_error: OSError = OSError("the host has no address")
        for family, kind, protocol, _name, socket_address in socket.getaddrinfo(*address, 0, socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_seconds_left(self._deadline))
                sock.connect(socket_address)
                return sock
            except OSError as error:
                last_error = error
                sock.close()
        raise last_error

    def response_class(self, sock: socket.socket, *args: Any, **keywords: Any) -> _Answer:  # type: ignore[override]
        """Return the answer that arrives at a socket; HTTPConnection calls this to read one."""
        return _Answer(sock, *args, deadline=self._deadline, **keywords)

    def connect(self) -> None:
        """Connect as HTTPConnection does; what a proxy answers on the way takes of the time, too."""
        super().connect()
        self.sock.settimeout(_seconds_left(self._deadline))  # for the handshake of TLS

    def send(self, data: Any) -> None:
        """Send data in the time that is left; connect first if that has not been done."""
        if self.sock is None:
            self.connect()
        self.sock.settimeout(_seconds_left(self._deadline))
        super().send(data)


class _Https(HTTPSConnection, _Http):
    """The same connection through TLS: HTTPSConnection connects as _Http does, then encrypts."""


class _Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Makes urllib open addresses by `_Http` and `_Https`."""

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request and return the answer."""
        return self.do_open(_Http, req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request through TLS and return the answer."""
        return self.do_open(_Https, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes urllib refuse redirects, so that requests go only to the given address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None, for no request to the new address: urllib then raises an error."""
        return


def opener() -> urllib.request.OpenerDirector:
    """Return an object whose `open(request, timeout=seconds)` sends a request and returns the answer.

    The timeout holds for the whole answer; the answer's `allow(seconds)` sets a new one. A redirect is an error. Only
    the system's look-up of a host's name has a time limit of its own."""
    return urllib.request.build_opener(_Handler, _NoRedirect)
