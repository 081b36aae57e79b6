"""Requests over http and https that end: the seconds given hold for the whole answer, and redirects are refused."""

from __future__ import annotations

import io
import socket
import time
import urllib.request
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any


class _Answer(HTTPResponse):
    """An answer that is read until `latest`, by the monotonic clock."""

    def __init__(self, sock: socket.socket, *args: Any, latest: float, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self._timed = _Timed(sock, self.fp.detach(), latest)
        self.fp = io.BufferedReader(self._timed)

    def allow(self, seconds: float) -> None:
        """Let the rest take this long from now on."""
        self._timed.latest = time.monotonic() + seconds


class _Timed(io.RawIOBase):
    """What arrives at a socket until `latest`; then `TimeoutError`. The socket's own timeout begins anew with every
    byte, and with every line of http.client, which reads `100 Continue` as often as it is sent."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, latest: float) -> None:
        self._sock, self._raw, self.latest = sock, raw, latest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_seconds_left(self.latest))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _seconds_left(latest: float) -> float:
    """Return how many seconds are left until `latest`, by the monotonic clock. Raises `TimeoutError` for none."""
    remaining = latest - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


class _Http(HTTPConnection):
    """A connection whose timeout holds for one request and its whole answer, from the first address that is tried."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._latest = time.monotonic() + (self.timeout or 0)
        self._create_connection = self._dial

    def _dial(self, address: tuple[str, int], *_: Any) -> socket.socket:
        """Return a socket that is connected to the first of the host's addresses that answers in time."""
        last_error: OSError = OSError("the host has no address")
        for family, kind, protocol, _name, socket_address in socket.getaddrinfo(*address, 0, socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_seconds_left(self._latest))
                sock.connect(socket_address)
                return sock
            except OSError as error:
                last_error = error
                sock.close()
        raise last_error

    def response_class(self, sock: socket.socket, *args: Any, **more: Any) -> _Answer:  # type: ignore[override]
        return _Answer(sock, *args, latest=self._latest, **more)

    def connect(self) -> None:
        super().connect()  # here a proxy may have answered
        self.sock.settimeout(_seconds_left(self._latest))  # for the handshake of TLS

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        self.sock.settimeout(_seconds_left(self._latest))
        super().send(data)


class _Https(HTTPSConnection, _Http):
    """The same, through TLS: HTTPSConnection connects as _Http does, then encrypts."""


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Http, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Https, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that requests go only to the given address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    """Return an opener of addresses. The `timeout` of its `open` holds for the whole answer, and a redirect is an
    error. An answer's `allow` gives it more time. Only the system's look-up of a host's name has a limit of its own."""
    return urllib.request.build_opener(_HttpHandler, _HttpsHandler, _NoRedirect)
