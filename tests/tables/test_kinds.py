"""Each row has one kind, told by what only rows of this kind say."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.tables.kinds import CLASS, DIFFERENCE, IMAGE, KINDS, MEAN, OTHER, ROBUSTNESS, Kind, kind_of


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"check": "boxes", "verb": "ride"}, OTHER),
        ({"metric": "mAP_diff", "p_bootstrap": None}, DIFFERENCE),
        ({"metric": "AP_diff", "verb": "ride", "p_bootstrap": 0.5}, DIFFERENCE),
        ({"metric": "unfound_gt", "image_id": "one"}, IMAGE),
        ({"metric": "AP", "verb": "ride", "object": None}, CLASS),
        ({"metric": "mri"}, ROBUSTNESS),
        ({"metric": "mean", "severity": 1}, ROBUSTNESS),
        ({"metric": "mean"}, MEAN),
        ({"metric": "mAP", "corruption": "rain"}, MEAN),
    ],
)
def test_kinds(row: dict[str, Any], kind: Kind) -> None:
    assert kind_of(row) is kind


def test_names_differ() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
