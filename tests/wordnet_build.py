"""Compile a WordNet 3.0 database into hoicli/wordnet/data/wordnet.bin: `python -m tests.wordnet_build DIRECTORY`.

DIRECTORY holds data.*, index.*, *.exc and cntlist.rev as Princeton distributes them (Debian: package wordnet-base,
/usr/share/wordnet). The same database gives the same bytes wherever zlib compresses alike. tests/test_wordnet.py
compiles anew where there is a database; tests/wordnet_files.py is the way back.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.wordnet.lexicon import GLOSS_BLOCK, MAGIC, POS, RELATIONS

TARGET = Path(__file__).parents[1] / "hoicli" / "wordnet" / "data" / "wordnet.bin"
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
SYMBOLS = tuple(RELATIONS.values())

# lexnames(5WN): the lexicographer files in the order of their numbers. The database itself has only the numbers.
LEXNAMES = (
    *("adj.all", "adj.pert", "adv.all"),
    *("noun." + name for name in (
        "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event", "feeling",
        "food", "group", "location", "motive", "object", "person", "phenomenon", "plant", "possession", "process",
        "quantity", "relation", "shape", "state", "substance", "time",
    )),
    *("verb." + name for name in (
        "body", "change", "cognition", "communication", "competition", "consumption", "contact", "creation", "emotion",
        "motion", "perception", "possession", "social", "stative", "weather",
    )),
    "adj.ppl",
)  # fmt: skip
KEY_TYPES = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}


@dataclass
class Synset:
    """One line of a data file."""

    offset: int
    lexfile: int
    kind: str
    words: list[tuple[str, int]]  # as spelt, lex_id
    pointers: list[tuple[str, str, int, int, int]]  # symbol, pos, offset, source word, target word
    frames: list[tuple[int, int]]
    gloss: str


@dataclass
class Database:
    """The files, parsed."""

    synsets: dict[str, list[Synset]] = field(default_factory=dict)
    index: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    exceptions: dict[str, str] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)


def parse_synset(line: str) -> Synset:
    """A line of a data file (wndb(5WN))."""
    left, _, gloss = line.partition(" | ")
    fields = left.split(" ")
    count = int(fields[3], 16)
    words = [(fields[at], int(fields[at + 1], 16)) for at in range(4, 4 + 2 * count, 2)]
    at = 4 + 2 * count
    pointers = []
    for place in range(at + 1, at + 1 + 4 * int(fields[at]), 4):
        symbol, offset, pos, ends = fields[place : place + 4]
        pointers.append((symbol, pos, int(offset), int(ends[:2], 16), int(ends[2:], 16)))
    rest = fields[at + 1 + 4 * len(pointers) :]
    frames = [(int(rest[place + 1]), int(rest[place + 2], 16)) for place in range(1, len(rest), 3)]
    return Synset(int(fields[0]), int(fields[1]), fields[2], words, pointers, frames, gloss.removesuffix("  \n"))


def sense_key(word: str, lex_id: int, kind: str, lexfile: int, head: tuple[str, int] | None) -> str:
    """senseidx(5WN): the key by which cntlist names a sense; `head` is a satellite's cluster head."""
    name, number = (head[0], f"{head[1]:02d}") if head else ("", "")
    return f"{bare(word)}%{KEY_TYPES[kind]}:{lexfile:02d}:{lex_id:02d}:{name}:{number}".lower()


def bare(word: str) -> str:
    """A word without its syntactic marker."""
    return word.split("(")[0]


def read(folder: Path) -> Database:
    """All files of a database."""
    database = Database()
    for pos, name in FILES.items():
        lines = (folder / f"data.{name}").read_text("ascii").splitlines(keepends=True)
        database.synsets[pos] = [parse_synset(line) for line in lines if not line.startswith("  ")]
        index = {}
        for line in (folder / f"index.{name}").read_text("ascii").splitlines():
            if not line.startswith("  "):
                fields = line.split()
                index[fields[0]] = [int(offset) for offset in fields[-int(fields[2]) :]]
        database.index[pos] = index
        database.exceptions[pos] = (folder / f"{name}.exc").read_text("ascii")
    for line in (folder / "cntlist.rev").read_text("ascii").splitlines():
        key, _, count = line.split()
        database.tags[key] = int(count)
    return database


