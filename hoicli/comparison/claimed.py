"""Which settings give the numbers that a paper prints: a dump is matched once, and ranked under each setting."""

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
from hoicli.records.result_rows import Row, percent, result_row, row_ends
from hoicli.vocabulary.labels import Vocabulary

_MODES = {"half up": ROUND_HALF_UP, "half to even": ROUND_HALF_EVEN, "cut off": ROUND_DOWN}
_ROUNDINGS = (({"half up", "half to even"}, "rounded"), ({"half up"}, "rounded half up"),
              ({"half to even"}, "rounded half to even"), ({"cut off"}, "cut off"))  # fmt: skip
"""The modes that all print a claim, and their name, the usual first; without a number half way both roundings agree."""


@dataclass(frozen=True)
class Claim:
    """Numbers as a paper prints them, in percent, each with its subset, "" if none is named. text: as it was given."""

    text: str
    numbers: Sequence[tuple[str, Decimal]]

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Parse `46.06/43.72/46.76`, or with subsets `full=46.06/rare=43.72`; any other text raises `UsageError`."""
        numbers: list[tuple[str, Decimal]] = []
        for part in text.split("/"):
            name, equals, number = part.strip().rpartition("=")
            if not is_number(number) or bool(name) != bool(equals):
                problem = f"{part!r} is no number as papers print it, in percent"
                raise UsageError(f"{text}: {problem}; for example 46.06/43.72/46.76, or full=46.06")
            numbers.append((name, Decimal(number)))
        if all(number <= 1 for _, number in numbers) and any(_digits(number) > 2 for _, number in numbers):
            raise UsageError(f"{text}: these are fractions; give percent, as papers do: 32.98, not 0.3298")
        names = [name for name, _ in numbers if name]
        if names and len(set(names)) < len(numbers):
            raise UsageError(f"{text}: name the subset of each number, each once, or of none")
        return cls(text, numbers)

    def readings(self, subsets: Sequence[str]) -> list[dict[str, Decimal]]:
        """Return what the numbers may be, each as numbers by subset: named subsets as they are; a single number as that
        of any subset; several as those of the first subsets, in order. Empty if `subsets`, a protocol's, lack one."""
        named = dict(self.numbers)
        if "" not in named:
            return [named] if named.keys() <= set(subsets) else []
        if len(self.numbers) == 1:
            return [{subset: named[""]} for subset in subsets]
        numbers = [number for _, number in self.numbers]
        return [dict(zip(subsets, numbers, strict=False))] if len(numbers) <= len(subsets) else []


def is_number(text: str) -> bool:
    """Return whether a text is a number as papers print it, in percent."""
    return bool(re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text, re.ASCII)) and Decimal(text) <= 100


def rounding(numbers: Iterable[tuple[float, Decimal]]) -> str:
    """Return which of _ROUNDINGS prints every value as the number paired with it, "" if none does."""
    fitting = set(_MODES)
    for value, number in numbers:
        exact = Decimal(repr(round(value, 9)))  # without what is left over of sums of doubles
        fitting &= {name for name, mode in _MODES.items() if exact.quantize(number, mode) == number}
    return next((name for modes, name in _ROUNDINGS if modes <= fitting), "")


def _digits(number: Decimal) -> int:
    """Return how many digits a number has behind the point."""
    return -int(number.as_tuple().exponent)


@dataclass(frozen=True)
class Tried:
    """A setting tried for a claim: its results, its options of `hoicli eval` ("" for none), the claim by subset."""

    evaluated: Evaluated
    options: str
    printed: Mapping[str, Decimal]

    def setting_text(self) -> str:
        """Return the setting in words; in brackets the subset, if it is one, and an unusual way of rounding."""
        subset = [*self.printed] if len(self.printed) == 1 else []
        special = ", ".join([*subset, *({self.rounding} - {"", "rounded"})])
        return " ".join(filter(None, (self.evaluated.protocol.name, self.options, special and f"({special})")))

    @cached_property
    def values(self) -> dict[str, float]:
        """Return the mAP in percent of each subset that has classes."""
        return {mean.subset: 100.0 * mean.ap for mean in self.evaluated.means if mean.ap is not None}

    @cached_property
    def rounding(self) -> str:
        """Return which way of rounding prints the values as claimed, "" if none does."""
        return rounding((self.values[subset], number) for subset, number in self.printed.items())

    @cached_property
    def off(self) -> dict[str, float]:
        """Return how far each value is from the claimed number, in units of its last digit."""
        printed = self.printed.items()
        return {subset: abs(self.values[subset] - float(number)) * 10 ** _digits(number) for subset, number in printed}

    @property
    def order(self) -> tuple[int, int, float]:
        """Return the key to sort tried settings by: those that fit first, by how usual the rounding is, then by the
        fewest options; then the others, the nearest first."""
        names = [*(name for _, name in _ROUNDINGS), ""]
        options = self.options.count("--") if self.rounding else 0
        return names.index(self.rounding), options, max(self.off.values())

    def text(self, more: int = 0) -> str:
        """Return the values with as many digits as the claim prints, and `more` further ones."""
        printed = self.printed.items()
        return "/".join(f"{self.values[subset]:.{_digits(number) + more}f}" for subset, number in printed)

    def rows(self) -> Iterator[Row]:
        """Yield a result row for each claimed number."""
        evaluated = self.evaluated
        ends = row_ends(evaluated.protocol.name, {**evaluated.tags, "options": self.options}, evaluated.settings)
        for mean in evaluated.means:
            if mean.subset in self.printed:
                yield result_row(
                    "mAP", subset=mean.subset, value=percent(mean.ap), n=mean.classes, unit="%",
                    claimed=float(self.printed[mean.subset]), digits_off=self.off[mean.subset],
                    fits=self.rounding or None, **ends,
                )  # fmt: skip

    def line(self) -> Row:
        """Return this setting as a line of a table."""
        values = zip(self.printed, self.text(more=2).split("/"), strict=True)
        distance = f"{max(self.off.values()):.1f}"
        return {"fits": self.rounding or "no", "protocol": self.evaluated.protocol.name, "options": self.options or "-",
                "digits off": distance, **dict(values)}  # fmt: skip


