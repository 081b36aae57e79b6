"""How well predictions and ground truth fit together: notes about gaps, and errors for what cannot be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hoicli.errors import DataError, arg
from hoicli.evaluation.box_evidence import ENOUGH_IMAGES
from hoicli.evaluation.fit import Fit, tells_more
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import protocols_for, unique_by_name
from hoicli.evaluation.slices import FILE
from hoicli.evaluation.tally import Tally
from hoicli.io.messages import note
from hoicli.records import caveats
from hoicli.records.scenes import count_other_subjects
from hoicli.vocabulary.labels import Vocabulary

OF_NO_CLASS = (
    "no {0} interaction (verb and object) and count for nothing: labels of another dataset, or another numbering? "
    "hoicli validate finds out"
)


def allow_hint() -> str:
    """Return the end of the message that most triplets have no class: the option that computes metrics anyway."""
    return f"; {arg('allow_uncounted')} computes with the others only"


def check_counted(tally: Tally, vocabulary: Vocabulary, place: str, *, allowed: bool) -> None:
    """Raise `DataError` if most predictions have no class, so that they do not count; if that is `allowed`, only record
    it in `tally.uncounted`. place: what the message calls the predictions."""
    problem = classless_problem(tally, vocabulary)
    if problem and not allowed:
        raise DataError(problem + allow_hint(), place=place, code="another-dataset")
    tally.uncounted |= bool(problem)


def classless_problem(tally: Tally, vocabulary: Vocabulary) -> str:
    """Return a message if most predictions have no class in the vocabulary, "" if not.

    Most means more than half of all predictions, and also of the best predictions of each image: a detector that scores
    every verb for every pair has many without a class, but not at the top. Fewer than ENOUGH_IMAGES show nothing."""
    classless = tally.listed.classless()
    total = len(tally.listed)
    if 2 * classless <= total:
        return ""
    classless_best, images = tally.listed.classless_best()
    if not 2 * classless_best > images >= ENOUGH_IMAGES:
        return ""
    counted = f"{classless:,} of {total:,} predictions, the best of {classless_best:,} of {images:,} images among them"
    return f"{counted}, are {OF_NO_CLASS.format(vocabulary.name)}"


def check_computable(truth: GroundTruth, protocol: Protocol) -> None:
    """Raise `DataError` if a protocol cannot be computed with this ground truth."""
    choose_computable(truth, [protocol], named=[protocol.name])  # raises for a named protocol that it would leave out


def choose_computable(truth: GroundTruth, protocols: Sequence[Protocol], named: Container[str]) -> list[Protocol]:
    """Return the protocols that can be computed with this ground truth; a note on stderr names the others. Raises
    `DataError` if one of the `named` ones, which the user asked for, cannot be computed, or none is left."""
    refused = [row for row in protocols if not truth.serves(row)]
    if refused:
        # a caveat is a fact about where records came from; the first one that rules the protocol out says why
        lacks = caveats.CAVEATS[caveats.names(refused[0].refuses & truth.caveats)[0]].lacks
        _leave_out(refused, protocols, named, lacks, truth.name)
    return [row for row in protocols if row not in refused]


def find_unlabelled_views(views: Mapping[Protocol, Tally], named: Container[str], place: str) -> list[Protocol]:
    """Return the protocols that cannot be computed because they match objects by label, while no object of the
    predictions has a label; a note on stderr names them. Raises `DataError` if one of the `named` protocols, which the
    user asked for, cannot be computed, or none is left.

    views: each protocol, also as a view, with the tally of the predictions."""
    unlabelled = []
    for row, tally in views.items():
        if 0 < tally.objects == tally.unlabelled and _compares_labels(row):
            unlabelled.append(row)
    if unlabelled:
        problem = "no object of the predictions has a label, as in official V-COCO lists; it needs a dump with labels"
        _leave_out(unlabelled, views, named, problem, place)
    return unlabelled


def _leave_out(
    refused: Sequence[Protocol], protocols: Collection[Protocol], named: Container[str], problem: str, place: str
) -> None:
    """Print a note that the `refused` protocols are left out, and why (`problem`). Raises `DataError` instead if they
    are all of `protocols`, or the user asked for one of them by name (`named`). place: what the message calls the data.
    """
    names = ", ".join(row.name for row in unique_by_name(refused))
    if len(refused) == len(protocols) or any(row.name in named for row in refused):
        raise DataError(f"cannot serve {names}: {problem}", place=place, code="cannot-serve")
    note(f"left out: {names}: {problem}")


@dataclass
class Coverage:
    """How well predictions and ground truth fit together, collected while matching; `report` prints what a user should
    know. numbers: counts of images, triplets, and triplets with something amiss; fit: how the boxes fit; lowest,
    highest: the range of all scores."""

    numbers: Counter[str] = field(default_factory=Counter)
    fit: Fit = field(default_factory=Fit)
    lowest: float = np.inf
    highest: float = -np.inf

    def add(self, batch: Batch) -> None:
        """Count the images and triplets of a batch, and collect the evidence of its boxes and scores."""
        predictions = batch.predictions
        self.numbers += Counter(
            {
                "images": len(predictions.image_ids),
                "triplets": len(predictions.score),
                "no class": int((predictions.interaction < 0).sum()),
                "no label": predictions.unlabelled_objects,
                "other subjects": count_other_subjects(predictions, batch.truth.vocabulary),
            }
        )
        self.fit.add(predictions, batch.image)
        self.lowest = float(predictions.score.min(initial=self.lowest))
        self.highest = float(predictions.score.max(initial=self.highest))

    def merge(self, other: Coverage) -> None:
        """Add what was collected from other images."""
        self.numbers += other.numbers
        self.fit.merge(other.fit)
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)

    def doubt(self, truth: GroundTruth, views: Sequence[Protocol]) -> str:
        """Return a question for the user if most subjects have a label that no subject may have, or the boxes do not
        fit those of the ground truth (unless no protocol in `views` looks at boxes); "" if all seems right."""
        triplets = self.numbers["triplets"]
        others = self.numbers["other subjects"]
        if 2 * others > triplets:
            subject_labels = " or ".join(truth.vocabulary.subjects)
            subjects = f"{'no subject is' if others == triplets else 'few subjects are'} {subject_labels}"
            question = f"are labels numbered otherwise, or subject and object swapped? {subjects}"
            return f"{question}; {tells_more(truth.vocabulary)}"
        if all(row.whole_image for row in views):
            return ""
        return self.fit.doubt(truth.scenes, truth.vocabulary)

    def equal_scores_question(self) -> str:
        """Return a question for the user if all scores are equal and rank nothing; "" if they are not, or too few."""
        triplets = self.numbers["triplets"]
        if self.lowest != self.highest or min(triplets, self.numbers["images"]) < ENOUGH_IMAGES:
            return ""
        return f"are these scores? all {triplets:,} are {self.highest:g} and rank nothing; see what is written as score"

    def report(
        self, truth: GroundTruth, views: Sequence[Protocol], name: str, *, shard: bool = False, model: str | None = None
    ) -> None:
        """Print notes on stderr about what does not fit: images without predictions, triplets without a class, objects
        without a label, boxes that do not fit, classes without ground truth, derived labels, images in no slice.

        name: what errors call the predictions. shard: the predictions are of some images only, so that missing images
        are no matter, nor shares of boxes. model: the model's name, if there are several. Raises `DataError` for too
        many inverted boxes, and for boxes that are fractions of the image's sides; not for a shard."""

        def tell(message: str) -> None:
            """Print a note, which begins with the model's name if there are several."""
            note(message if model is None else f"{model}: {message}")

        # a protocol on whole images does not look at boxes
        if not all(row.whole_image for row in views):
            self.fit.check(truth.scenes, name, shard=shard)
        protocols = unique_by_name(views)  # each protocol once, whatever its thresholds and parts of the data
        for message in (*_unsliced_notes(truth, views), *self._notes_on_gaps(truth, protocols, shard=shard)):
            tell(message)
        for question in filter(None, (self.doubt(truth, views), self.equal_scores_question())):
            tell(question)
        if absent := _classes_without_truth(truth, protocols):
            more = f" and {len(absent) - 6} more" if len(absent) > 6 else ""
            tell(f"no ground truth of {', '.join(absent[:6])}{more}: left out of the means")
        derived = truth.scenes.derived and any(protocol.known_object for protocol in protocols)
        if derived and (model is None or not truth.told_of_labels):
            truth.told_of_labels = True  # once for all models
            note(_derived_labels_note(truth))
        people = _person_protocols(protocols)
        if people and (others := count_other_subjects(truth.scenes, truth.vocabulary)):
            tell(
                f"{people}: {others:,} ground-truth triplets have a subject that is no person, and are "
                "never found there (the released code finds them)"
            )

    def _notes_on_gaps(self, truth: GroundTruth, protocols: Sequence[Protocol], *, shard: bool) -> Iterator[str]:
        """Yield notes on images without predictions, unless this is a `shard` (which has some images only), and on
        predicted triplets: that there is none, or some without a person, a class, or a label of the object."""
        numbers, vocabulary = self.numbers, truth.vocabulary
        images = numbers["images"]
        of_all = f"of {numbers['triplets']:,} predictions"
        if not shard and (message := unpredicted_note(images, truth)):
            yield message
        if images and not numbers["triplets"]:
            yield "the predictions hold no triplet: nothing can be found"
        if self.lowest < 0 >= self.highest and images >= ENOUGH_IMAGES:
            reading = "right for logarithms of probabilities, wrong for distances and negated scores"
            yield f"no score is above 0: {reading} (hoicli validate tells which)"
        if others := numbers["other subjects"]:
            people = _person_protocols(protocols)
            fate = f": not counted by {people}" if people else ""
            yield f"{others:,} {of_all} have a subject that is no {' or '.join(vocabulary.subjects)}{fate}"
        needs_lone_actions = any(protocol.refuses & caveats.mask([caveats.PAIRS_ONLY]) for protocol in protocols)
        if needs_lone_actions and truth.has_pairs_alone:
            yield "every annotated action has an object, so both scenarios are the same: is this all the ground truth?"
        if numbers["no class"]:
            what = f"no {vocabulary.name} interaction (verb and object): ignored"
            yield f"{numbers['no class']:,} {of_all} are {what}"
        by_label = [row.name for row in protocols if _compares_labels(row)]
        if (unlabelled := numbers["no label"]) and by_label:
            problem = "have an object box without a label, as official V-COCO lists do, and match no object there"
            yield f"{', '.join(by_label)}: {unlabelled:,} {of_all} {problem}; it needs a dump with labels"


