"""docs/recipes.md: every recipe runs on the sample, and prints what it is said to print."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.forks import put_hoicli
from tests.support.project import SAMPLE
from tests.support.readme import DOCS
from tests.support.shell import sh

TOOLS = ("jq", "parallel", "make", "sqlite3", "xargs", "shuf", "paste", "awk", "comm", "python3")


@dataclass(frozen=True)
class Recipe:
    """What it is for, the commands, and the lines that it prints, where they are told."""

    purpose: str
    commands: str
    output: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        return [tool for tool in TOOLS if re.search(rf"\b{tool}\b", self.commands) and not shutil.which(tool)]


def recipes(text: str) -> list[Recipe]:
    """The recipes of a page: paragraphs of its ```sh blocks, `# purpose` first and `# -> output` last."""
    found = []
    for block in re.findall(r"(?ms)^```sh\n(.*?)^```$", text):
        for paragraph in block.strip().split("\n\n"):
            lines = paragraph.splitlines()
            output = tuple(line[5:] for line in lines if line.startswith("# -> "))
            said = [line[2:] for line in lines if line.startswith("# ") and not line.startswith("# -> ")]
            commands = [line for line in lines if not line.startswith("# ")]
            found.append(Recipe(" ".join(said), "\n".join(commands), output))
    return found


RECIPES = recipes((DOCS / "recipes.md").read_text())


def relative(found: list[str], truth: list[str]) -> list[str]:
    """Predictions, as lines, with boxes in parts of the image's sides."""
    sizes = {record["image_id"]: (record["width"], record["height"]) * 2 for record in map(json.loads, truth)}
    lines = []
    for record in map(json.loads, found):
        boxes = [[n / side for n, side in zip(box, sizes[record["image_id"]], strict=True)] for box in record["boxes"]]
        lines.append(json.dumps({**record, "boxes": boxes}) + "\n")
    return lines


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all recipes run, one after another as on the page: the sample, and `preds` lacks an image."""
    folder = tmp_path_factory.mktemp("kitchen")
    put_hoicli(folder / ".bin")
    shutil.copytree(SAMPLE / "pictures", folder / "images")
    (folder / "checkpoints").mkdir()
    packed = [SAMPLE / f"{name}.jsonl.gz" for name in ("gt", "baseline", "ours")]
    truth, baseline, ours = (gzip.decompress(path.read_bytes()).decode().splitlines(True) for path in packed)
    files = {"gt": truth, "a": baseline, "b": ours, "preds": ours[:5] + ours[6:], "relative": relative(ours, truth)}
    files |= {"checkpoints/1": baseline, "checkpoints/2": ours}
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(lines))
    done = sh("hoicli convert --to cdn-json preds.jsonl -o results.json", folder)
    assert done.code == 0, done.err
    return folder


def test_there_are_recipes_each_with_its_purpose() -> None:
    assert len(RECIPES) >= 20
    for recipe in RECIPES:
        assert recipe.purpose
        assert recipe.commands


@pytest.mark.long
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.purpose[:40])
def test_a_recipe_runs(recipe: Recipe, kitchen: Path) -> None:
    if shutil.which("bash") is None or recipe.missing:
        pytest.skip(f"needs {', '.join(recipe.missing or ['bash'])}")
    done = sh(f"set -o pipefail\n{recipe.commands}", kitchen, "bash")
    assert done.code == 0, done.err
    assert not re.search(r"\berror\b(?!s)|Traceback|: line \d+:", done.err), done.err
    if recipe.output:
        assert tuple(done.out.splitlines()) == recipe.output
    else:
        assert done.out or re.search(r"> \S|>> \S|-o \S|-f eval.mk", recipe.commands), "prints and writes nothing"
