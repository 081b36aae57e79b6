"""V-COCO's records, read and made up at random."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from hoicli.vocabulary.datasets import load
from tests.support import strategies
from tests.support.project import Data, Record, records, written

VCOCO = load("vcoco")


def with_labels(path: Path, source: Path) -> Path:
    """V-COCO predictions whose object boxes have labels, but for those of the first image."""
    first, *others = records(source)
    for record in others:
        record["labels"] = ["sports_ball" if label is None else label for label in record["labels"]]
    return written(path, [first, *others])


VERBS = ("hit", "eat", "hold", "point", "walk")
LABELS = ("person", "person", "person", "dog", "cup", None)
EMPTY = ([0, 0, 0, 0], [0.0, 0.0, 0.1, 0.1])


@st.composite
def annotated_images(draw: st.DrawFn, image_id: int) -> Record:
    """People who do things, people nobody annotated, roles with and without object."""
    count = draw(st.integers(0, 4))
    labels = [draw(st.sampled_from(LABELS)) for _ in range(count)]
    record: Record = {"image_id": image_id, "boxes": [draw(strategies.boxes()) for _ in range(count)], "labels": labels}
    annotated = [label != "person" or draw(st.integers(0, 4)) > 0 for label in labels]
    if draw(st.booleans()) or not all(annotated):
        record["annotated"] = annotated
    hois: list[Record] = []
    for index in range(count):
        if labels[index] != "person" or not annotated[index]:
            continue
        for verb in draw(st.lists(st.sampled_from(VERBS), unique=True, max_size=3)):
            for role in VCOCO.roles_of[verb]:
                filler = draw(st.one_of(st.none(), st.integers(0, count - 1)))
                hois.append({"subject": index, "object": filler, "verb": verb, "role": role})
            if not VCOCO.roles_of[verb]:
                hois.append({"subject": index, "object": None, "verb": verb})
    return record | {"hois": hois}


@st.composite
def detections(draw: st.DrawFn, annotation: Record) -> Record:
    """Boxes near the annotated ones or anywhere, with and without labels; agents said or not; empties of all kinds."""
    kept = [box for box in annotation["boxes"] if draw(st.integers(0, 3)) > 0]
    boxes = [[side + draw(st.sampled_from([0, 0, 0, 1, -1, 2])) for side in box] for box in kept]
    boxes += [draw(strategies.boxes()) for _ in range(draw(st.integers(0, 2)))]
    boxes += [list(box) for box in EMPTY if draw(st.booleans())]
    count = len(boxes)
    labels = [draw(st.sampled_from(["person", "person", "dog", "cup", None])) for _ in range(count)]
    hois = []
    for _ in range(draw(st.integers(0, 12)) if count else 0):
        verb = draw(st.sampled_from(VERBS))
        role = draw(st.sampled_from([None, *VCOCO.roles_of[verb], *VCOCO.roles_of[verb]]))
        hoi: Record = {"subject": draw(st.integers(0, count - 1)), "verb": verb, "score": draw(strategies.scores)}
        hoi["object"] = draw(st.one_of(st.none(), st.integers(0, count - 1))) if role else None
        hois.append(hoi if role is None and draw(st.booleans()) else hoi | {"role": role})
    record = {"image_id": annotation["image_id"], "boxes": boxes, "labels": labels, "hois": hois}
    if draw(st.integers(0, 3)) == 0:
        record["unstated"] = {"score": draw(st.sampled_from([0.0, 0.5])), "object": list(draw(st.sampled_from(EMPTY)))}
    return record


@st.composite
def datasets(draw: st.DrawFn) -> Data:
    truth = [draw(annotated_images(number)) for number in range(draw(st.integers(1, 3)))]
    return truth, [draw(detections(record)) for record in truth if draw(st.integers(0, 4)) > 0]
