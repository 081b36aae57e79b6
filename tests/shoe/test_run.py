"""SHOE from streams to rows: bad records, notes, signatures, the command; and the table of similarities."""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path

import numpy as np
import orjson
import pytest

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.columns import attempt
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import parse
from hoicli.records.triplets import named_images, open_problems
from hoicli.shoe.likenesses import classes_of, normalise
from hoicli.shoe.settings import RULES
from hoicli.shoe.similarity_table import SimilarityTable
from hoicli.shoe.table_joining import merged_rows
from tests.support.kernel import lines as as_lines
from tests.support.project import GT, PREDICTIONS, SHOE, VCOCO, Hoicli, Record, complaint, refusal, without_gt, written
from tests.support.shoe import FILES, candidates, image, read, rows_of, table_of
from tests.support.strategies import parts_of

SOUND = image(("pet", "giraffe", 0.9), ("wash", None, 0.1), synsets=["person.n.01", None])
JUNK = [None, True, -1, 7, 0.5, "x", [], {}, [None], ["x"], {"a": 1}]


def test_the_fast_and_the_careful_check_agree() -> None:
    """Of a good record with a part of it, or all of it, replaced by junk; or a part removed."""
    rng = random.Random(0)
    verdicts = set()
    for _ in range(2000):
        whole = {"record": copy.deepcopy(SOUND)}
        node, key = rng.choice(list(parts_of(whole)))
        if node is whole or rng.random() < 0.8:
            node[key] = rng.choice(JUNK)
        else:
            del node[key]
        record = whole["record"]
        line = Line("p.jsonl", 1, orjson.dumps(record))
        is_bad = type(record) is not dict or next(open_problems(parse(line)), None) is not None
        assert (attempt(named_images, [line]) is None) == is_bad, record
        verdicts.add(is_bad)
    assert verdicts == {True, False}


def test_the_supplements_figure_6(hoicli: Hoicli, tmp_path: Path) -> None:
    why = tmp_path / "why.jsonl"
    result = hoicli("shoe-eval", "--format", "jsonl", *FILES, "--reasons", why, SHOE / "predictions.jsonl")
    assert result.err == "hoicli: 1 of 8 ground-truth images have no predictions: their triplets are missed\n"
    rows = [json.loads(line) for line in why.read_text().splitlines()]
    matched = {(row["image_id"], row["verb"]): row for row in rows if row["outcome"] == "matched"}
    for image_id, verb, synset, predicted, similarity, total in (
        ("giraffe", "pet", "pet.v.01", "touching", 0.55, 0.775),
        ("kite", "fly", "fly.v.03", "fly", 1.0, 1.0),
        ("kite", "pull", "pull.v.01", "hold", 0.35, 0.675),
        ("cake", "cut", "cut.v.01", "cut", 1.0, 1.0),
        ("motorcycle", "hold", "hold.v.02", "hold", 1.0, 1.0),
        ("motorcycle", "ride", "ride.v.10", "ride", 1.0, 1.0),
        ("motorcycle", "sit_on", "sit.v.01", "ride", 0.4, 0.7),
        ("train", "wash", "wash.v.03", "clean", 0.7, 0.85),
        ("toilet", "flush", "flush.v.05", "touch", 0.1, 0.55),
    ):
        row = matched.pop((image_id, verb))
        assert (row["verb_synset"], row["predicted_verb"]) == (synset, predicted)
        assert (row["verb_similarity"], row["object_similarity"], row["similarity"]) == (similarity, 1.0, total)
    assert not matched
    synsets = {row["object_synset"] for row in rows if row["image_id"] in ("cake", "toilet")}
    assert synsets == {"cake.n.03", "toilet.n.02"}
    others = [(row["image_id"], row["outcome"]) for row in rows if row["outcome"] != "matched"]
    assert others == [("cake", "ignored"), ("giraffe", "false_positive"), ("street", "ignored"), ("zebra", "missed")]
    areas = {"pet": 0.775**2, "pull": 0.675**2, "sit_on": 0.7**2, "wash": 0.85**2, "flush": 0.55**2, "feed": 0.0}
    found = rows_of(result.out)
    assert found["soft_map"]["value"] == pytest.approx(100 * (sum(areas.values()) + 4) / 10)
    assert (found["gt_miss_rate"]["value"], found["gt_miss_rate"]["n"]) == (10.0, 10)
    assert (found["prediction_miss_rate"]["value"], found["prediction_miss_rate"]["n"]) == (25.0, 12)
    # `hold` names a motorcycle's handlebar, so plain mAP sees only three classes
    assert (found["map"]["value"], found["map"]["n"]) == (30.0, 10)
    assert {row["unit"] for row in found.values()} == {"%"}


