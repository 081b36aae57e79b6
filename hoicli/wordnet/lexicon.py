"""WordNet 3.0, embedded: lemmas, senses, glosses and relations from one file that opens in milliseconds.

A synset is an integer: the four parts of speech follow one another (nouns, verbs, adjectives, adverbs), each in the
order of its database file, so `ranges["v"]` are all verb synsets and a relation may cross parts of speech. A sense is
named as nltk names it: first word of its synset, part of speech, and the number WordNet gives that word's sense
("ride.v.10"). Lemmas are lower-case with underscores.

The data is wordnet.bin beside this module, made by tests/wordnet_build.py from the database of Princeton University
(data/WORDNET-LICENSE); every field of the database's data, index, exception and cntlist files is in it. What a search
needs lies there as it is; the rest is compressed and unpacked when first asked for.
"""

from __future__ import annotations

import json
import mmap
import re
import zlib
from functools import cache, cached_property
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

POS = ("n", "v", "a", "r")
"""Nouns, verbs, adjectives (satellites, "s" in names, among them) and adverbs, in the order of the synset numbers."""

RELATIONS = {
    "antonym": "!",
    "hypernym": "@",
    "instance_hypernym": "@i",
    "hyponym": "~",
    "instance_hyponym": "~i",
    "member_holonym": "#m",
    "substance_holonym": "#s",
    "part_holonym": "#p",
    "member_meronym": "%m",
    "substance_meronym": "%s",
    "part_meronym": "%p",
    "attribute": "=",
    "derivation": "+",
    "topic": ";c",
    "region": ";r",
    "usage": ";u",
    "in_topic": "-c",
    "in_region": "-r",
    "in_usage": "-u",
    "entailment": "*",
    "cause": ">",
    "also_see": "^",
    "verb_group": "$",
    "similar": "&",
    "participle": "<",
    "pertainym": "\\",
}
"""The relations by name, with the database's symbol; an adverb's "pertainym" is the adjective it comes from."""

MAGIC = b"hoicli wordnet 1\n"
GLOSS_BLOCK = 128
"""Glosses compressed together: few enough that one is read in well under a millisecond."""

ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"),
        ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip
"""morphy's rules of detachment (morphy(7WN)), with nltk's addition of -ves to the nouns."""

_EXAMPLE = re.compile(r'"([^"]*)"')
_MARKER = re.compile(r"\((?:p|a|ip)\)$")


