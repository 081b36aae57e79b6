"""Confusions against a slow twin, cases by hand, and what may not change a number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.diagnosis.confusion_cells import confused_models
from hoicli.diagnosis.emitted import typed_batches
from hoicli.evaluation import pairing
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.ranking import interpolated_ap
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from tests.support.diagnosis import diagnosis
from tests.support.kernel import Given, ground_truth, lines
from tests.support.project import FIXTURES, PAIR, Data, Hoicli, Record, parsed, refusal
from tests.support.strategies import crowds, datasets

HICO, DIAG = load("hico"), PROTOCOLS["diag"]
Cell = tuple[str, str | None, str | None]
Found = dict[Cell, tuple[int, float | None]]


class Unmatched(Given):
    model = "m"
    tagged = False


def confusions(truth: Sequence[Record], predictions: Sequence[Record]) -> Found:
    """Cell -> (number, gain in percent)."""
    model = Unmatched(lines(predictions))
    filters = Filters(allow_uncounted=True)
    (confused,) = confused_models([model], ground_truth(truth), DIAG, filters, ErrorPolicy())
    found: dict[Cell, dict[str, Any]] = defaultdict(dict)
    for row in confused.rows(confused.cells(), top=None, tags={}):
        found[row["kind"], row["truth"], row["predicted"]][row["metric"]] = row["value"]
    return {cell: (of["confusion"], of.get("confusion_delta_mAP")) for cell, of in found.items()}


def overlap(one: Sequence[float], two: Sequence[float]) -> bool:
    """Whether IoU is at least 0.5, by protocol diag's measure."""
    from hoicli.evaluation.pairing import protocol_iou

    sides = (np.array([box], dtype=np.float64).T for box in (one, two))
    return bool(protocol_iou(DIAG, *sides)[0] >= 0.5)


