"""`Evaluator`: predictions that arrive image by image, as arrays, from a training loop or from several processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import index
from typing import Any

from hoicli.commands.eval import rows_of
from hoicli.errors import DataError, HoicliWarning, UsageError
from hoicli.evaluation.coverage import (
    Coverage,
    choose_computable,
    classless_problem,
    find_unlabelled_views,
    tell_absent,
)
from hoicli.evaluation.evaluating import tally_matches
from hoicli.evaluation.evaluation_rows import METRICS, Wanted
from hoicli.evaluation.fit import Inverted
from hoicli.evaluation.matching import Batch, Outcomes, match_all
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import choose_protocols, names_asked_for
from hoicli.interface.command import python_call, wrap_for_python
from hoicli.interface.inputs import IOU_TAG, SLICE_TAGS, Inputs
from hoicli.interface.option_values import chosen_of, names_of, tags_of, text_of
from hoicli.interface.options import Given, Names, Path, Tags, Unpack, Viewed
from hoicli.interface.results import Records, Result
from hoicli.io.messages import kept_notes, note
from hoicli.records.columns import BATCH
from hoicli.records.detections import Detections, State, check_detections, make_state, read_state
from hoicli.records.intake import UNKNOWN_IMAGE, unknown_image
from hoicli.records.names import is_blank
from hoicli.records.parsing import short
from hoicli.records.reading import scenes_of_detections
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load


class Evaluator:
    """Evaluates predictions that come image by image, as arrays, in a training loop or from several processes.

        evaluator = hoicli.Evaluator("gt.jsonl", protocol=["hico", "hico-ko"])
        for image_id, output in ...:
            evaluator.update(image_id, boxes=..., labels=..., subject=..., object=..., verb=..., score=...)
        evaluator.compute().to_dict()

    Images may come in any order and from any process (`merge`): the numbers are those of `hoicli eval` on the same
    predictions. `update` checks and copies the arrays; `compute` matches them with the ground truth. Predictions that
    are merely suspicious, like those of a network that has not learnt anything yet, give a
    `hoicli.errors.HoicliWarning`, not an error."""

    @wrap_for_python
    def __init__(
        self, gt: Given, protocol: Names = None, *, dataset: Path | None = None, **shared: Unpack[Viewed]
    ) -> None:
        """Read the ground truth, once. gt: a file, or records, as `hoicli.evaluate` takes it. protocol and the other
        options: as in `hoicli.evaluate`; on_error is about lines of `gt`.

        Raises `DataError` for what is wrong with the ground truth, `UsageError` for what is wrong with the call."""
        names, dataset_name = names_of(protocol), text_of(dataset)
        with kept_notes() as notes:
            chosen = choose_protocols(names, dataset_name)
            self._vocabulary = load(dataset_name or chosen[0].dataset)
            inputs = Inputs(dataset_name, shared, within=self._vocabulary.path or self._vocabulary.name)
            self._filters, self._policy = inputs.filters, inputs.policy
            self._truth = inputs.read_truth(gt, self._vocabulary)
            self._policy.report()
            chosen = choose_computable(self._truth, chosen, names_asked_for(names))
            self._views = inputs.views(self._vocabulary)
            self._protocols = self._views.views_of(chosen, names_asked_for(names))
        self._notes = notes
        self._images: dict[str, Detections] = {}
        self._repeated: set[str] = set()

    def update(
        self,
        image_id: str | int,
        *,
        boxes: Any,
        labels: Any = None,
        subject: Any,
        object: Any,
        verb: Any = None,
        interaction: Any = None,
        score: Any,
        role: Any = None,
        box_format: str = "xyxy",
        size: Any = None,
    ) -> None:
        """Add the predictions of one image: B boxes and T triplets. An image may come again, since samplers repeat
        images to fill up a batch; it must then have the same predictions, up to a network's noise (a
        hundred-thousandth), and counts once.

        boxes [B, 4]: pixels, 0-based x1, y1, x2, y2; box_format: "xywh" for x1, y1, width, height, "cxcywh" for centre,
        width, height; size: the image's (height, width), if boxes are shares of it. labels [B]: the boxes' objects,
        names or numbers. subject, object [T]: rows of `boxes`. verb [T]: names or numbers. score [T]. Numbers are
        0-based places in the dataset's vocabulary (`hoicli vocab`: COCO's order of objects). With V-COCO: role [T], a
        name or number, None or -1 for the action itself, and then object None or -1. An image without detections has
        empty arrays. interaction [T], in place of verb: numbers of the dataset's interactions; labels then follow from
        them, if they are not given. `hoicli.triplets` makes all of these from a network's outputs.

        Arrays may be NumPy's, lists, or anything with `__array__` or DLPack, such as torch's tensors, also on a GPU;
        they are copied. Raises `DataError` that names the image, the argument and the index."""
        arrays = {"boxes": boxes, "labels": labels, "subject": subject, "object": object, "verb": verb, "score": score}
        arrays |= {"box_format": box_format, "size": size, "role": role, "interaction": interaction}
        try:
            name = _image_name(image_id)
            if name not in self._truth.position:
                problem = f"{unknown_image(name, self._truth.position)}; give the ground truth of its set"
                raise DataError(problem, code=UNKNOWN_IMAGE)
            image = check_detections(name, arrays, self._vocabulary)
            is_repeated = name in self._images
            if not _add_image(image, self._images):
                raise DataError("this image was updated already; update each once, and reset() before the next epoch")
            if is_repeated:
                self._repeated.add(name)
        except DataError as error:
            raise error.add_place(f"update({short(image_id)})") from None

    @wrap_for_python
    def compute(
        self,
        *,
        split: str | None = None,
        ignore_no_interaction: bool = False,
        per_class: bool = False,
        metric: Names = None,
        bootstrap: int | None = None,
        seed: int = 0,
        tag: Tags = None,
    ) -> Result:
        """Return the results of all images so far: the rows that `hoicli eval` gives, in percent and with signatures.
        Ground truth of images without predictions counts as missed. The options are those of `hoicli.evaluate`. Further
        updates may follow.

        Warns with `HoicliWarning` if most predictions have no class (the signature says so, too) or the boxes do not
        fit. Raises `DataError` if no image was updated, and `UsageError` for a bad option."""
        self._vocabulary.check_split(split)
        tags, metrics = tags_of(tag, IOU_TAG, *SLICE_TAGS), chosen_of("metric", metric, METRICS)
        resampling = Resampling.from_rounds(bootstrap, seed)
        if not self._images:
            raise DataError("no image was updated", place="compute()", code="empty")
        with kept_notes() as notes:
            notes += self._notes
            tally, coverage = tally_matches(self._matched_batches(), self._protocols, self._vocabulary)
            problem = classless_problem(tally, self._vocabulary)
            tally.uncounted = bool(problem)  # most predictions have no class: signatures say so
            tally.add_truth(self._truth)
            protocols = tally.leave_out(find_unlabelled_views(dict.fromkeys(self._protocols, tally), (), "compute()"))
            doubts = ["" if self._filters.allow_uncounted else problem, *self._report(coverage, protocols)]
            for doubt in filter(None, doubts):
                warnings.warn(f"compute(): {doubt.removeprefix('compute(): ')}", HoicliWarning, stacklevel=4)
            tally_and_settings = (tally, self._vocabulary, self._filters.signature())
            rows = partial(rows_of, [tally_and_settings], resampling=resampling, tags=tags)
            requested = Wanted(split, ignore_no_interaction, per_class, self._views.of_classes, metrics)
            result_rows, signed = rows(requested), self._policy.sign_skipped
        every_class = replace(requested, per_class=True, metrics=())
        return Result(signed(result_rows), notes, lambda: signed([row for row in rows(every_class) if "verb" in row]))

    def _matched_batches(self) -> Iterator[tuple[Batch, Mapping[str, Outcomes]]]:
        """Match all images so far; yield each batch of them with its outcomes by `Protocol.key`."""
        images = list(self._images.values())
        for start in range(0, len(images), BATCH):
            batch = Batch(scenes_of_detections(images[start : start + BATCH], self._vocabulary), self._truth)
            yield batch, match_all(batch, self._protocols, self._filters)

    def _report(self, coverage: Coverage, protocols: Sequence[Protocol]) -> list[str]:
        """Print notes on how well predictions and ground truth fit together, and return what is suspicious, "" for what
        is not. What is an error in `hoicli eval`, such as boxes that are fractions, is only suspicious here: a network
        that has learnt nothing may predict it."""
        doubts = [coverage.doubt(self._truth, protocols), coverage.equal_scores_question()]
        try:
            coverage.fit.inverted.report("compute()")
        except DataError as error:
            doubts.append(str(error))
        # forget inverted boxes, and pass for pixels: so `report` raises no error about what is only doubtful here
        coverage.fit.inverted, coverage.fit.largest = Inverted(), float("inf")
        coverage.report(self._truth, protocols, "compute()")
        tell_absent(self._truth, protocols)
        if self._repeated:
            note(f"{len(self._repeated):,} images came again with the same predictions, and count once")
        return doubts

    def reset(self) -> None:
        """Forget all images; the ground truth stays."""
        self._images, self._repeated = {}, set()

    def merge(self, other: Evaluator | Mapping[str, Any]) -> Evaluator:
        """Add the images of another Evaluator, or of what `state()` returned, and return this Evaluator. The order does
        not matter. An image that comes twice must have the same predictions each time, as in `update`, and counts once.

        Raises `DataError` for an image that has other predictions here, for one that is not in the ground truth, and
        for a mapping that is no state or is of another dataset; then nothing is added."""
        if isinstance(other, Evaluator):
            if self._vocabulary.signed != other._vocabulary.signed:
                problem = (
                    f"is of {other._vocabulary.signed}, not {self._vocabulary.signed}; merge what shares a dataset"
                )
                raise UsageError(f"merge(): {problem}")
            images = iter(other._images.values())
            repeated = self._repeated | other._repeated
        elif isinstance(other, Mapping):
            images, repeated = read_state(other, self._vocabulary, "state"), self._repeated.copy()
        else:
            raise UsageError(f"merge(): is {type(other).__name__}; give an Evaluator, or what state() returned")
        merged = self._images.copy()
        for image in images:
            place = f"merge(): image {short(image.image_id)}"
            if image.image_id not in self._truth.position:
                raise DataError("is not in the ground truth; merge what shares one", place=place, code=UNKNOWN_IMAGE)
            repeated |= {image.image_id} & merged.keys()
            if not _add_image(image, merged):
                raise DataError(
                    "has other predictions here; give each process images of its own (a sampler that repeats images to "
                    "fill up: range(rank, images, processes) does not)",
                    place=place,
                )
        self._images, self._repeated = merged, repeated
        return self

    def state(self) -> State:
        """Return all images so far as a dict of plain numeric arrays, to be sent to another process, or saved with
        `numpy.savez`.

        `hoicli.records.detections.State` describes the arrays. The states of several processes concatenated along the
        first axis, array by array, are the state of all of them. Commands read a saved state as predictions."""
        return make_state(list(self._images.values()), self._vocabulary)

    def save(self, path: Path) -> None:
        """Write the predictions of all images so far to a file of JSON lines (.gz compresses) that `hoicli eval` and
        the other commands read. The file is written whole or not at all, and has the same bytes whatever the order of
        images and processes.

        Raises `UsageError` and `DataError` for a file that cannot be written, or that is the ground truth."""
        if not isinstance(path, str | os.PathLike):
            raise UsageError(f"save: {path!r} is no path; give the file to write", code="bad-output")
        truth = self._truth.name
        if os.path.exists(path) and os.path.exists(truth) and os.path.samefile(path, truth):
            raise UsageError(f"save: {os.fspath(path)}: is the ground truth; give another name", code="bad-output")
        with python_call():
            images = sorted(self._images.values(), key=lambda image: image.image_id)
            Records(image.to_record(self._vocabulary, scored=True) for image in images).write(os.fspath(path), "save:")

    @classmethod
    def from_state(cls, state: Mapping[str, Any], gt: Given, protocol: Names = None, **options: Any) -> Evaluator:
        """Return a new Evaluator that has the images of a `state()`. gt, protocol, options: as in `Evaluator(...)`,
        since a state has predictions alone. Raises what `Evaluator` and `merge` raise."""
        return cls(gt, protocol, **options).merge(state)

    def __repr__(self) -> str:
        """Return the protocols and how many of the ground truth's images have predictions, as text."""
        names = ", ".join(protocol.name for protocol in self._protocols)
        return f"Evaluator({names}; {len(self._images):,} of {len(self._truth.position):,} images)"


def _add_image(image: Detections, images: dict[str, Detections]) -> bool:
    """Add an image to `images`, by id, and return True; if it is there with other predictions, add nothing: False."""
    before = images.get(image.image_id)
    merged = image if before is None else before.either(image)
    if merged is not None:
        images[image.image_id] = merged
    return merged is not None


def _image_name(image_id: Any) -> str:
    """Return an image's id as text, as records have it. Raises `DataError` if it is neither text nor a whole number, or
    is blank."""
    if not isinstance(image_id, str):
        try:
            return str(index(image_id))
        except TypeError:
            kind = type(image_id).__name__
            raise DataError(f"{kind}; it must be a string or an integer", field="image_id") from None
    if is_blank(image_id):
        raise DataError("empty; name the image as the ground truth does", field="image_id")
    return str(image_id)
