"""The user's own copy of named ground truth: records in a folder, made once from the published files.

The folder is $HOICLI_DATA, else hoicli/data in the user's cache folder ($XDG_CACHE_HOME, ~/.cache). It holds
DATASET/PART.jsonl of every set, and in DATASET/.PART.download the files of one that is not complete.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hoicli.converters.context import Context
from hoicli.converters.conversion import Conversion
from hoicli.converters.download import download
from hoicli.converters.named import NAMED, NamedTruth, Part, digest_of, meant_by, named
from hoicli.errors import DataError, UsageError
from hoicli.io.outputs import atomic_path, writable
from hoicli.io.progress import Progress
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import dump
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.results import Row
from hoicli.vocabulary.datasets import load

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}:[a-z0-9][a-z0-9._-]{0,60}")
"""How a set is called: DATASET:PART. A path that looks so and exists is a path."""
_PART = re.compile(r"--part (test|train)")
"""What messages of `convert` recommend for a file that holds two parts; here the set's name says which."""


@dataclass(frozen=True)
class Added:
    """A set that was added: its file, its digest, how many images it has, and whether its digest is that of a published
    form (None where hoicli knows no digest of the set)."""

    path: Path
    digest: str
    images: int
    published: bool | None


def folder() -> Path:
    """The folder of the sets; raises `UsageError` for a relative HOICLI_DATA."""
    own = os.environ.get("HOICLI_DATA", "")
    if own:
        if not os.path.isabs(own):
            raise UsageError(f"HOICLI_DATA={own}: give an absolute path")
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hoicli" / "data"


def path_of(name: str) -> Path:
    """The file of a set, whether or not it is there."""
    dataset, _, part = name.partition(":")
    return folder() / dataset / f"{part}.jsonl"


def is_name(text: str) -> bool:
    """Whether a word means a set: it looks like a name, and is no path of a file."""
    return _NAME.fullmatch(text) is not None and not os.path.exists(text)


def located(text: str) -> str:
    """The file that a --gt means: that of a set for its name, else the text itself. Raises `UsageError` for a set that
    was never added, with the command that adds it."""
    if not is_name(text):
        return text
    path = path_of(text)
    if path.is_file():
        return str(path)
    if text not in NAMED:
        problem = f"{text}: no such file, and no ground truth of that name was added{meant_by(text)}"
        raise UsageError(f"{problem}; hoicli data list shows what there is")
    raise UsageError(f"{text} is not here yet: {_way_to(NAMED[text])}")


def _way_to(row: NamedTruth) -> str:
    """How a user gets a set."""
    by_hand = f"hoicli data add {row.name} FILE takes your copy"
    return (
        f"hoicli data fetch {row.name} downloads it, {by_hand}" if row.parts else f"get it from {row.source}; {by_hand}"
    )


def add(name: str, files: Sequence[str], *, dataset: str | None = None, source_format: str | None = None) -> Added:
    """Convert files of any format that `convert` reads, and keep them as the set of this name. Of files that hold two
    parts, DATASET:train takes the training part, every other name the test part.

    Raises `UsageError` for a name that is none, `DataError` for files that convert refuses, that are predictions, or
    that hold no image.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} is no name of ground truth; write DATASET:PART, such as hico:test or mine:val")
    if name in NAMED:
        dataset = NAMED[name].dataset
    target = path_of(name)
    with writable(str(target.parent)):
        target.parent.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    part = "train" if name.endswith(":train") else "test"
    context = Context(load(dataset or "hico"), ErrorPolicy(unit="item"), announce=notes.append, split=part)
    conversion = Conversion(context, source_format, dataset)
    try:
        added = _kept(name, target, conversion, context, list(files))
    except DataError as error:
        raise DataError(_by_name(error.problem), place=error.place, field=error.field, code=error.code) from None
    conversion.report([_by_name(text) for text in notes])
    return added


def _by_name(text: str) -> str:
    """A message of `convert` with the name of a set where it recommends an option that `data add` does not have."""
    return _PART.sub(r"a name that ends in :\1", text)


def _kept(name: str, target: Path, conversion: Conversion, context: Context, files: list[str]) -> Added:
    """The set, written to its file whole or not at all."""
    with atomic_path(str(target), "data add") as temporary:
        with (
            no_garbage_collection(),
            Progress(f"add {name}", unit=" images") as progress,
            writable(str(target)),
            open(temporary, "wb", buffering=1 << 18) as file,
        ):
            for record in conversion.records(files, progress):
                if any("score" in hoi for hoi in record["hois"]):
                    raise DataError("holds predictions; give the ground truth's file", place=files[0])
                file.write(dump(record))
        digest, images = _digest(temporary, context, files[0])
    known = NAMED[name].digests if name in NAMED else ()
    return Added(target, digest, images, digest in known if known else None)


def _digest(path: str, context: Context, place: str) -> tuple[str, int]:
    """(digest, images) of records."""
    vocabulary = context.vocabulary
    stream = Stream([path], "ground truth")
    scenes = concatenate(read_scenes(stream, vocabulary, scored=False, policy=ErrorPolicy()), vocabulary)
    if not scenes.image_ids:
        raise DataError("holds no image", place=place)
    return digest_of(total_of(scenes.hashes)), len(scenes.image_ids)


def fetch(name: str) -> Added:
    """Download a set from its publishers, check it, and `add` it. Nothing downloaded is left once it is added.

    Raises `UsageError` for a set that no address serves, `DataError` as `download` does.
    """
    row = named(name)
    if not row.parts:
        raise UsageError(f"{name} cannot be downloaded by a program: {_way_to(row)}")
    target = path_of(name)
    downloads = target.with_name(f".{target.stem}.download")
    with writable(str(downloads)):
        downloads.mkdir(parents=True, exist_ok=True)
    added = add(name, [str(_unpacked(part, download(part, downloads))) for part in row.parts])
    shutil.rmtree(downloads, ignore_errors=True)
    return added


def _unpacked(part: Part, path: Path) -> Path:
    """The file itself, taken out of its archive."""
    if not part.member:
        return path
    target = path.with_name(part.file_name)
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(part.member) as packed,
            atomic_path(str(target), "data fetch") as temporary,
            open(temporary, "wb") as file,
        ):
            shutil.copyfileobj(packed, file, 1 << 20)
    except (zipfile.BadZipFile, KeyError):  # only where the table above is wrong: the archive's checksum was right
        raise DataError(f"has no {part.member}; please report it", place=str(path)) from None
    return target


def rows() -> list[Row]:
    """Every set that is known or was added: name, title, where it is, where it comes from, and its terms. A file in
    their folder that no name can mean is none."""
    there = {f"{path.parent.name}:{path.stem}": str(path) for path in sorted(folder().glob("*/*.jsonl"))}
    here = {name: path for name, path in there.items() if _NAME.fullmatch(name)}
    found = [_row(row, here.pop(row.name, None)) for row in NAMED.values()]
    return [*found, *[{"name": name, "title": "added by you", "path": path} for name, path in here.items()]]


def _row(row: NamedTruth, path: str | None) -> Row:
    return {"name": row.name, "title": row.title, "path": path, "from": row.source, "terms": row.terms}
