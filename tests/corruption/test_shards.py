"""`hoicli corrupt` on tar shards: the pixels and records of folders, whatever interrupts it; hostile ones are told."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import PIL.Image
import pytest

from hoicli.errors import DataError
from hoicli.io import tars
from hoicli.io.working import work_folder
from tests.support.pictures import textured
from tests.support.project import PATIENCE, ROOT, Hoicli

OPTIONS = ("--corruption", "jpeg,elastic,occlusion", "--severity", "2,5", "--jobs", 1)
CELLS = [f"{name}/{severity}" for name in ("jpeg", "occlusion", "elastic") for severity in (2, 5)]
Entry = tuple[str, bytes]


def pixels(number: int, kind: str) -> bytes:
    """A small picture in a file."""
    data = io.BytesIO()
    PIL.Image.fromarray(textured(40 + 4 * number, 56)).save(data, kind)
    return data.getvalue()


def entries(first: int = 0) -> list[Entry]:
    """Three images and their records, as WebDataset writes them."""
    made: list[Entry] = []
    for number in range(first, first + 3):
        suffix = ("jpg", "png", "jpeg")[number % 3]
        kind = "PNG" if suffix == "png" else "JPEG"
        record = {
            "image_id": f"image-{number}",
            "file_name": "elsewhere.jpg",
            "boxes": [[4, 5, 30, 36]],
            "caption": "x",
        }
        made.append((f"{number:06}.{suffix}", pixels(number, kind)))
        made.append((f"{number:06}.json", json.dumps(record).encode()))
    return made


def write(path: Path, members: Iterable[Entry | tarfile.TarInfo]) -> Path:
    """A tar, by tarfile, with times and owners."""
    with tarfile.open(path, "w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size, info.mtime, info.uid = len(member[1]), 1_700_000_000, 1000
            archive.addfile(info, io.BytesIO(member[1]))
    return path


def unpacked(path: Path) -> dict[str, bytes]:
    """What a tar holds, by tarfile."""
    with tarfile.open(path) as archive:
        found = {}
        for info in archive:
            stream = archive.extractfile(info)
            assert stream is not None
            found[info.name] = stream.read()
            assert (info.mtime, info.uid, info.gid, info.uname, info.mode) == (0, 0, 0, "", 0o644)
        return found


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return write(tmp_path / "00.tar", entries())


def test_pixels_and_records_are_those_of_folders(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    assert (result.code, result.err) == (0, "")
    (tmp_path / "images").mkdir()
    with open(tmp_path / "gt.jsonl", "w") as stream:
        for (name, data), (_, record) in zip(entries()[::2], entries()[1::2], strict=True):
            (tmp_path / "images" / name).write_bytes(data)
            stream.write(json.dumps({**json.loads(record), "file_name": name}) + "\n")
    words = ("--images", tmp_path / "images", "--save-images", tmp_path / "folder", tmp_path / "gt.jsonl")
    assert hoicli("corrupt", *OPTIONS, *words).out == result.out
    lines = result.out.splitlines(keepends=True)
    assert sorted(tree(tmp_path / "out")) == sorted(f"{cell}/00.tar" for cell in CELLS)
    for column, cell in enumerate(CELLS):
        found = unpacked(tmp_path / "out" / cell / "00.tar")
        assert list(found) == [name for name, _ in entries()]
        images = {name: data for name, data in found.items() if not name.endswith(".json")}
        assert images == tree(tmp_path / "folder" / cell)
        assert [found[f"{number:06}.json"].decode() for number in range(3)] == lines[column :: len(CELLS)]


def test_processes_change_nothing_and_a_finished_tar_is_left(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = hoicli("corrupt", *OPTIONS, "--save-images", out, shard)
    expected = tree(out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.tar")}
    missing, damaged, foreign = (out / cell / "00.tar" for cell in CELLS[:3])
    missing.unlink()
    damaged.write_bytes(damaged.read_bytes()[:1000])
    write(foreign, entries())
    again = hoicli("corrupt", *OPTIONS[:-1], 3, "--save-images", out, shard)
    assert again.out == first.out
    assert tree(out) == expected
    changed = {path for path, stamp in before.items() if path.stat().st_mtime_ns != stamp}
    assert changed == {missing, damaged, foreign}
    other = hoicli("corrupt", *OPTIONS, "--seed", 1, "--save-images", out, shard)
    assert other.out != first.out
    assert tree(out).keys() == expected.keys()
    assert tree(out) != expected
    write(shard, entries(3))  # another shard under the name of the first
    assert "image-3" in hoicli("corrupt", *OPTIONS, "--seed", 1, "--save-images", out, shard).out


def test_shards_are_shared_out_whole(hoicli: Hoicli, tmp_path: Path) -> None:
    shards = [write(tmp_path / f"{number}.tar", entries(3 * number)) for number in range(3)]
    whole = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "whole", *shards)
    assert whole.code == 0
    parts = [hoicli("corrupt", *OPTIONS, "--shard", f"{k}/2", "--save-images", tmp_path / "parts", *shards).out
             for k in (1, 2)]  # fmt: skip
    assert [parts[0].count("\n"), parts[1].count("\n")] == [36, 18]
    assert sorted("".join(parts).splitlines()) == sorted(whole.out.splitlines())
    assert tree(tmp_path / "parts") == tree(tmp_path / "whole")


def test_a_killed_run_is_taken_up(hoicli: Hoicli, tmp_path: Path) -> None:
    shard = write(tmp_path / "00.tar", [(f"{n:03}.jpg", pixels(n % 9, "JPEG")) for n in range(150)])
    words = ("corrupt", "--corruption", "jpeg,glass_blur", "--jobs", "1", "--save-images")
    command = [sys.executable, "-m", "hoicli", *words, str(tmp_path / "killed"), str(shard)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    part = tmp_path / "killed/.00.tar.part"
    deadline = time.monotonic() + PATIENCE
    while not list(part.glob("*.tar")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [path for path in (tmp_path / "killed").rglob("*.tar") if ".00.tar.part" not in str(path)]
    again = hoicli(*words, tmp_path / "killed", shard)
    whole = hoicli(*words, tmp_path / "whole", shard)
    assert again.out == whole.out
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")  # the folder that was left is gone, too


def test_a_shard_that_another_run_writes_is_refused(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    words = ("corrupt", "--corruption", "jpeg", "--severity", 1, "--save-images", tmp_path / "out", shard)
    (tmp_path / "out").mkdir()
    part = tmp_path / f"out/.{shard.name}.part"
    with work_folder(part):
        (part / "unfinished").touch()
        result = hoicli(*words)
        assert (result.code, result.out) == (1, "")
        assert result.err == f"{part}: is written by another run; wait for it, or write elsewhere\n"
        assert (part / "unfinished").exists()
    assert hoicli(*words).code == 0
    assert not part.exists()


def test_sigterm_leaves_no_unfinished_shard_and_no_worker(tmp_path: Path) -> None:
    shard = write(tmp_path / "00.tar", [(f"{n:03}.jpg", pixels(n % 9, "JPEG")) for n in range(150)])
    out = tmp_path / "out"
    words = ("corrupt", "--corruption", "jpeg,glass_blur", "--jobs", "2", "--save-images", str(out), str(shard))
    process = subprocess.Popen(
        [sys.executable, "-m", "hoicli", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while not list(out.glob(".00.tar.part/tmp*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE)[1] == b"hoicli: ended by SIGTERM\n"
    assert process.returncode == -signal.SIGTERM
    assert list(out.iterdir()) == []
    with suppress(ProcessLookupError):
        while True:  # the workers are gone; multiprocessing's tracker goes when it is told
            os.killpg(process.pid, 0)
            assert time.monotonic() < deadline
            time.sleep(0.01)


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


LINK = "is a link, and links are not followed; "


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([special("l.jpg", tarfile.SYMTYPE, "/etc/passwd")], f"00.tar: 'l.jpg' {LINK}"),
        ([special("l.jpg", tarfile.LNKTYPE, "000000.jpg")], f"00.tar: 'l.jpg' {LINK}"),
        ([special("null.jpg", tarfile.CHRTYPE)], "00.tar: 'null.jpg' is a device or a pipe; "),
        ([special("pipe.jpg", tarfile.FIFOTYPE)], "00.tar: 'pipe.jpg' is a device or a pipe; "),
        ([special("s.jpg", tarfile.GNUTYPE_SPARSE)], "00.tar: 's.jpg' is a sparse file; "),
        ([("/abs.jpg", b"")], "00.tar: '/abs.jpg' leads out of the folder; "),
        ([("a/../../up.jpg", b"")], "00.tar: 'a/../../up.jpg' leads out of the folder; "),
        ([("C:\\x.jpg", b"")], "leads out of the folder; "),
        ([("\x1b[31m.jpg", b"")], r"00.tar: '\x1b[31m.jpg' is no name ("),
        ([(f"{'x' * 300}.jpg", b"")], "is no name ("),
        ([("1.txt", b"")], "00.tar: 1: no image (.jpg, .jpeg or .png) beside .txt; "),
        ([("1.jpg", b""), ("1.png", b"")], "00.tar: 1: '1.jpg' and '1.png': two of a kind; "),
        ([("1.jpg", b""), ("1.json", b"{}"), ("1.json", b"{}")], "'1.json' and '1.json': two of a kind; "),
        ([(name, data) for name, data in entries()[:1]], "00.tar: 000000: its files do not stand together, or are "),
        ([("1.jpg", b""), ("1.json", b"{")], "00.tar: 1.json: a JSON object over several lines; "),
        ([("1.jpg", b""), ("1.json", b"[]")], "00.tar: 1.json: an array, not an object; "),
        ([("1.jpg", b""), ("1.json", b'{"boxes": 7}')], "00.tar: 1.jpg: boxes: a number; "),
        ([("1.jpg", b""), ("1.json", b'{"image_id": "image-0"}')], "image_id: image 'image-0' is at "),
        ([("1.jpg", b"")], "00.tar: 1.jpg: file_name: '1.jpg' the file is empty (0 bytes)"),
        ([("1.jpg", b"text")], "00.tar: 1.jpg: file_name: '1.jpg' is no image that can be read ("),
    ],
)
def test_a_bad_member_is_one_line_or_left_out(
    hoicli: Hoicli, tmp_path: Path, bad: list[Entry | tarfile.TarInfo], message: str
) -> None:
    (tmp_path / "good").mkdir()
    good = write(tmp_path / "good/00.tar", entries())
    expected = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "expected", good)
    shard = write(tmp_path / "00.tar", [*entries(), *bad])
    out = ("--save-images", tmp_path / "out")
    stopped = hoicli("corrupt", *OPTIONS, *out, shard)
    assert (stopped.code, stopped.out, stopped.err.count("\n")) == (1, "", 1)
    assert message in stopped.err
    assert tree(tmp_path / "out") == {}
    for _ in range(2):  # the second time the tars are there
        skipped = hoicli("corrupt", *OPTIONS, *out, "--on-error", "skip", shard)
        assert (skipped.code, skipped.out) == (0, expected.out)
        assert skipped.err.startswith("hoicli: skipped 1 image; the first: ")
        assert message in skipped.err
    for cell in CELLS:
        name = f"{cell}/00.tar"
        assert unpacked(tmp_path / "out" / name) == unpacked(tmp_path / "expected" / name)
    assert hoicli("corrupt", *OPTIONS, *out, shard).code == 1  # what was skipped is not forgotten


@pytest.mark.parametrize("cut", [300, 700, 1536, -11000, -9900])
def test_a_shard_cut_off_is_told(hoicli: Hoicli, shard: Path, tmp_path: Path, cut: int) -> None:
    shard.write_bytes(shard.read_bytes()[:cut])
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"{shard}: is no whole tar file: ")
    assert tree(tmp_path / "out") == {}


def test_what_is_no_tar_is_told(hoicli: Hoicli, tmp_path: Path) -> None:
    shard = tmp_path / "00.tar"
    for content in (b"", b"text", bytes(5000), b"\x1f\x8b" + bytes(2000), b"\xff" * 20_000):
        shard.write_bytes(content)
        result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
        assert (result.out, result.err.count("\n"), result.code) == ("", 1, int(any(content) or not content))
    assert "no such file" in hoicli("corrupt", "--save-images", tmp_path / "out", tmp_path / "no.tar").err


def test_a_pipe_is_told(hoicli: Hoicli, tmp_path: Path) -> None:
    for path in (tmp_path / "pipe.tar", tmp_path / "folder.tar"):
        os.mkfifo(path) if path.stem == "pipe" else path.mkdir()
        result = hoicli("corrupt", "--save-images", tmp_path / "out", path)
        assert (result.code, result.err) == (1, f"{path}: is no file; a shard is a plain tar on disk\n")


def header(name: str, kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each read of a tar, as they are asked for."""
    asked: list[int] = []

    class Counted(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(self.seek(0, 2) if size is None or size < 0 else size)
            return super().read(size) or b""

    monkeypatch.setattr(tars, "open", Counted, raising=False)
    return asked


SPARSE = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"


@pytest.mark.parametrize(
    "data",
    [
        header("x", b"L", 1 << 40),
        header("x", b"x", 3 << 20) + bytes(3 << 20),
        header("x", b"x", 512).join([b""] * 5000),
        (header("x", b"L", 5) + b"a.jpg".ljust(512, b"\0")) * 5000,
        header("1.jpg", b"0", 1 << 60),
        header("1.jpg", b"0", -1024),
        header("x", b"x", 20) + b"20 size=-1000000000\n".ljust(512, b"\0") + header("1.jpg", b"0", 5),
        header("x", b"x", 44) + SPARSE.ljust(512, b"\0") + header("1.jpg", b"0", 512) + b"9" * 512,
    ],
)
def test_hostile_headers_cost_nothing(tmp_path: Path, data: bytes, reads: list[int]) -> None:
    path = tmp_path / "00.tar"
    path.write_bytes(data + bytes(1024))
    found = list(tars.members(str(path)))
    assert isinstance(found[-1], DataError)
    assert "is no whole tar file" in str(found[-1])
    assert len(reads) < 20 + len(data) // 100
    assert sum(reads) < 2 * len(data) + 8192


def test_a_member_is_passed_over(tmp_path: Path, reads: list[int]) -> None:
    """A gigabyte that is neither image nor record is not read."""
    path = tmp_path / "00.tar"
    with open(path, "wb") as stream:
        stream.write(header("0.mp4", b"0", 1 << 30))
        stream.seek(512 + (1 << 30))
        stream.write(header("0.jpg", b"0", 0) + bytes(1024))
    assert [one.name for one in tars.members(str(path)) if isinstance(one, tars.Member)] == ["0.mp4", "0.jpg"]
    assert sum(reads) < 8192


def test_what_is_neither_image_nor_record_is_left_out_with_a_word(hoicli: Hoicli, tmp_path: Path) -> None:
    folder = special("folder", tarfile.DIRTYPE)
    members = [("._x.jpg", b""), ("a/b.jpg", pixels(0, "JPEG")), ("a/b.seg.png", b"mask"), ("a/b.txt", b"words")]
    shard = write(tmp_path / "00.tar", [folder, *members])
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    assert (result.code, result.err) == (0, "hoicli: left out of the shards: 1 .seg.png, 1 .txt\n")
    assert json.loads(result.out.splitlines()[0])["image_id"] == "b"
    assert list(unpacked(tmp_path / "out/jpeg/2/00.tar")) == ["a/b.jpg", "a/b.json"]


def test_a_shard_without_images_is_told(hoicli: Hoicli, tmp_path: Path) -> None:
    shard = write(tmp_path / "00.tar", [])
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    assert (result.code, result.out) == (0, "")
    assert result.err == f"hoicli: {shard}: no image to corrupt in this shard, so none is made of it\n"
    assert not list((tmp_path / "out").glob("**/*.tar"))


def test_images_of_two_shards_differ(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "01.tar", entries())
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard, other)
    assert result.code == 1
    assert f"{other}: 000000.jpg: image_id: image 'image-0' is at {shard}: 000000.jpg already" in result.err


