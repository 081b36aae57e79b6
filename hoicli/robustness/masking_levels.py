"""SAMPL's score-guided curriculum (RoHOI, section 4, equations 4 to 8): the masking level of the next epoch.

Written from the paper's words, not its typeset equations. docs/commands/curriculum.md has the choices that they leave.
With s(t) the validation score of epoch t, e a small constant and tau the initial threshold:

(4) relative change   d(t) = (s(t) - s(t-1)) / s(t-1), none from a score of 0.
(5) upgrade           |d(t)| < tau * (D(t) + e), D(t) the largest |d| so far, that of epoch t included.
(6) unlocked level    one higher after an upgrade, high at most; training begins at clean. An epoch that was trained at
                      a level unlocks it, whatever was advised.
(7) level score       q(l) = p(l) / (1 + n(l)), p(l) the score of the last epoch at level l (of a level without one the
                      present score) and n(l) how many epochs were.
(8) next level        of the unlocked masked levels the one of highest q, of equals the lower, unless clean's is as
                      high or higher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.parsing import Record, is_number, parse

LEVELS = ("clean", "low", "middle", "high")
"""The severities of SAMPL's masks, rising; clean is the original image."""
RATIOS: Mapping[str, float] = {"clean": 0.0, "low": 0.4, "middle": 0.5, "high": 0.6}
"""Level -> the side of a black rectangle as a share of its instance's (Table 3 of the paper, the best of its rows)."""
THRESHOLD = 0.1
"""tau; ours, as the paper's words give no value."""
EPSILON = 1e-8


@dataclass(frozen=True)
class Epoch:
    """A finished epoch: its number, the level it was trained at (a number of LEVELS) and its validation score."""

    epoch: int
    level: int
    score: float


def decisions(epochs: Sequence[Epoch], *, threshold: float = THRESHOLD, epsilon: float = EPSILON) -> list[Record]:
    """Return the decision before the first epoch and the one after each; the last is for the epoch to come.

    epochs: in order, their numbers consecutive. A decision has the `severity`, the cover `ratio` that `hoicli mask`
    takes, and why: `relative_change`, `largest_change` and `threshold` (None before two epochs and after a score of 0),
    `upgrade`, the highest level `unlocked`, how many epochs were trained at each level (`memory`), and the q of the
    unlocked ones (`scores`; None before the first epoch).
    """
    memory = [0] * len(LEVELS)
    decisions_made = [_decision(epochs[0].epoch if epochs else 0, 0, (None, None, None), False, memory, [None])]
    latest: dict[int, float] = {}
    unlocked = 0
    largest = 0.0
    previous: float | None = None
    for epoch in epochs:
        memory[epoch.level] += 1
        latest[epoch.level] = epoch.score
        unlocked = max(unlocked, epoch.level)
        upgrade = False
        changes: tuple[float | None, ...] = (None, None, None)
        if previous:  # neither before the second epoch nor after a score of 0
            change = (epoch.score - previous) / previous
            largest = max(largest, abs(change))
            limit = threshold * (largest + epsilon)
            changes = change, largest, limit
            upgrade = abs(change) < limit and unlocked < len(LEVELS) - 1
        unlocked += upgrade
        scores = [latest.get(level, epoch.score) / (1 + memory[level]) for level in range(unlocked + 1)]
        # the masked level of highest q, the lowest of equals; clean only while no other level is unlocked
        best = max(range(len(scores)), key=lambda level: (level > 0, scores[level], -level))
        chosen = best if scores[best] > scores[0] else 0
        decisions_made.append(_decision(epoch.epoch + 1, chosen, changes, upgrade, memory, scores))
        previous = epoch.score
    return decisions_made


def _decision(
    epoch: int, level: int, changes: Sequence[float | None], upgrade: bool, memory: Sequence[int],
    scores: Sequence[float | None],
) -> Record:  # fmt: skip
    names = LEVELS[: len(scores)]
    return {
        "epoch": epoch,
        "severity": LEVELS[level],
        "ratio": RATIOS[LEVELS[level]],
        **dict(zip(("relative_change", "largest_change", "threshold"), changes, strict=True)),
        "upgrade": upgrade,
        "unlocked": names[-1],
        "memory": dict(zip(LEVELS, memory, strict=True)),
        "scores": dict(zip(names, scores, strict=True)),
    }


def read_epochs(lines: Iterable[Line]) -> list[Epoch]:
    """Return the epochs of lines like {"epoch": 3, "severity": "low", "score": 31.2}, sorted by number.

    `severity` is a level's name or number. Raises `DataError` for a bad line, a missing epoch, and one that is there
    twice.
    """
    epochs: dict[int, tuple[Epoch, str]] = {}
    for line in lines:
        epoch = _epoch(parse(line), line.place)
        first, place = epochs.setdefault(epoch.epoch, (epoch, line.place))
        if first is not epoch:
            problem = f"epoch {epoch.epoch} is at {place} already; keep one line an epoch"
            raise DataError(problem, place=line.place, field="epoch")
    numbers = sorted(epochs)
    for before, number in pairwise(numbers):
        if number != before + 1:
            problem = f"there is no epoch {before + 1}; changes are between consecutive epochs: give a line for each"
            raise DataError(problem, place=epochs[number][1], field="epoch")
    return [epochs[number][0] for number in numbers]


def _epoch(record: Record, place: str) -> Epoch:
    number, level, score = (record.get(key, "") for key in ("epoch", "severity", "score"))
    if type(number) is not int or number < 0:
        problem = "missing or no whole number of at least 0; a line has epoch, severity and score"
        raise DataError(problem, place=place, field="epoch")
    if type(level) is str and level in LEVELS:
        level = LEVELS.index(level)
    if type(level) is not int or not 0 <= level < len(LEVELS):
        raise DataError(f"choose {', '.join(LEVELS)}, or 0 to {len(LEVELS) - 1}", place=place, field="severity")
    if not is_number(score) or score < 0:
        raise DataError("missing or no finite number of at least 0", place=place, field="score")
    return Epoch(number, level, float(score))
