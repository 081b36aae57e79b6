"""Rows of several models in one table: what a place holds, what is ranked, what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import DataError, UsageError
from hoicli.io.messages import kept_notes
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.result_rows import Row, parse_signature, signature
from hoicli.tables.arrangement import arrange_by_keys, arrange_by_layout, tables_of
from hoicli.tables.cells import PlacedRow, Showing, TextTable
from hoicli.tables.layouts import LAYOUTS, layout_of
from hoicli.tables.row_files import read_rows
from hoicli.tables.writers import WRITERS, write_table

SUBSETS = ("full", "rare", "non_rare")


def row(model: str, value: float | None, subset: str = "full", **more: Any) -> PlacedRow:
    """A row of eval, by default of `hico`; `settings` go into its signature."""
    protocol = more.pop("protocol", "hico")
    settings = {"protocol": protocol, "data": "hico", "gt": "aa", **more.pop("settings", {})}
    tags = {"model": model, **more.pop("tags", {})}
    file, number = more.pop("place", (f"{model}.jsonl", 1))
    base = {"metric": "mAP", "subset": subset, "value": value, "n": 600, "unit": "%", "protocol": protocol}
    made = PlacedRow({**base, "tags": tags, "signature": signature(settings), **more})
    made.line = Line(file, number, b"")
    return made


def hico(rows: Sequence[PlacedRow], **showing: Any) -> TextTable:
    return arrange_by_layout(rows, LAYOUTS["hico"], Showing(**showing))[0]


def test_a_line_a_model() -> None:
    rows = [row(model, at + len(subset), subset) for at, model in enumerate("ab") for subset in SUBSETS]
    rows += [row("a", 50.0, subset, protocol="hico-ko") for subset in SUBSETS]
    table = hico(rows)
    assert table.above == ["", "Default", "", "", "Known Object", "", ""]
    assert table.heads == ["Method", *["Full", "Rare", "Non-rare"] * 2]
    assert table.lines == [
        ["a", "4.00", "4.00", "8.00", "50.00", "50.00", "50.00"],
        ["b", "5.00", "5.00", "9.00", "-", "-", "-"],
    ]
    assert table.best == {(1, 1), (1, 2), (1, 3)}
    assert table.second == {(0, 1), (0, 2), (0, 3)}
    assert table.settings.startswith("settings: data:hico|gt:aa|version:")
    assert table.settings.endswith("; Default: protocol:hico; Known Object: protocol:hico-ko")


def test_values_that_print_equal_share_their_mark() -> None:
    table = hico([row("a", 1.001), row("b", 1.004), row("c", 0.5), row("d", None)])
    assert (table.best, table.second) == ({(0, 1), (1, 1)}, {(2, 1)})


def test_lower_is_better_where_it_is() -> None:
    rows = [row(model, value, protocol="shoe", metric="gt_miss_rate") for model, value in (("a", 3.0), ("b", 2.0))]
    table, _ = arrange_by_layout(rows, LAYOUTS["shoe"], Showing())
    assert table.best == {(1, 1)}
    duplicates = {"protocol": "diag", "metric": "delta_mAP", "oracle": "duplicate"}
    gains = [row(model, value, **duplicates) for model, value in (("a", 3.0), ("b", 2.0))]
    assert not arrange_by_layout(gains, LAYOUTS["diagnose"], Showing())[0].best, "it is not known which is better"


def test_two_rows_of_one_value_are_refused_with_both_places() -> None:
    with pytest.raises(DataError, match=r"b.jsonl:2: the same mAP full as a.jsonl:1 has; leave one"):
        hico([row("a", 1.0), row("a", 1.0, place=("b.jsonl", 2))])
    with pytest.raises(DataError, match=r"as a.jsonl:1 has; they differ in signature \(.*nms:0.7.*jq's select"):
        hico([row("a", 1.0), row("a", 2.0, settings={"nms": "0.7"})])
    with pytest.raises(
        DataError, match=r"mean_max_recall full .* a.jsonl:1 has; they differ in metric \(mAP, mean_max"
    ):
        arrange_by_keys([row("a", 1.0), row("a", 2.0, metric="mean_max_recall")], ["tag.model"], ["subset"], Showing())


def test_another_protocol_stands_in_with_a_note_and_without_a_rank() -> None:
    rows = [row("a", 1.0), row("b", 2.0), row("c", 9.0, protocol="upt"), row("a", 5.0, protocol="upt")]
    table, left = arrange_by_layout(rows, LAYOUTS["hico"], Showing())
    assert [line[1] for line in table.lines] == ["1.00", "2.00", "9.00"]
    assert (table.best, table.second) == ({(1, 1)}, {(0, 1)})
    assert table.notes == [("*", "made with protocol:upt, unlike the others (protocol:hico): not ranked with them")]
    assert table.marks == {(2, 0): "*"}
    assert left == [rows[3]]


@pytest.mark.parametrize(("settings", "ranked"), [
    ({"gt": "bb"}, False),
    ({"iou": "0.75"}, False),
    ({"noint": "ignored"}, False),
    ({"labels": "derived"}, False),
    ({"nms": "0.7"}, True),
    ({"boot": "100", "ci": "student", "seed": "1"}, True),
])  # fmt: skip
def test_what_was_made_otherwise_is_said(settings: dict[str, str], ranked: bool) -> None:
    table = hico([row("a", 1.0), row("b", 2.0), row("c", 9.0, settings=settings)])
    assert table.best == {(2 if ranked else 1, 1)}
    told = f"{table.notes} {table.settings}"
    assert all(f"{key}:{value}" in told for key, value in settings.items())
    assert ("not ranked" in told) is not ranked


def test_two_datasets_in_one_column_are_refused() -> None:
    with pytest.raises(DataError, match=r"b.jsonl:1: is of vcoco, a.jsonl:1 of hico: no column can hold both"):
        hico([row("a", 1.0), row("b", 2.0, settings={"data": "vcoco"})])


def test_published_numbers_beside_ones_own() -> None:
    published = row("p", 9.0, comparable=True, settings={"published": "qpic", "gt": "hico-test"})
    other = row("o", 99.0, comparable=False, note="elsewhere", settings={"published": "rohoi"})
    table = hico([published, other, row("a", 1.0, settings={"gt": "hico-test-7cba1727"})])
    assert (table.best, table.second) == ({(0, 1)}, {(2, 1)})
    assert table.notes == [("*", "elsewhere")]
    assert "published" not in table.settings
    table = hico([published, row("q", 9.0, settings={"gt": "hico-test"}), row("a", 99.0)])
    assert table.best == {(0, 1), (1, 1)}
    assert table.notes == [("*", "made with gt:aa, unlike the others (gt:hico-test): not ranked with them")]
    unnamed = row("v", 9.0, comparable=True, settings={"published": "qpic"})
    unnamed["signature"] = unnamed["signature"].replace("|gt:aa", "")
    assert hico([unnamed, row("a", 1.0)]).second == {(1, 1)}


def test_over_seeds() -> None:
    rows = [row("a", value, tags={"seed": str(at)}) for at, value in enumerate((1.0, 2.0, 6.0))]
    rows += [row("b", 2.5), row("c", 4.0, tags={"seed": "0"})]
    table = hico(rows, over="seed")
    assert [line[1] for line in table.lines] == ["3.00 ± 2.65", "2.50", "4.00"]
    assert [note for _, note in table.notes] == ["mean ± sample standard deviation over seed, n = 3", "of one seed"]
    assert table.best == {(2, 1)}
    mixed = [row("a", 9.0, tags={"seed": seed}, settings={"nms": seed}) for seed in "12"]
    table = hico([*mixed, row("b", 2.0), row("c", 1.0)], over="seed")
    assert table.best == {(1, 1)}, "a mean of what was not made alike has no rank"
    assert "different settings in one mean" in table.notes[1][1]
    assert "; a: nms:1 or 2" in table.settings
    with pytest.raises(DataError, match=r"they differ in tag.seed \(1, 1\)|the same mAP full"):
        hico([*rows, row("a", 1.0, tags={"seed": "1"})], over="seed")


def test_intervals_on_request() -> None:
    sure = row("a", 1.5, ci_low=1.0, ci_high=2.0)
    assert hico([sure]).lines == [["a", "1.50"]]
    assert hico([sure], intervals=True).lines == [["a", "1.50 [1.00, 2.00]"]]


def test_splits_side_by_side() -> None:
    rows = [
        row("a", float(at), subset, settings={"split": split})
        for at, split in enumerate(("unseen_verb", "rare_first"))
        for subset in ("unseen", "seen", "full")
    ]
    layout = layout_of(rows)
    assert layout is LAYOUTS["zero-shot"]
    table, _ = arrange_by_layout(rows, layout, Showing())
    assert table.above == ["", "RF-UC", "", "", "UV", "", ""]
    assert table.lines == [["a", "1.00", "1.00", "1.00", "0.00", "0.00", "0.00"]]


def test_views_are_no_rivals() -> None:
    rows = [row("a", value, tags={"iou": iou}, settings={"iou": iou}) for iou, value in (("0.5", 2.0), ("0.75", 1.0))]
    table = hico(rows)
    assert not table.best
    assert not table.notes
    assert table.heads == ["Method", "iou", "Full"]
    mixed = hico([*rows, row("b", 3.0, tags={"iou": "0.5"}, settings={"iou": "0.5", "noint": "ignored"})])
    assert [note for _, note in mixed.notes] == ["made with noint:ignored, unlike the others: not ranked with them"]


def test_what_sets_a_value_apart_hides_none_of_its_other_settings() -> None:
    rows = [row("a", 1.0), row("b", 2.0, settings={"noint": "ignored", "nms": "0.7/1/0.5", "boot": "1000"})]
    table = hico(rows)
    assert [note for _, note in table.notes] == ["made with noint:ignored, unlike the others: not ranked with them"]
    assert table.settings.startswith("settings: protocol:hico|data:hico|gt:aa|version:")
    assert table.settings.endswith("; b: nms:0.7/1/0.5|boot:1000")
    without = hico([row("a", 1.0, settings={"noint": "ignored"}), row("c", 1.0, settings={"noint": "ignored"}),
                    row("b", 2.0, settings={"nms": "0.7/1/0.5"})])  # fmt: skip
    assert "|noint:ignored|" in without.settings
    assert without.settings.endswith("; b: nms:0.7/1/0.5")


def test_the_ground_truth_of_most_stands_once_where_published_values_are_most() -> None:
    published = [row(name, 1.0, settings={"gt": "hico-test", "published": "p"}) for name in "ab"]
    others = row("c", 1.0, protocol="upt", settings={"gt": "hico-test", "published": "p"})
    assert "|gt:hico-test|" in hico([*published, others, row("own", 2.0)]).settings
    assert "; " not in hico([*published, others, row("own", 2.0)]).settings
    assert "|gt:aa|" in hico([others, row("own", 2.0), row("too", 3.0)]).settings


def test_a_column_is_no_setting_for_being_called_like_one() -> None:
    """A tag `noint`, a class's `verb` beside SHOE's weight of verbs: their values are not the settings'."""
    rows = [row("a", 17.91, tags={"noint": "no"}, oracle="none"),
            row("a", 22.71, tags={"noint": "yes"}, oracle="none", settings={"noint": "ignored"})]  # fmt: skip
    assert arrange_by_keys(rows, ["oracle"], ["tag.noint"], Showing()).settings.endswith("; yes: noint:ignored")
    (of_class,) = tables_of([row("a", 1.0, verb="ride", object="bicycle", settings={"verb": "0.5"})])
    assert "|verb:0.5|" in of_class.settings
    (view,) = tables_of([row("a", 1.0, nms=0.7, settings={"nms": "0.5/1/0.5"})])
    assert "|nms:0.5/1/0.5|" in view.settings