def unpredicted_note(images: int, truth: GroundTruth) -> str:
    """Return the note that only so many images of the ground truth have predictions, "" if all have."""
    total = len(truth.scenes.image_ids)
    if images >= total:
        return ""
    return f"{total - images:,} of {total:,} ground-truth images have no predictions: their triplets are missed"


def _compares_labels(protocol: Protocol) -> bool:
    """Return whether a protocol compares the labels of objects; the official V-COCO protocols and PViC's do not."""
    return not (protocol.person_first or protocol.pairs_only)


def _person_protocols(protocols: Sequence[Protocol]) -> str:
    """Return the names of the protocols that count only persons as subjects, with commas between them."""
    return ", ".join(protocol.name for protocol in protocols if protocol.person_subject)


def _unsliced_notes(truth: GroundTruth, views: Sequence[Protocol]) -> Iterator[str]:
    """Yield a note on each slice that a file defines and that leaves out images of the ground truth."""
    total = len(truth.scenes.image_ids)
    for slice_ in dict.fromkeys(row.part.slice for row in views if row.part is not None):
        if slice_.measure == FILE:
            is_in_a_part = truth.slice_members(slice_).any(axis=0)
            if unsliced := int((~is_in_a_part).sum()):
                yield f"{unsliced:,} of {total:,} ground-truth images are in no slice of {slice_.name}"


