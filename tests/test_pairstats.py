"""Pair statistics: the released code's golden numbers, cases worked by hand, and a slow evaluator on random pairs."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.cli import run
from hoicli.diagnosis.pairs.reading import _extras, read_pair_batches
from hoicli.diagnosis.pairs.settings import Sweep, surviving_pairs, sweeps
from hoicli.diagnosis.pairs.statistics import RELEASED_STEPS, PairResults, PairStatistics
from hoicli.errors import DataError, UsageError
from hoicli.matching import GroundTruth
from hoicli.records import problems
from hoicli.results import parse_tags
from hoicli.scenes import ErrorPolicy, concatenate, read_scenes
from hoicli.streams import Line
from hoicli.vocabulary import load
from tests.conftest import Hoicli
from tests.reference import overlap
from tests.strategies import datasets, scores

HICO = load("hico")
RARE = {HICO.interactions[number] for number in HICO.groups["rare"]}
Record = dict[str, Any]


def lines(records: list[Record]) -> list[Line]:
    return [Line("p.jsonl", number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]


def truth_of(records: list[Record]) -> GroundTruth:
    scenes = read_scenes(lines(records), HICO, scored=False, policy=ErrorPolicy())
    return GroundTruth(concatenate(scenes, HICO), HICO)


def statistics(
    truth: list[Record], predictions: list[Record], sweep: Sweep = Sweep(), *, batch: int = 256, **options: bool
) -> dict[str, PairResults]:
    gathered = PairStatistics(truth_of(truth), [sweep], **options)
    with_scores = sweep.det_threshold is not None
    for part in read_pair_batches(lines(predictions), HICO, policy=ErrorPolicy(), box_scores=with_scores, batch=batch):
        gathered.add(part)
    ((_, results),) = gathered.results()
    return {result.subset: result for result in results}


# --- the released code's numbers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((shared / "golden/hico-500/expected.json").read_text())
    return content


@pytest.fixture(scope="module")
def golden_files(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    raw = json.loads((shared / "data/hico-det/instances_test2015.json").read_text())
    for key in ("annotation", "filenames", "size"):
        raw[key] = raw[key][:500]
    folder = tmp_path_factory.mktemp("golden")
    (folder / "instances.json").write_text(json.dumps(raw))
    sources = {
        "gt": folder / "instances.json",
        "pairs": shared / "golden/hico-500/pairs.json.gz",
        "triplets": shared / "golden/hico-500/predictions_cdn.json.gz",
    }
    files = {name: folder / f"{name}.jsonl" for name in sources}
    for name, source in sources.items():
        options = ["--from", "diag-pairs"] if name == "pairs" else []
        assert run(["convert", *options, str(source), "-o", str(files[name])]) == 0
    return files


def full_of(hoicli: Hoicli, *arguments: object) -> dict[str, float]:
    result = hoicli("pairstats", "--format", "jsonl", *arguments)
    assert result.code == 0, result.err
    rows = map(json.loads, result.out.splitlines())
    return {row["metric"]: row["value"] for row in rows if row["subset"] == "full"}


@pytest.mark.parametrize("options", [[], ["--as-released"]])
def test_pairs_are_those_of_the_released_code(
    options: list[str], golden_files: dict[str, Path], expected: dict[str, Any], hoicli: Hoicli
) -> None:
    golden = expected["diag-hoi/pairs"]
    ours = full_of(hoicli, *options, "--gt", golden_files["gt"], golden_files["pairs"])
    # The released recall is a float32: 1306 / 1494 rounded to its 24 bits.
    assert ours["pair_recall"] / 100 == pytest.approx(golden["pair_recall"], abs=1e-7)
    assert ours["pair_recall"] / 100 == pytest.approx(1306 / 1494, abs=1e-12)
    assert ours["pair_precision"] / 100 == pytest.approx(golden["pair_precision"], abs=1e-9)
    assert ours["pairs_per_image"] == pytest.approx(golden["pairs_per_image"], abs=1e-9)
    assert ours["inter_map"] is None


def test_negative_ap_is_that_of_the_released_code(
    golden_files: dict[str, Path], expected: dict[str, Any], hoicli: Hoicli
) -> None:
    files = ("--gt", golden_files["gt"], golden_files["pairs"])
    released = full_of(hoicli, "--as-released", *files)["neg_ap"]
    assert released / 100 == pytest.approx(expected["diag-hoi/pairs"]["neg_ap_110_points"], abs=1e-9)
    assert full_of(hoicli, *files)["neg_ap"] == pytest.approx(released * 110 / 101, abs=1e-9)


def test_interaction_map_is_that_of_the_released_code(
    golden_files: dict[str, Path], expected: dict[str, Any], hoicli: Hoicli
) -> None:
    golden = expected["diag-hoi"]["action"]
    ours = full_of(hoicli, "--as-released", "--gt", golden_files["gt"], golden_files["triplets"])
    assert ours["inter_map"] / 100 == pytest.approx(golden["mAP"], abs=1e-9)
    gathered = PairStatistics(
        truth_of([json.loads(line) for line in golden_files["gt"].read_text().splitlines()]),
        [Sweep()],
        as_released=True,
    )
    records = [json.loads(line) for line in golden_files["triplets"].read_text().splitlines()]
    for part in read_pair_batches(lines(records), HICO, policy=ErrorPolicy()):
        gathered.add(part)
    ((_, (full, *_)),) = gathered.results()
    assert full.inter_recall == pytest.approx(golden["mean max recall"], abs=1e-9)


# --- cases worked by hand ------------------------------------------------------------------------------------------

PERSON, OTHER, KITE, AWAY = [0, 0, 99, 99], [200, 0, 299, 99], [100, 200, 199, 299], [400, 400, 450, 450]


def truth_record(*hois: tuple[int, int, str], **changes: Any) -> Record:
    return {
        "image_id": "a",
        "boxes": [PERSON, OTHER, KITE],
        "labels": ["person", "person", "kite"],
        "hois": [{"subject": subject, "object": object_, "verb": verb} for subject, object_, verb in hois],
        **changes,
    }


def prediction(pairs: list[tuple[int, int, float]] | None = None, **changes: Any) -> Record:
    """Boxes as the truth's (moved by one, as the protocol compares), and a box of each label elsewhere."""
    moved = [[x + 1 for x in box] for box in (PERSON, OTHER, KITE)]
    record: Record = {
        "image_id": "a",
        "boxes": [*moved, AWAY, AWAY],
        "labels": ["person", "person", "kite", "person", "kite"],
        "hois": [],
        **changes,
    }
    if pairs is not None:
        record["pairs"] = [{"subject": s, "object": o, "interactiveness": score} for s, o, score in pairs]
    return record


