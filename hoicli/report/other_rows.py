"""Sections of a report for the rows of other commands: robustness, SHOE, agreement, and whatever else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hoicli.comparison.answers import answers
from hoicli.figures import svg
from hoicli.figures.shown import FAMILY_WORDS, model_name, robustness_of
from hoicli.records.results import CHANCES, Row, settings_of
from hoicli.report.document import Block, Cell, Figure, Figures, Paragraph, Section, Table, number, pivoted, value_cell
from hoicli.report.rows import AGREE, COMPARE, OTHER, ROBUST, SECTIONS, SHOE, identifying, tag_keys
from hoicli.tables.kinds import CLASSES, PARTS, kind_of
from hoicli.tables.layout import marked, parts_of

LONGEST = 30
"""Lines of a table that are shown without being asked for."""


def row_sections(given: Mapping[str, Sequence[Row]]) -> list[Section]:
    """The sections that there are rows for, with the caveats of these below."""
    makers = {ROBUST: _robust, SHOE: _shoe, COMPARE: _given, AGREE: _agree, OTHER: _other}
    sections = []
    for section, title in SECTIONS.items():
        if given.get(section):
            rows, notes = marked(given[section])
            blocks = makers[section](rows)
            sections.append(Section(section, title, [*blocks, *(Paragraph([note]) for note in notes)]))
    return sections


def _robust(rows: Sequence[Row]) -> list[Block]:
    models = list(dict.fromkeys(map(model_name, rows)))
    index = [*tag_keys(rows), "protocol", "subset"]
    whole = [row for row in rows if row["metric"] == "worst" or not any(key in row for key in PARTS)]
    words = (
        "On corrupted images. MRI is the mean over corruptions of their means over severities; CRI divides each by the "
        "clean value and by 1 + ln(1 + its deviation over severities); the relative drop is what is lost of the clean "
        "value. "
    )
    blocks: list[Block] = [
        Paragraph([words, _recipe(rows)]),
        pivoted(whole, "Summary", index=index, column=lambda row: ("", _measure(row)), cell=_worst),
        *_severities(rows),
    ]
    several = len(models) > 1

    def column(row: Row) -> tuple[str, str]:
        return ("mean", model_name(row)) if several else ("", _measure(row))

    for keys, caption in ((PARTS[:2], "By corruption"), (("family",), "By family"), (("severity",), "By severity")):
        parts = [_with_family(row) for row in rows if {*PARTS} & row.keys() == {*keys} and row["metric"] != "worst"]
        chosen = [row for row in parts if row["metric"] == "mean"] if several else parts
        if chosen:
            blocks.append(pivoted(chosen, caption, index=keys, column=column))
    return blocks


def _recipe(rows: Sequence[Row]) -> str:
    """What made the images, as the rows' signatures say it."""
    named = sorted({recipe for row in rows if (recipe := settings_of(row).get("recipe"))})
    return (
        f"Images: RoHOI-style, recipe {', '.join(named) or 'unstated'}; values compare within a recipe, and RoHOI "
        "publishes no constants of its own."
    )


def _measure(row: Row) -> str:
    name = str(row["metric"])
    return name.upper() if name in ("mri", "cri") else name.replace("_", " ")


def _with_family(row: Row) -> Row:
    return {**row, "family": FAMILY_WORDS.get(row["family"], row["family"])} if "family" in row else row


def _worst(row: Row) -> Cell:
    """A value; of the worst cell, which it is as well."""
    place = " ".join(str(row[key]) for key in ("corruption", "severity") if key in row)
    cell = value_cell(row)
    return Cell(f"{cell.text} ({place})" if place else cell.text, cell.interval)


def _severities(rows: Sequence[Row]) -> list[Block]:
    """The figure of the means by severity, where there are any."""
    whole = [row for row in rows if row["metric"] in ("clean", "mri", "mean")]
    protocols = {(row.get("protocol"), row["subset"]) for row in whole}
    if len(protocols) != 1 or not any(row["metric"] == "mri" and row["value"] is not None for row in whole):
        return []
    shown = robustness_of(whole)
    series = {name: [(float(x), y, "") for x, y in points] for name, points in shown.lines.items() if points}
    if not any(len(points) > 1 for points in series.values()):
        return []
    caption = "Mean over corruptions by severity"
    return [Figures([Figure(svg.lines(series, caption, across="severity", up="%", ticks=shown.ticks), caption)])]


