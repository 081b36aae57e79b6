"""Multiple choice as result rows, each with its signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hoicli.io.messages import note
from hoicli.questions.answers import Answers
from hoicli.questions.choice import METRICS, tallied
from hoicli.questions.detectors import Selection
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling

CHOICE = "crosshoi"
"""The protocol of the rows."""
RELEASED = {"crosshoi-bench": "ChelsieLei/CrossHOI-Bench, commit 249db3c"}
"""What `--as-released` takes."""


def choice_rows(
    answers: Answers,
    *,
    tags: Mapping[str, str],
    selection: Selection,
    released: str | None = None,
    resampling: Resampling | None = None,
) -> Iterator[Row]:
    """METRICS of the answers in percent, by the bank's setting; `n`: questions (macro F1: interactions; micro F1 and
    recall: right options; precision: chosen ones). The signature has the digest of the questions, how many were not
    answered, and of a detector which predictions count."""
    bank = answers.bank
    tally = tallied(answers, released=released is not None)
    if tally.outside:
        count, first = f"{len(tally.outside):,}", tally.outside[0]
        note(f"macro F1 is without options that are no interaction of {bank.dataset}: {count} (the first: {first!r})")
    settings = {"data": bank.dataset, "gt": bank.digest, "setting": bank.setting}
    settings |= {"released": released} if released else {}
    settings |= {"choose": str(selection)} if answers.detected else {}
    settings |= {"missing": str(answers.missing)} if answers.missing else {}
    ends = {} if resampling is None else tally.intervals(resampling)
    settings |= {} if resampling is None else resampling.signature()
    scores = tally.scores()
    for metric in METRICS:
        score = scores[metric]
        row: Row = {"metric": metric, "subset": "full", "value": percent(score.value), "n": score.n, "unit": "%"}
        if resampling is not None:
            row |= interval_keys(ends[metric])
        yield row | {"setting": bank.setting} | row_ends(CHOICE, tags, settings)
