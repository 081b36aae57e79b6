"""SHOE's numbers by hand, a slow evaluator on random data, and weighted images as images written down several times;
and tables that are shared: who rated, what they were asked, when."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.records.intake import ErrorPolicy
from hoicli.resampling.comparison import PairedRounds
from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import Rounds, resample, swap_outputs
from hoicli.shoe.likenesses import normalise
from hoicli.shoe.scores import Run, average_precision, intervals_of, means, scores_of, soft_entries, weighted_metrics
from hoicli.shoe.settings import AREAS, COMBINE, ShoeOptions
from hoicli.shoe.shoe_evaluation import filter_predictions
from hoicli.shoe.similarity_table import SimilarityTable
from hoicli.shoe.triplet_matching import UNIT
from tests.support import shoe_reference
from tests.support.kernel import lines as as_lines
from tests.support.llm_stub import rate, serving
from tests.support.project import SHOE, Data, Hoicli, Record, parsed, saved
from tests.support.shoe import AWAY, RANDOM_SIMILAR, candidates, curated, datasets, image, rows_of, scored, shoe_of


def test_one_soft_match() -> None:
    scores = scored([image(("pet", "giraffe"))], [image(("touch", "giraffe", 0.9))])
    assert scores.soft_map == pytest.approx(0.775 * 0.775)  # recall 0.775 at precision 0.775
    assert scores.mf1 == pytest.approx(2 * 0.775 * 1 / 1.775)  # precision 0.775, recall TP / (TP + FN) = 1
    assert (scores.gt_miss_rate, scores.prediction_miss_rate, scores.map) == (0.0, 0.0, 0.0)
    assert (scores.truths, scores.predictions) == (1, 1)


def test_a_perfect_set_is_1() -> None:
    truth = [image(("pet", "giraffe"), ("wash", "train", None, AWAY)), image(("pet", "giraffe"), image_id="b")]
    found = [image(("wash", "train", 0.2, AWAY), ("pet", "giraffe", 0.7)), image(("pet", "giraffe", 0.1), image_id="b")]
    for area in AREAS:
        scores = scored(truth, found, ap=area)
        assert (scores.soft_map, scores.mf1, scores.map) == (1.0, 1.0, 1.0)


def test_nothing_at_all() -> None:
    truth = [image(("pet", "giraffe"))]
    for found in ([], [image()], [{"image_id": "a", "boxes": [], "labels": [], "hois": []}]):
        scores = scored(truth, found)
        assert (scores.soft_map, scores.mf1, scores.map) == (0.0, 0.0, 0.0)
        assert (scores.gt_miss_rate, scores.prediction_miss_rate) == (1.0, None)
    scores = scored([image()], [image(("pet", "giraffe", 0.9))])
    assert (scores.soft_map, scores.mf1, scores.map, scores.gt_miss_rate) == (None, None, None, None)
    assert (scores.prediction_miss_rate, scores.classes) == (1.0, [])
    assert scored([image()], []).soft_map is None


def test_without_scores() -> None:
    truth = [image(("pet", "giraffe"))]
    scores = scored(truth, [image(("touch", "giraffe"))])
    assert (scores.soft_map, scores.map, scores.classes[0].soft_ap, scores.classes[0].ap) == (None,) * 4
    assert scores.mf1 == pytest.approx(2 * 0.775 / 1.775)
    mixed = scored(truth, [image(("touch", "giraffe", 0.9), ("feed", "giraffe"))])
    assert (mixed.soft_map, mixed.prediction_miss_rate) == (None, 0.5)


def test_scores_below_0_rank_before_missed_ground_truth() -> None:
    truth = [image(("pet", "giraffe")), image(("pet", "giraffe"), image_id="b")]
    found = [image(("pet", "giraffe", 0.9), ("pet", "giraffe", 0.8, AWAY))]
    logarithms = [image(("pet", "giraffe", -0.1), ("pet", "giraffe", -0.2, AWAY))]
    for area in AREAS:
        assert scored(truth, found, ap=area) == scored(truth, logarithms, ap=area)


def test_areas_by_hand() -> None:
    gain = np.array([0, UNIT, 0, UNIT // 2, UNIT], dtype=np.int64)  # precision 0, 1/2, 1/3, 3/8, 1/2
    assert average_precision(gain, 4, "envelope") == pytest.approx((1 * 1 / 2 + 0.5 * 1 / 2 + 1 * 1 / 2) / 4)
    # from (0, 1): each gain's step at the mean of the precisions before and after it
    steps = 1 * (0 + 1 / 2) / 2 + 0.5 * (1 / 3 + 3 / 8) / 2 + 1 * (3 / 8 + 1 / 2) / 2
    assert average_precision(gain, 4, "trapezoid") == pytest.approx(steps / 4)
    assert average_precision(gain[1:2], 4, "trapezoid") == pytest.approx(1 / 4)
    assert average_precision(gain, 4, "11-point") == pytest.approx(7 * 0.5 / 11)  # recall ends at 0.625
    for reached in range(1, 11):  # a recall of exactly 0.3 reaches the point 0.3
        assert average_precision(np.array([UNIT] * reached), 10, "11-point") == pytest.approx((reached + 1) / 11)
    for area in AREAS:
        assert average_precision(np.array([UNIT] * 3), 3, area) == 1.0
        assert average_precision(np.zeros(3, dtype=np.int64), 3, area) == 0.0
        assert average_precision(np.zeros(0, dtype=np.int64), 3, area) == 0.0


def slow_sigma(similar: dict[tuple[str, str], float], how: str, weight: float) -> Callable[..., float]:
    table = {frozenset(pair): value for pair, value in similar.items()}

    def sigma(truth: Record, item: Record, record: Record, hoi: Record) -> float:
        name, other = shoe_reference.label_of(truth, item), shoe_reference.label_of(record, hoi)
        verb_sense, object_sense = curated(normalise(item["verb"]), normalise(name or ""))
        verbs, things = ((lambda label, pos=pos: candidates(normalise(label), pos)) for pos in "vn")
        pair = item["verb"], verb_sense, hoi["verb"], hoi.get("verb_synset")
        verb = shoe_reference.similarity_of(*pair, verbs, table)
        thing = shoe_reference.similarity_of(name, object_sense, other, None, things, table)
        return shoe_reference.combined(verb, thing, name is None and other is None, how, weight)

    return sigma


def spelled_alike(data: list[Record]) -> list[Record]:
    """The reference goes by labels as they are."""
    return [
        {
            **record,
            "labels": [normalise(label) for label in record["labels"]],
            "hois": [{**hoi, "verb": normalise(hoi["verb"])} for hoi in record["hois"]],
        }
        for record in data
    ]


def in_tie_order(data: list[Record]) -> list[Record]:
    """The reference takes the first of equal scores, hoicli the first by object, verb and corners."""

    def names_and_corners(record: Record, hoi: Record) -> tuple[Any, ...]:
        ends = [record["boxes"][end] if end is not None else [math.inf] for end in (hoi["subject"], hoi["object"])]
        verb = hoi["verb"], hoi.get("verb_synset")
        return repr((shoe_reference.label_of(record, hoi), None)), repr(verb), *ends

    return [{**each, "hois": sorted(each["hois"], key=partial(names_and_corners, each))} for each in data]


@given(
    datasets(), RANDOM_SIMILAR, st.sampled_from([0.0, 0.3, 0.5, 0.85]), st.sampled_from(COMBINE[:2]),
    st.sampled_from(sorted(AREAS)), st.sampled_from([None, 0.3]), st.booleans(),
    st.sampled_from([0.0, 0.0, 0.35, 0.75]),
)  # fmt: skip
def test_the_slow_evaluator_agrees(
    data: Data, similar: dict[tuple[str, str], float], delta: float, combine: str, area: str, least: float | None,
    everywhere: bool, floor: float,
) -> None:  # fmt: skip
    truth, found = data
    shoe = shoe_of(truth, found, similar, delta=str(delta), combine=combine, ap=area, min_similarity=floor)
    strict = shoe.match(filter_predictions(ShoeOptions(min_score=least), shoe.predictions))
    ours = scores_of(shoe, strict, strict if everywhere else shoe.match())
    truth, found = spelled_alike(truth), spelled_alike(in_tie_order(found))
    theirs = shoe_reference.evaluate(
        truth, found, slow_sigma(similar, combine, 0.5), delta=delta, area=area,
        keep=lambda hoi: least is None or hoi["score"] >= least, everywhere=everywhere, floor=floor,
    )  # fmt: skip
    if everywhere and least is not None:
        found = [{**record, "hois": [hoi for hoi in record["hois"] if hoi["score"] >= least]} for record in found]
    theirs["map"] = shoe_reference.plain_map(truth, found, area)
    for metric, value in theirs.items():
        assert getattr(ours, metric) == (None if value is None else pytest.approx(value, abs=2e-7)), metric


RATES = ("mf1", "gt_miss_rate", "prediction_miss_rate")


def run_of(truth: list[Record], found: list[Record], **options: Any) -> Run:
    shoe = shoe_of(truth, found, **options)
    matching = shoe.match()
    return Run(shoe, matching, matching, "full", {})


@settings(max_examples=20)
@given(datasets(), st.sampled_from(sorted(AREAS)))
def test_each_image_once_is_the_number_itself(data: Data, area: str) -> None:
    run = run_of(*data, ap=area)
    ones = np.ones((len(data[0]), 1), dtype=np.int32)
    for name, metric in weighted_metrics(run).items():
        (value,) = means(name, Rounds(*metric.ap(ones)))
        assert value == pytest.approx(getattr(run.scores, name), abs=1e-12), name


@settings(max_examples=20)
@given(datasets(), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sampled_from(sorted(AREAS)))
def test_weights_are_copies(data: Data, weights: list[int], area: str) -> None:
    """F1 and rates: of a test set with each image so often. Soft AP: by a loop that takes an image's copies at once."""
    truth, found = data
    run = run_of(truth, found, ap=area)
    order = sorted(record["image_id"] for record in truth)
    weight = dict(zip(order, weights, strict=False))
    column = np.array([[weight[image_id]] for image_id in order], dtype=np.int32)
    drawn = [[(one, n) for one in records for n in range(weight[one["image_id"]])] for records in data]
    copies = [[{**one, "image_id": f"{one['image_id']}.{n}"} for one, n in of] for of in drawn]
    metrics = weighted_metrics(run)
    shoe = shoe_of(copies[0], copies[1])
    expected = scores_of(shoe, shoe.match())
    for name in RATES:
        if name in metrics:
            (value,) = means(name, Rounds(*metrics[name].ap(column)))
            wanted = getattr(expected, name)
            assert (None if np.isnan(value) else value) == (None if wanted is None else pytest.approx(wanted)), name
    if "soft_map" in metrics:
        ap, positives = metrics["soft_map"].ap(column)
        assert ap[:, 0].tolist() == pytest.approx(slow_areas(run, weight, area), abs=1e-9)
        assert positives[:, 0].sum() == sum(len(record["hois"]) for record in copies[0])


