"""`hoicli table`: result rows of any number of models in one table."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import OUTPUT, READ, Count
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import DataError, UsageError
from hoicli.io.messages import note


@command(
    reads="result rows of any command",
    writes="one table",
    examples=[
        (
            "hoicli eval --gt gt.jsonl --protocol hico,hico-ko --tag model=ours preds.jsonl > rows.jsonl && "
            "hoicli table --layout hico rows.jsonl",
            "Default and Known Object, a line a model",
        ),
        (
            "hoicli table --published hico -o table.tex rows.jsonl",
            "below the published ones, for a paper",
        ),
        (
            "hoicli table --rows tag.model --columns protocol,subset --metric mAP rows.jsonl",
            "lines and columns of your own",
        ),
        (
            "hoicli eval --gt gt.jsonl --protocol hico --tag model=ours --tag seed=2 preds.jsonl > 2.jsonl && "
            "hoicli eval --gt gt.jsonl --protocol hico --tag model=ours --tag seed=1 preds.jsonl | "
            "hoicli table --over seed - 2.jsonl",
            "mean and deviation over runs",
        ),
    ],
    see=["eval", "compare", "robust"],
)
def table(
    rows: list[str] | None = argument(
        None, "ROWS...", "Streams of result rows, read as one; - or nothing is stdin.", mark=READ
    ),
    published: str | None = option(
        None,
        "--published NAME",
        "Published rows above one's own, or alone: hico, zero-shot, vcoco, swig, robust, robust-vcoco, pairs, "
        "pairs-vcoco, diagnose, shoe or shoe-vcoco.",
        one_of=choices.published,
    ),
    layout: str | None = option(
        None,
        "--layout",
        "What papers print; without it, and without --rows, the rows choose.",
        one_of="tables.layouts:LAYOUTS",
    ),
    lines: list[str] | None = option(
        None,
        "--rows KEY",
        "What the lines are: a key of rows, or tag.NAME; several with commas. Default: tag.model.",
    ),
    columns: list[str] | None = option(
        None,
        "--columns KEY",
        "What the columns are, as --rows; the last is below the others. Default: protocol,subset.",
    ),
    metric: list[str] | None = option(None, "--metric NAME", "Only rows of this metric; several with commas."),
    where: list[str] | None = option(
        None,
        "--where KEY=VALUE",
        "Only rows with this value of a key or of tag.NAME; repeatable, several values with commas.",
    ),
    over: str | None = option(
        None, "--over KEY", "The mean and the sample standard deviation over the values of this tag, such as seed."
    ),
    intervals: bool = flag("--intervals", "Values with their 95 % intervals, where rows have them."),
    decimals: int | None = option(
        None, "--decimals N", "Digits behind the point, where not the metric's own (2, of CRI 3).", mark=Count(0, 9)
    ),
    sort: str | None = option(None, "--sort TEXT", "The head of the column that orders the lines, the best first."),
    format_: str = option(
        "auto",
        "--format",
        "auto is the notation of the ending of -o: .tex, .md, .html, .csv; else a table. jsonl is the rows themselves.",
        one_of=("auto", "table", "jsonl", "csv", "md", "latex", "html"),
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.output(OUTPUT),
) -> None:
    """Result rows of any commands and any number of models as one table, to be pasted or read.

    A line is a model (its tags), a column what the layout asks for. Two rows of one value stop the run. The best value
    of a column is bold and the second underlined, where it is known which is better; what was made otherwise than the
    rest of its column is not ranked, and a note says so. A published row names where it is printed (`source`), and
    whether it compares with one's own (`comparable`). Below stand the caveats and the settings of the rows.
    """
    from hoicli.io.outputs import open_output
    from hoicli.records.parsing import dump
    from hoicli.tables.arrangement import by_keys, by_layout, described, tables_of
    from hoicli.tables.layouts import LAYOUTS, layout_of
    from hoicli.tables.published import published_lines
    from hoicli.tables.reading import read_rows
    from hoicli.tables.values import Showing
    from hoicli.tables.writers import written

    if layout and (lines or columns):
        raise UsageError(
            "--layout, --rows, --columns: a layout has its own lines and columns; leave out one or the other"
        )
    wanted = _where(where or [])
    if over is not None:
        over = over.removeprefix("tag.")
    showing = Showing(intervals, over or "", decimals, sort or "")
    policy = options.policy(on_error)
    paths = [] if published and not rows else options.inputs(rows, "ROWS")
    before = published_lines(published) if published else []
    found = read_rows(paths, policy, metrics=options.separated(metric), where=wanted, before=before)
    policy.report()
    if not found:
        chosen = " of --metric and --where" if metric or where else ""
        raise DataError(f"no rows{chosen} in it", place=", ".join("<stdin>" if path == "-" else path for path in paths))
    if over is not None and all(over not in row["tags"] for row in found):
        raise UsageError(f"--over {over}: no row has this tag; hoicli eval --tag {over}=1 puts it there")
    notation = _notation(format_, output)
    if notation == "jsonl":
        with open_output(output) as write:
            write(b"".join(map(dump, found)))
        return
    chosen_layout = LAYOUTS[layout] if layout else None if lines or columns else layout_of(found)
    if chosen_layout is not None:
        made, left = by_layout(found, chosen_layout, showing)
        tables = [made]
        left = [row for row in left if row["metric"] != "mean_max_recall"]  # eval writes it beside every mAP
        if left:
            note(f"{len(left):,} rows are not of the layout {chosen_layout.name}: {described(left)}")
    elif lines or columns or over:
        keys = options.separated(lines) or ["tag.model"], options.separated(columns) or ["protocol", "subset"]
        tables = [by_keys(found, *keys, showing)]
    else:
        tables = tables_of(found, strict=True)
    with open_output(output) as write:
        write("\n".join(written(made, notation) for made in tables).encode())


def _where(texts: list[str]) -> dict[str, list[str]]:
    """--where KEY=VALUE,VALUE as key -> values; raises `UsageError` for another form."""
    found: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--where {text}: write KEY=VALUE, for example --where protocol=hico")
        found.setdefault(key, []).extend(values.split(","))
    return found


_ENDINGS = {".tex": "latex", ".md": "md", ".html": "html", ".htm": "html", ".csv": "csv"}


def _notation(format_: str, output: str) -> str:
    """The notation in force."""
    if format_ != "auto":
        return format_
    name = output.removesuffix(".gz")
    return next((notation for ending, notation in _ENDINGS.items() if name.endswith(ending)), "table")
