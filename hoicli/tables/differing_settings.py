"""Values of a table that were made with other settings than most of their columns: which, and what a note says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from hoicli.errors import DataError
from hoicli.records.result_rows import Row, joined_settings, settings_of
from hoicli.tables.cells import DRAWN, Head, Place, place_of

_INERT = DRAWN | {"split", "published", "gt", "listed"}
"""Settings that do not change what a value says; the ground truth and its order are compared by themselves, as
published numbers name neither, and rows of hoicli 1.0 no order."""

_MODELS_OWN = frozenset({"nms", "topk", "det", "pairnms", "pairscore", "verbscore"})
"""Settings that are a part of a method: they may differ between the lines of a table, whose settings name them."""


class Otherwise(NamedTuple):
    """How a value was made with other settings than most values of its group of columns. own_settings: those that only
    this value has; usual: those that the others have instead; note: the sentence below the table that says so."""

    own_settings: Mapping[str, str]
    usual: Mapping[str, str]
    note: str

    def settings_besides_note(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of one of the value's rows, with the usual ones in place of those that the note states:
        the line of settings below the table then counts this value among the others."""
        shared = {key: value for key, value in settings.items() if self.own_settings.get(key) != value}
        replaced = {key: value for key, value in self.usual.items() if settings.get(key) == self.own_settings.get(key)}
        return shared | replaced


def made_otherwise(
    values_by_place: Mapping[Place, Sequence[Row]], columns: Sequence[Head], settings_shown: Collection[str]
) -> dict[Place, Otherwise]:
    """Return the values that were made with other settings than most values of their group of columns, and how.

    values_by_place: the rows of each value; columns: the group and head of each column. settings_shown: the keys that
    name lines and columns, in which values may differ. Published values that do not compare are left out, since they
    have notes of their own. Raises `DataError` for a group of columns with two datasets."""
    apart: dict[Place, Otherwise] = {}
    for row_by_place in _rows_by_group(values_by_place, columns):
        settings_by_place = {place: settings_of(row) for place, row in row_by_place.items()}
        if "data" not in settings_shown:
            _check_one_dataset(row_by_place.values())
        usual = _UsualSettings.among(settings_by_place.values(), settings_shown)
        for place, settings in settings_by_place.items():
            own_settings, usual_settings = usual.both_sides(settings)
            if own_settings != usual_settings:
                apart[place] = usual.otherwise(settings, own_settings, usual_settings)
    return apart


def _rows_by_group(
    values_by_place: Mapping[Place, Sequence[Row]], columns: Sequence[Head]
) -> Collection[Mapping[Place, Row]]:
    """Return, for each group of columns, the row at each of its places. A column without a group is a group by itself.
    The first row of a place stands for all of its rows; published rows that do not compare are left out."""
    groups: dict[Head, dict[Place, Row]] = {}
    for place, rows in values_by_place.items():
        if rows[0].get("comparable") is not False:
            group, head = columns[place[1]]
            groups.setdefault((group, "" if group else head), {})[place] = rows[0]
    return groups.values()


