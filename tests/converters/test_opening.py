"""Any file as an input of a stream: what is read as lines, what is converted, and what a message says of it; and
formats of other packages: an entry point in hoicli.formats, imported where it is named."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import pickle
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from hoicli.commands.convert import convert
from hoicli.converters.formats import _OPTIONS, _SIGN, FORMATS
from hoicli.converters.hoi_layouts import LAYOUTS
from hoicli.converters.opening import Opening, content
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import DATASETS, load
from tests.foreign import fixtures
from tests.support import csv_format
from tests.support.project import FIXTURES, FOREIGN, GT, PREDICTIONS, Hoicli, dumped, parsed, refusal, saved, written

OF_CDN = FOREIGN / "cdn.json"


def records(*paths: Path, opening: Opening | None = None) -> list[Line]:
    return list(Stream([str(path) for path in paths], "records", opening or Opening()))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"image_id": "a", "boxes": []}\n', "lines"),
        (b'{"file_name": "a.jpg", "image_id": "a"}\n', "lines"),
        (b'\n \n\xef\xbb\xbf{"image_id": "a"}\n', "lines"),
        (b'{"image_id": "a", "boxes": [[1,\n{"image_id": "b"}\n', "lines"),  # a line that is cut off
        (b'{"boxes": [], "image_id": "a", "hois": [[1,\n{"image_id": "b"}\n', "lines"),
        (b'{"metric": "mAP", "value": 1}\n', "lines"),  # another kind of line, for the command's own message
        (b'{"1": [[0, 0.5, 1, 2, 3, 4, 5, 6, 7, 8]]}\n{"2": []}\n', "lines"),
        (b'{"1": [[0, 0.5, 1, 2, 3, 4, 5, 6, 7, 8]]}', "dump"),  # INP-CC's, on one line
        (b'{\n "1": []\n}', "dump"),
        (b'[{"image_id": "a", "boxes": []}]', "dump"),  # records as a list: the message says how to make lines of it
        (b'[{"image_id": 1, "person_box": [1, 2, 3, 4]}]', "dump"),  # V-COCO's list
        (b'[{"filename": "a.jpg"}]', "dump"),
        (b"\"{'preds': []}\"", "dump"),
        (pickle.dumps([1]), "dump"),
        (pickle.dumps([1], protocol=0), "dump"),
        (b"MATLAB 5.0 MAT-file", "dump"),
        (b"PK\x03\x04" + bytes(26) + b"boxes.npy", "dump"),
        (b"", "unknown"),
        (b"{'image_id': 1}\n", "lines"),
        (b"hello\n", "unknown"),
        (b"17\n18\n", "unknown"),
        (b"a_12\na_13.", "unknown"),
    ],
)
def test_first_bytes_tell(tmp_path: Path, data: bytes, expected: str) -> None:
    for name, content_written in (("file", data), ("file.gz", gzip.compress(data))):
        (tmp_path / name).write_bytes(content_written)
        if not (name == "file.gz" and data == pickle.dumps([1], protocol=0)):  # its mark is the last byte
            assert content(str(tmp_path / name)) == expected


def test_a_long_first_line_is_a_dump_unless_it_is_of_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoicli.converters.opening.LONGEST_LINE", 1 << 17)
    path = tmp_path / "file"
    for head, expected in ((b'{"filenames": ["', "dump"), (b'{"image_id": "', "lines")):
        path.write_bytes(head + b"x" * (1 << 18))
        assert content(str(path)) == expected


def test_a_folder_and_an_array_file_are_dumps(tmp_path: Path) -> None:
    assert content(str(tmp_path)) == content("x.npz") == content("x.mat") == content("x.mat.gz") == "dump"


def test_records_are_the_same_as_converted(hoicli: Hoicli, tmp_path: Path) -> None:
    converted = hoicli("convert", OF_CDN)
    assert converted.code == 0
    assert [orjson.loads(line.data) for line in records(OF_CDN)] == list(map(json.loads, converted.out.splitlines()))


def test_a_record_is_placed_by_its_image() -> None:
    first = records(OF_CDN)[0]
    assert first.place == f"{OF_CDN}: image HICO_test2015_00000001"
    assert records(PREDICTIONS)[0].place == f"{PREDICTIONS}:1"


def test_a_joint_source_is_named_with_commas(hoicli: Hoicli) -> None:
    both = f"{FOREIGN / 'anno_bbox.mat'},{FOREIGN / 'anno.mat'}"
    converted = hoicli("convert", FOREIGN / "anno_bbox.mat", FOREIGN / "anno.mat")
    found = list(Stream([both], "ground truth", Opening().specialise(truth=True)))
    assert b"".join(line.data for line in found).decode() == converted.out == hoicli("convert", both).out


def test_a_list_of_image_ids_belongs_to_the_dump_before_it() -> None:
    folder = FIXTURES / "vcoco"
    paths = [folder / name for name in ("vcoco_test.json", "instances.json", "test.ids")]
    assert len(records(*paths, opening=Opening("vcoco"))) == 8


def test_a_file_name_may_have_a_comma(tmp_path: Path) -> None:
    path = tmp_path / "a,b.json"
    shutil.copy(OF_CDN, path)
    assert records(path)[0].file == str(path)


def test_a_format_of_another_dataset_is_refused() -> None:
    dump = FIXTURES / "vcoco/foreign/vcoco_results.pkl"
    for opening in (Opening(), Opening(is_named=True)):
        with pytest.raises(DataError, match=r"vcoco_results.pkl: is of vcoco \(vcoco\), not of hico: --dataset vcoco$"):
            records(dump, opening=opening)
    assert len(records(dump, opening=Opening(fixed=False))) == 7


def test_a_format_is_not_for_stdin() -> None:
    with pytest.raises(UsageError, match=r"^--from cdn: stdin and pipes are JSONL; name the file, or: hoicli convert"):
        list(Stream(["-"], "predictions", Opening(source_format="cdn")))


def test_stderr_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    records(OF_CDN)
    said = f"converted {OF_CDN} as cdn (predictions): 7 images, 32 boxes, 41 triplets"
    assert capsys.readouterr().err == f"hoicli: {said}\n"


def test_an_option_that_only_convert_has_is_said_to_be_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"hoicli convert --coords"):
        records(FIXTURES / "vlm/answers.jsonl", opening=Opening(source_format="vlm"))
    records(FOREIGN / "anno_bbox.mat")
    assert "; hoicli convert --part train takes the other\n" in capsys.readouterr().err


def test_a_dump_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "dump.json", '[{"filename": "a.jpg", "predictions": 1, "hoi_prediction": 2}]')
    with pytest.raises(DataError, match=rf"^nothing is left: skipped 1 item; the first: {path}: \[0\]"):
        records(path, opening=Opening(policy=ErrorPolicy(skip=True)))


def test_errors_name_the_dump_and_the_item(tmp_path: Path) -> None:
    content_ = json.loads(OF_CDN.read_text())
    content_[2]["hoi_prediction"][0]["category_id"] = 500
    path = dumped(tmp_path / "dump.json", content_)
    with pytest.raises(DataError, match=rf"^{path}: \[2\]\.hoi_prediction\[0\]"):
        records(path)
    policy = ErrorPolicy(skip=True)
    assert len(records(path, opening=Opening(policy=policy))) == 6
    signed = [{"signature": "data:hico|skipped:1|version:1"}]
    assert policy.sign_skipped([{"signature": "data:hico|version:1"}]) == signed


@pytest.mark.parametrize("options", [["--to-vocabulary"], ["--coords", "1000"]])
def test_options_of_answers_are_refused_for_what_holds_none(hoicli: Hoicli, tmp_path: Path, options: list[str]) -> None:
    """They were ignored where the format was detected."""
    assert "is not for records, but for vlm" in refusal(hoicli("convert", *options, GT), 2)
    with pytest.raises(UsageError, match="is not for records, but for vlm"):
        list(convert([orjson.loads(GT.read_bytes().splitlines()[0])], to_vocabulary=True))


def in_folders(*names: str) -> bytes:
    """HOI-A's layout: an image for each file."""
    boxes = [{"bbox": [1, 1, 50, 50], "category_id": 1}, {"bbox": [20, 20, 90, 90], "category_id": 2}]
    hois = [{"subject_id": 0, "object_id": 1, "category_id": load("hico").verb_ids["ride"] + 1}]
    return orjson.dumps([{"file_name": name, "annotations": boxes, "hoi_annotation": hois} for name in names])


