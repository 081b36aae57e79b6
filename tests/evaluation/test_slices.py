"""Slices and thresholds: closed forms, a slow evaluator on random worlds, sums over parts, order and shards."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.selection import choose_protocols
from hoicli.evaluation.slice_parts import object_area
from hoicli.evaluation.slices import MEASURES, MOST_PARTS, Slice, parse_slices
from hoicli.evaluation.tally import ClassResults
from hoicli.evaluation.views import Views, parse_thresholds
from hoicli.vocabulary.datasets import load
from tests.support import reference, strategies
from tests.support.kernel import HICO, ground_truth, tally
from tests.support.project import FIXTURES, Data, Hoicli, Record, complaint, saved

EVERY = choose_protocols(["all"], "hico")
Box = tuple[float, ...]


def viewed(data: Data, views: Views, names: str = "all") -> dict[str, ClassResults]:
    rows = views.views_of(choose_protocols([names], "hico"))
    return {row.key: results for row, results in tally(*data, rows).results(HICO)}


def sliced(*names: str) -> Views:
    return Views(slices=tuple(parse_slices(names, HICO)))


def in_part(slice_: Slice, part: int, truth: list[Record]) -> Callable[[str, Box, Box], bool]:
    """Whether a triplet is in a part, in plain Python and from the words of the manual."""
    low = 0.0 if part == 0 else slice_.cuts[part - 1]
    high = slice_.cuts[part] if part < len(slice_.cuts) else math.inf
    records = {str(record["image_id"]): record for record in truth}

    def value(image: str, subject: Box, object_: Box) -> float:
        record = records[image]
        if slice_.measure == "people":
            boxes = zip(record["boxes"], record["labels"], strict=True)
            return len({tuple(box) for box, label in boxes if label == "person"})
        if slice_.measure == "pairs":
            return len({(hoi["subject"], hoi["object"]) for hoi in record["hois"]})
        if slice_.measure == "objects":
            return max(object_[2] - object_[0], 0) * max(object_[3] - object_[1], 0)
        centres = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (subject, object_)]
        apart = math.sqrt((centres[0][0] - centres[1][0]) ** 2 + (centres[0][1] - centres[1][1]) ** 2)
        sizes = [math.sqrt((box[2] - box[0]) ** 2 + (box[3] - box[1]) ** 2) for box in (subject, object_)]
        if sum(sizes) == 0:
            return math.inf if apart else 0.0
        return apart / (sum(sizes) / 2)

    return lambda image, subject, object_: low <= value(image, subject, object_) < high


@settings(max_examples=20)
@given(strategies.datasets(), st.sampled_from(["objects:4:25", "distance:0.3:0.8", "people:1:2:3", "pairs:1:2:3"]))
def test_every_part_equals_the_slow_evaluator(data: Data, name: str) -> None:
    truth, predictions = data
    (slice_,) = parse_slices([name], HICO)
    views = Views(parse_thresholds(["0.3,0.5"]), (slice_,))
    pairs = [pair for pair in HICO.interactions if pair[1] in strategies.LABELS]
    ours = viewed(data, views)
    for row in EVERY:
        for threshold in ("0.3", "0.5"):
            for number, part in enumerate(slice_.parts):
                inside = in_part(slice_, number, truth)
                theirs = reference.evaluate(row.name, truth, predictions, pairs, float(threshold), inside)
                found = ours[f"{row.name}|{threshold}|{slice_.name}|{part}"]
                for pair, (ap, recall, positives) in theirs.items():
                    if row.name == "diag" and pair[0] == "no_interaction":
                        continue
                    at = HICO.interaction_ids[pair]
                    assert found.positives[at] == positives
                    assert math.isclose(found.ap[at], ap, abs_tol=1e-12), (row.name, part, pair)
                    assert math.isclose(found.max_recall[at], recall, abs_tol=1e-12), (row.name, part, pair)


@settings(max_examples=20)
@given(strategies.datasets())
def test_parts_make_up_the_whole(data: Data) -> None:
    """Ground truth, true and false positives: each stands in one part of every slice."""
    truth, predictions = data
    views = sliced("objects:4:25", "distance", "people", "pairs")
    rows = views.views_of(EVERY)
    gathered = tally(truth, predictions, rows)
    annotated = ground_truth(truth)
    counts: dict[str, Counter[tuple[str, int]]] = {}
    for row in rows:
        codes = gathered._codes[row.key].tolist()
        of = dict(row.view).get("slice", "")
        counts.setdefault(f"{row.name}|{of}", Counter()).update(
            Counter(("code", code) for code in codes if code < 2)
            + Counter({("truth", 0): int(annotated.counted_triplets(row).sum())})
        )
    for row in EVERY:
        for slice_ in views.slices:
            assert +counts[f"{row.name}|{slice_.name}"] == +counts[f"{row.name}|"]


@settings(max_examples=20)
@given(strategies.datasets(), st.integers(1, 4))
def test_shards_merge_to_the_same_bits(data: Data, cut: int) -> None:
    rows = Views(parse_thresholds(["0.3:0.5:0.1"]), sliced("objects:9", "people:2").slices).views_of(EVERY)
    whole = {row.key: results for row, results in tally(*data, rows).results(HICO)}
    first = {record["image_id"] for record in data[0][:cut]}
    if len(first) == len(data[0]):
        return
    shares = []
    for here in (True, False):
        truth, predictions = ([one for one in side if (one["image_id"] in first) is here] for side in data)
        shares.append(tally(truth, predictions, rows))
    ours, theirs = shares
    ours.merge(theirs)
    for row, results in ours.results(HICO):
        np.testing.assert_array_equal(results.ap, whole[row.key].ap)


def world() -> Data:
    """One image: a big bicycle ridden and a small one held, both found by the letter; and a false positive on each."""
    labels = ["person", "bicycle", "bicycle"]
    boxes = [[0, 0, 100, 200], [50, 50, 250, 250], [300, 0, 320, 20]]
    hois = [{"subject": 0, "object": 1, "verb": "ride"}, {"subject": 0, "object": 2, "verb": "hold"}]
    truth = {"image_id": "a", "boxes": boxes, "labels": labels, "hois": hois}
    stray = [[400, 400, 600, 600], [700, 0, 710, 10]]
    found = [
        {"subject": 0, "object": 3, "verb": "ride", "score": 0.9},  # large, on nothing
        {"subject": 0, "object": 1, "verb": "ride", "score": 0.8},
        {"subject": 0, "object": 4, "verb": "ride", "score": 0.95},  # small, on nothing
        {"subject": 0, "object": 2, "verb": "hold", "score": 0.7},
        {"subject": 0, "object": 2, "verb": "hold", "score": 0.6},  # a duplicate
    ]
    predicted = {"image_id": "a", "boxes": boxes + stray, "labels": [*labels, "bicycle", "bicycle"], "hois": found}
    return [truth], [predicted]


def test_a_part_ignores_what_is_outside_it() -> None:
    """COCO's area ranges, by hand: of rides the small stray box counts only among small objects, where no ride is."""
    found = viewed(world(), sliced("objects"), "hico")
    ride, hold = (HICO.interaction_ids[verb, "bicycle"] for verb in ("ride", "hold"))
    parts = ("", *(f"|objects|{part}" for part in MEASURES["objects"].names))
    whole, small, medium, large = (found[f"hico{part}"] for part in parts)
    assert math.isclose(whole.ap[ride], 1 / 3)  # rank 3
    assert math.isclose(large.ap[ride], 1 / 2)  # the small stray box is not there
    assert (small.positives[ride], large.positives[ride], medium.positives.sum()) == (0, 1, 0)
    assert math.isclose(small.ap[hold], 1.0)
    assert small.in_mean.sum() == large.in_mean.sum() == 1  # only classes with ground truth in the part
    assert whole.in_mean.sum() == 600


