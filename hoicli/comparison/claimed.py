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
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted
from hoicli.evaluation.run import read_truth, tally_predictions
from hoicli.evaluation.tally import subset_classes
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row, percent, result_row, row_ends
from hoicli.vocabulary.labels import Vocabulary

_MODES = {"half up": ROUND_HALF_UP, "half to even": ROUND_HALF_EVEN, "cut off": ROUND_DOWN}
_ROUNDINGS = (({"half up", "half to even"}, "rounded"), ({"half up"}, "rounded half up"),
              ({"half to even"}, "rounded half to even"), ({"cut off"}, "cut off"))  # fmt: skip
"""How numbers may have been printed, the usual way first; where no number is half way, both halves are the same."""


@dataclass(frozen=True)
class Claim:
    """Numbers as they are printed, in percent, each with its subset, "" where that is not said."""

    text: str
    numbers: Sequence[tuple[str, Decimal]]

    @classmethod
    def parse(cls, text: str) -> Claim:
        """`46.06/43.72/46.76`, or with subsets `full=46.06/rare=43.72`. Raises `UsageError` for anything else."""
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
        """Return what the numbers may be: of the subsets that are named; else one is of any, several are of the first
        ones, in their order. Nothing where there are no such subsets."""
        named = dict(self.numbers)
        if "" not in named:
            return [named] if named.keys() <= set(subsets) else []
        if len(self.numbers) == 1:
            return [{subset: named[""]} for subset in subsets]
        numbers = [number for _, number in self.numbers]
        return [dict(zip(subsets, numbers, strict=False))] if len(numbers) <= len(subsets) else []


def is_number(text: str) -> bool:
    """Whether a text is a number as papers print it, in percent."""
    return bool(re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text, re.ASCII)) and Decimal(text) <= 100


def rounding(numbers: Iterable[tuple[float, Decimal]]) -> str:
    """How every value is printed as the number beside it: one of _ROUNDINGS, "" if that is no way to print them all."""
    ways = set(_MODES)
    for value, number in numbers:
        exact = Decimal(repr(round(value, 9)))  # without what is left over of sums of doubles
        ways &= {way for way, mode in _MODES.items() if exact.quantize(number, mode) == number}
    return next((name for needed, name in _ROUNDINGS if needed <= ways), "")


def _digits(number: Decimal) -> int:
    """Digits behind the point."""
    return -int(number.as_tuple().exponent)


@dataclass(frozen=True)
class Tried:
    """What a setting gives where a claim has `printed`, by subset. options: those of `hoicli eval`, "" for none."""

    evaluated: Evaluated
    options: str
    printed: Mapping[str, Decimal]

    def setting_text(self) -> str:
        """The setting in words, with what is not as usual in brackets."""
        subset = [*self.printed] if len(self.printed) == 1 else []
        special = ", ".join([*subset, *({self.rounding} - {"", "rounded"})])
        return " ".join(filter(None, (self.evaluated.protocol.name, self.options, special and f"({special})")))

    @cached_property
    def values(self) -> dict[str, float]:
        """In percent, of the subsets that have classes."""
        return {mean.subset: 100.0 * mean.ap for mean in self.evaluated.means if mean.ap is not None}

    @cached_property
    def rounding(self) -> str:
        """Return how its values are printed as they are claimed to be, "" if they are not."""
        return rounding((self.values[subset], number) for subset, number in self.printed.items())

    @cached_property
    def off(self) -> dict[str, float]:
        """The distance of each value, in units of the last printed digit."""
        printed = self.printed.items()
        return {subset: abs(self.values[subset] - float(number)) * 10 ** _digits(number) for subset, number in printed}

    @property
    def order(self) -> tuple[int, int, float]:
        """Return what fits comes first, of it what is printed in the usual way, with the fewest options; then the
        nearest."""
        names = [*(name for _, name in _ROUNDINGS), ""]
        return names.index(self.rounding), self.options.count("--") * bool(self.rounding), max(self.off.values())

    def text(self, more: int = 0) -> str:
        """Its values with as many digits as are printed, and some more."""
        printed = self.printed.items()
        return "/".join(f"{self.values[subset]:.{_digits(number) + more}f}" for subset, number in printed)

    def rows(self) -> Iterator[Row]:
        """A row for each number."""
        of = self.evaluated
        ends = row_ends(of.protocol.name, {**of.tags, "options": self.options}, of.settings)
        for mean in of.means:
            if mean.subset in self.printed:
                yield result_row(
                    "mAP", subset=mean.subset, value=percent(mean.ap), n=mean.classes, unit="%",
                    claimed=float(self.printed[mean.subset]), digits_off=self.off[mean.subset],
                    fits=self.rounding or None, **ends,
                )  # fmt: skip

    def line(self) -> Row:
        """It as a line of a table."""
        values = zip(self.printed, self.text(more=2).split("/"), strict=True)
        off = f"{max(self.off.values()):.1f}"
        return {"fits": self.rounding or "no", "protocol": self.evaluated.protocol.name, "options": self.options or "-",
                "digits off": off, **dict(values)}  # fmt: skip


