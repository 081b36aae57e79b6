"""Words as people and models say them, as classes of a dataset: the lists, each rule, and what any text may do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.converters.vlm.word_table import read_synonyms
from hoicli.errors import DataError
from hoicli.vocabulary.datasets import DATASETS, load
from hoicli.wordnet.spoken_words import SpokenWords
from hoicli.wordnet.word_uses import SAME_WORD, words_table
from tests.support.project import ROOT, Hoicli, saved
from tests.support.spoken_words import LISTS, table

HICO = load("hico")
WORDS = SpokenWords(HICO)


def test_the_table_of_the_docs_is_that_of_the_lists() -> None:
    assert table([ROOT / path for path in LISTS]) in (ROOT / "docs/vlm.md").read_text()


@pytest.mark.parametrize(("phrase", "object_", "verb"), [
    ("has been slowly riding", None, "ride"),
    ("is ridden by", None, None),  # the person would be acted upon
    ("sits", None, None),
    ("sits", "bench", "sit_on"),
    ("sits", "dining_table", "sit_at"),
    ("sits in", "chair", "sit_on"),
    ("are seated at", None, "sit_at"),
    ("sitting on top of the bench", None, "sit_on"),
    ("holding hands", None, None),
    ("riding a bike", "bicycle", "ride"),
    ("riding a bike", "horse", None),
    ("getting on", "bus", "board"),
    ("getting on", "bicycle", "hop_on"),
    ("getting on", None, None),
    ("setting up", "kite", "assemble"),
    ("placing", "umbrella", "set"),
    ("placing", None, None),
    ("picks the apple up", None, "pick_up"),
    ("turning on", None, None),
    ("about to ride", None, None),
    ("never holds", None, None),
    ("No interaction with", None, "no_interaction"),
    ("is not interacting with", None, "no_interaction"),
    ("gives a hug to", None, "hug"),
    ("gives a ride to", None, None),
    ("takes the train", None, None),
    ("drinks out of", None, "drink_with"),
    ("she's in the middle of riding", None, "ride"),
    ("gives the dog a hug", None, "hug"),
    ("makes adjustments to", None, "adjust"),
    ("took a seat on", None, "sit_on"),
    ("picked it up", None, "pick_up"),
    ("is sat back on", None, "sit_on"),
    ("applies paint to", None, "paint"),
    ("dressed in", None, "wear"),
    ("puts on", None, None),
    ("dines at", None, "eat_at"),
    ("dining", None, None),
    ("brushing his teeth with", None, "brush_with"),
    ("brushing his hair with", None, None),
    ("goes for a walk with", None, "walk"),
    ("having lunch at", None, "eat_at"),
    ("gives a break to", None, None),
    ("is in control of", None, "control"),
    ("peels the skin off", None, "peel"),
    ("signs his name on", None, "sign"),
    ("dries with a towel", None, "dry"),
    ("scratching behind the ears of", None, "scratch"),
    ("wearing on her back", None, "wear"),
    ("sitting on the ground", "bench", None),
    ("riding down the street", "bicycle", "ride"),
    ("walking past the shop with", "car", None),
    ("washing his hands in", "sink", None),
    ("drags behind him", None, "drag"),
    ("rides around on", None, "ride"),
    ("pouring wine from", None, "pour"),
    ("gets off", "bus", "exit"),
    ("gets off", "bicycle", None),
    ("picks it up off the ground", None, "pick_up"),
    ("isn't riding", None, None),
    ("holding a slice of", "pizza", "hold"),
    ("wearing on back", None, "wear"),
])  # fmt: skip
def test_verbs(phrase: str, object_: str | None, verb: str | None) -> None:
    assert WORDS.look_up_verb(phrase, object_).label == verb


@pytest.mark.parametrize(("name", "label", "why"), [
    ("tiger", None, "may be person (tiger.n.01), or else tiger.n.02"),
    ("colts", "horse", "a kind of horse"),  # Colt is a pistol, with a capital
    ("bus driver", "person", "a kind of person"),
    ("unicorn", None, "no class means this"),  # among WordNet's persons
    ("phone", None, "wider than cell_phone"),
    ("basketball", "sports_ball", "a kind of sports_ball"),  # not the game
    ("bike", "bicycle", "WordNet's first sense is the motorcycle; people and captions mean the bicycle"),
    ("toy car", None, "an imitation"),
    ("slice of pizza", "pizza", "a kind of pizza: it has more words"),
    ("woman with a bicycle", "person", "a kind of person"),
    ("field mouse", None, "no class means this"),
    ("puma", None, "no class means this"),
    ("", None, "no word"),
    ("coffee mug", "cup", "a kind of cup"),
    ("notebook computer", "laptop", "younger than WordNet 3.0, which has it beside the laptop"),
    ("badminton racket", None, "no class means this"),
    ("dog on bench", "dog", "a kind of dog: it has more words"),
    ("computer mice", "mouse", "a kind of mouse: it has more words"),
    ("dog#2", "dog", "a form of dog"),
    ("hairdryers", "hair_drier", "hair dryer and hair_drier mean the same"),
    ("dining room table", "dining_table", "WordNet has it beside the dining table"),
    ("hot-dogs", "hot_dog", "a form of hot_dog"),
    ("plant in a pot", "potted_plant", "pot plant and potted_plant mean the same"),
    ("stuffed teddy", "teddy_bear", "teddy and teddy_bear mean the same"),
    ("a" * 1_000_000, None, "longer than 300 characters"),
])  # fmt: skip
def test_objects_and_why(name: str, label: str | None, why: str) -> None:
    meaning = WORDS.look_up_object(name)
    assert (meaning.label, meaning.why) == (label, why)


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_label_is_itself_and_so_are_its_spellings(dataset: str) -> None:
    vocabulary = load(dataset)
    words = SpokenWords(vocabulary)
    for labels, look_up in ((vocabulary.verbs, words.look_up_verb), (vocabulary.objects, words.look_up_object)):
        for label in labels:
            meaning = look_up(label.replace("_", " "))
            assert (meaning.label, meaning.how) == (label, "spelling")


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from([*words_table()["prepositions"],
    "is", "has", "the", "two", "riding", "held", "bench", "bike", "of", "pair", "toy", "up", "2", "fly", "not",
])).map(" ".join)), st.sampled_from([None, "bench", "kite"]))  # fmt: skip
def test_any_text_is_a_class_or_none(text: str, object_: str | None) -> None:
    verb, name = WORDS.look_up_verb(text, object_), WORDS.look_up_object(text)
    assert verb.label is None or verb.label in HICO.verbs
    assert name.label is None or name.label in HICO.objects
    assert all((meaning.label is None) == (meaning.how == "none") and meaning.why for meaning in (verb, name))


def test_the_users_synonyms_and_the_aliases_go_before_wordnet() -> None:
    words = SpokenWords(replace(HICO, aliases={"table": "dining_table"}), {"Bike": "motorcycle", "gallops": "ride"})
    assert [words.look_up_object(name).label for name in ("table", "bike")] == ["dining_table", "motorcycle"]
    assert words.look_up_verb("gallops").how in SAME_WORD


def test_signs_alone_are_no_word_and_marks_are_letters() -> None:
    words = SpokenWords(replace(HICO, aliases={"\u0915\u093f": "bench", "\u0915\u0940": "couch"}), {"!": "cup"})
    assert [words.look_up_object(name).label for name in ("\u0915\u093f", "\u0915\u0940", "?")] == [
        "bench",
        "couch",
        None,
    ]


def test_a_word_is_looked_up_once() -> None:
    words = SpokenWords(HICO)
    with patch("hoicli.wordnet.spoken_objects.uses_of", side_effect=lambda *_: {}) as looked_up:
        for _ in range(50):
            words.look_up_object("helmet")
    assert looked_up.call_count == 1


def test_decisions_have_reasons_and_classes() -> None:
    labels = {*HICO.verbs, *HICO.objects, "lie", "sit"}
    for decided in (words_table()["nouns"], words_table()["verbs"]):
        for word, (label, why, *_) in decided.items():
            assert label is None or label in labels, word
            assert len(why) > 10, word


def test_words_of_answers_are_counted_and_quoted(hoicli: Hoicli, tmp_path: Path) -> None:
    said = [
        ("is riding", "bike"),
        ("is riding", "bike"),
        ("drives past", "truck"),
        ("petting", "lion"),
        ("owns", "dog"),
    ]
    pair = '"person_box": [1, 2, 3, 4], "object_box": [5, 6, 7, 8]'
    answers, words, synonyms = tmp_path / "a.jsonl", tmp_path / "words.csv", tmp_path / "synonyms.csv"
    lines = [f'{{"file_name": "{number}.jpg", "response": [{{{pair}, "verb": "{verb}", "object": "{name}"}}]}}\n'
             for number, (verb, name) in enumerate(said)]  # fmt: skip
    answers.write_text("".join(lines))
    call = ("convert", "--from", "vlm", "--coords", "pixels", answers)
    synonyms.write_text("# ours\nowns,hold\n")
    result = hoicli(*call, "--to-vocabulary", "--synonyms", synonyms, "--explain-words", words)
    assert 'words mapped to hico\'s: 5: "bike" to bicycle 2, "is riding" to ride 2, "owns" to hold 1\n' in result.err
    assert f'a verb outside the vocabulary: 1 (the first: {answers}:3): "drives past" 1\n' in result.err
    assert f'an object outside the vocabulary: 1 (the first: {answers}:4): "lion" 1\n' in result.err
    assert words.read_text().splitlines()[1] == f"object,bike,,bicycle,table,{words_table()['nouns']['bike'][1]},,2"
    assert result.out.count('"verb":"ride"') == 2
    assert result.out.count('"label":"hold"') == 0
    kept = hoicli(*call)  # another form of a label is mapped without the option, and nothing is left out
    assert [kept.out.count(f'"verb":"{verb}"') for verb in ("ride", "pet", "drives_past", "owns")] == [2, 1, 1, 1]
    assert '"lion"' in kept.out
    assert 'words mapped to hico\'s: 3: "is riding" to ride 2, "petting" to pet 1\n' in kept.err  # no kinds, which stay
    synonyms.write_text("bike,bicycle\nowns\n")
    wrong = hoicli(*call, "--synonyms", synonyms)
    assert (wrong.code, wrong.err) == (
        1, f"{synonyms}:2: not two columns; give a word, a comma or tab, and a verb or an object\n",
    )  # fmt: skip
    synonyms.write_text("owns\tholdd\n")
    problem = f"{synonyms}:1: 'holdd' is no verb and no object of hico; did you mean 'hold'?"
    assert problem in hoicli(*call, "--synonyms", synonyms).err


@pytest.mark.parametrize(("content", "problem"), [
    (b"sep=;\nowns;hold\n", None),
    (b'\xef\xbb\xbf# a "remark\nowns,hold\n', None),
    ("owns;hold\n".encode("utf-16"), None),
    (b"\xe9wns,hold\n", "1: not in UTF-8"),
    (b"owns,hold\nOwns,carry\n", "2: 'Owns' occurs twice"),
    (b"ride,hold\n", "1: 'ride' is a class of hico itself"),
    (b"a" * 200_000 + b",hold\n", "1: no row of a CSV"),
])  # fmt: skip
def test_synonyms_as_programs_save_them(tmp_path: Path, content: bytes, problem: str | None) -> None:
    path = saved(tmp_path / "synonyms.csv", content)
    if problem is None:
        assert read_synonyms(str(path), HICO) == {"owns": "hold"}
    else:
        with pytest.raises(DataError) as error:
            read_synonyms(str(path), HICO)
        assert f"{path}:{problem}" in str(error.value)