def test_an_inverted_box_has_no_area_however_large_it_is() -> None:
    largest = np.finfo(np.float64).max
    boxes = np.array([[9.0, -largest, 1.0, largest], [0.0, 0.0, 2.0, 3.0], [-largest, 0.0, largest, 1.0]])
    assert object_area(boxes).tolist() == [0.0, 6.0, math.inf]


def test_people_in_one_place_are_one() -> None:
    truth, predictions = world()
    truth[0]["boxes"] += [[0, 0, 100, 200], [9, 9, 20, 20]]
    truth[0]["labels"] += ["person", "person"]
    found = viewed((truth, predictions), sliced("people"), "hico")
    assert {key: int(results.positives.sum()) for key, results in found.items()} == {
        "hico": 2, "hico|people|0": 0, "hico|people|1": 0, "hico|people|2": 2, "hico|people|3-5": 0, "hico|people|6+": 0
    }  # fmt: skip


def test_a_file_of_slices(tmp_path: Path) -> None:
    path = saved(tmp_path / "night.tsv", "a\tdark\nb\tdark\na\tcrowd\n")
    truth, predictions = world()
    truth.append({**truth[0], "image_id": "b"})
    truth.append({**truth[0], "image_id": "c"})
    found = viewed((truth, predictions), sliced(str(path)), "hico")
    assert {key: int(results.positives.sum()) for key, results in found.items()} == {
        "hico": 6, "hico|night|crowd": 2, "hico|night|dark": 4
    }  # fmt: skip
    (slice_,) = parse_slices([str(path)], HICO)
    path.write_text("b\tdark\na\tcrowd\na\tdark\n")
    assert parse_slices([str(path)], HICO) == [slice_]  # the digest does not depend on the order of the lines
    for text in ("sep=;\r\na;dark\r\nb;dark\r\na;crowd\r\n", 'a,dark\nb,"dark"\na,crowd', "a\tdark\nb\tdark\na\tcrowd"):
        path.write_text(text, encoding="utf-16")
        assert parse_slices([str(path)], HICO) == [slice_]


