"""Tar files from outside, read as a list of members with nothing followed or unpacked; and written the same every time.

A member's bytes are read at its offset, so that a tar is never in memory, and never on the disk a second time.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

from hoicli.errors import DataError
from hoicli.io.inputs import readable
from hoicli.io.outputs import stays_inside

LONGEST_HEADER = 1 << 20
"""Bytes of what stands before a member's content (long names, attributes): real ones have a few hundred."""
BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * BLOCK)
COMMENT = "comment"
"""The key of a note in a tar's first header, which every reader passes over."""
LONGEST_NAME = 255
"""Characters of a member's name: what file systems take."""
LONGEST_COMMENT = 2000
"""Bytes kept for it, so that it can be written last."""

_DAMAGED = (
    tarfile.TarError, ValueError, OverflowError, RecursionError, LookupError, TypeError, EOFError,
)  # fmt: skip
"""What tarfile raises for bytes that are no tar."""


@dataclass(frozen=True)
class Member:
    """A regular file in a tar: `size` bytes from `offset` on."""

    name: str
    offset: int
    size: int


class _Headers:
    """The tar as tarfile reads it: headers alone, and never more than LONGEST_HEADER bytes for one member."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.left = LONGEST_HEADER

    def read(self, size: int = -1) -> bytes:
        """At most what is left."""
        if not 0 <= size <= self.left:
            raise tarfile.HeaderError("a header of more than a megabyte")
        self.left -= size
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As a file does it."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """As a file does it."""
        return self._stream.tell()


def members(path: str) -> Iterator[Member | DataError]:
    """The regular files of a plain tar in their order. Folders are passed over. A link, a device, a sparse file, and a
    name that leads out of a folder are errors, after which it goes on; damage is the last.

    Raises `DataError` for a file that cannot be read.
    """
    with readable(path), open(path, "rb") as stream:
        length = stream.seek(0, 2)
        stream.seek(0)
        headers = _Headers(stream)
        end = 0
        try:
            archive: Any = tarfile.open(fileobj=cast("IO[bytes]", headers), mode="r:")  # noqa: SIM115 (closes nothing)
            while True:
                headers.left = LONGEST_HEADER
                found = archive.next()
                if found is None:
                    break
                archive.members.clear()  # it would keep them all
                if found.size < 0 or archive.offset <= end or found.offset_data + found.size > length:
                    raise tarfile.ReadError("unexpected end of data")
                end = archive.offset
                if not found.isdir():
                    yield _checked(found, path)
            stream.seek(end)
            mark = stream.read(BLOCK)
            if mark != bytes(BLOCK):
                raise tarfile.ReadError("another thing than a header" if mark else "no mark of the end: cut off?")
        except _DAMAGED as error:
            what = " ".join(str(error).split()) or type(error).__name__
            yield DataError(f"is no whole tar file: {what}, at byte {end:,}; fetch it again", place=path)


def _checked(found: tarfile.TarInfo, path: str) -> Member | DataError:
    """A member that is no folder, or what is wrong with it."""
    name = found.name
    if found.issparse():
        problem = "is a sparse file; a shard holds plain ones"
    elif found.issym() or found.islnk():
        problem = "is a link, and links are not followed; put the file itself into the shard"
    elif not found.isreg():
        problem = "is a device or a pipe; leave it out of the shard"
    elif not stays_inside(name):
        problem = "leads out of the folder; a shard's names are relative, without '..'"
    elif not name.isprintable() or len(name) > LONGEST_NAME:
        problem = "is no name (no UTF-8, control characters, or too long); rename it"
    else:
        return Member(name, found.offset_data, found.size)
    return DataError(f"{name[:60]!r} {problem}", place=path)


def comment_of(path: str) -> str:
    """What `Writer` wrote into the first header; "" for any other file."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(2 * BLOCK + LONGEST_COMMENT)
    except OSError:
        return ""
    record = f" {COMMENT}=".encode()
    if head[156:157] != tarfile.XGLTYPE or record not in head:
        return ""
    return head.partition(record)[2].partition(b"\n")[0].decode("ascii", "replace").rstrip(" ")


class Writer:
    """A tar that is the same for the same members: no times, no owners. Its first header is written last.

    Opens a file that must not exist; raises `OSError`.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "xb")  # noqa: SIM115 (closed by `close`)
        self._file.write(_first_header(""))

    def add(self, name: str, content: IO[bytes], size: int) -> None:
        """The next `size` bytes of `content` as a member."""
        header = tarfile.TarInfo(name)
        header.size = size
        self._file.write(header.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
        self._file.write(content.read(size))
        self._file.write(bytes(-size % BLOCK))

    @property
    def size(self) -> int:
        """Bytes of the finished tar."""
        return self._file.tell() + len(_END)

    def finish(self, comment: str) -> None:
        """Mark the end, and say in the first header what it is."""
        self._file.write(_END)
        self._file.seek(0)
        self._file.write(_first_header(comment))
        self._file.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()


def _first_header(comment: str) -> bytes:
    """Of the same length, whatever the comment (ASCII)."""
    return tarfile.TarInfo.create_pax_global_header({COMMENT: comment[:LONGEST_COMMENT].ljust(LONGEST_COMMENT)})
