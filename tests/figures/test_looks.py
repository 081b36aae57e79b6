"""Every figure of every command at several widths and sizes of print: nothing overlaps, nothing is cut off."""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.corruption.catalogue import FAMILIES, ROHOI, SEVERITIES, family_of
from hoicli.figures.confusion_plot import Panel, most_confused, order_names, plot_confusion
from hoicli.figures.curve_plots import plot_curves, plot_pairs, wilson
from hoicli.figures.diagnosis_plot import plot_diagnosis, plot_frequency, plot_no_interaction
from hoicli.figures.rating_plots import Counts, plot_counts, plot_kappa
from hoicli.figures.robustness_plots import CLEAN, plot_heat_maps, plot_robustness
from hoicli.figures.styles import NARROWEST, PAGE_WIDTH, PAPER, SHEETS, Look
from hoicli.vocabulary.datasets import load
from tests.support.figures import Rows, deltas, sweep
from tests.support.project import FIXTURES, ROOT, Hoicli

LOOKS = {
    "natural": PAPER,
    "narrowest": Look(width=NARROWEST),
    "large print": Look(width=10.0, font=18.0),
    "small print": Look(width=3.4, font=5.0),
}
"""Further ones only enlarge these: a figure is designed for its width in print of one size."""
Box = tuple[str, float, float, float, float]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Box]:
    """The text and the place of everything written by the last figure; first the figure itself."""
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    boxes: list[Box] = []
    whole, words = Figure.draw, Text.draw

    def figure(self: Any, renderer: Any) -> None:
        boxes[:] = [("", *self.bbox.extents)]
        whole(self, renderer)

    def text(self: Any, renderer: Any) -> None:
        words(self, renderer)
        if self.get_visible() and self.get_text().strip():
            boxes.append((self.get_text(), *self.get_window_extent(renderer).extents))

    monkeypatch.setattr(Figure, "draw", figure)
    monkeypatch.setattr(Text, "draw", text)
    return boxes


def clashes(boxes: list[Box]) -> Iterator[str]:
    """What overlaps by more than a pixel of 100 to the inch of print of 8 points, or leaves the figure."""
    (_, left, low, right, high), *texts = boxes
    for words, x1, y1, x2, y2 in texts:
        if x1 < left - 1 or y1 < low - 1 or x2 > right + 1 or y2 > high + 1:
            yield f"{words!r} leaves the figure"
    for one, two in combinations(texts, 2):
        across = min(one[3], two[3]) - max(one[1], two[1])
        up = min(one[4], two[4]) - max(one[2], two[2])
        if across > 1 and up > 1:
            yield f"{one[0]!r} lies on {two[0]!r}"


def composition(step: int = 5000, bins: int = 17) -> dict[str, Any]:
    counts = {name: [7 + at for at in range(bins)] for name in ("true_positive", "duplicate", "interaction")}
    counts |= {name: [9] * bins for name in ("association", "object_box", "human_box", "both_boxes")}
    return {"edges": [step * at for at in range(bins + 1)], "counts": counts}


def curve(model: str, **more: Any) -> list[dict[str, Any]]:
    common = {"subset": "full", "protocol": "hico", "tags": {"model": model} if model else {}, **more}
    rows = [{"metric": "mAP", "value": 33.3}, {"metric": "ece", "value": 12.3}]
    rows += [{"metric": "mean_precision", "recall": float(at), "value": 100.0 - at} for at in range(0, 101, 5)]
    rows.append({"metric": "best_f1", "threshold": 0.31, "rank": 7, "value": 44.0})
    for rank, threshold in enumerate(np.linspace(0.9, 0.1, 9).tolist(), start=1):
        place = {"threshold": threshold, "rank": rank}
        rows += [{"metric": "precision", **place, "value": 95.0 - 9 * rank}]
        rows += [{"metric": "recall", **place, "value": 9.0 * rank}]
    for at in range(10):
        at_bin = {"bin_low": at / 10, "n": 9, "value": 10.0 * at}
        rows += [{"metric": metric, **at_bin} for metric in ("accuracy", "confidence")]
    return [{**common, **row} for row in rows]


