"""Multiple choice, grounding and referring as result rows, each with its signature."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.shoe.rating import rate
from hoicli.shoe.table import SimilarityTable
from hoicli.vlm.answers import Answers
from hoicli.vlm.choice import tallied
from hoicli.vlm.detectors import BEST
from hoicli.vlm.grounding import grounded
from hoicli.vlm.measured import Measured
from hoicli.vlm.referring import compared, needed, referred, similarities
from hoicli.vlm.results import Grounding, Referring, other_scale
from hoicli.wordnet.lexicon import open_wordnet

CHOICE, GROUNDING, REFERRING = "crosshoi", "hoi-grounding", "hoi-referring"
"""The protocols of the rows."""
RELEASED = {
    "crosshoi-bench": "ChelsieLei/CrossHOI-Bench, commit 249db3c",
    "hoi-benchmarks": "SIT-AIGCDesignLab/hoi-benchmarks, commit 78ab063",
}
"""What `--as-released` takes: the first for choice, the other for grounding and referring."""


@dataclass(frozen=True)
class RowMaker:
    """Makes rows of values in percent. released: whose script's figures they are, None for the papers'; resampling:
    None for rows without intervals."""

    tags: Mapping[str, str]
    released: str | None = None
    resampling: Resampling | None = None

    def choice(self, answers: Answers) -> Iterator[Row]:
        """METRICS of the answers, by the bank's setting; `n`: questions (macro F1: interactions; micro F1 and recall:
        right options; precision: chosen ones). The signature has the digest of the questions, how many were not
        answered, how many answers were refused, and of a detector which predictions count."""
        bank = answers.bank
        tally = tallied(answers, released=self.released is not None)
        settings = {"data": bank.dataset, "gt": bank.digest, "setting": bank.setting}
        settings |= {"choose": f"top:{BEST}"} if answers.detected else {}
        settings |= {"missing": str(answers.missing)} if answers.missing else {}
        settings |= {"refused": str(answers.refused)} if answers.refused else {}
        return self._rows(CHOICE, tally, settings, besides={"setting": bank.setting})

    def grounding(self, rows: Sequence[Grounding]) -> Iterator[Row]:
        """AR, AR@0.5 and AR@0.75, and AR of small, medium and large objects; `n`: questions, of a size its true pairs.
        The signature has the rule of matching, a digest of the questions, and how many failed. As released, a value is
        0 where there is nothing to find."""
        found = grounded(rows, released=self.released is not None)
        if scale := other_scale(rows):
            problem = f"the predicted boxes look like {scale} of the picture, and are read as pixels"
            note(f"{problem}: convert them to pixels")
        return self._rows(GROUNDING, found, {**_asked(rows), "match": "mean"}, empty=0.0 if self.released else None)

    def referring(
        self, rows: Sequence[Referring], sim: Stream | str, dataset: str | None, policy: ErrorPolicy
    ) -> Iterator[Row]:
        """exact_match and verb_similarity; `n`: phrases. sim: tables, or an offline measure. The signature has a digest
        of the true phrases, and of the similarity its measure, or the table's digest, and whose senses the true verbs
        have."""
        senses = compared(rows, dataset)
        pairs = needed(senses)
        if isinstance(sim, str):
            values, named = [one.similarity for one in rate(sim, pairs)], sim
        else:
            table = SimilarityTable.read(sim, policy, open_wordnet().canonical)
            known = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs]).tolist()
            values, named = [None if math.isnan(value) else value for value in known], f"table-{table.digest()}"
        similar = similarities(senses, dict(zip(pairs, values, strict=True)))
        found = referred(rows, similar, released=self.released is not None)
        own = {"verb_similarity": {"data": dataset or "open", "sim": named}}
        return self._rows(REFERRING, found, _asked(rows), of_metric=own)

    def _rows(
        self,
        protocol: str,
        measured: Measured,
        settings: Mapping[str, str],
        *,
        of_metric: Mapping[str, Mapping[str, str]] | None = None,
        besides: Row | None = None,
        empty: float | None = None,
    ) -> Iterator[Row]:
        """of_metric: settings of one metric alone; besides: further keys; empty: what is written for no value."""
        settings = {**settings, **({"released": self.released} if self.released else {})}
        settings |= {} if self.resampling is None else self.resampling.signature()
        for (metric, subset), score in measured.scores(self.resampling).items():
            value = empty if score.value is None else score.value
            row: Row = {"metric": metric, "subset": subset, "value": percent(value), "n": score.n, "unit": "%"}
            row |= {} if self.resampling is None else interval_keys(score.ends)
            signed = {**settings, **(of_metric or {}).get(metric, {})}
            yield row | (besides or {}) | row_ends(protocol, self.tags, signed)


def _asked(rows: Sequence[Grounding] | Sequence[Referring]) -> dict[str, str]:
    """What a signature says of the rows of result files: a digest of what was asked, and how many requests failed."""
    failed = sum(row.failed for row in rows)
    digest = hashlib.sha256(orjson.dumps([[row.image, row.truth] for row in rows])).hexdigest()[:8]
    return {"gt": digest} | ({"failed": str(failed)} if failed else {})
