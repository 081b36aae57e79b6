"""Every command that takes records takes any dump: to the byte what it prints for the converted records."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.support.kernel import share_out
from tests.support.project import EIGHT, FIXTURES, FOREIGN, GT, OTHER, PREDICTIONS, Hoicli, Result, refusal, saved

DUMPS = (
    *("cdn.json", "results.json", "predictions_ppdm.json", "inpcc.json", "preds.pkl", "preds_wo_nointer.pkl"),
    *("results_gen_vlkt.json", "logits.npz", "state.npz", "pairs.pkl", "detections_mat"),
)
TRUTHS = ("anno_bbox.mat", "anno_bbox.mat,anno.mat", "anno_list.json", "instances_test2015.json", "test_hico.json")
COMMANDS = (
    *("eval", "match", "diagnose", "pairstats --verb-score triplet", "recall", "shoe-sim --backend lexical"),
    *("curves", "confusion", "audit"),
    *("diagnose --emit predictions", "match --only-predicted", f"compare --bootstrap 20 {OTHER}"),
)
"""Commands with --gt and predictions."""
Convert = Callable[..., Path]


def foreign(name: str) -> str:
    return ",".join(str(FOREIGN / part) for part in name.split(","))


def same(direct: Result, converted: Result) -> None:
    assert (direct.code, direct.out) == (converted.code, converted.out)
    assert direct.code == 0
    assert direct.out


@pytest.fixture
def converted(hoicli: Hoicli, tmp_path: Path) -> Convert:
    def convert(path: object, *options: object) -> Path:
        target = tmp_path / (Path(str(path)).name.split(".")[0] + ".jsonl")
        assert hoicli("convert", *options, *str(path).split(","), "-o", target).code == 0
        return target

    return convert


@pytest.mark.parametrize("name", DUMPS)
def test_predictions_in_every_format(hoicli: Hoicli, converted: Convert, name: str) -> None:
    options = ("--image-list", GT) if name == "detections_mat" else ()
    records = converted(foreign(name), *options)
    same(hoicli("eval", "--gt", GT, *options, foreign(name)), hoicli("eval", "--gt", GT, records))


@pytest.mark.parametrize("name", TRUTHS)
def test_ground_truth_in_every_format(hoicli: Hoicli, converted: Convert, name: str) -> None:
    records = converted(foreign(name))
    same(hoicli("eval", "--gt", foreign(name), PREDICTIONS), hoicli("eval", "--gt", records, PREDICTIONS))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_both(hoicli: Hoicli, converted: Convert, command: str) -> None:
    truth, dump = foreign("test_hico.json"), foreign("cdn.json")
    records = [converted(truth), converted(dump)]
    direct = hoicli(*command.split(), "--gt", truth, dump)
    same(direct, hoicli(*command.split(), "--gt", *records))


ALONE = (
    *("validate", "mask", "prompts", "mask --ratio low --rectangles"),
    f"corrupt --images {EIGHT / 'images'} --records-only --corruption jpeg",
)


@pytest.mark.parametrize("command", ALONE, ids=lambda command: command.split(" /")[0])
def test_every_command_with_one_kind(hoicli: Hoicli, converted: Convert, command: str) -> None:
    if command.startswith("corrupt"):
        pytest.importorskip("cv2")
    truth = foreign("test_hico.json")
    records, direct = converted(truth), hoicli(*command.split(), truth)
    found = hoicli(*command.split(), records)
    assert (direct.code, direct.out) == (found.code, found.out)
    assert direct.code == 0


def test_vcoco(hoicli: Hoicli, converted: Convert) -> None:
    folder = FIXTURES / "vcoco"
    truth = ",".join(str(folder / name) for name in ("vcoco_test.json", "instances.json", "test.ids"))
    for name in ("predictions.json", "foreign/vcoco_results.pkl"):
        records = [converted(truth), converted(folder / name)]
        for command in ("eval --dataset vcoco", "eval --protocol vcoco-s1", "pairstats --dataset vcoco"):
            direct = hoicli(*command.split(), "--gt", truth, folder / name)
            same(direct, hoicli(*command.split(), "--gt", *records))


def test_swig(hoicli: Hoicli, converted: Convert) -> None:
    truth, dump = FIXTURES / "swig/foreign/swig_dev_1000.json", FIXTURES / "swig/foreign/preds.pkl"
    options = ("--dataset", "swig", "--image-list", truth)
    records = [converted(truth), converted(dump, *options)]
    same(hoicli("eval", *options, "--gt", truth, dump), hoicli("eval", *options[:2], "--gt", *records))


def test_lines_and_a_dump_are_one_stream(hoicli: Hoicli, tmp_path: Path) -> None:
    first, *rest = PREDICTIONS.read_text().splitlines(keepends=True)
    whole = [json.loads(line) for line in (FOREIGN / "cdn.json").read_text().split("\n") if line.strip()]
    (tmp_path / "a.jsonl").write_text(first)
    content = json.loads((FOREIGN / "cdn.json").read_text())
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(content[1:]))
    assert len(whole) == 1
    assert len(rest) == len(content) - 1
    paths = (tmp_path / "a.jsonl", tmp_path / "b.pkl")
    same(hoicli("eval", "--gt", GT, *paths), hoicli("eval", "--gt", GT, foreign("cdn.json")))


def test_a_large_dump_is_shared(
    hoicli: Hoicli, converted: Convert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, truth = json.loads((FOREIGN / "cdn.json").read_text()), GT.read_bytes().splitlines()
    images = [orjson.loads(line) for line in truth]
    name_of = {record["image_id"]: record for record in images}
    many, annotated = [], []
    for copy in range(100):
        for item in content:
            number = int(item["filename"].split("_")[-1].split(".")[0]) + 100 * copy
            many.append({**item, "filename": f"HICO_test2015_{number:08d}.jpg"})
        for image_id, record in name_of.items():
            number = int(image_id.split("_")[-1]) + 100 * copy
            annotated.append(orjson.dumps({**record, "image_id": f"HICO_test2015_{number:08d}"}))
    dump, gt = tmp_path / "many.pkl.gz", tmp_path / "gt.jsonl"
    dump.write_bytes(gzip.compress(pickle.dumps(many)))
    gt.write_bytes(b"\n".join(annotated))
    records = converted(dump)
    alone = [hoicli(command, "--gt", gt, records) for command in ("eval", "diagnose")]
    share_out(monkeypatch, 10_000)
    for command, expected in zip(("eval", "diagnose"), alone, strict=True):
        same(hoicli(command, "--gt", gt, dump), expected)


def test_the_limit_of_a_line_is_not_of_a_dump(hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    dump, expected = foreign("cdn.json"), hoicli("eval", "--gt", GT, PREDICTIONS).out
    longest = max(map(len, PREDICTIONS.read_bytes().splitlines())) + 100
    assert Path(dump).stat().st_size > longest
    for module in ("io.streams", "converters.opening"):
        monkeypatch.setattr(f"hoicli.{module}.LONGEST_LINE", longest)
    assert hoicli("eval", "--gt", GT, dump).out == expected


def test_ground_truth_in_the_place_of_predictions_and_back(hoicli: Hoicli) -> None:
    result = hoicli("eval", "--gt", GT, foreign("test_hico.json"))
    assert "image HICO_test2015_00000001: hois[0].score: missing; every predicted interaction has" in result.err
    result = hoicli("eval", "--gt", foreign("cdn.json"), PREDICTIONS)
    assert "image HICO_test2015_00000001: hois[0].score: ground truth has no scores, so these are" in result.err


def test_a_dump_of_another_dataset(hoicli: Hoicli) -> None:
    for command in ("eval", "match", "diagnose", "pairstats", "recall", "validate", "curves", "confusion", "audit"):
        result = hoicli(command, "--gt", GT, FIXTURES / "vcoco/foreign/vcoco_results.pkl")
        assert (result.code, result.out == "") == (1, command != "match")
        assert "vcoco_results.pkl: is of vcoco (vcoco), not of hico: --dataset vcoco" in result.err


def test_an_image_in_a_dump_and_in_lines(hoicli: Hoicli) -> None:
    dump = foreign("cdn.json")
    result = hoicli("eval", "--gt", GT, dump, PREDICTIONS)
    assert f"image 'HICO_test2015_00000001' is in {dump} already; keep one line an image in all files" in result.err
    result = hoicli("eval", "--gt", GT, PREDICTIONS, dump)
    assert f"{dump}: image HICO_test2015_00000001: image_id: " in result.err


def test_an_output_may_not_be_a_part_of_an_input(hoicli: Hoicli, tmp_path: Path) -> None:
    one, other = (saved(tmp_path / name, (FOREIGN / "cdn.json").read_bytes()) for name in ("a.json", "b.json"))
    assert "is an input, too" in refusal(hoicli("eval", "--gt", GT, f"{one},{other}", "-o", other), 2)
