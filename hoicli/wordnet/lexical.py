"""Similarity of senses and of words from WordNet alone: its graph, and the words of its glosses. No trained vectors.

Each sense becomes a sparse vector, and two senses are compared by the dot product of theirs. The vector has five parts;
each of the first three has length 1 (or 0), the last two at most 1:

- *place*: the sense and what is above it, an ancestor d steps up weighing DECAY ** d times its information content, 1 -
  log(synsets below and at it) / log(synsets of its part of speech) (Seco, Veale and Hayes 2004); of senses related as
  RELATED says, half their mean is added;
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
from itertools import chain, product

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

    pairs [P, 2]: rows of synsets, both of a pair of one part of speech.
    """
    pair_pos = _part_of_speech(graph)[pairs[:, 0]]
    result = np.empty(len(pairs))
    for pos_number in distinct(pair_pos).tolist():
        pos, of_pos = POS[pos_number], np.flatnonzero(pair_pos == pos_number)
        # Each synset's vector is made once; a pair then has the positions of two vectors, the smaller one first.
        synsets, position = np.unique(np.sort(pairs[of_pos], axis=1), return_inverse=True)
        position = position.reshape(-1, 2)
        dot_product = _products(_vectors(graph, synsets, pos), position)
        # ANTONYM < 1 pushes opposites apart; the root brings the values near those of people's ratings
        dot_product *= np.where(_are_antonyms(graph, synsets, position, pos), ANTONYM, 1.0)
        similarity = np.round(np.sqrt(np.clip(dot_product, 0.0, 1.0)), DECIMALS)
        result[of_pos] = np.where(position[:, 0] == position[:, 1], 1.0, similarity)
    return result + 0.0  # turns -0.0, which some versions of NumPy's clip keep, into 0.0


