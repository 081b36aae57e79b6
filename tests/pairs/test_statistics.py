"""Pair statistics: the released code's golden numbers, cases worked by hand, and a slow evaluator on random pairs."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.cli import run
from hoicli.errors import DataError
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.pairs.pair_batches import Sweep, pair_batch, read_pair_batches, surviving_pairs
from hoicli.pairs.statistic_rows import pair_rows
from hoicli.pairs.statistics import RELEASED_STEPS, Figure, PairStatistics
from hoicli.records.columns import attempt
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.result_rows import parse_tags
from hoicli.vocabulary.datasets import load
from tests.support.kernel import ground_truth, lines
from tests.support.project import GT, PREDICTIONS, Data, Hoicli, Record, records_of, refusal, without_gt, written
from tests.support.reference import overlap
from tests.support.strategies import datasets, scores

HICO = load("hico")
RARE = {HICO.interactions[number] for number in HICO.groups["rare"]}


Figures = dict[str, Figure]


def statistics(
    truth: list[Record], predictions: list[Record], sweep: Sweep = Sweep(), **options: Any
) -> dict[str, Figures]:
    ((_, results),) = gathered(truth, predictions, sweep, **options).results()
    return results


def gathered(
    truth: list[Record], predictions: list[Record], *sweeps: Sweep, batch: int = 256, shares: int = 1, **options: Any
) -> PairStatistics:
    """shares: each is gathered by itself, and comes through a pipe."""
    whole = PairStatistics(ground_truth(truth), sweeps, **options)
    with_scores = any(sweep.det_threshold is not None for sweep in sweeps)
    triplet_scores = options.get("triplet_scores", False)
    for share in range(shares):
        found, own = whole.empty_columns(), lines(predictions[share::shares])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hoicli.records.columns.BATCH", batch)
            for part in read_pair_batches(
                own, HICO, policy=ErrorPolicy(), box_scores=with_scores, triplet_scores=triplet_scores
            ):
                whole.add(part, found)
        whole.gathered.merge(pickle.loads(pickle.dumps(found)))
    return whole


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((shared / "golden/hico-500/expected.json").read_text())
    return content


@pytest.fixture(scope="module")
def golden_files(shared: Path, hico_500: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("golden")
    sources = {
        "pairs": shared / "golden/hico-500/pairs.json.gz",
        "triplets": shared / "golden/hico-500/predictions_cdn.json.gz",
    }
    files = {name: folder / f"{name}.jsonl" for name in sources}
    for name, source in sources.items():
        options = ["--from", "diag-pairs"] if name == "pairs" else []
        assert run(["convert", *options, str(source), "-o", str(files[name])]) == 0
    return {**files, "gt": hico_500}


def rows_of(hoicli: Hoicli, *arguments: object) -> list[Record]:
    return records_of(hoicli("pairstats", "--format", "jsonl", *arguments))


def full_of(hoicli: Hoicli, *arguments: object) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in rows_of(hoicli, *arguments) if row["subset"] == "full"}


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


def test_negative_ap_as_released(golden_files: dict[str, Path], expected: dict[str, Any], hoicli: Hoicli) -> None:
    files = ("--gt", golden_files["gt"], golden_files["pairs"])
    released = full_of(hoicli, "--as-released", *files)["neg_ap"]
    assert released / 100 == pytest.approx(expected["diag-hoi/pairs"]["neg_ap_110_points"], abs=1e-9)
    assert full_of(hoicli, *files)["neg_ap"] == pytest.approx(released * 110 / 101, abs=1e-9)


def test_interaction_map_as_released(golden_files: dict[str, Path], expected: dict[str, Any], hoicli: Hoicli) -> None:
    golden = expected["diag-hoi"]["action"]
    ours = full_of(hoicli, "--as-released", "--gt", golden_files["gt"], golden_files["triplets"])
    assert ours["inter_map"] / 100 == pytest.approx(golden["mAP"], abs=1e-9)


def test_triplet_scores_stand_in_when_asked(golden_files: dict[str, Path], tmp_path: Path, hoicli: Hoicli) -> None:
    bare = tmp_path / "bare.jsonl"
    records = [json.loads(line) for line in golden_files["triplets"].read_text().splitlines()]
    for record in records:
        for hoi in record["hois"]:
            del hoi["verb_score"]
    written(bare, records)
    truth = ("--gt", golden_files["gt"])
    with_scores = full_of(hoicli, *truth, golden_files["triplets"])
    shown = {name: round(with_scores[name], 2) for name in ("inter_map", "neg_ap")}
    assert shown == {"inter_map": 69.19, "neg_ap": 83.66}
    assert round(with_scores["neg_share"], 1) == 73.4  # pairs ranked at random: what 82 is to be read against
    none = full_of(hoicli, *truth, bare)
    assert {none["inter_map"], none["neg_ap"]} == {None}
    assert {name: value for name, value in none.items() if name not in ("inter_map", "neg_ap")} == {
        name: value for name, value in with_scores.items() if name not in ("inter_map", "neg_ap")
    }
    stand_in = full_of(hoicli, "--verb-score", "triplet", *truth, bare)
    assert {name: round(stand_in[name], 2) for name in ("inter_map", "neg_ap")} == {"inter_map": 72.48, "neg_ap": 88.49}
    assert full_of(hoicli, "--verb-score", "triplet", *truth, golden_files["triplets"]) == stand_in


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


def test_one_detected_pair_on_two_true_ones() -> None:
    record = truth_record((0, 1, "fly"), (0, 2, "fly"))
    record["boxes"] = [PERSON, [100, 200, 199, 290], KITE]
    record["labels"] = ["person", "kite", "kite"]
    pairs = [(0, 2, 0.9), (0, 4, 0.8)]
    both = statistics([record], [prediction(pairs)])["full"]
    assert (both["pair_recall"][0], both["pair_precision"][0]) == (1.0, 0.5)
    single = statistics([record], [prediction(pairs)], one_to_one=True)["full"]
    assert (single["pair_recall"][0], single["pair_precision"][0]) == (0.5, 0.5)
    # A repeated pair finds the second of them when each finds one only, and nothing otherwise.
    repeated = [(0, 2, 0.9), (0, 2, 0.7)]
    assert statistics([record], [prediction(repeated)])["full"]["pair_precision"][0] == 0.5
    single = statistics([record], [prediction(repeated)], one_to_one=True)["full"]
    assert (single["pair_recall"][0], single["pair_precision"][0]) == (1.0, 1.0)


def test_negative_ap_by_hand() -> None:
    # Ranked by not interacting: negative (0.1), interacting (0.2), negative (0.3): precision 1, then 2 / 3.
    pairs = [(0, 2, 0.2), (0, 4, 0.1), (3, 4, 0.3)]
    truth = [truth_record((0, 2, "fly"))]
    full = statistics(truth, [prediction(pairs)])["full"]
    assert full["neg_ap"][1] == 2
    assert full["neg_ap"][0] == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)
    released = statistics(truth, [prediction(pairs)], as_released=True)["full"]
    assert released["neg_ap"][0] == pytest.approx((51 * 1 + 50 * 2 / 3) / RELEASED_STEPS)


@pytest.mark.parametrize("released", [False, True])
def test_a_pair_of_no_interaction_alone_is_a_pair(released: bool) -> None:
    """Diag-HOI 2.4: the label stays in the output; 4.1: a pair is found whatever it is called."""
    truth = [truth_record((0, 2, "fly"), (1, 2, "no_interaction"))]

    def told(*hois: Record, **more: Any) -> tuple[dict[str, tuple[float | None, int]], dict[str, str], int]:
        whole = gathered(truth, [{**prediction(hois=list(hois)), **more}], Sweep(), as_released=released)
        rows = [row for row in pair_rows(whole, tags={}) if row["subset"] == "full"]
        signed = {row["metric"]: row["signature"] for row in rows if "|noint:pairs|" in row["signature"]}
        figures = next(figures["full"] for _, figures in whole.results())
        return figures, signed, whole.gathered.numbers["unscored"]

    fly, none = triplet(0, 4, "fly", 0.3, verb_score=0.6), triplet(0, 2, "no_interaction", 0.9, verb_score=0.9)
    figures, signed, _ = told(fly, none)
    found = (figures["pairs_per_image"][0], figures["pair_recall"], figures["pair_precision"])
    assert found == (2.0, (1.0, 1), (0.5, 2))
    # it ranks as the surest negative, which it is not; interaction mAP is of verbs
    assert figures["neg_ap"][0] == pytest.approx(0.5 * 101 / (RELEASED_STEPS if released else 101))
    assert figures["neg_ap"][1] == 1
    assert figures["inter_map"][1] == told(fly)[0]["inter_map"][1]
    assert "pair_recall" in signed
    assert "neg_ap" in signed
    assert not {"inter_map", "mAP"} & signed.keys()
    # without scores of verbs it says nothing of how surely it interacts, and needs none beside another verb
    figures, _, unscored = told(fly, triplet(0, 2, "no_interaction", 0.9))
    assert (figures["neg_ap"][0], unscored) == (None, 0)
    figures, signed, _ = told(triplet(0, 2, "no_interaction", 0.9), triplet(0, 2, "fly", 0.1, verb_score=0.2), fly)
    assert (figures["pairs_per_image"][0], figures["neg_ap"][0] is None, signed) == (2.0, False, {})
    # what the record lists is counted as it is
    listed = [{"subject": 0, "object": 2}, {"subject": 0, "object": 4}]
    figures, signed, _ = told(fly, none, pairs=listed)
    wanted = (2.0, told(fly, none)[0]["neg_ap"][0], True)
    assert (figures["pairs_per_image"][0], figures["neg_ap"][0], bool(signed)) == wanted
    figures, signed, _ = told(fly, none, pairs=[{**pair, "interactiveness": 0.5} for pair in listed])
    assert (figures["pairs_per_image"][0], signed) == (2.0, {})
    assert told(none)[0]["pair_precision"] == (1.0, 1)


def test_interaction_map_by_hand() -> None:
    truth = [truth_record((0, 2, "fly"), (1, 2, "carry"))]
    hois = [
        triplet(0, 2, "fly", 0.3, verb_score=0.5),
        triplet(0, 2, "carry", 0.2, verb_score=0.9),  # wrong verb on the right pair
        triplet(1, 2, "carry", 0.9, verb_score=0.7),
        triplet(3, 4, "carry", 1.0, verb_score=1.0),  # pairs that are not localised do not count
        triplet(3, 2, "fly", 1.0, verb_score=1.0),
    ]
    full = statistics(truth, [prediction(hois=hois)])["full"]
    assert full["inter_map"][0] == pytest.approx((1.0 + 0.5) / 2)
    assert full["inter_map"][1] == 2
    # carry's pair is not localised any more, so only its false positive is left and it leaves the mean
    full = statistics(truth, [prediction(hois=[hois[0], hois[1], hois[3]])])["full"]
    assert (full["inter_map"][0], full["inter_map"][1]) == (1.0, 1)
    # a verb with ground truth and only wrong predictions counts 0, and not at all in the released code
    hois = [triplet(0, 2, "fly", 0.3), triplet(1, 2, "fly", 0.2), triplet(0, 2, "carry", 0.9)]
    for released, value in ((False, 0.5), (True, 1.0)):
        full = statistics(truth, [prediction(hois=hois)], triplet_scores=True, as_released=released)["full"]
        assert full["inter_map"][0] == value


def test_what_the_records_do_not_say_has_no_value() -> None:
    truth = [truth_record((0, 2, "fly")), truth_record((0, 2, "carry"), image_id="b")]

    def values(*records: Record, **options: bool) -> tuple[dict[str, float | None], dict[str, str]]:
        whole = gathered(truth, list(records), Sweep(), **options)
        found = {row["metric"]: row for row in pair_rows(whole, tags={}) if row["subset"] == "full"}
        wanted = ("inter_map", "neg_ap", "mAP")
        reasons = {name: row["reason"] for name, row in found.items() if "reason" in row}
        assert all(found[name]["value"] is None for name in reasons)
        return {name: found[name]["value"] for name in wanted}, reasons

    said, silent = triplet(0, 2, "fly", 0.5, verb_score=0.5), triplet(0, 4, "fly", 0.4)
    told = triplet(0, 4, "fly", 0.4, verb_score=0.1)
    assert values(prediction(hois=[said, told])) == ({"inter_map": 100.0, "neg_ap": 100.0, "mAP": 50.0}, {})
    # one triplet without a verb score is enough, in whatever image; no_interaction needs none, nor does a pair stated
    mixed = [prediction(hois=[said]), prediction(hois=[silent], image_id="b")]
    assert values(*mixed) == (
        {"inter_map": None, "neg_ap": None, "mAP": 50.0},
        {
            "inter_map": "1 of 2 triplets have no verb_score",
            "neg_ap": "1 of 2 pairs have neither interactiveness nor a verb_score on each of their triplets",
        },
    )
    assert values(*mixed) == values(*mixed[::-1])
    assert values(*mixed, triplet_scores=True)[1] == {}
    assert values(prediction(hois=[said, told, triplet(0, 2, "no_interaction", 0.9)]))[1] == {}
    stated = prediction([(0, 2, 0.9), (0, 4, 0.1)], hois=[said, silent])
    reasons = {"inter_map": "1 of 2 triplets have no verb_score"}
    assert values(stated) == ({"inter_map": None, "neg_ap": 100.0, "mAP": 50.0}, reasons)
    # two scales in one ranking
    both = prediction([(0, 2, 0.9)], hois=[said]), prediction(hois=[said], image_id="b")
    assert values(*both)[1] == {"neg_ap": "1 of 2 pairs state interactiveness, the others have verb scores"}
    assert values(*both, triplet_scores=True)[1].keys() == {"neg_ap"}
    # what no figure looks at needs no score: the prediction of an image that annotates no interaction
    truth.append(truth_record((0, 2, "no_interaction"), image_id="c"))
    assert values(prediction(hois=[said, told]), prediction(hois=[silent], image_id="c"))[1] == {}
    # pairs alone
    reason = "the records list pairs and no triplets"
    alone = prediction([(0, 2, 0.9), (0, 4, 0.1)])
    assert values(alone) == ({"inter_map": None, "neg_ap": 100.0, "mAP": None}, {"inter_map": reason, "mAP": reason})
    # nothing to divide by is nothing to explain; what nobody predicted is missed
    assert values(prediction([])) == ({"inter_map": None, "neg_ap": None, "mAP": 0.0}, {})


def test_nothing_at_all() -> None:
    for found in ([], [prediction([])], [prediction(hois=[])]):
        full = statistics([truth_record((0, 2, "fly"))], found)["full"]
        assert (full["pair_precision"][1], full["pair_recall"][0], full["pairs_per_image"][0]) == (0, 0.0, 0.0)
        assert (full["pair_precision"][0], full["neg_ap"][0], full["inter_map"][0]) == (None, None, None)
        released = statistics([truth_record((0, 2, "fly"))], found, as_released=True)
        assert released["full"]["inter_map"][0] == 0.0, "its compute_map prints 0 where no image has predictions"
    full = statistics([truth_record()], [prediction([(0, 2, 0.9)])])["full"]
    assert (full["pairs_per_image"], full["pair_recall"][0], full["pair_precision"][0]) == ((None, 0), None, None)


@pytest.mark.parametrize("released", [[], ["--as-released"]])
def test_precision_of_groups_is_among_all_pairs(released: list[str], tmp_path: Path, hoicli: Hoicli) -> None:
    """As in the paper's Table 4: SCG 0.16 rare and 3.60 non-rare, of 3.7. Among the pairs of the group's own images as
    rows beside it."""
    rare_verb = next(verb for verb, name in sorted(RARE) if name == "bicycle" and verb != "no_interaction")
    common_verb = next(verb for verb, name in HICO.interactions if name == "bicycle" and (verb, name) not in RARE)
    labels = ["person", "person", "bicycle"]
    truth = [truth_record((0, 2, rare_verb), labels=labels)]
    truth.append(truth_record((0, 2, common_verb), labels=labels, image_id="b"))
    pairs = [(0, 2, 0.9), (0, 4, 0.2)]
    more = {"labels": [*labels, "person", "bicycle"]}
    found = [prediction(pairs, **more), prediction([*pairs, (3, 4, 0.1)], image_id="b", **more)]
    files = "--gt", written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", found)
    rows = rows_of(hoicli, *files, *released)
    named = {"pair_precision": "|among:all-pairs|", "pair_precision_own_images": "|among:own-images|"}
    precisions = {(row["metric"], row["subset"]): row for row in rows if row["metric"] in named}
    assert {key: (row["value"], row["n"]) for key, row in precisions.items()} == {
        ("pair_precision", "full"): (40.0, 5),
        ("pair_precision", "rare"): (20.0, 5),
        ("pair_precision", "non_rare"): (20.0, 5),
        ("pair_precision_own_images", "rare"): (50.0, 2),
        ("pair_precision_own_images", "non_rare"): (pytest.approx(100 / 3), 3),
    }
    assert all(named[metric] in row["signature"] for (metric, _), row in precisions.items())
    assert all("|among:" not in row["signature"] for row in rows if row["metric"] not in named)


def test_nms_and_thresholds() -> None:
    near = [1, 1, 100, 95]
    record = prediction([(0, 2, 0.5), (3, 2, 0.9), (1, 2, 0.4), (3, 1, 0.3)], scores=[0.9, 0.5, 0.2, 0.8, 0.1])
    record["boxes"][3] = near  # a second, better box of the first person
    scored = ((0, 2, 0.9), (3, 2, 0.8), (1, 4, 0.7))
    record["hois"] = [triplet(subject, object_, "fly", score, verb_score=score) for subject, object_, score in scored]
    (batch,) = read_pair_batches(lines([record]), HICO, policy=ErrorPolicy())
    assert surviving_pairs(batch, Sweep(nms=0.7)).tolist() == [False, True, True, True]
    assert surviving_pairs(batch, Sweep(nms=1.0)).all()
    assert surviving_pairs(batch, Sweep(det_threshold=0.2)).all()
    assert surviving_pairs(batch, Sweep(det_threshold=0.3)).tolist() == [False, False, False, True]
    truth = [truth_record((0, 2, "fly"))]
    assert statistics(truth, [record], Sweep(nms=0.7))["full"]["pair_precision"][1] == 3
    assert statistics(truth, [record], Sweep(nms=0.7))["full"]["inter_map"][0] == 1.0  # its triplet went with the pair
    assert statistics(truth, [record], Sweep(det_threshold=0.3))["full"]["inter_map"][0] is None


def mean_ap(truth: list[Record], predictions: list[Record], *sweeps: Sweep) -> list[float | None]:
    rows = pair_rows(gathered(truth, predictions, *sweeps), tags={})
    return [row["value"] for row in rows if (row["metric"], row["subset"]) == ("mAP", "full")]


def test_a_sweep_takes_pairs_with_all_their_triplets() -> None:
    """Not the triplets of a class, as eval's --nms does: a verb that only the worse pair has goes with it, and what a
    better pair's own verb would suppress stays with its pair."""
    truth = [truth_record((0, 2, "fly"), (0, 2, "carry"))]
    near = [1, 1, 100, 95]
    record = prediction(hois=[triplet(3, 2, "fly", 0.9), triplet(0, 2, "carry", 0.8), triplet(0, 2, "fly", 0.1)])
    record["boxes"][3] = near
    nms = Sweep(nms=0.7)
    assert mean_ap(truth, [record], Sweep(), nms) == [100.0, 50.0]
    record["hois"][1]["score"] = 0.95  # now the other pair is the better one, and its two verbs stay
    assert mean_ap(truth, [record], Sweep(), nms) == [100.0, 100.0]
    # pairs are put in order by their interactiveness where all of a record state it
    record["pairs"] = [{"subject": 3, "object": 2, "interactiveness": 0.9}, {"subject": 0, "object": 2}]
    assert mean_ap(truth, [record], nms) == [100.0]
    record["pairs"][1]["interactiveness"] = 0.8
    assert mean_ap(truth, [record], nms) == [50.0]
    record["pairs"].insert(0, record["pairs"][0])  # listed twice, and once is enough for its triplets
    record["pairs"][2]["interactiveness"] = 0.95
    assert mean_ap(truth, [record], nms) == [100.0]
    record["pairs"] = [record["pairs"][2]] * 2
    assert mean_ap(truth, [record], nms) == [100.0]


