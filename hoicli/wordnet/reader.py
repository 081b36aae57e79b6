"""nltk's reader of WordNet, over any files, and the arrays of `graph.Graph` that are compiled from it.

Looking words up, taking them to their base form, names, glosses and relations are nltk's own code and objects, served
from compiled arrays where they are there. To compile a WordNet, all of it is read once.
`python -m tests.support.wordnet_build` makes the arrays of the embedded WordNet 3.0; others are compiled when first
asked for (`lexicon`).
"""

from __future__ import annotations

import io
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hoicli.errors import DataError, UsageError, arg
from hoicli.io import process
from hoicli.records.kit import Ints
from hoicli.wordnet.graph import COUNTS, DATABASE, HYPERNYMS, POS, RELATIONS, Arrays, Files, Graph
from hoicli.wordnet.measures import ancestors


@contextmanager
def _hide_scipy() -> Iterator[None]:
    """Let nltk be imported without optional packages that its other parts use, if the process is hoicli's own.

    `import nltk` imports all of it, and with it SciPy and scikit-learn where they are installed, which take most of the
    time; it works without them. In a process of somebody else's they are not hidden.
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


COMMONEST = 0.02
"""A word that occurs in the glosses of more than this share of synsets tells nothing: "of", "having", "genus"."""

DEEPEST = 255
"""The most steps from a synset up to its root; WordNet 3.0's longest way has 19."""

_WORD = re.compile(r"[a-z](?:[a-z'-]*[a-z])?")


class WordNetReader(WordNetCorpusReader):  # type: ignore[misc]
    """`nltk.corpus.reader.WordNetCorpusReader` of a WordNet's files.

    nltk parses the index files whenever a reader is made, and maps WordNet 3.0, which it wants to be installed, to the
    one it reads. Here the compiled graph stands for the former, and nobody asks for the latter. A satellite is numbered
    among all adjective senses of its word, as WordNet does and nltk did up to 3.9.1, whatever release is installed.
    """

    def __init__(self, files: Files, graph: Graph | None = None, languages: Files | None = None) -> None:
        """Read `files`. graph: compiled from them, None to have nltk read them; languages: a Multilingual Wordnet."""
        self.files, self._graph = files, graph
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has no other languages
            super().__init__(_Place(files), languages)

    def forms(self, word: str, pos: str) -> list[str]:
        """Return all lemmas of a part of speech that a word may be a form of, itself first; `morphy` returns one."""
        forms: list[str] = self._morphy(word, pos)
        return forms

    def find_synset(self, name: str) -> Any:
        """Return the `Synset` that `synset` returns, None where it raises an error."""
        try:
            return self.synset(name)
        except WordNetError:
            return None

    def words_of(self, language: str) -> Mapping[str, list[str]]:
        """Return lemma -> its synsets, as 00001740-n, in a language. Raises nltk's `WordNetError` without it."""
        self._load_lang_data(language)
        words: Mapping[str, list[str]] = self._lang_data[language][1]
        return words

    def check_offsets(self) -> None:
        """Raise `DataError` for a line that is not at the byte that it names, where nltk would look for its synset."""
        for name in (name for name in DATABASE if name.startswith("data.")):
            byte = 0
            for line in io.BytesIO(self.files.read(name)):
                if not line[:1].isspace() and line[:9] != b"%08d " % byte:
                    raise DataError(
                        f"{name} has a line at byte {byte} that does not begin with {byte:08d}; get it anew"
                    )
                byte += len(line)

    # What nltk calls to load its data

    def open(self, file: str) -> Any:
        """Return one of the files as text. Of the large ones nltk reads lines at byte offsets: Python is faster."""
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


def find_corpus(name: str) -> Files | None:
    """Return a corpus in nltk's data folders (`nltk.data.path`), unpacked or not; None where there is none.

    Raises `UsageError` for one that nltk has reasons not to read, such as that anybody may write to it.
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
    """Where the files are, for messages; `WordNetReader.open` opens them, as nltk does so in its data folders alone."""

    def __init__(self, files: Files) -> None:
        self.path = str(files.folder)

    def open(self, *_: Any) -> Any:
        raise FileNotFoundError(self.path)

    file_size = join = open


class _Offsets(Mapping[str, dict[str, list[int]]]):
    """nltk's table of lemmas, lemma -> part of speech -> byte offsets, read from the graph when nltk asks."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, lemma: str) -> dict[str, list[int]]:
        graph = self._graph
        offsets: dict[str, list[int]] = {}
        for row in graph.lemmas[lemma]:
            offsets.setdefault(graph.pos(row), []).append(int(graph.offset[row]))
        if "a" in offsets:
            offsets["s"] = offsets["a"]
        return offsets

    def __contains__(self, lemma: object) -> bool:
        return lemma in self._graph.lemmas

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.lemmas)

    def __len__(self) -> int:
        return len(self._graph.lemmas)


