"""`hoicli table`: result rows of any number of models in one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of
from hoicli.interface.options import Given, Names, Option, Piped
from hoicli.interface.results import Result
from hoicli.io.messages import note


@command(
    reads="result rows of any command",
    writes="one table",
    examples="""
        hoicli eval --gt gt.jsonl --protocol hico,hico-ko --tag model=ours preds.jsonl > rows.jsonl && hoicli table
            --layout hico rows.jsonl  # Default and Known Object, one line for each model
        hoicli table --published hico -o table.tex rows.jsonl  # below published rows, for a paper
        hoicli table --lines tag.model --columns protocol,subset --metric mAP rows.jsonl
            # lines and columns of your own
        hoicli table --published hico --sort "Default Full" -o leaderboard.html rows.jsonl  # a page whose heads sort it
        hoicli eval --gt gt.jsonl --protocol hico --tag model=ours --tag seed=2 preds.jsonl > 2.jsonl && hoicli eval
            --gt gt.jsonl --protocol hico --tag model=ours --tag seed=1 preds.jsonl | hoicli table --over seed - 2.jsonl
            # mean and deviation over runs
    """,
    see=["eval", "compare", "robust"],
    piped="table",
)
def table(
    rows: Annotated[Given | None, Piped("ROWS...")] = None,
    *,
    published: Annotated[str | None, Option("NAME", one_of="tables.published:SETS")] = None,
    layout: Annotated[str | None, Option(one_of="tables.layouts:LAYOUTS")] = None,
    lines: Annotated[Names, Option("KEY", several=True)] = None,
    columns: Annotated[Names, Option("KEY", several=True)] = None,
    metric: Annotated[Names, Option("NAME", several=True)] = None,
    over: Annotated[str | None, Option("KEY")] = None,
    sort: Annotated[str | None, Option("COLUMN")] = None,
    intervals: bool = False,
    on_error: options.OnError = "stop",
) -> Result:
    """Put result rows of any commands and any number of models into one table, ready for a paper.

    A line is a model, or what else the tags of rows tell apart; the layout has the columns. Two rows for one cell stop
    the run. The best value of a column is bold and the second underlined. A value made with other settings than the
    rest of its column is not ranked, and a note says so. Caveats and settings are below the table.

    Arguments:
        rows: Files of result rows, read as one; - or nothing is stdin.
        published: Published rows above yours, or alone: hico, zero-shot, vcoco, swig, robust, robust-vcoco, pairs,
            pairs-vcoco, diagnose, shoe or shoe-vcoco. As jsonl they have their `source`, and whether they are
            `comparable` with your own.
        layout: A layout as in papers. By default, the rows decide (or --lines).
        lines: What the lines are: a key of rows, or tag.NAME; several with commas. Default: tag.model,
            or metric if no row has a model.
        columns: What the columns are, given like --lines; the last is the lowest header. Default: protocol,subset.
        metric: Only rows of this metric; several with commas.
        over: The mean and the sample standard deviation over the values of this tag, such as seed.
        sort: Sort the lines by this column, the best value first: give its head (Rare), or its group and head (Default
            Rare). Published lines stay above your own.
        intervals: Show the 95 % intervals of rows that have them.
    """
    from hoicli.interface.inputs import lines as lines_of
    from hoicli.io.streams import Stream
    from hoicli.records.intake import policy_of
    from hoicli.records.parsing import dump
    from hoicli.tables.arrangement import arrange_by_keys, arrange_by_layout, describe_rows, tables_of
    from hoicli.tables.cells import Showing
    from hoicli.tables.layouts import LAYOUTS, layout_of
    from hoicli.tables.notes import join_notes
    from hoicli.tables.published import published_lines
    from hoicli.tables.row_files import read_rows
    from hoicli.tables.writers import write_table

    if layout and (lines or columns):
        keys = ", ".join(map(arg, ("layout", "lines", "columns")))
        raise UsageError(f"{keys}: a layout has its own lines and columns; leave out one or the other")
    over = None if over is None else over.removeprefix("tag.")
    showing = Showing(intervals=intervals, over=over or "", sort=sort or "")
    policy = policy_of(on_error)
    stream = Stream([], "rows") if published and rows is None else lines_of(rows, "rows", "rows", "ROWS")
    published_rows = published_lines(published) if published else []
    rows_read = read_rows(stream, policy, metrics=names_of(metric), before=published_rows)
    policy.report()
    if over is not None and all(over not in row["tags"] for row in rows_read):
        raise UsageError(f"{arg('over', over)}: no row has this tag; hoicli eval --tag {over}=1 puts it there")
    chosen_layout = None
    if layout:
        chosen_layout = LAYOUTS[layout]
    elif not lines and not columns:
        chosen_layout = layout_of(rows_read)
    by_keys = bool(lines or columns or over)
    if sort and chosen_layout is None and not by_keys:
        choices = f"{arg('layout')}, or {arg('lines')} and {arg('columns')}"
        raise UsageError(f"{arg('sort', sort)}: these rows make several tables; choose one with {choices}")

    def render(notation: str) -> bytes:
        """Return what is printed in a --format."""
        if notation == "jsonl":
            return b"".join(map(dump, rows_read))
        if chosen_layout is not None:
            # n: whether a layout's lines of counts (how many cases values are over) are shown: not in CSV
            arranged, rest = arrange_by_layout(rows_read, chosen_layout, replace(showing, n=notation != "csv"))
            tables = [arranged if notation == "csv" else join_notes(arranged)]
            metrics_of_layout = {column.metric for column in chosen_layout.columns(rows_read)}
            rest = [row for row in rest if row["metric"] in metrics_of_layout]
            if rest:
                note(f"{len(rest):,} rows do not fit the layout {chosen_layout.name}: {describe_rows(rest)}")
        elif by_keys:
            usual_lines = ["tag.model" if any("model" in row.get("tags", {}) for row in rows_read) else "metric"]
            keys = names_of(lines) or usual_lines, names_of(columns) or ["protocol", "subset"]
            tables = [arrange_by_keys(rows_read, *keys, showing)]
        else:
            tables = tables_of(rows_read, strict=True)  # strict: two rows for one cell are an error
        return "\n".join(write_table(each, notation) for each in tables).encode()

    return Result(rows_read, rendered=render, others=True)  # others: rows of files, not checked as this command's own
