"""What the drop-in evaluators of detectors with queries share: arrays in, hoicli's numbers out.

The released classes take two lists with a dictionary of tensors for each image: what the network's post-processing made
(`preds`), and what the dataset has (`gts`). The classes here make of them the arrays that `hoicli.Evaluator` takes, and
of its rows the means that the released code returns and prints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hoicli
from hoicli.api.network_outputs.ranking_rules import (
    NO_OBJECT,
    Arrays,
    best_of_queries,
    read_correct_mat,
    read_vcoco_correct_mat,
    state_roles,
)
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.filters import Filters, PairNms
from hoicli.interface.command import python_call
from hoicli.records.arrays import check_range, read_array
from hoicli.records.boxes import pair_nms
from hoicli.records.detections import check_detections
from hoicli.records.reading import scenes_of_detections
from hoicli.vocabulary.datasets import VCOCO_ORDERS, load, verb_and_role
from hoicli.vocabulary.labels import Vocabulary

Outputs = Mapping[str, Any]
"""The tensors, or arrays, of one image by their released names."""
Triplet = tuple[int, int, int]
"""A class as the released code names it: the numbers of the subject's label, of the object's label, and of the verb."""

ROWS = {"boxes": "boxes", "labels": "boxes", "hois": "triplets"} | dict.fromkeys(
    ("verb_scores", "hoi_scores", "obj_scores", "sub_ids", "obj_ids"), "queries"
)
"""What the rows of each tensor of an image are: tensors of the same rows have as many."""
WHOLE = ("labels", "hois", "sub_ids", "obj_ids")
"""The tensors of integers."""

HICO_DATASET_SHIFT = 1.0
"""HICO-DET's boxes count pixels from 1, and the released datasets give them so; hoicli's count from 0."""


class QueryEvaluator(ABC):
    """Evaluates what a detector with queries gives for each image, by one of hoicli's protocols.

    truth, predictions: the arrays of each image by its name, as `hoicli.evaluate`, `hoicli.diagnose` and
    `hoicli.compare` take them. rows: hoicli's result rows with their signatures, once `evaluate` has been called."""

    protocol = "qpic"
    dataset = "hico"

    nms: PairNms | None = None
    """The pair NMS that predictions go through before they are matched."""

    def __init__(self, preds: Sequence[Outputs], gts: Sequence[Outputs]) -> None:
        """preds, gts: the images in one order, as the released code has them."""
        check_images(preds, gts)
        names = name_images(gts)
        self.truth = {name: self._truth_arrays(gts[place], f"gts[{place}]") for place, name in enumerate(names)}
        self.predictions = {
            name: self._predicted_arrays(preds[place], f"preds[{place}]") for place, name in enumerate(names)
        }
        self.rows: list[dict[str, Any]] = []

    @abstractmethod
    def _truth_arrays(self, gt: Outputs, place: str) -> Arrays:
        """Return the ground truth of an image. place: what messages call it."""

    @abstractmethod
    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        """Return the predictions of an image. place: what messages call it."""

    def _evaluate_classes(self) -> list[dict[str, Any]]:
        """Return the rows of single classes, and keep those of the means as `rows`."""
        nms = None if self.nms is None else str(self.nms)
        evaluator = hoicli.Evaluator(self.truth, self.protocol, dataset=self.dataset, nms=nms)
        for name, arrays in self.predictions.items():
            evaluator.update(name, **arrays)
        result_rows = evaluator.compute(per_class=True).rows
        self.rows = [row for row in result_rows if "verb" not in row]
        return [row for row in result_rows if "verb" in row]


