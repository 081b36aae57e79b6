"""Which settings give the numbers that a paper prints (the "claim"): a dump of predictions is matched once, and ranked
under each combination of protocol, filters and options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import cached_property
from itertools import product

import numpy as np

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.coverage import choose_computable
from hoicli.evaluation.evaluating import read_truth, tally_predictions
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import subset_classes
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.result_rows import Row, percent, result_row
from hoicli.vocabulary.labels import Vocabulary

_MODES = {"half up": ROUND_HALF_UP, "half to even": ROUND_HALF_EVEN, "cut off": ROUND_DOWN}
_ROUNDINGS = (({"half up", "half to even"}, "rounded"), ({"half up"}, "rounded half up"),
              ({"half to even"}, "rounded half to even"), ({"cut off"}, "cut off"))  # fmt: skip
"""Names of ways to round, the usual first, each with the modes that must all give the claimed numbers: "rounded" if
both do, as they differ only for a number half way between two others."""


@dataclass(frozen=True)
class Claim:
    """Numbers as a paper prints them. text: as the user gave them; numbers: (subset, number in percent) of each, with
    "" as the subset if none is named."""

    text: str
    numbers: Sequence[tuple[str, Decimal]]

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Return the claim in a text like `46.06/43.72/46.76`, or `full=46.06/rare=43.72`. Raises `UsageError`."""
        numbers: list[tuple[str, Decimal]] = []
        for part in text.split("/"):
            name, equals, number = part.strip().rpartition("=")
            if not is_number(number) or bool(name) != bool(equals):
                problem = f"{part!r} is no number as papers print it, in percent"
                raise UsageError(f"{text}: {problem}; for example 46.06/43.72/46.76, or full=46.06")
            numbers.append((name, Decimal(number)))
        if all(number <= 1 for _, number in numbers) and any(_decimal_places(number) > 2 for _, number in numbers):
            raise UsageError(f"{text}: these are fractions; give percent, as papers do: 32.98, not 0.3298")
        names = [name for name, _ in numbers if name]
        if names and len(set(names)) < len(numbers):
            raise UsageError(f"{text}: name the subset of each number, each once, or of none")
        return cls(text, numbers)

    def readings(self, subsets: Sequence[str]) -> list[dict[str, Decimal]]:
        """Return the ways to understand the claim under a protocol, each as numbers by subset. If subsets are named,
        that is the only way; a single number may be that of any subset; several are those of the first subsets, in
        order. subsets: the protocol's; if it lacks one that is needed, the list is empty."""
        named = dict(self.numbers)
        if "" not in named:
            return [named] if named.keys() <= set(subsets) else []
        if len(self.numbers) == 1:
            return [{subset: named[""]} for subset in subsets]
        numbers = [number for _, number in self.numbers]
        # strict=False: papers often print the first subsets only
        return [dict(zip(subsets, numbers, strict=False))] if len(numbers) <= len(subsets) else []


def is_number(text: str) -> bool:
    """Return whether a text is a number from 0 to 100 as papers print it: digits, perhaps with a decimal point."""
    return bool(re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text, re.ASCII)) and Decimal(text) <= 100


def rounding(numbers: Iterable[tuple[float, Decimal]]) -> str:
    """Return the name of the usual way of rounding (one of _ROUNDINGS) that gives every printed number, "" if none
    does. numbers: pairs of an exact value and the number that is printed for it."""
    fitting_modes = set(_MODES)
    for value, number in numbers:
        exact = Decimal(repr(round(value, 9)))  # without the last digits, which are errors of floating point
        fitting_modes &= {name for name, mode in _MODES.items() if exact.quantize(number, mode) == number}
    return next((name for modes, name in _ROUNDINGS if modes <= fitting_modes), "")


def _decimal_places(number: Decimal) -> int:
    """Return how many digits a number has behind the decimal point."""
    return -int(number.as_tuple().exponent)


