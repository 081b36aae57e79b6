"""The user's own copy of named ground truth, made once from the published files, whose checksums must be right."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hoicli.converters.context import Context
from hoicli.converters.conversion import Conversion
from hoicli.converters.named import NAME, NAMED, NamedTruth, folder, path_of, truth_settings
from hoicli.errors import DataError, Place, UsageError
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import Progress, note
from hoicli.io.outputs import atomic_path, temporary_folder, writable
from hoicli.io.streams import Line
from hoicli.io.web import opener
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.result_rows import Row
from hoicli.vocabulary.datasets import DATASETS, load

PATIENCE = 60.0
"""Seconds in which a server begins to answer, and after which it counts as silent when no more bytes arrive."""
LARGEST = 1 << 26
"""The most bytes of a download, which is then stopped: several times the largest of the published files."""


def add(name: str, files: Sequence[str], *, dataset: str | None = None, source_format: str | None = None) -> Path:
    """Convert files to records, keep these as the ground truth called `name`, and return the path of the kept file.
    name: DATASET:PART; only a part "train" takes the training split of files that hold both. dataset, source_format: as
    --dataset and --from. Raises `UsageError` for a malformed name, and `DataError` for other files."""
    if NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} is no name of ground truth; give DATASET:PART, such as hico:test or mine:val")
    prefix = name.partition(":")[0]
    dataset = dataset or (prefix if prefix in DATASETS else None)
    target = path_of(name)
    with writable(f"{target.parent} (HOICLI_DATA names another folder)"):
        target.parent.mkdir(parents=True, exist_ok=True)
    split = "train" if name.endswith(":train") else "test"
    context = Context(load(dataset or "hico"), ErrorPolicy(unit="item"), split=split, prefix=prefix)
    conversion = Conversion(context, source_format, dataset)
    with (
        atomic_path(str(target), "data add") as temporary,
        no_garbage_collection(),
        Progress(f"add {name}", unit=" images") as progress,
        writable(str(target)),
        open(temporary, "wb", buffering=1 << 18) as file,
    ):

        def write_records() -> Iterator[Line]:
            """Convert the files, write each record to the kept file, and yield its line for the check below."""
            for source, record, data in conversion.convert_files(list(files), progress):
                if any("score" in hoi for hoi in record["hois"]):
                    problem = "holds predictions; give the ground truth's file"
                    raise DataError(problem, place=files[0], code="swapped-files")
                file.write(data)
                yield Line(file=source, number=0, data=data)  # 0: foreign files have no lines

        lines = write_records()
        first_line = next(lines, None)
        if first_line is None:
            raise DataError("holds no image", place=files[0], code="empty")
        vocabulary = context.vocabulary  # only known now: the first file may have changed it to its own dataset
        batches = read_scenes(chain([first_line], lines), vocabulary, scored=False, policy=ErrorPolicy())
        scenes = concatenate(batches, vocabulary)  # all annotations, for their digest in the note
    conversion.report()
    count = len(scenes.image_ids)
    published = NAMED[name].images if name in NAMED else 0
    other = f"; the published set has {published:,} images" if published not in (0, count) else ""
    note(f"{name}: {count:,} images, gt:{truth_settings(total_of(scenes.hashes))['gt']}{other}")
    return target


def fetch(name: str) -> Path:
    """Download a published set of ground truth, check it, keep it as `add` does, and return the path of the kept file.
    name: one of NAMED. Raises `UsageError` for an unknown set, and `DataError` as `download` does."""
    row = NAMED.get(name)
    if row is None:
        raise UsageError(f"{name}: no published ground truth has this name; hoicli data list shows all")
    with TemporaryDirectory(dir=temporary_folder()) as scratch:
        return add(name, [str(download(row, Path(scratch)))])


def download(row: NamedTruth, folder: Path) -> Path:
    """Download the file of a published set (`row`) to a folder, check it, and return its path. Raises `DataError` if
    the server cannot be reached, refuses, redirects or sends something else than the published file."""
    target = folder / row.url.rpartition("/")[2]
    request = urllib.request.Request(row.url, headers={"User-Agent": "hoicli"})  # noqa: S310 (https: see `named`)
    with writable(str(target)), open(target, "wb") as file:
        try:
            with (
                opener().open(request, timeout=PATIENCE) as response,
                Progress(f"fetch {row.name}", unit="B") as progress,
            ):
                for piece in _pieces(response, row.url):
                    file.write(piece)
                    progress.advance(len(piece))
        except (urllib.error.URLError, TimeoutError, HTTPException, ConnectionError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            problem = f"no download ({error}); try again later, or get the file by hand: hoicli data add NAME FILE"
            raise DataError(problem, place=Place(row.url), code="network") from None
    actual = checksum(target, row.checksum)  # by the algorithm that the published one names
    if actual != row.checksum:
        problem = f"is not the published file ({actual}, not {row.checksum}); fetch it again, or get it by hand"
        raise DataError(problem, place=Place(row.url), code="network")
    return target


def _pieces(response: Any, url: str) -> Iterator[bytes]:
    """Yield what a server sends. Raises `DataError` after LARGEST bytes, and TimeoutError after PATIENCE seconds."""
    size = 0
    while piece := response.read1(1 << 18):
        response.allow(PATIENCE)  # for the next piece
        yield piece
        size += len(piece)
        if size > LARGEST:
            problem = f"sends more than {LARGEST:,} bytes; the published file is smaller"
            raise DataError(problem, place=Place(url), code="network")


def checksum(path: Path, like: str) -> str:
    """Return the checksum of a file in the notation of another one, `like`: "sha256:HEX", or git's id, "git:HEX"."""
    kind = like.partition(":")[0]
    if kind == "git":  # how git names contents, and no protection by itself: the address is https at a fixed commit
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"


def rows() -> list[Row]:
    """Return a row for each set of ground truth, the published ones first; its path is None if it is not kept."""
    files = {f"{path.parent.name}:{path.stem}": str(path) for path in sorted(folder().glob("*/*.jsonl"))}
    path_by_name = {name: path for name, path in files.items() if NAME.fullmatch(name)}
    published: list[Row] = []
    for row in NAMED.values():
        path = path_by_name.pop(row.name, None)
        published.append({"name": row.name, "title": row.title, "path": path, "from": row.source, "terms": row.terms})
    return [*published, *[{"name": name, "title": "added by you", "path": path} for name, path in path_by_name.items()]]
