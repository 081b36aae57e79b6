"""The options of shoe-eval that the paper leaves open, from the command line to the rows: the readings of the
confidence score rank, and the subset of images with one human-object pair."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import UsageError
from hoicli.shoe.scores import scores_of
from hoicli.shoe.settings import RANKS, ShoeOptions
from hoicli.shoe.shoe_evaluation import check_scores, filter_predictions, share_not_above, single_pair_images
from tests.support.project import SHOE, Hoicli, Record, parsed, refusal, saved
from tests.support.shoe import AWAY, FILES, THING, image, read, rows_of, shoe_of

FOUND = SHOE / "predictions.jsonl"
TRUTH = ("--gt", SHOE / "gt.jsonl")


def test_a_sweep_of_delta_is_its_runs_one_after_the_other(hoicli: Hoicli) -> None:
    given = ("shoe-eval", "--format", "jsonl", "--per-class", *FILES, FOUND)
    swept = hoicli(*given, "--delta", "0:0.9:0.3")
    assert swept.code == 0
    alone = "".join(
        hoicli(*given, "--delta", delta).out.replace('"tags":{}', f'"tags":{{"delta":"{delta}"}}')
        for delta in ("0", "0.3", "0.6", "0.9")
    )
    assert swept.out == alone
    assert len({row["value"] for row in map(json.loads, alone.splitlines()) if row["metric"] == "mf1"}) > 1
    assert hoicli(*given, "--delta", "0,0.3,0.6,0.9").out == alone


def test_models_of_one_backend_have_one_signature(hoicli: Hoicli, tmp_path: Path) -> None:
    """Whatever pairs of senses each of them needs, none included: tables rank them together."""
    truth, signatures = saved(tmp_path / "gt.jsonl", orjson.dumps(image(("pet", "giraffe")))), set()
    for verb in ("touch", "feed", "pet"):
        found = saved(tmp_path / "found.jsonl", orjson.dumps(image((verb, "giraffe", 0.9))))
        rows = hoicli("shoe-eval", "--format", "jsonl", "--sim", "lexical", "--gt", truth, found).out
        signatures |= {row["signature"] for row in parsed(rows)}
    assert len(signatures) == 1


def test_no_interaction_left_out_is_as_if_it_were_not_there(hoicli: Hoicli, tmp_path: Path) -> None:
    """On both sides; the reasons keep the places of the records as they are."""
    truth = image(("no_interaction", "giraffe"), ("pet", "giraffe"), ("No interaction", "giraffe"))
    twice = ("no_interaction", "giraffe", 0.9), ("no interaction", "giraffe", 0.8, AWAY)
    found = image(*twice, ("touch", "giraffe", 0.7))
    files = {}
    for name, record in (("gt", truth), ("preds", found)):
        without = [hoi for hoi in record["hois"] if "nteraction" not in hoi["verb"]]
        files[name], files[f"{name}-without"] = tmp_path / f"{name}.jsonl", tmp_path / f"{name}-without.jsonl"
        files[name].write_bytes(orjson.dumps(record))
        files[f"{name}-without"].write_bytes(orjson.dumps({**record, "hois": without}))
    why = tmp_path / "why.jsonl"
    given = ("shoe-eval", "--format", "jsonl", "--per-class", "--sim", "wordnet:wup", "--bootstrap", "10")
    asked = (*given, "--ignore-no-interaction", "--reasons", why, "--gt", files["gt"], files["preds"])
    result = hoicli(*asked)
    assert "2 triplets of the ground truth and 2 of the predictions are left out" in result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert all("|noint:left-out|" in row.pop("signature") for row in rows)
    plain = hoicli(*given, "--gt", files["gt-without"], files["preds-without"]).out
    expected = [json.loads(line) for line in plain.splitlines()]
    assert rows == [{key: row[key] for key in row if key != "signature"} for row in expected]
    (reason,) = map(json.loads, why.read_text().splitlines())
    assert (reason["outcome"], reason["gt"], reason["prediction"]) == ("matched", 1, 2)


def test_what_departs_from_the_algorithms_is_signed(hoicli: Hoicli) -> None:
    given = ("shoe-eval", "--format", "jsonl", *FILES, FOUND, "--assignment", "optimal", "--min-similarity", "0.6")
    asked = ("--ap", "trapezoid", "--min-rank", "0.5", "--rank-of", "image", "--filter-map", "--bootstrap", "50")
    result = hoicli(*given, *asked, "--seed", "3")
    rows = rows_of(result.out)
    assert (
        "|ap:trapezoid|ties:higher-score,values|assign:optimal|minsim:0.6|minrank:0.5-of-its-image's-predictions(a-reading)"
        "|filtered:soft_map+map+mf1|boot:50|ci:student|seed:3|"
    ) in rows["soft_map"]["signature"]
    assert all(row["ci_low"] <= row["value"] <= row["ci_high"] for row in rows.values())
    assert "here of its image's predictions: 11 predictions of 12 are left" in result.err


@pytest.mark.parametrize(("given", "message"), [
    ([], "shoe-eval: give similarities with --sim FILE (hoicli shoe-sim), or --sim wordnet:wup"),
    (["--sim", "s", "--min-rank", "2"], "--min-rank 2: give a number from 0 to 1"),
    (["--sim", "s", "--reasons", "-"], "--reasons -: is the output of -o already;"),
    (["--sim", "lexical", "--sim", "s"], "--sim lexical: rates every pair itself; give it alone, or tables"),
    (["--sim", "s", "--delta", "0.3,1.5"], "--delta 1.5: '1.5' is no similarity; give a number from 0 to 1"),
    (["--sim", "s", "--delta", "0.3,0.5", "--reasons", "w"], "--reasons: reasons are for one --delta; give only one"),
    (["--sim", "s", "--delta", "0.3,0.5", "--tag", "delta=x"], "--tag delta: rows have a delta of their own"),
    (["--sim", "wordnet:vec"], "--sim wordnet:vec: give tables, or one of wordnet:path, wordnet:wup, "),
])  # fmt: skip
def test_calls_that_cannot_be(hoicli: Hoicli, given: list[str], message: str) -> None:
    assert refusal(hoicli("shoe-eval", *TRUTH, *given, FOUND), 2).startswith(f"hoicli: {message}")


def test_scores_that_are_missing_are_null_with_intervals_too(hoicli: Hoicli, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    records = [image(("pet", "giraffe", None, THING), image_id=f"{n}") for n in range(4)]
    bare.write_bytes(b"\n".join(map(orjson.dumps, records)))
    given = ("--format", "jsonl", "--sim", "lexical", "--bootstrap", "20", "--per-class", "--gt", bare, bare)
    rows = rows_of(hoicli("shoe-eval", *given).out)
    assert (rows["soft_map"]["value"], rows["soft_map"]["ci_low"]) == (None, None)
    assert (rows["mf1"]["value"], rows["mf1"]["ci_low"], rows["mf1"]["ci_high"]) == (100.0, 100.0, 100.0)
    assert (rows["soft_ap"]["value"], rows["f1"]["value"]) == (None, 100.0)


RANKED = [
    image(("pet", "dog", 0.1), ("pet", "dog", 0.2), ("ride", "dog", 0.8)),
    image(("pet", "dog", 0.4), ("ride", "dog", 0.1), ("ride", "dog", 0.1), image_id="b"),
]


@pytest.mark.parametrize(("rank_of", "kept"), [
    # shares of all that are not above: 3/6, 4/6, 1; 5/6, 3/6, 3/6
    ("all", [False, True, True, True, False, False]),
    # of the image: 1/3, 2/3, 1; 1, 2/3, 2/3
    ("image", [False, True, True, True, True, True]),
    # of the best: 0.48 and 0.24 are needed
    ("best", [False, False, True, True, False, False]),
])  # fmt: skip
def test_what_each_reading_keeps(rank_of: str, kept: list[bool], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ShoeOptions(min_rank=0.6, rank_of=rank_of)
    assert filter_predictions(asked, read(RANKED)).tolist() == kept
    assert asked.filter_signature() == {"minrank": f"0.6-{RANKS[rank_of]}(a-reading)"}
    assert f"here {RANKS[rank_of].replace('-', ' ')}: {sum(kept)} predictions of 6" in capsys.readouterr().err


@pytest.mark.parametrize(("rank_of", "kept"), [("all", [2]), ("image", [2, 3]), ("best", [2, 3])])
def test_the_highest_rank_is_the_best_s(rank_of: str, kept: list[int]) -> None:
    found = filter_predictions(ShoeOptions(min_rank=1.0, rank_of=rank_of), read(RANKED))
    assert np.flatnonzero(found).tolist() == kept


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.1, 0.5, 0.7])), max_size=12))
def test_shares_by_counting(rows: list[tuple[int, float]]) -> None:
    found = share_not_above(np.array([g for g, _ in rows], dtype=np.int64), np.array([s for _, s in rows]))
    for (group, score), share in zip(rows, found, strict=True):
        own = [other for of, other in rows if of == group]
        assert share == sum(other <= score for other in own) / len(own)


def test_soft_map_can_be_filtered_too() -> None:
    truth = [image(("pet", "giraffe"))]
    found = [image(("pet", "giraffe", 0.9, [50, 0, 60, 10]), ("pet", "giraffe", 0.4))]
    shoe = shoe_of(truth, found)
    strict = shoe.match(filter_predictions(ShoeOptions(min_score=0.5), shoe.predictions))
    loose = scores_of(shoe, strict, shoe.match())
    assert (loose.soft_map, loose.map) == (0.5, 0.5)
    both = scores_of(shoe, strict)
    assert (both.soft_map, both.map, both.mf1) == (0.0, 0.0, 0.0)
    signed = {"minscore": "0.5", "filtered": "soft_map+map+mf1"}
    assert ShoeOptions(min_score=0.5, filter_map=True).filter_signature() == signed


def test_a_share_of_the_best_score_needs_scores_above_0() -> None:
    found = read([image(("pet", "dog", -1.5), ("pet", "dog", -0.5))])
    with pytest.raises(UsageError, match="--rank-of best: needs scores of at least 0"):
        check_scores(ShoeOptions(min_rank=0.5, rank_of="best"), found)


def pairs_of(*hois: tuple[int, int | None], boxes: list[list[float]], labels: list[str], name: str = "a") -> Record:
    listed = [{"subject": one, "object": other, "verb": "hold"} for one, other in hois]
    return {"image_id": name, "boxes": boxes, "labels": labels, "hois": listed}


def shifted(left: float) -> list[float]:
    """A box 100 wide: two of them that lie d apart have an IoU of (100 - d) / (100 + d)."""
    return [left, 0.0, left + 100.0, 50.0]


def drawn(*left: float) -> Record:
    count = len(left)
    boxes = [*map(shifted, left), CUP]
    return pairs_of(*((at, count) for at in range(count)), boxes=boxes, labels=["person"] * count + ["cup"])


CUP, CUPS = [1000.0, 0.0, 1040.0, 40.0], ["person", "cup"]


@pytest.mark.parametrize(("record", "single"), [
    (image(("pet", "giraffe"), ("wash", "giraffe")), True),  # two classes on one pair, each with boxes of its own
    (image(("pet", "giraffe"), ("pet", "Giraffe ")), True),
    (image(("pet", "giraffe"), ("pet", "zebra")), False),  # one box, two things
    (image(("pet", "giraffe"), ("pet", "giraffe", None, [200, 0, 210, 10])), False),
    (image(), False),
    (image(("wash", None)), True),
    (image(("wash", None), ("wash", "giraffe")), False),
    # The person drawn twice, 11 and 12 apart: 89 / 111 and 88 / 112
    (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(11), CUP], labels=["person", *CUPS]), True),
    (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(12), CUP], labels=["person", *CUPS]), False),
    # An IoU of 4 / 5 is not above 0.8: the second lies within the first
    (pairs_of((0, 2), (1, 2), boxes=[[0, 0, 50, 10], [0, 0, 40, 10], CUP], labels=["person", *CUPS]), False),
    # People and things drawn anew for each of three interactions
    (pairs_of((0, 3), (1, 4), (2, 5), boxes=[*map(shifted, (0, 1, 2, 300, 301, 302))],
              labels=["person"] * 3 + ["cup"] * 3),
     True),
    # A chain: the ends are 20 apart (80 / 120), and the one between joins them, whatever comes first
    (drawn(0, 10, 20), True),
    (drawn(0, 20, 10), True),
    ({**drawn(0, 20, 10), "hois": drawn(0, 20, 10)["hois"][:2]}, False),  # the one between is in no pair
    (drawn(*(10 * (at * 17 % 41) for at in range(41))), True),
    # Another label joins nothing; two people who hug, each other's object, are two pairs
    (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(0), CUP], labels=["person", "Person ", "cup"]), True),
    (pairs_of((0, 2), (1, 2), boxes=[shifted(0), shifted(0), CUP], labels=["man", "person", "cup"]), False),
    (pairs_of((0, 1), (1, 0), boxes=[shifted(0), shifted(60)], labels=["person", "person"]), False),
])  # fmt: skip
def test_one_human_object_pair(record: Record, single: bool) -> None:
    other = image(("pet", "giraffe"), image_id="other")
    assert single_pair_images(read([record, other])).tolist() == [single, True]
    # No order of boxes matters
    count = len(record["boxes"])
    back = {at: count - 1 - at for at in range(count)} | {None: None}
    turned = {
        "image_id": "a",
        "boxes": record["boxes"][::-1],
        "labels": record["labels"][::-1],
        "hois": [{**hoi, "subject": back[hoi["subject"]], "object": back[hoi["object"]]} for hoi in record["hois"]],
    }
    assert single_pair_images(read([other, turned])).tolist() == [True, single]


def test_the_single_hoi_subset_of_the_supplement(hoicli: Hoicli, tmp_path: Path, hico_test: Path) -> None:
    """The caption of its Table 2: 575 classes, which 4,054 of HICO-DET's test images show; the rows are over them."""
    truth, found = tmp_path / "gt.jsonl", tmp_path / "found.jsonl"
    found.write_text('{"image_id": "HICO_test2015_00000001", "boxes": [], "labels": [], "hois": []}\n')
    given = ("shoe-eval", "--format", "jsonl", "--single-hoi", "--sim", SHOE / "sim.jsonl", "--gt")
    result = hoicli(*given, hico_test, found)
    assert (
        "hoicli: --single-hoi: 4,054 of 9,658 images have one human-object pair (boxes of one label that overlap at "
        "IoU > 0.8 are one) and show 575 classes\n"
    ) in result.err
    rows = rows_of(result.out)
    assert (rows["mf1"]["n"], rows["gt_miss_rate"]["n"]) == (575, 6616)
    lines = hico_test.read_text().splitlines(keepends=True)
    random.Random(2).shuffle(lines)
    truth.write_text("".join(lines))
    assert hoicli(*given, truth, found).out == result.out


def test_single_hoi(hoicli: Hoicli) -> None:
    result = hoicli("shoe-eval", "--format", "jsonl", "--single-hoi", *FILES, SHOE / "predictions.jsonl")
    assert result.err.startswith(
        "hoicli: --single-hoi: 7 of 8 images have one human-object pair (boxes of one label that overlap at IoU > 0.8 "
        "are one) and show 10 classes\n"
    )
    rows = rows_of(result.out)
    assert {row["subset"] for row in rows.values()} == {"single_hoi"}
    assert (rows["mf1"]["n"], rows["gt_miss_rate"]["n"], rows["prediction_miss_rate"]["n"]) == (10, 10, 11)
    assert all("|images:one-pair,boxes-as-one-above-iou-0.8|" in row["signature"] for row in rows.values())
    whole = hoicli("shoe-eval", "--format", "jsonl", *FILES, SHOE / "predictions.jsonl")
    assert "images:" not in whole.out
