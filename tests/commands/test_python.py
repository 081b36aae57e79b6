"""Every call gives what its command prints, says nothing on its own, and raises errors of one line."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hoicli as api
from hoicli.cli import COMMANDS
from hoicli.errors import DataError, HoicliError, UsageError
from hoicli.interface.command import DECLARED, wrap_for_python
from hoicli.interface.results import Result
from hoicli.records.intake import policy_of
from tests.support.kernel import arrays
from tests.support.project import EIGHT, FIXTURES, GT, OTHER, PREDICTIONS, ROOT, Hoicli, complaint, records, saved

MATCHES = EIGHT / "expected/matches.jsonl"
FOREIGN, GRAPHS, ROBUST, CHOICE, SHOE, VCOCO = (
    FIXTURES / name for name in ("foreign", "graphs", "robust", "choice", "shoe", "vcoco")
)
RATINGS, SHEET = FIXTURES / "agree/ratings.jsonl", FIXTURES / "agree/ratings.csv"
SHOE_GT, SHOE_FOUND, SIM = SHOE / "gt.jsonl", SHOE / "predictions.jsonl", SHOE / "sim.jsonl"

CALLS: list[tuple[str, Callable[[], Any], tuple[object, ...]]] = [
    ("eval", lambda: api.evaluate(records(GT), records(PREDICTIONS), protocol="hico,upt", per_class=True),
     ("--gt", GT, "--protocol", "hico,upt", "--per-class", PREDICTIONS)),
    ("eval", lambda: api.evaluate(GT, PREDICTIONS, protocol=["hico"], bootstrap=50, seed=3, split="uo"),
     ("--gt", GT, "--protocol", "hico", "--bootstrap", 50, "--seed", 3, "--split", "uo", PREDICTIONS)),
    ("eval", lambda: api.evaluate(GT, PREDICTIONS, top_k=3, nms="0.5/0.5/1",
                                  ignore_no_interaction=True, tag={"model": "x"}),
     ("--gt", GT, "--top-k", 3, "--nms", "0.5/0.5/1",
      "--ignore-no-interaction", "--tag", "model=x", PREDICTIONS)),
    ("eval", lambda: api.evaluate(None, MATCHES), (MATCHES,)),
    ("eval", lambda: api.evaluate(records(GT), PREDICTIONS, by=["width", "height"], protocol="hico"),
     ("--gt", GT, "--by", "width,height", "--protocol", "hico", PREDICTIONS)),
    ("diagnose", lambda: api.diagnose(GT, records(PREDICTIONS), name="x", per_class=True, progressive="all"),
     ("--gt", GT, "--name", "x", "--per-class", "--progressive", "all", PREDICTIONS)),
    ("diagnose", lambda: api.diagnose(VCOCO / "ground_truth.jsonl", VCOCO / "predictions.jsonl", dataset="vcoco"),
     ("--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl", VCOCO / "predictions.jsonl")),
    ("compare", lambda: api.compare(GT, wrong([PREDICTIONS, records(OTHER), PREDICTIONS]), name=["x", "y", "z"],
                                    errors=False,
                                    bootstrap=20, per_class=True, protocol="upt", ignore_no_interaction=True,
                                    split="rf-uc"),
     ("--gt", GT, "--name", "x,y,z", "--no-errors", "--bootstrap", 20, "--per-class", "--protocol", "upt",
      "--ignore-no-interaction", "--split", "rf-uc", PREDICTIONS, OTHER, "COPY")),
    ("claim", lambda: api.claim(GT, records(PREDICTIONS), "76.19/100/74.36", nms=[0.5, 0.7], top=3),
     ("--gt", GT, "--nms", "0.5,0.7", "--top", 3, PREDICTIONS, "76.19/100/74.36")),
    ("shoe-sim", lambda: api.shoe_sim(SHOE_GT, SHOE_FOUND, backend="wordnet:wup"),
     ("--backend", "wordnet:wup", "--gt", SHOE_GT, SHOE_FOUND)),
    ("shoe-sim", lambda: api.shoe_sim(SHOE_GT, [SHOE_FOUND, SHOE_FOUND], backend="wordnet:path", against="dataset"),
     ("--backend", "wordnet:path", "--against", "dataset", "--gt", SHOE_GT, SHOE_FOUND)),
    ("shoe-sim", lambda: api.shoe_sim(predictions=SIM, merge="median"), ("--merge", "median", SIM)),
    ("shoe-sim", lambda: api.shoe_sim(pairs=records(SIM), backend="wordnet:path"),
     ("--backend", "wordnet:path", "--pairs", SIM)),
    ("shoe-eval", lambda: api.shoe_eval(records(SHOE_GT), records(SHOE_FOUND), records(SIM), delta=0.3, ap="trapezoid",
                                        against="image", combine="geometric", min_rank=0.5, tag={"a": "b"}),
     ("--gt", SHOE_GT, "--sim", SIM, "--delta", 0.3, "--ap", "trapezoid", "--combine", "geometric",
      "--against", "image", "--min-rank", 0.5, "--tag", "a=b", SHOE_FOUND)),
    ("agree", lambda: api.agree(SHEET, models="sim", group="differs", votes=True, bootstrap=40,
                                again=FIXTURES / "agree/ratings_again.csv"),
     ("--models", "sim", "--group", "differs", "--votes", "--bootstrap", 40, "--again",
      FIXTURES / "agree/ratings_again.csv", SHEET)),
    ("convert", lambda: api.convert([FOREIGN / "anno_bbox.mat", FOREIGN / "anno.mat"]),
     (FOREIGN / "anno_bbox.mat", FOREIGN / "anno.mat")),
    ("convert", lambda: api.convert(FOREIGN / "logits.npz", from_="logits", threshold=0.3, lambda_=2.8,
                                    image_list=GT),
     ("--from", "logits", "--threshold", 0.3, "--lambda", 2.8, "--image-list", GT, FOREIGN / "logits.npz")),
    ("convert", lambda: api.convert(GT, split="rf-uc", whole_pairs=True, resize="64x32"),
     ("--split", "rf-uc", "--whole-pairs", "--resize", "64x32", GT)),
    ("convert", lambda: api.convert(FIXTURES / "vlm/spoken.jsonl", to_vocabulary=True, scores="ones",
                                    synonyms=FIXTURES / "vlm/synonyms.csv"),
     ("--to-vocabulary", "--scores", "ones", "--synonyms", FIXTURES / "vlm/synonyms.csv",
      FIXTURES / "vlm/spoken.jsonl")),
    ("match", lambda: api.match(GT, records(PREDICTIONS), protocol="hico"),
     ("--gt", GT, "--protocol", "hico", PREDICTIONS)),
    ("validate", lambda: api.validate(GT, PREDICTIONS), ("--gt", GT, PREDICTIONS)),
    ("pairstats", lambda: api.pairstats(GT, PREDICTIONS, one_to_one=True), ("--gt", GT, "--one-to-one", PREDICTIONS)),
    ("recall", lambda: api.recall(GRAPHS / "gt.jsonl", GRAPHS / "predictions.jsonl", dataset=GRAPHS / "dataset.json"),
     ("--dataset", GRAPHS / "dataset.json", "--gt", GRAPHS / "gt.jsonl", GRAPHS / "predictions.jsonl")),
    ("curves", lambda: api.curves(GT, PREDICTIONS), ("--gt", GT, PREDICTIONS)),
    ("confusion", lambda: api.confusion(GT, PREDICTIONS), ("--gt", GT, PREDICTIONS)),
    ("audit", lambda: api.audit(records(GT), PREDICTIONS), ("--gt", GT, PREDICTIONS)),
    ("robust", lambda: api.robust(records(ROBUST / "rows.jsonl"), tag={"a": "b"}),
     ("--tag", "a=b", ROBUST / "rows.jsonl")),
    ("table", lambda: api.table(ROBUST / "rows.jsonl"), ("--format", "jsonl", ROBUST / "rows.jsonl")),
    ("mask", lambda: api.mask(records(GT), ratio="low", seed=3), ("--ratio", "low", "--seed", 3, GT)),
    ("curriculum", lambda: api.curriculum(records(ROBUST / "epochs.jsonl"), every=True),
     ("--every", ROBUST / "epochs.jsonl")),
    ("corrupt", lambda: api.corrupt_records(records(GT), records_only=True, corruption=["elastic"], severity=[2, 3]),
     ("--records-only", "--corruption", "elastic", "--severity", "2,3", GT)),
    ("vocab", lambda: api.vocab("vcoco", list_="verbs"), ("vcoco", "--list", "verbs")),
    ("prompts", lambda: api.prompts(records(GT)), (GT,)),
    ("data", lambda: api.data(), ()),
    ("vlm-eval", lambda: api.vlm_eval(CHOICE / "answers.jsonl", questions=CHOICE / "scene.json"),
     ("--questions", CHOICE / "scene.json", CHOICE / "answers.jsonl")),
]  # fmt: skip


WITHOUT_CALL = {"explore", "show", "doctor"}
"""The commands that give no rows or records: a page, drawings, facts of this machine."""


@pytest.mark.parametrize(("command", "call", "arguments"), CALLS)
def test_a_call_gives_the_rows_and_notes_of_its_command(
    hoicli: Hoicli, tmp_path: Path, command: str, call: Callable[[], Any], arguments: tuple[object, ...],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:  # fmt: skip
    """And prints nothing."""
    copy = saved(tmp_path / "copy.jsonl", PREDICTIONS.read_bytes())
    done = hoicli(command, *(copy if argument == "COPY" else argument for argument in arguments))
    assert done.code == 0, done.err
    found = call()
    rows = found.rows if isinstance(found, Result) else list(found)
    assert capfdbinary.readouterr() == (b"", b"")
    assert rows == [json.loads(line) for line in done.out.splitlines()] != []
    said = [line.removeprefix("hoicli: ") for line in done.err.splitlines() if "--" not in line]
    assert [note for note in found.notes if note in said] == said


def test_rows_of_which_lines_were_skipped_are_signed_by_the_call() -> None:
    """No command signs them itself, and none can forget it."""

    def skipping(on_error: str = "skip") -> Result:
        with policy_of(on_error).item():
            raise DataError("is bad")
        return Result([row], classes=lambda: [row])

    (row, *_) = api.evaluate(GT, PREDICTIONS, protocol="hico").rows
    result = wrap_for_python(skipping)()
    assert result.notes == ["skipped 1 line; the first: is bad"]
    for signed in (result.rows[0], result.classes()[0] if result.classes else {}):
        assert signed["signature"] == row["signature"].replace("|version", "|skipped:1|version")


def test_records_of_any_iterable_are_read_once_and_left_alone() -> None:
    found, truth = records(PREDICTIONS), records(GT)
    rows = api.evaluate(GT, PREDICTIONS, protocol="hico").rows
    assert api.evaluate(iter(truth), (record for record in found), protocol="hico").rows == rows
    assert found == records(PREDICTIONS)
    of_arrays = {record["image_id"]: arrays(record) for record in found}
    truth_arrays = {record["image_id"]: arrays(record, scored=False) for record in truth}
    assert api.evaluate(GT, of_arrays, protocol="hico").rows == rows
    assert (
        api.evaluate(truth_arrays, of_arrays, protocol="hico").to_dict()
        == api.evaluate(
            [{key: value for key, value in record.items() if key != "image_hois"} for record in truth],
            found,
            protocol="hico",
        ).to_dict()
    )


@pytest.mark.parametrize(
    ("library", "way"), [("pandas.core.frame", "to_dict"), ("polars.dataframe", "to_dicts"), ("pyarrow", "to_pylist")]
)
def test_a_table_of_another_library_is_its_rows(library: str, way: str) -> None:
    def rows(self: Any, *_: object) -> Any:
        return self.held

    def names(self: Any) -> Any:
        return iter(self.held[0])

    kind = type("Frame", (), {"__module__": library, "columns": (), way: rows, "__iter__": names})

    def frame(path: Path) -> Any:
        made = kind()
        made.held = records(path)
        return made

    assert api.evaluate(frame(GT), frame(PREDICTIONS)).rows == api.evaluate(GT, PREDICTIONS).rows
    both = api.compare(frame(GT), [frame(PREDICTIONS), frame(OTHER)], name=["x", "y"], bootstrap=10)
    assert both.rows == api.compare(GT, [PREDICTIONS, OTHER], name=["x", "y"], bootstrap=10).rows


def test_numbers_of_other_libraries_in_records() -> None:
    found = records(PREDICTIONS)
    for record in found:
        record["boxes"] = np.array(record["boxes"])
        for hoi in record["hois"]:
            hoi |= {"score": np.float64(hoi["score"]), "subject": np.int32(hoi["subject"])}
    assert api.evaluate(GT, found, protocol="hico").rows == api.evaluate(GT, PREDICTIONS, protocol="hico").rows


def test_a_result_in_every_shape() -> None:
    result = api.evaluate(GT, PREDICTIONS, protocol="hico")
    assert result.to_dict() == {f"hico/{row['metric']}/{row['subset']}": row["value"] for row in result.rows}
    assert result.to_dict()["hico/mAP/full"] == pytest.approx(1.944, abs=1e-3)  # percent
    assert result.per_class == api.evaluate(GT, PREDICTIONS, protocol="hico", per_class=True).per_class
    assert len(result.per_class) == 1200
    assert repr(result) == str(result)
    long = api.evaluate(GT, PREDICTIONS, protocol="hico", per_class=True)
    count = len(str(long).splitlines())
    assert repr(long).splitlines() == [*str(long).splitlines()[:30], f"... {count - 30} more lines; print() shows them"]
    for shown, text in ((result, "</table>"), (long, "more lines; print() shows them</p>")):
        html = shown._repr_html_()
        assert html.startswith("<table")
        assert text in html
        assert html.count("<tbody>") == html.count("</tbody>")
    assert api.evaluate(explain=True)._repr_html_().startswith("<pre>hico: ")
    with pytest.raises(UsageError, match=r"^per_class: no rows of classes were made; call again with per_class=True$"):
        _ = api.diagnose(GT, PREDICTIONS).per_class


def test_every_value_has_a_key_of_its_own() -> None:
    """What is about no single class or image is in the dictionary, once, under all commands."""
    for _, call, _ in CALLS:
        result = call()
        if not isinstance(result, Result):
            continue
        about = {"verb", "object", "role", "image_id"}
        wanted = [row for row in result.rows if "value" in row and not about & row.keys()]
        found = result.to_dict(drop_none=False)
        assert len(found) == len(wanted), found
        assert result.to_dict() == {key: value for key, value in found.items() if value is not None}


@pytest.mark.long
def test_every_result_can_be_pickled() -> None:
    for _, call, _ in CALLS:
        found = call()
        if not isinstance(found, Result):
            continue
        again = pickle.loads(pickle.dumps(found))
        assert type(again) is type(found)
        assert again.notes == found.notes
        assert again == found
        assert str(again) == str(found)
        if not isinstance(found, list) and found.classes:
            assert again.per_class == found.per_class
            assert pickle.loads(pickle.dumps(again)).per_class == found.per_class


def test_numbers_of_numpy_are_numbers() -> None:
    def rows(**options: Any) -> Any:
        return api.evaluate(GT, PREDICTIONS, protocol="hico", **options).rows

    assert rows(iou=np.float32(0.7)) == rows(iou=0.7)
    assert rows(iou=np.array([0.5, 0.75])) == rows(iou=[np.float16(0.5), 0.75]) == rows(iou="0.5,0.75")
    assert rows(nms=np.float32(0.7), top_k=np.int64(3)) == rows(nms=0.7, top_k=3)
    assert rows(bootstrap=np.uint8(10), seed=np.array(1)) == rows(bootstrap=10, seed=1)
    assert rows(per_class=np.bool_(True)) == rows(per_class=True)
    assert api.Evaluator(GT, wrong(np.array(["hico"])), nms=wrong(np.float32(0.7)))._filters.nms == (0.7, 1, 0.5)


def test_a_vocabulary_is_names_and_a_mask() -> None:
    labels = pickle.loads(pickle.dumps(api.vocab("hico")))
    assert labels.valid.shape == (117, 80) == (len(labels.verbs), len(labels.objects))
    pairs = {(labels.verbs[verb], labels.objects[number]) for verb, number in np.argwhere(labels.valid)}
    assert pairs == {(row["verb"], row["object"]) for row in labels.rows}
    with pytest.raises(UsageError, match=r"^valid: vcoco has a class for each verb and role, whatever the object$"):
        _ = api.vocab("vcoco").valid


def test_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    result = api.evaluate(GT, PREDICTIONS, protocol="hico", tag={"epoch": "3"})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"^to_frame needs pandas: pip install pandas$"):
        result.to_frame()
    monkeypatch.undo()
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    assert list(frame["value"]) == [row["value"] for row in result.rows]
    assert set(frame["epoch"]) == {"3"}


def wrong(given: object) -> Any:
    return given


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: api.evaluate("no.jsonl", PREDICTIONS), DataError, "no.jsonl: no such file; check the path"),
    (lambda: api.evaluate(GT, wrong(3)), UsageError, "predictions: is int; give a path, records (dicts), or"),
    (lambda: api.evaluate(GT, []), DataError, "predictions: no predictions in it"),
    (lambda: api.evaluate(GT, wrong([3])), DataError,
     "predictions[0]: int, not a dict; give a list of dicts, each as"),
    (lambda: api.evaluate(GT, records(PREDICTIONS)[0]), DataError,
     "predictions['image_id']: str, not a dict of arrays (boxes, labels, ...); give records as a list"),
    (lambda: api.evaluate(GT, [{"image_id": "a"}]), DataError,
     "predictions[0]: boxes: missing; every image line has"),
    (lambda: api.evaluate(GT, records(PREDICTIONS)[:1] * 2), DataError,
     "predictions[1]: image_id: image 'HICO_test2015_00000001' is at predictions[0] already; keep"),
    (lambda: api.evaluate(records(PREDICTIONS), PREDICTIONS), DataError, "gt[0]: hois[0].score: ground truth"),
    (lambda: api.evaluate(GT, [{"x": float("nan")}]), DataError, "predictions[0]: x: nan: numbers must be finite"),
    (lambda: api.evaluate(GT, [{"x": object()}]), DataError, "predictions[0]: cannot be written as JSON ("),
    (lambda: api.evaluate(GT, PREDICTIONS, protocol="hicoo"), UsageError, "protocol: unknown 'hicoo'; choose from"),
    (lambda: api.evaluate(GT, PREDICTIONS, top_k=0), UsageError, "top_k=0: give a whole number of at least 1"),
    (lambda: api.evaluate(GT, PREDICTIONS, top_k=wrong("3")), UsageError, "top_k='3': give a whole number or None"),
    (lambda: api.evaluate(GT, PREDICTIONS, nms=wrong("x")), UsageError, "nms='x': give a number, or three"),
    (lambda: api.evaluate(GT, PREDICTIONS, protocol=wrong(3)), UsageError, "protocol=3: give a name, or a list of"),
    (lambda: api.evaluate(GT, PREDICTIONS, iou=wrong(object)), UsageError, "iou=<class 'object'>: give a number"),
    (lambda: api.evaluate(GT, PREDICTIONS, tag={"value": "x"}), UsageError, "tag='value': rows have a value of"),
    (lambda: api.evaluate(GT, PREDICTIONS, tag=wrong(1.5)), UsageError, "tag: 1.5 is no tag; give key=value"),
    (lambda: api.evaluate(GT, wrong(np.zeros((2, 3)))), DataError, "predictions[0]: ndarray, not a dict; give a"),
    (lambda: api.audit(GT, votes=3), UsageError, "votes and sure are about models: give predictions, too"),
    (lambda: list(api.mask([{}], on_error="skip")), DataError, "nothing is left: skipped 1 line; the first: "),
    (lambda: api.evaluate(GT, PREDICTIONS, **wrong({"slices": "people"})), UsageError,
     "hoicli.evaluate: no argument 'slices'; did you mean 'slice'?"),
    (lambda: api.Evaluator(GT, **wrong({"protocols": "hico"})), UsageError,
     "hoicli.Evaluator: no argument 'protocols'; did you mean 'protocol'?"),
    (lambda: api.compare(GT, PREDICTIONS), UsageError, "compare needs two or more streams of"),
    (lambda: api.shoe_sim(SHOE_GT, SHOE_FOUND, backend="wordnet:x"), UsageError, "backend='wordnet:x': choose"),
    (lambda: api.evaluate("a\0b", PREDICTIONS), UsageError, "'a\\x00b': no path has a NUL character"),
    (lambda: api.evaluate(GT, "-"), DataError, "./-: no such file"),
    (lambda: api.diagnose(GT, PREDICTIONS, as_released=True, independent=True), UsageError, "as_released: the"),
    (lambda: api.shoe_sim(SHOE_GT, SHOE_FOUND), UsageError, "give a backend (wordnet:wup, lexical, llm"),
    (lambda: api.agree([{"item": "a", "rater": "b", "rating": 9}]), DataError, "ratings[0]: rating: 9 is not from"),
    (lambda: list(api.convert(RATINGS)), DataError, f"{RATINGS}: "),
    (lambda: api.convert(PREDICTIONS, coords="1000", from_="cdn"), UsageError, "coords='1000' is not for cdn"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(call: Callable[[], Any], kind: type[HoicliError], message: str) -> None:
    said = complaint(kind, call)
    assert said.startswith(message)
    assert "\n" not in said
    assert "--" not in re.sub("`hoicli [^`]+`", "", said)


def test_convert_writes_what_the_command_writes(hoicli: Hoicli, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    notes: Any = api.convert(PREDICTIONS, output=ours, to="cdn-json")
    done = hoicli("convert", PREDICTIONS, "--to", "cdn-json", "-o", theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    assert notes == [line.removeprefix("hoicli: ") for line in done.err.splitlines()]
    api.convert(records(PREDICTIONS), output=ours, to="cdn-json")
    assert ours.read_bytes() == theirs.read_bytes()
    api.convert(FOREIGN / "cdn.json", output=tmp_path / "cdn.jsonl.gz")
    assert list(api.convert(tmp_path / "cdn.jsonl.gz")) == list(api.convert(FOREIGN / "cdn.json"))


def test_records_come_back_plain_and_checked() -> None:
    found = records(PREDICTIONS)
    given = [record | {"boxes": np.array(record["boxes"])} for record in found]
    assert list(api.convert(given)) == found
    of_arrays = api.convert({record["image_id"]: arrays(record) for record in found})
    assert [record["hois"] for record in of_arrays] == [record["hois"] for record in found]
    found[2]["hois"][0]["subject"] = 9
    with pytest.raises(DataError, match=r"^source(:3|\[2\]|: image \S+): hois\[0\]\.subject: index 9"):
        list(api.convert(found))


@pytest.mark.parametrize(("call", "message"), [
    (lambda folder: api.convert(PREDICTIONS, output=folder / "no" / "x"), "output "),
    (lambda folder: api.convert(PREDICTIONS, output=folder / "x", to="ican"), "to='ican': choose from coco-rel"),
    (lambda _: api.convert(PREDICTIONS, to="cdn-json"), "to='cdn-json': name the file with output"),
    (lambda _: api.convert(PREDICTIONS, output=PREDICTIONS), f"output {PREDICTIONS}: is an input, too"),
])  # fmt: skip
def test_outputs_that_cannot_be(tmp_path: Path, call: Callable[[Path], Any], message: str) -> None:
    before = PREDICTIONS.read_bytes()
    assert complaint(UsageError, call, tmp_path).startswith(message)
    assert PREDICTIONS.read_bytes() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_pixels_are_the_command_s(hoicli: Hoicli, tmp_path: Path, mode: str) -> None:
    pytest.importorskip("cv2")
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = np.asarray(image.fromarray(rng.integers(0, 256, (40, 60, 4), dtype=np.uint8)).convert(mode))
    before = pixels.copy()
    image.fromarray(pixels).save(tmp_path / "a.png")
    boxes = [[5, 6, 40, 30], [0.5, 0, 60, 40]]
    (tmp_path / "gt.jsonl").write_text(json.dumps({"image_id": "a", "file_name": "a.png", "boxes": boxes}))
    done = hoicli("corrupt", "--images", tmp_path, "--save-images", tmp_path / "out", "--severity", "2,5", "--seed", 7,
                  "--jobs", 1, tmp_path / "gt.jsonl")  # fmt: skip
    written = [json.loads(line) for line in done.out.splitlines()]
    assert len(written) == 40
    for record in written:
        shown = np.asarray(image.open(tmp_path / "out" / record["file_name"]))
        name, severity = record["corruption"], record["severity"]
        ours = api.corrupt(pixels, name, severity, image_id="a", seed=7)
        assert np.array_equal(shown, ours), name
        again, moved = api.corrupt(pixels, name, severity, image_id="a", seed=7, boxes=np.array(boxes))
        assert np.array_equal(again, ours)
        assert moved.tolist() == record["boxes"]
        assert ours.shape == ((40, 60, 3) if mode == "L" and name == "rainbow" else pixels.shape)
        if mode == "L" and name != "rainbow":
            deep = api.corrupt(pixels[:, :, None], name, severity, image_id="a", seed=7)
            assert np.array_equal(ours[:, :, None], deep)
    assert np.array_equal(pixels, before)


def test_without_an_id_each_image_has_a_random_part_of_its_own() -> None:
    pytest.importorskip("cv2")
    grey = [np.full((60, 80, 3), value, dtype=np.uint8) for value in (100, 101, 100)]
    hidden = [(api.corrupt(image, "occlusion", 5) == 0).all(axis=2) for image in grey]
    assert not np.array_equal(hidden[0], hidden[1])
    assert np.array_equal(hidden[0], hidden[2])


WORKERS = """
import hashlib, multiprocessing, sys
import numpy as np
import hoicli

