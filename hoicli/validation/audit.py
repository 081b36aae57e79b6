"""An audit of the ground truth: what to look at in it, and what mAP would be without it.

Every finding is a candidate: whether it is an error is for a person to say, with the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from hoicli.evaluation.coverage import Coverage, check_counted, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.run import gathered, no_image_twice
from hoicli.evaluation.tally import Tally, classes_of
from hoicli.io.streams import Line
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.scenes import Scenes
from hoicli.validation.candidates import Contradicted, Missing, contradicted, missing
from hoicli.validation.duplicates import Duplicates, merged, near_duplicates, with_missing
from hoicli.validation.opinions import Opinion, Rules

DUPLICATE, CONTRADICTED, MISSING = KINDS = ("near_duplicate", "contradicted", "missing_label")


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
        self.filters, policy = filters or Filters(), policy or ErrorPolicy()
        self.duplicates: Duplicates = near_duplicates(truth.scenes, truth.vocabulary, protocol, rules.same)
        served(truth, [protocol] if models else [])
        several = len(models) > 1
        self.opinions = [self._opinion(name, stream, policy, name if several else None) for name, stream in models]

    def _opinion(self, name: str, stream: Predictions, policy: ErrorPolicy, told: str | None) -> Opinion:
        """A model's predictions, read and matched. told: its name in notes, None where there is one model alone."""
        truth, protocol, coverage = self.truth, self.protocol, Coverage()
        vocabulary = truth.vocabulary

        def read(lines: Iterable[Line], policy: ErrorPolicy) -> Scenes:
            with no_garbage_collection():
                found = read_scenes(lines, vocabulary, scored=True, policy=policy, known=truth.position)
                return concatenate(found, vocabulary)

        parts = gathered(read, stream, policy, lambda parts: no_image_twice(part.image_ids for part in parts))
        batch = Batch(concatenate(parts, vocabulary), truth)
        coverage.add(batch)
        tally = self.tally(batch)
        check_counted(tally, vocabulary, stream.name, allowed=self.filters.allow_uncounted)
        coverage.report(truth, [protocol], stream.name, model=told)
        ((_, results),) = tally.results(vocabulary)
        number = np.arange(len(vocabulary.interactions))
        ap = np.where(results.positives > 0, results.ap, 0.0)[classes_of(number, vocabulary, protocol)]
        return Opinion(name, batch, batch.match(protocol, self.filters), tally, protocol, ap)

    def tally(self, batch: Batch) -> Tally:
        """A batch matched with its ground truth, which may be changed, and counted."""
        tally = Tally([self.protocol], len(self.truth.vocabulary.interactions))
        tally.add_batch(batch, {self.protocol.key: batch.match(self.protocol, self.filters)})
        tally.add_truth(batch.truth)
        return tally

    @cached_property
    def contradicted(self) -> Contradicted:
        """The annotated triplets that the models contradict."""
        return contradicted(self.truth, self.opinions, self.rules)

    @cached_property
    def missing(self) -> Missing:
        """The triplets that the models predict and nobody annotated."""
        return missing(self.truth, self.opinions, self.rules)

    @property
    def signed(self) -> dict[str, str]:
        """What the predictions add to signatures: how they were filtered, and whether most of a model's count."""
        leave = {key: value for opinion in self.opinions for key, value in opinion.tally.leave.items()}
        return self.filters.signature() | leave

    def settings(self, kind: str) -> dict[str, str]:
        """What a candidate of a kind depends on, for its signature."""
        rules, settings = self.rules, {"data": self.truth.vocabulary.signed, **self.truth.settings(self.protocol)}
        same = f"same-{rules.same:g}"
        if kind == DUPLICATE:
            return settings | {"audit": same}
        asked = f"{rules.confident:g}/{rules.dismissed:g}/{rules.known:g}/{rules.votes}-of-{len(self.opinions)}"
        return settings | self.signed | {"audit": f"{asked}/{same}" if kind == MISSING else asked}

    def changed(self, kinds: Sequence[str]) -> Scenes:
        """The annotations with the candidates of these kinds added, removed and merged, in this order."""
        scenes, truth, same = self.truth.scenes, self.truth, self.rules.same
        if CONTRADICTED in kinds:
            scenes = scenes.only(np.setdiff1d(np.arange(len(scenes.subject)), self.contradicted.truth))
        if MISSING in kinds:
            scenes = with_missing(scenes, self.missing, truth.vocabulary, self.protocol, same)
        if DUPLICATE in kinds:
            fresh = scenes is not truth.scenes
            found = near_duplicates(scenes, truth.vocabulary, self.protocol, same) if fresh else self.duplicates
            scenes = merged(scenes, found)
        return scenes
