"""`hoicli doctor`: what is installed, what is missing, and whether the data is sound."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Annotated

from hoicli.errors import HoicliError, Place
from hoicli.interface.command import command
from hoicli.interface.options import Option
from hoicli.interface.results import Result, instead
from hoicli.version import __version__

OK, MISSING, PROBLEM = "ok", "missing", "problem"
"""The status of a check. missing: hoicli works without it; problem: hoicli does not work as it should."""

DEPENDENCIES = ("typer", "orjson", "numpy", "scipy", "nltk", "tqdm")
"""The packages that pyproject.toml requires, by the module to import (tests/project/test_doctor.py compares both)."""

EXTRAS = {
    "images": (("cv2", "PIL.Image"), "corrupt, mask --images and their pictures"),
    "plot": (("matplotlib",), "--plot of diagnose, pairstats, curves, confusion, robust and agree"),
    "cluster": (("dask", "fsspec"), "fixtures/scale/engine.py: Dask, and files on s3:// and the like"),
}
"""Each optional group of packages (extra): the modules it brings, and what needs them."""

DATA = Path(__file__).parent.parent
"""The folder of the package hoicli."""
FORMATS = DATA / "formats" if (DATA / "formats").is_dir() else DATA.parent / "formats"
"""The JSON Schemas: inside the installed package, or at the top of a checkout."""
CHECKSUMS = "data.sha256"
"""The file in DATA with the checksum of every embedded data file, as sha256sum writes it."""


def kinds() -> list[str]:
    """Return the sorted kinds of records that have a JSON Schema: ground_truth, match, ..."""
    return sorted(path.name.removesuffix(".schema.json") for path in FORMATS.glob("*.schema.json"))


def schema_text(kind: str) -> str:
    """Return the JSON Schema of a kind of records (one of `kinds()`), as text."""
    return (FORMATS / f"{kind}.schema.json").read_text(encoding="utf-8")


@command(
    reads="nothing but its own files",
    writes="one row for each check: check, status (ok, missing or problem), value, advice; or a schema",
    examples="""
        hoicli doctor  # run it first when something seems wrong
        hoicli doctor --format md > report.md  # what to put into a bug report
        hoicli doctor --schema match | jq -r '.properties | keys[]'  # the fields of a match record
        hoicli doctor --format jsonl | jq -r 'select(.status != "ok") | .advice'  # what to install
    """,
    see=["validate", "vocab"],
    listed=lambda values: values["schema"] is None,
    exits={0: "everything required works; extras may be missing", 1: "something is broken; stderr names it"},
)
def doctor(*, schema: Annotated[str | None, Option("KIND", one_of=kinds)] = None) -> Result:
    """Check the installation: versions, extras, and embedded data.

    Nothing is sent anywhere, and no key, user name or folder of yours is printed.

    Arguments:
        schema: Print the JSON Schema (draft 2020-12) of a kind of record or file instead: dataset, protocol, recipe,
            ground_truth, prediction, match, similarity or result.
    """
    if schema is not None:
        return instead(schema_text(schema))
    rows = [dict(zip(("check", "status", "value", "advice"), row, strict=True)) for row in examine()]
    broken = [f"{row['check']} ({row['value']})" for row in rows if row["status"] == PROBLEM]
    failed = HoicliError(f"broken: {', '.join(broken)}", place=Place("hoicli doctor")) if broken else None
    return Result(rows, failed=failed)


def examine() -> Iterator[tuple[str, str, str, str]]:
    """Make all checks, and yield of each (check, status, what was found, what to do about it). None uses the network or
    prints a secret. Every dependency is imported, since an installed one may fail to load."""
    yield "hoicli", OK, __version__, ""
    yield "python", OK, f"{platform.python_implementation()} {platform.python_version()}", ""
    parts = (platform.system(), platform.release(), platform.machine(), " ".join(platform.libc_ver()).strip())
    yield "platform", OK, " ".join(part for part in parts if part), ""
    for module in DEPENDENCIES:
        value, loads = _version(module)
        yield module, OK if loads else PROBLEM, value, "" if loads else f"pip install --force-reinstall {module}"
    for extra, (modules, use) in EXTRAS.items():
        versions = {module.partition(".")[0]: _version(module) for module in modules}
        all_load = all(loads for _, loads in versions.values())
        value = ", ".join(f"{module} {value}" for module, (value, _) in versions.items())
        advice = "" if all_load else f"for {use}: pip install 'hoicli[{extra}]'"
        yield f"extra {extra}", OK if all_load else MISSING, value, advice
    value, unchanged = checksums()
    yield "data files", OK if unchanged else PROBLEM, value, "" if unchanged else "install hoicli again"


def _version(module: str) -> tuple[str, bool]:
    """Import a module, and return (its version, or why it does not load; whether it loads)."""
    try:
        with redirect_stderr(StringIO()):  # some libraries print there that an optional part is missing
            loaded = import_module(module)
    except Exception as error:  # noqa: BLE001 (a broken library may raise anything)
        return f"does not load: {(str(error).splitlines() or [''])[0][:200]}", False
    package = sys.modules[module.partition(".")[0]]
    return str(getattr(package, "__version__", None) or getattr(loaded, "__version__", "?")), True


def checksums() -> tuple[str, bool]:
    """Compare the embedded data files with their published checksums, and return (what is wrong, or how many files
    there are; whether all are as published)."""
    expected = [line.split(maxsplit=1) for line in (DATA / CHECKSUMS).read_text(encoding="utf-8").splitlines()]
    wrong = [
        f"{name} is missing, or not what was published"
        for digest, name in expected
        if not (DATA / name).is_file() or hashlib.sha256((DATA / name).read_bytes()).hexdigest() != digest
    ]
    return "; ".join(wrong) or f"{len(expected)} files, checksums right", not wrong
