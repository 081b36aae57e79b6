"""Cells evaluated from predictions, and intervals over images: against data sets written out, and what cancels."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.resampling.draws import Resampling, blocks
from hoicli.robustness.indices import cri, mri
from tests.support.project import FIXTURES, Hoicli

Row = dict[str, Any]
CELLS = [("clean", 0), *((name, level) for name in ("jpeg", "moire") for level in (1, 2))]
GT = [json.loads(line) for line in (FIXTURES / "gt.jsonl").read_text().splitlines()]
PREDICTIONS = [json.loads(line) for line in (FIXTURES / "predictions.jsonl").read_text().splitlines()]
CHOICE = ("--protocol", "qpic", "--severity", "1,2", "--format", "jsonl")


def predictions(model: str, corruption: str, severity: int) -> list[Row]:
    """What is left of the stand-in's triplets, fewer with every severity, others for every model."""
    chance = random.Random(f"{model} {corruption} {severity}")
    kept = (0.95 if model == "a" else 0.8) - 0.2 * severity
    return [{**record, "hois": [hoi for hoi in record["hois"] if chance.random() < kept]} for record in PREDICTIONS]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def cells_of(folder: Path, *models: str) -> list[Row]:
    """The lines of a benchmark, whose files are written beside."""
    lines = []
    write(folder / "gt.jsonl", GT)
    for model in models:
        for corruption, severity in CELLS:
            name = f"{model}-{corruption}-{severity}.jsonl"
            write(folder / name, predictions(model, corruption, severity))
            tags = {"severity": severity, "recipe": "a recipe"} if severity else {}
            lines.append({"model": model, "corruption": corruption, **tags, "gt": "gt.jsonl", "predictions": name})
    return lines


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder with the cells of two models, which cells.jsonl lists."""
    write(tmp_path / "cells.jsonl", cells_of(tmp_path, "a", "b"))
    return tmp_path


def results(hoicli: Hoicli, *arguments: object) -> list[Row]:
    result = hoicli("robust", *CHOICE, *arguments)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def one(rows: list[Row], metric: str, model: str, **part: object) -> Row:
    (found,) = (
        row for row in rows
        if row["metric"] == metric and row["tags"]["model"] == model
        and {key: row[key] for key in ("corruption", "family", "severity") if key in row} == part
    )  # fmt: skip
    return found


def test_cells_give_what_their_rows_give(hoicli: Hoicli, two: Path) -> None:
    """From another folder, compressed, as match records: the same bytes as eval's rows give."""
    rows = []
    for line in (two / "cells.jsonl").read_text().splitlines():
        cell = json.loads(line)
        tags = [f"--tag={key}={cell[key]}" for key in ("model", "corruption", "severity", "recipe") if key in cell]
        result = hoicli("eval", "--protocol", "qpic", "--gt", two / cell["gt"], *tags, two / cell["predictions"])
        assert result.code == 0, result.err
        rows += [json.loads(text) for text in result.out.splitlines()]
    expected = results(hoicli, write(two / "rows.jsonl", rows))
    cells = [json.loads(line) for line in (two / "cells.jsonl").read_text().splitlines()]
    assert results(hoicli, two / "cells.jsonl") == expected
    # one model as rows, the other as cells
    half = write(two / "half.jsonl", [row for row in rows if row["tags"]["model"] == "a"])
    assert results(hoicli, half, write(two / "b.jsonl", cells[len(CELLS) :])) == expected
    for cell in cells:
        matched = hoicli("match", "--protocol", "qpic", "--gt", two / cell["gt"], two / cell["predictions"])
        (two / f"m-{cell['predictions']}").write_text(matched.out)
        del cell["gt"]
        cell["predictions"] = f"m-{cell['predictions']}"
    assert results(hoicli, write(two / "matched.jsonl", cells)) == expected


