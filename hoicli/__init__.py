"""hoicli: evaluate human-object interaction detectors from the shell (see README.md and docs/)."""

from __future__ import annotations

__version__ = "0.1.0"

alone = False
"""Whether the process is the `hoicli` command and nothing else; `cli.main` says so."""
