"""Every check of `hoicli validate`: a minimal case that shows it, a good pair that shows none; and
what is said of a file as a whole."""

from __future__ import annotations

import copy
import gzip
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.validation.findings import CHECKS
from hoicli.validation.stream import validate_images
from hoicli.validation.truth_evidence import ordered_pairs
from hoicli.vocabulary.datasets import load
from tests.support.kernel import stream
from tests.support.project import EIGHT, FIXTURES, PREDICTIONS, Hoicli, Record, saved

HICO = load("hico")
GOOD: dict[str, Any] = {"image_id": "a", "width": 64, "height": 48, "boxes": [[1, 1, 9, 9], [20, 20, 39, 39]]}
GOOD |= {"labels": ["person", "kite"], "hois": [{"subject": 0, "object": 1, "verb": "fly", "score": 0.5}]}
GOOD["hois"].append({"subject": 0, "object": 1, "verb": "hold", "score": 0.4})


def found(
    *records: Any, truth: list[dict[str, Any]] | None = None, open_vocabulary: bool = False
) -> dict[str, tuple[int, str]]:
    vocabulary = None if open_vocabulary else HICO
    facts = None if truth is None else validate_images(stream(truth, "gt"), vocabulary, facts=True).facts
    validator = validate_images(stream(records, "p"), vocabulary, truth=facts)
    return {finding.check: (finding.count, finding.example) for finding in validator.findings}


def with_(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **changes}


def test_boxes_that_are_rare_among_others_are_no_finding() -> None:
    """An object in the corner, a box that is cut off: not the tenth image, and the hundredth box."""
    others = [with_(image_id=str(number)) for number in range(60)]
    for boxes, check in (([[0, 0, 1, 1]] * 2, "relative-box"), ([[9, 9, 9, 12], [1, 1, 9, 9]], "box-without-area")):
        odd = with_(boxes=boxes)
        assert check in found(odd, *others[:5])
        assert check not in found(odd, *others)


def test_a_good_stream_has_no_findings() -> None:
    assert found(GOOD) == {}
    playing = with_(labels=["person", "computer"], hois=[{"subject": 0, "object": 1, "verb": "play(computer)"}])
    assert not list(validate_images(stream([playing], "p"), load("hoia")).findings)  # as HOI-A's files spell it


@pytest.mark.parametrize(("record", "check", "count", "example"), [
    (with_(labels=["person"]), "malformed", 1, "p:1: labels: 1 labels for 2 boxes; give one label a box"),
    (with_(labels=["person", "dragon"]), "unknown-label", 1, "p:1: labels[1]: unknown object 'dragon'"),
    (with_(boxes=[[1, 1, 9, 9], [0, 0, 0, 0]]), "box-without-area", 1, "p:1: boxes[1]: [0, 0, 0, 0]"),
    (with_(boxes=[[30, 20, 10, 9], [20, 20, 39, 39]]), "looks-like-xywh", 1, "p:1: boxes[0]: [30, 20, 10, 9]"),
    (with_(boxes=[[1, 1, 9, 9], [20, 20, 639, 39]]),
     "box-outside-image",
     1,
     "p:1: boxes[1]: [20, 20, 639, 39], the image is 64 x 48"),
    (with_(boxes=[[0, 0, 0.5, 1], [0.2, 0.2, 0.4, 0.9]]), "relative-box", 2, "p:1: boxes[0]: [0, 0, 0.5, 1]"),
    (with_(hois=[{**hoi, "score": 0.5} for hoi in GOOD["hois"]]), "all-scores-equal", 2, "p: every score is 0.5"),
    (with_(hois=[{"subject": 0, "object": 1, "verb": verb} for verb in ("fly", "hold", "fly", "fly")]),
     "doubled-annotation",
     2,
     "p:1: hois[2]: fly kite on the same two boxes"),
    (with_(hois=[*GOOD["hois"], {"subject": 0, "object": 1, "verb": "ride", "score": 0.1}]),
     "no-such-interaction",
     1,
     "p:1: hois[2]: ride kite"),
    (with_(hois=[{**GOOD["hois"][0], "score": score} for score in (-0.5, 0, 1, 1.5)]),
     "score-outside-range",
     2,
     "p:1: hois[0].score: -0.5"),
    (with_(
         boxes=[*GOOD["boxes"], GOOD["boxes"][0]],
         labels=["person", "kite", "person"],
         hois=[*GOOD["hois"], {**GOOD["hois"][1], "subject": 2}],
     ),
     "duplicate-triplet",
     1,
     "p:1: hois[2]: hold kite on the same two boxes"),
    (with_(labels=["kite", "kite"]), "subject-no-person", 2, "p:1: hois[0].subject: a kite"),
    (with_(hois=[{**GOOD["hois"][0], "object": 0}, GOOD["hois"][1]]),
     "subject-is-object",
     1,
     "p:1: hois[0]: boxes[0] is both"),
    (with_(width="64"), "bad-optional-field", 1, 'p:1: width: "64" is no size'),
    ({"error": "match stopped: full"}, "not-whole", 1, "p:1: match stopped: full; mend that"),
])  # fmt: skip
def test_each_check(record: Any, check: str, count: int, example: str) -> None:
    counted, first = found(record)[check]
    assert counted == count
    assert first.startswith(example)


def test_a_warning_that_no_metric_takes_in_such_numbers_is_an_error() -> None:
    """As eval refuses them."""
    bent = with_(boxes=[[39, 20, 20, 39], [1, 1, 9, 9]])
    others = [with_(image_id=f"b{number}") for number in range(50)]
    for records, severity in (([bent], "error"), ([bent, *others], "warning")):
        findings = validate_images(stream(records, "p"), HICO).findings
        (row,) = [finding.row() for finding in findings if finding.check == "inverted-box"]
        assert row["severity"] == severity


