"""`hoicli CMD --help` is a page of a manual: complete, in form, and its examples run as they are shown."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from hoicli.cli import COMMANDS, app
from hoicli.interface.shell import EXIT_CODES
from tests.support.project import FIXTURES, Hoicli, Result, refusal
from tests.support.shell import command_of, furnish, sh

NOT_RUN = {"--base-url": "asks a language model over the network"}
"""Examples that hold this text are not run, and why."""

BASH = shutil.which("bash") or "sh"
SECTIONS = ("Streams:", "Options:", "Examples:", "Exit codes:", "See also:")


def help_of(name: str, columns: int = 80) -> str:
    group = typer.main.get_command(app)
    context = group.make_context("hoicli", [], resilient_parsing=True, terminal_width=columns, max_content_width=110)
    command = command_of(name)
    return str(command.get_help(command.make_context(name, [], parent=context, resilient_parsing=True)))


def examples(text: str) -> list[str]:
    section = text.partition("\nExamples:\n")[2].partition("\nExit codes:")[0]
    parts = [part for part in re.split(r"(?m)^  # .*\n", section) if part.strip()]
    return [re.sub(r"(?m)^  ", "", part).strip() for part in parts]


@pytest.mark.parametrize("columns", [80, 110])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_complete_and_fits(name: str, columns: int) -> None:
    text = help_of(name, columns)
    for section in SECTIONS:
        assert f"\n{section}\n" in text, section
    assert len(examples(text)) >= 2
    assert max(map(len, text.splitlines())) <= columns
    described = text.split("\n\n")[1]
    assert described.strip().endswith((".", ":", "?")), "what it does, in a sentence"
    for code in EXIT_CODES:
        assert re.search(rf"\n  {code}  \S", text)
    for other in re.findall(r"hoicli ([a-z-]+)", text.split("\nSee also:\n")[1]):
        assert other in COMMANDS
        assert other != name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_shows_its_default(name: str) -> None:
    command = command_of(name)
    text = " ".join(help_of(name).split())
    for param in command.params:
        assert param.help, f"{param.name} has no help"
        assert param.help.rstrip().endswith((".", ")", "]")), f"{param.name}: {param.help}"
        assert " ".join(param.help.split()) in text
        if param.default not in (None, False) and not getattr(param, "is_flag", False):
            assert f"[default: {param.default}]" in text, param.name


def test_help_in_every_way_it_is_asked_for(hoicli: Hoicli) -> None:
    page = hoicli("vocab", "--help").out
    assert page.startswith("Usage: hoicli vocab [OPTIONS] [DATASET]\n")
    assert hoicli("vocab", "-h").out == page
    assert hoicli("help", "vocab").out == page
    assert hoicli("help").out == hoicli("--help").out == hoicli().out


@pytest.mark.parametrize(
    ("word", "answer"),
    [("evaluate", "did you mean 'eval'?"), ("xyzzy", "hoicli --help lists them"), ("", "hoicli --help lists them")],
)
def test_an_unknown_command_is_answered_with_the_nearest(hoicli: Hoicli, word: str, answer: str) -> None:
    for line in ([word], ["help", word]):
        assert refusal(hoicli(*line), 2) == f"hoicli: no command {word!r}; {answer}"


ASKED = {
    "pages": "for name in COMMANDS: assert run([name, '--help']) == 0",
    "wrong outputs": "assert run(['eval', '-o', 'none/x', 'y']) == run(['diagnose', '--plot', 'none/x.png', 'y']) == 2",
    "a wrong count": "assert run(['compare', '--bootstrap', '1']) == 2",
    "completions": """for words in ('eval --protocol', 'convert --from', 'corrupt --corruption', 'convert --activation',
                    'shoe-sim --backend', 'shoe-eval --ap', 'shoe-sim --merge', 'prompts --coords'):
        command = typer.main.get_command(app)
        assert BashComplete(command, {}, 'hoicli', '').get_completions(words.split(), '')""",
}


@pytest.mark.parametrize("code", ASKED.values(), ids=ASKED)
def test_nothing_heavy_is_loaded_before_the_work(code: str) -> None:
    imports = "import sys, typer; from hoicli.cli import COMMANDS, app, run\n"
    imports += "from typer._completion_classes import BashComplete\n"
    heavy = "\nassert not {'numpy', 'scipy', 'nltk', 'tqdm', 'cv2', 'matplotlib'} & sys.modules.keys()"
    code = imports + code + heavy
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_shown_as_it_was_given(name: str) -> None:
    shown = [re.sub(r" \\\n +", " ", line) for line in examples(help_of(name))]
    assert shown == [command for command, _ in command_of(name).page.example_lines]


def furnished(folder: Path, name: str) -> None:
    """The files that the examples of a command speak of."""
    furnish(folder)
    if name == "corrupt":  # a hundred small pictures, not eight hundred large ones
        scenes = FIXTURES / "robust"
        (folder / "gt.jsonl").write_text((scenes / "ground_truth.jsonl").read_text().splitlines(keepends=True)[0])
        shutil.copytree(scenes / "images", folder / "images", dirs_exist_ok=True)
        shutil.copy(next((scenes / "images").iterdir()), folder / "photo.jpg")
    if name == "prompts":
        shutil.copy(FIXTURES / "choice/scene.json", folder)
    if name == "vlm-eval":
        shutil.copytree(FIXTURES / "choice", folder, dirs_exist_ok=True)
    if name == "recall":
        shutil.copy(folder / "gt.jsonl", folder / "train.jsonl")
    if name == "compare":
        for seed in "12":
            shutil.copy(folder / "preds.jsonl", folder / f"base{seed}.jsonl")
            shutil.copy(folder / "other.jsonl", folder / f"ours{seed}.jsonl")
    shutil.copy(folder / "preds.jsonl", folder / "old.jsonl")
    shutil.copy(folder / "other.jsonl", folder / "new.jsonl")
    shutil.copy(folder / "gt.jsonl", folder / "gt-jpeg-3.jsonl")
    for table in ("sim-a.jsonl", "sim-b.jsonl"):
        shutil.copy(FIXTURES / "shoe" / "sim.jsonl", folder / table)


def ran(line: str, folder: Path, hoicli: Hoicli) -> Result:
    """Run an example: a plain call with at most a redirection in this process, which is faster, the rest in a shell."""
    words = shlex.split(line.replace("\\\n", ""))
    plain = re.search(r"[|;$]", line) is None and words[:1] == ["hoicli"] and words[1] != "doctor"
    if not plain:
        return sh(line, folder, BASH)
    target = next((at for at, word in enumerate(words) if word in (">", ">>")), len(words))
    result = hoicli(*words[1:target])
    if target < len(words):
        with open(folder / words[target + 1], "w" if words[target] == ">" else "a") as file:
            file.write(result.out)
    return result


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hoicli: Hoicli) -> None:
    lines = examples(help_of(name))
    assert lines
    furnished(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        if any(text in line for text in NOT_RUN):
            continue
        tools = {word for word in ("jq",) if re.search(rf"\b{word}\b", line)}
        if any(shutil.which(tool) is None for tool in tools):
            continue
        done = ran(line, tmp_path, hoicli)
        assert done.code == 0, f"{line}\n{done.err}"
        assert not re.search(r"internal error|^\S+:\d+: ", done.err), f"{line}\n{done.err}"