def slow_areas(run: Run, weight: dict[str, int], area: str) -> list[float]:
    """The soft AP of each class, entry by entry, each as often as its image."""
    entries, shoe = soft_entries(run.shoe, run.ranked), run.shoe
    found = []
    for number in range(len(shoe.classes.classes)):
        owners = zip(shoe.truth.image_of_hoi, shoe.classes.class_of, strict=True)
        asked = sum(weight[shoe.truth.image_ids[image]] for image, class_ in owners if class_ == number)
        total, gained, points = 0, 0.0, [(0.0, 1.0)]
        for at in range(entries.bounds[number], entries.bounds[number + 1]):
            image = shoe.predictions.image_of_hoi[entries.prediction[at]]
            times = weight[shoe.predictions.image_ids[image]]
            total, gained = total + times, gained + times * entries.gain[at] / UNIT
            if total and asked:
                points.append((gained / asked, gained / total))
        envelope = [max((p for _, p in points[at:]), default=0.0) for at in range(len(points))]
        if area == "11-point":
            steps = [max((p for r, p in points[1:] if r + 1e-9 >= n / 10), default=0.0) for n in range(11)]
            found.append(sum(steps) / 11)
            continue
        value = 0.0
        for at in range(1, len(points)):
            height = envelope[at] if area == "envelope" else (points[at][1] + points[at - 1][1]) / 2
            value += (points[at][0] - points[at - 1][0]) * height
        found.append(value)
    return found


