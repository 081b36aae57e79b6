"""From streams to SHOE: read everything, resolve labels, and print notes about gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hoicli.converters.named import signed
from hoicli.errors import DataError, arg
from hoicli.evaluation.fit import Fit, check_annotated
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.io.workers import fork_map, no_garbage_collection
from hoicli.records import caveats
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Ints, distinct
from hoicli.records.triplets import NOTHING, Triplets, merged, triplet_batches
from hoicli.shoe.backends import rate
from hoicli.shoe.labels import classes_of, likenesses, normalised, pool_of
from hoicli.shoe.matching import Matching, Shoe, places_of
from hoicli.shoe.needed import note_senseless, read_predictions
from hoicli.shoe.scores import Scores, scores_of
from hoicli.shoe.selection import ONE_BOX_IOU, READING, check_scores, kept_by, single_pair_images
from hoicli.shoe.settings import METRICS, ShoeOptions
from hoicli.shoe.table import SimilarityTable
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.lexicon import in_use, open_wordnet
from hoicli.wordnet.senses import candidates, senses_of


@dataclass(frozen=True)
class Run:
    """An evaluation and what its signature says. matching: of the predictions that mF1 and the miss rates are over;
    loose: of those that soft mAP is over."""

    shoe: Shoe
    matching: Matching
    loose: Matching
    subset: str
    signature: dict[str, str]

    def each(self) -> list[tuple[dict[str, str], Run]]:
        """(tags, evaluation) at each delta; a delta changes no match. One alone has no tag."""
        deltas = self.shoe.options.deltas
        tags = [{"delta": f"{delta:g}"} for delta in deltas]
        runs = [
            replace(self, shoe=self.shoe.at_delta(delta), signature={**self.signature, **tag})
            for delta, tag in zip(deltas, tags, strict=True)
        ]
        return list(zip(tags if len(deltas) > 1 else [{}], runs, strict=True))

    @cached_property
    def scores(self) -> Scores:
        """Its numbers."""
        return scores_of(self.shoe, self.matching, self.loose)

    @cached_property
    def images(self) -> dict[str, int]:
        """How many images have what each metric is over."""
        truth = len(distinct(self.shoe.truth.image_of_hoi))
        kept = len(distinct(self.shoe.predictions.image_of_hoi[self.matching.kept]))
        return {**dict.fromkeys(METRICS, truth), "prediction_miss_rate": kept}


class Evaluation:
    """Ground truth and similarities, by which one model or several are evaluated."""

    def __init__(
        self, gt: Stream, sim: Stream | str, options: ShoeOptions, policy: ErrorPolicy, *, dataset: str
    ) -> None:
        """Reads the ground truth, and `sim`, the tables of similarities; it may be the name of an offline backend
        instead, which rates the pairs that predictions need. Raises `DataError` for a bad line or empty ground
        truth."""
        self._vocabulary, self._options, self._policy, self._sim = load(dataset), options, policy, sim
        with no_garbage_collection():
            both = None if isinstance(sim, str) else _at_once(gt, sim)
            self._truth = both[0] if both else merged(triplet_batches(gt, policy=policy, truth=True))
            if not self._truth.image_ids:
                raise DataError("no ground truth in it; hoicli convert makes it", place=gt.name, code="empty")
            check_annotated(self._truth, gt.name)
            if not isinstance(sim, str):
                self._table = both[1] if both else SimilarityTable.read(sim, policy, open_wordnet().canonical)
        self._known = frozenset(self._truth.image_ids)
        self._signed = {"data": self._vocabulary.signed, **signed(total_of(self._truth.hashes))}

    def run(self, predictions: Stream) -> Run:
        """Evaluate a model; notes go to stderr. Raises `DataError` for a bad line, `UsageError` for an option that
        needs scores where a prediction has none."""
        options = self._options
        roles = bool(self._vocabulary.roles)
        found = read_predictions(predictions, self._policy, self._known, unlabelled=roles)
        check_scores(options, found)
        position = {image_id: place for place, image_id in enumerate(self._truth.image_ids)}
        fit = Fit().add(found, np.array([position[image_id] for image_id in found.image_ids], dtype=np.int64))
        fit.check(self._truth, predictions.name)
        if question := fit.doubt(self._truth, self._vocabulary):
            note(question)
        unscored = int(np.isnan(found.score).sum())
        truth, found, places = self._asked_for(found)
        classes = classes_of(truth, senses_of(self._vocabulary), candidates)
        if options.single_hoi:
            note(
                f"{arg('single_hoi')}: {len(truth.image_ids):,} of {len(self._known):,} images have one human-object "
                f"pair (boxes of one label that overlap at IoU > {ONE_BOX_IOU:g} are one) and show "
                f"{len(classes.classes):,} classes"
            )
        alike = likenesses(truth, found, classes, candidates)
        if isinstance(self._sim, str):
            pairs = sorted(pair for likeness in alike for pair in likeness.asked)  # as shoe-sim rates them
            table = SimilarityTable.of(pairs, rate(self._sim, pairs))
        else:
            table = self._table
        for likeness in alike:
            likeness.rate(table)
        shoe = Shoe(truth, found, classes, alike, options)
        shoe.places = places
        kept = kept_by(options, found)
        _report(shoe, unscored)
        matching = shoe.match(kept)
        loose = matching if options.filter_map or kept.all() or not shoe.scored else shoe.match()
        signature = {**self._signed, **table.signature(), **options.signature(), **in_use()}
        signature |= {"images": READING} if options.single_hoi else {}
        signature |= {"noint": "left-out"} if options.ignore_no_interaction else {}
        signature |= options.filter_signature() | _caveats(truth, found)
        signature |= {"unlabelled": "by-verb"} if shoe.unlabelled else {}
        return Run(shoe, matching, loose, "single_hoi" if options.single_hoi else "full", signature)

    def _asked_for(self, found: Triplets) -> tuple[Triplets, Triplets, tuple[Ints, Ints]]:
        """The ground truth and the predictions that the options ask for, and the place of each triplet in its
        record."""
        truth = self._truth
        if self._options.single_hoi:
            truth = truth.of_images(single_pair_images(truth))
            images = set(truth.image_ids)
            found = found.of_images(np.array([image_id in images for image_id in found.image_ids], dtype=bool))
        places = places_of(truth), places_of(found)
        if self._options.ignore_no_interaction:
            here, there = self._interacts(truth), self._interacts(found)
            truth, found = truth.of_triplets(here), found.of_triplets(there)
            places = places[0][here], places[1][there]
            note(
                f"{arg('ignore_no_interaction')}: {(~here).sum():,} triplets of the ground truth and "
                f"{(~there).sum():,} of the predictions are left out"
            )
        if self._vocabulary.roles and found.role.any():
            stated = self._is_triplet(found)
            found, places = found.of_triplets(stated), (places[0], places[1][stated])
            if not stated.all():
                note(f"{(~stated).sum():,} scores of an action alone, whose verb has roles, are left out: no triplets")
        return truth, found, places

    def _interacts(self, triplets: Triplets) -> Bools:
        """[T] the triplets whose verb is not the dataset's no_interaction."""
        nothing = self._vocabulary.no_interaction
        verbs = [nothing is None or normalised(verb or "") != normalised(nothing) for verb, _ in triplets.verbs]
        return np.array(verbs, dtype=bool)[triplets.verb]

    def _is_triplet(self, found: Triplets) -> Bools:
        """[T] all but V-COCO's scores of an action alone (an agent), which go with those of the action's roles."""
        roles, alone = self._vocabulary.roles_of, np.array([name == NOTHING for name in found.objects], dtype=bool)
        has_roles = np.array([bool(roles.get(verb or "")) for verb, _ in found.verbs], dtype=bool)
        of_triplet: Bools = found.role | ~alone[found.label] | ~has_roles[found.verb]
        return of_triplet


