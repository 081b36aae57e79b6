"""Predictions and ground truth read together: what is noted, what is refused, and where a mistake is said to be; names
of streams; and options and tags that mean nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.evaluating import match_batches, read_truth
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import names_of_files
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.result_rows import parse_tags
from tests.support.kernel import HICO, ground_truth, lines
from tests.support.project import GT, OTHER, PREDICTIONS, Hoicli, Record, written


def image(name: str, good: int, bad: int) -> Record:
    """So many triplets of the vocabulary and so many that are none."""
    hois = [{"subject": 0, "object": 1, "verb": "hold"}] * good + [{"subject": 0, "object": 0, "verb": "fly"}] * bad
    return {"image_id": name, "boxes": [[0, 0, 9, 9], [5, 5, 20, 20]], "labels": ["person", "cup"], "hois": hois}


@pytest.mark.parametrize(("good", "bad", "allowed", "note"), [
    (1, 0, False, ""),
    (1, 1, False, "1 ground-truth triplets are no hico interaction (verb and object): not counted"),
    (1, 3, True, "3 ground-truth triplets are no hico interaction (verb and object): not counted"),
    (0, 0, False, "the ground truth holds no triplet: none can be found, and a mean of triplets shows nothing"),
])  # fmt: skip
def test_ground_truth_of_no_class_is_noted(
    good: int, bad: int, allowed: bool, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "gt.jsonl", [image("a", good, bad)])
    truth = read_truth(Stream([str(path)], "--gt"), HICO, ErrorPolicy(), allow_uncounted=allowed)
    assert int((truth.scenes.interaction >= 0).sum()) == good
    said = capsys.readouterr().err
    assert said.strip().endswith(note)
    assert bool(said) == bool(note)
    assert truth.name == str(path)


@pytest.mark.parametrize(("content", "message"), [
    ([], "no ground truth in it; hoicli convert makes it from the dataset's file"),
    ([image("a", 1, 2)], "2 of 3 triplets are no hico interaction (verb and object) and count for nothing: "),
])  # fmt: skip
def test_ground_truth_that_would_mislead(content: list[Record], message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "gt.jsonl", content)
    with pytest.raises(DataError) as error:
        read_truth(Stream([str(path)], "--gt"), HICO, ErrorPolicy())
    assert str(error.value).startswith(f"{path}: {message}")


def test_an_image_that_the_ground_truth_does_not_have() -> None:
    truth, stray = ground_truth([image("a", 1, 0)]), {**image("b", 0, 0)}
    with pytest.raises(DataError) as error:
        list(match_batches(lines([stray]), truth, [PROTOCOLS["hico"]], Filters(), ErrorPolicy()))
    assert str(error.value).startswith("test:1: image_id: ")
    policy = ErrorPolicy(skip=True)
    known = image("a", 0, 0)
    assert len(list(match_batches(lines([known, stray]), truth, [PROTOCOLS["hico"]], Filters(), policy))) == 1
    assert policy.skipped == 1


@pytest.fixture(scope="module")
def matches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hoicli.cli import run

    path = tmp_path_factory.mktemp("matches") / "matches.jsonl"
    given = ["--gt", str(GT), str(PREDICTIONS), "--protocol", "hico,diag", "--iou", "0.5,0.75"]
    assert run(["match", *given, "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize(("options", "message"), [
    (("--top-k", "5"), "--top-k and --nms act before matching: give them to hoicli match, or predictions with"),
    (("--protocol", "upt"), "--protocol upt: the matches are of diag, hico"),
    (("--protocol", "hico,upt,qpic"), "--protocol upt,qpic: the matches are of diag, hico"),
    (("--iou", "0.6"), "--iou 0.6: the matches of hico do not have it; give it to hoicli match"),
    (("--iou", "0.5:0.75:0.25"), "--iou 0.5:0.75:0.25: a mean over thresholds needs the predictions, with --gt"),
    (("--iou", "0.75", "--slice", "people"), "--iou 0.75 --slice people: the matches of hico"),
    (("--slice", "people"), "the matches of hico have only --iou 0.5 or --iou 0.75: ask for one, or match"),
    (("--dataset", "vcoco"), "--dataset vcoco: the matches are of hico; leave it out"),
])  # fmt: skip
def test_what_a_match_stream_cannot_say(options: tuple[str, ...], message: str, matches: Path, hoicli: Hoicli) -> None:
    result = hoicli("eval", matches, *options)
    assert (result.code, result.out, message in result.err) == (2, "", True)


def test_a_match_stream_says_all_that_it_has_or_what_is_named(matches: Path, hoicli: Hoicli) -> None:
    def views(*options: object) -> set[tuple[str, str]]:
        rows = map(json.loads, hoicli("eval", matches, *options).out.splitlines())
        return {(row["protocol"], row["tags"]["iou"]) for row in rows}

    every = {(name, iou) for name in ("hico", "diag") for iou in ("0.5", "0.75")}
    assert views() == every
    assert views("--gt", GT) == every
    assert views("--protocol", "diag") == {("diag", "0.5"), ("diag", "0.75")}
    assert views("--iou", "0.75") == {("hico", "0.75"), ("diag", "0.75")}


def test_scores_that_rank_nothing_are_asked_about(hoicli: Hoicli, tmp_path: Path) -> None:
    """AP would be about the images' ids."""
    records = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    for record in records:
        for hoi in record["hois"]:
            hoi["score"] = 0.5
    path, count = tmp_path / "even.jsonl", sum(len(record["hois"]) for record in records)
    question = f"hoicli: are these scores? all {count} are 0.5 and rank nothing; see what is written as score\n"
    for words in (("eval",), ("match",), ("diagnose",), ("recall",), ("eval", "--boxes")):
        assert hoicli(*words, "--gt", GT, written(path, records)).err.count(question) == 1
    for record in records:  # boxes have a ranking of their own
        record["scores"] = [0.1 * place for place, _ in enumerate(record["boxes"])]
    assert "are these scores?" not in hoicli("eval", "--boxes", "--gt", GT, written(path, records)).err
    records[-1]["hois"][0]["score"] = 0.4
    assert "are these scores?" not in hoicli("eval", "--gt", GT, written(path, records)).err