class Twin:
    """The definitions of `confusions` and `repaired`, one prediction after another."""

    def __init__(self, truth: Sequence[Record], predictions: Sequence[Record]) -> None:
        self.entries: list[tuple[Any, int, bool]] = []  # (rank, class, hit) of counted predictions
        self.asked: list[int] = []
        self.units: Counter[Cell] = Counter()
        self.fixes: dict[Cell, list[tuple[int, int, int | None]]] = defaultdict(list)
        self.drops: dict[Cell, set[int]] = defaultdict(set)
        self.lost: dict[Cell, list[int]] = defaultdict(list)
        annotated = ground_truth(truth)
        seen = set()
        for batch, found, types in typed_batches(lines(predictions), annotated, Filters(), ErrorPolicy()):
            for image, image_id in enumerate(found.image_ids):
                seen.add(image_id)
                self._image(batch, found, types, image)
        for record in truth:
            if record["image_id"] not in seen:
                self._unseen(record)

    def _image(self, batch: Any, found: Any, types: Any, image: int) -> None:
        matched = set(zip(found.box_match.tolist(), found.truth_box_match.tolist(), strict=True))
        lies_on_own = {box for box, _ in matched}
        counted = [row for row in np.flatnonzero(found.image == image).tolist() if found.counted[row]]
        number: dict[int, int] = {}
        for row in counted:
            number[row] = len(self.entries)
            rank = (-float(found.score[row]), found.image_ids[image], int(found.interaction[row]), row)
            self.entries.append((rank, int(found.interaction[row]), bool(found.hit[row])))
        order = sorted(counted, key=lambda row: self.entries[number[row]][0])
        triplets = np.flatnonzero(found.truth_image == image).tolist()
        hit_of = {int(found.truth[row]): row for row in counted if found.hit[row]}

        def verb(number_: int) -> str:
            return HICO.interactions[number_][0]

        def label(number_: int) -> str:
            return HICO.interactions[number_][1]

        def on(row: int, g: int, *, side: str) -> bool:
            return (int(getattr(found, side)[row]), int(getattr(found, f"truth_{side}")[g])) in matched

        for g in triplets:
            self.asked.append(int(found.truth_interaction[g]))
            v = verb(found.truth_interaction[g])
            of_g = [
                row
                for row in order
                if hit_of.get(g) == row
                or (types.error[row] == 2 and on(row, g, side="subject") and on(row, g, side="object"))
            ]
            said = verb(found.interaction[of_g[0]]) if of_g else None
            cell: Cell = ("verb", v, said)
            wrong = bool(of_g) and hit_of.get(g) != of_g[0]
            self.units[cell] += 1
            if said is None:
                self.lost[cell].append(int(found.truth_interaction[g]))
            if wrong:
                taken = {fix[0] for fix in self.fixes[cell]}
                if number[of_g[0]] not in taken:
                    former = number[hit_of[g]] if g in hit_of else None
                    self.fixes[cell].append((number[of_g[0]], int(found.truth_interaction[g]), former))
                self.drops[cell] |= {number[row] for row in of_g if verb(found.interaction[row]) == said}
        for row in counted:
            if types.error[row] in (3, 4, 5, 6):
                cell = ("verb", None, verb(found.interaction[row]))
                self.units[cell] += 1
                self.drops[cell].add(number[row])

        boxes, truth_boxes = batch.predictions.boxes, batch.truth.scenes.boxes
        pair_of = {g: (int(found.truth_subject[g]), int(found.truth_object[g])) for g in triplets}
        touched = set()
        for pair in sorted(set(pair_of.values())):
            members = [g for g in triplets if pair_of[g] == pair]
            o = label(found.truth_interaction[members[0]])
            right, astray = [], []
            for row in order:
                human = on(row, members[0], side="subject")
                if human and on(row, members[0], side="object"):
                    right.append(row)
                elif human and int(found.object[row]) not in lies_on_own:
                    astray += [row] if overlap(boxes[found.object[row]], truth_boxes[pair[1]]) else []
            touched |= {(int(found.subject[row]), int(found.object[row])) for row in astray}
            first = next((row for row in order if row in right or row in astray), None)
            said = None if first is None else o if first in right else label(found.interaction[first])
            cell = ("object", o, said)
            wrong = first in astray
            self.units[cell] += 1
            if said is None:
                self.lost[cell] += [int(found.truth_interaction[g]) for g in members]
            if wrong:
                rows = [row for row in astray if label(found.interaction[row]) == said]
                self.drops[cell] |= {number[row] for row in rows}
                for g in members:
                    verbs = [row for row in rows if verb(found.interaction[row]) == verb(found.truth_interaction[g])]
                    former = hit_of.get(g)
                    if not verbs or (former is not None and order.index(former) < order.index(verbs[0])):
                        continue
                    if number[verbs[0]] not in {fix[0] for fix in self.fixes[cell]}:
                        was = None if former is None else number[former]
                        self.fixes[cell].append((number[verbs[0]], int(found.truth_interaction[g]), was))
        for pair in {(int(found.subject[row]), int(found.object[row])) for row in counted} - touched:
            of_pair = [row for row in counted if (int(found.subject[row]), int(found.object[row])) == pair]
            if pair[1] not in lies_on_own:
                cell = ("object", None, label(found.interaction[of_pair[0]]))
                self.units[cell] += 1
                self.drops[cell] |= {number[row] for row in of_pair}

    def _unseen(self, record: Record) -> None:
        pairs = {}
        for hoi in record["hois"]:
            name = hoi["verb"], record["labels"][hoi["object"]]
            interaction = HICO.interaction_ids.get(name)
            if interaction is None or name[0] == "no_interaction":
                continue
            self.asked.append(interaction)
            self.units["verb", name[0], None] += 1
            self.lost["verb", name[0], None].append(interaction)
            pairs[hoi["subject"], hoi["object"]] = name[1]
            self.lost["object", name[1], None].append(interaction)
        for name in pairs.values():
            self.units["object", name, None] += 1

    def _mean(self, entries: Sequence[tuple[Any, int, bool]], asked: Sequence[int]) -> float | None:
        values = []
        for number in sorted(set(asked) - HICO.no_interaction_ids):
            hits = [hit for _, of, hit in sorted(entries) if of == number]
            rank = np.flatnonzero(hits) + 1
            positives = np.array([asked.count(number)])
            values.append(float(interpolated_ap(rank, np.array([0, len(rank)]), positives, DIAG.grid)[0]))
        return sum(values) / len(values) if values else None

    def cells(self) -> Found:
        before = self._mean(self.entries, self.asked)
        found: Found = {}
        for cell, units in self.units.items():
            gain = None
            if cell[1] != cell[2]:
                gone = self.drops[cell] | {was for _, _, was in self.fixes[cell] if was is not None}
                left = [entry for number, entry in enumerate(self.entries) if number not in gone]
                left += [(self.entries[row][0], of, True) for row, of, _ in self.fixes[cell]]
                asked = list(self.asked)
                for lost in self.lost[cell]:
                    asked.remove(lost)
                after = self._mean(left, asked)
                gain = None if after is None or before is None else 100 * (after - before)
            found[cell] = units, gain
        return found


def same(found: Found, twin: Found) -> None:
    assert found.keys() == twin.keys()
    for cell, (count, gain) in found.items():
        assert count == twin[cell][0], cell
        assert gain == pytest.approx(twin[cell][1], abs=1e-9), cell


@given(st.one_of(crowds(), datasets(least=0)))
def test_the_twin(scene: Data) -> None:
    truth, predictions = scene
    if any(record["hois"] for record in predictions):
        same(confusions(truth, predictions), Twin(truth, predictions).cells())


