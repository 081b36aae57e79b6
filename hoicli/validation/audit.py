"""An audit of the ground truth: what to look at in it, and what mAP would be without it.

Every finding is a candidate: whether it is an error is for a person to say, with the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage, check_counted, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.run import gathered
from hoicli.evaluation.tally import Tally, classes_of
from hoicli.io.streams import Line
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.scenes import Scenes
from hoicli.validation.candidates import Contradicted, Missing, contradicted, missing
from hoicli.validation.changes import with_missing
from hoicli.validation.duplicates import Duplicates, merged, near_duplicates
from hoicli.validation.opinions import Levels, Opinion

DUPLICATE, CONTRADICTED, MISSING = KINDS = ("near_duplicate", "contradicted", "missing_label")


@dataclass(frozen=True)
class Rules:
    """What is a candidate. same: the IoU from which on two boxes of a label are one. votes: how many models must say
    so, None for all of them. levels: how sure each must be."""

    same: float = 0.7
    votes: int | None = None
    levels: Levels = field(default_factory=Levels)

    def __post_init__(self) -> None:
        shares = {
            "same": self.same,
            "confident": self.levels.confident,
            "dismissed": self.levels.dismissed,
            "known": self.levels.known,
        }
        for name, value in shares.items():
            if not (0 < value <= 1 if name == "same" else 0 <= value <= 1):
                scale = "in percent, from 0 to 100" if name == "known" else "from 0 to 1"
                raise UsageError(f"{arg(name, 100 * value if name == 'known' else value)}: give a number {scale}")

    def of(self, models: int) -> Rules:
        """The rules with the votes in force. Raises `UsageError` for more votes than models."""
        votes = models if self.votes is None else self.votes
        if models and not 1 <= votes <= models:
            raise UsageError(f"{arg('votes', votes)}: give a whole number from 1 to {models}, the number of models")
        return replace(self, votes=votes)

    @property
    def of_models(self) -> str:
        """How a signature writes what is asked of the models."""
        levels = self.levels
        return f"{levels.confident:g}/{levels.dismissed:g}/{levels.known:g}"


class Audit:
    """The candidates in one ground truth, with the models that say so."""

    def __init__(
        self,
        truth: GroundTruth,
        protocol: Protocol,
        rules: Rules,
        models: Iterable[tuple[str, Predictions]] = (),
        filters: Filters | None = None,
        policy: ErrorPolicy | None = None,
    ) -> None:
        """models: (name, predictions). Raises `DataError` for a bad stream, and for ground truth that the protocol
        cannot use."""
        models = list(models)
        self.truth, self.protocol, self.rules = truth, protocol, rules.of(len(models))
        self.filters = filters or Filters()
        self.duplicates: Duplicates = near_duplicates(truth.scenes, truth.vocabulary, protocol, rules.same)
        served(truth, [protocol] if models else [])
        several = len(models) > 1
        self.tallies: list[Tally] = []
        self.opinions = [
            self._opinion(name, stream, policy or ErrorPolicy(), name if several else None) for name, stream in models
        ]

    def _opinion(self, name: str, stream: Predictions, policy: ErrorPolicy, told: str | None) -> Opinion:
        """A model's predictions, read and matched."""
        truth, coverage = self.truth, Coverage()

        def read(lines: Iterable[Line], policy: ErrorPolicy) -> Scenes:
            with no_garbage_collection():
                known = truth.position
                found = read_scenes(lines, truth.vocabulary, scored=True, policy=policy, known=known)
                return concatenate(found, truth.vocabulary)

        def disjoint(parts: list[Scenes]) -> bool:
            ids = list(chain.from_iterable(scenes.image_ids for scenes in parts))
            return len(set(ids)) == len(ids)

        scenes = concatenate(gathered(read, stream, policy, disjoint), truth.vocabulary)
        batch = Batch(scenes, truth, all_boxes=True)
        coverage.add(batch)
        tally, found = self.tally(batch), batch.match(self.protocol, self.filters)
        check_counted(tally, truth.vocabulary, stream.name, allowed=self.filters.allow_uncounted)
        coverage.report(truth, [self.protocol], stream.name, model=told)
        self.tallies.append(tally)
        ((_, results),) = tally.results(truth.vocabulary)
        number = np.arange(len(truth.vocabulary.interactions))
        ap = np.where(results.positives > 0, results.ap, 0.0)[classes_of(number, truth.vocabulary, self.protocol)]
        return Opinion(name, batch, found, self.protocol, ap)

    def tally(self, batch: Batch) -> Tally:
        """A batch matched with its ground truth, which may be changed, and counted."""
        tally = Tally([self.protocol], len(self.truth.vocabulary.interactions))
        tally.add_batch(batch, {self.protocol.key: batch.match(self.protocol, self.filters)})
        tally.add_truth(batch.truth)
        return tally

    @cached_property
    def contradicted(self) -> Contradicted:
        """The annotated triplets that the models contradict."""
        return contradicted(self.truth, self.opinions, self.rules.levels, self.rules.votes or 1)

    @cached_property
    def missing(self) -> Missing:
        """The triplets that the models predict and nobody annotated."""
        return missing(self.truth, self.opinions, self.rules.levels, self.rules.votes or 1, self.rules.same)

    @property
    def signed(self) -> dict[str, str]:
        """What the predictions add to signatures: how they were filtered, and whether most of a model's count."""
        leave = {key: value for tally in self.tallies for key, value in tally.leave.items()}
        return self.filters.signature() | leave

    def settings(self, kind: str) -> dict[str, str]:
        """What a candidate of a kind depends on, for its signature."""
        settings = {"data": self.truth.vocabulary.signed, **self.truth.settings(self.protocol)}
        if kind == DUPLICATE:
            return settings | {"audit": f"same-{self.rules.same:g}"}
        asked = f"{self.rules.of_models}/{self.rules.votes}-of-{len(self.opinions)}"
        asked += f"/same-{self.rules.same:g}" if kind == MISSING else ""
        return settings | self.signed | {"audit": asked}

    def changed(self, kinds: Sequence[str]) -> Scenes:
        """The annotations with the candidates of these kinds added, removed and merged, in this order."""
        scenes, truth = self.truth.scenes, self.truth
        if CONTRADICTED in kinds:
            scenes = scenes.only(np.setdiff1d(np.arange(len(scenes.subject)), self.contradicted.truth))
        if MISSING in kinds:
            scenes = with_missing(scenes, self.missing, truth.vocabulary, self.protocol, self.rules.same)
        if DUPLICATE in kinds:
            scenes = merged(
                scenes,
                self.duplicates
                if scenes is truth.scenes
                else near_duplicates(scenes, truth.vocabulary, self.protocol, self.rules.same),
            )
        return scenes
