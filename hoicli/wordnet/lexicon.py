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

    title: its name in messages; signature: its name in results, None for the embedded one; words: {word of another
    language: its synsets}, which are looked up before English words.
    """

    title: str
    files: Files
    graph: Graph
    signature: str | None = None
    words: Lemmas | None = None

    @cached_property
    def content_name(self) -> str:
        """Return the name of this WordNet with eight digits of the digest of its content, for signatures."""
        return self.signature or f"wordnet3.0.{_digest(GRAPH.read_bytes())[:8]}"

    @cached_property
    def reader(self) -> WordNetReader:
        """Return nltk's reader of this WordNet's files."""
        from hoicli.wordnet.reader import WordNetReader

        return WordNetReader(self.files, self.graph)

    # Words

    def forms(self, word: str, pos: str) -> list[str]:
        """Return the lemmas of which a word may be a form ("riding": ride), as nltk's morphy finds them, the word
        itself first if it is a lemma. A word of another language is taken as it stands."""
        return [word] if self._foreign_senses(word, pos) else self.reader.forms(word, pos)

    def senses(self, lemma: str, pos: str) -> list[str]:
        """Return the names of the senses of a lemma in a part of speech, the most frequent first."""
        return self._foreign_senses(lemma, pos) or self._senses_in(self.graph.lemmas, lemma.lower(), pos)

    def _foreign_senses(self, word: str, pos: str) -> list[str]:
        """Return the names of the senses of a word of the other language, if this WordNet has one."""
        return [] if self.words is None else self._senses_in(self.words, word, pos)

    def _senses_in(self, lemmas: Lemmas, word: str, pos: str) -> list[str]:
        """Return the names of the senses that a mapping of lemmas gives a word in a part of speech."""
        return [self.graph.names[row] for row in lemmas.get(word, []) if row in self.graph.ranges[pos]]

    def word_senses(self, word: str, pos: str) -> list[int]:
        """Return the rows of all synsets that a word of any form or case may mean; spaces count as underscores."""
        forms = self.forms(word.lower().replace(" ", "_"), pos)
        names = dict.fromkeys(chain.from_iterable(self.senses(form, pos) for form in forms))
        return [self.graph.row(name) for name in names]

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
        """Return the name that the WordNet itself gives a sense, which may be named by any word of its synset:
        "motorcar.n.01" gives "car.n.01". Any other text is returned unchanged."""
        try:
            return self.graph.names[self.index(sense)]
        except KeyError:
            return sense

    def translate(self, sense: str) -> str | None:
        """Return the sense of this WordNet that corresponds to a sense of WordNet 3.0, None if it has none.

        A word in a sense has a key ("sense key") that stays the same from one WordNet to the next. The sense that
        shares the most keys corresponds; nltk's `map_to_one` goes by them, too.
        """
        embedded = open_embedded()
        if self.graph is embedded.graph:
            return sense
        shared_keys: Counter[str] = Counter()
        for lemma in embedded.reader.synset(sense).lemmas():
            same_word = self.reader.lemmas(lemma.name(), sense.rsplit(".", 2)[1])  # of the sense's part of speech
            shared_keys.update({other.synset().name() for other in same_word if other.key() == lemma.key()})
        return max(shared_keys, key=shared_keys.__getitem__, default=None)


@cache
def open_embedded() -> Lexicon:
    """Return the embedded WordNet 3.0."""
    return Lexicon("WordNet 3.0", Files(PRINCETON), Graph(_load_arrays(GRAPH.read_bytes())))


def open_wordnet() -> Lexicon:
    """Return the WordNet in use: the one chosen last, or the embedded one."""
    return _chosen or open_embedded()


def use_wordnet(wordnet: str | None) -> None:
    """Make a WordNet the one in use, for all that `open_wordnet` returns from now on.

    wordnet: the value of a command's --wordnet. None is the embedded one; else the name of a corpus of nltk's or a
    folder; either followed by :LANGUAGE stands for the embedded one with an Open Multilingual Wordnet's words. Raises
    `UsageError` if there is no such WordNet, `DataError` if nltk cannot read it.
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
    _chosen = _open_language(wordnet, files, name, language) if language else _open_database(wordnet, files, name)


