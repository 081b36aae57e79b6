"""A number out of matches is signed with the ground truth it was matched with, all of it, or there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.project import GT, PREDICTIONS, Hoicli, Record, records, records_of, refusal, saved, written


def moved(record: Record) -> Record:
    """The same image with a box a pixel wider."""
    x1, y1, x2, y2 = record["boxes"][0]
    return {**record, "boxes": [[x1, y1, x2 + 1, y2], *record["boxes"][1:]]}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An older ground truth: its first image is annotated otherwise."""
    first, *rest = records(GT)
    return written(tmp_path / "old.jsonl", [moved(first), *rest])


@pytest.mark.parametrize("command", ["eval", "diagnose", "curves"])
@pytest.mark.parametrize("shards", [(), ("--only-predicted",)], ids=["whole", "shards"])
def test_matches_of_one_ground_truth_are_never_signed_with_another(
    hoicli: Hoicli, old: Path, tmp_path: Path, command: str, shards: tuple[str, ...]
) -> None:
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", *shards, "--gt", old, "--protocol", "diag", PREDICTIONS, "-o", matches).code == 0
    said = refusal(hoicli(command, "--gt", GT, matches))
    assert f"{matches}:1: gt_hash: was matched with other annotations of " in said
    lines = [record for record in records(matches) if record["image_id"] != records(GT)[0]["image_id"]]
    expected = hoicli(command, "--gt", GT, written(matches, lines))
    assert expected.code == (0 if shards else 1)  # the other images are the same, and shards may lack one


def test_images_that_the_ground_truth_lacks_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    less, matches = written(tmp_path / "less.jsonl", records(GT)[:-1]), tmp_path / "matches.jsonl"
    for shards in ((), ("--only-predicted",)):
        assert hoicli("match", *shards, "--gt", GT, PREDICTIONS, "-o", matches).code == 0
        for command in ("eval", "diagnose"):
            said = refusal(hoicli(command, "--gt", less, matches))
            assert "is not in the ground truth" in said or "of 8 images" in said


@pytest.mark.parametrize("options", [(), ("--gt", GT)], ids=["alone", "with the ground truth"])
@pytest.mark.parametrize("command", ["eval", "diagnose"])
def test_a_cut_stream_is_refused(hoicli: Hoicli, tmp_path: Path, command: str, options: tuple[object, ...]) -> None:
    """At the end of an image, and of a protocol within one."""
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--gt", GT, "--protocol", "hico,diag", PREDICTIONS, "-o", matches).code == 0
    lines = records(matches)
    for end in (len(lines) - 1, len(lines) - 2, 2):
        said = refusal(hoicli(command, *options, written(matches, lines[:end])))
        assert f"{end // 2} of 8 images are there, {8 - end // 2} missing" in said


def test_only_predicted_needs_the_ground_truth(hoicli: Hoicli, tmp_path: Path) -> None:
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--only-predicted", "--gt", GT, "--protocol", "diag", PREDICTIONS, "-o", matches).code == 0
    for command in ("eval", "diagnose"):
        assert "give the ground truth with --gt" in refusal(hoicli(command, matches))


def test_rows_say_that_many_images_have_no_predictions(hoicli: Hoicli, tmp_path: Path) -> None:
    part = written(tmp_path / "part.jsonl", records(PREDICTIONS)[:5])
    matches = tmp_path / "matches.jsonl"
    hoicli("match", "--only-predicted", "--gt", GT, "--protocol", "hico", part, "-o", matches)
    compared = ("compare", "--no-errors", part, PREDICTIONS)
    for call in (("eval", part), ("eval", matches), ("claim", "--protocol", "hico", part, "12.3"), compared):
        result = hoicli(*call, "--gt", GT)
        assert "3 of 8 ground-truth images have no predictions: their triplets are missed" in result.err
        first, *_, last = map(json.loads, result.out.splitlines())
        assert first["note"] == "3 of 7 images with ground truth have no predictions: their triplets are missed"
        assert first["note"] in hoicli(*call, "--gt", GT, "--format", "table").out
        assert ("note" in last) == (call[0] != "compare")
    assert "note" not in hoicli("eval", "--gt", GT, PREDICTIONS).out  # a detector may find nothing in one of eight


def test_a_match_that_stops_ends_its_stream_so_that_nobody_takes_it(hoicli: Hoicli, tmp_path: Path) -> None:
    many = [{**records(PREDICTIONS)[0], "image_id": f"i{number}"} for number in range(600)]
    truth = [{**records(GT)[0], "image_id": record["image_id"]} for record in many]
    gt = written(tmp_path / "many.jsonl", truth)
    preds = written(tmp_path / "bad.jsonl", [*many[:-1], {"image_id": "i599"}])
    stopped = hoicli("match", "--gt", gt, "--protocol", "hico", preds)
    assert stopped.code == 1
    last = json.loads(stopped.out.splitlines()[-1])
    assert last.keys() == {"error"}
    assert f"match stopped: {preds}:600: " in last["error"]
    assert len(stopped.out.splitlines()) > 500
    matches = tmp_path / "matches.jsonl"
    for content in (stopped.out, stopped.out.splitlines()[-1]):
        matches.write_text(content)
        for options in ((), ("--gt", gt), ("--on-error", "skip")):
            refusal(hoicli("eval", *options, matches))
    assert hoicli("match", "--gt", gt, "--protocol", "hico", preds, "-o", tmp_path / "file.jsonl").code == 1
    assert not (tmp_path / "file.jsonl").exists()
    skipped = hoicli("match", "--gt", gt, "--protocol", "hico", "--on-error", "skip", preds)
    matches.write_text(skipped.out)
    assert skipped.code == 0
    direct = hoicli("eval", "--gt", gt, "--protocol", "hico", "--on-error", "skip", preds).out
    assert hoicli("eval", matches).out == direct
    assert {"|skipped:1|version:" in line for line in direct.splitlines()} == {True}


