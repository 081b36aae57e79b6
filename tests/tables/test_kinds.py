"""Each row has one kind, told by what only rows of this kind say."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.tables.kinds import KINDS, kind_of


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"check": "boxes", "verb": "ride"}, "other"),
        ({"metric": "mAP_diff", "p_bootstrap": None}, "difference"),
        ({"metric": "AP_diff", "verb": "ride", "p_bootstrap": 0.5}, "difference"),
        ({"metric": "unfound_gt", "image_id": "one"}, "image"),
        ({"metric": "AP", "verb": "ride", "object": None}, "class"),
        ({"metric": "mri"}, "robustness"),
        ({"metric": "mean", "severity": 1}, "robustness"),
        ({"metric": "mean"}, "mean"),
        ({"metric": "mAP", "corruption": "rain"}, "mean"),
    ],
)
def test_kinds(row: dict[str, Any], kind: str) -> None:
    assert kind_of(row).name == kind


def test_names_differ() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
