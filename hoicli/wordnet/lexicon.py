"""The WordNet in use, the embedded one or another that nltk reads: nltk's reader where words are looked up, arrays
compiled from it where senses are compared.

The embedded one is Princeton's 3.0: its files as they are distributed (data/princeton), compiled into data/graph.npz by
tests/support/wordnet_build.py. Others are compiled once, and kept in the user's cache. nltk is imported when the first
word is looked up, and not for senses that have their own name.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.errors import DataError, HoicliError, UsageError, arg
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.outputs import write_whole
from hoicli.wordnet.graph import COUNTS, DATABASE, SHARED, Arrays, Files, Graph, Lemmas

if TYPE_CHECKING:
    from hoicli.wordnet.reader import WordNetReader

PRINCETON = Path(__file__).parent / "data" / "princeton"
GRAPH = PRINCETON.parent / "graph.npz"
VERSION = 1
"""The version of the compiled arrays: with another number all cached ones are compiled anew."""

_SENSE = re.compile(r".+\.[nvasr]\.(?!0+$)[0-9]{1,3}", re.DOTALL)
_CORPUS = re.compile(r"[\w.+-]+")

_chosen: Lexicon | None = None


@dataclass(eq=False)
class Lexicon:
    """One WordNet; `open_wordnet()` returns the one in use.

    title: its name in messages; signature: its name in results, None for the embedded one; words: those of another
    language, which are looked up before English ones.
    """

    title: str
    files: Files
    graph: Graph
    signature: str | None = None
    words: Lemmas | None = None

    @cached_property
    def reader(self) -> WordNetReader:
        """Return nltk's reader of this WordNet's files."""
        from hoicli.wordnet.reader import WordNetReader

        return WordNetReader(self.files, self.graph)

    # Words

    def forms(self, word: str, pos: str) -> list[str]:
        """Return the lemmas that a word in any form may be, as nltk's morphy finds them, the word itself first."""
        return [word] if self._foreign(word, pos) else self.reader.forms(word, pos)

    def senses(self, lemma: str, pos: str) -> list[str]:
        """Return the names of the senses of a lemma, taken as it stands, the most frequent first."""
        return self._foreign(lemma, pos) or self._synset_names(self.graph.lemmas, lemma.lower(), pos)

    def _foreign(self, word: str, pos: str) -> list[str]:
        return [] if self.words is None else self._synset_names(self.words, word, pos)

    def _synset_names(self, lemmas: Lemmas, word: str, pos: str) -> list[str]:
        return [self.graph.names[row] for row in lemmas.get(word, []) if row in self.graph.ranges[pos]]

    def word_senses(self, word: str, pos: str) -> list[int]:
        """Return the rows of all synsets that a word of any form or case may mean; spaces count as underscores."""
        forms = self.forms(word.lower().replace(" ", "_"), pos)
        return [self.graph.row(name) for name in dict.fromkeys(chain(*(self.senses(form, pos) for form in forms)))]

    # Senses

    def index(self, name: str) -> int:
        """Return the row of a sense by its name. Any word of the synset will do: "motorcar.n.01" is car.n.01.

        Raises `KeyError` for a text that names no sense.
        """
        try:
            return self.graph.row(name)
        except KeyError:
            synset = self.reader.find_synset(name) if _SENSE.fullmatch(name) else None
        if synset is None:
            raise KeyError(name)
        return self.graph.row_at_offset(synset.pos(), synset.offset())

    def canonical(self, sense: str) -> str:
        """Return the sense's own name, whichever word of the synset it is named by; any other text unchanged."""
        try:
            return self.graph.names[self.index(sense)]
        except KeyError:
            return sense

    def translate(self, sense: str) -> str | None:
        """Return the sense of this WordNet that is a sense of WordNet 3.0, None where there is none: that of the most
        words in common.

        A word in its sense has a key that stays from one WordNet to the next; nltk's `map_to_one` goes by it too.
        """
        embedded = open_embedded()
        if self.graph is embedded.graph:
            return sense
        votes: Counter[str] = Counter()
        for lemma in embedded.reader.synset(sense).lemmas():
            same_word = self.reader.lemmas(lemma.name(), sense.rsplit(".", 2)[1])
            votes.update({candidate.synset().name() for candidate in same_word if candidate.key() == lemma.key()})
        return max(votes, key=votes.__getitem__, default=None)


@cache
def open_embedded() -> Lexicon:
    """Return the embedded WordNet 3.0."""
    return Lexicon("WordNet 3.0", Files(PRINCETON), Graph(_load_arrays(GRAPH.read_bytes())))


def open_wordnet() -> Lexicon:
    """Return the WordNet in use: the one chosen last, or the embedded one."""
    return _chosen or open_embedded()


def choose(wordnet: str | None) -> None:
    """Take the WordNet of a command's --wordnet into use.

    wordnet: None for the embedded one, else NAME of a corpus of nltk's or a folder, followed by :LANGUAGE for an Open
    Multilingual Wordnet's words for the senses of the embedded one. Raises `UsageError` where there is none,
    `DataError` where it is none that nltk reads.
    """
    global _chosen
    _chosen = None
    if wordnet is None:
        return
    place, language = wordnet, ""
    if ":" in wordnet and not Path(wordnet).is_dir():
        place, _, language = wordnet.rpartition(":")
    files = _find_files(place)
    name = re.sub(r"[^\w.+-]", "_", Path(place).resolve().name)
    _chosen = _lexicon_of_language(wordnet, files, name, language) if language else _lexicon_of(wordnet, files, name)


