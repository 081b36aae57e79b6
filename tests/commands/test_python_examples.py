"""The scripts of fixtures/python give the numbers of `hoicli eval`. They need `pip install 'hoicli[dev-torch]'`."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.errors import DataError
from tests.support.kernel import arrays
from tests.support.project import EIGHT, FIXTURES, GT, OTHER, PATIENCE, PREDICTIONS, ROOT, SAMPLE, Hoicli, records

PHOTO = EIGHT / "images/HICO_test2015_00000001.jpg"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (hoicli[dev-torch])")


def evaluated(predictions: Path) -> dict[str, Any]:
    return hoicli.evaluate(GT, predictions, protocol="hico").to_dict()


WANTED = evaluated(PREDICTIONS)


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(FIXTURES / "python" / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_torch
@pytest.mark.parametrize("processes", [1, 2])
def test_two_processes_of_torch_distributed(processes: int) -> None:
    assert json.loads(run("distributed.py", GT, PREDICTIONS, processes)) == WANTED


@needs_torch
@pytest.mark.parametrize(("script", "library"), [("metric.py", "torchmetrics"), ("callback.py", "lightning")])
def test_a_metric_and_a_callback(script: str, library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed (hoicli[dev-torch])")
    found = json.loads(run(script, GT, PREDICTIONS).splitlines()[-1])
    assert found == pytest.approx(WANTED, abs=1e-5)  # Lightning keeps single precision


@needs_torch
def test_a_training_loop(tmp_path: Path) -> None:
    """What it learns by heart it finds, and the file it saves says the same."""
    printed = run("loop.py", GT, tmp_path / "predictions.jsonl").splitlines()
    first, *_, last = [float(line.split()[1]) for line in printed]
    assert first < last
    assert last == round(evaluated(tmp_path / "predictions.jsonl")["hico/mAP/full"], 2)


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb", "mlflow"])
def test_a_tracker_takes_the_flat_dictionary(tmp_path: Path, tracker: str) -> None:
    if find_spec(tracker) is None or (tracker == "tensorboard" and find_spec("torch") is None):
        pytest.skip(f"{tracker} is not installed (hoicli[dev-torch])")
    kept = json.loads(run("trackers.py", tracker, tmp_path, GT, PREDICTIONS).splitlines()[-1])
    assert kept == pytest.approx(WANTED, abs=1e-5)  # TensorBoard keeps single precision


@pytest.mark.parametrize("tool", ["duckdb", "polars", "datasets"])
def test_queries_of_rows_and_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed (hoicli[dev-queries])")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    rows = hoicli.evaluate(GT, PREDICTIONS, protocol="hico", per_class=True).rows
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = json.loads(run("query.py", tool, tmp_path / "rows.jsonl", PREDICTIONS))
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["metric"] == "AP" and row["n"]:
            values.setdefault(row["verb"], []).append(row["value"])
    lowest = sorted((sum(each) / len(each), verb) for verb, each in values.items())[:3]
    assert found["lowest mean AP"] == [[verb, pytest.approx(mean)] for mean, verb in lowest]
    predicted = Counter(hoi["verb"] for record in records(PREDICTIONS) for hoi in record["hois"])
    most = sorted(predicted.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert found["most triplets"] == [list(item) for item in most]


def test_the_notebook_runs_and_has_no_outputs(tmp_path: Path) -> None:
    """All of its code but the cell that installs hoicli. Colab opens notebooks of format 4."""
    notebook = json.loads((FIXTURES / "python/tour.ipynb").read_text())
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    sources = ["".join(cell["source"]) for cell in cells]
    assert [source.split()[0] for source in sources if source.startswith(("%", "!"))] == ["%pip"]
    script = tmp_path / "tour.py"
    script.write_text("\n".join(source for source in sources if not source.startswith("%")) + "\nprint(counts)\n")
    printed = run(str(script)).splitlines()
    assert printed[0] == printed[-2] == "27.27272727272727"
    counts = ast.literal_eval(printed[-1])
    assert [counts[error] for error in ("true_positive", "interaction", "object_box")] == [1, 1, 1]


@pytest.mark.parametrize(
    "script", ["loop", "trackers", "metric", "callback", "distributed", "frame", "transform", "query"]
)
def test_without_arguments_a_script_says_how_it_is_called(script: str) -> None:
    command = [sys.executable, str(FIXTURES / f"python/{script}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"what {script}.py imports is not installed (hoicli[dev-torch])")
    assert done.returncode == 1
    assert f"\n\npython {script}.py " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed (hoicli[dev-torch])")
def test_a_table_of_pandas() -> None:
    printed = run("frame.py", GT, PREDICTIONS, OTHER).splitlines()
    assert printed[3].split() == ["predictions", "1.94", "0.72", "2.31", "2.00", "0.72", "2.38"]
    assert printed[6].split() == ["inspect", "airplane", "0.000000", "1"]


@needs_torch
def test_a_transform_of_torchvision(hoicli: Hoicli, tmp_path: Path) -> None:
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed (hoicli[dev-torch])")
    image = pytest.importorskip("PIL.Image")
    image.open(PHOTO).save(tmp_path / "a.png")
    options = ("--images", tmp_path, "--save-images", tmp_path / "out", "--corruption", "elastic", "--severity", 3)
    assert hoicli("corrupt", *options, tmp_path / "a.png").code == 0
    pixels = np.asarray(image.open(tmp_path / "out/elastic/3/a.png"))
    printed = run("transform.py", PHOTO, "elastic", 3).splitlines()
    assert printed == [str((3, *pixels.shape[:2])), "True", hashlib.sha256(pixels.tobytes()).hexdigest()]


@pytest.mark.skipif(find_spec("albumentations") is None, reason="albumentations is not installed (hoicli[dev-torch])")
def test_a_transform_of_albumentations() -> None:
    shape = np.asarray(pytest.importorskip("PIL.Image").open(PHOTO)).shape
    assert run("augmentation.py", PHOTO, "glass_blur", 4).split("\n")[0] == f"{shape} True False"


@needs_torch
def test_tensors_of_torch() -> None:
    import torch

    truth = hoicli.Evaluator(GT, "hico")
    found = records(PREDICTIONS)
    for record in found:
        given = arrays(record)
        tensors = {name: torch.tensor(given[name]) for name in ("boxes", "subject", "object", "score")}
        tensors["score"].requires_grad_()
        image_id: Any = record["image_id"]
        truth.update(image_id, **given | tensors)
    assert truth.compute().to_dict() == WANTED
    of_half = hoicli.Evaluator(GT)
    given = arrays(found[0])
    score = torch.tensor(given["score"], dtype=torch.bfloat16)
    half = {"score": score, "subject": torch.tensor(given["subject"]).int()}
    of_half.update(found[0]["image_id"], **given | half)
    assert np.array_equal(of_half.state()["score"], score.double().numpy())


class OnDevice:
    """An array on a GPU, as far as the protocols show it."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("can't convert a device array to numpy; copy it to host memory first")


