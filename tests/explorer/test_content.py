"""The data of the page: against the rows and records of the other commands, and against code of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hoicli.explorer.pictures import orientation, pixels
from tests.support.explorers import STRANGE, chunks_of, columns_of, facts_of, predictions_of, write_scenes
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, parsed, records_of, written

VCOCO = (FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl")
Box = list[float]
Row = dict[str, Any]


def rows_of(hoicli: Hoicli, *words: object) -> list[Row]:
    found = records_of(hoicli(*words))
    for row in found:
        row.setdefault("view", (row.get("tags", {}).get("slice", ""), row.get("tags", {}).get("part", "")))
    return found


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A file that puts some images into two parts, one of them a hostile name, and some into none."""
    path = tmp_path / "scenes.tsv"
    parts = ["day", "a:b_<i>", "day"]
    path.write_text("".join(f"image_{at:03d}\t{parts[at % 3]}\n" for at in range(8, 40, 2)) + "image_008\ta:b_<i>\n")
    return path


@pytest.mark.parametrize(
    ("models", "others", "sliced"),
    [("one", (), "people,pairs,objects,distance"), ("one two", ("--slice", "people,objects,scenes.tsv"), ""),
     ("two one", ("--top-k", "5", "--nms", "0.7", "--slice", "distance:0.3"), "")],
)  # fmt: skip
def test_numbers_of_classes(
    hoicli: Hoicli,
    tmp_path: Path,
    cut: Path,
    monkeypatch: pytest.MonkeyPatch,
    models: str,
    others: tuple[str, ...],
    sliced: str,
) -> None:
    monkeypatch.chdir(cut.parent)
    write_scenes(tmp_path)
    streams = [tmp_path / f"{name}.jsonl" for name in models.split()]
    page, words = tmp_path / "page", ("--gt", tmp_path / "gt.jsonl", *others)
    assert hoicli("explore", *words, *streams, "-o", page).code == 0
    check_numbers(hoicli, page, words if others else (*words, "--slice", sliced), streams, "diag", asked=bool(others))


def test_numbers_of_classes_of_vcoco(hoicli: Hoicli, tmp_path: Path) -> None:
    words = ("--dataset", "vcoco", "--gt", VCOCO[0])
    for others, protocol in (((), "vcoco-s1"), (("--slice", "people"), "vcoco-s2")):
        page = tmp_path / protocol
        assert hoicli("explore", *words, *others, "--protocol", protocol, VCOCO[1], "-o", page).code == 0
        assert [name for name, _, _ in facts_of(page)["views"]][1:] == ["people"] * 5 + ["pairs"] * 5 * (not others)
        sliced = others or ("--slice", "people,pairs")
        check_numbers(hoicli, page, (*words, *sliced), [VCOCO[1]], protocol, asked=bool(others))
    result = hoicli("explore", *words, "--slice", "people,objects", VCOCO[1], "-o", tmp_path / "none")
    assert (result.code, result.err.count("\n"), "--slice objects: vcoco-s1 goes by" in result.err) == (2, 1, True)