def test_what_eval_sees_of_the_faults_that_validate_finds(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions = ([json.loads(line) for line in path.read_text().splitlines()] for path in (GT, PREDICTIONS))
    truth[0]["hois"].append(truth[0]["hois"][0])
    for hoi in (hoi for record in predictions for hoi in record["hois"]):
        hoi["score"] = -hoi["score"]
    doubled, negated = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    said = hoicli("eval", "--gt", doubled, negated).err
    assert (
        "hoicli: 1 ground-truth triplets repeat another on the same boxes: where both count, only one can be found"
        in said
    )
    assert "hoicli: no score is above 0: right for logarithms of probabilities, wrong for distances" in said
    said = hoicli("eval", "--gt", GT, PREDICTIONS).err
    assert not any(words in said for words in ("repeat another", "no score is above"))


def test_classes_without_ground_truth_are_said_where_most_of_a_mean_have_none(hoicli: Hoicli) -> None:
    """Once for all models, and not of means that leave such classes out."""
    said = "586 of 600 classes have no ground truth and count 0 in the mean"
    gt, streams = ("--gt", GT), [PREDICTIONS, OTHER]
    assert hoicli("eval", *gt, streams[0]).err.count(f"hoicli: hico, hico-ko, upt, inp-cc: {said}") == 1
    assert said not in hoicli("eval", *gt, "--protocol", "qpic,diag", streams[0]).err
    assert hoicli("compare", "--bootstrap", "10", *gt, *streams).err.count(said) == 1
    assert said not in hoicli("match", *gt, streams[0]).err  # of a shard, perhaps


@pytest.mark.parametrize(("paths", "names"), [
    (["out/preds.jsonl"], ["preds"]),
    (["a/preds.jsonl", "b/other.jsonl.gz"], ["preds", "other"]),
    (["runs/a/preds.jsonl", "runs/b/preds.jsonl", "c/third.jsonl"], ["a/preds", "b/preds", "c/third"]),
    (["x/a/p.jsonl", "x/b/p.jsonl", "y/a/p.jsonl"], ["x/a/p", "x/b/p", "y/a/p"]),
    (["p.jsonl", "/tmp/p.jsonl"], ["p", "tmp/p"]),
    (["/p.jsonl", "./tmp/../q/p.jsonl"], ["/p", "q/p"]),
    (["p.jsonl", "p.json"], ["p.jsonl", "p.json"]),
    (["a/p.jsonl", "a/p.json", "b/p.jsonl"], ["a/p.jsonl", "a/p.json", "b/p.jsonl"]),
    (["-", "other.jsonl"], ["stdin", "other"]),
    (["-", "stdin.jsonl"], ["<stdin>", "stdin.jsonl"]),
    ([".hidden.jsonl"], [".hidden.jsonl"]),
])  # fmt: skip
def test_the_shortest_path_that_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert names_of_files(paths) == names


@pytest.mark.parametrize("paths", [["p.jsonl", "p.jsonl"], ["p.jsonl", "q", "./p.jsonl"], ["-", "-"]])
def test_a_path_given_twice_is_refused(paths: list[str]) -> None:
    with pytest.raises(UsageError, match="is given twice: names must differ; leave one out, or give each a name"):
        names_of_files(paths)


PARTS = st.sampled_from(["a", "b", "p", "p.json", "p.jsonl", ".p", "a.p", "-"])


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6, unique=True))
def test_names_differ_whatever_the_paths(paths: list[str]) -> None:
    names = names_of_files(paths)
    assert len(set(names)) == len(paths)
    assert all(names)


@pytest.mark.parametrize("nms", ["0.5/nan/1", "0.5/1/nan", "0.5/-0.1/1", "0.5/1", "0.5/1/1/1", "x", "", "2", "nan"])
def test_pair_nms_that_cannot_be(nms: str) -> None:
    with pytest.raises(UsageError, match=f"^--nms {nms}"):
        Filters.from_options(None, nms, False)


def test_exponents_of_pair_nms() -> None:
    assert Filters.from_options(None, 0.5, False) == Filters.from_options(None, "0.5/1/0.5", False)
    assert Filters.from_options(3, "0.5/0.5/1", False).signature() == {"topk": "3", "nms": "0.5/0.5/1"}


def test_tags_are_text() -> None:
    with pytest.raises(UsageError, match="no UTF-8"):
        parse_tags(["model=\udcff"])
