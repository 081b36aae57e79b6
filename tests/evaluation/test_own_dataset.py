"""A dataset of one's own: the published rules on other classes, by every command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hoicli.vocabulary.datasets import load
from tests.support.project import EIGHT, FIXTURES, OWN, Hoicli, Record, dumped, parsed, records, refusal, saved, written

SITE, GT, PREDICTIONS, RESULTS = (OWN / name for name in ("site.json", "gt.jsonl", "predictions.jsonl", "results.json"))
PAIR = ("--dataset", SITE, "--gt", GT, PREDICTIONS)
HICO_GT, HICO_PREDICTIONS = EIGHT / "gt.jsonl", EIGHT / "predictions.jsonl"


def perfect(path: Path, source: Path) -> Path:
    content = records(source)
    for record in content:
        record["hois"] = [{**hoi, "score": 0.5 + at / 100} for at, hoi in enumerate(record["hois"])]
    return written(path, content)


def values(text: str, metric: str = "mAP") -> dict[str, Any]:
    return {row["subset"]: row["value"] for row in parsed(text) if row["metric"] == metric}


@pytest.mark.parametrize("source", [GT, HICO_GT], ids=["site", "hico"])
def test_ground_truth_as_its_own_predictions(hoicli: Hoicli, tmp_path: Path, source: Path) -> None:
    made = hoicli("vocab", "--from", source, "-o", tmp_path / "own.json")
    assert made.code == 0
    found = hoicli("eval", "--dataset", tmp_path / "own.json", "--gt", source, perfect(tmp_path / "p.jsonl", source))
    assert values(found.out) == {"full": 100.0}
    digest = load(str(tmp_path / "own.json")).digest
    assert {row["signature"].split("|")[1] for row in parsed(found.out)} == {f"data:own-{digest}"}


def test_every_rule_of_triplets_applies(hoicli: Hoicli, tmp_path: Path) -> None:
    found = hoicli("eval", *PAIR[:-1], "--protocol", "all", perfect(tmp_path / "p.jsonl", GT))
    means = {row["protocol"]: row["value"] for row in parsed(found.out) if row["metric"] == "mAP"}
    assert means == dict.fromkeys(("hico", "hico-ko", "qpic", "upt", "diag", "inp-cc"), 100.0)


def renamed(seed: int, folder: Path) -> tuple[Path, Path, Path]:
    """HICO-DET's classes with other labels in another order, its fixtures in these labels: dataset, truth, dump."""
    hico, shuffled = load("hico"), random.Random(seed)
    names: dict[str, dict[str, str]] = {}
    for kind, labels in (("v", hico.verbs), ("o", hico.objects)):
        numbers = list(range(len(labels)))
        shuffled.shuffle(numbers)
        names[kind] = {label: f"{kind}{number}" for label, number in zip(labels, numbers, strict=True)}
    pairs = [[names["v"][verb], names["o"][name]] for verb, name in hico.interactions]
    order = list(range(len(pairs)))
    shuffled.shuffle(order)
    content = {
        "name": "renamed",
        "subjects": [names["o"]["person"]],
        "verbs": sorted(names["v"].values(), key=lambda _: shuffled.random()),
        "objects": sorted(names["o"].values(), key=lambda _: shuffled.random()),
        "interactions": [pairs[number] for number in order],
        "no_interaction": names["v"]["no_interaction"],
        "groups": {group: [pairs[number] for number in sorted(ids)] for group, ids in hico.groups.items()},
        "splits": {"rare_first": [pairs[number] for number in sorted(hico.unseen["rare_first"])]},
    }
    (folder / "renamed.json").write_text(json.dumps(content))
    for source in (HICO_GT, HICO_PREDICTIONS):
        translated = records(source)
        for record in translated:
            record["labels"] = [names["o"][label] for label in record["labels"]]
            record["hois"] = [{**hoi, "verb": names["v"][hoi["verb"]]} for hoi in record["hois"]]
            if "image_hois" in record:
                record["image_hois"] = [[names["v"][verb], names["o"][name]] for verb, name in record["image_hois"]]
        written(folder / source.name, translated)
    return folder / "renamed.json", folder / HICO_GT.name, folder / HICO_PREDICTIONS.name