def triplet(subject: int, object_: int, verb: str, score: float, **more: float) -> Record:
    return {"subject": subject, "object": object_, "verb": verb, "score": score, **more}


def test_a_perfect_detector() -> None:
    hois = [triplet(0, 2, "fly", 0.9), triplet(1, 2, "fly", 0.8)]
    full = statistics([truth_record((0, 2, "fly"), (1, 2, "fly"))], [prediction(hois=hois)])["full"]
    assert (full.images, full.pairs, full.truth_pairs) == (1, 2, 2)
    assert (full.recall, full.precision, full.pairs_per_image) == (1.0, 1.0, 2.0)
    assert (full.neg_ap, full.negatives) == (None, 0)
    assert (full.inter_map, full.inter_recall, full.verbs) == (1.0, 1.0, 1)


def test_several_verbs_of_a_pair_are_one_pair() -> None:
    full = statistics([truth_record((0, 2, "fly"), (0, 2, "carry"))], [prediction([(0, 2, 0.9), (0, 4, 0.1)])])["full"]
    assert (full.truth_pairs, full.recall, full.precision) == (1, 1.0, 0.5)


def test_one_detected_pair_on_two_true_ones() -> None:
    record = truth_record((0, 1, "fly"), (0, 2, "fly"))
    record["boxes"] = [PERSON, [100, 200, 199, 290], KITE]
    record["labels"] = ["person", "kite", "kite"]
    pairs = [(0, 2, 0.9), (0, 4, 0.8)]
    both = statistics([record], [prediction(pairs)])["full"]
    assert (both.recall, both.precision) == (1.0, 0.5)
    single = statistics([record], [prediction(pairs)], one_to_one=True)["full"]
    assert (single.recall, single.precision) == (0.5, 0.5)
    # A repeated pair finds the second of them when each finds one only, and nothing otherwise.
    repeated = [(0, 2, 0.9), (0, 2, 0.7)]
    assert statistics([record], [prediction(repeated)])["full"].precision == 0.5
    single = statistics([record], [prediction(repeated)], one_to_one=True)["full"]
    assert (single.recall, single.precision) == (1.0, 1.0)