def robust(*models: str) -> dict[str, dict[tuple[str, str, int], float]]:
    means = {("clean", "", 0): 40.0, ("", "", 0): 25.0}
    means |= {("", "", level): 35.0 - 4 * level for level in SEVERITIES}
    means |= {("", name, level): 30.0 - level for name in FAMILIES for level in (0, *SEVERITIES)}
    means |= {(what, family_of(what), 0): 30.0 for what in ROHOI}
    return dict.fromkeys(models, means)


def votes(title: str, raters: int) -> Counts:
    return Counts(title, 2000, [[120, 3400, 0, 7, 88]] * raters)


def panel(title: str, names: tuple[str, ...]) -> Panel:
    number = len(names)
    counts = np.arange(number * number).reshape(number, number) % 7
    np.fill_diagonal(counts, 0)
    true, said = np.nonzero(counts)
    count = counts[true, said]
    return Panel(title, names, true, said, count, count / 10.0)


def near(model: str) -> Rows:
    """A sweep of thresholds that move a model by less than a mark is wide."""
    return [{**row, "value": 20 + row["value"] / 1000} for row in sweep(model, "det_threshold")] + sweep(model)[2:]


HICO = load("hico")
MODELS = ["CDN", "a model with a very long name", "UPT", "QPIC", "fifth"]
Draw = Callable[[str, Look], None]
FIGURES: dict[str, Draw] = {
    "diagnose": lambda path, look: plot_diagnosis(deltas("CDN"), {"CDN": composition()}, path, look),
    "diagnose five": lambda path, look: plot_diagnosis(
        [row for name in MODELS for row in deltas(name)], {name: composition() for name in MODELS}, path, look
    ),
    "diagnose groups": lambda path, look: plot_frequency(
        [{**row, "subset": name} for name in ("rare", "non_rare") for model in MODELS for row in deltas(model)[:-2]],
        path,
        look,
    ),
    "diagnose no_interaction": lambda path, look: plot_no_interaction(
        [{**row, "tags": tags} for tags in ({}, {"noint": "counted"}) for m in MODELS for row in deltas(m)], path, look
    ),
    "pairstats": lambda path, look: plot_pairs([*sweep("CDN"), *sweep(MODELS[1], "det_threshold")], path, look),
    "pairstats near": lambda path, look: plot_pairs([*sweep("CDN"), *sweep("UPT"), *near("HOI")], path, look),
    "robust": lambda path, look: plot_robustness(robust("CDN"), path, look=look),
    "robust five": lambda path, look: plot_robustness(robust(*MODELS), path, look=look),
    "robust heat five": lambda path, look: plot_heat_maps(
        robust(*MODELS), [dict.fromkeys(product(ROHOI, SEVERITIES), 12.3)] * len(MODELS), path, look=look
    ),
    "curves": lambda path, look: plot_curves(curve(""), path, look),
    "curves five": lambda path, look: plot_curves([r for m in MODELS for r in curve(m)], path, look),
    "curves of a verb": lambda path, look: plot_curves(
        [*curve("", verb="hold"), *curve("", verb="ride", object="bicycle")], path, look
    ),
    "confusion": lambda path, look: plot_confusion(
        [panel("Verbs", HICO.verbs), panel("Objects", HICO.objects)], path, look
    ),
    "ratings by majority": lambda path, look: plot_counts(
        MODELS, [votes(f"majority {at}", len(MODELS)) for at in range(5)], path, look
    ),
    "kappa of five": lambda path, look: plot_kappa(
        MODELS, {(a, b): None if a else 0.8 for a, b in combinations(range(5), 2)}, path, look
    ),
    "confusion of two": lambda path, look: plot_confusion([panel("Verbs", HICO.verbs[:2])], path, look),
}