@pytest.mark.parametrize("seed", range(3))
def test_names_and_their_order_change_no_bit(hoicli: Hoicli, tmp_path: Path, seed: int) -> None:
    dataset, truth, predictions = renamed(seed, tmp_path)
    options = ("--protocol", "hico,hico-ko", "--split", "rare_first", "--metric", "mean_max_recall")
    ours = hoicli("eval", *options, "--dataset", dataset, "--gt", truth, predictions)
    theirs = hoicli("eval", *options, "--gt", HICO_GT, HICO_PREDICTIONS)
    assert len(parsed(ours.out)) == 20
    for mine, other in zip(parsed(ours.out), parsed(theirs.out), strict=True):
        # a mean adds its classes in their order, so its last bit may move with that; each class is the same
        assert mine["value"] == pytest.approx(other["value"], rel=1e-14)
        assert (mine["subset"], mine["n"]) == (other["subset"], other["n"])
    classes = []
    for pair in (("--dataset", dataset, "--gt", truth, predictions), ("--gt", HICO_GT, HICO_PREDICTIONS)):
        found = parsed(hoicli("eval", "--protocol", "hico", "--per-class", *pair).out)
        classes.append(sorted(row["value"] for row in found if "verb" in row))
    assert classes[0] == classes[1]
    assert any(0 < value < 100 for value in classes[0])


def site_pair(folder: Path, subject: str) -> tuple[object, ...]:
    """One image of a worker who wears a helmet, and a prediction whose subject has this label."""
    boxes = [[0, 0, 50, 100], [10, 0, 30, 20]]
    truth: Record = {"image_id": "a", "boxes": boxes, "labels": ["worker", "helmet"]}
    hoi: Record = {"subject": 0, "object": 1, "verb": "wear"}
    found = {**truth, "labels": [subject, "helmet"], "hois": [{**hoi, "score": 0.9, "verb_score": 0.9}]}
    gt = written(folder / "one.jsonl", [{**truth, "hois": [hoi]}])
    return "--dataset", SITE, "--gt", gt, written(folder / "found.jsonl", [found])


@pytest.mark.parametrize(("subject", "counts"), [("worker", True), ("visitor", True), ("vest", False)])
def test_any_of_the_subjects_will_do(hoicli: Hoicli, tmp_path: Path, subject: str, counts: bool) -> None:
    pair = site_pair(tmp_path, subject)
    wear_helmet = [
        row["value"]
        for row in parsed(hoicli("eval", "--protocol", "qpic,diag", "--per-class", *pair).out)
        if row["metric"] == "AP" and (row["verb"], row["object"]) == ("wear", "helmet")
    ]
    assert wear_helmet == [100.0 * counts] * 2
    errors = values_of_errors(hoicli("diagnose", *pair).out)
    assert errors["true_positive"] == counts
    recall = values(hoicli("pairstats", *pair).out, "pair_recall")
    assert recall["full"] == 100.0 * counts


def values_of_errors(text: str) -> dict[str, int]:
    return {row["error"]: row["value"] for row in parsed(text) if row["metric"] == "count" and row["subset"] == "full"}


def test_matches_say_their_dataset(hoicli: Hoicli, tmp_path: Path) -> None:
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", "--protocol", "all", *PAIR).out)
    signed = load(str(SITE)).signed
    assert {record["dataset"] for record in records(matches)} == {signed}
    direct = hoicli("eval", "--protocol", "all", *PAIR)
    assert hoicli("eval", "--dataset", SITE, matches).out == direct.out
    assert hoicli("diagnose", "--dataset", SITE, matches).out == hoicli("diagnose", *PAIR).out
    assert hoicli("validate", "--dataset", SITE, matches).code == 0
    for command in ("eval", "diagnose"):
        said = refusal(hoicli(command, matches))
        assert f'dataset: matches of "{signed}", not of hico; give its file with --dataset FILE.json' in said
    changed = saved(tmp_path / "site.json", SITE.read_text().replace("hard_hat", "hardhat"))
    said = refusal(hoicli("eval", "--dataset", changed, matches))
    assert f"{changed} has changed since; match the predictions again" in said
    shipped = hoicli("match", "--protocol", "hico", "--gt", HICO_GT, HICO_PREDICTIONS).out
    assert "hico is of hico, not site" in refusal(hoicli("eval", "--dataset", SITE, written(matches, parsed(shipped))))


