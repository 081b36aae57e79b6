"""A WordNet: its files, as Princeton distributes them and nltk reads them, in a folder or packed; and as arrays: names
of senses, lemmas, relations, depths and counts, for what is computed in bulk.

A synset is an integer, its row: the parts of speech follow one another (nouns, verbs, adjectives, adverbs), each in the
order of its data file, so `ranges["v"]` are all verb synsets and a relation may cross parts of speech. The arrays are
made by `array_making.compile_arrays` from nltk's reader, with nltk's names; they open in milliseconds.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from hoicli.errors import DataError
from hoicli.io.file_claims import register_input
from hoicli.records.kit import Ints, starts_of

DATABASE = tuple(f"{kind}.{name}" for name, kind in product(("noun", "verb", "adj", "adv"), ("data", "index")))
"""Files that every WordNet has."""

SHARED = ("lexnames", "noun.exc", "verb.exc", "adj.exc", "adv.exc")
"""Files that some WordNets leave out (names of parts of the database, irregular forms) and take from another one."""

COUNTS = "cntlist.rev"
"""The file that says how often each sense was tagged; some have none."""

LARGEST = 1 << 28
"""The most bytes of a file: seventeen times WordNet 3.0's largest. A file that unpacks to more is refused."""

Arrays = Mapping[str, npt.NDArray[Any]]

POS = ("n", "v", "a", "r")
"""Nouns, verbs, adjectives (satellites, "s" in names, among them) and adverbs, in the order of the rows."""

RELATIONS = {
    "hypernym": "@",
    "instance_hypernym": "@i",
    "hyponym": "~",
    "instance_hyponym": "~i",
    "attribute": "=",
    "derivation": "+",
    "entailment": "*",
    "cause": ">",
    "also_see": "^",
    "verb_group": "$",
    "similar": "&",
    "pertainym": "\\",
}
"""The relations of `Graph.edges` by name, with the database's symbol; an adverb's "pertainym" is its adjective."""

HYPERNYMS = ("hypernym", "instance_hypernym")


class Files:
    """The files of a WordNet in one folder. nltk's readers take it for a corpus: they call `open` and `fileids`."""

    def __init__(self, folder: Path | zipfile.Path, spare: Files | None = None) -> None:
        """Use a folder, which may be in an archive, as nltk's downloader leaves it. spare: the files to use for those
        of SHARED that this folder lacks."""
        self.folder, self._spare = folder, spare

    def fileids(self) -> list[str]:
        """Return the names of all files with words of other languages, such as fra/wn-data-fra.tab."""
        names: list[str] = []
        for folder in self.folder.iterdir():
            if folder.is_dir():
                names += [f"{folder.name}/{file.name}" for file in folder.iterdir() if file.name.endswith(".tab")]
        return sorted(names)

    def has(self, name: str) -> bool:
        """Return whether the file is there, as a regular file rather than a pipe or device."""
        return (self.folder / name).is_file()

    def open(self, name: str) -> IO[bytes]:
        """Return the file, opened. Raises `DataError` where it is missing or cannot be read."""
        if self._spare is not None and name in SHARED and not self.has(name):
            return self._spare.open(name)
        return io.BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        """Return the content of the file. Raises `DataError` where it is missing or cannot be read."""
        place = str(self.folder)
        if not self.has(name):
            raise DataError(f"no {name} in it; a WordNet has data.noun, index.noun and the like", place=place)
        path = self.folder / name
        if isinstance(path, Path):
            register_input(path)
        try:
            with path.open("rb") as stream:
                data: bytes = stream.read(LARGEST + 1)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{name} cannot be read ({error})", place=place) from None
        if len(data) > LARGEST:
            raise DataError(f"{name} has more than {LARGEST:,} bytes, which no WordNet has", place=place)
        return data

    def digest(self, names: Iterable[str]) -> str:
        """Return sixteen hexadecimal digits that depend on the content of those of the named files that are there."""
        content = hashlib.sha256()
        for name in names:
            if self.has(name):
                data = self.read(name)
                content.update(f"{name} {len(data)}\n".encode() + data)
        return content.hexdigest()[:16]