def test_negative_ap_by_hand() -> None:
    # Ranked by not interacting: negative (0.1), interacting (0.2), negative (0.3): precision 1, then 2 / 3.
    pairs = [(0, 2, 0.2), (0, 4, 0.1), (3, 4, 0.3)]
    truth = [truth_record((0, 2, "fly"))]
    full = statistics(truth, [prediction(pairs)])["full"]
    assert full.negatives == 2
    assert full.neg_ap == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)
    released = statistics(truth, [prediction(pairs)], as_released=True)["full"]
    assert released.neg_ap == pytest.approx((51 * 1 + 50 * 2 / 3) / RELEASED_STEPS)


def test_interaction_map_by_hand() -> None:
    truth = [truth_record((0, 2, "fly"), (1, 2, "carry"))]
    hois = [
        triplet(0, 2, "fly", 0.3, verb_score=0.5),
        triplet(0, 2, "carry", 0.9),  # wrong verb on the right pair
        triplet(1, 2, "carry", 0.1, verb_score=0.7),
        triplet(3, 4, "carry", 1.0),  # pairs that are not localised do not count
        triplet(3, 2, "fly", 1.0),
    ]
    full = statistics(truth, [prediction(hois=hois)])["full"]
    assert full.inter_map == pytest.approx((1.0 + 0.5) / 2)
    assert (full.inter_recall, full.verbs) == (1.0, 2)
    # carry's pair is not localised any more, so only its false positive is left and it leaves the mean
    full = statistics(truth, [prediction(hois=[hois[0], hois[1], hois[3]])])["full"]
    assert (full.inter_map, full.verbs) == (1.0, 1)
    # a verb with ground truth and only wrong predictions counts 0, and not at all in the released code
    hois = [triplet(0, 2, "fly", 0.3), triplet(1, 2, "fly", 0.2), triplet(0, 2, "carry", 0.9)]
    assert statistics(truth, [prediction(hois=hois)])["full"].inter_map == 0.5
    assert statistics(truth, [prediction(hois=hois)], as_released=True)["full"].inter_map == 1.0


def test_a_pair_takes_its_score_from_its_triplets() -> None:
    hois = [
        triplet(0, 2, "fly", 0.1, verb_score=0.6),
        triplet(0, 2, "carry", 0.8),
        triplet(0, 2, "no_interaction", 0.99),
        triplet(0, 4, "no_interaction", 0.9),  # no pair of its own: protocol diag drops the verb
        triplet(2, 4, "fly", 0.9),  # nor is this a human-object pair
        triplet(3, 4, "ride", 0.9),  # nor this an interaction
    ]
    (batch,) = read_pair_batches(lines([prediction(hois=hois)]), HICO, policy=ErrorPolicy())
    assert batch.pairs.score.tolist() == [0.8]
    record = prediction([(0, 2, 0.0), (3, 4, 0.3)], hois=hois)
    del record["pairs"][0]["interactiveness"]
    record["pairs"].append({"subject": 0, "object": 4})
    (batch,) = read_pair_batches(lines([record]), HICO, policy=ErrorPolicy())
    assert batch.pairs.score.tolist() == [0.8, 0.3, 0.0]
    assert batch.scored == 2


def test_images_without_interactions_do_not_count() -> None:
    truth = [truth_record((0, 2, "fly")), truth_record((0, 2, "no_interaction"), image_id="b")]
    found = [prediction([(0, 2, 0.9)]), prediction([(0, 2, 0.9), (0, 4, 0.3)], image_id="b")]
    full = statistics(truth, found)["full"]
    assert (full.images, full.pairs, full.truth_pairs, full.negatives) == (1, 1, 1, 0)