class _UsualSettings(NamedTuple):
    """The settings that most values of a group of columns were made with.

    settings: those that change a value, without the ground truth and its order; ignored: the keys of settings that are
    not compared. truth: the name of the most frequent ground truth; digest: its name with the digest of its content, if
    any value states one; orders: for each protocol, a digest of the order of its triplets. truth_shown: whether lines
    or columns are named by ground truth, so that values may differ in it."""

    settings: Mapping[str, str]
    ignored: Collection[str]
    truth: str
    digest: str
    orders: Mapping[str, str]
    truth_shown: bool

    @classmethod
    def among(cls, every_settings: Collection[Mapping[str, str]], settings_shown: Collection[str]) -> _UsualSettings:
        """Return the usual settings of a group of columns. every_settings: the settings of each of its values;
        settings_shown: the keys that name lines and columns."""
        # not compared: settings that change no value, those that are a part of a method (such as nms), those in names
        ignored = {*_INERT, *_MODELS_OWN, *settings_shown}
        counts = Counter(_drop_keys(settings, ignored) for settings in every_settings)
        # the most frequent settings; of equally frequent ones the fewest, then the first by name
        usual = min(counts, key=lambda settings: (-counts[settings], len(settings), settings))
        digests = [settings["gt"] for settings in every_settings if "gt" in settings]
        truths = Counter(map(_truth, digests))
        # the most frequent ground truth; of equally frequent ones first those with a set in their name (hico-test)
        truth = min(truths, key=lambda digest: (-truths[digest], "-" not in digest, digest)) if truths else ""
        full_digest = max((digest for digest in digests if _truth(digest) == truth), key=len, default="")
        orders = _usual_orders(settings for settings in every_settings if _truth(settings.get("gt", "")) == truth)
        return cls(dict(usual), ignored, truth, full_digest, orders, "gt" in settings_shown)

    def _order(self, settings: Mapping[str, str]) -> str:
        """Return the usual order of the ground truth's triplets under a value's protocol, "" if not known."""
        return self.orders.get(settings.get("protocol", ""), "")

    def both_sides(self, settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the settings of a value that are compared, and the usual ones; they are equal unless the value was
        made otherwise. The ground truth and its order (`gt`, `listed`) are only in both if they differ."""
        own_settings, usual = dict(_drop_keys(settings, self.ignored)), dict(self.settings)
        usual_order = self._order(settings)
        if settings.get("listed", usual_order) != usual_order and _truth(settings["gt"]) == self.truth:
            own_settings["listed"], usual["listed"] = settings["listed"], usual_order
        if _truth(settings.get("gt", self.truth)) != self.truth and not self.truth_shown:
            own_settings["gt"], usual["gt"] = settings["gt"], self.truth
        return own_settings, usual

    def otherwise(
        self, settings: Mapping[str, str], own_settings: Mapping[str, str], usual: Mapping[str, str]
    ) -> Otherwise:
        """Return how a value was made otherwise. settings: all settings of the value; own_settings, usual: those
        of them that are compared, and the usual ones."""
        only_own, only_usual = _drop_shared(own_settings, usual), _drop_shared(usual, own_settings)
        note = _difference_text(only_own, only_usual)
        if self.truth and ("gt" in only_usual or "published" in settings):
            # The note names the ground truths without digests; the settings of both sides state them in full.
            usual_order = self._order(settings)
            only_usual |= {"gt": self.digest} | ({"listed": usual_order} if usual_order else {})
            only_own |= {"gt": settings["gt"]} if "gt" in settings else {}
        return Otherwise(only_own, only_usual, note)


def _drop_keys(settings: Mapping[str, str], ignored: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the settings (key, value) whose keys are not ignored."""
    return tuple(setting for setting in settings.items() if setting[0] not in ignored)


def of_unknown_order(values_by_place: Mapping[Place, Sequence[Row]]) -> set[Place]:
    """Return the values whose rows do not say in which order their ground truth lists its triplets (rows of hoicli
    1.0), although other rows of the same ground truth and protocol say it. values_by_place: the rows of each value."""
    settings_by_place = {place: settings_of(rows[0]) for place, rows in values_by_place.items()}
    measured = {place: (settings.get("gt"), settings.get("protocol")) for place, settings in settings_by_place.items()}
    without_order = {place for place, settings in settings_by_place.items() if "listed" not in settings}
    with_order = {measured[place] for place in measured.keys() - without_order}
    return {place for place in without_order if measured[place] in with_order}


def _usual_orders(every_settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return for each protocol the most frequent order of the ground truth's triplets (the setting `listed`, a digest);
    of equally frequent ones, the last by name."""
    counts = Counter(
        (settings.get("protocol", ""), settings["listed"]) for settings in every_settings if "listed" in settings
    )
    ascending = sorted(counts, key=lambda order: (counts[order], order))
    return dict(ascending)  # a later (protocol, listed) replaces an earlier one, so the most frequent order stays


def _truth(digest: str) -> str:
    """Return the name of a ground truth without the digest of its content: "hico-test" for "hico-test-7cba1727".
    Published numbers state only the name."""
    return re.sub(r"(?<=.)-[0-9a-f]{8}$", "", digest)


def _check_one_dataset(rows: Iterable[Row]) -> None:
    """Raise `DataError` if the rows, which belong in one group of columns, are of two datasets."""
    first: dict[str, Row] = {}
    for row in rows:
        if (data := settings_of(row).get("data")) is not None:
            first.setdefault(data, row)
    if len(first) > 1:
        (first_dataset, before), (other, after) = [*first.items()][:2]
        other_place = place_of(before) or "another row"
        raise DataError(
            f"is of {other}, {other_place} of {first_dataset}: no column can hold both", place=place_of(after)
        )


def _drop_shared(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that `others` lacks or has with another value."""
    return {key: value for key, value in settings.items() if others.get(key) != value}


def _difference_text(own_settings: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """Return the note that says which settings a value alone has, and which ones the others have instead."""
    own_text, usual_text = joined_settings(own_settings), joined_settings(usual)
    difference = f"made with {own_text}" if own_text else f"made without {usual_text}"
    others = f" ({usual_text})" if own_text and usual_text else ""
    return f"{difference}, unlike the others{others}: not ranked with them"
