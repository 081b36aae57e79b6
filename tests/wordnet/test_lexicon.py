"""The embedded WordNet is Princeton's, to the byte, and what is looked up in it is what nltk finds."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.wordnet.graph import POS
from hoicli.wordnet.lexicon import GRAPH, PRINCETON, embedded
from tests.support import wordnet_files
from tests.wordnet.test_lexical import METHODS

WN = embedded()
GRAPH_ = WN.graph

# SHA-256 of the files of WordNet 3.0 (Debian's wordnet-base 3.0-37; sizes as in Princeton's distribution).
DIGESTS = {
    "data.adj": "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7",
    "data.adv": "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139",
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2",
    "index.adj": "c9865d7b4d1f805bdef82ccdcea5282436e23083e6f6f1b33e716327c4eda810",
    "index.adv": "6f5465ed5758fe9c8a2f7ec17b1300f3aa875756c70ff7cba162f7e71bcf88ea",
    "index.noun": "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
    "index.verb": "e2ac24816c3a8289dcb72aaa9cf8db81fdf25ec34d792bfc96ac5b7a20c8b4ae",
    "adj.exc": "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016",
    "adv.exc": "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8",
    "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
    "verb.exc": "dbbcf9a601b2d77e934e413b91d90e88ec7f933a8b77cfc00602a923b891b42c",
    "cntlist.rev": "a198580b8f705fa02797bba8b13e5cbe4a9f9f40cb1697e774c7fc6a5865b035",
    "lexnames": "c871b6797d2109f563f7a162b64e8ebf18f6f42d00918572846034c7f393a214",
    GRAPH.name: "d8e987f4d7a302f37d953577ddd0275f3bfbc31608f202fe1a70800718df8949",
}


def test_the_files_are_princetons() -> None:
    """And the graph the one that was compiled from them (`python -m tests.support.wordnet_build --check`: a minute)."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in [*PRINCETON.iterdir(), GRAPH]}
    assert found == DIGESTS


@pytest.mark.long
@pytest.mark.parametrize("pos", ["n", "v"])
def test_a_sense_is_nltks(pos: str) -> None:
    """One in sixty-one, beside nltk's reader with nothing of ours in it."""
    plain = wordnet_files.nltk_wordnet()
    joined = {kind: set(zip(*(side.tolist() for side in GRAPH_.edges(kind)), strict=True)) for kind in METHODS}
    for row in GRAPH_.ranges[pos][::61]:
        theirs = plain.synset_from_pos_and_offset(pos, int(GRAPH_.offset[row]))
        ours = WN.synset(WN.name(row))
        assert (ours.name(), ours.pos(), ours.offset()) == (theirs.name(), theirs.pos(), theirs.offset())
        assert (ours.definition(), ours.examples()) == (theirs.definition(), theirs.examples())
        assert (ours.lemma_names(), ours.lexname()) == (theirs.lemma_names(), theirs.lexname())
        assert WN.index(theirs.name()) == row == GRAPH_.at(pos, theirs.offset())
        assert GRAPH_.array("min_depth")[row] == theirs.min_depth()
        assert GRAPH_.array("max_depth")[row] == theirs.max_depth()
        for kind, method in METHODS.items():
            whole = set(getattr(theirs, method)()) if hasattr(theirs, method) else set()
            whole |= {other.synset() for lemma in theirs.lemmas() for other in getattr(lemma, method)()}
            assert all((row, GRAPH_.at(other.pos(), other.offset())) in joined[kind] for other in whole)


@pytest.mark.long
@pytest.mark.parametrize("pos", ["n", "v", "a", "r"])
def test_words_are_looked_up_as_nltk_does(pos: str) -> None:
    """Irregular forms, and regular ones of one lemma in 97: base forms, and their senses in order."""
    plain = wordnet_files.nltk_wordnet()
    words = list(plain._exception_map[pos])[::3]
    for lemma in list(GRAPH_.lemmas)[::97]:
        words += [lemma, *(lemma + old for old, _ in plain.MORPHOLOGICAL_SUBSTITUTIONS[pos])]
    found = 0
    for word in words:
        assert WN.forms(word, pos) == plain._morphy(word, pos)
        theirs = [(synset.pos(), synset.offset()) for synset in plain.synsets(word, pos)]
        assert [(synset.pos(), synset.offset()) for synset in WN.reader.synsets(word, pos)] == theirs
        assert WN.word_senses(word, pos) == list(dict.fromkeys(GRAPH_.at(*place) for place in theirs))
        found += bool(theirs)
    assert found > len(words) / 100


