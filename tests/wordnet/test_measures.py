"""The classic measures are nltk's, and their normalised forms keep the order."""

from __future__ import annotations

import math
import random
from importlib import import_module
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.records.kit import Floats, Ints
from hoicli.wordnet import measures
from hoicli.wordnet.graph import Graph
from hoicli.wordnet.lexicon import open_embedded
from hoicli.wordnet.measures import MEASURES, information_content, raw_similarities, rescale
from tests.support import wordnet_files
from tests.support.wordnet_files import nltks

WN = open_embedded().graph
BY_COUNTS = ("res", "lin", "jcn")


def similarities(graph: Graph, measure: str, pairs: Ints) -> Floats:
    """The measure in [0, 1]."""
    return rescale(graph, measure, pairs, raw_similarities(graph, measure, pairs))


def senses(*names: str) -> Ints:
    return np.array([[WN.row(name) for name in names]])


def hypernyms(synset: int) -> list[int]:
    above = nltks(synset).hypernyms() + nltks(synset).instance_hypernyms()
    return [WN.row_at_offset(other.pos(), other.offset()) for other in above]


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("ic")
        monkeypatch.setattr(import_module("nltk.data"), "path", [str(folder)])
        return wordnet_files.counts_for_nltk(WN, folder)


@pytest.mark.parametrize(
    "measure",
    [pytest.param(one, marks=pytest.mark.long if one in (*BY_COUNTS, "lch", "path") else ()) for one in MEASURES],
)
def test_nltks_numbers_for_any_senses(measure: str, request: pytest.FixtureRequest) -> None:
    """Random pairs, and such as are above one another."""
    counts = request.getfixturevalue("counts") if measure in BY_COUNTS else None
    choose = random.Random(measure)
    pairs = []
    for pos in ("n", "v"):
        among = WN.ranges[pos]
        pairs += [(choose.choice(among), choose.choice(among)) for _ in range(200)]
        for synset in choose.sample(among, 100):
            parent = (hypernyms(synset) or [synset])[0]
            grandparent = (hypernyms(parent) or [parent])[0]
            pairs += [(synset, parent), (parent, synset), (grandparent, synset), (synset, synset)]
    ours = raw_similarities(WN, measure, np.array(pairs))
    for (first, second), value in zip(pairs, ours.tolist(), strict=True):
        one, other = nltks(first), nltks(second)
        asked = getattr(one, f"{measure}_similarity")
        theirs = asked(other, counts) if measure in BY_COUNTS else asked(other)
        assert math.isclose(value, theirs, rel_tol=1e-12, abs_tol=1e-12), (measure, one, other)


def test_the_normalised_forms() -> None:
    pair = senses("dog.n.01", "cat.n.01")
    content = information_content(WN)
    assert similarities(WN, "path", pair)[0] == raw_similarities(WN, "path", pair)[0]
    assert similarities(WN, "wup", pair)[0] == raw_similarities(WN, "wup", pair)[0]
    assert similarities(WN, "lch", pair)[0] == pytest.approx(math.log(38 / 5) / math.log(38))
    most = math.log(WN.array("concordance")[WN.row("entity.n.01")])
    assert similarities(WN, "res", pair)[0] == pytest.approx(content[WN.row("carnivore.n.01")] / most)
    assert similarities(WN, "lin", pair)[0] == raw_similarities(WN, "lin", pair)[0]
    distance = content[pair].sum() - 2 * content[WN.row("carnivore.n.01")]
    assert similarities(WN, "jcn", pair)[0] == pytest.approx(1 / (1 + distance))


PAIRS = st.lists(
    st.sampled_from(["n", "v"]).flatmap(
        lambda pos: st.tuples(*[st.integers(WN.ranges[pos].start, WN.ranges[pos].stop - 1)] * 2)
    ),
    min_size=1,
    max_size=40,
)


@given(PAIRS, st.sampled_from(sorted(MEASURES)))
def test_similarity_lies_between_0_and_1_of_itself(pairs: list[tuple[int, int]], measure: str) -> None:
    """A list gives what its pairs give alone; all measures but wup are symmetric; normalising keeps the order."""
    given_ = np.array(pairs)
    values, raw = similarities(WN, measure, given_), raw_similarities(WN, measure, given_)
    assert ((values >= 0) & (values <= 1)).all()
    assert (similarities(WN, measure, np.repeat(given_[:, :1], 2, axis=1)) == 1).all()
    alone = [similarities(WN, measure, given_[at : at + 1])[0] for at in range(len(pairs))]
    assert values.tolist() == alone
    if measure != "wup":
        assert values == pytest.approx(similarities(WN, measure, given_[:, ::-1]), abs=1e-12)
    for pos in ("n", "v"):
        which = [at for at, (a, b) in enumerate(pairs) if a in WN.ranges[pos] and a != b]
        order = sorted(which, key=lambda at: raw[at])
        assert all(values[a] <= values[b] + 1e-12 for a, b in pairwise(order))


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.array(list(product(WN.ranges["v"][::1200], repeat=2)))
    whole = raw_similarities(WN, "wup", pairs)
    monkeypatch.setattr(measures, "CHUNK", 7)
    assert raw_similarities(WN, "wup", pairs).tolist() == whole.tolist()


def test_the_root_with_itself_where_nltk_divides_by_zero() -> None:
    assert raw_similarities(WN, "lin", senses("entity.n.01", "entity.n.01"))[0] == 1
    assert raw_similarities(WN, "jcn", senses("entity.n.01", "dog.n.01"))[0] == 0
    assert similarities(WN, "jcn", senses("entity.n.01", "dog.n.01"))[0] == 0
    assert raw_similarities(WN, "jcn", senses("dog.n.01", "dog.n.01"))[0] == measures.INFINITE


@pytest.mark.parametrize("measure", MEASURES)
def test_zero_has_no_sign(measure: str) -> None:
    """NumPy's versions differ in whether clip keeps -0.0, and so would the digests of one table."""
    pairs = np.concatenate(
        [senses("entity.n.01", "dog.n.01"), senses("dog.n.01", "act.n.02"), senses("be.v.01", "run.v.01")]
    )
    assert not np.signbit(similarities(WN, measure, pairs)).any()
    assert not np.signbit(measures.rescale(WN, measure, pairs, np.array([-0.0] * len(pairs)))).any()
