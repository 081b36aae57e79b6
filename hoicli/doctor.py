"""What a bug report needs and what is missing: a row a check, none of which touches the network or prints a secret.

`examine()` never raises for what it finds: a check that fails is a row with the status `problem`. It imports every
dependency, as one that is installed may still not load.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hoicli import __version__
from hoicli.io import zstd

OK, MISSING, PROBLEM = "ok", "missing", "problem"
"""missing: something that hoicli can do without; problem: something it cannot."""

DEPENDENCIES = ("typer", "orjson", "numpy", "scipy", "nltk", "tqdm")
"""What pyproject.toml requires, by module (tests/project/test_doctor.py holds both tables to it)."""

EXTRAS = {
    "images": (("cv2", "PIL.Image"), "corrupt, mask --images and their pictures"),
    "plot": (("matplotlib",), "--plot of diagnose, pairstats and robust"),
    "zstd": (("zstandard",), "files that end in .zst"),
}
"""Each extra: the modules it brings, and what needs them."""

DATA = Path(__file__).parent
CHECKSUMS = "data.sha256"
"""In DATA, as sha256sum writes it: every embedded data file."""

SELF_TEST = (1 + 6 / 11) / 2
"""One class found completely (1), one found in one of two images (precision 1 up to recall 1/2: 6 of 11 points)."""


@dataclass(frozen=True)
class Check:
    """What was looked at, how it is, what was found, and what to do about it ("" for nothing)."""

    check: str
    status: str
    value: str
    advice: str = ""

    def row(self) -> dict[str, Any]:
        """As a row of output."""
        return asdict(self)


def examine(cache: str | None = None) -> Iterator[Check]:
    """Every check in turn. cache: a file of `shoe-sim --cache` to look into, without changing it."""
    yield Check("hoicli", OK, __version__)
    yield _python()
    yield _platform()
    yield Check("processors", OK, _processors())
    yield Check("memory", OK, _memory())
    yield _guarded("parallel reading", _parallel)  # before anything is imported that may start threads
    for module in DEPENDENCIES:
        yield _guarded(module, partial(_dependency, module))
    for extra, (modules, use) in EXTRAS.items():
        yield _extra(extra, modules, use)
    yield _guarded("data files", _checksums)
    yield _guarded("WordNet", _wordnet)
    yield _guarded("vocabularies", _vocabularies)
    yield _guarded("schemas", _schemas)
    yield _guarded("self-test", _self_test)
    yield _guarded("temporary folder", partial(_folder, tempfile.gettempdir(), "set TMPDIR to a folder with room"))
    yield _guarded("this folder", partial(_folder, ".", "-o FILE needs a folder that can be written"))
    yield _guarded("unfinished files", _unfinished)
    yield _guarded("model answers", partial(_answers, cache))
    yield _terminal()
    yield _encoding()
    yield from _variables()


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    """The check, or what it died of: whatever is broken, the other rows are still wanted."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (see above)
        return Check(name, PROBLEM, f"{type(error).__name__}: {_first_line(error)}", "install hoicli again")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


# The machine


def _python() -> Check:
    import platform

    return Check("python", OK, f"{platform.python_implementation()} {platform.python_version()}")


def _platform() -> Check:
    import platform

    libc = " ".join(platform.libc_ver()).strip()
    parts = (platform.system(), platform.release(), platform.machine(), libc)
    return Check("platform", OK, " ".join(part for part in parts if part))


def _processors() -> str:
    count = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    return f"{allowed} of {count}"


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    try:
        available = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        available = None
    return f"{_size(int(available[1]) * 1024)} of {_size(total)} available" if available else _size(total)


