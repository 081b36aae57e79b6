"""Corrupted tar shards of tar shards, in WebDataset's layout: files with one name up to the first dot belong together.

Of OUT/jpeg/3/00017.tar every image and record is the one that a folder run gives, and stands under the name that it has
in 00017.tar. A tar appears whole, under its name, when all of its shard is made; its first header says what it was
made of, by which a later run knows it as finished.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import IO

from hoicli.corruption.definitions import DRAWING, JPEG_QUALITY
from hoicli.corruption.engine import Job, Outcome, Place, Plan, checked_job, run, unique_jobs
from hoicli.errors import DataError
from hoicli.io.durable import sync_file
from hoicli.io.inputs import readable
from hoicli.io.messages import display_name, note
from hoicli.io.outputs import inherit, lies_in, writable
from hoicli.io.streams import LONGEST_UNPACKED
from hoicli.io.tars import Member, Writer, comment_of, members
from hoicli.io.working import work_folder
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.parsing import parse

IMAGES = ("jpg", "jpeg", "png")
"""The endings of images. `seg.png` is none of them: a mask, or what else stands beside an image."""

_NAME = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]*)")
"""A key and an ending, cut at the first dot of the file's name, as WebDataset does it."""

Cell = tuple[str, int]


def corrupted_shards(paths: Sequence[str], plan: Plan, *, processes: int, policy: ErrorPolicy) -> Iterator[Outcome]:
    """The shards one after another, and the records of each when its tars are there, image by image.

    Memory holds the names and records of one shard, and a picture for each process.
    """
    seen = ImageRegister(), ImageRegister(unit="a file", field="file_name")
    left_out: dict[str, int] = {}
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe would block
            raise DataError("is no file; a shard is a plain tar on disk", place=path)
        for name, severity in plan.cells:
            if lies_in(Path(path), plan.out / name / str(severity)):
                raise DataError(f"lies where --save-images {plan.out} is written; give another folder", place=path)
        jobs = list(unique_jobs(shard_jobs(path, left_out), policy, (1, 1), seen))
        if jobs:
            yield from _shard(path, jobs, plan, processes, policy)
        else:
            note(f"{display_name(path)}: no image to corrupt in this shard, so none is made of it")
    if left_out:
        most = sorted(left_out, key=lambda ending: (-left_out[ending], ending))
        kinds = ", ".join(f"{left_out[ending]:,} .{ending}" for ending in most[:5])
        yield Outcome(b"", "", left_out=f"{kinds}, ..." if len(most) > 5 else kinds)


def shard_jobs(path: str, left_out: dict[str, int]) -> Iterator[Job | DataError]:
    """A job for each image of a shard, or what is wrong with it. Counts what is neither image nor record, by ending.

    An image's record is the JSON of its name, with the image's own name as `file_name`.
    """
    keys: set[str] = set()

    def good() -> Iterator[tuple[str, str, Member] | DataError]:
        for member in members(path):
            if isinstance(member, DataError):
                yield member
                continue
            found = _NAME.fullmatch(member.name)
            if found is not None:  # hidden files (macOS adds ._x.jpg) and names without a dot belong to no image
                yield found[1], found[2].lower(), member

    with readable(path), open(path, "rb") as stream:
        for key, group in groupby(good(), key=lambda one: None if isinstance(one, DataError) else one[0]):
            if key is None:
                yield from (one for one in group if isinstance(one, DataError))
                continue
            named = [one for one in group if not isinstance(one, DataError)]
            try:
                if key in keys:
                    problem = "its files do not stand together, or are there twice; sort the shard's members by name"
                    raise DataError(problem, place=f"{path}: {key}")
                keys.add(key)
                yield _job(path, key, named, stream, left_out)
            except DataError as error:
                yield error


def _job(path: str, key: str, named: list[tuple[str, str, Member]], stream: IO[bytes], left_out: dict[str, int]) -> Job:
    images = [member for _, ending, member in named if ending in IMAGES]
    records = [member for _, ending, member in named if ending == "json"]
    place = f"{path}: {key}"
    if not images:
        endings = ", ".join(sorted({f".{ending}" for _, ending, _ in named})[:5])
        problem = f"no image (.jpg, .jpeg or .png) beside {endings}; add it, or leave these out"
        advice = "files of one name have to follow one another (tar --sort=name)"
        raise DataError(f"{problem}; {advice}", place=place)
    if len(images) > 1 or len(records) > 1:
        several = images if len(images) > 1 else records
        raise DataError(f"{' and '.join(repr(one.name) for one in several)}: two of a kind; keep one", place=place)
    for _, ending, _ in named:
        if ending not in (*IMAGES, "json"):
            left_out[ending] = left_out.get(ending, 0) + 1
    (image,) = images
    record = {}
    for member in records:
        place = f"{path}: {member.name}"
        if member.size > LONGEST_UNPACKED:
            raise DataError(f"has {member.size:,} bytes, at most {LONGEST_UNPACKED:,} are a record", place=place)
        stream.seek(member.offset)
        record = parse(Place(place, 0, stream.read(member.size)))
    record = {**record, "file_name": image.name}
    return checked_job(record, Path(path), f"{path}: {image.name}", (image.offset, image.size))


