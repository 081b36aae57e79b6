"""What a report says: the measurements of a dump, and the rows of other commands, as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from statistics import median_low

from hoicli import __version__
from hoicli.diagnosis.errors import ERRORS, MISSED
from hoicli.evaluation.protocols import PROTOCOL_OF
from hoicli.figures import svg
from hoicli.figures.shown import composition_of, delta_bars, deltas_of, pair_sweeps
from hoicli.figures.styles import GROUPED, STYLES
from hoicli.pairs.rows import METRICS
from hoicli.records.results import Row
from hoicli.report.document import (
    Block,
    Cell,
    Code,
    Document,
    Figure,
    Figures,
    Headline,
    Paragraph,
    Section,
    Table,
    number,
    pivoted,
    value_cell,
    with_codes,
)
from hoicli.report.gallery import gallery_section
from hoicli.report.measured import Measured
from hoicli.report.method import Source, file_name, method
from hoicli.report.other_rows import row_sections
from hoicli.tables.layout import marked
from hoicli.vocabulary.datasets import DATASETS

ENOUGH = 10
"""Ground-truth triplets from which on a class's AP says something; in small sets, half of the classes have enough."""

BINS = 10
"""Columns of the distribution of AP."""

PERCENT = "Values are in percent where nothing else is said."


