"""`hoicli robust`: robustness indices from the result rows of a corrupted benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, tags_of
from hoicli.interface.options import Given, Names, Option, Piped
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.records.result_rows import Row


@command(
    reads="result rows tagged with corruption, severity and model",
    writes="result rows: MRI, CRI, and what they are made of",
    examples="""
        hoicli eval --gt gt-jpeg-3.jsonl --protocol hico --tag model=cdn --tag corruption=jpeg --tag severity=3
            --tag recipe=hoicli-1 preds.jsonl >> rows.jsonl  # one cell of the grid; repeat for all
        hoicli robust --allow-missing --protocol hico rows.jsonl  # a grid that is not complete yet
        hoicli robust --plot robust.png all.jsonl  # a figure of the complete benchmark
        hoicli robust --format latex all.jsonl  # models ranked by MRI, for a paper
    """,
    see=["corrupt", "eval"],
    plot="Draw the models, as --plot-kind says: .png, .svg or .pdf.",
)
def robust(
    rows: Annotated[Given | None, Piped("ROWS...")] = None,
    *,
    metric: Annotated[str | None, Option("NAME")] = None,
    subset: Annotated[str | None, Option("NAME")] = None,
    protocol: Annotated[str | None, Option("NAME", offer="evaluation.protocols:PROTOCOLS")] = None,
    corruption: Annotated[Names, Option("NAME", offer=choices.grid_corruptions, several=True)] = None,
    severity: Annotated[Names, Option("N", offer="corruption.catalogue:SEVERITIES", several=True)] = None,
    by: Annotated[Names, Option("TAG", several=True)] = None,
    unit: Annotated[str | None, Option(one_of=("percent", "fraction"))] = None,
    allow_missing: bool = False,
    plot_kind: Annotated[str, Option(one_of="figures.robustness_plots:PLOTS")] = "curves",
    on_error: options.OnError = "stop",
    tag: options.Tag = None,
) -> Result:
    """The robustness of one or several models: MRI and CRI, also by corruption, family and severity.

    Reads what hoicli eval writes with --tag corruption=NAME --tag severity=N (1 to 5), and with --tag corruption=clean
    for the original images. MRI is the mean over corruptions of the mean over severities, in percent. CRI is the mean
    over corruptions of that mean divided by the clean value and by 1 + ln(1 + the deviation over severities). A missing
    or duplicate cell (one corruption at one severity) stops the run. The indices are RoHOI's, but the images of hoicli
    corrupt (--tag recipe=hoicli-1) are not: values are comparable within a recipe, not with the paper's tables.

    Arguments:
        rows: Files of result rows, read as one; - or nothing is stdin.
        metric: The rows' metric: mAP, or the only one in the rows.
        subset: The rows' subset: full, or the only one in the rows.
        protocol: The rows' protocol, if there are several.
        corruption: The corruptions of a complete grid: names, rohoi (all 20), weather (night, rain, fog and snow).
            Default: rohoi if more than half of them occur, else those that occur.
        severity: The severities of a complete grid. Default: 1 to 5 if more than half of rohoi occur, else those that
            occur.
        by: Make a benchmark of the rows of each value of this tag (camera), several with commas.
        unit: The unit of the values, whatever the rows say.
        allow_missing: Accept an incomplete grid, and say what is missing.
        plot_kind: curves: means by severity, and bars by family; heatmap: every cell, a panel for each model.
    """
    from hoicli.interface.grouped_calls import collapse_notes
    from hoicli.interface.inputs import lines
    from hoicli.records.intake import policy_of
    from hoicli.robustness.gathering import RECIPE_TAG, Gathering, gather
    from hoicli.robustness.grids import Benchmark, Grid, build_grids
    from hoicli.robustness.robustness_rows import draw, rank_grids, robustness_rows, tables

    benchmark = Benchmark.from_options(names_of(corruption), names_of(severity))
    by_names, policy = names_of(by), policy_of(on_error)
    if taken := [name for name in by_names if name in ("", "model", "corruption", "severity", RECIPE_TAG)]:
        raise UsageError(f"{arg('by', taken[0])}: is a part of each benchmark; name another tag, such as camera")
    tags = tags_of(tag, *by_names)
    gatherings = gather(
        lines(rows, "rows", "rows", "ROWS"), by_names, policy,
        lambda group: Gathering(metric, subset, protocol, group=group),
    )  # fmt: skip
    policy.report()
    grids: list[Grid] = []  # of all groups, with their values in the names of models
    results: list[Row] = []
    remarks: dict[str, list[str]] = {}
    for values, gathering in gatherings.items():
        group_grids, remarks[gathering.group] = build_grids(
            gathering, benchmark, unit=unit, allow_missing=allow_missing
        )
        if len(group_grids) > 1 and "model" in tags:
            raise UsageError(f"{arg('tag', 'model')}: would merge the rows of {len(group_grids)} models; leave it out")
        group_grids = rank_grids(group_grids)
        results += robustness_rows(group_grids, tags=tags)
        grids += [replace(grid, model=" ".join(filter(None, [grid.model, *values]))) for grid in group_grids]
    for remark in collapse_notes(remarks):
        note(remark)
    return Result(
        results,
        blocks=lambda notation: [results] if notation in ("jsonl", "csv") else tables(grids, results),
        draw=lambda path, look: draw(grids, path, kind=plot_kind, look=look),
    )