def _size(count: int) -> str:
    """Bytes for people."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


# What is installed


def _version(module: str) -> str:
    """The version of a module that loads; raises what its import raises."""
    loaded = import_module(module)
    return str(
        getattr(sys.modules[module.partition(".")[0]], "__version__", None) or getattr(loaded, "__version__", "?")
    )


def _dependency(module: str) -> Check:
    try:
        return Check(module, OK, _version(module))
    except ImportError as error:
        return Check(module, PROBLEM, f"does not load: {_first_line(error)}", f"pip install --force-reinstall {module}")


def _extra(extra: str, modules: tuple[str, ...], use: str) -> Check:
    """An extra is there when all of its modules load; one that is installed and broken is told from one that is not."""
    name, install = f"extra {extra}", f"for {use}: pip install 'hoicli[{extra}]'"
    found = []
    own = zstd.module() if extra == "zstd" else None
    if own is not None and own.name not in modules:  # Python has one itself
        return Check(name, OK, own.name)
    for module in modules:
        short = module.partition(".")[0]
        try:
            found.append(f"{short} {_version(module)}")
        except ModuleNotFoundError as error:
            if error.name != short:
                return Check(name, MISSING, f"{short} does not load: {_first_line(error)}", install)
            return Check(name, MISSING, f"no {short}", install)
        except Exception as error:  # noqa: BLE001 (a broken library may raise anything; hoicli works without)
            return Check(name, MISSING, f"{short} does not load: {_first_line(error)}", install)
    return Check(name, OK, ", ".join(found))


# What is embedded


def _checksums() -> Check:
    expected = [line.split(maxsplit=1) for line in (DATA / CHECKSUMS).read_text(encoding="utf-8").splitlines()]
    wrong = []
    for digest, name in expected:
        try:
            content = (DATA / name).read_bytes()
        except OSError:
            wrong.append(f"{name} cannot be read")
            continue
        if hashlib.sha256(content).hexdigest() != digest:
            wrong.append(f"{name} is not what was published")
    if wrong:
        return Check("data files", PROBLEM, "; ".join(wrong), "install hoicli again")
    return Check("data files", OK, f"{len(expected)} files, checksums right")


def _wordnet() -> Check:
    from hoicli.wordnet.selection import open_wordnet

    wordnet = open_wordnet()
    if wordnet.synset("ride.v.10").definition() != "sit on and control a vehicle":
        return Check("WordNet", PROBLEM, "ride.v.10 is something else", "install hoicli again")
    return Check("WordNet", OK, f"3.0: {wordnet.graph.size:,} synsets, {len(wordnet.graph.lemmas):,} lemmas")


def _vocabularies() -> Check:
    from hoicli.vocabulary.datasets import DATASETS, load

    loaded = (load(name) for name in DATASETS)
    counts = [f"{each.name} {len(each.verbs)}/{len(each.objects)}/{len(each.interactions)}" for each in loaded]
    return Check("vocabularies", OK, f"{', '.join(counts)} verbs/objects/classes")


def _schemas() -> Check:
    import json

    from hoicli.records.schemas import kinds, schema_text

    names = kinds()
    for name in names:
        json.loads(schema_text(name))
    return Check(
        "schemas", OK if names else PROBLEM, ", ".join(names) or "none", "" if names else "install hoicli again"
    )


def _self_test() -> Check:
    """Two classes whose AP is known, through reading, matching and averaging."""
    from hoicli.arrays.reading import concatenate, read_scenes
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.evaluation.protocols import PROTOCOLS
    from hoicli.evaluation.run import matched_batches
    from hoicli.evaluation.tally import Tally, means
    from hoicli.io.streams import Line
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import dump
    from hoicli.vocabulary.datasets import load

    hico, protocol, policy = load("hico"), PROTOCOLS["qpic"], ErrorPolicy()
    person, thing, elsewhere = [10, 10, 60, 110], [50, 60, 150, 120], [300, 300, 340, 340]

    def line(number: int, verb: str, label: str, box: list[int], score: float | None) -> Line:
        hoi = {"subject": 0, "object": 1, "verb": verb} | ({} if score is None else {"score": score})
        record = {"image_id": str(number), "boxes": [person, box], "labels": ["person", label], "hois": [hoi]}
        return Line("self-test", number, dump(record))

    cases = ((1, "ride", "bicycle", thing), (2, "sit_on", "bench", thing), (3, "sit_on", "bench", elsewhere))
    annotated = [line(number, verb, label, thing, None) for number, verb, label, _ in cases]
    predicted = [line(*case, 1 / case[0]) for case in cases]
    scenes = concatenate(read_scenes(annotated, hico, scored=False, policy=policy), hico)
    truth = GroundTruth(scenes, hico)
    tally = Tally([protocol], len(hico.interactions))
    for batch, outcomes in matched_batches(predicted, truth, [protocol], Filters(), policy):
        tally.add_batch(batch, outcomes)
    tally.add_truth(truth)
    ((_, results),) = tally.results(hico)
    found = next(mean.ap for mean in means(results, hico, protocol) if mean.subset == "full")
    if found is None or abs(found - SELF_TEST) > 1e-9:
        value = f"an mAP of {found and 100 * found} where {100 * SELF_TEST:.4f} is right"
        return Check("self-test", PROBLEM, value, "please report it, with these rows")
    return Check("self-test", OK, f"mAP {100 * found:.2f}, as it should be")


# What runs leave behind, and what they need


def _parallel() -> Check:
    """Whether large files are shared out among processes (`hoicli.io.workers`)."""
    if sys.platform != "linux":
        return Check("parallel reading", MISSING, f"not on {sys.platform}", "files are read by one process here")
    process = os.fork()
    if process == 0:
        os._exit(7)
    _, status = os.waitpid(process, 0)
    if os.waitstatus_to_exitcode(status) != 7:
        return Check("parallel reading", PROBLEM, "a forked process did not end as told", "ulimit -u shows the limit")
    return Check("parallel reading", OK, "forks")


def _folder(path: str, advice: str) -> Check:
    """Whether files can be made in a folder, and how much room it has. The path is not said: it may be private."""
    name = "this folder" if path == "." else "temporary folder"
    free = _size(shutil.disk_usage(path).free)
    try:
        with tempfile.NamedTemporaryFile(dir=path, prefix=".hoicli.") as file:
            file.write(b"x")
    except OSError as error:
        status = PROBLEM if path != "." else MISSING
        return Check(name, status, f"cannot be written: {error.strerror}; {free} free", advice)
    return Check(name, OK, f"writable, {free} free")


def _unfinished() -> Check:
    """Files that a killed run could not rename (`streams.atomic_path`); a run under way has one, too."""
    left = [path for path in Path().glob(".*.part") if path.is_file()]
    if not left:
        return Check("unfinished files", OK, "none in this folder")
    size = _size(sum(path.stat().st_size for path in left))
    value = f"{len(left)} in this folder, {size}: {', '.join(sorted(path.name for path in left)[:3])}"
    return Check("unfinished files", OK, value, "of runs under way, or of killed ones: then delete them")


def _answers(cache: str | None) -> Check:
    """The cache of `shoe-sim --backend llm`, which has no place of its own."""
    if cache is None:
        return Check("model answers", OK, "kept nowhere but in the file of shoe-sim --cache")
    from hoicli.similarity.answers import survey

    if not Path(cache).is_file():
        return Check("model answers", PROBLEM, f"{cache}: no such file", "check the path")
    found = survey(cache)
    value = f"{cache}: {found.answers:,} answers, {found.usable:,} usable, {_size(Path(cache).stat().st_size)}"
    if found.damaged:
        value += f"; damaged lines: {len(found.damaged)}, the first {found.damaged[0]}"
        return Check("model answers", PROBLEM, value, "delete these lines: their questions are asked again")
    if found.unfinished:
        return Check("model answers", OK, f"{value}; the last line is cut off", "the next run mends it")
    return Check("model answers", OK, value)


# Where it runs


def _terminal() -> Check:
    streams = [
        f"{name} {'a terminal' if stream is not None and stream.isatty() else 'no terminal'}"
        for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr))
    ]
    return Check("terminal", OK, f"{', '.join(streams)}; {shutil.get_terminal_size().columns} columns, no colours used")


def _encoding() -> Check:
    encoding = sys.getfilesystemencoding()
    if encoding.lower().replace("-", "") != "utf8":
        return Check("file names", MISSING, encoding, "set LC_ALL=C.UTF-8, or names beyond ASCII may fail")
    return Check("file names", OK, encoding)


def _variables() -> Iterator[Check]:
    """Environment variables that change what hoicli does. A key is set or not; its value is nobody's business."""
    for name in ("HOICLI_DEBUG", "OPENBLAS_NUM_THREADS", "TMPDIR", "PYTHONPATH"):
        value = os.environ.get(name)
        shown = "not set" if value is None else value if name in ("HOICLI_DEBUG", "OPENBLAS_NUM_THREADS") else "set"
        yield Check(f"${name}", OK, shown)
    key = "OPENAI_API_KEY"
    yield Check(f"${key}", OK, "set" if os.environ.get(key, "").strip() else "not set")
