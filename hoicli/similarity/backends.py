"""Where similarities of senses come from: the table of backends, and one way to ask them all.

| backend | similarity |
| --- | --- |
| `wordnet:MEASURE` | path, wup, lch, lin, res, jcn on WordNet's hierarchy |
| `lexical` | hoicli's own, from WordNet's graph and glosses |
| `llm` | the mean of language models' ratings 0..4, divided by 4 (SHOE) |
| `table:FILE` | what a table says |

A pair is (pos, a, b) with a before b in alphabetical order; a sense is 1 with itself and never asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from hoicli.errors import DataError, UsageError
from hoicli.similarity.pairs import NAMES, Pair, Rated, mean_of

if TYPE_CHECKING:
    from hoicli.records.intake import ErrorPolicy
    from hoicli.similarity.interview import Interview
    from hoicli.similarity.questions import Question
    from hoicli.wordnet.lexicon import Lexicon

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
BACKENDS = (*(f"wordnet:{name}" for name in MEASURES), "lexical", "llm", "table:FILE")
"""What `--backend` takes."""


class Backend(Protocol):
    """Rates pairs, all at once: what a backend has to load or to wait for, it does once."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]: ...


def offline_backend(name: str, policy: ErrorPolicy) -> Backend:
    """A backend that needs no network, by its name. Raises `UsageError` for another name."""
    kind, _, what = name.partition(":")
    if kind == "wordnet" and what in MEASURES:
        return Measure(what)
    if name == "lexical":
        return Lexical()
    if kind == "table" and what:
        return _Table(what, policy)
    raise UsageError(f"--backend {name}: choose from {', '.join(BACKENDS)}")


def synsets_of(wordnet: Lexicon, pairs: Iterable[Pair]) -> dict[str, int]:
    """The synset of each sense in the pairs. Raises `DataError` for a sense that WordNet does not have as such."""
    found: dict[str, int] = {}
    for pos, sense in dict.fromkeys((pos, sense) for pos, *senses in pairs for sense in senses):
        try:
            found[sense] = wordnet.index(sense)
        except KeyError:
            raise DataError(f"{sense!r} is no sense of {wordnet.title}; name one like pet.v.01") from None
        if wordnet.graph.pos(found[sense]) != pos:
            raise DataError(f"{sense!r} is no sense of a {NAMES[pos]}; compare senses of one part of speech")
    return found


class Measure:
    """One of `measures`. The first of two senses is the one asked (wup is not quite symmetric): a table's pairs come
    by name."""

    RESCALED = ("lch", "res", "jcn")
    """Those whose own numbers go beyond 1."""

    def __init__(self, measure: str) -> None:
        self._measure = measure

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        import numpy as np

        from hoicli.wordnet.measures import raw_similarities, similarities
        from hoicli.wordnet.selection import open_wordnet

        wordnet = open_wordnet()
        synset = synsets_of(wordnet, pairs)
        numbers = np.array([(synset[a], synset[b]) for _, a, b in pairs], dtype=np.int64).reshape(-1, 2)
        rated = [Rated(value) for value in similarities(wordnet.graph, self._measure, numbers).tolist()]
        if self._measure not in self.RESCALED:
            return rated
        raw = raw_similarities(wordnet.graph, self._measure, numbers).tolist()
        return [replace(found, raw=value) for found, value in zip(rated, raw, strict=True)]


class Lexical:
    """`hoicli.wordnet.lexical`."""

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        import numpy as np

        from hoicli.wordnet.lexical import similarities
        from hoicli.wordnet.selection import open_wordnet

        wordnet = open_wordnet()
        synset = synsets_of(wordnet, pairs)
        numbers = np.array([(synset[a], synset[b]) for _, a, b in pairs], dtype=np.int64).reshape(-1, 2)
        return list(map(Rated, similarities(wordnet.graph, numbers).tolist()))

    def knows(self, word: str, pos: str) -> bool:
        """Whether `rate_words` takes the word."""
        from hoicli.wordnet.selection import open_wordnet

        return bool(open_wordnet().word_senses(word, pos))

    def rate_words(self, words: Sequence[tuple[str, str, str]]) -> list[float]:
        """How alike two words of a part of speech are, which is less than their most alike senses where they have
        many; each (pos, first, second), both known."""
        from hoicli.wordnet.lexical import word_similarities
        from hoicli.wordnet.selection import open_wordnet

        wordnet = open_wordnet()
        found: dict[tuple[str, str, str], float] = {}
        for pos in dict.fromkeys(pos for pos, _, _ in words):
            own = [(first, second) for at, first, second in words if at == pos]
            senses = {word: wordnet.word_senses(word, pos) for pair in own for word in pair}
            values = word_similarities(wordnet.graph, own, senses).tolist()
            found |= {(pos, *pair): value for pair, value in zip(own, values, strict=True)}
        return [found[item] for item in words]


class _Table:
    def __init__(self, path: str, policy: ErrorPolicy) -> None:
        self._path = path
        self._policy = policy

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        from hoicli.io.streams import Stream
        from hoicli.similarity.merge import read_tables

        tables = read_tables(Stream([self._path], "table"), self._policy)
        known = tables.merged(tables.rule)
        return [known.get(pair, Rated(None)) for pair in pairs]


class LanguageModels:
    """The `llm` backend: an interview with models about every pair, `screen` first where there is one."""

    def __init__(self, interview: Interview, models: Sequence[str], screen: str | None) -> None:
        self._interview = interview
        self._models = models
        self._screen = screen

    def rate(self, pairs: Sequence[Pair]) -> list[Rated]:
        ratings = self._interview.ratings(questions(pairs), self._models, self._screen)
        return [Rated(mean_of(scores), scores) for scores in ratings]


def questions(pairs: Sequence[Pair]) -> list[Question]:
    """The pairs with their glosses. Raises `DataError` for a sense that WordNet does not have."""
    from hoicli.similarity.questions import Question
    from hoicli.wordnet.selection import open_wordnet

    wordnet = open_wordnet()
    gloss = {sense: wordnet.synset(wordnet.name(row)).definition() for sense, row in synsets_of(wordnet, pairs).items()}
    return [Question(pos, a, b, gloss[a], gloss[b]) for pos, a, b in pairs]
