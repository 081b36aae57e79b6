"""Tables in HTML as a page that stands alone: its style, and a script that sorts the lines, are in the file."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from hoicli.tables.writers import escape_html


def source_digest(source: bytes) -> str:
    """Return a script's or a style's digest in the form in which a content security policy allows just this one."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode()}'"


def html_page(title: str, body: bytes) -> bytes:
    """Return a page with tables. body: the HTML that `write_table` makes of each table."""
    style, script = (files("hoicli.tables").joinpath("page", name).read_bytes() for name in ("table.css", "table.js"))
    policy = f"default-src 'none'; script-src {source_digest(script)}; style-src 'unsafe-inline'; base-uri 'none'"
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_html(title)}</title>\n<style>\n"
    )
    above = head.encode() + style + b"</style>\n</head>\n<body>\n<main>\n"
    return above + body + b"</main>\n<script>" + script + b"</script>\n</body>\n</html>\n"
