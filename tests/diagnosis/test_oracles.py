"""What a diagnosis says besides deltas, each counted anew from the records of the fixtures: the drawing of the ranked
list, the images of each error, the lists that are resampled; and the edges of its rules by hand."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.diagnosis.error_types import ERRORS
from hoicli.diagnosis.repair_assignment import Reading
from hoicli.diagnosis.repairs import Diagnosis
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.ranking import Listed
from hoicli.figures.styles import _INKS, STYLES
from hoicli.interface.choices import entries, oracles
from hoicli.records.oracles import IN_TURN, OF_A_SIDE, ORACLES
from tests.support.diagnosis import DIAG, HICO, READINGS, diagnosis, diagnosis_of, typed
from tests.support.kernel import ground_truth
from tests.support.project import GT, PREDICTIONS, Hoicli, Record, records

TRUTH, PREDICTED = records(GT), records(PREDICTIONS)[:-1]
"""Some images of the ground truth are in no batch of predictions."""
UNSEEN = {record["image_id"] for record in TRUTH} - {record["image_id"] for record in PREDICTED}
IDS = sorted(record["image_id"] for record in TRUTH)
EVERY = ["none", *ORACLES]


@cache
def of_fixtures(reading: Reading = "shared") -> Diagnosis:
    (listed, first), (other, second) = (diagnosis_of(TRUTH, PREDICTED[half::2], reading) for half in (1, 0))
    listed.merge(other)
    first.merge(second)
    first.add_unseen(ground_truth(TRUTH))
    return first


@cache
def emitted() -> list[Record]:
    return typed(TRUTH, PREDICTED)


def unseen_truth() -> list[tuple[str, int]]:
    """(image, class) of what `diag` counts in the images without predictions."""
    unseen = [record for record in TRUTH if record["image_id"] in UNSEEN]
    return [
        (record["image_id"], HICO.interaction_ids[hoi["verb"], record["labels"][hoi["object"]]])
        for record in unseen
        for hoi in record["hois"]
        if hoi["verb"] != "no_interaction"
    ]


def class_of(item: Record) -> int:
    return HICO.interaction_ids[item["verb"], item["label"]]


def test_the_drawing_counts_each_type_of_error_in_each_part_of_the_ranked_list() -> None:
    items = [item for record in emitted() for item in record["predictions"]]
    ranked = sorted((-item["score"], ERRORS.index(item["error"])) for item in items)
    truth = sum(len(record["gt"]) for record in emitted()) + len(unseen_truth())
    edges, found = of_fixtures().composition().values()
    assert list(found) == list(ERRORS)
    end = min(len(ranked), 3 * truth)
    assert edges[0] == 0
    assert len(set(np.diff(edges))) == 1
    assert edges[-2] < end
    assert len(ranked) > 3 * truth or edges[-1] >= end
    for code, name in enumerate(ERRORS):
        parts = [ranked[start:stop] for start, stop in pairwise(edges)]
        assert found[name] == [sum(error == code for _, error in part) for part in parts]
    assert sum(map(sum, found.values())) == min(len(ranked), edges[-1])


def test_every_error_is_where_it_was_made() -> None:
    expected: dict[str, Counter[tuple[str, int]]] = {name: Counter() for name in (*ERRORS, "missed_gt")}
    for record in emitted():
        for item in record["predictions"]:
            expected[item["error"]][record["image_id"], class_of(item)] += 1
        expected["missed_gt"].update((record["image_id"], class_of(item)) for item in record["gt"] if item["missed"])
    expected["missed_gt"].update(unseen_truth())
    for ids in (IDS, [*reversed(IDS), "another"]):
        found = of_fixtures().group_errors(ids)
        assert list(found) == list(expected)
        for name, (images, classes) in found.items():
            assert classes.dtype == np.int64
            assert Counter(zip([ids[row] for row in images], classes.tolist(), strict=True)) == expected[name]


def test_the_released_code_misses_nothing_in_images_without_predictions() -> None:
    shared, released = (of_fixtures(reading).counts()["missed_gt"] for reading in ("shared", "released"))
    unseen = np.bincount([number for _, number in unseen_truth()], minlength=len(HICO.interactions))
    assert (shared >= unseen).all()
    assert unseen.sum() > 0
    images, _ = of_fixtures("released").group_errors(IDS)["missed_gt"]
    assert UNSEEN.isdisjoint(IDS[row] for row in images)
    assert released.sum() == len(images)


@pytest.mark.parametrize("ids", [IDS, ["another", *reversed(IDS)]])
@pytest.mark.parametrize("reading", ["shared", "released"])
def test_the_ranked_lists_give_the_results_and_know_their_images(reading: Reading, ids: list[str]) -> None:
    found = of_fixtures(reading)
    without = OF_A_SIDE if reading == "released" else ()  # it has them for V-COCO only
    every = [oracle for oracle in EVERY if oracle not in without]
    ranked = list(found.make_list_ranker(ids)(every))
    assert [result.oracle for result in found.results(HICO)] == every
    for lists, result in zip(ranked, found.results(HICO), strict=True):
        assert (lists.images, lists.grid, lists.cap) == (len(ids), DIAG.grid, None)
        assert lists.ap(np.ones((len(ids), 1), dtype=np.int32))[0][:, 0] == pytest.approx(result.ap, abs=1e-12)
    lists = ranked[0]
    hits = Counter(ids[row] for row in lists.image[lists.hit])
    annotated = [(record["image_id"], item["prediction"]) for record in emitted() for item in record["gt"]]
    assert hits == Counter(name for name, found in annotated if found is not None)
    truth = Counter(ids[row] for row in lists.truth_image)
    seen = Counter(record["image_id"] for record in emitted() for _ in record["gt"])
    assert truth == seen + Counter(name for name, _ in unseen_truth())


def test_the_released_code_leaves_out_classes_that_are_all_wrong_and_of_groups_silent_ones_too() -> None:
    """Class 2 is right, of class 3 all is wrong, of class 4 nothing is said, class 5 is not annotated."""
    truth, predicted = [image(2, 3, 4), image(3, name="other")], [scored(2), scored(3, name="other", far=True)]
    cases: list[tuple[Reading, list[int], list[int]]]
    cases = [("shared", [2, 3, 4], [2, 3, 4]), ("released", [2, 4], [2])]
    for reading, full, groups in cases:
        first = next(diagnosis(truth, predicted, reading).results(HICO))
        assert (first.in_full.nonzero()[0].tolist(), first.in_groups.nonzero()[0].tolist()) == (full, groups)


def test_no_interaction_is_in_the_mean_where_the_protocol_counts_it() -> None:
    number = min(HICO.no_interaction_ids)
    found = next(Diagnosis(PROTOCOLS["hico"], len(HICO.interactions), Listed()).results(HICO))
    assert not found.in_full.any()
    first = diagnosed_by_hico([image(number, 2)])
    assert first.positives[number] == 1
    assert next(first.results(HICO)).in_full.nonzero()[0].tolist() == [2, number]


def diagnosed_by_hico(truth: list[Record]) -> Diagnosis:
    found = Diagnosis(PROTOCOLS["hico"], len(HICO.interactions), Listed())
    found.add_unseen(ground_truth(truth))
    return found


def test_a_diagnosis_gathered_in_parts_is_that_of_the_whole() -> None:
    """Numbers of predictions, ground truth and images move when parts are joined; -1 for none stays."""
    for reading in READINGS:
        whole = diagnosis(TRUTH, PREDICTED, reading)
        for ours, theirs in zip(of_fixtures(reading).results(HICO), whole.results(HICO), strict=True):
            assert (ours.oracle, ours.ap.tolist()) == (theirs.oracle, theirs.ap.tolist())
            assert ours.max_recall.tolist() == theirs.max_recall.tolist()


def test_the_first_prediction_of_all_may_be_replaced() -> None:
    predicted = scored(3, 2)
    predicted["hois"].reverse()  # the right one first, with the lower score
    plain, corrected = diagnosis([image(2)], [predicted]).make_list_ranker(["one"])(["none", "interaction"])
    assert plain.hit.tolist() == [True, False]
    assert corrected.hit.tolist() == [True]


def test_the_oracles_of_all_false_positives_and_of_all_misses() -> None:
    """Class 2 is found in one image, behind a wrong one, and not in the other."""
    truth = [image(2, name="a"), image(2, name="b")]
    predicted = [scored(2, name="a"), scored(2, name="b", far=True)]
    predicted[1]["hois"][0]["score"] = 0.95
    found = {result.oracle: result for result in diagnosis(truth, predicted).results(HICO)}
    assert list(found) == ["none", *ORACLES]
    eleventh = 1 / 11
    ap = {name: pytest.approx(result.ap[2], abs=1e-12) for name, result in found.items()}
    assert ap["none"] == 6 * eleventh / 2
    assert ap["both_boxes"] == 6 * eleventh
    assert ap["false_positive"] == 6 * eleventh
    assert ap["false_negative"] == 0.5
    assert ap["missed_gt"] == 0.5
    assert [found[name].max_recall[2] for name in ("none", "false_positive", "false_negative")] == [0.5, 0.5, 1.0]


def test_matches_of_what_is_no_interaction_are_diagnosed_like_predictions(hoicli: Hoicli, tmp_path: Path) -> None:
    """`fly person` is none of the 600: its predictions are no errors, in whatever image they stand."""
    truth, predictions, matches = (tmp_path / name for name in ("gt.jsonl", "predictions.jsonl", "matches.jsonl"))
    odd = {"subject": 0, "object": 0, "verb": "fly", "score": 0.99}
    predicted = [scored(2, 3, name="a"), scored(3, name="b"), scored(2, name="c")]
    predicted[1]["hois"].append(odd)
    truth.write_text("".join(json.dumps(image(2, name=name)) + "\n" for name in ("a", "b", "c")))
    predictions.write_text("".join(json.dumps(record) + "\n" for record in predicted))
    given = ("--gt", truth, predictions)
    assert hoicli("match", "--protocol", "diag", *given, "-o", matches).code == 0
    expected = hoicli("diagnose", *given)
    assert expected.code == 0
    assert hoicli("diagnose", matches, "--gt", truth).out == expected.out


def image(*classes: int, name: str = "one", far: bool = False) -> Record:
    """One person beside an object of each class's label. far: elsewhere than in other images."""
    pairs = [HICO.interactions[number] for number in classes]
    labels = sorted({label for _, label in pairs})
    places = [3000.0 * far + 100.0 * place for place in range(len(labels) + 1)]
    return {
        "image_id": name,
        "boxes": [[place, 0.0, place + 50, 50.0] for place in places],
        "labels": ["person", *labels],
        "hois": [{"subject": 0, "object": 1 + labels.index(label), "verb": verb} for verb, label in pairs],
    }


def scored(*classes: int, **where: Any) -> Record:
    """The same predicted; scores fall."""
    record = image(*classes, **where)
    return record | {"hois": [hoi | {"score": 0.9 - row / 100} for row, hoi in enumerate(record["hois"])]}


def test_an_oracle_is_drawn_offered_and_applied_by_its_declaration() -> None:
    bare = [name for name in ORACLES if name not in _INKS]
    assert not bare, f"{bare}: give each a colour and a hatch in _INKS of hoicli/figures/styles.py"
    assert len({(style.colour, style.hatch) for style in STYLES.values()}) == len(STYLES), "two look alike in figures"
    assert {name for name, _ in entries(oracles)} == {"all", *IN_TURN}
    assert set(IN_TURN) | set(OF_A_SIDE) == set(ORACLES)
    with pytest.raises(ValueError, match="nothing applies the oracle new; write what it does in "):
        of_fixtures()._corrections.after(["new"])
