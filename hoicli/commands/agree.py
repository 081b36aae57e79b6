"""`hoicli agree`: how well raters agree, and models with people."""

from __future__ import annotations

from typing import Annotated, Any

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ, Count
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, tags_of
from hoicli.interface.options import Given, Names, Option, Piped
from hoicli.interface.results import Result

LEVELS = Count(2, 1000)
"""How many rating levels are allowed: --distribution writes a row for each level and rater. Human scales have at most
101."""
SEED = Count(0, 2**32 - 1)


@command(
    reads="ratings: lines of item, rater and rating, or of an item with all its ratings",
    writes="result rows",
    examples="""
        hoicli agree ratings.jsonl  # kappa, alpha and agreement of all raters
        hoicli agree --models 'gem*,qwen' --subsets --format md ratings.jsonl
            # name the models; every subset of them; as Markdown
        hoicli agree --levels 7 --distribution ratings.jsonl  # ratings from 0 to 6, and how often each was given
        hoicli agree --plot kappa.pdf --plot-kind kappa ratings.jsonl  # a plot of kappa for each pair of people
    """,
    see=["shoe-sim", "shoe-eval"],
    plot="Draw the raters, as --plot-kind says: .png, .svg or .pdf.",
)
def agree(
    ratings: Annotated[Given | None, Piped("RATINGS...")] = None,
    *,
    levels: Annotated[int, Option("K", check=LEVELS)] = 5,
    models: Annotated[Names, Option("NAME,...", repeated=True)] = None,
    subsets: bool = False,
    merge: Annotated[str | None, Option(one_of="shoe.settings:RULES")] = None,
    group: Annotated[str | None, Option("KEY")] = None,
    distribution: bool = False,
    votes: bool = False,
    again: Annotated[Given | None, Option("FILE", check=READ)] = None,
    bootstrap: Annotated[
        int | None, options.bootstrap("kappa, alpha, AC1, AC2, agreement and updates", "the items")
    ] = None,
    seed: Annotated[int, Option("N", "The seed of the permutations and resamples.", check=SEED)] = 0,
    plot_kind: Annotated[str, Option(one_of="figures.rating_plots:PLOTS")] = "distribution",
    on_error: options.OnError = "stop",
    tag: options.Tag = None,
) -> Result:
    """Agreement between raters, and of models with people, from lines of item, rater and rating.

    Among people (or all raters, if none is a model): quadratic weighted kappa of each pair (qwk), Krippendorff's alpha,
    Gwet's AC1 and AC2, the pooled deviation of ratings within an item (within_sd) and the standard error of an item's
    mean (se). Between models and the mean of people: agreement in percent, Spearman's rho with its 95 % interval
    (ci_low, ci_high) and p of 10,000 permutations, for each model and for all of them combined.

    Arguments:
        ratings: Files of ratings, read as one; - or nothing is stdin.
        levels: Ratings go from 0 to K - 1.
        models: The raters that are models (* stands for any text). By default, the lines' `kind` says so.
        subsets: Add the agreement of every subset of models, and the mean of each size.
        merge: How to join several models. By default `models` is the mean, and --subsets takes the majority (ties go to
            the model listed first in --models, else first by name), as in the SHOE supplement's Table 1.
        group: Add all rows for each group of items. KEY (or a column) has an item's group, such as whether the verb or
            the object differs.
        distribution: Add how often each rater gave each rating.
        votes: Add how often each person gave each rating, by the item's majority rating.
        again: Ratings that the same raters gave the same items a second time. Adds how many changed, and by how much.
        plot_kind: distribution: how often each person gave each rating; votes: the same by the item's majority rating;
            kappa: quadratic weighted kappa of each pair of people.
    """
    from hoicli.agreement.agreement_rows import AgreementSettings, agreement_rows, draw
    from hoicli.agreement.agreement_rows import blocks as blocks_of
    from hoicli.agreement.ratings import read_ratings
    from hoicli.interface.inputs import lines
    from hoicli.records.intake import policy_of
    from hoicli.resampling.draws import Resampling

    if group is not None and not group.strip():
        raise UsageError(f"{arg('group')}: name the key that says which group an item is of")
    settings = AgreementSettings(
        levels=levels,
        seed=seed,
        merge=merge,
        resampling=None if bootstrap is None else Resampling.from_options(bootstrap, seed),  # seed: also of p
        subsets=subsets,
        distribution=distribution,
        votes=votes,
        group=group or "",
    )
    tags, policy = tags_of(tag), policy_of(on_error)
    read_options: Any = {"levels": levels, "policy": policy, "group": settings.group}
    model_names = [name for name in names_of(models) if name]
    # after the source, `lines` takes the names of the parameter, of the lines in messages, and of the argument in help
    table = read_ratings(lines(ratings, "ratings", "ratings", "RATINGS"), models=model_names, **read_options)
    second_table = None if again is None else read_ratings(lines(again, "again", "again", "again"), **read_options)
    rows = list(agreement_rows(table, settings, again=second_table, tags=tags))

    return Result(
        rows,
        blocks=lambda notation: blocks_of(rows) if notation in ("table", "terminal", "md", "latex") else [rows],
        draw=lambda path, look: draw(table, path, kind=plot_kind, levels=levels, look=look),
    )