def _open_language(wordnet: str, files: Files, name: str, language: str) -> Lexicon:
    """Return the embedded WordNet with another language's words for its senses. wordnet: the value of --wordnet; files:
    the files of an Open Multilingual Wordnet; name: what signatures call it; language: its code, such as "fra". Raises
    `UsageError` if the files do not have the language."""
    tables = [table for table in files.fileids() if table.endswith(f"-{language.partition('_')[0]}.tab")]
    if not tables:
        languages = {table.rpartition("-")[2].removesuffix(".tab") for table in files.fileids()}
        raise UsageError(
            f"{arg('wordnet', wordnet)}: no such language in it; it has {', '.join(sorted(languages)) or 'none'}"
        )
    embedded, digest = open_embedded(), files.digest(tables)
    words = Lemmas(_load_or_compile(f"{digest}.{language}", wordnet, partial(_compile_language, files, language)))
    signature = f"{name}.{language}.{digest[:8]}"
    return Lexicon(f"{embedded.title} ({language})", embedded.files, embedded.graph, signature, words)


def _open_database(wordnet: str, files: Files, name: str) -> Lexicon:
    """Return the WordNet in a folder or in a corpus of nltk's. wordnet: the value of --wordnet; files: its files; name:
    what signatures call it. Raises `UsageError` if it lacks a file of the database."""
    missing = [file for file in DATABASE if not files.has(file)]
    if missing:
        raise UsageError(
            f"{arg('wordnet', wordnet)}: no {missing[0]} in it; for one of its languages give {wordnet}:fra"
        )
    files = Files(files.folder, spare=open_embedded().files)  # those of SHARED may be missing
    digest = files.digest([*DATABASE, *SHARED, COUNTS])
    arrays = _load_or_compile(digest, wordnet, partial(_compile_database, files))
    return Lexicon(wordnet, files, Graph(arrays), f"{name}.{digest[:8]}")


def _find_files(place: str) -> Files:
    """Return the files of a WordNet, given a folder or the name of a corpus in nltk's data folders. Raises `UsageError`
    if there is no such folder or corpus."""
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


def _compile_database(files: Files) -> Arrays:
    """Return the arrays of `Graph`, compiled from the files of a WordNet."""
    from hoicli.wordnet.array_making import compile_arrays
    from hoicli.wordnet.reader import WordNetReader

    return compile_arrays(WordNetReader(files))


def _compile_language(files: Files, language: str) -> Arrays:
    """Return the arrays of `Lemmas`, compiled from an Open Multilingual Wordnet's words of a language; they have the
    rows of the embedded WordNet. Words for synsets that it lacks are left out."""
    from hoicli.wordnet.array_making import lemma_arrays
    from hoicli.wordnet.reader import WordNetReader

    embedded = open_embedded()
    words = WordNetReader(embedded.files, embedded.graph, files).words_of(language)
    # A synset's place is its part of speech and the byte offset in that file, which an id has, too: "02084071-n".
    row_of_place = {
        (name.rsplit(".", 2)[1], int(embedded.graph.offset[row])): row for row, name in enumerate(embedded.graph.names)
    }
    places_of_lemma = {}
    for lemma, synset_ids in words.items():
        places = [(synset_id[-1], int(synset_id[:8])) for synset_id in synset_ids]
        places_of_lemma[lemma] = [place for place in places if place in row_of_place]
    return lemma_arrays(places_of_lemma, row_of_place)


def _load_or_compile(key: str, wordnet: str, compile_: Callable[[], Arrays]) -> Arrays:
    """Return arrays from the user's cache, or compile them now and keep them there.

    A cached file is named after what it was made from (`key`) and after a digest of its own content, so that a file
    that was damaged or meddled with is not used. wordnet: its name in messages; compile_: makes the arrays.
    """
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
            warnings.simplefilter("ignore")  # nltk warns of optional files that are not there
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
    """Return 32 hexadecimal digits that stand for a file's content."""
    return hashlib.sha256(data).hexdigest()[:32]


def _load_arrays(data: bytes) -> Arrays:
    """Return the arrays of an .npz file; each is unpacked when it is asked for."""
    arrays: Arrays = np.load(io.BytesIO(data), allow_pickle=False)
    return arrays
