"""A page as a strict reader sees it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """A page as a strict reader sees it: every element closed in its order, ids unique, links to what is there."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[list[list[str]]] = []
        self.titles: list[str] = []
        self.text: list[str] = []
        self.script = ""
        self.raw = page
        self._open: list[str] = []
        self._cell: list[str] | None = None
        self.feed(page)
        self.close()
        assert not self._open
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        assert len(set(ids)) == len(ids)
        links = [attributes["href"] for name, attributes in self.elements if name in ("a", "use")]
        assert {link.removeprefix("#") for link in links} <= set(ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in VOID:
            return
        self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append("".join(self._cell).strip())
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        if self._open and self._open[-1] in ("h1", "h2", "h3"):
            self.titles.append(data)
        if self._open and self._open[-1] == "script":
            self.script += data
        elif self._open and self._open[-1] != "style":
            self.text.append(data)

    def table(self, *heads: str) -> list[list[str]]:
        """The body of the table whose last line of heads begins so."""
        for lines in self.tables:
            for at, line in enumerate(lines):
                if tuple(line[: len(heads)]) == heads:
                    return lines[at + 1 :]
        raise AssertionError(f"no table with {heads}")

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]
