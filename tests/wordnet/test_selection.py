"""--wordnet: any other WordNet that nltk reads, compiled once, checked, and named in the signature."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hoicli.wordnet import lexicon
from hoicli.wordnet.graph import DATABASE
from hoicli.wordnet.lexicon import PRINCETON, open_embedded
from hoicli.wordnet.measures import raw_similarities
from hoicli.wordnet.senses import candidates, ground_truth_sense
from tests.support.project import FIXTURES, Hoicli, parsed
from tests.support.wordnet_files import Synset, counts_for_nltk, plain_reader, write

# Two trees of nouns, so that some have no common ancestor; senses of "ride" in another order than in WordNet 3.0.
SMALL = [
    Synset("n", ["entity"], "that which is", [("~", 1, 0, 0), ("~", 3, 0, 0)], tagged=3),
    Synset(
        "n", ["animal", "beast"], 'a thing that lives; "no animal reads"', [("@", 0, 0, 0), ("~", 2, 0, 0)], tagged=9
    ),
    Synset("n", ["horse"], "an animal to ride", [("@", 1, 0, 0)], tagged=4, lexfile=5),
    Synset("n", ["motorcycle", "Moto", "vélo_à_moteur"], "a thing to ride", [("@", 0, 0, 0)], lexfile=6),
    Synset("n", ["idea"], "what is thought"),
    Synset("v", ["move"], "change place", [("~", 6, 0, 0), ("~", 7, 0, 0)], tagged=5),
    Synset("v", ["ride"], "sit on and control a vehicle", [("@", 5, 0, 0)], tagged=2, lexfile=38, lex_id=4),
    Synset("v", ["ride", "sit"], "sit on an animal", [("@", 5, 0, 0), ("!", 8, 1, 1)], tagged=1, lexfile=38, lex_id=1),
    Synset("v", ["walk"], "go on foot", [("!", 7, 1, 1)], tagged=1, lexfile=38),
    Synset("a", ["fast"], "quick"),
    Synset("r", ["fast"], "quickly"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    lexicon.use_wordnet(None)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A WordNet of eleven synsets, without lexnames and irregular forms."""
    write(tmp_path / "small", SMALL)
    return tmp_path / "small"


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "hoicli" / "wordnet").glob("*"))


def test_labels_find_its_senses(hoicli: Hoicli, small: Path) -> None:
    found = hoicli("vocab", "--wordnet", small, "--senses", "riding motorcycles")
    assert [(row["sense"], row["gloss"], row["chosen"]) for row in parsed(found.out)] == [
        ("ride.v.01", "sit on and control a vehicle", True),
        ("ride.v.02", "sit on an animal", False),
        ("motorcycle.n.01", "a thing to ride", True),  # the dataset has "ride" and "motorcycle"
    ]
    assert parsed(hoicli("vocab", "--wordnet", small, "--senses", "vélo à moteur").out)[0]["sense"] == "motorcycle.n.01"
    assert parsed(hoicli("vocab", "--wordnet", small, "--senses", "beasts").out)[0]["sense"] == "animal.n.01"


def test_synsets_that_are_not_where_the_index_says(hoicli: Hoicli, small: Path) -> None:
    """nltk looks for a synset at its byte; other line ends move all behind the first."""
    data = small / "data.noun"
    data.write_bytes(data.read_bytes().replace(b"\n", b"\r\n"))
    result = hoicli("vocab", "--wordnet", small, "--senses", "horse")
    assert result.code == 1
    assert result.err.splitlines()[1:] == [
        f"{small}: data.noun has a line at byte 25 that does not begin with 00000025; get it anew"
    ]


def test_a_benchmarks_senses_are_found_by_their_keys(hoicli: Hoicli, small: Path) -> None:
    lexicon.use_wordnet(str(small))
    assert ground_truth_sense("hico", "ride", "motorcycle") == ("ride.v.01", "motorcycle.n.01")  # 3.0's ride.v.10
    assert ground_truth_sense("hico", "ride", "horse") == ("ride.v.02", "horse.n.01")  # 3.0's ride.v.01
    assert ground_truth_sense("hico", "ride", "train") == (None, None)
    assert ground_truth_sense("swig", "riding", "horse") == ("ride.v.02", "horse.n.01")
    assert candidates("text_on", "v") == []  # the table's own senses of 3.0 are not here
    lexicon.use_wordnet(None)
    assert ground_truth_sense("hico", "ride", "motorcycle") == ("ride.v.10", "motorcycle.n.01")
    found = parsed(hoicli("vocab", "--senses", "ride motorcycle", "--wordnet", small).out)
    chosen = [row for row in found if row["chosen"]]
    assert [row["sense"] for row in chosen] == ["ride.v.01", "motorcycle.n.01"]


