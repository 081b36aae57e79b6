"""`robust`: the published figures, indices worked by hand, what is refused, and indifference to order and shards."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli import __version__
from hoicli.corruption.catalogue import FAMILIES, OTHER, ROHOI, family_of
from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.parsing import dump
from hoicli.robustness.gathering import Gathering
from hoicli.robustness.grids import Benchmark, Grid, build_grids
from hoicli.robustness.indices import cri, cri_term, deviation, mri, relative_drop
from hoicli.robustness.robustness_rows import rank_grids, robustness_rows
from hoicli.tables.row_files import parse_result_row
from tests.support import standin
from tests.support.figures import words
from tests.support.project import ROBUST, Hoicli, parsed, records_of, refusal, written

Row = dict[str, Any]
PARTS = {"corruption", "family", "severity"}
SIGNATURE = f"protocol:hico|data:hico|version:{__version__}"


def row(value: float | None, corruption: str = "clean", severity: int | None = None, **changes: Any) -> Row:
    """A result row as `eval` writes it; tags beyond the cell's own come as `tags`."""
    tags = {**changes.pop("tags", {}), "corruption": corruption}
    if severity is not None:
        tags = {"recipe": "a recipe", **tags, "severity": str(severity)}
    common = {"metric": "mAP", "subset": "full", "n": 600, "unit": "%", "protocol": "hico", "signature": SIGNATURE}
    return {**common, "value": value, "tags": tags, **changes}


def grid_rows(
    values: Mapping[str, Sequence[float]], clean: float | None = 40.0, model: str = "", **changes: Any
) -> list[Row]:
    """The rows of a grid: corruption -> values by severity from 1 on."""
    if model:
        changes = {**changes, "tags": {"model": model}}
    rows = [] if clean is None else [row(clean, **changes)]
    return rows + [
        row(value, corruption, severity, **changes)
        for corruption, levels in values.items()
        for severity, value in enumerate(levels, start=1)
    ]


def falling(start: float = 35.0, step: float = 5.0) -> dict[str, Sequence[float]]:
    """A complete grid whose corruptions differ, of which none falls to 0."""
    return {
        name: [(start - at / 4) * (1 - step * level / (30 + 10 * (at % 3))) for level in range(5)]
        for at, name in enumerate(ROHOI)
    }


def lines(rows: list[Row], file: str = "rows.jsonl") -> list[Line]:
    return [Line(file, number, dump(record)) for number, record in enumerate(rows, start=1)]


def gather(
    rows: list[Row], *, allow_missing: bool = False, unit: str | None = None, **choice: Any
) -> tuple[list[Grid], list[str]]:
    gathering = Gathering(**choice)
    for line in lines(rows):
        gathering.add(parse_result_row(line))
    return build_grids(gathering, Benchmark(), unit=unit, allow_missing=allow_missing)


def results(hoicli: Hoicli, *arguments: object) -> list[Row]:
    return records_of(hoicli("robust", "--format", "jsonl", *arguments))


def whole(rows: list[Row], metric: str) -> Any:
    (value,) = (row["value"] for row in rows if row["metric"] == metric and not PARTS & row.keys())
    return value


def test_indices_by_hand() -> None:
    levels = {"mist": [30.0, 10.0], "snow": [20.0, 20.0], "hail": [0.0, 0.0, 30.0]}
    assert mri(levels) == pytest.approx((20 + 20 + 10) / 3)
    assert deviation(levels["mist"]) == 10  # the population's; a sample's would be 14.14
    assert deviation(levels["hail"]) == pytest.approx(math.sqrt(200))
    assert cri_term(levels["mist"], 40) == pytest.approx(0.5 / (1 + math.log(11)))
    assert cri_term(levels["snow"], 40) == 0.5
    assert cri(levels, 40) == pytest.approx((0.5 / 3.3978952728 + 0.5 + 0.25 / (1 + math.log(1 + math.sqrt(200)))) / 3)
    assert relative_drop(30, 40) == 25
    assert relative_drop(50, 40) == -25
    assert relative_drop(50, None) is None


