"""`hoicli robust`: robustness indices from the result rows of a corrupted benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.command import command
from hoicli.commands.options import Given, Names, Option, Piped
from hoicli.commands.results import Result
from hoicli.commands.values import names_of, tags_of, text_of
from hoicli.errors import UsageError, arg
from hoicli.io.messages import display_name, note

if TYPE_CHECKING:
    from hoicli.figures.styles import Look
    from hoicli.records.results import Row


@command(
    reads="result rows tagged with corruption, severity and model, or cells that name their predictions",
    writes="result rows: MRI, CRI, and each part, with intervals if there are cells",
    examples=[
        (
            "hoicli eval --gt gt-jpeg-3.jsonl --protocol hico --tag model=cdn "
            "--tag corruption=jpeg --tag severity=3 --tag recipe=hoicli-1 preds.jsonl >> rows.jsonl",
            "one cell of the grid, to be done for all",
        ),
        ("hoicli robust --allow-missing --protocol hico rows.jsonl", "what is there so far"),
        ("hoicli robust --plot robust.png all.jsonl", "the complete benchmark, drawn"),
        ("hoicli robust --rank-by cri --format latex all.jsonl", "models ranked by CRI, for a paper"),
        (
            "hoicli robust --allow-missing --protocol hico --bootstrap 100 cells.jsonl",
            "from the predictions of every cell, with intervals; 1000 rounds for a paper",
        ),
    ],
    see=["corrupt", "eval"],
    plot="Draw the models: --plot-kind.",
)
def robust(
    rows: Annotated[
        Given | None, Piped("ROWS...", "Streams of result rows, read as one; - or nothing is stdin.", mark=READ)
    ] = None,
    *,
    metric: Annotated[str | None, Option("NAME")] = None,
    subset: Annotated[str | None, Option("NAME")] = None,
    protocol: Annotated[str | None, Option("NAME", offer=choices.single_protocols)] = None,
    model_tag: Annotated[str, Option("KEY")] = "model",
    name: Annotated[Names, Option("NAME", several=True)] = None,
    corruption: Annotated[Names, Option("NAME", offer=choices.grid_corruptions, several=True)] = None,
    severity: Annotated[Names, Option("N", offer=choices.grid_severities, several=True)] = None,
    dataset: Annotated[
        options.Path | None, options.dataset(f"Of cells that name predictions: {options.A_DATASET}.")
    ] = None,
    bootstrap: Annotated[int | None, Option("N", mark=options.ROUNDS)] = None,
    seed: options.Seed = 0,
    unit: Annotated[str | None, Option(one_of=("percent", "fraction"))] = None,
    allow_missing: bool = False,
    rank_by: Annotated[str, Option("NAME", one_of="robustness.rows:RANKED_BY")] = "mri",
    with_published: Annotated[str | None, Option(one_of="tables.published:ROHOI_DATASETS")] = None,
    plot_kind: Annotated[str, Option(one_of="figures.robustness:PLOTS")] = "curves",
    on_error: options.OnError = "stop",
    tag: options.Tag = None,
) -> Result:
    """The robustness of one or several models: MRI and CRI, by corruption, family and severity.

    Reads what hoicli eval writes with --tag corruption=NAME --tag severity=1 to 5, and with --tag corruption=clean for
    the original images. MRI is the mean over corruptions of the mean over severities, in percent. CRI divides each
    corruption's mean by the clean value and by 1 + ln(1 + its deviation over severities). A missing or doubled cell
    stops the run. The indices are RoHOI's; images of hoicli corrupt (--tag recipe=hoicli-1) are not, so that values
    compare within a recipe and not with the paper's tables.

    Arguments:
        metric: The rows' metric: mAP, or the only one there is.
        subset: The rows' subset: full, or the only one there is.
        protocol: The rows' protocol, where there are several.
        model_tag: The tag that tells models apart.
        name: Each ROWS is a model of its own: their names, in the order of ROWS; repeatable, or several with commas.
        corruption: The corruptions of a complete grid: names, rohoi (all 20), seen, or auto (default): rohoi where
            more than half occur.
        severity: The severities of a complete grid: numbers, seen, or auto (default): 1 to 5 beside rohoi if more than
            half occur.
        bootstrap: Of cells that name predictions: 95 % intervals, and differences from the first model, from N
            resamples of the images, the same in all cells and models (1000 is usual).
        unit: The unit of the values, whatever the rows say.
        allow_missing: Average an incomplete grid, too, and say what is missing.
        rank_by: What ranks the models: mri, cri, clean or relative_drop.
        with_published: Add the paper's own numbers on that dataset, unranked, each row marked as not comparable.
        plot_kind: curves: means by severity, and families or corruptions as bars; heatmap: every cell, a panel for
            each model.
    """
    from hoicli.commands.inputs import Inputs, lines, policy_of
    from hoicli.resampling.draws import Resampling
    from hoicli.robustness.gathering import Gathering
    from hoicli.robustness.grids import grids as grids_of
    from hoicli.robustness.rows import arranged, ranked, robustness_rows
    from hoicli.robustness.selection import Selection, benchmark, is_vcoco, named
    from hoicli.tables.published import rohoi_rows

    wanted = benchmark(",".join(names_of(corruption) or ["auto"]), ",".join(names_of(severity) or ["auto"]))
    resampling = None if bootstrap is None else Resampling.checked(bootstrap, seed)
    own, tags, policy = text_of(dataset), tags_of(tag), policy_of(on_error)
    stream = lines(rows, "rows", "rows", "ROWS")
    names = {display_name(path): model for path, model in named(stream.paths, names_of(name)).items()}
    called = protocol
    if protocol is not None and protocol.endswith(".json"):
        from hoicli.evaluation.protocol_files import explicit

        (called,) = explicit([protocol])
    gathering = Gathering(Selection(metric, subset, called, unit), model_tag=model_tag, names=names)
    gathering.read(stream, policy)
    if bootstrap is not None and not gathering.cells:
        raise UsageError(f"{arg('bootstrap', bootstrap)}: rows have no images; give cells with their predictions")
    if own is not None and not gathering.cells:
        problem = "is that of cells with their predictions; rows say what they are of"
        raise UsageError(f"{arg('dataset', own)}: {problem}")
    samples = None
    if gathering.cells:
        from hoicli.robustness.sampling import evaluate_cells

        opening = Inputs(own, policy, own or "hico").opening
        samples = evaluate_cells(gathering, opening, policy, protocol=protocol, dataset=own, resampling=resampling)
    policy.report()
    grids, remarks = grids_of(gathering, wanted, allow_missing=allow_missing)
    if len(grids) > 1 and model_tag in tags:
        raise UsageError(f"{arg('tag', model_tag)}: the rows are of {len(grids)} models, which it tells apart")
    grids = ranked(grids, rank_by)
    for remark in remarks:
        note(remark)
    results, differences = robustness_rows(grids, tags=tags), []
    if samples is not None:
        from hoicli.robustness.sampling import difference_rows, intervals

        drawn = samples.resampling.signature()
        results = robustness_rows(grids, tags=tags, intervals=intervals(grids, samples), drawn=drawn)
        first = gathering.cells[0]
        baseline = gathering.name_of(first.tags, first.line)
        differences = list(difference_rows(grids, samples, baseline, model_tag, tags=tags))
    of = grids[0].protocol
    if with_published and is_vcoco(of) != (with_published == "vcoco"):
        problem = f"the rows are of {of or 'no protocol'}, on other data"
        raise UsageError(f"{arg('with_published', with_published)}: {problem}")
    published = rohoi_rows(with_published, tags=tags) if with_published else []

    def blocks(notation: str) -> Iterable[Sequence[Row]]:
        return arranged(grids, results, differences, published, notation)

    def figure(path: str, look: Look) -> None:
        from hoicli.robustness.drawing import draw

        draw(grids, path, kind=plot_kind, look=look)

    return Result([row for block in blocks("jsonl") for row in block], blocks=blocks, drawn=figure)