def without_worse_pairs(record: Record, threshold: float) -> Record:
    """Pair NMS, one pair after the other."""
    ranked = sorted(slow_pairs(record), key=lambda pair: -pair[2])
    kept: list[tuple[int, int]] = []
    for subject, object_, _ in ranked:
        others = [other for other in kept if record["labels"][other[1]] == record["labels"][object_]]
        boxes = [tuple(record["boxes"][box]) for box in (subject, object_)]

        def near(other: tuple[int, int], boxes: list[Any] = boxes) -> float:
            sides = [overlap("hico", tuple(record["boxes"][box]), mine) for box, mine in zip(other, boxes, strict=True)]
            return float(sides[0] * sides[1] ** 0.5)

        if all(near(other) <= threshold for other in others):
            kept.append((subject, object_))
    gone = {(subject, object_) for subject, object_, _ in ranked} - set(kept)
    return {**record, "hois": [hoi for hoi in record["hois"] if (hoi["subject"], hoi["object"]) not in gone]}


@given(datasets(), st.sampled_from([0.1, 0.3, 0.5]))
def test_map_is_that_of_the_triplets_that_are_left(data: Data, threshold: float) -> None:
    truth, predictions = data
    left = [without_worse_pairs(record, threshold) for record in predictions]
    assert mean_ap(truth, predictions, Sweep(nms=threshold)) == mean_ap(truth, left, Sweep())


