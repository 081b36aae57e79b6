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
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hoicli.cli import run
from hoicli.io import process
from tests.hostile.readers import filled

STEPS = {"open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "tempfile.mkstemp", "os.truncate"}
OLD = b"what was there before\n"


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
        """The command that writes."""
        return self.words.split()[0]

    @property
    def stdout(self) -> bool:
        """Whether it writes to stdout without -o."""
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
convert --to inpcc-json $PREDICTIONS
convert --to coco-rel $PREDICTIONS
convert --to vcoco-json $VCOCO/predictions.jsonl
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
tree | show $PAIR --images $FIXTURES/images
show $PAIR --images $FIXTURES/images -o OUT.png
diagnose $PAIR
diagnose --emit predictions $PAIR
diagnose $PAIR --plot OUT.svg
tree | explore $PAIR --images $FIXTURES/images --pictures copy
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
agree --permutations 10 $FIXTURES/ratings.jsonl
slow | agree --permutations 9 --group differs --models sim $FIXTURES/ratings.csv
slow | agree --permutations 10 $FIXTURES/ratings.jsonl --plot OUT.svg
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


def _words(writer: Writer, folder: Path) -> list[str]:
    return writer.words.replace("OUT", str(folder / "out")).replace("DIR", str(folder)).split()


def _target(writer: Writer, folder: Path) -> Path:
    word = next(word for word in _words(writer, folder) if word.startswith(str(folder / "out")))
    return Path(word)


def forked(work: Callable[[], int], before: Callable[[], object], stdout: int | None = None) -> tuple[int, bytes]:
    """(status, stderr) of `work()` in a fork, after `before()` in it."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
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
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), said


def _dies_at(step: int, folder: Path, how: signal.Signals = signal.SIGKILL) -> None:
    """From now on, send this process a signal when it touches something in the folder for the nth time; for step 0 say
    how often it did, when it ends."""
    seen = 0
    own = os.fsencode(folder)
    if not step:
        leave = os._exit

        def told(code: int) -> None:
            os.write(2, b"\nsteps %d" % seen)
            leave(code)

        os._exit = told  # type: ignore[assignment]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in STEPS:
            return
        for argument in arguments[:2]:
            if isinstance(argument, str | bytes | os.PathLike) and os.fsencode(argument).startswith(own):
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), how)
                return

    sys.addaudithook(hook)


def _tree(path: Path) -> dict[str, bytes]:
    """The files under a path, or the one it is, by name."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def _emptied(folder: Path, writer: Writer, *, old: bool) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if old and not writer.tree:
        _target(writer, folder).write_bytes(OLD)


def undisturbed(writer: Writer, folder: Path) -> tuple[dict[str, bytes], int, list[str]]:
    """(files, steps, faults) of a run that nothing stops."""
    _emptied(folder, writer, old=True)
    code, said = forked(lambda: run(_words(writer, folder)), lambda: _dies_at(0, folder))
    new = _tree(_target(writer, folder))
    said, _, count = said.rpartition(b"\nsteps ")
    if code or not new:
        return {}, 0, [f"came to {code}: {said!r}"]
    return new, int(count), []


def killed(
    writer: Writer, folder: Path, new: dict[str, bytes], steps: int, *, quick: bool
) -> Iterator[tuple[int, list[str]]]:
    """(step, faults) of a kill at each step of the writer; `quick`: at the last, before the rename. new: its files."""
    words, target = _words(writer, folder), _target(writer, folder)
    for step in [steps] if quick else range(1, steps + 1):
        _emptied(folder, writer, old=True)
        code, said = forked(lambda: run(words), lambda step=step: _dies_at(step, folder))  # type: ignore[misc]
        if code != -signal.SIGKILL:
            yield step, [f"came to {code}, not to its death: {said!r}"]
            continue
        faults = [f"{name} is neither old nor new" for name, data in _tree(target).items()
                  if data not in (OLD, new.get(name)) and not _is_part(name) and writer.steady]  # fmt: skip
        if not target.exists() and not writer.tree:
            faults.append("the old file is gone")
        faults += [f"left {path.name}" for path in folder.iterdir() if "out" in path.name and path != target
                   and not _is_part(path.name)]  # fmt: skip
        code, said = forked(lambda: run(words), lambda: None)
        again = {name: data for name, data in _tree(target).items() if not _is_part(name)}
        if code or (again != new and writer.steady):
            faults.append(f"run again it came to {code}, {'another file' if again != new else ''}: {said!r}")
        yield step, faults


def ended(
    writer: Writer, folder: Path, new: dict[str, bytes], steps: int, *, quick: bool
) -> Iterator[tuple[int, list[str]]]:
    """(step, faults) of a SIGTERM at each step of the writer; `quick`: at one in the middle. new: its files."""
    words, target = _words(writer, folder), _target(writer, folder)
    for step in [steps // 2 + 1] if quick else range(1, steps + 1):

        def before(step: int = step) -> None:
            process.catch()
            _dies_at(step, folder, signal.SIGTERM)

        _emptied(folder, writer, old=True)
        code, said = forked(lambda: run(words), before)
        faults = [] if code == 128 + signal.SIGTERM else [f"came to {code}"]
        if not said.endswith(b"hoicli: ended by SIGTERM\n") or b"Traceback" in said or b"internal error" in said:
            faults.append(f"said {said!r}")
        faults += [f"left {path.name}" for path in folder.rglob("*") if _is_part(path.name)]
        faults += [f"{name} is neither old nor new" for name, data in _tree(target).items()
                   if data not in (OLD, new.get(name)) and writer.steady]  # fmt: skip
        if not target.exists() and not writer.tree:
            faults.append("the old file is gone")
        yield step, faults


def _is_part(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return last.startswith(".") and last.endswith(".part")


def _disk_of(size: int) -> None:
    """No file grows beyond this size; the kernel says so by an error, not by a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def full(writer: Writer, folder: Path, new: dict[str, bytes], *, quick: bool) -> Iterator[tuple[int, list[str]]]:
    """(bytes that fit, faults) of files that may not grow to what they should be, `new`."""
    words, target = _words(writer, folder), _target(writer, folder)
    largest = max(map(len, new.values()))
    for size in [largest - 1] if quick else sorted({0, largest // 2, largest - 1}):
        _emptied(folder, writer, old=True)
        code, said = forked(lambda: run(words), lambda size=size: _disk_of(size))  # type: ignore[misc]
        faults = _one_line(code, said)
        if not writer.tree and _tree(target) != {"": OLD}:
            faults.append("the old file is not what it was")
        faults += [f"{name} is not whole" for name, data in _tree(target).items() if writer.tree and data != new[name]]
        faults += [f"left {path.name}" for path in folder.rglob("*") if _is_part(path.name)]
        yield size, faults


def _one_line(code: int, said: bytes) -> list[str]:
    """One line names the file, behind what was found out about the data before it was to be written."""
    said = b"".join(
        line for line in said.splitlines(keepends=True) if b" cannot be written" in line or b"hoicli: " not in line
    )
    if code != 1 or said.count(b"\n") != 1 or b"internal error" in said or b"Traceback" in said:
        return [f"came to {code}: {said.decode(errors='replace')}"]
    return []


def _to_stdout(words: Sequence[str], folder: Path) -> list[str]:
    at = words.index("-o")
    return [*words[:at], *words[at + 2 :]]


def no_room_on_stdout(writer: Writer, folder: Path) -> list[str]:
    """Faults of writing to /dev/full."""
    words = _to_stdout(_words(writer, folder), folder)
    stdout = os.open("/dev/full", os.O_WRONLY)
    code, said = forked(lambda: run(words), lambda: None, stdout)
    os.close(stdout)
    return _one_line(code, said)


def reader_gone(writer: Writer, folder: Path) -> list[str]:
    """Faults of writing into a pipe that nobody reads."""
    words = _to_stdout(_words(writer, folder), folder)
    reading, writing = os.pipe()
    os.close(reading)
    code, said = forked(lambda: run(words), lambda: None, writing)
    os.close(writing)
    told = [line for line in said.splitlines() if not line.startswith(b"hoicli: ")]
    return [f"came to {code}: {said!r}"] if code or told or b"Broken" in said else []


def stopped(writer: Writer, folder: Path, *, quick: bool) -> Iterator[tuple[str, str, list[str]]]:
    """(what was done, where, faults) of everything that is done to a writer."""
    _emptied(folder, writer, old=False)
    if code := run(_words(writer, folder)):  # here, so that what it needs is imported before the first fork
        yield "undisturbed", "", [f"came to {code}"]
    new, count, faults = undisturbed(writer, folder)
    yield "undisturbed", "", faults
    if faults:
        return
    for how, cases in (
        ("kills", killed(writer, folder, new, count, quick=quick)),
        ("terms", ended(writer, folder, new, count, quick=quick)),
        ("disks", full(writer, folder, new, quick=quick)),
    ):
        for place, found in cases:
            yield how, str(place), found
    if writer.stdout:
        yield "stdout", "on a full disk", no_room_on_stdout(writer, folder)
        yield "stdout", "whose reader has gone", reader_gone(writer, folder)


def main(folder: Path, *, quick: bool) -> None:
    """All of it."""
    writers = [writer for writer in WRITERS if not (quick and writer.slow)]
    counts = {"writers": len(writers), "kills": 0, "terms": 0, "disks": 0}
    for writer in writers:
        for how, place, faults in stopped(writer, folder, quick=quick):
            if how in counts:
                counts[how] += 1
            if faults:
                print(json.dumps({"writer": writer.name, "how": f"{how} {place}", "faults": faults}))
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    main(Path(sys.argv[1]), quick="--quick" in sys.argv)
