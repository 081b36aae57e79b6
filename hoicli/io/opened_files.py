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
from hoicli.io.file_claims import register_input
from hoicli.io.messages import display_name

MARK = codecs.BOM_UTF8
"""UTF-8's byte order mark. It is ignored at the beginning of every line, because `cat` and `shuf` can move it there."""

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The byte order marks of UTF-16, which Excel's "Unicode Text" and Windows PowerShell's `>` write."""
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
"""The byte order marks of UTF-32, one of which begins with one of UTF-16's."""
_OPENING = frozenset(b'{["<')
"""The characters with which a text begins that may be UTF-16 without a mark: JSON, XML."""
_BY_ZEROS = {b"\0\1\0\1": "utf-16-le", b"\1\0\1\0": "utf-16-be"}
"""The encoding of a text without a mark, by which of its first four bytes are zero (1)."""
CHUNK = 1 << 16
"""Bytes that are read from a pipe at once."""
NO_SUCH_FILE = "no such file; check the path"
_UNREADABLE: dict[type[OSError], str] = {
    IsADirectoryError: "is a directory; give a file",
    PermissionError: "not readable; check its permissions",
}
ZIP_MAGIC, NPY_MAGIC = b"PK\x03\x04", b"\x93NUMPY"
GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip file, which is unpacked here."""
PROGRAMS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"BZh9": "bzip2"}
"""The first bytes of other compressed files, which are not unpacked here, and the program that does it."""
FIRST = 1 << 16
"""Bytes at the beginning of a file by which `file_kind` knows what it is."""
HEAD = 1 << 12
"""Bytes at the beginning of a file by which `name_foreign_file` recognises what hoicli cannot read."""
_FOREIGN_FILES = {
    rb"version https://git-lfs": "is a Git LFS pointer, not the file itself; fetch that: git lfs pull",
    rb"\s*(<\?xml[^>]*>\s*)?<(!doctype\s+html|html|head|body)\b": "is a web page, no data: most likely the download "
    "did not begin; open the address in a browser, and fetch the file itself",
    rb"MATLAB 7\.3|.{124}\x00\x02IM": "is a MATLAB 7.3 file (HDF5); save it with -v7",
    rb"\x89HDF\r\n": "is HDF5 (as MATLAB 7.3 writes it, too); save a .mat file with -v7, arrays with numpy.savez",
    rb"PK\x03\x04.{26}(\[content_types\]|_rels/|docprops/|xl/)|\xd0\xcf\x11\xe0\xa1\xb1": "is Excel's; save it as CSV "
    "(Excel: CSV UTF-8)",
    rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis\.": "is LibreOffice's; save it as CSV",
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
"""Files that hoicli cannot read: a pattern of their first bytes, and the message that says what they are. The first
pattern that fits counts."""
DENSE, DENSEST = 1 << 24, 200
"""Compressed data may unpack to DENSE bytes, and to more only up to DENSEST times its size (dumps: 5 to 20 times)."""


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors of the operating system and of decompressors in the block into a `DataError` at `name`."""
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
    """Return the files that `path` names: two for "a.mat,b.mat" if one of these is there, and not the whole."""
    parts = path.split(",")
    joined = len(parts) > 1 and not os.path.exists(path) and any(map(os.path.exists, parts))
    return parts if joined else [path]


@contextmanager
def open_input(path: str, name: str = "") -> Iterator[IO[bytes]]:
    """Open a file or `-` (stdin) for reading bytes: gzip is unpacked, a byte order mark is skipped, and UTF-16 becomes
    UTF-8.

    Raises `DataError` if the file is missing, a directory, damaged, or of a kind that hoicli cannot read."""
    name = name or display_name(path)
    register_input(path, name)
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
            pieces = ChunkReader(_unpack(packed, name), packed)
            raw = closing.enter_context(io.BufferedReader(pieces, 1 << 20))
        elif program := PROGRAMS.get(magic):
            problem = f"is compressed by {program}; pipe it in: {program} -dc FILE | hoicli ..."
            raise DataError(problem, place=name, code="unknown-format")

        head, raw = peek(raw)  # of the unpacked content
        encoding = wide_encoding(head)
        if encoding == "utf-32":
            advice = "make it UTF-8 first: iconv -f UTF-32 -t UTF-8 FILE > NEW"
            raise DataError(f"is UTF-32; {advice}", place=name, code="unknown-format")
        if encoding:
            source = getattr(getattr(raw, "raw", None), "fileobj", raw)  # whose position counts
            pieces = ChunkReader(_recode(raw, name, encoding), source)
            raw = closing.enter_context(io.BufferedReader(pieces, 1 << 20))
            head, raw = peek(raw)
        if foreign := name_foreign_file(raw.peek(HEAD)[:HEAD].removeprefix(MARK)):
            raise DataError(foreign, place=name, code="unknown-format")
        if head.startswith(MARK):
            raw.read(len(MARK))
        yield raw


