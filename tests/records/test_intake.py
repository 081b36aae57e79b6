"""A register of where images were seen, which names the place of the first."""

from __future__ import annotations

import pytest

from hoicli.errors import DataError
from hoicli.io.streams import Item, Line
from hoicli.records.intake import ImageRegister


@pytest.mark.parametrize("known", [None, ["a", "b", "c"]])
def test_a_register_knows_the_line_of_each_image(known: list[str] | None) -> None:
    register = ImageRegister(known)
    lines = [Line("x.jsonl", 3, b""), Line("y.jsonl", 1 << 40, b"")]
    assert register.add_all(["b", "a"], lines)
    assert not register.add_all(["c", "a"], lines)
    assert not register.add_all(["c", "c"], lines)
    register.add("b", lines[0])  # the same line, read again
    register.add("c", Item("gt", 1, b"", "7"))
    for image_id, where in (("b", "x.jsonl:3"), ("a", f"y.jsonl:{1 << 40}"), ("c", r"gt\[7\]")):
        with pytest.raises(DataError, match=f"is at {where} already"):
            register.add(image_id, Line("z.jsonl", 1, b""))
    if known:
        assert not register.add_all(["d"], lines[:1])
        with pytest.raises(DataError, match="not in the ground truth"):
            register.add("d", lines[0])