def test_frames_in_folders_are_never_joined_in_silence(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of 2,893 images in folders 678 were said to be there twice."""
    (tmp_path / "gt.json").write_bytes(in_folders("a/frame_1.jpg", "a/frame_1.jpg"))
    twice = hoicli("convert", "--dataset", "hico", tmp_path / "gt.json")
    assert (twice.code, "image frame_1: occurs twice in the source" in twice.err) == (1, True)
    (tmp_path / "gt.json").write_bytes(in_folders("a/frame_1.jpg", "b/frame_1.jpg"))
    both = hoicli("eval", "--dataset", "hico", "--gt", tmp_path / "gt.json", PREDICTIONS)
    assert (both.code, "is not in the ground truth" in both.err) == (1, True)
    (tmp_path / "list.txt").write_text("a/frame_1.jpg\nb/frame_1.jpg\n")
    assert hoicli("convert", "--image-list", tmp_path / "list.txt", PREDICTIONS).code == 0


def test_answers_about_two_images_of_one_name_are_not_joined(hoicli: Hoicli, tmp_path: Path) -> None:
    said = '[{"verb": "ride", "object": "bicycle", "person_box": [1, 2, 30, 40], "object_box": [5, 6, 70, 80]}]'
    path = tmp_path / "answers.jsonl"
    rows = [{"file_name": f"{folder}/frame_1.jpg", "response": said} for folder in "abb"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = hoicli("convert", "--from", "vlm", "--coords", "pixels", path)
    assert [json.loads(line)["image_id"] for line in result.out.splitlines()] == ["a/frame_1", "b/frame_1"]
    assert "a triplet that is said again: 1" in result.err, "of the two answers about one image"
    twice = hoicli("convert", "--from", "vlm", "--coords", "pixels", "--id", "name", path)
    assert (twice.code, "keep one of the two, or give --id path" in twice.err) == (1, True), twice.err


def test_the_rule_of_ids_is_chosen(hoicli: Hoicli, tmp_path: Path) -> None:
    """Shards, whose names collide with those of others alone; and a mended stream of records."""
    names = "a/COCO_val2014_000000000042.jpg", "b/7.jpg"
    gt = saved(tmp_path / "gt.json", in_folders(*names))

    def ids(rule: str, file: Path) -> list[str | int]:
        result = hoicli("convert", "--dataset", "hico", "--id", rule, file)
        return [json.loads(line)["image_id"] for line in result.out.splitlines()]

    coco = "COCO_val2014_000000000042"
    wanted: dict[str, list[str | int]] = {"number": [42, 7], "name": [coco, "7"], "path": [f"a/{coco}", "b/7"]}
    records = tmp_path / "gt.jsonl"
    for rule, found in wanted.items():
        assert ids(rule, gt) == found
        records.write_bytes(hoicli("convert", "--dataset", "hico", "--id", rule, gt).out.encode())
        assert all(ids(other, records) == wanted[other] for other in wanted)
        error = hoicli("eval", "--gt", records, PREDICTIONS).err
        assert ("hoicli convert --id path" in error) == (rule == "path")
    gt.write_bytes(in_folders("a/x.jpg"))
    assert (
        refusal(hoicli("convert", "--dataset", "hico", "--id", "number", gt))
        == f"{gt}: image x: no number at the end of 'a/x.jpg', as in img_12; --id name or path"
    )
    (tmp_path / "list.jsonl").write_bytes(in_folders("a/x.jpg", "b/x.jpg"))
    listed = hoicli("convert", "--image-list", tmp_path / "list.jsonl", PREDICTIONS)
    assert listed.code == 0, "a list's images are told apart as those of a dump"


def test_derived_labels_are_told_of_once(hoicli: Hoicli, tmp_path: Path) -> None:
    truth = FOREIGN / "test_hico.json"
    assert hoicli("eval", "--gt", truth, PREDICTIONS).err.count("no image-level labels") == 1
    assert hoicli("eval", "--protocol", "qpic", "--gt", truth, PREDICTIONS).err.count("no image-level labels") == 0
    other = saved(tmp_path / "other.jsonl", PREDICTIONS.read_bytes())
    models = ("--protocol", "hico-ko", "--gt", truth, PREDICTIONS, other)
    assert hoicli("compare", *models).err.count("no image-level labels") == 1


def test_other_files_of_a_folder_are_named(hoicli: Hoicli, tmp_path: Path) -> None:
    for path in (*(FOREIGN / "detections_mat").iterdir(), FOREIGN / "results.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    result = hoicli("convert", tmp_path, "--image-list", GT)
    assert f"left out: other files of a folder: 1 (the first: {tmp_path}/results.json)" in result.err
    refused = hoicli("convert", "--from", "gen-vlkt", tmp_path / "results.json")
    assert (refused.code, refused.err.endswith("use --from cdn\n")) == (1, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"image_id": "a", "hois": []}], "list of records"),
        ([{"person_box": [1, 2, 3, 4], "hold_agent": 0.5}], "without image_id"),
        ([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}], "COCO's list of detected boxes"),
        ({"images": [], "annotations": []}, "COCO's annotations"),
    ],
)
def test_what_is_nearly_a_format_is_named(hoicli: Hoicli, tmp_path: Path, content: object, words: str) -> None:
    path = saved(tmp_path / "dump.json", json.dumps(content, indent=1))
    for call in (["convert", path], ["eval", "--gt", path, GT], ["eval", "--gt", GT, path]):
        assert words in refusal(hoicli(*call))


def test_objects_over_several_lines_are_no_cut_file(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "pretty.jsonl", json.dumps({"image_id": "a"}, indent=1) * 2)
    assert "jq -c" in refusal(hoicli("convert", path))


@pytest.mark.parametrize(
    "command", [("eval",), ("diagnose",), ("pairstats",), ("recall",), ("validate",), ("shoe-eval", "--sim", "lexical")]
)
def test_a_format_of_the_table_is_read_by_every_command(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Also a text, which the first bytes do not tell from lines that are no JSON."""
    monkeypatch.setitem(FORMATS, "rows", csv_format.ROW)
    record = {"image_id": "1", "boxes": [[0, 0, 40, 90], [50, 0, 90, 40]], "labels": ["person", "bicycle"]}
    gt = written(tmp_path / "gt.jsonl", [{**record, "hois": [{"subject": 0, "object": 1, "verb": "ride"}]}])
    path = tmp_path / "preds.csv"
    rows = [f"1,{verb},bicycle,{score},0,0,40,90,50,0,90,40\n" for verb, score in (("ride", 0.9), ("hold", 0.8))]
    path.write_text(f"{','.join(csv_format.COLUMNS)}\n{''.join(rows)}")
    converted = tmp_path / "preds.jsonl"
    assert hoicli("convert", path, "-o", converted).code == 0
    printed = [hoicli(*command, "--gt", gt, preds, "--format", "jsonl") for preds in (path, converted)]
    assert [result.code for result in printed] == [0, 0], printed[0].err
    assert printed[0].out == printed[1].out


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


def test_a_list_of_images_must_be_there_even_if_no_file_needs_it(hoicli: Hoicli) -> None:
    result = hoicli("eval", "--gt", GT, "--image-list", "none.txt", PREDICTIONS)
    assert (result.code, result.err) == (1, "none.txt: no such file; check the path\n")


def test_an_image_of_two_dumps_names_both(hoicli: Hoicli, tmp_path: Path) -> None:
    """Two models' dumps in one call were said to hold an image twice in the second, which has it once."""
    other = saved(tmp_path / "other.json", OF_CDN.read_bytes())
    (image_id, *_) = [record["image_id"] for record in parsed(hoicli("convert", OF_CDN).out)]
    result = hoicli("eval", "--gt", GT, OF_CDN, other)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert f"other.json: image {image_id}: is in {OF_CDN} already; keep one of the two" in result.err
    assert result.err.endswith("(all files are read as one; for two models: hoicli compare, or one run each)\n")


@pytest.mark.parametrize("name", [1.5, None, True, []])
def test_an_image_without_a_name(hoicli: Hoicli, tmp_path: Path, name: Any) -> None:
    """A message said that a float has no attribute 'replace'."""
    items = orjson.loads(OF_CDN.read_bytes())
    items[1]["filename"] = name
    result = hoicli("convert", saved(tmp_path / "dump.json", orjson.dumps(items)))
    assert result.code == 1
    assert "dump.json: [1]: " in result.err
    assert result.err.endswith(" is no name of an image; give its file name, or its number\n")


def test_an_image_named_by_a_number(hoicli: Hoicli, tmp_path: Path) -> None:
    """The number is its id."""
    items = orjson.loads(OF_CDN.read_bytes())
    items[1]["filename"] = 7
    assert parsed(hoicli("convert", saved(tmp_path / "dump.json", orjson.dumps(items))).out)[1]["image_id"] == "7"
