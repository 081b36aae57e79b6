"""Labels of another dataset never pass for known ones: convert asks whose the numbers are, and no mean is printed over
what is hardly counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.vocabulary.datasets import load
from tests.support.project import PREDICTIONS, Hoicli, dumped, refusal, saved, written

HICO = load("hico")
Item = dict[str, Any]

# What HOI-A and HOI-W annotate: (verb 1-10, object 1-11), smoke a cigarette, call, ride, read, ...
PAIRS = [(1, 3), (7, 3), (2, 2), (7, 2), (5, 4), (3, 2), (6, 7), (10, 10), (9, 11), (8, 9), (4, 5), (6, 6)]


def hoi_a(name: str = "test_{:06}.png", pairs: list[tuple[int, int]] = PAIRS) -> list[Item]:
    """Ground truth as AS-Net's test_hoia.json and PIC_HOIW's example.json have it: ids of boxes are text."""
    items: list[Item] = []
    for number, (verb, thing) in enumerate(pairs):
        boxes = [{"bbox": [273, 93, 458, 480], "category_id": "1"}]
        boxes.append({"bbox": [354, 149, 364, 156], "category_id": str(thing)})
        hois = [{"subject_id": 0, "category_id": verb, "object_id": 1}]
        items.append({"file_name": name.format(number), "annotations": boxes, "hoi_annotation": hois})
    return items


def predicted(items: list[Item], *, base: int) -> list[Item]:
    """Perfect predictions of such ground truth: as PPDM's dumps (base 1), or as CDN's, which count from 0."""
    return [
        {
            ("file_name" if base else "filename"): item["file_name"],
            "predictions": [{**box, "category_id": int(box["category_id"]) - 1 + base} for box in item["annotations"]],
            "hoi_prediction": [
                {**hoi, "category_id": hoi["category_id"] - 1 + base, "score": 0.5} for hoi in item["hoi_annotation"]
            ],
        }
        for item in items
    ]


def hico_pairs(count: int = 12) -> list[tuple[int, int]]:
    """The same numbers for what HICO-DET has: verbs from 1, COCO's ids."""
    chosen = HICO.interactions[:: 600 // count][:count]
    return [(HICO.verb_ids[verb] + 1, HICO.coco_ids[label]) for verb, label in chosen]


@pytest.mark.parametrize("name", ["test_{:06}.png", "trainval_{:06}.png"])
def test_ground_truth_of_hoi_a_is_not_hico_det(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    path = dumped(tmp_path / "test_hoia.json", hoi_a(name))
    assert refusal(hoicli("convert", path)) == (
        f"{path}: read with HICO-DET's numbers, 12 of the first 12 triplets are no interaction (adjust car in "
        f"{name.format(0)[:-4]}) and the images have other names ({name.format(0)[:-4]}): of another dataset (HOI-A's "
        "and HOI-W's files look so: --dataset hoia), or counted otherwise (--verb-base, --object-order)? --dataset "
        "hico takes them as "
        "they are"
    )
    assert not (tmp_path / "gt.jsonl").exists()


@pytest.mark.parametrize("base", [0, 1])
def test_predictions_of_hoi_a_are_not_hico_det(base: int, hoicli: Hoicli, tmp_path: Path) -> None:
    said = refusal(hoicli("convert", dumped(tmp_path / "dump.json", predicted(hoi_a(), base=base))))
    assert "12 of the first 12 best predictions are no interaction (adjust car in test_000000)" in said


def test_a_number_that_there_is_not_hides_no_doubt(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of a dump counted otherwise, some number is beyond the last label: the doubt about all of them is said."""
    items = predicted(hoi_a(), base=1)
    items[-1]["predictions"][1]["category_id"] = 12  # a number that COCO does not have
    said = refusal(hoicli("convert", dumped(tmp_path / "dump.json", items)))
    assert "11 of the first 11 best predictions are no interaction (adjust car in test_000000)" in said


def test_the_dataset_said_is_taken_unless_it_cannot_be(hoicli: Hoicli, tmp_path: Path) -> None:
    items = hoi_a()
    result = hoicli("convert", "--dataset", "hico", dumped(tmp_path / "a.json", items))
    assert result.code == 0
    assert json.loads(result.out.splitlines()[0])["hois"] == [{"subject": 0, "object": 1, "verb": "adjust"}]
    items[3]["annotations"][1]["category_id"] = "12"  # a number that COCO does not have
    assert hoicli("convert", "--dataset", "hico", dumped(tmp_path / "a.json", items)).code == 1


def test_hico_det_shows_itself_by_its_pairs(hoicli: Hoicli, tmp_path: Path) -> None:
    """Whatever the images are called."""
    items = hoi_a("mine_{}.jpg", hico_pairs())
    truth, found = dumped(tmp_path / "gt.json", items), dumped(tmp_path / "p.json", predicted(items, base=1))
    for path in (truth, found):
        assert hoicli("convert", path).code == 0


def test_hico_det_shows_itself_by_its_images(hoicli: Hoicli, tmp_path: Path) -> None:
    """Predictions alone: a detector that has learned nothing is converted; annotations are what they are."""
    items = hoi_a("HICO_test2015_{:08}.jpg")
    assert hoicli("convert", dumped(tmp_path / "p.json", predicted(items, base=1))).code == 0
    result = hoicli("convert", dumped(tmp_path / "gt.json", items))
    assert result.code == 1
    reason = "12 of the first 12 triplets are no interaction (adjust car in HICO_test2015_00000000)"
    assert f"{reason}: of another dataset" in result.err


def test_numbered_interactions_are_told_by_their_images(hoicli: Hoicli, tmp_path: Path) -> None:
    items = predicted(hoi_a(), base=0)
    for item in items:
        item["predictions"] = [{"bbox": box["bbox"]} for box in item["predictions"]]
    path = dumped(tmp_path / "results.json", items)
    result = hoicli("convert", path)
    assert (result.code, result.out) == (1, "")
    problem = "read with HICO-DET's numbers, the images have other names (test_000000): of another dataset (HOI-A's "
    assert f"{problem}and HOI-W's files look so: --dataset hoia)? --dataset hico takes them as they are\n" in result.err
    assert hoicli("convert", "--dataset", "hico", path).code == 0
    for item in items:
        item["filename"] = f"HICO_{item['filename'].replace('_', '2015_00')}"
    assert hoicli("convert", dumped(path, items)).code == 0


def truth_and_predictions(strange: int, known: int, folder: Path) -> tuple[Path, Path]:
    """Records of so many images with a triplet of no class (adjust car), and with one of a class (ride bicycle)."""
    records: list[Item] = [
        {
            "image_id": f"image_{number}",
            "boxes": [[0, 0, 50, 50], [20, 20, 90, 90]],
            "labels": ["person", "car" if number < strange else "bicycle"],
            "hois": [{"subject": 0, "object": 1, "verb": "adjust" if number < strange else "ride"}],
        }
        for number in range(strange + known)
    ]
    truth, found = folder / "gt.jsonl", folder / "p.jsonl"
    scored = [{**record, "hois": [{**hoi, "score": 0.5} for hoi in record["hois"]]} for record in records]
    return written(truth, records), written(found, scored)


def mostly_strange(side: str, folder: Path) -> tuple[Path, Path]:
    """Truth and predictions of five images, most of one side (`truth`, `predictions` or `none`) of no class."""
    made = {}
    for name, strange in (("most", 4), ("few", 1)):
        (folder / name).mkdir()
        made[name] = truth_and_predictions(strange, 5 - strange, folder / name)
    return made["most" if side == "truth" else "few"][0], made["most" if side == "predictions" else "few"][1]


COMMANDS = {
    "eval": ("eval", "--protocol", "qpic"), "match": ("match", "--protocol", "qpic"), "diagnose": ("diagnose",),
    "diagnose --emit": ("diagnose", "--emit", "predictions"), "pairstats": ("pairstats",),
    "compare": ("compare", "--bootstrap", "10"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_where_most_ground_truth_counts_for_nothing(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    truth, found = truth_and_predictions(3, 2, tmp_path)
    streams = [found, PREDICTIONS] if name == "compare" else [found]
    result = hoicli(*COMMANDS[name], "--gt", truth, *streams)
    assert (result.code, [line for line in result.out.splitlines() if '"error"' not in line]) == (1, [])
    assert result.err.startswith(f"{truth}: 3 of 5 triplets are no hico interaction (verb and object) and count for ")
    assert result.err.endswith("hoicli validate finds out; --allow-uncounted computes with the others only\n")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", ["eval", "diagnose", "pairstats", "compare", "recall", "curves", "confusion", "audit"])
@pytest.mark.parametrize("strange", ["truth", "predictions", "none"])
def test_leave_that_was_not_needed_is_in_no_signature(name: str, strange: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """The same numbers have the same signature, whether anybody gave leave or not."""
    truth, found = mostly_strange(strange, tmp_path)
    other = saved(tmp_path / "other.jsonl", found.read_bytes())
    more = [other] if name in ("compare", "audit") else []
    command = [*COMMANDS.get(name, (name,)), "--gt", truth, found, *more]
    allowed = hoicli(*command, "--allow-uncounted")
    assert allowed.code == 0, allowed.err
    signatures = [row["signature"] for row in map(json.loads, allowed.out.splitlines())]
    needed = strange == "truth" or (strange == "predictions" and name != "recall")
    assert signatures or name == "confusion"  # nothing is confused where all are right
    if name != "audit" or strange != "predictions":  # where candidates of duplicates have no predictions
        assert all(("|uncounted:allowed|" in signature) == needed for signature in signatures)
    if strange == "none":
        assert hoicli(*command).out == allowed.out


@pytest.mark.parametrize(("strange", "code"), [("truth", 1), ("predictions", 1), ("none", 0)])
def test_shards_tell_whether_leave_was_needed(strange: str, code: int, hoicli: Hoicli, tmp_path: Path) -> None:
    """Of ground truth in shards, too, one of which may need it alone."""
    truth, found = mostly_strange(strange, tmp_path)
    whole = hoicli("eval", "--protocol", "diag", "--gt", truth, "--allow-uncounted", found)
    assert hoicli("eval", "--protocol", "diag", "--gt", truth, found).code == code
    assert ("|uncounted:allowed|" in whole.out) == bool(code)
    matches = b""
    for number, part in enumerate((slice(0, 1), slice(1, 5))):
        shard = [tmp_path / f"{number}{name}.jsonl" for name in ("gt", "p")]
        for path, source in zip(shard, (truth, found), strict=True):
            path.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[part]))
        done = hoicli("match", "--protocol", "diag", "--gt", shard[0], "--allow-uncounted", shard[1])
        assert done.code == 0, done.err
        matches += done.out.encode()
    joined = saved(tmp_path / "m.jsonl", matches)
    assert hoicli("eval", joined).out == whole.out
    diagnosed = [hoicli("diagnose", *given) for given in ((joined,), ("--gt", truth, "--allow-uncounted", found))]
    assert diagnosed[0].out == diagnosed[1].out


@pytest.mark.parametrize(("strange", "known"), [(0, 1), (1, 1), (2, 3)])
def test_half_or_less_is_noted_and_computed(strange: int, known: int, hoicli: Hoicli, tmp_path: Path) -> None:
    truth, found = truth_and_predictions(strange, known, tmp_path)
    result = hoicli("eval", "--protocol", "qpic", "--gt", truth, found)
    assert result.code == 0
    assert "uncounted" not in result.out
    assert ("ground-truth triplets are no hico interaction" in result.err) == (strange > 0)


@pytest.mark.parametrize("name", ["eval", "diagnose", "compare"])
def test_no_number_where_most_predictions_are_of_no_class(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    truth, found = mostly_strange("predictions", tmp_path)
    streams = [found, PREDICTIONS] if name == "compare" else [found]
    result = hoicli(*COMMANDS[name], "--gt", truth, *streams)
    assert (result.code, result.out) == (1, "")
    said = f"\n{found}: 4 of 5 predictions, the best of 4 of 5 images among them, are no hico interaction (verb and "
    assert said in f"\n{result.err}"
    if name != "compare":
        assert hoicli(*COMMANDS[name], "--allow-uncounted", "--gt", truth, found).code == 0


def test_of_a_few_images_nothing_is_concluded(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, _ = truth_and_predictions(0, 4, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, found = truth_and_predictions(4, 0, other)
    assert hoicli("eval", "--protocol", "qpic", "--gt", truth, found).code == 0


def test_a_match_stream_is_judged_where_a_mean_is_made(hoicli: Hoicli, tmp_path: Path) -> None:
    """A shard of it may be anything; whoever matched with leave need not ask again."""
    truth, found = mostly_strange("predictions", tmp_path)
    matches = tmp_path / "m.jsonl"
    match = ("match", "--protocol", "diag", "--gt", truth, "-o", matches, found)
    assert hoicli(*match).code == 0
    for command in ("eval", "diagnose"):
        assert "4 of 5 predictions, the best of 4 of 5 images among them" in refusal(hoicli(command, matches))
        allowed = hoicli(command, "--allow-uncounted", matches)
        assert allowed.code == 0
        assert "|uncounted:allowed|" in allowed.out
    assert hoicli(*match, "--allow-uncounted").code == 0
    assert hoicli("eval", matches).out == hoicli("eval", "--protocol", "diag", "--gt", truth, "--allow-uncounted",
                                                 found).out  # fmt: skip


def test_a_dump_of_every_verb_for_every_pair_is_computed(hoicli: Hoicli, tmp_path: Path) -> None:
    """Nine of ten of its triplets are no interaction, and none of its best."""
    truth, found = truth_and_predictions(0, 5, tmp_path)
    records = [orjson.loads(line) for line in found.read_bytes().splitlines()]
    for record in records:
        others = [verb for verb in HICO.verbs if verb != "ride"]
        record["hois"] += [
            {"subject": 0, "object": 1, "verb": verb, "score": 0.001 * number} for number, verb in enumerate(others)
        ]
    written(found, records)
    result = hoicli("eval", "--protocol", "qpic", "--gt", truth, found)
    assert result.code == 0
    assert "predictions are no hico interaction (verb and object): ignored" in result.err