def test_images_without_predictions() -> None:
    truth = [truth_record((0, 2, "fly")), truth_record((0, 2, "fly"), image_id="b")]
    found = [prediction([(0, 2, 0.9)], hois=[triplet(0, 2, "fly", 0.9)])]
    full = statistics(truth, found)["full"]
    assert (full.recall, full.pairs_per_image, full.inter_recall) == (0.5, 0.5, 1.0)
    released = statistics(truth, found, as_released=True)["full"]
    assert (released.recall, released.pairs_per_image, released.inter_recall) == (1.0, 1.0, 0.5)


def test_nothing_at_all() -> None:
    for found in ([], [prediction([])], [prediction(hois=[])]):
        full = statistics([truth_record((0, 2, "fly"))], found)["full"]
        assert (full.pairs, full.recall, full.pairs_per_image) == (0, 0.0, 0.0)
        assert (full.precision, full.neg_ap, full.inter_map) == (None, None, None)
    full = statistics([truth_record()], [prediction([(0, 2, 0.9)])])["full"]
    assert (full.images, full.recall, full.pairs_per_image, full.precision) == (0, None, None, None)


def test_rare_and_non_rare() -> None:
    rare_verb = next(verb for verb, name in sorted(RARE) if name == "bicycle" and verb != "no_interaction")
    common_verb = next(verb for verb, name in HICO.interactions if name == "bicycle" and (verb, name) not in RARE)
    record = truth_record((0, 2, rare_verb), (1, 2, common_verb), labels=["person", "person", "bicycle"])
    found = prediction([(0, 2, 0.9), (0, 4, 0.2)], labels=["person", "person", "bicycle", "person", "bicycle"])
    results = statistics([record], [found])
    assert [results[name].truth_pairs for name in ("full", "rare", "non_rare")] == [2, 1, 1]
    assert [results[name].recall for name in ("full", "rare", "non_rare")] == [0.5, 1.0, 0.0]
    assert [results[name].precision for name in ("full", "rare", "non_rare")] == [0.5, 0.5, 0.0]
    assert results["rare"].neg_ap is None


def test_sweeps() -> None:
    assert sweeps([0.5], [0.1, 0.2], alpha=1, beta=1) == [
        Sweep(),
        Sweep(nms=0.5, alpha=1, beta=1),
        Sweep(det_threshold=0.1),
        Sweep(det_threshold=0.2),
    ]
    assert Sweep(nms=0.5).signature() == {"nms": "0.5/1/0.5"}
    assert Sweep(det_threshold=0.1).signature() == {"det": "0.1"}
    with pytest.raises(UsageError, match=r"--nms 1\.5"):
        sweeps([1.5], [])
    with pytest.raises(UsageError, match="--nms-alpha"):
        sweeps([], [], alpha=-1)


def test_nms_and_thresholds() -> None:
    near = [1, 1, 100, 95]
    record = prediction([(0, 2, 0.5), (3, 2, 0.9), (1, 2, 0.4), (3, 1, 0.3)], scores=[0.9, 0.5, 0.2, 0.8, 0.1])
    record["boxes"][3] = near  # a second, better box of the first person
    record["hois"] = [triplet(0, 2, "fly", 0.9), triplet(3, 2, "fly", 0.8), triplet(1, 4, "fly", 0.7)]
    (batch,) = read_pair_batches(lines([record]), HICO, policy=ErrorPolicy())
    assert surviving_pairs(batch, Sweep(nms=0.7)).tolist() == [False, True, True, True]
    assert surviving_pairs(batch, Sweep(nms=1.0)).all()
    assert surviving_pairs(batch, Sweep(det_threshold=0.2)).all()
    assert surviving_pairs(batch, Sweep(det_threshold=0.3)).tolist() == [False, False, False, True]
    truth = [truth_record((0, 2, "fly"))]
    assert statistics(truth, [record], Sweep(nms=0.7))["full"].pairs == 3
    assert statistics(truth, [record], Sweep(nms=0.7))["full"].inter_map == 1.0  # its triplet went with the pair
    assert statistics(truth, [record], Sweep(det_threshold=0.3))["full"].inter_map is None
    (bare,) = read_pair_batches(lines([prediction([(0, 2, 0.5)])]), HICO, policy=ErrorPolicy())
    with pytest.raises(UsageError, match="needs `scores`"):
        surviving_pairs(bare, Sweep(det_threshold=0.3))


