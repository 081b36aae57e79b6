"""What the options of `diagnose`, `confusion` and `pairstats` choose: the protocol, the oracles, the ground truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hoicli.diagnosis.located import Settled
from hoicli.diagnosis.repair_assignment import Reading
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import check_computable
from hoicli.evaluation.evaluating import read_truth
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import diagnosed_protocol, one_protocol
from hoicli.evaluation.slices import Part
from hoicli.evaluation.views import Views, check_diagnosed, view_on_part
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.oracles import IN_TURN
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

NO_INTERACTION = ("noint", "counted")
"""What signatures, and the tags of rows beside others, say of a protocol that counts the no_interaction classes."""


def choose_diagnosis_protocol(
    names: Sequence[str], dataset: str | None, *, as_released: bool = False, no_interaction: bool = False
) -> Protocol | None:
    """Return the protocol that `--protocol` names for error types or pair statistics, None if none is named.

    names: what `--protocol` was given. as_released: follow the released code of Diag-HOI, which allows one protocol.
    no_interaction: count the no_interaction classes, too. Raises `UsageError` for several protocols, for one whose
    matching the error types cannot follow, for another than the released code's, and for `no_interaction` where the
    dataset has no such classes."""
    protocol = one_protocol(names, dataset)
    if protocol is not None:
        _check_diagnosable(protocol, dataset, as_released=as_released)
    if not no_interaction:
        return protocol
    protocol = protocol or diagnosed_protocol(load(dataset or "hico"))
    if as_released or not protocol.drop_no_interaction:
        problem = "the released code never does" if as_released else f"{protocol.dataset} has no such classes"
        raise UsageError(f"{arg('with_no_interaction')}: {problem}; leave it out")
    # `changed` has what signatures say of a protocol that differs from the one of its name
    return replace(protocol, drop_no_interaction=False, changed=(*protocol.changed, NO_INTERACTION))


def count_no_interaction(protocol: Protocol) -> Protocol:
    """Return a protocol that also counts the no_interaction classes, as a view of its own, for diagnosing by both in
    one pass. Raises `UsageError` if the dataset has no such classes."""
    if not protocol.drop_no_interaction:
        is_counted = NO_INTERACTION in protocol.changed
        problem = f"leave out {arg('with_no_interaction')}" if is_counted else f"{protocol.dataset} has no such classes"
        option = arg("plot_kind", "no-interaction")
        raise UsageError(f"{option}: draws both without and with no_interaction; {problem}")
    changed, view = (*protocol.changed, NO_INTERACTION), (NO_INTERACTION, *protocol.view)
    return replace(protocol, drop_no_interaction=False, changed=changed, view=view)


def _check_diagnosable(protocol: Protocol, dataset: str | None, *, as_released: bool) -> None:
    """Raise `UsageError` if a protocol matches predictions in a way, or averages over classes, for which error types
    are not defined; with `as_released`, for any but the dataset's usual protocol."""
    usual = diagnosed_protocol(load(dataset or protocol.dataset))
    if as_released and protocol != usual:
        raise UsageError(f"{arg('as_released')}: the released code has no other protocol than {usual.name}")
    other_triplets = protocol.every_overlap or protocol.first_free
    other_matching = protocol.person_first != usual.person_first or protocol.whole_image or other_triplets
    other_classes = (
        not protocol.only_annotated_classes
        or protocol.drop_no_interaction != usual.drop_no_interaction
        or (protocol.classes if usual.person_first else "") != usual.classes  # V-COCO: the same ones
        or protocol.by_verb
    )
    if other_matching or other_classes:
        problem = f"{arg('protocol', protocol.name)}: error types and pairs need the classes and the matching of"
        raise UsageError(f'{problem} {usual.name}; give a file that is "like": "{usual.name}", with your changes')


def progressive_order(text: str) -> tuple[str, ...]:
    """Return the oracles that a comma-separated list or `all` names. Raises `UsageError` for a bad or repeated name."""
    if text.strip() == "all":
        return IN_TURN
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in IN_TURN]
    if unknown:
        raise UsageError(
            f"{arg('progressive')}: unknown {', '.join(map(repr, unknown))}; choose all, or {', '.join(IN_TURN)}"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{arg('progressive')}: {', '.join(twice)} twice; an oracle is applied once")
    return names


def settle_options(
    models: Sequence[Predictions],
    gt: Stream | None,
    dataset: str | None,
    filters: Filters,
    policy: ErrorPolicy,
    *,
    reading: Reading,
    views_of: Callable[[Vocabulary], Views],
    protocol: Protocol | None,
) -> Settled:
    """Return the dataset, protocol, views (thresholds and slices) and ground truth that the options choose.

    gt: the stream of ground truth, if any. dataset: None for that of the protocol or of the first stream if it holds
    match records, else HICO-DET. views_of: makes the views for a vocabulary. protocol: None for the dataset's usual
    one. Raises `UsageError` for slices that cannot be diagnosed and for the released reading on other datasets than
    HICO-DET, `DataError` for bad ground truth."""
    vocabulary = load(dataset or (protocol.dataset if protocol else None) or models[0].dataset or "hico")
    protocol = protocol or diagnosed_protocol(vocabulary)
    if reading == "released" and vocabulary.roles:
        # map_improvement_vcoco.py of neu-vi/Diag-HOI ranks by numpy.argsort without `kind`: equal scores (in a V-COCO
        # dump, all statements that no one made) are ordered by NumPy's build, and repairs depend on that order.
        problem = f"the released code for {vocabulary.name} ranks equal scores in no certain order"
        raise UsageError(f"{arg('as_released')}: for HICO-DET only; {problem}")
    views = views_of(vocabulary)
    for slice_ in views.of_data:
        check_diagnosed(view_on_part(protocol, Part(slice_, 0)))  # one part speaks for all: it depends on the slice
    if gt is None:
        return Settled(vocabulary, protocol, views, truth=None)
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    check_computable(truth, protocol)
    return Settled(vocabulary, protocol, views, truth)
