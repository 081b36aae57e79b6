"""WordNet's classic similarity measures, vectorised over pairs of senses. By the shortest way over a common ancestor:
path, wup (Wu and Palmer 1994), lch (Leacock and Chodorow 1998). By the information content of the most informative
common ancestor: res (Resnik 1995), lin (Lin 1998), jcn (Jiang and Conrath 1997).

`raw_similarities` gives the numbers of nltk's `Synset.path_similarity` and its five sisters (as of nltk 3.9 and 3.10,
with their conventions, which are said below and held by tests/wordnet/test_measures.py); `rescale` brings them to
[0, 1] by a monotone rule, with 1 for a sense and itself, as SHOE needs it.

Conventions that are nltk's own: verbs have many roots, so path, wup and lch join them under one simulated root, which
lies one step above the farthest ancestor of a synset; the subsumer of wup is the common ancestor of the greatest
*shortest* depth (the first synset itself, else the first by name, where several tie), but its *longest* depth enters
the formula, so wup(a, b) may differ from wup(b, a), and wup(a, a) from 1. Ties among path lengths cannot matter: only
the length is used.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hoicli.errors import UsageError
from hoicli.records.kit import Bools, Floats, Ints, distinct, expand_runs, find, runs_of
from hoicli.wordnet.graph import HYPERNYMS, Graph

MEASURES = ("path", "wup", "lch", "res", "lin", "jcn")

INFINITE = 1e300
"""The value of nltk's jcn where the distance is 0."""

CHUNK = 1 << 15
"""How many pairs are compared at a time; each has about 15 ancestors in memory."""


def raw_similarities(graph: Graph, measure: str, pairs: Ints) -> Floats:
    """Return [P]: the measure of each pair of synsets as nltk computes it, called on the first synset.

    pairs: [P, 2] synset numbers, both of a pair nouns or both verbs. Where nltk divides by zero (lin of the noun root
    with itself) the value is 1; where it has none (path, lch and wup of nouns without a common ancestor, in a WordNet
    whose nouns have several roots), 0.

    Raises `UsageError` where a measure needs counts that this WordNet does not have.
    """
    verbs = pairs[:, 0] >= graph.ranges["v"].start
    result = np.zeros(len(pairs))
    compute = {"path": _path, "lch": _lch, "wup": _wup}.get(measure)
    for pos, where in (("n", np.flatnonzero(~verbs)), ("v", np.flatnonzero(verbs))):
        for start in range(0, len(where), CHUNK):
            chunk = where[start : start + CHUNK]
            if compute is not None:
                chunk = chunk[_meet(graph, pos, pairs[chunk])]
                result[chunk] = compute(graph, pos, pairs[chunk])
            else:
                result[chunk] = _informative(graph, measure, pairs[chunk])
    return result


def rescale(graph: Graph, measure: str, pairs: Ints, raw: Floats) -> Floats:
    """Return [P]: the `raw_similarities` of pairs brought to [0, 1], 1 where both synsets are the same.

    path, wup and lin are taken as they are. lch is divided by its greatest value in that part of speech, a sense with
    itself (and is 0 where the way is longer than twice the depth). res is divided by the greatest information content
    there is, that of a synset counted once. jcn, the inverse of a distance d, becomes 1 / (1 + d).
    """
    if measure in ("lch", "res"):
        highest = [2.0 * _depth(graph, pos) if measure == "lch" else max(_total(graph, pos), 2.0) for pos in ("n", "v")]
        noun, verb = map(math.log, highest)
        raw = raw / np.where(pairs[:, 0] >= graph.ranges["v"].start, verb, noun)
    elif measure == "jcn":
        raw = raw / (1.0 + raw)
    result: Floats = np.where(pairs[:, 0] == pairs[:, 1], 1.0, np.clip(raw, 0.0, 1.0))
    return result + 0.0  # no -0.0, which NumPy's clip keeps or not by its version


@cache
def information_content(graph: Graph) -> Floats:
    """Return [nouns and verbs] -log(count / total): how much a sense tells, from the counts of "concordance".

    The total is the sum over the roots of the part of speech, as nltk's reader of such counts takes it.
    """
    counts = _counts(graph)
    content = np.empty(len(counts))
    for pos in ("n", "v"):
        total = _total(graph, pos)
        span = slice(graph.ranges[pos].start, graph.ranges[pos].stop)
        values, value_number = np.unique(counts[span], return_inverse=True)
        # math.log, not NumPy's: equal counts must cancel in jcn exactly as they do in nltk.
        content[span] = np.array([-math.log(value / total) for value in values.tolist()])[value_number]
    return content