def wide_encoding(head: bytes) -> str:
    """Return the encoding of a text whose characters have two or four bytes, by its first four bytes: "utf-16" or
    "utf-32" with a byte order mark, "utf-16-le" or "utf-16-be" without one; "" for any other file.

    Without a mark, a text that begins with two ASCII characters has zeros beside them (RFC 4627, section 3)."""
    if head.startswith(_UTF_32):
        return "utf-32"
    if head.startswith(_UTF_16):
        return "utf-16"
    return _BY_ZEROS.get(bytes(byte == 0 for byte in head), "") if _OPENING.intersection(head) else ""


def _recode(raw: IO[bytes], name: str, encoding: str) -> Iterator[bytes]:
    """Yield the content of a file of UTF-16 as UTF-8, without its mark. Raises `DataError` for other content."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in iter(partial(raw.read, CHUNK), b""):
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError:
        problem = "begins as UTF-16 does, but some of it is not; save it as UTF-8"
        raise DataError(problem, place=name, code="damaged") from None


def file_kind(path: str, first: bytes) -> str:
    """Return the kind of a file by its path and its first bytes: folder, npz, npy, pickle, mat, json-list, json-text (a
    JSON string), json-object (or lines of objects), xml, or unknown. first: up to FIRST bytes."""
    if path != "-" and os.path.isdir(path):
        return "folder"
    if path.endswith(".npz") or first.startswith(ZIP_MAGIC):
        return "npz"
    if path.endswith((".mat", ".mat.gz")) or first.startswith(b"MATLAB "):
        return "mat"
    if first.startswith(NPY_MAGIC):
        return "npy"
    if first.startswith(b"\x80"):  # the first instruction of a pickle, PROTO
        return "pickle"
    kinds = {b"[": "json-list", b'"': "json-text", b"{": "json-object", b"<": "xml"}
    return kinds.get(first.lstrip(MARK + b" \t\r\n")[:1], "unknown")


def is_early_pickle(first: bytes, last: bytes) -> bool:
    """Return whether the first and the last byte of a file are those of a pickle by the first protocols, which have no
    mark: it begins a container or names a class, and ends, as all do, with a full stop."""
    return first in (b"(", b")", b"]", b"}", b"c") and last == b"."


def name_foreign_file(head: bytes) -> str | None:
    """Return a message that says what a file is and what to do with it, if hoicli cannot read such files; else None.
    head: the file's first HEAD bytes. `open_input` calls it, so all readers give the same message."""
    for pattern, message in _FOREIGN_FILES.items():
        if re.match(pattern, head, re.DOTALL | re.IGNORECASE):
            return message
    return None


def packed_size(stream: IO[bytes]) -> int | None:
    """Return how many bytes of a compressed file `open_input` has read so far; None if it is not compressed."""
    file = getattr(getattr(stream, "raw", None), "fileobj", None)
    return file.tell() if isinstance(file, _Packed) else None


