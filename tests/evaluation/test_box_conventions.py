"""What eval and its like say, at next to no cost, where predicted boxes do not lie where annotated ones do."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.support.project import GT, OTHER, PREDICTIONS, Hoicli, parsed, records, refusal, saved, written

Box = list[float]


SIZES = {record["image_id"]: (record["width"], record["height"]) for record in records(GT)}


def bent(folder: Path, change: Callable[[Box, tuple[float, float]], Box], name: str = "p.jsonl") -> Path:
    """The predictions of the fixtures with other boxes, given each image's size."""
    found = records(PREDICTIONS)
    for record in found:
        record["boxes"] = [change(box, SIZES[record["image_id"]]) for box in record["boxes"]]
    return written(folder / name, found)


RELATIVE = "and none of their numbers is above 2: parts of the image's sides (0-1)?"
CHANGES: dict[str, Callable[[Box, tuple[float, float]], Box]] = {
    "11 if they are [x, y, w, h] (hoicli convert --box-form xywh)": lambda b, _: [b[0], b[1], b[2] - b[0], b[3] - b[1]],
    "11 if they are [y1, x1, y2, x2]": lambda b, _: [b[1], b[0], b[3], b[2]],
    "11 if they are [x2, y2, x1, y1]": lambda b, _: [b[2], b[3], b[0], b[1]],
    RELATIVE: lambda b, s: [b[0] / s[0], b[1] / s[1], b[2] / s[0], b[3] / s[1]],
}  # fmt: skip
COMMANDS = {
    "eval": ("eval",), "match": ("match",), "diagnose": ("diagnose",),
    "diagnose --emit": ("diagnose", "--emit", "predictions"), "compare": ("compare", "--bootstrap", "10"),
    "pairstats": ("pairstats",), "recall": ("recall",), "confusion": ("confusion",), "curves": ("curves",),
    "audit": ("audit",), "shoe-eval": ("shoe-eval", "--sim", "lexical"),
}  # fmt: skip


def questions(err: str) -> list[str]:
    return [line for line in err.splitlines() if "do the boxes fit?" in line]


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", COMMANDS)
def test_boxes_of_another_convention_are_asked_about(name: str, what: str, hoicli: Hoicli, tmp_path: Path) -> None:
    streams = [bent(tmp_path, CHANGES[what])]
    if name == "compare":
        streams.insert(0, PREDICTIONS)
    result = hoicli(*COMMANDS[name], "--gt", GT, *streams)
    if "x2, y2" in what or "w, h" in what:  # such boxes are inverted
        assert (result.code, result.err.count("\n")) == (1, 1 if name != "compare" else 2)
        assert f" of the 12 boxes of best predictions meet an annotated box, {what}; convert them" in result.err
        return
    if what == RELATIVE:
        assert (result.code, result.err.count("\n")) == (1, 1 if name != "compare" else 2)
        assert result.err.endswith(f"{what}; multiply x by the image's width and y by its height (hoicli validate)\n")
        return
    assert result.code == 0
    model = "p: " if name == "compare" else ""
    (question,) = questions(result.err)
    assert question.startswith(f"hoicli: {model}do the boxes fit? ")
    assert question.endswith(
        f" of the 12 boxes of best predictions meet an annotated box, {what}; hoicli validate --gt GT PREDS tells more"
    )


def exchanged(folder: Path) -> Path:
    """The predictions of the fixtures with the two boxes of each triplet exchanged, but not their labels."""
    found = records(PREDICTIONS)
    for record in found:
        boxes, labels = record["boxes"], record["labels"]
        pairs = [(hoi["subject"], hoi["object"]) for hoi in record["hois"]]
        record["boxes"] = [boxes[row] for subject, object_ in pairs for row in (object_, subject)]
        record["labels"] = [labels[row] for pair in pairs for row in pair]
        for number, hoi in enumerate(record["hois"]):
            hoi.update(subject=2 * number, object=2 * number + 1)
        record.pop("scores", None)
    return written(folder / "p.jsonl", found)


