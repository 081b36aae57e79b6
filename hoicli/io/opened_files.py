"""Files opened for reading: `-` is stdin, gzip is unpacked, byte order marks are passed over, errors name the file."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import IO, Any, cast

from hoicli.errors import DataError
from hoicli.io.file_claims import reads
from hoicli.io.messages import display_name

MARK = codecs.BOM_UTF8
"""UTF-8's byte order mark. It is ignored at the beginning of every line, because `cat` and `shuf` can move it there."""

_OTHERS = {"UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)}
"""The marks of text in another encoding, as Windows PowerShell's `>` writes them. UTF-32's first begins as UTF-16's."""
CHUNK = 1 << 16
NO_SUCH_FILE = "no such file; check the path"
_UNREADABLE: dict[type[OSError], str] = {
    IsADirectoryError: "is a directory; give a file",
    PermissionError: "not readable; check its permissions",
}
ZIP_MAGIC, NPY_MAGIC = b"PK\x03\x04", b"\x93NUMPY"
GZIP_MAGIC = b"\x1f\x8b"
"""How what is unpacked here begins."""
PROGRAMS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"BZh9": "bzip2"}
"""How other compressed files begin, which are neither read nor written, and the program that does both."""
FIRST = 1 << 16
"""Bytes at the beginning of a file by which `file_kind` knows what it is."""
HEAD = 1 << 12
"""Bytes at the beginning of a file by which it is told from what hoicli reads."""
_FOREIGN_FILES = {
    rb"version https://git-lfs": "is a Git LFS pointer, not the file itself; fetch that: git lfs pull",
    rb"\s*(<\?xml[^>]*>\s*)?<(!doctype\s+html|html|head|body)\b": "is a web page, no data: most likely the download "
    "did not begin; open the address in a browser, and fetch the file itself",
    rb"MATLAB 7\.3|.{124}\x00\x02IM": "is a MATLAB 7.3 file (HDF5); save it with -v7",
    rb"\x89HDF\r\n": "is HDF5 (as MATLAB 7.3 writes it, too); save a .mat file with -v7, arrays with numpy.savez",
    rb"PK\x03\x04.{26}(\[content_types\]|_rels/|docprops/|xl/)|\xd0\xcf\x11\xe0\xa1\xb1": "is Excel's; save it as CSV",
    rb"PK\x03\x04.{26}[^\x00]{1,200}?/(data\.pkl|version|byteorder|\.format_version)": "is a file of torch.save; read "
    "it with torch.load, and write lists and numbers with pickle or json",
    rb"PK\x03\x04(?!.{26,200}?\.npy)": "is an archive; unpack it, and give the file that is in "
    "it (CVAT's: annotations.xml)",
    rb".{257}ustar|7z\xbc\xaf|Rar!\x1a": "is an archive; unpack it, and give the file that is in it",
    rb"PAR1[\x00-\x1f]": "is Parquet; make it lines: duckdb -c \"COPY 'FILE' TO 'NEW.jsonl'\", or pandas' to_json",
    rb"ARROW1\x00|\xff\xff\xff\xff.{4}\x10\x00": "is an Arrow file; make it lines with pyarrow and json",
    rb"SQLite format 3\x00": "is an SQLite database; write its rows as JSON, one object a line",
    rb"\xff\xd8\xff|\x89PNG\r\n|RIFF.{4}WEBP|GIF8[79]a": "is a picture; give the file of its boxes and triplets",
    rb"%PDF-\d": "is a PDF; give the data that it was made of",
    rb"\x1f\x8b": "is compressed by gzip twice; unpack it once: gzip -dc FILE > NEW.gz",
    rb"\d+( [01]?\.\d+){4}( [\d.]+)?\r?\n": "is YOLO's text: boxes of one image, and no triplets; write records "
    "(`hoicli doctor --schema prediction`)",
}
"""How files begin that nothing here reads, and what they are; the first that fits says it."""
DENSE, DENSEST = 1 << 24, 200
"""Compressed data may unpack to DENSE bytes, and to more only up to DENSEST times its size (dumps: 5 to 20 times)."""


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors of the operating system and of decompressors into a `DataError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(NO_SUCH_FILE, place=name, code="no-such-file") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        problem = f"damaged gzip data ({error}); fetch or compress it again"
        raise DataError(problem, place=name, code="damaged") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error}); check the path"
        raise DataError(_UNREADABLE.get(type(error), problem), place=name, code="unreadable") from None


def parts_of(path: str) -> list[str]:
    """Return the files that `a.mat,b.mat` names together; the path itself if it is a file, or has no comma."""
    parts = path.split(",")
    joined = len(parts) > 1 and not os.path.exists(path) and any(map(os.path.exists, parts))
    return parts if joined else [path]


@contextmanager
def open_input(path: str, name: str = "") -> Iterator[IO[bytes]]:
    """Open a file or `-` (stdin), decompressed, and after its byte order mark.

    name: its name in messages (default: its path). Compression is detected by magic bytes, not by name. Raises
    `DataError` if the file does not exist, is a directory, has damaged compressed data, is compressed otherwise, is
    UTF-16 or UTF-32, or is something that `name_foreign_file` knows."""
    name = name or display_name(path)
    reads(path, name)
    with readable(name), ExitStack() as closing:
        if path == "-":
            if sys.stdin is None:  # `<&-`
                raise DataError("is closed; pipe something in, or name a file", place=name, code="unreadable")
            raw = cast("io.BufferedReader", sys.stdin.buffer)
        elif os.path.isdir(path):
            raise IsADirectoryError
        else:
            raw = cast("io.BufferedReader", closing.enter_context(open(path, "rb", buffering=1 << 20)))
        magic, raw = peek(raw)
        if magic.startswith(GZIP_MAGIC):
            packed = _Packed(raw)
            raw = closing.enter_context(io.BufferedReader(Pieces(_unpack(packed, name), packed), 1 << 20))
        elif program := PROGRAMS.get(magic):
            problem = f"is compressed by {program}; pipe it in: {program} -dc FILE | hoicli ..."
            raise DataError(problem, place=name, code="unknown-format")
        head, raw = peek(raw)
        for encoding, marks in _OTHERS.items():
            if head.startswith(marks):
                advice = f"make it UTF-8 first: iconv -f {encoding} -t UTF-8 FILE > NEW"
                raise DataError(f"is {encoding}; {advice}", place=name, code="unknown-format")
        if foreign := name_foreign_file(raw.peek(HEAD)[:HEAD].removeprefix(MARK)):
            raise DataError(foreign, place=name, code="unknown-format")
        if head.startswith(MARK):
            raw.read(len(MARK))
        yield raw


def file_kind(path: str, first: bytes) -> str:
    """Return what a file is by its name and its `first` bytes: folder, npz, npy, pickle, mat, json-list, json-text (a
    JSON string), json-object (or lines of objects), xml, or unknown."""
    if path != "-" and os.path.isdir(path):
        return "folder"
    if path.endswith(".npz") or first.startswith(ZIP_MAGIC):
        return "npz"
    if path.endswith((".mat", ".mat.gz")) or first.startswith(b"MATLAB "):
        return "mat"
    if first.startswith((NPY_MAGIC, b"\x80")):
        return "npy" if first.startswith(NPY_MAGIC) else "pickle"
    begins = {b"[": "json-list", b'"': "json-text", b"{": "json-object", b"<": "xml"}
    return begins.get(first.lstrip(MARK + b" \t\r\n")[:1], "unknown")


def name_foreign_file(head: bytes) -> str | None:
    """Return what a file is that begins with `head` and what to do with it, if nothing here reads such a file; else
    None. Every reader asks by `open_input`, so that all say the same."""
    names = (name for begin, name in _FOREIGN_FILES.items() if re.match(begin, head, re.DOTALL | re.IGNORECASE))
    return next(names, None)


def packed_size(stream: IO[bytes]) -> int | None:
    """Return how many bytes of a compressed file an opened input has read so far; None if it is not compressed."""
    file = getattr(getattr(stream, "raw", None), "fileobj", None)
    return file.tell() if isinstance(file, _Packed) else None


class _Packed:
    """A compressed file that counts the bytes read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._taken = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all that are left for -1."""
        data = self._raw.read(size)
        self._taken += len(data)
        return data

    def tell(self) -> int:
        """Return how many bytes were read so far, which a pipe cannot tell."""
        return self._taken


def _unpack(packed: _Packed, name: str) -> Iterator[bytes]:
    """Yield the unpacked data, piece by piece. Raises `DataError` if it is more than DENSE bytes and more than DENSEST
    times the compressed size, as only a decompression bomb is."""
    unzipped = gzip.GzipFile(fileobj=cast("IO[bytes]", packed), mode="rb")
    unpacked_bytes = 0
    for piece in iter(partial(unzipped.read1, 1 << 16), b""):
        unpacked_bytes += len(piece)
        if unpacked_bytes > max(DENSE, DENSEST * packed.tell()):
            problem = f"unpacks to more than {DENSEST} times its size, as no dump does; if it is one, unpack it first"
            raise DataError(problem, place=name, code="damaged")
        yield piece


class Pieces(io.RawIOBase):
    """A readable file over an iterator of pieces. fileobj: the file they come from; its position gives the progress."""

    def __init__(self, pieces: Iterator[bytes], fileobj: Any) -> None:
        self.fileobj = fileobj
        self._pieces = pieces
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return how many bytes it got; raises what the iterator of pieces raises."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def peek(stream: io.BufferedReader) -> tuple[bytes, io.BufferedReader]:
    """Return (the first four bytes, or all there are; a stream that still begins with them). The second may be a new
    one, since a pipe may at first hold a single byte."""
    head = stream.peek(4)[:4]
    if len(head) == 4:
        return head, stream
    head = stream.read(4)
    pieces = chain([head], iter(partial(stream.read1, CHUNK), b""))
    source = getattr(getattr(stream, "raw", None), "fileobj", stream)
    return head, io.BufferedReader(Pieces(pieces, source), 1 << 20)


def repeated_key(data: bytes, value: Any) -> str | None:
    """Return a key that occurs twice in an object of a JSON text, or None. Readers would keep the last of its two
    values without a word. value: what was read from the text; if it has all keys of the text, that is not read
    again."""
    key_count = data.count(b'":') + data.count(b'" :')
    if type(value) is dict:
        lists = [part for part in value.values() if type(part) is list and part and type(part[0]) is dict]
        if key_count == len(value) + sum(len(item) for item in chain.from_iterable(lists) if type(item) is dict):
            return None
    if key_count == _keys_in(value):
        return None
    repeated: list[str] = []

    def note_repeated(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        repeated.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    with suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=note_repeated)
    return repeated[0] if repeated else None


def refuse_repeated_key(data: bytes, value: Any, place: str) -> None:
    """Raise `DataError` if a key occurs twice in an object of a JSON text."""
    if (key := repeated_key(data, value)) is not None:
        raise DataError(f"the key {key[:60]!r} occurs twice in one object; keep one of the two", place=place)


def _keys_in(value: Any) -> int:
    """Return how many keys a decoded JSON value has, those of objects inside it included."""
    if type(value) is dict:
        return len(value) + sum(map(_keys_in, value.values()))
    return sum(map(_keys_in, value)) if type(value) is list else 0
