"""A `hoicli` for shells that call it hundreds of times, as those of the documents' blocks: each call is a fork of one
process that has imported everything, with the caller's arguments, environment, folder and standard streams, and does
what `python -m hoicli` does.

`python -m tests.support.forks ADDRESS` is that process; it ends with its stdin.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]

CALL = """\
#!{python} -IS
import marshal, os, socket, sys
try:
    server = socket.socket(socket.AF_UNIX)
    server.connect({address!r})
    socket.send_fds(server, [b"."], [0, 1, 2])
except OSError:  # a closed standard stream cannot be handed over
    os.execv(sys.executable, [sys.executable, "-m", "hoicli", *sys.argv[1:]])
server.sendall(marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ))))
server.shutdown(socket.SHUT_WR)
os._exit((server.recv(1) or b"\\xff")[0])
"""


def put_hoicli(folder: Path) -> None:
    """A script `hoicli` in a folder, to be called with the folder on PATH while this process lives; and `python`."""
    folder.mkdir()
    call = CALL.format(python=sys.executable, address=_served())
    for name, text in (("hoicli", call), ("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@cache
def _served() -> str:
    """The address of this process' own server, started at the first call."""
    place = tempfile.mkdtemp(prefix="hoicli-forks-")
    address = f"{place}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forks", address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert server.stdout is not None
    assert server.stdin is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    server.stdout.close()
    return address


def import_everything() -> None:
    """Import every module of hoicli, once for all forks."""
    import hoicli

    for module in pkgutil.walk_packages(hoicli.__path__, "hoicli."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of an extra that is not installed
                import_module(module.name)


def serve(address: str) -> None:
    """Fork for every call until stdin ends."""
    from hoicli.io import process

    process.alone = True
    import_everything()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            shutil.rmtree(Path(address).parent)
            return
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        caller, _ = listener.accept()
        if not os.fork():
            listener.close()
            _answer(caller)
        caller.close()


def _answer(caller: socket.socket) -> None:
    """The call, in the fork; never returns."""
    code = 255
    try:
        _, streams, _, _ = socket.recv_fds(caller, 1, 3)
        words, folder, environment = marshal.loads(b"".join(iter(lambda: caller.recv(1 << 16), b"")))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["hoicli", *words]
        code = _code()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    finally:
        caller.sendall(bytes([code % 256]))
        os._exit(code)


def _code() -> int:
    from hoicli.cli import main

    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
