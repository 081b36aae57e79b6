"""Signatures."""

from __future__ import annotations

import pytest

from hoicli.errors import DataError
from hoicli.records.results import settings_of, signature


def test_no_value_of_a_signature_is_two() -> None:
    assert settings_of({"signature": signature({"data": "hico", "slice": "own@1/a:b"})})["slice"] == "own@1/a:b"
    with pytest.raises(DataError, match=r"^slice: 'x\|gt:0' would read as two settings in a signature"):
        signature({"data": "hico", "slice": "x|gt:0"})
