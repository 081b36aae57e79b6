"""`hoicli data`: ground truth by name."""

from __future__ import annotations

import os
from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.checks import Read
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Argument, Option
from hoicli.interface.results import Result


@command(
    reads="the files of data add: any format of convert --list",
    writes="list: a row for each set; add, fetch: the path of its records",
    examples="""
        hoicli data list  # all names, where those you have are stored, and their terms of use
        hoicli data add hico:test instances_test2015.json  # convert a copy once; later: --gt hico:test
        hoicli eval --gt hico:test preds.jsonl  # use it by name
    """,
    see=["convert", "eval", "validate"],
)
def data(
    action: Annotated[str, Argument("ACTION", one_of=("list", "add", "fetch"))] = "list",
    name: Annotated[str | None, Argument("NAME", "DATASET:PART, such as hico:test.", offer=choices.NAMED_TRUTH)] = None,
    files: Annotated[options.Path | list[str] | None, Argument("FILE...", check=Read())] = None,
    *,
    from_: Annotated[str | None, Option("NAME", one_of=choices.readable_formats)] = None,
    dataset: Annotated[options.Path | None, options.dataset()] = None,
) -> Result:
    """Keep ground truth under a name: then --gt hico:test works wherever a command takes --gt FILE.

    add converts files that you have. fetch downloads them from their publishers' own addresses, over https, and accepts
    a file only if its checksum is the published one. Nothing is downloaded unless you ask. The copies are in
    hoicli/data of your cache folder; HOICLI_DATA names another folder.

    Arguments:
        action: list, add or fetch.
        files: The files that add takes.
        from_: add: the format of the files, if it is not detected.
        dataset: add: whose labels they are, for a name of your own (default: hico).
    """
    from hoicli.converters import store

    if action != "add" and (files or from_ or dataset):
        raise UsageError(f"data {action}: FILE, {arg('from_')} and {arg('dataset')} go with hoicli data add")
    if action == "list":
        if name:
            raise UsageError("data list takes no name; it lists every set with its path")
        return Result(store.rows())
    if not name:
        raise UsageError(f"data {action}: give a name (hoicli data list shows them)")
    if action == "add" and not files:
        raise UsageError(f"data add {name}: give the files to convert")
    if action == "fetch":
        added = store.fetch(name)
    else:
        paths = [files] if isinstance(files, str | os.PathLike) else files or []
        added = store.add(name, [os.fspath(path) for path in paths], dataset=text_of(dataset), source_format=from_)
    path = str(added)  # the command prints this alone, whatever --format says
    return Result([{"name": name, "path": path}], rendered=lambda _: f"{path}\n".encode(errors="surrogateescape"))