def test_map_is_that_of_eval(hoicli: Hoicli) -> None:
    """Diag-HOI's tables have the mAP of its standard_eval.py: protocol diag, whatever is done about pairs."""
    files = ("--gt", GT, PREDICTIONS)
    theirs = hoicli("eval", "--protocol", "diag", "--format", "jsonl", *files)
    keys = ("metric", "subset", "value", "n", "unit", "signature")
    ours, wanted = (
        [[row[key] for key in keys] for row in rows if row["metric"] == "mAP"]
        for rows in (rows_of(hoicli, "--as-released", "--one-to-one", *files), map(json.loads, theirs.out.splitlines()))
    )
    assert ours == wanted


def forms(record: Record, hoi: Record) -> bool:
    pair = (hoi["verb"], record["labels"][hoi["object"]])
    return record["labels"][hoi["subject"]] == "person" and pair in HICO.interaction_ids


def counted(record: Record, hoi: Record) -> bool:
    return forms(record, hoi) and hoi["verb"] != "no_interaction"


def slow_triplets(record: Record) -> dict[tuple[int, int], list[Record]]:
    """The triplets that each pair is ranked by: those of no_interaction where it has no others."""
    formed: dict[tuple[int, int], list[Record]] = {}
    for hoi in record["hois"]:
        if forms(record, hoi):
            formed.setdefault((hoi["subject"], hoi["object"]), []).append(hoi)
    return {key: [hoi for hoi in hois if counted(record, hoi)] or hois for key, hois in formed.items()}


