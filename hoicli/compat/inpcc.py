"""The evaluators of INP-CC, CMD-SE and THID (ltttpku/INP-CC datasets/hico_evaluator.py, swig_evaluator.py)."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

import hoicli
from hoicli.compat.files import read_json, write_file
from hoicli.compat.query_evaluators import mean_of
from hoicli.errors import DataError, UsageError
from hoicli.interface.command import python_call
from hoicli.records.interaction_arrays import ROW, check_interactions, row_arrays
from hoicli.records.kit import Floats
from hoicli.records.parsing import short
from hoicli.vocabulary.datasets import load

Pair = tuple[int, list[float]]
"""The number of an interaction, and the eight numbers of the person's and the object's box."""


class _Evaluator:
    """Gathers predictions by image, and evaluates them by one of hoicli's protocols.

    truth, predictions: the arrays of each image by its id, predictions as rows [T, 10] of ROW; both as
    `hoicli.evaluate` takes them. rows: hoicli's result rows with their signatures, once `accumulate` has been
    called."""

    protocol: str
    dataset: str
    pairs_key: str
    boxes_key: str
    """Where an image's annotated pairs, and the boxes that they number, are in the released file."""
    verb_key: str
    first_verb = 0
    """Where a pair's verb is, and the number of the first verb."""
    shift = 0.0
    """What the released ground truth adds to every coordinate, beside hoicli's records."""

    def __init__(self, anno_file: str, output_dir: str) -> None:
        """anno_file: the released annotations. output_dir: the folder for `preds.pkl` and other files."""
        if not isinstance(output_dir, str | os.PathLike):
            raise UsageError(f"output_dir={output_dir!r}: is no path; give a folder", code="bad-output")
        self.output_dir = output_dir
        self.rows: list[dict[str, Any]] = []
        self.truth: dict[str, dict[str, Any]] = {}
        self.predictions: dict[str, Floats] = {}
        self._means: dict[str, Any] = {}  # which means `rows` have, as options of `Evaluator.compute`
        self._vocabulary = load(self.dataset)
        self._image_ids: dict[str, Any] = {}
        has_pairs = False
        for number, image in enumerate(read_json(anno_file, "anno_file", list)):
            place = f"{os.fspath(anno_file)}: [{number}]"
            has_pairs = has_pairs or (isinstance(image, dict) and self.pairs_key in image)
            with as_data_error(place, f"is no image of {self.dataset}'s released annotations; give their file"):
                image_id, pairs = image["img_id"], list(self._annotated_pairs(image))
            if not isinstance(image_id, int | str) or str(image_id) in self.truth:
                raise DataError(f"{short(image_id)} is no id of its own; number the images", place=f"{place}.img_id")
            self._image_ids[str(image_id)] = image_id
            arrays = row_arrays([[number, 0.0, *corners] for number, corners in pairs])  # 0.0 in place of a score
            del arrays["score"]
            self.truth[str(image_id)] = arrays | {"boxes": arrays["boxes"] - self.shift}
        if not has_pairs:
            problem = f"no image has {self.pairs_key!r}; give {self.dataset}'s released annotations"
            raise DataError(problem, place=os.fspath(anno_file), code="another-dataset")
        size = self._size()
        self._ap, self._recall = np.zeros(size), np.zeros(size)

    def _size(self) -> int:
        """Return how many interactions there are numbers for."""
        return len(self._vocabulary.interactions)

    def _annotated_pairs(self, image: Mapping[str, Any]) -> Iterator[Pair]:
        """Yield the annotated pairs of an image, as the file has them. Raises `DataError` that names the pair."""
        boxes, names = image.get(self.boxes_key, []), self._object_names
        for place, pair in enumerate(image.get(self.pairs_key, [])):
            problem = f"its numbers are not of a verb, two boxes and an interaction of {self.dataset}; correct them"
            with as_data_error("", problem, f"{self.pairs_key}[{place}]"):
                subject, object_ = at(boxes, pair["subject_id"]), at(boxes, pair["object_id"])
                verb = at(self._vocabulary.verbs, pair[self.verb_key] - self.first_verb)
                number = self._vocabulary.interaction_ids[verb, names[object_["category_id"]]]
                corners = [*map(float, subject["bbox"]), *map(float, object_["bbox"])]
                if len(corners) != 8:
                    raise ValueError(corners)
            yield number, corners

    @property
    def _object_names(self) -> dict[int, str]:
        """The objects by the numbers that the file labels boxes with."""
        return dict(enumerate(self._vocabulary.objects))

    def update(self, predictions: Mapping[Any, Sequence[Sequence[Any]]]) -> None:
        """Add predictions by image: rows of an interaction's number, a score, and the corners of two boxes."""
        if not isinstance(predictions, Mapping):
            raise UsageError(f"update: {type(predictions).__name__}; give a dictionary with the rows of each image")
        added: dict[str, Floats] = {}
        for image_id, image_rows in predictions.items():
            place = f"update: image {short(image_id)}"
            if str(image_id) not in self.truth:
                raise DataError("is not in the annotations; give those of its set", place=place, code="unknown-image")
            with as_data_error(place, f"its rows are not 10 numbers; give {ROW}"):
                table = np.array([list(map(float, row)) for row in image_rows], dtype=np.float64)
                table = table if table.size else np.empty((0, 10))
                check_interactions(row_arrays(table)["interaction"], self._size(), self._vocabulary)
                if not np.isfinite(table).all():
                    raise DataError(f"row {np.argwhere(~np.isfinite(table))[0][0]} has a number that is not finite")
            added[str(image_id)] = np.concatenate([added.get(str(image_id), table[:0]), table])
        for name, table in added.items():
            self.predictions[name] = np.concatenate([self.predictions.get(name, table[:0]), table])

    def accumulate(self) -> None:
        """Compute AP and recall of each interaction, in [0, 1]."""
        evaluator = hoicli.Evaluator(self.truth, self.protocol, dataset=self.dataset)
        for name, table in self.predictions.items():
            evaluator.update(name, **row_arrays(table))
        result_rows = evaluator.compute(per_class=True, **self._means).rows
        self.rows = [row for row in result_rows if row["metric"] == "mAP"]
        for row in result_rows:
            if "verb" not in row:
                continue
            number = self._vocabulary.interaction_ids[row["verb"], row["object"]]
            of_metric = self._ap if row["metric"] == "AP" else self._recall
            of_metric[number] = (row["value"] or 0.0) / 100

    def save_preds(self) -> None:
        """Write the predictions to `preds.pkl`: lists of scores, boxes and images, by interaction."""
        write_file(os.path.join(self.output_dir, "preds.pkl"), "output_dir", pickle.dumps(self._listed_predictions()))

    def save(self, output_dir: str | None = None) -> None:
        """Write ground truth and predictions to `dets.pkl` in a folder, without one in that of the evaluator. Ground
        truth is [T, 8] the boxes of the pairs of each image, by interaction and image."""
        gts: dict[int, dict[Any, Any]] = {number: {} for number in range(self._size())}
        for name, arrays in self.truth.items():
            subject_boxes, object_boxes = np.split(arrays["boxes"] + self.shift, 2)
            pairs = np.concatenate([subject_boxes, object_boxes], axis=1)
            for number in np.unique(arrays["interaction"]).tolist():
                gts[number][self._image_ids[name]] = pairs[arrays["interaction"] == number]
        folder = self.output_dir if output_dir is None else output_dir
        content = {"gts": gts} | self._listed_predictions()
        write_file(os.path.join(folder, "dets.pkl"), "output_dir", pickle.dumps(content))

    def _listed_predictions(self) -> dict[str, dict[int, list[Any]]]:
        """Return the `scores`, `boxes` and `keys` (images) of the predictions as lists by interaction."""
        columns: dict[str, dict[int, list[Any]]] = {
            key: {number: [] for number in range(self._size())} for key in ("scores", "boxes", "keys")
        }
        for name, table in self.predictions.items():
            for interaction, score, *boxes in table.tolist():
                columns["scores"][int(interaction)].append(score)
                columns["boxes"][int(interaction)].append(boxes)
                columns["keys"][int(interaction)].append(self._image_ids[name])
        return columns


