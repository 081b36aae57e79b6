"""HICO-DET's label sets: counts, orders and splits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hoicli.errors import DataError, UsageError
from hoicli.vocabulary.dataset_content import coco_objects
from hoicli.vocabulary.datasets import load, suggestion
from hoicli.vocabulary.labels import normalise, normalise_spelling
from tests.support.project import Hoicli, MonkeyPatch, dumped, parsed

HICO = load("hico")


def test_the_numbers_everyone_quotes() -> None:
    assert (len(HICO.verbs), len(HICO.objects), len(HICO.interactions)) == (117, 80, 600)
    assert {name: len(members) for name, members in HICO.groups.items()} == {"rare": 138, "non_rare": 462}
    assert len(HICO.no_interaction_ids) == 80
    assert HICO.verbs.index("no_interaction") == 57
    assert len(HICO.test_images) == 9658
    assert (HICO.test_images[0], HICO.test_images[-1]) == ("HICO_test2015_00000001", "HICO_test2015_00009767")


TYPOGRAPHIC = [
    "tennis\u2011racket", "tennis\u2010racket", "tennis\u2013racket", "tennis\u2212racket", "\u201ctennis-racket\u201d",
    "\u2018tennis\u2014racket\u2019", "tennis-\u200bracket", "\uff54ennis-racket", "tennis-racket\u00a0",
    "\u00abtennis-racket\u00bb", "\u2026tennis-racket\u2026",
]  # fmt: skip


@pytest.mark.parametrize("label", TYPOGRAPHIC)
def test_typographic_signs_are_signs(label: str) -> None:
    assert normalise_spelling(label) == normalise(label) == "tennis-racket"
    assert label in replace(HICO, objects=("tennis-racket",)).object_ids


def test_letters_stay_letters() -> None:
    assert normalise_spelling("sit on") == normalise_spelling("sit\u00a0on") == "sit_on"
    assert (
        normalise_spelling("'sit on'") == "'sit_on'"
    )  # plain signs are as they were: digests of ground truth have them
    labels = ["B\u00e4r", "h\u00e4lt", "\u732b"]
    assert [normalise_spelling(label) for label in labels] == labels
    assert normalise_spelling("driver\u2019s seat") == "driver's_seat"


def test_the_three_object_orders() -> None:
    assert HICO.objects[:3] == ("person", "bicycle", "car")
    assert HICO.alphabetical_objects[8] == "bench"
    assert HICO.objects.index("bench") == 13
    assert coco_objects()["bench"] == 15
    assert coco_objects()["toothbrush"] == 90


def test_interactions_are_grouped_by_object() -> None:
    assert HICO.interactions[0] == ("board", "airplane")
    assert HICO.interactions_of("airplane") == list(range(10))
    assert HICO.interactions_of("bicycle") == list(range(10, 24))
    assert HICO.interactions_of("person") == list(range(160, 170))


def test_the_zero_shot_splits() -> None:
    sizes = {name: len(unseen) for name, unseen in HICO.unseen.items()}
    assert sizes == {f"uc{k}": 120 for k in range(5)} | {
        "rare_first": 120, "non_rare_first": 120, "unseen_object": 100, "unseen_verb": 84, "unseen_action": 100,
    }  # fmt: skip
    objects = {HICO.interactions[number][1] for number in HICO.unseen["unseen_object"]}
    assert HICO.unseen["unseen_object"] == {n for n, (_, name) in enumerate(HICO.interactions) if name in objects}
    verbs = {HICO.interactions[number][0] for number in HICO.unseen["unseen_verb"]}
    assert HICO.unseen["unseen_verb"] == {n for n, (verb, _) in enumerate(HICO.interactions) if verb in verbs}


@pytest.mark.parametrize(("name", "split"), [
    ("RF-UC", "rare_first"), ("nf-uc", "non_rare_first"), ("UO", "unseen_object"), ("uv", "unseen_verb"),
    ("uc3", "uc3"), ("rare-first", "rare_first"),
])  # fmt: skip
def test_splits_go_by_the_papers_names_too(name: str, split: str) -> None:
    assert HICO.split(name) == split


def test_names() -> None:
    assert normalise(" dining table\n") == "dining_table"
    assert suggestion("dining table", HICO, "object") == "did you mean 'dining_table'?"


def test_the_published_lists(shared: Path) -> None:
    published = json.loads((shared / "data/hico-det/hico_vocabulary.json").read_text())
    assert [[n, verb, name] for n, (verb, name) in enumerate(HICO.interactions)] == [
        [n, verb, normalise(name)] for n, verb, name in published["interactions"]
    ]
    assert sorted(HICO.groups["rare"]) == published["rare_ids"]
    action = json.loads((shared / "data/hico-det/unseen_action.json").read_text())
    lists = {**published["zero_shot_unseen_ids"], action["name"]: action["positions"]}
    assert {name: sorted(ids) for name, ids in HICO.unseen.items()} == {n: sorted(ids) for n, ids in lists.items()}
    assert {HICO.interactions[number] for number in HICO.unseen["unseen_action"]} == {
        (verb, normalise(name)) for verb, name in action["unseen"]
    }
    images = json.loads((shared / "data/hico-det/instances_test2015.json").read_text())["filenames"]
    assert [f"{name}.jpg" for name in HICO.test_images] == images


def test_the_command_lists_everything(hoicli: Hoicli) -> None:
    for what, count in (("interactions", 600), ("verbs", 117), ("objects", 80), ("splits", 10), ("images", 9658)):
        assert len(parsed(hoicli("vocab", "hico", "--list", what).out)) == count
    assert hoicli("vocab", "--list", "nouns").code == 2


SITE = {"verbs": ["ride"], "objects": ["person", "bicycle"], "interactions": [["ride", "bicycle"]]}


@pytest.mark.parametrize("value", [SITE, SITE | {"verbs": []}, "site.json"])
def test_another_package_adds_a_dataset(hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, value: Any) -> None:
    """It is found by its name, checked as a file is, and signed with the package that it is from."""
    dist = SimpleNamespace(name="hoi-site", version="1.2")

    def entry_points(*, group: str, name: str = "site") -> list[SimpleNamespace]:
        entry = SimpleNamespace(name="site", dist=dist, load=lambda: value)
        return [entry] if (group, name) == ("hoicli.datasets", "site") else []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    if value is not SITE:
        with pytest.raises(DataError, match=r"^site of hoi-site@1.2: (verbs: \[\] is no list|null is no object)"):
            load("site")
        return
    hoi = {"subject": 0, "object": 1, "verb": "ride"}
    record = {"image_id": "a", "boxes": [[0, 0, 9, 9], [3, 3, 9, 9]], "labels": ["person", "bicycle"], "hois": [hoi]}
    gt = dumped(tmp_path / "gt.jsonl", record)
    predictions = dumped(tmp_path / "predictions.jsonl", record | {"hois": [hoi | {"score": 0.5}]})
    found = hoicli("eval", "--dataset", "site", "--gt", gt, predictions)
    assert (found.code, found.err) == (0, "")
    row = json.loads(found.out.splitlines()[0])
    assert row["value"] == 100.0
    assert "|data:site-hoi-site@1.2|" in row["signature"]
    with pytest.raises(UsageError, match=r"hoi-coco, site, or give a FILE.json"):
        load("sight")
