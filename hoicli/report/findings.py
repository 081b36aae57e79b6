"""What a report's numbers say, in three sentences: the main number and how sure it is, what to fix first, and what is
confused most (of several models: which is better). Each leads to the table that it is read from."""

from __future__ import annotations

from hoicli.comparison.answers import answers
from hoicli.figures.shown import ALL_CLASSES, deltas_of
from hoicli.figures.styles import GROUPED, STYLES
from hoicli.records.results import Row, settings_of
from hoicli.report.classes import solid_classes
from hoicli.report.document import Link, Words, number
from hoicli.report.measured import Dump, Measured

FEW = 10
"""Units of a confusion below which its number says little."""

_NAMES = {"missed_gt": "missed ground truth", "both_boxes": "errors of both boxes", "duplicate": "duplicates"}
"""What a sentence calls types of errors that are not called `... errors`."""


def findings(measured: Measured) -> list[Words]:
    """The sentences; one that the dataset has no numbers for is left out."""
    found = [_linked(_several(measured) if measured.several else _main(measured), "protocols", "protocols")]
    found.append(_linked(_fix(measured), "types of errors", "error-types"))
    if measured.several:
        found += [_linked(told, "differences", "differences-table") for told in answers(measured.differences)]
    else:
        found.append(_confusion(measured) or _weakest(measured))
    return [words for words in found if words]


def _linked(sentence: str, text: str, to: str) -> Words:
    """The sentence with the name of its table; nothing for no sentence."""
    return [f"{sentence} (", Link(text, to), ")."] if sentence else []


def _means(measured: Measured) -> list[Row]:
    """Each dump's mAP over most classes of the primary protocol."""
    name = measured.request.primary.name
    rows = [row for row in measured.rows("evaluation") if row["protocol"] == name and row["metric"] == "mAP"]
    most = max(rows, key=lambda row: int(row["n"]))["subset"] if rows else ""
    return [row for row in rows if row["subset"] == most]


def _main(measured: Measured) -> str:
    """The main number, and how sure it is."""
    for row in _means(measured):
        name = f"mAP ({row['protocol']}, {row['subset']})"
        if row["value"] is None:
            return f"{name} has no value: there is no class to average"
        empty = sum(one["metric"] == "AP" and one["n"] == 0 for one in measured.rows("classes"))
        counted = f", {empty:,} of them without ground truth" if empty else ""
        text = f"{name} is {number(row['value'])}, the mean of {_classes(row['n'])}{counted}; "
        if row.get("ci_low") is not None:
            span = f"{number(row['ci_low'])} to {number(row['ci_high'])}"
            return f"{text}its 95 % interval over resampled images is {span}"
        if "boot" in settings_of(row):
            return f"{text}how sure it is cannot be said, for fewer than two images have ground truth of them"
        return f"{text}--bootstrap 1000 would say how sure it is"
    return ""


def _classes(count: int) -> str:
    return f"{count:,} {'class' if count == 1 else 'classes'}"


def _several(measured: Measured) -> str:
    """Which model has the highest number; whether that is chance is the differences' to say."""
    rows = [row for row in _means(measured) if row["value"] is not None]
    if not rows:
        return ""
    best = max(float(row["value"]) for row in rows)
    first = [row["tags"]["model"] for row in rows if row["value"] == best]
    rest = [f"{row['tags']['model']} {number(row['value'])}" for row in rows if row["value"] != best]
    of = f"mAP ({rows[0]['protocol']}, {rows[0]['subset']})"
    if not rest:
        return f"{_listed(first)} have the same {of}, {number(best)}"
    return (
        f"{_listed(first)} {'has' if len(first) == 1 else 'have'} the highest {of}, {number(best)}; {', '.join(rest)}"
    )


def _listed(names: list[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _fix(measured: Measured) -> str:
    """Which type of error is worth most to fix, of several models for each."""
    if not measured.diagnosed:
        return ""
    parts = []
    for dump in measured.dumps:
        types, gain = _largest(dump)
        for base in _plain(dump):
            what = f"{_listed(types, 'or')} ({number(gain, signed=True)})" if types else "nothing, alone"
            parts.append(f"of {dump.name} {what}")
            of = f"mAP ({base['protocol']}, {_classes(base['n'])})"
    if not parts:
        return ""
    if measured.several:
        return f"To fix first, by the gain in {of}: {'; '.join(parts)}"
    if not types:
        return f"No type of error, fixed alone, would raise {of}"
    verb = "gives" if len(types) == 1 else "each give"
    return f"Fixing {_listed(types, 'or')} {verb} most: {number(gain, signed=True)} {of}, from {number(base['value'])}"


def _largest(dump: Dump) -> tuple[list[str], float]:
    """(the types whose fix gives most, in words, none where nothing is gained; the gain)."""
    deltas = next(iter(deltas_of(dump.diagnosis).values()))
    gains = {name: value for name, value in deltas.items() if value is not None and name not in GROUPED}
    best = max(gains.values(), default=0.0)
    if not _shows(best):
        return [], 0.0
    return [_NAMES.get(name, f"{STYLES[name].words.lower()} errors") for name in gains if gains[name] == best], best


def _shows(gain: float | None) -> bool:
    """Whether a gain is above 0 as it is printed."""
    return gain is not None and gain > 0 and bool(number(gain).strip("0."))


def _plain(dump: Dump) -> list[Row]:
    """The mAP that the gains are added to; none where there is no class to average."""
    rows = [row for row in dump.diagnosis if row["metric"] == "mAP" and row["oracle"] == "none"]
    return [row for row in rows if row["subset"] in ALL_CLASSES and row["value"] is not None][:1]


def _confusion(measured: Measured) -> Words:
    """The costliest of names taken for names."""
    rows = measured.rows("confusions")
    costs = [row for row in rows if row["metric"] == "confusion_delta_mAP" and row["truth"] and row["predicted"]]
    costs = [row for row in costs if _shows(row["value"])]
    if not costs:
        return []
    worst = max(costs, key=lambda row: float(row["value"]))  # of equals the first: their order is that of the rows
    alike = sum(row["value"] == worst["value"] for row in costs)
    place = ("kind", "truth", "predicted")
    (count,) = (row for row in rows if row["metric"] == "confusion" and all(row[key] == worst[key] for key in place))
    which = "The costliest confusion is" if alike == 1 else f"One of the {alike:,} costliest confusions is"
    few = ", too few to say much" if count["n"] < FEW else ""
    text = (
        f"{which} {worst['predicted']} for {worst['truth']}, in {count['value']:,} of {count['n']:,} {count['unit']}"
        f"{few}; repaired alone, it would give {number(worst['value'], signed=True)} mAP ({worst['protocol']})"
    )
    return _linked(text, "confusions", f"confusions-{worst['kind']}")


def _weakest(measured: Measured) -> Words:
    """The weakest class that has enough ground truth."""
    enough, rows = solid_classes(measured.rows("classes"))
    if not rows:
        return []
    lowest = number(rows[0]["value"])
    alike = sum(row["value"] == rows[0]["value"] for row in rows)
    of = f"of {_classes(len(rows))} with at least {enough:,} annotated {'triplet' if enough == 1 else 'triplets'}"
    name = " ".join(filter(None, (rows[0]["verb"], rows[0].get(measured.request.vocabulary.qualifier))))
    text = f"The weakest {of} is {name}, with an AP of {lowest}"
    if alike > 1:
        text = f"{alike:,} {of} share the lowest AP, {lowest}"
    return _linked(text, "classes", "weakest" if measured.request.top else "classes")