# --- a slow evaluator on random data -------------------------------------------------------------------------------


def counted(record: Record, hoi: Record) -> bool:
    pair = (hoi["verb"], record["labels"][hoi["object"]])
    person = record["labels"][hoi["subject"]] == "person"
    return person and pair in HICO.interaction_ids and pair[0] != "no_interaction"


def slow_pairs(record: Record) -> list[tuple[int, int, float]]:
    """(subject, object, interactiveness) of a prediction record."""
    best: dict[tuple[int, int], float] = {}
    for hoi in record["hois"]:
        if counted(record, hoi):
            key = (hoi["subject"], hoi["object"])
            best[key] = max(best.get(key, -9e9), hoi.get("verb_score", hoi["score"]))
    if "pairs" not in record:
        return [(*key, score) for key, score in best.items()]
    return [
        (pair["subject"], pair["object"], pair.get("interactiveness", best.get((pair["subject"], pair["object"]), 0)))
        for pair in record["pairs"]
        if record["labels"][pair["subject"]] == "person"
    ]


def same(found: Record, box: int, true: Record, true_box: int) -> float:
    """IoU where labels agree, else 0."""
    if found["labels"][box] != true["labels"][true_box]:
        return 0.0
    return overlap("diag", tuple(found["boxes"][box]), tuple(x + 1 for x in true["boxes"][true_box]))


def slow_ap(hits: list[bool], positives: int, points: list[float], divisor: int) -> float:
    curve, true = [], 0
    for rank, hit in enumerate(hits, start=1):
        true += hit
        curve.append((true / positives, true / rank))
    return sum(max([p for r, p in curve if r >= point], default=0.0) for point in points) / divisor


