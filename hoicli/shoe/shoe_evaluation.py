"""The evaluation of `shoe-eval`, from input streams to a `Run`: it reads everything, chooses images and predictions,
finds the senses of labels, and prints notes about gaps.

**Confidence.** The supplement's Algorithm 2 keeps predictions "with confidence score rank s >= tau", its Table 2 has
tau = 0.5, and neither says of what the rank is. RANKS has the readings that can be told apart, docs/shoe.md what each
of them does to the pattern of Table 2. Section 6.4 filters Algorithm 1's predictions, too: `--filter-map`.

**One pair.** The supplement does not define the "single HOI" subset of its Table 2 and Figure 6. Figure 6 shows images
of it with three interactions of one pair (hold, ride and sit on a motorcycle), so it is not one class per image;
HICO-DET's annotators drew a pair's boxes again for each of its interactions, so it is not one box per person either.
The definition below gives 4,054 images of HICO-DET's test set with exactly the 575 classes of Table 2's caption,
including no_interaction. Other definitions give other numbers: overlaps above 0.75 580 classes, above 0.85 562, boxes
that all overlap each other 571, no boxes taken as one 424. (Boxes that overlap the first one drawn have 575 classes
too, over 3,899 images, but depend on the order of boxes.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from hoicli.converters.named import truth_settings
from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.fit import Fit, check_annotated
from hoicli.evaluation.pairing import iterate_pairs
from hoicli.io.forks import fork_map
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records import caveats
from hoicli.records.boxes import iou
from hoicli.records.columns import NO_BOX
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, join_groups, run_starts
from hoicli.records.triplets import NOTHING, Triplets, merge, read_triplets
from hoicli.shoe.likenesses import Likeness, classes_of, likenesses, normalise, pool_of
from hoicli.shoe.rating import backend_of, compared_classes, note_senseless, rate, read_predictions, signed_measure
from hoicli.shoe.scores import Run
from hoicli.shoe.settings import RANKS, ShoeOptions
from hoicli.shoe.similarity_table import SimilarityTable
from hoicli.shoe.triplet_matching import Shoe, places_of
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import candidates, senses_of
from hoicli.wordnet.spoken_words import SpokenWords

ONE_BOX_IOU = 0.8
"""Two boxes of one label and image that overlap by more than this show one object or person."""


class Evaluation:
    """The ground truth and the similarities by which one model or several are evaluated."""

    def __init__(
        self, gt: Stream, sim: Stream | SimilarityTable | str, options: ShoeOptions, policy: ErrorPolicy, *,
        dataset: str,
    ) -> None:  # fmt: skip
        """Read the ground truth and the tables of similarities. sim: the stream of tables; a table that is read
        already; or the name of an offline backend, which then rates the pairs that each model's predictions need.
        Raises `DataError` for a bad line or empty ground truth."""
        self._vocabulary, self._options, self._policy, self._sim = load(dataset), options, policy, sim
        self._compared_classes = compared_classes(self._vocabulary, options.against)
        if self._compared_classes and options.ignore_no_interaction:
            nothing = self._vocabulary.no_interaction
            self._compared_classes = [names for names in self._compared_classes if names[0] != nothing]
        with no_garbage_collection():
            # None if one process is to read both, which then reads the tables only if the ground truth is usable
            truth_and_table = _read_in_parallel(gt, sim) if isinstance(sim, Stream) else None
            if truth_and_table is not None:
                self._truth, self._table = truth_and_table
            else:
                self._truth = merge(read_triplets(gt, policy=policy, truth=True))
            if not self._truth.image_ids:
                raise DataError("no ground truth in it; hoicli convert makes it", place=gt.name, code="empty")
            check_annotated(self._truth, gt.name, policy)
            if isinstance(sim, SimilarityTable):
                self._table = sim
            elif truth_and_table is None and isinstance(sim, Stream):
                self._table = SimilarityTable.read(sim, policy, open_wordnet().canonical)
        self._known = dict.fromkeys(self._truth.image_ids)  # not a set: a message names the first one
        self._truth_signature = {"data": self._vocabulary.signed, **truth_settings(total_of(self._truth.hashes))}

    def run(self, predictions: Stream) -> Run:
        """Return the evaluation of one model's predictions; notes go to stderr. Raises `DataError` for a bad line,
        `UsageError` for an option that needs scores where a prediction has none."""
        options = self._options

        # The predictions, and whether they can be evaluated.
        may_lack_labels = bool(self._vocabulary.roles)
        predictions_read = read_predictions(predictions, self._policy, self._known, unlabelled=may_lack_labels)
        check_scores(options, predictions_read)
        self._check_fit(predictions_read, predictions.name)
        unscored = int(np.isnan(predictions_read.score).sum())

        # The triplets and classes that the options ask for.
        truth, predictions_read, places = self._select_triplets(predictions_read)
        classes = classes_of(truth, senses_of(self._vocabulary), candidates, self._compared_classes)
        if options.single_hoi:
            note(
                f"{arg('single_hoi')}: {len(truth.image_ids):,} of {len(self._known):,} images have one human-object "
                f"pair (boxes of one label that overlap at IoU > {ONE_BOX_IOU:g} are one) and show "
                f"{len(classes.classes):,} classes"
            )

        # How similar their verbs and objects are.
        verbs_and_objects = likenesses(truth, predictions_read, classes, candidates)
        table, table_signature = self._make_table(verbs_and_objects)
        for likeness in verbs_and_objects:
            likeness.rate(table)
        shoe = Shoe(truth, predictions_read, classes, verbs_and_objects, options)
        shoe.places = places  # in the records, from which triplets may have been left out

        # The matching, of the predictions that pass the filters.
        keep = filter_predictions(options, predictions_read)
        missing = self._count_missing_pairs(shoe)
        _report(shoe, unscored)
        if shoe.scored and not open_wordnet().signature:
            _note_other_words(shoe, self._vocabulary)
        matching = shoe.match(keep)
        # Soft mAP ranks all predictions that have a score, unless --filter-map leaves some out.
        ranked = matching if options.filter_map or keep.all() or not shoe.scored else shoe.match()
        signature = self._signature(shoe, table_signature, missing)
        return Run(shoe, matching, ranked, "single_hoi" if options.single_hoi else "full", signature)

    def _check_fit(self, predictions: Triplets, name: str) -> None:
        """Raise `DataError` if the predictions cannot be of the ground truth's images; a note tells of doubts."""
        position = {image_id: number for number, image_id in enumerate(self._truth.image_ids)}
        image = np.array([position[image_id] for image_id in predictions.image_ids], dtype=np.int64)
        fit = Fit().add(predictions, image)
        fit.check(self._truth, name)
        if question := fit.doubt(self._truth, self._vocabulary):
            note(question)

    def _make_table(self, verbs_and_objects: Sequence[Likeness]) -> tuple[SimilarityTable, dict[str, str]]:
        """Return a table with the similarities of the senses to be compared, and its part of the signature: the table
        that was read, or one that the offline backend makes now."""
        asked = [likeness.asked for likeness in verbs_and_objects]
        if isinstance(self._sim, str):
            pairs = [*chain.from_iterable(pairs_of_pos.by_name() for pairs_of_pos in asked)]
            table, backend = SimilarityTable.from_pairs(pairs, rate(self._sim, pairs)), self._sim
        else:
            table, backend = self._table, backend_of(self._table, asked) or ""
        if not backend:
            return table, table.signature()
        # The backend identifies the similarities; a digest would depend on which pairs these predictions need.
        return table, {"sim": signed_measure(backend), "raters": backend}

    def _signature(self, shoe: Shoe, table_signature: dict[str, str], missing: int) -> dict[str, str]:
        """Return {setting: text} of a run's signature. missing: how many pairs of senses the table lacks."""
        options = self._options
        signature = {**self._truth_signature, **table_signature, **options.signature()}
        wordnet_signature = open_wordnet().signature
        signature |= {"wordnet": wordnet_signature} if wordnet_signature else {}
        signature |= {"images": f"one-pair,boxes-as-one-above-iou-{ONE_BOX_IOU:g}"} if options.single_hoi else {}
        signature |= {"missing": str(missing)} if missing else {}
        signature |= {"noint": "left-out"} if options.ignore_no_interaction else {}
        # Each record's caveats, facts about its origin that affect numbers, are the bits of a number; any bit that some
        # record has and that SHOE depends on is named.
        all_caveats = int(np.bitwise_or.reduce(np.concatenate([shoe.truth.caveats, shoe.predictions.caveats])))
        signature |= options.filter_signature() | caveats.settings(all_caveats & _CAVEATS)
        return signature | ({"unlabelled": "by-verb"} if shoe.unlabelled else {})

    def _count_missing_pairs(self, shoe: Shoe) -> int:
        """Return how many of the needed pairs of senses the table lacks. If any, print a note if the options allow it,
        else raise `DataError`."""
        needed_count = len(shoe.verbs.asked) + len(shoe.objects.asked)
        missing = shoe.verbs.missing + shoe.objects.missing
        if missing:
            first, second = min((a, b) for _, a, b in missing)
            missing_text = f"{len(missing):,} of {needed_count:,} pairs of senses are not in the similarity table"
            problem = f"{missing_text}, for example {first} and {second}"
            if not self._options.allow_missing:
                how = "hoicli shoe-sim makes them from these files"
                how += f" (with its {arg('against', 'dataset')})" if self._compared_classes else ""
                allowed = f"shoe-eval {arg('allow_missing')} counts them 0"
                raise DataError(f"{problem}; {how} ({allowed})", place=getattr(self._sim, "name", ""), code="not-whole")
            note(f"{problem}: they count 0; hoicli shoe-sim makes them from these files")
        return len(missing)

    def _select_triplets(self, predictions: Triplets) -> tuple[Triplets, Triplets, tuple[Ints, Ints]]:
        """Return the ground truth and the predictions that the options ask for, and the position of each of their
        triplets in its record. The ground truth is in the order in which it chooses predictions."""
        truth = self._truth
        if self._options.single_hoi:
            truth = truth.select_images(single_pair_images(truth))
            images = set(truth.image_ids)
            predictions = predictions.select_images(
                np.array([image_id in images for image_id in predictions.image_ids], dtype=bool)
            )
        truth_places, places = places_of(truth), places_of(predictions)
        if self._options.ignore_no_interaction:
            keep_truth, keep = self._interacts(truth), self._interacts(predictions)
            truth, predictions = truth.select_triplets(keep_truth), predictions.select_triplets(keep)
            truth_places, places = truth_places[keep_truth], places[keep]
            note(
                f"{arg('ignore_no_interaction')}: {(~keep_truth).sum():,} triplets of the ground truth and "
                f"{(~keep).sum():,} of the predictions are left out"
            )
        if self._vocabulary.roles and predictions.role.any():
            keep = self._is_triplet(predictions)
            predictions, places = predictions.select_triplets(keep), places[keep]
            if not keep.all():
                note(f"{(~keep).sum():,} scores of an action alone, whose verb has roles, are left out: no triplets")
        order = self._choosing_order(truth)
        return truth.select_triplets(order), predictions, (truth_places[order], places)

    def _choosing_order(self, truth: Triplets) -> Ints:
        """Return [G]: the rows of the ground truth, image by image, in the order in which they choose predictions: by
        the number of their class in the dataset, as official annotations are listed, then by their values. Triplets
        that are no class of the dataset come last."""
        ids, width = self._vocabulary.interaction_ids, max(len(truth.objects), 1)
        codes, pair_of_hoi = np.unique(truth.verb * width + truth.label, return_inverse=True)
        pair_names = [(truth.verbs[code // width][0], truth.objects[code % width][0]) for code in codes.tolist()]
        class_number = np.array([ids[pair] if pair in ids else len(ids) for pair in pair_names], dtype=np.int64)
        # lexsort sorts by its last key first: image, class, values
        value_keys = truth.sort_keys(np.arange(len(pair_of_hoi)))
        return np.lexsort((*value_keys, class_number[pair_of_hoi], truth.image_of_hoi))

    def _interacts(self, triplets: Triplets) -> Bools:
        """Return [T]: whether each triplet's verb is another one than the dataset's no_interaction."""
        nothing = self._vocabulary.no_interaction
        verbs = [nothing is None or normalise(verb or "") != normalise(nothing) for verb, _ in triplets.verbs]
        return np.array(verbs, dtype=bool)[triplets.verb]

    def _is_triplet(self, predictions: Triplets) -> Bools:
        """Return [T]: whether each prediction is a triplet, rather than one of V-COCO's scores of an action without its
        object (an agent's) for a verb that is also predicted with objects (its roles)."""
        no_object = np.array([name == NOTHING for name in predictions.objects], dtype=bool)
        has_roles = np.array([bool(self._vocabulary.find_roles(verb)) for verb, _ in predictions.verbs], dtype=bool)
        is_triplet: Bools = predictions.role | ~no_object[predictions.label] | ~has_roles[predictions.verb]
        return is_triplet


def _read_in_parallel(gt: Stream, sim: Stream) -> tuple[Triplets, SimilarityTable] | None:
    """Return the ground truth and the table of similarities, each read by a process of its own. Return None for small
    files, where that is not worth it, and if a process fails; then the caller reads them one after the other."""

    def read_truth() -> Triplets:
        """Return the ground truth."""
        truth = merge(read_triplets(gt, policy=ErrorPolicy(), truth=True))
        # so that `candidates` caches the senses of these labels, which most predictions have, too
        for pos, names in (("v", truth.verbs), ("n", truth.objects)):
            for name in names:
                pool_of(name, pos, candidates)
        return truth

    def read_table() -> SimilarityTable:
        """Return the table of similarities, with senses under the names of the WordNet in use."""
        return SimilarityTable.read(sim, ErrorPolicy(), open_wordnet().canonical)

    if min(gt.processes(), sim.processes()) < 2:
        return None
    reads: list[Callable[[], Any]] = [read_truth, read_table]
    results = fork_map(lambda read: read(), reads)
    return None if results is None else (results[0], results[1])


_CAVEATS = caveats.mask([caveats.PAIRS_ONLY, caveats.WHOLE_IMAGE, caveats.BY_TOKENS, caveats.ALL_ONES])
"""The caveats that SHOE's numbers depend on: which triplets there are, where they are, and what ranks them."""


def _report(shoe: Shoe, unscored: int) -> None:
    """Print notes about what a user should know before quoting the numbers: images without predictions, missing scores,
    labels or senses."""
    total, prediction_count = len(shoe.truth.image_ids), len(shoe.predictions.image_ids)
    if prediction_count < total:
        note(
            f"{total - prediction_count:,} of {total:,} ground-truth images have no predictions: "
            "their triplets are missed"
        )
    if unscored:
        many = f"{unscored:,} of {len(shoe.predictions.score):,} predictions have no score"
        note(f"{many}: soft_map and map need a score for each and are empty; mf1 and the miss rates need none")
    if shoe.unlabelled:
        note("predicted objects without a label are compared by their verbs alone; map needs labels and is empty")
    note_senseless(shoe.verbs.senseless | shoe.objects.senseless)


def _note_other_words(shoe: Shoe, vocabulary: Vocabulary) -> None:
    """Print a note about words of predictions that are a class's in another form or a synonym. Plain mAP counts them as
    false: it compares spellings, as `eval` and the papers' mAP do, so that these agree. To map words is a decision of
    `convert`, which lists each."""
    words, predictions = SpokenWords(vocabulary), shoe.predictions
    spelled = {*chain.from_iterable(shoe.classes.classes), *map(normalise, (*vocabulary.verbs, *vocabulary.objects))}
    counts: Counter[str] = Counter()
    for names, numbers, look_up in (
        (predictions.verbs, predictions.verb, words.look_up_verb),
        (predictions.objects, predictions.label, words.look_up_object),
    ):
        for (label, _), count in zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True):
            if count and label is not None and normalise(label) not in spelled and (meaning := look_up(label)).label:
                counts[f"{label} for {meaning.label}"] += count
    if counts:
        examples = ", ".join(f"{text} {count:,}" for text, count in counts.most_common(5))
        problem = (
            f"map compares spellings, and {counts.total():,} words of predictions are others for a class: {examples}"
        )
        note(f"{problem}{', ...' if len(counts) > 5 else ''}; hoicli convert {arg('to_vocabulary')} maps them")


def check_scores(options: ShoeOptions, predictions: Triplets) -> None:
    """Raise `UsageError` if the options filter by score and some prediction has none, or if they take shares of an
    image's best score (`--rank-of best`) and some score is negative."""
    unscored = int(np.isnan(predictions.score).sum()) if options.filters else 0
    if unscored:
        problem = f"need scores, and {unscored:,} predictions have none: leave them out"
        raise UsageError(f"{arg('min_score')} and {arg('min_rank')} {problem}")
    if options.rank_of == "best" and predictions.score.min(initial=0) < 0:
        raise UsageError(f"{arg('rank_of', 'best')}: needs scores of at least 0, and some are below; choose another")


def filter_predictions(options: ShoeOptions, predictions: Triplets) -> Bools:
    """Return [P]: whether each prediction has the score and the rank that the options require (`min_score`,
    `min_rank`). A note says how the rank is understood."""
    score, image, min_rank = predictions.score, predictions.image_of_hoi, options.min_rank
    keep = np.ones(len(score), dtype=bool)
    if options.min_score is not None:
        keep &= score >= options.min_score
    if min_rank is not None:
        if options.rank_of == "best":
            best = np.zeros(len(predictions.image_ids))
            np.maximum.at(best, image, score)
            keep &= score >= min_rank * best[image]
        else:
            keep &= share_not_above(image if options.rank_of == "image" else np.zeros_like(image), score) >= min_rank
        ranked_among = RANKS[options.rank_of].replace("-", " ")
        reading_text = f"is our reading: the paper does not define its confidence score rank; here {ranked_among}"
        note(f"{arg('min_rank', min_rank)} {reading_text}: {int(keep.sum()):,} predictions of {len(keep):,} are left")
    return keep


def share_not_above(group: Ints, score: Floats) -> Floats:
    """Return [P]: for each prediction, the share of its group that does not score higher than it, itself included; 1
    for the best. group [P]: a number that the predictions of a group share; score [P]."""
    # Sorted by group, then by rising score: what does not score higher is all of the group up to the last equal score.
    order = np.lexsort((score, group))
    group, score = group[order], score[order]
    starts = run_starts(group)
    size = np.diff(starts, append=len(group))
    # where runs of equal scores begin, and for each prediction where the run of its score ends
    changes = np.flatnonzero(np.r_[True, (group[1:] != group[:-1]) | (score[1:] != score[:-1])])
    run_end = np.repeat(np.append(changes[1:], len(group)), np.diff(changes, append=len(group)))
    share = np.empty(len(group))
    share[order] = (run_end - np.repeat(starts, size)) / np.repeat(size, size)
    return share


def single_pair_images(truth: Triplets) -> Bools:
    """Return [N]: whether all triplets of each image are of one pair, a person with an object (or without any).

    Boxes of an image that have the same label and an IoU above ONE_BOX_IOU (x2, y2 as far edges, as everywhere in SHOE)
    count as one, and so do two boxes that a chain of such overlaps connects, so the order of boxes does not matter. A
    box that no triplet uses connects nothing."""
    instance = np.append(_instances(truth), -1)  # NO_BOX, as an index, is the last one
    # One number for each (subject, object); an image has as many pairs as different numbers.
    pair = instance[truth.subject] * (len(instance) + 1) + instance[truth.object] + 1
    _, first_row = np.unique(pair, return_index=True)
    single: Bools = np.bincount(truth.image_of_hoi[first_row], minlength=len(truth.image_ids)) == 1
    return single


def _instances(truth: Triplets) -> Ints:
    """Return [B]: the number of the person or object that each box shows, equal for boxes that count as one."""
    boxes = np.union1d(truth.subject, truth.object[truth.object != NO_BOX])
    image = truth.image_of_box[boxes]
    labels = np.array([normalise(label) for label in truth.labels], dtype=object)
    _, label_number = np.unique(labels, return_inverse=True)
    group = image * (len(label_number) + 1) + label_number[truth.box_label[boxes]]
    order = np.argsort(group, kind="stable")
    boxes, group = boxes[order], group[order]
    # Compare each box with those of its image and label that come after it.
    position = np.arange(len(boxes))
    count = np.searchsorted(group, group, side="right") - position - 1
    pairs = []
    for run, later in iterate_pairs(position + 1, count):
        first_boxes, later_boxes = boxes[run], boxes[later]
        close = iou(truth.boxes[first_boxes].T, truth.boxes[later_boxes].T, inclusive=False) > ONE_BOX_IOU
        pairs.append((first_boxes[close], later_boxes[close]))
    first_boxes, later_boxes = map(np.concatenate, zip(*pairs, strict=True))
    return join_groups(first_boxes, later_boxes, len(truth.boxes))