def build(measured: Measured, source: Source, given: Mapping[str, Sequence[Row]], images: str | None) -> Document:
    """The report. `given`: rows of other commands by kind (`rows.read_rows`); `images`: the folder of the pictures."""
    request = measured.request
    dataset = DATASETS[request.vocabulary.name].split(":")[0]
    streams = [file_name(path) for path in source.predictions]
    called = ", ".join("stdin" if name == "-" else name for name in streams)
    tags = [f"{key}={value}" for key, value in request.tags.items()]
    lead: list[str | Code] = [
        Code(called),
        " against ",
        Code("stdin" if source.gt == "-" else file_name(source.gt)),
        f" on {dataset}: {measured.images:,} images, {measured.triplets:,} annotated and "
        f"{measured.coverage.triplets:,} predicted triplets. ",
    ]
    if tags:
        lead += ["Tagged ", Code(", ".join(tags)), ". "]
    lead.append(f"Made by hoicli {__version__}. {PERCENT}")
    sections = [_protocols(measured)]
    sections += [_errors(measured), _pairs(measured)] if measured.diagnosis else [_left_out()]
    sections += row_sections(given)
    sections.append(_classes(measured))
    if measured.diagnosis:
        sections += [_images(measured), gallery_section(measured.examples, images)]
    sections.append(method(measured, source, given))
    title = source.title or f"{PurePath(streams[0]).name.split('.')[0] if streams[0] != '-' else 'stdin'} on {dataset}"
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
    parts = [("mAP and mean maximal recall by protocol and subset", rows)]
    sure = any("ci_low" in row for row in rows)
    if sure:  # side by side they would be wider than a page
        captions = {
            "mAP": "mAP by protocol and subset",
            "mean_max_recall": "Mean maximal recall by protocol and subset",
        }
        parts = [(caption, [row for row in rows if row["metric"] == metric]) for metric, caption in captions.items()]
    tables = [
        with_codes(
            pivoted(
                part,
                caption,
                index=("protocol", "evaluator")[: 1 + (at == 0)],
                column=lambda row: (row["metric"].replace("_", " "), row["subset"]),
            )
        )
        for at, (caption, part) in enumerate(parts)
    ]
    lines = [
        (
            name,
            [
                svg.Dot(row["subset"], row["value"], row.get("ci_low"), row.get("ci_high"))
                for row in measured.evaluation
                if row["protocol"] == name and row["metric"] == "mAP" and row["value"] is not None
            ],
        )
        for name in titles
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
    caption = "mAP by protocol and subset; the axis need not begin at 0"
    figures = Figures([Figure(svg.dots(lines, caption), caption)]) if any(dots for _, dots in lines) else Figures([])
    below = [Paragraph([note]) for note in notes]
    return Section("protocols", "Protocols", [Paragraph(words), *tables, *below, figures])


def _left_out() -> Section:
    known = " and ".join(DATASETS[name].split(":")[0] for name in PROTOCOL_OF)
    words = f"Error types and pair statistics are defined for {known} alone, on ground truth with all people and roles."
    return Section("errors", "Errors and pairs", [Paragraph([words])])


def _errors(measured: Measured) -> Section:
    rows = measured.diagnosis
    counts = {(row["error"], row["subset"]): row for row in rows if row["metric"] == "count"}
    deltas = {(row["oracle"], row["subset"]): row for row in rows if row["metric"] == "delta_mAP"}
    base = [row for row in rows if row["metric"] == "mAP" and row["oracle"] == "none"]
    subsets = [row["subset"] for row in base]
    lines = []
    for name in (*ERRORS, MISSED, *GROUPED):
        cells = [
            value_cell(counts[name, subset]) if (name, subset) in counts else Cell(number(None)) for subset in subsets
        ]
        cells += [
            value_cell(deltas[name, subset], signed=True) if (name, subset) in deltas else Cell(number(None))
            for subset in subsets
        ]
        lines.append([Cell(STYLES[name].words, mark=name), *cells])
    groups = ["", "predictions", *[""] * (len(subsets) - 1), "delta mAP", *[""] * (len(subsets) - 1)]
    table = Table(
        "Errors of each type, and what fixing the type would give", ["type", *subsets, *subsets], lines, 1, groups
    )
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
    return Section("errors", "Errors", [Paragraph(words), table, Figures(figures)])


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
    return Section("pairs", "Pairs", [Paragraph(words), table, Figures(figures)])


def _classes(measured: Measured) -> Section:
    qualifier = measured.request.vocabulary.qualifier
    ap = [row for row in measured.classes if row["metric"] == "AP"]
    recall = {(row["verb"], row[qualifier]): row for row in measured.classes if row["metric"] == "max_recall"}
    if not ap:
        return Section("classes", "Classes", [])

    def table(caption: str, rows: Sequence[Row], *, folded: bool = False) -> Table:
        lines = [
            [
                *(Cell(row[key] or number(None)) for key in ("verb", qualifier, "subset")),
                Cell(number(row["n"])),
                replace(value_cell(row), share=row["value"] / 100),
                value_cell(recall[row["verb"], row[qualifier]]),
            ]
            for row in rows
        ]
        return Table(caption, ["verb", qualifier, "subset", "GT", "AP", "max recall"], lines, 3, folded=folded)

    known = [row for row in ap if row["n"]]
    zeros = sum(row["value"] == 0 for row in known)
    enough = min(ENOUGH, median_low([row["n"] for row in known] or [1]))
    solid = [row for row in known if row["n"] >= enough]
    weakest = sorted(solid, key=lambda row: (row["value"], -row["n"], row["verb"], row[qualifier] or ""))
    words: list[str | Code] = [
        "AP of each class by protocol ",
        Code(measured.request.primary.name),
        f": {len(ap):,} classes, {len(known):,} with ground truth; {zeros:,} of these have an AP of 0. GT is how many "
        "ground-truth triplets a class has.",
    ]
    caption = "How many classes with ground truth have which AP"
    subsets = list(dict.fromkeys(row["subset"] for row in known))
    counts = {
        subset: [
            sum(row["subset"] == subset and min(int(row["value"] * BINS / 100), BINS - 1) == at for row in known)
            for at in range(BINS)
        ]
        for subset in subsets
    }
    labels = [f"{at * 100 // BINS}" for at in range(BINS + 1)]
    figure = Figure(svg.histogram(counts, labels, caption, "AP (%)"), caption)
    blocks: list[Block] = [Paragraph(words), Figures([figure])]
    top = measured.request.top
    gains = [row for row in measured.diagnosis if row["metric"] == "top_delta_AP"]
    if gains:
        lines = [
            [
                *(Cell(row[key] or number(None)) for key in ("verb", qualifier, "subset")),
                Cell(STYLES[row["oracle"]].words, mark=row["oracle"]),
                Cell(number(row["n"])),
                value_cell(row, signed=True),
            ]
            for row in gains
        ]
        heads = ["verb", qualifier, "subset", "what to fix", "GT", "delta AP"]
        blocks.append(Table("Classes that fixing one type of error would lift most", heads, lines, 4))
    if top and weakest:
        blocks.append(table(f"The weakest classes with at least {enough} ground-truth triplets", weakest[:top]))
    order = sorted(ap, key=lambda row: (row["verb"], row[qualifier] or ""))
    blocks.append(table(f"All {len(ap):,} classes", order, folded=True))
    return Section("classes", "Classes", blocks)


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
