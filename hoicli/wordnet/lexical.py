"""Similarity of senses and of words from WordNet alone: its graph, and the words of its glosses. No trained vectors.

Each sense becomes a sparse vector, and two senses are compared by the dot product of theirs. The vector has five parts;
each of the first three has length 1 (or 0), the last two at most 1:

- *place*: the sense and what is above it, an ancestor d steps up weighing DECAY ** d times its information content,
  1 - log(synsets below and at it) / log(synsets of its part of speech) (Seco, Veale and Hayes 2004); of senses related
  as RELATED says, half their mean is added;
- *gloss*: the words of the lemmas, the definition and, at half weight, the examples, each by its inverse document
  frequency; to this unit vector is added half the mean of those of its hypernyms, of its hyponyms, and of its relatives
  (the extended gloss of Banerjee and Pedersen 2003, as a vector as in Patwardhan and Pedersen 2006);
- *derivation*: the mean place of the senses that are derived from it or it from ("wash" the verb, "washing" the noun);
- *place* and *derivation* again, averaged over the senses of each lemma, the n-th weighing 1 / n, and over the lemmas:
  what else its words mean. A word of many unlike senses has a short average, and so is less like anything.

The product is multiplied by ANTONYM where a lemma of one sense has, in any sense, an antonym among the lemmas of the
other. The square root of that is the similarity; the root changes no ranking, and brings the values near those of
people's ratings (SimLex-999's divided by 10). A sense is 1 with itself. Everything is counted in the WordNet; the
constants are round numbers chosen on SimLex-999 and MEN, which `python -m tests.support.word_similarity` repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import sparse

from hoicli.records.kit import Floats, Ints, distinct, starts_of
from hoicli.wordnet.graph import HYPERNYMS, POS, Graph
from hoicli.wordnet.measures import ancestors

DECAY = 0.8
RELATED = ("verb_group", "also_see", "entailment", "cause", "similar", "pertainym", "attribute")
GLOSS_NEIGHBOURS = (HYPERNYMS, ("hyponym", "instance_hyponym"), (*RELATED, "derivation"))
"""Groups of relations: the glosses of these relatives are read with a sense's own."""

NEIGHBOUR = 0.5
"""Weight of relatives, where the sense itself has 1, and of an example's words, where the definition's have 1."""

PLACE, GLOSS, DERIVATION = 0.4, 0.3, 0.3
"""Weights of the three parts of a vector that describe the sense itself."""

LEMMAS = 0.5
"""Weight of the averages over the lemmas' senses in the whole vector; the sense's own parts have the rest."""

ANTONYM = 0.25
"""The factor of the product where words are opposites."""

DECIMALS = 6
"""Similarities are rounded, so that no machine's last digit shows."""

BLOCK = 256
"""Senses whose products with all others asked for are taken at a time."""


def similarities(graph: Graph, pairs: Ints) -> Floats:
    """Return [P]: the similarity in [0, 1] of each pair of synsets, the same in both orders, 1 where both are the same.

    pairs: [P, 2] synset numbers, both of a pair of one part of speech.
    """
    part = _part_of_speech(graph)[pairs[:, 0]]
    result = np.empty(len(pairs))
    for number in distinct(part).tolist():
        where = np.flatnonzero(part == number)
        synsets, position = np.unique(np.sort(pairs[where], axis=1), return_inverse=True)
        position = position.reshape(-1, 2)
        product = _products(_vectors(graph, synsets, POS[number]), position)
        product *= np.where(_are_antonyms(graph, synsets, position, POS[number]), ANTONYM, 1.0)
        value = np.round(np.sqrt(np.clip(product, 0.0, 1.0)), DECIMALS)
        result[where] = np.where(position[:, 0] == position[:, 1], 1.0, value)
    return result