def test_rows_and_their_signature(hoicli: Hoicli) -> None:
    given = ("--format", "jsonl", *FILES, "--tag", "model=x", "--per-class", "--min-rank", "0.25", "--min-score", "0.1")
    options = ("--ap", "trapezoid", "--verb-weight", "0.6", "--delta", "0.25")
    result = hoicli("shoe-eval", *given, *options, SHOE / "predictions.jsonl")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["metric"] for row in rows[:5]] == ["soft_map", "mf1", "gt_miss_rate", "prediction_miss_rate", "map"]
    assert {row["metric"] for row in rows[5:]} == {"soft_ap", "f1", "ap"}
    assert len(rows) == 5 + 3 * 10
    (signature,) = {without_gt(row["signature"]) for row in rows}
    start, end = signature.split("|version:")[0].split("|delta:")
    assert (
        end == "0.25|against:image|combine:mean|verb:0.6|ap:trapezoid|ties:higher-score,values|minscore:0.1"
        "|minrank:0.25-of-all-predictions(a-reading)"
    )
    assert start.startswith("protocol:shoe|data:hico|sim:")
    assert (rows[0]["tags"], rows[0]["subset"], rows[0]["n"]) == ({"model": "x"}, "full", 10)
    for metric in ("soft_ap", "f1", "ap"):
        of_classes = [row["value"] for row in rows if row["metric"] == metric]
        mean = {"soft_ap": "soft_map", "f1": "mf1", "ap": "map"}[metric]
        assert rows_of(result.out)[mean]["value"] == pytest.approx(sum(of_classes) / 10)


def test_a_sense_is_found_in_the_table_by_any_of_its_words(hoicli: Hoicli, tmp_path: Path) -> None:
    """carry.v.01 is transport.v.02, and motorcar.n.01 is car.n.01."""
    truth, found, table = (tmp_path / f"{name}.jsonl" for name in ("truth", "found", "table"))
    truth.write_bytes(orjson.dumps(image(("haul", "car", None, None, "transport.v.02"), synsets=[None, "car.n.01"])))
    found.write_bytes(orjson.dumps(image(("wear", "hat", 0.9, None, "wear.v.01"), synsets=[None, "hat.n.01"])))

    def result(verb: str, name: str, *more: str) -> tuple[str, str]:
        verbs, objects = f'"a":"{verb}","b":"wear.v.01"', f'"a":"hat.n.01","b":"{name}"'
        lines = [f'{{"pos":"v",{verbs},"similarity":0.5}}\n', f'{{"pos":"n",{objects},"similarity":0.75}}\n']
        table.write_text("".join([*lines, *more]))
        done = hoicli("shoe-eval", "--gt", truth, "--sim", table, found)
        return done.out, done.err

    canonical, words = result("transport.v.02", "car.n.01")
    assert words == ""
    assert json.loads(canonical.splitlines()[0])["value"] == round(100 * 0.625**2, 4)
    assert result("carry.v.01", "motorcar.n.01") == (canonical, "")
    assert "1 of 2 pairs of senses are not in the similarity table" in result("made_up.v.01", "motorcar.n.01")[1]
    other = '{"pos":"v","a":"transport.v.02","b":"wear.v.01","similarity":0.25}\n'
    assert "transport.v.02 and wear.v.01 are 0.25 here and 0.5 on another" in result("carry.v.01", "x.n.01", other)[1]


