"""The dataset that a ground truth shows: what `vocab --from` writes, and what it says on the way; and the digest of
ground truth: what changes it, what does not, and that both readers agree."""

from __future__ import annotations

import gzip
import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hoicli.commands.doctor import schema_text
from hoicli.records.columns import Images
from hoicli.records.fingerprint import total_of
from hoicli.records.reading import scenes_of
from hoicli.records.seen import dataset_name
from hoicli.records.triplets import named_images
from hoicli.vocabulary.datasets import load
from tests.support.kernel import lines
from tests.support.project import OWN, Hoicli, Record, refusal, saved, written


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
    shuffled = saved(tmp_path / "gt.jsonl.gz", gzip.compress("".join(lines).encode()))
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
    assert "verbs[1]: 'sit_on' is there already, at verbs[0]" in refusal(hoicli("vocab", tmp_path / "own.json"))


def test_typographic_signs_make_no_second_class(hoicli: Hoicli, tmp_path: Path) -> None:
    objects = "hard-hat", "hard-hat", "hard\u2011hat", "hard\u2013hat", "\u201chard-hat\u201d"
    scenes = [scene(f"{at}", ("worker", "wear", name)) for at, name in enumerate(objects)]
    path = written(tmp_path / "gt.jsonl", scenes)
    assert hoicli("vocab", "--from", path, "-o", tmp_path / "own.json").code == 0
    assert json.loads((tmp_path / "own.json").read_text())["objects"] == ["hard-hat"]


@pytest.mark.parametrize(("record", "message"), [
    (scene("a", ("worker", "wear", " hat")), 'labels[1]: " hat" is empty or has spaces around it; strip it, here'),
    (scene("a", ("worker", "", "hat")), 'hois[0].verb: "" is empty or has spaces around it'),
    (scene("a", ("worker", "we\nar", "hat")), 'hois[0].verb: "we\\nar" is too long or has control characters'),
    (scene("a", ("worker", "we|ar", "hat")), 'hois[0].verb: "we|ar" has a |, which parts the settings of signatures'),
    ({"image_id": "a", "boxes": [], "labels": [], "hois": 3}, "hois: a number; it must be an array"),
    ({"images": [], "annotations": []}, "image_id: missing; every image line names its image"),
])  # fmt: skip
def test_what_no_dataset_can_have(hoicli: Hoicli, tmp_path: Path, record: Record, message: str) -> None:
    path = written(tmp_path / "gt.jsonl", [scene("z", ("worker", "wear", "helmet")), record])
    assert refusal(hoicli("vocab", "--from", path, "-o", tmp_path / "own.json")).startswith(f"{path}:2: {message}")
    assert not (tmp_path / "own.json").exists()


def test_an_image_twice_and_no_triplets(hoicli: Hoicli, tmp_path: Path) -> None:
    one = scene("a", ("worker", "wear", "helmet"))
    assert "image 'a' is at" in refusal(hoicli("vocab", "--from", written(tmp_path / "gt.jsonl", [one, one])))
    skipped = hoicli("vocab", "--on-error", "skip", "--from", tmp_path / "gt.jsonl")
    assert (skipped.code, "skipped 1 line; the first: " in skipped.err) == (0, True)
    assert "no triplets in it" in refusal(hoicli("vocab", "--from", written(tmp_path / "gt.jsonl", [scene("a")])))


@pytest.mark.parametrize(("arguments", "message"), [
    (("--train", OWN / "gt.jsonl"), "--train goes with --from GT.jsonl"),
    (("hico", "--from", OWN / "gt.jsonl"), "--from writes the file of a dataset: leave DATASET out"),
    (("--from", OWN / "gt.jsonl", OWN / "train.jsonl"), f"{OWN / 'train.jsonl'}: --from takes one file: join JSONL"),
    (("--from", OWN / "gt.jsonl", "--senses", "ride"), "--from writes the file of a dataset: leave --senses out"),
    (("--from", OWN / "gt.jsonl", "--list", "verbs"), "--from writes the file of a dataset: leave --list out"),
    (("--from", OWN / "gt.jsonl", "--wordnet", "x"), "--wordnet goes with --senses LABEL"),
    (("--senses", "ride", "--list", "verbs"), "--senses lists senses: leave --list verbs out"),
    (("--from", OWN / "gt.jsonl", "--format", "csv"), "--format: no rows are written here; leave it out"),
    (("--from", OWN / "gt.jsonl", "-o", "hico.json"), "--from: hico is a dataset of hoicli's own"),
])  # fmt: skip
def test_wrong_calls(hoicli: Hoicli, arguments: tuple[object, ...], message: str) -> None:
    assert message in refusal(hoicli("vocab", *arguments), 2)


@pytest.mark.parametrize(
    ("path", "name"),
    [("data/own.json.gz", "own"), ("my site.json", "my_site"), ("-", ""), ("/x/gt-v2.jsonl", "gt-v2"), ("ß.json", "")],
)
def test_names_from_paths(path: str, name: str) -> None:
    assert dataset_name(path) == name


IMAGE: Record = {
    "image_id": "a",
    "boxes": [[0, 0, 10, 10], [5, 5, 20, 20], [0, 0, 10, 10], [50, 50, 60, 60]],
    "labels": ["person", "bicycle", "person", "dog"],
    "hois": [{"subject": 0, "object": 1, "verb": "ride"}, {"subject": 2, "object": 1, "verb": "hold"}],
    "image_hois": [["ride", "bicycle"], ["hold", "bicycle"]],
    "ambiguous_hois": [["walk", "bicycle"]],
}
OTHER: Record = {**IMAGE, "image_id": "b", "hois": []}
ACTIONS: Record = {
    "image_id": "a",
    "boxes": [[0, 0, 10, 10], [5, 5, 20, 20], [30, 0, 40, 10]],
    "labels": ["person", "bicycle", "person"],
    "hois": [{"subject": 0, "object": 1, "verb": "hit", "role": "obj"}, {"subject": 2, "object": None, "verb": "run"}],
    "annotated": [True, True, False],
}