def test_an_image_twice() -> None:
    said = "p:2: image_id: image 'a' is at p:1 already; keep one line an image"
    assert found(GOOD, GOOD) == {"duplicate-image": (1, said)}


def test_the_pair() -> None:
    nothing: dict[str, Any] = {"boxes": [], "labels": [], "hois": []}
    small = {"image_id": "c", "width": 10, "height": 10, **nothing}
    truth = [{"image_id": "a", "width": 64, "height": 48, **nothing}, {"image_id": "b", **nothing}, small]
    stranger = with_(image_id="d")
    assert found(GOOD, stranger, truth=truth) == {
        "unknown-image": (
            1,
            "p:2: image_id: 'd' is not in the ground truth (which names images as 'a'); give the set it belongs to, or "
            "pass --on-error skip",
        ),
        "image-without-predictions": (2, "p: no line for 'b'"),
    }
    longer = [{"image_id": "set-b", **nothing}]
    assert (
        "'set-' is missing in front: jq -c '.image_id |= \"set-\" + .'"
        in found(with_(image_id="b"), truth=longer)["unknown-image"][1]
    )
    # the size of an image comes from the ground truth where the prediction has none
    bare = {key: value for key, value in GOOD.items() if key not in ("width", "height")} | {"image_id": "c"}
    assert found(bare, truth=[small])["box-outside-image"][0] == 1
    assert found(bare) == {}


def test_swapped_files_and_streams_of_other_records(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions, matches = EIGHT / "gt.jsonl", PREDICTIONS, tmp_path / "matches.jsonl"

    def told(gt: Path, path: Path) -> dict[str, str]:
        rows = map(json.loads, hoicli("validate", "--gt", gt, path).out.splitlines())
        checks = ("swapped-files", "no-scores")
        return {row["example"].split(":")[0]: row["check"] for row in rows if row["check"] in checks}

    assert told(truth, predictions) == {}
    assert told(predictions, truth) == {str(predictions): "swapped-files", str(truth): "no-scores"}
    matches.write_text(hoicli("match", "--gt", truth, predictions, "--protocol", "hico,diag").out)
    assert hoicli("validate", "--gt", truth, matches).out == ""  # each image has its lines
    matches.write_text(hoicli("eval", "--gt", truth, predictions, "--protocol", "hico").out)
    assert hoicli("validate", "--gt", truth, matches).out == ""


def test_boxes_of_whole_images_and_sound_ones_are_no_cases() -> None:
    odd = with_(boxes=[[30, 20, 10, 9], [20, 20, 639, 39]])
    assert found(odd).keys() == {"inverted-box", "looks-like-xywh", "box-outside-image"}
    assert found({**odd, "caveats": ["whole_image"]}) == {}
    twice = with_(hois=[*GOOD["hois"], {**GOOD["hois"][0], "verb": "pull"}])  # other verbs on the same boxes
    assert found(twice) == {}


def test_an_open_vocabulary_takes_any_name() -> None:
    record = with_(labels=["person", "dragon"], hois=[{"subject": 0, "object": 1, "verb": "tame", "score": 0.5}])
    assert found(record, open_vocabulary=True) == {}
    assert found(record).keys() == {"unknown-label"}


def test_matches_and_results_are_checked_too() -> None:
    row = {"metric": "mAP", "subset": "full", "value": 1.0, "n": 1, "unit": "%", "protocol": "hico", "tags": {}}
    assert found(row) == {}
    assert found({**row, "value": "1.0"})["malformed"][1].startswith("p:1: value: missing or no finite number")
    match: dict[str, Any] = {"image_id": "a", "protocol": "hico", "settings": {}, "predictions": [], "gt": []}
    match["box_matches"] = []
    assert "match again" in found(match)["malformed"][1]  # of a version that did not say which ground truth it was
    match |= {"gt_digest": "5e0e30fe", "gt_images": 1, "gt_hash": "1"}
    assert found(match) == {}
    for key, value in (("gt_digest", "5e"), ("gt_images", 0), ("gt_images", True), ("partial", 1)):
        assert found({**match, key: value})["malformed"][1].startswith(f"p:1: {key}: ")
    future = {**match, "protocol": "hico-2030"}
    assert found(future)["unknown-protocol"][1].startswith("p:1: protocol: unknown protocol 'hico-2030'; choose from ")
    assert found(future).keys() == {"unknown-protocol"}
    bad = {**match, "gt": [{"verb": "fly", "label": "kate"}]}
    assert found(bad)["unknown-label"][1] == (
        "p:1: gt[0].label: unknown object 'kate'; did you mean 'kite'? own classes? hoicli vocab --from GT.jsonl -o "
        "FILE.json"
    )


def test_the_command_ends_with_1_only_for_errors(hoicli: Hoicli, tmp_path: Any) -> None:
    assert hoicli("validate", "--gt", EIGHT / "gt.jsonl", PREDICTIONS).code == 0
    path = saved(tmp_path / "p.jsonl", orjson.dumps(with_(labels=["person"])))
    result = hoicli("validate", path)
    assert result.code == 1
    rows = [json.loads(line) for line in result.out.splitlines()]
    example = f"{path}:1: labels: 1 labels for 2 boxes; give one label a box"
    wanted = {"check": "malformed", "severity": "error", "count": 1, "example": example, "fix": CHECKS["malformed"]}
    assert rows == [wanted]


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
