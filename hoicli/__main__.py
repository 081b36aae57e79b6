"""The `hoicli` command, which `python -m hoicli` is, too."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]  # `signal` itself takes a while to load
import atexit
import os
import sys


def main() -> None:
    """Run the `hoicli` command as this process.

    While its modules load there is nothing to clean up, so Ctrl-C ends the process at once, without a traceback. At the
    end the process ends without Python's own clean-up: the system takes the memory back faster than Python frees it."""
    handler = _signal.getsignal(_signal.SIGINT)
    if handler is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from hoicli.cli import main as command

    _signal.signal(_signal.SIGINT, handler)
    try:
        command()
    except SystemExit as ended:
        if "cProfile" in sys.modules or sys.gettrace():  # a profiler or debugger writes its results at Python's own end
            raise
        atexit._run_exitfuncs()
        os._exit(int(ended.code or 0))


if __name__ == "__main__":
    main()