def test_a_table_without_all_pairs_is_refused_or_signed_and_marked(hoicli: Hoicli, tmp_path: Path) -> None:
    lines = (SHOE / "sim.jsonl").read_text().splitlines(keepends=True)
    table, rows = tmp_path / "sim.jsonl", tmp_path / "rows.jsonl"
    table.write_text(lines[0])
    given = ("--format", "jsonl", "--gt", SHOE / "gt.jsonl", "--sim", table, SHOE / "predictions.jsonl")
    for command in (("shoe-eval",), ("compare", "--metric", "mf1", "--name", "a,b", SHOE / "predictions.jsonl")):
        said = refusal(hoicli(*command, *given))
        assert said.startswith(f"{table}: ")
        assert "hoicli shoe-sim makes them" in said
    part = hoicli("shoe-eval", "--allow-missing", "--tag", "model=part", *given)
    assert part.code == 0
    number = int(re.findall(r"([0-9]+) of [0-9]+ pairs", part.err)[0])
    assert all(f"|missing:{number}|" in row["signature"] for row in rows_of(part.out).values())
    whole = hoicli("shoe-eval", "--format", "jsonl", "--tag", "model=whole", *FILES, SHOE / "predictions.jsonl").out
    assert "|missing:" not in whole
    other = whole.replace('"model":"whole"', '"model":"b"')
    for text, ranked in ((part.out, 0), (part.out + part.out.replace('"part"', '"b"'), 0), (part.out + whole, 0),
                         (whole + other, 1), (part.out + whole + other, 1)):  # fmt: skip
        rows.write_text(text)
        shown = hoicli("table", "--format", "md", rows).out
        assert (f"{number} pairs of senses are not in" in shown) == (part.out in text)
        assert ("**" in shown) == ranked
        assert "**" not in "".join(line for line in shown.splitlines() if "| part" in line)


def test_other_words_for_a_class_are_said(hoicli: Hoicli, tmp_path: Path) -> None:
    """Plain mAP compares spellings, so it counts them as false."""
    truth, said = [image(("ride", "bicycle"))], [image(("is riding", "bike", 0.9), ("fly", "bicycle", 0.1))]
    files = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "p.jsonl", said)
    result = hoicli("shoe-eval", "--sim", "lexical", "--gt", *files)
    words = "2 words of predictions are others for a class: is riding for ride 1, bike for bicycle 1; hoicli convert "
    assert f"hoicli: map compares spellings, and {words}--to-vocabulary maps them\n" in result.err
    assert (
        rows_of(hoicli("shoe-eval", "--sim", "lexical", "--gt", *files, "--format", "jsonl").out)["map"]["value"] == 0
    )


