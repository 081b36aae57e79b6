"""`diagnose` and `compare`: what the commands of these names compute."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike

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
from hoicli.comparison.answers import answers
from hoicli.comparison.run import compare as compared
from hoicli.diagnosis.applied import progressive_order
from hoicli.diagnosis.repairs import Reading as Repairing
from hoicli.diagnosis.run import diagnose_models, diagnosing
from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocol_files import chosen_protocols, explicit
from hoicli.evaluation.rows import Wanted
from hoicli.evaluation.selection import main_protocol
from hoicli.io.messages import note
from hoicli.io.naming import names_of_files
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load


@typed_call
def diagnose(
    gt: Given | None,
    preds: Given,
    *,
    protocol: str | None = None,
    dataset: str | None = None,
    name: str | None = None,
    as_released: bool = False,
    independent: bool = False,
    progressive: Names = None,
    iou: Thresholds = None,
    slices: Names = None,
    per_class: bool = False,
    top: int = 0,
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
    """The type of every error, and the mAP that fixing each type would give, as `hoicli diagnose` prints them.

    gt, preds, top_k, nms, on_error: as in `evaluate`. name: of the model, a tag of every row. progressive: oracles in
    the order in which they are applied, or "all". top: adds the classes and images that fixing would help most. The
    others are the options of the same names: `hoicli help diagnose`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes:
        if as_released and (independent or progressive is not None):
            raise UsageError("--as-released: the released code has neither --independent nor --progressive")
        if as_released and (iou or slices):
            raise UsageError("--as-released: the released code has neither --iou nor --slice")
        if independent and progressive is not None:
            raise UsageError(
                "--progressive: oracles that follow one another share their repairs; leave out --independent"
            )
        check_top(top)
        repairs: Repairing = "released" if as_released else "independent" if independent else "shared"
        order = () if progressive is None else progressive_order(",".join(names_of(progressive)))
        policy, own_tags = policy_of(on_error), checked_tags(tags, *(["model"] if name else []), *VIEW_TAGS)
        row = diagnosing(names_of(protocol), dataset, repairs)
        vocabulary = load(dataset or (row.dataset if row else "hico"))
        inputs = Inputs.of(vocabulary, dataset, on_error, source_format, image_list)
        model = inputs.predictions(preds, "preds").of_model(name or "preds", tagged=name is not None)
        diagnosed = diagnose_models(
            [model],
            None if gt is None else inputs.stream(gt, "gt", "ground truth"),
            dataset,
            Filters(top_k, nms, nms_alpha, nms_beta, allow_uncounted),
            policy,
            reading=repairs,
            asked=partial(views_of, iou, slices),
            protocol=row,
        )
        rows = [
            row for view in diagnosed for row in view.rows(per_class=per_class, top=top, order=order, tags=own_tags)
        ]
        policy.report()
    return Result(rows, notes)


@typed_call
def compare(
    gt: Given,
    a: Given,
    b: Given,
    *others: Given,
    names: Sequence[str] | None = None,
    protocol: Names = None,
    dataset: str | None = None,
    split: str | None = None,
    ignore_no_interaction: bool = False,
    iou: Thresholds = None,
    slices: Names = None,
    bootstrap: int = 1000,
    seed: int = 0,
    errors: bool = True,
    per_class: bool = False,
    top: int = 10,
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
    """Whether `b` (and each of `others`) is better than `a`, by how much, and where, as `hoicli compare` prints it.

    gt, a, b, top_k, nms, on_error: as `gt` and `preds` in `evaluate`. names: of the models, in their order; without
    them a path is called after its file, and what is no path "a", "b", "c" and so on, by its place; of one name: the
    runs of one model. protocol: without one the dataset's main protocol. bootstrap: rounds of resampling, 0 for
    none. The answer in words is in `Result.notes`.
    errors: differences in the types of errors, too. top: that many classes and images that changed most. The others are
    the options of the same names: `hoicli help compare`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes:
        check_top(top)
        chosen = chosen_protocols(names_of(protocol) or [main_protocol(load(dataset or "hico")).name], dataset)
        vocabulary = load(dataset or chosen[0].dataset)
        views = views_of(iou, slices, vocabulary)
        wanted = Wanted(vocabulary.split(split) if split else None, ignore_no_interaction, per_class, views.of_classes)
        every = (a, b, *others)
        letters = [chr(ord("a") + at) for at in range(len(every))]
        if names is not None and len(names) != len(every):
            raise UsageError(f"names: {', '.join(names)}: give {len(every)}, in the order of the models")
        paths = [given if isinstance(given, str | PathLike) else at for given, at in zip(every, letters, strict=True)]
        named_so = names or names_of_files([os.fspath(path) for path in paths])
        inputs = Inputs.of(vocabulary, dataset, on_error, source_format, image_list)
        models = [
            inputs.predictions(given, letter).of_model(name, tagged=True)
            for given, letter, name in zip(every, letters, named_so, strict=True)
        ]
        policy, own_tags = policy_of(on_error), checked_tags(tags, "model", "baseline", *VIEW_TAGS)
        rows = compared(
            models,
            inputs.stream(gt, "gt", "ground truth"),
            vocabulary,
            chosen,
            Filters(top_k, nms, nms_alpha, nms_beta, allow_uncounted),
            policy,
            wanted,
            Resampling.checked(bootstrap, seed, or_none=True),
            named=explicit(names_of(protocol)) if protocol else None,
            errors=errors,
            top=top,
            tags=own_tags,
            views=views,
        )
        done = list(rows)
        policy.report()
        for sentence in answers(done):
            note(sentence)
    return Result(done, notes)


def check_top(top: int) -> None:
    """Raises `UsageError` for a number below 0."""
    if top < 0:
        raise UsageError(f"--top {top}: give a whole number of at least 0")
