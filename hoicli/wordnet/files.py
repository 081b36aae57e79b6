"""The files of a WordNet, as Princeton distributes them and nltk reads them, in a folder or packed."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from hoicli.errors import DataError
from hoicli.io.claims import reads

DATABASE = tuple(f"{kind}.{name}" for name in ("noun", "verb", "adj", "adv") for kind in ("data", "index"))
"""Files that every WordNet has."""

SHARED = ("lexnames", "noun.exc", "verb.exc", "adj.exc", "adv.exc")
"""Files that some leave out: the names of parts of the database, and irregular forms. Others' may stand for them."""

COUNTS = "cntlist.rev"
"""The file that says how often each sense was tagged; some have none."""

LARGEST = 1 << 28
"""Bytes of a file: seventeen times WordNet 3.0's largest. What unpacks to more is refused before it is read."""


class Files:
    """Named files below one place. nltk takes it for a corpus: `open` and `fileids` are what its readers call."""

    def __init__(self, folder: Path | zipfile.Path, spare: Files | None = None) -> None:
        """folder: also one in an archive, as nltk's downloader leaves it. spare: whose SHARED files stand for those
        that are not there."""
        self.folder, self._spare = folder, spare

    def fileids(self) -> list[str]:
        """The names of all files of words of other languages: fra/wn-data-fra.tab."""
        folders = (folder for folder in self.folder.iterdir() if folder.is_dir())
        found = (f"{folder.name}/{file.name}" for folder in folders for file in folder.iterdir())
        return sorted(name for name in found if name.endswith(".tab"))

    def has(self, name: str) -> bool:
        """Whether the file is there, and no pipe or device."""
        return (self.folder / name).is_file()

    def open(self, name: str) -> IO[bytes]:
        """The file. Raises `DataError` where it is not to be had."""
        if self._spare is not None and name in SHARED and not self.has(name):
            return self._spare.open(name)
        return io.BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        """The whole file. Raises `DataError` where it is not to be had."""
        place = str(self.folder)
        if not self.has(name):
            raise DataError(f"no {name} in it; a WordNet has data.noun, index.noun and the like", place=place)
        path = self.folder / name
        if isinstance(path, Path):
            reads(path)
        try:
            with path.open("rb") as stream:
                data: bytes = stream.read(LARGEST + 1)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{name} cannot be read ({error})", place=place) from None
        if len(data) > LARGEST:
            raise DataError(f"{name} has more than {LARGEST:,} bytes, which no WordNet has", place=place)
        return data

    def digest(self, names: Iterable[str]) -> str:
        """Sixteen hexadecimal digits of the content of those of the files that are there."""
        content = hashlib.sha256()
        for name in names:
            if self.has(name):
                data = self.read(name)
                content.update(f"{name} {len(data)}\n".encode() + data)
        return content.hexdigest()[:16]
