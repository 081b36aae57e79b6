"""What a figure shows, taken from result rows: the drawing itself is elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hoicli.corruption.catalogue import FAMILIES
from hoicli.errors import UsageError, arg, visible
from hoicli.figures.styles import GROUPED, LINES, ORACLES, STYLES
from hoicli.records.caveats import words_of
from hoicli.records.results import Row

ALL_CLASSES = ("full", "25")
"""What the subset of all classes is called: V-COCO's is named after its 25 action-roles."""


@dataclass(frozen=True)
class Bar:
    """A line of a bar chart; `look` is a key of LOOKS, "" for a heading or, without a label either, for a gap."""

    label: str = ""
    value: float | None = None
    look: str = ""


def model_name(row: Row) -> str:
    """Whose row it is: its `model`, its tag `model`, else all its tags; empty when nothing tells."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def label(name: str) -> str:
    """A name as a figure has room for it: one short line."""
    text = visible(name)
    return text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}"


def caveats_of(rows: Iterable[Row]) -> list[str]:
    """What readers of a figure of these rows must know, as tables say it below."""
    return list(dict.fromkeys(words for row in rows for words in words_of(row)))


def deltas_of(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """model -> oracle -> delta mAP over all classes, models in order of first appearance, oracles in that of ORACLES.

    Raises `UsageError` where there is none, or a second value of one.
    """
    found: dict[str, dict[str, float | None]] = {}
    for row in rows:
        if row.get("metric") == "delta_mAP" and row.get("subset") in ALL_CLASSES:
            model, oracle = model_name(row), row["oracle"]
            if oracle in found.setdefault(model, {}):
                raise _doubled(f"oracle {oracle}", model)
            found[model][oracle] = _value(row)
    if not found:
        raise UsageError(f"{arg('plot')}: there is no delta_mAP over all classes (subset full, or 25) to draw")
    return {
        model: {oracle: deltas[oracle] for oracle in ORACLES if oracle in deltas} for model, deltas in found.items()
    }


def delta_bars(deltas: Mapping[str, Mapping[str, float | None]]) -> list[Bar]:
    """The bars from the top, an oracle each, of several models under the oracle's name; the GROUPED ones set apart."""
    bars: list[Bar] = []
    for oracle in (oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())):
        if oracle in GROUPED and bars and bars[-1].look.removeprefix("e-") not in GROUPED:
            bars.append(Bar())
        if len(deltas) > 1:
            bars.append(Bar(STYLES[oracle].words))
        for model, values in deltas.items():
            name = STYLES[oracle].words if len(deltas) == 1 else label(model) or "no name"
            bars.append(Bar(name, values.get(oracle), f"e-{oracle}"))
    return bars


@dataclass(frozen=True)
class Composition:
    """What each of n bins along a ranking is made of, in percent; bins are equally wide, whatever their ranks.

    bands: (error type, n lower edges, n upper edges), stacked, only of types that occur; a bin without predictions has
    no height. ticks: (place among the bins' n + 1 edges, its rank in words).
    """

    bins: int
    bands: Sequence[tuple[str, Sequence[float], Sequence[float]]]
    ticks: Sequence[tuple[int, str]]


def composition_of(edges: Sequence[float], counts: Mapping[str, Sequence[float]]) -> Composition:
    """edges: n + 1 ranks; counts: for each error type, how many of its predictions lie in each of the n bins."""
    bins = len(edges) - 1
    totals = [sum(values[at] for values in counts.values()) for at in range(bins)]
    floor, bands = [0.0] * bins, []
    for name in STYLES:
        if any(counts.get(name, ())):
            shares = (100 * count / total if total else 0.0 for count, total in zip(counts[name], totals, strict=True))
            roof = [below + share for below, share in zip(floor, shares, strict=True)]
            bands.append((name, floor, roof))
            floor = roof
    return Composition(bins, bands, [(at, _rank(edges[at])) for at in _round_ticks(edges)])


def _round_ticks(edges: Sequence[float]) -> list[int]:
    """The places of at most six edges, evenly apart, the first one and of those that follow the roundest numbers."""
    bins = len(edges) - 1
    if bins < 1:
        return list(range(len(edges)))
    strides = [stride for stride in range(1, bins + 1) if bins / stride <= 5]
    even = [stride for stride in strides if is_round(edges[stride] - edges[0])]
    return list(range(0, bins + 1, (even or strides)[0]))


def is_round(number: float) -> bool:
    """Whether a number is 1, 2, 2.5 or 5 times a power of ten."""
    digits = f"{number:.6e}".partition("e")[0]
    return number > 0 and float(digits) in (1.0, 2.0, 2.5, 5.0)


