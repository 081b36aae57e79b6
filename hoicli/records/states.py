"""The predictions of many images as plain numeric arrays by name: what `Evaluator.state()` gives.

Per image: `dataset` (a fingerprint), `id_counts`, `box_counts` and `triplet_counts`; and the rows of all images: `ids`
(UTF-8 bytes), boxes, labels, subject, object, verb, role, score, as `Detections` has them. Several such states
concatenated along the first axis, array by array, are the state of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.records.detections import TRIPLET_COLUMNS, Detections, detections
from hoicli.records.foreign import as_array
from hoicli.records.kit import Ints, joined, starts_of
from hoicli.records.parsing import short
from hoicli.vocabulary.labels import Vocabulary

State = dict[str, Any]
"""Typed so that `numpy.savez(path, **state)` passes type checkers."""

_OF_BOXES = ("boxes", "labels")
_OF_TRIPLETS = (*TRIPLET_COLUMNS, "role")
_RUNS = {
    "ids": "id_counts",
    **dict.fromkeys(_OF_BOXES, "box_counts"),
    **dict.fromkeys(_OF_TRIPLETS, "triplet_counts"),
}
"""The arrays of a state that have some rows for each image, with the array that says how many."""
_COUNTS = tuple(dict.fromkeys(_RUNS.values()))
NAMES = (*_COUNTS, "dataset", *_RUNS)


def state_of(images: Sequence[Detections], vocabulary: Vocabulary) -> State:
    """The state of these images."""
    ids = [image.image_id.encode("utf-8", "surrogatepass") for image in images]
    state: State = {
        "dataset": np.full(len(images), _fingerprint(vocabulary), dtype=np.int64),
        "id_counts": np.array([len(image_id) for image_id in ids], dtype=np.int64),
        "box_counts": np.array([len(image.boxes) for image in images], dtype=np.int64),
        "triplet_counts": np.array([len(image.score) for image in images], dtype=np.int64),
        "ids": np.frombuffer(b"".join(ids), dtype=np.uint8).copy(),
    }
    for name in (*_OF_BOXES, *_OF_TRIPLETS):
        empty = np.float64 if name in ("boxes", "score") else np.int64
        state[name] = joined([getattr(image, name) for image in images], empty)
    state["boxes"] = state["boxes"].reshape(-1, 4)
    return state


def images_of(state: Mapping[str, Any], vocabulary: Vocabulary, place: str) -> Iterator[Detections]:
    """The images of a state, each checked as arrays from a network are. Raises `DataError` at `place`."""
    for image_id, given in given_of(state, vocabulary, place):
        try:
            yield detections(image_id, given, vocabulary)
        except DataError as error:
            raise error.at(f"{place}: image {short(image_id)}") from None


def given_of(state: Mapping[str, Any], vocabulary: Vocabulary, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id of each image and its arrays, as `detections` takes them. Raises `DataError` at `place` for arrays that
    are no state, or another dataset's."""
    missing = [key for key in NAMES if key not in state]
    if missing:
        raise DataError(f"no {missing[0]!r} in it; give what state() returned", place=place)
    arrays = {key: as_array(state[key], key) for key in ("dataset", *_RUNS)}
    try:
        whole_numbers = [arrays[key] for key in arrays if key not in ("boxes", "score")]
        if any(array.ndim != 1 or (array.size and array.dtype.kind not in "iu") for array in whole_numbers):
            raise ValueError
        starts = {key: starts_of(_counts(as_array(state[key], key))) for key in _COUNTS}
        images = len(arrays["dataset"])
        whole = all(len(of) == images + 1 for of in starts.values())
        whole &= all(len(arrays[key]) == starts[of][-1] for key, of in _RUNS.items())
        text = bytes(arrays["ids"].tolist())  # ValueError for a number that is no byte
        cuts = pairwise(starts["id_counts"].tolist()) if whole else ()
        ids = [text[start:end].decode("utf-8", "surrogatepass") for start, end in cuts]
    except (ValueError, TypeError, OverflowError):
        whole = False
    if not whole:
        raise DataError("its arrays do not fit together; give what state() returned, whole", place=place)
    if (arrays["dataset"] != _fingerprint(vocabulary)).any():
        raise DataError(f"is of another dataset than {vocabulary.signed}; give its dataset", place=place)
    arrays["role"] = arrays["role"] - 1
    wanted = [key for key in (*_OF_BOXES, *_OF_TRIPLETS) if key != "role" or vocabulary.roles]
    for row, image_id in enumerate(ids):
        yield image_id, {key: arrays[key][starts[_RUNS[key]][row] : starts[_RUNS[key]][row + 1]] for key in wanted}


def _counts(counts: NDArray[Any]) -> Ints:
    """Numbers of rows. Raises `ValueError` for anything else."""
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any() or (counts > 1 << 40).any():
        raise ValueError
    return counts.astype(np.int64)


def _fingerprint(vocabulary: Vocabulary) -> int:
    """A number that tells datasets apart."""
    return int.from_bytes(sha256(vocabulary.signed.encode()).digest()[:6], "big")
