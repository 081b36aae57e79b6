"""`hoicli completion`: commands, options and their values at the Tab key."""

from __future__ import annotations

import typer

from hoicli.commands.manual import command
from hoicli.commands.options import argument


@command(
    reads="nothing",
    writes="a shell script; no file is touched",
    examples=[
        ('eval "$(hoicli completion bash)"', "bash: this line in ~/.bashrc"),
        ("hoicli completion zsh > _hoicli", "zsh: as _hoicli in a folder of $fpath"),
        ("hoicli completion fish > hoicli.fish", "fish: in ~/.config/fish/completions"),
        ("hoicli completion bash -- eval --protocol hico,q", "what a script asks when Tab is pressed"),
    ],
    see=["doctor"],
)
def completion(
    context: typer.Context,
    shell: str = argument(..., "SHELL", "bash, zsh or fish.", one_of=("bash", "zsh", "fish")),
    words: list[str] | None = argument(
        None, "-- WORDS...", "Instead of the script: what may complete the last of these words after hoicli."
    ),
) -> None:
    """Print a script that completes hoicli's commands, options and values when Tab is pressed.

    Values are the names that a command takes: protocols (several with commas), formats, datasets, splits, corruptions,
    backends. Where a file is wanted, the shell completes file names.
    """
    from hoicli.completion import SCRIPTS, candidates

    if not words:
        print(SCRIPTS[shell], end="")
        return
    for value, text in candidates(context.find_root().command, words):
        print(f"{value}\t{text}")
