"""`hoicli curriculum`: SAMPL's masking level for the next epoch."""

from __future__ import annotations

from math import isfinite

from hoicli.commands import options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream


@command(
    reads="lines of epoch, severity and score",
    writes="a line with the next epoch's severity, cover ratio and reasons",
    examples=[
        ("hoicli curriculum epochs.jsonl", "the level of the next epoch"),
        ("hoicli curriculum --every epochs.jsonl", "the decisions of all epochs so far"),
        (
            "L=$(hoicli curriculum epochs.jsonl | jq -r .severity); hoicli mask --ratio $L --seed 6 gt.jsonl",
            "the masks of that level",
        ),
    ],
    see=["mask", "eval"],
)
def curriculum(
    epochs: list[str] | None = argument(
        None, "EPOCHS...", "Lines of epoch, severity and score; - or nothing is stdin.", mark=READ
    ),
    threshold: float = option(
        0.1, "--threshold T", "Unlock a level when the score's change falls below T of its largest change so far."
    ),
    every: bool = flag("--every", "Write a line for every epoch so far, not only for the next."),
    output: str = options.OUT,
) -> None:
    """The masking level of the next epoch (clean, low, middle or high) from the validation scores so far, and why.

    Each epoch is one line: {"epoch": 3, "severity": "low", "score": 31.2}; no line yet means clean. A level is unlocked
    when the score changes little; then the best-scoring masked level alternates with clean, the one used less often
    first. docs/commands/curriculum.md says how the paper's words were read.
    """
    from hoicli.records.parsing import dump
    from hoicli.robustness.curriculum import decisions, read_epochs

    if not (isfinite(threshold) and threshold > 0):
        raise UsageError(f"--threshold {threshold:g}: give a number above 0")
    made = decisions(read_epochs(Stream(options.inputs(epochs, "EPOCHS"), "epochs")), threshold=threshold)
    with open_output(output) as write:
        for decision in made if every else made[-1:]:
            write(dump(decision.record()))
