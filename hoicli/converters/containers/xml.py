"""XML from outside, as a tree of its elements."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from hoicli.errors import DataError, Place


def parsed(data: bytes, name: str) -> Element:
    """The root of a document. Entities and files outside cannot be declared without a document type, and every one is
    refused where it begins: nothing is expanded, and nothing else is opened. Raises `DataError` with the line of it, or
    of what is no XML."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        problem = "has a document type (DOCTYPE), which could declare entities; take it out"
        raise DataError(problem, place=Place.of(name, parser.CurrentLineNumber), code="damaged")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        place = Place.of(name, parser.ErrorLineNumber)
        raise DataError(f"not XML ({error}); export it again", place=place, code="damaged") from None
    return builder.close()