def check_numbers(
    hoicli: Hoicli, page: Path, words: tuple[Any, ...], streams: list[Path], protocol: str, asked: bool
) -> None:
    """Every number of classes on a page is a row of eval or diagnose, or a sum of match records. words: of all three,
    with --slice; asked: whether explore had it, too."""
    chunks = chunks_of(page)
    facts = chunks["facts"]
    number = {(facts["verbs"][verb], name): at for at, (verb, name) in enumerate(facts["classes"])}
    types, shape = [name for name, _ in facts["types"]], (len(streams), len(number))
    at = words.index("--slice")
    image_slices = [slice_["name"] for slice_ in facts["slices"] if slice_["members"] is not None]
    own = ",".join(name for name in words[at + 1].split(",") if Path(name).stem in image_slices)
    of_images = (*words[:at], *(("--slice", own) if own else ()), *words[at + 2 :])
    wanted: dict[tuple[str, str], dict[str, Any]] = {
        (slice_, part): {
            "positives": np.zeros(shape[1]), "ap": np.full(shape, np.nan), "counts": np.zeros((*shape, len(types))),
            "gains": np.zeros((*shape, len(types))), "found": np.zeros(shape), "errors": np.zeros(shape),
        }
        for slice_, part, _ in facts["views"]
    }  # fmt: skip
    for model, stream in enumerate(streams):
        kept = ("--protocol", protocol)
        for row in rows_of(hoicli, "eval", *kept, "--per-class", *words, stream):
            if row["metric"] == "AP":
                of_class = number[row["verb"], row[facts["qualifier"]] or ""]
                wanted[row["view"]]["ap"][model, of_class] = row["value"]
                wanted[row["view"]]["positives"][of_class] = row["n"]
        for row in rows_of(hoicli, "diagnose", *kept, "--per-class", *of_images, stream):
            if "verb" in row and row["metric"] in ("count", "delta_AP"):
                column = wanted[row["view"]]["counts" if row["metric"] == "count" else "gains"]
                kind = row.get("error") or row["oracle"]
                if kind in types:
                    column[model, number[row["verb"], row[facts["qualifier"]] or ""], types.index(kind)] = row["value"]
        for record in rows_of(hoicli, "match", *kept, *words, stream):
            view = record["view"]
            for item in record["predictions"] if isinstance(view, dict) else ():
                key = {"true_positive": "found", "false_positive": "errors"}.get(item["outcome"])
                if key:
                    of_class = number[item["verb"], item["role" if facts["qualifier"] == "role" else "label"] or ""]
                    wanted[view["slice"], view["part"]][key][model, of_class] += 1
    seen = Counter[str]()
    for place, (slice_, part, gained) in enumerate(facts["views"]):
        of = wanted[slice_, part]
        made = columns_of(page, f"view{place}")
        assert gained == (slice_ == "" or (asked and slice_ in image_slices)) == ("gains" in made)
        counts = made["counts"].reshape(of["counts"].shape)
        assert made["ap"].reshape(shape) == pytest.approx(of["ap"], abs=1e-9, nan_ok=True)
        assert made["positives"].tolist() == of["positives"].tolist()
        rated = of["positives"] > 0  # diagnose has no rows of a class without ground truth
        if slice_ == "" or slice_ in image_slices:
            assert counts[:, rated].tolist() == of["counts"][:, rated].tolist()
        if slice_:
            assert counts[:, :, 0].tolist() == of["found"].tolist()
            assert counts[:, :, 1:-1].sum(axis=2).tolist() == of["errors"].tolist()
        if gained:
            assert made["gains"].reshape(counts.shape)[:, rated] == pytest.approx(of["gains"][:, rated], abs=1e-9)
        seen += Counter({name: int(np.count_nonzero(np.nan_to_num(of[name]))) for name in of})
    assert min(seen.values()) > 0, seen


def shown(value: float | None, digits: int = 2, signed: bool = False) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text if text.strip("+-0.") else text.strip("+-")


def signed(value: float | None) -> str:
    return shown(value, signed=True)


def name_of(row: Row) -> str:
    return " ".join(filter(None, (row["verb"], row.get("object"), row.get("role"))))


def cells(table: Any) -> list[list[str]]:
    """The lines of a table without what they lead to."""
    return [[cell[0] if isinstance(cell, list) else cell for cell in line] for line in table["lines"]]


