"""`hoicli curriculum`: SAMPL's masking level for the next epoch."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface.command import command
from hoicli.interface.options import Given, Option, Piped
from hoicli.interface.results import Records


@command(
    reads="lines of epoch, severity and score",
    writes="a line with the next epoch's severity, cover ratio and reasons",
    examples="""
        hoicli curriculum epochs.jsonl  # the level of the next epoch
        hoicli curriculum --every epochs.jsonl  # the decisions of all epochs so far
        L=$(hoicli curriculum epochs.jsonl | jq -r .severity); hoicli mask --ratio $L --seed 6 gt.jsonl
            # the masks of that level
    """,
    see=["mask", "eval"],
)
def curriculum(
    epochs: Annotated[Given | None, Piped("EPOCHS...")] = None,
    *,
    threshold: Annotated[float, Option("T")] = 0.1,
    every: bool = False,
) -> Records:
    """The masking level of the next epoch (clean, low, middle or high) from the validation scores so far, and why.

    Each epoch is one line: {"epoch": 3, "severity": "low", "score": 31.2}. The first epoch is clean. The next level is
    unlocked when the score changes little. Of the unlocked levels, the one with the best latest score is chosen,
    divided by 1 + the number of epochs that used it. docs/commands/curriculum.md says how we read the paper.

    Arguments:
        epochs: Lines of epoch, severity and score; - or nothing is stdin.
        threshold: Unlock a level when the score changes by less than T times its largest change so far.
        every: Write a line for every epoch so far, not only for the next.
    """
    from hoicli.interface.inputs import lines
    from hoicli.robustness.masking_levels import decisions, read_epochs

    if not (isfinite(threshold) and threshold > 0):
        raise UsageError(f"{arg('threshold', threshold)}: give a number above 0")
    decided = decisions(read_epochs(lines(epochs, "epochs", "epochs", "EPOCHS")), threshold=threshold)
    return Records(decided if every else decided[-1:])