def test_a_dump_with_numbers_of_its_own(hoicli: Hoicli, tmp_path: Path) -> None:
    converted = parsed(hoicli("convert", "--dataset", SITE, RESULTS).out)
    for mine, detected in zip(converted, records(PREDICTIONS), strict=True):
        assert (mine["labels"], mine["boxes"]) == (detected["labels"], detected["boxes"])
        assert [hoi["verb"] for hoi in mine["hois"]] == [hoi["verb"] for hoi in detected["hois"]]
    back = tmp_path / "back.json"
    assert hoicli("convert", "--dataset", SITE, PREDICTIONS, "--to", "cdn-json", "-o", back).code == 0
    again = parsed(hoicli("convert", "--dataset", SITE, back).out)
    assert [record["labels"] for record in again] == [record["labels"] for record in converted]
    assert [record["hois"] for record in again] == [record["hois"] for record in converted]
    assert json.loads(back.read_text())[0]["predictions"][0]["category_id"] == 1  # a worker, 6 by its place
    silent = tmp_path / "silent.json"
    content = json.loads(SITE.read_text())
    silent.write_text(json.dumps({key: value for key, value in content.items() if key != "numbering"}))
    refusal(hoicli("convert", "--dataset", silent, RESULTS))
    numbered = saved(tmp_path / "results.json", RESULTS.read_text().replace('"category_id": 4', '"category_id": 40'))
    said = refusal(hoicli("convert", "--dataset", silent, numbered))
    assert "is none of site's 7 objects (coco): say what a number means in its numbering.objects" in said
    said = refusal(hoicli("convert", "--dataset", silent, "--from", "ppdm", RESULTS))
    assert "numbers objects by COCO's ids, which site does not have: say what a number means in its" in said
    refusal(hoicli("convert", "--dataset", SITE, FIXTURES / "foreign/cdn.json"))


@pytest.mark.parametrize(
    ("box", "expected"),
    [("inclusive", [10, 20, 30, 40]), ("inclusive-1", [9, 19, 29, 39]), ("edges", [10, 20, 29, 39])],
)
def test_a_dataset_says_how_boxes_are_written(hoicli: Hoicli, tmp_path: Path, box: str, expected: list[int]) -> None:
    (tmp_path / "site.json").write_text(json.dumps(json.loads(SITE.read_text()) | {"box": box}))
    boxes = [{"bbox": [10, 20, 30, 40], "category_id": number} for number in (1, 3)]
    hoi = {"subject_id": 0, "object_id": 1, "category_id": 3}
    image = {"file_name": "a.jpg", "annotations": boxes, "hoi_annotation": [hoi]}
    dumped(tmp_path / "gt.json", [image])
    (record,) = parsed(hoicli("convert", "--dataset", tmp_path / "site.json", tmp_path / "gt.json").out)
    assert record["boxes"] == [expected] * 2
    assert (record["labels"], record["hois"][0]["verb"]) == (["worker", "helmet"], "wear")


def test_interactions_by_number(hoicli: Hoicli, tmp_path: Path) -> None:
    content = json.loads(SITE.read_text())
    pairs = content["interactions"]
    content["numbering"]["interactions"] = {"order": pairs[::-1], "base": 1}
    content["subjects"] = ["worker"]
    del content["numbering"]["objects"]
    (tmp_path / "site.json").write_text(json.dumps(content))
    dump = {"7": [[1, 0.5, 0, 0, 9, 9, 3, 3, 6, 6], [6, 0.4, 0, 0, 9, 9, 3, 3, 6, 6]]}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    arguments = ("--dataset", tmp_path / "site.json", "--from", "inpcc", tmp_path / "dump.json")
    (tmp_path / "list.jsonl").write_text('{"image_id": "site_7", "boxes": [], "labels": [], "hois": []}\n')
    (record,) = parsed(hoicli("convert", "--image-list", tmp_path / "list.jsonl", *arguments).out)
    named = [(hoi["verb"], record["labels"][hoi["object"]]) for hoi in record["hois"]]
    assert named == [tuple(pairs[-1]), tuple(pairs[0])]
    assert record["labels"][record["hois"][0]["subject"]] == "worker"
    (tmp_path / "dump.json").write_text(json.dumps({"7": [[0, 0.5, 0, 0, 9, 9, 3, 3, 6, 6]]}))
    wrong = hoicli("convert", "--image-list", tmp_path / "list.jsonl", *arguments)
    assert (wrong.code, "[0]: id 0 is none of site's interactions" in wrong.err) == (1, True)


