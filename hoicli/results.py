"""Result rows: one value a line, each with the signature of the settings that made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoicli import __version__
from hoicli.errors import UsageError

Row = dict[str, Any]

SIGNATURE_KEYS = (
    *("protocol", "data", "split", "noint", "pairs", "released", "topk", "det", "nms"),
    *("sim", "wordnet", "delta", "against", "combine", "verb", "ap", "minscore", "minrank"),
    *("boot", "swaps", "levels", "permutations", "seed"),
    *("of", "grid", "missing"),
    "version",
)
"""Every key a signature may hold, in its order. Of eval's and diagnose's settings (the first line) only those that
differ from the defaults appear; of SHOE's, the agreement's and the robustness's all, as no default is canonical."""


def signature(settings: Mapping[str, str]) -> str:
    """`key:value|key:value`, always in the order of SIGNATURE_KEYS, as sacreBLEU prints them.

    Two rows with one signature were made by the same computation. The version is added here.
    """
    settings = {**settings, "version": __version__}
    unknown = settings.keys() - set(SIGNATURE_KEYS)
    if unknown:
        raise ValueError(f"unknown signature keys {sorted(unknown)}")
    return "|".join(f"{key}:{settings[key]}" for key in SIGNATURE_KEYS if key in settings)


def parse_tags(tags: list[str]) -> dict[str, str]:
    """`--tag key=value` options as a dictionary; raises `UsageError` that names every bad one."""
    bad = [tag for tag in tags if "=" not in tag or tag.startswith("=")]
    if bad:
        raise UsageError(f"--tag {', '.join(bad)}: write key=value, for example --tag model=cdn")
    return dict(tag.split("=", 1) for tag in tags)


def percent(value: float | None) -> float | None:
    """A fraction in percent; None stays None."""
    return None if value is None else 100.0 * float(value)


CHANCES = ("p", "p_bootstrap", "q")
"""How likely a difference is by chance, as compare says it."""


def interval_keys(ends: tuple[float, float] | None) -> Row:
    """ci_low and ci_high of a row in percent, null where nothing could be estimated."""
    low, high = ends or (None, None)
    return {"ci_low": percent(low), "ci_high": percent(high)}