Place = tuple[str, int]
"""Part of speech and byte offset, by which the files name a synset."""


class Entry(NamedTuple):
    """What the compiled arrays need of a synset: its lower-case words, and where its pointers lead."""

    place: Place
    name: str
    words: list[str]
    tagged: int
    pointers: dict[str, list[Place]]
    antonyms: list[tuple[str, Place, int]]  # a word, and the place of its antonym among the words of another synset
    gloss: tuple[set[str], set[str]]


def compile_arrays(reader: WordNetReader) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of all synsets of a reader, for `graph.Graph`. Raises `DataError` where synsets are not where
    they say, or pointers lead nowhere, or up in a circle."""
    reader.check_offsets()
    entries = list(_entries(reader))
    rows = {entry.place: row for row, entry in enumerate(entries)}
    rows |= {("s", offset): row for (pos, offset), row in rows.items() if pos == "a"}
    sizes = Counter(entry.place[0] for entry in entries)
    table = reader._lemma_pos_offset_map.items()
    places = {
        lemma: [(pos, offset) for pos in POS for offset in offsets_by_pos.get(pos, ())]
        for lemma, offsets_by_pos in table
    }
    arrays = lemma_arrays(places, rows)
    number = {lemma: place for place, lemma in enumerate(sorted(reader.all_lemma_names()))}
    words = [[number[word] for word in dict.fromkeys(entry.words) if word in number] for entry in entries]
    arrays |= {
        "sizes": np.array([sizes[pos] for pos in POS]),
        "names": _text(entry.name for entry in entries),
        "offset": _smallest([entry.place[1] for entry in entries]),
        "word_count": _smallest([len(numbers) for numbers in words]),
        "words": _smallest(list(chain.from_iterable(words))),
    }
    arrays |= _edge_arrays(entries, rows)
    arrays["antonyms"] = np.array(sorted(_opposites(entries, rows, number)), np.int32).reshape(-1, 3).T
    arrays |= _gloss_arrays([entry.gloss for entry in entries])
    return arrays | _upward(arrays, [entry.tagged for entry in entries] if reader.files.has(COUNTS) else None)


def _edge_arrays(entries: list[Entry], rows: dict[Place, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of pointers between synsets: how many there are of each relation, and both ends of each."""
    edges = []
    for symbol in RELATIONS.values():
        pairs: set[tuple[int, int]] = set()
        for row, entry in enumerate(entries):
            pairs.update((row, _row(rows, end)) for end in entry.pointers.get(symbol, ()))
        edges.append(sorted(pairs))
    arrays = {"edge_count": _smallest([len(pairs) for pairs in edges])}
    for side, key in enumerate(("edge_source", "edge_target")):
        arrays[key] = _smallest([pair[side] for pair in chain.from_iterable(edges)])
    return arrays


def _opposites(entries: list[Entry], rows: dict[Place, int], number: Mapping[str, int]) -> set[tuple[int, int, int]]:
    """Return (part of speech, lemma, its antonym) of all antonyms, both ways round. number: the number of each lemma;
    words without one are left out."""
    opposites: set[tuple[int, int, int]] = set()
    for entry in entries:
        for word, end, place in entry.antonyms:
            antonym = entries[_row(rows, end)].words[place]
            if word in number and antonym in number:
                part_of_speech = POS.index(entry.place[0])
                opposites.add((part_of_speech, number[word], number[antonym]))
                opposites.add((part_of_speech, number[antonym], number[word]))
    return opposites