def slow(truth: list[Record], predictions: list[Record], subset: str, *, one_to_one: bool, released: bool) -> Any:
    """(images, pairs, true pairs, recall, precision, neg_ap, inter_map, verbs) by loops."""

    def wanted(label: str, verb: str) -> bool:
        return subset == "full" or ((verb, label) in RARE) == (subset == "rare")

    by_image = {record["image_id"]: record for record in predictions}
    some = False
    images = pairs_seen = true_pairs = found_true = finders = 0
    negatives: list[tuple[float, str, int, bool]] = []
    answers: dict[str, list[tuple[float, str, int, bool]]] = {}
    positives: dict[str, int] = {}
    for record in truth:
        name = record["image_id"]
        found = by_image.get(name)
        actual = [hoi for hoi in record["hois"] if counted(record, hoi)]
        chosen = [hoi for hoi in actual if wanted(record["labels"][hoi["object"]], hoi["verb"])]
        all_keys = {(hoi["subject"], hoi["object"]) for hoi in actual}
        keys = sorted({(hoi["subject"], hoi["object"]) for hoi in chosen})
        usable = [(at, hoi) for at, hoi in enumerate(found["hois"]) if counted(found, hoi)] if found else []
        localised = {
            key
            for key in all_keys
            for _, hoi in usable
            if found and same(found, hoi["subject"], record, key[0]) >= 0.5
            if same(found, hoi["object"], record, key[1]) >= 0.5
        }
        for hoi in chosen:
            if (hoi["subject"], hoi["object"]) in localised or (released and not usable):
                positives[hoi["verb"]] = positives.get(hoi["verb"], 0) + 1
        if found is None:
            if keys and not released:
                images += 1
                true_pairs += len(keys)
            continue

        some = some or bool(usable and actual)
        detected = slow_pairs(found)

        def matches(
            pair: tuple[int, int, float], key: tuple[int, int], true: Record = record, at: Any = found
        ) -> float:
            sides = same(at, pair[0], true, key[0]), same(at, pair[1], true, key[1])
            return min(sides) if min(sides) >= 0.5 else 0.0

        if all_keys:
            for at, pair in enumerate(detected):
                negatives.append((pair[2], name, at, not any(matches(pair, key) for key in all_keys)))
        if keys:
            images += 1
            pairs_seen += len(detected)
            true_pairs += len(keys)
            if one_to_one:
                free = list(keys)
                for pair in sorted(detected, key=lambda pair: -pair[2]):
                    fitting = [key for key in free if matches(pair, key)]
                    if fitting:
                        free.remove(max(fitting, key=lambda key, pair=pair: matches(pair, key)))  # type: ignore[misc]
                        finders += 1
                        found_true += 1
            else:
                first = [next((n for n, pair in enumerate(detected) if matches(pair, key)), None) for key in keys]
                found_true += sum(at is not None for at in first)
                finders += len({at for at in first if at is not None})

        taken: set[int] = set()
        for at, hoi in sorted(usable, key=lambda item: -item[1]["score"]):
            if not actual:
                continue
            options = [
                (matches((hoi["subject"], hoi["object"], 0.0), (other["subject"], other["object"])), -row)
                for row, other in enumerate(actual)
                if other["verb"] == hoi["verb"] and record["labels"][other["object"]] == found["labels"][hoi["object"]]
            ]
            overlap_, row = max(options, default=(0.0, 0))
            hit = overlap_ > 0 and -row not in taken
            if hit:
                taken.add(-row)
            correct = any(matches((hoi["subject"], hoi["object"], 0.0), key) for key in all_keys)
            if correct and wanted(found["labels"][hoi["object"]], hoi["verb"]):
                answers.setdefault(hoi["verb"], []).append((hoi.get("verb_score", hoi["score"]), name, at, hit))

    neg_ap = None
    ranked = [negative for *_, negative in sorted(negatives)]
    if subset == "full" and sum(ranked):
        count = 110 if released else 101
        neg_ap = slow_ap(ranked, sum(ranked), [step * 0.01 for step in range(count)], count)
    aps = []
    tenths = [0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 6 * 0.1, 7 * 0.1, 0.8, 0.9, 1.0]
    for verb, count in positives.items():
        hits = [hit for *_, hit in sorted(answers.get(verb, []), key=lambda item: (-item[0], item[1], item[2]))]
        if not (released and hits and not any(hits)):
            aps.append(slow_ap(hits, count, tenths, 11))
    return (
        images,
        pairs_seen,
        true_pairs,
        found_true / true_pairs if true_pairs else None,
        finders / pairs_seen if pairs_seen else None,
        neg_ap,
        sum(aps) / len(aps) if aps and some else None,
        len(aps) if some else 0,
    )


@st.composite
def with_pairs(draw: st.DrawFn) -> tuple[list[Record], list[Record]]:
    """Random scenes; some predictions list their pairs, some triplets have a verb score."""
    truth, predictions = draw(datasets())
    for record in predictions:
        for hoi in record["hois"]:
            if draw(st.booleans()):
                hoi["verb_score"] = draw(scores)
        count = len(record["boxes"])
        if count and draw(st.booleans()):
            box = st.integers(0, count - 1)
            record["pairs"] = [
                {"subject": draw(box), "object": draw(box)}
                | ({"interactiveness": draw(scores)} if draw(st.booleans()) else {})
                for _ in range(draw(st.integers(0, 5)))
            ]
    return truth, predictions


@given(with_pairs(), st.booleans(), st.booleans(), st.integers(1, 3))
def test_a_slow_evaluator_agrees(
    data: tuple[list[Record], list[Record]], one_to_one: bool, released: bool, batch: int
) -> None:
    truth, predictions = data
    ours = statistics(truth, predictions, batch=batch, one_to_one=one_to_one, as_released=released)
    scored = sum(part.scored for part in read_pair_batches(lines(predictions), HICO, policy=ErrorPolicy()))
    for subset, result in ours.items():
        theirs = slow(truth, predictions, subset, one_to_one=one_to_one, released=released)
        assert theirs[:3] == (result.images, result.pairs, result.truth_pairs)
        assert theirs[3:5] == (result.recall, result.precision)
        if result.neg_ap is not None or scored:  # without any score there is no ranking, only ties
            assert theirs[5] == (None if result.neg_ap is None else pytest.approx(result.neg_ap))
        assert theirs[6] == (None if result.inter_map is None else pytest.approx(result.inter_map))
        assert theirs[7] == result.verbs


