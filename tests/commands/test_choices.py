"""Shell completion: every option with a closed set of values offers it, and the scripts work in real shells."""

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
from hoicli.converters.formats import FORMATS
from hoicli.corruption.catalogue import CORRUPTIONS
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.schemas import kinds
from hoicli.vocabulary.datasets import DATASETS
from tests.support.project import Hoicli

GROUP: Any = typer.main.get_command(app)

OPEN_METAVARS = {
    "FILE", "DIR", "GT", "IMAGE", "PATH...", "PREDS...", "RECORDS...", "RECORDS...|IMAGES...", "RATINGS...",
    "ROWS...", "EPOCHS...", "ANSWERS...", "RESULTS...",
    "FILE...", "IMAGES...", "LABEL", "URL", "JSON", "TEXT", "KEY=VALUE", "KEY", "K/N",
    "NAME|DIR", "FILE|DIR", "[MODEL=]IN,OUT", "[NAME=]A,B",
    "N", "K", "T", "S", "R", "D", "W", "A", "B", "L", "F", "P", "PX", "T,T,...", "S,S,...", "K,K,...",
}  # fmt: skip
"""What an option or argument takes that nobody can list: files, numbers, texts."""

OPEN_NAMES = {
    ("agree", "--models"): "raters' names are in the data",
    ("agree", "--humans"): "raters' names are in the data",
    ("diagnose", "--name"): "the user's names",
    ("explore", "--name"): "the user's names",
    ("audit", "--name"): "the user's names",
    ("show", "--name"): "the user's names",
    ("show", "--image-id"): "the records' names",
    ("show", "--verb"): "the records' names",
    ("show", "--object"): "the records' names",
    ("pairstats", "--name"): "the user's names",
    ("curves", "--name"): "the user's names",
    ("confusion", "--name"): "the user's names",
    **{("curves", f"--{what}"): "names of the dataset's, by the hundred" for what in ("verb", "object", "interaction")},
    ("robust", "--metric"): "the rows say which metrics there are",
    ("robust", "--subset"): "the rows say which subsets there are",
    ("table", "--metric"): "the rows say which metrics there are",
    ("compare", "--metric"): "the rows say which metrics there are",
    ("compare", "--name"): "the user's names",
    ("vocab", "--name"): "the user's names",
    ("shoe-sim", "--model"): "the endpoint's names",
    ("prompts", "--model"): "the provider's names",
    ("shoe-sim", "--screen"): "the endpoint's names",
    ("shoe-sim", "--key-env"): "the user's environment",
}


def complete(*words: str) -> list[str]:
    *before, current = words
    return [item.value for item in BashComplete(GROUP, {}, "hoicli", "").get_completions(before, current)]


def parameters(name: str) -> list[Any]:
    context = GROUP.make_context("hoicli", [], resilient_parsing=True)
    return list(GROUP.get_command(context, name).params)


def test_commands() -> None:
    assert complete("") == list(COMMANDS)
    assert complete("sh") == ["show", "shoe-sim", "shoe-eval"]
    assert set(complete("-")) == {"--version", "--help", "-h", "--install-completion", "--show-completion"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("eval", "--protocol", "hico,q"), ["hico,qpic"]),
        (("eval", "--protocol", "vcoco-s1,vcoco-s"), ["vcoco-s1,vcoco-s2"]),
        (("eval", "--format", ""), ["auto", "table", "jsonl", "csv", "md", "latex", "html"]),
        (("match", "--on-error", "s"), ["stop", "skip"]),
        (("validate", "--dataset", ""), [*DATASETS]),
        (("convert", "--part", ""), ["test", "train"]),
        (("convert", "--from", ""), [row.name for row in FORMATS.values() if row.reads]),
        (("convert", "--to", ""), [row.name for row in FORMATS.values() if row.writes]),
        (("convert", "--from", "logits", "--box-scores", ""), ["logits", "probabilities"]),
        (("corrupt", "--corruption", "jpeg,s"), [f"jpeg,{name}" for name in CORRUPTIONS if name[0] == "s"]),
        (("corrupt", "--severity", "1,"), ["1,all", "1,2", "1,3", "1,4", "1,5"]),
        (("shoe-sim", "--backend", "wordnet:w"), ["wordnet:wup"]),
        (("shoe-sim", "--backend", "t"), ["table:"]),
        (("vocab", "v"), ["vcoco"]),
        (("vocab", "vcoco", ""), []),
        (("doctor", "--schema", ""), kinds()),
        (("eval", "--gt", "hico:t"), ["hico:test", "hico:train"]),
        (("eval", "--gt", "gt.jsonl", ""), []),
        (("eval", "--", "--prot"), []),
    ],
)
def test_values(words: tuple[str, ...], expected: list[str]) -> None:
    assert complete(*words) == expected


