"""What a report says: the measurements of one dump or several, and the rows of other commands, as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoicli.figures import svg
from hoicli.figures.shown import ALL_CLASSES, caveats_of, composition_of, delta_bars, deltas_of, pair_sweeps
from hoicli.figures.styles import GROUPED, STYLES
from hoicli.pairs.rows import METRICS
from hoicli.records.results import Row
from hoicli.report.classes import class_section
from hoicli.report.confusions import confusion_section
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
from hoicli.report.findings import findings
from hoicli.report.gallery import gallery_section
from hoicli.report.measured import Measured, facts
from hoicli.report.options import Options, file_name
from hoicli.report.other_rows import comparison, row_sections
from hoicli.report.scores import curve_section
from hoicli.tables.layout import marked
from hoicli.version import __version__

COMMANDS = {
    "eval": ("evaluation", "views"),
    "curves": ("curves",),
    "diagnose": ("diagnosis",),
    "confusion": ("confusions",),
    "pairstats": ("pairs",),
}
"""Command -> the fields of `measured.Dump` that hold its rows."""


def build(measured: Measured, options: Options, given: Mapping[str, Sequence[Row]]) -> Document:
    """The report. `given`: rows of other commands by section (`rows.read_rows`)."""
    request = measured.request
    dataset, diagnosed = request.vocabulary.title, measured.diagnosed
    streams = ["stdin" if name == "-" else name for name in options.streams]
    tags = ", ".join(f"{key}={value}" for key, value in request.tags.items())
    tagged: Words = ["Tagged ", Code(tags), ". "] if tags else []
    lead: Words = [
        Code(", ".join(streams)),
        " against ",
        Code("stdin" if options.gt == "-" else file_name(options.gt)),
        f" on {dataset}: {measured.images:,} images, {measured.triplets:,} annotated and "
        f"{' and '.join(f'{dump.coverage.triplets:,}' for dump in measured.dumps)} predicted triplets. ",
        *tagged,
        f"Made by hoicli {__version__}. Values are in percent where nothing else is said.",
    ]
    sections = [_protocols(measured), _views(measured)]
    if measured.several:
        sections.append(Section("differences", "Differences", comparison(measured.differences, "differences-table")))
    sections.append(curve_section(measured))
    sections += [_errors(measured), confusion_section(measured), _pairs(measured)] if diagnosed else [_left_out()]
    sections += row_sections(given)
    sections.append(class_section(measured))
    if diagnosed:
        sections += [_images(measured), _gallery(measured, options.images)]
    sections.append(_method(measured, options, given))
    called = ", ".join(dump.name for dump in measured.dumps) if measured.several else streams[0].split(".")[0]
    title = options.title or f"{called} on {dataset}"
    shown = [section for section in sections if section.blocks]
    return Document(title, lead, _headlines(measured), shown, findings(measured))


def _headlines(measured: Measured) -> list[Headline]:
    primary, dump = measured.request.primary, measured.dumps[0]
    evaluation = measured.rows("evaluation")
    found = [
        (row, Headline(f"mAP {row['subset']}", value_cell(row), f"protocol {shown['protocol']}"))
        for row, shown in zip(evaluation, marked(evaluation)[0], strict=True)
        if row["protocol"] == primary.name and row["metric"] == "mAP"
    ]
    if measured.several:  # the subset with most classes, of each
        most = max((row["n"] for row, _ in found), default=0)
        first = {row["tags"]["model"]: (row, tile) for row, tile in reversed(found) if row["n"] == most}
        named = [(one.name, first[one.name][1]) for one in measured.dumps if one.name in first]
        return [replace(tile, label=name, note=f"{tile.label}, {tile.note}") for name, tile in named]
    tiles = [tile for _, tile in found]
    deltas = next(iter(deltas_of(dump.diagnosis).values())) if dump.diagnosis else {}
    gains = {oracle: value for oracle, value in deltas.items() if value and oracle not in GROUPED}
    if gains:
        best = max(gains, key=lambda oracle: gains[oracle])
        note = f"mAP by fixing one type of error: {STYLES[best].words}"
        tiles.append(Headline("largest single gain", Cell(number(gains[best], signed=True)), note))
    recall = [row for row in dump.pairs if row["metric"] == "pair_recall" and row["subset"] == "full"]
    tiles += [Headline("pair recall", value_cell(row), "person-object pairs found") for row in recall[:1]]
    return tiles


def _protocols(measured: Measured) -> Section:
    request = measured.request
    titles = {protocol.name: protocol.title for protocol in request.protocols}
    evaluation = sorted(measured.rows("evaluation"), key=lambda row: list(titles).index(row["protocol"]))
    rows, notes = marked([{**row, "evaluator": titles[row["protocol"]]} for row in evaluation])
    whose = ["model"] if measured.several else []
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
            index=["protocol", *([] if metric == "mean_max_recall" else ["evaluator"]), *whose],
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
    views = measured.rows("views")
    keys = [key for key in ("iou", "slice", "part") if any(key in row["tags"] for row in views)]
    whose = ["model"] if measured.several else []
    rows, notes = marked([{**row, **{key: row["tags"].get(key, "") for key in [*whose, *keys]}} for row in views])
    if not rows:
        return Section("views", "Thresholds and parts", [])
    table = pivoted(
        [{**row, "tags": {}} for row in rows if row["metric"] == "mAP"],
        "mAP at other thresholds, and on parts of the data",
        index=[*whose, "protocol", *keys],
        column=lambda row: (row["metric"], row["subset"]),
    )
    words = "On a part of the images or triplets, the mean is over the classes that have ground truth there."
    return Section("views", "Thresholds and parts", [Paragraph([words]), table, *(Paragraph([note]) for note in notes)])


def _left_out() -> Section:
    words = "Error types and pair statistics need ground truth with all people and roles."
    return Section("errors", "Errors and pairs", [Paragraph([words])])


def _errors(measured: Measured) -> Section:
    rows, several = measured.rows("diagnosis"), measured.several
    counts = [{**row, "oracle": row["error"]} for row in rows if row["metric"] == "count"]
    deltas = [row for row in rows if row["metric"] == "delta_mAP"]
    table = pivoted(
        [row for row in (*counts, *deltas) if not several or row["subset"] in ALL_CLASSES],
        "Errors of each type, and what fixing the type would give",
        index=("oracle",),
        column=lambda row: (
            "predictions" if row["metric"] == "count" else "delta mAP",
            row["tags"]["model"] if several else row["subset"],
        ),
        cell=lambda row: value_cell(row, signed=row["metric"] == "delta_mAP"),
        own=True,
        id_="error-types",
    )
    table = replace(table, heads=["type", *table.heads[1:]])
    base = [row for row in rows if row["metric"] == "mAP" and row["oracle"] == "none"]
    shown = [row for row in base if not several or row["subset"] in ALL_CLASSES]
    named = [f"{row['tags']['model']} {row['subset']}" if several else row["subset"] for row in shown]
    without = ", ".join(f"{name} {number(row['value'])}" for name, row in zip(named, shown, strict=True))
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
    for dump in measured.dumps:
        composition = composition_of(*dump.composition)
        if composition.bands:
            whose = f" of {dump.name}" if several else ""
            along = "along the ranking, from the highest score on (colours as in the table)"
            caption = f"What the predictions{whose} are {along}"
            figures.append(Figure(svg.shares(composition, caption), caption))
    return Section("errors", "Errors", [Paragraph(words), table, *_caveats(rows), Figures(figures)])


def _pairs(measured: Measured) -> Section:
    several = measured.several
    rows = [{**row, "measure": METRICS[row["metric"]]} for row in measured.rows("pairs")]

    def column(row: Row) -> tuple[str, str]:
        if several:
            return "all pairs", row["tags"]["model"]
        return ("", "all pairs") if row["nms"] is None else ("after pair NMS", f"{row['nms']:g}")

    table = pivoted(
        [row for row in rows if not several or row["nms"] is None],
        "Pairs before and after interaction classification",
        index=("measure", "subset"),
        column=column,
    )
    words: list[str | Code] = [
        "How well people and objects are paired, and how well their pairs are told apart. Recall is over the annotated "
        "pairs, precision over the detected ones; negative AP says whether pairs that do nothing score low (ranked at "
        "random they would have the share of negatives); interaction mAP ranks verbs on correctly localised pairs; mAP "
        "is that of the triplets on the pairs that are left."
    ]
    reasons = {(METRICS[row["metric"]], row["reason"]): None for row in rows if "reason" in row}
    words += [f" No {metric}: {reason}." for metric, reason in reasons]
    if measured.request.filters.removes:
        words.append(" Pairs are those of the records as they are: the limits on triplets do not touch them.")
    figures = []
    scored = any(row["metric"] == "pair_precision" and row["value"] is not None for row in rows)
    series: dict[str, list[tuple[float, float, str]]] = {}
    for model, points in pair_sweeps(rows).items() if scored else ():
        labels: dict[tuple[float, float], list[str]] = {}
        for point in points:  # settings that leave the same pairs share a place
            label = "all" if point.nms is None else f"NMS {point.nms:g}"
            labels.setdefault((point.recall, point.precision), []).append("" if several else label)
        series[measured.labels[model] if several else "pairs"] = [
            (x, y, ", ".join(filter(None, names))) for (x, y), names in labels.items()
        ]
    if series:
        caption = "Pair precision against pair recall: all pairs, and after pair NMS at each threshold"
        figures.append(Figure(svg.lines(series, caption, across="pair recall (%)", up="pair precision (%)"), caption))
    return Section("pairs", "Pairs", [Paragraph(words), table, *_caveats(rows), Figures(figures)])


def _caveats(rows: Sequence[Row]) -> list[Paragraph]:
    """What readers of a table and its figures must know, as captions of `--plot` say it."""
    return [Paragraph([f"Caveat: {words}."]) for words in caveats_of(rows)]


def _images(measured: Measured) -> Section:
    words = {"unfound_gt": "not found", "repairable_gt": "of it repairable"}
    rows = [{**row, "image": row["image_id"]} for row in measured.rows("diagnosis") if row["metric"] in words]
    if not rows:
        return Section("images", "Images", [])
    table = pivoted(
        rows,
        "Images with most ground truth that nothing found",
        index=("model", "image") if measured.several else ("image",),
        column=lambda row: ("ground-truth triplets", words[row["metric"]]),
    )
    told = "Repairable is what some prediction would have found with a right verb, pair or box."
    return Section("images", "Images", [Paragraph([told]), table])


def _gallery(measured: Measured, images: str | None) -> Section:
    """The errors of each dump, of several each under its name."""
    sections = [
        gallery_section(dump.examples, images, next(iter(deltas_of(dump.diagnosis).values())))
        for dump in measured.dumps
    ]
    if not measured.several:
        return sections[0]
    blocks: list[Block] = []
    for dump, section in zip(measured.dumps, sections, strict=True):
        if section.blocks:
            words, *cards = section.blocks
            blocks += [] if blocks else [words]
            blocks += [Paragraph([f"Errors of {dump.name}:"]), *cards]
    return replace(sections[0], blocks=blocks)


def _method(measured: Measured, options: Options, given: Mapping[str, Sequence[Row]]) -> Section:
    """The section with command lines that give the same numbers, what was read, and all signatures."""
    signed: dict[str, dict[str, None]] = {}
    own = [(command, [row for kind in kinds for row in measured.rows(kind)]) for command, kinds in COMMANDS.items()]
    others = [(f"rows: {kind}", rows) for kind, rows in given.items()]
    for what, rows in (*own, ("compare", measured.differences), *others):
        for row in rows:
            signed.setdefault(str(row.get("signature", "")), {})[what] = None
    signed.pop("", None)
    lines = [[Cell(", ".join(whats)), Cell(signature, code=True)] for signature, whats in signed.items()]
    dumps = range(len(measured.dumps))
    counted = [
        [Cell(what), *(Cell(number(counts[at]) if at < len(counts) else "") for at in dumps)]
        for what, counts in facts(measured)
    ]
    heads = ["counted", *(dump.name for dump in measured.dumps)] if measured.several else ["", ""]
    averaged = pivoted(
        [{**row, "value": row["n"]} for row in measured.rows("evaluation") if row["metric"] == "mAP"],
        "How many classes each mean is over",
        index=("protocol",),
        own=True,
        column=lambda row: ("", row["subset"]),
    )
    files = f"; the rows of other commands came from {', '.join(map(file_name, options.rows))}" if options.rows else ""
    again = f"These commands print the rows that the tables are made of{files}."
    blocks: list[Block] = [
        Paragraph([again]),
        Lines(options.commands(measured.request.primary.name, diagnosed=measured.diagnosed)),
        Table("What was read", heads, counted, 1),
        averaged,
        Table("Signatures: equal ones were made by the same computation", ["rows of", "signature"], lines, 2),
    ]
    return Section("method", "How these numbers were made", blocks)