class WordNet:
    """The database. `open_wordnet()` gives the embedded one."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        """content: that of wordnet.bin. Raises ValueError for anything else."""
        data = memoryview(content)
        head = len(MAGIC) + 8
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("not a compiled WordNet")
        start = head + int.from_bytes(data[len(MAGIC) : head], "little")
        header: dict[str, Any] = json.loads(bytes(data[head:start]))
        self._data = data[start:]
        self._sections: dict[str, list[Any]] = header["sections"]
        self._kinds: dict[str, int] = {symbol: number for number, symbol in enumerate(header["symbols"])}
        self._lexnames: list[str] = header["lexnames"]
        bounds = [0, *np.cumsum(header["synsets"]).tolist()]
        self.ranges = {pos: range(bounds[at], bounds[at + 1]) for at, pos in enumerate(POS)}
        self.size: int = bounds[-1]
        """How many synsets there are."""
        self._lemma_text = bytes(self._part("lemma_text"))
        self._lemma_start = self._starts("lemma_length")
        self._sense_start = self._starts("sense_count")
        self._senses = self._array("senses")

    # Lemmas and senses

    @property
    def lemma_count(self) -> int:
        """How many distinct lemmas there are, over all parts of speech."""
        return len(self._lemma_start) - 1

    def lemma(self, number: int) -> str:
        """Lemma `number` in byte order, 0 to lemma_count - 1."""
        return self._lemma_text[self._lemma_start[number] : self._lemma_start[number + 1]].decode()

    def senses(self, lemma: str, pos: str) -> list[int]:
        """Synsets of a lemma as it stands (no lemmatising) in WordNet's order, the most frequent first; may be empty.

        pos is one of POS, or "s" as another name for "a".
        """
        number = self._lemma_number(lemma)
        if number is None:
            return []
        return [synset for synset in self._senses_of(number) if synset in self._range(pos)]

    def tag_counts(self, lemma: str, pos: str) -> list[int]:
        """How often each of `senses(lemma, pos)` was tagged in the semantic concordances (cntlist)."""
        number = self._lemma_number(lemma)
        if number is None:
            return []
        counts = self._tags[self._sense_start[number] : self._sense_start[number + 1]].tolist()
        among = self._range(pos)
        return [count for synset, count in zip(self._senses_of(number), counts, strict=True) if synset in among]

    def name(self, synset: int) -> str:
        """The sense's name, as nltk's `Synset.name()`: "ride.v.10".

        A satellite is numbered among all adjective senses of its lemma, as WordNet does (nltk 3.9.2 and later: among
        satellites only).
        """
        lemma = self.lemmas(synset)[0].lower()
        pos = self.pos(synset)
        return f"{lemma}.{pos}.{self.senses(lemma, pos).index(synset) + 1:02d}"

    def index(self, name: str) -> int:
        """The synset of a sense's name. Any word of the synset will do: "motorcar.n.01" is car.n.01.

        Raises `KeyError` for a name that is none.
        """
        lemma, _, rest = name.lower().rpartition(".")[0].rpartition(".")
        number = name.rpartition(".")[2]
        if lemma and rest in (*POS, "s") and number.isascii() and number.isdecimal() and len(number) < 4:
            senses = self.senses(lemma, rest)
            if 0 < int(number) <= len(senses) and (rest != "s" or self.pos(senses[int(number) - 1]) == "s"):
                return senses[int(number) - 1]
        raise KeyError(name)

    def pos(self, synset: int) -> str:
        """ "n", "v", "a", "s" or "r"."""
        for pos, among in self.ranges.items():
            if synset in among:
                return "s" if pos == "a" and self._satellite[synset - among.start] else pos
        raise IndexError(f"no synset {synset}")

    def morphy(self, word: str, pos: str) -> list[str]:
        """The lemmas of `pos` that `word` may be a form of, itself first; lower-case with underscores, as lemmas are.

        WordNet's exceptions come before its endings, and endings are taken off once (as nltk 3.9 and later).
        """
        pos = "a" if pos == "s" else pos
        forms = self._exceptions[pos].get(word)
        if forms is None:
            forms = [word[: -len(old)] + new for old, new in ENDINGS[pos] if word.endswith(old)]
        return [form for form in dict.fromkeys([word, *forms]) if self.senses(form, pos)]

    # What a synset holds

    def lemmas(self, synset: int) -> list[str]:
        """Its words as they are spelt, capitals kept, the first naming it."""
        return [_MARKER.sub("", word) for word in self.words(synset)]

    def words(self, synset: int) -> list[str]:
        """Its words with the syntactic markers of adjectives: "galore(ip)"."""
        numbers = self._words[self._word_start[synset] : self._word_start[synset + 1]].tolist()
        plain = self.lemma_count
        return [self.lemma(word) if word < plain else self._spellings[word - plain] for word in numbers]

    def gloss(self, synset: int) -> str:
        """The definition, without the examples."""
        return _EXAMPLE.sub("", self.gloss_text(synset)).strip().strip("; ")

    def examples(self, synset: int) -> list[str]:
        """The example sentences of the gloss."""
        return _EXAMPLE.findall(self.gloss_text(synset))

    def gloss_text(self, synset: int) -> str:
        """The gloss as the database has it, definition and examples."""
        block, place = divmod(range(self.size)[synset], GLOSS_BLOCK)
        return self._gloss_block(block)[place]

    def lexname(self, synset: int) -> str:
        """The lexicographer's file: "verb.motion"."""
        name: str = self._lexnames[self.lexnames[synset]]
        return name

    @cached_property
    def lexnames(self) -> npt.NDArray[Any]:
        """[size] the number of each synset's lexicographer file."""
        return self._array("lexfile")

    # Relations

    def hypernyms(self, synset: int) -> list[int]:
        """The more general synsets, an instance's classes among them, in the database's order."""
        return self._targets(synset, self._hypernym_kinds)

    def relations(self, kind: str, synset: int) -> list[int]:
        """Synsets that `synset`, or a word of it, points at by one of RELATIONS, each once, in the database's order."""
        return self._targets(synset, (self._kinds[RELATIONS[kind]],))

    def lexical_relations(self, kind: str, synset: int) -> list[tuple[str, int, str]]:
        """Relations of its words, not of the synset as a whole: (word, target synset, word of it)."""
        start, stop = int(self._pointer_start[synset]), int(self._pointer_start[synset + 1])
        wanted = self._kinds[RELATIONS[kind]]
        found = []
        for at in range(start, stop):
            source, target = divmod(int(self._pointer_words[at]), 256)
            if source and self._pointer_kind[at] == wanted:
                other = int(self._pointer_target[at])
                found.append((self.lemmas(synset)[source - 1], other, self.lemmas(other)[target - 1]))
        return found

    def edges(self, *kinds: str) -> tuple[Ints, Ints]:
        """(sources, targets) [E] of all pointers of the named RELATIONS, sources ascending; between words too."""
        wanted = np.isin(self._pointer_kind, [self._kinds[RELATIONS[kind]] for kind in kinds])
        at = np.flatnonzero(wanted)
        sources = np.searchsorted(self._pointer_start, at, side="right") - 1
        return sources.astype(np.int64), self._pointer_target[at].astype(np.int64)

    @cached_property
    def min_depth(self) -> npt.NDArray[Any]:
        """[nouns and verbs] edges of the shortest way up to a root."""
        return self._array("min_depth")

    @cached_property
    def max_depth(self) -> npt.NDArray[Any]:
        """[nouns and verbs] edges of the longest way up to a root."""
        return self._array("max_depth")

    @cached_property
    def concordance(self) -> npt.NDArray[Any]:
        """[nouns and verbs] how often a sense or anything below it was tagged, plus one for each synset counted.

        A synset counts once for every synset above it, however many ways lead there.
        """
        return self._array("concordance")

    # The database's own numbers

    def offset(self, synset: int) -> int:
        """The byte offset in WordNet 3.0's data file of its part of speech, by which other data sets name synsets."""
        return int(self._offset[synset])

    def from_offset(self, pos: str, offset: int) -> int:
        """The synset at a byte offset of WordNet 3.0's data file; raises `KeyError` where none begins."""
        among = self._range(pos)
        at = among.start + int(np.searchsorted(self._offset[among.start : among.stop], offset))
        if at < among.stop and self._offset[at] == offset:
            return at
        raise KeyError(f"{pos}{offset:08d}")

    # How it is stored

    def _part(self, name: str) -> bytes | memoryview:
        at, size, _, packed = self._sections[name]
        raw = self._data[at : at + size]
        return zlib.decompress(raw) if packed else raw

    def _array(self, name: str) -> npt.NDArray[Any]:
        return np.frombuffer(self._part(name), dtype=self._sections[name][2])

    def _text(self, name: str) -> str:
        return str(self._part(name), "ascii")

    def _starts(self, name: str) -> Ints:
        return np.concatenate([[0], np.cumsum(self._array(name), dtype=np.int64)])

    def _range(self, pos: str) -> range:
        return self.ranges["a" if pos == "s" else pos]

    def _lemma_number(self, lemma: str) -> int | None:
        wanted, text, start = lemma.encode(errors="replace"), self._lemma_text, self._lemma_start
        low, high = 0, self.lemma_count
        while low < high:
            middle = (low + high) // 2
            if text[start[middle] : start[middle + 1]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < self.lemma_count and text[start[low] : start[low + 1]] == wanted else None

    def _senses_of(self, number: int) -> list[int]:
        senses: list[int] = self._senses[self._sense_start[number] : self._sense_start[number + 1]].tolist()
        return senses

    def _targets(self, synset: int, kinds: tuple[int, ...]) -> list[int]:
        start, stop = self._pointer_start[synset], self._pointer_start[synset + 1]
        pairs = zip(self._pointer_kind[start:stop].tolist(), self._pointer_target[start:stop].tolist(), strict=True)
        return list(dict.fromkeys(target for kind, target in pairs if kind in kinds))

    @cached_property
    def _hypernym_kinds(self) -> tuple[int, ...]:
        return self._kinds["@"], self._kinds["@i"]

    @cached_property
    def _tags(self) -> npt.NDArray[Any]:
        return self._array("sense_tags")

    @cached_property
    def _satellite(self) -> npt.NDArray[Any]:
        return self._array("satellite")

    @cached_property
    def _words(self) -> npt.NDArray[Any]:
        return self._array("words")

    @cached_property
    def _word_start(self) -> Ints:
        return self._starts("word_count")

    @cached_property
    def _spellings(self) -> list[str]:
        return self._text("spellings").split("\n")

    @cached_property
    def _pointer_start(self) -> Ints:
        return self._starts("pointer_count")

    @cached_property
    def _pointer_kind(self) -> npt.NDArray[Any]:
        return self._array("pointer_kind")

    @cached_property
    def _pointer_target(self) -> npt.NDArray[Any]:
        return self._array("pointer_target")

    @cached_property
    def _pointer_words(self) -> npt.NDArray[Any]:
        return self._array("pointer_words")

    @cached_property
    def _offset(self) -> Ints:
        steps = self._array("offset_step").astype(np.int64)
        total = np.cumsum(steps)
        for among in self.ranges.values():  # each file counts from its own beginning
            total[among.start : among.stop] -= total[among.start] - steps[among.start]
        return total

    @cached_property
    def _exceptions(self) -> dict[str, dict[str, list[str]]]:
        tables = {}
        for pos in POS:
            lines = [line.split() for line in self._text(f"exceptions_{pos}").splitlines()]
            tables[pos] = {words[0]: words[1:] for words in lines}
        return tables

    @cached_property
    def _gloss_start(self) -> npt.NDArray[Any]:
        return self._array("gloss_start")

    @cached_property
    def _glosses(self) -> dict[int, list[str]]:
        return {}

    def _gloss_block(self, block: int) -> list[str]:
        if block not in self._glosses:
            start, stop = self._gloss_start[block : block + 2].tolist()
            packed = self._part("glosses")[start:stop]
            self._glosses[block] = zlib.decompress(packed).decode().split("\n")
        return self._glosses[block]


@cache
def open_wordnet() -> WordNet:
    """The embedded WordNet 3.0, opened once a process and mapped, not read: only what is looked up is loaded."""
    with as_file(files(__package__).joinpath("data", "wordnet.bin")) as path, open(path, "rb") as file:
        return WordNet(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
