"""Match records, which `match` writes and `eval` and `diagnose` read: one line for each image and protocol. A line
holds all that the metrics need, without boxes (formats/match.schema.json has every field), so `match | eval` prints the
same rows as `eval`.
"""

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
"""Pieces of JSON (bytes), one for each object of a column. The pieces of a whole batch are joined once, where a
dictionary for each object would be made and encoded."""


class MatchWriter:
    """Writes match records, by image and then by protocol. partial: images without predictions get no records."""

    def __init__(
        self, truth: GroundTruth, protocols: Sequence[Protocol], filters: Filters, *, partial: bool = False
    ) -> None:
        self._truth = truth
        self._protocols = protocols
        self._heads = [_head(protocol, filters, truth, partial=partial) for protocol in protocols]
        self._counts = filters.allow_uncounted
        self._verbs, self._labels = _names(truth.vocabulary)

    def lines(self, batch: Batch, outcomes: Mapping[str, Outcomes]) -> bytes:
        """Return the match records of a batch as JSON lines, given its outcomes by protocol key."""
        triplets = {row.person_first: self._prediction_texts(batch, row) for row in self._protocols}
        texts = [
            (
                head,
                self._predictions(batch, outcomes[row.key], row, triplets[row.person_first]),
                self._truth_texts(batch, outcomes[row.key], row),
                batch.box_matches(row),
            )
            for head, row in zip(self._heads, self._protocols, strict=True)
        ]
        truth_caveats = self._truth.scenes.caveats[batch.image] & caveats.TRUTH
        masks = (truth_caveats | (batch.predictions.caveats & caveats.PREDICTIONS)).tolist()
        hashes = self._truth.scenes.hashes[batch.image].tolist()
        orders = [self._truth.orders(row)[batch.image].tolist() for row in self._protocols]
        # With leave to count the smaller part alone, each image tells whether that was needed: a shard cannot.
        classless = self._truth.classless[batch.image].tolist() if self._counts else None
        joined: list[bytes] = []
        bounds = pairwise(batch.predictions.box_start.tolist())
        for image, (image_id, (start, end)) in enumerate(zip(batch.predictions.image_ids, bounds, strict=True)):
            more: Record = {} if classless is None else {"gt_classless": classless[image]}
            for (head, predictions, annotated, boxes), order in zip(texts, orders, strict=True):
                first_keys = dump(head(image_id, masks[image], hashes[image], order[image]) | more)
                joined += (first_keys[:-2], b',"predictions":[')  # without the closing brace and the line break
                joined += predictions[image]
                joined.append(b'],"gt":[')
                joined += annotated[image]
                joined += (b'],"box_matches":', orjson.dumps(boxes[start:end]), b"}\n")
        return b"".join(joined)

    def _prediction_texts(self, batch: Batch, protocol: Protocol) -> Sequence[Texts]:
        """Return the predictions of a batch as columns of text, up to their outcomes, which differ by protocol."""
        scenes, every = batch.predictions, np.arange(len(batch.predictions.score))
        no_object = batch.empty_object if protocol.person_first else scenes.object < 0
        return [*self._triplets(scenes, every, no_object, b"score"), _texts(_numbers(scenes.score))]

    def _predictions(
        self, batch: Batch, outcomes: Outcomes, protocol: Protocol, predicted: Sequence[Texts]
    ) -> list[list[bytes]]:
        """Return the text of the predictions of each image. predicted: their columns from `_prediction_texts`. Under a
        person-first protocol, each prediction names the annotated person that it belongs to."""
        codes = [b',"outcome":"%b","gt":' % name.encode() for name in OUTCOMES]
        ends = _texts(code + b'null,"iou_subject":null,"iou_object":null}' for code in codes)[outcomes.code]
        matched = zip(
            outcomes.code[outcomes.row].tolist(),
            _numbers(np.where(outcomes.enough, _places(batch, protocol, outcomes), -1), missing=True),
            _numbers(outcomes.iou_subject),
            _numbers(outcomes.iou_object),
            strict=True,
        )
        ends[outcomes.row] = _texts(
            b'%b%b,"iou_subject":%b,"iou_object":%b}' % (codes[code], gt, subject, object_)
            for code, gt, subject, object_ in matched
        )
        if protocol.person_first:
            people = batch.found_people(protocol)
            first_box = self._truth.scenes.box_start[batch.image_of_hoi]
            person = _numbers(np.where(people < 0, -1, people - first_box), missing=True)
            ends = _texts(b'%b,"person":%b}' % (end[:-1], number) for end, number in zip(ends, person, strict=True))
        return _arrays([*predicted, ends], batch.predictions.hoi_start)

    def _truth_texts(self, batch: Batch, outcomes: Outcomes, protocol: Protocol) -> list[list[bytes]]:
        """Return the text of each image's ground-truth triplets that count, each with the prediction that found it."""
        scenes, image, counted = self._truth.scenes, batch.image, self._truth.counted_triplets(protocol)
        owner, row = expand_runs(scenes.hoi_start[image], scenes.hoi_start[image + 1] - scenes.hoi_start[image])
        owner, row = owner[counted[row]], row[counted[row]]  # the image in the batch, and the row, of each triplet
        start = starts_of(np.bincount(owner, minlength=len(image)))
        hit = outcomes.enough & (outcomes.code[outcomes.row] == TRUE_POSITIVE)
        prediction = outcomes.row[hit]
        image_of_hit = batch.predictions.image_of_hoi[prediction]
        finder = np.full(len(row), -1, dtype=np.int64)
        finder[start[image_of_hit] + _places(batch, protocol, outcomes)[hit]] = (
            prediction - batch.predictions.hoi_start[image_of_hit]
        )
        ends = _texts(number + b"}" for number in _numbers(finder, missing=True))
        return _arrays([*self._triplets(scenes, row, scenes.object[row] < 0, b"prediction"), ends], start)

    def _triplets(self, scenes: Scenes, row: Ints, no_object: Bools, next_key: bytes) -> list[Texts]:
        """Return the boxes and names of some triplets as columns of text, up to the key that comes next. row [M]: the
        triplets; no_object [M]: whether each is written without an object."""
        first_box = scenes.box_start[scenes.image_of_hoi[row]]
        subject, object_ = scenes.subject[row] - first_box, np.where(no_object, -1, scenes.object[row] - first_box)
        verb = (scenes.interaction if self._truth.vocabulary.roles else scenes.verb)[row]
        subjects = (b',{"subject":%d' % number for number in range(subject.max(initial=-1) + 1))
        numbers = (b"%d" % number for number in range(object_.max(initial=-1) + 1))
        objects = (b',"object":' + text for text in (*numbers, b"null"))  # -1 finds the last one, null
        return [
            _texts(subjects)[subject],
            _texts(objects)[object_],
            self._verbs[verb],
            (self._labels + b',"%b":' % next_key)[scenes.object_label[row]],
        ]