def expected_summary(
    hoicli: Hoicli, words: tuple[object, ...], models: dict[str, Path], main: str, protocol: str, parts: str
) -> dict[str, Any]:
    """The tables of the page, by the first words of their captions, made of the commands' rows. main: the protocol of
    the comparison; protocol: of the errors."""
    gt, several = words, len(models) > 1
    named = ("--name", ",".join(models))
    evaluated, diagnosed, sliced = [], [], []
    confused: dict[Any, list[list[Any]]] = {}
    weakest: list[list[Any]] = []
    for at, stream in enumerate(models.values()):
        evaluated.append(rows_of(hoicli, "eval", *gt, stream))
        diagnosed.append(rows_of(hoicli, "diagnose", "--protocol", protocol, *gt, stream))
        for row in rows_of(hoicli, "confusion", "--protocol", protocol, "--top", "all", *gt, stream):
            metric = {"confusion": 0, "confusion_delta_mAP": 1}.get(row["metric"])
            pair = row.get("predicted"), row.get("truth")
            if metric is not None and row["kind"] == "verb" and None not in pair and pair[0] != pair[1]:
                confused.setdefault(pair, [[0, None] for _ in models])[at][metric] = row["value"]
        rows = rows_of(hoicli, "eval", "--protocol", protocol, "--per-class", "--slice", parts, *gt, stream)
        every = max((row for row in rows if row["metric"] == "mAP"), key=lambda row: row["n"])["subset"]
        sliced.append([row for row in rows if row["metric"] == "mAP" and row["subset"] == every])
        weakest = sorted(
            ([name_of(row), shown(row["n"]), row["value"]]
             for row in rows if row["metric"] == "AP" and row["view"] == ("", "") and row["n"] >= 10),
            key=lambda line: line[2],
        )  # fmt: skip
        truth = Counter[Any]()
        for row in rows:
            if row["metric"] == "AP":
                truth[row["view"]] += row["n"]
    command = ("compare", *named) if several else ("eval", "--bootstrap", "1000")
    found = rows_of(hoicli, *command, "--protocol", main, *gt, *models.values())
    whole = [row for row in found if row["protocol"] == main]
    chosen = [[row for row in rows if row["subset"] == every] for rows in diagnosed]
    of_type = [{(row["metric"], row.get("error") or row["oracle"]): row["value"] for row in rows} for rows in chosen]
    return {
        "mAP by protocol": {
            (*([name] if several else []), row["protocol"], row["metric"].replace("_", " "),
             row["subset"].replace("_", "-")): shown(row["value"])
            for name, rows in zip(models, evaluated, strict=True)
            for row in rows
            if row["unit"] == "%"
        },
        "Errors of each type": {
            kind: [text for one in of_type for text in (shown(one["count", kind]), signed(one["delta_mAP", kind]))]
            for metric, kind in of_type[0] if metric == "count" and kind != "true_positive"
        },
        "Verbs taken": [
            [*pair, *(text for times, gain in found for text in (shown(times), signed(gain)))]
            for pair, found in sorted(confused.items(), key=lambda item: (-max(gain or 0 for _, gain in item[1]),
                                                                          -max(times for times, _ in item[1])))
        ],
        "Classes that changed": [
            [name_of(row), shown(row["n"]), shown(row["from"]), shown(row["to"]),
             signed(row["value"]), shown(row["p"], 4), shown(row["q"], 4)]
            for row in whole if row["metric"] == "AP_diff"
        ][:10],
        "The weakest": [] if several else [[*line[:2], shown(line[2])] for line in weakest[:10]],
        "mAP on parts": [
            [rows[0]["view"][0] or "all data", rows[0]["view"][1], shown(rows[0]["n"]), shown(truth[rows[0]["view"]]),
             *(shown(row["value"]) for row in rows),
             *([signed(rows[1]["value"] - rows[0]["value"])] if several else [])]
            for rows in zip(*sliced, strict=True) if rows[0]["value"] is not None
        ],
        "tiles": [
            [row["subset"].replace("_", "-"), shown(row["value"]), f"{shown(row['ci_low'])} to {shown(row['ci_high'])}"]
            for row in whole if row["metric"] == "mAP" and not several
        ],
        "Difference of mAP": [
            [row["subset"].replace("_", "-"), shown(row["from"]), shown(row["to"]), signed(row["value"]),
             f"{shown(row['ci_low'])} to {shown(row['ci_high'])}", shown(row["p"], 4), shown(row["p_bootstrap"], 4)]
            for row in whole if row["metric"] == "mAP_diff"
        ],
        "signatures": [
            [next(row["signature"] for row in whole if row["tags"].get("model", name) == name), rows[0]["signature"]]
            for name, rows in zip(models, diagnosed, strict=True)
        ],
        "gains": [{kind: value for (metric, kind), value in one.items() if metric == "delta_mAP"} for one in of_type],
    }  # fmt: skip