def work(name):
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    pixels, boxes = hoicli.corrupt(image, name, 3, seed=1, boxes=[[8, 8, 40, 30]])
    return pixels.tobytes() + boxes.tobytes()

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(hashlib.sha256(b"".join(pool.map(work, list(hoicli.CORRUPTIONS)))).hexdigest())
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_workers_of_a_data_loader_make_the_same_pixels(tmp_path: Path, method: str) -> None:
    """Whatever starts them, and whatever their hash seed."""
    pytest.importorskip("cv2")
    (tmp_path / "work.py").write_text(WORKERS)
    found = set()
    for seed in ("0", "7"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [sys.executable, str(tmp_path / "work.py"), method]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    image, whole = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8), hashlib.sha256()
    for name in api.CORRUPTIONS:
        pixels, boxes = api.corrupt(image, name, 3, seed=1, boxes=[[8, 8, 40, 30]])
        whole.update(pixels.tobytes() + boxes.tobytes())
    assert found == {f"{whole.hexdigest()}\n"}


@pytest.mark.parametrize(("arguments", "message"), [
    ((np.zeros((4, 4, 3)), "jpeg", 1),
     "image: is float64 (4, 4, 3), wants uint8 (height, width, 3) in RGB, with alpha or grey"),
    ((np.zeros((3, 4, 5), dtype=np.uint8), "jpeg", 1), "image: is uint8 (3, 4, 5), wants uint8"),
    ((np.zeros((0, 4, 3), dtype=np.uint8), "jpeg", 1), "image: has no pixels: (0, 4, 3)"),
    ((np.zeros((4, 4, 3), dtype=np.uint8), "jpg", 1), "name='jpg': no corruption; did you mean 'jpeg'?"),
    ((np.zeros((4, 4, 3), dtype=np.uint8), "jpeg", 6), "severity=6: give a whole number from 1 to 5"),
    (("x.jpg", "jpeg", 1), "image: is <U5 (), wants uint8"),
])  # fmt: skip
def test_images_that_cannot_be_corrupted(arguments: tuple[Any, ...], message: str) -> None:
    pytest.importorskip("cv2")
    assert complaint(HoicliError, api.corrupt, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("boxes", "message"),
    [([[1, 2, 3]], "boxes: has shape (1, 3), wants (n, 4)"), ([[np.nan] * 4], "boxes: numbers must be finite")],
)
def test_boxes_that_cannot_be_moved(boxes: Any, message: str) -> None:
    pytest.importorskip("cv2")
    assert complaint(DataError, api.corrupt, np.zeros((4, 4, 3), dtype=np.uint8), "jpeg", 1, boxes=boxes) == message