def test_a_source_is_never_replaced(hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "jpeg/2").mkdir(parents=True)
    shard = write(tmp_path / "jpeg/2/00.tar", entries())
    before = shard.read_bytes()
    result = hoicli("corrupt", *OPTIONS, "--on-error", "skip", "--save-images", tmp_path, shard)
    assert (result.code, result.err) == (
        1, f"{shard}: lies where --save-images {tmp_path} is written; give another folder\n",
    )  # fmt: skip
    assert shard.read_bytes() == before


def test_a_link_out_of_the_folder_is_not_followed(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "away").mkdir()
    os.symlink(tmp_path / "away", tmp_path / "out/jpeg")
    result = hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    assert (result.code, "leads out of --save-images" in result.err) == (1, True)
    assert not list((tmp_path / "away").iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["00.tar", "gt.jsonl"], "00.tar and gt.jsonl: give shards, or records and images; not both at once"),
        (["00.tar", "a/00.tar"], "00.tar and a/00.tar: two shards of one name; "),
        (["00.tar.gz"], "00.tar.gz: a shard is a plain .tar; unpack it first"),
        (["00.tgz"], "00.tgz: a shard is a plain .tar; "),
    ],
)
def test_a_wrong_call_is_one_clear_line(hoicli: Hoicli, tmp_path: Path, words: list[str], message: str) -> None:
    result = hoicli("corrupt", "--save-images", tmp_path / "out", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it leaves its files open
def test_webdataset_reads_them(hoicli: Hoicli, shard: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed (hoicli[dev-torch])")
    hoicli("corrupt", *OPTIONS, "--save-images", tmp_path / "out", shard)
    samples = list(webdataset.WebDataset(str(tmp_path / "out/elastic/5/00.tar"), shardshuffle=False))
    assert [sample["__key__"] for sample in samples] == ["000000", "000001", "000002"]
    assert json.loads(samples[0]["json"])["corruption"] == "elastic"
