"""Protocols as files: what they are like, what they compute, and what is wrong with a bad one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

from hoicli.commands.doctor import schema_text
from hoicli.errors import DataError
from hoicli.evaluation.protocol_files import WORDS, _check_together, _make_protocol, protocol_record
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.selection import TABLES
from hoicli.vocabulary.datasets import DATASETS, load
from tests.support.project import FIXTURES, GT, OTHER, PREDICTIONS, Hoicli, parsed, refusal, saved

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = jsonschema.Draft202012Validator(json.loads(schema_text("protocol")))


def written(path: Path, record: object) -> Path:
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_row_of_the_table_is_whole(name: str) -> None:
    """Each of its fields is what a file of the same protocol may have, and goes with its dataset."""
    row, where = PROTOCOLS[name], f"{name} in _ROWS (hoicli/evaluation/protocols.py)"

    def bad(field: str, problem: str) -> DataError:
        return DataError(problem, place=where, field=field)

    assert row.dataset in DATASETS, f"{where}: dataset: {row.dataset!r} is not in hoicli/vocabulary/datasets.py"
    vocabulary = load(row.dataset)
    _make_protocol(json.loads(json.dumps(protocol_record(row))), vocabulary, {}, bad)
    _check_together(row, vocabulary, bad)
    assert row.roles == bool(vocabulary.roles), f"{where}: roles: {row.dataset} has {vocabulary.roles or 'none'}"
    assert row.source, f"{where}: source: say which file, or which section of a paper, it was read from"
    assert row.dataset in WORLDS, (
        f"{where}: add files of {row.dataset} to WORLDS (tests/evaluation/test_protocol_files.py)"
    )


def test_the_tables_have_rows_of_their_dataset() -> None:
    for dataset, names in TABLES.items():
        for name in names:
            of = PROTOCOLS[name].dataset if name in PROTOCOLS else "no dataset"
            assert of == dataset, f"TABLES of hoicli/evaluation/selection.py: {name} is of {of}, not of {dataset}"


def test_the_schema_has_the_fields_of_a_row() -> None:
    for row in PROTOCOLS.values():
        record = json.loads(json.dumps(protocol_record(row)))
        SCHEMA.validate(record)
        # what came after 1.0 is written where it is set
        later = {name for name in ("pairs_only", "first_free", "union_margin") if not getattr(row, name)}
        unlike = {*record, "like", *later} ^ {*json.loads(schema_text("protocol"))["properties"]}
        assert not unlike, f"in Protocol or in formats/protocol.schema.json, and not in both: {', '.join(unlike)}"


AMBIGUOUS = ",".join(str(GOLDEN / f"ambiguous_{part}.pkl.gz") for part in ("gt", "names"))
WORLDS: dict[str, tuple[object, Path]] = {
    "hico": (GT, PREDICTIONS),
    "vcoco": (FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"),
    "swig": (FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl"),
    "hoia": (GOLDEN / "hoia_gt.json.gz", GOLDEN / "hoia_preds.json.gz"),
    "ambiguous-hoi": (AMBIGUOUS, GOLDEN / "ambiguous_preds.pkl.gz"),
}
"""Ground truth and predictions of each dataset with protocols of its own."""


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_row_printed_and_read_gives_its_numbers(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    """Every published protocol, from the file that `--explain` prints, under another name."""
    dataset = PROTOCOLS[name].dataset
    truth, found = WORLDS[dataset]
    (record,) = parsed(hoicli("eval", "--explain", "--protocol", name, "--format", "jsonl").out)
    given = ("eval", "--dataset", dataset, "--gt", truth, found, "--protocol")
    published = parsed(hoicli(*given, name).out)
    for file in ({**record, "name": "mine"}, {"name": "mine", "like": name}):
        SCHEMA.validate(file)
        ours = parsed(hoicli(*given, written(tmp_path / f"{len(file)}.json", file)).out)
        for row in ours:
            parts = row["signature"].split("|")
            assert parts[:1] == ["protocol:mine"]
            assert parts[1].startswith("row:")
            row["signature"] = "|".join([f"protocol:{name}", *parts[2:]])
        assert [row | {"protocol": name} for row in ours] == published


def test_the_digest_is_of_what_is_computed(hoicli: Hoicli, tmp_path: Path) -> None:
    def digest(**fields: object) -> str:
        path = written(tmp_path / f"{len(list(tmp_path.iterdir()))}.json", {"name": "mine", "like": "hico", **fields})
        found = parsed(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", path).out)
        return str(found[0]["signature"].split("|")[1])

    assert digest() == digest(title="another title") == digest(threshold=0.5) == digest(remark="x", source="y")
    assert len({digest(), digest(threshold=0.6), digest(strict=True), digest(grid="tenths"), digest(grid=[0.5])}) == 5
    assert set(WORDS) == {"title", "source", "remark"}


def test_a_threshold_in_a_file_is_iou(hoicli: Hoicli, tmp_path: Path) -> None:
    path = written(tmp_path / "strict.json", {"name": "hico-75", "like": "hico", "threshold": 0.75})
    given = ("eval", "--gt", GT, PREDICTIONS, "--protocol")
    ours, theirs = parsed(hoicli(*given, path).out), parsed(hoicli(*given, "hico", "--iou", "0.75").out)
    assert [row["value"] for row in ours] == [row["value"] for row in theirs]
    again = parsed(hoicli(*given, path, "--iou", "0.75").out)
    assert "iou:" not in again[0]["signature"]  # its own threshold


def test_it_goes_beside_published_ones_and_through_match(hoicli: Hoicli, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.json", {"name": "mine", "like": "qpic", "triplets_per_image": 1})
    names = f"hico,{path}"
    direct = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", names)
    assert [*dict.fromkeys(row["protocol"] for row in parsed(direct.out))] == ["hico", "mine"]
    matches = tmp_path / "matches.jsonl"
    matches.write_text(hoicli("match", "--gt", GT, PREDICTIONS, "--protocol", names, "--slice", "people").out)
    sliced = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", names, "--slice", "people").out
    assert hoicli("eval", matches, "--protocol", names).out == sliced
    said = refusal(hoicli("eval", matches))
    assert "unknown protocol 'mine'" in said
    assert "give its file" in said
    written(path, {"name": "mine", "like": "qpic", "triplets_per_image": 2})
    assert "another file of that name" in refusal(hoicli("eval", matches, "--protocol", names), 2)


def test_compare_takes_it(hoicli: Hoicli, tmp_path: Path) -> None:
    path = written(tmp_path / "mine.json", {"name": "mine", "like": "qpic", "grid": "every"})
    pair = ("--gt", GT, PREDICTIONS)
    found = parsed(hoicli("compare", *pair, OTHER, "--protocol", path, "--bootstrap", "20").out)
    assert {row["protocol"] for row in found} == {"mine", "diag"}
    assert "area under the precision envelope" in hoicli("eval", "--explain", "--protocol", path).out


@pytest.mark.parametrize(("record", "problem"), [
    ({"name": "x"}, "grid: missing; say which protocol it is like"),
    ({"like": "hico"}, "name: missing"),
    ({"name": "hico", "like": "hico"}, "name: hico is the published protocol"),
    ({"name": "a b", "like": "hico"}, "name: must be a word"),
    ({"name": "all", "like": "hico"}, "name: must be a word"),
    ({"name": "x", "like": "hicodet"}, 'like: "hicodet" is no protocol; choose from hico'),
    ({"name": "x", "like": "hico", "treshold": 0.7}, "treshold: there is no such field; did you mean 'threshold'?"),
    ({"name": "x", "like": "hico", "part": None}, "part: there is no such field"),
    ({"name": "x", "like": "hico", "threshold": 0}, "threshold: 0 is no IoU"),
    ({"name": "x", "like": "hico", "threshold": True}, "threshold: true is no IoU"),
    ({"name": "x", "like": "hico", "strict": 1}, "strict: 1: must be true or false"),
    ({"name": "x", "like": "hico", "grid": [0, 0.5, 0.5]}, "grid: must be arange"),
    ({"name": "x", "like": "hico", "grid": [0, 1.5]}, "grid: must be arange"),
    ({"name": "x", "like": "hico", "grid": []}, "grid: must be arange"),
    ({"name": "x", "like": "hico", "grid": "fine"}, "grid: must be arange"),
    ({"name": "x", "like": "hico", "truth_shift": [1, 1]}, "truth_shift: must be four numbers"),
    ({"name": "x", "like": "hico", "triplets_per_image": 0}, "triplets_per_image: 0: must be a whole number"),
    ({"name": "x", "like": "hico", "images": "some"}, 'images: "some": choose all, boxes, interactions'),
    ({"name": "x", "like": "hico", "subsets": "rare"}, "subsets: must be an array"),
    ({"name": "x", "like": "hico", "subsets": ["common"]}, 'subsets: hico has no "common"; it has full, rare'),
    ({"name": "x", "like": "hico", "classes": "25"}, 'classes: hico has no "25"'),
    ({"name": "x", "like": "hico", "person_first": True}, "person_first: means nothing for hico"),
    ({"name": "x", "like": "hico", "any_object_when_none": True}, "any_object_when_none: goes with person_first"),
    ({"name": "x", "like": "hico", "title": "a\nb"}, "title: must be a line"),
    ({"name": "x", "like": "hico", "dataset": 3}, "dataset: 3: must be a string"),
    ({"name": "x", "like": "hico", "dataset": "coco"}, 'dataset: "coco" is not shipped'),
    ({"name": "x", "like": "vcoco-s1", "dataset": "hico"}, "like: vcoco-s1 is not of hico"),
    ([], "an array, not a JSON object"),
])  # fmt: skip
def test_a_bad_file(hoicli: Hoicli, tmp_path: Path, record: object, problem: str) -> None:
    path = saved(tmp_path / "bad.json", record if isinstance(record, str) else json.dumps(record))
    assert refusal(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", path)).startswith(f"{path}: {problem}")


def test_a_file_that_is_no_json_is_told_with_its_line(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "bad.json", '{"name": "x",\n oops}')
    assert refusal(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", path)).startswith(f"{path}:2: not JSON (")


def test_files_that_do_not_go_together(hoicli: Hoicli, tmp_path: Path) -> None:
    first, second = (written(tmp_path / f"{name}.json", {"name": "mine", "like": "hico"}) for name in "ab")
    said = refusal(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", f"{first},{second}"), 2)
    assert "there is another protocol called mine" in said
    third = written(tmp_path / "c.json", {"name": "theirs", "like": "vcoco-s1"})
    result = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", f"{first},{third}")
    assert result.code == 1
    assert "like: vcoco-s1 is not of hico" in result.err
    result = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", tmp_path / "none.json")
    assert (result.code, result.err) == (1, f"{tmp_path / 'none.json'}: no such file; check the path\n")


class Entry:
    def __init__(self, name: str, value: object, version: str = "1.2") -> None:
        self.name, self.dist = name, SimpleNamespace(name="hoi-strict", version=version)
        self._value = value

    def load(self) -> object:
        return self._value


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a protocol look installed by another package."""

    def add(name: str, value: object) -> None:
        def entries(*, group: str, **named: str) -> list[Entry]:
            return [Entry(name, value)] if group == "hoicli.protocols" and named.get("name", name) == name else []

        monkeypatch.setattr("importlib.metadata.entry_points", entries)

    return add