def _at_once(gt: Stream, sim: Stream) -> tuple[Triplets, SimilarityTable] | None:
    """Ground truth and tables, each read by a process, which is worth it for large files; None for small ones, and
    where one fails. Meanwhile the words of the ground truth are looked up: most are those of the predictions."""

    def annotated() -> Triplets:
        truth = merged(triplet_batches(gt, policy=ErrorPolicy(), truth=True))
        for pos, names in (("v", truth.verbs), ("n", truth.objects)):
            for name in names:
                pool_of(name, pos, candidates)
        return truth

    def rated() -> SimilarityTable:
        return SimilarityTable.read(sim, ErrorPolicy(), open_wordnet().canonical)

    if min(gt.processes(), sim.processes()) < 2:
        return None
    reads: list[Callable[[], Any]] = [annotated, rated]
    found = fork_map(lambda read: read(), reads)
    return None if found is None else (found[0], found[1])


_CONCERNED = caveats.mask([caveats.PAIRS_ONLY, caveats.WHOLE_IMAGE, caveats.BY_TOKENS, caveats.ALL_ONES])
"""The caveats that SHOE's numbers depend on: which triplets there are, where they are, and what ranks them."""


def _caveats(*sides: Triplets) -> dict[str, str]:
    """What the caveats of ground truth and predictions add to a signature."""
    return caveats.settings(int(np.bitwise_or.reduce(np.concatenate([side.caveats for side in sides]))) & _CONCERNED)


def _report(shoe: Shoe, unscored: int) -> None:
    """On stderr: what a user should know before quoting the numbers."""
    total, found = len(shoe.truth.image_ids), len(shoe.predictions.image_ids)
    if found < total:
        note(f"{total - found:,} of {total:,} ground-truth images have no predictions: their triplets are missed")
    if unscored:
        many = f"{unscored:,} of {len(shoe.predictions.score):,} predictions have no score"
        note(f"{many}: soft_map and map need a score for each and are empty; mf1 and the miss rates need none")
    if shoe.unlabelled:
        note("predicted objects without a label are compared by their verbs alone; map needs labels and is empty")
    note_senseless(shoe.verbs.senseless | shoe.objects.senseless)
    asked = len(shoe.verbs.asked) + len(shoe.objects.asked)
    missing = shoe.verbs.missing + shoe.objects.missing
    if missing:
        first, second = min((a, b) for _, a, b in missing)
        which = f"{len(missing):,} of {asked:,} pairs of senses are not in the similarity table"
        note(f"{which}, for example {first} and {second}: they count 0; hoicli shoe-sim makes them from these files")