@pytest.mark.parametrize("sample", ["one", "two", "vcoco", "vcoco two"])
def test_the_summary_is_made_of_the_commands_rows(hoicli: Hoicli, tmp_path: Path, sample: str) -> None:
    gt, one, two, _ = write_scenes(tmp_path)
    words: tuple[object, ...] = ("--gt", gt)
    models, main, protocol, parts = {"old_model": one, "new <i>": two}, "hico", "diag", "people,pairs,objects,distance"
    if "vcoco" in sample:
        words = ("--dataset", "vcoco", "--gt", VCOCO[0])
        two.write_text("".join(VCOCO[1].read_text().splitlines(keepends=True)[:4]))
        models = dict(zip(models, (VCOCO[1], two), strict=True))
        main, protocol, parts = "vcoco-s1", "vcoco-s1", "people,pairs"
    if "two" not in sample:
        models = {"old_model": models["old_model"]}
    page = tmp_path / "page.html"
    assert hoicli("explore", *words, "--name", ",".join(models), *models.values(), "-o", page).code == 0
    facts = facts_of(page)
    wanted = expected_summary(hoicli, words, models, main, protocol, parts)
    captions, words_of = [table["caption"] for table in facts["tables"]], dict(facts["types"])
    for name in ("Difference of mAP", "mAP by protocol", "Errors of each type", "Verbs taken", "Classes that changed",
                 "The weakest", "mAP on parts"):  # fmt: skip
        table = next((table for table in facts["tables"] if table["caption"].startswith(name)), None)
        if not wanted[name]:
            assert table is None
            continue
        assert table is not None, captions
        lines = cells(table)
        if name == "mAP by protocol":
            groups = [table["above"][max(at for at in range(place + 1) if table["above"][at] or not at)]
                      for place in range(len(table["heads"]))] if table["above"] else table["heads"]  # fmt: skip
            found = {
                (*(cell.rstrip("*") for cell in line[: table["names"]]), groups[at], table["heads"][at]): line[at]
                for line in lines for at in range(table["names"], len(line))
            }  # fmt: skip
            assert {key: text for key, text in found.items() if text != "-" or key in wanted[name]} == wanted[name]
        elif name == "Errors of each type":
            assert {line[0]: line[1:] for line in lines} == {words_of[kind]: row for kind, row in wanted[name].items()}
        elif name == "Verbs taken":
            assert sorted(lines) == sorted(wanted[name][:10])
        else:
            assert lines == wanted[name]
    assert facts["tiles"] == wanted["tiles"]
    assert [model["signatures"] for model in facts["models"]] == wanted["signatures"]
    sentences = ["".join(cell[0] if isinstance(cell, list) else cell for cell in line) for line in facts["findings"]]
    best = [max(one, key=lambda kind: one[kind] if kind in words_of else 0) for one in wanted["gains"]]
    of = [f" for {name}" if len(models) > 1 else "" for name in models]
    columns = zip(best, wanted["gains"], of, strict=True)
    fix = [f"{words_of[kind]} {signed(one[kind])} mAP{whose}" for kind, one, whose in columns]
    assert f"Worth most to fix: {'; '.join(fix)} ({protocol})." in sentences
    if len(models) > 1:
        asked = ("--protocol", main, "--no-errors", *words, "--name", ",".join(models))
        said = hoicli("compare", *asked, *models.values()).err
        for sentence in sentences[:-1]:
            assert f"hoicli: {sentence.rpartition('. ')[0]}\n" in said
    else:
        value, sure = next(tile[1:] for tile in wanted["tiles"] if f", {tile[0]}) is " in sentences[0])
        assert f" is {value}, 95 % interval {sure} over resampled images. " in sentences[0]
        assert sentences[2:] == [
            f"The costliest confusion is {said} for {true}: {times} times; repaired alone, {gain} mAP."
            for said, true, times, gain in wanted["Verbs taken"][:1]
        ]


def overlap(one: Box, other: Box) -> float:
    """Of a predicted and an annotated box by protocol diag, written apart from hoicli's own: the truth is fed one pixel
    off, the far edge is the last pixel, and boxes that merely touch share nothing."""
    other = [value + 1 for value in other]
    width, height = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    width, height = width + 1, height + 1
    area = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    return width * height / (sum(area) - width * height)