def many(shift: float) -> Data:
    """Forty images, a triplet each, found in most of them, and what is there besides."""
    truth, found = [], []
    for number in range(40):
        truth.append(image(("pet", "giraffe") if number % 2 else ("wash", "train"), image_id=f"{number:02}"))
        said = ("touch", "giraffe") if number % 4 == 1 else ("pet", "giraffe") if number % 2 else ("clean", "train")
        hois: list[tuple[Any, ...]] = [(*said, (number * 7 % 40) / 40)] if number % 5 else []
        hois += [("pet", "giraffe", number / 40 - shift, AWAY)] if number % 3 == 0 else []
        found.append(image(*hois, image_id=f"{number:02}"))
    return truth, found


def test_intervals_hold_the_number_and_narrow_with_the_set() -> None:
    run = run_of(*many(0.0))
    intervals = intervals_of(run, Resampling(400, 0))
    widths = {}
    for name, found in intervals.items():
        assert found is not None
        assert found[0] < getattr(run.scores, name) < found[1], name
        widths[name] = found[1] - found[0]
    # a rate's interval is that of a proportion: 2 * 1.96 * sqrt(p (1 - p) / n)
    missed = run.scores.gt_miss_rate or 0.0
    assert widths["gt_miss_rate"] == pytest.approx(3.92 * (missed * (1 - missed) / 40) ** 0.5, rel=0.15)
    one = intervals_of(run_of(*(side[:1] for side in many(0.0))), Resampling(20, 0))
    assert set(one.values()) <= {None}
    assert intervals_of(run_of([image()], [image()]), Resampling(20, 0)) == {}


