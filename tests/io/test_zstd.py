"""zstd, read and written by either module, whole and broken."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hoicli.doctor import EXTRAS, OK, examine
from hoicli.io import zstd
from hoicli.io.inputs import open_input
from hoicli.io.streams import Stream
from tests.support.project import FIXTURES, Hoicli

GT, PREDICTIONS = FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl"
MODULES = ("compression.zstd", "zstandard")
SKIPPED = b"\x5a" + zstd.SKIPPED_MAGIC + (5).to_bytes(4, "little") + b"\x28\xb5\x2f\xfd\x00"
"""A frame to be skipped whose content looks like the beginning of another."""


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> zstd.Module:
    """Each of the two alone. Before Python 3.14 backports.zstd stands for Python's own, which it is."""
    if request.param == "zstandard":
        pytest.importorskip("zstandard")
        monkeypatch.setitem(sys.modules, "compression", None)
    else:
        if sys.version_info < (3, 14):
            backport: Any = pytest.importorskip("backports.zstd", reason="needs Python 3.14 or backports.zstd")
            package: Any = types.ModuleType("compression")
            package.zstd = backport
            monkeypatch.setitem(sys.modules, "compression", package)
            monkeypatch.setitem(sys.modules, "compression.zstd", backport)
        monkeypatch.setitem(sys.modules, "zstandard", None)
    found = zstd.module()
    assert found is not None
    assert found.name == request.param
    return found


def packed(module: zstd.Module, data: bytes, folder: Path) -> bytes:
    """One frame, as the module writes it."""
    path = folder / "packed"
    with open(path, "wb") as raw, module.writer(raw) as stream:
        stream.write(data)
    return path.read_bytes()


def unpacked(path: Path) -> bytes:
    with open_input(str(path)) as stream:
        return stream.read()


def test_what_is_written_is_read(module: zstd.Module, hoicli: Hoicli, tmp_path: Path) -> None:
    plain, path = hoicli("match", "--gt", GT, PREDICTIONS), tmp_path / "matches.jsonl.zst"
    assert hoicli("match", "--gt", GT, "-o", path, PREDICTIONS).code == 0
    assert path.read_bytes().startswith(zstd.MAGIC)
    assert unpacked(path).decode() == plain.out
    assert path.read_bytes()[4] & 4, "the frame has a checksum"
    again = tmp_path / "again.zst"
    assert hoicli("match", "--gt", GT, "-o", again, PREDICTIONS).code == 0
    assert again.read_bytes() == path.read_bytes()


def test_a_file_that_is_cut_off_is_refused_wherever_it_is_cut(
    module: zstd.Module, hoicli: Hoicli, tmp_path: Path
) -> None:
    """Before, what came of it was evaluated: half of the predictions, exit code 0."""
    data = packed(module, PREDICTIONS.read_bytes(), tmp_path)
    path = tmp_path / "cut.jsonl.zst"
    for length in {*range(4, 40), *range(40, len(data), 37), len(data) - 4, len(data) - 1}:
        path.write_bytes(data[:length])
        result = hoicli("eval", "--gt", GT, "--protocol", "hico", path)
        assert (result.code, result.out) == (1, ""), length
        assert result.err.splitlines()[-1] == (
            f"{path}: damaged zstd data (it ends before the end of its frame); fetch or compress it again"
        )
    assert hoicli("validate", path).code == 1
    path.write_bytes(data + data[: len(data) // 2])
    assert hoicli("validate", path).code == 1
    path.write_bytes(data)
    assert hoicli("eval", "--gt", GT, "--protocol", "hico", path).code == 0


def test_several_frames_and_frames_to_be_skipped_are_one_file(module: zstd.Module, tmp_path: Path) -> None:
    first, second = (packed(module, data, tmp_path) for data in (b"one\n", b"two\n" * 5000))
    nothing = packed(module, b"", tmp_path)
    path = tmp_path / "several.zst"
    for parts, expected in (
        ([first, second], b"one\n" + b"two\n" * 5000),
        ([SKIPPED, first, SKIPPED, SKIPPED, second, SKIPPED], b"one\n" + b"two\n" * 5000),
        ([first, nothing, first], b"one\none\n"),
        ([nothing], b""),
        ([SKIPPED], b""),
        ([first] * 3000, b"one\n" * 3000),
    ):
        path.write_bytes(b"".join(parts))
        assert unpacked(path) == expected


@pytest.mark.parametrize(
    "broken",
    [
        lambda data: data + b"rest of something",
        lambda data: data + b"{",
        lambda data: data[:200] + bytes([data[200] ^ 255]) + data[201:],
        lambda data: data[:-2] + b"\x00\x00",
        lambda _: zstd.MAGIC + b'{"image_id": "1"}\n',
        lambda _: SKIPPED[:-1],
    ],
)
def test_damage_is_one_line(module: zstd.Module, broken: Any, hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "broken.zst"
    path.write_bytes(broken(packed(module, GT.read_bytes(), tmp_path)))
    result = hoicli("validate", path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{path}: damaged zstd data (")
    assert result.err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is shared out elsewhere")
def test_a_compressed_file_is_not_shared_out_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoicli.io.streams.SHARE", 10)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    path = tmp_path / "p"
    for beginning, parts in ((zstd.MAGIC, 0), (SKIPPED, 0), (b"{}\n", 2)):
        path.write_bytes(beginning + b"{}\n" * 100)
        assert len(Stream([str(path)], "x").shares()) == parts


def test_a_bomb_is_refused(module: zstd.Module, hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    path.write_bytes(packed(module, b" \n" * (40 << 20), tmp_path))
    result = hoicli("eval", "--gt", GT, path)
    assert result.code == 1
    assert result.err.startswith(f"{path}: unpacks to more than 200 times its size")


def test_a_large_file_is_read_to_the_byte(module: zstd.Module, tmp_path: Path) -> None:
    """Not a multiple of any buffer, and shorter or longer pieces than are asked for."""
    rng = Random(1)
    data = b"".join(b'{"a":%d,"b":"%s"}\n' % (rng.randrange(9**9), b"x" * rng.randrange(40)) for _ in range(60_000))
    path = tmp_path / "large.zst"
    path.write_bytes(packed(module, data, tmp_path))
    assert unpacked(path) == data


def test_without_a_module_it_is_said(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "p.zst"
    for content in (zstd.MAGIC + b"\x00\x00", SKIPPED):
        path.write_bytes(content)
        result = hoicli("validate", path)
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            f"{path}: is zstd-compressed; pip install 'hoicli[zstd]', or pipe it in: zstd -dc FILE | hoicli ...\n"
        )
    result = hoicli("match", "--gt", GT, "-o", tmp_path / "new.zst", PREDICTIONS)
    assert (result.code, (tmp_path / "new.zst").exists()) == (2, False)
    assert "writing zstd needs pip install 'hoicli[zstd]'" in result.err


def test_the_doctor_names_the_module_in_use(module: zstd.Module) -> None:
    (check,) = [check for check in examine() if check.check == "extra zstd"]
    assert check.status == OK
    assert check.value.split()[0] == module.name
    assert EXTRAS["zstd"][0] == ("zstandard",)
