"""Match records, which `match` writes and `eval` and `diagnose` read: one line for each image and protocol. A line
holds all that the metrics need, without boxes (formats/match.schema.json has every field), so `match | eval` prints the
same rows as `eval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.converters.named import digest_of
from hoicli.evaluation.filters import UNCOUNTED, Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.protocols import PROTOCOLS, Protocol
from hoicli.records import caveats
from hoicli.records.columns import BATCH
from hoicli.records.kit import Bools, Ints, expanded, starts_of
from hoicli.records.outcomes import OUTCOMES, TRUE_POSITIVE
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary

Texts = list[str]
"""A column of a match record's objects: `"key":value` of each, as JSON. Texts are joined to objects a thousand at a
time, where dictionaries would be made and encoded one by one."""


def match_records(
    batch: Batch,
    outcomes: Mapping[str, Outcomes],
    protocols: Sequence[Protocol],
    filters: Filters,
    *,
    partial: bool = False,
    skipped: int = 0,
) -> Iterator[Record]:
    """The match records of a batch: image by image, and for each image protocol by protocol. `predictions` and `gt` are
    JSON already, for `dump`. partial: `missed_records` do not follow. skipped: lines that were dropped
    before these, which the first record of each protocol says."""
    parts = [
        (_head(protocol, filters, batch.truth, partial=partial), _predictions(batch, outcomes[protocol.key], protocol))
        for protocol in protocols
    ]
    truths = [
        _truth(batch.truth, batch.image, batch.truth.counted(row), _found(batch, row, outcomes[row.key]))
        for row in protocols
    ]
    matches = [batch.box_matches(protocol) for protocol in protocols]
    of_truth = batch.truth.scenes.caveats[batch.image] & caveats.TRUTH
    masks = (of_truth | (batch.predictions.caveats & caveats.PREDICTIONS)).tolist()
    hashes = batch.truth.scenes.hashes[batch.image].tolist()
    classless = _classless(batch.truth, batch.image, filters)
    hoi, box = (starts.tolist() for starts in (batch.predictions.hoi_start, batch.predictions.box_start))
    for row, image_id in enumerate(batch.predictions.image_ids):
        lost = {} if row or not skipped else {"skipped": skipped}
        for (head, predictions), truth, boxes in zip(parts, truths, matches, strict=True):
            yield {
                **head(image_id, masks[row], hashes[row]),
                **lost,
                **classless[row],
                "predictions": _array(predictions[hoi[row] : hoi[row + 1]]),
                "gt": truth[row],
                "box_matches": boxes[box[row] : box[row + 1]],
            }


def missed_records(
    truth: GroundTruth, missed: Sequence[int], protocols: Sequence[Protocol], filters: Filters, skipped: int = 0
) -> Iterator[Record]:
    """Match records of the images without predictions (their places), so that their triplets count as missed. skipped:
    as in `match_records`."""
    heads, none = [_head(row, filters, truth, partial=False) for row in protocols], np.zeros(0, dtype=np.int64)
    for start in range(0, len(missed), BATCH):
        rows = np.array(missed[start : start + BATCH])
        texts = [_truth(truth, rows, truth.counted(protocol), (none, none, none)) for protocol in protocols]
        masks, hashes = (truth.scenes.caveats[rows] & caveats.TRUTH).tolist(), truth.scenes.hashes[rows].tolist()
        for place, classless in enumerate(_classless(truth, rows, filters)):
            image_id = truth.scenes.image_ids[rows[place]]
            lost = {} if start + place or not skipped else {"skipped": skipped}
            for head, gt in zip(heads, texts, strict=True):
                record = head(image_id, masks[place], hashes[place])
                yield {**record, **lost, **classless, "predictions": [], "gt": gt[place], "box_matches": []}


def _head(
    protocol: Protocol, filters: Filters, truth: GroundTruth, *, partial: bool
) -> Callable[[str, int, int], Record]:
    """The first keys of a protocol's match records, from an image's id, its mask of caveats and the hash of its
    annotations: `dataset` if the protocol's name does not tell it; `caveats` are those of the image's records that the
    protocol depends on, and `gt_digest` and `gt_images` say of which whole it is a part, `partial` that the rest of the
    whole may not be there."""
    vocabulary = truth.vocabulary
    told = protocol.name in PROTOCOLS and PROTOCOLS[protocol.name].dataset == vocabulary.name
    same: Record = {
        "protocol": protocol.name,
        **({"view": dict(protocol.view)} if protocol.view else {}),
        **({} if told else {"dataset": vocabulary.signed}),
        "settings": {**(UNCOUNTED if filters.allow_uncounted else {}), **filters.signature(), **protocol.settings()},
        "gt_digest": digest_of(truth.total),
        "gt_images": len(truth.scenes.image_ids),
        **({"partial": True} if partial else {}),
    }
    concerned = protocol.depends_on

    def head(image_id: str, mask: int, gt_hash: int) -> Record:
        found = {"caveats": caveats.names(mask & concerned)} if mask & concerned else {}
        return {"image_id": image_id, **same, **found, "gt_hash": f"{gt_hash:016x}"}

    return head


def _classless(truth: GroundTruth, image: Ints, filters: Filters) -> list[Record]:
    """With leave to count the smaller part alone, what tells of each image whether it was needed: a shard cannot."""
    if not filters.allow_uncounted:
        return [{}] * len(image)
    return [{"gt_classless": counts} for counts in truth.classless[image].tolist()]


def _predictions(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Texts:
    """[T] the predictions of a batch without their braces."""
    scenes, vocabulary = batch.predictions, batch.truth.vocabulary
    first_box = scenes.box_start[scenes.image_of_hoi]
    without, people = _person_first(batch, protocol)
    unmatched = [f'"outcome":"{name}","gt":null,"iou_subject":null,"iou_object":null' for name in OUTCOMES]
    ends = list(map(unmatched.__getitem__, outcomes.code.tolist()))
    gt = np.where(outcomes.enough, _places(batch, protocol, outcomes), -1)
    matched = _objects(
        [f'"outcome":"{OUTCOMES[code]}"' for code in outcomes.code[outcomes.row].tolist()],
        _numbers("gt", gt, missing=True),
        _numbers("iou_subject", outcomes.iou_subject),
        _numbers("iou_object", outcomes.iou_object),
    )
    for row, text in zip(outcomes.row.tolist(), matched, strict=True):
        ends[row] = text
    return _objects(
        _boxes(scenes.subject - first_box, np.where(without, -1, scenes.object - first_box)),
        _names(vocabulary, scenes.verb, scenes.interaction, scenes.object_label),
        _numbers("score", scenes.score),
        ends,
        *([] if people is None else [_numbers("person", people, missing=True)]),
    )


def _places(batch: Batch, protocol: Protocol, outcomes: Outcomes) -> Ints:
    """[K] the place of each prediction's ground-truth triplet among those of its image that count."""
    before, start = batch.truth.counted_before(protocol), batch.truth.scenes.hoi_start
    places: Ints = before[outcomes.truth] - before[start[batch.image_of_hoi[outcomes.row]]]
    return places


