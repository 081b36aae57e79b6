"""What a MATLAB file may cost: a few bytes never become millions of matrices, compressed once or twice."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from hoicli.converters.containers import matfile
from hoicli.converters.containers.matfile import Numbers, load, variables
from hoicli.converters.containers.source import Source
from hoicli.errors import DataError
from tests.support.project import saved

HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
NOTHING = struct.pack("<II", 14, 0)
"""A matrix of eight bytes, empty."""
EMPTY = struct.pack("<II", 14, 48) + struct.pack("<IIIIIIiiIIII", 6, 8, 6, 0, 5, 8, 0, 0, 1, 0, 9, 0)
"""An empty matrix as MATLAB writes it."""


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content


def matrix(kind: int, dimensions: bytes, content: bytes, name: bytes = b"all_boxes") -> bytes:
    shape = struct.pack("<IIII", 6, 8, kind, 0) + element(5, dimensions)
    return element(14, shape + element(1, name) + b"\0" * (-len(name) % 8) + content)


def cells(*items: bytes) -> bytes:
    return matrix(1, struct.pack("<ii", len(items), 1), b"".join(items))


def written(path: Path, variable: bytes, *, packed: bool = True, padding: bytes = b"") -> Source:
    data = HEADER + (element(15, zlib.compress(variable, 9) + padding) if packed else variable)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return Source(str(path))


MORE = "(more cells, fields and matrices than any file of its size has)"


def refusal(source: Source) -> str:
    with pytest.raises(DataError) as caught:
        load(source, next(iter(variables(source))))
    message = str(caught.value)
    assert message.startswith(f"{source.path}: is damaged or cut off (")
    assert message.endswith("); fetch or save it again")
    return message


@pytest.mark.parametrize("suffix", [".mat", ".mat.gz"])
@pytest.mark.parametrize(
    "items",
    [(NOTHING,) * 100_000, (NOTHING, EMPTY) * 10_000, (EMPTY, EMPTY, NOTHING) * 10_000],
    ids=["8 bytes", "two kinds", "three"],
)
def test_more_matrices_than_the_file_justifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, items: tuple[bytes, ...], suffix: str
) -> None:
    monkeypatch.setattr(matfile, "PLACES", 1 << 16)
    said = refusal(written(tmp_path / f"all{suffix}", cells(*items)))
    assert MORE in said


def test_more_names_of_fields_than_the_file_justifies(tmp_path: Path) -> None:
    fields = struct.pack("<HHI", 5, 4, 1) + element(1, b"a" * (1 << 21))
    said = refusal(written(tmp_path / "all.mat", matrix(2, struct.pack("<ii", 1, 1), fields)))
    assert MORE in said


def test_a_matrix_of_a_million_dimensions(tmp_path: Path) -> None:
    """Their product took the square of their number."""
    variable = cells(matrix(1, b"\xff\xff\xff\x7f" * (1 << 20), b""))
    assert "(1,048,576 dimensions at byte 64)" in refusal(written(tmp_path / "all.mat", variable))


def test_padding_buys_no_allowance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matfile, "DENSE", 1 << 16)
    numbers = matrix(6, struct.pack("<ii", 1 << 17, 1), element(9, bytes(1 << 20)))
    for padding in (b"", bytes(1 << 20)):
        said = refusal(written(tmp_path / "all.mat", numbers, padding=padding))
        assert "(unpacks to more than 1 MiB, as no file of " in said


def test_what_is_compressed_twice_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matfile, "DENSE", 1 << 16)
    stored = zlib.compressobj(0)  # as large as what it holds: only the gzip around it is small
    numbers = matrix(6, struct.pack("<ii", 1 << 17, 1), element(9, bytes(1 << 20)))
    data = HEADER + element(15, stored.compress(numbers) + stored.flush())
    path = saved(tmp_path / "all.mat", data)
    assert isinstance(load(Source(str(path)), "all_boxes"), Numbers)
    path = saved(tmp_path / "all.mat.gz", gzip.compress(data))
    assert "unpacks to more than" in refusal(Source(str(path)))


def test_many_empty_cells_are_read(tmp_path: Path) -> None:
    """Of the object with most interactions, on all images: they compress a thousand times."""
    one = matrix(6, struct.pack("<ii", 1, 9), element(9, np.ones(9).tobytes()), b"")
    source = written(tmp_path / "all.mat", cells(*[EMPTY] * 100_000, one, *[EMPTY] * 150_000))
    assert Path(source.path).stat().st_size < 50_000
    assert [item.array().tolist() for item in load(source, "all_boxes").items if item.data] == [[[1.0] * 9]]


@pytest.mark.parametrize("packed", [True, False])
def test_padding_and_odd_empties_are_read(tmp_path: Path, packed: bool) -> None:
    source = written(tmp_path / "all.mat", cells(NOTHING, EMPTY, NOTHING, EMPTY, EMPTY), packed=packed)
    assert len(load(source, "all_boxes").items) == 5
