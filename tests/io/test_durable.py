"""What a disk says when it is asked to keep something. (That it is asked in time: tests/hostile/dying.py.)"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hoicli.errors import DataError
from hoicli.io import durable
from hoicli.io.durable import _sync, _sync_file_system  # before conftest.py takes them away
from hoicli.io.outputs import atomic_path, saved_tree


@pytest.fixture(autouse=True)
def _syncing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_sync", _sync)
    monkeypatch.setattr(durable, "_sync_file_system", _sync_file_system)


def written(path: Path) -> str:
    path.write_text("old")
    with atomic_path(str(path)) as temporary:
        Path(temporary).write_text("new")
    return path.read_text()


def test_a_disk_that_breaks_loses_the_new_file_and_not_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    path = tmp_path / "out"
    with pytest.raises(DataError, match=rf"^{path}: cannot be written \(Input/output error\)"):
        written(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_that_cannot_sync_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(number: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unable)
    assert written(tmp_path / "out") == "new"


def test_a_tree_is_synced_when_all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    with saved_tree(str(tmp_path)):  # the real one says nothing
        pass
    monkeypatch.setattr(
        durable, "_sync_file_system", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}"))
    )
    for path in (str(tmp_path), None, str(tmp_path / "nothing was made")):
        with saved_tree(path):
            pass
    with pytest.raises(KeyboardInterrupt), saved_tree(str(tmp_path)):
        raise KeyboardInterrupt
    assert synced == [str(tmp_path)]