def _rank(rank: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if rank >= size:
            return f"{rank / size:.3g}{letter}"
    return f"{rank:.0f}"


@dataclass(frozen=True)
class SweepPoint:
    """Pair recall and precision in percent under the thresholds that it was measured with, None for none."""

    recall: float
    precision: float
    nms: float | None
    det_threshold: float | None


def pair_sweeps(rows: Iterable[Row]) -> dict[str, list[SweepPoint]]:
    """model -> its points by rising recall, so that a line never doubles back. Raises `UsageError` as `deltas_of`."""
    found: dict[tuple[str, float | None, float | None], dict[str, float]] = {}
    for row in rows:
        value, metric = _value(row), str(row.get("metric"))
        if metric in ("pair_recall", "pair_precision") and row.get("subset") == "full" and value is not None:
            key = (model_name(row), row.get("nms"), row.get("det_threshold"))
            if metric in found.setdefault(key, {}):
                raise _doubled(metric, key[0], " at one threshold")
            found[key][metric] = value
    lines: dict[str, list[SweepPoint]] = {}
    for (model, *thresholds), point in found.items():
        if len(point) == 2:
            lines.setdefault(model, []).append(SweepPoint(point["pair_recall"], point["pair_precision"], *thresholds))
    if not lines:
        raise UsageError(f"{arg('plot')}: there is no pair recall with its precision (subset full) to draw")
    return {
        model: sorted(
            points, key=lambda point: (point.recall, point.precision, str(point.nms), str(point.det_threshold))
        )
        for model, points in lines.items()
    }


FAMILY_WORDS = {name: family.label for name, family in FAMILIES.items()}
"""RoHOI's families as a figure names them."""

_Part = tuple[str, str, int]
"""(corruption, family, severity) that a mean is of, "" and 0 for all; the clean value is of ("clean", "", 0)."""
_CLEAN, _ALL = ("clean", "", 0), ("", "", 0)


@dataclass(frozen=True)
class Robustness:
    """How models stand corruption. lines: name -> its (severity, mean), the clean value at 0, of one model a line a
    family and one of all, of several a line a model. ticks: severity -> its words. bars: means over severities, of one
    model a bar a corruption, of several each model's bars by family. caption: of one model, its name and whole values.
    remark: what is left out."""

    lines: Mapping[str, Sequence[tuple[int, float]]]
    ticks: Mapping[float, str]
    bars: Sequence[Bar]
    caption: str
    remark: str


def robustness_of(rows: Iterable[Row]) -> Robustness:
    """Of the rows of `hoicli robust`, for as many of the first models as LINES can tell apart.

    Raises `UsageError` where there is nothing to draw or two rows claim one place.
    """
    models = _robustness_means(rows)
    shown = dict(list(models.items())[: len(LINES)])
    lines: dict[str, list[tuple[int, float]]] = {}
    for model, means in shown.items():
        for family in [*_families(means), ""] if len(shown) == 1 else [""]:
            name = label(model) or "no name" if len(shown) > 1 else FAMILY_WORDS.get(family, "All")
            while name in lines:  # two long names that are one when cut
                name += "'"
            points = [
                (level, value) for (what, of, level), value in means.items() if level and (what, of) == ("", family)
            ]
            lines[name] = sorted([*((0, value) for part, value in means.items() if part == _CLEAN), *points])
    severities = sorted({severity for points in lines.values() for severity, _ in points})
    ticks: dict[float, str] = {severity: str(severity) if severity else "clean" for severity in severities}
    bars = _corruption_bars(*shown.values()) if len(shown) == 1 else list(_family_bars(shown))
    remark = f"The first {len(shown)} of {len(models)} models." if len(shown) < len(models) else ""
    return Robustness(lines, ticks, bars, _robustness_caption(models), remark)


def _robustness_means(rows: Iterable[Row]) -> dict[str, dict[_Part, float]]:
    """model -> part -> mean, models and parts in order of first appearance."""
    models: dict[str, dict[_Part, float]] = {}
    for row in rows:
        value = _value(row)
        if value is None or row.get("metric") not in ("clean", "mri", "mean"):
            continue
        corruption = "clean" if row["metric"] == "clean" else row.get("corruption", "")
        part = (corruption, row.get("family", ""), row.get("severity", 0))
        means = models.setdefault(model_name(row), {})
        if part in means:
            raise _doubled("one mean", model_name(row))
        means[part] = value
    models = {model: means for model, means in models.items() if _ALL in means}
    if not models:
        raise UsageError(f"{arg('plot')}: there is no row of hoicli robust to draw")
    return models


def _families(means: Mapping[_Part, float]) -> list[str]:
    return [family for family in FAMILY_WORDS if ("", family, 0) in means]


def _corruption_bars(means: Mapping[_Part, float]) -> list[Bar]:
    bars: list[Bar] = []
    for at, family in enumerate(_families(means)):
        of_family = [(what, value) for (what, of, _), value in means.items() if what and of == family]
        bars += [Bar()] * bool(bars)
        bars += [Bar(label(what.replace("_", " ")), value, f"s{at}") for what, value in of_family]
    return bars


def _family_bars(models: Mapping[str, Mapping[_Part, float]]) -> Iterator[Bar]:
    for family in (*FAMILY_WORDS, ""):
        if not family or any(family in _families(means) for means in models.values()):
            yield Bar(FAMILY_WORDS.get(family, "All"))
            for at, (model, means) in enumerate(models.items()):
                yield Bar(label(model) or "no name", means.get(("", family, 0)), f"s{at}")


def _robustness_caption(models: Mapping[str, Mapping[_Part, float]]) -> str:
    if len(models) > 1:
        return ""
    ((model, means),) = models.items()
    clean = f"clean {means[_CLEAN]:.1f}, " if _CLEAN in means else ""
    return f"{label(model) or 'one model'}, {clean}MRI {means[_ALL]:.1f}"


def _doubled(what: str, model: str, where: str = "") -> UsageError:
    return UsageError(
        f"{arg('plot')}: two values of {what} for model {model or 'without a name'}{where}; "
        f"give each file its own {arg('tag', 'model=NAME')}"
    )


def _value(row: Row) -> float | None:
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)
