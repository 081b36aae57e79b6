"""`hoicli shoe-sim`: the pairs it rates are those that are looked up, whoever rates them; and no answer is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.likenesses import normalise
from hoicli.shoe.rating import dataset_pairs
from hoicli.shoe.table_joining import combine, merged_rows
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.senses import candidates, ground_truth_sense
from tests.support.kernel import lines
from tests.support.llm_stub import Asked, Response, Stub, rate, said, serving
from tests.support.project import GT, PATIENCE, PREDICTIONS, VLM, Hoicli, parsed, refusal, saved, written

TRUTH = VLM / "ground_truth.jsonl"


@pytest.fixture
def predictions(hoicli: Hoicli, tmp_path: Path) -> Path:
    path = tmp_path / "predictions.jsonl"
    assert hoicli("convert", "--from", "vlm", "--coords", "1000", "-o", path, VLM / "answers.jsonl").code == 0
    return path


def keys(text: str) -> list[tuple[str, str, str]]:
    return [(line["pos"], line["a"], line["b"]) for line in parsed(text)]


def looked_up(truth: Path, predicted: Path) -> set[tuple[str, str, str]]:
    """The pairs by plain loops: each ground-truth sense with every candidate of every predicted label of its image,
    but where the words are the same or the sense is among the candidates."""
    found = set()
    images: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (one, other)
        for one, other in product(parsed(truth.read_text()), parsed(predicted.read_text()))
        if one["image_id"] == other["image_id"]
    ]
    for one, other in images:
        for hoi, guess in product(one["hois"], other["hois"]):
            names = hoi["verb"], one["labels"][hoi["object"]]
            guesses = guess["verb"], other["labels"][guess["object"]]
            for pos, name, sense, word in zip("vn", names, ground_truth_sense("hico", *names), guesses, strict=True):
                pool = candidates(word, pos)
                if sense is not None and sense not in pool and normalise(word) != normalise(name):
                    found |= {(pos, *sorted((sense, other_sense))) for other_sense in pool}
    return found  # type: ignore[return-value]


def test_the_pairs_are_those_of_plain_loops(hoicli: Hoicli, predictions: Path) -> None:
    for truth, predicted in ((TRUTH, predictions), (GT, PREDICTIONS)):
        result = hoicli("shoe-sim", "--backend", "wordnet:path", "--gt", truth, predicted)
        assert result.code == 0, result.err
        found = keys(result.out)
        assert set(found) == looked_up(truth, predicted)
        assert found == sorted(set(found))
        assert all(a < b for _, a, b in found)


def test_tables_of_shards_join_to_that_of_the_whole(hoicli: Hoicli, tmp_path: Path, predictions: Path) -> None:
    command = ("shoe-sim", "--backend", "wordnet:lin", "--gt", TRUTH)
    lines = predictions.read_text().splitlines(keepends=True)
    tables = [tmp_path / f"sim-{number}.jsonl" for number in range(3)]
    for number, table in enumerate(tables):
        shard = saved(tmp_path / f"{number}.jsonl", "".join(lines[number::3]))
        assert hoicli(*command, shard, "-o", table).code == 0
    assert hoicli("shoe-sim", "--merge", "mean", *tables).out == hoicli(*command, predictions).out != ""


def test_the_classes_of_a_dataset(hoicli: Hoicli) -> None:
    result = hoicli("shoe-sim", "--backend", "wordnet:wup", "--dataset", "hico")
    found = keys(result.out)
    own: dict[str, set[str]] = {"v": set(), "n": set()}
    for interaction in load("hico").interactions:
        for pos, sense in zip("vn", ground_truth_sense("hico", *interaction), strict=True):
            own[pos] |= {sense} if sense is not None else set()
    assert found == sorted((pos, a, b) for pos, senses in own.items() for a in senses for b in senses if a < b)
    said = "no WordNet sense for 1 label (no_interaction): similarity 1 to the same spelling, else 0"
    assert result.err == f"hoicli: {said}\n"


def test_senses_named_in_the_records_are_taken(hoicli: Hoicli, tmp_path: Path) -> None:
    record: dict[str, Any] = {"image_id": "a", "boxes": [[0, 0, 9, 9]] * 2, "labels": ["person", "thing"],
              "synsets": [None, "kite.n.03"],
              "hois": [{"subject": 0, "object": 1, "verb": "do", "verb_synset": "fly.v.03"}]}  # fmt: skip
    other = {**record, "synsets": [None, "kite.n.04"], "hois": [{**record["hois"][0], "verb_synset": "pull.v.01"}]}
    paths = [tmp_path / name for name in ("gt.jsonl", "predictions.jsonl")]
    for path, one in zip(paths, (record, other), strict=True):
        path.write_text(json.dumps(one) + "\n")
    result = hoicli("shoe-sim", "--backend", "wordnet:path", "--gt", *paths)
    assert keys(result.out) == [("n", "kite.n.03", "kite.n.04"), ("v", "fly.v.03", "pull.v.01")]
    paths[1].write_text(json.dumps(other).replace("pull.v.01", "pull.v.99") + "\n")
    said = refusal(hoicli("shoe-sim", "--backend", "wordnet:path", "--gt", *paths))
    assert said == "hoicli: 'pull.v.99' is no sense of WordNet 3.0; name one like pet.v.01"


def test_lines_come_back_in_their_order_with_a_similarity(hoicli: Hoicli, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = [
        {"pos": "v", "a": "ride", "b": "drive", "id": 7},
        {"pos": "n", "a": "car", "b": "automobile"},
        {"pos": "n", "a": "zzyzx", "b": "car"},
        {"pos": "n", "a": "zzyzx", "b": "Zzyzx"},
        {"pos": "v", "a": "pet.v.01", "b": "touch.v.01"},
        {"pos": "v", "a": "touching", "b": "pet.v.01"},
        {"pos": "n", "a": "motorcar.n.01", "b": "car.n.01"},
    ]
    path = written(tmp_path / "pairs.jsonl", asked)
    result = hoicli("shoe-sim", "--backend", "wordnet:path", "--pairs", path)
    found = parsed(result.out)
    asked[4] = {**asked[4], "measure": "wordnet:path"}  # of two senses, a line of --pairs is a line of a table
    assert [{key: line[key] for key in line if key != "similarity"} for line in found] == asked
    similarity = [line["similarity"] for line in found]
    assert [similarity[at] for at in (1, 2, 3, 6)] == [1.0, None, 1.0, 1.0]
    assert similarity[5] >= similarity[4] > 0
    assert result.err == f"hoicli: words without a WordNet sense: 1 (the first: 'zzyzx', {path}:3)\n"
    best = max(
        line["similarity"]
        for line in parsed(
            _rated(hoicli, tmp_path, [("v", a, b) for a in candidates("ride", "v") for b in candidates("drive", "v")])
        )
    )
    assert similarity[0] == best


def _rated(hoicli: Hoicli, folder: Path, pairs: list[tuple[str, str, str]], backend: str = "wordnet:path") -> str:
    path = written(folder / "senses.jsonl", (dict(zip(("pos", "a", "b"), pair, strict=True)) for pair in pairs))
    return hoicli("shoe-sim", "--backend", backend, "--pairs", path).out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": "x", "b": "y"}', "pos: neither n nor v; say what part of speech the words are"),
        ('{"pos": "n", "a": "x"}', "b: missing, or no word; give a word or a sense like pet.v.01"),
        ('{"pos": "n", "a": "pet.v.01", "b": "cup"}', "'pet.v.01' is no sense of a noun"),
        ('{"pos": "v", "a": "pet.v.77", "b": "hug"}', "'pet.v.77' is no sense of WordNet 3.0"),
        ("[]", "an array, not an object"),
    ],
)
def test_bad_lines_are_named_or_skipped(hoicli: Hoicli, tmp_path: Path, line: str, words: str) -> None:
    path = saved(tmp_path / "pairs.jsonl", f'{{"pos": "n", "a": "cup", "b": "cup"}}\n{line}\n')
    said = refusal(hoicli("shoe-sim", "--backend", "wordnet:wup", "--pairs", path))
    assert said.startswith(f"{path}:2: ")
    assert words in said
    result = hoicli("shoe-sim", "--backend", "wordnet:wup", "--pairs", path, "--on-error", "skip")
    assert [line["similarity"] for line in parsed(result.out)] == [1.0]
    assert f"skipped 1 line; the first: {path}:2: " in result.err


def line_of(a: str, b: str, **more: Any) -> str:
    return json.dumps({"pos": "v", "a": a, "b": b, **more}) + "\n"


def test_tables_are_joined_by_model(hoicli: Hoicli, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(
        line_of("pet.v.01", "touch.v.01", scores={"qwen3-32b": 2}, similarity=0.5)
        + line_of("b.v.01", "a.v.01", scores={"m": 4, "l": 4}, similarity=1.0)
    )
    second.write_text(
        line_of("pet.v.01", "touch.v.01", scores={"deepseek-v3": 3}, similarity=0.75)
        + line_of("pet.v.01", "touch.v.01", scores={"deepseek-v3": 3, "yi": 3}, similarity=0.75)
        + line_of("x.v.01", "x.v.01", similarity=1.0)
        + line_of("a.v.01", "b.v.01", scores={"k": 1}, similarity=0.25)
    )
    result = hoicli("shoe-sim", "--merge", "mean", first, second)
    assert result.out.splitlines() == [
        '{"pos":"v","a":"a.v.01","b":"b.v.01","scores":{"k":1,"l":4,"m":4},"similarity":0.75}',
        '{"pos":"v","a":"pet.v.01","b":"touch.v.01","scores":{"deepseek-v3":3,"qwen3-32b":2,"yi":3},'
        '"similarity":0.6666666666666666}',
    ]
    assert hoicli("shoe-sim", "--backend", "table", second, first).out == result.out


def test_a_vote_s_ties_go_to_the_model_first_by_name_and_the_table_says_so(hoicli: Hoicli, tmp_path: Path) -> None:
    parts = [tmp_path / f"{name}.jsonl" for name in ("qwen", "gemini", "nobody")]
    parts[0].write_text(line_of("a.v.01", "b.v.01", scores={"qwen": 4}, similarity=1.0))
    parts[1].write_text(line_of("a.v.01", "b.v.01", scores={"gemini": 1}, similarity=0.25))
    parts[2].write_text(line_of("a.v.01", "b.v.01", similarity=0.1) + line_of("a.v.01", "b.v.01", similarity=0.0))
    vote = hoicli("shoe-sim", "--merge", "majority", *parts)
    assert vote.out == (
        '{"pos":"v","a":"a.v.01","b":"b.v.01","scores":{"gemini":1,"qwen":4},"similarity":0.25,"merge":"majority",'
        '"measure":"unnamed"}\n'
    )
    assert hoicli("shoe-sim", "--merge", "majority", *parts[::-1]).out == vote.out
    assert parsed(hoicli("shoe-sim", "--merge", "majority", parts[2]).out)[0]["similarity"] == 0.0
    assert "merge" not in hoicli("shoe-sim", "--merge", "mean", *parts).out


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7), st.randoms())
def test_rules(ratings: list[int], shuffle: random.Random) -> None:
    ordered = sorted(ratings)
    count = len(ordered)
    often = max(map(ratings.count, ratings))
    expected = {
        "mean": sum(ratings) / count,
        "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
        "majority": next(rating for rating in ratings if ratings.count(rating) == often),
    }
    for rule, value in expected.items():
        assert combine(ratings, rule) == pytest.approx(value)
    # Tables come in any order: the models' names decide
    pair = {"pos": "v", "a": "a.v.01", "b": "b.v.01"}
    rows = [{**pair, "scores": {f"m{at}": rating}} for at, rating in enumerate(ratings)]
    shuffle.shuffle(rows)
    for rule, value in expected.items():
        (joined,) = merged_rows(lines(rows), rule, ErrorPolicy())
        assert joined["similarity"] == pytest.approx(value / 4)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (line_of("a.v.01", "b.v.01", scores={"m": 3}), "scores: m rates a.v.01 and b.v.01 3 here and 2 at"),
        (line_of("a.v.01", "b.v.01", scores={"m": 5}), 'scores: {"m": 5} is no object of ratings 0 to 4 by model'),
    ],
)
def test_bad_tables_are_named_or_skipped(hoicli: Hoicli, tmp_path: Path, line: str, words: str) -> None:
    path = saved(tmp_path / "table.jsonl", line_of("a.v.01", "b.v.01", scores={"m": 2}) + line)
    said = refusal(hoicli("shoe-sim", "--merge", "mean", path))
    assert said.startswith(f"{path}:2: ")
    assert words in said
    result = hoicli("shoe-sim", "--merge", "mean", path, "--on-error", "skip")
    assert [line["similarity"] for line in parsed(result.out)] == [0.5]


LLM = ("--backend", "llm", "--dataset", "hico")


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "give a --backend (wordnet:wup, lexical, llm, ...), or --merge to join tables"),
    (("--backend", "wordnet:hso", "--dataset", "hico"), "--backend wordnet:hso: choose from"),
    (("--backend", "lexical"), "give the ground truth with --gt FILE, a --dataset, or lines of"),
    (("--backend", "lexical", "--gt", TRUTH, "--all-senses"), "--all-senses: goes with a --dataset alone"),
    (("--backend", "lexical", "--gt", TRUTH, "--pairs", TRUTH), "--pairs rates lines of its own"),
    (("--backend", "lexical", "--dataset", "hico", "--model", "m"), "--backend lexical asks no model"),
    (("--merge", "mean", "--gt", TRUTH, TRUTH), "--merge joins tables: give it the tables alone"),
    (("--check", TRUTH, "--model", "m", "--dataset", "hico"), "--check rates nothing: give it --gt and"),
    (LLM, "llm: name a --model to ask"),
    ((*LLM, "--model", "m", "--dry-run", "--price", "1"), "--price 1: give"),
])  # fmt: skip
def test_wrong_calls(hoicli: Hoicli, arguments: tuple[object, ...], words: str) -> None:
    assert words in refusal(hoicli("shoe-sim", *arguments), 2)


PAIRS = [("v", "clean.v.01", f"wash.v.{number:02}") for number in range(1, 10)] + [
    ("n", "cup.n.01", other)
    for other in ("mug.n.04", "train.n.01", "kite.n.03", "giraffe.n.01", "cake.n.03", "dog.n.01")
]


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    return written(tmp_path / "pairs.jsonl", (dict(zip(("pos", "a", "b"), pair, strict=True)) for pair in PAIRS))


def mean_rating(pair: tuple[str, str, str], *models: str) -> float:
    a, b = sorted(pair[1:])
    return sum(rate(model, a, b) for model in models) / (4 * len(models))


def ask(stub: Stub, path: Path, *more: object) -> list[object]:
    return ["shoe-sim", "--backend", "llm", "--base-url", stub.url, "--pairs", path, "--model", "m1", *more]


def test_models_rate_what_an_evaluation_needs(hoicli: Hoicli, tmp_path: Path, predictions: Path) -> None:
    cache = tmp_path / "answers.jsonl"
    with serving() as stub:
        command = ("shoe-sim", "--backend", "llm", "--base-url", stub.url, "--model", "m1", "--model", "m2",
                   "--cache", cache, "--gt", TRUTH, predictions)  # fmt: skip
        result = hoicli(*command)
        assert result.code == 0, result.err
        assert set(keys(result.out)) == looked_up(TRUTH, predictions)
        for line in parsed(result.out):
            assert line["scores"] == {model: rate(model, line["a"], line["b"]) for model in ("m1", "m2")}
            assert line["similarity"] == sum(line["scores"].values()) / 8
        count = len(parsed(result.out))
        again = hoicli(*command)
        assert again.out == result.out
        assert sum(stub.asked.values()) == 2 * count
        glosses = stub.requests[0]["messages"][1]["content"]
        assert " -- " in glosses
    # one model at a time, and merged
    parts = []
    with serving() as stub:
        for model in ("m2", "m1"):
            parts.append(tmp_path / f"{model}.jsonl")
            hoicli("shoe-sim", "--backend", "llm", "--base-url", stub.url, "--model", model, "--gt", TRUTH, predictions,
                   "-o", parts[-1])  # fmt: skip
    assert hoicli("shoe-sim", "--merge", "mean", *parts).out == result.out


def test_what_no_model_rates_is_listed(hoicli: Hoicli, tmp_path: Path, pairs_file: Path, predictions: Path) -> None:
    cache = tmp_path / "answers.jsonl"

    def mute(_: Stub, asked: Asked, __: int) -> Response | None:
        return said("Hm.") if asked[0] == "m1" and asked[2] in ("wash.v.03", "train.n.01", "mug.n.04") else None

    with serving(mute) as stub:
        command = ask(stub, pairs_file, "--cache", cache, "--model", "m2")
        result = hoicli(*command)
        assert result.code == 1
        assert "3 questions got no usable answer, the first: m1 on cup.n.01 and mug.n.04 (said 'Hm.')" in result.err
        assert "run again to ask them again, or pass --on-error skip" in result.err
        target = tmp_path / "sim.jsonl"
        assert hoicli(*command, "-o", target).code == 1
        assert not target.exists()
        skipped = hoicli(*command, "--on-error", "skip")
        assert skipped.code == 0
        values = {(line["pos"], line["a"], line["b"]): line["similarity"] for line in parsed(skipped.out)}
        assert values["v", "clean.v.01", "wash.v.03"] == mean_rating(("v", "clean.v.01", "wash.v.03"), "m2")
        assert "3 questions got no usable answer" in skipped.err
        # a table has the complete pairs only
        table = hoicli("shoe-sim", "--backend", "llm", "--base-url", stub.url, "--model", "m1", "--cache", cache,
                       "--gt", TRUTH, predictions)  # fmt: skip
        assert all(line["scores"].keys() == {"m1"} for line in parsed(table.out))
        stub.fault = None
        assert hoicli(*command).code == 0
        assert set(stub.answered.values()) == {1}


def test_a_dry_run_asks_nothing_and_counts(hoicli: Hoicli, tmp_path: Path, pairs_file: Path) -> None:
    cache = tmp_path / "answers.jsonl"
    with serving() as stub:
        hoicli(*ask(stub, pairs_file, "--cache", cache))
        asked = sum(stub.asked.values())
        prices = ("--price", "10,20")
        result = hoicli(*ask(stub, pairs_file, "--cache", cache, "--model", "m2", "--dry-run", *prices))
        assert sum(stub.asked.values()) == asked == len(PAIRS)
    rows = parsed(result.out)
    assert [(row["model"], row["pairs"], row["questions"]) for row in rows] == [("m1", 15, 0), ("m2", 15, 15)]
    assert rows[0]["cost"] == 0
    assert rows[1]["completion_tokens"] == 15 * 8
    assert rows[1]["cost"] == round((rows[1]["prompt_tokens"] * 10 + 120 * 20) / 1e6, 4) > 0
    assert "asked nothing. Estimates: 4 characters a token, 8 tokens an answer" in result.err
    offline = hoicli("shoe-sim", "--backend", "llm", "--model", "m2", "--pairs", pairs_file, "--dry-run")
    assert parsed(offline.out)[0]["prompt_tokens"] == rows[1]["prompt_tokens"]
    assert "cost" not in parsed(offline.out)[0]


def until(condition: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def many_pairs(tmp_path: Path) -> tuple[Path, int]:
    senses = [*candidates("hold", "v"), *candidates("carry", "v")][:20]
    many = [{"pos": "v", "a": a, "b": b} for a, b in combinations(senses, 2)]
    return written(tmp_path / "many.jsonl", many), len(many)


@pytest.mark.long
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_and_asks_nothing_twice(
    hoicli: Hoicli, tmp_path: Path, many_pairs: tuple[Path, int], way: signal.Signals
) -> None:
    path, count = many_pairs
    cache = tmp_path / "answers.jsonl"

    def holds(stub: Stub, _: Asked, __: int) -> Response | None:
        """After 50 answers the server falls silent, so that what is under way at the kill has not been answered."""
        with stub.lock:
            if len(stub.answered) + held[0] < 50:
                held[0] += 1
                return None
        released.wait(PATIENCE)
        return Response(503)

    held, released = [0], threading.Event()
    with serving(holds) as stub:
        command = [sys.executable, "-m", "hoicli", *map(str, ask(stub, path, "--cache", cache, "--jobs", "6"))]
        # A shell's background job ignores Ctrl-C, and so would its children.
        handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdout=pipe, stderr=pipe, env=dict(os.environ), bufsize=0)
        finally:
            signal.signal(signal.SIGINT, handler)
        until(lambda: cache.exists() and cache.read_bytes().count(b"\n") >= sum(stub.answered.values()) > 20)
        until(lambda: stub.at_once == 6)
        process.send_signal(way)
        out, err = process.communicate(timeout=PATIENCE)
        released.set()
        assert (process.returncode, out) == (130 if way == signal.SIGINT else -way, b"")
        assert (way != signal.SIGINT) or err.endswith(b"hoicli: interrupted\n")
        before = dict(stub.answered)
        assert cache.read_bytes().count(b"\n") == len(before)
        cut_off = b'{"model":"m1","setup":"'  # what a kill in the middle of a write leaves
        cache.write_bytes(cache.read_bytes() + cut_off)
        stub.fault = None
        result = hoicli(*ask(stub, path, "--cache", cache, "--jobs", "6"))
        assert result.code == 0, result.err
        assert len(stub.answered) == count
        assert set(stub.answered.values()) == {1}
        for line in parsed(result.out):
            assert line["similarity"] == mean_rating(("v", line["a"], line["b"]), "m1")


def test_every_sense_that_a_prediction_may_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Section 3's table of a dataset: each sense of it with all verbs, or with the neighbourhood of its objects."""
    site = {"name": "site", "verbs": ["ride"], "objects": ["person", "bicycle"], "interactions": [["ride", "bicycle"]]}
    path = written(tmp_path / "site.json", [site])
    pairs = dataset_pairs(str(path), all_senses=True)
    assert len(set(pairs)) == len(pairs)
    assert all(first < second for _, first, second in pairs)
    verbs, objects = ({frozenset(pair[1:]) for pair in pairs if pair[0] == pos} for pos in "vn")
    assert len(verbs) == 13_767 - 1
    assert frozenset(("ride.v.01", "pet.v.01")) in verbs
    others = {sense for pair in objects for sense in pair}
    assert {"wheeled_vehicle.n.01", "entity.n.01", "mountain_bike.n.01"} <= others  # above, and just below
    assert "giraffe.n.01" not in others
    assert f"are {len(pairs):,} pairs" in capsys.readouterr().err