def test_swapping_two_models_is_symmetric() -> None:
    models = [weighted_metrics(run_of(*many(shift))) for shift in (0.0, 0.3)]
    for name in models[0]:
        first, second = (model[name] for model in models)
        asked = Resampling(64, 3)
        alone = resample([first, second], asked, "")
        forth = swap_outputs(first, second, asked, "")
        back = swap_outputs(second, first, asked, "")
        pair = PairedRounds((alone[0], alone[1]), (forth[0], forth[1]))
        swaps = pair.differences(partial(means, name))[1]
        assert swaps.tolist() == pytest.approx((means(name, back[0]) - means(name, back[1])).tolist(), abs=1e-12)
        same = swap_outputs(first, first, asked, "")
        assert means(name, same[0]).tolist() == pytest.approx(means(name, same[1]).tolist(), abs=1e-12)


def test_order_of_lines_changes_no_interval() -> None:
    truth, found = many(0.1)
    one = intervals_of(run_of(truth, found), Resampling(40, 1))
    assert intervals_of(run_of(truth[::-1], found[::-1]), Resampling(40, 1)) == one


PAIR = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01"}
TRUTH = ("--gt", SHOE / "gt.jsonl", SHOE / "predictions.jsonl")


def test_a_models_line_says_what_it_was_asked_and_when(hoicli: Hoicli, tmp_path: Path) -> None:
    """And a run that asks nothing anew writes the same bytes."""
    cache, table = tmp_path / "answers.jsonl", tmp_path / "sim.jsonl"
    with serving() as stub:
        given = ("shoe-sim", "--backend", "llm", "--base-url", stub.url, "--cache", cache)
        assert hoicli(*given, "--model", "m", *TRUTH, "-o", table).code == 0
        answers = parsed(cache.read_text())
        days = {answer["date"] for answer in answers}
        # a year ago, but for one
        aged = [{**answer, "date": "2025-11-22"} for answer in answers[1:]]
        cache.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in [answers[0], *aged]))
        again = parsed(hoicli(*given, "--model", "m", *TRUTH).out)
        both = parsed(hoicli(*given, "--model", "m", "--model", "n", *TRUTH).out)
        missing = saved(tmp_path / "missing.jsonl", orjson.dumps({"pos": "v", "a": "pet.v.01", "b": "touch.v.01"}))
        (named,) = parsed(hoicli(*given, "--model", "m", "--pairs", missing).out)
    assert len(days) == 1
    line = parsed(table.read_text())[0]
    assert (line["scores"], line["date"]) == ({"m": rate("m", line["a"], line["b"])}, min(days))
    assert line["prompt"] == answers[0]["setup"]
    assert {line["date"] for line in again} == {f"2025-11-22/{min(days)}"}
    assert {line["date"] for line in both} == {f"2025-11-22/{min(days)}"}
    assert list(both[0]["scores"]) == ["m", "n"]
    # of two senses, a line of --pairs is a line of a table
    assert (named["scores"], named["prompt"]) == ({"m": rate("m", "pet.v.01", "touch.v.01")}, line["prompt"])


