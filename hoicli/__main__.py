"""`python -m hoicli` is the `hoicli` command."""

from __future__ import annotations

from hoicli.cli import main

if __name__ == "__main__":
    main()