SETTINGS = {"nms": "0.7/1/0.5", "noint": "ignored", "topk": "9", "iou": "0.75", "boot": "1000", "repairs": "kept"}


@pytest.mark.parametrize("seed", range(40))
def test_every_setting_is_shown_in_every_layout_and_notation(seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        row(model, chance.random(), subset, protocol=protocol, oracle="none", tags={"noint": "x"}, settings=settings)
        for model in "abc"
        for settings in [{key: value for key, value in SETTINGS.items() if chance.random() < 0.4}]
        for protocol in ("hico", "hico-ko")
        for subset in SUBSETS
    ]
    tables = [hico(rows), arrange_by_keys(rows, ["tag.model"], ["protocol", "subset"], Showing()), *tables_of(rows)]
    tables.append(arrange_by_keys(rows, ["subset"], ["tag.model", "protocol"], Showing()))
    settings = {part for of_row in rows for part in parse_signature(of_row["signature"]) if part[0] != "protocol"}
    for table in tables:
        for notation in WRITERS:
            text = write_table(table, notation)
            assert [f"{key}:{value}" for key, value in settings if f"{key}:{value}" not in text] == [], notation


def test_pivots() -> None:
    rows = [row(model, 1.0, subset) for model in "ab" for subset in SUBSETS]
    table = arrange_by_keys(rows, ["tag.model"], ["protocol", "subset"], Showing())
    assert (table.above, table.heads) == (["", "hico", "", ""], ["model", *SUBSETS])
    assert "protocol" not in table.settings
    table = arrange_by_keys(rows, ["subset"], ["tag.model"], Showing())
    assert table.heads == ["subset", "a", "b"]
    assert not table.best, "subsets are no rivals"
    with pytest.raises(UsageError, match=r"tag.seed: no row has it; choose from tag.model, metric, subset, protocol"):
        arrange_by_keys(rows, ["tag.seed"], ["subset"], Showing())


