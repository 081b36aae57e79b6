"""A WordNet: nltk's reader where words are looked up, the compiled graph where senses are compared.

The embedded one is Princeton's 3.0: its files as they are distributed (data/princeton), compiled into data/graph.npz by
tests/support/wordnet_build.py. nltk is imported when the first word is looked up, and not for senses that have their
own name.
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

from hoicli.wordnet.files import Files
from hoicli.wordnet.graph import Arrays, Graph, Lemmas

if TYPE_CHECKING:
    from hoicli.wordnet.reader import WordNetReader

PRINCETON = Path(__file__).parent / "data" / "princeton"
GRAPH = PRINCETON.parent / "graph.npz"

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
        """The lemmas that a word of any form may be, as nltk's morphy takes it there; itself first."""
        return [word] if self._foreign(word, pos) else self.reader.forms(word, pos)

    def senses(self, lemma: str, pos: str) -> list[str]:
        """Names of the senses of a lemma as it stands, the most frequent first."""
        found = (lemma.synset().name() for lemma in self.reader.lemmas(lemma, pos))
        return self._foreign(lemma, pos) or list(dict.fromkeys(found))

    def _foreign(self, word: str, pos: str) -> list[str]:
        rows = self.words.get(word, []) if self.words is not None else []
        return [self.name(row) for row in rows if row in self.graph.ranges[pos]]

    def word_senses(self, word: str, pos: str) -> list[int]:
        """Rows of all synsets a word of any form or case may mean, spaces read as underscores."""
        forms = self.forms(word.lower().replace(" ", "_"), pos)
        return [self.graph.row(name) for name in dict.fromkeys(chain(*(self.senses(form, pos) for form in forms)))]

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


@cache
def embedded() -> Lexicon:
    """WordNet 3.0."""
    return Lexicon("WordNet 3.0", Files(PRINCETON), Graph(loaded(GRAPH.read_bytes())))


def loaded(data: bytes) -> Arrays:
    """The arrays of an .npz file, each unpacked when it is asked for."""
    arrays: Arrays = np.load(io.BytesIO(data), allow_pickle=False)
    return arrays
