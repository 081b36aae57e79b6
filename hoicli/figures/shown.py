"""What a figure shows, taken from result rows: the same for matplotlib and for SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hoicli.errors import UsageError
from hoicli.records.corruptions import FAMILIES
from hoicli.records.results import Row

if TYPE_CHECKING:
    pass
from hoicli.figures.styles import ALL_CLASSES, GROUPED, LINES, ORACLES


def model_name(row: Row) -> str:
    """Whose row it is: its `model`, its tag `model`, else all its tags; empty when nothing tells."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def short_name(name: str) -> str:
    """A name as matplotlib may have it: one short line, no control characters, no `$` that would start a formula."""
    text = "".join(letter if letter.isprintable() else " " for letter in name)
    return (text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}").replace("$", r"\$")


def deltas_of(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """model -> oracle -> delta mAP, models in order of first appearance."""
    deltas: dict[str, dict[str, float | None]] = {}
    for row in rows:
        if row.get("metric") != "delta_mAP" or row.get("subset") not in ALL_CLASSES:
            continue
        model, oracle = model_name(row), row["oracle"]
        if oracle in deltas.setdefault(model, {}):
            raise UsageError(
                f"--plot: two values of oracle {oracle} for model {model or 'without a name'}; "
                "give each file its own --tag model=NAME"
            )
        deltas[model][oracle] = _value(row)
    if not deltas:
        raise UsageError("--plot: there is no delta_mAP over all classes (subset full, or 25) to draw")
    return deltas


def pair_sweeps(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """model -> its points by rising recall, so that a line never doubles back."""
    found: dict[tuple[str, float | None, float | None], dict[str, float]] = {}
    for row in rows:
        value = _value(row)
        if row.get("metric") in ("pair_recall", "pair_precision") and row.get("subset") == "full" and value is not None:
            key = (model_name(row), row.get("nms"), row.get("det_threshold"))
            metric = str(row["metric"])
            if metric in found.setdefault(key, {}):
                raise UsageError(
                    f"--plot: two values of {metric} for model {key[0] or 'without a name'} at one threshold; "
                    "give each file its own --tag model=NAME"
                )
            found[key][metric] = value
    lines: dict[str, list[dict[str, Any]]] = {}
    for (model, nms, threshold), point in found.items():
        if len(point) == 2:
            place = {"x": point["pair_recall"], "y": point["pair_precision"]}
            lines.setdefault(model, []).append({**place, "nms": nms, "det_threshold": threshold})
    if not lines:
        raise UsageError("--plot: there is no pair recall with its precision (subset full) to draw")
    for points in lines.values():
        points.sort(key=lambda point: (point["x"], point["y"], str(point["nms"]), str(point["det_threshold"])))
    return lines


FAMILY_WORDS = {name: family.label for name, family in FAMILIES.items()}
"""RoHOI's families as a figure names them."""

Part = tuple[str, str, int]
"""(corruption, family, severity) that a mean is of, "" and 0 for all; the clean value is of ("clean", "", 0)."""


def robustness_means(rows: Iterable[Row]) -> dict[str, dict[Part, float]]:
    """model -> part -> mean, models and parts in order of first appearance."""
    models: dict[str, dict[Part, float]] = {}
    for row in rows:
        value = _value(row)
        if value is None or row.get("metric") not in ("clean", "mri", "mean"):
            continue
        corruption = "clean" if row["metric"] == "clean" else row.get("corruption", "")
        part = (corruption, row.get("family", ""), row.get("severity", 0))
        means = models.setdefault(model_name(row), {})
        if part in means:
            raise UsageError(
                f"--plot: two values of one mean for model {model_name(row) or 'without a name'}; "
                "give each its own --tag model=NAME"
            )
        means[part] = value
    models = {model: means for model, means in models.items() if ("", "", 0) in means}
    if not models:
        raise UsageError("--plot: there is no row of hoicli robust to draw")
    return models


def severity_lines(rows: Iterable[Row]) -> dict[str, list[tuple[int, float]]]:
    """What a line is called -> its (severity, mean), the clean value at 0, of the rows of `hoicli robust`.

    Of one model a line a family and one of all, of several a line a model, for as many as LINES can tell apart. Raises
    `UsageError` where there is nothing to draw or two rows claim one point.
    """
    return lines_by_severity(dict(list(robustness_means(rows).items())[: len(LINES)]))


def lines_by_severity(models: Mapping[str, Mapping[Part, float]]) -> dict[str, list[tuple[int, float]]]:
    """What a line is called -> its (severity, mean), the clean value at 0: of one model a line a family and all."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for model, means in models.items():
        families = [*_families(means), ""] if len(models) == 1 else [""]
        for family in families:
            name = short_name(model) or "no name" if len(models) > 1 else FAMILY_WORDS.get(family, "All")
            points = [(severity, value) for (what, of, severity), value in means.items() if (what, of) == ("", family)]
            clean = [(0, value) for part, value in means.items() if part == ("clean", "", 0)]
            while name in lines:  # two long names that are one when cut
                name += "'"
            lines[name] = sorted([*clean, *(point for point in points if point[0])])
    return lines


def _families(means: Mapping[Part, float]) -> list[str]:
    return [family for family in FAMILY_WORDS if any(part == ("", family, 0) for part in means)]


def robustness_places(models: Mapping[str, Mapping[Part, float]]) -> list[tuple[str, float | None, int | None]]:
    """The bars from the top: (label, value, place in LINES); a heading has no place, a gap no label either."""
    places: list[tuple[str, float | None, int | None]] = []
    if len(models) == 1:
        means = next(iter(models.values()))
        for at, family in enumerate(_families(means)):
            bars = [(what, value) for (what, of, _), value in means.items() if what and of == family]
            places += [("", None, None)] * bool(places)
            places += [(short_name(name.replace("_", " ")), value, at) for name, value in bars]
        return places
    present = [family for family in FAMILY_WORDS if any(family in _families(means) for means in models.values())]
    for family in (*present, ""):
        places.append((FAMILY_WORDS.get(family, "All"), None, None))
        for at, (model, means) in enumerate(models.items()):
            places.append((short_name(model) or "no name", means.get(("", family, 0)), at))
    return places


def robustness_caption(models: Mapping[str, Mapping[Part, float]], shown: int) -> str:
    if len(models) > 1:
        return f"The first {shown} of {len(models)} models." if shown < len(models) else ""
    model, means = next(iter(models.items()))
    clean = means.get(("clean", "", 0))
    parts = [f"clean {clean:.1f}"] if clean is not None else []
    parts.append(f"MRI {means['', '', 0]:.1f}")
    return f"{short_name(model) or 'One model'}: {', '.join(parts)}."


def _value(row: Row) -> float | None:
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)


def delta_places(deltas: Mapping[str, Mapping[str, float | None]]) -> list[tuple[str, str | None]]:
    """The lines of the bar chart from the top: (oracle, model), (oracle, None) for a heading, ("", None) for a gap."""
    present = [oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())]
    places: list[tuple[str, str | None]] = []
    for oracle in present:
        if oracle in GROUPED and places and places[-1][0] not in GROUPED:
            places.append(("", None))
        if len(deltas) > 1:
            places.append((oracle, None))
        places.extend((oracle, model) for model in deltas)
    return places
