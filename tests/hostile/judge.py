"""One command line run on one broken file, and what is wrong with how it went."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

from hoicli.cli import run
from hoicli.errors import DataError
from hoicli.io.opened_files import open_input
from hoicli.records.image import problems
from hoicli.vocabulary.content_checks import check
from tests.hostile.mutations import broken
from tests.hostile.readers import BESIDE, CORPUS, ITEMS, LINES, TRUTH, Reader

SECONDS = 5.0
"""Of the processor, for one case; the slowest sound one takes a fifth of a second."""
RESIDENT = 1536 << 20
"""Bytes a process may have in memory: pickles alone may grow by a GiB (hoicli.converters.containers.unpickle)."""
LONGEST_MESSAGE = 2000
FOLDERS = ("made", "mats", "images")
"""What may stand in the folder beside the output: pictures that were done before the fault, and what was there."""


@dataclass(frozen=True)
class Verdict:
    """What a case came to: how it was broken, the exit code, what was said, and the faults."""

    way: str
    call: str
    code: int
    said: str
    faults: tuple[str, ...]
    seconds: float


@contextmanager
def standard_streams(folder: Path) -> Iterator[None]:
    """Descriptors 1 and 2 (and 0) led to files, for what writes past Python, and Python's streams too."""
    saved = [os.dup(number) for number in range(3)]
    kept = sys.stdin, sys.stdout, sys.stderr
    files = [os.open(os.devnull, os.O_RDONLY)]
    files += [os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("stdout", "stderr")]
    sys.stdout.flush()
    sys.stderr.flush()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = kept
        for number, file in enumerate(saved):
            os.dup2(file, number)
            os.close(file)


