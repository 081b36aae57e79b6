"""`hoicli agree`: how well raters agree, and models with people."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ, Count
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option

LEVELS = Count(2, 1000)
"""Ratings there may be: with --distribution each has a row for each rater. People's scales have 101 at most."""
PERMUTATIONS = Count(0, 10_000_000)
"""Minutes for a hundred items; p is then known to the seventh digit."""


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
        one_of="similarity.rules:RULES",
    ),
    distribution: bool = flag("--distribution", "Add how often each rater gave each rating."),
    permutations: int = option(
        10_000, "--permutations N", "How many random orders give the p of Spearman's rho.", mark=PERMUTATIONS
    ),
    seed: int = option(0, "--seed N", "The seed of those orders."),
    *,
    out: options.ResultRows,
) -> None:
    """Agreement between raters, and of models with people, from lines of item, rater and rating.

    Among people (or all raters, where none is a model): quadratic weighted kappa of every two (qwk), Krippendorff's
    alpha, the pooled deviation of ratings within an item (within_sd) and the standard error of an item's mean (se). Of
    models with the mean of people: agreement in percent, Spearman's rho with its 95 % interval (ci_low, ci_high) and
    permutation p, for each model and for all of them as one.
    """
    from hoicli.agreement.ratings import read_ratings
    from hoicli.agreement.rows import agreement_rows, blocks
    from hoicli.errors import UsageError
    from hoicli.io.streams import Stream

    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed}: give a number from 0 to {2**32 - 1}")
    paths = options.inputs(ratings, "RATINGS")
    tags, policy = out.tags(), out.policy()
    table = read_ratings(
        Stream(paths, "ratings"),
        levels=levels,
        policy=policy,
        models=[name for name in options.separated(models) if name],
        humans=[name for name in options.separated(humans) if name],
    )
    rows = agreement_rows(
        table,
        levels=levels,
        permutations=permutations,
        seed=seed,
        merge=merge,
        subsets=subsets,
        counts=distribution,
        tags=tags,
    )
    policy.report()
    out.write(*(blocks(rows) if out.notation() in ("table", "md", "latex") else [rows]))