def test_a_round_is_the_benchmark_on_a_test_set_written_out(hoicli: Hoicli, two: Path) -> None:
    """Each cell with its images as often as they were drawn, evaluated by eval: the rounds are those, the intervals are
    of them."""
    rounds, seed = 4, 5
    order = sorted(record["image_id"] for record in GT)
    weights = np.concatenate([block.resamples(len(order)) for block in blocks(Resampling(rounds, seed))], axis=1)

    def drawn(records: list[Row], at: int) -> list[Row]:
        return [
            {**record, "image_id": f"{record['image_id']}~{copy}"}
            for record in records
            for copy in range(weights[order.index(record["image_id"]), at])
        ]

    def index(model: str, at: int) -> tuple[float, float, float]:
        values: dict[str, list[float]] = {}
        for corruption, severity in CELLS:
            truth = write(two / "drawn-gt.jsonl", drawn(GT, at))
            found = write(two / "drawn.jsonl", drawn(predictions(model, corruption, severity), at))
            result = hoicli("eval", "--protocol", "qpic", "--gt", truth, found)
            assert result.code == 0, result.err
            row = json.loads(result.out.splitlines()[0])
            assert (row["metric"], row["subset"]) == ("mAP", "full")
            values.setdefault(corruption, []).append(row["value"])
        (clean,) = values.pop("clean")
        return clean, mri(values), cri(values, clean)

    expected = {model: np.array([index(model, at) for at in range(rounds)]).T for model in "ab"}
    rows = results(hoicli, "--bootstrap", rounds, "--seed", seed, two / "cells.jsonl")
    for at, metric in enumerate(("clean", "mri", "cri")):
        sides = [one(rows, metric, model) for model in "ab"]
        for row in sides:
            values = expected[row["tags"]["model"]][at]
            ends = row["value"] + np.quantile(values, [0.025, 0.975]) - values.mean()
            assert (row["ci_low"], row["ci_high"]) == pytest.approx(np.clip(ends, 0, 100), abs=1e-9)
            assert row["signature"].startswith(
                f"protocol:qpic|data:hico|gt:5e0e30fe|boot:{rounds}|seed:{seed}|of:mAP/full|"
            )
        change = expected["b"][at] - expected["a"][at]
        value = sides[1]["value"] - sides[0]["value"]
        found = one(rows, f"{metric}_diff", "b")
        ends = value + np.quantile(change, [0.025, 0.975]) - change.mean()
        assert found["value"] == pytest.approx(value)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx(ends, abs=1e-9)
        assert found["p_bootstrap"] == (1 + (abs(change - change.mean()) >= abs(value) - 1e-12).sum()) / (1 + rounds)
        assert (found["from"], found["to"]) == (sides[0]["value"], sides[1]["value"])
        assert found["tags"] == {"model": "b", "baseline": "a"}


def test_images_are_drawn_for_all_cells_and_models_at_once(hoicli: Hoicli, two: Path) -> None:
    """Where two cells are the same, so are their rounds: nothing is left of chance in what differs by nothing."""
    for corruption, severity in CELLS:
        for model in "ab":
            write(two / f"{model}-{corruption}-{severity}.jsonl", predictions("a", "clean", 0))
    rows = results(hoicli, "--bootstrap", 50, two / "cells.jsonl")
    clean = one(rows, "clean", "a")
    assert clean["ci_low"] < clean["value"] < clean["ci_high"]
    total = one(rows, "mri", "a")
    assert (total["ci_low"], total["ci_high"]) == pytest.approx((clean["ci_low"], clean["ci_high"]))
    for metric, value in (("relative_drop", 0), ("cri", 1)):
        row = one(rows, metric, "a")
        assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((value, value, value), abs=1e-12)
    for metric in ("clean_diff", "mri_diff", "cri_diff", "relative_drop_diff"):
        row = one(rows, metric, "b")
        assert (row["value"], row["ci_low"], row["ci_high"], row["p_bootstrap"]) == (0, 0, 0, 1)


def test_which_rows_have_an_interval(hoicli: Hoicli, two: Path) -> None:
    rows = results(hoicli, "--bootstrap", 20, two / "cells.jsonl")
    without = {row["metric"] for row in rows if "ci_low" not in row}
    assert without == {"rank", "worst"}
    for row in rows:
        assert ("|boot:20|seed:0|" in row["signature"]) == ("ci_low" in row)
    again = results(hoicli, two / "cells.jsonl")
    values = [(row["metric"], row["value"]) for row in rows if not row["metric"].endswith("_diff")]
    assert values == [(row["metric"], row["value"]) for row in again]
    part = one(rows, "mean", "a", corruption="jpeg", family="sensor")
    assert part["ci_low"] < part["value"] < part["ci_high"]
    table = hoicli("robust", *CHOICE[:4], "--format", "table", "--bootstrap", 20, two / "cells.jsonl").out
    assert f"{part['value']:.2f}" in table
    assert "p_bootstrap" in table
    total = one(rows, "cri", "a")
    assert f"{total['value']:.3f} [{total['ci_low']:.3f}, {total['ci_high']:.3f}]" in table
    for notation in ("md", "latex", "csv"):
        assert hoicli("robust", *CHOICE[:4], "--format", notation, "--bootstrap", 20, two / "cells.jsonl").code == 0


