"""What `validate` says of a file as a whole: scores that rank the wrong way round, boxes copied from the ground truth,
more triplets than protocols count, and ground truth of few classes."""

from __future__ import annotations

import gzip
import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.validation.stream import validate_images
from hoicli.validation.truth_evidence import ordered_pairs
from hoicli.vocabulary.datasets import load
from tests.support.kernel import stream
from tests.support.project import FIXTURES, Record

HICO = load("hico")


def sample(name: str) -> list[Record]:
    return [json.loads(line) for line in gzip.open(FIXTURES / f"sample/{name}.jsonl.gz")]


@pytest.fixture(scope="module")
def truth() -> list[Record]:
    return sample("gt")


@pytest.fixture
def predictions() -> list[Record]:
    return sample("baseline")


def checks(records: list[Record], truth: list[Record]) -> dict[str, tuple[int, str]]:
    """By check, the count and the example of what `validate` finds in predictions."""
    facts = validate_images(stream(truth, "gt"), HICO, facts=True).facts
    findings = validate_images(stream(records, "p"), HICO, truth=facts).findings
    return {finding.check: (finding.count, finding.example) for finding in findings}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=20))
def test_pairs_of_an_image_are_counted_one_by_one(items: list[tuple[int, int, bool]]) -> None:
    pairs = [
        (image, 2 * (score > other) + (score == other))
        for (image, score, right), (other_image, other, other_right) in product(items, items)
        if image == other_image and right and not other_right
    ]
    image, score = (np.array([item[place] for item in items], dtype=np.float64) for place in (0, 1))
    right = np.array([right for _, _, right in items], dtype=np.bool_)
    images = len({image for image, _ in pairs})
    points = sum(points for _, points in pairs)
    assert ordered_pairs(image.astype(np.int64), score, right) == (images, len(pairs), points)


def test_scores_that_rank_the_wrong_way_round(truth: list[Record], predictions: list[Record]) -> None:
    assert checks(predictions, truth) == {}
    for record in predictions:
        for hoi in record["hois"]:
            hoi["score"] = 1 - hoi["score"]
    text = "p: an annotated class has a higher score than another one of its image in 31% of all pairs"
    assert checks(predictions, truth) == {"scores-worse-than-chance": (391, text)}
    assert "scores-worse-than-chance" not in checks(predictions[:19], truth), "too few images to tell"


def test_boxes_that_repeat_the_ground_truth(truth: list[Record], predictions: list[Record]) -> None:
    """In more than one image of a hundred, also if they were stored in single precision."""
    boxes = {record["image_id"]: record["boxes"] for record in truth if record["boxes"]}
    with_truth = [record for record in predictions if record["boxes"] and record["image_id"] in boxes]
    few = (len(predictions) - 1) // 100
    for record in with_truth[:few]:
        record["boxes"][0] = [float(np.float32(corner)) for corner in boxes[record["image_id"]][0]]
    assert "boxes-of-ground-truth" not in checks(predictions, truth)
    with_truth[-1]["boxes"][0] = boxes[with_truth[-1]["image_id"]][0]
    with_truth[-2]["boxes"][0] = boxes[with_truth[-2]["image_id"]][0]
    text = f"p: in {few + 2} of {len(predictions)} images a box is an annotated one to the digit"
    assert checks(predictions, truth)["boxes-of-ground-truth"] == (few + 2, text)


def test_more_triplets_than_are_counted(truth: list[Record], predictions: list[Record]) -> None:
    """100 by qpic; none of SWIG-HOI's protocols has such a limit."""
    record = max(predictions, key=lambda record: len(record["hois"]))
    record["hois"] = [{**record["hois"][0], "score": number / 1000} for number in range(250)]
    total = sum(len(record["hois"]) for record in predictions)
    share = f"{150 / total:.1%} of all triplets are beyond"
    text = f"p: 1 of {len(predictions)} images have more than 100 triplets; {share}"
    assert checks(predictions, truth)["more-than-counted"] == (150, text)
    for vocabulary in (None, load("swig")):
        findings = validate_images(stream([record], "p"), vocabulary).findings
        assert "more-than-counted" not in {finding.check for finding in findings}


def test_most_classes_without_ground_truth(truth: list[Record]) -> None:
    """Of fewer than 20 images nobody expects most classes."""
    for images, is_told in ((19, False), (20, True), (800, False)):
        findings = {finding.check: finding for finding in validate_images(stream(truth[:images], "p"), HICO).findings}
        assert ("classes-without-ground-truth" in findings) == is_told
        if is_told:
            annotated = {
                (hoi["verb"], record["labels"][hoi["object"]]) for record in truth[:images] for hoi in record["hois"]
            }
            verb, name = next(pair for pair in HICO.interactions if pair not in annotated)
            finding = findings["classes-without-ground-truth"]
            assert finding.count == 600 - len(annotated)
            assert finding.example == f"p: {finding.count} of 600 classes of hico (the first: {verb} {name})"
