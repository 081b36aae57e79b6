"""Every writer stopped half way: by kill -9 and SIGTERM at each of its steps, by a disk that is full, by a reader
that has gone.

`python -m tests.hostile.dying FOLDER [--quick]` does it to every row of WRITERS, in forks of itself, and prints a line
of JSON for each fault and one that counts. A step is whatever Python reports to an audit hook about a file in the
folder of the output: opened, renamed, removed, its mode changed, a folder made. Between steps data is written, so that
a kill at the next step finds the file as full as it will be.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from hoicli.cli import run
from hoicli.io import process
from tests.hostile.readers import filled

STEPS = {"open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "tempfile.mkstemp", "os.truncate"}
OLD, STEP = b"what was there before\n", b"\0step\n"


@dataclass(frozen=True)
class Writer:
    """A command line that writes OUT (DIR is its folder). name: the line as the table has it; `tree`: OUT is a folder,
    whose files are each whole or not there; `steady`: two runs write the same; `slow`: left out of a quick look."""

    name: str
    words: str
    tree: bool = False
    steady: bool = True
    slow: bool = False

    @property
    def command(self) -> str:
        return self.words.split()[0]

    @property
    def stdout(self) -> bool:
        return self.words.endswith("-o OUT") and not self.tree and "--save-images DIR " not in self.words


def _writers(table: str) -> Iterator[Writer]:
    """A line is a command, with words for what is not as usual before a bar; -o OUT is added where OUT is not in it."""
    for line in filter(None, table.splitlines()):
        settings, _, words = line.rpartition("|")
        name = words.strip()
        words = filled(name) + ("" if " -o " in name else " -o DIR/rows" if "OUT" in name else " -o OUT")
        yield Writer(name, words, "tree" in settings, "unsteady" not in settings, "slow" in settings)


WRITERS = list(
    _writers("""
convert $FOREIGN/cdn.json
convert $FOREIGN/cdn.json -o OUT.gz
convert --to cdn-json $PREDICTIONS
convert --to coco-rel $PREDICTIONS
convert --to vcoco-pkl $VCOCO/predictions.jsonl
match $PAIR
match $PAIR -o OUT.gz
eval $PAIR
eval $MATCHES
compare --bootstrap 10 --name a,b $PAIR $CORPUS/predictions_b.jsonl
claim --top 3 $PAIR 76.2
pairstats $PAIR
slow | pairstats $PAIR --plot OUT.svg
recall $PAIR
curves $PAIR
slow | curves $PAIR --plot OUT.svg
confusion $PAIR
slow | confusion $PAIR --plot OUT.svg
audit $PAIR
tree | show $PAIR --images $EIGHT/images
show $PAIR --images $EIGHT/images -o OUT.png
diagnose $PAIR
diagnose --emit predictions $PAIR
diagnose $PAIR --plot OUT.svg
tree | explore $PAIR --images $EIGHT/images
table $FIXTURES/robust/rows.jsonl
robust $FIXTURES/robust/rows.jsonl
slow | robust $FIXTURES/robust/rows.jsonl --plot OUT.svg
curriculum --every $FIXTURES/robust/epochs.jsonl
corrupt $CORPUS/pictures.jsonl $JPEG --save-images DIR/made
tree | corrupt $CORPUS/pictures.jsonl $JPEG --save-images OUT
slow | corrupt --preview $CORPUS/b.jpg -o OUT.png
mask $CORPUS/pictures.jsonl
mask --images $CORPUS --save-images DIR $CORPUS/pictures.jsonl
prompts $GT
prompts --task choice $CHOICE/scene.json
vlm-eval --questions $CHOICE/scene.json $CHOICE/answers.jsonl
vlm-eval $CHOICE/grounded.json
vlm-eval --sim wordnet:wup $CHOICE/referred.json
vlm-eval --needed $CHOICE/referred.json
agree $FIXTURES/agree/ratings.jsonl
slow | agree --group differs --models sim $FIXTURES/agree/ratings.csv
slow | agree $FIXTURES/agree/ratings.jsonl --plot OUT.svg
validate $PAIR
shoe-sim --backend wordnet:path $SHOE_PAIR
shoe-sim --merge mean $SHOE/sim.jsonl
shoe-sim --backend llm --model m --dry-run --cache DIR/cache --pairs $CORPUS/pairs.jsonl
shoe-eval --sim $SHOE/sim.jsonl $SHOE_PAIR
shoe-eval --sim $SHOE/sim.jsonl --reasons OUT $SHOE_PAIR
slow | shoe-eval --sim $SHOE/sim.jsonl --delta 0.3:0.7:0.2 $SHOE_PAIR
data list
vocab hico
vocab --senses ride
doctor --schema prediction
unsteady | doctor
""")
)


class Attack:
    """Everything that is done to a writer in a folder; what it finds are faults, in words."""

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.writer, self.folder = writer, folder
        self.words = writer.words.replace("OUT", str(folder / "out")).replace("DIR", str(folder)).split()
        self.target = Path(next(word for word in self.words if word.startswith(str(folder / "out"))))
        self.new: dict[str, bytes] = {}

    def all(self, *, quick: bool) -> Iterator[tuple[str, object, list[str]]]:
        """(what was done, where, faults); `quick`: at one place each."""
        self._prepare()
        run(self.words)  # here, so that what it needs is imported before the first fork
        code, said = self._forked(lambda: _at_step(0, self.folder))
        self.new, steps = _files(self.target), said.count(STEP)
        if code or not self.new:
            yield "undisturbed", "", [f"came to {code}: {said!r}"]
            return
        for step in [steps] if quick else range(1, steps + 1):  # the last is before the rename
            yield "kills", step, self._killed(step)
        for step in [steps // 2 + 1] if quick else range(1, steps + 1):
            yield "terms", step, self._ended(step)
        largest = max(map(len, self.new.values()))
        for size in [largest - 1] if quick else sorted({0, largest // 2, largest - 1}):
            yield "disks", size, self._full(size)
        if self.writer.stdout:
            yield "stdout", "on a full disk", self._no_room_on_stdout()
            yield "stdout", "whose reader has gone", self._reader_gone()

    def _killed(self, step: int) -> list[str]:
        code, said = self._forked(lambda: _at_step(step, self.folder, signal.SIGKILL))
        if code != -signal.SIGKILL:
            return [f"came to {code}, not to its death: {said!r}"]
        faults = self._left(parts=True)
        code, said = self._forked(old=False)
        again = {name: data for name, data in _files(self.target).items() if not _is_part(name)}
        if code or (again != self.new and self.writer.steady):
            faults.append(f"run again it came to {code}, {'another file' if again != self.new else ''}: {said!r}")
        return faults

    def _ended(self, step: int) -> list[str]:
        def before() -> None:
            process.catch_signals()
            _at_step(step, self.folder, signal.SIGTERM)

        code, said = self._forked(before)
        faults = self._left()
        if code != 128 + signal.SIGTERM or not said.endswith(b"hoicli: ended by SIGTERM\n") or _is_internal(said):
            faults.append(f"came to {code}: {said!r}")
        return faults

    def _full(self, size: int) -> list[str]:
        """No file grows beyond this size; the kernel says so by an error, not by a signal."""

        def before() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        return [*_one_line(*self._forked(before)), *self._left()]

    def _no_room_on_stdout(self) -> list[str]:
        with open("/dev/full", "wb", buffering=0) as full:
            return _one_line(*self._forked(stdout=full.fileno()))

    def _reader_gone(self) -> list[str]:
        reading, writing = os.pipe()
        os.close(reading)
        code, said = self._forked(stdout=writing)
        os.close(writing)
        told = [line for line in said.splitlines() if not line.startswith(b"hoicli: ")]
        return [f"came to {code}: {said!r}"] if code or told or b"Broken" in said else []

    def _prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if not self.writer.tree:
            self.target.write_bytes(OLD)

    def _left(self, *, parts: bool = False) -> list[str]:
        """What lies there that should not: a file that is neither old nor new, or, but for `parts`, unfinished."""
        found = [(name, data) for name, data in _files(self.target).items() if not _is_part(name)]
        faults = [f"{name} is neither old nor new" for name, data in found
                  if data not in (OLD, self.new.get(name)) and self.writer.steady]  # fmt: skip
        if not self.target.exists() and not self.writer.tree:
            faults.append("the old file is gone")
        faults += [f"left {path.name}" for path in self.folder.iterdir() if "out" in path.name and path != self.target
                   and not _is_part(path.name)]  # fmt: skip
        return faults + [f"left {path.name}" for path in self.folder.rglob("*") if not parts and _is_part(path.name)]

    def _forked(
        self, before: Callable[[], object] = lambda: None, *, old: bool = True, stdout: int | None = None
    ) -> tuple[int, bytes]:
        """(status, stderr) of the command, after `before()`; `old`: with nothing but the old file there; stdout: in
        the file's place."""
        if old:
            self._prepare()
        words = self.words if stdout is None else self.words[: self.words.index("-o")]  # which stands last
        return forked(lambda: run(words), before, stdout)