@pytest.mark.parametrize("name", COMMANDS)
def test_exchanged_boxes_are_asked_about(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """Labels that come from the interaction fit, and every box is on an annotated one: only its role is wrong."""
    path = exchanged(tmp_path)
    streams = [PREDICTIONS, path] if name == "compare" else [path]
    (question,) = questions(hoicli(*COMMANDS[name], "--gt", GT, *streams).err)
    assert " of the 12 boxes of best predictions meet an annotated box of their role, 1" in question
    assert " if subject and object are exchanged; hoicli validate --gt GT PREDS tells more" in question
    (finding,) = [
        row for row in parsed(hoicli("validate", "--gt", GT, path).out) if row["check"] == "boxes-off-ground-truth"
    ]
    assert " if subject and object are exchanged" in finding["example"]


@pytest.mark.parametrize("name", COMMANDS)
def test_boxes_that_fit_are_not_asked_about(name: str, hoicli: Hoicli) -> None:
    streams = [PREDICTIONS, OTHER][: 1 + (name == "compare")]
    assert questions(hoicli(*COMMANDS[name], "--gt", GT, *streams).err) == []


def turned(box: Box, _: tuple[float, float]) -> Box:
    return [box[2], box[3], box[0], box[1]]


def with_inverted(source: Path, path: Path, share: int) -> Path:
    """The records, each eight times under other names, with the corners of every so many-th box exchanged."""
    found, number = records(source), 0
    copies = [{**record, "image_id": f"{record['image_id']}_{copy}"} for copy in range(8) for record in found]
    for record in copies:
        boxes = []
        for box in record["boxes"]:
            number += 1
            boxes.append(turned(box, (0, 0)) if number % share == 0 else box)
        record["boxes"] = boxes
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in copies))
    return path


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("side", ["ground truth", "predictions"])
def test_inverted_boxes_are_told_of_and_many_are_refused(name: str, side: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """They overlap nothing, so half the lines in x, y, w, h give half the number, and nothing else shows it."""
    whole = {"ground truth": GT, "predictions": PREDICTIONS}
    sound, few, many = (
        {of: with_inverted(path, tmp_path / f"{of}_{share}", share) for of, path in whole.items()}
        for share in (10**6, 120, 10)
    )
    for bent_side, code in ((few, 0), (many, 1)):
        given = sound | {side: bent_side[side]}
        preds = [given["predictions"]] if name != "compare" else [OTHER, given["predictions"]]
        if name == "compare":
            preds[0] = with_inverted(preds[0], tmp_path / "other", 10**6)
        result = hoicli(*COMMANDS[name], "--gt", given["ground truth"], *preds)
        said = [line for line in result.err.splitlines() if "inverted (" in line]
        assert (result.code, len(said)) == (code, 1), result.err
        prefix = f"{given[side]}: image " if code else f"hoicli: {given[side]}: image "
        assert said[0].startswith(prefix)
        assert "boxes[" in said[0]


def test_one_inverted_box_of_a_few_is_many(hoicli: Hoicli, tmp_path: Path) -> None:
    record = {**records(GT)[0], "boxes": [turned(records(GT)[0]["boxes"][0], (0, 0)), *records(GT)[0]["boxes"][1:]]}
    path = saved(tmp_path / "gt.jsonl", orjson.dumps(record))
    result = hoicli("eval", "--gt", path, PREDICTIONS, "--on-error", "skip")
    count = len(record["boxes"])
    assert result.code == 1
    assert f": 1 of {count} boxes is inverted" in result.err


def test_a_shard_is_not_judged_by_its_few_boxes(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "shard.jsonl", bent(tmp_path, turned).read_bytes().splitlines()[0])
    result = hoicli("match", "--only-predicted", "--gt", GT, path)
    assert (result.code, "inverted" in result.err) == (0, True)


def test_relative_boxes_are_refused_only_where_that_is_certain(hoicli: Hoicli, tmp_path: Path) -> None:
    """Not in a shard, nor for pictures of a few pixels, nor where one box is in pixels, nor if all are nothing."""
    path, tiny = bent(tmp_path, CHANGES[RELATIVE]), tmp_path / "tiny.jsonl"
    tiny_boxes = [{**one, "boxes": [[9, 9, 12, 12]] * len(one["boxes"])} for one in records(GT)]
    written(tiny, tiny_boxes)
    mixed, nothing = (
        bent(tmp_path, lambda b, s: [b[0] / s[0], 0, b[0] / s[0], 3], "m"),
        bent(tmp_path, lambda *_: [0] * 4, "n"),
    )
    for arguments in (
        ("match", "--only-predicted", "--gt", GT, path), ("eval", "--gt", tiny, path),
        ("eval", "--gt", GT, mixed), ("eval", "--gt", GT, nothing),
    ):  # fmt: skip
        result = hoicli(*arguments)
        assert (result.code, len(questions(result.err))) == (0, 1), result.err
    result = hoicli("eval", "--boxes", "--gt", GT, path)
    assert (result.code, RELATIVE in result.err) == (1, True)


def test_too_few_images_are_not_asked_about(hoicli: Hoicli, tmp_path: Path) -> None:
    path = bent(tmp_path, CHANGES["11 if they are [x, y, w, h] (hoicli convert --box-form xywh)"])
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:4]))
    assert questions(hoicli("eval", "--gt", GT, path).err) == []


