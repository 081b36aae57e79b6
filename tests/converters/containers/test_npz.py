"""What an .npz archive may cost: what it says of its own sizes buys nothing."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.converters.containers import npz
from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.errors import DataError
from tests.support.project import saved

ZEROS = np.zeros((4, 100, 600), dtype=np.float32)


def member(array: np.ndarray[Any, Any]) -> bytes:
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()


def archive(array: np.ndarray[Any, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as opened:
        opened.writestr("a.npy", member(array))
    return made.getvalue()


def refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        arrays(Source(str(path)), ("a",))
    message = str(caught.value)
    assert message.startswith(f"{path}: a: ")
    return message


def forged(data: bytes, size: int) -> bytes:
    """The archive with another compressed size in its directory, and in front of the member."""
    for signature, offset in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        at = data.index(signature) + offset
        data = data[:at] + struct.pack("<I", size) + data[at + 4 :]
    return data


@pytest.mark.parametrize("claimed", [None, 1 << 20, 0xFFFFFFFE])
def test_more_than_its_size_justifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int | None) -> None:
    monkeypatch.setattr(npz, "DENSE", 1 << 16)
    data = archive(ZEROS)
    assert len(data) * npz.DENSEST < ZEROS.nbytes
    said = refusal(tmp_path / "a.npz", data if claimed is None else forged(data, claimed))
    assert "would take more memory than its size can justify; save it again" in said


def test_an_archive_in_a_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "DENSE", 1 << 16)
    data = gzip.compress(archive(ZEROS, zipfile.ZIP_STORED))
    assert "would take more memory" in refusal(tmp_path / "a.npz.gz", data)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods(tmp_path: Path, method: int) -> None:
    said = refusal(tmp_path / "a.npz", archive(ZEROS, method))
    assert "compressed in a way that NumPy does not; save it with numpy.savez" in said


def test_a_member_without_a_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", archive(ZEROS).replace(b"a.npy", b"\0.npy"))
    assert arrays(Source(str(path)), ("a",)) == {}


def test_characters_that_are_none(tmp_path: Path) -> None:
    for order in "<>":
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w") as opened:
            raw = member(np.array(["abcd"], f"{order}U4"))
            opened.writestr("a.npy", raw[:-16] + b"\x7f\xff\xff\x7f" + raw[-12:])
        assert "text of impossible characters); write it again" in refusal(path, path.read_bytes())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_a_model_leaves_is_read(tmp_path: Path, save: Any) -> None:
    numbers = np.random.default_rng(1).normal(-3, 2, (5, 100, 600)).astype(np.float16).astype(np.float32)
    save(tmp_path / "a.npz", a=numbers, b=np.array(["x", "caf\xe9"]))
    found = arrays(Source(str(tmp_path / "a.npz")), ("a", "b"))
    np.testing.assert_array_equal(found["a"], numbers)
    assert found["b"].tolist() == ["x", "caf\xe9"]
