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
"""By level, the side of the black rectangle as a share of its instance's side (the best row of the paper's Table 3)."""
THRESHOLD = 0.1
"""tau; ours, as the paper's words give no value."""
EPSILON = 1e-8


@dataclass(frozen=True)
class Epoch:
    """A finished epoch of training: its number, its level (0 to 3, an index of LEVELS), and its validation score."""

    epoch: int
    level: int
    score: float


def decisions(epochs: Sequence[Epoch], *, threshold: float = THRESHOLD) -> list[Record]:
    """Return the level to train each epoch at: decisions before the first epoch and after each; the last is for the
    epoch to come.

    epochs: all so far, with consecutive numbers. threshold: tau of equation 5. A decision has the number of the
    `epoch`; the level's name (`severity`) and its cover `ratio`, which `hoicli mask` takes; and the reasons:
    `relative_change`, `largest_change` and `threshold` of equation 5 (None before two epochs and after a score of 0),
    whether a level was unlocked (`upgrade`), the highest one `unlocked`, how many epochs were trained at each level
    (`memory`), and the level score q of the unlocked ones (`scores`; None before the first epoch).
    """
    epochs_at_level = [0] * len(LEVELS)
    first_number = epochs[0].epoch if epochs else 0
    no_changes = (None, None, None)  # relative change, largest change and threshold of equation 5
    # before the first epoch: clean is the only unlocked level, and has no score yet
    decisions_made = [_decision(first_number, 0, no_changes, False, epochs_at_level, [None])]
    latest_scores: dict[int, float] = {}  # by level
    unlocked = 0
    largest_change = 0.0
    previous_score: float | None = None
    for epoch in epochs:
        epochs_at_level[epoch.level] += 1
        latest_scores[epoch.level] = epoch.score
        unlocked = max(unlocked, epoch.level)
        upgrade = False
        changes: tuple[float | None, ...] = no_changes
        if previous_score:  # neither before the second epoch nor after a score of 0
            change = (epoch.score - previous_score) / previous_score
            largest_change = max(largest_change, abs(change))
            limit = threshold * (largest_change + EPSILON)
            changes = change, largest_change, limit
            upgrade = abs(change) < limit and unlocked < len(LEVELS) - 1
        unlocked += upgrade
        level_scores = [
            latest_scores.get(level, epoch.score) / (1 + epochs_at_level[level]) for level in range(unlocked + 1)
        ]
        # the masked level (above 0) of the highest score, of equals the lowest; clean if no masked one is unlocked
        best = max(range(len(level_scores)), key=lambda level: (level > 0, level_scores[level], -level))
        chosen = best if level_scores[best] > level_scores[0] else 0
        decisions_made.append(_decision(epoch.epoch + 1, chosen, changes, upgrade, epochs_at_level, level_scores))
        previous_score = epoch.score
    return decisions_made


def _decision(
    epoch: int, level: int, changes: Sequence[float | None], upgrade: bool, epochs_at_level: Sequence[int],
    level_scores: Sequence[float | None],
) -> Record:  # fmt: skip
    """Return a decision: the level to train an epoch at, and the reasons. epoch: the number of the epoch; level: the
    chosen one; changes: the three numbers of equation 5; upgrade: whether a level was unlocked; epochs_at_level: how
    many were trained at each; level_scores: of the unlocked levels, from clean on."""
    unlocked_names = LEVELS[: len(level_scores)]
    return {
        "epoch": epoch,
        "severity": LEVELS[level],
        "ratio": RATIOS[LEVELS[level]],
        **dict(zip(("relative_change", "largest_change", "threshold"), changes, strict=True)),
        "upgrade": upgrade,
        "unlocked": unlocked_names[-1],
        "memory": dict(zip(LEVELS, epochs_at_level, strict=True)),
        "scores": dict(zip(unlocked_names, level_scores, strict=True)),
    }


def read_epochs(lines: Iterable[Line]) -> list[Epoch]:
    """Return the epochs of lines like {"epoch": 3, "severity": "low", "score": 31.2}, sorted by number; `severity` is
    the name or the number of a level.

    Raises `DataError` for a bad line, a missing epoch, and one that occurs twice.
    """
    epochs: dict[int, Epoch] = {}
    places: dict[int, str] = {}
    for line in lines:
        epoch = _parse_epoch(parse(line), line.place)
        number = epoch.epoch
        if number in epochs:
            problem = f"epoch {number} is at {places[number]} already; keep one line an epoch"
            raise DataError(problem, place=line.place, field="epoch")
        epochs[number], places[number] = epoch, line.place
    numbers = sorted(epochs)
    for previous, number in pairwise(numbers):
        if number != previous + 1:
            problem = f"there is no epoch {previous + 1}; changes are between consecutive epochs: give a line for each"
            raise DataError(problem, place=places[number], field="epoch")
    return [epochs[number] for number in numbers]


def _parse_epoch(record: Record, place: str) -> Epoch:
    """Return the epoch that a record of the history describes. Raises `DataError`, with the record's place, for one
    without a valid number, level or score."""
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
