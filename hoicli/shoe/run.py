"""From streams to SHOE: read everything, resolve labels, and print notes about gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hoicli.converters.named import signed
from hoicli.errors import DataError, arg
from hoicli.evaluation.coverage import Inverted
from hoicli.evaluation.views import parse_thresholds
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records import caveats
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools
from hoicli.records.triplets import NOTHING, Triplets, read_triplets
from hoicli.shoe.filters import ConfidenceFilter
from hoicli.shoe.labels import Likeness, classes_of, normalised
from hoicli.shoe.matching import Matching, Shoe, ShoeSettings, places_of
from hoicli.shoe.names import listed, note_senseless
from hoicli.shoe.reading import read_predictions
from hoicli.shoe.scores import Scores, scores_of
from hoicli.shoe.single_hoi import ONE_BOX_IOU, READING, single_pair_images
from hoicli.shoe.table import SimilarityTable
from hoicli.shoe.wanted import offline_table
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.selection import in_use
from hoicli.wordnet.senses import candidates, senses_of


@dataclass(frozen=True)
class ShoeOptions:
    """What an evaluation is asked for. deltas: there are rows of each; the first is that of `settings`. single_hoi:
    only images with one human-object pair. ignore_no_interaction: triplets of that verb are left out, of ground truth
    and predictions."""

    settings: ShoeSettings
    deltas: tuple[float, ...]
    confidence: ConfidenceFilter
    single_hoi: bool = False
    ignore_no_interaction: bool = False

    @classmethod
    def of(
        cls,
        *,
        delta: str = "0.5",
        against: str = "image",
        combine: str = "mean",
        verb_weight: float = 0.5,
        ap: str = "envelope",
        assignment: str = "greedy",
        min_similarity: float = 0.0,
        min_score: float | None = None,
        min_rank: float | None = None,
        rank_of: str = "all",
        filter_map: bool = False,
        single_hoi: bool = False,
        ignore_no_interaction: bool = False,
    ) -> ShoeOptions:
        """From a command's options of these names; raises `UsageError` for what they cannot be."""
        deltas = parse_thresholds([delta], option="delta", what="similarity", least=0).values
        confidence = ConfidenceFilter(min_score, min_rank, rank_of, filter_map)
        settings = ShoeSettings(deltas[0], verb_weight, combine, ap, against, assignment, min_similarity)
        return cls(settings, deltas, confidence, single_hoi, ignore_no_interaction)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that rows get of it."""
        return ("delta",) if len(self.deltas) > 1 else ()


@dataclass(frozen=True)
class Run:
    """An evaluation and what its signature says. matching: of the predictions that mF1 and the miss rates are over;
    loose: of those that soft mAP is over."""

    shoe: Shoe
    matching: Matching
    loose: Matching
    subset: str
    signature: dict[str, str]
    deltas: tuple[float, ...]

    def each(self) -> list[tuple[dict[str, str], Run]]:
        """(tags, evaluation) at each delta; a delta changes no match. One alone has no tag."""
        several = len(self.deltas) > 1
        return [
            (
                {"delta": f"{delta:g}"} if several else {},
                replace(self, shoe=self.shoe.at_delta(delta), signature={**self.signature, "delta": f"{delta:g}"}),
            )
            for delta in self.deltas
        ]

    @cached_property
    def scores(self) -> Scores:
        """Its numbers."""
        return scores_of(self.shoe, self.matching, self.loose)


class Evaluation:
    """Ground truth and similarities, by which one model or several are evaluated."""

    def __init__(
        self, gt: Stream, sim: Stream | str, options: ShoeOptions, policy: ErrorPolicy, *, dataset: str
    ) -> None:
        """Reads the ground truth, and `sim`, the tables of similarities, with the first predictions; it may be the name
        of an offline backend instead, which rates the pairs that predictions need. Raises `DataError` for a bad line or
        empty ground truth."""
        self._vocabulary, self._options, self._policy = load(dataset), options, policy
        with no_garbage_collection():
            self._truth = read_triplets(gt, policy=policy, truth=True)
            if not self._truth.image_ids:
                raise DataError("no ground truth in it; hoicli convert makes it", place=gt.name)
        Inverted().add(self._truth).report(gt.name)
        self._unread: Stream | None = None if isinstance(sim, str) else sim
        self._backend = sim if isinstance(sim, str) else ""
        self._table: SimilarityTable | None = None
        self._known = frozenset(self._truth.image_ids)
        self._signed = {"data": self._vocabulary.signed, **signed(total_of(self._truth.hashes))}

    def run(self, predictions: Stream) -> Run:
        """Evaluate a model; notes go to stderr. Raises `DataError` for a bad line, `UsageError` for an option that
        needs scores where a prediction has none."""
        options, truth = self._options, self._truth
        roles = bool(self._vocabulary.roles)
        found, table = read_predictions(predictions, self._policy, self._known, self._unread, unlabelled=roles)
        if table is not None:
            self._unread, self._table = None, table
        options.confidence.check(found)
        Inverted().add(found).report(predictions.name)
        unscored = int(np.isnan(found.score).sum())
        if options.single_hoi:
            keep = single_pair_images(truth)
            truth = truth.of_images(keep)
            images = set(truth.image_ids)
            found = found.of_images(np.array([image_id in images for image_id in found.image_ids], dtype=bool))
        places = places_of(truth), places_of(found)
        if options.ignore_no_interaction:
            masks = self._interacts(truth), self._interacts(found)
            (truth, found), places = (
                (side.of_triplets(mask) for side, mask in zip((truth, found), masks, strict=True)),
                (places[0][masks[0]], places[1][masks[1]]),
            )
            left_out = [int((~mask).sum()) for mask in masks]
            note(
                f"{arg('ignore_no_interaction')}: {left_out[0]:,} triplets of the ground truth and {left_out[1]:,} of "
                "the "
                "predictions are left out"
            )
        if roles and found.role.any():
            stated = self._is_triplet(found)
            found, places = found.of_triplets(stated), (places[0], places[1][stated])
            if not stated.all():
                note(f"{(~stated).sum():,} scores of an action alone, whose verb has roles, are left out: no triplets")
        classes = classes_of(truth, senses_of(self._vocabulary), candidates)
        if options.single_hoi:
            note(
                f"{arg('single_hoi')}: {len(truth.image_ids):,} of {len(keep):,} images have one human-object pair "
                "(boxes of "
                f"one label that overlap at IoU > {ONE_BOX_IOU:g} are one) and show {len(classes.classes):,} classes"
            )
        table = self._table
        if table is None:
            everywhere = options.settings.against == "dataset"
            table = offline_table(self._backend, truth, found, classes, self._policy, all_pairs=everywhere)
        verbs = Likeness("v", classes.verbs, found.verbs, table, candidates)
        objects = Likeness("n", classes.objects, found.objects, table, candidates)
        shoe = Shoe(truth, found, classes, verbs, objects, options.settings)
        shoe.places = places
        kept = options.confidence.kept(found)
        _report(shoe, unscored)
        matching = shoe.match(kept)
        loose = matching if options.confidence.everywhere or kept.all() or not shoe.scored else shoe.match()
        subset = "single_hoi" if options.single_hoi else "full"
        signature = {**self._signature(table), **_caveats(truth, found)}
        signature |= {"unlabelled": "by-verb"} if shoe.unlabelled else {}
        return Run(shoe, matching, loose, subset, signature, options.deltas)

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

    def _signature(self, table: SimilarityTable) -> dict[str, str]:
        options = self._options
        signature = {**self._signed, **table.signature(), **options.settings.signature(), **in_use()}
        signature |= {"images": READING} if options.single_hoi else {}
        signature |= {"noint": "left-out"} if options.ignore_no_interaction else {}
        return signature | options.confidence.signature()


_CONCERNED = caveats.mask([caveats.PAIRS_ONLY, caveats.WHOLE_IMAGE, caveats.BY_TOKENS])
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
        note(
            f"{unscored:,} of {len(shoe.predictions.score):,} predictions have no score: soft_map and map need one for "
            "each and are empty; mf1 and the miss rates need none"
        )
    if shoe.unlabelled:
        note("predicted objects without a label are compared by their verbs alone; map needs labels and is empty")
    if shoe.classes.guessed:
        note(
            f"no curated sense for {listed(shoe.classes.guessed)} of the ground truth: WordNet's first is taken "
            "(verb_synset and synsets in the records name others)"
        )
    note_senseless(shoe.verbs.senseless | shoe.objects.senseless)
    asked = shoe.verbs.asked_count + shoe.objects.asked_count
    missing = shoe.verbs.missing + shoe.objects.missing
    if missing:
        first, second = min(missing)
        note(
            f"{len(missing):,} of {asked:,} pairs of senses are not in the similarity table, for example {first} and "
            f"{second}: they count 0; hoicli shoe-sim makes them from these files (--all-pairs for --against dataset)"
        )