class HICOEvaluator(_Evaluator):
    """Takes the place of the class of this name; `hico_ap` and `hico_rec` [600] are the results of each interaction."""

    protocol, dataset, shift = "inp-cc", "hico", 1.0
    pairs_key, boxes_key, verb_key, first_verb = "hoi_annotation", "annotations", "category_id", 1

    def __init__(self, anno_file: str, output_dir: str, zero_shot_type: str, ignore_non_interaction: bool) -> None:
        """zero_shot_type: a split of HICO-DET (`rare_first`, `uc0`, ...), or `default` for none.
        ignore_non_interaction: whether the means are without the no_interaction classes."""
        super().__init__(anno_file, output_dir)
        if not isinstance(zero_shot_type, str):
            raise UsageError(f'zero_shot_type={zero_shot_type!r}: give a split of HICO-DET, or "default"')
        split = None
        if zero_shot_type != "default":
            with python_call():
                split = self._vocabulary.split(zero_shot_type, "zero_shot_type")
        unseen = self._vocabulary.unseen[split] if split else frozenset[int]()
        averaged = set(range(self._size()))
        if ignore_non_interaction:
            averaged -= self._vocabulary.no_interaction_ids
        self._averaged = sorted(averaged)
        self._unseen = sorted(averaged & unseen)
        self._seen = sorted(averaged - unseen)
        self.hico_ap, self.hico_rec = self._ap, self._recall
        self._means = {"split": split, "ignore_no_interaction": bool(ignore_non_interaction)}

    @cached_property
    def _object_names(self) -> dict[int, str]:
        return {number: name for name, number in self._vocabulary.coco_ids.items()}

    def summarize(self, ckpt_num: str = "") -> None:
        """Print the means of the unseen, the seen, and all interactions."""
        for name, numbers in (("zero-shot", self._unseen), ("seen", self._seen), ("full", self._averaged)):
            print(f"{name} mAP: {100 * mean_of(self._ap[numbers]):.2f}")