def slow_pairs(record: Record) -> list[tuple[int, int, float]]:
    """(subject, object, what orders them) of a prediction record."""
    best = {key: max(hoi["score"] for hoi in hois) for key, hois in slow_triplets(record).items()}
    if "pairs" not in record:
        return [(*key, score) for key, score in best.items()]
    listed = [pair for pair in record["pairs"] if record["labels"][pair["subject"]] == "person"]
    stated = all("interactiveness" in pair for pair in listed)
    places = [(pair["subject"], pair["object"]) for pair in listed]
    both = zip(places, listed, strict=True)
    return [(*place, pair["interactiveness"] if stated else best.get(place, -9e9)) for place, pair in both]


def slow_interacting(record: Record, *, triplet_scores: bool) -> list[tuple[str, float | None]]:
    """(where it comes from, how sure the detector is that it interacts, None for unknown) of each pair."""
    known = slow_triplets(record)

    def surest(subject: int, object_: int) -> tuple[str, float | None]:
        hois = known.get((subject, object_), [])
        scores = [hoi["score"] if triplet_scores else hoi.get("verb_score") for hoi in hois]
        known_scores = [score for score in scores if score is not None]
        if not scores or len(known_scores) < len(scores):
            return "verbs", None
        return "verbs", max(known_scores) if counted(record, hois[0]) else -9e9

    if "pairs" not in record:
        return [surest(*key) for key in known]
    return [
        ("stated", pair["interactiveness"]) if "interactiveness" in pair else surest(pair["subject"], pair["object"])
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


def slow(
    truth: list[Record],
    predictions: list[Record],
    subset: str,
    *,
    one_to_one: bool,
    released: bool,
    triplet_scores: bool,
) -> Figures:
    """The figures by loops."""

    def wanted(label: str, verb: str) -> bool:
        return subset == "full" or ((verb, label) in RARE) == (subset == "rare")

    by_image = {record["image_id"]: record for record in predictions}
    some = False
    images = pairs_seen = every_pair = true_pairs = found_true = finders = 0
    sources: list[tuple[str, float | None]] = []
    unscored = False
    negatives: list[tuple[float, str, int, bool]] = []
    answers: dict[str, list[tuple[float, str, float, int, bool]]] = {}
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
            unscored = unscored or any("verb_score" not in hoi for _, hoi in usable)
            every_pair += len(detected)
            said = slow_interacting(found, triplet_scores=triplet_scores)
            sources += said
            for at, (pair, (_, sure)) in enumerate(zip(detected, said, strict=True)):
                negatives.append((sure or 0.0, name, at, not any(matches(pair, key) for key in all_keys)))
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
                verb_score = hoi["score"] if triplet_scores else hoi.get("verb_score", 0.0)
                answers.setdefault(hoi["verb"], []).append((-verb_score, name, -hoi["score"], at, hit))

    neg_ap = None
    ranked = [negative for *_, negative in sorted(negatives)]
    one_source = len({source for source, _ in sources}) == 1 and all(sure is not None for _, sure in sources)
    if sum(ranked) and one_source:
        count = 110 if released else 101
        neg_ap = slow_ap(ranked, sum(ranked), [step * 0.01 for step in range(count)], count)
    aps = []
    tenths = [0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 6 * 0.1, 7 * 0.1, 0.8, 0.9, 1.0]
    for verb, count in positives.items():
        hits = [hit for *_, hit in sorted(answers.get(verb, []))]
        if not (released and hits and not any(hits)):
            aps.append(slow_ap(hits, count, tenths, 11))
    listed_alone = any(map(slow_pairs, predictions)) and not any(r["hois"] for r in predictions)
    some = (some or (released and not listed_alone)) and (triplet_scores or not unscored)
    figures: Figures = {
        "pairs_per_image": (pairs_seen / images if images else None, images),
        "pair_recall": (found_true / true_pairs if true_pairs else None, true_pairs),
        "pair_precision": (finders / every_pair if every_pair else None, every_pair),
        "inter_map": (sum(aps) / len(aps) if aps and some else None, len(aps) if some else 0),
    }
    if subset == "full":
        return figures | {"neg_ap": (neg_ap, sum(ranked))}
    return figures | {"pair_precision_own_images": (finders / pairs_seen if pairs_seen else None, pairs_seen)}


@st.composite
def with_pairs(draw: st.DrawFn) -> Data:
    """Random scenes; some predictions list their pairs, all or some triplets and pairs have scores of their own."""
    truth, predictions = draw(datasets())
    verb_scores, interactiveness = (draw(st.sampled_from([st.just(True), st.booleans()])) for _ in range(2))
    for record in predictions:
        for hoi in record["hois"]:
            if draw(verb_scores):
                hoi["verb_score"] = draw(scores)
        count = len(record["boxes"])
        if count and draw(st.booleans()):
            box = st.integers(0, count - 1)
            record["pairs"] = [
                {"subject": draw(box), "object": draw(box)}
                | ({"interactiveness": draw(scores)} if draw(interactiveness) else {})
                for _ in range(draw(st.integers(0, 5)))
            ]
    return truth, predictions


@given(with_pairs(), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 3))
def test_slow_evaluator_agrees(data: Data, one_to_one: bool, released: bool, triplet_scores: bool, batch: int) -> None:
    truth, predictions = data
    options: dict[str, Any] = {"one_to_one": one_to_one, "triplet_scores": triplet_scores}
    ours = statistics(truth, predictions, batch=batch, as_released=released, **options)
    for subset, result in ours.items():
        theirs = slow(truth, predictions, subset, released=released, **options)
        assert {metric: result[metric] for metric in theirs} == {
            metric: (None if value is None else pytest.approx(value), n) for metric, (value, n) in theirs.items()
        }


