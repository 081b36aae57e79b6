"""The version, apart from the package's `__init__`, whose names lead to every room."""

from __future__ import annotations

__version__ = "1.1.0"
