"""`hoicli agree`: how well raters agree, and models with people."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import READ, Count
from hoicli.commands.common import Format, OnError, Output, Tag, inputs, skips
from hoicli.commands.manual import page
from hoicli.similarity.rules import RULES, check_rule

LEVELS = Count(2, 1000)
"""Ratings there may be: with --distribution each has a row for each rater. People's scales have 101 at most."""
PERMUTATIONS = Count(0, 10_000_000)
"""Minutes for a hundred items; p is then known to the seventh digit."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="ratings: item, rater and rating a line, or an item with all its ratings",
        writes="result rows",
        examples=[
            ("hoicli agree ratings.jsonl", "kappa, alpha and agreement of everybody in the file"),
            (
                "hoicli agree --models 'gem*,qwen' --subsets --format md ratings.jsonl",
                "those raters as models, with every subset, as Markdown",
            ),
            (
                "hoicli agree --levels 7 --distribution ratings.jsonl",
                "ratings from 0 to 6, and how often each was given",
            ),
        ],
        see=["shoe-sim", "shoe-eval"],
    )
)
def agree(
    ratings: Annotated[
        list[str] | None,
        typer.Argument(metavar="RATINGS...", help="Rating streams, taken together; - or nothing is stdin."),
        READ,
    ] = None,
    levels: Annotated[int, typer.Option("--levels", metavar="K", help="Ratings go from 0 to K - 1."), LEVELS] = 5,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            metavar="NAME,...",
            help="The raters that are models, * for any text; without it a line's `kind` says so.",
        ),
    ] = None,
    humans: Annotated[
        list[str] | None,
        typer.Option("--humans", metavar="NAME,...", help="The raters that are people; the rest are models."),
    ] = None,
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Adds the agreement of every subset of models, and the mean of each size.")
    ] = False,
    merge: Annotated[
        str | None,
        typer.Option(
            "--merge",
            metavar="|".join(RULES),
            help="How several models become one. Without it --subsets votes (majority, as the supplement's Table 1; "
            "ties go to the model that --models lists first, else the first by name) and `models` is the mean.",
            autocompletion=choices.merge_rules,
        ),
    ] = None,
    distribution: Annotated[
        bool, typer.Option("--distribution", help="Adds how often each rater gave each rating.")
    ] = False,
    permutations: Annotated[
        int,
        typer.Option("--permutations", metavar="N", help="Random orders behind the p of Spearman's rho."),
        PERMUTATIONS,
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="What those orders are drawn from.")] = 0,
    tag: Tag = None,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
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
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import parse_tags
    from hoicli.tables.notations import chosen_format, render

    if merge is not None:
        check_rule(merge)
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed}: give a number from 0 to {2**32 - 1}")
    paths = inputs(ratings, "RATINGS")
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    table = read_ratings(
        Stream(paths, "ratings"),
        levels=levels,
        policy=policy,
        models=_names(models),
        humans=_names(humans),
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
    drawn = output_format in ("table", "md", "latex")
    rendered = [render(block, output_format) for block in (blocks(rows) if drawn else [rows])]
    policy.report()
    with open_output(output) as write:
        write(b"\n".join(rendered))


def _names(options: list[str] | None) -> list[str]:
    """The names of an option that may be repeated and may hold several with commas."""
    return [name.strip() for option in options or () for name in option.split(",") if name.strip()]
