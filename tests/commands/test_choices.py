"""Shell completion: every option with a closed set of values offers it, and the scripts work in real shells; and what
is said of an option that a command does not have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._completion_classes import BashComplete

from hoicli.cli import COMMANDS, app
from hoicli.commands.doctor import kinds
from hoicli.converters.formats import FORMATS
from hoicli.corruption.catalogue import CORRUPTIONS
from hoicli.interface.suggestions import _SAME_MEANING
from hoicli.vocabulary.datasets import DATASETS
from tests.support.project import Hoicli
from tests.support.shell import command_of

GROUP: Any = typer.main.get_command(app)


def complete(*words: str) -> list[str]:
    *before, current = words
    return [item.value for item in BashComplete(GROUP, {}, "hoicli", "").get_completions(before, current)]


def test_commands() -> None:
    assert complete("") == list(COMMANDS)
    assert complete("sh") == ["show", "shoe-sim", "shoe-eval"]
    assert set(complete("-")) == {"--version", "--help", "-h", "--install-completion", "--show-completion"}


@pytest.mark.parametrize(("words", "expected"), [
    (("eval", "--protocol", "hico,q"), ["hico,qpic"]),
    (("eval", "--protocol", "vcoco-s1,vcoco-s"), ["vcoco-s1,vcoco-s2"]),
    (("eval", "--format", ""), ["auto", "table", "jsonl", "csv", "md", "latex", "html"]),
    (("match", "--on-error", "s"), ["stop", "skip"]),
    (("validate", "--dataset", ""), [*DATASETS]),
    (("convert", "--part", ""), ["test", "train"]),
    (("convert", "--from", ""), [row.name for row in FORMATS.values() if row.reads]),
    (("convert", "--to", ""), [row.name for row in FORMATS.values() if row.writes]),
    (("convert", "--from", "logits", "--activation", ""), ["sigmoid", "softmax"]),
    (("corrupt", "--corruption", "jpeg,s"), [f"jpeg,{name}" for name in CORRUPTIONS if name[0] == "s"]),
    (("corrupt", "--severity", "1,"), ["1,all", "1,2", "1,3", "1,4", "1,5"]),
    (("shoe-sim", "--backend", "wordnet:w"), ["wordnet:wup"]),
    (("shoe-sim", "--backend", "t"), ["table"]),
    (("vocab", "v"), ["vcoco"]),
    (("vocab", "vcoco", ""), []),
    (("doctor", "--schema", ""), kinds()),
    (("eval", "--gt", "hico:t"), ["hico:test", "hico:train"]),
    (("eval", "--gt", "gt.jsonl", ""), []),
    (("eval", "--", "--prot"), []),
])  # fmt: skip
def test_values(words: tuple[str, ...], expected: list[str]) -> None:
    assert complete(*words) == expected


def test_options_are_offered_once_unless_they_repeat() -> None:
    assert {"--gt", "--protocol", "--tag"} <= set(complete("eval", "--"))
    given = complete("eval", "--gt", "gt.jsonl", "--tag", "a=b", "--per-class", "--")
    assert "--gt" not in given
    assert "--per-class" not in given
    assert "--tag" in given


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_everything_offered_is_accepted(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """No value on offer is refused by its own option, whatever else the call lacks."""
    params = command_of(name).params
    for param in params:
        option = max(param.opts, key=len)
        if param.param_type_name != "option" or getattr(param, "is_flag", False):
            continue
        offered = [value for value in complete(name, option, "") if not value.endswith(":")]
        for value in {*offered[:1], *offered[-1:]}:
            base: tuple[object, ...] = (
                ("--gt", tmp_path / "none") if any("--gt" in each.opts for each in params) else ()
            )
            base = ("--schema", "result") if name == "doctor" else base  # or it looks at everything installed
            out = ("-o", tmp_path / "out") if any("--output" in each.opts for each in params) else ()
            done = hoicli(name, *base, *out, option, value, *(() if name in ("vocab", "doctor") else (tmp_path / "x",)))
            assert not re.search(rf"{option} {re.escape(value)}: (choose|give a|hico has [^n])", done.err), done.err
            assert f"{option}: unknown" not in done.err


def test_the_shell_asks_and_is_answered(tmp_path: Path) -> None:
    asked = {"_HOICLI_COMPLETE": "complete_bash", "COMP_WORDS": "hoicli eval --on-error ", "COMP_CWORD": "3"}
    python, asked = [sys.executable, "-m", "hoicli"], {**os.environ, **asked}
    done = subprocess.run(python, env=asked, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["stop", "skip"], "")


@pytest.mark.parametrize(("words", "said"), [
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
    (("vocab", "--dataset", "hico"), "no option --dataset; DATASET may be meant: hico (default)"),
])  # fmt: skip
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