def _derived_labels_note(truth: GroundTruth) -> str:
    """Return the note on images whose image-level labels are derived from their triplets."""
    fix = "convert anno_bbox.mat with anno.mat for the official labels"
    if truth.vocabulary.own:
        fix = "image_hois in the records would name them"
    return (
        f"Known Object: no image-level labels for {truth.scenes.derived:,} images, derived from their triplets "
        f"(invisible instances are missing; {fix})"
    )


def _classes_without_truth(truth: GroundTruth, protocols: Sequence[Protocol]) -> list[str]:
    """Return the names of the classes that a protocol for V-COCO scores and the ground truth lacks, so that its mean
    leaves them out: `walk`, or `hold_obj` for an action with a role. Other protocols are ignored."""
    missing = np.zeros(len(truth.vocabulary.interactions), dtype=bool)
    for protocol in protocols:
        if protocol.roles and protocol.only_annotated_classes:
            counts = np.bincount(truth.scenes.interaction[truth.counted_triplets(protocol)], minlength=len(missing))
            missing |= truth.scored_classes(protocol) & (counts == 0)
    classes = [truth.vocabulary.interactions[number] for number in np.flatnonzero(missing)]
    return ["_".join(filter(None, pair)) for pair in classes]


def tell_absent(truth: GroundTruth, views: Sequence[Protocol]) -> None:
    """Print a note if most classes have no ground truth and a protocol counts them as 0 in its mean: the data is then
    only a part of a dataset, and the mean far lower than on all of it. For the ground truth of a group (`--by`), one
    absent class is enough, since groups that have other classes do not compare. views: the protocols that are
    evaluated."""
    if not len(truth.scenes.interaction):
        return
    names_by_counts: dict[tuple[int, int], list[str]] = {}
    for row in unique_by_name(views):
        if row.by_verb or row.only_annotated_classes:
            continue  # the first rank verbs, whose classes are not counted here; the second leave absent classes out
        scored = truth.scored_classes(row)
        if row.drop_no_interaction:
            scored[list(truth.vocabulary.no_interaction_ids)] = False
        _, annotated = truth.annotated_classes(row)
        counts = np.bincount(annotated, minlength=len(scored))
        absent = int((scored & (counts == 0)).sum())
        total = int(scored.sum())
        if 2 * absent > total or (absent and truth.is_group):
            names_by_counts.setdefault((absent, total), []).append(row.name)
    others = [name for name, row in protocols_for(truth.vocabulary).items() if row.only_annotated_classes]
    advice = ""
    if truth.is_group and others:
        advice = f"; to compare groups, {arg('protocol', others[0])} leaves them out"
    for (absent, total), names in names_by_counts.items():
        absence = f"{absent:,} of {total:,} classes have no ground truth and count 0 in the mean"
        note(f"{', '.join(names)}: {absence}{advice}")
