"""Where the page goes, checked before the work: a folder that opens from disk, with pictures, or one file."""

from __future__ import annotations

import re
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.io.outputs import check_made_folder, check_output


def is_file(path: str) -> bool:
    """Return whether the page is to be one file: the path ends in .html or .htm, and is no folder."""
    return path.lower().endswith((".html", ".htm")) and not Path(path).is_dir()


def check_page(path: str, option: str) -> None:
    """Raise `UsageError` if the page cannot be written to a path: one with another file's ending, one that cannot be
    written, or a folder with anything in it but an earlier page. option: the option that gives the path."""
    if re.search(r"\.html?\.\w+$", path.lower()):
        raise UsageError(f"{option} {path}: no browser opens a compressed page; let its name end in .html")
    if path.lower().endswith((".pdf", ".md", ".png", ".jsonl")):
        raise UsageError(f"{option} {path}: the page is a folder or FILE.html; print that for a PDF")
    if path == "-":
        raise UsageError(f"give {option} DIR or {option} PAGE.html, what to write, or --serve to look at the page now")
    if is_file(path):
        check_output(path, option)
    else:
        check_made_folder(path, option)