def totals(records: list[Record], dataset: str = "hico") -> int:
    read: list[Images] = [
        scenes_of(lines(records), load(dataset), scored=False),
        named_images(lines(records), truth=True),
    ]
    assert [len(images.hashes) for images in read] == [len(records)] * 2
    first, second = (total_of(images.hashes) for images in read)
    assert first == second
    return first


def edited(record: Record, *path: Any) -> Record:
    """The record with another value (the last of `path`) at a place."""
    *way, key, value = path
    changed = item = deepcopy(record)
    for step in way:
        item = item[step]
    item[key] = value
    return changed


@pytest.mark.parametrize("path", [
    ("image_id", "c"), ("image_hois", None), ("image_hois", [["ride", "bicycle"]]),
    ("image_hois", [["ride", "bicycle"], ["hold", "dog"]]), ("ambiguous_hois", None), ("ambiguous_hois", []),
    ("caveats", ["derived_labels"]), ("labels", 0, "dog"), ("labels", 1, "dog"), ("labels", 3, "person"),
    ("boxes", 0, [0, 0, 10, 11]), ("boxes", 1, [5, 20, 5, 20]), ("boxes", 3, [50, 50, 60, 61]),
    ("hois", 0, "verb", "hold"), ("hois", 0, "subject", 2), ("hois", 0, "subject", 1),
    ("hois", 0, "verb_synset", "ride.v.10"), ("synsets", [None, "bicycle.n.01", None, None]), ("hois", []),
], ids=str)  # fmt: skip
def test_whatever_a_metric_reads_changes_the_digest(path: tuple[Any, ...]) -> None:
    changed = edited(IMAGE, *path)
    if not changed["hois"]:
        changed["image_hois"] = IMAGE["image_hois"]
    assert totals([changed]) != totals([IMAGE])


def test_an_image_without_labels_is_not_one_with_an_empty_list() -> None:
    empty, without = {**OTHER, "image_hois": []}, {**OTHER, "image_hois": None}
    assert totals([empty]) != totals([without])
    assert totals([without]) == totals([{key: without[key] for key in without if key != "image_hois"}])


@pytest.mark.parametrize("path", [
    ("labels", 1, "dog"), ("boxes", 2, [30, 0, 40, 11]), ("annotated", [True, True, True]),
    ("hois", 1, "verb", "walk"), ("hois", 1, "subject", 0), ("hois", 0, "role", "instr"),
    ("hois", 0, "object", None),
], ids=str)  # fmt: skip
def test_actions_and_people_without_any_change_the_digest(path: tuple[Any, ...]) -> None:
    assert totals([edited(ACTIONS, *path)], "vcoco") != totals([ACTIONS], "vcoco")


def test_the_order_of_lines_boxes_triplets_and_labels_does_not() -> None:
    turned = {
        **IMAGE,
        "boxes": IMAGE["boxes"][::-1],
        "labels": IMAGE["labels"][::-1],
        "hois": [{**hoi, "subject": 3 - hoi["subject"], "object": 3 - hoi["object"]} for hoi in IMAGE["hois"][::-1]],
        "image_hois": IMAGE["image_hois"][::-1],
    }
    assert totals([OTHER, turned]) == totals([IMAGE, OTHER])
    assert (totals([IMAGE]) + totals([OTHER])) % 2**64 == totals([IMAGE, OTHER])
    swapped = [{**IMAGE, "image_id": "b"}, {**OTHER, "image_id": "a"}]
    assert totals(swapped) != totals([IMAGE, OTHER])
    assert totals([{**IMAGE, "width": 640, "file_name": "a.jpg"}]) == totals([IMAGE])


def test_what_nobody_checks_may_be_anything() -> None:
    odd = {**IMAGE, "synsets": 3, "annotated": [1], "hois": [{**hoi, "role": ["x"]} for hoi in IMAGE["hois"]]}
    scenes = scenes_of(lines([odd]), load("hico"), scored=False)
    assert total_of(scenes.hashes) == totals([IMAGE])
    several: list[Any] = [3, [3], [[[]]], [["ride"]], [[{}, "x"]]]
    for labels in several:
        named_images(lines([{**IMAGE, "image_hois": labels}]), truth=True)


@pytest.mark.parametrize("command", ["eval", "recall", "validate"])
def test_triplets_beside_an_empty_list_of_labels_are_a_fault(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    gt = written(tmp_path / "gt.jsonl", [{**IMAGE, "image_hois": []}])
    result = hoicli(command, *(() if command == "validate" else ("--gt", gt)), gt)
    assert result.code == 1
    assert "gt.jsonl:1: image_hois: empty, but the image has triplets" in result.out + result.err


def test_an_image_in_which_nothing_happens_may_say_so(hoicli: Hoicli, tmp_path: Path) -> None:
    gt = written(tmp_path / "gt.jsonl", [IMAGE, {**OTHER, "image_hois": []}])
    assert hoicli("validate", gt).code == 0


def test_typographic_signs_change_no_digest() -> None:
    """In both readers: a record of a site's own label, by a keyboard's signs and by typographic ones."""
    names = ("hair drier", "hair\u00a0drier", "\u201chair_drier\u201d", "hair drier\u200b", "\uff48air drier")
    assert len({totals([{**IMAGE, "labels": ["person", "bicycle", "person", name]}]) for name in names}) == 1