def lemma_arrays(table: Mapping[str, Iterable[Place]], rows: dict[Place, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of `graph.Lemmas`, from each lemma's synsets. Raises `DataError` for a place without one."""
    ordered = sorted(table)
    senses = [[_row(rows, place) for place in table[lemma]] for lemma in ordered]
    return {
        "lemmas": _text(ordered),
        "sense_count": _smallest([len(senses_of) for senses_of in senses]),
        "senses": _smallest(list(chain.from_iterable(senses))),
    }


def _pointers_of(synset: Any) -> tuple[dict[str, list[Any]], list[tuple[str, Any, int]]]:
    """Return the targets of a synset's pointers by symbol, those of its lemmas among them; and its lemmas' antonyms."""
    pointers = {symbol: list(targets) for symbol, targets in synset._pointers.items()}
    antonyms = []
    for (word, symbol), targets in synset._lemma_pointers.items():
        pointers.setdefault(symbol, []).extend((kind, offset) for kind, offset, _ in targets)
        if symbol == "!":
            antonyms += [(word.lower(), (kind, offset), place) for kind, offset, place in targets]
    return pointers, antonyms


def _entries(reader: WordNetReader) -> Iterator[Entry]:
    """Yield every synset, in the order of the rows."""
    tagged = _tag_counts(reader)

    @cache
    def stem(word: str) -> str:
        lemmas = set(chain.from_iterable(reader.forms(word, pos) for pos in POS))
        return min(lemmas, key=lambda lemma: (len(lemma), lemma), default=word)

    for pos in POS:
        for synset in reader.all_synsets(pos):
            pointers, antonyms = _pointers_of(synset)
            keys = {lemma.key() for lemma in synset.lemmas()}
            words = [name.lower() for name in synset.lemma_names()]
            yield Entry(
                place=(pos, synset.offset()),
                name=synset.name(),
                words=words,
                tagged=1 + sum(tagged[key] for key in keys),
                pointers=pointers,
                antonyms=antonyms,
                gloss=_gloss(words, synset.definition(), synset.examples(), stem),
            )
        reader._synset_offset_cache.clear()  # hundreds of megabytes of a whole WordNet


def _gloss(
    words: list[str], definition: str, examples: list[str], stem: Callable[[str], str]
) -> tuple[set[str], set[str]]:
    """Return (words of the lemmas and the definition, further words of the examples), each as its shortest lemma."""
    lemmas = " ".join([*words, *(word.replace("_", " ") for word in words)])
    strong, weak = (
        {stem(match[0]) for match in _WORD.finditer(text.lower())}
        for text in (f"{lemmas} {definition}", "\n".join(examples))
    )
    return strong, weak - strong


def _tag_counts(reader: WordNetReader) -> Counter[str]:
    """Return how often each sense was tagged in the semantic concordances, by the sense's key."""
    if not reader.files.has(COUNTS):
        return Counter()
    with reader.open(COUNTS) as lines:
        return Counter({key: int(count) for key, _, count in map(str.split, lines)})


def _gloss_arrays(glosses: list[tuple[set[str], set[str]]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the words of glosses. Words of one synset only, which no two share, are left out."""
    spread = Counter(chain.from_iterable(strong | weak for strong, weak in glosses))
    words_kept = sorted(word for word, count in spread.items() if 1 < count <= COMMONEST * len(glosses))
    number = {word: place for place, word in enumerate(words_kept)}
    numbered = [
        sorted(number[word] for word in gloss[part] if word in number) for part, gloss in product((0, 1), glosses)
    ]
    return {
        "gloss_count": _smallest([len(words) for words in numbered]),
        "gloss_words": _smallest(list(chain.from_iterable(numbered))),
    }


def _upward(arrays: Arrays, tagged: list[int] | None) -> dict[str, npt.NDArray[Any]]:
    """Return the depths of nouns and verbs, and, with `tagged` [synsets], how often they and all below were tagged."""
    graph = Graph(arrays)
    graded = graph.ranges["v"].stop
    bounds = [graph.ranges[pos].start for pos in POS[1:]]
    sources, targets = graph.edges(*HYPERNYMS)
    if (np.searchsorted(bounds, sources, "right") != np.searchsorted(bounds, targets, "right")).any():
        raise DataError("a synset is below one of another part of speech")
    upward = sources < graded
    depths = {
        "max_depth": _depths(sources[upward], targets[upward], graded, np.maximum),
        "min_depth": _depths(sources[upward], targets[upward], graded, np.minimum),
    }
    if tagged is None:
        return depths
    above = ancestors(graph, np.arange(graded), root=False)
    weights = np.repeat(np.array(tagged[:graded]), np.diff(above.start))
    total = np.bincount(above.node, weights=weights, minlength=graded)
    return depths | {"concordance": _smallest(total.astype(np.int64))}


def _depths(sources: Ints, targets: Ints, size: int, choose: np.ufunc) -> npt.NDArray[Any]:
    """Return [size]: the steps up to a root, by the longest (np.maximum) or the shortest way (np.minimum)."""
    below = np.zeros(size, bool)
    below[sources] = True
    depth = np.zeros(size, np.int64)
    for _ in range(DEEPEST):
        # start from what `choose` replaces; a root stays at 0
        deeper = np.where(below, 0 if choose is np.maximum else DEEPEST, 0)
        choose.at(deeper, sources, depth[targets] + 1)
        if (deeper == depth).all():
            return _smallest(depth)
        depth = deeper
    raise DataError(f"a synset is above itself, or has more than {DEEPEST} steps above it")


def _row(rows: dict[Place, int], place: Place) -> int:
    try:
        return rows[place]
    except KeyError:
        raise DataError(f"there is no synset {place[0]}{place[1]:08d}, though something points at it") from None


def _smallest(values: Any) -> npt.NDArray[Any]:
    """Return numbers, none below 0, in the smallest type that holds them."""
    numbers = np.asarray(values, np.int64)
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _text(lines: Iterable[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode(), np.uint8)