def settings_tried(protocols: Sequence[Protocol], nms: Sequence[str], top_k: Sequence[int]) -> list[Protocol]:
    """Each protocol with each combination of filters, as views of it; without those that its own cap makes idle."""
    filters = dict.fromkeys(
        Filters.from_options(k, threshold, False) for threshold, k in product((None, *nms), (None, *top_k))
    )
    return [
        replace(row, filters=filters_tried, view=(*filters_tried.signature().items(),))
        for row, filters_tried in product(protocols, filters)
        if filters_tried.top_k is None or filters_tried.top_k < (row.triplets_per_image or filters_tried.top_k + 1)
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
    """Every setting, what fits and what is nearest first. split: a key of `vocabulary.unseen`. named: the protocols
    that the ground truth must serve.

    Raises `UsageError` for numbers that no protocol has subsets for, `DataError` for what is wrong with a stream.
    """
    subsets = {row.name: list(subset_classes(vocabulary, row, split=split)) for row in protocols}
    if not any(map(claim.readings, subsets.values())):
        subset_text = "; ".join(f"{name}: {', '.join(names)}" for name, names in subsets.items())
        raise UsageError(f"{claim.text}: no protocol has these subsets ({subset_text}); name them, as in full=46.06")
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=allow_uncounted)
    rows = settings_tried(choose_computable(truth, protocols, named), nms, top_k)
    tally = tally_predictions(predictions, truth, rows, Filters(allow_uncounted=allow_uncounted), policy)
    largest_image = int(np.bincount(tally.listed.image).max(initial=0))
    tried_settings: list[Tried] = []
    for row, results in tally.results(vocabulary):
        filters = row.filters or Filters()
        if filters.top_k is not None and filters.top_k >= largest_image:
            continue  # it removes nothing
        for ignored in (False, True) if vocabulary.no_interaction_ids and not row.drop_no_interaction else (False,):
            requested = Wanted(split, ignored)
            signed = {**filters.signature(), "data": vocabulary.signed, **requested.settings(), **tally.settings(row)}
            evaluated = Evaluated(row, vocabulary, requested, results, signed, tags, {})
            option_texts = [f"--{key} {value.removesuffix('/1/0.5')}" for key, value in filters.signature().items()]
            options = " ".join(option_texts + ["--ignore-no-interaction"] * ignored).replace("topk", "top-k")
            has = [mean.subset for mean in evaluated.means if mean.ap is not None]
            tried_settings += [Tried(evaluated, options, printed) for printed in claim.readings(has)]
    if not tried_settings:
        raise DataError("no class of these subsets is annotated; name others in NUMBERS", place=gt.name)
    return sorted(tried_settings, key=lambda tried: tried.order)


_NAMED = 4
"""Settings that a sentence names; the table has them all."""


def claim_sentence(claim: Claim, tried_settings: Sequence[Tried]) -> str:
    """Return what fits and what tells it apart, or what is nearest, in a sentence."""
    fitting, of = [tried for tried in tried_settings if tried.rounding], f"of the {len(tried_settings)} settings tried"
    if not fitting:
        near = tried_settings[0]
        largest_gap = max(abs(near.values[subset] - float(number)) for subset, number in near.printed.items())
        return (
            f"none {of} gives {claim.text}; the nearest is {near.setting_text()}: {near.text()}, up to "
            f"{largest_gap:.2g} away. So something else differs: the predictions, the ground truth or the evaluator"
        )
    alike: dict[str, list[str]] = {}
    for tried in fitting:
        alike.setdefault(tried.text(more=4), []).append(tried.setting_text())
    alone = "; a single number often fits by chance, so give more of the line" if len(claim.numbers) == 1 else ""
    if len(alike) == 1:
        others = len(fitting) - 1
        same = f"so do {others} more: nothing in this dump tells them apart" if others else f"no other {of} does"
        return f"{fitting[0].setting_text()} gives {claim.text}; {same}{alone}"
    names = [f"{name}{f' and {len(others)} alike' if others else ''}" for name, *others in alike.values()]
    more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    apart = "digits that are not printed tell them apart"
    return f"{len(fitting)} {of} give {claim.text}: {'; '.join(names[:_NAMED])}{more}; {apart}{alone}"