def poor(folder: Path, sigma: float, seed: int) -> Path:
    """A detector whose every side is off by so much of the box (0.3: mAP falls to a tenth)."""
    chance = random.Random(seed)

    def moved(box: Box, _: tuple[float, float]) -> Box:
        sides = (box[2] - box[0], box[3] - box[1]) * 2
        x1, y1, x2, y2 = (at + chance.gauss(0, sigma) * side for at, side in zip(box, sides, strict=True))
        return [min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)]

    return bent(folder, moved)


@pytest.mark.parametrize("seed", range(2))
def test_a_poor_detector_is_not_asked_about(seed: int, hoicli: Hoicli, tmp_path: Path) -> None:
    assert questions(hoicli("eval", "--gt", GT, poor(tmp_path, 0.2, seed)).err) == []


def test_published_dumps_pass(hoicli: Hoicli, shared: Path, hico_test: Path, vcoco_600: tuple[Path, Path]) -> None:
    of_hico = hico_test, shared / "golden/hico-500/predictions_cdn.json.gz"
    for protocol, pair in (("hico", of_hico), ("vcoco-s1", vcoco_600)):
        result = hoicli("eval", "--protocol", protocol, "--gt", *pair)
        assert (result.code, questions(result.err)) == (0, [])


def test_the_images_that_are_looked_at_do_not_depend_on_their_order(hoicli: Hoicli, tmp_path: Path) -> None:
    chance, truth, found = random.Random(1), tmp_path / "gt", tmp_path / "p"
    said: set[str] = set()
    turned_round = CHANGES["11 if they are [y1, x1, y2, x2]"]
    copies = {
        path: [{**record, "image_id": f"{record['image_id']}_{copy}"} for copy in range(20) for record in records(of)]
        for path, of in ((truth, GT), (found, PREDICTIONS))
    }
    for record in copies[found]:
        record["boxes"] = [turned_round(box, (0, 0)) if chance.random() < 0.95 else box for box in record["boxes"]]
    for _ in range(3):
        for path, lines in copies.items():
            chance.shuffle(lines)
            path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in lines))
        said.update(questions(hoicli("eval", "--gt", truth, found).err))
    assert len(said) == 1


def test_boxes_of_almost_nothing_divide_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    """All of an image but the first."""

    def tiny(source: Path) -> Path:
        tiny = [[0, 0, 9, 9], *[[0, 0, 1e-200, 1e-200]] * 50]
        lines = [r | {"boxes": tiny[: len(r["boxes"])]} for r in records(source)]
        return written(tmp_path / source.name, lines)

    paths = tiny(GT), tiny(PREDICTIONS)
    for command in ("eval", "validate"):
        assert hoicli(command, "--gt", *paths).code == 0


@pytest.mark.parametrize("name", ["eval", "pairstats", "shoe-eval"])
def test_ground_truth_of_parts_of_the_sides_is_refused(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """With the pixel that a rule adds, all of its boxes overlap: mAP was higher than of the right ones."""
    lines = [record | {"boxes": [[0.1, 0.1, 0.5, 0.5]] * len(record["boxes"])} for record in records(GT)]
    path = written(tmp_path / "gt.jsonl", lines)
    said = refusal(hoicli(*COMMANDS[name], "--gt", path, PREDICTIONS))
    assert said.startswith(f"{path}: boxes: none of their numbers is above 2: parts of the image's sides (0-1)?")
    assert '"relative-box","severity":"error"' in hoicli("validate", path).out


def bent_copies(folder: Path, change: Callable[[Box, tuple[float, float], int, bool], Box]) -> tuple[Path, Path]:
    """The fixtures' ground truth and predictions, each five times under other names, the predictions with boxes changed
    by the image's size, its number and whether the box is a person's."""
    truth, found = folder / "gt.jsonl", folder / "p.jsonl"
    for path, source in ((truth, GT), (found, PREDICTIONS)):
        copies = [{**record, "image_id": f"{record['image_id']}_{n}"} for n in range(5) for record in records(source)]
        for number, record in enumerate(copies if path == found else ()):
            size, persons = SIZES[record["image_id"].rpartition("_")[0]], [one == "person" for one in record["labels"]]
            boxes = zip(record["boxes"], persons, strict=True)
            record["boxes"] = [change(box, size, number, person) for box, person in boxes]
        path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in copies))
    return truth, found


def relative(box: Box, size: tuple[float, float]) -> Box:
    return [side / of for side, of in zip(box, size * 2, strict=True)]


