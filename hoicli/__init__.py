"""hoicli: evaluate human-object interaction detectors from the shell (see README.md and docs/)."""

from __future__ import annotations

__version__ = "0.1.0"

alone = False
"""True when this process runs the `hoicli` command, not a program that imports the package; `cli.main` sets it."""
