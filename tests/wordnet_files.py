"""The WordNet database as nltk reads it, written back from hoicli's index.

tests/wordnet_build.py compiled the index from Princeton's files; `write` makes their data, index and exception files
again, byte for byte, so that nltk can be the judge where no database is installed. lexnames and index.sense, which
Debian's package lacks, are rebuilt. cntlist.rev holds only counts of senses that WordNet 3.0 has: Princeton's has more.
"""

from __future__ import annotations

import atexit
import tempfile
import warnings
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from hoicli.wordnet.lexicon import RELATIONS, WordNet, open_wordnet
from tests.wordnet_build import FILES, LEXNAMES, TARGET, bare, sense_key

LICENCE = TARGET.parent / "WORDNET-LICENSE"
T = TypeVar("T")

# The order in which index files list the pointers of a lemma; all domain pointers of one direction are one symbol.
INDEX_SYMBOLS = ("!", "@", "~", *("#m", "#s", "#p", "%m", "%s", "%p"), *"&<*>^\\=$+;-")
COMBINED = {"@i": "@", "~i": "~", ";c": ";", ";r": ";", ";u": ";", "-c": "-", "-r": "-", "-u": "-"}


class Database:
    """The index unpacked into plain lists: a whole database is written, not a sense looked up."""

    def __init__(self, wordnet: WordNet) -> None:
        self.wordnet = wordnet
        every = range(wordnet.size)
        self.pos = [wordnet.pos(synset) for synset in every]
        self.offset = [f"{offset:08d}" for offset in wordnet._offset.tolist()]
        self.lexfile = wordnet.lexnames.tolist()
        self.words = [wordnet.words(synset) for synset in every]
        self.lex_id = _parts(wordnet._array("word_lex_id").tolist(), wordnet._word_start.tolist())
        symbols = list(RELATIONS.values())
        pointers = zip(
            [symbols[kind] for kind in wordnet._pointer_kind.tolist()],
            wordnet._pointer_target.tolist(),
            wordnet._pointer_words.tolist(),
            strict=True,
        )
        self.pointers = _parts(list(pointers), wordnet._pointer_start.tolist())
        self.frames = _parts(wordnet._array("frames").tolist(), wordnet._starts("frame_count").tolist())
        self.lemma = [wordnet.lemma(number) for number in range(wordnet.lemma_count)]
        starts = wordnet._sense_start.tolist()
        self.senses = _parts(list(zip(wordnet._senses.tolist(), wordnet._tags.tolist(), strict=True)), starts)

    def key(self, synset: int, place: int) -> str:
        """The sense key of a word of a synset."""
        head = None
        if self.pos[synset] == "s":
            cluster = next(target for symbol, target, _ in self.pointers[synset] if symbol == "&")
            head = self.words[cluster][0], self.lex_id[cluster][0]
        lex_id = self.lex_id[synset][place]
        return sense_key(self.words[synset][place], lex_id, self.pos[synset], self.lexfile[synset], head)

    def data(self, pos: str) -> list[str]:
        """The lines of a data file."""
        lines = []
        for synset in self.wordnet.ranges[pos]:
            words, pointers, frames = self.words[synset], self.pointers[synset], self.frames[synset]
            parts = [self.offset[synset], f"{self.lexfile[synset]:02d} {self.pos[synset]} {len(words):02x}"]
            parts += [f"{word} {lex_id:x}" for word, lex_id in zip(words, self.lex_id[synset], strict=True)]
            parts.append(f"{len(pointers):03d}")
            for symbol, target, ends in pointers:
                file = "a" if self.pos[target] == "s" else self.pos[target]
                parts.append(f"{symbol} {self.offset[target]} {file} {ends:04x}")
            if pos == "v":
                parts += [f"{len(frames):02d}", *(f"+ {frame >> 8:02d} {frame & 255:02x}" for frame in frames)]
            lines.append(f"{' '.join(parts)} | {self.wordnet.gloss_text(synset)}  \n")
        return lines

    def index(self, pos: str) -> list[str]:
        """The lines of an index file."""
        lines = []
        for lemma, all_senses in zip(self.lemma, self.senses, strict=True):
            senses = [(synset, tags) for synset, tags in all_senses if synset in self.wordnet.ranges[pos]]
            if not senses:
                continue
            used = set()
            for synset, _ in senses:
                places = {0, *(at for at, word in enumerate(self.words[synset], 1) if bare(word).lower() == lemma)}
                used |= {
                    COMBINED.get(symbol, symbol) for symbol, _, ends in self.pointers[synset] if ends >> 8 in places
                }
            pointers = [symbol for symbol in INDEX_SYMBOLS if symbol in used]
            tagged = sum(tags > 0 for _, tags in senses)
            offsets = [self.offset[synset] for synset, _ in senses]
            fields = [lemma, pos, len(senses), len(pointers), *pointers, len(senses), tagged, *offsets]
            lines.append(" ".join(map(str, fields)) + "  \n")
        return lines

    def counts(self) -> tuple[list[str], list[str]]:
        """The lines of index.sense and of cntlist.rev."""
        senses, counts = [], []
        for lemma, all_senses in zip(self.lemma, self.senses, strict=True):
            rank: dict[str, int] = {}
            for synset, tags in all_senses:
                file = "a" if self.pos[synset] == "s" else self.pos[synset]
                rank[file] = rank.get(file, 0) + 1
                place = [bare(word).lower() for word in self.words[synset]].index(lemma)
                key = self.key(synset, place)
                senses.append(f"{key} {self.offset[synset]} {rank[file]} {tags}\n")
                counts += [f"{key} {rank[file]} {tags}\n"] * (tags > 0)
        return sorted(senses), sorted(counts)


def write(wordnet: WordNet, folder: Path, licence: str) -> None:
    """All files of a database; `licence` is the text that heads its data and index files."""
    head = "".join(f"  {number} {line}  \n" for number, line in enumerate(licence.splitlines(), start=1))
    database = Database(wordnet)

    def save(name: str, lines: list[str]) -> None:
        (folder / name).write_bytes("".join(lines).encode("ascii"))

    for pos, name in FILES.items():
        save(f"data.{name}", [head, *database.data(pos)])
        save(f"index.{name}", [head, *database.index(pos)])
        (folder / f"{name}.exc").write_bytes(wordnet._part(f"exceptions_{pos}"))
    types = ["noun", "verb", "adj", "adv"]
    save("lexnames", [f"{at:02d}\t{name}\t{1 + types.index(name.split('.')[0])}\n" for at, name in enumerate(LEXNAMES)])
    senses, counts = database.counts()
    save("index.sense", senses)
    save("cntlist.rev", counts)


def _parts(values: list[T], starts: list[int]) -> list[list[T]]:
    return [values[start:stop] for start, stop in pairwise(starts)]


@cache
def nltk_wordnet() -> tuple[Any, Path]:
    """nltk's reader of the database written back, and the folder of nltk data it lies in, for as long as we run."""
    data = import_module("nltk.data")
    keep = tempfile.TemporaryDirectory(prefix="hoicli-wordnet-")
    atexit.register(keep.cleanup)
    folder = Path(keep.name)
    root = folder / "corpora" / "wordnet"
    root.mkdir(parents=True)
    write(open_wordnet(), root, LICENCE.read_text("ascii"))
    data.path.insert(0, str(folder))  # nltk reads nothing elsewhere
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no other languages
        reader = import_module("nltk.corpus.reader.wordnet").WordNetCorpusReader(str(root), None)
    return reader, folder