def _lexicon_of_language(wordnet: str, files: Files, name: str, language: str) -> Lexicon:
    """Return the embedded WordNet with another language's words for its senses. wordnet: the value of --wordnet.
    files: the files of an Open Multilingual Wordnet. name: what signatures call it. Raises `UsageError` if it does not
    have the language."""
    tables = [table for table in files.fileids() if table.endswith(f"-{language.partition('_')[0]}.tab")]
    if not tables:
        languages = {table.rpartition("-")[2].removesuffix(".tab") for table in files.fileids()}
        raise UsageError(
            f"{arg('wordnet', wordnet)}: no such language in it; it has {', '.join(sorted(languages)) or 'none'}"
        )
    embedded, digest = open_embedded(), files.digest(tables)
    words = Lemmas(_load_or_compile(f"{digest}.{language}", wordnet, partial(_language, files, language)))
    signature = f"{name}.{language}.{digest[:8]}"
    return Lexicon(f"{embedded.title} ({language})", embedded.files, embedded.graph, signature, words)


def _lexicon_of(wordnet: str, files: Files, name: str) -> Lexicon:
    """Return the WordNet of a folder or a corpus of nltk's. wordnet: the value of --wordnet. files: its files. name:
    what signatures call it. Raises `UsageError` if it lacks a file of the database."""
    missing = [file for file in DATABASE if not files.has(file)]
    if missing:
        raise UsageError(
            f"{arg('wordnet', wordnet)}: no {missing[0]} in it; a language of it is named as {wordnet}:fra"
        )
    files = Files(files.folder, spare=open_embedded().files)
    digest = files.digest([*DATABASE, *SHARED, COUNTS])
    graph = Graph(_load_or_compile(digest, wordnet, partial(_database, files)))
    return Lexicon(wordnet, files, graph, f"{name}.{digest[:8]}")


def _find_files(place: str) -> Files:
    if place and Path(place).is_dir():
        return Files(Path(place))
    if not _CORPUS.fullmatch(place):
        raise UsageError(f"{arg('wordnet', place)}: there is no such folder", code="no-such-folder")
    from hoicli.wordnet.reader import find_corpus

    files = find_corpus(place)
    if files is None:
        raise UsageError(
            f"{arg('wordnet', place)}: neither a folder nor in nltk's data folders; python -m nltk.downloader {place} "
            "gets it"
        )
    return files


def _database(files: Files) -> Arrays:
    from hoicli.wordnet.reader import WordNetReader, compile_arrays

    return compile_arrays(WordNetReader(files))


def _language(files: Files, language: str) -> Arrays:
    from hoicli.wordnet.reader import WordNetReader, lemma_arrays

    embedded = open_embedded()
    words = WordNetReader(embedded.files, embedded.graph, files).words_of(language)
    rows = {
        (name.rsplit(".", 2)[1], int(embedded.graph.offset[row])): row for row, name in enumerate(embedded.graph.names)
    }
    places = {lemma: [(synset_id[-1], int(synset_id[:8])) for synset_id in ids] for lemma, ids in words.items()}
    known = {lemma: [place for place in listed if place in rows] for lemma, listed in places.items()}
    return lemma_arrays(known, rows)


def _load_or_compile(key: str, wordnet: str, compile_: Callable[[], Arrays]) -> Arrays:
    """Return arrays from the user's cache, or compile them now and keep them there. A cached file is named after what
    it was made from (`key`) and after its own content, so that a file that was damaged or meddled with is not used.
    wordnet: its name in messages."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hoicli" / "wordnet"
    key = f"{key}.{VERSION}"
    for path in sorted(folder.glob(f"{key}.*.npz")):
        with suppress(OSError):
            data = path.read_bytes()
            if path.name == f"{key}.{_digest(data)}.npz":
                return _load_arrays(data)
    note(f"{wordnet} is compiled, once (a WordNet takes a minute), and kept in {folder}")
    try:
        with warnings.catch_warnings(), no_garbage_collection():
            warnings.simplefilter("ignore")  # nltk's, of what it then does not find
            arrays = compile_()
    except DataError as error:
        raise error.add_place(wordnet) from None
    except Exception as error:  # noqa: BLE001 (nltk raises whatever files that are no WordNet lead it to)
        raise DataError(f"no WordNet that nltk reads ({type(error).__name__}: {error})", place=wordnet) from None
    content = io.BytesIO()
    np.savez_compressed(content, **dict[str, Any](arrays))
    data = content.getvalue()
    try:
        write_whole(folder / f"{key}.{_digest(data)}.npz", data, "cache")
    except HoicliError as error:
        note(f"the compiled WordNet cannot be kept ({error}); set XDG_CACHE_HOME to a folder that can be written")
    return arrays


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _load_arrays(data: bytes) -> Arrays:
    """Return the arrays of an .npz file; each is unpacked when it is asked for."""
    arrays: Arrays = np.load(io.BytesIO(data), allow_pickle=False)
    return arrays
