"""Published tables as rows: complete, sound, each with its source, and as the papers print them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.result_rows import settings_of
from hoicli.tables.published import SETS, published_rows
from hoicli.tables.row_files import result_problems
from tests.support.project import SHARED, Hoicli

PAPERS = SHARED / "papers"

Row = dict[str, Any]


def rows_of(name: str) -> list[Row]:
    return list(published_rows(name))


@pytest.mark.parametrize("name", SETS)
def test_rows_are_sound_and_name_their_source(name: str) -> None:
    rows = rows_of(name)
    assert rows
    assert not [problem for row in rows for problem in result_problems(row)]
    for row in rows:
        assert type(row["comparable"]) is bool
        assert row["source"]
        assert settings_of(row)["published"]
        assert row["comparable"] != ("not comparable" in row.get("note", "") or row["protocol"] == "published")
        assert row["protocol"] in PROTOCOLS or row["protocol"] in ("shoe", "published")
    places = [json.dumps({key: row[key] for key in row if key not in ("value", "source", "note")}) for row in rows]
    assert len(set(places)) == len(places)


def test_sources_are_files_with_a_commit_or_papers() -> None:
    for source in {row["source"] for name in SETS for row in rows_of(name)}:
        assert bool(re.search(r"\([0-9a-f]{7}\)$", source)) == ("eadme.md" in source or "README" in source)


def test_counts_are_those_of_the_datasets() -> None:
    found = {(row["protocol"], settings_of(row)["split"], row["subset"]): row["n"] for row in rows_of("zero-shot")}
    for protocol in ("gen-vlkt", "upt", "qpic"):
        assert [found[protocol, "rare_first", name] for name in ("unseen", "seen", "full")] == [120, 480, 600]
        assert [found[protocol, "unseen_verb", name] for name in ("unseen", "seen", "full")] == [84, 516, 600]
    unseen, seen, full = (found["inp-cc", "rare_first", name] for name in ("unseen", "seen", "full"))
    assert unseen + seen == full == 520
    assert {row["subset"]: row["n"] for row in rows_of("hico")} == {"full": 600, "rare": 138, "non_rare": 462}


AT_ODDS = {
    ("PPDM (Hourglass-104)", "hico-ko", ""),
    ("HOICLIP", "hico", ""),
    ("GEN-VLKT-S", "gen-vlkt", "rare_first"),
    ("GEN-VLKT-S", "gen-vlkt", "unseen_object"),
    ("GEN-VLKT-S", "gen-vlkt", "unseen_verb"),
    ("GGNet (Hourglass-104)", "ggnet", ""),
    ("QAHOI (Swin-L, 384, ImageNet-22K)", "ggnet-ko", ""),
    ("DA-HOI", "qpic", ""),
    ("DA-HOI", "qpic", "unseen_verb"),
}
"""Lines whose own three figures do not agree where they are printed."""


def test_full_is_the_mean_of_its_parts() -> None:
    """By their numbers of classes and to the printed digits, so that a figure that is mistyped here shows."""
    odd = set()
    for name, parts in (("hico", ("rare", "non_rare")), ("zero-shot", ("unseen", "seen"))):
        found: dict[tuple[str, str, str], dict[str, Row]] = {}
        for row in rows_of(name):
            line = row["tags"]["model"], row["protocol"], settings_of(row).get("split", "")
            if row["metric"] == "mAP":
                found.setdefault(line, {})[row["subset"]] = row
        for line, of in found.items():
            if "full" in of:
                mean = sum(of[part]["value"] * of[part]["n"] for part in parts) / of["full"]["n"]
                if abs(mean - of["full"]["value"]) > 0.011:
                    odd.add(line)
    assert odd == AT_ODDS


def test_a_harmonic_mean_is_that_of_the_two_figures_beside_it() -> None:
    parts: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("zero-shot"):
        key = row["subset"] if row["metric"] == "mAP" else row["metric"]
        parts.setdefault((row["tags"]["model"], settings_of(row)["split"]), {})[key] = row["value"]
    with_mean = {line: of for line, of in parts.items() if "hm" in of}
    assert len(with_mean) == 12
    for line, of in with_mean.items():
        mean = 2 * of["unseen"] * of["seen"] / (of["unseen"] + of["seen"])
        assert of["hm"] == pytest.approx(mean, abs=0.011), line


def printed(name: str, source: str = "") -> dict[str, list[str]]:
    """Model -> its figures in a set (of one source), in the shortest form that has them; papers print more zeros."""
    found: dict[str, list[str]] = {}
    columns = {metric: place for place, metric in enumerate(dict.fromkeys(row["metric"] for row in rows_of(name)))}
    for row in sorted(rows_of(name), key=lambda row: columns[row["metric"]]):  # by column, as printed
        if source in ("", settings_of(row)["published"]):
            found.setdefault(row["tags"]["model"], []).append(f"{row['value']:g}")
    return found


@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the papers' texts")
@pytest.mark.parametrize(
    ("name", "source", "file"),
    [
        ("shoe", "shoe", "shoe-supplement.txt"),
        ("shoe-vcoco", "shoe-vcoco", "shoe-supplement.txt"),
        ("hico", "rohoi", "rohoi.txt"),
        ("vcoco", "rohoi", "rohoi.txt"),
    ],
)
def test_every_figure_is_on_one_line_of_its_paper(name: str, source: str, file: str) -> None:
    lines = (PAPERS / file).read_text(encoding="utf-8").splitlines()
    for model, numbers in printed(name, source).items():
        called = model.split(" (")[0].split("-")[0]
        whole = [rf"(?<![\d.]){number}0*(?!\d)" for number in numbers]
        assert any(called in found and all(re.search(one, found) for one in whole) for found in lines), model


@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the papers' texts")
@pytest.mark.parametrize(("name", "at"), [("pairs", 0), ("pairs-vcoco", 1)])
def test_the_figures_of_diag_hoi_are_on_its_lines(name: str, at: int) -> None:
    for model, numbers in printed(name, "diag").items():
        *located, negative, action = numbers
        assert any(row[4 * at : 4 * at + 4] == located for row in lines_of_diag_hoi(model)), model
        assert any(row[2 * at : 2 * at + 2] == [negative, action] for row in lines_of_diag_hoi(model)), model


def lines_of_diag_hoi(model: str) -> list[list[str]]:
    """The figures of each line of the paper's tables that is about a model, without what they differ by."""
    lines = (PAPERS / "diag-hoi-arxiv.txt").read_text(encoding="utf-8").splitlines()
    cells = [[cell for cell in re.split(r"\t+", line) if cell] for line in lines if line.count("\t") > 4]
    called, backbone = re.fullmatch(r"(\S+) \(([^,)]+).*\)", model).groups()  # type: ignore[union-attr]
    backbone = backbone.replace("R1", "ResNet1").replace("R5", "ResNet5").replace("-", "")
    of_model = [row for row in cells if any(cell.startswith(f"{called} [") for cell in row) and backbone in row]
    figures = [[cell.split(" (")[0] for cell in row[row.index(backbone) + 1 :]] for row in of_model]
    return [[f"{float(cell):g}" if re.fullmatch(r"[\d.]+", cell) else cell for cell in row] for row in figures]


@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the papers' texts")
@pytest.mark.parametrize(
    ("name", "source", "columns"),
    [("pairs", "diag-4", slice(6)), ("pairs", "diag-5", slice(4, 8)), ("pairs-vcoco", "diag-6", slice(4, 8))],
)
def test_the_figures_of_its_further_tables_are_on_its_lines(name: str, source: str, columns: slice) -> None:
    models = printed(name, source)
    assert models
    for model, numbers in models.items():
        assert any(sorted(row[columns]) == sorted(numbers) for row in lines_of_diag_hoi(model)), model


def test_a_negative_ap_above_the_released_grid_is_not_comparable() -> None:
    """The released code adds precisions at 101 of 110 recall values, so nothing can reach more than 101/110."""
    for row in rows_of("pairs"):
        above = row["metric"] == "neg_ap" and row["value"] >= 91.85  # rounded, 91.818 is 91.8
        assert not (row["comparable"] and above)
        assert ("at most 101/110" in row.get("note", "")) == above


def test_the_command(hoicli: Hoicli) -> None:
    rows = [json.loads(line) for line in hoicli("table", "--published", "hico", "--format", "jsonl").out.splitlines()]
    assert rows == rows_of("hico")
