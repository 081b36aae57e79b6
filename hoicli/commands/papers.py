"""`hoicli papers`: which evaluator made which paper's numbers, and published tables as rows."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.manual import command
from hoicli.commands.options import option


@command(
    reads="nothing",
    writes="a line for each group of methods; with --rows result rows",
    examples=[
        ("hoicli papers", "who evaluated, and what evaluates so here"),
        ("hoicli papers --rows hico | hoicli table", "published figures in one table"),
        (
            "hoicli eval --gt gt.jsonl --tag model=ours preds.jsonl > ours.jsonl && "
            "hoicli papers --rows hico | cat - ours.jsonl | hoicli table --layout hico",
            "one's own line below",
        ),
    ],
    see=["table", "eval", "robust"],
)
def papers(
    rows: str | None = option(
        None,
        "--rows NAME",
        "A published table as result rows, each with its source: hico, zero-shot, vcoco, swig, robust, robust-vcoco, "
        "pairs, pairs-vcoco, diagnose, shoe or shoe-vcoco.",
        one_of=choices.published,
    ),
    *,
    out: options.Listing,
) -> None:
    """Which evaluator made which paper's numbers, as repositories and their authors say; and published tables as rows.

    Every row of --rows names where it is printed (source), and says whether it compares with one's own (comparable): by
    the protocol of the row, where its repository names the evaluator or shows it; not at all, where it is not known.
    """
    from hoicli.papers.evaluators import evaluator_rows
    from hoicli.papers.published import SETS

    out.write(SETS[rows][1]() if rows else evaluator_rows())
