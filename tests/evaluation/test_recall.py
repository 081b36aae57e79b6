"""Recall at K: cases whose numbers follow by hand, what may not change a number, and the numbers of the released
evaluators on made-up scene graphs (recall_golden/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.graphs import KS, OBJECTS, VERBS, answers, dataset, predictions, truth
from tests.support.project import FIXTURES, GT, PREDICTIONS, Data, Hoicli, Record, records_of, refusal

BOXES = [[0, 0, 10, 10], [20, 0, 40, 20], [50, 50, 60, 80]]
LABELS = ["person", "dog", "table"]


def image(image_id: str, *triplets: tuple[int, str, int], boxes: Any = BOXES, labels: Any = LABELS) -> Record:
    hois = [{"subject": s, "object": o, "verb": verb} for s, verb, o in triplets]
    return {"image_id": image_id, "boxes": boxes, "labels": labels, "hois": hois}


def scored(record: Record, *triplets: tuple[int, str, int, float], **changed: Any) -> Record:
    hois = [{"subject": s, "object": o, "verb": verb, "score": score} for s, verb, o, score in triplets]
    return {**record, "hois": hois, **changed}


def measure(hoicli: Hoicli, folder: Path, gt: list[Record], preds: list[Record], *options: object) -> Any:
    return values(rows(hoicli, written(folder, gt=gt, preds=preds), *options))


def test_shares_are_averaged_over_images_and_verbs(hoicli: Hoicli, tmp_path: Path) -> None:
    first = image("a", (0, "on", 1), (1, "on", 2), (2, "near", 0), (0, "holding", 2))
    second = image("b", (0, "near", 1))
    third = image("c")  # without relations: in no mean
    preds = [
        scored(first, (0, "on", 1, 0.9), (2, "near", 0, 0.8), (1, "near", 2, 0.7), (1, "on", 2, 0.6)),
        scored(second, (0, "on", 1, 0.9), (1, "near", 0, 0.8), (0, "near", 1, 0.7)),
        scored(third, (0, "on", 1, 0.9)),
    ]
    found = measure(hoicli, tmp_path, [first, second, third], preds, "--k", "1,2,3")
    # a: on-1 at rank 0, near at 1; graph: (1, 2) is near's, so on-2 is lost; none: on-2 at 3
    # b: graph: (0, 1) is on's, so near is lost; none: near at 2
    assert found["graph", "R@1"] == pytest.approx(100 * (1 / 4 + 0) / 2)
    assert found["graph", "R@2"] == pytest.approx(100 * (2 / 4 + 0) / 2)
    assert found["none", "R@3"] == pytest.approx(100 * (2 / 4 + 1) / 2)
    # on: a 1/2; near: a 1/1, b 1/1; holding: a 0
    assert found["none", "mR@3"] == pytest.approx(100 * (1 / 2 + 1 + 0) / 3)
    assert found["graph", "mR@3"] == pytest.approx(100 * (1 / 2 + (1 + 0) / 2 + 0) / 3)
    r, mr = found["none", "R@3"], found["none", "mR@3"]
    assert found["none", "F1@3"] == pytest.approx(2 * r * mr / (r + mr))
    assert found["graph", "F1@1"] is not None


def test_all_three_labels_and_both_boxes_decide(hoicli: Hoicli, tmp_path: Path) -> None:
    gt = image("a", (0, "on", 1))
    half = [[0, 0, 10, 10], [20, 0, 30, 20], BOXES[2]]  # of the object: IoU 1/2, which is enough
    less = [[0, 0, 10, 10], [20, 0, 29.9, 20], BOXES[2]]
    hits = {"itself": scored(gt, (0, "on", 1, 0.5)), "half": scored(gt, (0, "on", 1, 0.5), boxes=half)}
    misses = {
        "less than half": scored(gt, (0, "on", 1, 0.5), boxes=less),
        "verb": scored(gt, (0, "near", 1, 0.5)),
        "subject's label": scored(gt, (0, "on", 1, 0.5), labels=["dog", "dog", "table"]),
        "object's label": scored(gt, (0, "on", 1, 0.5), labels=["person", "cup", "table"]),
        "direction": scored(gt, (1, "on", 0, 0.5)),
    }
    for number, (cases, value) in enumerate(((hits, 100.0), (misses, 0.0))):
        for name, record in cases.items():
            folder = tmp_path / f"{number} {name}"
            folder.mkdir()
            assert set(measure(hoicli, folder, [gt], [record]).values()) == {value}, name


def test_one_prediction_finds_all_that_it_covers_and_equal_triplets_count_once(hoicli: Hoicli, tmp_path: Path) -> None:
    twice = [*BOXES, [1, 0, 10, 10]]
    labels = [*LABELS, "person"]
    gt = image("a", (0, "on", 1), (3, "on", 1), (0, "on", 1), (0, "near", 2), boxes=twice, labels=labels)
    found = measure(hoicli, tmp_path, [gt], [scored(gt, (0, "on", 1, 0.9))], "--k", "1")
    assert found["graph", "R@1"] == pytest.approx(100 * 2 / 3)


def test_unseen_are_the_triplets_that_training_lacks(hoicli: Hoicli, tmp_path: Path) -> None:
    gt = [image("a", (0, "on", 1), (0, "near", 2)), image("b", (0, "on", 1))]
    train = [image("x", (0, "on", 1), (1, "near", 2), (0, "near", 1))]
    preds = [scored(gt[0], (0, "near", 2, 0.9)), scored(gt[1], (0, "near", 2, 0.9))]
    files = written(tmp_path, gt=gt, preds=preds, train=train)
    found = rows(hoicli, files, "--train", files["train"], "--k", "1")
    (unseen,) = (row for row in found if row["metric"] == "zR@1" and row["constraint"] == "graph")
    assert (unseen["value"], unseen["n"], unseen["subset"]) == (100.0, 1, "unseen")
    assert "|split:train-" in unseen["signature"]
    # the digest is of the triplets, not of the file
    files |= written(tmp_path, again=[*train, image("y"), image("z", (0, "on", 1))])
    again = [row for row in rows(hoicli, files, "--train", files["again"], "--k", "1") if row["metric"] == "zR@1"]
    assert again[0]["signature"] == unseen["signature"]
    other = [row for row in rows(hoicli, files, "--train", files["gt"], "--k", "1") if row["metric"] == "zR@1"]
    assert (other[0]["value"], other[0]["n"]) == (None, 0)
    assert other[0]["signature"] != unseen["signature"]


def test_nothing_to_find(hoicli: Hoicli, tmp_path: Path) -> None:
    found = measure(hoicli, tmp_path, [image("a")], [scored(image("a"), (0, "on", 1, 0.5))])
    assert set(found.values()) == {None}


def test_hico_has_them_as_an_extension(hoicli: Hoicli) -> None:
    lines = hoicli("recall", "--gt", GT, PREDICTIONS).out
    found = [json.loads(line) for line in lines.splitlines()]
    assert {row["metric"].split("@")[0] for row in found} == {"R", "mR", "F1"}
    assert all("|extension:recall|" in row["signature"] for row in found)


@pytest.fixture
def sample(tmp_path: Path) -> Data:
    annotated = truth(7, 40)
    return annotated, predictions(annotated, 7)


def test_other_names_and_numbers_change_no_value(hoicli: Hoicli, tmp_path: Path, sample: Data) -> None:
    """Labels and verbs exchanged by a permutation, on both sides."""
    gt, preds = sample
    objects = dict(zip(OBJECTS, OBJECTS[2:] + OBJECTS[:2], strict=True))
    verbs = dict(zip(VERBS, VERBS[3:] + VERBS[:3], strict=True))

    def renamed(record: Record) -> Record:
        hois = [{**hoi, "verb": verbs[hoi["verb"]]} for hoi in record["hois"]]
        return {**record, "labels": [objects[name] for name in record["labels"]], "hois": hois}

    expected = values(rows(hoicli, written(tmp_path, gt=gt, preds=preds)))
    again = written(tmp_path, gt=list(map(renamed, gt)), preds=list(map(renamed, preds)))
    assert values(rows(hoicli, again)) == expected


def test_more_count_more_and_a_constraint_helps_no_full_ranking(hoicli: Hoicli, tmp_path: Path, sample: Data) -> None:
    """Recall grows with K. Where all are ranked (K beyond every image), what is found with graph constraint is found
    without; at a smaller K the constraint may help, since it makes room."""
    gt, preds = sample
    files = written(tmp_path, gt=gt, preds=preds, train=truth(8, 10))
    ks = (1, 3, 10, 30, 100, 10_000)
    found = values(rows(hoicli, files, "--k", ",".join(map(str, ks)), "--train", files["train"]))
    for metric in ("R", "mR", "zR", "F1"):
        for constraint in ("graph", "none"):
            curve = [found[constraint, f"{metric}@{k}"] for k in ks]
            assert curve == sorted(curve)
            assert curve[0] < curve[-1]
        assert found["graph", f"{metric}@{ks[-1]}"] <= found["none", f"{metric}@{ks[-1]}"]


def test_the_ground_truth_as_its_own_predictions_is_all_found(hoicli: Hoicli, tmp_path: Path, sample: Data) -> None:
    gt, _ = sample
    own = [{**record, "hois": [{**hoi, "score": 1.0} for hoi in record["hois"]]} for record in gt]
    found = values(rows(hoicli, written(tmp_path, gt=gt, preds=own)))
    assert {value for (constraint, _), value in found.items() if constraint == "none"} == {100.0}


@pytest.mark.parametrize(("options", "message"), [
    (("--k", "0"), "--k 0: '0' is no whole number of at least 1; for example --k 20,50,100"),
    (("--k", "20,x"), "--k 20,x: 'x' is no whole number of at least 1; for example --k 20,50,100"),
    (("--as-released", "motifs"), "--as-released motifs: choose from openpsg, sgg-benchmark, r1-sgg"),
    (("--as-released", "openpsg", "--k", "20,101"),
     "--k 101: openpsg ranks 100 predictions without graph constraint; give --k up to 100"),
    (("--dataset", "vcoco"),
     "--dataset vcoco: its actions have roles, and may have no object; recall is of triplets of subject, verb "
     "and object"),
])  # fmt: skip
def test_a_wrong_call(hoicli: Hoicli, options: tuple[str, ...], message: str) -> None:
    assert refusal(hoicli("recall", "--gt", GT, *options, PREDICTIONS), 2) == f"hoicli: {message}"


def test_a_training_set_without_triplets(hoicli: Hoicli, tmp_path: Path) -> None:
    files = written(tmp_path, train=[image("x")], gt=[image("a", (0, "on", 1))])
    options = ("--dataset", files["dataset"], "--gt", files["gt"], "--train", files["train"])
    said = refusal(hoicli("recall", *options, FIXTURES / "graphs/predictions.jsonl"))
    assert said == f"{files['train']}: no triplets in it; give the ground truth of the training set"


GOLDEN = json.loads((Path(__file__).parent / "recall_golden/released.json").read_text())


@pytest.mark.parametrize("project", ["openpsg", "sgg-benchmark"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_number_of_the_released_code(hoicli: Hoicli, tmp_path: Path, seed: int, project: str) -> None:
    annotated = truth(seed)
    files = written(tmp_path, gt=annotated, preds=predictions(annotated, seed), train=truth(100 + seed))
    options = ["--as-released", project, "--train", str(files["train"]), "--k", ",".join(map(str, KS)), "--per-class"]
    options += ["--relative"] if project == "sgg-benchmark" else []
    found = rows(hoicli, files, *options)
    means = {f"{row['constraint']} {row['metric']}": row["value"] / 100 for row in found if "verb" not in row}
    released: dict[str, Any] = dict(GOLDEN[str(seed)][project])
    verbs = dict(zip(VERBS, released.pop("verbs graph R@100"), strict=True))
    assert len(released) == (20 if project == "sgg-benchmark" else 12)
    assert {name: means[name] for name in released} == pytest.approx(released, rel=0, abs=1e-14)
    of_verbs = {row["verb"]: row for row in found if "verb" in row and row["metric"] == "R@100"}
    for verb, value in verbs.items():
        ours = [row["value"] / 100 for row in found
                if (row.get("verb"), row["metric"], row["constraint"]) == (verb, "R@100", "graph")]  # fmt: skip
        assert ours == ([] if verb not in of_verbs else [pytest.approx(value, abs=1e-14)])
    assert VERBS[-1] not in of_verbs, "never annotated: it counts 0 in the mean alone"


def test_the_projects_differ_from_each_other_and_from_the_published_metric(hoicli: Hoicli, tmp_path: Path) -> None:
    """Otherwise the golden numbers would not show what --as-released changes."""
    annotated = truth(1)
    files = written(tmp_path, gt=annotated, preds=predictions(annotated, 1))
    options: list[tuple[str, ...]] = [(), ("--as-released", "openpsg"), ("--as-released", "sgg-benchmark")]
    values = [[row["value"] for row in rows(hoicli, files, *option)] for option in options]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert all(a != b for a, b in zip(values[one], values[other], strict=True))


def test_relative_recall_reads_as_many_predictions_as_there_are_triplets(hoicli: Hoicli, tmp_path: Path) -> None:
    """Two triplets, the three best predictions right, wrong, right: only the first counts. The image with one triplet,
    found second, counts 0; no mean has the third image, which has no triplets."""
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]
    annotated: list[dict[str, Any]] = [
        {"image_id": name, "boxes": boxes, "labels": ["dog", "hat", "cup"], "hois": hois}
        for name, hois in {
            "a": [{"subject": 0, "object": 1, "verb": "on"}, {"subject": 0, "object": 2, "verb": "near"}],
            "b": [{"subject": 0, "object": 1, "verb": "on"}],
            "c": [],
        }.items()
    ]
    ranked = [(0, 1, "on"), (1, 2, "on"), (0, 2, "near"), (0, 2, "on")]
    best_first = [{"subject": s, "object": o, "verb": v, "score": 1 - at / 10} for at, (s, o, v) in enumerate(ranked)]
    orders = {"a": best_first, "b": [{**best_first[1], "score": 1.0}, {**best_first[0], "score": 0.5}], "c": best_first}
    ordered = [{**record, "hois": orders[record["image_id"]]} for record in annotated]
    files = written(tmp_path, gt=annotated, preds=ordered)
    found = values(rows(hoicli, files, "--k", "3", "--relative", "--per-class"))
    assert found["graph", "R@K-relative"] == found["none", "R@K-relative"] == 25.0
    assert found["graph", "mR@K-relative"] == 25.0, "on: 1 and 0 of its two images; near: 0"
    assert found["graph", "R@3"] == 100.0
    refused = hoicli("recall", "--gt", files["gt"], "--relative", "--as-released", "openpsg", files["preds"])
    assert (refused.code, "--relative: openpsg has no R@K-relative" in refused.err) == (2, True)


def test_nothing_counted_is_0_as_released(hoicli: Hoicli, tmp_path: Path) -> None:
    """OpenPSG leaves silent images out, and its mean over verbs counts each one without ground truth as 0."""
    annotated = truth(1)
    silent = [{**record, "hois": []} for record in annotated]
    files = written(tmp_path, gt=annotated, preds=silent)
    found = {row["metric"]: row["value"] for row in rows(hoicli, files, "--as-released", "openpsg", "--k", "20")}
    assert (found["R@20"], found["mR@20"]) == (None, 0.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_answers_of_language_models_as_r1_sgg_evaluates_them(hoicli: Hoicli, tmp_path: Path, seed: int) -> None:
    """Six of sixty are no JSON: they are missed, as images with an empty answer are; those with boxes alone are in no
    mean."""
    released = GOLDEN[str(seed)]["r1-sgg"]
    annotated = [{**record, "width": 256, "height": 256} for record in truth(seed)]
    for record in annotated:
        record["hois"] += record["hois"][:1] if seed < 3 else []
    files = written(tmp_path, gt=annotated, answers=answers(annotated, seed))
    options = ("--dataset", files["dataset"], "--image-list", files["gt"], "--to-vocabulary", "--scores", "ones")
    files["preds"] = tmp_path / "preds.jsonl"
    said = hoicli("convert", "--from", "vlm", *options, files["answers"], "-o", files["preds"]).err
    assert "6 of 60 answers (10.00%) could not be read: they give no record" in said
    found = rows(hoicli, files, "--as-released", "r1-sgg", "--k", "2,5,20,50")
    assert {row["constraint"] for row in found} == {"none"}
    assert all("|scores:1|released:r1-sgg|constraint:none|" in row["signature"] for row in found)
    means = {f"none {row['metric']}": row["value"] / 100 for row in found}
    if seed == 3:  # the published metric, of all that was said
        means["ngR per image"] = values(rows(hoicli, files, "--k", "1000"))["none", "R@1000"] / 100
    boxes = ("--boxes", "--protocol", "coco-boxes", "--dataset", files["dataset"], "--gt", files["gt"])
    of_boxes = map(json.loads, hoicli("eval", *boxes, files["preds"]).out.splitlines())
    means["AP50"] = next(row["value"] / 100 for row in of_boxes if row["metric"] == "AP50")
    assert {name: means[name] for name in released} == pytest.approx(released, rel=0, abs=1e-14)


def written(folder: Path, **streams: list[Record]) -> dict[str, Path]:
    """The streams as files by name, and the dataset's file as `dataset`."""
    files = {"dataset": folder / "graphs.json"}
    files["dataset"].write_text(json.dumps(dataset()))
    for name, records in streams.items():
        files[name] = folder / f"{name}.jsonl"
        files[name].write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return files


def rows(hoicli: Hoicli, files: dict[str, Path], *options: object) -> list[dict[str, Any]]:
    """The rows of `hoicli recall` on the files `gt` and `preds`."""
    return records_of(hoicli("recall", "--dataset", files["dataset"], "--gt", files["gt"], *options, files["preds"]))


def values(found: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    """(constraint, metric) -> value of the means."""
    return {(row["constraint"], row["metric"]): row["value"] for row in found if "verb" not in row}