def forked(work: Callable[[], int], before: Callable[[], object], stdout: int | None = None) -> tuple[int, bytes]:
    """(status, stderr) of `work()` in a fork, after `before()` in it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 99
        try:
            os.close(reading)
            os.dup2(writing, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY) if stdout is None else stdout, 1)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            before()
            code = work()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def _at_step(step: int, folder: Path, how: signal.Signals = signal.SIGKILL) -> None:
    """From now on, send this process a signal when it touches something in the folder for the nth time; for step 0 say
    so each time."""
    seen, own = count(1), os.fsencode(folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        paths = [one for one in arguments[:2] if isinstance(one, str | bytes | os.PathLike)] if event in STEPS else []
        if any(os.fsencode(path).startswith(own) for path in paths):
            if not step:
                os.write(2, STEP)
            elif next(seen) == step:
                os.kill(os.getpid(), how)

    sys.addaudithook(hook)


def _files(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def _is_part(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return last.startswith(".") and last.endswith(".part")


def _is_internal(said: bytes) -> bool:
    return b"Traceback" in said or b"internal error" in said


def _one_line(code: int, said: bytes) -> list[str]:
    """One line names the file, behind what was found out about the data before it was to be written."""
    told = [line for line in said.splitlines() if b" cannot be written" in line or b"hoicli: " not in line]
    return [f"came to {code}: {said!r}"] if code != 1 or len(told) != 1 or _is_internal(said) else []


def main(folder: Path, *, quick: bool) -> None:
    writers = [writer for writer in WRITERS if not (quick and writer.slow)]
    counts = {"writers": len(writers), "kills": 0, "terms": 0, "disks": 0}
    for writer in writers:
        for how, place, faults in Attack(writer, folder).all(quick=quick):
            if how in counts:
                counts[how] += 1
            if faults:
                print(json.dumps({"writer": writer.name, "how": f"{how} {place}", "faults": faults}))
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    main(Path(sys.argv[1]), quick="--quick" in sys.argv)