@dataclass(frozen=True)
class Tried:
    """A setting that was tried for a claim. evaluated: its results; options: the options of `hoicli eval` that give
    them, "" for none; printed: the claimed numbers by subset."""

    evaluated: Evaluated
    options: str
    printed: Mapping[str, Decimal]

    def setting_text(self) -> str:
        """Return the protocol and the options as text. In brackets follow the subset, if the claim is a single number,
        and the way of rounding, if it is not the usual one."""
        remarks = [*self.printed] if len(self.printed) == 1 else []
        if self.rounding not in ("", "rounded"):
            remarks.append(self.rounding)
        in_brackets = f"({', '.join(remarks)})" if remarks else ""
        return " ".join(filter(None, (self.evaluated.protocol.name, self.options, in_brackets)))

    @cached_property
    def values(self) -> dict[str, float]:
        """The mAP in percent of each subset that has classes, by the subset's name."""
        return {mean.subset: 100.0 * mean.ap for mean in self.evaluated.means if mean.ap is not None}

    @cached_property
    def rounding(self) -> str:
        """The way of rounding by which the values are the claimed numbers, "" if there is none."""
        return rounding((self.values[subset], number) for subset, number in self.printed.items())

    @cached_property
    def off(self) -> dict[str, float]:
        """How far each value is from the claimed number, in units of the number's last digit, by subset."""
        return {
            subset: abs(self.values[subset] - float(number)) * 10 ** _decimal_places(number)
            for subset, number in self.printed.items()
        }

    @property
    def order(self) -> tuple[int, int, float]:
        """The key to sort tried settings by: those that fit, usual rounding and few options first; then the nearest."""
        names = [*(name for _, name in _ROUNDINGS), ""]
        option_count = self.options.count("--") if self.rounding else 0
        return names.index(self.rounding), option_count, max(self.off.values())

    def text(self, more: int = 0) -> str:
        """Return the values with slashes between them, each with the claimed number's decimal places and `more`."""
        printed = self.printed.items()
        return "/".join(f"{self.values[subset]:.{_decimal_places(number) + more}f}" for subset, number in printed)

    def rows(self) -> Iterator[Row]:
        """Yield a result row for each claimed number: the mAP, and how far it is from the claim."""
        for mean in self.evaluated.means:
            if mean.subset in self.printed:
                yield result_row(
                    "mAP", subset=mean.subset, value=percent(mean.ap), n=mean.classes,
                    claimed=float(self.printed[mean.subset]), digits_off=self.off[mean.subset],
                    fits=self.rounding or None, **self.evaluated.last_keys(),
                )  # fmt: skip

    def line(self) -> Row:
        """Return this setting as a line of a table: its column heads and cells, as text."""
        values = zip(self.printed, self.text(more=2).split("/"), strict=True)
        distance = f"{max(self.off.values()):.1f}"
        return {"fits": self.rounding or "no", "protocol": self.evaluated.protocol.name, "options": self.options or "-",
                "digits off": distance, **dict(values)}  # fmt: skip


def combine_filters(protocols: Sequence[Protocol], nms: Sequence[str], top_k: Sequence[int]) -> list[Protocol]:
    """Return a view of each protocol for each combination of filters, which is matched with these filters.

    nms: thresholds of pair NMS to try, besides none. top_k: how many best triplets of an image to keep, besides all;
    one that reaches a protocol's own cap is left out for it, since it removes nothing."""
    all_filters = dict.fromkeys(  # each once: the user may name 0.7 and 0.70
        Filters.from_options(k, threshold, allow_uncounted=False)
        for threshold, k in product((None, *nms), (None, *top_k))
    )
    views = []
    for protocol, filters in product(protocols, all_filters):
        cap = protocol.triplets_per_image
        if filters.top_k is None or cap is None or filters.top_k < cap:
            views.append(replace(protocol, filters=filters, view=tuple(filters.signature().items())))
    return views


