"""What the bench was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Where files are made, how often processes run, and what is measured instead of, or beside, made dumps."""

    folder: Path = Path("bench-output")
    repeat: int = 3
    truth: Path | None = None
    predictions: Path | None = None
    peers: Path | None = None
    """A folder of released evaluators: see released.py."""
