"""An audit of the ground truth: which annotations to look at, what mAP would be if they were changed, and the rows of
both.

Every finding is a candidate: whether it is an error is for a person to say, with the image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import isnan

import numpy as np

from hoicli.errors import arg, write_number
from hoicli.evaluation.coverage import Coverage, check_computable, check_counted
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
from hoicli.records.kit import Ints, distinct, rank_by_id
from hoicli.records.reading import concatenate, read_scenes
from hoicli.records.result_rows import Row, also_signed, result_row, row_ends, settings_of
from hoicli.records.scenes import Scenes
from hoicli.validation.candidates import (
    Contradicted,
    Evidence,
    Missing,
    Rules,
    find_contradicted,
    find_missing,
    gather_evidence,
)
from hoicli.validation.duplicates import Duplicates, add_missing, merge_duplicates, near_duplicates
from hoicli.validation.opinions import Opinion

DUPLICATE, CONTRADICTED, MISSING = KINDS = ("near_duplicate", "contradicted", "missing_label")
"""The kinds of candidates."""
NOTE = "a candidate to look at, not an error"
CIRCULAR = "the annotations were changed after these models' own predictions: no measure of a model"
"""The notes of rows of candidates, and of rows of mAP on such annotations."""

CHANGES: Mapping[str, tuple[str, ...]] = {
    "duplicates_merged": (DUPLICATE,),
    "contradicted_removed": (CONTRADICTED,),
    "missing_added": (MISSING,),
    "all_changed": KINDS,
}
"""The name of each changed ground truth that mAP is measured on -> the kinds of candidates that are resolved in it."""


class Audit:
    """The candidates for errors in a ground truth, with the models that point at them; and mAP if it is changed."""

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
        """Read and match the predictions of all models. models: the name and the predictions of each; rules: what makes
        a candidate. Raises `DataError` for a bad stream, and for ground truth that the protocol cannot use."""
        models = list(models)
        self.truth, self.protocol, self.rules = truth, protocol, rules.set_votes(len(models))
        self.filters, policy, self._tags = filters or Filters(), policy or ErrorPolicy(), tags or {}
        self._vocabulary = truth.vocabulary
        self.duplicates: Duplicates = near_duplicates(truth.scenes, truth.vocabulary, protocol, rules.same)
        if models:
            check_computable(truth, protocol)
        several = len(models) > 1
        self.opinions = [self._opinion(name, stream, policy, name if several else None) for name, stream in models]

    def _opinion(self, name: str, stream: Predictions, policy: ErrorPolicy, noted_name: str | None) -> Opinion:
        """Read and match the predictions of a model; report on stderr which images have none. noted_name: the model's
        name there, None if it is the only one."""
        truth, protocol = self.truth, self.protocol
        vocabulary = truth.vocabulary
        processes = stream.processes()
        with no_garbage_collection():
            parts = read_scenes(
                stream, vocabulary, scored=True, policy=policy, known_ids=truth.position, processes=processes
            )
            batch = Batch(concatenate(parts, vocabulary), truth)
        coverage = Coverage()
        coverage.add(batch)
        outcomes = batch.match(protocol, self.filters)
        tally = Tally([protocol], len(vocabulary.interactions))
        tally.add_batch(batch, {protocol.key: outcomes})
        tally.add_truth(truth)
        # An error, unless allowed, if most predictions do not count for the protocol.
        check_counted(tally, vocabulary, stream.name, allowed=self.filters.allow_uncounted)
        coverage.report(truth, [protocol], stream.name, model=noted_name)
        return Opinion(name, batch, outcomes, tally, protocol)

    @cached_property
    def contradicted(self) -> Contradicted:
        """The annotated triplets that the models contradict, those that most models contradict first."""
        return find_contradicted(self.truth, self._evidence, self.rules)

    @cached_property
    def _evidence(self) -> Evidence:
        """The predictions of each model on the boxes of each annotated triplet."""
        return gather_evidence(self.truth, self.opinions)

    @cached_property
    def missing(self) -> Missing:
        """The triplets that the models predict and nobody annotated, those that most models predict first."""
        return find_missing(self.truth, self.opinions, self.rules)

    @cached_property
    def more(self) -> str:
        """A hint: which looser setting would find more candidates, and how many; "" if it would not."""
        if not self.opinions:
            return ""
        rules = self.rules
        needs_several = (rules.votes or 1) > 1
        looser = replace(rules, votes=1) if needs_several else replace(rules, sure=rules.sure / 2)
        texts = []
        for kind, candidates, more_candidates in (
            (CONTRADICTED, self.contradicted, find_contradicted(self.truth, self._evidence, looser)),
            (MISSING, self.missing, find_missing(self.truth, self.opinions, looser)),
        ):
            count, more_count = len(candidates.models), len(more_candidates.models)
            if more_count > count:
                texts.append(f"{more_count:,} {kind} (now {count:,})")
        setting = arg("votes", 1) if needs_several else arg("sure", write_number(looser.sure))
        return f"{setting} finds {' and '.join(texts)}" if texts else ""

    @property
    def signed(self) -> dict[str, str]:
        """The settings that predictions add to signatures: how they were filtered, and whether most do not count."""
        leave = dict(chain.from_iterable(opinion.tally.uncounted_setting.items() for opinion in self.opinions))
        return self.filters.signature() | leave

    def settings(self, kind: str) -> dict[str, str]:
        """Return the settings that the signature of a kind of candidates states: all that they depend on."""
        rules, settings = self.rules, {"data": self.truth.vocabulary.signed, **self.truth.settings(self.protocol)}
        same = f"same-{write_number(rules.same)}"
        if kind == DUPLICATE:
            return settings | {"audit": same}
        votes_text = f"sure-{write_number(rules.sure)}/{rules.votes}-of-{len(self.opinions)}"
        return settings | self.signed | {"audit": f"{votes_text}/{same}"}  # signed: what predictions add, as filters

    def change_truth(self, kinds: Sequence[str]) -> Scenes:
        """Return the annotations with the candidates of these kinds resolved: contradicted triplets are removed,
        missing ones added and duplicate boxes merged, in this order."""
        scenes, truth, same = self.truth.scenes, self.truth, self.rules.same
        if CONTRADICTED in kinds:
            scenes = scenes.select_triplets(np.delete(np.arange(len(scenes.subject)), self.contradicted.evidence.truth))
        if MISSING in kinds:
            scenes = add_missing(scenes, self.missing, truth.vocabulary, self.protocol, same)
        if DUPLICATE in kinds:
            is_changed = scenes is not truth.scenes
            duplicates = (
                near_duplicates(scenes, truth.vocabulary, self.protocol, same) if is_changed else self.duplicates
            )
            scenes = merge_duplicates(scenes, duplicates)
        return scenes

    def candidates(self, top: int | None) -> Iterator[Row]:
        """Yield, for each kind, a row with the number of candidates, then one for each of the `top` (None: all)."""
        row_makers = {
            DUPLICATE: self._duplicate_rows,
            CONTRADICTED: self._contradicted_rows,
            MISSING: self._missing_rows,
        }
        for kind in KINDS if self.opinions else (DUPLICATE,):
            common_keys = row_ends(self.protocol.name, self._tags, self.settings(kind)) | {"note": NOTE}
            images = self._images(kind)
            count = len(images)
            numbers = {"value": count, "n": len(distinct(images)), "unit": "candidates"}
            yield result_row("candidates", subset="full", kind=kind, **numbers, **common_keys)
            for rank, row in enumerate(row_makers[kind](count if top is None else min(top, count)), start=1):
                yield result_row("candidate", subset="full", kind=kind, rank=rank, **row, unit="ratio", **common_keys)

    def _images(self, kind: str) -> Ints:
        """Return the image of each candidate of a kind, as a row of the ground truth."""
        scenes = self.truth.scenes
        if kind == DUPLICATE:
            return scenes.image_of_box[self.duplicates.first]
        if kind == MISSING:
            return self.missing.predictions.image
        return scenes.image_of_hoi[self.contradicted.evidence.truth]

    def _duplicate_rows(self, count: int) -> Iterator[Row]:
        """Yield the keys of the rows of the first `count` near-duplicates, by descending IoU: the two boxes, their IoU
        as `value`, and the triplets and verbs that they have."""
        scenes, duplicates = self.truth.scenes, self.duplicates
        # Equal IoU are ordered by image id, label and corners, so that the order of lines and boxes does not matter.
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
        """Return the verbs of the triplets with a certain box. begin, end: the rows of the triplets of its image."""
        scenes = self.truth.scenes
        rows = (scenes.subject[begin:end] == box) | (scenes.object[begin:end] == box)
        return [self._vocabulary.verbs[verb] for verb in distinct(scenes.verb[begin:end][rows]).tolist()]

    def _contradicted_rows(self, count: int) -> Iterator[Row]:
        """Yield the keys of the rows of the first `count` contradicted triplets: the triplet, how sure the models are
        as `value`, and what each of them predicts instead."""
        scenes, contradicted = self.truth.scenes, self.contradicted
        evidence = contradicted.evidence
        for number, row in enumerate(evidence.truth[:count].tolist()):
            image, label = int(scenes.image_of_hoi[row]), int(scenes.object_label[row])
            boxes = int(scenes.subject[row]), int(scenes.object[row])
            opinions = []
            for model in np.flatnonzero(contradicted.contradicts[:, number]).tolist():
                own_score = float(evidence.own_score[model, number])
                opinions.append(
                    {
                        "model": self.opinions[model].name,
                        **self._class_names(int(evidence.other_class[model, number]), label),
                        "score": float(evidence.score[model, number]),
                        "own_score": None if np.isnan(own_score) else own_score,
                    }
                )
            yield {
                "value": float(contradicted.sure[number]),
                "n": int(contradicted.models[number]),
                "image_id": scenes.image_ids[image],
                **self._class_names(int(scenes.interaction[row]), label),
                "hoi": row - int(scenes.hoi_start[image]),
                "boxes": self._places(image, boxes),
                "where": scenes.boxes[[box for box in boxes if box >= 0]].tolist(),
                "models": opinions,
            }

    def _missing_rows(self, count: int) -> Iterator[Row]:
        """Yield the keys of the rows of the first `count` missing triplets: the triplet, how sure the models are as
        `value`, and the models that predict it."""
        scenes, missing = self.truth.scenes, self.missing
        predictions = missing.predictions
        for number in range(count):
            image = int(predictions.image[number])
            scores = missing.score[:, number].tolist()
            yield {
                "value": float(missing.sure[number]),
                "n": int(missing.models[number]),
                "image_id": scenes.image_ids[image],
                **self._class_names(int(predictions.class_[number]), int(predictions.labels[1, number])),
                "boxes": self._places(image, predictions.near[:, number].tolist()),
                "where": [box for box in predictions.boxes[..., number].tolist() if not isnan(box[0])],
                "models": [
                    {"model": opinion.name, "score": score}
                    for opinion, score in zip(self.opinions, scores, strict=True)
                    if not isnan(score)
                ],
            }

    def _places(self, image: int, boxes: Iterable[int]) -> list[int | None]:
        """Return the indices in their record of annotated boxes of an image, None for a missing box (-1)."""
        first = int(self.truth.scenes.box_start[image])
        return [None if box < 0 else box - first for box in boxes]

    def _class_names(self, class_: int, label: int) -> Row:
        """Return the keys that name a class in a row: verb and object, or verb, role and object (`label`, -1: none)."""
        vocabulary = self._vocabulary
        verb, name = vocabulary.interactions[class_]
        if vocabulary.roles:
            return {"verb": verb, "role": name or None, "object": vocabulary.objects[label] if label >= 0 else None}
        return {"verb": verb, "object": name}

    def means(self) -> Iterator[Row]:
        """Yield the rows of every model's mAP on the annotations as given and on each of CHANGES, with differences."""
        rows_as_given = self._mean_rows([opinion.tally for opinion in self.opinions], "as_given", ())
        if not rows_as_given:  # no models
            return
        rows_by_change = dict(zip(CHANGES, shared_out(self._changed_means, list(CHANGES)), strict=True))
        for model, model_rows in enumerate(rows_as_given):
            given_values = {row["subset"]: row["value"] for row in model_rows}
            # The order of the annotations as given. A difference depends on it, too, and its row has the signature of
            # the changed annotations: so the order is added there.
            order = settings_of(model_rows[0]).get("listed", "") if model_rows else ""
            yield from model_rows
            for name in CHANGES:
                for row in rows_by_change[name][model]:
                    given_value, value = given_values[row["subset"]], row["value"]
                    yield row
                    change = None if value is None or given_value is None else value - given_value
                    shared_keys = {key: row[key] for key in row if key != "metric"}
                    delta = result_row(
                        "audit_delta_mAP", **{**shared_keys, "value": change, "from": given_value, "to": value}
                    )
                    yield also_signed(delta, "of", f"listed-{order}") if order else delta

    def _changed_means(self, name: str) -> list[list[Row]]:
        """Return, model by model, the rows of the mAP on a changed ground truth. name: one of the CHANGES."""
        truth = GroundTruth(self.change_truth(CHANGES[name]), self._vocabulary, self.truth.name)
        is_changed = np.zeros(len(truth.scenes.image_ids), dtype=bool)  # the other images keep their outcomes
        for kind in CHANGES[name]:
            is_changed[self._images(kind)] = True
        tallies = []
        for opinion in self.opinions:
            code, rows = opinion.outcomes.code.copy(), np.flatnonzero(is_changed[opinion.batch.image_of_hoi])
            code[rows] = Batch(opinion.scenes.select_triplets(rows), truth).match(self.protocol, self.filters).code
            tallies.append(opinion.tally.replace_truth(truth, {self.protocol.key: code}))
        return self._mean_rows(tallies, name, CHANGES[name])

    def _mean_rows(self, tallies: Sequence[Tally], name: str, kinds: Sequence[str]) -> list[list[Row]]:
        """Return, model by model, the rows of the mAP on one version of the annotations. tallies: the outcomes of each
        model on it; name: the value of the rows' tag `annotations`; kinds: the kinds of candidates that are resolved.
        """
        settings = self.signed  # what predictions add to signatures, such as how they were filtered
        if kinds:
            settings["audit"] = "/".join([name, *dict.fromkeys(self.settings(kind)["audit"] for kind in kinds)])
        # CIRCULAR: annotations that were changed after these models' own predictions measure no model
        note = {"note": CIRCULAR} if {CONTRADICTED, MISSING} & set(kinds) else {}
        rows_by_model = []
        for opinion, tally in zip(self.opinions, tallies, strict=True):
            tags = {"model": opinion.name, **self._tags, "annotations": name}
            rows = tally_rows(tally, self._vocabulary, Wanted(), resampling=None, settings=settings, tags=tags)
            rows_by_model.append([row | note for row in rows])
        return rows_by_model