def test_a_satellite_is_an_adjective_and_counted_among_them() -> None:
    """As in WordNet, whatever nltk is installed: 3.9.2 and later count satellites alone."""
    row = WN.index("galore.s.01")
    assert (GRAPH_.pos(row), WN.name(row), WN.index("galore.a.01")) == ("a", "galore.s.01", row)
    assert WN.synset("galore.s.01").lemmas()[0].syntactic_marker() == "(ip)"
    good = [name for name in WN.senses("good", "a") if name.startswith("good.")]
    assert good[:3] == ["good.a.01", "good.a.03", "good.s.06"]
    assert [WN.synset(name).name() for name in good] == good
    with pytest.raises(KeyError):
        WN.index("able.s.01")


@pytest.mark.parametrize(
    "name",
    ["", "ride", "ride.v", "ride.v.0", "ride.v.15", "ride.v.-1", "ride.v.1e1", "ride.x.1", ".v.1", "v.1", "ride.v.٣",
     "ride.v.0001", "ride.v.10\n"],
)  # fmt: skip
def test_a_name_of_nothing(name: str) -> None:
    with pytest.raises(KeyError):
        WN.index(name)


@given(st.text(max_size=20), st.sampled_from(POS))
def test_any_text_may_be_asked_for(text: str, pos: str) -> None:
    for lemma in WN.forms(text, pos):
        assert WN.senses(lemma, pos)
    try:
        row = WN.index(text)
    except KeyError:
        return
    assert WN.index(WN.name(row)) == row


@pytest.mark.long
def test_a_count_in_the_concordance_is_its_own_and_that_of_all_below() -> None:
    """Recounted upwards from each verb, with nltk's counts and sets of ancestors."""
    plain = wordnet_files.nltk_wordnet()
    tagged = dict(line.split()[::2] for line in (PRINCETON / "cntlist.rev").read_text().splitlines())
    total = dict.fromkeys(GRAPH_.ranges["v"], 0)
    for synset in plain.all_synsets("v"):
        own = 1 + sum(int(tagged.get(key, 0)) for key in {lemma.key() for lemma in synset.lemmas()})
        for above in {synset, *(other for level in synset._iter_hypernym_lists() for other in level)}:
            total[GRAPH_.at("v", above.offset())] += own
    concordance = GRAPH_.array("concordance")
    assert list(total.values()) == concordance[GRAPH_.ranges["v"].start :].tolist()
    assert concordance[WN.index("entity.n.01")] == concordance[: GRAPH_.ranges["v"].start].max()


def test_swig_hoi_numbers_its_objects_by_this_database(shared: Path) -> None:
    vocabulary = json.loads((shared / "data/swig-hoi/swig_vocabulary.json").read_text())
    for entry in vocabulary["categories"]:
        name = WN.name(GRAPH_.at(entry["noun_id"][0], int(entry["noun_id"][1:])))
        assert entry["def"].startswith(WN.synset(name).definition()[:40])


def test_the_notice_travels_with_the_data() -> None:
    text = wordnet_files.LICENCE.read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in text
    assert "Permission to use, copy, modify and distribute" in text


def imported(*arguments: str) -> set[str]:
    """The packages that a command imports, in a process of its own."""
    code = (
        "import sys; sys.argv = ['hoicli', *sys.argv[1:]]\n"
        "import hoicli.cli\n"
        "try: hoicli.cli.main()\n"
        "except SystemExit: print(*{name.split('.')[0] for name in sys.modules}, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("vocab",),
        ("shoe-sim", "--dataset", "hico", "--backend", "wordnet:wup"),
    ],
    ids=" ".join,
)
def test_nltk_is_not_imported_where_nothing_is_looked_up(arguments: tuple[str, ...]) -> None:
    assert "nltk" not in imported(*arguments)


def test_of_nltk_no_more_is_imported_than_wordnet_takes() -> None:
    """scipy.stats and scikit-learn are there, and nltk would import them: two thirds of its time."""
    found = imported("vocab", "--senses", "ride")
    assert "nltk" in found
    assert not found & {"sklearn", "scipy.stats"}


@pytest.mark.long
def test_elsewhere_nltk_is_imported_whole() -> None:
    code = (
        "import sys; from hoicli.wordnet.senses import candidates; candidates('riding', 'v');"
        "from nltk.metrics.association import fisher_exact; fisher_exact([[1, 2], [3, 4]])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
