"""An audit of the ground truth: which annotations to look at, what mAP would be without them, and the rows of both.

Every finding is a candidate: whether it is an error is for a person to say, with the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from hoicli.errors import arg, write_number
from hoicli.evaluation.coverage import Coverage, check_counted, choose_computable
from hoicli.evaluation.evaluation_rows import Wanted, tally_rows
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import Tally
from hoicli.io.forks import shared_out
from hoicli.io.memory import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import distinct, rank_by_id
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.result_rows import Row, also_signed, result_row, row_ends, settings_of
from hoicli.records.scenes import Scenes
from hoicli.validation.candidates import Contradicted, Evidence, Missing, Rules, evidence, find_contradicted, missing
from hoicli.validation.duplicates import Duplicates, add_missing, merge_duplicates, near_duplicates
from hoicli.validation.opinions import Opinion

DUPLICATE, CONTRADICTED, MISSING = KINDS = ("near_duplicate", "contradicted", "missing_label")

NOTE = "a candidate to look at, not an error"
CIRCULAR = "the annotations were changed after these models' own predictions: no measure of a model"

CHANGES: Mapping[str, tuple[str, ...]] = {
    "duplicates_merged": (DUPLICATE,),
    "contradicted_removed": (CONTRADICTED,),
    "missing_added": (MISSING,),
    "all_changed": KINDS,
}
"""The name of each changed ground truth that mAP is measured on -> the kinds of candidates that are resolved in it."""


class Audit:
    """The candidates in one ground truth, with the models that point at them, and their rows."""

    def __init__(
        self,
        truth: GroundTruth,
        protocol: Protocol,
        rules: Rules,
        models: Iterable[tuple[str, Predictions]] = (),
        filters: Filters | None = None,
        policy: ErrorPolicy | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """models: (name, predictions) of each; tags: those of every row. Raises `DataError` for a bad stream, and for
        ground truth that the protocol cannot use."""
        models = list(models)
        self.truth, self.protocol, self.rules = truth, protocol, rules.set_votes(len(models))
        self.filters, policy, self._tags = filters or Filters(), policy or ErrorPolicy(), tags or {}
        self._vocabulary = truth.vocabulary
        self.duplicates: Duplicates = near_duplicates(truth.scenes, truth.vocabulary, protocol, rules.same)
        choose_computable(truth, [protocol] if models else [])
        several = len(models) > 1
        self.opinions = [self._opinion(name, stream, policy, name if several else None) for name, stream in models]

    def _opinion(self, name: str, stream: Predictions, policy: ErrorPolicy, noted_name: str | None) -> Opinion:
        """Return a model's predictions, read and matched. noted_name: the model's name in notes, None if it is the only
        model."""
        truth, protocol, coverage = self.truth, self.protocol, Coverage()
        vocabulary = truth.vocabulary
        with no_garbage_collection():
            positions, processes = truth.position, stream.processes()
            parts = read_scenes(
                stream, vocabulary, scored=True, policy=policy, known_ids=positions, processes=processes
            )
            batch = Batch(concatenate(parts, vocabulary), truth)
        coverage.add(batch)
        outcomes, tally = batch.match(protocol, self.filters), Tally([protocol], len(vocabulary.interactions))
        tally.add_batch(batch, {protocol.key: outcomes})
        tally.add_truth(truth)
        check_counted(tally, vocabulary, stream.name, allowed=self.filters.allow_uncounted)
        coverage.report(truth, [protocol], stream.name, model=noted_name)
        return Opinion(name, batch, outcomes, tally, protocol)

    @cached_property
    def contradicted(self) -> Contradicted:
        """The annotated triplets that the models contradict, surest first."""
        return find_contradicted(self.truth, self._evidence, self.rules)

    @cached_property
    def _evidence(self) -> Evidence:
        return evidence(self.truth, self.opinions)

    @cached_property
    def missing(self) -> Missing:
        """The triplets that the models predict and that nobody annotated, surest first."""
        return missing(self.truth, self.opinions, self.rules)

    @cached_property
    def more(self) -> str:
        """A text that says which setting would find more candidates, and how many; "" if none would."""
        if not self.opinions:
            return ""
        rules = self.rules
        needs_several = (rules.votes or 1) > 1
        wider = replace(rules, votes=1) if needs_several else replace(rules, sure=rules.sure / 2)
        wider_settings = []
        for kind, found, found_wider in (
            (CONTRADICTED, self.contradicted, find_contradicted(self.truth, self._evidence, wider)),
            (MISSING, self.missing, missing(self.truth, self.opinions, wider)),
        ):
            count, wider_count = len(found.models), len(found_wider.models)
            wider_settings += [f"{wider_count:,} {kind} (now {count:,})"] if wider_count > count else []
        setting = arg("votes", 1) if needs_several else arg("sure", write_number(wider.sure))
        return f"{setting} finds {' and '.join(wider_settings)}" if wider_settings else ""

    @property
    def signed(self) -> dict[str, str]:
        """What the predictions add to signatures: how they were filtered, and whether most of a model's predictions
        count."""
        leave = dict(chain.from_iterable(opinion.tally.leave.items() for opinion in self.opinions))
        return self.filters.signature() | leave

    def settings(self, kind: str) -> dict[str, str]:
        """Return the settings that the candidates of a kind depend on, for their signature."""
        rules, settings = self.rules, {"data": self.truth.vocabulary.signed, **self.truth.settings(self.protocol)}
        same = f"same-{write_number(rules.same)}"
        if kind == DUPLICATE:
            return settings | {"audit": same}
        votes_text = f"sure-{write_number(rules.sure)}/{rules.votes}-of-{len(self.opinions)}"
        return settings | self.signed | {"audit": f"{votes_text}/{same}"}

    def change_truth(self, kinds: Sequence[str]) -> Scenes:
        """Return the annotations without the candidates of these kinds: contradicted triplets are removed, missing ones
        added and duplicate boxes merged, in this order."""
        scenes, truth, same = self.truth.scenes, self.truth, self.rules.same
        if CONTRADICTED in kinds:
            scenes = scenes.only(np.delete(np.arange(len(scenes.subject)), self.contradicted.seen_by_models.truth))
        if MISSING in kinds:
            scenes = add_missing(scenes, self.missing, truth.vocabulary, self.protocol, same)
        if DUPLICATE in kinds:
            is_changed = scenes is not truth.scenes
            duplicates = (
                near_duplicates(scenes, truth.vocabulary, self.protocol, same) if is_changed else self.duplicates
            )
            scenes = merge_duplicates(scenes, duplicates)
        return scenes

    # Rows

    def candidates(self, top: int | None) -> Iterator[Row]:
        """Yield a row with the number of candidates of each kind, then a row for each of its first `top`, surest first
        (None: all)."""
        row_makers = {
            DUPLICATE: self._duplicate_rows,
            CONTRADICTED: self._contradicted_rows,
            MISSING: self._missing_rows,
        }
        for kind in KINDS if self.opinions else (DUPLICATE,):
            common_keys = row_ends(self.protocol.name, self._tags, self.settings(kind)) | {"note": NOTE}
            count, images = self._size(kind)
            numbers = {"value": count, "n": images, "unit": "candidates"}
            yield result_row("candidates", subset="full", kind=kind, **numbers, **common_keys)
            for rank, row in enumerate(row_makers[kind](count if top is None else min(top, count)), start=1):
                yield result_row("candidate", subset="full", kind=kind, rank=rank, **row, unit="ratio", **common_keys)

    def _size(self, kind: str) -> tuple[int, int]:
        """Return (the number of candidates of a kind, the number of images that have any)."""
        scenes = self.truth.scenes
        if kind == DUPLICATE:
            image = scenes.image_of_box[self.duplicates.first]
        else:
            image = (
                self.missing.of.image
                if kind == MISSING
                else scenes.image_of_hoi[self.contradicted.seen_by_models.truth]
            )
        return len(image), len(distinct(image))

    def _duplicate_rows(self, count: int) -> Iterator[Row]:
        scenes, duplicates = self.truth.scenes, self.duplicates
        by_id = rank_by_id(scenes.image_ids)[scenes.image_of_box[duplicates.first]]
        all_boxes = np.arange(len(scenes.boxes))
        rank = np.argsort(np.lexsort((*scenes.corners(all_boxes), scenes.labels)))
        pair = np.sort([rank[duplicates.first], rank[duplicates.second]], axis=0)
        order = np.lexsort((*pair[::-1], by_id, -duplicates.iou))[:count]
        for row in order.tolist():
            first, second = int(duplicates.first[row]), int(duplicates.second[row])
            image = int(scenes.image_of_box[first])
            begin, end = scenes.hoi_start[image : image + 2].tolist()
            boxes_of_triplets = scenes.subject[begin:end], scenes.object[begin:end]
            has_either_box = np.isin(boxes_of_triplets, (first, second)).any(axis=0)
            yield {
                "value": float(duplicates.iou[row]),
                "n": int(has_either_box.sum()),
                "image_id": scenes.image_ids[image],
                "label": self._vocabulary.objects[scenes.labels[min(first, second, key=rank.__getitem__)]],
                "boxes": self._places(image, (first, second)),
                "where": scenes.boxes[[first, second]].tolist(),
                "hois": np.flatnonzero(has_either_box).tolist(),
                "verbs": [self._verbs(box, begin, end) for box in (first, second)],
            }

    def _verbs(self, box: int, begin: int, end: int) -> list[str]:
        """Return the verbs of those triplets, among the rows from `begin` to `end`, that a box belongs to."""
        scenes = self.truth.scenes
        rows = (scenes.subject[begin:end] == box) | (scenes.object[begin:end] == box)
        return [self._vocabulary.verbs[verb] for verb in distinct(scenes.verb[begin:end][rows]).tolist()]

    def _contradicted_rows(self, count: int) -> Iterator[Row]:
        scenes, contradicted = self.truth.scenes, self.contradicted
        evidence = contradicted.seen_by_models
        for number, row in enumerate(evidence.truth[:count].tolist()):
            image, label = int(scenes.image_of_hoi[row]), int(scenes.object_label[row])
            boxes = int(scenes.subject[row]), int(scenes.object[row])
            models = [
                {
                    "model": opinion.name,
                    **self._class_names(int(evidence.instead[model, number]), label),
                    "score": float(evidence.score[model, number]),
                    "own_score": None
                    if np.isnan(evidence.own_score[model, number])
                    else float(evidence.own_score[model, number]),
                }
                for model, opinion in enumerate(self.opinions)
                if contradicted.says[model, number]
            ]
            yield {
                "value": float(contradicted.sure[number]),
                "n": int(contradicted.models[number]),
                "image_id": scenes.image_ids[image],
                **self._class_names(int(scenes.interaction[row]), label),
                "hoi": row - int(scenes.hoi_start[image]),
                "boxes": self._places(image, boxes),
                "where": scenes.boxes[[box for box in boxes if box >= 0]].tolist(),
                "models": models,
            }

    def _missing_rows(self, count: int) -> Iterator[Row]:
        scenes, missing = self.truth.scenes, self.missing
        strays = missing.of
        for number in range(count):
            image = int(strays.image[number])
            yield {
                "value": float(missing.sure[number]),
                "n": int(missing.models[number]),
                "image_id": scenes.image_ids[image],
                **self._class_names(int(strays.class_[number]), int(strays.labels[1, number])),
                "boxes": self._places(image, strays.near[:, number].tolist()),
                "where": [box for box in strays.boxes[..., number].tolist() if box[0] == box[0]],
                "models": [
                    {"model": opinion.name, "score": score}
                    for opinion, score in zip(self.opinions, missing.score[:, number].tolist(), strict=True)
                    if score == score
                ],
            }

    def _places(self, image: int, boxes: Iterable[int]) -> list[int | None]:
        """Return the places of annotated boxes in their image, None for a missing box (-1)."""
        first = int(self.truth.scenes.box_start[image])
        return [None if box < 0 else box - first for box in boxes]

    def _class_names(self, class_: int, label: int) -> Row:
        """Return the names of a class. label: the number of its object's label, -1 for none."""
        vocabulary = self._vocabulary
        verb, name = vocabulary.interactions[class_]
        if vocabulary.roles:
            return {"verb": verb, "role": name or None, "object": vocabulary.objects[label] if label >= 0 else None}
        return {"verb": verb, "object": name}

    def means(self) -> Iterator[Row]:
        """Yield the mAP of every model on the annotations as given and on each of CHANGES, with the differences."""
        given_means = self._mean_rows([opinion.tally for opinion in self.opinions], "as_given", ())
        rows = dict(zip(CHANGES, shared_out(self._changed_means, list(CHANGES)), strict=True)) if given_means else {}
        for place, own_rows in enumerate(given_means):
            before = {row["subset"]: row for row in own_rows}
            order = settings_of(own_rows[0]).get("listed", "") if own_rows else ""  # of the annotations as given
            yield from own_rows
            for name in CHANGES:
                for row in rows[name][place]:
                    given_value, value = before[row["subset"]]["value"], row["value"]
                    yield row
                    change = None if value is None or given_value is None else value - given_value
                    shared_keys = {key: row[key] for key in row if key != "metric"}
                    delta = result_row(
                        "audit_delta_mAP", **{**shared_keys, "value": change, "from": given_value, "to": value}
                    )
                    yield also_signed(delta, "of", f"listed-{order}") if order else delta

    def _changed_means(self, name: str) -> list[list[Row]]:
        """Return the rows of the mAP of each model on one of the CHANGES."""
        truth = GroundTruth(self.change_truth(CHANGES[name]), self._vocabulary, self.truth.name)
        matched = [Batch(each.scenes, truth).match(self.protocol, self.filters) for each in self.opinions]
        matched_opinions = zip(self.opinions, matched, strict=True)
        tallies = [each.tally.against(truth, {self.protocol.key: match}) for each, match in matched_opinions]
        return self._mean_rows(tallies, name, CHANGES[name])

    def _mean_rows(self, tallies: Sequence[Tally], name: str, kinds: Sequence[str]) -> list[list[Row]]:
        """Return the rows of the mAP of each model on one version of the annotations. name: what rows call it; kinds:
        the kinds of candidates that are resolved in it."""
        settings = self.signed
        if kinds:
            settings["audit"] = "/".join([name, *dict.fromkeys(self.settings(kind)["audit"] for kind in kinds)])
        noted = {"note": CIRCULAR} if {CONTRADICTED, MISSING} & set(kinds) else {}
        tags = {**self._tags, "annotations": name}
        return [
            [
                row | noted
                for row in tally_rows(
                    tally, self._vocabulary, Wanted(), None, settings=settings, tags={"model": opinion.name, **tags}
                )
            ]
            for opinion, tally in zip(self.opinions, tallies, strict=True)
        ]