@given(with_pairs(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_lines_changes_nothing(
    data: tuple[list[Record], list[Record]], one_to_one: bool, shuffler: random.Random
) -> None:
    truth, predictions = data
    for sweep in (Sweep(), Sweep(nms=0.3)):
        before = statistics(truth, predictions, sweep, one_to_one=one_to_one)
        other_truth, other_predictions = list(truth), list(predictions)
        shuffler.shuffle(other_truth)
        shuffler.shuffle(other_predictions)
        assert statistics(other_truth, other_predictions, sweep, batch=2, one_to_one=one_to_one) == before


# --- bad records, and the command ------------------------------------------------------------------------------


GOOD = prediction([(0, 2, 0.5)], hois=[triplet(0, 2, "fly", 0.5, verb_score=0.5)], scores=[0.5, 0.5, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({}, "pairs: an object; it must be an array"),
        ([[0, 1]], "pairs[0]: an array; it must be an object with subject and object"),
        ([{"object": 1}], "pairs[0].subject: missing; it is the index of a box"),
        ([{"subject": 0, "object": 1.0}], "pairs[0].object: 1.0 is no index; it must be the integer index of a box"),
        (
            [{"subject": 0, "object": 5}],
            "pairs[0].object: index 5, but the line has 5 boxes; indices are 0-based",
        ),
        (
            [{"subject": 0, "object": 1, "interactiveness": "1"}],
            'pairs[0].interactiveness: "1" is no score; give a finite number, or leave it out',
        ),
    ],
)
def test_a_bad_pair_is_named(pairs: Any, message: str) -> None:
    bad = {**GOOD, "image_id": "b", "pairs": pairs}
    with pytest.raises(DataError) as raised:
        list(read_pair_batches(lines([GOOD, bad]), HICO, policy=ErrorPolicy()))
    assert str(raised.value) == f"p.jsonl:2: {message}"
    policy = ErrorPolicy(skip=True)
    (batch,) = read_pair_batches(lines([GOOD, bad]), HICO, policy=policy)
    assert (batch.scenes.image_ids, policy.skipped) == (["a"], 1)


def test_scores_are_asked_for() -> None:
    bare = {key: value for key, value in GOOD.items() if key != "scores"} | {"image_id": "b"}
    with pytest.raises(DataError, match=r"p\.jsonl:2: scores: missing; --det-threshold needs"):
        list(read_pair_batches(lines([GOOD, bare]), HICO, policy=ErrorPolicy(), box_scores=True))
    policy = ErrorPolicy(skip=True)
    (batch,) = read_pair_batches(lines([GOOD, bare]), HICO, policy=policy, box_scores=True)
    assert (batch.scenes.image_ids, policy.skipped) == (["a"], 1)


junk = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 6), st.just(1 << 63), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=2), st.lists(st.integers(0, 2), max_size=5), st.builds(dict),
)  # fmt: skip


@given(
    st.sampled_from(
        [
            ("pairs",), ("pairs", 0), ("pairs", 0, "subject"), ("pairs", 0, "object"), ("pairs", 0, "interactiveness"),
            ("scores",), ("scores", 1), ("hois", 0, "verb_score"),
        ]
    ),
    junk,
)  # fmt: skip
def test_the_fast_and_the_careful_check_agree(path: tuple[Any, ...], value: Any) -> None:
    record = copy.deepcopy(GOOD)
    node: Any = record
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    found = list(problems(record, HICO, scored=True))
    assert (_extras(lines([record]), need_scores=False) is None) == bool(found), found


