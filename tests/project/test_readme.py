"""The documents are true: their outputs are real, commands and options are all there, and links lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from hoicli.cli import COMMANDS
from hoicli.converters.formats import FORMATS
from hoicli.corruption.catalogue import ROHOI, WEATHER
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.selection import TABLES
from tests.support.project import Hoicli
from tests.support.readme import DOCUMENTS, README, ROOT, anchor, commands, headings, page_of, rewritten, without_help
from tests.support.shell import command_of

TEXTS = {name: path.read_text() for name, path in DOCUMENTS.items()}
EVERYTHING = " ".join(" ".join(text.split()) for text in TEXTS.values())
SHARED = TEXTS["docs/commands/README.md"]
SCREEN = 60
"""Lines of a page that needs no contents."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize(
    "name", [name if name == "README.md" else pytest.param(name, marks=pytest.mark.long) for name in DOCUMENTS]
)
def test_every_output_is_real(name: str) -> None:
    assert rewritten(DOCUMENTS[name]) == TEXTS[name], (
        f"run `python -m tests.support.readme {name}` and look at the difference: lines may be new, but a number that "
        "a command printed before must not change. If one has, mend the code, or the row of a table that you changed"
    )


def test_an_example_that_fails_is_meant_to(tmp_path: Path) -> None:
    page, good, bad = tmp_path / "page.md", "$ hoicli --version\n", "$ hoicli eval --gt gone.jsonl gone.jsonl | cat\n"
    for mark, example, said in (
        ("", bad, "an example fails; mend it, or if it is meant to, write <!-- errors --> above its block"),
        ("<!-- errors -->\n", good, "no example fails; leave out <!-- errors --> above the block"),
    ):
        page.write_text(f"{mark}```console\n{example}```\n")
        with pytest.raises(RuntimeError, match=f"page.md: {said}"):
            rewritten(page)
    page.write_text(f"<!-- errors -->\n```console\n{bad}```\n")
    assert rewritten(page).splitlines()[:3] == ["<!-- errors -->", "```console", bad.strip()]


def test_the_readme_is_read_in_ten_minutes() -> None:
    assert len(README.read_text().splitlines()) <= 190


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_longer_than_a_screen_has_contents(name: str) -> None:
    text = TEXTS[name]
    if name not in ("README.md", "docs/README.md") and text.count("\n") > SCREEN:
        assert re.search(r"^Contents: ", "\n".join(text.splitlines()[:20]), re.MULTILINE)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    for link in LINK.findall(re.sub(r"```.*?```", "", TEXTS[name], flags=re.DOTALL)):
        if link.startswith("https://"):
            continue
        path, _, place = link.partition("#")
        target = (DOCUMENTS[name].parent / path).resolve() if path else DOCUMENTS[name]
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if place:
            assert place in {anchor(heading) for _, heading in headings(target.read_text())}, link