grids_of_numbers = st.dictionaries(
    st.sampled_from(ROHOI), st.lists(st.floats(0, 100), min_size=1, max_size=6), min_size=1
)


@given(grids_of_numbers, st.floats(0.5, 100), st.randoms())
def test_indices_are_those_of_a_slow_evaluator_in_any_order(
    levels: dict[str, list[float]], clean: float, shuffle: random.Random
) -> None:
    slow_mri = statistics.fmean(statistics.fmean(values) for values in levels.values())
    slow_cri = 0.0
    for values in levels.values():
        penalty = 1 / (1 + math.log1p(statistics.pstdev(values)))
        slow_cri += statistics.fmean(values) / clean * penalty / len(levels)
    assert mri(levels) == pytest.approx(slow_mri, rel=1e-12, abs=1e-12)
    assert cri(levels, clean) == pytest.approx(slow_cri, rel=1e-6, abs=1e-9)
    names = list(levels)
    shuffle.shuffle(names)
    other = {name: shuffle.sample(levels[name], len(levels[name])) for name in names}
    assert (mri(other), cri(other, clean)) == (mri(levels), cri(levels, clean))


def test_the_families_are_the_papers() -> None:
    assert Counter(map(family_of, ROHOI)) == {"optical": 4, "sensor": 6, "environment": 4, "geometry": 6}
    assert [family_of(name) for name in ("jpeg", "fog", "mist")] == ["sensor", "weather", "other"]


def test_the_rows_of_a_grid(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = results(hoicli, written(tmp_path / "rows.jsonl", grid_rows(falling(), tags={})))
    levels = {name: list(values) for name, values in falling().items()}
    assert whole(rows, "clean") == 40
    assert whole(rows, "mri") == mri(levels)
    assert whole(rows, "cri") == cri(levels, 40)
    assert whole(rows, "relative_drop") == relative_drop(mri(levels), 40)
    (worst,) = (row for row in rows if row["metric"] == "worst")
    lowest = min(min(values) for values in levels.values())
    assert worst["value"] == lowest == levels[worst["corruption"]][worst["severity"] - 1]
    assert not [row for row in rows if row["metric"] == "rank"]
    by_corruption = {row["corruption"]: row for row in rows if row["metric"] == "mean" and "corruption" in row}
    assert list(by_corruption) == list(ROHOI)
    assert by_corruption["jpeg"]["value"] == statistics.fmean(levels["jpeg"])
    assert (by_corruption["jpeg"]["family"], by_corruption["jpeg"]["n"]) == ("sensor", 5)
    assert sum(row["metric"] in ("sigma", "cri_term") for row in rows) == 40
    terms = [row["value"] for row in rows if row["metric"] == "cri_term"]
    assert whole(rows, "cri") == pytest.approx(statistics.fmean(terms))
    parts = {(row.get("family"), row.get("severity")): row for row in rows
             if row["metric"] == "mean" and "corruption" not in row}  # fmt: skip
    assert len(parts) == 4 + 5 + 20
    assert parts["optical", None]["value"] == pytest.approx(
        statistics.fmean(statistics.fmean(levels[name]) for name in ROHOI if family_of(name) == "optical")
    )
    assert parts[None, 3]["value"] == pytest.approx(statistics.fmean(values[2] for values in levels.values()))
    assert parts["optical", 3]["n"] == 4
    for each in rows:
        assert (
            each["signature"] == f"protocol:hico|data:hico|of:mAP/full|grid:rohoi|recipe:a recipe|version:{__version__}"
        )
        assert (each["subset"], each["protocol"], each["tags"]) == ("full", "hico", {})


def test_models_are_ranked(hoicli: Hoicli, tmp_path: Path) -> None:
    low, high = grid_rows(falling(30), model="low", clean=35.0), grid_rows(falling(35), model="high")
    rows = [*low, *high, *grid_rows(falling(32), model="middle", clean=60.0)]
    path = written(tmp_path / "rows.jsonl", rows)

    order = {row["tags"]["model"]: row["value"] for row in results(hoicli, path) if row["metric"] == "rank"}
    assert order == {"high": 1, "middle": 2, "low": 3}
    table = hoicli("robust", "--format", "table", path).out
    assert table.splitlines()[0].split() == ["rank", "clean", "mri", "cri", "relative_drop", "worst"]
    assert "corruption         family" in table
    first = table.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in first[2:]] == ["high", "middle", "low", "settings:"]
    assert len(table.split("\n\n")) == 4  # summary, corruptions, families, severities