LONG = [f"{'a very long name of a model ' * 3}{number}" for number in range(8)]
THINGS = tuple(f"{'thing ' * (1 + number % 9)}{number}" for number in range(300))
ODD: dict[str, Draw] = {
    "long names": lambda path, look: plot_diagnosis(
        [row for name in LONG for row in deltas(name)], {name: composition() for name in LONG}, path, look
    ),
    "losses, nothing, and large values": lambda path, look: plot_diagnosis(
        [*deltas("A", -99.9), *deltas("B", None), *deltas("C", 99.9)], {"A": composition(5_000_000, 2)}, path, look
    ),
    "one group": lambda path, look: plot_frequency(
        [{**row, "subset": "rare"} for row in deltas("", 0.0)[:-2]], path, look
    ),
    "one class": lambda path, look: plot_curves(curve("", verb="hold", object="cup"), path, look),
    "300 classes": lambda path, look: plot_curves(
        [row for name in THINGS for row in curve(LONG[0], verb=name, object=name)], path, look
    ),
    "300 confused": lambda path, look: plot_confusion([panel(LONG[0], THINGS)] * 5, path, look),
    "one name": lambda path, look: plot_confusion([panel("Verbs", ("x",))], path, look),
    "two near models": lambda path, look: plot_pairs(
        [{**row, "value": row["value"] + place / 1000} for place, name in enumerate(LONG[:2]) for row in sweep(name)],
        path,
        look,
    ),
    "one pair of thresholds": lambda path, look: plot_pairs(sweep("")[:2], path, look),
    "ratings in millions": lambda path, look: plot_counts(
        LONG, [Counts(f"majority rating {at}", 10**7, [[10**7 - at] * 11] * 8) for at in range(3)], path, look
    ),
    "kappa of 20": lambda path, look: plot_kappa(
        THINGS[:20], dict.fromkeys(combinations(range(20), 2), -0.5), path, look
    ),
    "one severity": lambda path, look: plot_heat_maps(
        {name: {CLEAN: 100.0} for name in LONG}, [{("jpeg", 3): 100.0}] * 8, path, look=look
    ),
    "one corruption": lambda path, look: plot_robustness(
        {name: {CLEAN: 100.0, ("", "", 3): 0.0, ("", "", 0): 0.0} for name in LONG}, path, look=look
    ),
}


@pytest.mark.parametrize(
    "look", [pytest.param(name, marks=() if name == "natural" else pytest.mark.long) for name in LOOKS]
)
@pytest.mark.parametrize("name", ODD)
def test_no_words_of_odd_figures_overlap(name: str, look: str, drawn: list[Box], tmp_path: Path) -> None:
    ODD[name](str(tmp_path / "x.png"), replace(LOOKS[look], dpi=100))
    assert len(drawn) > 3
    assert list(clashes(drawn)) == []


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", FIGURES)
def test_no_words_overlap_or_are_cut_off(name: str, look: str, drawn: list[Box], tmp_path: Path) -> None:
    FIGURES[name](str(tmp_path / "x.png"), replace(LOOKS[look], dpi=100))
    assert len(drawn) > 3
    assert list(clashes(drawn)) == []


LINES = (ROOT / "docs/pictures/make.sh").read_text().splitlines()
DOCUMENTED = [line for line in LINES if line.startswith("hoicli ") and "--plot " in line]
"""The commands that draw the figures of the documents."""