def test_every_page_is_linked() -> None:
    linked = {
        (DOCUMENTS[name].parent / link.partition("#")[0]).resolve()
        for name, text in TEXTS.items()
        for link in LINK.findall(text)
    }
    assert {path.resolve() for path in DOCUMENTS.values()} - {README.resolve(), ROOT / "docs/README.md"} <= linked


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_runs_it(name: str) -> None:
    text = page_of(name).read_text()
    assert text.startswith(f"# hoicli {name}\n")
    assert any(f"hoicli {name}" in command for command in commands(without_help(text)))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_ends_with_the_commands_own_help(hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = page_of(name).read_text().partition("<!-- help -->\n")[2].partition("<!-- /help -->")[0]
    text = hoicli(name, "--help").out
    assert hoicli("help", name).out == text
    assert shown == f"```console\n$ hoicli help {name}\n{text}```\n"


@cache
def options_of(name: str) -> frozenset[str]:
    names = (option for param in command_of(name).params for option in (*param.opts, *param.secondary_opts))
    return frozenset(option for option in names if option.startswith("--"))


def test_an_option_of_many_commands_is_explained_once() -> None:
    """The help at the end of each page has every option; what many commands share stands with the commands."""
    counts = Counter(option for name in COMMANDS for option in options_of(name))
    assert not {option for option, count in counts.items() if count > 5 and f"`{option}" not in SHARED}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_that_a_page_names_exists(name: str) -> None:
    known = frozenset().union(*map(options_of, COMMANDS))
    assert set(re.findall(r"`(--[a-z][a-z-]+)", without_help(page_of(name).read_text()))) <= known


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_option_in_a_shell_block_exists(name: str) -> None:
    """Of the blocks that are not run, too."""
    for block in re.findall(r"^```sh\n(.*?)^```", TEXTS[name], re.DOTALL | re.MULTILINE):
        for command, words in re.findall(r"\bhoicli ([a-z-]+)((?:\\\n|[^\n|;&()])*)", block):
            assert command in COMMANDS, command
            unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", words).split(" -- ")[0]
            assert set(re.findall(r"(?<=\s)--[a-z-]+", unquoted)) <= options_of(command), words


def test_every_protocol_and_format_is_in_it() -> None:
    for name in PROTOCOLS:
        assert f"| `{name}` |" in TEXTS["docs/protocols.md"], f"write a row of {name} into docs/protocols.md"
    for name in FORMATS:
        how = "`python -m tests.support.readme docs/formats.md` writes it"
        assert re.search(rf"^{name} ", TEXTS["docs/formats.md"], re.MULTILINE), f"docs/formats.md lacks {name}: {how}"


def test_what_all_leaves_out_is_said() -> None:
    """By the help of --protocol, which is a text so that it needs no table, and by docs/protocols.md."""
    help_text = " ".join(next(param.help for param in command_of("eval").params if param.name == "protocol").split())
    listed = re.split(r"[,;] | or a file", help_text.partition(" of your own")[0])
    file = "`Protocols` of hoicli/interface/options.py"
    left_out = [name for name in PROTOCOLS if name not in chain.from_iterable(TABLES.values())]
    for name in PROTOCOLS:
        assert name in listed, f"{file}: the help of --protocol does not list {name}"
    for text, where, mark in ((help_text, file, ""), (TEXTS["docs/protocols.md"], "docs/protocols.md", "`")):
        *first, last = (f"{mark}{name}{mark}" for name in left_out)
        words = f"{', '.join(first)} and {last}."
        said = " ".join(text.split())
        where = f"{where}: what `all` leaves out is in no table of TABLES (hoicli/evaluation/selection.py)"
        assert re.search(rf"\ball\b[^.]* (but|except) {re.escape(words)}", said), f"{where}, so write: {words}"


PAGES = [["--help"], ["eval", "--help"], ["corrupt", "--help"], ["robust", "--help"]]


def test_nothing_passes_for_rohoi(hoicli: Hoicli) -> None:
    """The paper has no weather and publishes no constants: what is made here is a recipe of ours."""
    assert set(ROHOI).isdisjoint(WEATHER)
    pages = {" ".join(page): " ".join(hoicli(*page).out.split()) for page in PAGES}
    makefile = (ROOT / "fixtures/robust/benchmark.mk").read_text()
    guide = TEXTS["docs/robustness.md"]
    everything = {"documents": EVERYTHING, "guide": guide, "benchmark.mk": makefile, **pages}
    for name, text in everything.items():
        for claim in (
            "The RoHOI benchmark",
            "RoHOI robustness benchmark",
            "it is RoHOI",
            "RoHOI's weather",
            "published number",
        ):
            assert claim not in text, name
    for name, text in {"README": TEXTS["README.md"], **everything}.items():
        if name not in ("eval --help", "robust --help"):
            assert "RoHOI-style" in text, name
    for name in ("guide", "benchmark.mk", "corrupt --help", "robust --help"):
        assert "hoicli-1" in everything[name], name