def mistaken(seed: int) -> Data:
    """Images full of wrong labels on right boxes, several verbs a pair, and equal scores."""
    chance = Random(seed)
    truth, predictions = [], []
    for number in range(3):
        boxes = [[60.0 * at, 0.0, 60.0 * at + 50, 50.0] for at in range(5)]
        boxes.append([62.0 + 60, 0.0, 172.0, 50.0])  # a second thing in one place
        names = ["person", "person", *(chance.choice(["bicycle", "motorcycle", "kite"]) for _ in range(4))]
        guesses = ["person", "person", *(chance.choice(["bicycle", "motorcycle", "kite"]) for _ in range(4))]

        def hois(most: int, *, scored: bool, of: Random = chance) -> list[dict[str, Any]]:
            verbs = ["hold", "ride", "carry", "fly", "wash"]
            drawn = [(of.randrange(2), of.randrange(2, 6), of.choice(verbs)) for _ in range(of.randint(0, most))]
            triplets = [{"subject": s, "object": o, "verb": v} for s, o, v in dict.fromkeys(drawn)]
            return [{**hoi, "score": of.choice([0.2, 0.5, 0.9])} if scored else hoi for hoi in triplets]

        image = {"image_id": f"i{number}", "boxes": boxes}
        truth.append({**image, "labels": names, "hois": hois(10, scored=False)})
        predictions.append({**image, "labels": guesses, "hois": hois(24, scored=True)})
    return truth, predictions


@pytest.mark.parametrize("seed", range(8))
def test_the_twin_where_much_is_confused(seed: int) -> None:
    truth, predictions = mistaken(seed)
    same(confusions(truth, predictions), Twin(truth, predictions).cells())


BOXES = [[0, 0, 50, 50], [100, 0, 150, 50]]


def image(*hois: tuple[str, float] | str, label: str = "bicycle") -> Record:
    listed = [hoi if isinstance(hoi, tuple) else (hoi, None) for hoi in hois]
    return {
        "image_id": "one",
        "boxes": BOXES,
        "labels": ["person", label],
        "hois": [
            {"subject": 0, "object": 1, "verb": verb, **({} if score is None else {"score": score})}
            for verb, score in listed
        ],
    }


def test_a_right_verb_is_no_confusion_whatever_its_place() -> None:
    found = confusions([image("ride", "hold")], [image(("hold", 0.9), ("ride", 0.1), ("wash", 0.05))])
    assert found.keys() >= {("verb", "hold", "hold"), ("verb", "ride", "ride")}
    assert not any(cell[2] == "wash" for cell in found)  # below both right verbs


def test_a_wrong_verb_before_two_right_ones_counts_for_both() -> None:
    found = confusions([image("ride", "hold")], [image(("wash", 0.9), ("hold", 0.5))])
    assert [found["verb", verb, "wash"][0] for verb in ("ride", "hold")] == [1, 1]
    assert ("verb", "ride", None) not in found


def test_one_confusion_costs_what_the_oracle_of_diagnose_gives() -> None:
    truth, predictions = [image("ride")], [image(("wash", 0.9), ("ride", 0.4))]
    found = confusions(truth, predictions)
    results = {result.oracle: result for result in diagnosis(truth, predictions).results(HICO)}
    full = {"full": np.arange(600)}
    gain = results["interaction"].means(full)[0].ap - results["none"].means(full)[0].ap  # type: ignore[operator]
    assert found["verb", "ride", "wash"][1] == pytest.approx(100 * gain)
    missed = confusions(truth, [image(("ride", 0.4), label="kite")])
    assert missed["verb", "ride", None][0] == 1


def test_an_object_is_confused_by_its_label_alone() -> None:
    found = confusions([image("ride")], [image(("ride", 0.4), ("wash", 0.9), label="motorcycle")])
    assert found["object", "bicycle", "motorcycle"] == pytest.approx((1, 100.0))
    assert found["verb", "ride", None][0] == 1  # of the verbs: no right pair is there


def test_roles_are_named_and_have_no_objects(hoicli: Hoicli) -> None:
    vcoco = FIXTURES / "vcoco"
    found = parsed(hoicli("confusion", "--top", "all", "--dataset", "vcoco", "--gt", vcoco / "ground_truth.jsonl",
                        vcoco / "predictions.jsonl").out)  # fmt: skip
    assert {row["kind"] for row in found} == {"verb"}
    names = {" ".join(pair) for pair in load("vcoco").interactions}
    assert {row["truth"] for row in found} <= names | {None}
    assert sum(row["value"] for row in found if row["metric"] == "confusion" and row["truth"]) == sum(
        {row["truth"]: row["n"] for row in found if row["metric"] == "confusion" and row["truth"]}.values()
    )


def test_what_is_refused(hoicli: Hoicli) -> None:
    for words, said in (
        (("--top", "x"), "--top x: give a whole number of at least 0, or all"),
        (("--slice", "verb"), "--slice verb: of classes"),
        (("--protocol", "hico,diag"), "name one"),
    ):
        assert said in refusal(hoicli("confusion", *words, *PAIR), 2)


def test_a_gain_does_not_depend_on_how_many_are_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, predictions = mistaken(1)
    whole = confusions(truth, predictions)
    monkeypatch.setattr(pairing, "PAIRS_AT_ONCE", 3)
    assert confusions(truth, predictions) == whole
