"""Named ground truth: added once, found by every command, told apart by its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.converters import named
from hoicli.converters.named import NAMED
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, records_of, refusal

OTHER_LABELS = FIXTURES / "own/label_studio.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOICLI_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_set_that_was_added_is_ground_truth_everywhere(hoicli: Hoicli, folder: Path) -> None:
    added = hoicli("data", "add", "hico:test", GT)
    path = folder / "hico" / "test.jsonl"
    assert added.out.strip() == str(path)
    assert added.err.endswith("hoicli: hico:test: 8 images, gt:5e0e30fe\n")
    assert records_of(hoicli("data", "list"))[0]["path"] == str(path)
    for command in (["eval", "--protocol", "hico"], ["match"], ["diagnose"], ["pairstats"], ["validate"]):
        by_name = hoicli(*command, "--gt", "hico:test", PREDICTIONS)
        assert by_name.code == hoicli(*command, "--gt", GT, PREDICTIONS).code
        assert by_name.out == hoicli(*command, "--gt", GT, PREDICTIONS).out


def test_a_name_that_is_a_file_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine:val").write_text("")
    assert named.locate_truth("mine:val") == "mine:val"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval", "--gt", "hico:test", PREDICTIONS], "hico:test is not here yet: hoicli data fetch hico:test"),
        (["eval", "--gt", "hico:tes", PREDICTIONS], "hico:tes: no such file, and no ground truth of "
         "that name was added; hoicli data list"),
        (["data", "fetch", "hico:tset"], "hico:tset: no published ground truth has this name; hoicli data list"),
        (["data", "add", "test", GT], "'test' is no name of ground truth; give DATASET:PART"),
        (["data", "add", "../x:y", GT], "'../x:y' is no name of ground truth"),
        (["data", "add", "hico:test"], "data add hico:test: give the files to convert"),
        (["data", "fetch", "hico:test", GT], "data fetch: FILE, --from and --dataset go with hoicli"),
    ],
)  # fmt: skip
def test_a_wrong_call_says_what_to_do(hoicli: Hoicli, arguments: list[Any], said: str) -> None:
    assert refusal(hoicli(*arguments), 2).startswith(f"hoicli: {said}")


def test_a_relative_folder_is_refused(hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOICLI_DATA", "data")
    assert hoicli("data", "list").err == "hoicli: HOICLI_DATA=data: give an absolute path\n"


def test_what_is_no_ground_truth_is_not_added(hoicli: Hoicli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text(GT.read_text()[:700])
    for name, said in (
        (str(PREDICTIONS), "holds predictions"),
        ("empty.jsonl", "empty"),
        ("broken.jsonl", ":"),
        (str(OTHER_LABELS), f"{OTHER_LABELS}: image site_0004: labels[0]: unknown object 'visitor'; "),
    ):
        assert said in refusal(hoicli("data", "add", "mine:val", tmp_path / name))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_the_name_says_which_part_of_a_file_with_two(hoicli: Hoicli, folder: Path) -> None:
    files = [FIXTURES / "foreign" / name for name in ("anno_bbox.mat", "anno.mat")]
    for name, other, first in (("hico:test", "train", "test2015"), ("hico:train", "test", "train2015")):
        added = hoicli("data", "add", name, *files)
        assert added.code == 0, added.err
        assert (
            f"taking bbox_{name[5:]}, the {name[5:]} split; hoicli data add hico:{other} takes the other" in added.err
        )
        assert f"HICO_{first}_" in (folder / "hico" / f"{name[5:]}.jsonl").read_text()


def test_the_list_names_every_set_and_those_of_the_user(hoicli: Hoicli, folder: Path) -> None:
    hoicli("data", "add", "mine-a:val", GT)
    rows = [orjson.loads(line) for line in hoicli("data", "list", "--format", "jsonl").out.splitlines()]
    assert [row["name"] for row in rows] == [*NAMED, "mine-a:val"]
    assert rows[-1]["path"] == str(folder / "mine-a" / "val.jsonl")
    assert all(row["terms"] and row["from"] and row["path"] is None for row in rows[:-1])


def test_a_published_digest_has_a_name(hoicli: Hoicli, hico_test: Path) -> None:
    assert hoicli("data", "add", "hico:test", hico_test).err.endswith(": 9,658 images, gt:hico-test-7cba1727\n")
