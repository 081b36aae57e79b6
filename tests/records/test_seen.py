"""The dataset that a ground truth shows: what `vocab --from` writes, and what it says on the way."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hoicli.commands.doctor import schema_text
from hoicli.records.seen import dataset_name
from tests.support.project import FIXTURES, Hoicli, written

Record = dict[str, Any]
OWN = FIXTURES / "own"


def scene(image_id: str, *triplets: tuple[str, str, str]) -> Record:
    """A record with a pair of boxes for each (subject, verb, object)."""
    record: Record = {"image_id": image_id, "boxes": [], "labels": [], "hois": []}
    for subject, verb, name in triplets:
        first = len(record["boxes"])
        record["boxes"] += [[0, 0, 9, 9], [2, 2, 5, 5]]
        record["labels"] += [subject, name]
        record["hois"].append({"subject": first, "object": first + 1, "verb": verb})
    return record


def test_everything_seen_is_listed(hoicli: Hoicli, tmp_path: Path) -> None:
    gt = scene("a", ("worker", "wear", "helmet"), ("visitor", "hold", "hammer"), ("worker", "help", "visitor"))
    gt["boxes"].append([0, 0, 1, 1])
    gt["labels"].append("crane")  # in no triplet
    gt["image_hois"] = [["no_interaction", "ladder"]]
    train = [scene(str(n), ("worker", "wear", "helmet"), ("worker", "carry", "plank")) for n in range(10)]
    path = written(tmp_path / "n.jsonl", [gt, scene("b", ("worker", "no_interaction", "hammer"))])
    result = hoicli("vocab", "--from", path, "--train", written(tmp_path / "train.jsonl", train))
    assert json.loads(result.out) == {
        "name": "n",
        "subjects": ["visitor", "worker"],
        "verbs": ["carry", "help", "hold", "no_interaction", "wear"],
        "objects": ["crane", "hammer", "helmet", "ladder", "plank", "visitor"],
        "interactions": [["hold", "hammer"], ["no_interaction", "hammer"], ["wear", "helmet"], ["help", "visitor"]],
        "no_interaction": "no_interaction",
        "training_counts": [0, 0, 10, 0],
        "cuts": {"rare": 10, "non_rare": None},
    }
    assert result.err.splitlines() == [
        "hoicli: one interaction (carry plank) is in the training set alone: no class of the dataset",
        "hoicli: 3 interactions (help visitor, ...) are not in the training set: rare",
        "hoicli: n: 5 verbs, 6 objects, 4 interactions in 2 images; subjects: worker (3), visitor (1)",
    ]
    jsonschema.Draft202012Validator(json.loads(schema_text("dataset"))).validate(json.loads(result.out))


def test_the_order_of_lines_changes_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    lines = (OWN / "gt.jsonl").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    shuffled = tmp_path / "gt.jsonl.gz"
    shuffled.write_bytes(gzip.compress("".join(lines).encode()))
    options = ("--train", OWN / "train.jsonl", "--name", "site")
    assert (
        hoicli("vocab", "--from", shuffled, *options).out == hoicli("vocab", "--from", OWN / "gt.jsonl", *options).out
    )


def test_spellings_of_one_label_are_named(hoicli: Hoicli, tmp_path: Path) -> None:
    triplets = ("worker", "wear", "hard hat"), ("worker", "wear", "Hard_hat"), ("worker", "Wear", "hard hat")
    path = written(tmp_path / "gt.jsonl", [scene("a", *triplets)])
    said = hoicli("vocab", "--from", path, "-o", tmp_path / "own.json").err.splitlines()
    assert said[0].startswith("hoicli: verbs 'Wear' (1) and 'wear' (2) differ in case, spaces or underscores alone")
    assert said[1].startswith("hoicli: labels 'Hard_hat' (1) and 'hard hat' (2) differ in case")
    found = hoicli("eval", "--dataset", tmp_path / "own.json", "--gt", path, path)
    assert "score: missing" in found.err  # the labels are known, as they are spelt


def test_one_label_in_several_spellings_is_one(hoicli: Hoicli, tmp_path: Path) -> None:
    """Spaces and underscores, and Unicode's forms (NFC and NFD); letters of two scripts in a word are asked about."""
    triplets = [("worker", "sit on", "caf\u00e9"), ("worker", "sit_on", "cafe\u0301"), ("worker", "sit on", "c\u0430r")]
    path = written(tmp_path / "gt.jsonl", [scene("a", *triplets)])
    result = hoicli("vocab", "--from", path, "-o", tmp_path / "own.json")
    assert result.code == 0, result.err
    content = json.loads((tmp_path / "own.json").read_text())
    assert (content["verbs"], content["objects"]) == (["sit on"], ["caf\u00e9", "c\u0430r"])
    said = result.err.splitlines()
    assert "verbs 'sit on' (2) and 'sit_on' (1) are one label" in said[0]
    assert "are one label in several spellings: 'caf\u00e9' stands for all" in said[1]
    assert [line for line in said if "several scripts" in line] == [said[2]]
    assert "'c\u0430r' (1)" in said[2]
    twice = {**content, "verbs": ["sit on", "sit_on"]}
    (tmp_path / "own.json").write_text(json.dumps(twice))
    refused = hoicli("vocab", tmp_path / "own.json")
    assert (refused.code, "verbs[1]: 'sit_on' is there already, at verbs[0]" in refused.err) == (1, True)