class Writer:
    """Gathers named sections; `bytes()` is the file."""

    def __init__(self) -> None:
        self.sections: dict[str, list[Any]] = {}
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, name: str, data: bytes, dtype: str = "", *, packed: bool) -> None:
        """A section of bytes, aligned to 8."""
        raw = zlib.compress(data, 9) if packed else data
        self.sections[name] = [self.size, len(raw), dtype, packed]
        self.parts += [raw, bytes(-len(raw) % 8)]
        self.size += len(raw) + -len(raw) % 8

    def array(self, name: str, values: Any, dtype: str, *, packed: bool) -> None:
        """Numbers, little-endian; refuses values that do not fit."""
        given = np.asarray(values, np.int64)
        stored = given.astype(dtype)
        if not (stored == given).all():
            raise OverflowError(name)
        self.add(name, stored.tobytes(), dtype, packed=packed)

    def bytes(self, **meta: Any) -> bytes:
        """The whole file; `meta` joins the header."""
        header = json.dumps({"sections": self.sections, **meta}, separators=(",", ":")).encode()
        header += b" " * (-(len(MAGIC) + 8 + len(header)) % 8)
        return b"".join([MAGIC, len(header).to_bytes(8, "little"), header, *self.parts])


def compile_(database: Database) -> bytes:
    """The content of wordnet.bin."""
    out = Writer()
    synsets = [synset for pos in POS for synset in database.synsets[pos]]
    number: dict[tuple[str, int], int] = {}
    for pos in POS:
        for synset in database.synsets[pos]:
            number[pos, synset.offset] = len(number)
    number.update({("s", offset): at for (pos, offset), at in number.items() if pos == "a"})

    lemmas = sorted({lemma for pos in POS for lemma in database.index[pos]})
    lemma_ids = {lemma: at for at, lemma in enumerate(lemmas)}
    out.add("lemma_text", "".join(lemmas).encode(), packed=False)
    out.array("lemma_length", [len(lemma) for lemma in lemmas], "u1", packed=False)

    senses, counts, tags = [], [], []
    keys = _keys(synsets, number)
    for lemma in lemmas:
        found = [number[pos, offset] for pos in POS for offset in database.index[pos].get(lemma, ())]
        counts.append(len(found))
        senses += found
        # A synset may hold a word in two spellings ("Earth", "earth"), each tagged under its own key.
        tags += [sum(database.tags.get(key, 0) for key in keys[lemma, synset]) for synset in found]
    out.array("sense_count", counts, "u1", packed=False)
    out.array("senses", senses, "<i4", packed=False)
    out.array("sense_tags", tags, "<u2", packed=True)

    plain = {word for synset in synsets for word, _ in synset.words if word in lemma_ids}
    spellings = sorted({word for synset in synsets for word, _ in synset.words} - plain)
    word_ids = {**lemma_ids, **{word: len(lemmas) + at for at, word in enumerate(spellings)}}
    out.array("word_count", [len(synset.words) for synset in synsets], "u1", packed=False)
    out.array("words", [word_ids[word] for synset in synsets for word, _ in synset.words], "<i4", packed=False)
    out.array("word_lex_id", [lex_id for synset in synsets for _, lex_id in synset.words], "u1", packed=True)
    out.add("spellings", "\n".join(spellings).encode(), packed=True)

    pointers = [pointer for synset in synsets for pointer in synset.pointers]
    out.array("pointer_count", [len(synset.pointers) for synset in synsets], "<u2", packed=False)
    out.array("pointer_kind", [SYMBOLS.index(symbol) for symbol, *_ in pointers], "u1", packed=False)
    out.array("pointer_target", [number[pos, at] for _, pos, at, _, _ in pointers], "<i4", packed=False)
    out.array("pointer_words", [source * 256 + target for *_, source, target in pointers], "<u2", packed=True)
    out.array("frame_count", [len(synset.frames) for synset in synsets], "u1", packed=True)
    out.array("frames", [kind * 256 + word for synset in synsets for kind, word in synset.frames], "<u2", packed=True)

    steps = []
    for pos in POS:
        steps += np.diff([0, *(synset.offset for synset in database.synsets[pos])]).tolist()
    out.array("offset_step", steps, "<u2", packed=True)
    out.array("lexfile", [synset.lexfile for synset in synsets], "u1", packed=True)
    out.array("satellite", [synset.kind == "s" for synset in database.synsets["a"]], "u1", packed=True)

    parents = [
        [number[pos, offset] for symbol, pos, offset, *_ in synset.pointers if symbol in ("@", "@i")]
        for synset in synsets
    ]
    graded = len(database.synsets["n"]) + len(database.synsets["v"])
    shortest, longest = _depths(parents[:graded])
    out.array("min_depth", shortest, "u1", packed=True)
    out.array("max_depth", longest, "u1", packed=True)
    tagged = np.bincount(senses, weights=tags, minlength=len(synsets)).astype(int)
    out.array("concordance", _concordance(parents[:graded], (tagged[:graded] + 1).tolist()), "<i4", packed=True)

    for pos in POS:
        out.add(f"exceptions_{pos}", database.exceptions[pos].encode(), packed=True)
    glosses = [synset.gloss for synset in synsets]
    blocks = [
        zlib.compress("\n".join(glosses[at : at + GLOSS_BLOCK]).encode(), 9)
        for at in range(0, len(glosses), GLOSS_BLOCK)
    ]
    out.array("gloss_start", np.cumsum([0, *map(len, blocks)]), "<u4", packed=False)
    out.add("glosses", b"".join(blocks), packed=False)
    return out.bytes(synsets=[len(database.synsets[pos]) for pos in POS], symbols=SYMBOLS, lexnames=LEXNAMES)


