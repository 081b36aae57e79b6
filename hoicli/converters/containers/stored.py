"""How large a foreign file is where it lies: what it unpacks to is measured by that."""

from __future__ import annotations

from pathlib import Path

from hoicli.converters.containers.source import Source


def stored_size(source: Source) -> int:
    """Bytes of the file on the disk, before .gz and .zst are unpacked; those of its content if it comes by a pipe."""
    path = Path(source.path)
    return path.stat().st_size if source.path != "-" and path.is_file() else len(source.data)