@pytest.mark.parametrize("measure", ["path", "wup", "lch", "res", "lin", "jcn"])
def test_the_measures_are_nltks(small: Path, tmp_path: Path, measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nltk has no number (nouns of two trees), 0."""
    lexicon.use_wordnet(str(small))
    graph = lexicon.open_wordnet().graph
    for name in ("lexnames", "noun.exc", "verb.exc", "adj.exc", "adv.exc"):
        shutil.copy(PRINCETON / name, small)
    monkeypatch.setattr(import_module("nltk.data"), "path", [str(small)])
    plain = plain_reader(small)
    counts = counts_for_nltk(graph, small)
    for pos in "nv":
        pairs = [(a, b) for a, b in product(graph.ranges[pos], repeat=2) if a != b]
        for (a, b), ours in zip(pairs, raw_similarities(graph, measure, np.array(pairs)).tolist(), strict=True):
            one, other = (plain.synset(graph.names[row]) for row in (a, b))
            asked = getattr(one, f"{measure}_similarity")
            theirs = asked(other, counts) if measure in ("res", "lin", "jcn") else asked(other)
            assert ours == pytest.approx(theirs or 0, abs=1e-12), (one, other)


@pytest.mark.parametrize("backend", ["wordnet:wup", "wordnet:jcn", "lexical"])
def test_every_backend_rates_them(hoicli: Hoicli, small: Path, tmp_path: Path, backend: str) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        '{"pos": "n", "a": "horse", "b": "beast"}\n'
        '{"pos": "n", "a": "horse", "b": "idea"}\n'
        '{"pos": "v", "a": "ride.v.02", "b": "walk"}\n'
    )
    found = hoicli("shoe-sim", "--wordnet", small, "--backend", backend, "--pairs", pairs)
    alike = [row["similarity"] for row in parsed(found.out)]
    assert 0 < alike[0] < 1
    assert alike[1] < alike[0]
    assert (alike[1] == 0) == (backend != "wordnet:jcn")  # of nothing in common, jcn knows how little that says
    assert 0 <= alike[2] < 1
    bad = '{"pos": "v", "a": "ride.v.10", "b": "walk"}\n'
    pairs.write_text(bad)
    found = hoicli("shoe-sim", "--wordnet", small, "--backend", backend, "--pairs", pairs)
    assert found.code == 1
    assert f"'ride.v.10' is no sense of {small}" in found.err


def test_a_result_names_it(hoicli: Hoicli, small: Path, tmp_path: Path) -> None:
    shoe = FIXTURES / "shoe"
    table = tmp_path / "sim.jsonl"
    files_ = ("--gt", shoe / "gt.jsonl", shoe / "predictions.jsonl", "--wordnet", small)
    assert hoicli("shoe-sim", "--backend", "lexical", *files_, "-o", table).code == 0
    assert "ride.v.10" not in table.read_text()
    done = hoicli("shoe-eval", "--sim", table, *files_)
    digest = kept(tmp_path)[0].name[:8]
    assert all(f"|wordnet:small.{digest}|" in row["signature"] for row in parsed(done.out))
    plain = hoicli("shoe-eval", "--sim", shoe / "sim.jsonl", *files_[:3])
    assert all("wordnet" not in row["signature"] for row in parsed(plain.out))


def test_it_is_compiled_once(hoicli: Hoicli, small: Path, tmp_path: Path) -> None:
    first, second = (hoicli("vocab", "--wordnet", small, "--senses", "ride") for _ in range(2))
    assert (first.out, second.err) == (second.out, "")
    assert first.err == (
        f"hoicli: {small} is compiled, once (a WordNet takes a minute), and kept in "
        f"{tmp_path / 'cache/hoicli/wordnet'}\n"
    )
    assert len(kept(tmp_path)) == 1
    write(small, [*SMALL, Synset("v", ["zorb"], "roll in a ball")])
    assert parsed(hoicli("vocab", "--wordnet", small, "--senses", "zorbing").out)[0]["gloss"] == "roll in a ball"
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize("harm", ["cut", "other", "folder"])
def test_a_damaged_copy_is_not_used(hoicli: Hoicli, small: Path, tmp_path: Path, harm: str) -> None:
    expected = hoicli("vocab", "--wordnet", small, "--senses", "ride").out
    (copy,) = kept(tmp_path)
    good = copy.read_bytes()
    if harm == "cut":
        copy.write_bytes(good[: len(good) // 2])
    elif harm == "other":
        np.savez(copy, names=np.array([{"a": 1}], dtype=object))
    else:
        copy.unlink()
        copy.mkdir()
    again = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert again.out == expected
    assert "is compiled, once" in again.err
    if harm != "folder":
        assert copy.read_bytes() == good


def test_a_cache_that_cannot_be_written(hoicli: Hoicli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert (found.code, len(parsed(found.out))) == (0, 2)
    assert "cannot be kept" in found.err
    assert "set XDG_CACHE_HOME to a folder that can be written" in found.err


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nltk_data" / "corpora"
    folder.mkdir(parents=True)
    monkeypatch.setattr(import_module("nltk.data"), "path", [str(folder.parent)])
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_a_corpus_of_nltks(hoicli: Hoicli, small: Path, corpora: Path, packed: bool) -> None:
    if packed:  # as nltk's downloader leaves it
        with zipfile.ZipFile(corpora / "wordnet31.zip", "w") as archive:
            for path in small.iterdir():
                archive.write(path, f"wordnet31/{path.name}")
    else:
        shutil.copytree(small, corpora / "wordnet31")
    expected = hoicli("vocab", "--wordnet", small, "--senses", "ride").out
    found = hoicli("vocab", "--wordnet", "wordnet31", "--senses", "ride")
    assert (found.code, found.out, found.err) == (0, expected, "")  # compiled already: the content is the same
    assert str(lexicon.open_wordnet().signature).startswith("wordnet31.")


@pytest.mark.parametrize(("wordnet", "words"), [
    ("wordnet31", "neither a folder nor in nltk's data folders; python -m nltk.downloader wordnet31 gets it"),
    ("nowhere/wordnet31", "there is no such folder"),
    ("{empty}", "no data.noun in it; for one of its languages give {empty}:fra"),
    ("{empty}:fra", "no such language in it; it has none"),
])  # fmt: skip
def test_where_there_is_none(
    hoicli: Hoicli, tmp_path: Path, wordnet: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("nltk.data"), "path", [])
    (tmp_path / "empty").mkdir()
    wordnet, words = (text.replace("{empty}", str(tmp_path / "empty")) for text in (wordnet, words))
    for command in (["vocab", "--senses", "ride"], ["shoe-sim", "--dataset", "hico", "--backend", "lexical"]):
        found = hoicli(*command, "--wordnet", wordnet)
        assert (found.code, found.out, found.err) == (2, "", f"hoicli: --wordnet {wordnet}: {words}\n")


def test_without_counts_there_is_no_information_content(hoicli: Hoicli, small: Path) -> None:
    (small / "cntlist.rev").unlink()
    pair = ("shoe-sim", "--wordnet", small, "--dataset", "hico", "--backend")
    assert hoicli(*pair, "wordnet:wup").code == 0
    found = hoicli(*pair, "wordnet:lin")
    assert (found.code, found.out) == (2, "")
    assert "no counts of senses (cntlist.rev), which res, lin and jcn need" in found.err


def harm(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(("name", "old", "new"), [
    ("data.noun", "that which is", "that | which is"),
    ("data.noun", "@ 0000", "@ 9999"),
    ("data.noun", " n 0000 ", " q 0000 "),
    ("data.verb", " 0101 ", " 0109 "),
    ("index.noun", "horse n 1 0 1 0 0", "horse n 1 0 1 0 9"),
    ("index.verb", "move v 1 0 1 0", "move v"),
    ("cntlist.rev", " 1 3\n", " 1 many\n"),
])  # fmt: skip
def test_files_that_make_no_wordnet(hoicli: Hoicli, small: Path, name: str, old: str, new: str) -> None:
    harm(small, name, old, new)
    found = hoicli("shoe-sim", "--wordnet", small, "--dataset", "hico", "--backend", "wordnet:wup")
    assert (found.code, found.out) == (1, "")
    assert found.err.splitlines()[-1].startswith(f"{small}: ")
    assert "internal error" not in found.err


def test_a_sense_above_itself(hoicli: Hoicli, small: Path) -> None:
    write(small, [*SMALL[:5], SMALL[5]._replace(pointers=[("@", 6, 0, 0)]), *SMALL[6:]])
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert found.code == 1
    assert "a synset is above itself, or has more than 255 steps above it" in found.err


def test_satellites_of_one_another(hoicli: Hoicli, small: Path) -> None:
    """nltk seeks the head of each: without an end, were there no limit to it."""
    ring = [Synset("a", [word], "round", [("&", 11 + (at + 1) % 2, 0, 0)]) for at, word in enumerate(("one", "two"))]
    write(small, [*SMALL, *ring])
    for word in ("one", "two"):
        harm(small, "data.adj", f" 03 a 01 {word}", f" 03 s 01 {word}")
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert (found.code, found.out) == (1, "")
    assert "no WordNet that nltk reads (RecursionError" in found.err


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0" * 50, b"  1 nothing but a notice\n"])
def test_other_files(hoicli: Hoicli, small: Path, content: bytes) -> None:
    for name in DATABASE:
        (small / name).write_bytes(content)
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert found.code in (0, 1)
    assert "internal error" not in found.err
    assert found.out == ""


def test_what_is_no_file_or_too_large(hoicli: Hoicli, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoicli.wordnet.graph.LARGEST", 100)
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert (found.code, found.err) == (1, f"{small}: data.noun has more than 100 bytes, which no WordNet has\n")
    (small / "data.noun").unlink()
    os.mkfifo(small / "data.noun")
    found = hoicli("vocab", "--wordnet", small, "--senses", "ride")
    assert (found.code, "no data.noun in it" in found.err) == (2, True)


def test_a_packed_corpus_that_unpacks_to_too_much_or_not_at_all(
    hoicli: Hoicli, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(corpora / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in DATABASE:
            archive.writestr(f"bomb/{name}", bytes(1 << 20))
    monkeypatch.setattr("hoicli.wordnet.graph.LARGEST", 1 << 16)
    found = hoicli("vocab", "--wordnet", "bomb", "--senses", "ride")
    assert (found.code, "more than 65,536 bytes" in found.err) == (1, True)
    data = (corpora / "bomb.zip").read_bytes()
    (corpora / "bomb.zip").write_bytes(data[:30] + bytes(300) + data[330:])
    found = hoicli("vocab", "--wordnet", "bomb", "--senses", "ride")
    assert (found.code, found.out) == (1, "")
    assert "internal error" not in found.err


def offset_of(sense: str) -> str:
    return f"{open_embedded().reader.synset(sense).offset():08d}"


@pytest.fixture
def french(tmp_path: Path) -> Path:
    folder = tmp_path / "omw"
    (folder / "fra").mkdir(parents=True)
    (folder / "fra" / "wn-data-fra.tab").write_text(
        "# a Wordnet of a test\tfra\n"
        f"{offset_of('ride.v.02')}-v\tfra:lemma\tmonter\n"
        f"{offset_of('horse.n.01')}-n\tlemma\tcheval\n"
        f"{offset_of('bicycle.n.01')}-n\tfra:lemma\tVélo de course\n"
        f"{offset_of('bicycle.n.01')}-n\tfra:def\tavec deux roues\n"
        "99999999-n\tfra:lemma\trien\n",
        encoding="utf-8",
    )
    return folder


def test_words_of_another_language(hoicli: Hoicli, french: Path, tmp_path: Path) -> None:
    """They find WordNet 3.0's senses; words it does not have are read as English."""
    labels = [option for label in ("cheval", "vélo de course", "horses", "rien") for option in ("--senses", label)]
    found = hoicli("vocab", "--wordnet", f"{french}:fra", *labels)
    senses = [(row["label"], row["sense"]) for row in parsed(found.out) if row["pos"] == "n"]
    assert senses[:2] == [("cheval", "horse.n.01"), ("vélo de course", "bicycle.n.01")]
    assert ("horses", "horse.n.01") in senses
    assert "1 without a sense in WordNet: 'rien'" in found.err
    lexicon.use_wordnet(f"{french}:fra")
    assert candidates("monter", "v") == ["ride.v.02"]
    assert ground_truth_sense("hico", "ride", "horse") == ("ride.v.01", "horse.n.01")
    assert str(lexicon.open_wordnet().signature).startswith("omw.fra.")
    assert len(kept(tmp_path)) == 1
    assert hoicli("vocab", "--wordnet", f"{french}:fra", "--senses", "cheval").err == ""


def test_a_language_that_is_not_there(hoicli: Hoicli, french: Path) -> None:
    found = hoicli("vocab", "--wordnet", f"{french}:jpn", "--senses", "ride")
    assert (found.code, found.err) == (2, f"hoicli: --wordnet {french}:jpn: no such language in it; it has fra\n")
