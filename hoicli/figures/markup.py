"""Text of any origin as text of a page."""

from __future__ import annotations

import html

from hoicli.errors import visible


def escaped(value: object) -> str:
    """Text of an SVG or HTML document, or of one of its attributes."""
    return html.escape(visible(str(value)))