class HICODETEvaluator(QueryEvaluator):
    """Evaluates predictions on HICO-DET as the released `HICOEvaluator` classes do."""

    means: Mapping[str, str] = {"rare": "mAP rare", "non_rare": "mAP non-rare"}
    groups_need_predictions = False
    line = "mAP: {mAP} mAP rare: {mAP rare}  mAP non-rare: {mAP non-rare}  mean max recall: {mean max recall}"

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], rare_triplets: Collection[Triplet],
        non_rare_triplets: Collection[Triplet], correct_mat: Any, nms: PairNms | None = None,
    ) -> None:  # fmt: skip
        """rare_triplets, non_rare_triplets: the classes of the two means beside that of all. correct_mat [verbs,
        objects]: the factor of the score of each verb with each object, 1 or 0. nms: None for no pair NMS."""
        self._rare = read_triplets(rare_triplets, "rare_triplets")
        self._non_rare = read_triplets(non_rare_triplets, "non_rare_triplets")
        self._correct_mat = correct_mat
        self._vocabulary = load("hico")
        self.nms = nms
        super().__init__(preds, gts)

    @cached_property
    def _score_factors(self) -> NDArray[Any]:
        """The factor of the score of each verb with each object; not every network has a use for them."""
        return read_correct_mat(self._correct_mat, len(self._vocabulary.verbs), len(self._vocabulary.objects))

    @cached_property
    def remaining_predictions(self) -> dict[str, Arrays]:
        """The predictions that pair NMS leaves, by the name of their image."""
        return remove_suppressed(self.predictions, self.nms, self._vocabulary)

    def _truth_arrays(self, gt: Outputs, place: str) -> Arrays:
        arrays = truth_arrays(gt, place, len(self._vocabulary.verbs), len(self._vocabulary.objects))
        return arrays | {"boxes": arrays["boxes"] - HICO_DATASET_SHIFT}

    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        return best_verbs(outputs, self._score_factors, place, len(self._vocabulary.objects))

    def evaluate(self) -> dict[str, float]:
        """Compute and print the means, as the released code does, and return them, in [0, 1]."""
        values: dict[str, dict[Triplet, float]] = {"AP": {}, "max_recall": {}}
        person = self._vocabulary.object_ids[self._vocabulary.subjects[0]]
        for row in self._evaluate_classes():
            if row["value"] is not None:
                triplet = person, self._vocabulary.object_ids[row["object"]], self._vocabulary.verb_ids[row["verb"]]
                values[row["metric"]][triplet] = row["value"] / 100
        ap = ap_in_groups = values["AP"]  # in_groups: of the triplets that may count as rare or non-rare
        if self.groups_need_predictions:
            arrays_of_images = self.remaining_predictions.values()
            labels = chain.from_iterable(arrays["labels"][arrays["object"]].tolist() for arrays in arrays_of_images)
            verbs = chain.from_iterable(arrays["verb"].tolist() for arrays in arrays_of_images)
            predicted = {(person, label, verb) for label, verb in zip(labels, verbs, strict=True)}
            ap_in_groups = {triplet: value for triplet, value in ap.items() if triplet in predicted}
        rare_and_non_rare = self._rare | self._non_rare
        for triplet in ap:
            if triplet not in ap_in_groups or triplet not in rare_and_non_rare:
                print(f"Warning: triplet {triplet} is neither in rare triplets nor in non-rare triplets")
        rare = [value for triplet, value in ap_in_groups.items() if triplet in self._rare]
        non_rare = [value for triplet, value in ap_in_groups.items() if triplet in self._non_rare]
        means = {
            "mAP": mean_of(ap.values()),
            self.means["rare"]: mean_of(rare),
            self.means["non_rare"]: mean_of(non_rare),
            "mean max recall": mean_of(values["max_recall"].values()),
        }
        print("--------------------", self.line.format_map(means), "--------------------", sep="\n")
        return means