def test_another_package_adds_one(hoicli: Hoicli, tmp_path: Path, added: Callable[..., None]) -> None:
    added("hico-75", {"like": "hico", "threshold": 0.75})
    given = ("--gt", GT, PREDICTIONS)
    before = hoicli("eval", *given)
    assert "hico-75" not in before.out  # not named, so not looked at
    ours = parsed(hoicli("eval", *given, "--protocol", "hico,hico-75").out)
    file = written(tmp_path / "x.json", {"name": "x", "like": "hico", "threshold": 0.75})
    theirs = parsed(hoicli("eval", *given, "--protocol", file).out)
    assert [row["value"] for row in ours if row["protocol"] == "hico-75"] == [row["value"] for row in theirs]
    assert all("|row:hoi-strict@1.2|" in row["signature"] for row in ours if row["protocol"] == "hico-75")
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", *given, "--protocol", "hico,hico-75").out)
    assert parsed(hoicli("eval", matches, "--protocol", "hico,hico-75").out) == ours
    assert "hico-75: like hico" in hoicli("eval", "--explain", "--protocol", "hico-75").out
    assert "hico-image-ko, hico-75" in hoicli("eval", *given, "--protocol", "hico-57").err


def test_numbers_of_numpy_are_numbers(hoicli: Hoicli, added: Callable[..., None]) -> None:
    added("hico-75", {"like": "hico", "threshold": np.float64(0.75)})
    given = ("eval", "--gt", GT, PREDICTIONS, "--protocol", "hico-75")
    ours = hoicli(*given)
    added("hico-75", {"like": "hico", "threshold": 0.75})
    assert (ours.code, ours.out) == (0, hoicli(*given).out)


IN_ITSELF: dict[str, Any] = {"like": "hico"}
IN_ITSELF["grid"] = IN_ITSELF


@pytest.mark.parametrize("value", [IN_ITSELF, {"threshold": 1 << 70}])
def test_what_no_file_can_hold(hoicli: Hoicli, added: Callable[..., None], value: object) -> None:
    added("hico-75", value)
    said = refusal(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", "hico-75"), 2)
    assert "hico-75 of hoi-strict 1.2 is no dict that JSON can hold" in said


@pytest.mark.parametrize(("value", "problem"), [
    (object(), "hico-75: hoicli.protocols: the entry point must name a dict"),
    ({"like": "hico", "threshold": 2}, "hico-75: threshold: 2 is no IoU"),
    ({"like": "hico", "iou": 0.75}, "hico-75: iou: there is no such field"),
])  # fmt: skip
def test_a_bad_one_of_another_package(hoicli: Hoicli, added: Callable[..., None], value: object, problem: str) -> None:
    added("hico-75", value)
    assert refusal(hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", "hico-75")).startswith(problem)