def prepare(reader: Reader, number: int, folder: Path) -> tuple[Path, list[str], str]:
    """(the broken file, the command line, how it was broken) of a case: always the same for a reader and a number."""
    rng = Random(f"{reader.name}:{number}")
    data, way = broken(rng, reader.seed.read_bytes(), reader.kind)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "made").mkdir(parents=True)
    (folder / "images").mkdir()
    if reader.command in ("corrupt", "mask"):
        for name in ("a.png", "b.jpg"):
            shutil.copy(CORPUS / name, folder / "images" / name)
    for name, source in BESIDE[reader.beside].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)
    path = folder / (reader.file or f"input{reader.seed.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    target = folder / ("out.jsonl.gz" if rng.random() < 0.1 else "out.jsonl")
    given = path.parent if reader.file.startswith("mats/") else path
    call = rng.choice(reader.calls).split()
    words = [str(given) if word == "IN" else word.replace("DIR", str(folder)) for word in call]
    return path, [str(target) if word == "OUT" else word for word in words], way


def judge(reader: Reader, number: int, folder: Path, *, timed: bool = False) -> Verdict:
    """Run a case in this process. Its files are left in `folder`. timed: seconds and memory beyond measure are faults,
    as they are in a campaign on a quiet machine, and never in a test."""
    path, words, way = prepare(reader, number, folder)
    before = {str(file.relative_to(folder)) for file in folder.rglob("*")}
    started = time.process_time()
    with standard_streams(folder), warnings.catch_warnings():
        warnings.simplefilter("always")  # not only the first time
        code = run(words)
    seconds = time.process_time() - started
    said = (folder / "stderr").read_bytes().decode("utf-8", "replace")
    faults = [*_said_wrong(said, code, words, folder), *_left_behind(folder, before, code, words)]
    if timed and seconds > SECONDS:
        faults.append(f"took {seconds:.0f} s")
    if timed and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > RESIDENT:
        faults.append(f"took {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB of memory")
    if code == 0 and not faults:
        faults += _lies(reader, path, words, said)
    return Verdict(way, " ".join(words), code, said, tuple(faults), seconds)


def _said_wrong(said: str, code: int, words: list[str], folder: Path) -> Iterator[str]:
    """A failure is the last line, with a place or the command in front; what is said before it are hoicli's notes."""
    if code not in (0, 1, 2):
        yield f"exit code {code}"
    for word in ("Traceback", "internal error", "out of memory", "Warning"):
        if word in said:
            yield f"says {word!r}: {said[:300]}"
    lines = said.split("\n")
    if lines[-1] or re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", said):
        yield f"control characters, or no line end: {said[:300]!r}"
    if any(len(line) > LONGEST_MESSAGE for line in lines):
        yield f"a line of {max(map(len, lines)):,} characters: {said[:200]}"
    told = [line for line in lines[:-1] if "building the font cache" not in line]  # Matplotlib's first run
    if code and not told:
        yield "fails without a word"
    paths = [word for word in words if word.startswith("/")]
    places = ("hoicli", "<stdin>", "image ", str(folder), *paths, "--image-list")
    for number, line in enumerate(told, 1):
        if not line.startswith(places if code and number == len(told) else "hoicli: "):
            yield f"no place in front: {line[:300]}"


def _left_behind(folder: Path, before: set[str], code: int, words: list[str]) -> Iterator[str]:
    """After a failure there is no output, and never a temporary file."""
    now = {str(file.relative_to(folder)) for file in folder.rglob("*")} - before - {"stdout", "stderr"}
    for name in sorted(now):
        if name.endswith(".part"):
            yield f"left {name} behind"
        elif (
            code
            and name.split("/")[0] not in FOLDERS
            and words[0] not in ("validate", "doctor")
            and "--check" not in words
        ):
            yield f"failed, and left {name}"
    if (folder / "stdout").stat().st_size:
        yield "wrote to stdout, though -o was given"


def _lies(reader: Reader, path: Path, words: list[str], said: str) -> Iterator[str]:
    """Whether an accepted file lost something without a word, or became something that nothing can read."""
    target = next((Path(word) for word in words if "/out.jsonl" in word), None)
    if target is None or not target.is_file():
        if "mat" not in words and words[0] not in ("explore", "show"):
            yield "succeeded without an output"
        return
    data = target.read_bytes()
    out = (gzip.decompress(data) if target.suffix == ".gz" else data).splitlines()
    if "csv" in words or "--to" in words:
        return
    if words[0] == "vocab" and "--from" in words:
        try:
            check(orjson.loads(b"\n".join(out)), "")
        except DataError as error:
            yield f"wrote a dataset with a fault: {error}"
        return
    records = []
    for line in out:
        try:
            records.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            yield f"wrote what is no JSON ({error}): {line[:200]!r}"
            return
    if reader.command == "convert":
        for record in records:
            scored = any("score" in hoi for hoi in record.get("hois", ()))
            for problem in problems(record, None, scored=scored):
                # V-COCO has actions without an object and boxes without a label
                if not problem.text.startswith("null is no "):
                    yield f"wrote a record that is none: {problem.field}: {problem.text}"
                    return
        counted = re.search(r": ([\d,]+) images?,", said)
        if counted and int(counted[1].replace(",", "")) != len(records):
            yield f"says {counted[1]} images and wrote {len(records)}"
    if reader.law:
        yield from _lost(reader, path, words, said, len(records))


def _lost(reader: Reader, path: Path, words: list[str], said: str, written: int) -> Iterator[str]:
    content: bytes | None
    try:
        with open_input(str(path)) as stream:
            content = stream.read()
    except DataError:
        content = None
    skipped = re.search(r"skipped ([\d,]+) ", said)
    left_out = sum(int(count.replace(",", "")) for count in re.findall(r"left out: .*?: ([\d,]+) \(", said))
    lost = int(skipped[1].replace(",", "")) if skipped else 0
    if content is None:
        if not lost:
            yield "took a file that cannot be read, without a word"
        return
    lines = [line for line in io.BytesIO(content) if line.removeprefix(b"\xef\xbb\xbf").strip()]
    if reader.law == LINES and reader.command == "validate":
        counted = re.search(r"checked ([\d,]+) lines", said)
        given = len(lines) + (8 if "--gt" in words else 0)
        if counted is None or int(counted[1].replace(",", "")) != given:
            yield f"read {given} lines, and says: {said[:200]}"
    elif reader.law == LINES and len(lines) != written + lost:
        yield f"{len(lines)} lines in, {written} out, {lost} skipped"
    elif reader.law == ITEMS:
        try:
            items = json.loads(content)
        except (ValueError, RecursionError):
            if not lost and not left_out:
                yield "took a list that is no JSON without a word"
            return
        if not lost and isinstance(items, list) and len(items) > written + lost + left_out:
            yield f"{len(items)} items in, {written} out, {lost} skipped, {left_out} left out"
    elif reader.law == TRUTH and "ground truth" in reader.name and not len(lines) - lost <= written <= len(lines):
        yield f"{len(lines)} images of the ground truth, {written} lines out, {lost} skipped"
    elif reader.law == TRUTH and "ground truth" not in reader.name and written != 8:
        yield f"8 images of the ground truth, {written} lines out"