def test_aliases_are_the_labels_they_stand_for(hoicli: Hoicli, tmp_path: Path) -> None:
    content = records(PREDICTIONS)
    for record in content:
        record["labels"] = ["hard_hat" if label == "helmet" else label for label in record["labels"]]
    assert any("hard_hat" in record["labels"] for record in content)
    spelt = written(tmp_path / "p.jsonl", content)
    assert hoicli("eval", *PAIR[:-1], spelt).out == hoicli("eval", *PAIR).out


def test_rows_by_subject(hoicli: Hoicli, tmp_path: Path) -> None:
    """A dump that finds what visitors do, and nothing else."""
    found = [json.loads(line) for line in GT.read_text().splitlines()]
    for record in found:
        by_visitors = [hoi for hoi in record["hois"] if record["labels"][hoi["subject"]] == "visitor"]
        record["hois"] = [{**hoi, "score": 0.5} for hoi in by_visitors]
    options = ("--dataset", SITE, "--slice", "subject", "--gt", GT, written(tmp_path / "p.jsonl", found))
    rows = [json.loads(line) for line in hoicli("eval", *options).out.splitlines()]
    parts = {row["tags"].get("part"): row["value"] for row in rows if row["subset"] == "full"}
    assert (parts["visitor"], parts["worker"]) == (100.0, 0.0)
    assert 0 < parts[None] < 100
    lone = hoicli("eval", "--slice", "subject", "--gt", EIGHT / "gt.jsonl", EIGHT / "predictions.jsonl")
    assert (lone.code, "all subjects of hico are person; leave it out" in lone.err) == (2, True)


def test_unknown_labels(hoicli: Hoicli, tmp_path: Path) -> None:
    def said(label: str, *options: object) -> str:
        record = {"image_id": "a", "boxes": [[0, 0, 1, 1]] * 2, "labels": ["person", label], "hois": []}
        return hoicli("eval", *options, "--gt", written(tmp_path / "x.jsonl", [record]), PREDICTIONS).err

    assert "unknown object 'bycicle'; did you mean 'bicycle'? own classes? hoicli vocab" in said("bycicle")
    assert said("ball.n.01").endswith(
        "SWIG-HOI records? --dataset swig; own classes? hoicli vocab --from GT.jsonl -o FILE.json\n"
    )
    assert said("excavator").endswith("own classes? hoicli vocab --from GT.jsonl -o FILE.json\n")
    for label, advice in (
        ("hamer", "did you mean 'hammer'? "),
        ("dozer", f"`hoicli vocab {SITE}` lists the known ones; "),
    ):
        target = "hammer" if "hammer" in advice else "LABEL"
        record = {"image_id": "a", "boxes": [[0, 0, 1, 1]], "labels": [label], "hois": []}
        result = hoicli("eval", "--dataset", SITE, "--gt", written(tmp_path / "y.jsonl", [record]), PREDICTIONS)
        assert result.err.endswith(f'{advice}other words? `aliases` of {SITE} has {{"{label}": "{target}"}}\n')
    assert "unknown object 'person'; own subjects are visitor, worker: `aliases` maps names" in said(
        "vest", "--dataset", SITE
    )


def test_more_classes_than_fit_in_two_bytes(hoicli: Hoicli, tmp_path: Path) -> None:
    verbs, objects = [f"v{n}" for n in range(200)], [f"o{n}" for n in range(200)]
    content: Record = {"name": "big", "verbs": verbs, "objects": objects}
    content["interactions"] = [[verb, name] for verb in verbs for name in objects]
    (tmp_path / "big.json").write_text(json.dumps(content | {"subsets": {"last": [39_999]}}))
    boxes = [[0, 0, 9, 9], [2, 2, 5, 5]]
    truth: Record = {"image_id": "a", "boxes": boxes, "labels": ["person", "o199"]}
    truth["hois"] = [{"subject": 0, "object": 1, "verb": "v199", "score": 0.5}]
    predictions = written(tmp_path / "p.jsonl", [truth])
    gt = written(tmp_path / "gt.jsonl", [{**truth, "hois": [{"subject": 0, "object": 1, "verb": "v199"}]}])
    found = values(hoicli("eval", "--dataset", tmp_path / "big.json", "--gt", gt, predictions).out)
    assert found == {"full": pytest.approx(100 / 40_000), "last": 100.0}


