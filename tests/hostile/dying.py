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
from tests.hostile.readers import CHOICE, CORPUS, FOREIGN, GT, MATCHES, PREDICTIONS, SHOE, VCOCO
from tests.support.project import FIXTURES

STEPS = {"open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "tempfile.mkstemp", "os.truncate"}
OLD = b"what was there before\n"


@dataclass(frozen=True)
class Writer:
    """A command line that writes OUT (DIR is its folder). `stdout`: it writes there without -o OUT; `tree`: OUT
    is a folder, whose files are each whole or not there; `steady`: two runs write the same; `slow`: left
    out of a quick look."""

    name: str
    words: str
    stdout: bool = True
    tree: bool = False
    steady: bool = True
    slow: bool = False

    @property
    def command(self) -> str:
        """The command that writes."""
        return self.words.split()[0]


PAIR = f"--gt {GT} {PREDICTIONS}"
WRITERS = [
    Writer("convert", f"convert {FOREIGN / 'cdn.json'} -o OUT"),
    Writer("convert .gz", f"convert {FOREIGN / 'cdn.json'} -o OUT.gz", stdout=False),
    Writer("convert --to cdn-json", f"convert --to cdn-json {PREDICTIONS} -o OUT"),
    Writer("convert --to inpcc-json", f"convert --to inpcc-json {PREDICTIONS} -o OUT"),
    Writer("convert --to coco-rel", f"convert --to coco-rel {PREDICTIONS} -o OUT"),
    Writer("convert --to vcoco-json", f"convert --to vcoco-json {VCOCO / 'predictions.jsonl'} -o OUT"),
    Writer("convert --to vcoco-pkl", f"convert --to vcoco-pkl {VCOCO / 'predictions.jsonl'} -o OUT"),
    Writer("match", f"match {PAIR} -o OUT"),
    Writer("match .gz", f"match {PAIR} -o OUT.gz", stdout=False),
    Writer("eval", f"eval {PAIR} -o OUT"),
    Writer("eval of matches", f"eval {MATCHES} -o OUT"),
    Writer(
        "compare", f"compare --bootstrap 10 --name a,b --gt {GT} {PREDICTIONS} {CORPUS / 'predictions_b.jsonl'} -o OUT"
    ),
    Writer("pairstats", f"pairstats {PAIR} -o OUT"),
    Writer("pairstats --plot", f"pairstats {PAIR} --plot OUT.svg -o DIR/rows", stdout=False, slow=True),
    Writer("recall", f"recall {PAIR} -o OUT"),
    Writer("curves", f"curves {PAIR} -o OUT"),
    Writer("curves --plot", f"curves {PAIR} --plot OUT.svg -o DIR/rows", stdout=False, slow=True),
    Writer("confusion", f"confusion {PAIR} -o OUT"),
    Writer("confusion --plot", f"confusion {PAIR} --plot OUT.svg -o DIR/rows", stdout=False, slow=True),
    Writer("audit", f"audit {PAIR} -o OUT"),
    Writer("show", f"show {PAIR} --images {FIXTURES / 'images'} -o OUT", stdout=False, tree=True),
    Writer("show sheet", f"show {PAIR} --images {FIXTURES / 'images'} -o OUT.png", stdout=False),
    Writer("diagnose", f"diagnose {PAIR} -o OUT"),
    Writer("diagnose --emit", f"diagnose --emit predictions {PAIR} -o OUT"),
    Writer("diagnose --plot", f"diagnose {PAIR} --plot OUT.svg -o DIR/rows", stdout=False),
    Writer(
        "explore",
        f"explore {PAIR} --images {FIXTURES / 'images'} --pictures copy -o OUT",
        stdout=False,
        tree=True,
    ),
    Writer("table", f"table {FIXTURES / 'robust/rows.jsonl'} -o OUT"),
    Writer("robust", f"robust {FIXTURES / 'robust/rows.jsonl'} -o OUT"),
    Writer(
        "robust --plot", f"robust {FIXTURES / 'robust/rows.jsonl'} --plot OUT.svg -o DIR/rows", stdout=False, slow=True
    ),
    Writer("curriculum", f"curriculum --every {FIXTURES / 'robust/epochs.jsonl'} -o OUT"),
    Writer(
        "corrupt",
        f"corrupt --images {CORPUS} --corruption jpeg,rainbow --severity 2 --jobs 1 --save-images DIR/made "
        f"{CORPUS / 'pictures.jsonl'} -o OUT",
    ),
    Writer(
        "corrupt images",
        f"corrupt --images {CORPUS} --corruption jpeg,rainbow --severity 2 --jobs 1 --save-images OUT "
        f"{CORPUS / 'pictures.jsonl'} -o DIR/rows",
        stdout=False,
        tree=True,
    ),
    Writer("corrupt --preview", f"corrupt --preview {CORPUS / 'b.jpg'} -o OUT.png", stdout=False, slow=True),
    Writer("mask", f"mask {CORPUS / 'pictures.jsonl'} -o OUT"),
    Writer("mask images", f"mask --images {CORPUS} --save-images DIR {CORPUS / 'pictures.jsonl'} -o OUT", stdout=False),
    Writer("prompts", f"prompts {GT} -o OUT"),
    Writer("prompts --task choice", f"prompts --task choice {CHOICE / 'scene.json'} -o OUT"),
    Writer("vlm-eval choice", f"vlm-eval --questions {CHOICE / 'scene.json'} {CHOICE / 'answers.jsonl'} -o OUT"),
    Writer("vlm-eval ground", f"vlm-eval {CHOICE / 'grounded.json'} -o OUT"),
    Writer("vlm-eval refer", f"vlm-eval --sim wordnet:wup {CHOICE / 'referred.json'} -o OUT"),
    Writer("vlm-eval --needed", f"vlm-eval --needed {CHOICE / 'referred.json'} -o OUT"),
    Writer("agree", f"agree --permutations 10 {FIXTURES / 'ratings.jsonl'} -o OUT"),
    Writer(
        "agree of CSV",
        f"agree --permutations 9 --group differs --models sim --model-scale 0,1 {FIXTURES / 'ratings.csv'} -o OUT",
        slow=True,
    ),
    Writer(
        "agree --plot",
        f"agree --permutations 10 {FIXTURES / 'ratings.jsonl'} --plot OUT.svg -o DIR/rows",
        stdout=False,
        slow=True,
    ),
    Writer("validate", f"validate --gt {GT} {PREDICTIONS} -o OUT"),
    Writer("shoe-sim", f"shoe-sim --backend wordnet:path --gt {SHOE / 'gt.jsonl'} {SHOE / 'predictions.jsonl'} -o OUT"),
    Writer("shoe-sim --merge", f"shoe-sim --merge mean {SHOE / 'sim.jsonl'} -o OUT"),
    Writer(
        "shoe-sim --cache",
        f"shoe-sim --backend llm --model m --dry-run --cache DIR/cache --pairs {CORPUS / 'pairs.jsonl'} -o OUT",
    ),
    Writer(
        "shoe-eval",
        f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim {SHOE / 'sim.jsonl'} {SHOE / 'predictions.jsonl'} -o OUT",
    ),
    Writer(
        "shoe-eval --explain",
        f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim {SHOE / 'sim.jsonl'} --reasons OUT "
        f"{SHOE / 'predictions.jsonl'} -o DIR/rows",
        stdout=False,
    ),
    Writer(
        "shoe-eval --plot",
        f"shoe-eval --gt {SHOE / 'gt.jsonl'} --sim {SHOE / 'sim.jsonl'} --delta 0.3:0.7:0.2 --plot OUT.svg "
        f"{SHOE / 'predictions.jsonl'} -o DIR/rows",
        stdout=False,
        slow=True,
    ),
    Writer("data list", "data list -o OUT"),
    Writer("vocab", "vocab hico -o OUT"),
    Writer("vocab --senses", "vocab --senses ride -o OUT"),
    Writer("doctor --schema", "doctor --schema prediction -o OUT"),
    Writer("doctor", "doctor -o OUT", steady=False),
]


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


def main(folder: Path, *, quick: bool) -> None:
    """All of it, with what it needs imported before the first fork."""
    steps = terms = sizes = 0
    writers = [writer for writer in WRITERS if not (quick and writer.slow)]
    for writer in writers:
        _emptied(folder, writer, old=False)
        forked_warm = run(_words(writer, folder))
        if forked_warm:
            print(json.dumps({"writer": writer.name, "how": "undisturbed", "faults": [f"came to {forked_warm}"]}))
        new, count, faults = undisturbed(writer, folder)
        if faults:
            print(json.dumps({"writer": writer.name, "how": "undisturbed", "faults": faults}))
            continue
        for step, faults in killed(writer, folder, new, count, quick=quick):
            steps += 1
            if faults:
                print(json.dumps({"writer": writer.name, "how": f"killed at step {step}", "faults": faults}))
        for step, faults in ended(writer, folder, new, count, quick=quick):
            terms += 1
            if faults:
                print(json.dumps({"writer": writer.name, "how": f"SIGTERM at step {step}", "faults": faults}))
        for size, faults in full(writer, folder, new, quick=quick):
            sizes += 1
            if faults:
                print(json.dumps({"writer": writer.name, "how": f"room for {size} bytes", "faults": faults}))
        if writer.stdout:
            for how, faults in (
                ("stdout on a full disk", no_room_on_stdout(writer, folder)),
                ("a reader that has gone", reader_gone(writer, folder)),
            ):
                if faults:
                    print(json.dumps({"writer": writer.name, "how": how, "faults": faults}))
    print(json.dumps({"writers": len(writers), "kills": steps, "terms": terms, "disks": sizes}), flush=True)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    main(Path(sys.argv[1]), quick="--quick" in sys.argv)
