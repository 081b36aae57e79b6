"""The rows of an audit: its candidates, and mAP on annotations without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import protocol_iou, reaches
from hoicli.evaluation.rows import Wanted, tally_rows
from hoicli.evaluation.tally import Tally
from hoicli.io.workers import shared_out
from hoicli.records.kit import Bools, Floats, Ints, rank_by_id
from hoicli.records.results import Row, row_ends
from hoicli.validation.audit import CONTRADICTED, DUPLICATE, MISSING, Audit

NOTE = "a candidate to look at, not an error"
CIRCULAR = "the annotations were changed after these models' own predictions: no measure of a model"

CHANGES: Mapping[str, tuple[str, ...]] = {
    "duplicates_merged": (DUPLICATE,),
    "contradicted_removed": (CONTRADICTED,),
    "missing_added": (MISSING,),
}
"""The annotations that mAP is of besides those as given -> the kind of candidates that they are without."""


class AuditRows:
    """Makes the rows of an audit. kinds: of candidates, in the order of the rows."""

    def __init__(self, audit: Audit, kinds: Sequence[str], tags: Mapping[str, str]) -> None:
        self._audit, self._kinds, self._tags = audit, kinds, tags
        self._truth, self._vocabulary = audit.truth, audit.truth.vocabulary

    def candidates(self, top: int | None) -> Iterator[Row]:
        """How many candidates there are of each kind, and the `top` of each, surest first (None: all)."""
        made = {DUPLICATE: self._duplicate_rows, CONTRADICTED: self._contradicted_rows, MISSING: self._missing_rows}
        for kind in self._kinds:
            ends = row_ends(self._audit.protocol.name, self._tags, self._audit.settings(kind)) | {"note": NOTE}
            count, images = self._size(kind)
            head: Row = {"metric": "candidates", "subset": "full", "kind": kind}
            yield head | {"value": count, "n": images, "unit": "candidates", **ends}
            for rank, row in enumerate(made[kind](count if top is None else min(top, count)), start=1):
                head = {"metric": "candidate", "subset": "full", "kind": kind, "rank": rank}
                yield head | row | {"unit": "ratio", **ends}

    def _size(self, kind: str) -> tuple[int, int]:
        """(candidates, images that have some)."""
        scenes = self._truth.scenes
        if kind == DUPLICATE:
            image = scenes.image_of_box[self._audit.duplicates.first]
        else:
            image = (
                self._audit.missing.of.image if kind == MISSING else scenes.image_of_hoi[self._audit.contradicted.truth]
            )
        return len(image), len(np.unique(image))

    def _duplicate_rows(self, count: int) -> Iterator[Row]:
        scenes, found = self._truth.scenes, self._audit.duplicates
        by_id = rank_by_id(scenes.image_ids)[scenes.image_of_box[found.first]]
        order = np.lexsort((found.second, found.first, by_id, -found.iou))[:count]
        for row in order.tolist():
            first, second = int(found.first[row]), int(found.second[row])
            image = int(scenes.image_of_box[first])
            begin, end = scenes.hoi_start[image : image + 2].tolist()
            named = np.isin(scenes.subject[begin:end], (first, second)) | np.isin(
                scenes.object[begin:end], (first, second)
            )
            yield {
                "value": float(found.iou[row]),
                "n": int(named.sum()),
                "image_id": scenes.image_ids[image],
                "label": self._label(int(scenes.labels[first])),
                "boxes": [first - int(scenes.box_start[image]), second - int(scenes.box_start[image])],
                "where": scenes.boxes[[first, second]].tolist(),
                "hois": np.flatnonzero(named).tolist(),
                "verbs": [self._verbs(box, begin, end) for box in (first, second)],
                "shared": int(found.shared[row]),
            }

    def _verbs(self, box: int, begin: int, end: int) -> list[str]:
        """The verbs of some triplets that a box belongs to."""
        scenes = self._truth.scenes
        rows = (scenes.subject[begin:end] == box) | (scenes.object[begin:end] == box)
        return [self._vocabulary.verbs[verb] for verb in np.unique(scenes.verb[begin:end][rows]).tolist()]

    def _contradicted_rows(self, count: int) -> Iterator[Row]:
        scenes, found = self._truth.scenes, self._audit.contradicted
        for at, row in enumerate(found.truth[:count].tolist()):
            image, class_ = int(scenes.image_of_hoi[row]), int(scenes.interaction[row])
            ends = int(scenes.subject[row]), int(scenes.object[row])
            models = [
                {
                    "model": opinion.name,
                    **self._class(int(found.instead[model, at]), ends[1]),
                    "score": float(found.score[model, at]),
                    "own_score": _number(found.own[model, at]),
                    "annotated": bool(found.right[model, at]),
                }
                for model, opinion in enumerate(self._audit.opinions)
                if found.says[model, at]
            ]
            yield {
                "value": float(found.sure[at]),
                "n": int(found.models[at]),
                "image_id": scenes.image_ids[image],
                **self._class(class_, ends[1]),
                "hoi": row - int(scenes.hoi_start[image]),
                "boxes": [None if end < 0 else end - int(scenes.box_start[image]) for end in ends],
                "where": scenes.boxes[[end for end in ends if end >= 0]].tolist(),
                "worth": self._worth(class_),
                "models": models,
            }

    def _missing_rows(self, count: int) -> Iterator[Row]:
        scenes, missing = self._truth.scenes, self._audit.missing
        found = missing.of
        for at in range(count):
            image, class_ = int(found.image[at]), int(found.class_[at])
            ends = int(found.near_subject[at]), int(found.near_object[at])
            with_object = not np.isnan(found.object[at, 0])
            begin, end = scenes.hoi_start[image : image + 2].tolist()
            pair = found.subject[at], found.object[at] if with_object else None
            annotated = np.unique(scenes.interaction[begin:end][self._on_pair(*pair, begin, end)])
            label = int(found.label_of_object[at])
            scores = missing.score[:, at].tolist()
            yield {
                "value": float(missing.sure[at]),
                "n": int(missing.models[at]),
                "image_id": scenes.image_ids[image],
                **self._named(class_, self._label(label) if with_object and label >= 0 else None),
                "boxes": [None if end < 0 else end - int(scenes.box_start[image]) for end in ends],
                "where": [found.subject[at].tolist(), *([found.object[at].tolist()] if with_object else [])],
                "annotated": [self._vocabulary.interactions[number][0] for number in annotated.tolist()],
                "image_label": self._image_label(image, class_),
                "worth": self._worth(class_),
                "models": [
                    {"model": opinion.name, "score": score}
                    for opinion, score in zip(self._audit.opinions, scores, strict=True)
                    if score == score
                ],
            }

    def _on_pair(self, subject: Floats, object_: Floats | None, begin: int, end: int) -> Bools:
        """Which of some annotated triplets of a class are on the pair of these boxes."""
        scenes, protocol = self._truth.scenes, self._audit.protocol
        on = scenes.interaction[begin:end] >= 0
        for ends, box in ((scenes.subject[begin:end], subject), (scenes.object[begin:end], object_)):
            if box is None:
                on &= ends < 0
            else:
                drawn = np.repeat(box[:, np.newaxis], len(ends), axis=1)
                on &= reaches(protocol, protocol_iou(protocol, drawn, np.where(ends < 0, np.nan, scenes.boxes[ends].T)))
        return on

    def _label(self, number: int) -> str:
        return self._vocabulary.objects[number]

    def _class(self, class_: int, box: int) -> Row:
        """The names of an annotated class; box: of its object, -1 for none."""
        label = int(self._truth.scenes.labels[box]) if box >= 0 else -1
        return self._named(class_, self._label(label) if label >= 0 else None)

    def _named(self, class_: int, label: str | None) -> Row:
        vocabulary = self._vocabulary
        verb, name = vocabulary.interactions[class_]
        return (
            {"verb": verb, "role": name or None, "object": label}
            if vocabulary.roles
            else {"verb": verb, "object": name}
        )

    def _image_label(self, image: int, class_: int) -> str | None:
        """What the image's own labels say of a class: happens, ambiguous, or None for nothing."""
        key = image * len(self._vocabulary.interactions) + class_
        return "happens" if key in self._keys[0] else "ambiguous" if key in self._keys[1] else None

    @cached_property
    def _keys(self) -> tuple[set[int], set[int]]:
        happens, ambiguous = self._truth.image_labels
        return set(happens.tolist()), set(ambiguous.tolist())

    @cached_property
    def _counts(self) -> tuple[Ints, int]:
        """(ground truth of each class, how many classes have some)."""
        counts = self._truth.class_counts(self._audit.protocol)
        return counts, int(np.count_nonzero(counts))

    def _worth(self, class_: int) -> float:
        """Points of mAP that one more or one less triplet of a class can give at most."""
        counts, classes = self._counts
        return 100.0 / max(int(counts[class_]), 1) / max(classes, 1)

    def means(self) -> Iterator[Row]:
        """The mAP of every model on the annotations as given, and as changed by the candidates of each of the kinds and
        of all, with the differences."""
        wanted = {name: kinds for name, kinds in CHANGES.items() if set(kinds) <= set(self._kinds)}
        if len(wanted) > 1:
            wanted["all_changed"] = tuple(self._kinds)
        audit = self._audit
        shares = shared_out(partial(self._changed, wanted), list(wanted)) if audit.opinions else []
        rows = {name: of_models for share in shares for name, of_models in share.items()}
        for place, opinion in enumerate(audit.opinions):
            before = {row["subset"]: row for row in self._of(opinion.tally, opinion.name, "as_given", ())}
            yield from before.values()
            for name in wanted:
                for row in rows[name][place]:
                    was, value = before[row["subset"]]["value"], row["value"]
                    yield row
                    change = None if value is None or was is None else value - was
                    yield {**row, "metric": "audit_delta_mAP", "value": change, "from": was, "to": value}

    def _changed(self, wanted: Mapping[str, Sequence[str]], names: Sequence[str]) -> dict[str, list[list[Row]]]:
        """The mAP of each model on the annotations of these names, which are without the kinds of `wanted`."""
        found = {}
        for name in names:
            truth = GroundTruth(self._audit.changed(wanted[name]), self._vocabulary, self._truth.name)
            tallies = [(self._audit.tally(Batch(each.scenes, truth)), each.name) for each in self._audit.opinions]
            found[name] = [list(self._of(tally, model, name, wanted[name])) for tally, model in tallies]
        return found

    def _of(self, tally: Tally, model: str, name: str, kinds: Sequence[str]) -> Iterator[Row]:
        """The mAP of one model on annotations of a name, which are without these kinds of candidates."""
        settings = self._audit.signed
        if kinds:
            settings["audit"] = "/".join([name, *dict.fromkeys(self._audit.settings(kind)["audit"] for kind in kinds)])
        tags = {"model": model, **self._tags, "annotations": name}
        for row in tally_rows(tally, self._vocabulary, Wanted(), None, settings=settings, tags=tags):
            if row["metric"] == "mAP":
                yield row | ({"note": CIRCULAR} if {CONTRADICTED, MISSING} & set(kinds) else {})


def _number(value: float) -> float | None:
    """A score, None for none."""
    return None if np.isnan(value) else float(value)
