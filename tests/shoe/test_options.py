"""The options of shoe-eval that the paper leaves open, from the command line to the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest

from tests.support.project import SHOE, Hoicli, refusal, saved
from tests.support.shoe import AWAY, FILES, THING, image, rows_of

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


def test_an_offline_backend_is_its_table(hoicli: Hoicli, tmp_path: Path) -> None:
    table = tmp_path / "sim.jsonl"
    for backend in ("wordnet:lin", "lexical"):
        assert hoicli("shoe-sim", "--backend", backend, *TRUTH, FOUND, "-o", table).code == 0
        given = ("shoe-eval", "--format", "jsonl", "--per-class", *TRUTH, FOUND, "--sim")
        direct, read = hoicli(*given, backend), hoicli(*given, table)
        assert re.search(rf"\|sim:{backend}@wordnet3\.0\.[0-9a-f]{{8}}\|raters:{backend}\|", direct.out)
        assert (direct.out, direct.err) == (read.out, read.err)
        assert "not in the similarity table" not in direct.err


def test_models_of_one_backend_are_ranked_together(hoicli: Hoicli, tmp_path: Path) -> None:
    """Whatever pairs of senses each of them needs, none included."""
    truth, rows = tmp_path / "gt.jsonl", tmp_path / "rows.jsonl"
    truth.write_bytes(orjson.dumps(image(("pet", "giraffe"))))
    text = ""
    for name, verb in (("a", "touch"), ("b", "feed"), ("c", "pet")):
        found = saved(tmp_path / f"{name}.jsonl", orjson.dumps(image((verb, "giraffe", 0.9))))
        text += hoicli(
            "shoe-eval", "--tag", f"model={name}", "--format", "jsonl", "--sim", "lexical", "--gt", truth, found
        ).out
    assert len({row["signature"] for row in map(json.loads, text.splitlines())}) == 1
    rows.write_text(text)
    shown = hoicli("table", "--format", "md", rows).out
    assert "not ranked" not in shown
    assert "**100.00**" in shown


def test_no_interaction_left_out_is_as_if_it_were_not_there(hoicli: Hoicli, tmp_path: Path) -> None:
    """On both sides; the reasons keep the places of the records as they are."""
    truth = image(("no_interaction", "giraffe"), ("pet", "giraffe"), ("No interaction", "giraffe"))
    found = image(
        ("no_interaction", "giraffe", 0.9), ("no interaction", "giraffe", 0.8, AWAY), ("touch", "giraffe", 0.7)
    )
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "shoe-eval: give similarities with --sim FILE (hoicli shoe-sim), or --sim wordnet:wup"),
        (["--sim", "s", "--min-rank", "2"], "--min-rank 2: give a number from 0 to 1"),
        (["--sim", "s", "--reasons", "-"], "--reasons -: is the output of -o already;"),
        (["--sim", "lexical", "--sim", "s"], "--sim lexical: rates every pair itself; give it alone, or tables"),
        (["--sim", "s", "--delta", "0.3,1.5"], "--delta 1.5: '1.5' is no similarity; give a number from 0 to 1"),
        (
            ["--sim", "s", "--delta", "0.3,0.5", "--reasons", "w"],
            "--reasons: reasons are for one --delta; give only one",
        ),
        (["--sim", "s", "--delta", "0.3,0.5", "--tag", "delta=x"], "--tag delta: rows have a delta of their own"),
        (["--sim", "wordnet:vec"], "--sim wordnet:vec: give tables, or one of wordnet:path, wordnet:wup, "),
    ],
)
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
