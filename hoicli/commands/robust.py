"""`hoicli robust`: robustness indices from the result rows of a corrupted benchmark."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError
from hoicli.io.messages import display_name, note
from hoicli.io.streams import Stream


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
)
def robust(
    rows: list[str] | None = argument(
        None, "ROWS...", "Streams of result rows, read as one; - or nothing is stdin.", mark=READ
    ),
    metric: str | None = option(None, "--metric NAME", "The rows' metric: mAP, or the only one there is."),
    subset: str | None = option(None, "--subset NAME", "The rows' subset: full, or the only one there is."),
    protocol: str | None = option(
        None, "--protocol NAME", "The rows' protocol, where there are several.", offer=choices.single_protocols
    ),
    model_tag: str = option("model", "--model-tag KEY", "The tag that tells models apart."),
    name: list[str] | None = option(
        None,
        "--name NAME",
        "Each ROWS is a model of its own: their names, in the order of ROWS; repeatable, or several with commas.",
    ),
    corruption: list[str] | None = option(
        None,
        "--corruption NAME",
        "The corruptions of a complete grid: names, rohoi (all 20), seen, or auto (default): rohoi where more than "
        "half occur.",
        offer=choices.grid_corruptions,
        several=True,
    ),
    severity: list[str] | None = option(
        None,
        "--severity N",
        "The severities of a complete grid: numbers, seen, or auto (default): 1 to 5 beside rohoi if more than half "
        "occur.",
        offer=choices.grid_severities,
        several=True,
    ),
    dataset: str | None = options.dataset(f"Of cells that name predictions: {options.A_DATASET}.", None),
    bootstrap: int | None = option(
        None,
        "--bootstrap N",
        "Of cells that name predictions: 95 % intervals, and differences from the first model, from N resamples of the "
        "images, the same in all cells and models (1000 is usual).",
        mark=options.ROUNDS,
    ),
    seed: int = options.SEED,
    unit: str | None = option(
        None, "--unit", "The unit of the values, whatever the rows say.", one_of=("percent", "fraction")
    ),
    allow_missing: bool = flag("--allow-missing", "Average an incomplete grid, too, and say what is missing."),
    rank_by: str = option(
        "mri",
        "--rank-by NAME",
        "What ranks the models: mri, cri, clean or relative_drop.",
        one_of="robustness.rows:RANKED_BY",
    ),
    with_published: str | None = option(
        None,
        "--with-published",
        "Add the paper's own numbers on that dataset, unranked, each row marked as not comparable.",
        one_of="tables.published:ROHOI_DATASETS",
    ),
    plot: str | None = options.figure("Draw the models: --plot-kind."),
    plot_kind: str = option(
        "curves",
        "--plot-kind",
        "curves: means by severity, and families or corruptions as bars; heatmap: every cell, a panel for each model.",
        one_of="figures.robustness:PLOTS",
    ),
    *,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """The robustness of one or several models: MRI and CRI, by corruption, family and severity.

    Reads what hoicli eval writes with --tag corruption=NAME --tag severity=1 to 5, and with --tag corruption=clean for
    the original images. MRI is the mean over corruptions of the mean over severities, in percent. CRI divides each
    corruption's mean by the clean value and by 1 + ln(1 + its deviation over severities). A missing or doubled cell
    stops the run. The indices are RoHOI's; images of hoicli corrupt (--tag recipe=hoicli-1) are not, so that values
    compare within a recipe and not with the paper's tables.
    """
    from hoicli.robustness.drawing import draw
    from hoicli.robustness.gathering import Gathering
    from hoicli.robustness.grids import grids as grids_of
    from hoicli.robustness.rows import arranged, ranked, robustness_rows
    from hoicli.robustness.selection import Selection, benchmark, is_vcoco, named
    from hoicli.tables.published import rohoi_rows

    look = drawing.look(plot)
    if plot is None and plot_kind != "curves":
        raise UsageError(f"--plot-kind {plot_kind}: name the figure with --plot FILE")
    wanted = benchmark(",".join(corruption or ["auto"]), ",".join(severity or ["auto"]))
    resampling = None
    if bootstrap is not None:
        from hoicli.resampling.draws import Resampling

        resampling = Resampling.checked(bootstrap, seed)
    tags, policy = out.tags(), out.policy()
    paths = options.inputs(rows, "ROWS")
    names = {display_name(path): model for path, model in named(paths, options.separated(name)).items()}
    called = protocol
    if protocol is not None and protocol.endswith(".json"):
        from hoicli.evaluation.protocol_files import explicit

        (called,) = explicit([protocol])
    gathering = Gathering(Selection(metric, subset, called, unit), model_tag=model_tag, names=names)
    gathering.read(Stream(paths, "rows"), policy)
    if resampling is not None and not gathering.cells:
        raise UsageError(f"--bootstrap {bootstrap}: rows have no images; give cells with their predictions")
    if dataset is not None and not gathering.cells:
        raise UsageError(f"--dataset {dataset}: is that of cells with their predictions; rows say what they are of")
    samples = None
    if gathering.cells:
        from hoicli.robustness.sampling import evaluate_cells

        opening = options.Dumps(None, None).opening(dataset, policy, within=dataset or "hico")
        samples = evaluate_cells(gathering, opening, policy, protocol=protocol, dataset=dataset, resampling=resampling)
    policy.report()
    grids, remarks = grids_of(gathering, wanted, allow_missing=allow_missing)
    if len(grids) > 1 and model_tag in tags:
        raise UsageError(f"--tag {model_tag}: the rows are of {len(grids)} models, which it tells apart")
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
    own = grids[0].protocol
    if with_published and is_vcoco(own) != (with_published == "vcoco"):
        raise UsageError(f"--with-published {with_published}: the rows are of {own or 'no protocol'}, on other data")
    published = rohoi_rows(with_published, tags=tags) if with_published else []
    out.write(*arranged(grids, results, differences, published, out.notation()))
    if plot is not None:
        draw(grids, plot, kind=plot_kind, look=look)
