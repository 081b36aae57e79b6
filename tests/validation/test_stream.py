"""Every check of `hoicli validate`: a minimal case that shows it, and a good pair that shows none."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.validation.findings import CHECKS
from hoicli.validation.stream import validate_images
from hoicli.vocabulary.datasets import load
from tests.support.kernel import stream
from tests.support.project import EIGHT, PREDICTIONS, Hoicli, saved

HICO = load("hico")
GOOD: dict[str, Any] = {
    "image_id": "a",
    "width": 64,
    "height": 48,
    "boxes": [[1, 1, 9, 9], [20, 20, 39, 39]],
    "labels": ["person", "kite"],
    "hois": [
        {"subject": 0, "object": 1, "verb": "fly", "score": 0.5},
        {"subject": 0, "object": 1, "verb": "hold", "score": 0.4},
    ],
}


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


@pytest.mark.parametrize(
    ("record", "check", "count", "example"),
    [
        (with_(labels=["person"]), "malformed", 1, "p:1: labels: 1 labels for 2 boxes; give one label a box"),
        (with_(labels=["person", "dragon"]), "unknown-label", 1, "p:1: labels[1]: unknown object 'dragon'"),
        (with_(boxes=[[1, 1, 9, 9], [0, 0, 0, 0]]), "box-without-area", 1, "p:1: boxes[1]: [0, 0, 0, 0]"),
        (with_(boxes=[[30, 20, 10, 9], [20, 20, 39, 39]]), "looks-like-xywh", 1, "p:1: boxes[0]: [30, 20, 10, 9]"),
        (
            with_(boxes=[[1, 1, 9, 9], [20, 20, 639, 39]]),
            "box-outside-image",
            1,
            "p:1: boxes[1]: [20, 20, 639, 39], the image is 64 x 48",
        ),
        (with_(boxes=[[0, 0, 0.5, 1], [0.2, 0.2, 0.4, 0.9]]), "relative-box", 2, "p:1: boxes[0]: [0, 0, 0.5, 1]"),
        (with_(hois=[{**hoi, "score": 0.5} for hoi in GOOD["hois"]]), "all-scores-equal", 2, "p: every score is 0.5"),
        (
            with_(hois=[{"subject": 0, "object": 1, "verb": verb} for verb in ("fly", "hold", "fly", "fly")]),
            "doubled-annotation",
            2,
            "p:1: hois[2]: fly kite on the same two boxes",
        ),
        (
            with_(hois=[*GOOD["hois"], {"subject": 0, "object": 1, "verb": "ride", "score": 0.1}]),
            "no-such-interaction",
            1,
            "p:1: hois[2]: ride kite",
        ),
        (
            with_(hois=[{**GOOD["hois"][0], "score": score} for score in (-0.5, 0, 1, 1.5)]),
            "score-outside-range",
            2,
            "p:1: hois[0].score: -0.5",
        ),
        (
            with_(
                boxes=[*GOOD["boxes"], GOOD["boxes"][0]],
                labels=["person", "kite", "person"],
                hois=[*GOOD["hois"], {**GOOD["hois"][1], "subject": 2}],
            ),
            "duplicate-triplet",
            1,
            "p:1: hois[2]: hold kite on the same two boxes",
        ),
        (with_(labels=["kite", "kite"]), "subject-no-person", 2, "p:1: hois[0].subject: a kite"),
        (
            with_(hois=[{**GOOD["hois"][0], "object": 0}, GOOD["hois"][1]]),
            "subject-is-object",
            1,
            "p:1: hois[0]: boxes[0] is both",
        ),
        (with_(width="64"), "bad-optional-field", 1, 'p:1: width: "64" is no size'),
        ({"error": "match stopped: full"}, "not-whole", 1, "p:1: match stopped: full; mend that"),
    ],
)
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
    assert rows == [
        {
            "check": "malformed",
            "severity": "error",
            "count": 1,
            "example": f"{path}:1: labels: 1 labels for 2 boxes; give one label a box",
            "fix": CHECKS["malformed"],
        }
    ]