@pytest.mark.parametrize(("images", "has"), [(1, False), (2, True)])
def test_an_interval_needs_two_images_with_ground_truth(hoicli: Hoicli, two: Path, images: int, *, has: bool) -> None:
    annotated = [record["image_id"] for record in GT if record["hois"]][:images]
    write(two / "gt.jsonl", [record if record["image_id"] in annotated else {**record, "hois": []} for record in GT])
    assert ("ci_low" in one(results(hoicli, "--bootstrap", 2, two / "cells.jsonl"), "clean", "a")) == has


def test_neither_order_nor_shards_of_cells_change_a_byte(hoicli: Hoicli, two: Path) -> None:
    arguments = (*CHOICE, "--bootstrap", "20")
    expected = hoicli("robust", *arguments, two / "cells.jsonl").out
    lines = (two / "cells.jsonl").read_text().splitlines(keepends=True)
    first, rest = lines[0], lines[1:]  # whose model is the baseline
    for seed in range(3):
        random.Random(seed).shuffle(rest)
        (two / "one.jsonl").write_text("".join([first, *rest[::2]]))
        (two / "two.jsonl").write_text("".join(rest[1::2]))
        assert hoicli("robust", *arguments, two / "one.jsonl", two / "two.jsonl").out == expected


def test_vcoco_takes_the_papers_protocol(hoicli: Hoicli, tmp_path: Path) -> None:
    folder = FIXTURES / "vcoco"
    files = {"gt": str(folder / "ground_truth.jsonl"), "predictions": str(folder / "predictions.jsonl")}
    cells: list[Row] = [
        {"corruption": "clean", **files},
        {"corruption": "jpeg", "severity": "1", "recipe": "r", **files},
    ]
    path = write(tmp_path / "cells.jsonl", cells)
    result = hoicli("robust", "--dataset", "vcoco", "--bootstrap", "10", "--format", "jsonl", path)
    assert result.code == 0, result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert {(row["protocol"], row["subset"]) for row in rows} == {("vcoco-s2", "24")}
    # the dataset of a protocol, and of match records, needs no option
    named = hoicli("robust", "--protocol", "vcoco-s2", "--bootstrap", "10", "--format", "jsonl", path)
    assert named.out == result.out
    matched = hoicli("match", "--dataset", "vcoco", "--protocol", "vcoco-s2", "--gt", files["gt"], files["predictions"])
    (tmp_path / "m.jsonl").write_text(matched.out)
    cells = [{**cell, "predictions": "m.jsonl", "gt": None} for cell in cells]
    assert hoicli("robust", "--format", "jsonl", write(path, cells)).code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predictions": 3}, ":2: predictions: must be the name of a file\n"),
        ({"predictions": ""}, ":2: predictions: must be the name of a file\n"),
        ({"predictions": "a\0b"}, ":2: predictions: must be the name of a file\n"),
        ({"predictions": None}, ":2: predictions: names no file; give that of the cell's predictions\n"),
        ({"gt": []}, ":2: gt: must be the name of a file\n"),
        ({"gt_digest": "abc"}, ":2: gt_digest: must be the digits that signatures name after gt:\n"),
        ({"gt_digest": 3}, ":2: gt_digest: must be the digits that signatures name after gt:\n"),
        ({"model": 3}, ":2: model: missing or no string; a cell says which it is\n"),
        ({"corruption": None}, ":2: corruption: missing or no string; a cell says which it is\n"),
        ({"severity": 0}, ":2: tags.severity: '0'; give a whole number"),
        ({"severity": True}, ":2: severity: missing or no string"),
    ],
)
def test_a_bad_cell_is_one_clear_line(hoicli: Hoicli, two: Path, change: Row, message: str) -> None:
    cells = [json.loads(line) for line in (two / "cells.jsonl").read_text().splitlines()]
    path = write(two / "bad.jsonl", [cells[0], {**cells[1], **change}, *cells[2:]])
    result = hoicli("robust", *CHOICE, path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{path}{message}")
    assert result.err.count("\n") == 1


def test_a_cell_of_another_ground_truth_is_refused(hoicli: Hoicli, two: Path) -> None:
    """One corner of one box is another ground truth, though its path is the same."""
    cells = [json.loads(line) for line in (two / "cells.jsonl").read_text().splitlines()]
    row = json.loads(hoicli("eval", "--gt", two / "gt.jsonl", two / cells[0]["predictions"]).out.splitlines()[0])
    (digest,) = (part[3:] for part in row["signature"].split("|") if part.startswith("gt:"))
    expected = results(hoicli, two / "cells.jsonl")
    for text in (digest, f"hico-test-{digest}"):
        path = write(two / "signed.jsonl", [{**cell, "gt_digest": text} for cell in cells])
        assert results(hoicli, path) == expected
    moved = json.loads(json.dumps(GT))
    moved[0]["boxes"][moved[0]["hois"][0]["subject"]][0] += 1
    write(two / "gt.jsonl", moved)
    result = hoicli("robust", *CHOICE, path)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"{path}:1: gt_digest: {digest}, but that of {two / 'gt.jsonl'} is ")
    matched = hoicli("match", "--protocol", "qpic", "--gt", two / "gt.jsonl", two / cells[0]["predictions"])
    (two / "m.jsonl").write_text(matched.out)
    path = write(two / "m-cells.jsonl", [{**cells[0], "gt": None, "gt_digest": digest, "predictions": "m.jsonl"}])
    result = hoicli("robust", *CHOICE, path)
    assert result.code == 1
    assert result.err.startswith(f"{path}:1: gt_digest: {digest}, but the match records' is ")


