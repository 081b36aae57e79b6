"""zstd, read and written by one module: Python's own where it has one (3.14 and later), else zstandard.

A file is one frame after another, of data or to be skipped; one that ends within a frame is cut off and refused, as
with gzip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from hoicli.errors import DataError

MAGIC = b"\x28\xb5\x2f\xfd"
"""What a frame of data begins with."""
SKIPPED_MAGIC = b"\x2a\x4d\x18"
"""What follows the first byte, 0x50 to 0x5f, of a frame to be skipped, which pzstd's files begin with."""

PIECE = 1 << 10
"""Bytes unpacked at a time. Four of a bomb's may hold 128 KiB: 32 MiB come of a piece before anybody can count them."""


def begins_zstd(data: bytes) -> bool:
    """Whether data, the first four bytes of a file or more, begin a frame."""
    return data.startswith(MAGIC) or (data[1:4] == SKIPPED_MAGIC and data[0] >> 4 == 5)


class _Frame(Protocol):
    """The decompressor of one frame, as both modules have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes:
        """All that the frame holds up to here; what comes after its end is unused_data."""
        ...


@dataclass(frozen=True)
class Module:
    """The module in use. frame(): the decompressor of a frame; writer(raw): an open file that ends its frame when it
    is closed and leaves raw open; error: what both raise for damaged data."""

    name: str
    frame: Callable[[], _Frame]
    writer: Callable[[Any], Any]
    error: type[Exception]


def module() -> Module | None:
    """The one to read and write with; None where there is neither. What is written has a checksum, as gzip's has."""
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
    """What the frames of a file hold, one after another, in pieces.

    name: of the file, for messages. Raises `DataError` where no module reads zstd, for damaged data, and for a file
    that ends within a frame.
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
