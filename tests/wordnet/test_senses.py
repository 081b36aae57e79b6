"""Labels to senses: what the published examples say, what every benchmark's labels have, and what any text may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.vocabulary.dataset_content import coco_objects
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import (
    CURATED,
    _table,
    candidates,
    candidates_with_lemmas,
    ground_truth_sense,
    object_choice,
    verb_choice,
)
from tests.support.project import Hoicli, parsed, records_of

WN = open_wordnet()


@pytest.mark.parametrize(("pos", "label", "expected"), [
    ("v", "ride", ["ride"]),
    ("v", "riding", ["ride", "rid"]),  # WordNet's rules cannot tell
    ("v", "is riding", ["ride", "rid"]),
    ("v", "Ride a horse", ["ride"]),
    ("v", "sit_on", ["sit"]),
    ("v", "talk_on_phone", ["talk"]),
    ("v", "hop on", ["hop_on", "hop"]),
    ("v", "picking up", ["pick_up", "pick"]),
    ("v", "pick the apple up", ["pick_up", "pick"]),
    ("v", "be", ["be"]),
    ("v", "texting on", ["text"]),  # ours: WordNet has no such verb
    ("v", "no_interaction", []),
    ("v", "zorbing", []),
    ("n", "dining_table", ["dining_table", "table", "dining"]),
    ("n", "hot dog", ["hot_dog", "dog"]),
    ("n", "wine glass", ["wineglass", "glass", "wine"]),
    ("n", "T-shirt", ["t-shirt", "shirt", "t"]),
    ("n", "the motorcycle handlebar", ["handlebar", "motorcycle"]),
    ("n", "big fire hydrant", ["fire_hydrant", "hydrant", "fire"]),
    ("n", "cup of coffee", ["coffee", "cup"]),
    ("n", "skis", ["ski"]),
    ("n", "a", ["a"]),
    ("n", "stop sign", ["stop_sign", "sign", "stop"]),  # ours, then WordNet's
    ("n", "", []),
    ("n", "...", []),
])  # fmt: skip
def test_the_words_of_a_label(pos: str, label: str, expected: list[str]) -> None:
    assert list(dict.fromkeys(candidates_with_lemmas(WN, label, pos).values())) == expected


def test_the_order_is_wordnets_within_a_lemma_and_each_sense_comes_once() -> None:
    assert candidates("hot dog", "n")[:3] == ["hotdog.n.01", "hotdog.n.02", "frank.n.02"]
    assert candidates("hot dog", "n")[3] == "dog.n.01"
    assert candidates("hot dog", "n").count("frank.n.02") == 1  # a sense of "dog" too
    assert candidates("ride", "v") == WN.senses("ride", "v")
    assert candidates("lay", "v") == WN.senses("lay", "v") + WN.senses("lie", "v")


def test_a_name_of_a_sense_is_that_sense() -> None:
    assert candidates("ride.v.10", "v") == ["ride.v.10"]
    assert candidates("motorcar.n.1", "n") == ["car.n.01"]
    assert candidates("ride.v.10", "n") == candidates("ride.v.99", "v") == []


@given(st.text(max_size=40), st.sampled_from(["n", "v"]))
def test_any_text_has_only_senses_there_are(label: str, pos: str) -> None:
    found = candidates(label, pos)
    assert len(found) == len(set(found))
    for sense in found:
        assert WN.graph.names[WN.index(sense)] == sense
        assert WN.graph.pos(WN.index(sense)) == pos


WORDS = st.lists(
    st.sampled_from(["ride", "riding", "hot", "dogs", "fire", "hydrant", "up", "of", "the", "is", "pick"]), min_size=1
)


@given(WORDS, st.sampled_from(["n", "v"]))
def test_spaces_underscores_and_case_do_not_matter(words: list[str], pos: str) -> None:
    label = candidates(" ".join(words), pos)
    assert candidates("_".join(words), pos) == label
    assert candidates(f"  {'  '.join(words).upper()}.", pos) == label
    assert sorted(candidates("-".join(words), pos)) == sorted(label)


def test_the_sense_of_a_verb_depends_on_its_object() -> None:
    rides = {name: ground_truth_sense("hico", "ride", name)[0] for name in ("bicycle", "horse", "train")}
    assert rides == {"bicycle": "ride.v.10", "horse": "ride.v.01", "train": "ride.v.02"}
    assert ground_truth_sense("hico", "tie", "tie") == ("tie.v.05", "necktie.n.01")
    assert ground_truth_sense("hico", "tie", "boat") == ("tie.v.01", "boat.n.01")
    kite, plane = (verb_choice("hico", "fly", name) for name in ("kite", "airplane"))
    assert kite is not None
    assert plane is not None
    assert [str(one.why).endswith("; fly.v.05 would fit better") for one in (kite, plane)] == [True, False]


def pairs(dataset: str) -> list[tuple[str, str]]:
    vocabulary = load(dataset)
    if dataset == "vcoco":  # its interactions are actions with roles; any object may fill them
        return [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    return list(vocabulary.interactions)


@pytest.mark.parametrize("dataset", CURATED)
def test_every_label_has_a_sense_which_is_among_its_candidates(dataset: str) -> None:
    """So a prediction of the very label is as similar as can be."""
    for verb, name in pairs(dataset):
        of_verb, of_object = ground_truth_sense(dataset, verb, name)
        if verb == load(dataset).no_interaction:
            assert of_verb is None
        else:
            assert of_verb in candidates(verb, "v"), verb
        assert of_object in candidates(name, "n"), name
    for verb in load(dataset).verbs:
        if verb != load(dataset).no_interaction:
            assert ground_truth_sense(dataset, verb, None)[0] in candidates(verb, "v")


def test_the_table_names_what_there_is() -> None:
    """Every sense exists under its own name, every exception is for an object of the dataset, in one sense only."""
    table = _table()
    used: list[str] = [sense for pos in ("n", "v") for senses in table["added"][pos].values() for sense in senses]
    for dataset, entries in table["verbs"].items():
        assert set(entries) <= set(load(dataset).verbs)
        for verb, entry in entries.items():
            if isinstance(entry, str):
                used.append(entry)
                continue
            assert set(entry) <= {"sense", "for", "better", "why"}, verb
            used += [entry["sense"], *entry.get("for", {}), *entry.get("better", {}).values()]
            named = [name for objects in entry.get("for", {}).values() for name in objects]
            assert len(named) == len(set(named))
            assert set(named) <= set(load(dataset).objects), verb
    for entry in table["objects"]["coco"].values():
        used.append(entry if isinstance(entry, str) else entry["sense"])
    assert [WN.graph.names[WN.index(sense)] for sense in used] == used
    assert set(table["objects"]["coco"]) == set(coco_objects())
    assert set(load("hico").verbs) - set(table["verbs"]["hico"]) == {"no_interaction"}
    assert set(load("swig").verbs) == set(table["verbs"]["swig"])


def test_labels_of_no_dataset() -> None:
    assert ground_truth_sense("hico", "zorb", "unicorn") == (None, None)
    assert ground_truth_sense("swig", "zorbing", "zorb") == (None, None)
    assert ground_truth_sense("vcoco", "walk", None) == ("walk.v.01", None)
    assert ground_truth_sense("hico", "sit on", "dining table") == ("sit.v.01", "dining_table.n.01")
    assert object_choice("hico", "unicorn") is None


def test_the_command_shows_candidates_and_the_choice(hoicli: Hoicli) -> None:
    found = parsed(hoicli("vocab", "--senses", "ride motorcycle").out)
    assert list(found[0]) == ["label", "pos", "sense", "gloss", "lemmas", "chosen", "class", "why"]
    assert [row["sense"] for row in found] == [*candidates("ride", "v"), "motorcycle.n.01"]
    assert [(row["sense"], row["gloss"]) for row in found if row["chosen"]] == [
        ("ride.v.10", "sit on and control a vehicle"),
        ("motorcycle.n.01", "a motor vehicle with two wheels and a strong frame"),
    ]


@pytest.mark.parametrize(("arguments", "chosen"), [
    (["ride horse"], ["ride.v.01", "horse.n.01"]),
    (["fly_kite"], ["fly.v.03", "kite.n.03"]),
    (["train"], ["discipline.v.01", "train.n.01"]),
    (["ride scooter"], ["ride.v.10"]),
    (["ride", "--senses", "hold"], ["ride.v.10", "hold.v.02"]),
    (["stand under stop sign"], ["stand.v.01", "street_sign.n.01"]),
    (["lay", "vcoco"], ["lie.v.02"]),
    (["riding horse", "swig"], ["ride.v.01", "horse.n.01"]),
    (["no_interaction"], []),
])  # fmt: skip
def test_what_the_command_takes_a_label_for(hoicli: Hoicli, arguments: list[str], chosen: list[str]) -> None:
    assert [row["sense"] for row in records_of(hoicli("vocab", "--senses", *arguments)) if row["chosen"]] == chosen


def test_the_reason_is_shown(hoicli: Hoicli) -> None:
    (kite,) = [
        row for row in parsed(hoicli("vocab", "--senses", "fly kite").out) if row["chosen"] and row["pos"] == "v"
    ]
    assert kite["why"] == "published, for a kite too, of which it is not true; fly.v.05 would fit better"
    found = parsed(hoicli("vocab", "--senses", "hot dog").out)
    assert [row["why"] for row in found if row["sense"] == "dog.n.01"] == ["from 'dog'"]


def test_labels_without_a_sense_are_counted(hoicli: Hoicli) -> None:
    result = hoicli("vocab", "--senses", "zorb", "--senses", "🙂", "--senses", "horse")
    assert result.code == 0
    assert result.err == (
        "hoicli: 2 without a sense in WordNet: 'zorb', '🙂'; such a label is similar only to an equal one\n"
    )
    assert {row["label"] for row in parsed(result.out)} == {"horse"}


def test_a_wrong_call(hoicli: Hoicli) -> None:
    assert hoicli("vocab", "coco", "--senses", "ride").code == 2


def test_a_long_run_of_separators_costs_no_more_than_its_length() -> None:
    """It took the square of it: a minute for 30 kB."""
    assert candidates_with_lemmas(WN, "ride" + "/" * 1_000_000, "v") == candidates_with_lemmas(WN, "ride", "v")


@pytest.mark.parametrize(("label", "plain"), [
    ("tennis\u2011racket", "tennis-racket"),
    ("caf\u00e9", "cafe"),
    ("\u201cdog\u201d", "dog"),
    ("\uff44og\u2026", "dog"),
])  # fmt: skip
def test_typographic_signs_hide_no_sense(label: str, plain: str) -> None:
    assert candidates(label, "n") == candidates(plain, "n") != []