def test_the_order_of_models_is_all_that_order_changes() -> None:
    rows = [row(model, at + len(subset), subset) for at, model in enumerate("abc") for subset in SUBSETS]
    rows += [row("c", 5.0, protocol="hico-ko", settings={"labels": "derived"}), row("b", 4.0, protocol="hico-ko")]

    def lines(rows: Sequence[PlacedRow]) -> list[str]:
        return sorted(write_table(hico(rows), "csv").splitlines())

    assert lines(rows[::-1]) == lines(rows)


def test_a_row_without_tags_has_the_name_of_its_file(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.jsonl", "two.rows.jsonl", "deeper/one.jsonl")]
    paths[2].parent.mkdir()
    for at, path in enumerate(paths):
        path.write_text(json.dumps({**row("x", 1.0), "tags": {"model": "named"} if at == 1 else {}}) + "\n")

    def models(*chosen: Path) -> list[str]:
        policy = ErrorPolicy()
        rows = read_rows(Stream([str(path) for path in chosen], "rows"), policy, metrics=[])
        return [found["tags"].get("model", "") for found in rows]

    assert models(*paths) == [str(paths[0]), "named", str(paths[2])]
    assert models(*paths[:2]) == ["one", "named"]
    assert models(paths[0]) == [""]


def test_a_bad_line_is_named_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    bad = {**row("x", 1.0), "ci_low": "low"}
    path.write_text(json.dumps(bad) + "\n" + json.dumps(row("x", 1.0)) + "\n")
    with pytest.raises(DataError, match=r"rows.jsonl:1: ci_low: no finite number"):
        read_rows(Stream([str(path)], "rows"), ErrorPolicy(), metrics=[])
    policy = ErrorPolicy(skip=True)
    with kept_notes():
        found = read_rows(Stream([str(path)], "rows"), policy, metrics=["mAP"])
    assert (len(found), policy.skipped) == (1, 1)


@pytest.mark.parametrize("laid_out", [True, False])
def test_a_tag_of_its_own_for_each_row_is_refused(*, laid_out: bool) -> None:
    rows: list[Row] = [{**row("a", 1.0), "tags": {f"t{number}": "x"}} for number in range(1500)]
    with pytest.raises(DataError, match="1,500 values would be an empty table"):
        arrange_by_layout(rows, LAYOUTS["hico"], Showing()) if laid_out else tables_of(rows, strict=True)