def test_predictions_without_scores(hoicli: Hoicli, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    records = [json.loads(line) for line in (SHOE / "predictions.jsonl").read_text().splitlines()]
    for record in records:
        for hoi in record["hois"]:
            del hoi["score"]
    bare.write_bytes(b"\n".join(map(orjson.dumps, records)))
    result = hoicli("shoe-eval", "--format", "jsonl", *FILES, bare)
    rows = rows_of(result.out)
    assert (rows["soft_map"]["value"], rows["map"]["value"]) == (None, None)
    assert rows["mf1"]["value"] > 0
    assert "12 of 12 predictions have no score: soft_map and map need a score for each and are empty" in result.err
    assert (
        refusal(hoicli("shoe-eval", *FILES, "--min-rank", "0.5", bare), 2)
        == "hoicli: --min-score and --min-rank need scores, and 12 predictions have none: leave them out"
    )


@pytest.mark.parametrize("share", [8 << 20, 64])
def test_bad_lines_of_every_stream(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """Read by one process, and by several."""
    monkeypatch.setattr("hoicli.io.streams.BYTES_PER_PROCESS", share)
    bad = tmp_path / "bad.jsonl"
    for name in ("gt", "sim", "predictions"):
        bad.write_bytes((SHOE / f"{name}.jsonl").read_bytes() + b"{}\n")
        files = {key: SHOE / f"{key}.jsonl" for key in ("gt", "sim", "predictions")} | {name: bad}
        given = ("--gt", files["gt"], "--sim", files["sim"], files["predictions"])
        number = bad.read_text().count("\n")
        assert refusal(hoicli("shoe-eval", *given)).startswith(f"{bad}:{number}: ")
        result = hoicli("shoe-eval", "--on-error", "skip", "--format", "jsonl", *given)
        assert result.code == 0
        assert f"hoicli: skipped 1 line; the first: {bad}:{number}: " in result.err
        good = hoicli("shoe-eval", "--format", "jsonl", *FILES, SHOE / "predictions.jsonl").out
        assert result.out.replace("|skipped:1|", "|") == good


def test_processes_change_nothing(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions read in shares, and images compared in blocks of one: every number, reason, note and pair."""
    truth, found = GT, PREDICTIONS
    table = tmp_path / "sim.jsonl"

    def everything(name: str) -> list[object]:
        why, own = tmp_path / f"{name}.why", tmp_path / f"{name}.sim"
        pairs = hoicli("shoe-sim", "--backend", "wordnet:wup", "--gt", truth, found, "-o", own)
        half = own.read_text().splitlines(keepends=True)[::2]
        table.write_text("".join(half))  # the others are missing, and counted
        files = ("--allow-missing", "--gt", truth, "--sim", table, "--reasons", why, found)
        done = hoicli("shoe-eval", "--format", "jsonl", *files)
        return [pairs, own.read_bytes(), done, why.read_bytes()]

    whole = everything("whole")
    monkeypatch.setattr("hoicli.io.streams.BYTES_PER_PROCESS", 256)
    monkeypatch.setattr("hoicli.shoe.triplet_matching.IMAGES_AT_ONCE", 1)
    assert everything("shared") == whole


def test_vcoco_s_own_predictions_have_objects_without_a_label(hoicli: Hoicli, tmp_path: Path) -> None:
    """They are compared by their verbs, as its own evaluator does; an agent's score is no triplet."""
    truth = [json.loads(line) for line in (VCOCO / "ground_truth.jsonl").read_text().splitlines()]
    found = []
    for record in truth:
        labels = [label if label == "person" else None for label in record["labels"]]
        hois = [{**hoi, "score": 0.9} for hoi in record["hois"]]
        of_roles = [hoi for hoi in hois if "role" in hoi]
        agents = [{"subject": hoi["subject"], "object": None, "verb": hoi["verb"], "score": 0.95} for hoi in of_roles]
        kept = {key: record[key] for key in ("image_id", "boxes")}
        found.append({**kept, "labels": labels, "hois": agents + hois})
    path = written(tmp_path / "preds.jsonl", found)
    options = ("--dataset", "vcoco", "--sim", "wordnet:wup", "--gt", VCOCO / "ground_truth.jsonl", "--format", "jsonl")
    result = hoicli("shoe-eval", *options, "--reasons", tmp_path / "why.jsonl", path)
    assert result.code == 0, result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert {row["metric"]: row["value"] for row in rows} == {
        "soft_map": 100.0,
        "mf1": 100.0,
        "gt_miss_rate": 0.0,
        "prediction_miss_rate": 0.0,
        "map": None,
    }
    assert "|unlabelled:by-verb|" in rows[0]["signature"]
    why = [json.loads(line) for line in (tmp_path / "why.jsonl").read_text().splitlines()]
    assert {line["object_similarity"] for line in why} == {None}
    first = found[0]["hois"].index(next(hoi for hoi in found[0]["hois"] if "role" in hoi))
    assert why[0]["prediction"] == first, "the place in the record, agents included"
    assert hoicli("shoe-eval", *options, VCOCO / "predictions.json").code == 0, "the official list"
    sims = ("--backend", "wordnet:wup", "--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl")
    assert hoicli("shoe-sim", *sims, path).code == 0
    other = hoicli("shoe-eval", "--sim", "wordnet:wup", "--gt", VCOCO / "ground_truth.jsonl", path)
    assert (other.code, "null is no name" in other.err) == (1, True), "of another dataset they are refused"


def test_the_table_is_symmetric_and_knows_itself() -> None:
    table = table_of({("pet.v.01", "touch.v.01"): 0.55, ("pet.n.01", "dog.n.01"): 1})
    found = table.values(
        ["pet.v.01", "touch.v.01", "pet.n.01", "new.v.01"], ["touch.v.01", "pet.v.01", "x.n.01", "new.v.01"]
    )
    np.testing.assert_array_equal(found, [0.55, 0.55, np.nan, 1.0])
    assert len(table) == 2
    assert len(SimilarityTable.read([], ErrorPolicy())) == 0
    empty = SimilarityTable.read([], ErrorPolicy()).values(["a.v.01"], ["b.v.01"])
    np.testing.assert_array_equal(empty, [np.nan])


def test_the_digest_names_the_content() -> None:
    rows = [{"pos": "v", "a": f"a{n}.v.01", "b": f"b{n % 3}.v.01", "similarity": n / 10} for n in range(9)]
    turned = [{**row, "a": row["b"], "b": row["a"]} for row in reversed(rows)]
    one, other = (SimilarityTable.read(as_lines(side), ErrorPolicy()).digest() for side in (rows, [*turned, rows[3]]))
    assert one == other
    rows[0]["similarity"] = -0.0
    assert SimilarityTable.read(as_lines(rows), ErrorPolicy()).digest() == one
    rows[0]["similarity"] = 0.05
    assert SimilarityTable.read(as_lines(rows), ErrorPolicy()).digest() != one


GOOD = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pos": "x"}, 'pos: "x" is neither v (verbs) nor n (objects)'),
        ({"a": 3}, "a: 3 is no sense of pos v; name one as WordNet does, for example pet.v.01"),
        ({"b": "dog.n.01"}, 'b: "dog.n.01" is no sense of pos v; name one as WordNet does, for example pet.v.01'),
        ({"similarity": 1.5}, "similarity: 1.5 is no similarity; give a number from 0 to 1"),
        ({"similarity": True}, "similarity: true is no similarity; give a number from 0 to 1"),
        ({"b": "pet.v.01"}, "similarity: 0.5 of a sense with itself is 1; leave the line out"),
        ({"scores": {"m": 0}}, "similarity: 0.5 is not what its scores give, 0; correct one of the two"),
        (
            {"scores": {"m": 4, "n": 0}, "merge": "majority"},
            "similarity: 0.5 is not what its scores give, 1 or 0; correct one of the two",
        ),
        ({"scores": [3]}, "scores: [3] is no object of ratings 0 to 4 by model"),
        ({"measure": 7}, "measure: 7 is no name"),
        ({"date": "2026-01-31/"}, 'date: "2026-01-31/" is no date; write 2026-01-31, or 2026-01-31/2026-02-02'),
        ({"merge": ["x"]}, 'merge: ["x"] is none of mean, median, majority'),
        (
            {"a": "touch.v.01", "b": "pet.v.01", "similarity": 0.25},
            "similarity: touch.v.01 and pet.v.01 are 0.25 here and 0.5 on another line; "
            "keep one line a pair (hoicli shoe-sim --merge joins tables)",
        ),
    ],
)
def test_a_bad_line_of_the_table(change: Record, message: str) -> None:
    lines = as_lines([GOOD, {**GOOD, **change}], "sim.jsonl")
    assert complaint(DataError, SimilarityTable.read, lines, ErrorPolicy()) == f"sim.jsonl:2: {message}"
    policy = ErrorPolicy(skip=True)
    kept = SimilarityTable.read(lines, policy)
    assert policy.skipped == 1
    # a pair that lines disagree about is not in the table at all: which line came first must not decide
    assert len(kept) == (0 if "shoe-sim --merge" in message else 1)


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {"m": 2}},
        {"scores": {"m": 1, "n": 2, "o": 2}, "similarity": 0.42},  # written with two digits
        {"scores": {"m": 4, "n": 0}, "similarity": 0.0, "merge": "majority"},  # who was listed first is not known
        {"scores": {"m": 0}, "measure": "lexical"},  # another rater stands beside it
        {"scores": {"m": 3}, "a": "touch.v.01", "b": "touch.v.01", "similarity": 1},
        {"scores": {}},
    ],
)
def test_a_similarity_that_follows_from_its_scores(change: Record) -> None:
    assert len(SimilarityTable.read(as_lines([{**GOOD, **change}]), ErrorPolicy())) == 1