def expected(hoicli: Hoicli, gt: Path, predictions: Path) -> list[tuple[Any, ...]]:
    """Every prediction by `diagnose --emit predictions`, with the truth beside it found one by one."""
    truth = {record["image_id"]: record for record in parsed(gt.read_text())}
    said = {record["image_id"]: record for record in parsed(predictions.read_text())}
    rows = []
    for record in parsed(hoicli("diagnose", "--emit", "predictions", "--gt", gt, predictions).out):
        image = record["image_id"]
        annotated, found = truth[image], said.get(image, {})
        for item in record["predictions"]:
            hoi = found["hois"][item["index"]]

            def iou(place: int, hoi: Any = hoi, found: Any = found, annotated: Any = annotated) -> tuple[float, float]:
                pair = annotated["hois"][place]
                return tuple(  # type: ignore[return-value]
                    overlap(found["boxes"][hoi[end]], annotated["boxes"][pair[end]]) for end in ("subject", "object")
                )

            beside, relation = item["gt"], "own"
            if beside is None:
                near = [place for place in range(len(annotated["hois"])) if max(iou(place)) > 0]

                def order(place: int, item: Any = item, iou: Any = iou, annotated: Any = annotated) -> Any:
                    pair = annotated["hois"][place]
                    named = pair["verb"], annotated["labels"][pair["object"]]
                    return (min(iou(place)) < 0.5, named != (item["verb"], item["label"]), -min(iou(place)),
                            -sum(iou(place)), place)  # fmt: skip

                beside = min(near, key=order) if near else None
                relation = "none" if beside is None else "nearest"
            steps = (-1, -1) if beside is None else tuple(int(value * 10_000 + 1e-9) for value in iou(beside))
            boxes = [np.float32(found["boxes"][hoi[end]]).tolist() for end in ("subject", "object")]
            rows.append((-item["score"], image, item["index"], item["verb"], item["label"], item["error"], relation,
                         beside, steps, boxes))  # fmt: skip
    return sorted(rows, key=lambda row: row[:3])


@pytest.mark.parametrize("seed", [0, 1])
def test_every_prediction_with_the_truth_beside_it(hoicli: Hoicli, tmp_path: Path, seed: int) -> None:
    gt, one, _, _ = write_scenes(tmp_path, seed=seed)
    assert hoicli("explore", "--gt", gt, one, "-o", tmp_path / "page").code == 0
    wanted = expected(hoicli, gt, one)
    assert f"image_007{STRANGE}" in {row[1] for row in wanted}
    made = predictions_of(tmp_path / "page")
    assert made == [(score, image, *others) for score, image, _, *others in wanted]
    assert {row[5] for row in made} == {"own", "nearest", "none"}
    assert {row[4] for row in made} == {"true_positive", "duplicate", "interaction", "association", "object_box",
                                        "human_box", "both_boxes"}  # fmt: skip


@pytest.mark.parametrize("dataset", ["hico", "vcoco"])
def test_what_became_of_each_ground_truth(hoicli: Hoicli, tmp_path: Path, dataset: str) -> None:
    if dataset == "hico":
        gt, predictions, _, _ = write_scenes(tmp_path)
    else:
        gt, predictions = VCOCO
    words = ("--dataset", dataset, "--gt", gt, predictions)
    assert hoicli("explore", *words, "-o", tmp_path / "page").code == 0
    page = tmp_path / "page"
    facts, images = facts_of(page), facts_of(page, "images")["id"]
    model, truth = columns_of(page, "model0"), columns_of(page, "truth")
    made: dict[str, list[tuple[str, str]]] = {}
    for row, state in enumerate(model["state"].tolist()):
        verb, name = facts["classes"][truth["interaction"][row]]
        by = int(model["by"][row])
        if by >= 0:
            assert model["error"][by] == state
            assert state != 0 or model["truth"][by] == row
        of = f"{facts['verbs'][verb]} {name}", facts["types"][state][0]
        made.setdefault(images[truth["image"][row]], []).append(of)
    seen = 0
    for record in parsed(hoicli("diagnose", *words, "--emit", "predictions").out):
        errors = {item["index"]: item["error"] for item in record["predictions"]}
        errors[None] = "missed_gt"
        states = [
            (f"{item['verb']} {item.get('label', item.get('role'))}",
             errors[item["repair"] if item["prediction"] is None else item["prediction"]])
            for item in record["gt"]
        ]  # fmt: skip
        assert made.get(record["image_id"], []) == states
        seen += len(states)
    assert seen <= len(truth["image"])


def test_signatures_say_how_many_lines_were_dropped(hoicli: Hoicli, tmp_path: Path) -> None:
    preds, page = tmp_path / "p.jsonl", tmp_path / "page.html"
    preds.write_bytes((PREDICTIONS).read_bytes() + b"{}\n")
    assert hoicli("explore", "--gt", GT, preds, "--on-error", "skip", "-o", page).code == 0
    (model,) = facts_of(page)["models"]
    assert all("|skipped:1|version:" in text for text in model["signatures"])