def _shoe(rows: Sequence[Row]) -> list[Block]:
    words = (
        "Predictions in free text, scored by how alike in meaning they are to the ground truth, from 0 to 100: soft "
        "mAP ranks by score; mF1 and the miss rates need no scores; mAP is by equal spelling on the same boxes."
    )
    return [*(Paragraph([f"{sentence}."]) for sentence in answers(rows)), Paragraph([words]), *_other(rows)]


def _given(rows: Sequence[Row]) -> list[Block]:
    """Rows of compare, with what they say in words."""
    return [*(Paragraph([f"{sentence}."]) for sentence in answers(rows)), *comparison(rows)]


def comparison(rows: Sequence[Row], id_: str = "") -> list[Block]:
    """A line a difference: what it is between, how large, and how likely by chance. id_: of the first table."""
    words = "Differences between models on the same images, none of them tested: that takes --bootstrap."
    tested = [key for key in CHANCES if any(row.get(key) is not None for row in rows)]
    if tested:
        words = (
            "Differences between models on the same images, with their 95 % intervals. p is how often chance alone "
            "makes one as large; q is p corrected for how many were looked at."
        )
    blocks: list[Block] = [Paragraph([words])]
    for index, members in _alike([row for row in rows if kind_of(row) is not CLASSES]):
        parts = [part for row in members for part in parts_of({**row, "measure": _measure(row)})]
        parts = [part for part in parts if part["part"] in tested or part["part"] not in CHANCES]
        index += ["measure", "subset"]
        table = pivoted(parts, _caption(members), index=index, column=lambda row: ("", row["part"]), longest=LONGEST)
        blocks.append(replace(table, id=id_))
        id_ = ""
    return blocks


def _alike(rows: Sequence[Row]) -> Iterator[tuple[list[str], list[Row]]]:
    """(the keys and tags that rows are told apart by, the rows that are told apart by these): means, then classes."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(identifying(row), []).append(row)
    return (([*tag_keys(members), *keys], members) for keys, members in groups.items())


def _caption(rows: Sequence[Row]) -> str:
    return ", ".join(dict.fromkeys(map(_measure, rows)))


def _agree(rows: Sequence[Row]) -> list[Block]:
    from hoicli.agreement.rows import blocks

    words = "Agreement among raters, and of models with the mean of people."
    tables: list[Block] = []
    for lines in blocks(rows):
        heads = list(dict.fromkeys(key for line in lines for key in line))
        names = heads.index("of") + 1
        body = [[Cell(str(line.get(key, number(None)))) for key in heads] for line in lines]
        caption = ", ".join(head.replace("_", " ") for head in heads[names:])
        tables.append(Table(caption, heads, body, names, folded=len(body) > LONGEST))
    return [Paragraph([words]), *tables]


def _other(rows: Sequence[Row]) -> list[Block]:
    """Fractions that a row has besides its value (a p, the ends of an interval) are columns of their own."""
    blocks: list[Block] = []
    for index, members in _alike(rows):
        alone = len({row["subset"] for row in members}) == 1

        def column(row: Row, alone: bool = alone) -> tuple[str, str]:
            return ("", _measure(row)) if alone else (_measure(row), str(row["subset"]))

        wide = [part for row in members for part in (row, *_besides(row, index))]
        blocks.append(pivoted(wide, _caption(members), index=index, column=column, longest=LONGEST))
    return blocks


def _besides(row: Row, index: Sequence[str]) -> Iterator[Row]:
    for key, value in row.items():
        if isinstance(value, float) and key not in ("value", "sd", "ci_low", "ci_high", *index):
            common = {name: text for name, text in row.items() if name not in ("sd", "ci_low", "ci_high")}
            yield {**common, "metric": key, "value": value, "unit": "probability"}