@pytest.mark.parametrize("dataset", ["hico", "own"])
def test_spaces_underscores_and_forms_of_unicode_are_one_spelling(hoicli: Hoicli, tmp_path: Path, dataset: str) -> None:
    options: list[object] = []
    truth = records(EIGHT / "gt.jsonl")
    preds = [{**record, "hois": [{**hoi, "score": 0.5} for hoi in record["hois"]]} for record in truth]
    if dataset == "own":
        for record in (*truth, *preds):
            record["image_hois"] = None
            record["labels"] = ["café table" if label == "bench" else label for label in record["labels"]]
            for hoi in record["hois"]:
                hoi["verb"] = hoi["verb"].replace("_", " ")
        made = hoicli("vocab", "--from", written(tmp_path / "gt.jsonl", truth), "-o", tmp_path / "own.json")
        assert made.code == 0, made.err
        options = ["--dataset", tmp_path / "own.json"]
    plain = hoicli("eval", *options, "--per-class", "--gt", written(tmp_path / "a.jsonl", truth),
                   written(tmp_path / "b.jsonl", preds))  # fmt: skip
    for record in (*truth, *preds):
        record["labels"] = ["cafe\u0301_table" if label == "café table" else label for label in record["labels"]]
        for hoi in record["hois"]:
            hoi["verb"] = hoi["verb"].replace("_", " ") if dataset == "hico" else hoi["verb"].replace(" ", "_")
        if record["image_hois"]:
            record["image_hois"] = [[verb.replace("_", " "), name] for verb, name in record["image_hois"]]
    other = hoicli("eval", *options, "--per-class", "--gt", written(tmp_path / "c.jsonl", truth),
                   written(tmp_path / "d.jsonl", preds))  # fmt: skip
    assert plain.code == other.code == 0, other.err
    assert plain.out == other.out
    assert "unknown-label" not in hoicli("validate", *options, "--gt", tmp_path / "c.jsonl", tmp_path / "d.jsonl").out


def test_what_was_silent_is_said(hoicli: Hoicli, tmp_path: Path) -> None:
    """Subjects that are none of the dataset's, a dump without triplets, and labels in another case."""
    predictions = records(HICO_PREDICTIONS)
    dogs: list[Record] = json.loads(json.dumps(predictions))
    for record in dogs:
        for hoi in record["hois"]:
            record["labels"][hoi["subject"]] = "dog"
    dogs_dump = written(tmp_path / "dogs.jsonl", dogs)
    empty = written(tmp_path / "empty.jsonl", [{**record, "hois": []} for record in predictions])
    who = "41 of 41 predictions have a subject that is no person"
    assert f"{who}: not counted by qpic\n" in hoicli("eval", "--protocol", "qpic", "--gt", HICO_GT, dogs_dump).err
    said = hoicli("eval", "--protocol", "hico", "--gt", HICO_GT, dogs_dump).err
    assert f"{who}\n" in said
    assert "are labels numbered otherwise, or subject and object swapped? no subject is person" in said
    assert f"{who}: not counted by diag\n" in hoicli("diagnose", "--gt", HICO_GT, dogs_dump).err
    pairs = hoicli("pairstats", "--gt", HICO_GT, dogs_dump).err
    assert "41 of 41 triplets have a subject that is no person: they are no pairs" in pairs
    for command, what in (("eval", "triplet"), ("diagnose", "triplet"), ("pairstats", "pair")):
        assert f"the predictions hold no {what}: nothing can be found" in hoicli(command, "--gt", HICO_GT, empty).err
    loud = [{**record, "labels": [label.upper() for label in record["labels"]]} for record in predictions]
    loud_dump = written(tmp_path / "loud.jsonl", loud)
    assert hoicli("eval", "--gt", HICO_GT, loud_dump).out == hoicli("eval", "--gt", HICO_GT, HICO_PREDICTIONS).out
