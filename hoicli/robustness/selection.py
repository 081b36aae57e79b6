"""What a benchmark is asked for: which rows of the streams are its own, and which cells a complete grid has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoicli.corruption.catalogue import ROHOI
from hoicli.errors import UsageError, arg

METRIC, SUBSET = "mAP", "full"
"""What a benchmark is about, where nobody says otherwise."""
VCOCO_PROTOCOL, VCOCO_SUBSET = "vcoco-s2", "24"
"""What the paper's M is on V-COCO (docs/robustness.md has the evidence): AP#2, the official scenario 2, and its mean
over 24 action-roles."""
_VCOCO = "vcoco-"
"""How the names of V-COCO's protocols begin."""
CLEAN = "clean"
"""The `corruption` of the original images' row."""
AUTO, SEEN = "auto", "seen"


@dataclass(frozen=True)
class Selection:
    """Which rows of a stream are the benchmark's: a stream may hold several metrics, subsets and protocols.

    None is mAP and full, or the only kind there is; of protocols the one there is. Among rows that are all V-COCO's it
    is what the paper reports. `unit` ("percent" or "fraction") overrules what rows say of themselves.
    """

    metric: str | None = None
    subset: str | None = None
    protocol: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """The cells a complete grid has, every corruption at every severity.

    SEEN stands for those that occur; AUTO for all of RoHOI's where more than half of them occur (of the severities,
    too, in a whole benchmark), else for SEEN: what is mostly there is meant to be whole, and a few are a choice.
    """

    corruptions: tuple[str, ...] | str = AUTO
    severities: tuple[int, ...] | str = AUTO


def benchmark(corruptions: str, severities: str) -> Benchmark:
    """The grid that two options ask for: names, `rohoi`, `seen` or `auto`; numbers, `seen` or `auto`.

    Raises `UsageError` for anything else.
    """
    names: tuple[str, ...] | str = ROHOI
    if corruptions in (AUTO, SEEN):
        names = corruptions
    elif corruptions != "rohoi":
        names = tuple(dict.fromkeys(part.strip() for part in corruptions.split(",")))
        if "" in names or CLEAN in names:
            raise UsageError(f"{arg('corruption', corruptions)}: give names with commas between, rohoi, seen, or auto")
    levels: tuple[int, ...] | str = severities
    if severities not in (AUTO, SEEN):
        parts = [part.strip() for part in severities.split(",")]
        if not all(map(is_severity, parts)):
            raise UsageError(
                f"{arg('severity', severities)}: give whole numbers of at least 1 with commas between, seen, or auto"
            )
        levels = tuple(sorted(set(map(int, parts))))
    return Benchmark(names, levels)


def is_vcoco(protocol: str) -> bool:
    """Whether a protocol is one of V-COCO's."""
    return protocol.startswith(_VCOCO)


def is_severity(text: str) -> bool:
    """Whether a text is a whole number of at least 1, of at most nine digits."""
    return text.isascii() and text.isdigit() and not text.startswith("0") and len(text) < 10


def named(paths: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """path -> model, for files that are a model each; raises `UsageError` where the names do not fit the paths."""
    if not names:
        return {}
    if len(names) != len(paths):
        raise UsageError(
            f"{arg('name')}: {len(names)} names for {len(paths)} streams; give one a stream, in their order"
        )
    if len(set(names)) != len(names) or len(set(paths)) != len(paths):
        raise UsageError(f"{arg('name')}: {', '.join(names)}: names and streams must differ; give each stream its own")
    return dict(zip(paths, names, strict=True))
