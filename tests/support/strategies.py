"""Random scenes for hypothesis: small images, few classes, and every nuisance a dump can hold."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

LABELS = ("person", "bicycle", "kite", "apple")
VERBS = ("hold", "ride", "fly", "no_interaction")
"""Not every verb goes with every label: `ride kite` is none of the 600 interactions."""

coordinates = st.one_of(st.integers(-2, 12), st.sampled_from([0.5, 3.25, 7.75]))
scores = st.one_of(st.sampled_from([0.1, 0.5, 0.5, 0.9]), st.floats(-1, 2, allow_nan=False))


@st.composite
def boxes(draw: st.DrawFn, least: int = -1) -> list[float]:
    """Mostly proper boxes on a coarse grid, so that IoU is often exactly 0.5; sometimes empty ones, and, unless the
    `least` side is 0, inverted ones, which the readers of whole streams refuse."""
    x1, y1 = draw(coordinates), draw(coordinates)
    return [x1, y1, x1 + draw(st.integers(least, 8)), y1 + draw(st.integers(least, 8))]


@st.composite
def images(draw: st.DrawFn, image_id: str, *, scored: bool, least: int = -1) -> dict[str, Any]:
    """One record. Ground truth sometimes has image-level labels, predictions sometimes an object as the subject."""
    count = draw(st.integers(0, 4))
    labels = [draw(st.sampled_from(LABELS)) for _ in range(count)]
    drawn = [draw(boxes(least)) for _ in range(count)]
    record: dict[str, Any] = {"image_id": image_id, "boxes": drawn, "labels": labels}
    hois = []
    for _ in range(draw(st.integers(0, 6)) if count else 0):
        hoi: dict[str, Any] = {
            "subject": draw(st.integers(0, count - 1)),
            "object": draw(st.integers(0, count - 1)),
            "verb": draw(st.sampled_from(VERBS)),
        }
        if scored:
            hoi["score"] = draw(scores)
        elif labels[hoi["subject"]] != "person":
            continue
        hois.append(hoi)
    record["hois"] = hois
    if not scored and draw(st.booleans()):
        extra = draw(st.lists(st.sampled_from(LABELS), max_size=2))
        known = [[hoi["verb"], labels[hoi["object"]]] for hoi in hois]
        record["image_hois"] = known + [["hold", name] for name in extra]
    return record


@st.composite
def datasets(draw: st.DrawFn, least: int = -1) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(ground truth, predictions) of a few images, some of them without predictions."""
    ids = [f"image_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = [draw(images(image_id, scored=False, least=least)) for image_id in ids]
    predictions = [draw(images(image_id, scored=True, least=least)) for image_id in ids if draw(st.integers(0, 4)) > 0]
    return truth, predictions


@st.composite
def crowds(
    draw: st.DrawFn,
    labels: Sequence[str] = ("person", "person", "person", "bicycle", "bicycle", "kite"),
    objects: Sequence[int | None] = (3, 4, 5),
    actions: Sequence[Mapping[str, str]] = tuple({"verb": verb} for verb in ("hold", "carry", "ride", "fly")),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(ground truth, predictions) of one image with people and things side by side, boxes of either predicted right or
    not at all: nothing but pairs, verbs and scores to get wrong, so that much wants to repair much. By a seed: what
    hypothesis draws itself is too bare for that."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    boxes = [[100.0 * index, 0.0, 100.0 * index + 50, 50.0] for index in range(len(labels))]

    def hois(most: int, scores: tuple[float, ...] = ()) -> list[dict[str, Any]]:
        hois = []
        for _ in range(chance.randint(most // 2, most)):
            hoi = {"subject": chance.randrange(3), "object": chance.choice(objects), **chance.choice(actions)}
            hois.append({**hoi, **({"score": chance.choice(scores)} if scores else {})})
        return hois

    scene = {"image_id": "one", "labels": list(labels)}
    truth = hois(9)
    moved = [[x + shift for x in box] for box in boxes for shift in [500 if chance.random() < 0.25 else 1]]
    predicted = {**scene, "boxes": moved, "hois": hois(14, (0.2, 0.4, 0.6, 0.8))}
    return [{**scene, "boxes": boxes, "hois": truth}], [predicted]


def parts_of(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every (object or array, key of it) inside a value."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from parts_of(value)