def test_the_recipe_of_an_image(hoicli: Hoicli, tmp_path: Path) -> None:
    import PIL.Image

    pixels = np.random.default_rng(3).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    done = hoicli("corrupt", "--images", tmp_path, "--save-images", tmp_path / "out", "--recipe", "imagenet-c",
                  "--corruption", "pixelate", "--severity", 3, tmp_path / "a.png")  # fmt: skip
    assert done.code == 0, done.err
    with PIL.Image.open(tmp_path / "out/pixelate/3/a.png") as written:
        shown = np.asarray(written)
        assert np.array_equal(api.corrupt(pixels, "pixelate", 3, image_id="a", recipe="imagenet-c"), shown)
    with pytest.raises(UsageError, match="recipe imagenet-c has no constants for it, only for motion_blur"):
        api.corrupt(pixels, "vignette", 1, recipe="imagenet-c")
    with pytest.raises(UsageError, match="recipe='x': there is no such recipe; choose hoicli-1 or imagenet-c"):
        api.corrupt(pixels, "jpeg", 1, recipe="x")


def test_every_command_is_a_name() -> None:
    names = {"eval": "evaluate", "corrupt": "corrupt_records"}
    names_in_package: list[str] = vars(api)["__all__"]
    assert set(names_in_package) == {names.get(name, name.replace("-", "_")) for name in COMMANDS} | {
        "corrupt", "corrupt_grid", "Evaluator", "triplets", "PROTOCOLS", "CORRUPTIONS", "DATASETS",
    }  # fmt: skip
    assert {name for name in dir(api) if not name.startswith("__")} == {*names_in_package, "errors"}
    assert api.errors.DataError is DataError
    assert {"hico", "upt"} <= api.PROTOCOLS.keys()
    assert {"elastic", "jpeg"} <= api.CORRUPTIONS.keys()
    assert {"hico", "vcoco"} <= api.DATASETS.keys()
    text = pydoc.plain(pydoc.render_doc(api))
    functions = re.findall(r"^    (\w+)\(", text[text.index("\nFUNCTIONS") :], re.MULTILINE)
    assert {*functions} >= {name for name in names_in_package if name.islower()}
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = api.evalute  # type: ignore[attr-defined]


