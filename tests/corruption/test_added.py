"""Corruptions of other packages: made where they are named, by whom is told, and nothing else changes."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import pytest

import hoicli as api
from hoicli.corruption.catalogue import ROHOI, Corruption, Effect, added_corruption, split_recipe_text
from tests.support.pictures import textured
from tests.support.project import Hoicli, parsed, records_of, refusal

Image = Any
Add = Callable[..., list[str]]


def whiten(image: Image, _: None, density: float) -> Image:
    return np.rint(image * (1 - density) + 255 * density).astype(np.uint8)


LEVELS = tuple((share,) for share in (0.1, 0.2, 0.3, 0.4, 0.5))
ROW = Corruption("mist", "environment", "droplets in the air", ("density",), LEVELS, "hoicli-mist's own")
MIST = ROW, Effect(whiten)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Gives the entry point `mist` (or another) of the package hoicli-mist 1.2 a value; returns what was imported."""
    imported: list[str] = []

    def entry_of(value: object, name: str = "mist") -> list[str]:
        def load() -> object:
            imported.append(name)
            return value

        entry = SimpleNamespace(name=name, dist=SimpleNamespace(name="hoicli-mist", version="1.2"), load=load)

        def entry_points(*, group: str, name: str = entry.name) -> list[SimpleNamespace]:
            return [entry] if (group, name) == ("hoicli.corruptions", entry.name) else []

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        return imported

    added_corruption.cache_clear()
    yield entry_of
    added_corruption.cache_clear()


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    PIL.Image.fromarray(textured(20, 24)).save("a.png")
    return "a.png"


def corrupted(hoicli: Hoicli, *options: object) -> list[dict[str, Any]]:
    return records_of(hoicli("corrupt", "--jobs", 1, "--save-images", "out", *options))


def test_it_is_made_where_it_is_named(hoicli: Hoicli, add: Add, image: str) -> None:
    imported = add(MIST)
    records = corrupted(hoicli, "--severity", 3, image)
    assert [record["corruption"] for record in records] == list(ROHOI)
    assert imported == []
    listed = hoicli("corrupt", "--list", "--format", "jsonl")
    assert "made where --corruption names them: night, rain, fog, snow, mist\n" in listed.err
    row = parsed(listed.out)[-1]
    assert (row["corruption"], row["severity_1"], row["recipe"]) == (
        "mist", {"density": 0.1}, "hoicli-1+hoicli-mist@1.2",
    )  # fmt: skip
    records = corrupted(hoicli, "--corruption", "jpeg,mist", "--severity", 3, image)
    assert [(record["corruption"], record["recipe"]) for record in records] == [
        ("jpeg", "hoicli-1"), ("mist", "hoicli-1+hoicli-mist@1.2"),
    ]  # fmt: skip
    source = np.asarray(PIL.Image.open(image))
    expected = whiten(source, None, 0.3)
    assert (np.asarray(PIL.Image.open("out/mist/3/a.png")) == expected).all()

    assert (api.corrupt(source, "mist", 3) == expected).all()
    row = json.loads(hoicli("corrupt", "--list", "--corruption", "mist", "--format", "jsonl").out.splitlines()[-1])
    assert (row["corruption"], row["severity_5"], row["recipe"]) == (
        "mist", {"density": 0.5}, "hoicli-1+hoicli-mist@1.2",
    )  # fmt: skip


def test_a_file_may_say_how_strong_it_is(hoicli: Hoicli, add: Add, image: str) -> None:
    add(MIST)
    levels = [{"density": share} for share in (0.5, 0.6, 0.7, 0.8, 0.9)]
    Path("mine.json").write_text(json.dumps({"name": "mine", "corruptions": {"mist": levels}}))
    (record,) = corrupted(hoicli, "--recipe", "mine.json", "--severity", 1, image)
    assert record["recipe"].startswith("mine@")
    assert record["recipe"].endswith("+hoicli-mist@1.2")
    lacking = hoicli("corrupt", "--save-images", "out", "--recipe", "imagenet-c", "--corruption", "mist", image)
    assert "--corruption mist: recipe imagenet-c has no constants for it, only for motion_blur" in lacking.err


@pytest.mark.parametrize(("value", "problem"), [
    (whiten, "mist of hoicli-mist@1.2 must be a pair: a Corruption called mist, and its Effect"),
    ((replace(ROW, name="drizzle"), MIST[1]), "must be a pair: a Corruption called mist"),
])  # fmt: skip
def test_an_entry_point_that_is_no_corruption(
    hoicli: Hoicli, add: Add, image: str, value: object, problem: str
) -> None:
    add(value)
    assert problem in refusal(hoicli("corrupt", "--save-images", "out", "--corruption", "mist", image), 2)
    listed = hoicli("corrupt", "--list")
    assert (listed.code, problem in listed.err) == (0, True)


@pytest.mark.parametrize(("fields", "problem"), [
    ({"family": "enviroment"}, "corruption mist: family: 'enviroment'; choose optical, sensor"),
    ({"levels": LEVELS[:4]}, "corruption mist: levels: give 5 levels with a value of each constant"),
    ({"published": ((1, 2),) * 5}, "corruption mist: published: give 5 levels with a value of each constant"),
    ({"source": ""}, "corruption mist: source: say why"),
])  # fmt: skip
def test_a_wrong_row_stops_where_it_is_made(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(ROW, **fields)


@pytest.mark.parametrize("shared", ["hoicli-1", "hoicli-1+kept", "mine@0123abcd", "mine@0123abcd+kept"])
def test_a_recipe_is_told_from_the_package(shared: str) -> None:
    assert split_recipe_text(shared) == (shared, "")
    assert split_recipe_text(f"{shared}+mist@1.2+local") == (shared, "mist@1.2+local")
