"""`hoicli doctor`: what is installed, what is missing, and whether it works."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

from hoicli.commands.command import command
from hoicli.commands.options import Option
from hoicli.commands.results import Result, instead
from hoicli.records.schemas import kinds, schema_text
from hoicli.version import __version__

OK, MISSING, PROBLEM = "ok", "missing", "problem"
"""missing: hoicli works without it; problem: hoicli does not work as it should."""

DEPENDENCIES = ("typer", "orjson", "numpy", "scipy", "nltk", "tqdm")
"""What pyproject.toml requires, by module (tests/project/test_doctor.py holds both tables to it)."""

EXTRAS = {
    "images": (("cv2", "PIL.Image"), "corrupt, mask --images and their pictures"),
    "plot": (("matplotlib",), "--plot of diagnose, pairstats and robust"),
}
"""Each extra: the modules it brings, and what needs them."""

DATA = Path(__file__).parent.parent
CHECKSUMS = "data.sha256"
"""In DATA, as sha256sum writes it: every embedded data file."""

SELF_TEST = (1 + 6 / 11) / 2
"""One class found completely (1), one found in one of two images (precision 1 up to recall 1/2: 6 of 11 points)."""


class Examined(NamedTuple):
    """A check: its name, its status, what was found, and what to do about it ("" for nothing)."""

    check: str
    status: str
    value: str
    advice: str = ""


@command(
    reads="nothing but its own files",
    writes="one row for each check: check, status (ok, missing or problem), value, advice; or a schema",
    examples=[
        ("hoicli doctor", "what to look at first when something is odd"),
        ("hoicli doctor --format md > report.md", "what to put into a bug report"),
        ("hoicli doctor --schema match | jq -r '.properties | keys[]'", "the fields of a match record"),
        ("hoicli doctor --format jsonl | jq -r 'select(.status != \"ok\") | .advice'", "what to install"),
    ],
    see=["validate", "vocab"],
    listed=lambda given: given["schema"] is None,
    exits={0: "all that is required is sound; extras may be missing", 1: "something is broken, and named"},
)
def doctor(*, schema: Annotated[str | None, Option("KIND", one_of=lambda: list(kinds()))] = None) -> Result:
    """Check the installation: versions, extras, embedded data, and a small evaluation whose result is known.

    Nothing is sent anywhere, and no key, user name or folder of yours is printed.

    Arguments:
        schema: Print the JSON Schema (draft 2020-12) of a kind of record or file instead: dataset, protocol, recipe,
            ground_truth, prediction, match, similarity or result.
    """
    if schema is not None:
        return instead(schema_text(schema))
    checks = list(examine())
    broken = [f"{check.check} ({check.value})" for check in checks if check.status == PROBLEM]
    failed = f"hoicli doctor: broken: {'; '.join(broken)}" if broken else None
    return Result([check._asdict() for check in checks], failed=failed)


def examine() -> Iterator[Examined]:
    """Every check in turn. None uses the network or prints a secret, and none raises for what it finds: a check that
    fails is a row with the status `problem`. Every dependency is imported, since an installed one may fail to load."""
    yield Examined("hoicli", OK, __version__)
    yield Examined("python", OK, f"{platform.python_implementation()} {platform.python_version()}")
    parts = (platform.system(), platform.release(), platform.machine(), " ".join(platform.libc_ver()).strip())
    yield Examined("platform", OK, " ".join(part for part in parts if part))
    for module in DEPENDENCIES:
        yield _guarded(module, partial(_dependency, module))
    for extra, (modules, use) in EXTRAS.items():
        yield _extra(extra, modules, use)
    yield _guarded("data files", _checksums)
    yield _guarded("WordNet", _wordnet)
    yield _guarded("self-test", _self_test)


def _guarded(name: str, check: Callable[[], Examined]) -> Examined:
    """The result of a check; an exception becomes a row, so that the other checks still run."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (see above)
        return Examined(name, PROBLEM, f"{type(error).__name__}: {_first_line(error)}", "install hoicli again")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


# What is installed


def _version(module: str) -> str:
    """The version of a module that loads; raises what its import raises."""
    loaded = import_module(module)
    return str(
        getattr(sys.modules[module.partition(".")[0]], "__version__", None) or getattr(loaded, "__version__", "?")
    )


def _dependency(module: str) -> Examined:
    try:
        return Examined(module, OK, _version(module))
    except ImportError as error:
        value = f"does not load: {_first_line(error)}"
        return Examined(module, PROBLEM, value, f"pip install --force-reinstall {module}")


def _extra(extra: str, modules: tuple[str, ...], use: str) -> Examined:
    """An extra is installed when all its modules load; the row says whether a module is absent or fails to load."""
    name, install = f"extra {extra}", f"for {use}: pip install 'hoicli[{extra}]'"
    found = []
    for module in modules:
        short = module.partition(".")[0]
        try:
            found.append(f"{short} {_version(module)}")
        except ModuleNotFoundError as error:
            if error.name != short:
                return Examined(name, MISSING, f"{short} does not load: {_first_line(error)}", install)
            return Examined(name, MISSING, f"no {short}", install)
        except Exception as error:  # noqa: BLE001 (a broken library may raise anything; hoicli works without)
            return Examined(name, MISSING, f"{short} does not load: {_first_line(error)}", install)
    return Examined(name, OK, ", ".join(found))


# What is embedded


def _checksums() -> Examined:
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
        return Examined("data files", PROBLEM, "; ".join(wrong), "install hoicli again")
    return Examined("data files", OK, f"{len(expected)} files, checksums right")


def _wordnet() -> Examined:
    from hoicli.wordnet.selection import open_wordnet

    wordnet = open_wordnet()
    if wordnet.synset("ride.v.10").definition() != "sit on and control a vehicle":
        return Examined("WordNet", PROBLEM, "ride.v.10 is something else", "install hoicli again")
    return Examined("WordNet", OK, f"3.0: {wordnet.graph.size:,} synsets, {len(wordnet.graph.lemmas):,} lemmas")


def _self_test() -> Examined:
    """Read, match and average two classes whose AP is known."""
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.evaluation.protocols import PROTOCOLS
    from hoicli.evaluation.run import matched_batches
    from hoicli.evaluation.tally import Tally, means
    from hoicli.io.streams import Line
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import dump
    from hoicli.records.reading import concatenate, read_scenes
    from hoicli.vocabulary.datasets import load

    hico, protocol, policy = load("hico"), PROTOCOLS["qpic"], ErrorPolicy()
    person, object_, elsewhere = [10, 10, 60, 110], [50, 60, 150, 120], [300, 300, 340, 340]

    def line(number: int, verb: str, label: str, box: list[int], score: float | None) -> Line:
        hoi = {"subject": 0, "object": 1, "verb": verb} | ({} if score is None else {"score": score})
        record = {"image_id": str(number), "boxes": [person, box], "labels": ["person", label], "hois": [hoi]}
        return Line("self-test", number, dump(record))

    cases = ((1, "ride", "bicycle", object_), (2, "sit_on", "bench", object_), (3, "sit_on", "bench", elsewhere))
    annotated = [line(number, verb, label, object_, None) for number, verb, label, _ in cases]
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
        return Examined("self-test", PROBLEM, value, "please report it, with these rows")
    return Examined("self-test", OK, f"mAP {100 * found:.2f}, as it should be")
