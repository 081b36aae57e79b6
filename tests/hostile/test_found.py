"""What the campaigns found, each as a file of its own: what crashed, hung, lied or said too much once."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hostile.readers import CHOICE, CORPUS, FOREIGN, GT, PREDICTIONS, VCOCO
from tests.support.project import Hoicli, changed, dumped, parsed, refusal, saved, written


@pytest.mark.parametrize(("change", "message"), [
    (lambda c: c.pop("verbs"), "has no 'verbs'; is this really the format?"),
    (lambda c: c.update(size=7), "is not shaped as expected (object of type 'int' has no len()); --from NAME"),
    (lambda c: c.update(objects=[["x"]]), "is not shaped as expected ("),
    (lambda c: c.update(verbs=None), "is not shaped as expected ("),
])  # fmt: skip
def test_pocket_in_another_shape(hoicli: Hoicli, tmp_path: Path, change: Any, message: str) -> None:
    path = changed(FOREIGN / "instances_test2015.json", tmp_path / "p.json", change)
    assert refusal(hoicli("convert", "--from", "pocket", path)).startswith(f"{path}: {message}")


def test_vsrl_with_an_infinite_id(hoicli: Hoicli, tmp_path: Path) -> None:
    text = (VCOCO / "vcoco_test.json").read_text()
    path = saved(tmp_path / "vcoco_test.json", text.replace('"image_id": [11', '"image_id": [1e999', 1))
    result = hoicli("convert", path, VCOCO / "instances.json")
    assert refusal(result) == f"{path}: [0].image_id: inf is no whole number; ids and indices are"


def test_records_whose_hois_are_none(hoicli: Hoicli, tmp_path: Path) -> None:
    record = json.loads(PREDICTIONS.read_text().splitlines()[0])
    path = written(tmp_path / "p.jsonl", [{**record, "hois": 7}])
    assert refusal(hoicli("convert", path)) == f"{path}:1: hois: a number; it must be an array"
    result = hoicli("convert", "--image-list", path, FOREIGN / "preds.pkl")  # a list of images is all it is here
    assert (result.code, "is not among the 1 known ones" in result.err) == (1, True)


def test_integers_of_hundreds_of_digits_in_a_pickle(hoicli: Hoicli, tmp_path: Path) -> None:
    """They are beyond any double, and Python refuses to print those of thousands."""
    for number in (10**400, 10**5000):
        content = pickle.loads((FOREIGN / "preds.pkl").read_bytes())
        content["scores"][0] = [number]
        path = saved(tmp_path / "p.pkl", pickle.dumps(content))
        refusal(hoicli("convert", "--from", "inpcc", "--image-list", GT, path))
    content = json.loads((FOREIGN / "test_hico.json").read_text())
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content).replace(json.dumps(content[0]["annotations"][0]["bbox"][0]), "1" * 400, 1))
    refusal(hoicli("convert", "--from", "hoia", path))


@pytest.mark.parametrize("word", ["x" * 200_000, "a." * 100_000, "a " * 100_000, "-" * 100_000])
def test_a_literal_of_one_endless_word(hoicli: Hoicli, tmp_path: Path, word: str) -> None:
    """It took the square of its length: hours."""
    text = json.loads((FOREIGN / "results.json").read_text())
    path = dumped(tmp_path / "p.json", text.replace("np.float64(466.7)", word, 1))
    assert "[0]: not readable (" in refusal(hoicli("convert", "--from", "cdn", path))


def test_a_table_line_counts_wholly_or_not_at_all(hoicli: Hoicli, tmp_path: Path) -> None:
    """A dropped line left its pair behind without a rating, and the ratings that came before the one in dispute."""
    pair = {"pos": "v", "a": "hold.v.02", "b": "ride.v.01"}
    other = {"pos": "v", "a": "hold.v.02", "b": "walk.v.01"}
    good: list[dict[str, Any]] = [{**pair, "scores": {"x": 4}}, {**other, "scores": {"x": 0}}]
    bad: list[dict[str, Any]] = [
        {**pair, "scores": {"y": 0, "x": 1}},
        {"pos": "n", "a": "dog.n.01", "b": "cat.n.01", "similarity": 7},
        {"pos": "n", "a": "cup.n.01", "b": "cat.n.01", "scores": {}},
    ]
    clean = written(tmp_path / "clean.jsonl", good)
    mixed = written(tmp_path / "mixed.jsonl", good + bad)
    result = hoicli("shoe-sim", "--merge", "mean", "--on-error", "skip", mixed)
    assert (result.code, result.out) == (0, hoicli("shoe-sim", "--merge", "mean", clean).out)
    assert result.err.startswith("hoicli: skipped 3 lines; ")


def match_lines() -> list[dict[str, Any]]:
    return parsed((CORPUS / "matches_diag.jsonl").read_text())


@pytest.mark.parametrize("index", [2**63, 2**31, 10**9])
def test_a_match_record_with_an_index_beyond_reason(hoicli: Hoicli, tmp_path: Path, index: int) -> None:
    for key, place in (("gt", "gt[0].subject"), ("box_matches", "box_matches")):
        lines = match_lines()
        if key == "gt":
            lines[0]["gt"][0]["subject"] = index
        else:
            lines[0]["box_matches"][0] = [index]
        path = written(tmp_path / "m.jsonl", lines)
        assert refusal(hoicli("diagnose", path)).startswith(f"{path}:1: {place}: ")


def count_no_class(line: dict[str, Any], item: dict[str, Any]) -> None:
    """eval left it out in silence, diagnose fell over it."""
    item |= {"verb": "fly", "label": "toilet"}


def lose_ground_truth(line: dict[str, Any], item: dict[str, Any]) -> None:
    """A recall beyond 1 made an mAP out of a damaged stream, and nobody said anything."""
    del line["gt"][item["gt"]]


@pytest.mark.parametrize(("damage", "said"), [
    (count_no_class, "fly toilet is no hico interaction, and cannot count; match the predictions again"),
    (lose_ground_truth, "a true positive, but the line has no ground truth left for it; "),
])  # fmt: skip
@pytest.mark.parametrize("command", ["eval", "diagnose", "validate"])
def test_a_match_record_with_a_damaged_true_positive(
    hoicli: Hoicli, tmp_path: Path, command: str, damage: Any, said: str
) -> None:
    lines = match_lines()
    damage(lines[0], next(item for item in lines[0]["predictions"] if item["outcome"] == "true_positive"))
    result = hoicli(command, written(tmp_path / "m.jsonl", lines))
    assert result.code == 1
    assert said in result.out + result.err


def test_a_match_record_whose_settings_are_none(hoicli: Hoicli, tmp_path: Path) -> None:
    for settings in ("clean", ["x"], {"topk": 3}):
        lines = [{**line, "settings": settings} for line in match_lines()]
        path = written(tmp_path / "m.jsonl", lines)
        for command in ("eval", "diagnose"):
            said = refusal(hoicli(command, path))
            assert said.startswith(f"{path}:1: settings: missing, or not as hoicli match writes it")
    for unsigned in ({"topk": "5|gt:01234567"}, {"zz": "1"}):
        lines = [{**line, "settings": unsigned} for line in match_lines()]
        path = written(tmp_path / "m.jsonl", lines)
        assert refusal(hoicli("eval", path)).startswith(f"{path}:1: settings: ")


def test_boxes_whose_area_no_double_holds(hoicli: Hoicli, tmp_path: Path) -> None:
    """They overlap nothing, without a word of NumPy's."""
    (tmp_path / "p.jsonl").write_text(PREDICTIONS.read_text().replace("[[466.7, 49.1,", "[[-1e308, -1e308,"))
    result = hoicli("eval", "--gt", GT, tmp_path / "p.jsonl")
    assert result.code == 0
    assert "Warning" not in result.err


