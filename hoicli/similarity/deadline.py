"""A limit of time for a whole HTTP exchange, whatever the server sends and however slowly.

A socket's own timeout begins anew with every byte. Here a timer shuts the connection down when the time is over, which
ends every wait on it: for headers, for what follows a 100 Continue, for a proxy or TLS, for an error's text, for
trailers. Only the look-up of the host's name is the system's affair.
"""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Any, TypeVar

Connection = TypeVar("Connection", bound=HTTPConnection)


class Deadline:
    """From its making, `seconds` for the connections it watches; `passed` once they are over. Close it at the end."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._watched: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def connect(self, *address: Any, **options: Any) -> socket.socket:
        """`socket.create_connection`, the connection being watched from now on."""
        connection = socket.create_connection(*address, **options)
        with self._lock:
            # A copy: TLS takes the socket itself apart, and both stand for one connection.
            self._watched.append(connection.dup())
            if self.passed:
                self._shut_down()
        return connection

    def _end(self) -> None:
        with self._lock:
            self.passed = True
            self._shut_down()

    def _shut_down(self) -> None:
        for connection in self._watched:
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            for connection in self._watched:
                connection.close()
            self._watched.clear()


class TimedRequest(urllib.request.Request):
    """A request whose connections a `Deadline` watches, through the handlers of `HANDLERS`."""

    def __init__(self, url: str, data: bytes, headers: dict[str, str], deadline: Deadline) -> None:
        super().__init__(url, data, headers)
        self.deadline = deadline


def _connection(made: Callable[..., Connection], deadline: Deadline, *address: Any, **options: Any) -> Connection:
    connection = made(*address, **options)
    any_connection: Any = connection  # http.client's own place for what opens its sockets
    any_connection._create_connection = deadline.connect
    return connection


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> HTTPResponse:
        found: HTTPResponse = self.do_open(partial(_connection, HTTPConnection, request.deadline), request)
        return found


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> HTTPResponse:
        found: HTTPResponse = self.do_open(partial(_connection, HTTPSConnection, request.deadline), request)
        return found


HANDLERS = (_Http, _Https)
"""Handlers of `urllib.request.build_opener` for `TimedRequest`."""
