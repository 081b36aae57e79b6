"""`hoicli data`: ground truth by name."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import Read
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option
from hoicli.errors import UsageError
from hoicli.io.messages import note

ACTIONS = (
    ("list", "what there is, and where it comes from"),
    ("add", "keep a copy of files you have"),
    ("fetch", "download from the publishers"),
    ("path", "print the file of a set"),
)


@command(
    reads="the files of data add: any format of convert --list",
    writes="list: a row for each set; path, add, fetch: the path of its records",
    examples=[
        ("hoicli data list", "the names there are, what was added, and the terms of each"),
        ("hoicli data add hico:test instances_test2015.json", "convert a copy once; later: --gt hico:test"),
        ("hoicli eval --gt hico:test preds.jsonl", "no file to look for"),
        ("hoicli data path hico:test", "where its records are"),
    ],
    see=["convert", "eval", "validate"],
)
def data(
    action: str = argument("list", "ACTION", "list, add, fetch or path.", one_of=ACTIONS),
    name: str | None = argument(None, "NAME", "DATASET:PART, such as hico:test.", offer=choices.named_truth),
    files: list[str] | None = argument(None, "FILE...", "The files that add takes.", mark=Read(only_with=("none",))),
    source_format: str | None = option(
        None, "--from NAME", "add: the format of the files, where it is not detected.", one_of=choices.readable_formats
    ),
    dataset: str | None = options.dataset("add: whose labels they are, for a name of your own (default: hico).", None),
    *,
    out: options.Listing,
) -> None:
    """Ground truth by name: wherever a command takes --gt FILE, --gt hico:test takes the copy kept here.

    add converts files that you have; fetch downloads them from their publishers' own addresses, over https, and takes
    a file only if its checksum is the published one. Nothing is downloaded unless you ask. The copies are in
    hoicli/data of your cache folder; HOICLI_DATA is another folder.
    """
    from hoicli.converters import store

    if action != "add" and (files or source_format or dataset):
        raise UsageError(f"data {action}: FILE, --from and --dataset go with hoicli data add")
    if action == "list":
        if name:
            raise UsageError("data list: takes no name; hoicli data path NAME says where one is")
        out.write(store.rows())
        return
    if not name:
        raise UsageError(f"data {action}: give a name (hoicli data list shows them)")
    if action == "path":
        path = store.located(name)
        if path == name:
            raise UsageError(f"{name!r} is no name of ground truth (hoicli data list shows them)")
        out.line(path)
        return
    if action == "add" and not files:
        raise UsageError(f"data add {name}: give the files to convert")
    if action == "fetch":
        added = store.fetch(name)
    else:
        added = store.add(name, files or [], dataset=dataset, source_format=source_format)
    what = {True: "the published annotations", False: "not what hoicli knows under this name"}
    said = "" if added.published is None else f", {what[added.published]}"
    note(f"{name}: {added.images:,} images, gt:{added.digest}{said}")
    out.line(str(added.path))