def test_boxes_that_no_single_holds(hoicli: Hoicli, tmp_path: Path) -> None:
    """They are compared in single precision, without a word of NumPy's."""
    (tmp_path / "gt.jsonl").write_text(GT.read_text().replace("[470, 60,", "[-1e39, -1e39,"))
    (tmp_path / "p.jsonl").write_text(PREDICTIONS.read_text().replace("[[466.7, 49.1,", "[[-1e39, -1e39,"))
    (tmp_path / "q.json").write_text((CHOICE / "pair.json").read_text().replace("319", "-1e39"))
    assert "Warning" not in hoicli("validate", "--gt", tmp_path / "gt.jsonl", tmp_path / "p.jsonl").err
    result = hoicli("vlm-eval", "--questions", tmp_path / "q.json", PREDICTIONS)
    assert (result.code, "Warning" in result.err) == (0, False)


def test_half_a_character_in_an_archive_is_a_bad_item(hoicli: Hoicli, tmp_path: Path) -> None:
    with np.load(FOREIGN / "logits.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}
    arrays["image_ids"] = arrays["image_ids"].astype("U40")
    arrays["image_ids"][2] = "\ud800"
    path = tmp_path / "l.npz"
    np.savez(path, **arrays)
    words = ("convert", "--from", "logits", "--image-list", GT, path, "-o", tmp_path / "o.jsonl")
    said = "image \\ud800: cannot be written as JSON (str is not valid UTF-8: surrogates not allowed)"
    assert refusal(hoicli(*words)).startswith(f"{path}: {said}")
    result = hoicli(*words, "--on-error", "skip")
    assert result.code == 0
    assert f"skipped 1 item; the first: {path}: {said}" in result.err
    assert f": {(tmp_path / 'o.jsonl').read_bytes().count(10)} images, " in result.err


def test_half_a_surrogate_pair_is_no_text(hoicli: Hoicli, tmp_path: Path) -> None:
    """Python's JSON reads it, and no file can hold it: the digest of a file of questions met it first."""
    path = saved(tmp_path / "scene.json", '{"a.jpg": {"question_1": {"q\\ud800": NaN}}}')
    said = refusal(hoicli("vlm-eval", "--questions", path, PREDICTIONS))
    assert f"{path}:1: not JSON (no low surrogate in string" in said


def test_a_name_of_thousands_of_digits_and_a_size_with_a_fraction(hoicli: Hoicli, tmp_path: Path) -> None:
    """The id stays a text, as no number is so long; the size is rounded."""
    record = {"image_id": "1" * 5000, "file_name": "a.jpg", "width": 60.4, "height": 0.3, "boxes": [[1, 0, 9, 1]]}
    path = written(tmp_path / "p.jsonl", [record | {"labels": ["person"], "hois": []}])
    assert hoicli("convert", "--to", "vcoco-pkl", path, "-o", tmp_path / "p.pkl").code == 0
    (made,) = parsed(hoicli("corrupt", "--records-only", "--corruption", "elastic", "--severity", 3, path).out)
    assert (made["width"], made["height"]) == (60.4, 0.3)