def test_predictions_that_serve_two_cells_are_named(hoicli: Hoicli, two: Path) -> None:
    cells = [json.loads(line) for line in (two / "cells.jsonl").read_text().splitlines()]
    twice = [{**cell, "predictions": cells[1]["predictions"]} if at == 2 else cell for at, cell in enumerate(cells)]
    path = write(two / "twice.jsonl", twice)
    result = hoicli("robust", *CHOICE, path)
    assert result.code == 0
    assert f"{path}:2 and {path}:3 have the same predictions" in result.err
    assert "same predictions" not in hoicli("robust", *CHOICE, two / "cells.jsonl").err


def test_what_cannot_be_resampled_is_refused(hoicli: Hoicli, two: Path) -> None:
    cells = [json.loads(line) for line in (two / "cells.jsonl").read_text().splitlines()]
    write(two / "fewer.jsonl", GT[1:])
    write(two / "a-jpeg-2.jsonl", predictions("a", "jpeg", 2)[1:])
    path = write(two / "odd.jsonl", [{**cell, "gt": "fewer.jsonl"} if cell["predictions"] == "a-jpeg-2.jsonl" else cell
                                     for cell in cells])  # fmt: skip
    for drawn in ((), ("--bootstrap", "10")):
        result = hoicli("robust", *CHOICE, *drawn, path)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(
            f"{path}:3: gt: image {GT[0]['image_id']} is not in both this cell and that of {path}:1; "
        )
    rows = hoicli("robust", "--bootstrap", "10", FIXTURES / "robust" / "rows.jsonl")
    assert (rows.code, rows.err) == (
        2, "hoicli: --bootstrap 10: rows have no images; give cells with their predictions\n"
    )  # fmt: skip
    late = hoicli("robust", "--dataset", "hico", FIXTURES / "robust" / "rows.jsonl")
    assert (late.code, late.err) == (
        2, "hoicli: --dataset hico: is that of cells with their predictions; rows say what they are of\n"
    )  # fmt: skip
    several = hoicli("robust", "--protocol", "hico,qpic", two / "cells.jsonl")
    assert (several.code, several.err) == (
        2, "hoicli: --protocol hico,qpic: cells are evaluated by one protocol; choose one\n"
    )  # fmt: skip
    (two / "b-moire-1.jsonl").unlink()
    missing = hoicli("robust", *CHOICE, two / "cells.jsonl")
    assert (missing.code, missing.err.splitlines()[-1]) == (1, f"{two}/b-moire-1.jsonl: no such file; check the path")
