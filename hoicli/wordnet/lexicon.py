"""A WordNet: its files, nltk's reader where words are looked up, the compiled graph where senses are compared.

The embedded one is Princeton's 3.0: its files as they are distributed (data/princeton), compiled into data/graph.npz by
tests/support/wordnet_build.py. nltk is imported when the first word is looked up, and not for senses that have their
own name.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from hoicli.errors import DataError
from hoicli.io.claims import reads
from hoicli.wordnet.graph import Arrays, Graph, Lemmas

if TYPE_CHECKING:
    from hoicli.wordnet.reader import WordNetReader

PRINCETON = Path(__file__).parent / "data" / "princeton"
GRAPH = PRINCETON.parent / "graph.npz"

_SENSE = re.compile(r".+\.[nvasr]\.(?!0+$)[0-9]{1,3}", re.DOTALL)


DATABASE = tuple(f"{kind}.{name}" for name in ("noun", "verb", "adj", "adv") for kind in ("data", "index"))
"""Files that every WordNet has, as Princeton distributes them and nltk reads them."""

SHARED = ("lexnames", "noun.exc", "verb.exc", "adj.exc", "adv.exc")
"""Files that some leave out: the names of parts of the database, and irregular forms. Others' may stand for them."""

COUNTS = "cntlist.rev"
"""The file that says how often each sense was tagged; some have none."""

LARGEST = 1 << 28
"""Bytes of a file: seventeen times WordNet 3.0's largest. What unpacks to more is refused before it is read."""


class Files:
    """Named files below one place. nltk takes it for a corpus: `open` and `fileids` are what its readers call."""

    def __init__(self, path: Path, inside: str = "", spare: Files | None = None) -> None:
        """path: a folder, or a zip archive and the folder `inside` it. spare: whose SHARED files stand for those that
        are not there. Raises `DataError` for what is neither.
        """
        self.path, self.inside, self._spare = path, inside, spare
        try:
            self._archive = None if path.is_dir() else zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"neither a folder nor an archive ({error})", place=str(path)) from None

    def fileids(self) -> list[str]:
        """The names of all files of words of other languages: fra/wn-data-fra.tab."""
        if self._archive is None:
            found = [file.relative_to(self.path).as_posix() for file in self.path.glob("*/*.tab")]
        else:
            every = self._archive.namelist()
            found = [name[len(self.inside) :] for name in every if name.startswith(self.inside)]
        return sorted(name for name in found if name.endswith(".tab"))

    def has(self, name: str) -> bool:
        """Whether the file is there, and no pipe or device."""
        if self._archive is None:
            return (self.path / name).is_file()
        return self.inside + name in self._archive.namelist()

    def open(self, name: str) -> IO[bytes]:
        """The file. Raises `DataError` where it is not to be had."""
        if self._spare is not None and name in SHARED and not self.has(name):
            return self._spare.open(name)
        return io.BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        """The whole file. Raises `DataError` where it is not to be had."""
        if not self.has(name):
            raise DataError(f"no {name} in it; a WordNet has data.noun, index.noun and the like", place=str(self.path))
        try:
            if self._archive is None:
                reads(self.path / name)
                with (self.path / name).open("rb") as stream:
                    data = stream.read(LARGEST + 1)
            else:
                with self._archive.open(self.inside + name) as member:
                    data = member.read(LARGEST + 1)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{name} cannot be read ({error})", place=str(self.path)) from None
        if len(data) > LARGEST:
            raise DataError(f"{name} has more than {LARGEST:,} bytes, which no WordNet has", place=str(self.path))
        return data

    def digest(self, names: Iterable[str]) -> str:
        """Sixteen hexadecimal digits of the content of those of the files that are there."""
        content = hashlib.sha256()
        for name in names:
            if self.has(name):
                data = self.read(name)
                content.update(f"{name} {len(data)}\n".encode() + data)
        return content.hexdigest()[:16]


@dataclass(eq=False)
class Lexicon:
    """One WordNet; `selection.open_wordnet()` gives the one in use.

    title: how messages name it. signature: how results do, None for the embedded one. words: those of another language,
    which are looked up before English ones.
    """

    title: str
    files: Files
    graph: Graph
    signature: str | None = None
    words: Lemmas | None = None

    @cached_property
    def reader(self) -> WordNetReader:
        """nltk's reader."""
        from hoicli.wordnet.reader import WordNetReader

        return WordNetReader(self.files, self.graph)

    # Words

    def forms(self, word: str, pos: str) -> list[str]:
        """The lemmas that a word of any form may be, as nltk's morphy takes it there; itself first."""
        return [word] if self._foreign(word, pos) else self.reader.forms(word, pos)

    def senses(self, lemma: str, pos: str) -> list[str]:
        """Names of the senses of a lemma as it stands, the most frequent first."""
        found = (lemma.synset().name() for lemma in self.reader.lemmas(lemma, pos))
        return self._foreign(lemma, pos) or list(dict.fromkeys(found))

    def _foreign(self, word: str, pos: str) -> list[str]:
        rows = self.words.get(word, []) if self.words is not None else []
        return [self.name(row) for row in rows if row in self.graph.ranges[pos]]

    def word_senses(self, word: str, pos: str) -> list[int]:
        """Rows of all synsets a word of any form or case may mean, spaces read as underscores."""
        forms = self.forms(word.lower().replace(" ", "_"), pos)
        return [self.graph.row(name) for name in dict.fromkeys(chain(*(self.senses(form, pos) for form in forms)))]

    # Senses

    def index(self, name: str) -> int:
        """The row of a sense by its name. Any word of the synset will do: "motorcar.n.01" is car.n.01.

        Raises `KeyError` for a name that is none.
        """
        try:
            return self.graph.row(name)
        except KeyError:
            synset = self.reader.named(name) if _SENSE.fullmatch(name) else None
        if synset is None:
            raise KeyError(name)
        return self.graph.at(synset.pos(), synset.offset())

    def canonical(self, sense: str) -> str:
        """The sense's own name, by whatever word of the synset it is named; another text stays as it is."""
        try:
            return self.name(self.index(sense))
        except KeyError:
            return sense

    def name(self, row: int) -> str:
        """The sense's name: "ride.v.10"."""
        return self.graph.names[row]

    def synset(self, name: str) -> Any:
        """nltk's `Synset` of a sense: its definition, examples, lemmas and relations."""
        return self.reader.synset(name)

    def translated(self, sense: str) -> str | None:
        """The sense here that is a sense of WordNet 3.0, None where there is none: that of the most words in common.

        A word in its sense has a key that stays from one WordNet to the next; nltk's `map_to_one` goes by it too.
        """
        own = embedded()
        if self.graph is own.graph:
            return sense
        votes: Counter[str] = Counter()
        for lemma in own.synset(sense).lemmas():
            among = self.reader.lemmas(lemma.name(), sense.rsplit(".", 2)[1])
            votes.update({other.synset().name() for other in among if other.key() == lemma.key()})
        return max(votes, key=votes.__getitem__, default=None)


@cache
def embedded() -> Lexicon:
    """WordNet 3.0."""
    return Lexicon("WordNet 3.0", Files(PRINCETON), Graph(loaded(GRAPH.read_bytes())))


def loaded(data: bytes) -> Arrays:
    """The arrays of an .npz file, each unpacked when it is asked for."""
    arrays: Arrays = np.load(io.BytesIO(data), allow_pickle=False)
    return arrays