def test_equal_models_have_one_rank(hoicli: Hoicli, tmp_path: Path) -> None:
    """Equal but for what adding up in another order leaves, too."""
    shuffled = {name: values[::-1] for name, values in falling(32.1).items()}
    best, last = grid_rows(falling(35), model="best"), grid_rows(falling(30), model="last")
    rows = [*grid_rows(falling(32.1), model="b"), *best, *grid_rows(shuffled, model="a"), *last]
    found = results(hoicli, written(tmp_path / "rows.jsonl", rows))
    ranks = [(row["tags"]["model"], row["value"]) for row in found if row["metric"] == "rank"]
    assert ranks == [("best", 1), ("a", 2), ("b", 2), ("last", 4)]


def test_models_are_told_apart_by_their_tag(hoicli: Hoicli, tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", grid_rows(falling(), tags={"model": "r50", "seed": "1"}))
    two = written(tmp_path / "two.jsonl", grid_rows(falling(30), tags={"model": "r101", "seed": "1"}))
    tagged = results(hoicli, "--tag", "data=test", one, two)
    assert {row["tags"]["model"] for row in tagged} == {"r50", "r101"}
    assert tagged[0]["tags"] == {"model": "r50", "seed": "1", "data": "test"}


def test_only_what_was_chosen_counts(hoicli: Hoicli, tmp_path: Path) -> None:
    good = grid_rows(falling(), tags={})
    noise = [
        *grid_rows(falling(9), tags={}, subset="rare"),
        *grid_rows(falling(9), tags={}, metric="mean_max_recall"),
        row(3.0, "jpeg", 1, verb="ride", object="horse"),
        row(3.0, "jpeg", 1, oracle="duplicate"),
        {"metric": "count", "subset": "full", "value": 3, "unit": "predictions"},
    ]
    expected = results(hoicli, written(tmp_path / "good.jsonl", good))
    path = written(tmp_path / "rows.jsonl", [*noise, *good])
    assert results(hoicli, path) == expected
    rare = results(hoicli, "--subset", "rare", path)
    assert whole(rare, "mri") == mri(falling(9))
    assert "of:mAP/rare" in rare[0]["signature"]
    both = written(tmp_path / "both.jsonl", [*good, *grid_rows(falling(7), tags={}, protocol="upt")])
    said = refusal(hoicli("robust", both), 2)
    assert said.startswith("hoicli: the rows are of several kinds; there are mAP full hico, mAP full upt: choose")
    assert whole(results(hoicli, "--protocol", "upt", both), "mri") == mri(falling(7))


@given(st.randoms(use_true_random=True), st.integers(1, 4))
def test_neither_order_nor_shards_change_a_byte(shuffle: random.Random, shards: int) -> None:
    rows = [*grid_rows(falling(), model="a"), *grid_rows(falling(30.1, 3.3), model="b")]

    def bytes_of(parts: list[list[Row]]) -> bytes:
        gathering = Gathering()
        for number, part in enumerate(parts):
            for line in lines(part, f"{number}.jsonl"):
                gathering.add(parse_result_row(line))
        return b"".join(map(dump, robustness_rows(rank_grids(build_grids(gathering, Benchmark())[0]))))

    expected = bytes_of([rows])
    mixed = [
        {**each, "tags": dict(shuffle.sample(list(each["tags"].items()), len(each["tags"])))}
        for each in shuffle.sample(rows, len(rows))
    ]
    assert bytes_of([mixed[start::shards] for start in range(shards)]) == expected


def test_what_made_the_images_is_in_the_signature(hoicli: Hoicli, tmp_path: Path) -> None:
    """RoHOI publishes no constants: its indices on images of another recipe are another number."""
    ours = hoicli("robust", ROBUST / "rows.jsonl")
    assert ours.code == 0
    assert ours.err == (
        "hoicli: RoHOI-style, recipe hoicli-1: comparable with values of this recipe, not with RoHOI's tables, whose "
        "constants are not published\n"
    )
    assert all("|recipe:hoicli-1|" in json.loads(line)["signature"] for line in ours.out.splitlines())
    assert all("recipe" not in json.loads(line)["tags"] for line in ours.out.splitlines())
    unstated = [{**each, "tags": {k: v for k, v in each["tags"].items() if k != "recipe"}}
                for each in grid_rows(falling(), model="m")]  # fmt: skip
    result = hoicli("robust", written(tmp_path / "rows.jsonl", unstated))
    asked = "if hoicli corrupt did: eval --tag recipe=hoicli-1"
    assert result.err == f"hoicli: the rows do not say what made their images; {asked}\n"
    assert all("|recipe:unstated|" in json.loads(line)["signature"] for line in result.out.splitlines())
    other = grid_rows(falling(), model="n")
    said = "the models' images were made by different recipes: none stated, a recipe"
    assert gather([*unstated, *other])[1] == [said]
    other[9]["tags"]["recipe"] = "another"
    with pytest.raises(
        DataError, match=r"^rows.jsonl:10: tags.recipe: another, but rows.jsonl:2 has a recipe: images made in"
    ):
        gather(other)
    unstated[3]["tags"]["recipe"] = "a recipe"
    with pytest.raises(DataError, match=r"^rows.jsonl:4: tags.recipe: a recipe, but rows.jsonl:2 has none: images"):
        gather(unstated)


def test_a_package_that_made_images_is_part_of_the_recipe() -> None:
    """Without the package: rows say all that is needed."""
    ours = "hoicli-1+hoicli-mist@1.2"

    def of(*recipes: str) -> list[Row]:
        made = [row(20.0 + at, "mist", at, tags={"recipe": recipe}) for at, recipe in enumerate(recipes, start=1)]
        return [*made, *(row(30.0, "jpeg", at, tags={"recipe": "hoicli-1"}) for at in (1, 2))]

    ((grid,), _) = gather(of(ours, ours), allow_missing=True)
    assert mri(grid.values_by_corruption()) == pytest.approx((30 + 21.5) / 2)
    assert all(f"|recipe:{ours}|" in each["signature"] for each in robustness_rows(rank_grids([grid])))
    for other in ("hoicli-1+hoicli-mist@1.3", "imagenet-c+hoicli-mist@1.2"):
        with pytest.raises(DataError, match="images made in different ways do not average"):
            gather(of(ours, other), allow_missing=True)


def test_an_incomplete_grid_is_refused_and_named(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = [
        each for each in grid_rows(falling(), model="m")
        if each["tags"]["corruption"] not in ("moire", "clean") and each["tags"] != {
            "model": "m", "recipe": "a recipe", "corruption": "jpeg", "severity": "4"}
    ]  # fmt: skip
    path = written(tmp_path / "rows.jsonl", [*rows, row(None, "clean", tags={"model": "m"})])
    result = hoicli("robust", path)
    text = "model m lacks 7 of 101 cells: clean, jpeg 4, moire 1 2 3 4 5"
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{path}: {text}; evaluate them, ")
    allowed = hoicli("robust", "--allow-missing", path)
    assert (allowed.code, allowed.err) == (0, f"hoicli: {text}\n")
    found = parsed(allowed.out)
    levels = {name: list(values) for name, values in falling().items() if name != "moire"}
    del levels["jpeg"][3]
    assert whole(found, "mri") == mri(levels)
    assert (whole(found, "cri"), whole(found, "relative_drop"), whole(found, "clean")) == (None, None, None)
    (total,) = (each for each in found if each["metric"] == "mri")
    assert total["n"] == 94
    assert total["signature"].endswith(f"|grid:rohoi|recipe:a recipe|missing:7|version:{__version__}")
    table = hoicli("robust", "--allow-missing", "--format", "table", path).out
    assert table.split("\n\n")[1].splitlines()[9].split()[5] == "-"  # jpeg at 4


def test_several_models_lack_different_cells() -> None:
    rows = [
        *grid_rows(falling(), model="a")[:-1],
        *grid_rows(falling(), model="b")[:-2],
        *grid_rows(falling(), model="c"),
    ]
    with pytest.raises(DataError, match=r"model a lacks 1 of 101 cells: zoom_blur 5; evaluate"):
        gather(rows)
    _, remarks = gather(rows, allow_missing=True)
    assert remarks == [
        "model a lacks 1 of 101 cells: zoom_blur 5",
        "model b lacks 2 of 101 cells: zoom_blur 4 5",
        "the models lack different cells, so their ranks compare different averages",
    ]
    with pytest.raises(DataError, match=r"model d lacks 100 of 101 cells: .*; there is nothing to average"):
        gather([*rows, row(40.0, tags={"model": "d"})], allow_missing=True)


def test_another_benchmark(hoicli: Hoicli, tmp_path: Path) -> None:
    values = {"mist": [30.0, 20.0, 10.0], "jpeg": [35.0, 30.0, 25.0]}
    path = written(tmp_path / "rows.jsonl", grid_rows(values, tags={}))
    said = refusal(hoicli("robust", "--corruption", "rohoi", path))
    assert "the model lacks 57 of 61 cells" in said
    assert "(there is mist)" in said
    chosen = hoicli("robust", path)
    assert chosen.err == ("hoicli: averaging over 2 corruptions and severities 1, 2, 3: RoHOI has 20, at 1 to 5\n")
    assert whole(parsed(chosen.out), "mri") == mri(values)
    seen = results(hoicli, path)
    assert seen[0]["signature"].endswith(f"|grid:jpeg+mist@1+2+3|recipe:a recipe|version:{__version__}")
    assert {each.get("family") for each in seen} == {None, "sensor", "other"}
    assert whole(results(hoicli, "--corruption", "mist", "--severity", "3,1", path), "mri") == 20
    result = hoicli("robust", "--corruption", "jpeg", "--severity", "1,2,3", path)
    assert whole(parsed(result.out), "mri") == 30
    assert result.err == ("hoicli: left out, not in the grid: mist; --corruption and --severity choose\n")
    assert "left out, not in the grid: 3" in hoicli("robust", "--severity", "1,2", path).err


def test_more_than_half_of_the_benchmark_is_meant_to_be_whole(hoicli: Hoicli, tmp_path: Path) -> None:
    """Eleven corruptions are a benchmark with nine lost, ten are a choice; a number for a severity will do."""
    for count, code in ((11, 1), (10, 0)):
        values = {name: [30.0, 20.0, 10.0, 5.0, 4.0] for name in ROHOI[:count]}
        rows = grid_rows(values, tags={})
        for each in rows:
            if "severity" in each["tags"]:
                each["tags"]["severity"] = int(each["tags"]["severity"])
        result = hoicli("robust", written(tmp_path / "rows.jsonl", rows))
        assert result.code == code, result.err
    one_level = grid_rows({name: [40.0] for name in ROHOI}, tags={})
    assert whole(results(hoicli, written(tmp_path / "one.jsonl", one_level)), "mri") == 40
    some = grid_rows({name: [40.0, 30.0, 20.0] for name in ROHOI}, tags={})
    assert "lacks 40 of 101 cells" in hoicli("robust", written(tmp_path / "some.jsonl", some)).err


def scaled(factor: float, unit: str | None, clean: float | None = None) -> list[Row]:
    rows = grid_rows({name: [factor * value for value in values] for name, values in falling().items()}, factor * 40)
    if clean is not None:
        rows[0]["value"] = clean
    for each in rows:
        if unit is None:
            del each["unit"]
        else:
            each["unit"] = unit
    return rows


def test_fractions_are_caught_or_multiplied() -> None:
    expected = mri(falling())
    for rows in (scaled(0.01, "%"), scaled(0.01, None), scaled(0.01, None, 40.0), scaled(1, None, 0.4)):
        message = (
            r"rows.jsonl:\d+: value: 0\.\d+ looks like a fraction of 1, whatever .* needs percent; --unit percent "
        )
        with pytest.raises(DataError, match=message):
            gather(rows)
    for rows, unit in ((scaled(1, "%"), None), (scaled(1, None), None), (scaled(0.01, "fraction"), None),
                       (scaled(0.01, "%"), "fraction"), (scaled(0.01, None), "fraction")):  # fmt: skip
        (grid,), _ = gather(rows, unit=unit)
        assert mri(grid.values_by_corruption()) == pytest.approx(expected)
        assert grid.clean == pytest.approx(40)
    (grid,), _ = gather(scaled(0.01, "%"), unit="percent")
    assert mri(grid.values_by_corruption()) == pytest.approx(expected / 100)
    # One corruption that ends at nothing is no reason: the rest says what the unit is.
    values = {**falling(), "pixelate": [0.9, 0.5, 0.2, 0.0, 0.0]}
    assert gather(grid_rows(values))[0][0].cells["pixelate", 3] == 0.2
    # Percent beside fractions is refused whatever rows say; a model that loses everything is believed, or says so.
    lost = grid_rows({name: [0.21, 0.2, 0.0, 0.0, 0.0] for name in ROHOI}, clean=33.1)
    with pytest.raises(DataError, match=r"rows.jsonl:\d+: value: 0\.2 looks like a fraction of 1"):
        gather(lost)
    assert gather(lost, unit="percent")[0][0].cells["jpeg", 1] == 0.21
    assert mri(gather(grid_rows({name: [0.0] * 5 for name in ROHOI}))[0][0].values_by_corruption()) == 0


def test_what_is_no_percentage() -> None:
    with pytest.raises(
        DataError, match=r"rows.jsonl:2: value: 140.0 is outside 0 to 100; give a metric that is a share"
    ):
        gather([row(40.0), row(140.0, "jpeg", 1)])
    with pytest.raises(DataError, match=r"rows.jsonl:2: value: 1.5 is outside 0 to 1;"):
        gather([row(0.4, unit="fraction"), row(1.5, "jpeg", 1, unit="fraction")])
    with pytest.raises(DataError, match=r"rows.jsonl:1: value: -1.0 is outside"):
        gather([row(-1.0), row(30.0, "jpeg", 1)])
    with pytest.raises(DataError, match=r"rows.jsonl:1: unit: 'triplets' is no share of a whole; choose a metric in %"):
        gather([row(40.0, unit="triplets")])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"tags": {}}, "tags.corruption: missing; hoicli eval --tag corruption=NAME"),
        ({"tags": {"corruption": "jpeg"}}, "tags.severity: missing; give a whole number of at least 1"),
        ({"tags": {"corruption": "jpeg", "severity": "0"}}, "tags.severity: '0'; give a whole number"),
        ({"tags": {"corruption": "jpeg", "severity": "\u0661"}}, "tags.severity: '\u0661'; give a whole number"),
        ({"tags": {"corruption": "jpeg", "severity": 1.5}}, "tags: must be an object of strings"),
        ({"tags": {"corruption": "clean", "severity": "2"}}, "tags.severity: '2', but clean images have none"),
        ({"tags": {"corruption": "a|gt:x", "severity": "1"}}, "tags.corruption: 'a|gt:x' has a |, which parts"),
        ({"tags": {"corruption": "jpeg", "severity": "1", "recipe": "a|b"}}, "tags.recipe: 'a|b' has a |, which"),
        ({"metric": 3}, "metric: missing or no string"),
    ],
)
def test_a_bad_row_is_one_clear_line(hoicli: Hoicli, tmp_path: Path, bad: Row, message: str) -> None:
    rows = grid_rows(falling(), tags={})
    path = written(tmp_path / "rows.jsonl", rows)
    path.write_text(path.read_text() + json.dumps({**row(20.0, "jpeg", 1), **bad}) + "\n")
    assert refusal(hoicli("robust", path)).startswith(f"{path}:102: {message}")
    skipped = hoicli("robust", "--on-error", "skip", path)
    good = hoicli("robust", written(tmp_path / "good.jsonl", rows)).out
    assert (skipped.code, skipped.out) == (0, good.replace("|version:", "|skipped:1|version:"))
    assert skipped.err.startswith(f"hoicli: skipped 1 line; the first: {path}:102: ")