class _Packed:
    """A compressed file that counts the bytes that were read from it. gzip reads from it by `read`."""

    def __init__(self, raw: io.BufferedReader) -> None:
        """Wrap an opened file."""
        self._raw = raw
        self._bytes_read = 0

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, or all that are left for -1."""
        data = self._raw.read(size)
        self._bytes_read += len(data)
        return data

    def tell(self) -> int:
        """Return how many bytes have been read so far. A pipe itself could not tell this."""
        return self._bytes_read


def _unpack(packed: _Packed, name: str) -> Iterator[bytes]:
    """Yield the unpacked data of a gzip file in pieces of up to 64 KiB. Raises `DataError` if it is more than DENSE
    bytes and more than DENSEST times the compressed size: a decompression bomb. name: what messages call the file."""
    unzipped = gzip.GzipFile(fileobj=cast("IO[bytes]", packed), mode="rb")
    unpacked_bytes = 0
    for piece in iter(partial(unzipped.read1, 1 << 16), b""):
        unpacked_bytes += len(piece)
        if unpacked_bytes > max(DENSE, DENSEST * packed.tell()):
            problem = f"unpacks to more than {DENSEST} times its size, as no dump does; if it is one, unpack it first"
            raise DataError(problem, place=name, code="damaged")
        yield piece


class RawReader(io.RawIOBase):
    """The base of files that are read through `io.BufferedReader`, which asks whether they can be."""

    def readable(self) -> bool:
        """Return True."""
        return True


class ChunkReader(RawReader):
    """A readable file whose content comes from an iterator of bytes. fileobj: the file that they come from."""

    def __init__(self, chunks: Iterator[bytes], fileobj: Any) -> None:
        """Wrap an iterator of bytes."""
        self.fileobj = fileobj
        self._chunks = chunks
        self._rest = memoryview(b"")  # of the last chunk

    def readinto(self, buffer: Any) -> int:
        """Copy the next bytes into `buffer` and return how many, 0 at the end. Raises what the iterator raises."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def peek(stream: io.BufferedReader) -> tuple[bytes, io.BufferedReader]:
    """Return (the first four bytes of a stream, or all there are; a stream that still begins with them). It is a new
    one if `stream` is a pipe that has sent fewer bytes so far: read on from that."""
    head = stream.peek(4)[:4]
    if len(head) == 4:
        return head, stream
    head = stream.read(4)  # waits for four bytes, or the end
    chunks = chain([head], iter(partial(stream.read1, CHUNK), b""))
    source = getattr(getattr(stream, "raw", None), "fileobj", stream)  # of gzip: the packed file, whose position counts
    return head, io.BufferedReader(ChunkReader(chunks, source), 1 << 20)


def repeated_key(data: bytes, value: Any) -> str | None:
    """Return a key that occurs twice in one object of a JSON text, or None.

    Outside of strings, a colon follows each key and nothing else. So if the text has as many colons as the value has
    keys, none occurs twice, and the text need not be parsed again, which is slow. Where strings have colons, the keys
    of the text are counted by the quote before the colon."""
    colons = data.count(b":")
    if type(value) is dict:  # a record, whose dicts are in lists: counted faster than by `_keys_in`
        lists = [part for part in value.values() if type(part) is list and part and type(part[0]) is dict]
        with suppress(TypeError):  # not only dicts in a list
            if colons == len(value) + sum(map(dict.__len__, chain.from_iterable(lists))):
                return None
    key_count = _keys_in(value)
    if key_count in (colons, data.count(b'":') + data.count(b'" :')):
        return None
    repeated: list[str] = []

    def note_repeated(pairs: list[tuple[str, Any]]) -> None:
        """Note the keys that are in (key, value) `pairs` of an object more than once."""
        names = [name for name, _ in pairs]
        repeated.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    with suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=note_repeated)
    return repeated[0] if repeated else None


def refuse_repeated_key(data: bytes, value: Any, place: str) -> None:
    """Raise `DataError` at `place` if a key occurs twice in one object of a JSON text. value: of the text."""
    if (key := repeated_key(data, value)) is not None:
        raise DataError(f"the key {key[:60]!r} occurs twice in one object; keep one of the two", place=place)


def _keys_in(value: Any) -> int:
    """Return how many keys a decoded JSON value has in all; lists of numbers or texts are passed over."""
    if type(value) is dict:
        return len(value) + sum(map(_keys_in, value.values()))
    return sum(map(_keys_in, value)) if type(value) is list and value and type(value[0]) in (dict, list) else 0
