"""`hoicli data`: ground truth by name."""

from __future__ import annotations

import os
from typing import Annotated

from hoicli.commands import choices, options
from hoicli.commands.checks import Read
from hoicli.commands.command import command
from hoicli.commands.options import Argument, Option
from hoicli.commands.results import Result
from hoicli.commands.values import text_of
from hoicli.errors import UsageError, arg
from hoicli.io.messages import note


@command(
    reads="the files of data add: any format of convert --list",
    writes="list: a row for each set; path, add, fetch: the path of its records",
    examples="""
        hoicli data list  # all names, which of them you have, and their terms of use
        hoicli data add hico:test instances_test2015.json  # convert a copy once; later: --gt hico:test
        hoicli eval --gt hico:test preds.jsonl  # use it by name
        hoicli data path hico:test  # where its records are stored
    """,
    see=["convert", "eval", "validate"],
)
def data(
    action: Annotated[str, Argument("ACTION", one_of=("list", "add", "fetch", "path"))] = "list",
    name: Annotated[str | None, Argument("NAME", "DATASET:PART, such as hico:test.", offer=choices.NAMED_TRUTH)] = None,
    files: Annotated[options.Path | list[str] | None, Argument("FILE...", mark=Read())] = None,
    *,
    from_: Annotated[str | None, Option("NAME", one_of=choices.readable_formats)] = None,
    dataset: Annotated[options.Path | None, options.dataset()] = None,
) -> Result:
    """Keep ground truth under a name: then --gt hico:test works wherever a command takes --gt FILE.

    add converts files that you have. fetch downloads them from their publishers' own addresses, over https, and accepts
    a file only if its checksum is the published one. Nothing is downloaded unless you ask. The copies are in
    hoicli/data of your cache folder; HOICLI_DATA names another folder.

    Arguments:
        action: list, add, fetch or path.
        files: The files that add takes.
        from_: add: the format of the files, if it is not detected.
        dataset: add: whose labels they are, for a name of your own (default: hico).
    """
    from hoicli.converters import store
    from hoicli.converters.named import located

    if action != "add" and (files or from_ or dataset):
        raise UsageError(f"data {action}: FILE, {arg('from_')} and {arg('dataset')} go with hoicli data add")
    if action == "list":
        if name:
            raise UsageError("data list takes no name; hoicli data path NAME says where a set is")
        return Result(store.rows())
    if not name:
        raise UsageError(f"data {action}: give a name (hoicli data list shows them)")
    if action == "path":
        path = located(name)
        if path == name:
            raise UsageError(f"{name!r} is no name of ground truth (hoicli data list shows them)")
        return _placed(name, path)
    if action == "add" and not files:
        raise UsageError(f"data add {name}: give the files to convert")
    if action == "fetch":
        added = store.fetch(name)
    else:
        given = [files] if isinstance(files, str | os.PathLike) else files or []
        added = store.add(name, [os.fspath(path) for path in given], dataset=text_of(dataset), source_format=from_)
    note(f"{name}: {added.images:,} images, gt:{added.signature}")
    return _placed(name, str(added.path))


def _placed(name: str, path: str) -> Result:
    """The row of a set; the command prints the path alone, whatever --format says."""
    return Result([{"name": name, "path": path}], rendered=lambda _: f"{path}\n".encode(errors="surrogateescape"))
