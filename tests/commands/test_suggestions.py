"""What is said of an option that a command does not have."""

from __future__ import annotations

import pytest

from hoicli.interface.suggestions import _SAME_MEANING
from tests.support.project import Hoicli


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("recall", "--top", "5"), "no option --top; --k may be meant: How many of the best predictions"),
        (("eval", "--json"), "no option --json; --format jsonl may be meant"),
        (("eval", "--threshold", "0.5"), "no option --threshold; --iou may be meant: "),
        (("eval", "--iou-threshold=0.5",), "no option --iou-threshold; --iou may be meant: "),
        (("eval", "--out", "x"), "no option --out; -o may be meant: Write to this file"),
        (("eval", "--protocl", "x"), "no option --protocl; --protocol may be meant: "),
        (("diagnose", "--bootstrap", "3"), "no option --bootstrap; hoicli eval, hoicli compare, hoicli explore have"),
        (("convert", "--explain-wrds", "x"), "no option --explain-wrds; --explain-words may be meant: "),
        (("shoe-eval", "--list-of-things", "x"), "no option --list-of-things"),  # not --rank-of
        (("eval", "--serve"), "no option --serve; hoicli explore has it"),
        (("convert", "--json"), "no option --json"),  # it writes nothing but JSONL
        (("eval", "--zzz"), "no option --zzz"),
    ],
)  # fmt: skip
def test_a_related_option_is_named(hoicli: Hoicli, words: tuple[str, ...], said: str) -> None:
    result = hoicli(*words)
    assert result.code == 2
    assert result.err.startswith(f"hoicli {words[0]}: {said}")
    assert result.err.endswith(f" (hoicli {words[0]} --help shows how)\n")
    assert result.err.count("\n") == 1


def test_every_group_of_names_has_an_option() -> None:
    """A group none of whose names is an option any more suggests nothing."""
    from hoicli.cli import _commands_with

    for name, *_ in _SAME_MEANING:
        assert name in {"output", "quiet"} or _commands_with(name.strip("_")), name  # these two are of every command