def test_classes_of_verbs_with_any_object_changed(hoicli: Hoicli, tmp_path: Path) -> None:
    hoi = {"subject": 0, "object": 1, "verb": "smoke"}
    scene = {"boxes": [[0, 0, 50, 90], [60, 10, 90, 40]], "labels": ["person", "cigarette"], "hois": [hoi]}
    scenes = [{"image_id": at, **scene} for at in range(3)]
    truth = written(tmp_path / "gt.jsonl", scenes)
    found = [{**scene, "hois": [{**hoi, "score": 0.5}]} for scene in scenes]
    one, other = written(tmp_path / "a.jsonl", found[:1]), written(tmp_path / "b.jsonl", found)
    page = tmp_path / "page.html"
    result = hoicli("explore", "--dataset", "hoia", "--gt", truth, "--bootstrap", "0", one, other, "-o", page)
    assert result.code == 0, result.err
    (table,) = (table for table in facts_of(page)["tables"] if table["caption"].startswith("Classes that changed"))
    assert table["lines"][0][0] == "smoke"


@pytest.mark.parametrize("ending", ["jpg", "png"])
@pytest.mark.parametrize("mark", range(1, 9))
def test_how_a_camera_was_turned_is_read_of_both_formats(tmp_path: Path, ending: str, mark: int) -> None:
    """As browsers do: in a PNG only where it stands before the pixels."""
    exif = Image.Exif()
    exif[0x0112] = mark
    path = tmp_path / f"a.{ending}"
    Image.new("RGB", (60, 40)).save(path, exif=exif)
    data = path.read_bytes()
    assert (orientation(data), pixels(data)) == (mark, (60, 40))
    for length in range(0, len(data), 7):  # cut off anywhere
        assert orientation(data[:length]) in (1, mark)
        assert pixels(data[:length]) in (None, (60, 40))
    if ending == "png":
        at = data.index(b"eXIf") - 4
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        assert orientation(data[:at] + data[end:-12] + data[at:end] + data[-12:]) == 1


def test_subjects_that_are_no_persons_are_named(hoicli: Hoicli, tmp_path: Path) -> None:
    graphs = FIXTURES / "graphs"
    words = ("explore", "--dataset", graphs / "dataset.json", "--gt", graphs / "gt.jsonl", graphs / "predictions.jsonl")
    assert hoicli(*words, "-o", tmp_path / "page").code == 0
    facts, columns = facts_of(tmp_path / "page"), columns_of(tmp_path / "page", "truth")
    subjects = {facts["subjects"][label] for label in columns["subject_label"].tolist()}
    assert subjects == {
        record["labels"][hoi["subject"]] for record in parsed((graphs / "gt.jsonl").read_text())
        for hoi in record["hois"]
    }  # fmt: skip
    write_scenes(tmp_path)
    assert hoicli("explore", "--gt", tmp_path / "gt.jsonl", tmp_path / "one.jsonl", "-o", tmp_path / "people").code == 0
    assert facts_of(tmp_path / "people")["subjects"] is None
    assert "subject_label" not in columns_of(tmp_path / "people", "truth")


def test_the_curve_of_all_classes(hoicli: Hoicli, tmp_path: Path) -> None:
    """Its points are those of the list of all predictions by score, and it ends after the last of them."""
    write_scenes(tmp_path)
    page = tmp_path / "page"
    assert hoicli("explore", "--gt", tmp_path / "gt.jsonl", tmp_path / "one.jsonl", "-o", page).code == 0
    facts, truths = facts_of(page), len(columns_of(page, "truth")["image"])
    is_found = columns_of(page, "model0")["error"] == 0
    hits = np.cumsum(is_found).tolist()
    points = [[hit / truths, hit / rank] for rank, hit in enumerate(hits, start=1)]
    curve = facts["models"][0]["curve"]
    assert all(any(point == pytest.approx(each) for each in points) for point in curve)
    assert curve[-1] == pytest.approx(points[-1])
    assert [recall for recall, _ in curve] == sorted(recall for recall, _ in curve)
