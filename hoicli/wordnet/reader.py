"""nltk's reader of WordNet, over any files, and served from compiled arrays where they are there.

Looking words up, taking them to their base form, names, glosses and relations are nltk's own code and objects.
"""

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
from hoicli.wordnet.files import DATABASE, Files
from hoicli.wordnet.graph import Graph


@contextmanager
def _without_scipy() -> Iterator[None]:
    """Let nltk be imported without what its other parts can use besides, where the process is hoicli's own.

    `import nltk` imports all of it, and with it SciPy and scikit-learn where they are installed, which take most of the
    time; it does without where they are not. In a process of somebody else's they stay.
    """
    spared = [
        name
        for name in ("scipy", "scipy.stats", "sklearn")
        if process.alone and not {name, "nltk"} & sys.modules.keys()
    ]
    absent: dict[str, Any] = dict.fromkeys(spared)  # None says to an import that there is no such module
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in spared:
            del sys.modules[name]


with _without_scipy():
    from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError
    from nltk.data import PathPointer, SeekableUnicodeStreamReader, ZipFilePathPointer, find


class WordNetReader(WordNetCorpusReader):  # type: ignore[misc]
    """`nltk.corpus.reader.WordNetCorpusReader` of a WordNet's files.

    nltk parses the index files whenever a reader is made, and maps WordNet 3.0, which it wants to be installed, to the
    one it reads. Here the compiled graph stands for the former, and nobody asks for the latter. A satellite is numbered
    among all adjective senses of its word, as WordNet does and nltk did up to 3.9.1, whatever release is installed.
    """

    def __init__(self, files: Files, graph: Graph | None = None, languages: Files | None = None) -> None:
        """graph: compiled from these files, or None to have nltk read them. languages: an Open Multilingual Wordnet."""
        self.files, self._graph = files, graph
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has no other languages
            super().__init__(_Place(files), languages)

    def forms(self, word: str, pos: str) -> list[str]:
        """All lemmas of a part of speech that a word may be a form of, itself first, where `morphy` gives the first."""
        forms: list[str] = self._morphy(word, pos)
        return forms

    def named(self, name: str) -> Any:
        """The `Synset` that `synset` gives, None where there is none."""
        try:
            return self.synset(name)
        except WordNetError:
            return None

    def words_of(self, language: str) -> Mapping[str, list[str]]:
        """lemma -> its synsets, as 00001740-n, in one of the languages. Raises nltk's `WordNetError` for another."""
        self._load_lang_data(language)
        words: Mapping[str, list[str]] = self._lang_data[language][1]
        return words

    def check_offsets(self) -> None:
        """Raises `DataError` for a line that is not at the byte that it names, where nltk would look for its synset."""
        for name in (name for name in DATABASE if name.startswith("data.")):
            at = 0
            for line in io.BytesIO(self.files.read(name)):
                if not line[:1].isspace() and line[:9] != b"%08d " % at:
                    raise DataError(f"{name} has a line at byte {at} that does not begin with {at:08d}; get it anew")
                at += len(line)

    # What nltk calls to load its data

    def open(self, file: str) -> Any:
        """One of the files as text. Of the large ones nltk reads lines at byte offsets, which Python's does faster."""
        stream = self.files.open(file)
        if file.startswith("data."):
            return io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        return SeekableUnicodeStreamReader(stream, "utf-8")

    def map_wn(self, version: str = "wordnet") -> None:
        """No map from WordNet 3.0: other languages are read with 3.0 itself."""

    def _scan_satellites(self) -> None:
        self.satellite_offsets: set[int] = set()

    def _load_lemma_pos_offset_map(self) -> None:
        if self._graph is not None:
            self._lemma_pos_offset_map: Mapping[str, dict[str, list[int]]] = _Offsets(self._graph)
            return
        super()._load_lemma_pos_offset_map()
        for senses in self._lemma_pos_offset_map.values():
            if "a" in senses:
                senses["s"] = senses["a"]


def installed(name: str) -> Files | None:
    """A corpus of nltk's data folders (`nltk.data.path`), unpacked or not; None where there is none.

    Raises `UsageError` for one that nltk has reasons not to read, as that anybody may write to it.
    """
    with warnings.catch_warnings(record=True) as reasons:
        warnings.simplefilter("always")
        for resource in (f"corpora/{name}", f"corpora/{name}.zip/{name}/"):
            with suppress(LookupError, zipfile.BadZipFile):
                found = find(resource)
                packed = isinstance(found, ZipFilePathPointer)
                return Files(zipfile.Path(found.zipfile.filename, found.entry) if packed else Path(found))
    if reasons:
        raise UsageError(f"{arg('wordnet', name)}: {reasons[0].message}")
    return None


class _Place(PathPointer):  # type: ignore[misc]
    """Where the files are, for messages. nltk opens only what lies in its data folders; `WordNetReader.open` does."""

    def __init__(self, files: Files) -> None:
        self.path = str(files.folder)

    def open(self, *_: Any) -> Any:
        raise FileNotFoundError(self.path)

    file_size = join = open


class _Offsets(Mapping[str, dict[str, list[int]]]):
    """nltk's table of lemmas, lemma -> part of speech -> byte offsets, read out of the graph where nltk asks."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, lemma: str) -> dict[str, list[int]]:
        graph = self._graph
        found: dict[str, list[int]] = {}
        for row in graph.lemmas[lemma]:
            found.setdefault(graph.pos(row), []).append(int(graph.offset[row]))
        if "a" in found:
            found["s"] = found["a"]
        return found

    def __contains__(self, lemma: object) -> bool:
        return lemma in self._graph.lemmas

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.lemmas)

    def __len__(self) -> int:
        return len(self._graph.lemmas)
