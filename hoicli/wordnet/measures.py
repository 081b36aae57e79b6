"""WordNet's classic similarity measures, vectorised over pairs of senses. By the shortest way over a common ancestor:
path, wup (Wu and Palmer 1994), lch (Leacock and Chodorow 1998). By the information content of the most informative
common ancestor: res (Resnik 1995), lin (Lin 1998), jcn (Jiang and Conrath 1997).

`raw_similarities` gives the numbers of nltk's `Synset.path_similarity` and its five sisters (as of nltk 3.9 and 3.10,
with their conventions, which are said below and held by tests/wordnet/test_measures.py); `rescale` brings them to [0,
1] by a monotone rule, with 1 for a sense and itself, as SHOE needs it.

Conventions that are nltk's own: verbs have many roots, so path, wup and lch join them under one simulated root, which
lies one step above the farthest ancestor of a synset; the subsumer of wup is the common ancestor of the greatest
*shortest* depth (the first synset itself, else the first by name, where several tie), but its *longest* depth enters
the formula, so wup(a, b) may differ from wup(b, a), and wup(a, a) from 1. Ties among paths cannot matter.
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
    """Return [P]: the similarity of each pair of synsets as nltk computes it, called on the first synset.

    measure: one of MEASURES. pairs [P, 2]: rows of synsets, both of a pair nouns or both verbs. Where nltk divides by
    zero (lin of the noun root with itself) the value is 1; where it has none (path, lch and wup of nouns without a
    common ancestor, in a WordNet whose nouns have several roots), 0.

    Raises `UsageError` where a measure needs counts that this WordNet does not have.
    """
    verbs = pairs[:, 0] >= graph.ranges["v"].start
    result = np.zeros(len(pairs))
    compute = {"path": _path, "lch": _lch, "wup": _wup}.get(measure)
    for pos, where in (("n", np.flatnonzero(~verbs)), ("v", np.flatnonzero(verbs))):
        for start in range(0, len(where), CHUNK):
            chunk = where[start : start + CHUNK]
            if compute is not None:  # a measure of paths: 0 without a way between the two
                chunk = chunk[_have_common_ancestor(graph, pos, pairs[chunk])]
                result[chunk] = compute(graph, pos, pairs[chunk])
            else:
                result[chunk] = _by_information_content(graph, measure, pairs[chunk])
    return result


def rescale(graph: Graph, measure: str, pairs: Ints, raw: Floats) -> Floats:
    """Return [P]: the `raw_similarities` of pairs brought to [0, 1], 1 where both synsets are the same.

    path, wup and lin are taken as they are. lch and res are divided by the highest value that they can have in that
    part of speech: lch of a sense with itself (it is 0 where the way is longer than twice the depth), and the
    information content of a synset counted once. jcn, the inverse of a distance d, becomes 1 / (1 + d).
    """
    if measure in ("lch", "res"):
        highest = {
            pos: math.log(2.0 * _depth(graph, pos) if measure == "lch" else max(_total(graph, pos), 2.0))
            for pos in ("n", "v")
        }
        raw = raw / np.where(pairs[:, 0] >= graph.ranges["v"].start, highest["v"], highest["n"])
    elif measure == "jcn":
        raw = raw / (1.0 + raw)  # raw is 1 / d
    result: Floats = np.where(pairs[:, 0] == pairs[:, 1], 1.0, np.clip(raw, 0.0, 1.0))
    return result + 0.0  # turns -0.0, which some versions of NumPy's clip keep, into 0.0


@cache
def information_content(graph: Graph) -> Floats:
    """Return [nouns and verbs]: the information content of each synset, -log(count / total).

    The count says how often the synset or one below it was tagged in texts. The total is the sum over the roots of the
    part of speech, as in nltk's reader of such counts. Raises `UsageError` in a WordNet without counts.
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
    """Return [nouns and verbs]: how often each synset or one below it was tagged in texts (the array "concordance").
    Raises `UsageError` in a WordNet without counts."""
    if not graph.counted:
        raise UsageError("this WordNet has no counts of senses (cntlist.rev), which res, lin and jcn need")
    return graph.array("concordance")


def _total(graph: Graph, pos: str) -> float:
    """Return the sum of the counts of all roots (synsets of depth 0) of a part of speech."""
    span = slice(graph.ranges[pos].start, graph.ranges[pos].stop)
    return float(_counts(graph)[span][graph.array("min_depth")[span] == 0].sum())