def try_settings(
    claim: Claim,
    predictions: Predictions,
    gt: Stream,
    vocabulary: Vocabulary,
    protocols: Sequence[Protocol],
    policy: ErrorPolicy,
    *,
    nms: Sequence[str],
    top_k: Sequence[int],
    split: str | None,
    named: Collection[str],
    allow_uncounted: bool,
    tags: Mapping[str, str],
) -> list[Tried]:
    """Evaluate the predictions under every setting; return the settings: first those that give the claimed numbers.

    protocols, nms, top_k: the protocols and filters to try; classes with and without no_interaction are tried, too.
    split: a zero-shot split, a key of `vocabulary.unseen`. named: the names of the protocols that the user asked for,
    which must be computable. tags: further fields of all rows. Raises `UsageError` if no protocol has the subsets of
    the numbers, `DataError` for what is wrong with a stream."""
    subsets = {protocol.name: list(subset_classes(vocabulary, protocol, split=split)) for protocol in protocols}
    if not any(map(claim.readings, subsets.values())):
        subset_text = "; ".join(f"{name}: {', '.join(names)}" for name, names in subsets.items())
        raise UsageError(f"{claim.text}: no protocol has these subsets ({subset_text}); name them, as in full=46.06")
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=allow_uncounted)
    tried_protocols = combine_filters(choose_computable(truth, protocols, named), nms, top_k)
    tally = tally_predictions(predictions, truth, tried_protocols, Filters(allow_uncounted=allow_uncounted), policy)
    note = tally.gap_note(tried_protocols[0])
    most_predictions = int(np.bincount(tally.listed.image).max(initial=0))  # of one image
    tried_settings: list[Tried] = []
    for protocol, results in tally.results(vocabulary):
        filters = protocol.filters or Filters()
        if filters.top_k is not None and filters.top_k >= most_predictions:
            continue  # it removes nothing
        droppable = vocabulary.no_interaction_ids and not protocol.drop_no_interaction
        for ignored in (False, True) if droppable else (False,):
            requested = Wanted(split=split, ignore_no_interaction=ignored)
            signed = {**filters.signature(), "data": vocabulary.signed, **requested.settings()}
            signed |= tally.settings(protocol)
            options = _options_text(filters, ignore_no_interaction=ignored)
            # the protocol's own view names the filters, which `options` states
            view = {"options": options}
            evaluated = Evaluated(protocol, vocabulary, requested, results, signed, tags, view, note=note)
            # the claim may be understood in several ways: a single number may be that of any subset
            subsets_with_ap = [mean.subset for mean in evaluated.means if mean.ap is not None]
            tried_settings += [Tried(evaluated, options, printed) for printed in claim.readings(subsets_with_ap)]
    if not tried_settings:
        raise DataError("no class of these subsets is annotated; name others in NUMBERS", place=gt.name)
    return sorted(tried_settings, key=lambda tried: tried.order)


def _options_text(filters: Filters, *, ignore_no_interaction: bool) -> str:
    """Return the options of `hoicli eval` that compute with these settings: `--top-k 50 --nms 0.7`, "" for none."""
    options = []
    if filters.top_k is not None:
        options.append(f"--top-k {filters.top_k}")
    if filters.nms is not None:
        options.append(f"--nms {str(filters.nms).removesuffix('/1/0.5')}")  # the usual exponents need not be given
    if ignore_no_interaction:
        options.append("--ignore-no-interaction")
    return " ".join(options)


_NAMED = 4
"""How many settings a sentence names; the table has them all."""


def claim_sentence(claim: Claim, tried_settings: Sequence[Tried]) -> str:
    """Return a sentence on which settings give the claimed numbers, or if none does, on the nearest one.
    tried_settings: all that were tried, in the order of `Tried.order`."""
    fitting = [tried for tried in tried_settings if tried.rounding]
    out_of = f"of the {len(tried_settings)} settings tried"
    if not fitting:
        nearest = tried_settings[0]
        largest_gap = max(abs(nearest.values[subset] - float(number)) for subset, number in nearest.printed.items())
        return (
            f"none {out_of} gives {claim.text}; the nearest is {nearest.setting_text()}: {nearest.text()}, up to "
            f"{largest_gap:.2g} away. So something else differs: the predictions, the ground truth or the evaluator"
        )
    settings_by_values: dict[str, list[str]] = {}  # settings whose values are equal to four more digits are alike
    for tried in fitting:
        settings_by_values.setdefault(tried.text(more=4), []).append(tried.setting_text())
    caution = "; a single number often fits by chance, so give more of the line" if len(claim.numbers) == 1 else ""
    if len(settings_by_values) == 1:
        others = len(fitting) - 1
        also = f"so do {others} more: nothing in this dump tells them apart" if others else f"no other {out_of} does"
        return f"{fitting[0].setting_text()} gives {claim.text}; {also}{caution}"
    names = [f"{name}{f' and {len(alike)} alike' if alike else ''}" for name, *alike in settings_by_values.values()]
    more_names = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    apart = "digits that are not printed tell them apart"
    return f"{len(fitting)} {out_of} give {claim.text}: {'; '.join(names[:_NAMED])}{more_names}; {apart}{caution}"