class Lemmas(Mapping[str, list[int]]):
    """A mapping {lemma: rows of its synsets}, in the order of POS, and within each by frequency."""

    def __init__(self, arrays: Arrays) -> None:
        """Take the arrays "lemmas" [bytes]: the L lemmas, sorted, a line each; "sense_count" [L]: how many senses each
        lemma has; "senses" [S]: the rows of their synsets."""
        self._arrays = arrays
        self._start = starts_of(arrays["sense_count"])
        self._senses = arrays["senses"]

    def __getitem__(self, lemma: str) -> list[int]:
        """Return the rows of the synsets of a lemma; raise `KeyError` for a text that is no lemma."""
        number = bisect_left(self._lemmas, lemma)
        if self._lemmas[number : number + 1] != [lemma]:
            raise KeyError(lemma)
        return self.senses(number)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the lemmas, sorted."""
        return iter(self._lemmas)

    def __len__(self) -> int:
        """Return the number of lemmas."""
        return len(self._start) - 1

    def senses(self, number: int) -> list[int]:
        """Return the rows of the synsets of a lemma, given its number (its place among the sorted lemmas)."""
        rows: list[int] = self._senses[self._start[number] : self._start[number + 1]].tolist()
        return rows

    @cached_property
    def _lemmas(self) -> list[str]:
        """Return the lemmas, sorted."""
        return _lines(self._arrays["lemmas"])


class Graph:
    """The synsets of a WordNet and the relations between them. A synset is a row number.

    `array(name)` returns a compiled array. For the N synsets, of which the first U are nouns and verbs, there are:

    - "min_depth", "max_depth" [U]: edges of the shortest and of the longest way up to a root;
    - "concordance" [U], if `counted`: how often a sense or anything below it was tagged, plus one for each synset
      counted; a synset counts once for every synset above it, however many ways lead there;
    - "gloss_count" [2 N], "gloss_words" [G]: how many words each gloss has, first without its examples and then in them
      alone, and their numbers, in that order;
    - "antonyms" [3, A]: place in POS and two numbers of lemmas that are opposites in some sense, both ways round.
    """

    def __init__(self, arrays: Arrays) -> None:
        """Use compiled arrays {name: array}, as `array_making.compile_arrays` makes them. `counted`: whether they have
        counts of tagged senses; `ranges`: {part of speech: the rows of its synsets}."""
        self.array = cache(arrays.__getitem__)  # an .npz file would unpack an array at each look-up
        self.counted = "concordance" in arrays
        bounds = starts_of(arrays["sizes"]).tolist()
        self.size: int = bounds[-1]
        """N, the number of synsets."""
        self.ranges = {pos: range(*span) for pos, span in zip(POS, pairwise(bounds), strict=True)}

    @cached_property
    def lemmas(self) -> Lemmas:
        """Return the lemmas of all synsets; a lemma's number is its place among them, sorted."""
        return Lemmas({name: self.array(name) for name in ("lemmas", "sense_count", "senses")})

    def row(self, name: str) -> int:
        """Return the row of a synset by its own name, "ride.v.10"; raise `KeyError` for any other text."""
        lemma, *rest = name.rsplit(".", 2)  # rest: part of speech and number
        for row in self.lemmas[lemma] if len(rest) == 2 else ():
            if self.names[row] == name:
                return row
        raise KeyError(name)

    @cached_property
    def names(self) -> list[str]:
        """Return [N]: the name of each synset, as nltk has it: its first word, part of speech, and the number of that
        word's sense ("ride.v.10").

        A satellite (an adjective near another one in meaning, "s") is numbered among all adjective senses of its word,
        as WordNet does (`WordNetReader`).
        """
        return _lines(self.array("names"))

    @cached_property
    def offset(self) -> Ints:
        """Return [N]: the byte offset of each synset in the data file of its part of speech."""
        return self.array("offset").astype(np.int64)

    def row_at_offset(self, pos: str, offset: int) -> int:
        """Return the row of the synset at a byte offset in the data file of a part of speech; raise `KeyError` if none
        begins there. pos: of POS, or "s" for satellites, which are in the adjectives' file."""
        rows = self.ranges["a" if pos == "s" else pos]
        row = rows.start + int(np.searchsorted(self.offset[rows.start : rows.stop], offset))
        if row < rows.stop and self.offset[row] == offset:
            return row
        raise KeyError(f"{pos}{offset:08d}")

    def pos(self, row: int) -> str:
        """Return the part of speech (of POS) of a row. Raises `IndexError` for a number that is no row."""
        for pos, rows in self.ranges.items():
            if row in rows:
                return pos
        raise IndexError(f"no synset {row}")

    def words(self, row: int) -> list[int]:
        """Return the numbers of the lemmas (words) of a synset, given its row; first the word that names it."""
        numbers: list[int] = self.array("words")[self._word_start[row] : self._word_start[row + 1]].tolist()
        return numbers

    @cached_property
    def _word_start(self) -> Ints:
        """Return [N + 1]: where the words of each synset begin in the array "words"."""
        return starts_of(self.array("word_count"))

    def edges(self, *kinds: str) -> tuple[Ints, Ints]:
        """Return (sources, targets), two columns of rows: all pointers of the named RELATIONS, sorted by source. A
        pointer between two words counts as one between their synsets."""
        start = starts_of(self.array("edge_count"))  # the arrays have one relation after the other
        # where the pointers of each of the named relations are: RELATIONS has the order of the arrays
        spans = [slice(*start[number : number + 2]) for number in map(list(RELATIONS).index, kinds)]
        sources, targets = (
            np.concatenate([self.array(side)[span] for span in spans]).astype(np.int64)
            for side in ("edge_source", "edge_target")
        )
        order = np.argsort(sources, kind="stable")
        return sources[order], targets[order]


def _lines(text: npt.NDArray[Any]) -> list[str]:
    """Return the lines of a text that an array holds as bytes."""
    return text.tobytes().decode().split("\n")