def thousandths(box: Box, size: tuple[float, float]) -> Box:
    return [1000 * side for side in relative(box, size)]


PARTLY: dict[str, tuple[Callable[[Box, tuple[float, float], int, bool], Box], tuple[str, str]]] = {
    "objects relative": (lambda b, s, _, person: b if person else relative(b, s), ("object boxes", "(0-1)")),
    "persons relative": (lambda b, s, _, person: relative(b, s) if person else b, ("subject boxes", "(0-1)")),
    "objects halved": (lambda b, _, __, person: b if person else [x / 2 for x in b], ("object boxes", "annotated box")),
    "objects of no area": (lambda b, _, __, person: b if person else [0.0] * 4, ("object boxes", "no area")),
    "a third of the images relative": (lambda b, s, n, _: b if n % 3 else relative(b, s), ("boxes", "(0-1)")),
    "half of the images relative": (lambda b, s, n, _: b if n % 2 else relative(b, s), ("boxes", "(0-1)")),
    "a third of the images y first": (
        lambda b, _, n, __: b if n % 3 else [b[1], b[0], b[3], b[2]],
        ("best predictions", "only if they are [y1, x1, y2, x2]"),
    ),
}


@pytest.mark.parametrize("what", PARTLY)
def test_boxes_of_one_role_or_of_some_images_are_asked_about(what: str, hoicli: Hoicli, tmp_path: Path) -> None:
    change, says = PARTLY[what]
    truth, found = bent_copies(tmp_path, change)
    for command in ("eval", "pairstats", "shoe-eval"):
        result = hoicli(*COMMANDS[command], "--gt", truth, found)
        (question,) = questions(result.err)
        assert result.code == 0
        assert all(part in question for part in says), question
        assert "copy of another size" not in question
    rows = hoicli("validate", "--gt", truth, found, "--format", "jsonl").out.splitlines()
    (row,) = (row for row in map(orjson.loads, rows) if row["check"] == "boxes-off-ground-truth")
    assert all(part in row["example"] for part in says)


def test_thousandths_of_one_role_or_of_some_images_are_found_by_validate(hoicli: Hoicli, tmp_path: Path) -> None:
    """eval does not know the images' sizes."""
    changes: dict[str, Callable[[Box, tuple[float, float], int, bool], Box]] = {
        "subject boxes": lambda b, s, _, person: thousandths(b, s) if person else b,
        "best predictions": lambda b, s, n, _: b if n % 3 else thousandths(b, s),
    }
    for says, change in changes.items():
        truth, found = bent_copies(tmp_path, change)
        rows = hoicli("validate", "--gt", truth, found, "--format", "jsonl").out.splitlines()
        (row,) = (row for row in map(orjson.loads, rows) if row["check"] == "boxes-off-ground-truth")
        assert says in row["example"]
        assert row["example"].endswith("if they are thousandths of the image's sides")


def test_copies_that_fit_are_not_asked_about(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, found = bent_copies(tmp_path, lambda box, *_: box)
    assert questions(hoicli("eval", "--gt", truth, found).err) == []
    assert "boxes-off" not in hoicli("validate", "--gt", truth, found, "--format", "jsonl").out


def test_ground_truth_of_which_some_images_are_relative_is_told_of(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, found = bent_copies(tmp_path, lambda box, *_: box)
    mixed = records(truth)
    for record in mixed[:12]:
        record["boxes"] = [relative(box, (record["width"], record["height"])) for box in record["boxes"]]
    path = written(tmp_path / "mixed.jsonl", mixed)
    result = hoicli("eval", "--gt", path, found)
    assert (result.code, f"hoicli: {path}: the boxes of " in result.err) == (0, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_ground_truth_without_a_triplet_is_said_by_every_command(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """The official mean of hico is 0 then, whatever the model does."""
    empty = saved(tmp_path / "gt.jsonl", b"".join(orjson.dumps({**r, "hois": []}) + b"\n" for r in records(GT)))
    streams = [PREDICTIONS, OTHER][: 1 + (name == "compare")]
    said = "the ground truth holds no triplet"
    assert hoicli(*COMMANDS[name], "--gt", empty, *streams).err.count(said) == 1
    assert said not in hoicli(*COMMANDS[name], "--gt", GT, *streams).err
    empty.write_bytes(empty.read_bytes() + b"[]\n")  # a dropped line may have held them
    result = hoicli(*COMMANDS[name], "--gt", empty, *streams, "--on-error", "skip")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert result.err.startswith("hoicli: nothing is left: skipped 1 line; the first: ")
