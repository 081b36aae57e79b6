"""The same items rated twice by the same raters: how many ratings were updated, and how far (the SHOE supplement, 6.2).

The supplement prints 7.65 % updated [6.29, 9.00] and a change of 1.14 [1.11, 1.17]. Of 500 items and five raters no
whole number of ratings is 7.65 % (191 are 7.64), of four raters 153 are; were these independent, the interval would be
[6.49, 8.81]. It is wider, as it is where an item's ratings are updated together: items are resampled here, whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hoicli.agreement.ratings import Ratings
from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.records.kit import Floats


def given_twice(first: Ratings, second: Ratings, among: Sequence[str]) -> tuple[list[str], Floats]:
    """Those of the raters `among` with ratings in both, and [items, raters] by how much each differs the second time,
    NaN for one that is not in both. Says on stderr how many are in one alone.

    Raises `DataError` where none is in both.
    """
    items = sorted(set(first.items) & set(second.items))
    raters = [rater for rater in among if rater in second.raters]
    one, two = (
        table.of(raters)[[table.items.index(item) for item in items]] if items else np.empty((0, len(raters)))
        for table in (first, second)
    )
    change: Floats = two - one
    both = int((~np.isnan(change)).sum())
    if not both:
        raise DataError(
            f"{arg('again')}: none of its ratings is of an item and a person of the first ratings; use their names"
        )
    once = int((~np.isnan(first.of(among))).sum()) - both
    later = int((~np.isnan(second.values)).sum()) - both
    for number, where in (
        (once, "without a second one"),
        (later, f"of {arg('again')} without a first one, or no person's"),
    ):
        if number:
            note(f"{number:,} rating{'' if number == 1 else 's'} {where}: in no count of updates")
    rated = [at for at in range(len(raters)) if not np.isnan(change[:, at]).all()]
    return [raters[at] for at in rated], change[:, rated]


def updates_of(change: Floats) -> tuple[Floats, Floats]:
    """Of the differences [items, raters], NaN for none: two times [items, 2], of which `share` is the share of ratings,
    given twice, that are another one the second time, and by how many levels these are, on average, up or down."""
    given = (~np.isnan(change)).sum(axis=1)
    change, given = change[given > 0], given[given > 0]
    changed = ((change != 0) & ~np.isnan(change)).sum(axis=1)
    moved = np.nansum(np.abs(change), axis=1)
    updated, size = (np.stack(columns, axis=1).astype(np.float64) for columns in ((changed, given), (moved, changed)))
    return updated, size