def _found(batch: Batch, protocol: Protocol, outcomes: Outcomes) -> tuple[Ints, Ints, Ints]:
    """The true positives: (image, place of the ground-truth triplet as `_places`, index of the prediction)."""
    hit = outcomes.enough & (outcomes.code[outcomes.row] == TRUE_POSITIVE)
    row = outcomes.row[hit]
    image = batch.predictions.image_of_hoi[row]
    return image, _places(batch, protocol, outcomes)[hit], row - batch.predictions.hoi_start[image]


def _truth(truth: GroundTruth, image: Ints, counted: Bools, found: tuple[Ints, Ints, Ints]) -> list[orjson.Fragment]:
    """The counted triplets of each of some images; `found` as `_found` has it."""
    scenes, vocabulary = truth.scenes, truth.vocabulary
    of, row = expanded(scenes.hoi_start[image], scenes.hoi_start[image + 1] - scenes.hoi_start[image])
    of, row = of[counted[row]], row[counted[row]]
    start = starts_of(np.bincount(of, minlength=len(image)))
    hit_image, place, index = found
    prediction = np.full(len(row), -1, dtype=np.int64)
    prediction[start[hit_image] + place] = index
    first_box = scenes.box_start[image[of]]
    texts = _objects(
        _boxes(scenes.subject[row] - first_box, np.where(scenes.object[row] < 0, -1, scenes.object[row] - first_box)),
        _names(vocabulary, scenes.verb[row], scenes.interaction[row], scenes.object_label[row]),
        _numbers("prediction", prediction, missing=True),
    )
    return [_array(texts[begin:end]) for begin, end in pairwise(start.tolist())]


class _Made(dict[int, str]):
    """The text of each number, made once."""

    def __init__(self, make: Callable[[int], str]) -> None:
        self._make = make

    def __missing__(self, number: int) -> str:
        text = self[number] = self._make(number)
        return text

    def of(self, numbers: Ints) -> Texts:
        """The text of each."""
        return list(map(self.__getitem__, numbers.tolist()))


def _boxes(subject: Ints, object_: Ints) -> Texts:
    """The indices of both boxes of triplets, null for no object."""
    many = int(object_.max(initial=-1)) + 2

    def text(number: int) -> str:
        first, second = divmod(number, many)
        return f'"subject":{first},"object":{second - 1 if second else "null"}'

    return _Made(text).of(subject * many + object_ + 1)


def _names(vocabulary: Vocabulary, verb: Ints, interaction: Ints, label: Ints) -> Texts:
    """The names of triplets: `verb`; with roles `role`, null for the action itself; `label`, null for a box without
    one."""
    many = len(vocabulary.objects) + 1

    def text(number: int) -> str:
        action, label = divmod(number, many)
        verb, role = vocabulary.interactions[action] if vocabulary.roles else (vocabulary.verbs[action], "")
        roles = {"role": role or None} if vocabulary.roles else {}
        named = {"verb": verb, **roles, "label": vocabulary.objects[label - 1] if label else None}
        return orjson.dumps(named)[1:-1].decode()

    return _Made(text).of((interaction if vocabulary.roles else verb) * many + label + 1)


def _numbers(key: str, column: NDArray[np.generic], *, missing: bool = False) -> Texts:
    """A column of numbers; `missing`: of integers from 0, where -1 is null."""
    if not len(column):
        return []
    text = orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode()
    begin = f'"{key}":'
    return (begin + (text.replace("-1", "null") if missing else text).replace(",", f"\n{begin}")).split("\n")


def _objects(*columns: Texts) -> Texts:
    """The members of each object, from its columns."""
    return list(map(",".join, zip(*columns, strict=True)))


def _array(objects: Texts) -> orjson.Fragment:
    """An array of objects."""
    return orjson.Fragment("[{" + "},{".join(objects) + "}]" if objects else "[]")


def _person_first(batch: Batch, protocol: Protocol) -> tuple[Bools, Ints | None]:
    """([T] statements without an object, [T] the index of the annotated person each belongs to, -1 for none). The
    second is None unless the protocol is person-first; such a protocol takes a box of zeros as no object."""
    scenes = batch.predictions
    if not protocol.person_first:
        return scenes.object < 0, None
    people = batch.found_people(protocol)
    first_box = batch.truth.scenes.box_start[batch.image_of_hoi]
    return batch.empty_object, np.where(people < 0, -1, people - first_box)
