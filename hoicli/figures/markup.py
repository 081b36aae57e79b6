"""Text of any origin as text of a page."""

from __future__ import annotations

import html


def plain(value: object) -> str:
    """What a document may hold: control letters, line ends among them, and lone surrogates replaced."""
    letters = "".join(letter if letter >= " " and letter != "\x7f" else "\ufffd" for letter in str(value))
    return letters.encode("utf-8", "replace").decode()


def escaped(value: object) -> str:
    """Text of an SVG or HTML document, or of one of its attributes."""
    return html.escape(plain(value))
