"""Match records, which `match` writes and `eval` and `diagnose` read: one line for each image and protocol. A line
holds all that the metrics need, without boxes (formats/match.schema.json has every field), so `match | eval` prints the
same rows as `eval`.

JSON is made of pieces of text (bytes) that are joined once a batch: a dictionary for each object would take longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.converters.named import digest_of
from hoicli.evaluation.filters import UNCOUNTED, Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import OUTCOMES, TRUE_POSITIVE
from hoicli.evaluation.protocols import PROTOCOLS, Protocol
from hoicli.records import caveats
from hoicli.records.kit import Bools, Ints, expand_runs, starts_of
from hoicli.records.parsing import Record, dump
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary

Texts = NDArray[np.object_]
"""A column of pieces of JSON text (bytes), one for each object."""


class MatchWriter:
    """Writes match records, by image and then by protocol."""

    def __init__(
        self, truth: GroundTruth, protocols: Sequence[Protocol], filters: Filters, *, partial: bool = False
    ) -> None:
        """Prepare the texts that all records share. filters: those that the outcomes were made with; partial: whether
        images without predictions are left out; each record then says so."""
        self._truth = truth
        self._protocols = protocols
        self._make_first_keys = [_first_keys_maker(protocol, filters, truth, partial=partial) for protocol in protocols]
        self._states_classless = filters.allow_uncounted
        self._verbs, self._labels = _name_texts(truth.vocabulary)

    def make_lines(self, batch: Batch, outcomes: Mapping[str, Outcomes]) -> bytes:
        """Return the match records of a batch as JSON lines. outcomes: those of the batch by `Protocol.key`."""
        # These texts depend only on whether a protocol goes by the person first: they are made once or twice.
        beginnings = {protocol.person_first: self._beginning_texts(batch, protocol) for protocol in self._protocols}
        texts = [
            (
                make_first_keys,
                self._prediction_texts(batch, outcomes[protocol.key], protocol, beginnings[protocol.person_first]),
                self._truth_texts(batch, outcomes[protocol.key], protocol),
                batch.box_matches(protocol),
            )
            for make_first_keys, protocol in zip(self._make_first_keys, self._protocols, strict=True)
        ]
        # of each image the caveats, facts about where its records came from that affect numbers, as a bit mask
        truth_caveats = self._truth.scenes.caveats[batch.image] & caveats.TRUTH
        masks = (truth_caveats | (batch.predictions.caveats & caveats.PREDICTIONS)).tolist()
        hashes = self._truth.scenes.hashes[batch.image].tolist()
        # for each protocol, hashes of the order of images' annotations
        orders = [self._truth.order_hashes(protocol)[batch.image].tolist() for protocol in self._protocols]
        # If the user allows triplets without a class, the records of each image count them: whether they are most of
        # all can only be told from all images together, which may come from several runs of `match`.
        classless = self._truth.classless_counts[batch.image].tolist() if self._states_classless else None
        joined: list[bytes] = []
        bounds = pairwise(batch.predictions.box_start.tolist())
        for image, (image_id, (start, end)) in enumerate(zip(batch.predictions.image_ids, bounds, strict=True)):
            more: Record = {} if classless is None else {"gt_classless": classless[image]}
            for (make_first_keys, predictions, annotated, boxes), order in zip(texts, orders, strict=True):
                first_keys = dump(make_first_keys(image_id, masks[image], hashes[image], order[image]) | more)
                joined += (first_keys[:-2], b',"predictions":[')  # without the closing brace and the line break
                joined += predictions[image]
                joined.append(b'],"gt":[')
                joined += annotated[image]
                joined += (b'],"box_matches":', orjson.dumps(boxes[start:end]), b"}\n")
        return b"".join(joined)

    def _beginning_texts(self, batch: Batch, protocol: Protocol) -> Sequence[Texts]:
        """Return the beginning of each prediction's JSON, up to its score, as columns of text to be put side by side.
        Unlike the outcome that follows, it is the same for all protocols that are person-first, and for all others."""
        scenes = batch.predictions
        every = np.arange(len(scenes.score))
        no_object = batch.empty_object if protocol.person_first else scenes.object < 0
        return [*self._triplet_texts(scenes, every, no_object, b"score"), _texts(_numbers(scenes.score))]

    def _prediction_texts(
        self, batch: Batch, outcomes: Outcomes, protocol: Protocol, beginnings: Sequence[Texts]
    ) -> list[list[bytes]]:
        """Return, for each image, the pieces of JSON text of its predictions with their outcomes. beginnings: what
        `_beginning_texts` returns. Under a person-first protocol, each prediction also states the annotated person that
        its subject belongs to, as `person`."""
        closing = b"" if protocol.person_first else b"}"  # `person` is still to come
        outcome_texts = [b',"outcome":"%b","gt":' % name.encode() for name in OUTCOMES]
        unmatched = _texts(text + b'null,"iou_subject":null,"iou_object":null' + closing for text in outcome_texts)
        ends = unmatched[outcomes.code]
        # `matched`: the predictions whose image has ground truth of their class. The triplet's index is null (-1) if
        # the overlap is too small.
        gt_index = np.where(outcomes.enough, _truth_places(batch, protocol, outcomes), -1)
        matched = zip(
            outcomes.code[outcomes.row].tolist(),
            _numbers(gt_index, missing=True),
            _numbers(outcomes.iou_subject),
            _numbers(outcomes.iou_object),
            strict=True,
        )
        template = b'%b%b,"iou_subject":%b,"iou_object":%b' + closing
        ends[outcomes.row] = _texts(
            template % (outcome_texts[code], gt, iou_subject, iou_object)
            for code, gt, iou_subject, iou_object in matched
        )
        if protocol.person_first:
            people = batch.find_people(protocol)
            first_box = self._truth.scenes.box_start[batch.image_of_hoi]
            person = _numbers(np.where(people < 0, -1, people - first_box), missing=True)
            ends = _texts(b'%b,"person":%b}' % (end, number) for end, number in zip(ends, person, strict=True))
        return _array_pieces([*beginnings, ends], batch.predictions.hoi_start)

    def _truth_texts(self, batch: Batch, outcomes: Outcomes, protocol: Protocol) -> list[list[bytes]]:
        """Return, for each image, the pieces of JSON text of its ground-truth triplets that count under a protocol.
        Each triplet states which prediction of the image found it, null for none."""
        scenes = self._truth.scenes
        # For each counted triplet of the batch: its image, as an index in the batch, and its row in the ground truth.
        first_row = scenes.hoi_start[batch.image]
        owner, row = expand_runs(first_row, scenes.hoi_start[batch.image + 1] - first_row)
        is_counted = self._truth.counted_triplets(protocol)[row]
        owner, row = owner[is_counted], row[is_counted]
        start = starts_of(np.bincount(owner, minlength=len(batch.image)))
        # outcomes.row: the predictions with ground truth of their class; enough: which of them reach the threshold
        hit = outcomes.enough & (outcomes.code[outcomes.row] == TRUE_POSITIVE)
        prediction = outcomes.row[hit]
        image_of_hit = batch.predictions.image_of_hoi[prediction]
        found_triplet = start[image_of_hit] + _truth_places(batch, protocol, outcomes)[hit]
        finder = np.full(len(row), -1, dtype=np.int64)
        finder[found_triplet] = prediction - batch.predictions.hoi_start[image_of_hit]
        ends = _texts(number + b"}" for number in _numbers(finder, missing=True))
        columns = self._triplet_texts(scenes, row, scenes.object[row] < 0, b"prediction")
        return _array_pieces([*columns, ends], start)

    def _triplet_texts(self, scenes: Scenes, row: Ints, no_object: Bools, next_key: bytes) -> list[Texts]:
        """Return the beginning of the JSON of M triplets as columns of text: `,{"subject":0`, `,"object":1`, the verb,
        and the object's label with the key that comes next. row [M]: their rows in `scenes`; no_object [M]: whether
        each has no object."""
        first_box = scenes.box_start[scenes.image_of_hoi[row]]
        subject = scenes.subject[row] - first_box
        object_ = np.where(no_object, -1, scenes.object[row] - first_box)
        verb = (scenes.interaction if self._truth.vocabulary.roles else scenes.verb)[row]
        # Each different text is made once, and then looked up for every triplet.
        subjects = (b',{"subject":%d' % number for number in range(subject.max(initial=-1) + 1))
        numbers = (b"%d" % number for number in range(object_.max(initial=-1) + 1))
        objects = (b',"object":' + text for text in (*numbers, b"null"))  # -1 finds the last one, null
        labels = self._labels + b',"%b":' % next_key
        return [
            _texts(subjects)[subject],
            _texts(objects)[object_],
            self._verbs[verb],
            labels[scenes.object_label[row]],
        ]


def _first_keys_maker(
    protocol: Protocol, filters: Filters, truth: GroundTruth, *, partial: bool
) -> Callable[[str, int, int, int], Record]:
    """Return a function that makes the first keys of a protocol's match records, those before the predictions.

    It takes an image's id, the mask of its caveats, the hash of its annotations, and the hash of their order, 0 if the
    order changes nothing. Among the keys are `dataset`, if the protocol's name does not tell it; `caveats`, those that
    the protocol depends on; `gt_digest` and `gt_images`, which identify the ground truth; and `partial`, if images
    without predictions have no records."""
    vocabulary = truth.vocabulary
    is_shipped = protocol.name in PROTOCOLS and PROTOCOLS[protocol.name].dataset == vocabulary.name
    shared_keys: Record = {"protocol": protocol.name}
    if protocol.view:
        shared_keys["view"] = dict(protocol.view)
    if not is_shipped:
        shared_keys["dataset"] = vocabulary.signed
    uncounted = UNCOUNTED if filters.allow_uncounted else {}  # that most triplets may have no class
    shared_keys["settings"] = {**uncounted, **filters.signature(), **protocol.settings()}
    shared_keys |= {"gt_digest": digest_of(truth.hash_sum), "gt_images": len(truth.scenes.image_ids)}
    if partial:
        shared_keys["partial"] = True
    relevant_caveats = protocol.depends_on

    def make_first_keys(image_id: str, mask: int, gt_hash: int, order: int) -> Record:
        """Return the keys of an image before its predictions. Hashes are written as 16 hexadecimal digits."""
        image_caveats = mask & relevant_caveats
        caveat_keys = {"caveats": caveats.names(image_caveats)} if image_caveats else {}
        order_keys = {"gt_order": f"{order:016x}"} if order else {}
        return {"image_id": image_id, **shared_keys, **caveat_keys, "gt_hash": f"{gt_hash:016x}", **order_keys}

    return make_first_keys


def _name_texts(vocabulary: Vocabulary) -> tuple[Texts, Texts]:
    """Return two columns of JSON text. The first has `,"verb":"ride"` for each verb, or in a dataset with roles
    `,"verb":"ride","role":"instr"` for each class, with null as the role of the action itself. The second has
    `,"label":"bicycle"` for each object, and at the end one with null, for an object without a label."""
    if vocabulary.roles:
        verbs: list[Record] = [{"verb": verb, "role": role or None} for verb, role in vocabulary.interactions]
    else:
        verbs = [{"verb": verb} for verb in vocabulary.verbs]
    labels: list[Record] = [{"label": label} for label in (*vocabulary.objects, None)]
    return _key_texts(verbs), _key_texts(labels)


def _key_texts(records: Iterable[Record]) -> Texts:
    """Return a column with the JSON text of each record, with a comma in place of its braces: `,"verb":"ride"`."""
    return _texts(b"," + orjson.dumps(record)[1:-1] for record in records)


def _truth_places(batch: Batch, protocol: Protocol, outcomes: Outcomes) -> Ints:
    """Return [K], for each of the K predictions in `outcomes.row`, the position of its ground-truth triplet among the
    triplets of its image that count under the protocol."""
    counted_before = batch.truth.counted_before(protocol)  # each triplet of the ground truth
    first_of_image = batch.truth.scenes.hoi_start[batch.image_of_hoi[outcomes.row]]
    places: Ints = counted_before[outcomes.truth] - counted_before[first_of_image]
    return places


def _texts(pieces: Iterable[bytes]) -> Texts:
    """Return pieces of text as a column, an array of bytes objects."""
    return np.array([*pieces], dtype=np.object_)


def _numbers(column: NDArray[np.generic], *, missing: bool = False) -> list[bytes]:
    """Return the JSON text of each number of a column. missing: the numbers are indices, and -1 becomes null."""
    if not len(column):
        return []
    # The column is written as one JSON array and split again, which is faster than a text for each number.
    text = orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    if missing:
        text = text.replace(b"-1", b"null")
    return text.split(b",")


def _array_pieces(columns: Sequence[Texts], start: Ints) -> list[list[bytes]]:
    """Return, for each of N images, the pieces of text that joined are the inside of its JSON array of objects.

    columns: each has one piece of every object; the first piece of an object begins with a comma, which is taken away
    from the first object of an image. start [N + 1]: the index of each image's first object."""
    pieces = np.stack(columns, axis=1).ravel().tolist()  # object by object
    width = len(columns)
    pieces_of_images = [pieces[width * begin : width * end] for begin, end in pairwise(start.tolist())]
    for image_pieces in pieces_of_images:
        if image_pieces:
            image_pieces[0] = image_pieces[0][1:]
    return pieces_of_images
