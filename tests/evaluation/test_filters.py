"""Options and tags that mean nothing are refused in one line."""

from __future__ import annotations

import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.records.result_rows import parse_tags


@pytest.mark.parametrize("nms", ["0.5/nan/1", "0.5/1/nan", "0.5/-0.1/1", "0.5/1", "0.5/1/1/1", "x", "", "2", "nan"])
def test_pair_nms_that_cannot_be(nms: str) -> None:
    with pytest.raises(UsageError, match=f"^--nms {nms}"):
        Filters.from_options(None, nms, False)


def test_exponents_of_pair_nms() -> None:
    assert Filters.from_options(None, 0.5, False) == Filters.from_options(None, "0.5/1/0.5", False)
    assert Filters.from_options(3, "0.5/0.5/1", False).signature() == {"topk": "3", "nms": "0.5/0.5/1"}


def test_tags_are_text() -> None:
    with pytest.raises(UsageError, match="no UTF-8"):
        parse_tags(["model=\udcff"])