class VCOCOEvaluator(QueryEvaluator):
    """Evaluates predictions on V-COCO as the `VCOCOEvaluator` classes of QPIC and its successors do."""

    protocol = "vcoco-qpic"
    dataset = "vcoco"
    verb_classes = VCOCO_ORDERS["qpic"]

    def __init__(self, preds: Sequence[Outputs], gts: Sequence[Outputs], correct_mat: Any) -> None:
        """correct_mat [29 verbs, 80 objects]: the factor of the score of each verb with each object, 1 or 0."""
        self._score_factors = read_vcoco_correct_mat(correct_mat)
        self._truth_counts: Counter[str] = Counter()
        super().__init__(preds, gts)

    def _truth_arrays(self, gt: Outputs, place: str) -> Arrays:
        stated = truth_arrays(gt, place, len(self.verb_classes), NO_OBJECT + 1, lowest_object=-1)
        self._truth_counts.update(self.verb_classes[number] for number in stated["verb"].tolist())
        arrays = state_roles(stated)
        return arrays | {"boxes": arrays["boxes"] - (0.0, 0.0, 1.0, 1.0)}  # theirs are COCO's x + width, y + height

    def _predicted_arrays(self, outputs: Outputs, place: str) -> Arrays:
        return state_roles(best_verbs(outputs, self._score_factors, place, NO_OBJECT + 1))

    def evaluate(self) -> dict[str, float]:
        """Compute and print the APs and their means, as the released code does, and return them, in [0, 1]."""
        ap: dict[str, float] = {}
        for row in self._evaluate_classes():
            entry = "_".join(filter(None, (row["verb"], row.get("role"))))
            if row["metric"] == "AP" and row["value"] is not None:
                ap[entry] = row["value"] / 100
        rule = "-" * 60
        print(rule)
        listed = {entry: ap[entry] for entry in self.verb_classes if entry in ap}
        for entry, value in listed.items():
            print(f"{entry:>23s}: #GTs = {self._truth_counts[entry]:>04d}, AP = {value:>.4f}")
        no_thesis = {verb for verb, role in map(verb_and_role, self.verb_classes) if not role} | {"point_instr"}
        thesis = [ap.get(entry, 0.0) for entry in self.verb_classes if entry not in no_thesis]
        means = {"mAP_all": mean_of(listed.values()), "mAP_thesis": mean_of(thesis)}
        print(rule, "mAP all: {mAP_all:.4f} mAP thesis: {mAP_thesis:.4f}".format_map(means), rule, sep="\n")
        return {f"AP_{entry}": value for entry, value in listed.items()} | means


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values, as released code takes it over classes; NaN of none."""
    listed = list(values)
    return float(np.mean(listed)) if listed else float("nan")


def remove_suppressed(predictions: dict[str, Arrays], nms: PairNms | None, vocabulary: Vocabulary) -> dict[str, Arrays]:
    """Return the predictions that pair NMS leaves, by the name of their image. nms: None for all predictions."""
    if nms is None or not predictions:
        return predictions
    images = [check_detections(name, arrays, vocabulary) for name, arrays in predictions.items()]
    scenes = scenes_of_detections(images, vocabulary)
    is_left = pair_nms(scenes, np.ones(len(scenes.score), dtype=bool), **nms._asdict())
    is_left_by_image = np.split(is_left, scenes.hoi_start[1:-1])
    return {
        name: arrays | {key: arrays[key][is_left_here] for key in ("subject", "object", "verb", "score")}
        for (name, arrays), is_left_here in zip(predictions.items(), is_left_by_image, strict=True)
    }


def nms_of(args: Any) -> PairNms | None:
    """Return the pair NMS that the arguments of a released main.py ask for. Raises `UsageError` for bad numbers."""
    if not getattr(args, "use_nms_filter", False):
        return None
    numbers = "/".join(str(option_of(args, name)) for name in ("thres_nms", "nms_alpha", "nms_beta"))
    try:
        with python_call():
            return Filters.from_options(None, numbers, False).nms
    except UsageError as error:
        raise UsageError(error.problem, place="args: thres_nms/nms_alpha/nms_beta") from None


def option_of(args: Any, name: str) -> Any:
    """Return an option of a released main.py. Raises `UsageError` if `args` has none of this name."""
    if not hasattr(args, name):
        raise UsageError(f"args: no {name} in it; give the options of the released main.py")
    return getattr(args, name)


def check_images(preds: Any, gts: Any) -> None:
    """Raise `UsageError` unless both are lists, and as long as each other."""
    for name, images in (("preds", preds), ("gts", gts)):
        if not isinstance(images, Sequence):
            raise UsageError(f"{name}: {type(images).__name__}; give a list with a dictionary for each image")
    if len(preds) != len(gts):
        raise UsageError(f"{len(preds):,} images in preds, {len(gts):,} in gts; give the same images in one order")


def name_images(gts: Sequence[Outputs]) -> list[str]:
    """Return a name for each image: its `filename`; if any of these is missing or comes twice, numbers from 0."""
    names = [str(gt.get("filename", "")) if isinstance(gt, Mapping) else "" for gt in gts]
    if all(map(str.strip, names)) and len(set(names)) == len(names):
        return names
    return list(map(str, range(len(gts))))


def read_outputs(
    outputs: Outputs, names: Sequence[str], place: str, widths: Mapping[str, int] | None = None
) -> list[NDArray[Any]]:
    """Return the tensors of one image as NumPy's arrays, in the order of `names`. widths: how many scores a query has,
    by name. Raises `DataError`, which names the tensor at `place`, for one that is missing, that `read_tensor` refuses,
    or that has fewer or more rows than another of the same boxes, queries or triplets."""
    if not isinstance(outputs, Mapping):
        raise DataError(f"{type(outputs).__name__}; give a dictionary of the image's arrays", place=place)
    missing = [name for name in names if name not in outputs]
    if missing:
        raise DataError(f"no {missing[0]!r} in it; it has {', '.join(map(str, outputs))}", place=place)
    columns = {"boxes": 4, "hois": 3} | dict(widths or {})
    arrays = {name: read_tensor(outputs[name], name, place, columns.get(name)) for name in names}
    for name, array in arrays.items():
        first = next(other for other in names if ROWS[other] == ROWS[name])
        if len(array) != len(arrays[first]):
            problem = f"{len(array)} {ROWS[name]}, but {first!r} has {len(arrays[first])}; give as many of each"
            raise DataError(problem, place=f"{place}[{name!r}]")
    return list(arrays.values())


def read_tensor(tensor: Any, name: str, image: str, width: int | None) -> NDArray[Any]:
    """Return a tensor of an image as NumPy's array, of integers as they are, else of floats. name: its released name;
    width: how many columns it has, None for one dimension. Raises `DataError` for another shape, for anything but
    numbers, and for scores that are not finite."""
    place, is_whole = f"{image}[{name!r}]", name in WHOLE
    array = read_array(tensor, place)
    row_shape = () if width is None else (width,)
    if array.ndim in (1, 2) and not len(array):  # an empty list may lack its second axis and its type
        empty = np.zeros((0, *row_shape), np.int64 if is_whole else np.float32)
        return empty if is_whole or array.dtype.kind != "f" else empty.astype(array.dtype)
    # there may be more scores of objects than are read
    has_more_objects = name == "obj_scores" and array.ndim == 2 and array.shape[1] > (width or 0)
    if not array.ndim or (array.shape[1:] != row_shape and not has_more_objects):
        second_axis = "," if width is None else f", {width}"
        raise DataError(f"has shape {array.shape}, wants ({ROWS[name]}{second_axis})", place=place)
    if array.dtype.kind not in ("iu" if is_whole else "iuf"):
        raise DataError(f"has dtype {array.dtype}, wants {'integers' if is_whole else 'numbers'}", place=place)
    if is_whole:
        return array
    if name != "boxes" and not np.isfinite(array).all():
        index = np.argwhere(~np.isfinite(array))[0].tolist()
        raise DataError(f"{array[tuple(index)]} at {index}; give finite scores", place=place)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def truth_arrays(gt: Outputs, place: str, verbs: int, labels_end: int, lowest_object: int = 0) -> Arrays:
    """Return the ground truth of an image from a released dataset's boxes [B, 4], labels [B], and hois [T, 3].
    lowest_object: -1 if a triplet may have no object."""
    boxes, labels, hois = read_outputs(gt, ("boxes", "labels", "hois"), place)
    labels, (subject, object_, verb) = labels.astype(np.int64), hois.astype(np.int64).T
    check_range(labels, labels_end, f"{place}['labels']", "labels")
    check_range(subject, len(boxes), f"{place}['hois']", "boxes")
    check_range(object_, len(boxes), f"{place}['hois']", "boxes", lowest=lowest_object)
    check_range(verb, verbs, f"{place}['hois']", "verbs")
    return {"boxes": boxes.astype(np.float64), "labels": labels, "subject": subject, "object": object_, "verb": verb}


def read_triplets(triplets: Any, name: str) -> set[Triplet]:
    """Return a list of classes as a set. Raises `DataError` for anything but three integers each."""
    array = read_array(list(triplets) if isinstance(triplets, Collection) else triplets, name)
    if (array.size and (array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu")) or not array.ndim:
        problem = f"has shape {array.shape} and dtype {array.dtype}, wants (n, 3) integers: subject, object and verb"
        raise DataError(problem, place=name)
    return set(map(tuple, array.tolist()))


def check_query_boxes(boxes: NDArray[Any], subject: NDArray[Any], object_: NDArray[Any], place: str) -> None:
    """Raise `DataError` if a query's boxes are none of the image's."""
    for name, rows in (("sub_ids", subject), ("obj_ids", object_)):
        check_range(rows.astype(np.int64), len(boxes), f"{place}[{name!r}]", "boxes")


def best_verbs(outputs: Outputs, allowed: NDArray[Any], place: str, labels_end: int) -> Arrays:
    """Return the best triplets of an image, best first. outputs: boxes, labels, verb_scores [Q, verbs], and the boxes
    of each query. allowed [verbs, objects]: the factor of each score."""
    names = ("boxes", "labels", "verb_scores", "sub_ids", "obj_ids")
    boxes, labels, scores, subject, object_ = read_outputs(outputs, names, place, {"verb_scores": len(allowed)})
    check_range(labels.astype(np.int64), labels_end, f"{place}['labels']", "labels")
    check_query_boxes(boxes, subject, object_, place)
    # the product has the precision of the scores, as in place there
    scores = (scores * allowed[:, labels[object_]].T).astype(scores.dtype)
    query, verb, score = best_of_queries(scores)
    return {"boxes": boxes, "labels": labels, "subject": subject[query], "object": object_[query], "verb": verb,
            "score": score}  # fmt: skip