def test_shards_with_ground_truth_of_their_own(hoicli: Hoicli, tmp_path: Path) -> None:
    """Their sum has the digest of the whole. A shard lost whole is seen beside the ground truth alone."""
    truth, preds, parts = records(GT), {row["image_id"]: row for row in records(PREDICTIONS)}, []
    for number in range(3):
        own = truth[number::3]
        gt = written(tmp_path / f"gt{number}.jsonl", own)
        shard = written(tmp_path / f"p{number}.jsonl", [preds[r["image_id"]] for r in own if r["image_id"] in preds])
        parts.append(hoicli("match", "--gt", gt, "--protocol", "hico,diag", shard).out)
    calls = (("eval", ("--protocol", "hico,diag")), ("diagnose", ()))
    direct = {command: hoicli(command, "--gt", GT, PREDICTIONS, *options).out for command, options in calls}
    matches = saved(tmp_path / "matches.jsonl", "".join(reversed(parts)))
    for command, rows in direct.items():
        assert hoicli(command, matches).out == rows
        assert hoicli(command, "--gt", GT, matches).out == rows
    matches.write_text("".join(parts[:2]))
    assert hoicli("eval", matches).code == 0
    assert "of 8 images are there" in refusal(hoicli("eval", "--gt", GT, matches))


def test_annotations_that_are_not_of_their_digest_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--gt", GT, "--protocol", "hico", PREDICTIONS, "-o", matches).code == 0
    lines = records(matches)
    lines[3]["gt_hash"] = "1"
    refusal(hoicli("eval", written(matches, lines)))
    for key in ("gt_hash", "gt_digest", "gt_images"):
        of_old = [{name: line[name] for name in line if name != key} for line in lines]
        said = refusal(hoicli("eval", written(matches, of_old)))
        assert f"matches.jsonl:1: {key}: missing" in said
        assert "match again" in said


def test_a_match_that_is_refused_at_its_end_leaves_no_stream(hoicli: Hoicli, tmp_path: Path) -> None:
    """What only the whole stream shows: too many boxes in x, y, w, h."""
    turned = [{**record, "boxes": [[9, 9, 3, 4] for _ in record["boxes"]]} for record in records(PREDICTIONS)]
    words = ("match", "--protocol", "hico", "--gt", GT, written(tmp_path / "p.jsonl", turned))
    streamed = hoicli(*words)
    assert streamed.code == 1
    assert streamed.out.splitlines()[-1].startswith('{"error":')
    assert hoicli(*words, "-o", tmp_path / "m.jsonl").code == 1
    assert not (tmp_path / "m.jsonl").exists()


def test_a_line_that_comes_twice_makes_up_for_no_other(hoicli: Hoicli, old: Path, tmp_path: Path) -> None:
    """Skipped lines excuse as many images as they may have been of, in all ground truths together."""
    for number, gt in enumerate((GT, old)):
        hoicli("match", "--gt", gt, "--protocol", "diag", PREDICTIONS, "-o", tmp_path / f"{number}.jsonl")
    one, other = (records(tmp_path / f"{number}.jsonl") for number in range(2))
    for content in ([*one[:4], *one[:4]], [*one[:4], *other[4:], *one[:4]]):
        said = refusal(hoicli("eval", "--on-error", "skip", written(tmp_path / "m.jsonl", content)))
        assert "images are there" in said


def test_a_line_that_is_dropped_is_told_also_where_every_image_has_predictions(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of predictions and of ground truth, by the last record of each protocol, whoever made it."""
    told = []
    for name, files in {"gt": (GT, PREDICTIONS), "preds": (PREDICTIONS, GT)}.items():
        bad = saved(tmp_path / f"{name}.jsonl", f"{{}}\n{files[0].read_text()}{{}}\n")
        gt, preds = (bad, files[1]) if name == "gt" else (files[1], bad)
        kept = {record["image_id"] for record in records(preds) if "image_id" in record}
        gt = written(tmp_path / "some.jsonl", [one for one in records(gt) if one.get("image_id", "") in {*kept, ""}])
        done = hoicli("match", "--gt", gt, "--protocol", "hico,diag", "--on-error", "skip", preds)
        told.append([record.get("skipped") for record in records_of(done)])
    assert told[0] == told[1] == [*[None] * (len(told[0]) - 2), 2, 2]
