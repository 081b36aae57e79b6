"""Formats of other packages: an entry point in hoicli.formats, imported where it is named."""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from hoicli.converters.formats import _OPTIONS, _SIGN, FORMATS
from hoicli.converters.hoi_layouts import LAYOUTS
from hoicli.vocabulary.datasets import DATASETS
from tests.foreign import fixtures
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, parsed, refusal, saved

CONTAINERS = {"folder", "npz", "npy", "pickle", "mat", "json-list", "json-text", "json-object", "json-lines", "xml"}
MADE = {name: fixture for name, fixture in fixtures().items() if fixture.format}


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_of_the_table_is_whole(name: str) -> None:
    """Each field that no check at import can see, by the row and the field."""
    row, where = FORMATS[name], f"{name} in _TABLE (hoicli/converters/formats.py)"
    module, file = row.converter, f"hoicli/converters/{row.module.partition(':')[0].replace('.', '/')}.py"
    read, signs = row.module.partition(":")[2] or "read", set(_SIGN.findall(row.signs))
    unknown = {sign for sign in signs if sign[0] not in "[{" and sign not in {*vars(module), *CONTAINERS}}
    assert row.dataset in ("", *DATASETS), f"{where}: dataset: {row.dataset!r} is not in hoicli/vocabulary/datasets.py"
    assert not unknown, f"{where}: signs: {unknown} is no function of {file}, and no kind of container"
    assert row.reads or row.writes, f"{where}: reads, writes: it does neither"
    assert not row.reads or hasattr(module, read), f"{where}: module: {file} has no function {read}; or set reads=False"
    assert not row.writes or hasattr(module, "write"), f"{where}: writes: {file} has no function write"
    assert row.module != "hoi_lists" or name in LAYOUTS, (
        f"{where}: add it to LAYOUTS of hoicli/converters/hoi_layouts.py"
    )
    assert FORMATS.keys() >= _OPTIONS.keys(), (
        "_OPTIONS of hoicli/converters/formats.py has a format that _TABLE has not"
    )


@pytest.mark.parametrize("maker", MADE)
def test_the_file_of_a_maker_is_recognised_and_read(hoicli: Hoicli, maker: str) -> None:
    """By `convert` without --from, with every triplet that the maker was given."""
    fixture = MADE[maker]
    assert fixture.path.exists(), f"{fixture.path} is not there: python -m tests.foreign writes it"
    truth, predictions = fixture.records()
    result, known = hoicli("convert", fixture.path), f"as {fixture.format} ("
    assert known in result.err, f"{maker}: give {fixture.format} signs in hoicli/converters/formats.py: {result.err}"
    given = truth if FORMATS[fixture.format].holds == "ground truth" else predictions
    images = set(fixture.images or (record["image_id"] for record in given))

    def triplets(records: list[dict[str, Any]]) -> set[tuple[object, ...]]:
        of = [(record["image_id"], hoi) for record in records if record["image_id"] in images for hoi in record["hois"]]
        return {(image, hoi["verb"], hoi.get("score")) for image, hoi in of}

    assert triplets(parsed(result.out)) == triplets(given)


