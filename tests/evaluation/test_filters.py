"""Options and tags that mean nothing are refused in one line."""

from __future__ import annotations

import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.records.results import parse_tags


@pytest.mark.parametrize("exponents", [(float("nan"), 1.0), (1.0, float("nan")), (-0.1, 1.0)])
def test_exponents_of_an_overlap(exponents: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="--nms-alpha, --nms-beta"):
        Filters(nms=0.5, nms_alpha=exponents[0], nms_beta=exponents[1])


def test_tags_are_text() -> None:
    with pytest.raises(UsageError, match="no UTF-8"):
        parse_tags(["model=\udcff"])