def test_typographic_signs_make_no_second_class(hoicli: Hoicli, tmp_path: Path) -> None:
    objects = "hard-hat", "hard-hat", "hard\u2011hat", "hard\u2013hat", "\u201chard-hat\u201d"
    scenes = [scene(f"{at}", ("worker", "wear", name)) for at, name in enumerate(objects)]
    path = written(tmp_path / "gt.jsonl", scenes)
    assert hoicli("vocab", "--from", path, "-o", tmp_path / "own.json").code == 0
    assert json.loads((tmp_path / "own.json").read_text())["objects"] == ["hard-hat"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (scene("a", ("worker", "wear", " hat")), 'labels[1]: " hat" is empty or has spaces around it; strip it, here'),
        (scene("a", ("worker", "", "hat")), 'hois[0].verb: "" is empty or has spaces around it'),
        (scene("a", ("worker", "we\nar", "hat")), 'hois[0].verb: "we\\nar" is too long or has control characters'),
        (
            scene("a", ("worker", "we|ar", "hat")),
            'hois[0].verb: "we|ar" has a |, which parts the settings of signatures',
        ),
        ({"image_id": "a", "boxes": [], "labels": [], "hois": 3}, "hois: a number; it must be an array"),
        ({"images": [], "annotations": []}, "image_id: missing; every image line names its image"),
    ],
)
def test_what_no_dataset_can_have(hoicli: Hoicli, tmp_path: Path, record: Record, message: str) -> None:
    path = written(tmp_path / "gt.jsonl", [scene("z", ("worker", "wear", "helmet")), record])
    result = hoicli("vocab", "--from", path, "-o", tmp_path / "own.json")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{path}:2: {message}")
    assert not (tmp_path / "own.json").exists()


def test_an_image_twice_and_no_triplets(hoicli: Hoicli, tmp_path: Path) -> None:
    one = scene("a", ("worker", "wear", "helmet"))
    twice = hoicli("vocab", "--from", written(tmp_path / "gt.jsonl", [one, one]))
    assert (twice.code, "image 'a' is at" in twice.err) == (1, True)
    skipped = hoicli("vocab", "--on-error", "skip", "--from", tmp_path / "gt.jsonl")
    assert (skipped.code, "skipped 1 line; the first: " in skipped.err) == (0, True)
    none = hoicli("vocab", "--from", written(tmp_path / "gt.jsonl", [scene("a")]))
    assert (none.code, "no triplets in it" in none.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--train", OWN / "gt.jsonl"), "--train goes with --from GT.jsonl"),
        (("hico", "--from", OWN / "gt.jsonl"), "--from writes the file of a dataset: leave DATASET out"),
        (
            ("--from", OWN / "gt.jsonl", OWN / "train.jsonl"),
            f"{OWN / 'train.jsonl'}: --from takes one file: join JSONL",
        ),
        (("--from", OWN / "gt.jsonl", "--senses", "ride"), "--from writes the file of a dataset: leave --senses out"),
        (("--from", OWN / "gt.jsonl", "--list", "verbs"), "--from writes the file of a dataset: leave --list out"),
        (("--from", OWN / "gt.jsonl", "--wordnet", "x"), "--wordnet goes with --senses LABEL"),
        (("--senses", "ride", "--list", "verbs"), "--senses lists senses: leave --list verbs out"),
        (("--from", OWN / "gt.jsonl", "--format", "csv"), "--format: no rows are written here; leave it out"),
        (("--from", OWN / "gt.jsonl", "-o", "hico.json"), "--from: hico is a dataset of hoicli's own"),
    ],
)
def test_wrong_calls(hoicli: Hoicli, arguments: tuple[object, ...], message: str) -> None:
    result = hoicli("vocab", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


@pytest.mark.parametrize(
    ("path", "name"),
    [("data/own.json.gz", "own"), ("my site.json", "my_site"), ("-", ""), ("/x/gt-v2.jsonl", "gt-v2"), ("ß.json", "")],
)
def test_names_from_paths(path: str, name: str) -> None:
    assert dataset_name(path) == name