GOOD = prediction([(0, 2, 0.5)], hois=[triplet(0, 2, "fly", 0.5, verb_score=0.5)], scores=[0.5, 0.5, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(("pairs", "message"), [
    ({}, "pairs: an object; it must be an array"),
    ([{"subject": 0, "object": 1.0}], "pairs[0].object: 1.0 is no index; it must be the integer index of a box"),
    ([{"subject": 0, "object": 5}], "pairs[0].object: index 5, but the line has 5 boxes; indices are 0-based"),
    ([{"subject": 0, "object": 1, "interactiveness": "1"}],
     'pairs[0].interactiveness: "1" is no score; give a finite number, or leave it out'),
])  # fmt: skip
def test_a_bad_pair_is_named(pairs: Any, message: str) -> None:
    bad = {**GOOD, "image_id": "b", "pairs": pairs}
    with pytest.raises(DataError) as raised:
        list(read_pair_batches(lines([GOOD, bad]), HICO, policy=ErrorPolicy()))
    assert str(raised.value) == f"test:2: {message}"
    policy = ErrorPolicy(skip=True)
    (batch,) = read_pair_batches(lines([GOOD, bad]), HICO, policy=policy)
    assert (batch.scenes.image_ids, policy.skipped) == (["a"], 1)


def test_scores_are_asked_for() -> None:
    bare = {key: value for key, value in GOOD.items() if key != "scores"} | {"image_id": "b"}
    with pytest.raises(DataError, match=r"test:2: scores: missing; --det-threshold needs"):
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
    built = partial(pair_batch, vocabulary=HICO, protocol=PROTOCOLS["diag"])
    assert (attempt(built, lines([record])) is None) == bool(found), found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    truth = written(tmp_path / "gt.jsonl", [truth_record((0, 2, "fly"))])
    return truth, written(tmp_path / "preds.jsonl", [GOOD])


def test_the_rows(files: tuple[Path, Path], hoicli: Hoicli) -> None:
    options = ("--nms-sweep", "0.5,0.7", "--det-threshold", "0.6", "--tag", "model=x", "--one-to-one", "--as-released")
    result = hoicli("pairstats", "--gt", files[0], *options, "--format", "jsonl", files[1])
    assert (result.code, result.err) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    recall = [row for row in rows if row["metric"] == "pair_recall" and row["subset"] == "full"]
    found = [(row["nms"], row["det_threshold"], row["value"]) for row in recall]
    assert found == [(None, None, 100.0), (0.5, None, 100.0), (0.7, None, 100.0), (None, 0.6, 0.0)]
    head = "protocol:diag|data:hico|"
    options_ = "pairs:one-to-one|released:yes|pairnms:0.5/1/0.5"
    assert without_gt(recall[1]["signature"]).startswith(f"{head}{options_}|version:")
    assert "|det:0.6|" in recall[3]["signature"]
    # mAP after pair NMS is not what eval --nms gives, and no option on pairs changes it
    (row,) = (row for row in rows if (row["metric"], row["subset"], row["nms"]) == ("mAP", "full", 0.5))
    assert without_gt(row["signature"]).startswith(f"{head}pairnms:0.5/1/0.5|version:")
    assert all(row["tags"] == parse_tags(["model=x"]) and row["protocol"] == "diag" for row in rows)


@pytest.mark.parametrize(("options", "inter_map", "neg_ap"), [
    ([], "recall:11-points|", "recall:101-points|pairscore:interactiveness|"),
    (["--as-released", "--verb-score", "triplet"],
     "recall:11-points|released:yes|verbscore:triplet|",
     "recall:110-points|released:yes|pairscore:interactiveness|"),
])  # fmt: skip
def test_a_signature_says_what_was_ranked_by(
    options: list[str], inter_map: str, neg_ap: str, files: tuple[Path, Path], hoicli: Hoicli
) -> None:
    signed = {row["metric"]: without_gt(row["signature"]) for row in rows_of(hoicli, *options, "--gt", *files)}
    assert signed["inter_map"].startswith(f"protocol:diag|data:hico|{inter_map}version:")
    assert signed["neg_ap"].startswith(f"protocol:diag|data:hico|{neg_ap}version:")
    assert "recall" not in signed["pair_recall"]
    assert "verbscore" not in signed["pair_recall"]


def test_several_streams_are_several_models(files: tuple[Path, Path], tmp_path: Path, hoicli: Hoicli) -> None:
    other = written(tmp_path / "other.jsonl", [{**GOOD, "hois": [triplet(0, 2, "fly", 0.5)]}])
    alone = [rows_of(hoicli, "--gt", files[0], path) for path in (files[1], other)]
    result = hoicli("pairstats", "--gt", files[0], "--format", "jsonl", files[1], other)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert all(row["tags"] == {} for one in alone for row in one)
    models = zip(("preds", "other"), alone, strict=True)
    assert rows == [{**row, "tags": {"model": name}} for name, one in models for row in one]
    assert result.err == (
        "hoicli: other: no interaction mAP: 1 of 1 triplets have no verb_score; "
        "--verb-score triplet uses the triplet's score instead\n"
    )
    named = rows_of(hoicli, "--gt", files[0], "--tag", "run=1", "--name", "a", files[1])
    assert all(row["tags"] == {"model": "a", "run": "1"} for row in named)


@pytest.mark.parametrize(("options", "message"), [
    (["--nms-sweep", "0.5,x"], "hoicli: --nms-sweep 0.5,x: 'x' is no number; give numbers with commas between\n"),
    (["--det-threshold", "nan"], "--det-threshold nan: 'nan' is no number"),
    (["--nms-sweep", "2"], "--nms-sweep 2: the threshold is an overlap, between 0 and 1"),
])  # fmt: skip
def test_wrong_options(options: list[str], message: str, files: tuple[Path, Path], hoicli: Hoicli) -> None:
    said = refusal(hoicli("pairstats", "--gt", files[0], *options, files[1]), 2)
    assert message in f"{said}\n"


def test_an_image_that_is_not_in_the_ground_truth(files: tuple[Path, Path], tmp_path: Path, hoicli: Hoicli) -> None:
    strange = written(tmp_path / "strange.jsonl", [{**GOOD, "image_id": "z"}])
    said = refusal(hoicli("pairstats", "--gt", files[0], strange))
    assert "strange.jsonl:1: image_id: 'z' is not in the ground truth" in said


def test_a_statistic_that_nobody_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gathered([truth_record((0, 1, "ride"))], [prediction()])
    monkeypatch.setattr(type(found), "results", lambda _: iter([(Sweep(), {"full": {"new": (0.5, 1)}})]))
    with pytest.raises(ValueError, match="pairstats has no metric new; declare it in hoicli/records/metrics"):
        list(pair_rows(found, tags={}))


def test_a_statement_without_an_object_is_of_no_pair(tmp_path: Path, hoicli: Hoicli) -> None:
    """By V-COCO's scenario 2 any object is right where none is annotated, but no pair is: the verb is not ranked."""
    image = {"image_id": 1, "boxes": [[0, 0, 40, 90], [50, 0, 90, 40]], "labels": ["person", "tennis_racket"]}
    hold, hit = ({"subject": 0, "object": 1, "verb": verb, "role": "obj"} for verb in ("hold", "hit"))
    other = {"subject": 0, "object": 1, "verb": "hit", "role": "instr"}
    gt = written(tmp_path / "gt.jsonl", [{**image, "hois": [hold, other, {**hit, "object": None}]}])
    hois = [{**hoi, "score": 0.9} for hoi in (hold, hit, other)]
    preds = written(tmp_path / "preds.jsonl", [{**image, "hois": hois}])
    call = ("--dataset", "vcoco", "--protocol", "vcoco-s2", "--verb-score", "triplet", "--gt", gt, preds)
    row = next(row for row in rows_of(hoicli, *call) if row["metric"] == "inter_map")
    assert (row["value"], row["n"]) == (100.0, 2)