def test_help_has_every_argument() -> None:
    """Those that commands share, too, with the text of the command's own --help."""
    for command in DECLARED.values():
        function = getattr(api, command.function.__name__)
        for one in command.parameters:
            assert f"\n    {one.name}: {one.text.split()[0]}" in function.__doc__, (command, one.name)


def test_the_import_loads_nothing() -> None:
    code = "import hoicli, sys; print({'numpy', 'scipy', 'typer', 'orjson', 're'} & sys.modules.keys() or 'nothing')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "nothing\n"


USER = """
import numpy as np

import hoicli
from hoicli.errors import DataError


def score(gt: str, preds: list[dict[str, object]]) -> float | None:
    evaluator = hoicli.Evaluator(gt, protocol=["hico"], dataset="hico")
    evaluator.update("a", boxes=np.zeros((1, 4)), labels=["dog"], subject=[0], object=[0], verb=[0], score=[1.0])
    other = hoicli.Evaluator.from_state(evaluator.state(), gt)
    np.savez("state.npz", **other.merge(evaluator.state()).state())
    try:
        return hoicli.evaluate(gt, preds, protocol="hico").to_dict()["hico/mAP/full"]
    except DataError as error:
        print(error.place)
    reveal_type(next(hoicli.convert(gt)))
    reveal_type(evaluator.compute().rows)
    hoicli.evaluate(gt, preds, protokoll="hico")
    return None
"""


@pytest.mark.long
def test_a_strict_type_checker_reads_the_signatures(tmp_path: Path) -> None:
    """In a user's own file, of the package as it is installed."""
    (tmp_path / "user.py").write_text(USER)
    strict = ["--strict", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *strict, "user.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    lines = [re.sub(r"^user\.py:\d+: ", "", line) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith(("note: Revealed", "error"))] == [
        'note: Revealed type is "dict[str, Any]"',
        'note: Revealed type is "list[dict[str, Any]]"',
        'error: Unexpected keyword argument "protokoll" for "evaluate"; did you mean "protocol"?  [call-arg]',
    ], done.stdout
    assert lines[-1].startswith("Found 1 error in 1 file")
