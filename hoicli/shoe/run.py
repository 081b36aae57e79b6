"""From streams to SHOE: read everything, resolve labels, and print notes about gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hoicli.arrays.triplets import read_triplets
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.predictions import Predictions
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.labels import Likeness, classes_of
from hoicli.shoe.matching import Matching, Shoe, ShoeSettings
from hoicli.shoe.names import listed, note_senseless
from hoicli.shoe.single_hoi import ONE_BOX_IOU, READING, single_pair_images
from hoicli.similarity.table import SimilarityTable
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.selection import open_wordnet
from hoicli.wordnet.senses import candidates, senses_of

RANK_READING = "-of-all-predictions(a-reading)"
"""What a signature adds to the number of `--min-rank`: see `Shoe.kept`."""


@dataclass(frozen=True)
class Run:
    """An evaluation and what its signature says. matching: of the predictions that the mF1 keeps."""

    shoe: Shoe
    matching: Matching
    subset: str
    signature: dict[str, str]


def run(
    predictions: Predictions,
    gt: Stream,
    tables: Stream,
    settings: ShoeSettings,
    policy: ErrorPolicy,
    *,
    dataset: str,
    min_score: float | None = None,
    min_rank: float | None = None,
    single_hoi: bool = False,
) -> Run:
    """Evaluate predictions with the similarities of `tables`; notes go to stderr. Raises `DataError` for a bad line or
    empty ground truth, and `UsageError` for a bad option or one that needs scores where a prediction has none.
    """
    vocabulary = load(dataset)
    if min_rank is not None and not 0 <= min_rank <= 1:
        raise UsageError(f"--min-rank {min_rank:g}: give a share from 0 to 1")
    with no_garbage_collection():
        truth = read_triplets(gt, policy=policy, truth=True)
        if not truth.image_ids:
            raise DataError("no ground truth in it; hoicli convert makes it", place=gt.name)
        table = SimilarityTable.read(tables, policy, open_wordnet().canonical)
        found = read_triplets(predictions, policy=policy, known=frozenset(truth.image_ids))
    unscored = int(np.isnan(found.score).sum())
    if unscored and (min_score is not None or min_rank is not None):
        raise UsageError(
            f"--min-score and --min-rank need scores, and {unscored:,} predictions have none: leave them out"
        )

    if single_hoi:
        keep = single_pair_images(truth)
        images = {image_id for image_id, kept in zip(truth.image_ids, keep.tolist(), strict=True) if kept}
        truth = truth.of_images(keep)
        found = found.of_images(np.array([image_id in images for image_id in found.image_ids], dtype=bool))
    classes = classes_of(truth, senses_of(vocabulary), candidates)
    if single_hoi:
        note(
            f"--single-hoi: {len(truth.image_ids):,} of {len(keep):,} images have one human-object pair (boxes of one "
            f"label that overlap at IoU > {ONE_BOX_IOU:g} are one) and show {len(classes.classes):,} classes"
        )
    verbs = Likeness("v", classes.verbs, found.verbs, table, candidates)
    objects = Likeness("n", classes.objects, found.objects, table, candidates)
    shoe = Shoe(truth, found, classes, verbs, objects, settings)
    signature = {"data": vocabulary.signed, "sim": table.digest(), **settings.signature()}
    if set(table.rules) - {"mean"}:
        signature["merge"] = "+".join(table.rules)
    if single_hoi:
        signature["images"] = READING
    if min_score is not None:
        signature["minscore"] = f"{min_score:g}"
    kept = shoe.kept(min_score=min_score, min_rank=min_rank)
    if min_rank is not None:
        signature["minrank"] = f"{min_rank:g}{RANK_READING}"
        note(
            f"--min-rank {min_rank:g} is a reading: the paper does not say of what its confidence score rank is; here "
            f"of all predictions, which leaves mf1 and the miss rates {int(kept.sum()):,} of {len(kept):,}"
        )
    _report(shoe, unscored)
    return Run(shoe, shoe.match(kept), "single_hoi" if single_hoi else "full", signature)


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
    if shoe.classes.guessed:
        note(
            f"no curated sense for {listed(shoe.classes.guessed)} of the ground truth: WordNet's first is taken "
            "(verb_synset and synsets in the records name others)"
        )
    note_senseless(shoe.verbs.senseless | shoe.objects.senseless)
    asked = len(shoe.verbs.asked) + len(shoe.objects.asked)
    missing = shoe.verbs.missing | shoe.objects.missing
    if missing:
        first, second = min(missing)
        note(
            f"{len(missing):,} of {asked:,} pairs of senses are not in the similarity table, for example {first} and "
            f"{second}: they count 0; hoicli shoe-sim makes them from these files (--all-pairs for --against dataset)"
        )