def test_a_doubled_cell_is_never_skipped(hoicli: Hoicli, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [*grid_rows(falling(), tags={}), row(20.0, "jpeg", 1)])
    for options in ((), ("--on-error", "skip"), ("--allow-missing",)):
        said = refusal(hoicli("robust", *options, path))
        assert said.startswith(f"{path}:102: jpeg 1 of the model is at {path}:37 already; keep one row a cell,")


def test_different_settings_do_not_average() -> None:
    rows = grid_rows(falling())
    rows[7]["signature"] = f"protocol:hico|data:hico|topk:100|version:{__version__}"
    with pytest.raises(
        DataError, match=r"^rows.jsonl:8: signature: 'protocol:hico\|data:hico\|topk:100', but rows.jsonl:1"
    ):
        gather(rows)
    rows[7]["signature"] = "protocol:hico|data:hico|version:0.0.9"  # an older version is no other setting
    del rows[8]["signature"]
    assert gather(rows)[1] == []
    other = grid_rows(falling(), model="m", signature="protocol:hico|data:hico|nms:0.7")
    assert (
        "the models were evaluated with different settings" in gather([*grid_rows(falling(), model="n"), *other])[1][0]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--unit", "per mille"), 2, "hoicli: --unit per mille: choose percent or fraction\n"),
        (("--corruption", "jpeg,,mist"), 2, "hoicli: --corruption jpeg,,mist: give names with commas between,"),
        (("--by", "model"), 2, "hoicli: --by model: is a part of each benchmark; name another tag, such as camera\n"),
        (("--severity", "0"), 2, "hoicli: --severity 0: give whole numbers of at least 1"),
        (("--plot", "x.gif"), 2, "hoicli: --plot x.gif: end the name in .png, .svg or .pdf\n"),
        (("--metric", "AP"), 2, "hoicli: no such rows; there are mAP full hico: choose with --metric"),
        ((), 1, "{path}: only the clean row, no corruption;"),
    ],
)
def test_what_is_refused(hoicli: Hoicli, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    path = written(tmp_path / "rows.jsonl", [row(40.0)])
    result = hoicli("robust", *arguments, path)
    assert (result.code, result.out) == (code, "")
    assert result.err.count("\n") == 1
    assert result.err.startswith(message.format(path=path))


def test_a_corruption_of_no_row_is_named_with_the_nearest(hoicli: Hoicli, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [row(40.0), row(30.0, "jpeg", 1)])
    said = hoicli("robust", "--corruption", "jpg", path).err
    assert said == "hoicli: --corruption jpg: no row is of it; did you mean 'jpeg'?\n"


def test_a_benchmark_of_each_value_of_a_tag(hoicli: Hoicli, tmp_path: Path) -> None:
    """Each camera has its own ground truth, ranks and columns."""
    groups = {"door": falling(), "yard": falling(30)}
    rows = [
        {
            **each,
            "tags": {**each["tags"], "camera": camera},
            "signature": f"protocol:hico|data:hico|gt:{camera}|version:1",
        }
        for camera, values in groups.items()
        for model in ("a", "b")
        for each in grid_rows(values, model=model)
    ]
    path = written(tmp_path / "rows.jsonl", rows)
    assert "the rows differ in camera: --by camera makes a benchmark of each value" in hoicli("robust", path).err
    by_camera = results(hoicli, "--by", "camera", path)
    for camera, values in groups.items():
        of_group = [each for each in by_camera if each["tags"]["camera"] == camera]
        assert {each["value"] for each in of_group if each["metric"] == "mri"} == {mri(values)}
    assert "a yard" in hoicli("robust", "--by", "camera", "--format", "table", path).out
    short = written(tmp_path / "short.jsonl", rows[:-1])
    assert f"{short} (camera=yard): model b lacks 1 of 101 cells" in hoicli("robust", "--by", "camera", short).err
    assert "tags.day: missing; --by groups the rows by it" in hoicli("robust", "--by", "day", path).err


@pytest.mark.long
def test_the_figure_of_many_models(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = [each for at in range(9) for each in grid_rows(falling(30 + at), model=f"$m{at}")]
    path, plot = written(tmp_path / "rows.jsonl", rows), tmp_path / "many.svg"
    result, texts = hoicli("robust", "--plot", plot, path), words(plot)
    assert result.code == 0
    assert texts.count("$m8") == 6  # the best: a line of the legend, a bar in four families and in all
    assert "$m1" not in texts
    assert f"{plot}: The first 7 of 9 models." in result.err
    again = tmp_path / "again.svg"
    assert hoicli("robust", "--plot", again, path).code == 0
    assert again.read_bytes() == plot.read_bytes()
    assert hoicli("robust", "--plot", again, written(path, grid_rows(falling(30)))).code == 0
    assert {name: words(again).count(name) for name in (*FAMILIES.values(), "All: MRI")} == {
        **dict.fromkeys(FAMILIES.values(), 2),  # a line of the legend, and a bar
        FAMILIES[OTHER]: 0,
        "Weather, night": 0,
        "All: MRI": 1,
    }


@pytest.mark.long
def test_heat_maps(hoicli: Hoicli, tmp_path: Path) -> None:
    rows = [each for at in range(7) for each in grid_rows(falling(30 + at), model=f"a name that is cut, number {at}")]
    path, plot = written(tmp_path / "rows.jsonl", rows), tmp_path / "heat.svg"
    result, texts = hoicli("robust", "--plot", plot, "--plot-kind", "heatmap", path), words(plot)
    assert result.code == 0
    assert texts.count("severity") == 6
    assert texts.count("zoom blur") == 2  # once a line of panels
    assert "The first 6 of 7 models." in result.err
    names = [text for text in texts if text.startswith("a name")]
    assert len(names) == len(set(names)) == 6
    shown = [f"{value:.1f}" for at in range(1, 7) for levels in falling(30 + at).values() for value in levels]
    assert sorted(text for text in texts if text in set(shown)) == sorted(shown)
    lonely = hoicli("robust", "--plot-kind", "heatmap", path)
    assert (lonely.code, lonely.err) == (2, "hoicli: --plot-kind: name the figure with --plot FILE\n")


def test_the_scenes_are_as_drawn() -> None:
    cv2 = pytest.importorskip("cv2")
    records = [json.loads(line) for line in (ROBUST / "ground_truth.jsonl").read_text().splitlines()]
    assert len(records) == len(standin.SCENES)
    for number, record in enumerate(records):
        picture, truth = standin.scene(number)
        assert record == truth
        stored = cv2.imread(str(ROBUST / "images" / record["file_name"]))[..., ::-1]
        # resizing rounds as OpenCV's build does: a level here and there
        assert np.abs(stored.astype(int) - picture).max() <= 2
    assert sum(path.stat().st_size for path in (ROBUST / "images").iterdir()) < 150_000
