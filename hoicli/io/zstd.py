"""zstd, read and written by one module: Python's own (3.14 and later), else zstandard. A file is a sequence of frames,
of data or to skip. A file that ends within a frame is refused, as with gzip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from hoicli.errors import DataError

MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame of data."""
SKIPPED_MAGIC = b"\x2a\x4d\x18"
"""The bytes after the first (0x50 to 0x5f) of a skippable frame; pzstd's files begin with one."""

PIECE = 1 << 10
"""Bytes unpacked at a time. Four bytes of a bomb may hold 128 KiB, so a piece unpacks to at most 32 MiB."""


def begins_zstd(data: bytes) -> bool:
    """Whether `data`, at least four bytes, begins with a frame."""
    return data.startswith(MAGIC) or (data[1:4] == SKIPPED_MAGIC and data[0] >> 4 == 5)


class _Frame(Protocol):
    """The decompressor of one frame, the same in both modules."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes:
        """The unpacked data so far; bytes after the frame's end are in unused_data."""
        ...


@dataclass(frozen=True)
class Module:
    """The module in use. frame(): the decompressor of a frame. writer(raw): an open file; closing it ends the frame and
    leaves raw open. error: what frame and writer raise for damaged data."""

    name: str
    frame: Callable[[], _Frame]
    writer: Callable[[Any], Any]
    error: type[Exception]


def module() -> Module | None:
    """The module to read and write with, None if neither is installed. Written files have a checksum, as with gzip."""
    try:
        from compression import zstd  # Python 3.14 and later
    except ImportError:
        pass
    else:
        checked = {zstd.CompressionParameter.checksum_flag: 1}
        return Module(
            "compression.zstd", zstd.ZstdDecompressor, lambda raw: zstd.open(raw, "wb", options=checked), zstd.ZstdError
        )
    try:
        import zstandard
    except ImportError:
        return None
    packer, unpacker = zstandard.ZstdCompressor(write_checksum=True), zstandard.ZstdDecompressor()
    return Module(
        "zstandard", unpacker.decompressobj, lambda raw: packer.stream_writer(raw, closefd=False), zstandard.ZstdError
    )


def unpacked(packed: IO[bytes], name: str) -> Iterator[bytes]:
    """The unpacked data of all frames of a file, in pieces.

    name: of the file, for messages. Raises `DataError` if no module is installed, if data is damaged, and if the file
    ends within a frame.
    """
    found = module()
    if found is None:
        advice = "pip install 'hoicli[zstd]', or pipe it in: zstd -dc FILE | hoicli ..."
        raise DataError(f"is zstd-compressed; {advice}", place=name)
    frame: _Frame | None = None
    while piece := (frame.unused_data if frame is not None else b"") or packed.read(PIECE):
        frame = found.frame()
        try:
            yield frame.decompress(piece)
            while not frame.eof:
                if not (piece := packed.read(PIECE)):
                    raise found.error("it ends before the end of its frame")
                yield frame.decompress(piece)
        except found.error as error:
            raise DataError(f"damaged zstd data ({error}); fetch or compress it again", place=name) from None