MODULE = """
from hoicli.converters.formats import Format

ROW = Format("triplets", __name__, "predictions", "verb and object, a line", dataset="hico", writes=True)

def read(source, context):
    def build(line):
        verb, label, score = line.split()
        hoi = {"subject": 0, "object": 1, "verb": verb, "score": float(score)}
        image = {"image_id": "HICO_test2015_00000001", "boxes": [[0, 0, 1, 1]] * 2}
        return {**image, "labels": ["person", label], "hois": [hoi]}

    lines = source.data.decode().splitlines()
    yield from context.each(((f"line {number}", line) for number, line in enumerate(lines, start=1)), build, source)

def write(records, path, context):
    with open(path, "w") as file:
        for record in records:
            for hoi in record["hois"]:
                print(hoi["verb"], record["labels"][hoi["object"]], hoi["score"], file=file)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the format `triplets`; the name of its module."""
    name = f"hoi_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    entries = []
    for what in ("ROW", "read"):
        entry = EntryPoint("triplets" if what == "ROW" else "no-row", f"{name}:{what}", "hoicli.formats")
        vars(entry)["dist"] = SimpleNamespace(name="hoi-triplets", version="1.2")
        entries.append(entry)

    def entry_points(*, group: str, name: str | None = None) -> list[Any]:
        return [entry for entry in entries if entry.group == group and name in (None, entry.name)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return name


def test_it_is_read_and_written_by_its_name(added: str, hoicli: Hoicli, tmp_path: Path) -> None:
    dump = saved(tmp_path / "dump.txt", "sit_on bench 0.5\n")
    result = hoicli("convert", "--from", "triplets", dump)
    assert result.code == 0, result.err
    assert orjson.loads(result.out)["labels"] == ["person", "bench"]
    assert "as triplets of hoi-triplets@1.2 (predictions): 1 images" in result.err
    assert hoicli("eval", "--gt", GT, "--from", "triplets", dump).code == 0
    assert hoicli("convert", PREDICTIONS, "--to", "triplets", "-o", tmp_path / "back.txt").code == 0
    assert len((tmp_path / "back.txt").read_text().split()) > 3


def test_nothing_of_it_is_imported_where_it_is_not_named(added: str, hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text("sit_on bench 0.5\n")
    assert hoicli("convert", tmp_path / "dump.txt").code == 1
    assert hoicli("convert", "--from", "ppdm", FIXTURES / "foreign/predictions_ppdm.json").code == 0
    assert "triplets" in refusal(hoicli("convert", "--from", "unknown", tmp_path / "dump.txt"), 2)
    assert added not in sys.modules


def test_what_is_refused(added: str, hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text("sit_on bench much\n")
    broken = hoicli("convert", "--from", "triplets", tmp_path / "dump.txt")
    assert (broken.code, "dump.txt: line 1: is not shaped as expected" in broken.err) == (1, True)
    other = hoicli("convert", "--from", "triplets", "--dataset", "vcoco", tmp_path / "dump.txt")
    assert (other.code, "is of hico (triplets), not vcoco" in other.err) == (1, True)
    no_row = hoicli("convert", "--from", "no-row", tmp_path / "dump.txt")
    assert (no_row.code, "not a hoicli.converters.formats.Format" in no_row.err) == (2, True)


@pytest.mark.parametrize("stop", ["sys.exit(0)", "sys.exit('no')", "raise SystemExit"])
def test_a_package_cannot_end_the_command(added: str, hoicli: Hoicli, tmp_path: Path, stop: str) -> None:
    """Neither where it is imported nor where it reads: the code would be the package's, and 0 without a file."""
    (tmp_path / "dump.txt").write_text("sit_on bench 0.5\n")
    for text in (f"import sys\n{stop}\n{MODULE}", MODULE.replace("lines = ", f"import sys; {stop}; lines = ")):
        (tmp_path / f"{added}.py").write_text(text)
        sys.modules.pop(added, None)
        said = refusal(hoicli("convert", "--from", "triplets", tmp_path / "dump.txt", "-o", tmp_path / "out.jsonl"), 2)
        assert "triplets of hoi-triplets" in said
        assert "SystemExit" in said
        assert not (tmp_path / "out.jsonl").exists()


def test_what_a_package_prints_is_no_data(added: str, hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text("sit_on bench 0.5\n")
    printing = MODULE.replace("verb, label, score =", "print('reading'); verb, label, score =")
    (tmp_path / f"{added}.py").write_text(f"print('welcome')\n{printing}")
    sys.modules.pop(added, None)
    result = hoicli("convert", "--from", "triplets", tmp_path / "dump.txt")
    assert (result.code, result.out.count("\n")) == (0, 1)
    assert "welcome\n" in result.err
    assert "reading\n" in result.err