def write(path: Path, records: list[Record]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    truth = write(tmp_path / "gt.jsonl", [truth_record((0, 2, "fly"))])
    return truth, write(tmp_path / "preds.jsonl", [GOOD])


def test_the_rows(files: tuple[Path, Path], hoicli: Hoicli) -> None:
    options = ("--nms", "0.5,0.7", "--det-threshold", "0.6", "--tag", "model=x", "--one-to-one", "--as-released")
    result = hoicli("pairstats", "--gt", files[0], *options, "--format", "jsonl", files[1])
    assert (result.code, result.err) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert len(rows) == 4 * 13  # five metrics of three subsets, but negative AP of one
    recall = [row for row in rows if row["metric"] == "pair_recall" and row["subset"] == "full"]
    assert [(row["nms"], row["det_threshold"], row["value"]) for row in recall] == [
        (None, None, 100.0),
        (0.5, None, 100.0),
        (0.7, None, 100.0),
        (None, 0.6, 0.0),
    ]
    assert recall[1]["signature"].startswith("protocol:diag|data:hico|pairs:one-to-one|released:yes|nms:0.5/1/0.5|")
    assert "|det:0.6|" in recall[3]["signature"]
    assert all(row["tags"] == parse_tags(["model=x"]) and row["protocol"] == "diag" for row in rows)
    assert {row["metric"]: row["unit"] for row in rows} == {
        "pairs_per_image": "pairs",
        "pair_recall": "%",
        "pair_precision": "%",
        "neg_ap": "%",
        "inter_map": "%",
    }


def test_a_sweep_is_a_table_with_a_line_a_setting(files: tuple[Path, Path], hoicli: Hoicli) -> None:
    result = hoicli("pairstats", "--gt", files[0], "--nms", "0.5,0.7", "--format", "md", files[1])
    assert result.code == 0
    assert len(result.out.splitlines()) == 2 + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nms", "0.5,x"], "hoicli: --nms 0.5,x: 'x' is no number; give numbers with commas between\n"),
        (["--det-threshold", "nan"], "--det-threshold nan: 'nan' is no number"),
        (["--nms", "2"], "--nms 2: the threshold is an overlap, between 0 and 1"),
        (["--format", "xml"], "--format xml: choose from"),
        (["--on-error", "never"], "--on-error never: choose stop or skip"),
    ],
)
def test_wrong_options(options: list[str], message: str, files: tuple[Path, Path], hoicli: Hoicli) -> None:
    result = hoicli("pairstats", "--gt", files[0], *options, files[1])
    assert result.code == 2
    assert message in result.err


def test_ground_truth_is_asked_for(files: tuple[Path, Path], hoicli: Hoicli) -> None:
    result = hoicli("pairstats", files[1])
    assert (result.code, result.err) == (2, "hoicli: pairstats: give the ground truth with --gt FILE\n")


def test_an_image_that_is_not_in_the_ground_truth(files: tuple[Path, Path], tmp_path: Path, hoicli: Hoicli) -> None:
    strange = write(tmp_path / "strange.jsonl", [{**GOOD, "image_id": "z"}])
    result = hoicli("pairstats", "--gt", files[0], strange)
    assert result.code == 1
    assert "strange.jsonl:1: image_id: 'z' is not in the ground truth" in result.err
    with pytest.raises(DataError, match="'z' is not in the ground truth"):
        statistics([truth_record((0, 2, "fly"))], [{**GOOD, "image_id": "z"}])


def test_notes(tmp_path: Path, hoicli: Hoicli) -> None:
    truth = write(tmp_path / "gt.jsonl", [truth_record((0, 2, "fly")), truth_record((0, 2, "fly"), image_id="b")])
    silent = prediction()
    silent["pairs"] = [{"subject": 0, "object": 2}, {"subject": 0, "object": 4}]
    found = write(tmp_path / "preds.jsonl", [silent])
    result = hoicli("pairstats", "--gt", truth, "--format", "jsonl", found)
    assert result.code == 0
    assert "1 of 2 ground-truth images have no predictions: their pairs are missed" in result.err
    assert "no pair has an interactiveness, and no triplet gives one: negative AP is empty" in result.err
    released = hoicli("pairstats", "--gt", truth, "--as-released", found)
    assert "have no predictions: left out, as released" in released.err