def _shard(path: str, jobs: list[Job], plan: Plan, processes: int, policy: ErrorPolicy) -> Iterator[Outcome]:
    """One shard: the tars that are missing, then the records of all."""
    source = _digest(path)
    targets = {cell: plan.out / cell[0] / str(cell[1]) / PurePosixPath(path).name for cell in plan.cells}
    stamps = {cell: _stamp(target) for cell, target in targets.items()}
    wanted = {cell: _settings(plan, cell, source) for cell in plan.cells}
    missing = tuple(cell for cell in plan.cells if stamps[cell].digest != wanted[cell])
    if missing:
        yield from _made(jobs, replace(plan, cells=missing), targets, wanted, processes, policy, Path(path).name)
    else:
        told = max(stamps.values(), key=lambda stamp: stamp.skipped)
        for _ in range(min(told.skipped, len(jobs))):  # what the run before left out is still not there
            policy.handle(DataError(told.first))
    streams = [_Records(targets[cell]) for cell in plan.cells]
    for job in jobs:
        lines = [stream.take(json_name(job)) for stream in streams]
        yield Outcome(b"".join(lines), "")


def _made(
    jobs: list[Job], plan: Plan, targets: dict[Cell, Path], wanted: dict[Cell, str], processes: int,
    policy: ErrorPolicy, name: str,
) -> Iterator[Outcome]:  # fmt: skip
    """Write the tars of these cells, which take their names when all are whole."""
    noting = _Noting(policy)
    with writable(str(plan.out)), work_folder(plan.out / f".{name}.part") as folder, ExitStack() as closing:
        parts = {cell: folder / f"{cell[0]}-{cell[1]}.tar" for cell in plan.cells}
        writers = {cell: Writer(str(part)) for cell, part in parts.items()}
        for writer in writers.values():
            closing.callback(writer.close)
        by_name = {str(job.record["file_name"]): job for job in jobs}
        for outcome in run(jobs, replace(plan, spool=folder), processes=processes, policy=noting):
            assert outcome.spooled is not None
            job = by_name[outcome.spooled.name]
            with open(outcome.spooled.path, "rb") as pixels:
                for cell, (line, size) in zip(plan.cells, outcome.spooled.pieces, strict=True):
                    writers[cell].add(outcome.spooled.name, pixels, size)
                    writers[cell].add(json_name(job), io.BytesIO(line), len(line))
            os.unlink(outcome.spooled.path)
            yield Outcome(b"", outcome.converted)
        for cell, writer in writers.items():
            writer.finish(json.dumps(asdict(Stamp(wanted[cell], writer.size, noting.count, noting.first))))
        for cell, part in parts.items():
            target = targets[cell]
            if not lies_in(target.parent, plan.out):
                raise DataError(f"leads out of --save-images {plan.out} by a link; remove it", place=str(target.parent))
            target.parent.mkdir(parents=True, exist_ok=True)
            sync_file(part)
            if target.is_file() and not target.is_symlink():
                inherit(part, target)
            os.replace(part, target)


def json_name(job: Job) -> str:
    """The name of a job's record in a tar."""
    found = _NAME.fullmatch(str(job.record["file_name"]))
    assert found is not None
    return f"{found[1]}.json"


class _Records:
    """The records of a finished tar, one after another."""

    def __init__(self, target: Path) -> None:
        self._lines = self._read(target)
        self._next = next(self._lines, ("", b""))

    def take(self, name: str) -> bytes:
        """The record of this name, if it is the next; nothing for an image that was left out."""
        if self._next[0] != name:
            return b""
        line = self._next[1]
        self._next = next(self._lines, ("", b""))
        return line

    @staticmethod
    def _read(target: Path) -> Iterator[tuple[str, bytes]]:
        with open(target, "rb") as stream:
            for member in members(str(target)):
                if isinstance(member, DataError):
                    raise member
                if member.name.endswith(".json"):
                    stream.seek(member.offset)
                    yield member.name, stream.read(member.size)


class _Noting(ErrorPolicy):
    """Another policy, whose errors are counted here as well, with the first as it can stand in a stamp."""

    def __init__(self, policy: ErrorPolicy) -> None:
        super().__init__(skip=policy.skip)
        self._policy = policy
        self.count, self.first = 0, ""

    def handle(self, error: DataError) -> None:
        """See `ErrorPolicy.handle`."""
        self.first = self.first or str(error)[:300]
        self.count += 1
        self._policy.handle(error)


def _digest(path: str) -> str:
    with readable(path), open(path, "rb") as stream:
        digest = hashlib.sha256()
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _settings(plan: Plan, cell: Cell, source: str) -> str:
    """A digest of all that a cell's tar depends on."""
    given = {field.name: getattr(plan, field.name) for field in fields(plan)}
    chosen = {name: value for name, value in given.items() if name not in ("images", "out", "cells", "spool", "recipe")}
    made_of = [source, *cell, plan.recipe.name, plan.recipe.level(*cell), DRAWING, JPEG_QUALITY, chosen]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True, default=str).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Stamp:
    """What a finished tar says of itself: a digest of what it was made of, its bytes, how many images were skipped, and
    what was said of the first."""

    digest: str = ""
    size: int = 0
    skipped: int = 0
    first: str = ""


def _stamp(target: Path) -> Stamp:
    """An empty one for any other file, and for a finished one that has been cut off."""
    with suppress(ValueError, TypeError, OSError):
        stamp = Stamp(**json.loads(comment_of(str(target))))
        if stamp.size == target.stat().st_size:
            return stamp
    return Stamp()
