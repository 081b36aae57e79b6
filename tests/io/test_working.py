"""A folder of unfinished files has one process at a time, and what a dead one left is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoicli.errors import DataError
from hoicli.io.working import LOCK, work_folder


def test_what_was_left_is_removed_and_what_is_made_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / ".x.part"
    (folder / "left").mkdir(parents=True)
    for name in (LOCK, "left/file", "file"):
        (folder / name).touch()
    with work_folder(folder):
        assert [path.name for path in folder.iterdir()] == [LOCK]
        (folder / "new").touch()
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / ".x.part"
    with work_folder(folder):
        (folder / "new").touch()
        with pytest.raises(DataError, match=rf"^{folder}: is written by another run; "), work_folder(folder):
            pass
        assert (folder / "new").exists()
    with work_folder(folder):
        pass


def test_the_folder_that_its_owner_removes_meanwhile_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it."""
    from hoicli.io import working

    folder, lock, times = tmp_path / ".x.part", working.alone, []

    def locking(number: int, path: Path) -> None:
        lock(number, path)
        times.append(number)
        if len(times) < 3:
            (folder / LOCK).unlink()
            folder.rmdir()

    monkeypatch.setattr(working, "alone", locking)
    with work_folder(folder):
        assert (folder / LOCK).exists()
    assert len(times) == 3


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    (tmp_path / ".x.part").symlink_to(tmp_path / "mine")
    with pytest.raises(FileExistsError), work_folder(tmp_path / ".x.part"):
        pass
    (tmp_path / ".y.part").mkdir()
    (tmp_path / ".y.part" / LOCK).symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic links"), work_folder(tmp_path / ".y.part"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == [LOCK, ".x.part", ".y.part", "file", "mine"]
