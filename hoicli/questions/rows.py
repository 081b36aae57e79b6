"""Multiple choice, grounding and referring as result rows, each with its signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.questions.answers import Answers
from hoicli.questions.choice import METRICS, tallied
from hoicli.questions.detectors import Selection
from hoicli.questions.grounding import grounded
from hoicli.questions.referring import Similar, referred
from hoicli.questions.results import Grounding, Referring, digest_of, other_scale
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.similarity.table import SimilarityTable

CHOICE = "crosshoi"
"""The protocol of the rows."""
RELEASED = {"crosshoi-bench": "ChelsieLei/CrossHOI-Bench, commit 249db3c"}
"""What `--as-released` takes."""
GROUNDING = "hoi-grounding"
"""The protocol of the rows of grounding."""
REFERRING = "hoi-referring"
"""The protocol of the rows of referring."""
HOI_BENCHMARKS = {"hoi-benchmarks": "SIT-AIGCDesignLab/hoi-benchmarks, commit 78ab063"}
"""What `--as-released` of grounding and referring takes."""


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
    answered, how many answers were refused, and of a detector which predictions count."""
    bank = answers.bank
    tally = tallied(answers, released=released is not None)
    if tally.outside:
        count, first = f"{len(tally.outside):,}", tally.outside[0]
        note(f"macro F1 is without options that are no interaction of {bank.dataset}: {count} (the first: {first!r})")
    settings = {"data": bank.dataset, "gt": bank.digest, "setting": bank.setting}
    settings |= {"released": released} if released else {}
    settings |= {"choose": str(selection)} if answers.detected else {}
    settings |= {"missing": str(answers.missing)} if answers.missing else {}
    settings |= {"refused": str(answers.refused)} if answers.refused else {}
    ends = {} if resampling is None else tally.intervals(resampling)
    settings |= {} if resampling is None else resampling.signature()
    scores = tally.scores()
    for metric in METRICS:
        score = scores[metric]
        row: Row = {"metric": metric, "subset": "full", "value": percent(score.value), "n": score.n, "unit": "%"}
        if resampling is not None:
            row |= interval_keys(ends[metric])
        yield row | {"setting": bank.setting} | row_ends(CHOICE, tags, settings)


def grounding_rows(
    rows: Sequence[Grounding],
    match: str,
    *,
    tags: Mapping[str, str],
    most: int | None = None,
    released: str | None = None,
    resampling: Resampling | None = None,
    signed: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """AR, AR@0.5 and AR@0.75 in percent, and AR of small, medium and large objects; `n`: questions, of a size its true
    pairs. The signature has the rule of matching, a digest of the questions, how many failed, and `signed`. released:
    as the released scripts have it, 0 where there is nothing to find."""
    found = grounded(rows, match, most=most, released=released is not None)
    if scale := other_scale(rows):
        note(f"the predicted boxes look like {scale} of the picture, and are read as pixels: convert them to pixels")
    failed = sum(row.failed for row in rows)
    settings = {"gt": digest_of([[row.image, row.truth] for row in rows]), "match": match}
    settings |= {} if most is None else {"topk": str(most)}
    settings |= {"failed": str(failed)} if failed else {}
    settings |= signed or {}
    settings |= {"released": released} if released else {}
    ends = {} if resampling is None else found.intervals(resampling)
    settings |= {} if resampling is None else resampling.signature()
    for (metric, subset), recall in found.recalls().items():
        value = 0.0 if released and recall.value is None else recall.value
        row: Row = {"metric": metric, "subset": subset, "value": percent(value), "n": recall.n, "unit": "%"}
        if resampling is not None:
            row |= interval_keys(ends[metric, subset])
        yield row | row_ends(GROUNDING, tags, settings)


def referring_rows(
    rows: Sequence[Referring],
    similar: Similar,
    sim: str,
    *,
    dataset: str | None,
    tags: Mapping[str, str],
    policy: ErrorPolicy,
    released: str | None = None,
    resampling: Resampling | None = None,
) -> Iterator[Row]:
    """exact_match and verb_similarity in percent; `n`: phrases. The signature has a digest of the true phrases, and of
    the similarity its measure, with a table's digest, and whose senses the true verbs have."""
    found = referred(rows, similar, released=released is not None)
    settings = {"gt": digest_of([[row.image, row.truth] for row in rows])}
    failed = sum(row.failed for row in rows)
    settings |= {"failed": str(failed)} if failed else {}
    settings |= {"released": released} if released else {}
    settings |= {} if resampling is None else resampling.signature()
    kind, _, path = sim.partition(":")
    if kind == "table":
        sim = f"table-{SimilarityTable.read(Stream([path], 'table'), policy).digest()}"
    ends = {} if resampling is None else found.intervals(resampling)
    for metric, (mean, count) in found.means().items():
        row: Row = {"metric": metric, "subset": "full", "value": percent(mean), "n": count, "unit": "%"}
        if resampling is not None:
            row |= interval_keys(ends[metric])
        own = {"data": dataset or "open", "sim": sim} if metric == "verb_similarity" else {}
        yield row | row_ends(REFERRING, tags, {**settings, **own})