def _depth(graph: Graph, pos: str) -> int:
    """Return the greatest depth of a part of speech's taxonomy, including the simulated root of the verbs."""
    rows = graph.ranges[pos]
    lowest, simulated_root = (1, 0) if pos == "n" else (0, 1)
    return int(graph.array("max_depth")[rows.start : rows.stop].max(initial=lowest)) + simulated_root


class Ancestors(NamedTuple):
    """All ancestors of S synsets, themselves included, each with the number of steps of the shortest way up to it."""

    start: Ints  # [S + 1] where each synset's ancestors begin in the two arrays below
    node: Ints  # [A] ascending within a synset
    distance: Ints  # [A]


@cache
def _hypernyms(graph: Graph) -> tuple[Ints, Ints]:
    """Return two arrays (start, target): the hypernyms of synset i are target[start[i] : start[i + 1]]."""
    sources, targets = graph.edges(*HYPERNYMS)
    return np.searchsorted(sources, np.arange(graph.size + 1)), targets


def ancestors(graph: Graph, synsets: Ints, *, root: bool) -> Ancestors:
    """Return the ancestors of synsets (rows, ascending), searched breadth first for all of them at once. root: whether
    to add the simulated root, which has the number `graph.size`; it may then be among the synsets, too."""
    base = graph.size + 1
    first, target = _hypernyms(graph)  # those of synset i: target[first[i] : first[i + 1]]
    real = np.flatnonzero(synsets < graph.size)  # without the simulated root
    # A key is (place in `synsets`, ancestor) as one number, place * base + ancestor. A level has the keys of all
    # ancestors that are the same number of steps up; the first has the synsets themselves.
    level = real * base + synsets[real]
    keys, distances, edges = [level], [np.zeros(len(level), np.int64)], 0
    ancestors_seen = level
    while len(level):
        descendant, node = np.divmod(level, base)
        # one row for each hypernym of each node: which entry of the level it belongs to, and where it is in `target`
        source, edge = expand_runs(first[node], first[node + 1] - first[node])
        level = distinct(descendant[source] * base + target[edge])
        level = level[~np.isin(level, ancestors_seen, assume_unique=True)]
        edges += 1
        keys.append(level)
        distances.append(np.full(len(level), edges))
        ancestors_seen = np.concatenate([ancestors_seen, level])
    if root:  # one step above the farthest ancestor
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
    """Return three columns (pair, ancestor, length) with a row for every common ancestor of first[i] and second[i],
    sorted by pair i. length: the steps of the way from one synset to the other over this ancestor. root: whether the
    simulated root is one."""
    synsets = distinct(np.concatenate([first, second]))
    start, node, distance = ancestors(graph, synsets, root=root)
    count, base = np.diff(start), graph.size + 1
    first_place, second_place = np.searchsorted(synsets, first), np.searchsorted(synsets, second)
    # Look up each ancestor of the first synset among those of the second one, by (place in `synsets`, ancestor) as one
    # number. entry, entry_of_second: the rows of an ancestor in `node`, for the first synset and for the second one.
    pair, entry = expand_runs(start[first_place], count[first_place])
    entry_of_second, is_common = find(runs_of(start) * base + node, second_place[pair] * base + node[entry])
    pair, entry, entry_of_second = pair[is_common], entry[is_common], entry_of_second[is_common]
    return pair, node[entry], distance[entry] + distance[entry_of_second]


def _have_common_ancestor(graph: Graph, pos: str, pairs: Ints) -> Bools:
    """Return [P]: whether the two synsets of each pair have a common ancestor. All have one if there is a single root:
    the simulated one of verbs, and that of the nouns in most WordNets."""
    rows = graph.ranges[pos]
    if pos == "v" or np.count_nonzero(graph.array("min_depth")[rows.start : rows.stop] == 0) == 1:
        return np.ones(len(pairs), bool)
    pair, _, _ = _common(graph, pairs[:, 0], pairs[:, 1], root=False)
    return np.isin(np.arange(len(pairs)), pair)


def _distances(graph: Graph, pos: str, first: Ints, second: Ints) -> Ints:
    """Return [P]: the steps of the shortest way between first[i] and second[i], which must have a common ancestor."""
    # many pairs have the same subsumer, so each two synsets, as one number, are compared once
    pairs, pair_number = np.unique(first * (graph.size + 1) + second, return_inverse=True)
    first, second = np.divmod(pairs, graph.size + 1)
    pair, _, length = _common(graph, first, second, root=pos == "v")
    # The rows of a pair stand together; `reduceat` takes the minimum of each such run.
    shortest: Ints = np.minimum.reduceat(length, np.searchsorted(pair, np.arange(len(first))))[pair_number]
    return shortest


