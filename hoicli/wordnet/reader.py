"""nltk's reader of WordNet, over any files. Looking words up, taking them to their base form, names, glosses and
relations are nltk's own code and objects, served from compiled arrays where there are some."""

from __future__ import annotations

import io
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hoicli.errors import DataError, UsageError, arg
from hoicli.io import process
from hoicli.wordnet.graph import DATABASE, Files, Graph


@contextmanager
def _hide_scipy() -> Iterator[None]:
    """Hide SciPy and scikit-learn from imports while nltk is imported, if the process is hoicli's own.

    `import nltk` imports all of its parts, and with them these two packages where they are installed, which take most
    of the time; it works without them. In a process that is not hoicli's own they are not hidden.
    """
    hidden = [
        name
        for name in ("scipy", "scipy.stats", "sklearn")
        if process.alone and not {name, "nltk"} & sys.modules.keys()
    ]
    absent: dict[str, Any] = dict.fromkeys(hidden)  # None says to an import that there is no such module
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with _hide_scipy():
    from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError
    from nltk.data import PathPointer, SeekableUnicodeStreamReader, ZipFilePathPointer, find


class WordNetReader(WordNetCorpusReader):  # type: ignore[misc]
    """nltk's reader of a WordNet's files, with two differences that save time, and one that fixes names.

    nltk parses the index files whenever a reader is made; here a compiled graph is used instead. nltk also makes a map
    from WordNet 3.0 to the WordNet that it reads; here there is none. A satellite (an adjective near another one in
    meaning) is numbered among all adjective senses of its word, as WordNet does and nltk did up to 3.9.1.
    """

    def __init__(self, files: Files, graph: Graph | None = None, languages: Files | None = None) -> None:
        """Make a reader. files: the WordNet's; graph: compiled from them, None to have nltk read the index files;
        languages: the files of an Open Multilingual Wordnet, for words of other languages."""
        self.files, self._graph = files, graph
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nltk warns if there are no other languages
            super().__init__(_Place(files), languages)

    def forms(self, word: str, pos: str) -> list[str]:
        """Return all lemmas of a part of speech of which a word may be a form, the word itself first if it is one;
        nltk's own `morphy` returns only the first."""
        forms: list[str] = self._morphy(word, pos)
        return forms

    def find_synset(self, name: str) -> Any:
        """Return nltk's `Synset` with a name such as "ride.v.10", None if there is none."""
        try:
            return self.synset(name)
        except WordNetError:
            return None

    def words_of(self, language: str) -> Mapping[str, list[str]]:
        """Return {word of a language: ids of its synsets ("00001740-n")}. Raises nltk's `WordNetError` for none."""
        self._load_lang_data(language)
        words: Mapping[str, list[str]] = self._lang_data[language][1]
        return words

    def check_offsets(self) -> None:
        """Check that each synset's line in the data files begins with its own byte offset, by which nltk finds it.
        Raises `DataError` for the first that does not, as after a change of line ends."""
        for name in (name for name in DATABASE if name.startswith("data.")):
            byte = 0  # where the line begins
            for line in io.BytesIO(self.files.read(name)):
                if not line[:1].isspace() and line[:9] != b"%08d " % byte:
                    raise DataError(
                        f"{name} has a line at byte {byte} that does not begin with {byte:08d}; get it anew"
                    )
                byte += len(line)

    # What nltk calls to load its data

    def open(self, file: str) -> Any:
        """Return one of the files, opened as text. nltk reads single lines of the data files by their byte offset, in
        which Python's own reader is faster than nltk's."""
        stream = self.files.open(file)
        if file.startswith("data."):
            return io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        return SeekableUnicodeStreamReader(stream, "utf-8")

    def map_wn(self, version: str = "wordnet") -> None:
        """Make no map from WordNet 3.0 to this one; nltk needs it only to read other languages' words with another
        WordNet than 3.0."""

    def _scan_satellites(self) -> None:
        """Find no satellites, so that nltk does not number them apart from other adjectives."""
        self.satellite_offsets: set[int] = set()

    def _load_lemma_pos_offset_map(self) -> None:
        """Set nltk's table {lemma: {part of speech: byte offsets}}, from the graph if there is one. Satellites ("s")
        have the offsets of all adjectives ("a")."""
        if self._graph is not None:
            self._lemma_pos_offset_map: Mapping[str, dict[str, list[int]]] = _Offsets(self._graph)
            return
        super()._load_lemma_pos_offset_map()
        for senses in self._lemma_pos_offset_map.values():
            if "a" in senses:
                senses["s"] = senses["a"]


def find_corpus(name: str) -> Files | None:
    """Return the files of a corpus in nltk's data folders (`nltk.data.path`), unpacked or in an archive; None if there
    is none.

    Raises `UsageError` for one that nltk refuses, such as one in a folder that anybody may write to.
    """
    with warnings.catch_warnings(record=True) as reasons:
        warnings.simplefilter("always")
        for resource in (f"corpora/{name}", f"corpora/{name}.zip/{name}/"):
            with suppress(LookupError, zipfile.BadZipFile):
                path = find(resource)
                packed = isinstance(path, ZipFilePathPointer)
                return Files(zipfile.Path(path.zipfile.filename, path.entry) if packed else Path(path))
    if reasons:
        raise UsageError(f"{arg('wordnet', name)}: {reasons[0].message}")
    return None


class _Place(PathPointer):  # type: ignore[misc]
    """The folder that nltk's reader is given as its root. nltk uses it for messages only: the files are opened by
    `WordNetReader.open`, since nltk's own way works in its data folders alone."""

    def __init__(self, files: Files) -> None:
        """Set the path to show."""
        self.path = str(files.folder)

    def open(self, *_: Any) -> Any:
        """Raise `FileNotFoundError`: nothing is opened this way."""
        raise FileNotFoundError(self.path)

    file_size = join = open


class _Offsets(Mapping[str, dict[str, list[int]]]):
    """nltk's table of lemmas, {lemma: {part of speech: byte offsets}}, whose entries are made from the graph when nltk
    asks for them."""

    def __init__(self, graph: Graph) -> None:
        """Use the lemmas of a graph."""
        self._graph = graph

    def __getitem__(self, lemma: str) -> dict[str, list[int]]:
        """Return {part of speech: byte offsets of the lemma's synsets}; raise `KeyError` for no lemma."""
        graph = self._graph
        offsets: dict[str, list[int]] = {}
        for row in graph.lemmas[lemma]:
            offsets.setdefault(graph.pos(row), []).append(int(graph.offset[row]))
        if "a" in offsets:
            offsets["s"] = offsets["a"]
        return offsets

    def __contains__(self, lemma: object) -> bool:
        """Return whether a text is a lemma."""
        return lemma in self._graph.lemmas

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the lemmas."""
        return iter(self._graph.lemmas)

    def __len__(self) -> int:
        """Return the number of lemmas."""
        return len(self._graph.lemmas)
