"""`hoicli robust`: from the result rows of a corrupted benchmark to its indices."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FIGURE, READ
from hoicli.commands.common import Format, OnError, Output, Tag, inputs, skips
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)

UNITS = ("percent", "fraction")


@app.command(
    cls=page(
        reads="result rows tagged with corruption, severity and model",
        writes="result rows: MRI, CRI, and each part",
        examples=[
            (
                "hoicli eval --gt gt-jpeg-3.jsonl --protocol hico --tag model=cdn "
                "--tag corruption=jpeg --tag severity=3 --tag recipe=hoicli-1 preds.jsonl >> rows.jsonl",
                "one cell of the grid, to be done for all",
            ),
            ("hoicli robust --allow-missing --protocol hico rows.jsonl", "what is there so far"),
            ("hoicli robust --plot robust.png all.jsonl", "the complete benchmark, drawn"),
            ("hoicli robust --rank-by cri --format latex all.jsonl", "models ranked by CRI, for a paper"),
        ],
        see=["corrupt", "eval"],
    )
)
def robust(
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="ROWS...", help="Streams of result rows, taken together; - or nothing is stdin."),
        READ,
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="The rows' metric: mAP, or the only one there is.")
    ] = None,
    subset: Annotated[
        str | None, typer.Option("--subset", metavar="NAME", help="The rows' subset: full, or the only one there is.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="The rows' protocol, where there are several.",
            autocompletion=choices.single_protocols,
        ),
    ] = None,
    model_tag: Annotated[
        str, typer.Option("--model-tag", metavar="KEY", help="The tag that tells models apart.")
    ] = "model",
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="Each ROWS is a model of its own: its name, in their order; repeatable."
        ),
    ] = None,
    corruptions: Annotated[
        str,
        typer.Option(
            "--corruptions",
            metavar="NAME,...",
            help="Those a complete grid has: names, rohoi (all 20), seen, or auto: rohoi where more than half occur.",
            autocompletion=choices.several(choices.grid_corruptions),
        ),
    ] = "auto",
    severities: Annotated[
        str,
        typer.Option(
            "--severities",
            metavar="N,...",
            help="Those a complete grid has: numbers, seen, or auto: 1 to 5 beside rohoi if more than half occur.",
            autocompletion=choices.several(choices.grid_severities),
        ),
    ] = "auto",
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="|".join(UNITS),
            help="What the values are, whatever the rows say.",
            autocompletion=choices.one_of(*UNITS),
        ),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Average an incomplete grid, and say what it lacks.")
    ] = False,
    rank_by: Annotated[
        str,
        typer.Option(
            "--rank-by",
            metavar="NAME",
            help="What ranks the models: mri, cri, clean or relative_drop.",
            autocompletion=choices.rankings,
        ),
    ] = "mri",
    tag: Tag = None,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw severity curves and families or corruptions."),
        FIGURE,
    ] = None,
) -> None:
    """The robustness of one or several models: MRI and CRI, by corruption, family and severity.

    Reads what hoicli eval writes with --tag corruption=NAME --tag severity=1 to 5, and with --tag corruption=clean for
    the original images. MRI is the mean over corruptions of the mean over severities, in percent. CRI divides each
    corruption's mean by the clean value and by 1 + ln(1 + its deviation over severities). A missing or doubled cell
    stops the run. The indices are RoHOI's; images of hoicli corrupt (--tag recipe=hoicli-1) are not, so that values
    compare within a recipe and not with the paper's tables.
    """
    from hoicli.errors import UsageError
    from hoicli.figures.robustness import plot_robustness
    from hoicli.io.messages import display_name, note
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import parse_tags
    from hoicli.robustness.gathering import Gathering
    from hoicli.robustness.grids import grids as grids_of
    from hoicli.robustness.rows import RANKED_BY, ranked, robustness_rows, tables
    from hoicli.robustness.selection import Selection, benchmark, named
    from hoicli.tables.notations import chosen_format, render

    if unit not in (None, *UNITS):
        raise UsageError(f"--unit {unit}: choose {' or '.join(UNITS)}")
    if rank_by not in RANKED_BY:
        raise UsageError(f"--rank-by {rank_by}: choose {', '.join(RANKED_BY)}")
    wanted = benchmark(corruptions, severities)
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    paths = inputs(rows, "ROWS")
    names = {display_name(path): model for path, model in named(paths, name or []).items()}
    gathering = Gathering(Selection(metric, subset, protocol, unit), model_tag=model_tag, names=names)
    gathering.read(Stream(paths, "rows"), policy)
    policy.report()
    grids, remarks = grids_of(gathering, wanted, allow_missing=allow_missing)
    if len(grids) > 1 and model_tag in tags:
        raise UsageError(f"--tag {model_tag}: the rows are of {len(grids)} models, which it tells apart")
    grids = ranked(grids, rank_by)
    for remark in remarks:
        note(remark)
    results = robustness_rows(grids, tags=tags)
    parts = [results] if output_format in ("jsonl", "csv") else tables(grids, results)
    with open_output(output) as write:
        write(b"\n".join(render(part, output_format) for part in parts))
    if plot is not None:
        drawn = [{**row, "model": grid.model} for grid in grids for row in robustness_rows([grid])]
        plot_robustness(drawn, plot, metric=grids[0].metric)