def settings_tried(protocols: Sequence[Protocol], nms: Sequence[str], top_k: Sequence[int]) -> list[Protocol]:
    """Return each protocol with each combination of filters, except a `top_k` that removes nothing since the protocol
    itself counts no more triplets per image. nms: thresholds."""
    filters = dict.fromkeys(
        Filters.from_options(k, threshold, False) for threshold, k in product((None, *nms), (None, *top_k))
    )
    return [
        replace(protocol, filters=filters_tried, view=(*filters_tried.signature().items(),))
        for protocol, filters_tried in product(protocols, filters)
        if filters_tried.top_k is None or filters_tried.top_k < (protocol.triplets_per_image or filters_tried.top_k + 1)
    ]


def search(
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
    """Return every setting that was tried, in `Tried.order`: what fits first, then the nearest. nms, top_k: the filters
    to try. split: a key of `vocabulary.unseen`. named: the protocols that the ground truth must serve.

    Raises `UsageError` if no protocol has the subsets of the numbers, `DataError` for what is wrong with a stream."""
    subsets = {protocol.name: list(subset_classes(vocabulary, protocol, split=split)) for protocol in protocols}
    if not any(map(claim.readings, subsets.values())):
        subset_text = "; ".join(f"{name}: {', '.join(names)}" for name, names in subsets.items())
        raise UsageError(f"{claim.text}: no protocol has these subsets ({subset_text}); name them, as in full=46.06")
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=allow_uncounted)
    tried_protocols = settings_tried(choose_computable(truth, protocols, named), nms, top_k)
    tally = tally_predictions(predictions, truth, tried_protocols, Filters(allow_uncounted=allow_uncounted), policy)
    largest_image = int(np.bincount(tally.listed.image).max(initial=0))
    tried_settings: list[Tried] = []
    for protocol, results in tally.results(vocabulary):
        filters = protocol.filters or Filters()
        if filters.top_k is not None and filters.top_k >= largest_image:
            continue  # it removes nothing
        droppable = vocabulary.no_interaction_ids and not protocol.drop_no_interaction
        for ignored in (False, True) if droppable else (False,):
            requested = Wanted(split, ignored)
            signed = {**filters.signature(), "data": vocabulary.signed, **requested.settings()}
            signed |= tally.settings(protocol)
            evaluated = Evaluated(protocol, vocabulary, requested, results, signed, tags, {})
            option_texts = [f"--{key} {value.removesuffix('/1/0.5')}" for key, value in filters.signature().items()]
            options = " ".join(option_texts + ["--ignore-no-interaction"] * ignored).replace("topk", "top-k")
            subsets_with_ap = [mean.subset for mean in evaluated.means if mean.ap is not None]
            tried_settings += [Tried(evaluated, options, printed) for printed in claim.readings(subsets_with_ap)]
    if not tried_settings:
        raise DataError("no class of these subsets is annotated; name others in NUMBERS", place=gt.name)
    return sorted(tried_settings, key=lambda tried: tried.order)


_NAMED = 4
"""How many settings a sentence names; the table has them all."""


def claim_sentence(claim: Claim, tried_settings: Sequence[Tried]) -> str:
    """Return a sentence on which settings give the claimed numbers and how they differ, else on the nearest one."""
    fitting = [tried for tried in tried_settings if tried.rounding]
    out_of = f"of the {len(tried_settings)} settings tried"
    if not fitting:
        nearest = tried_settings[0]
        largest_gap = max(abs(nearest.values[subset] - float(number)) for subset, number in nearest.printed.items())
        return (
            f"none {out_of} gives {claim.text}; the nearest is {nearest.setting_text()}: {nearest.text()}, up to "
            f"{largest_gap:.2g} away. So something else differs: the predictions, the ground truth or the evaluator"
        )
    alike: dict[str, list[str]] = {}
    for tried in fitting:
        alike.setdefault(tried.text(more=4), []).append(tried.setting_text())
    caution = "; a single number often fits by chance, so give more of the line" if len(claim.numbers) == 1 else ""
    if len(alike) == 1:
        others = len(fitting) - 1
        also = f"so do {others} more: nothing in this dump tells them apart" if others else f"no other {out_of} does"
        return f"{fitting[0].setting_text()} gives {claim.text}; {also}{caution}"
    names = [f"{name}{f' and {len(others)} alike' if others else ''}" for name, *others in alike.values()]
    more_names = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    apart = "digits that are not printed tell them apart"
    return f"{len(fitting)} {out_of} give {claim.text}: {'; '.join(names[:_NAMED])}{more_names}; {apart}{caution}"