def word_similarities(graph: Graph, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Floats:
    """Return [P]: the similarity in [0, 1] of each pair of words, 1 for a word and itself, NaN if a word has no sense.

    It is that of their two most similar senses, divided by the fourth root of the number of sense pairs. The divisor
    makes up for chance (the best of many pairs is high) and for people, who rate words by their main senses. pairs: two
    words of one part of speech, each given by the rows of the synsets that it may mean.
    """
    sense_pairs = list(chain.from_iterable(product(first, second) for first, second in pairs))
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
    """Return [P]: the dot product of two rows of `vectors` for each pair of row numbers [P, 2]."""
    result = np.empty(len(pairs))
    # Sort the pairs by their first row, and multiply BLOCK such rows at a time with all that they are paired with.
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
    """Return [S, features]: the vectors of S senses, of five parts: place (what is above the sense), gloss (its words)
    and derivation (the place of words derived from it); then place and derivation again, averaged over all senses of
    its lemmas. synsets: their rows, ascending, all of one part of speech (pos)."""
    # PLACE, GLOSS, DERIVATION: the weights of these three parts; LEMMAS: that of the averages over the lemmas' senses
    meant, average = _lemma_senses(graph, synsets, pos)  # rows of these M senses; their weights, [S, M]
    ancestry = _ancestry(graph)
    place = _unit(_with_relatives(graph, meant, RELATED) @ ancestry)
    derived = _unit(_mean_of_relatives(graph, ("derivation",))[meant] @ ancestry)
    gloss = _unit(_with_relatives(graph, synsets, *GLOSS_NEIGHBOURS) @ _gloss_words(graph))
    own_rows = np.searchsorted(meant, synsets)  # a synset is a sense of its own lemmas, so it is among `meant`
    parts = (
        (PLACE * (1 - LEMMAS), place[own_rows]),
        (GLOSS * (1 - LEMMAS), gloss),
        (DERIVATION * (1 - LEMMAS), derived[own_rows]),
        (PLACE / (PLACE + DERIVATION) * LEMMAS, average @ place),
        (DERIVATION / (PLACE + DERIVATION) * LEMMAS, average @ derived),
    )
    # Each part is multiplied by the root of its weight, since a dot product multiplies two such factors.
    return sparse.hstack([math.sqrt(weight) * part for weight, part in parts], format="csr")


def _lemma_senses(graph: Graph, synsets: Ints, pos: str) -> tuple[Ints, sparse.csr_array]:
    """Return (the rows of all M senses that the lemmas of S synsets have, ascending; weights [S, M]). The weights of a
    synset sum to 1: its lemmas count equally, and the n-th sense of a lemma counts 1 / n as much as its first."""
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
    """Return [P]: whether a lemma of one sense of a pair is the antonym, in any sense, of a lemma of the other. pairs
    [P, 2]: positions in `synsets`."""
    size = len(graph.lemmas)
    words = [graph.words(synset) for synset in synsets.tolist()]
    counts = [len(numbers) for numbers in words]
    flat = np.fromiter(chain.from_iterable(words), np.int64, sum(counts))
    # [S, lemmas]: 1 where a synset has a lemma; then [lemmas, lemmas]: 1 where two are antonyms in this part of speech
    has_lemma = _matrix(np.ones(len(flat)), np.repeat(np.arange(len(words)), counts), flat, (len(words), size))
    antonym_pos, first, second = graph.array("antonyms").astype(np.int64)
    of_pos = antonym_pos == POS.index(pos)
    antonyms = _matrix(np.ones(np.count_nonzero(of_pos)), first[of_pos], second[of_pos], (size, size))
    # [S, S]: above 0 where some lemma of one synset is the antonym of some lemma of another one; two positions in
    # `synsets` are looked up as one number
    row, column = (has_lemma @ antonyms @ has_lemma.T).nonzero()
    are_opposed: npt.NDArray[np.bool_] = np.isin(pairs[:, 0] * len(synsets) + pairs[:, 1], row * len(synsets) + column)
    return are_opposed


@cache
def _ancestry(graph: Graph) -> sparse.csr_array:
    """Return [synsets, synsets]: each synset's ancestors and itself (columns), weighted by their information content
    and DECAY for each step between."""
    size = graph.size
    above = ancestors(graph, np.arange(size), root=False)
    weights = np.array([DECAY**steps for steps in range(int(above.distance.max()) + 1)])[above.distance]
    pos_size = np.array([len(graph.ranges[pos]) for pos in POS])[_part_of_speech(graph)]
    count_below = np.bincount(above.node, minlength=size)  # how many synsets have each one as an ancestor or self
    # Seco, Veale and Hayes 2004: the fewer synsets are below one, the more it says; np.maximum: no division by log(1)
    content = 1.0 - np.log(count_below) / np.log(np.maximum(pos_size, 2))
    return sparse.csr_array((weights * content[above.node], above.node, above.start), shape=(size, size))


@cache
def _gloss_words(graph: Graph) -> sparse.csr_array:
    """Return [synsets, words]: the words of each gloss, weighted by their inverse document frequency, as rows of unit
    length; words of examples have NEIGHBOUR of the weight."""
    counts, numbers = graph.array("gloss_count"), graph.array("gloss_words").astype(np.int64)
    width = int(numbers.max(initial=-1)) + 1
    # one row for each synset's definition, then one for each synset's examples
    both = sparse.csr_array((np.ones(len(numbers)), numbers, starts_of(counts)), shape=(2 * graph.size, width))
    definitions, examples = both[: graph.size], both[graph.size :]
    document_count = np.bincount(numbers, minlength=width)
    words = definitions + NEIGHBOUR * examples
    words.data *= np.log(graph.size / document_count)[words.indices]
    return _unit(words)


@cache
def _mean_of_relatives(graph: Graph, kinds: tuple[str, ...]) -> sparse.csr_array:
    """Return [synsets, synsets]: a matrix whose product with vectors is, for each synset, the mean over the synsets to
    which these relations lead from it. Each of them counts once, however many of the relations lead there."""
    sources, targets = graph.edges(*kinds)
    links = _matrix(np.ones(len(sources)), sources, targets, (graph.size, graph.size))
    counts = np.diff(links.indptr)
    links.data = 1.0 / np.repeat(counts, counts)  # replaces the number of relations that lead there
    return links


def _with_relatives(graph: Graph, synsets: Ints, *groups: tuple[str, ...]) -> sparse.csr_array:
    """Return [S, synsets]: a matrix whose product with vectors adds, for each of S synsets, NEIGHBOUR times the mean of
    its relatives by each group of relations to its own vector."""
    count = len(synsets)
    result = _matrix(np.ones(count), np.arange(count), synsets, (count, graph.size))
    for kinds in groups:
        result = result + NEIGHBOUR * _mean_of_relatives(graph, kinds)[synsets]
    return result


def _matrix(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    """Return a sparse matrix with values at places (row, column); values at the same place are added up."""
    return sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()


def _unit(rows: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix with each row scaled to length 1; an empty row stays empty."""
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    length[length == 0] = 1.0  # the row of entity.n.01: everything is below it, so its information content is 0
    rows = rows.copy()
    rows.data /= np.repeat(length, np.diff(rows.indptr))
    return rows


@cache
def _part_of_speech(graph: Graph) -> npt.NDArray[np.int8]:
    """Return [synsets]: the position of each synset's part of speech in POS."""
    return np.repeat(np.arange(len(POS), dtype=np.int8), [len(graph.ranges[pos]) for pos in POS])
