"""nltk's own reader of the embedded WordNet, as judge, and small WordNets made up for a test."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from hoicli.wordnet.graph import Graph
from hoicli.wordnet.lexicon import PRINCETON, open_embedded

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
TYPES = {"n": 1, "v": 2, "a": 3, "r": 4}


@cache
def nltk_wordnet() -> Any:
    """nltk's reader of the embedded files, with nothing of hoicli's in it."""
    folder = Path(tempfile.mkdtemp(prefix="hoicli-wordnet-"))
    atexit.register(shutil.rmtree, folder)
    for path in PRINCETON.iterdir():  # a checkout may be such as nltk reads nothing in: writable by a group
        (folder / path.name).touch(mode=0o600)
        shutil.copyfile(path, folder / path.name)
    import_module("nltk.data").path.insert(0, str(folder))  # nor does it elsewhere
    return plain_reader(folder)


@cache
def nltks(synset: int) -> Any:
    """nltk's own object for a synset of the embedded WordNet."""
    graph = open_embedded().graph
    return nltk_wordnet().synset_from_pos_and_offset(graph.pos(synset), int(graph.offset[synset]))


def counts_for_nltk(graph: Graph, folder: Path) -> Any:
    """Our counts of senses, read by nltk from a file in the folder, which must be on nltk's data path."""
    lines = ["wnver::hoicli"]
    for row in [*graph.ranges["n"], *graph.ranges["v"]]:
        root = " ROOT" if graph.array("min_depth")[row] == 0 else ""
        lines.append(f"{graph.offset[row]}{graph.pos(row)} {graph.array('concordance')[row]}{root}")
    (folder / "ic.dat").write_text("\n".join(lines) + "\n")
    return import_module("nltk.corpus.reader.wordnet").WordNetICCorpusReader(str(folder), ["ic.dat"]).ic("ic.dat")


def plain_reader(folder: Path) -> Any:
    """nltk's reader of a folder in its data path, but for its map from WordNet 3.0, which wants more files."""
    base = import_module("nltk.corpus.reader.wordnet").WordNetCorpusReader
    plain = type("Plain", (base,), {"map_wn": lambda *_: None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no other languages
        return plain(str(folder), None)


def install(folder: Path) -> None:
    """The embedded WordNet as a corpus that nltk loads without hoicli: with index.sense, made of its own keys."""
    shutil.copytree(PRINCETON, folder, dirs_exist_ok=True)
    senses = []
    for synset in open_embedded().reader.all_synsets():
        senses += [f"{lemma.key()} {synset.offset():08d} 1 0\n" for lemma in synset.lemmas()]
    (folder / "index.sense").write_text("".join(sorted(senses)))


class Synset(NamedTuple):
    """A synset to be written: pointers are (symbol, place in the list, word here, word there), 0 for all words.

    lexfile, lex_id: numbers that go into the keys of its senses.
    """

    pos: str
    words: list[str]
    gloss: str
    pointers: list[tuple[str, int, int, int]] = []  # noqa: RUF012 (nobody changes it)
    tagged: int = 0
    lexfile: int = 3
    lex_id: int = 0


def write(folder: Path, synsets: list[Synset], *, counts: bool = True) -> None:
    """A WordNet's files. Each word's senses are numbered in the order of the list."""
    folder.mkdir(parents=True, exist_ok=True)
    head = "  1 a WordNet of a test\n"
    offsets: list[int] = []
    ends = dict.fromkeys(FILES, len(head))
    for synset in synsets:
        offsets.append(ends[synset.pos])
        ends[synset.pos] += len(_line(synset, 0, synsets, [0] * len(synsets)).encode())
    data, index, tags = dict.fromkeys(FILES, head), dict.fromkeys(FILES, head), []
    for pos in FILES:
        senses = defaultdict(list)
        for synset, offset in zip(synsets, offsets, strict=True):
            if synset.pos == pos:
                data[pos] += _line(synset, offset, synsets, offsets)
                for word in synset.words:
                    senses[word.lower()].append(offset)
                key = f"{synset.words[0].lower()}%{TYPES[pos]}:{synset.lexfile:02d}:{synset.lex_id:02d}::"
                tags.append(f"{key} 1 {synset.tagged}\n")
        for word, found in sorted(senses.items()):
            places = " ".join(f"{offset:08d}" for offset in found)
            index[pos] += f"{word} {pos} {len(found)} 0 {len(found)} 0 {places}  \n"
        (folder / f"data.{FILES[pos]}").write_text(data[pos], encoding="utf-8")
        (folder / f"index.{FILES[pos]}").write_text(index[pos], encoding="utf-8")
    if counts:
        (folder / "cntlist.rev").write_text("".join(sorted(tags)), encoding="utf-8")


def _line(synset: Synset, offset: int, synsets: list[Synset], offsets: list[int]) -> str:
    words = " ".join(f"{word} {synset.lex_id:x}" for word in synset.words)
    places = [(symbol, offsets[end], synsets[end].pos, here, there) for symbol, end, here, there in synset.pointers]
    pointers = "".join(f"{symbol} {at:08d} {pos} {here:02x}{there:02x} " for symbol, at, pos, here, there in places)
    count = f"{len(synset.words):02x} {words} {len(synset.pointers):03d} {pointers}"
    return f"{offset:08d} {synset.lexfile:02d} {synset.pos} {count}| {synset.gloss}  \n"