def _keys(synsets: list[Synset], number: dict[tuple[str, int], int]) -> dict[tuple[str, int], set[str]]:
    """The sense keys of each (lemma, synset)."""
    keys = defaultdict(set)
    for at, synset in enumerate(synsets):
        head = None
        if synset.kind == "s":
            similar = next(pointer for pointer in synset.pointers if pointer[0] == "&")
            head = synsets[number["a", similar[2]]].words[0]
        for word, lex_id in synset.words:
            keys[bare(word).lower(), at].add(sense_key(word, lex_id, synset.kind, synset.lexfile, head))
    return keys


def _depths(parents: list[list[int]]) -> tuple[list[int], list[int]]:
    """(shortest, longest) way up to a root. Refuses a graph with a cycle."""
    shortest, longest = [-1] * len(parents), [-1] * len(parents)
    children: dict[int, list[int]] = defaultdict(list)
    waiting = [len(above) for above in parents]
    for at, above in enumerate(parents):
        for parent in above:
            children[parent].append(at)
    ready = [at for at, above in enumerate(parents) if not above]
    for at in ready:
        above = parents[at]
        shortest[at] = 1 + min(shortest[parent] for parent in above) if above else 0
        longest[at] = 1 + max(longest[parent] for parent in above) if above else 0
        for child in children[at]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(ready) < len(parents):
        raise ValueError("the hypernyms have a cycle")
    return shortest, longest


def _concordance(parents: list[list[int]], own: list[int]) -> list[int]:
    """Each synset's own count and those of all below it, each once."""
    total = [0] * len(parents)
    for at, count in enumerate(own):
        above, todo = {at}, [at]
        for synset in todo:
            fresh = [parent for parent in parents[synset] if parent not in above]
            above.update(fresh)
            todo += dict.fromkeys(fresh)
        for synset in above:
            total[synset] += count
    return total


if __name__ == "__main__":
    TARGET.write_bytes(compile_(read(Path(sys.argv[1]))))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
