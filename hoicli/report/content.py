"""What a report says: the measurements of a dump, and the rows of other commands, as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoicli.figures import svg
from hoicli.figures.shown import caveats_of, composition_of, delta_bars, deltas_of, pair_sweeps
from hoicli.figures.styles import GROUPED, STYLES
from hoicli.pairs.rows import METRICS
from hoicli.records.results import Row
from hoicli.report.classes import class_section
from hoicli.report.document import (
    Block,
    Cell,
    Code,
    Document,
    Figure,
    Figures,
    Headline,
    Lines,
    Paragraph,
    Section,
    Table,
    Words,
    number,
    pivoted,
    value_cell,
)
from hoicli.report.gallery import gallery_section
from hoicli.report.measured import Measured, facts
from hoicli.report.options import Options, file_name
from hoicli.report.other_rows import row_sections
from hoicli.tables.layout import marked
from hoicli.version import __version__


def build(measured: Measured, options: Options, given: Mapping[str, Sequence[Row]]) -> Document:
    """The report. `given`: rows of other commands by section (`rows.read_rows`)."""
    request = measured.request
    dataset = request.vocabulary.title
    streams = ["stdin" if name == "-" else name for name in options.streams]
    tags = ", ".join(f"{key}={value}" for key, value in request.tags.items())
    tagged: Words = ["Tagged ", Code(tags), ". "] if tags else []
    lead: Words = [
        Code(", ".join(streams)),
        " against ",
        Code("stdin" if options.gt == "-" else file_name(options.gt)),
        f" on {dataset}: {measured.images:,} images, {measured.triplets:,} annotated and "
        f"{measured.coverage.triplets:,} predicted triplets. ",
        *tagged,
        f"Made by hoicli {__version__}. Values are in percent where nothing else is said.",
    ]
    sections = [_protocols(measured), _views(measured)]
    sections += [_errors(measured), _pairs(measured)] if measured.diagnosis else [_left_out()]
    sections += row_sections(given)
    sections.append(class_section(measured))
    if measured.diagnosis:
        gains = next(iter(deltas_of(measured.diagnosis).values()))
        sections += [_images(measured), gallery_section(measured.examples, options.images, gains)]
    sections.append(_method(measured, options, given))
    title = options.title or f"{streams[0].split('.')[0]} on {dataset}"
    return Document(title, lead, _headlines(measured), [section for section in sections if section.blocks])


def _headlines(measured: Measured) -> list[Headline]:
    primary = measured.request.primary
    found = [
        Headline(f"mAP {row['subset']}", value_cell(row), f"protocol {shown['protocol']}")
        for row, shown in zip(measured.evaluation, marked(measured.evaluation)[0], strict=True)
        if row["protocol"] == primary.name and row["metric"] == "mAP"
    ]
    deltas = next(iter(deltas_of(measured.diagnosis).values())) if measured.diagnosis else {}
    gains = {oracle: value for oracle, value in deltas.items() if value and oracle not in GROUPED}
    if gains:
        best = max(gains, key=lambda oracle: gains[oracle])
        note = f"mAP by fixing one type of error: {STYLES[best].words}"
        found.append(Headline("largest single gain", Cell(number(gains[best], signed=True)), note))
    recall = [row for row in measured.pairs if row["metric"] == "pair_recall" and row["subset"] == "full"]
    found += [Headline("pair recall", value_cell(row), "person-object pairs found") for row in recall[:1]]
    return found


def _protocols(measured: Measured) -> Section:
    request = measured.request
    titles = {protocol.name: protocol.title for protocol in request.protocols}
    rows, notes = marked([{**row, "evaluator": titles[row["protocol"]]} for row in measured.evaluation])
    captions = {"": "mAP and mean maximal recall by protocol and subset"}
    sure = any("ci_low" in row for row in rows)
    if sure:  # side by side they would be wider than a page
        captions = {
            "mAP": "mAP by protocol and subset",
            "mean_max_recall": "Mean maximal recall by protocol and subset",
        }
    tables = [
        pivoted(
            [row for row in rows if metric in ("", row["metric"])],
            caption,
            index=["protocol"] if metric == "mean_max_recall" else ["protocol", "evaluator"],
            column=lambda row: (row["metric"].replace("_", " "), row["subset"]),
            own=True,
        )
        for metric, caption in captions.items()
    ]
    words: list[str | Code] = [
        "A protocol is what one released evaluator does, to the digit. ",
        "They disagree on what counts as a correct box, which predictions count and what is averaged, so numbers of "
        "different protocols must not be compared. ",
        Code("hoicli eval --explain"),
        " says what each does.",
    ]
    if request.split:
        words.append(f" Unseen and seen are those of the zero-shot split {request.split}.")
    if sure:
        words.append(" In brackets: 95 % bootstrap intervals over images.")
    below = [Paragraph([note]) for note in notes]
    return Section("protocols", "Protocols", [Paragraph(words), *tables, *below])


def _views(measured: Measured) -> Section:
    """The protocols at other thresholds and on parts of the data; empty unless asked for."""
    tags = measured.request.tags
    keys = [key for key in ("iou", "slice", "part") if any(key in row["tags"] for row in measured.views)]
    rows, notes = marked([{**row, **{key: row["tags"].get(key, "") for key in keys}} for row in measured.views])
    if not rows:
        return Section("views", "Thresholds and parts", [])
    table = pivoted(
        [{**row, "tags": tags} for row in rows if row["metric"] == "mAP"],
        "mAP at other thresholds, and on parts of the data",
        index=["protocol", *keys],
        column=lambda row: (row["metric"], row["subset"]),
    )
    words = "On a part of the images or triplets, the mean is over the classes that have ground truth there."
    return Section("views", "Thresholds and parts", [Paragraph([words]), table, *(Paragraph([note]) for note in notes)])


def _left_out() -> Section:
    words = "Error types and pair statistics need ground truth with all people and roles."
    return Section("errors", "Errors and pairs", [Paragraph([words])])


def _errors(measured: Measured) -> Section:
    rows = measured.diagnosis
    counts = [{**row, "oracle": row["error"]} for row in rows if row["metric"] == "count"]
    deltas = [row for row in rows if row["metric"] == "delta_mAP"]
    table = pivoted(
        [*counts, *deltas],
        "Errors of each type, and what fixing the type would give",
        index=("oracle",),
        column=lambda row: ("predictions" if row["metric"] == "count" else "delta mAP", row["subset"]),
        cell=lambda row: value_cell(row, signed=row["metric"] == "delta_mAP"),
        own=True,
    )
    table = replace(table, heads=["type", *table.heads[1:]])
    base = [row for row in rows if row["metric"] == "mAP" and row["oracle"] == "none"]
    without = ", ".join(f"{row['subset']} {number(row['value'])}" for row in base)
    words: list[str | Code] = [
        "Every prediction is of one type by protocol ",
        Code(base[0]["protocol"]),
        f" (mAP {without}); of missed GT, ground-truth triplets are counted. The delta is what mAP gains when an "
        "oracle corrects or drops all predictions of the type. ",
        "Errors overlap: the deltas do not add up to what is missing to 100. ",
        Code("hoicli diagnose --explain"),
        " says what each oracle fixes.",
    ]
    bars = svg.bars(delta_bars(deltas_of(rows)), "delta mAP by type of error", partial(number, signed=True))
    figures = [Figure(bars, "What fixing each type would give, in points of mAP")]
    composition = composition_of(*measured.composition)
    if composition.bands:
        caption = "What the predictions are along the ranking, from the highest score on (colours as in the table)"
        figures.append(Figure(svg.shares(composition, caption), caption))
    return Section("errors", "Errors", [Paragraph(words), table, *_caveats(rows), Figures(figures)])


def _pairs(measured: Measured) -> Section:
    rows = [{**row, "measure": METRICS[row["metric"]]} for row in measured.pairs]
    table = pivoted(
        rows,
        "Pairs before and after interaction classification",
        index=("measure", "subset"),
        column=lambda row: ("", "all pairs") if row["nms"] is None else ("after pair NMS", f"{row['nms']:g}"),
    )
    words: list[str | Code] = [
        "How well people and objects are paired, and how well their pairs are told apart. Recall is over the annotated "
        "pairs, precision over the detected ones; negative AP says whether pairs that do nothing score low (ranked at "
        "random they would have the share of negatives); interaction mAP ranks verbs on correctly localised pairs; mAP "
        "is that of the triplets on the pairs that are left."
    ]
    reasons = {METRICS[row["metric"]]: row["reason"] for row in measured.pairs if "reason" in row}
    words += [f" No {metric}: {reason}." for metric, reason in reasons.items()]
    if measured.request.filters.removes:
        words.append(" Pairs are those of the records as they are: the limits on triplets do not touch them.")
    figures = []
    scored = any(row["metric"] == "pair_precision" and row["value"] is not None for row in measured.pairs)
    points = next(iter(pair_sweeps(measured.pairs).values())) if scored else []
    if points:
        labels: dict[tuple[float, float], list[str]] = {}
        for point in points:  # settings that leave the same pairs share a place
            label = "all" if point.nms is None else f"NMS {point.nms:g}"
            labels.setdefault((point.recall, point.precision), []).append(label)
        series = {"pairs": [(x, y, ", ".join(names)) for (x, y), names in labels.items()]}
        caption = "Pair precision against pair recall: all pairs, and after pair NMS at each threshold"
        figures.append(Figure(svg.lines(series, caption, across="pair recall (%)", up="pair precision (%)"), caption))
    return Section("pairs", "Pairs", [Paragraph(words), table, *_caveats(rows), Figures(figures)])


def _caveats(rows: Sequence[Row]) -> list[Paragraph]:
    """What readers of a table and its figures must know, as captions of `--plot` say it."""
    return [Paragraph([f"Caveat: {words}."]) for words in caveats_of(rows)]


def _images(measured: Measured) -> Section:
    words = {"unfound_gt": "not found", "repairable_gt": "of it repairable"}
    rows = [{**row, "image": row["image_id"]} for row in measured.diagnosis if row["metric"] in words]
    if not rows:
        return Section("images", "Images", [])
    table = pivoted(
        rows,
        "Images with most ground truth that nothing found",
        index=("image",),
        column=lambda row: ("ground-truth triplets", words[row["metric"]]),
    )
    told = "Repairable is what some prediction would have found with a right verb, pair or box."
    return Section("images", "Images", [Paragraph([told]), table])


def _method(measured: Measured, options: Options, given: Mapping[str, Sequence[Row]]) -> Section:
    """The section with command lines that give the same numbers, what was read, and all signatures."""
    signed: dict[str, dict[str, None]] = {}
    evaluated = [*measured.evaluation, *measured.views]
    own = (("eval", evaluated), ("diagnose", measured.diagnosis), ("pairstats", measured.pairs))
    for what, rows in (*own, *((f"rows: {kind}", rows) for kind, rows in given.items())):
        for row in rows:
            signed.setdefault(str(row.get("signature", "")), {})[what] = None
    signed.pop("", None)
    lines = [[Cell(", ".join(whats)), Cell(signature, code=True)] for signature, whats in signed.items()]
    counted = [[Cell(what), Cell(number(count))] for what, count in facts(measured)]
    averaged = pivoted(
        [{**row, "value": row["n"]} for row in measured.evaluation if row["metric"] == "mAP"],
        "How many classes each mean is over",
        index=("protocol",),
        own=True,
        column=lambda row: ("", row["subset"]),
    )
    files = f"; the rows of other commands came from {', '.join(map(file_name, options.rows))}" if options.rows else ""
    again = f"These commands print the rows that the tables are made of{files}."
    blocks: list[Block] = [
        Paragraph([again]),
        Lines(options.commands(measured.request.primary.name, diagnosed=bool(measured.diagnosis))),
        Table("What was read", ["", ""], counted, 1),
        averaged,
        Table("Signatures: equal ones were made by the same computation", ["rows of", "signature"], lines, 2),
    ]
    return Section("method", "How these numbers were made", blocks)
