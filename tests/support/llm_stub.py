"""A server on this machine that speaks OpenAI's chat protocol, with faults to order, and counts what it is asked.

The tests' model rates a pair of senses by `rate(model, a, b)`, so that every rating can be foretold.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Asked = tuple[str, str, str]
"""(model, a, b)."""
Fault = Callable[["Stub", Asked, int], "Response | None"]
"""(stub, what is asked, which time it is asked, from 1) -> what to answer instead of a rating."""


class Response:
    """An answer that is no rating: a status with headers and a body, after a pause; status 0 cuts the connection."""

    def __init__(self, status: int = 200, body: bytes | str = b"", *, wait: float = 0.0, **headers: str) -> None:
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        self.wait = wait
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def said(text: str) -> Response:
    """A chat completion with this text."""
    return Response(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}))


def rate(model: str, a: str, b: str) -> int:
    """The rating the stub gives: anything will do that is the same each time and differs between models."""
    return sum(map(ord, model + a + b)) % 5


class Stub:
    """`asked` counts requests, `answered` usable answers that were sent, both by (model, a, b)."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.asked: Counter[Asked] = Counter()
        self.answered: Counter[Asked] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = 0
        self.most_at_once = 0
        self.fault = fault
        self.lock = threading.Lock()
        self.url = ""

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        task = next(message["content"] for message in body["messages"] if message["role"] == "user")
        found = dict(re.findall(r"^([AB])\. (\S+) -- ", task, re.MULTILINE))
        asked = (body["model"], found["A"], found["B"])
        with self.lock:
            self.asked[asked] += 1
            times = self.asked[asked]
            self.requests.append(body)
            self.headers.append({"path": handler.path, **handler.headers})
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        response = self.fault(self, asked, times) if self.fault is not None else None
        if response is None:
            choices = [{"message": {"content": json.dumps({"rating": rate(*asked)})}}]
            usage = {"prompt_tokens": 200, "completion_tokens": 7}
            response = Response(200, json.dumps({"choices": choices, "usage": usage}))
            with self.lock:
                self.answered[asked] += 1
        time.sleep(response.wait)
        with self.lock:
            self.at_once -= 1
        if not response.status:
            handler.connection.close()
            return
        handler.send_response(response.status)
        for name, value in response.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(response.body)))
        handler.end_headers()
        handler.wfile.write(response.body)


@contextmanager
def serving(fault: Fault | None = None) -> Iterator[Stub]:
    """A stub at `stub.url` for the time of the block."""
    stub = Stub(fault)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                stub.respond(self)
            except OSError:  # the client has gone
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def dripping(first: bytes, again: bytes) -> Iterator[str]:
    """The URL of a server that never comes to an end."""

    def speak(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(first)
            while not over.wait(0.03):
                connection.sendall(again)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=speak, args=[server.accept()[0]], daemon=True).start()

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        over.set()
        server.shutdown(socket.SHUT_RDWR)