def _counts(graph: Graph) -> npt.NDArray[Any]:
    """Return [nouns and verbs] the array "concordance". Raises `UsageError` in a WordNet without counts."""
    if not graph.counted:
        raise UsageError("this WordNet has no counts of senses (cntlist.rev), which res, lin and jcn need")
    return graph.array("concordance")


def _total(graph: Graph, pos: str) -> float:
    """Return the sum of the counts of all roots of a part of speech."""
    span = slice(graph.ranges[pos].start, graph.ranges[pos].stop)
    return float(_counts(graph)[span][graph.array("min_depth")[span] == 0].sum())


def _depth(graph: Graph, pos: str) -> int:
    """Return the greatest depth of a part of speech's taxonomy, including the simulated root of the verbs."""
    rows = graph.ranges[pos]
    least, simulated_root = (1, 0) if pos == "n" else (0, 1)
    return int(graph.array("max_depth")[rows.start : rows.stop].max(initial=least)) + simulated_root


class Ancestors(NamedTuple):
    """Every ancestor of some synsets, themselves included, with the number of edges of the shortest way up to it."""

    start: Ints  # [S + 1] where each synset's ancestors begin in the two arrays below
    node: Ints  # [A] ascending within a synset
    distance: Ints  # [A]


@cache
def _hypernyms(graph: Graph) -> tuple[Ints, Ints]:
    """Return (start [size + 1], target): the hypernyms of synset i are target[start[i]:start[i + 1]]."""
    sources, targets = graph.edges(*HYPERNYMS)
    return np.searchsorted(sources, np.arange(graph.size + 1)), targets


