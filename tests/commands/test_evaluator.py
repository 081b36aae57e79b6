"""`Evaluator`: the command's numbers from arrays, in any order and from any number of processes; what it refuses."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoicli
from hoicli.errors import DataError, HoicliError, HoicliWarning, UsageError
from hoicli.vocabulary.datasets import load
from tests.support.kernel import arrays
from tests.support.project import GT, PREDICTIONS, VCOCO, Hoicli, Record, complaint, records, refusal, written

FOUND = records(PREDICTIONS)
IMAGE, GOOD = str(FOUND[0]["image_id"]), arrays(FOUND[0])


def filled(found: list[Record], evaluator: hoicli.Evaluator | None = None, **options: Any) -> hoicli.Evaluator:
    evaluator = evaluator or hoicli.Evaluator(GT, **options)
    for record in found:
        evaluator.update(record["image_id"], **arrays(record))
    return evaluator


def printed(hoicli: Hoicli, *arguments: object) -> tuple[list[Record], list[str]]:
    done = hoicli(*arguments)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    return rows, [line.removeprefix("hoicli: ") for line in done.err.splitlines()]


@pytest.mark.parametrize(("options", "computed", "command"), [
    ({}, {}, ()),
    ({"protocol": "hico,qpic"}, {"per_class": True}, ("--protocol", "hico,qpic", "--per-class")),
    ({"protocol": ["hico"], "top_k": 3, "nms": 0.5}, {"split": "rf-uc", "tag": {"epoch": "3"}},
     ("--protocol", "hico", "--top-k", 3, "--nms", 0.5, "--split", "rf-uc", "--tag", "epoch=3")),
    ({"protocol": "diag"}, {"ignore_no_interaction": True, "bootstrap": 20, "seed": 1},
     ("--protocol", "diag", "--ignore-no-interaction", "--bootstrap", 20, "--seed", 1)),
    ({"protocol": "upt"}, {"metric": ["mPD", "mean_max_recall"]},
     ("--protocol", "upt", "--metric", "mean_max_recall,mPD")),
])  # fmt: skip
def test_rows_are_the_command_s(hoicli: Hoicli, options: Record, computed: Record, command: tuple[object, ...]) -> None:
    rows, notes = printed(hoicli, "eval", "--gt", GT, *command, PREDICTIONS)
    result = filled(FOUND, **options).compute(**computed)
    assert (result.rows, result.notes) == (rows, notes)


@pytest.mark.parametrize(("words", "metrics"), [
    ((), ["mAP"]),
    (("--metric", "mAP"), ["mAP"]),
    (("--metric", "mPD", "--metric", "mean_max_recall,mAP"), ["mAP", "mean_max_recall", "mPD"]),
    (("--per-class",), ["mAP", "mean_max_recall", "AP", "max_recall"]),
])  # fmt: skip
def test_the_metrics_that_were_asked_for(hoicli: Hoicli, words: tuple[str, ...], metrics: list[str]) -> None:
    rows, _ = printed(hoicli, "eval", "--gt", GT, "--protocol", "hico", *words, PREDICTIONS)
    assert list(dict.fromkeys(row["metric"] for row in rows)) == metrics


def test_a_metric_that_there_is_not(hoicli: Hoicli) -> None:
    refused = hoicli("eval", "--gt", GT, "--metric", "mAP,AR", PREDICTIONS)
    problem = "choose from mAP, mean_max_recall, mPD, hm"
    assert (refused.code, refused.out, refused.err) == (2, "", f"hoicli: --metric AR: {problem}\n")
    with pytest.raises(UsageError, match=f"metric='AR': {problem}"):
        filled(FOUND).compute(metric="AR")


def test_vcoco_with_roles(hoicli: Hoicli, tmp_path: Path) -> None:
    keys = ("image_id", "boxes", "labels", "hois")
    found = [{key: record[key] for key in keys} for record in records(VCOCO / "predictions.jsonl")]
    path = written(tmp_path / "predictions.jsonl", found)
    rows, notes = printed(hoicli, "eval", "--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl", path)
    evaluator = filled(found, hoicli_evaluator())
    assert (evaluator.compute().rows, evaluator.compute().notes) == (rows, notes)
    again = hoicli_evaluator().merge(evaluator.state())
    assert again.compute().rows == rows


def hoicli_evaluator() -> hoicli.Evaluator:
    return hoicli.Evaluator(VCOCO / "ground_truth.jsonl", dataset="vcoco")


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_and_sharding_change_nothing(random_: random.Random, processes: int) -> None:
    """Law 1 and 7: images in any order, over any number of processes, merged in any order, as objects or as arrays."""
    shuffled = FOUND.copy()
    random_.shuffle(shuffled)
    parts = [filled(shuffled[start::processes]) for start in range(processes)]
    random_.shuffle(parts)
    whole = hoicli.Evaluator(GT)
    for part in parts:
        whole.merge(part.state() if random_.random() < 0.5 else part)
    assert whole.compute().rows == filled(FOUND).compute().rows


def test_names_and_numbers_are_one(hoicli: Hoicli) -> None:
    vocabulary = load("hico")
    given = GOOD | {
        "labels": np.array([vocabulary.object_ids[name] for name in GOOD["labels"]], dtype=np.uint8),
        "verb": [vocabulary.verb_ids[name] for name in GOOD["verb"]],
    }
    for spelled in (given, GOOD | {"labels": np.array(GOOD["labels"]), "verb": tuple(GOOD["verb"])}):
        evaluator = filled(FOUND[1:])
        evaluator.update(IMAGE, **spelled)
        assert evaluator.compute().rows == filled(FOUND).compute().rows


def test_single_precision_is_kept() -> None:
    """A float32 is read as the number it is, in boxes and in scores: as a record with that number has it."""
    halved = {name: GOOD[name].astype(np.float32) for name in ("boxes", "score")}
    evaluator = hoicli.Evaluator(GT, "hico")
    evaluator.update(IMAGE, **GOOD | halved)
    hois = [hoi | {"score": score} for hoi, score in zip(FOUND[0]["hois"], halved["score"].tolist(), strict=True)]
    record = FOUND[0] | {"boxes": halved["boxes"].tolist(), "hois": hois}
    assert evaluator.compute().rows == hoicli.evaluate(GT, [record], protocol="hico").rows
    assert evaluator.state()["boxes"].dtype == np.float32


def test_reset_keeps_the_ground_truth_alone() -> None:
    evaluator = filled(FOUND)
    before = evaluator.compute().rows
    evaluator.reset()
    with pytest.raises(DataError, match=r"^compute\(\): no image was updated$"):
        evaluator.compute()
    assert filled(FOUND, evaluator).compute().rows == before


def test_a_state_is_plain_arrays(tmp_path: Path) -> None:
    state = filled(FOUND).state()
    assert all(values.dtype.kind in "iuf" for values in state.values())
    np.savez(tmp_path / "state.npz", **state)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        assert hoicli.Evaluator.from_state(saved, GT, top_k=2).compute().rows == filled(FOUND, top_k=2).compute().rows
    parts = [filled(FOUND[:3]).state(), filled(FOUND[3:]).state()]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    assert hoicli.Evaluator.from_state(joined, GT).compute().rows == filled(FOUND).compute().rows
    empty = hoicli.Evaluator(GT).state()
    assert repr(hoicli.Evaluator(GT, "hico").merge(empty)) == "Evaluator(hico; 0 of 8 images)"


def test_what_is_saved_is_what_commands_read(hoicli: Hoicli, tmp_path: Path) -> None:
    """Predictions of all, the same bytes in any order; or the states of the processes, as they are."""
    parts = [filled(FOUND[::2], protocol="hico"), filled(FOUND[1::2], protocol="hico")]
    for number, part in enumerate(parts):
        np.savez(tmp_path / f"{number}.npz", **part.state())
    states = printed(hoicli, "eval", "--gt", GT, "--protocol", "hico", tmp_path / "0.npz", tmp_path / "1.npz")[0]
    filled(FOUND[::-1]).save(tmp_path / "back.jsonl")
    whole = parts[1].merge(parts[0])
    whole.save(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == (tmp_path / "back.jsonl").read_bytes()
    saved = printed(hoicli, "eval", "--gt", GT, "--protocol", "hico", tmp_path / "all.jsonl")[0]
    assert saved == states == whole.compute().rows
    broken = parts[0].state()
    broken["score"][0] = np.nan
    np.savez(tmp_path / "broken.npz", **broken)
    skipped = hoicli("convert", "--on-error", "skip", tmp_path / "broken.npz")
    assert len(skipped.out.splitlines()) == len(parts[0].state()["dataset"]) - 1
    assert f'skipped 1 item; the first: {tmp_path}/broken.npz: image "{IMAGE}".score[0]: NaN is no score' in skipped.err
    with pytest.raises(HoicliError, match="no/such/folder"):
        whole.save(tmp_path / "no/such/folder/all.jsonl")
    said = refusal(hoicli("eval", "--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl", tmp_path / "0.npz"))
    assert "0.npz: is of another dataset than vcoco" in said


@pytest.mark.parametrize(("box_format", "size", "box"), [
    ("xyxy", None, [10, 20, 50, 100]), ("xywh", None, [10, 20, 40, 80]), ("cxcywh", None, [30, 60, 40, 80]),
    ("xyxy", (200, 100), [0.1, 0.1, 0.5, 0.5]), ("xywh", np.array([200, 100]), [0.1, 0.1, 0.4, 0.4]),
    ("cxcywh", [200, 100], [0.3, 0.3, 0.4, 0.4]),
])  # fmt: skip
def test_boxes_of_every_convention(box_format: str, size: Any, box: list[float]) -> None:
    evaluator = hoicli.Evaluator(GT, "hico")
    one = {"labels": ["person"], "subject": [0], "object": [0], "verb": ["hug"], "score": [0.5], "boxes": [box]}
    evaluator.update(IMAGE, box_format=box_format, size=size, **one)
    assert evaluator.state()["boxes"].tolist() == [pytest.approx([10, 20, 50, 100], abs=1e-12)]


@pytest.mark.parametrize(("given", "message"), [
    ({"box_format": "xyhw"}, "box_format='xyhw': choose xyxy, xywh or cxcywh"),
    ({"size": 640}, f'update("{IMAGE}"): size: 640; give the image\'s height and width in pixels'),
    ({"size": (480, 0)}, f'update("{IMAGE}"): size: [480, 0]; give the image\'s height and width in pixels'),
])  # fmt: skip
def test_conventions_that_there_are_not(given: Record, message: str) -> None:
    assert complaint(HoicliError, hoicli.Evaluator(GT, "hico").update, IMAGE, **GOOD, **given) == message


def test_boxes_that_are_shares_of_the_image_are_a_warning() -> None:
    sizes = {record["image_id"]: (record["height"], record["width"]) for record in records(GT)}
    evaluator = hoicli.Evaluator(GT, "hico")
    for record in FOUND:
        height, width = sizes[record["image_id"]]
        given = arrays(record)
        evaluator.update(record["image_id"], **given | {"boxes": given["boxes"] / [width, height, width, height]})
    with pytest.warns(HoicliWarning, match="do the boxes fit"):
        evaluator.compute()


def test_an_image_of_two_processes_counts_once_if_it_is_the_same() -> None:
    rows = filled(FOUND).compute().rows
    assert filled(FOUND[:4]).merge(filled(FOUND[2:])).compute().rows == rows
    other = hoicli.Evaluator(GT)
    other.update(IMAGE, **GOOD | {"score": GOOD["score"] / 2})
    evaluator = filled(FOUND)
    with pytest.raises(DataError, match=rf'^merge\(\): image "{IMAGE}": has other predictions here; give each process'):
        evaluator.merge(other)
    assert evaluator.compute().rows == rows


def noisy(scale: float) -> hoicli.Evaluator:
    """All images; the first as another run of a network has it."""
    evaluator = filled(FOUND[1:])
    random_ = np.random.default_rng(1)
    changed = {name: GOOD[name] * (1 + scale * random_.uniform(-1, 1, GOOD[name].shape)) for name in ("boxes", "score")}
    evaluator.update(IMAGE, **GOOD | changed)
    return evaluator


@pytest.mark.parametrize("as_state", [False, True])
def test_an_image_that_a_sampler_repeats_counts_once_but_for_noise(*, as_state: bool) -> None:
    """As one of the two that it was, whichever came first; an update that repeats it, too."""
    one, other = filled(FOUND, iou=0.5), noisy(1e-6)
    merged = [
        hoicli.Evaluator(GT).merge(first).merge(second.state() if as_state else second)
        for first, second in ((one, other), (other, one))
    ]
    states = [{image: found.score.tolist() for image, found in each._images.items()} for each in merged]
    assert states[0] == states[1]
    assert "7 images came again with the same predictions, and count once" in merged[0].compute().notes
    with pytest.raises(DataError, match="has other predictions here"):
        noisy(1e-3).merge(one)
    one.update(IMAGE, **GOOD | {"score": GOOD["score"] + 1e-7})
    assert "1 images came again with the same predictions, and count once" in one.compute().notes
    one.reset()
    assert not [note for note in filled(FOUND, one).compute().notes if "came again" in note]


def strange(count: int, verb: str = "adjust") -> list[Record]:
    boxes = {"boxes": [[0, 0, 50, 50], [20, 20, 90, 90]], "labels": ["person", "car"]}
    hois = [{"subject": 0, "object": 1, "verb": verb, "score": 0.5}] * 3
    return [{"image_id": record["image_id"], **boxes, "hois": hois} for record in records(GT)[:count]]


def test_a_network_that_has_learnt_nothing_ends_no_job() -> None:
    """Where the command refuses a number there is a warning, and the signature says it."""
    evaluator = filled(strange(8), protocol="hico")
    with pytest.warns(HoicliWarning) as caught:
        rows = evaluator.compute().rows
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("compute(): 24 of 24 predictions, the best of 8 of 8 images among them, are no")
    assert any(text.startswith("compute(): do the boxes fit?") for text in said)
    assert {warning.filename for warning in caught} == {__file__}
    assert all("|uncounted:allowed|" in row["signature"] for row in rows)
    with pytest.raises(DataError, match="allow_uncounted computes with the others only"):
        hoicli.evaluate(GT, strange(8), protocol="hico")
    assert rows == hoicli.evaluate(GT, strange(8), protocol="hico", allow_uncounted=True).rows


def replaced(name: str, index: int, value: float) -> Any:
    array = GOOD[name].astype(np.float64).copy()
    array.flat[index] = value
    return array


@pytest.mark.parametrize(("given", "message"), [
    ({"boxes": GOOD["boxes"][:, :3]}, "boxes: has shape (5, 3), wants (n, 4)"),
    ({"boxes": GOOD["boxes"].astype(str)}, "boxes: has dtype <U32, wants numbers"),
    ({"labels": ["x" * 10**6] * 5}, f"labels[0]: unknown object '{'x' * 197}...'; "),
    ({"boxes": None}, "boxes: missing; an image has boxes, labels, subject, object, verb, score, empty where"),
    ({"boxes": replaced("boxes", 6, np.nan)}, "boxes[1]: [135.1, 243.7, NaN, 418.6] is no box; give four finite"),
    ({"boxes": [[0, 0, 1], [0, 0, 1, 1]]}, "boxes: list is no array ("),
    ({"labels": GOOD["labels"][1:]}, "labels: 4 labels for 5 boxes; give one label a box"),
    ({"labels": ["persn", *GOOD["labels"][1:]]}, "labels[0]: unknown object 'persn'; did you mean 'person'?"),
    ({"labels": [0, 0, 80, 0, 0]}, "labels[2]: number 80, but there are 80 objects in hico (see `hoicli"),
    ({"labels": [0, 0, -1, 0, 0]}, "labels[2]: number -1, but there are 80 objects in hico"),
    ({"labels": ["person", 3, None, 0, 0]}, "labels[1]: 3 is no name; give names alone, or numbers alone"),
    ({"subject": [0, 0, 0, 9, 0, 0]}, "subject[3]: index 9, but the image has 5 boxes; indices are 0-based"),
    ({"subject": GOOD["subject"] + 0.5}, "subject: has dtype float64, wants integers: indices of boxes"),
    ({"object": [1, 1, 1, 1, -1, 1]}, "object[4]: index -1, but the image has 5 boxes"),
    ({"object": [1, 1]}, "object: 2 values for 6 triplets (`subject` has 6)"),
    ({"verb": ["hold", "wawe", *GOOD["verb"][2:]]}, "verb[1]: unknown verb 'wawe'; did you mean"),
    ({"score": replaced("score", 2, np.inf)}, "score[2]: Infinity is no score; give a finite number"),
    ({"score": np.ma.masked_less(np.ones(6), 2)}, "score: a masked array, whose mask would not count; drop the"),
    ({"role": ["obj"] * 6}, "role: not of this ground truth or dataset; there are boxes, labels, subject,"),
])  # fmt: skip
def test_what_is_wrong_with_an_array_is_said_in_one_line(given: Record, message: str) -> None:
    evaluator = hoicli.Evaluator(GT)
    said = complaint(DataError, evaluator.update, IMAGE, **{**GOOD, **given})
    assert said.startswith(f'update("{IMAGE}"): {message}')
    assert "\n" not in said
    evaluator.update(IMAGE, **GOOD)  # a refused update leaves no trace


@pytest.mark.parametrize(("image_id", "message"), [
    ("", 'update(""): image_id: empty; name the image as the ground truth does'),
    ("nope", f"update(\"nope\"): 'nope' is not in the ground truth (which names images as {IMAGE!r}); give the "
             "ground truth of its set"),
    (IMAGE, f'update("{IMAGE}"): this image was updated already; update each once, and reset() before the next '
            "epoch"),
])  # fmt: skip
def test_images_that_cannot_be(image_id: Any, message: str) -> None:
    evaluator = filled(FOUND)
    assert complaint(DataError, evaluator.update, image_id, **GOOD | {"score": GOOD["score"] / 2}) == message


@pytest.mark.parametrize(("broken", "message"), [
    ({}, "state: no 'id_counts' in it; give what state() returned"),
    ({"ids": np.zeros(3, dtype=np.uint8)}, "state: its arrays do not fit together"),
    ({"role": np.array(["a"] * 41)}, "state: its arrays do not fit together"),
    ({"dataset": np.zeros((7, 2), dtype=int)}, "state: its arrays do not fit together"),
    ({"box_counts": np.array([1 << 62] * 7)}, "state: its arrays do not fit together"),
    ({"verb": np.full(41, 200)}, f'state: image "{IMAGE}": verb[0]: number 200, but there are 117 verbs in hico'),
    ({"dataset": np.zeros(7, dtype=int)}, "state: is of another dataset than hico; give its dataset"),
])  # fmt: skip
def test_a_state_is_checked_as_a_file_is(broken: Record, message: str) -> None:
    state = filled(FOUND).state()
    given = state | broken if broken else {}
    assert complaint(DataError, hoicli.Evaluator(GT).merge, given).startswith(message)


def test_a_state_of_another_dataset_or_ground_truth() -> None:
    state = filled(FOUND).state()
    with pytest.raises(DataError, match=r"^state: is of another dataset than vcoco; give its dataset$"):
        hoicli_evaluator().merge(state)
    with pytest.raises(UsageError, match=r"^merge\(\): is of hico, not vcoco; merge what shares a dataset$"):
        hoicli_evaluator().merge(filled(FOUND))
    with pytest.raises(DataError, match=r"is not in the ground truth; merge what shares one$"):
        hoicli.Evaluator([records(GT)[1]]).merge(state)


@pytest.mark.parametrize("dataset", ["hico", "vcoco"])
@given(data=st.data())
def test_no_array_is_a_traceback(dataset: str, data: st.DataObject) -> None:
    """Whatever stands in the arrays is taken, or refused in one line; what is taken can be computed."""
    evaluator = hoicli.Evaluator(GT) if dataset == "hico" else hoicli_evaluator()
    record = FOUND[0] if dataset == "hico" else records(VCOCO / "predictions.jsonl")[0]
    good = arrays(record)
    odd = st.sampled_from([
        None, [], "x", 3, 1.5, float("nan"), [None], ["person"], [b"x"], [[]], [[[]]], {}, object(), np.zeros((0, 4)),
        np.zeros((2, 4)), np.full((5, 4), np.inf), np.arange(6), -np.arange(6), np.array(["ride"] * 6), [2**70] * 6,
        np.zeros(6, dtype=complex), np.array([object()] * 6), np.zeros(6, dtype="M8[s]"), np.array(3), [True] * 6,
        np.zeros(6, dtype=[("a", "i4")]), np.ma.masked_array([0] * 6), [1e400] * 6, ["\ud800"] * 6, [""] * 6,
    ])  # fmt: skip
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(good)), odd, min_size=1))
    try:
        evaluator.update(record["image_id"], **{**good, **changed})
    except HoicliError as error:
        assert "\n" not in str(error)  # noqa: PT017 (not every change is refused)
    else:
        evaluator.compute()