@pytest.mark.long
@pytest.mark.parametrize("command", DOCUMENTED, ids=lambda command: command.split("--plot ")[1].split(".png")[0])
def test_no_words_of_documented_figures_overlap(
    command: str, drawn: list[Box], hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (FIXTURES / "sample").glob("*.jsonl.gz"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    assert hoicli(*shlex.split(command.replace("$fixtures", str(FIXTURES)))[1:]).code == 0
    assert len(drawn) > 3
    assert list(clashes(drawn)) == []


@pytest.mark.parametrize("models", [("CDN", "UPT"), ("CDN", "UPT", "HOI")])
def test_points_of_near_models_have_labels_of_their_own(
    models: tuple[str, ...], drawn: list[Box], tmp_path: Path
) -> None:
    plot_pairs([row for model in models for row in sweep(model)], str(tmp_path / "x.png"))
    assert [text for text, *_ in drawn].count("NMS 0.5") == len(models)
    assert list(clashes(drawn)) == []


def test_both_confusions_fit_a_slide(drawn: list[Box], tmp_path: Path) -> None:
    FIGURES["confusion"](str(tmp_path / "x.png"), replace(SHEETS["slide"], dpi=100))
    _, left, low, right, high = drawn[0]
    assert (right - left) / 100 < 13.33
    assert (high - low) / 100 < 7.5
    assert list(clashes(drawn)) == []


@pytest.mark.parametrize(("right", "number"), [(0, 1), (1, 1), (2, 5), (5, 5), (37, 104), (4000, 385058)])
def test_the_interval_of_a_bin_is_scipys(right: int, number: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(right, number).proportion_ci(0.95, method="wilson")
    assert wilson(100 * right / number, number) == pytest.approx((100 * expected.low, 100 * expected.high), abs=1e-4)


def test_counts_have_whole_ticks_and_one_item_is_one(drawn: list[Box], tmp_path: Path) -> None:
    plot_counts(["a", "b"], [Counts("majority 3", 1, [[0, 1], [1, 0]])], str(tmp_path / "x.png"))
    words = [text for text, *_ in drawn]
    assert "majority 3 (1 item)" in words
    assert not [text for text in words if "." in text]


@pytest.mark.long
@pytest.mark.parametrize("chosen", [PAPER, SHEETS["slide"], Look(width=3.4, font=5.0)], ids=["paper", "slide", "small"])
def test_all_three_formats_are_as_large_as_asked(chosen: Look, tmp_path: Path) -> None:
    for ending in (".png", ".svg", ".pdf"):
        FIGURES["diagnose"](str(tmp_path / f"x{ending}"), chosen)
    width = chosen.width or PAGE_WIDTH * chosen.scale
    pixels, _ = struct.unpack(">II", (tmp_path / "x.png").read_bytes()[16:24])
    assert pixels / chosen.dpi == pytest.approx(width, abs=0.02)
    svg = (tmp_path / "x.svg").read_text()
    (points,) = re.findall(r'<svg [^>]*\bwidth="([0-9.]+)pt"', svg)
    (box,) = re.findall(r'viewBox="0 0 ([0-9.]+) ', svg)
    assert float(points) / 72 == pytest.approx(width, abs=0.01)
    assert float(points) / float(box) == pytest.approx(chosen.scale, abs=1e-3)
    (media,) = re.findall(rb"/MediaBox \[ 0 0 ([0-9.]+) ", (tmp_path / "x.pdf").read_bytes())
    assert float(media) / 72 == pytest.approx(width, abs=0.01)


def test_what_is_confused_stands_together_whatever_the_order_of_names() -> None:
    shares = np.zeros((6, 6))
    for one, two in ((0, 3), (1, 4), (2, 5)):
        shares[one, two] = shares[two, one] = 10.0
    order = order_names(shares)
    assert {frozenset(order[at : at + 2]) for at in (0, 2, 4)} == {frozenset(p) for p in ((0, 3), (1, 4), (2, 5))}


def test_confusions_of_very_many_names() -> None:
    """A table of all names by all names would take 80 GB."""
    true, said, count = np.array([7, 99_999, 5]), np.array([99_999, 7, 50_000]), np.array([2, 1, 4])
    names = [f"name{at}" for at in range(100_000)]
    kept = most_confused(Panel("Verbs", names, true, said, count, 10.0 * count), 2)
    assert sorted(kept.names) == ["name5", "name50000"]  # in four confusions each, the others in three
    assert sorted(kept.shares.ravel().tolist()) == [0, 0, 0, 40]