def word_similarities(graph: Graph, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Floats:
    """Return [P]: the similarity in [0, 1] of two words of a part of speech, each given by the synsets it may mean.

    It is that of their most similar pair of senses, divided by the fourth root of the number of sense pairs. 1 for a
    word and itself, nan where a word has no sense. The divisor makes up for chance (the best of many pairs is high) and
    for people, who rate words by their main senses.
    """
    sense_pairs = [(a, b) for first, second in pairs for a in first for b in second]
    values = similarities(graph, np.array(sense_pairs, np.int64).reshape(-1, 2))
    result = np.full(len(pairs), np.nan)
    start = 0
    for pair_number, (first, second) in enumerate(pairs):
        count = len(first) * len(second)
        if count:
            best = float(values[start : start + count].max())
            result[pair_number] = 1.0 if first == second else round(best * count**-0.25, DECIMALS)
        start += count
    return result


def _products(vectors: sparse.csr_array, pairs: Ints) -> Floats:
    """Return [P]: the dot product of the two rows of `vectors` that each pair names."""
    result = np.empty(len(pairs))
    order = np.argsort(pairs[:, 0], kind="stable")
    firsts, begin = np.unique(pairs[order, 0], return_index=True)
    bounds = np.append(begin, len(pairs))
    for start in range(0, len(firsts), BLOCK):
        block = firsts[start : start + BLOCK]
        in_block = order[bounds[start] : bounds[start + len(block)]]
        others, column = np.unique(pairs[in_block, 1], return_inverse=True)
        products = (vectors[block] @ vectors[others].T).toarray()
        result[in_block] = products[np.searchsorted(block, pairs[in_block, 0]), column]
    return result


def _vectors(graph: Graph, synsets: Ints, pos: str) -> sparse.csr_array:
    """Return [S, features]: the vectors of some senses, ascending, of one part of speech."""
    meant, average = _lemma_senses(graph, synsets, pos)
    ancestry = _ancestry(graph)
    place = _unit(_among(graph, meant, RELATED) @ ancestry)
    derived = _unit(_mean(graph, ("derivation",))[meant] @ ancestry)
    gloss = _unit(_among(graph, synsets, *GLOSS_NEIGHBOURS) @ _gloss_words(graph))
    own_rows = np.searchsorted(meant, synsets)
    parts = (
        (PLACE * (1 - LEMMAS), place[own_rows]),
        (GLOSS * (1 - LEMMAS), gloss),
        (DERIVATION * (1 - LEMMAS), derived[own_rows]),
        (PLACE / (PLACE + DERIVATION) * LEMMAS, average @ place),
        (DERIVATION / (PLACE + DERIVATION) * LEMMAS, average @ derived),
    )
    return sparse.hstack([math.sqrt(share) * part for share, part in parts], format="csr")


def _lemma_senses(graph: Graph, synsets: Ints, pos: str) -> tuple[Ints, sparse.csr_array]:
    """Return (all M senses of all lemmas of the synsets, ascending; the weights [S, M] that average over each
    synset's)."""
    pos_range = graph.ranges[pos]
    rows: list[int] = []
    columns: list[int] = []
    weights: list[float] = []
    for row, synset in enumerate(synsets.tolist()):
        lemmas = graph.words(synset)
        for lemma in lemmas:
            senses = [sense for sense in graph.lemmas.senses(lemma) if sense in pos_range]
            total = len(lemmas) * sum(1.0 / rank for rank in range(1, len(senses) + 1))
            rows += [row] * len(senses)
            columns += senses
            weights += [1.0 / (rank * total) for rank in range(1, len(senses) + 1)]
    meant, column = np.unique(columns, return_inverse=True)
    return meant, _matrix(np.array(weights), np.array(rows), column, (len(synsets), len(meant)))


def _are_antonyms(graph: Graph, synsets: Ints, pairs: Ints, pos: str) -> npt.NDArray[np.bool_]:
    """Return [P]: whether a lemma of one sense of a pair is the antonym, in any sense, of a lemma of the other."""
    size = len(graph.lemmas)
    words = [graph.words(synset) for synset in synsets.tolist()]
    counts = [len(numbers) for numbers in words]
    flat = np.fromiter(chain.from_iterable(words), np.int64, sum(counts))
    has_lemma = _matrix(np.ones(len(flat)), np.repeat(np.arange(len(words)), counts), flat, (len(words), size))
    part, first, second = graph.array("antonyms").astype(np.int64)
    of_pos = part == POS.index(pos)
    antonyms = _matrix(np.ones(np.count_nonzero(of_pos)), first[of_pos], second[of_pos], (size, size))
    row, column = (has_lemma @ antonyms @ has_lemma.T).nonzero()
    opposed: npt.NDArray[np.bool_] = np.isin(pairs[:, 0] * len(synsets) + pairs[:, 1], row * len(synsets) + column)
    return opposed


@cache
def _ancestry(graph: Graph) -> sparse.csr_array:
    """Return [synsets, synsets]: each synset's ancestors and itself, weighted by information content and distance."""
    size = graph.size
    above = ancestors(graph, np.arange(size), root=False)
    weights = np.array([DECAY**steps for steps in range(int(above.distance.max()) + 1)])[above.distance]
    total = np.array([len(graph.ranges[pos]) for pos in POS])[_part_of_speech(graph)]
    content = 1.0 - np.log(np.bincount(above.node, minlength=size)) / np.log(np.maximum(total, 2))
    return sparse.csr_array((weights * content[above.node], above.node, above.start), shape=(size, size))


@cache
def _gloss_words(graph: Graph) -> sparse.csr_array:
    """Return [synsets, words]: the words of each gloss, weighted by rarity, as rows of unit length."""
    counts, numbers = graph.array("gloss_count"), graph.array("gloss_words").astype(np.int64)
    width = int(numbers.max(initial=-1)) + 1
    both = sparse.csr_array((np.ones(len(numbers)), numbers, starts_of(counts)), shape=(2 * graph.size, width))
    strong, weak = both[: graph.size], both[graph.size :]
    spread = np.bincount(strong.indices, minlength=strong.shape[1]) + np.bincount(weak.indices, minlength=weak.shape[1])
    rarity = np.log(graph.size / spread)
    words = strong + NEIGHBOUR * weak
    words.data *= rarity[words.indices]
    return _unit(words)


@cache
def _mean(graph: Graph, kinds: tuple[str, ...]) -> sparse.csr_array:
    """Return [synsets, synsets]: rows that average over the synsets that each points at by these relations."""
    sources, targets = graph.edges(*kinds)
    links = _matrix(np.ones(len(sources)), sources, targets, (graph.size, graph.size))
    counts = np.diff(links.indptr)
    links.data = 1.0 / np.repeat(counts, counts)  # each counts once, by however many of the kinds
    return links


def _among(graph: Graph, synsets: Ints, *groups: tuple[str, ...]) -> sparse.csr_array:
    """Return [S, synsets]: 1 for each synset itself, and NEIGHBOUR times the average of each group of its relatives."""
    count = len(synsets)
    result = _matrix(np.ones(count), np.arange(count), synsets, (count, graph.size))
    for kinds in groups:
        result = result + NEIGHBOUR * _mean(graph, kinds)[synsets]
    return result


def _matrix(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    """Return a sparse matrix of values at (row, column); values at the same place are added up."""
    return sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()


def _unit(rows: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix with each row scaled to length 1; an empty row stays empty."""
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    length[length == 0] = 1.0  # entity.n.01, which tells nothing
    rows = rows.copy()
    rows.data /= np.repeat(length, np.diff(rows.indptr))
    return rows


@cache
def _part_of_speech(graph: Graph) -> npt.NDArray[np.int8]:
    """Return [synsets]: the position of each synset's part of speech in POS."""
    return np.repeat(np.arange(len(POS), dtype=np.int8), [len(graph.ranges[pos]) for pos in POS])