def _head(
    protocol: Protocol, filters: Filters, truth: GroundTruth, *, partial: bool
) -> Callable[[str, int, int, int], Record]:
    """Return the function that makes the first keys of a protocol's match records from an image's id, its mask of
    caveats, the hash of its annotations, and the hash of their order, 0 where the order changes nothing. Among the keys
    are `dataset`, if the protocol's name does not tell it; `caveats`, those that the protocol depends on; `gt_digest`
    and `gt_images`, which identify the ground truth; and `partial`, if other images of it may have no records."""
    vocabulary = truth.vocabulary
    is_shipped = protocol.name in PROTOCOLS and PROTOCOLS[protocol.name].dataset == vocabulary.name
    shared_keys: Record = {
        "protocol": protocol.name,
        **({"view": dict(protocol.view)} if protocol.view else {}),
        **({} if is_shipped else {"dataset": vocabulary.signed}),
        "settings": {**(UNCOUNTED if filters.allow_uncounted else {}), **filters.signature(), **protocol.settings()},
        "gt_digest": digest_of(truth.total),
        "gt_images": len(truth.scenes.image_ids),
        **({"partial": True} if partial else {}),
    }
    concerned = protocol.depends_on

    def head(image_id: str, mask: int, gt_hash: int, order: int) -> Record:
        caveats_of = {"caveats": caveats.names(mask & concerned)} if mask & concerned else {}
        listed = {"gt_order": f"{order:016x}"} if order else {}
        return {"image_id": image_id, **shared_keys, **caveats_of, "gt_hash": f"{gt_hash:016x}", **listed}

    return head


def _names(vocabulary: Vocabulary) -> tuple[Texts, Texts]:
    """Return two columns of text: each verb, or with roles each action (verb and role, null for the action itself); and
    each object's label, with null for no label at the end."""
    if vocabulary.roles:
        named: list[Record] = [{"verb": verb, "role": role or None} for verb, role in vocabulary.interactions]
    else:
        named = [{"verb": verb} for verb in vocabulary.verbs]
    labelled = [{"label": label} for label in (*vocabulary.objects, None)]
    verbs, labels = (_texts(b"," + orjson.dumps(names_of)[1:-1] for names_of in column) for column in (named, labelled))
    return verbs, labels


def _places(batch: Batch, protocol: Protocol, outcomes: Outcomes) -> Ints:
    """Return [K] the place of each prediction's ground-truth triplet among the triplets of its image that count."""
    before, start = batch.truth.counted_before(protocol), batch.truth.scenes.hoi_start
    places: Ints = before[outcomes.truth] - before[start[batch.image_of_hoi[outcomes.row]]]
    return places


def _texts(pieces: Iterable[bytes]) -> Texts:
    """Return pieces of text as a column."""
    return np.array([*pieces], dtype=np.object_)


def _numbers(column: NDArray[np.generic], *, missing: bool = False) -> list[bytes]:
    """Return the JSON text of each number of a column. missing: the numbers are indices, and -1 becomes null."""
    if not len(column):
        return []
    text = orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    return (text.replace(b"-1", b"null") if missing else text).split(b",")


def _arrays(columns: Sequence[Texts], start: Ints) -> list[list[bytes]]:
    """Return, for each image, the pieces of text between the brackets of its JSON array. columns: the pieces of each
    object, which begins with a comma unless it is an image's first. start [N + 1]: where each image's objects begin."""
    pieces, width = np.stack(columns, axis=1).ravel().tolist(), len(columns)
    images = [pieces[width * begin : width * end] for begin, end in pairwise(start.tolist())]
    for image in images:
        if image:
            image[0] = image[0][1:]
    return images
