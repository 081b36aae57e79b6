"""What is looked up in the embedded WordNet is what nltk finds.

Its files are those of WordNet 3.0 (Debian's wordnet-base 3.0-37), to the byte: tests/project/test_doctor.py holds them
to hoicli/data.sha256. Their graph is compiled anew and compared by `python -m tests.support.wordnet_build --check`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.wordnet.graph import POS
from hoicli.wordnet.lexicon import PRINCETON, open_embedded
from tests.support import wordnet_files
from tests.wordnet.test_lexical import METHODS

WN = open_embedded()
GRAPH_ = WN.graph


@pytest.mark.long
@pytest.mark.parametrize("pos", ["n", "v"])
def test_a_sense_is_nltks(pos: str) -> None:
    """One in sixty-one, beside nltk's reader with nothing of ours in it."""
    plain = wordnet_files.nltk_wordnet()
    joined = {kind: set(zip(*(side.tolist() for side in GRAPH_.edges(kind)), strict=True)) for kind in METHODS}
    for row in GRAPH_.ranges[pos][::61]:
        theirs = plain.synset_from_pos_and_offset(pos, int(GRAPH_.offset[row]))
        ours = WN.reader.synset(WN.graph.names[row])
        assert (ours.name(), ours.pos(), ours.offset()) == (theirs.name(), theirs.pos(), theirs.offset())
        assert (ours.definition(), ours.examples()) == (theirs.definition(), theirs.examples())
        assert (ours.lemma_names(), ours.lexname()) == (theirs.lemma_names(), theirs.lexname())
        assert WN.index(theirs.name()) == row == GRAPH_.row_at_offset(pos, theirs.offset())
        assert GRAPH_.array("min_depth")[row] == theirs.min_depth()
        assert GRAPH_.array("max_depth")[row] == theirs.max_depth()
        for kind, method in METHODS.items():
            whole = set(getattr(theirs, method)()) if hasattr(theirs, method) else set()
            whole |= {other.synset() for lemma in theirs.lemmas() for other in getattr(lemma, method)()}
            assert all((row, GRAPH_.row_at_offset(other.pos(), other.offset())) in joined[kind] for other in whole)


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
        assert WN.word_senses(word, pos) == list(dict.fromkeys(GRAPH_.row_at_offset(*place) for place in theirs))
        found += bool(theirs)
    assert found > len(words) / 100


def test_a_satellite_is_an_adjective_and_counted_among_them() -> None:
    """As in WordNet, whatever nltk is installed: 3.9.2 and later count satellites alone."""
    row = WN.index("galore.s.01")
    assert (GRAPH_.pos(row), WN.graph.names[row], WN.index("galore.a.01")) == ("a", "galore.s.01", row)
    assert WN.reader.synset("galore.s.01").lemmas()[0].syntactic_marker() == "(ip)"
    good = [name for name in WN.senses("good", "a") if name.startswith("good.")]
    assert good[:3] == ["good.a.01", "good.a.03", "good.s.06"]
    assert [WN.reader.synset(name).name() for name in good] == good
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
    assert WN.index(WN.graph.names[row]) == row


@pytest.mark.long
def test_a_count_in_the_concordance_is_its_own_and_that_of_all_below() -> None:
    """Recounted upwards from each verb, with nltk's counts and sets of ancestors."""
    plain = wordnet_files.nltk_wordnet()
    tagged = dict(line.split()[::2] for line in (PRINCETON / "cntlist.rev").read_text().splitlines())
    total = dict.fromkeys(GRAPH_.ranges["v"], 0)
    for synset in plain.all_synsets("v"):
        own = 1 + sum(int(tagged.get(key, 0)) for key in {lemma.key() for lemma in synset.lemmas()})
        for above in {synset, *(other for level in synset._iter_hypernym_lists() for other in level)}:
            total[GRAPH_.row_at_offset("v", above.offset())] += own
    concordance = GRAPH_.array("concordance")
    assert list(total.values()) == concordance[GRAPH_.ranges["v"].start :].tolist()
    assert concordance[WN.index("entity.n.01")] == concordance[: GRAPH_.ranges["v"].start].max()


def test_swig_hoi_numbers_its_objects_by_this_database(shared: Path) -> None:
    vocabulary = json.loads((shared / "data/swig-hoi/swig_vocabulary.json").read_text())
    for entry in vocabulary["categories"]:
        name = GRAPH_.names[GRAPH_.row_at_offset(entry["noun_id"][0], int(entry["noun_id"][1:]))]
        assert entry["def"].startswith(WN.reader.synset(name).definition()[:40])


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


def test_of_nltk_no_more_is_imported_than_is_needed() -> None:
    """Nothing where no word is looked up; and else not scipy.stats and scikit-learn, two thirds of its time."""
    for command in ("vocab", "shoe-sim --dataset hico --backend wordnet:wup"):
        assert "nltk" not in imported(*command.split()), command
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
