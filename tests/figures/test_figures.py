"""Figures by their content: the words in an SVG, the bytes of all three formats, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import UsageError
from hoicli.figures.curve_plots import plot_pairs
from hoicli.figures.diagnosis_plot import NO_SUM, plot_diagnosis, plot_frequency, plot_no_interaction
from hoicli.figures.styles import STYLES
from hoicli.records.oracles import ORACLES
from tests.support.figures import Rows, deltas, sweep, words

COMPOSITION = {
    "edges": [0, 10, 20, 30],
    "counts": {"true_positive": [6, 2, 0], "interaction": [4, 8, 0], "both_boxes": [0, 0, 0]},
}


def drawn(path: Path, rows: Rows, compositions: dict[str, Any] | None = None) -> list[str]:
    plot_diagnosis(rows, compositions or {}, str(path))
    return words(path)


def test_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = drawn(tmp_path / "one.svg", deltas("CDN", interaction=12.34), {"CDN": COMPOSITION})
    assert [text for text in texts if text in {STYLES[oracle].words for oracle in ORACLES}][: len(ORACLES)] == [
        STYLES[oracle].words for oracle in ORACLES
    ]
    assert {"12.3", "True positive"} <= set(texts)
    assert "mAP gained by fixing errors: CDN" in " ".join(texts)  # in two lines
    assert NO_SUM not in texts  # beside the picture, not in it
    said = f"{tmp_path / 'one.svg'}: {NO_SUM}"
    assert capsys.readouterr().err == f"hoicli: {said}\n"
    assert NO_SUM in (tmp_path / "one.svg").read_text()  # its description
    assert texts.count("2.0") == len(ORACLES) - 1
    assert texts.count("Both boxes") == 1  # an oracle, but without a prediction nothing for the legend
    assert not {"77.7", "66.6"} & set(texts)


def test_several_models_share_a_heading(tmp_path: Path) -> None:
    rows = [*deltas("CDN"), *deltas("UPT", 3.14)]
    texts = drawn(tmp_path / "two.svg", rows, {"UPT": COMPOSITION, "CDN": COMPOSITION})
    assert texts.count("Interaction") == 2  # the heading and the legend
    assert texts.count("3.1") == len(ORACLES)
    assert texts.count("UPT") == len(ORACLES) + 1  # a bar for each oracle, and a panel
    assert "Predictions by rank: CDN" in texts  # the order of the rows


def test_a_fifth_composition_is_left_out_and_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"model {number}" for number in range(5)]
    rows = [row for name in names for row in deltas(name)]
    texts = drawn(tmp_path / "five.svg", rows, dict.fromkeys(names, COMPOSITION))
    assert f"{NO_SUM}  Composition: the first 4 of 5 models." in capsys.readouterr().err
    assert (texts.count("model 3"), texts.count("model 4")) == (len(ORACLES) + 1, len(ORACLES))


def test_nothing_to_average_is_a_dash_and_a_loss_is_drawn_too(tmp_path: Path) -> None:
    empty = {"edges": [0, 0, 0], "counts": {"true_positive": [0, 0]}}
    texts = drawn(tmp_path / "none.svg", deltas(value=None, duplicate=float("nan"), association=-1.5), {"": empty})
    assert texts.count("\N{EN DASH}") == len(ORACLES) - 1
    assert "\N{MINUS SIGN}1.5" in texts


def test_names_are_text_and_short(tmp_path: Path) -> None:
    names = ["$x^$ & <b>", "a\nb\x00c", "n" * 50, "\N{CJK UNIFIED IDEOGRAPH-4E2D}", "$"]
    texts = drawn(tmp_path / "names.svg", [row for name in names for row in deltas(name)])
    for shown in (
        "$x^$ & <b>",
        "a\\nb\\x00c",
        "n" * 21 + "\N{HORIZONTAL ELLIPSIS}",
        "\N{CJK UNIFIED IDEOGRAPH-4E2D}",
        "$",
    ):
        assert texts.count(shown) == len(ORACLES)
    plot_diagnosis(deltas(names[3]), {}, str(tmp_path / "glyph.png"))  # no warning about the font


def groups(model: str, **values: float) -> Rows:
    """Rows of each group of classes, and of all (99), which no such figure shows."""
    return [{**row, "subset": name, "value": value, "tags": {}} for name, value in {**values, "full": 99.0}.items()
            for row in deltas(model) if row["metric"] == "delta_mAP" and row["subset"] == "full"]  # fmt: skip


def test_groups_of_classes_have_a_bar_each_below_their_oracle(tmp_path: Path) -> None:
    path = tmp_path / "groups.svg"
    plot_frequency([*groups("CDN", rare=12.3, non_rare=3.2), *groups("UPT", rare=6.9, non_rare=1.4)], str(path))
    texts = words(path)
    for text in ("rare, CDN", "non-rare, CDN", "rare, UPT", "non-rare, UPT", "12.3", "1.4"):
        assert texts.count(text) == len(ORACLES)
    assert "99.0" not in texts
    parts = [{**row, "tags": {"slice": "test_frequency", "part": row["subset"]}, "subset": "full"}
             for row in groups("CDN", **{"0-9": 4.1, "10+": 2.3})]  # fmt: skip
    plot_frequency([row for row in parts if row["tags"]["part"] != "full"], str(path))
    assert words(path).count("0-9") == words(path).count("4.1") == len(ORACLES)
    with pytest.raises(UsageError, match="no delta_mAP of such groups"):
        plot_frequency(groups("CDN"), str(path))
    with pytest.raises(UsageError, match="two values of duplicate, rare"):
        plot_frequency(groups("CDN", rare=1.0) * 2, str(path))


def test_association_errors_without_and_with_no_interaction(tmp_path: Path) -> None:
    path = tmp_path / "association.svg"
    left_out = [{**row, "value": 18.5} for row in groups("CDN")]
    counted = [{**row, "value": 22.75, "tags": {"noint": "counted"}} for row in left_out]
    plot_no_interaction([*left_out, *counted], str(path))
    texts = words(path)
    for text in ("without no_interaction", "with no_interaction", "18.5", "22.8"):
        assert texts.count(text) == 1
    assert "errors: CDN" in " ".join(texts)


def test_pairs_by_the_thresholds_of_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "pairs.svg"
    rows = [*sweep("CDN"), *sweep("UPT", "det_threshold")]
    plot_pairs([{**row, "value": None} if row["nms"] == 0.25 else row for row in rows], str(path))
    texts = words(path)
    assert {"CDN", "UPT", "pair recall (%)", "pair precision (%)"} <= set(texts)
    points = [text for text in texts if text.startswith(("all", "NMS", "score"))]
    assert points == ["all pairs", "NMS 0.5", "all pairs", "score 0.5", "score 0.25"]
    with pytest.raises(UsageError, match="no pair recall"):
        plot_pairs([{**row, "value": None} for row in rows], str(path))


def test_a_caveat_is_said_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signed = {"signature": "protocol:x|people:unmarked"}
    plot_diagnosis([{**row, **signed} for row in deltas("CDN")], {}, str(tmp_path / "x.svg"))
    said = "Caveat: the ground truth does not mark the people nobody annotated"
    assert said in capsys.readouterr().err
    assert said in (tmp_path / "x.svg").read_text()
    plot_diagnosis(deltas("CDN"), {}, str(tmp_path / "x.svg"))
    assert "Caveat" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "ending", [pytest.param(".PNG", marks=pytest.mark.long), ".svg", pytest.param(".pdf", marks=pytest.mark.long)]
)
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, ending: str) -> None:
    import matplotlib

    before = matplotlib.rcParams.copy()  # dict() would ask for the backend, which imports pyplot
    for name in ("a", "b"):
        plot_diagnosis(deltas("CDN"), {"CDN": COMPOSITION}, str(tmp_path / f"{name}{ending}"))
        matplotlib.rcParams["font.size"] = 30  # someone's own settings change nothing
    matplotlib.rcParams["font.size"] = before["font.size"]
    one, other = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("a", "b"))
    assert one == other
    assert one.startswith((b"\x89PNG", b"<?xml", b"%PDF"))
    assert matplotlib.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules
    assert len(list(tmp_path.iterdir())) == 2  # nothing left over


def test_what_is_refused(tmp_path: Path) -> None:
    good = str(tmp_path / "x.svg")
    for name in ("x.jpg", "x", "svg"):
        with pytest.raises(UsageError, match=r"end the name in \.png, \.svg or \.pdf"):
            plot_diagnosis(deltas(), {}, str(tmp_path / name))
    with pytest.raises(UsageError, match=r"there is no folder .*none; make it first"):
        plot_diagnosis(deltas(), {}, str(tmp_path / "none" / "x.svg"))
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        plot_diagnosis(deltas(), {}, str(tmp_path / "folder.svg"))
    with pytest.raises(UsageError, match="no delta_mAP"):
        plot_diagnosis([], {"CDN": COMPOSITION}, good)
    with pytest.raises(UsageError, match=r"two values of oracle duplicate for model CDN; .*--tag model=NAME"):
        plot_diagnosis([*deltas("CDN"), *deltas("CDN")], {}, good)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]
