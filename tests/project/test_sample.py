"""fixtures/sample is what its scripts make, and has what the documents say of it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hoicli
from hoicli.vocabulary.datasets import load
from tests.support.project import SAMPLE, parsed

STREAMS = ("gt.jsonl.gz", "baseline.jsonl.gz", "ours.jsonl.gz")


def text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.long
def test_the_scripts_make_it(tmp_path: Path) -> None:
    """To the record and the pixel; how both are compressed may differ between versions of the libraries."""
    subprocess.run([sys.executable, SAMPLE / "make.py", tmp_path], check=True)
    for name in (*STREAMS, "results.json.gz"):
        assert text(tmp_path / name) == text(SAMPLE / name)
    pictures = sorted((SAMPLE / "pictures").iterdir())
    assert [path.name for path in pictures] == [f"sample_{number:04d}.png" for number in range(1, 13)]
    for path in pictures:
        kept, made = (
            np.asarray(Image.open(file).convert("RGB"), int) for file in (path, tmp_path / "pictures" / path.name)
        )
        assert np.abs(kept - made).mean() < 2


def test_it_is_small_and_varied() -> None:
    files = [*SAMPLE.glob("*.gz"), *(SAMPLE / "pictures").iterdir()]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    truth, *models = (parsed(text(SAMPLE / name)) for name in STREAMS)
    classes = Counter((hoi["verb"], image["labels"][hoi["object"]]) for image in truth for hoi in image["hois"])
    hico = load("hico")
    assert (len(truth), {verb for verb, _ in classes}) == (400, set(hico.verbs))
    assert len(classes) == 536
    assert sum(hico.interaction_ids[pair] in hico.groups["rare"] for pair in classes) > 100
    assert max(classes.values()) > 40
    assert all(len(image["hois"]) <= 30 for model in models for image in model)


def test_the_dump_is_ours() -> None:
    """CDN's layout has no place for verb_score and the boxes' scores."""
    ours = parsed(text(SAMPLE / "ours.jsonl.gz"))
    for image in ours:
        image["file_name"] = f"{image['image_id']}.png"
        image.pop("scores")
        for hoi in image["hois"]:
            hoi.pop("verb_score")
    assert list(hoicli.convert(SAMPLE / "results.json.gz")) == ours


@pytest.mark.parametrize(("name", "full"), [("baseline", 30), ("ours", 32)])
def test_what_its_detectors_reach(name: str, full: int) -> None:
    rows = hoicli.evaluate(SAMPLE / "gt.jsonl.gz", SAMPLE / f"{name}.jsonl.gz", protocol="hico").to_dict()
    overall, rare, other = (rows[f"hico/mAP/{subset}"] or 0 for subset in ("full", "rare", "non_rare"))
    assert round(overall) == full
    assert rare < other