def _path(graph: Graph, pos: str, pairs: Ints) -> Floats:
    """Return [P]: the path similarity, 1 / (steps between the two + 1)."""
    return 1.0 / (_distances(graph, pos, pairs[:, 0], pairs[:, 1]) + 1)


def _lch(graph: Graph, pos: str, pairs: Ints) -> Floats:
    """Return [P]: the similarity of Leacock and Chodorow, -log(synsets on the way / twice the depth)."""
    nodes = _distances(graph, pos, pairs[:, 0], pairs[:, 1]) + 1
    # each different logarithm once, by math.log as in nltk, whose last digit NumPy's may not have
    logs = np.array(
        [-math.log(count / (2.0 * _depth(graph, pos))) for count in range(1, int(nodes.max(initial=0)) + 1)]
    )
    result: Floats = logs[nodes - 1]
    return result


def _wup(graph: Graph, pos: str, pairs: Ints) -> Floats:
    """Return [P]: the similarity of Wu and Palmer, twice the depth of the subsumer over the sum of both synsets' depths
    through it. As in nltk, the subsumer is chosen by its shortest way to a root, but its depth is its longest."""
    first, second = pairs[:, 0], pairs[:, 1]
    subsumer = _subsumers(graph, pos, first, second)
    longest = np.zeros(graph.size + 1, np.int64)  # 0 for the simulated root, the last row
    longest[: len(graph.array("max_depth"))] = graph.array("max_depth")
    depth = longest[subsumer] + 1  # in nodes, not in steps
    ways = _distances(graph, pos, first, subsumer) + _distances(graph, pos, second, subsumer)
    result: Floats = 2.0 * depth / (ways + 2 * depth)
    return result


def _subsumers(graph: Graph, pos: str, first: Ints, second: Ints) -> Ints:
    """Return [P]: the subsumer of each pair, as nltk chooses it: the common ancestor whose shortest way to a root is
    longest. Of several such ancestors it is the first synset itself, else the simulated root (nltk names it "*ROOT*"),
    else the first by name."""
    # one entry for each common ancestor (node) of each pair, pair by pair
    pair, node, _ = _common(graph, first, second, root=pos == "v")
    depth = np.zeros(len(node), np.int64)
    real = node < graph.size
    depth[real] = graph.array("min_depth")[node[real]]
    begin = np.searchsorted(pair, np.arange(len(first)))
    tied = depth == np.maximum.reduceat(depth, begin)[pair]  # is it one of the deepest of its pair?
    pair, node = pair[tied], node[tied]
    rank = np.zeros(len(node), np.int64)  # of the ancestors of a pair that tie, the one of the lowest rank is chosen
    ambiguous = np.flatnonzero(np.bincount(pair, minlength=len(first))[pair] > 1)
    if len(ambiguous):  # rank 0 for the pair's first synset, then by name, where the simulated root's "" is first
        nodes, name_number = np.unique(node[ambiguous], return_inverse=True)
        names = [graph.names[synset] if synset < graph.size else "" for synset in nodes.tolist()]
        order = np.empty(len(nodes), np.int64)
        order[sorted(range(len(nodes)), key=names.__getitem__)] = np.arange(1, len(nodes) + 1)
        rank[ambiguous] = np.where(node[ambiguous] == first[pair[ambiguous]], 0, order[name_number])
    order = np.lexsort((rank, pair))  # by pair, then by rank
    subsumers: Ints = node[order[np.searchsorted(pair, np.arange(len(first)))]]
    return subsumers


def _by_information_content(graph: Graph, measure: str, pairs: Ints) -> Floats:
    """Return [P]: res, lin or jcn, the measures of information content: that of the most informative common ancestor
    (res), twice that over the sum of both synsets' (lin), one over that sum less twice it (jcn). There is no simulated
    root here: two synsets without a common ancestor share no information."""
    content = information_content(graph)
    first, second = pairs[:, 0], pairs[:, 1]
    pair, node, _ = _common(graph, first, second, root=False)
    shared = np.zeros(len(pairs))
    present, begin = np.unique(pair, return_index=True)  # the pairs with common ancestors; where those of each begin
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
    # as nltk has it: 0 for a root, INFINITE for a synset and itself
    inverse = np.where((first_content == 0) | (second_content == 0), 0.0, inverse)
    return np.where(first == second, INFINITE, inverse)
