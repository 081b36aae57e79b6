"""`evaluate`: what `hoicli eval` computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoicli.api.calling import (
    VIEW_TAGS,
    Names,
    Thresholds,
    called,
    checked_tags,
    names_of,
    policy_of,
    typed_call,
    views_of,
)
from hoicli.api.inputs import Given, Inputs, Path
from hoicli.api.results import Result
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocol_files import chosen_protocols, explicit
from hoicli.evaluation.rows import Wanted, tally_rows
from hoicli.evaluation.run import tallies
from hoicli.evaluation.selection import adjusted
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Evaluations:
    """Tallies with their vocabulary and settings, and the rows to make of them."""

    tallies: list[tuple[Tally, Vocabulary, Mapping[str, str]]]
    split: str | None
    ignore_no_interaction: bool
    resampling: Resampling | None
    tags: Mapping[str, str]
    views: Views = ALONE

    def rows(self, *, per_class: bool) -> list[Row]:
        """The rows of means, and those of classes if requested."""
        rows: list[Row] = []
        for tally, vocabulary, settings in self.tallies:
            split = vocabulary.split(self.split) if self.split else None
            wanted = Wanted(split, self.ignore_no_interaction, per_class, self.views.of_classes)
            rows += tally_rows(tally, vocabulary, wanted, self.resampling, settings=settings, tags=self.tags)
        return rows

    def result(self, notes: list[str], *, per_class: bool) -> Result:
        """The rows as a result; those of classes are computed when they are asked for."""

        def classes() -> list[Row]:
            with called():
                return [row for row in self.rows(per_class=True) if "verb" in row]

        return Result(self.rows(per_class=per_class), notes, classes)


@typed_call
def evaluate(
    gt: Given | None,
    preds: Given,
    *,
    protocol: Names = None,
    dataset: str | None = None,
    split: str | None = None,
    per_class: bool = False,
    ignore_no_interaction: bool = False,
    iou: Thresholds = None,
    slices: Names = None,
    bootstrap: int | None = None,
    seed: int = 0,
    count_images: str | None = None,
    grid: str | None = None,
    top_k: int | None = None,
    nms: float | None = None,
    nms_alpha: float = 1.0,
    nms_beta: float = 0.5,
    allow_uncounted: bool = False,
    source_format: str | None = None,
    image_list: Path | None = None,
    on_error: str = "stop",
    tags: Mapping[str, str] | None = None,
) -> Result:
    """The mAP of predictions by published protocols, in percent, as `hoicli eval` prints it.

    gt, preds: a path, or several, of JSONL or of any format of `hoicli convert`; records (dicts); or `{image_id:
    arrays}` with the arguments of `Evaluator.update` as keys, `score` for predictions alone. preds may also be match
    records (`hoicli match`); then gt may be None.
    protocol: a name or several (`hico`, `vcoco-s1`, ...); None is every protocol of the dataset (HICO-DET without one).
    split: adds a zero-shot split's unseen and seen classes. iou, slices: rows at other thresholds and of parts of the
    data, as `--iou` and `--slice`. bootstrap: rounds for 95 % intervals. top_k, nms: what is
    removed before matching. source_format, image_list: of files that are not JSONL, as in
    `hoicli.read`. on_error: "skip" leaves bad lines out and says so in `notes`. The others are the options
    of the same names: `hoicli help eval`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes:
        chosen = adjusted(chosen_protocols(names_of(protocol), dataset), images=count_images, grid=grid)
        vocabulary = load(dataset or chosen[0].dataset)
        views = views_of(iou, slices, vocabulary)
        if split:
            vocabulary.split(split)
        filters = Filters(top_k, nms, nms_alpha, nms_beta, allow_uncounted)
        resampling = Resampling.asked(bootstrap, seed)
        policy, own_tags = policy_of(on_error), checked_tags(tags, *VIEW_TAGS)
        inputs = Inputs.of(vocabulary, dataset, on_error, source_format, image_list)
        found = tallies(
            inputs.predictions(preds, "preds"),
            None if gt is None else inputs.stream(gt, "gt", "ground truth"),
            chosen,
            filters,
            policy,
            named=explicit(names_of(protocol)),
            views=views,
            vocabulary=vocabulary,
        )
        evaluations = Evaluations(list(found), split, ignore_no_interaction, resampling, own_tags, views)
        policy.report()
        return evaluations.result(notes, per_class=per_class)
