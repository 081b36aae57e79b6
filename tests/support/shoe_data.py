"""Random ground truth and predictions in free text."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.shoe import Record

VERBS = ("pet", "touch", "Wash", "clean", "blob", "no_interaction")
LABELS = ("train", "bus", "set", "Sports Ball", "sports_ball", "blob")
RANDOM_SIMILAR = st.dictionaries(
    st.sampled_from(
        [(f"{a}.v.01", f"{b}.v.0{n}") for a, b, n in [("pet", "touch", 1), ("pet", "clean", 2), ("wash", "clean", 1)]]
        + [("wash.v.01", "pet.v.01"), ("train.n.01", "bus.n.01"), ("sports_ball.n.01", "set.n.01")]
    ),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]),
)


@st.composite
def records(draw: st.DrawFn, image_id: str, *, scored: bool) -> Record:
    count = draw(st.integers(1, 3))
    record: Record = {"image_id": image_id, "boxes": [], "labels": [], "hois": []}
    for _ in range(count):
        x, y = draw(st.integers(0, 3)) * 5, draw(st.integers(0, 1)) * 5
        record["boxes"].append([x, y, x + draw(st.sampled_from([5, 10])), y + draw(st.sampled_from([0, 5, 10]))])
        record["labels"].append(draw(st.sampled_from(LABELS)))
    for _ in range(draw(st.integers(0, 5))):
        hoi: Record = {
            "subject": draw(st.integers(0, count - 1)),
            "object": draw(st.one_of(st.none(), st.integers(0, count - 1), st.integers(0, count - 1))),
            "verb": draw(st.sampled_from(VERBS)),
        }
        if scored:
            hoi["score"] = draw(st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.9]), st.floats(0, 1)))
            if draw(st.integers(0, 4)) == 0:
                hoi["verb_synset"] = draw(st.sampled_from(["pet.v.01", "clean.v.02"]))
        record["hois"].append(hoi)
    return record


@st.composite
def datasets(draw: st.DrawFn) -> tuple[list[Record], list[Record]]:
    ids = [f"image_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = [draw(records(image_id, scored=False)) for image_id in ids]
    return truth, [draw(records(image_id, scored=True)) for image_id in ids if draw(st.integers(0, 4)) > 0]