def test_options_are_offered_once_unless_they_repeat() -> None:
    assert {"--gt", "--protocol", "--tag"} <= set(complete("eval", "--"))
    given = complete("eval", "--gt", "gt.jsonl", "--tag", "a=b", "--per-class", "--")
    assert "--gt" not in given
    assert "--per-class" not in given
    assert "--tag" in given


@pytest.mark.parametrize("name", COMMANDS)
def test_every_closed_set_of_values_is_offered(name: str) -> None:
    for param in parameters(name):
        option = max(param.opts, key=len) if param.param_type_name == "option" else None
        if getattr(param, "is_flag", False) or param.metavar in OPEN_METAVARS or (name, option) in OPEN_NAMES:
            continue
        words = (option, "") if option else ("",)
        assert complete(name, *words), f"{option or param.metavar} offers nothing"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_everything_offered_is_accepted(name: str, hoicli: Hoicli, tmp_path: Path) -> None:
    """No value on offer is refused by its own option, whatever else the call lacks."""
    for param in parameters(name):
        option = max(param.opts, key=len)
        if param.param_type_name != "option" or getattr(param, "is_flag", False):
            continue
        for value in complete(name, option, ""):
            if value.endswith(":"):
                continue
            base = ("--gt", tmp_path / "none") if any("--gt" in each.opts for each in parameters(name)) else ()
            out = ("-o", tmp_path / "out") if any("--output" in each.opts for each in parameters(name)) else ()
            done = hoicli(name, *base, *out, option, value, *(() if name in ("vocab", "doctor") else (tmp_path / "x",)))
            assert not re.search(rf"{option} {re.escape(value)}: (choose|give|hico has [^n])", done.err), done.err
            assert f"{option}: unknown" not in done.err


def test_names_with_a_home_of_their_own_are_those_that_are_used() -> None:
    assert set(complete("eval", "--protocol", "")) == {"all", *PROTOCOLS}


def test_an_answer_loads_nothing_heavy() -> None:
    code = (
        "import sys, typer; from hoicli.cli import app\n"
        "from typer._completion_classes import BashComplete\n"
        "for words in (['eval', '--protocol', ''], ['convert', '--from', ''], ['corrupt', '--corruption', ''],\n"
        "              ['convert', '--activation', ''], ['shoe-sim', '--backend', ''], ['shoe-eval', '--ap', ''],\n"
        "              ['shoe-sim', '--merge', ''], ['robust', '--rank-by', ''], ['prompts', '--coords', '']):\n"
        "    command = typer.main.get_command(app)\n"
        "    assert BashComplete(command, {}, 'hoicli', '').get_completions(words[:-1], words[-1])\n"
        "heavy = {'numpy', 'scipy', 'nltk', 'tqdm'} & sys.modules.keys(); sys.exit(str(heavy) if heavy else 0)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_the_shell_asks_and_is_answered(tmp_path: Path) -> None:
    """As the script of `hoicli --show-completion` calls it."""
    asked = {"_HOICLI_COMPLETE": "complete_bash", "COMP_WORDS": "hoicli eval --on-error ", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "hoicli"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["stop", "skip"], "")