class SWiGEvaluator(_Evaluator):
    """Takes the place of the class of this name; `swig_ap` and `swig_rec` have the results by interaction."""

    protocol, dataset = "swig", "swig"
    pairs_key, boxes_key, verb_key = "hoi_annotations", "box_annotations", "action_id"

    def __init__(self, anno_file: str, output_dir: str) -> None:
        super().__init__(anno_file, output_dir)
        self.eval_hois = sorted(self._vocabulary.subsets["evaluated"])
        self.swig_ap, self.swig_rec = self._ap, self._recall

    def _size(self) -> int:
        return max(self._vocabulary.subsets["evaluated"]) + 1

    def summarize(self, ckpt_num: str = "") -> None:
        """Print the means of the interactions by how often training has them, and write them to `aps{ckpt_num}.pkl`."""
        evaluated = frozenset(self.eval_hois)
        groups = {name: sorted(self._vocabulary.groups[name] & evaluated) for name in ("zero_shot", "rare", "non_rare")}
        for title, numbers in (("zero-shot", groups["zero_shot"]), ("rare", groups["rare"]),
                               ("nonrare", groups["non_rare"]), ("full", self.eval_hois)):  # fmt: skip
            print(f"{title} mAP: {100 * mean_of(self._ap[numbers]):.2f}")
        indices = {"eval": self.eval_hois, "zero": groups["zero_shot"]}
        indices |= {"rare": groups["rare"], "nonrare": groups["non_rare"]}
        content = {"aps": self._ap} | {f"{key}_hoi_idxs": np.asarray(numbers) for key, numbers in indices.items()}
        write_file(os.path.join(self.output_dir, f"aps{ckpt_num}.pkl"), "output_dir", pickle.dumps(content))


def at(values: Sequence[Any], number: int) -> Any:
    """Return the value of a number; raise `IndexError` for a negative one, too."""
    if number < 0:
        raise IndexError(number)
    return values[number]


@contextmanager
def as_data_error(place: str, problem: str, field: str = "") -> Iterator[None]:
    """Raise `DataError` at `place` for anything in the block that is not what it should be."""
    try:
        yield
    except DataError as error:
        raise error.add_place(place) from None
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise DataError(problem, place=place, field=field) from None