RECORD = b'{"pos": "v", "a": "pet.v.01", "b": "hug.v.01", "similarity": 0.5, "measure": "wordnet:wup"}'


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([RECORD, RECORD + b"," + RECORD], "sim.jsonl:2"),
        ([RECORD + b"," + RECORD[:9], RECORD[9:]], "sim.jsonl:1"),
        ([RECORD[:-1], RECORD[1:]], "sim.jsonl:1"),
        ([RECORD, RECORD[:-1] + b',"pos": "v"}'], "sim.jsonl:2: the key 'pos' occurs twice"),
        ([RECORD, RECORD[:-1] + b',"measure": "wordnet\\u003awup"}'], "sim.jsonl:2: the key 'measure' occurs twice"),
    ],
)
def test_each_line_is_a_record(lines: list[bytes], place: str) -> None:
    table = [Line("sim.jsonl", number, data) for number, data in enumerate(lines, start=1)]
    assert complaint(DataError, SimilarityTable.read, table, ErrorPolicy()).startswith(place)


@pytest.mark.parametrize("rule", RULES)
def test_a_joined_zero_has_no_sign(rule: str) -> None:
    row = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": -0.0}
    (joined,) = merged_rows(as_lines([row]), rule, ErrorPolicy())
    assert str(joined["similarity"]) == "0.0"


def test_where_ground_truth_has_its_senses_from() -> None:
    truth = image(("ride", "set"), ("ride", "train", None, None, "ride.v.10"), ("odd", "train"))
    truth["synsets"] = [None, "kit.n.02", None, None]

    def some(verb: str, name: str | None) -> tuple[str | None, str | None]:
        return (None if verb == "odd" else f"{verb}.v.07", f"{name}.n.07")

    classes = classes_of(read([truth]), some, candidates)
    assert classes.classes == [("odd", "train"), ("ride", "set"), ("ride", "train")]
    named = [classes.verbs[row] for row in classes.verb_row]
    assert named == [("ride", "ride.v.07"), ("ride", "ride.v.10"), ("odd", "odd.v.01")]
    assert [classes.objects[row][1] for row in classes.object_row] == ["kit.n.02", "train.n.07", "train.n.07"]


def test_labels_are_compared_by_the_signs_of_a_keyboard() -> None:
    labels = ("Tennis\u2011Racket", "\u201ctennis-racket\u201d", "\uff54ennis\u2013racket", "tennis-\u200bracket")
    assert {normalise(label) for label in labels} == {"tennis-racket"}
    assert normalise("tennis\u00a0racket") == normalise("Tennis  racket") == "tennis_racket"