def test_who_rated_a_table() -> None:
    lines = [
        {**PAIR, "scores": {"m": 4, "n": 1}, "similarity": 0.625, "prompt": "aa", "merge": "median"},
        {**PAIR, "b": "feed.v.01", "similarity": 0.5, "measure": "lexical+wordnet:wup", "prompt": "aa+bb"},
    ]
    table = SimilarityTable.read(as_lines(lines), ErrorPolicy())
    raters, merged = "lexical+m+n+wordnet:wup", "mean+median"
    assert table.signature() == {"sim": table.digest(), "raters": raters, "prompt": "aa+bb", "merge": merged}
    bare = SimilarityTable.read(as_lines([{**PAIR, "similarity": 0.625}, {**lines[1]}]), ErrorPolicy())
    assert bare.digest() == table.digest()  # it is of the content


def test_what_a_table_lacks_is_written_to_be_rated(hoicli: Hoicli, tmp_path: Path) -> None:
    table, part, rest = (tmp_path / f"{name}.jsonl" for name in ("table", "part", "rest"))
    assert hoicli("shoe-sim", "--backend", "wordnet:path", *TRUTH, "-o", table).code == 0
    complete = hoicli("shoe-sim", "--check", table, *TRUTH)
    assert (complete.code, complete.out) == (0, "")
    assert complete.err.startswith(f"hoicli: {table}: ")
    assert "raters wordnet:path" in complete.err
    lines = table.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[::3]))
    lacking = hoicli("shoe-sim", "--check", part, *TRUTH, "-o", rest)
    lost = [{key: line[key] for key in PAIR} for at, line in enumerate(parsed("".join(lines))) if at % 3]
    assert parsed(rest.read_text()) == lost
    assert lacking.code == 1
    assert f"{part}: lacks {len(lost):,} pairs; rate them with hoicli shoe-sim --pairs, and add" in lacking.err
    rated = hoicli("shoe-sim", "--backend", "wordnet:path", "--pairs", rest)
    part.write_text(part.read_text() + rated.out)
    assert hoicli("shoe-sim", "--check", part, *TRUTH).code == 0
    evaluated = [hoicli("shoe-eval", "--sim", path, *TRUTH).out for path in (table, part)]
    assert evaluated[0] == evaluated[1]  # the same digest
    assert hoicli("shoe-sim", "--check", part, "--dataset", "vcoco").code == 1


@pytest.mark.parametrize("backend", ["lexical", "wordnet:lin"])
def test_models_of_one_backend_are_ranked_together(hoicli: Hoicli, tmp_path: Path, backend: str) -> None:
    """Whatever pairs each needs, in one command or by a table of its own; a table that was changed is another one."""
    first, second, both, rows = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "both", "rows"))
    words = (SHOE / "predictions.jsonl").read_text()
    first.write_text(words)
    second.write_text(words.replace("touching", "stroking").replace('"clean"', '"scrub"'))
    truth = ("--gt", SHOE / "gt.jsonl")
    lines: list[str] = []
    tables: dict[Path, Path] = {}
    for model in (first, second):
        tables[model] = tmp_path / f"sim-{model.name}"
        assert hoicli("shoe-sim", "--backend", backend, *truth, model, "-o", tables[model]).code == 0
        given = ("--per-class", "--format", "jsonl", "--tag", f"model={model.stem}", *truth, model)
        direct, by_table = (hoicli("shoe-eval", "--sim", sim, *given) for sim in (backend, tables[model]))
        assert direct == by_table
        assert "not in the similarity table" not in direct.err
        lines.append(direct.out)
    signatures = {row["signature"] for text in lines for row in rows_of(text).values()}
    assert len(signatures) == 1
    assert re.search(rf"\|sim:{backend}@wordnet3\.0\.[0-9a-f]{{8}}\|raters:{backend}\|", signatures.pop())
    rows.write_text("".join(lines))
    assert "not ranked" not in hoicli("table", rows).err
    # one table for both models has what both need
    assert hoicli("shoe-sim", "--backend", backend, *truth, first, second, "-o", both).code == 0
    parts = {line for table in tables.values() for line in table.read_text().splitlines()}
    assert sorted(parts) == sorted(both.read_text().splitlines())
    assert hoicli("shoe-eval", "--sim", both, *given).out == lines[1]
    changed = [{**line, "similarity": 0.5} for line in parsed(both.read_text())]
    both.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in changed))
    (signature,) = {row["signature"] for row in rows_of(hoicli("shoe-eval", "--sim", both, *given).out).values()}
    assert f"|raters:{backend}|" in signature
    assert "@wordnet" not in signature
