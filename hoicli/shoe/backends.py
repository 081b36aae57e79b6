"""Similarities of senses without a network: a measure on WordNet's hierarchy (`wordnet:path`), or hoicli's own from its
graph and glosses (`lexical`).

A pair is (pos, a, b) with a before b in alphabetical order; a sense is 1 with itself and never asked about.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hoicli.errors import DataError
from hoicli.shoe.pairs import NAMES, Pair, Rated
from hoicli.wordnet.lexicon import Lexicon, open_wordnet
from hoicli.wordnet.measures import raw_similarities, rescaled


def synsets_of(wordnet: Lexicon, pairs: Sequence[Pair]) -> dict[str, int]:
    """The synset of each sense in the pairs. Raises `DataError` for a sense that WordNet lacks, or of another part of
    speech."""
    found: dict[str, int] = {}
    for pos, sense in sorted({(pos, sense) for pos, *senses in pairs for sense in senses}):
        try:
            found[sense] = wordnet.index(sense)
        except KeyError:
            raise DataError(f"{sense!r} is no sense of {wordnet.title}; name one like pet.v.01") from None
        if wordnet.graph.pos(found[sense]) != pos:
            raise DataError(f"{sense!r} is no sense of a {NAMES[pos]}; compare senses of one part of speech")
    return found


def rate(backend: str, pairs: Sequence[Pair]) -> list[Rated]:
    """The rating of each pair by a measure (of OFFLINE) of the WordNet in use, from the first sense to the second (wup
    is not quite symmetric). Equal ratings are one object, since a measure has few values."""
    wordnet = open_wordnet()
    synset = synsets_of(wordnet, pairs)
    rows = np.array([[synset[pair[side]] for pair in pairs] for side in (1, 2)], dtype=np.int64).T
    if backend == "lexical":
        from hoicli.wordnet.lexical import similarities  # brings SciPy along

        values = similarities(wordnet.graph, rows).tolist()
    else:
        measure = backend.removeprefix("wordnet:")
        values = rescaled(wordnet.graph, measure, rows, raw_similarities(wordnet.graph, measure, rows)).tolist()
    named = backend if wordnet.signature is None else f"{backend}@{wordnet.signature}"
    rated = {value: Rated(value, measure=named) for value in set(values)}
    return [rated[value] for value in values]


def rate_words(words: Sequence[tuple[str, str, str]]) -> list[float]:
    """The lexical similarity of two words of one part of speech, lower than that of their most similar senses if they
    have many; each (pos, first, second), both known."""
    from hoicli.wordnet.lexical import word_similarities

    wordnet = open_wordnet()
    found: dict[tuple[str, str, str], float] = {}
    for pos in dict.fromkeys(pos for pos, _, _ in words):
        own = [(first, second) for at, first, second in words if at == pos]
        senses = {word: wordnet.word_senses(word, pos) for pair in own for word in pair}
        values = word_similarities(wordnet.graph, own, senses).tolist()
        found |= {(pos, *pair): value for pair, value in zip(own, values, strict=True)}
    return [found[item] for item in words]