@pytest.mark.parametrize(("content", "problem"), [
    ("a\tx\nb x\n", "s.tsv:2: write one image and its slice a line: image_id<TAB>slice"),
    ("a\tx\ty\n", "s.tsv:1: write one image"),
    ("a\t\n", "s.tsv:1: write one image"),
    ("", "no slices in it"),
    (b"a\t\xff\n", "s.tsv:1: not in UTF-8; save the file again as UTF-8"),
    ("sep=;\na;x\nb,x\n", "s.tsv:3: write one image"),
    ("a\tx\x1b[0m\n", "s.tsv:1: a slice's name is at most 100 printable characters"),
    ("a\tx|gt:01234567\n", "s.tsv:1: a slice's name is at most 100 printable characters without |"),
    ("".join(f"a\t{number}\n" for number in range(MOST_PARTS + 1)), "51 slices; at most 50 in a file"),
])  # fmt: skip
def test_a_bad_file_of_slices(tmp_path: Path, content: str | bytes, problem: str) -> None:
    path = saved(tmp_path / "s.tsv", content if isinstance(content, bytes) else content.encode())
    assert problem in complaint(DataError, parse_slices, [str(path)], HICO)


@pytest.mark.parametrize(("name", "dataset", "problem"), [
    ("object_size", "hico", "there is no such slice or file"),
    ("", "hico", "there is no such slice or file"),
    ("objects:32,96", "hico", "--slice 96: there is no such slice or file; commas are between slices"),
    ("people,", "hico", "there is no such slice or file"),
    ("objets", "hico", "did you mean 'objects'?"),
    ("distance:1:0.5", "hico", "give ascending numbers above 0"),
    ("distance:0", "hico", "give ascending numbers above 0"),
    ("distance:nan", "hico", "give ascending numbers above 0"),
    ("verb:2", "hico", "verb has a part for each verb, without cuts; leave ':2' out"),
    ("frequency:10", "hico", "hico has no training counts"),
    ("frequency", "vcoco", "vcoco has no classes by training frequency"),
    ("object", "vcoco", "vcoco has no classes by object"),
])  # fmt: skip
def test_slices_that_there_are_not(name: str, dataset: str, problem: str) -> None:
    assert problem in complaint(UsageError, parse_slices, [name], load(dataset))


