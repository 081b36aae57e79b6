"""`hoicli agree`: how well raters agree, and models with people."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ, Count
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError
from hoicli.io.streams import Stream

LEVELS = Count(2, 1000)
"""How many rating levels are allowed: --distribution writes a row for each level and rater. Human scales have at most
101."""
PERMUTATIONS = Count(0, 10_000_000)
"""The most takes minutes for a hundred items, and gives p to seven digits."""


@command(
    reads="ratings: lines of item, rater and rating, or of an item with all its ratings",
    writes="result rows",
    examples=[
        ("hoicli agree ratings.jsonl", "kappa, alpha and agreement of everybody in the file"),
        (
            "hoicli agree --models 'gem*,qwen' --subsets --format md ratings.jsonl",
            "those raters as models, with every subset, as Markdown",
        ),
        ("hoicli agree --levels 7 --distribution ratings.jsonl", "ratings from 0 to 6, and how often each was given"),
        (
            "hoicli agree --models sim --model-scale 0,1 --group differs --bootstrap 1000 ratings.csv",
            "a metric from 0 to 1; also where the verb differs, and the object",
        ),
        ("hoicli agree --plot kappa.pdf --plot-kind kappa ratings.jsonl", "kappa of every two people, drawn"),
    ],
    see=["shoe-sim", "shoe-eval"],
)
def agree(
    ratings: list[str] | None = argument(
        None, "RATINGS...", "Streams of ratings, read as one; - or nothing is stdin.", mark=READ
    ),
    levels: int = option(5, "--levels K", "Ratings go from 0 to K - 1.", mark=LEVELS),
    models: list[str] | None = option(
        None,
        "--models NAME,...",
        "The raters that are models (* stands for any text); without it, the `kind` of a line says so.",
    ),
    humans: list[str] | None = option(None, "--humans NAME,...", "The raters that are people; the rest are models."),
    subsets: bool = flag("--subsets", "Add the agreement of every subset of models, and the mean of each size."),
    merge: str | None = option(
        None,
        "--merge",
        "How several models become one. Without it --subsets votes (majority, as the supplement's Table 1; ties go to "
        "the model that --models lists first, else the first by name) and `models` is the mean.",
        one_of="shoe.pairs:RULES",
    ),
    model_scale: list[str] | None = option(
        None,
        "--model-scale [NAME=]A,B",
        "The lowest and highest value of the models, or of NAME (* stands for any text), where these are no levels: "
        "0,1 for a similarity. They are brought to the levels in proportion; repeatable.",
    ),
    group: str | None = option(
        None,
        "--group KEY",
        "The key (or column) that says which group an item is of, such as whether the verb or the object differs: all "
        "is told for each group, too.",
    ),
    distribution: bool = flag("--distribution", "Add how often each rater gave each rating."),
    votes: bool = flag("--votes", "Add how often each person gave each rating, by the rating that most gave the item."),
    again: str | None = option(
        None,
        "--again FILE",
        "Ratings that the same raters gave the same items a second time: adds how many were updated, and how far.",
        mark=READ,
    ),
    bootstrap: int | None = options.bootstrap("kappa, alpha, AC1, AC2, agreement and updates", "the items"),
    permutations: int = option(
        10_000, "--permutations N", "How many random orders give the p of Spearman's rho.", mark=PERMUTATIONS
    ),
    seed: int = option(0, "--seed N", "The seed of those orders and resamples."),
    plot: str | None = options.figure("Draw the raters: --plot-kind."),
    plot_kind: str = option(
        "distribution",
        "--plot-kind",
        "distribution: how often each person gave each rating; votes: the same by the rating that most gave the item; "
        "kappa: quadratic weighted kappa of every two people.",
        one_of="figures.ratings:PLOTS",
    ),
    *,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """Agreement between raters, and of models with people, from lines of item, rater and rating.

    Among people (or all raters, where none is a model): quadratic weighted kappa of every two (qwk), Krippendorff's
    alpha, Gwet's AC1 and AC2, the pooled deviation of ratings within an item (within_sd) and the standard error of an
    item's mean (se). Of models with the mean of people: agreement in percent, Spearman's rho with its 95 % interval
    (ci_low, ci_high) and permutation p, for each model and for all of them as one.
    """
    from hoicli.agreement.drawing import draw
    from hoicli.agreement.ratings import read_ratings
    from hoicli.agreement.rows import agreement_rows, blocks
    from hoicli.agreement.scales import scales_of
    from hoicli.agreement.settings import AgreementSettings

    if plot is None and plot_kind != "distribution":
        raise UsageError(f"--plot-kind {plot_kind}: name the figure with --plot FILE")
    look = drawing.look(plot)
    settings = AgreementSettings.checked(
        levels=levels, permutations=permutations, seed=seed, merge=merge, bootstrap=bootstrap, subsets=subsets,
        distribution=distribution, votes=votes, group=group,
    )  # fmt: skip
    scales = scales_of(model_scale or [])
    paths = options.inputs(ratings, "RATINGS")
    tags, policy = out.tags(), out.policy()
    table = read_ratings(
        Stream(paths, "ratings"),
        levels=levels,
        policy=policy,
        models=[name for name in options.separated(models) if name],
        humans=[name for name in options.separated(humans) if name],
        scales=scales,
        group=settings.group,
    )
    second = None
    if again is not None:
        second = read_ratings(Stream([again], "again"), levels=levels, policy=policy, group=settings.group, first=table)
    rows = list(agreement_rows(table, settings, again=second, tags=tags))
    policy.report()
    out.write(*(blocks(rows) if out.notation() in ("table", "md", "latex") else [rows]))
    if plot is not None:
        draw(table, plot, kind=plot_kind, levels=levels, look=look)
