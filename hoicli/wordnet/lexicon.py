"""A WordNet: the compiled graph, in which words are looked up and senses compared, and nltk's reader for all else.

The embedded one is Princeton's 3.0: its files as they are distributed (data/princeton), compiled into data/graph.npz by
tests/support/wordnet_build.py. Words and senses are those that nltk finds (tests/wordnet/test_lexicon.py compares
them); nltk itself takes half a second to import, and is for glosses, and for senses named by another of their words.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.wordnet.files import PARTS, Files
from hoicli.wordnet.graph import Arrays, Graph, Lemmas

if TYPE_CHECKING:
    from hoicli.wordnet.reader import WordNetReader

PRINCETON = Path(__file__).parent / "data" / "princeton"
GRAPH = PRINCETON.parent / "graph.npz"

ENDINGS = {
    "n": {"s": [""], "ses": ["s"], "ves": ["f"], "xes": ["x"], "zes": ["z"], "ches": ["ch"], "shes": ["sh"],
          "men": ["man"], "ies": ["y"]},
    "v": {"s": [""], "ies": ["y"], "es": ["e", ""], "ed": ["e", ""], "ing": ["e", ""]},
    "a": {"er": ["", "e"], "est": ["", "e"]},
    "r": {},
}  # fmt: skip
"""WordNet's rules of detachment (morphy(7WN)), with nltk's "ves": the endings of inflected forms, and of base forms."""

_SENSE = re.compile(r".+\.[nvasr]\.(?!0+$)[0-9]{1,3}", re.DOTALL)


@dataclass(eq=False)
class Lexicon:
    """One WordNet; `selection.open_wordnet()` gives the one in use.

    title: how messages name it. signature: how results do, None for the embedded one. words: those of another language,
    which are looked up before English ones.
    """

    title: str
    files: Files
    graph: Graph
    signature: str | None = None
    words: Lemmas | None = None

    @cached_property
    def reader(self) -> WordNetReader:
        """nltk's reader."""
        from hoicli.wordnet.reader import WordNetReader

        return WordNetReader(self.files, self.graph)

    # Words

    def forms(self, word: str, pos: str) -> list[str]:
        """The lemmas that a word of any form may be, itself first: of a word with irregular forms those, of any other
        what the rules make of it, as nltk's morphy takes it there."""
        if self._foreign(word, pos):
            return [word]
        irregular = self._irregular[pos].get(word)
        bases = based(word, pos) if irregular is None else irregular
        return [form for form in dict.fromkeys([word, *bases]) if self._rows(self.graph.lemmas, form, pos)]

    def senses(self, lemma: str, pos: str) -> list[str]:
        """Names of the senses of a lemma as it stands, the most frequent first."""
        rows = self._foreign(lemma, pos) or self._rows(self.graph.lemmas, lemma.lower(), pos)
        return [self.name(row) for row in rows]

    def word_senses(self, word: str, pos: str) -> list[int]:
        """Rows of all synsets a word of any form or case may mean, spaces read as underscores."""
        forms = self.forms(word.lower().replace(" ", "_"), pos)
        return [self.graph.row(name) for name in dict.fromkeys(chain(*(self.senses(form, pos) for form in forms)))]

    def _foreign(self, word: str, pos: str) -> list[int]:
        return [] if self.words is None else self._rows(self.words, word, pos)

    def _rows(self, lemmas: Lemmas, lemma: str, pos: str) -> list[int]:
        """The rows of a lemma's synsets of one part of speech."""
        among = self.graph.ranges[pos]
        return [row for row in lemmas.get(lemma, ()) if row in among]

    @cached_property
    def _irregular(self) -> dict[str, dict[str, list[str]]]:
        """The base forms of irregular ones by part of speech, from the database's lists of exceptions."""
        found = {}
        for pos, name in PARTS.items():
            with self.files.open(f"{name}.exc") as stream:
                lines = stream.read().decode().splitlines()
            found[pos] = {form: bases for form, *bases in map(str.split, lines)}
        return found

    # Senses

    def index(self, name: str) -> int:
        """The row of a sense by its name. Any word of the synset will do: "motorcar.n.01" is car.n.01.

        Raises `KeyError` for a name that is none.
        """
        try:
            return self.graph.row(name)
        except KeyError:
            synset = self.reader.named(name) if _SENSE.fullmatch(name) else None
        if synset is None:
            raise KeyError(name)
        return self.graph.at(synset.pos(), synset.offset())

    def canonical(self, sense: str) -> str:
        """The sense's own name, by whatever word of the synset it is named; another text stays as it is."""
        try:
            return self.name(self.index(sense))
        except KeyError:
            return sense

    def name(self, row: int) -> str:
        """The sense's name: "ride.v.10"."""
        return self.graph.names[row]

    def synset(self, name: str) -> Any:
        """nltk's `Synset` of a sense: its definition, examples, lemmas and relations."""
        return self.reader.synset(name)

    def translated(self, sense: str) -> str | None:
        """The sense here that is a sense of WordNet 3.0, None where there is none: that of the most words in common.

        A word in its sense has a key that stays from one WordNet to the next; nltk's `map_to_one` goes by it too.
        """
        own = embedded()
        if self.graph is own.graph:
            return sense
        votes: Counter[str] = Counter()
        for lemma in own.synset(sense).lemmas():
            among = self.reader.lemmas(lemma.name(), sense.rsplit(".", 2)[1])
            votes.update({other.synset().name() for other in among if other.key() == lemma.key()})
        return max(votes, key=votes.__getitem__, default=None)


def based(form: str, pos: str) -> list[str]:
    """What the rules of detachment make of a form, words of WordNet or not."""
    endings = ENDINGS[pos].items()
    return [form[: -len(old)] + new for old, news in endings if form.endswith(old) for new in news]


@cache
def embedded() -> Lexicon:
    """WordNet 3.0."""
    return Lexicon("WordNet 3.0", Files(PRINCETON), Graph(loaded(GRAPH.read_bytes())))


def loaded(data: bytes) -> Arrays:
    """The arrays of an .npz file, each unpacked when it is asked for."""
    arrays: Arrays = np.load(io.BytesIO(data), allow_pickle=False)
    return arrays