def test_the_names_of_parts() -> None:
    parts = {slice_.name: slice_.parts for slice_ in parse_slices(["people,distance,objects:100,people:2:4"], HICO)}
    assert parts == {
        "people": ("0", "1", "2", "3-5", "6+"),
        "distance": ("0-0.25", "0.25-0.5", "0.5-1", "1+"),
        "objects:100": ("0-100", "100+"),
        "people:2:4": ("0-1", "2-3", "4+"),
    }
    (objects,) = parse_slices(["objects"], load("vcoco"))
    assert objects.parts == ("small", "medium", "large", "no_object")
    verbs, things, groups = parse_slices(["verb", "object", "frequency"], HICO)
    for slice_ in (verbs, things, groups):  # a partition of the classes
        assert sorted(number for members in slice_.classes for number in members) == list(range(600))


def test_training_counts_are_cut_as_numbers_are() -> None:
    """From a cut on, up to the next; above the last, all."""
    counts = (1, 2, 9, 10, 11, *[500] * 595)
    (made,) = parse_slices(["frequency:2:10"], replace(HICO, training_counts=counts))
    assert (made.parts, made.cuts) == (("0-1", "2-9", "10+"), (2.0, 10.0))
    assert made.classes == (frozenset({0}), frozenset({1, 2}), frozenset(range(3, 600)))


def test_the_frequency_in_the_test_set_is_that_of_its_ground_truth(hoicli: Hoicli) -> None:
    """Diag-HOI's arXiv version: a class with fewer than ten triplets in the test set is rare."""
    (made,) = parse_slices(["test_frequency"], HICO)
    assert made.parts == ("0-9", "10+")
    assert made.classes_of_parts([0, 9, 10, 400]) == [frozenset({0, 1}), frozenset({2, 3})]
    files = ("--gt", FIXTURES / "sample/gt.jsonl.gz", FIXTURES / "sample/baseline.jsonl.gz")
    options = ("--protocol", "qpic", "--slice", "test_frequency", "--per-class")
    found = [json.loads(line) for line in hoicli("eval", *files, *options).out.splitlines()]
    counts = {(row["verb"], row["object"]): (row["n"], row["value"]) for row in found
              if row["metric"] == "AP" and "part" not in row["tags"]}  # fmt: skip
    for part, least, most in (("0-9", 1, 9), ("10+", 10, 1000)):
        (mean,) = [row for row in found if (row["metric"], row["subset"]) == ("mAP", "full")
                   and row["tags"].get("part") == part]  # fmt: skip
        values = [value for n, value in counts.values() if least <= n <= most]
        assert (mean["n"], mean["value"]) == (len(values), pytest.approx(sum(values) / len(values)))
        assert f"|slice:test_frequency/{part}|" in mean["signature"]


def test_a_mean_over_thresholds_is_cocos() -> None:
    """IoU of subject and object is 1 and 0.8: true at the first thresholds, false at the others, and upt is strict."""
    boxes, labels = [[0, 0, 10, 10], [50, 0, 60, 10]], ["person", "bicycle"]
    hoi = {"subject": 0, "object": 1, "verb": "ride"}
    truth: Any = [{"image_id": "a", "boxes": boxes, "labels": labels, "hois": [hoi]}]
    moved = [[0, 0, 11, 11], [50, 0, 59, 11]]  # upt adds 1 to x2, y2 of the ground truth: 11 x 11, and 9/11 of it
    predictions: Any = [{"image_id": "a", "boxes": moved, "labels": labels, "hois": [{**hoi, "score": 0.5}]}]
    found = viewed((truth, predictions), Views(parse_thresholds(["0.5:0.95:0.05"])), "upt")
    ride = HICO.interaction_ids["ride", "bicycle"]
    true = [found[f"upt|{value!r}"].ap[ride] for value in parse_thresholds(["0.5:0.95:0.05"]).values]
    assert [round(ap) for ap in true] == [1] * 7 + [0] * 3  # 9/11 = 0.818
    assert math.isclose(found["upt|0.5:0.95:0.05"].ap[ride], 0.7)
    strict = partial(viewed, (truth, [{**predictions[0], "boxes": [[0, 0, 11, 11], [50, 0, 61, 5.5]]}]))
    assert strict(Views(parse_thresholds(["0.5"])), "upt")["upt|0.5"].ap[ride] == 0  # exactly 0.5, and > 0.5 is asked