def ancestors(graph: Graph, synsets: Ints, *, root: bool) -> Ancestors:
    """Return the ancestors of synsets (ascending), searched breadth first for all of them at once. root: whether to add
    the simulated root, which has the number `graph.size`."""
    base = graph.size + 1
    first, target = _hypernyms(graph)
    real = np.flatnonzero(synsets < graph.size)
    level = real * base + synsets[real]  # (place in `synsets`, ancestor) as one number
    keys, distances, edges = [level], [np.zeros(len(level), np.int64)], 0
    ancestors_seen = level
    while len(level):
        descendant, node = np.divmod(level, base)
        source, edge = expand_runs(first[node], first[node + 1] - first[node])
        level = distinct(descendant[source] * base + target[edge])
        level = level[~np.isin(level, ancestors_seen, assume_unique=True)]
        edges += 1
        keys.append(level)
        distances.append(np.full(len(level), edges))
        ancestors_seen = np.concatenate([ancestors_seen, level])
    if root:
        farthest = np.full(len(synsets), -1)
        for step, level in enumerate(keys):
            farthest[level // base] = step
        keys.append(np.arange(len(synsets)) * base + graph.size)
        distances.append(farthest + 1)
    key, distance = np.concatenate(keys), np.concatenate(distances)
    order = np.argsort(key)
    key = key[order]
    start = np.searchsorted(key, np.arange(len(synsets) + 1) * base)
    return Ancestors(start, key % base, distance[order])


def _common(graph: Graph, first: Ints, second: Ints, *, root: bool) -> tuple[Ints, Ints, Ints]:
    """Return (pair, node, edges of the way over it) for every common ancestor of first[i] and second[i], by pair."""
    synsets = distinct(np.concatenate([first, second]))
    start, node, distance = ancestors(graph, synsets, root=root)
    count, base = np.diff(start), graph.size + 1
    rows, others = np.searchsorted(synsets, first), np.searchsorted(synsets, second)
    pair, entry = expand_runs(start[rows], count[rows])
    common, hit = find(runs_of(start) * base + node, others[pair] * base + node[entry])
    return pair[hit], node[entry[hit]], distance[entry[hit]] + distance[common[hit]]


def _meet(graph: Graph, pos: str, pairs: Ints) -> Bools:
    """Return [P]: whether two synsets have a common ancestor. Verbs have the simulated root, nouns mostly one."""
    rows = graph.ranges[pos]
    if pos == "v" or np.count_nonzero(graph.array("min_depth")[rows.start : rows.stop] == 0) == 1:
        return np.ones(len(pairs), bool)
    pair, _, _ = _common(graph, pairs[:, 0], pairs[:, 1], root=False)
    return np.isin(np.arange(len(pairs)), pair)


def _distances(graph: Graph, pos: str, first: Ints, second: Ints) -> Ints:
    """Return [P]: the edges of the shortest way between two synsets over a common ancestor, which they must have."""
    # many pairs have the same subsumer, so each two synsets are compared once
    pairs, pair_number = np.unique(first * (graph.size + 1) + second, return_inverse=True)
    first, second = np.divmod(pairs, graph.size + 1)
    pair, _, length = _common(graph, first, second, root=pos == "v")
    shortest: Ints = np.minimum.reduceat(length, np.searchsorted(pair, np.arange(len(first))))[pair_number]
    return shortest


def _path(graph: Graph, pos: str, pairs: Ints) -> Floats:
    return 1.0 / (_distances(graph, pos, pairs[:, 0], pairs[:, 1]) + 1)


def _lch(graph: Graph, pos: str, pairs: Ints) -> Floats:
    nodes = _distances(graph, pos, pairs[:, 0], pairs[:, 1]) + 1
    logs = np.array(
        [-math.log(count / (2.0 * _depth(graph, pos))) for count in range(1, int(nodes.max(initial=0)) + 1)]
    )
    result: Floats = logs[nodes - 1]
    return result


def _wup(graph: Graph, pos: str, pairs: Ints) -> Floats:
    first, second = pairs[:, 0], pairs[:, 1]
    subsumer = _subsumers(graph, pos, first, second)
    longest = np.append(graph.array("max_depth"), np.zeros(graph.size + 1 - len(graph.array("max_depth")), np.uint8))
    depth = longest[subsumer].astype(np.int64) + 1
    ways = _distances(graph, pos, first, subsumer) + _distances(graph, pos, second, subsumer)
    result: Floats = 2.0 * depth / (ways + 2 * depth)
    return result


def _subsumers(graph: Graph, pos: str, first: Ints, second: Ints) -> Ints:
    """Return [P]: the common ancestor whose shortest way to a root is longest; of several ones the first synset itself,
    else the simulated root (nltk names it "*ROOT*"), else the first by name."""
    pair, node, _ = _common(graph, first, second, root=pos == "v")
    depth = np.zeros(len(node), np.int64)
    real = node < graph.size
    depth[real] = graph.array("min_depth")[node[real]]
    begin = np.searchsorted(pair, np.arange(len(first)))
    tied = depth == np.maximum.reduceat(depth, begin)[pair]
    pair, node = pair[tied], node[tied]
    rank = np.zeros(len(node), np.int64)
    ambiguous = np.flatnonzero(np.bincount(pair, minlength=len(first))[pair] > 1)
    if len(ambiguous):
        nodes, name_number = np.unique(node[ambiguous], return_inverse=True)
        names = [graph.names[synset] if synset < graph.size else "" for synset in nodes.tolist()]
        order = np.empty(len(nodes), np.int64)
        order[sorted(range(len(nodes)), key=names.__getitem__)] = np.arange(1, len(nodes) + 1)
        rank[ambiguous] = np.where(node[ambiguous] == first[pair[ambiguous]], 0, order[name_number])
    best = np.lexsort((rank, pair))
    result: Ints = node[best[np.searchsorted(pair, np.arange(len(first)))]]
    return result


def _informative(graph: Graph, measure: str, pairs: Ints) -> Floats:
    """Return res, lin or jcn of pairs, without a simulated root: without a common ancestor nothing is shared."""
    content = information_content(graph)
    first, second = pairs[:, 0], pairs[:, 1]
    pair, node, _ = _common(graph, first, second, root=False)
    shared = np.zeros(len(pairs))
    present, begin = np.unique(pair, return_index=True)
    if len(present):
        shared[present] = np.maximum.reduceat(content[node], begin)
    if measure == "res":
        return shared
    first_content, second_content = content[first], content[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        if measure == "lin":
            both = first_content + second_content
            return np.where(both == 0, 1.0, 2.0 * shared / both)
        distance = first_content + second_content - 2 * shared
        inverse = np.where(distance == 0, INFINITE, 1 / distance)
    inverse = np.where((first_content == 0) | (second_content == 0), 0.0, inverse)
    return np.where(first == second, INFINITE, inverse)
