"""The embedded WordNet is Princeton's, to the byte, and reads as nltk reads it.

The index is written back into a database's files, whose digests are those of Princeton's, and nltk reads them. Where a
database is at hand (HOICLI_WORDNET, or Debian's wordnet-base) every synset is compared, otherwise one in seven, and the
index is compiled anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.wordnet.lexicon import ENDINGS, POS, RELATIONS, WordNet, open_wordnet
from tests import wordnet_build, wordnet_files

WN = open_wordnet()
DATABASE = Path(os.environ.get("HOICLI_WORDNET", "/usr/share/wordnet"))
PRESENT = (DATABASE / "data.noun").is_file()
STEP = 1 if PRESENT else 7

# SHA-256 of the files of WordNet 3.0 (Debian's wordnet-base 3.0-37; sizes as in Princeton's distribution).
DIGESTS = {
    "data.adj": "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7",
    "data.adv": "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139",
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2",
    "index.adv": "6f5465ed5758fe9c8a2f7ec17b1300f3aa875756c70ff7cba162f7e71bcf88ea",
    "index.noun": "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
    "index.verb": "e2ac24816c3a8289dcb72aaa9cf8db81fdf25ec34d792bfc96ac5b7a20c8b4ae",
    "adj.exc": "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016",
    "adv.exc": "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8",
    "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
    "verb.exc": "dbbcf9a601b2d77e934e413b91d90e88ec7f933a8b77cfc00602a923b891b42c",
}
# index.adj without two lines: one is padded with blanks, one counts a tag of a sense key the database does not have.
INDEX_ADJ = "c3d2b899f2af76919b2db12c79fdc2400e514d7a5de2d7f693606b7fae7bd66b"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_database_comes_back_byte_for_byte() -> None:
    _, folder = wordnet_files.nltk_wordnet()
    root = folder / "corpora" / "wordnet"
    assert {name: digest((root / name).read_bytes()) for name in DIGESTS} == DIGESTS
    lines = (root / "index.adj").read_bytes().splitlines(keepends=True)
    assert digest(b"".join(line for line in lines if line.split()[0] not in (b"last", b"zymolytic"))) == INDEX_ADJ


@pytest.mark.skipif(not PRESENT, reason="needs a WordNet 3.0 database (HOICLI_WORDNET)")
def test_the_builder_makes_the_index() -> None:
    assert wordnet_build.compile_(wordnet_build.read(DATABASE)) == wordnet_build.TARGET.read_bytes()


def test_the_counts() -> None:
    assert {pos: len(among) for pos, among in WN.ranges.items()} == {"n": 82115, "v": 13767, "a": 18156, "r": 3621}
    assert WN.size == 117659
    assert WN.lemma_count == 147306
    assert [len(WN.edges(kind)[0]) for kind in ("hypernym", "instance_hypernym")] == [89089, 8577]


@pytest.mark.parametrize("pos", ["n", "v"])
def test_every_sense_is_nltks(pos: str) -> None:
    reader, _ = wordnet_files.nltk_wordnet()
    relations = {
        "hypernym": "hypernyms",
        "instance_hypernym": "instance_hypernyms",
        "hyponym": "hyponyms",
        "member_holonym": "member_holonyms",
        "part_meronym": "part_meronyms",
        "entailment": "entailments",
        "cause": "causes",
        "verb_group": "verb_groups",
        "also_see": "also_sees",
        "topic": "topic_domains",
        "attribute": "attributes",
    }
    lexical = {"antonym": "antonyms", "derivation": "derivationally_related_forms"}
    for synset in WN.ranges[pos][::STEP]:
        theirs = reader.synset_from_pos_and_offset(pos, WN.offset(synset))
        name = theirs.name()
        assert (WN.name(synset), WN.index(name), WN.pos(synset)) == (name, synset, pos)
        assert WN.from_offset(pos, theirs.offset()) == synset
        assert WN.lemmas(synset) == theirs.lemma_names()
        assert (WN.gloss(synset), WN.examples(synset)) == (theirs.definition(), theirs.examples())
        assert WN.lexname(synset) == theirs.lexname()
        assert (WN.min_depth[synset], WN.max_depth[synset]) == (theirs.min_depth(), theirs.max_depth())
        above = theirs.hypernyms() + theirs.instance_hypernyms()
        assert sorted(map(WN.name, WN.hypernyms(synset))) == sorted(other.name() for other in above)
        for kind, method in relations.items():
            # nltk lists what the synset points at; ours has what its words point at besides.
            words = {target for _, target, _ in WN.lexical_relations(kind, synset)}
            whole = {WN.name(other) for other in WN.relations(kind, synset) if other not in words}
            named = {other.name() for other in getattr(theirs, method)()}
            assert whole <= named <= {WN.name(other) for other in WN.relations(kind, synset)}
        for kind, method in lexical.items():
            ours = sorted(
                (word, WN.offset(other), of)
                for word, other, of in WN.lexical_relations(kind, synset)
            )  # fmt: skip
            assert ours == sorted(
                (lemma.name(), other.synset().offset(), other.name())
                for lemma in theirs.lemmas()
                for other in getattr(lemma, method)()
            )


@pytest.mark.parametrize("pos", ["n", "v", "a", "r"])
def test_morphy_is_nltks(pos: str) -> None:
    """Releases of nltk before 3.9 strip endings again where the first try finds nothing: those words are left out."""
    reader, _ = wordnet_files.nltk_wordnet()
    words = list(WN._exceptions[pos])
    endings = [old for old, _ in ENDINGS[pos]]
    for number in range(0, WN.lemma_count, 5 * STEP):
        lemma = WN.lemma(number)
        words += [lemma, *(lemma + ending for ending in ["d", *endings])]
    found = 0
    for word in words:
        ours = WN.morphy(word, pos)
        if ours:
            found += 1
            assert ours == reader._morphy(word, pos), word
    assert found > len(words) / 100


def test_a_sense_and_what_it_holds() -> None:
    ride = WN.index("ride.v.10")
    assert WN.name(ride) == "ride.v.10"
    assert WN.gloss(ride) == "sit on and control a vehicle"
    assert WN.examples(ride)[0] == "He rides his bicycle to work every day"
    assert WN.lemmas(ride) == ["ride"]
    assert [WN.name(above) for above in WN.hypernyms(ride)] == ["travel.v.01"]
    assert WN.lexname(ride) == "verb.motion"
    assert ("ride", "rider") in [(word, of) for word, _, of in WN.lexical_relations("derivation", ride)]
    assert WN.senses("ride", "v").index(ride) == 9
    assert WN.tag_counts("ride", "v")[:3] == [53, 30, 2]
    assert len(WN.tag_counts("ride", "v")) == len(WN.senses("ride", "v")) == 14
    assert WN.from_offset("n", 2958343) == WN.index("car.n.01") == WN.index("motorcar.n.01")


def test_a_satellite_is_an_adjective() -> None:
    synset = WN.index("galore.s.01")
    assert (WN.pos(synset), WN.name(synset), WN.index("galore.a.01")) == ("s", "galore.s.01", synset)
    assert WN.words(synset) == ["galore(ip)"]
    assert WN.lemmas(synset) == ["galore"]
    with pytest.raises(KeyError):
        WN.index("able.s.01")


@pytest.mark.parametrize(
    "name",
    ["", "ride", "ride.v", "ride.v.0", "ride.v.15", "ride.v.-1", "ride.v.1e1", "ride.x.1", ".v.1", "v.1", "ride.v.٣"],
)
def test_a_name_of_nothing(name: str) -> None:
    with pytest.raises(KeyError):
        WN.index(name)


@given(st.text(max_size=20), st.sampled_from(POS))
def test_any_text_may_be_asked_for(text: str, pos: str) -> None:
    for lemma in WN.morphy(text, pos):
        assert WN.senses(lemma, pos)
    try:
        synset = WN.index(text)
    except KeyError:
        return
    assert WN.index(WN.name(synset)) == synset


@given(st.integers(0, WN.size - 1))
def test_names_and_offsets_lead_back(synset: int) -> None:
    assert WN.index(WN.name(synset)) == synset
    pos = WN.pos(synset)
    assert synset in WN.ranges["a" if pos == "s" else pos]
    assert WN.from_offset(pos, WN.offset(synset)) == synset


def test_what_is_not_there() -> None:
    with pytest.raises(KeyError, match="n00000001"):
        WN.from_offset("n", 1)
    with pytest.raises(KeyError):
        WN.from_offset("v", 99999999)
    with pytest.raises(IndexError):
        WN.pos(WN.size)
    assert WN.senses("zorb", "n") == WN.tag_counts("zorb", "n") == []
    assert WN.morphy("zorbs", "n") == []
    with pytest.raises(ValueError, match="not a compiled WordNet"):
        WordNet(b"something else")


def test_edges_are_the_relations() -> None:
    sources, targets = WN.edges("verb_group", "entailment")
    listed = {(s, t) for s, t in zip(sources.tolist(), targets.tolist(), strict=True)}
    asked = {(s, t) for s in WN.ranges["v"] for kind in ("verb_group", "entailment") for t in WN.relations(kind, s)}
    assert listed == asked
    assert (sources[1:] >= sources[:-1]).all()
    assert len(RELATIONS) == len(set(RELATIONS.values())) == 26


def test_a_count_in_the_concordance_is_its_own_and_that_of_all_below() -> None:
    """Recounted upwards from each synset, with sets of ancestors."""
    above: dict[int, frozenset[int]] = {}

    def ancestors(synset: int) -> frozenset[int]:
        if synset not in above:
            above[synset] = frozenset({synset}).union(*(ancestors(parent) for parent in WN.hypernyms(synset)))
        return above[synset]

    verbs = WN.ranges["v"]
    own = dict.fromkeys(verbs, 1)
    for number in range(WN.lemma_count):
        lemma = WN.lemma(number)
        for synset, count in zip(WN.senses(lemma, "v"), WN.tag_counts(lemma, "v"), strict=True):
            own[synset] += count
    total = dict.fromkeys(verbs, 0)
    for synset, count in own.items():
        for parent in ancestors(synset):
            total[parent] += count
    assert [total[synset] for synset in verbs] == WN.concordance[verbs.start : verbs.stop].tolist()
    assert WN.concordance[WN.index("entity.n.01")] == WN.concordance[: verbs.start].max()


def test_swig_hoi_numbers_its_objects_by_this_database(shared: Path) -> None:
    vocabulary = json.loads((shared / "data/swig-hoi/swig_vocabulary.json").read_text())
    for entry in vocabulary["categories"]:
        synset = WN.from_offset(entry["noun_id"][0], int(entry["noun_id"][1:]))
        assert entry["def"].startswith(WN.gloss(synset)[:40])


def test_the_notice_travels_with_the_data() -> None:
    text = wordnet_files.LICENCE.read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in text
    assert "Permission to use, copy, modify and distribute" in text


def test_nltk_is_not_needed() -> None:
    code = (
        "import sys; from hoicli.wordnet import measures, senses; senses.candidates('riding', 'v');"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('nltk', 'scipy')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