class WithCpu(OnDevice):
    """A tensor that can be copied to memory."""

    def cpu(self) -> Any:
        return self.values


def test_arrays_on_a_device() -> None:
    """No GPU is needed to see that `cpu` is called, and what is said without it."""
    evaluator = hoicli.Evaluator(GT, "hico")
    record = records(PREDICTIONS)[0]
    given = arrays(record)
    with pytest.raises(DataError, match=r"boxes: OnDevice is not in the processor's memory; copy it there first"):
        evaluator.update(record["image_id"], **given | {"boxes": OnDevice(given["boxes"])})
    evaluator.update(record["image_id"], **given | {"boxes": WithCpu(given["boxes"]), "score": WithCpu(given["score"])})
    assert np.array_equal(evaluator.state()["boxes"], given["boxes"])


def test_classes_in_place_of_released_evaluators() -> None:
    """INP-CC's prints what `hoicli eval` gives; QPIC's and CDN's agree."""
    lines = run("drop_in.py", SAMPLE / "gt.jsonl.gz", SAMPLE / "baseline.jsonl.gz").splitlines()
    printed = [line for line in lines if line.startswith("mAP: ")]
    assert len(printed) == 2
    assert printed[0] == printed[1]
    files = SAMPLE / "gt.jsonl.gz", SAMPLE / "baseline.jsonl.gz"
    rows = hoicli.evaluate(*files, protocol="inp-cc", split="rare_first").rows
    values = {row["subset"]: f"{row['value']:.2f}" for row in rows}
    assert [line for line in lines if ": " in line and "mAP:" in line and not line.startswith("mAP")] == [
        f"zero-shot mAP: {values['unseen']}", f"seen mAP: {values['seen']}", f"full mAP: {values['full']}",
    ]  # fmt: skip
