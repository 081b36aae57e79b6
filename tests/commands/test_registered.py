"""A command is in every list of commands; what is missing of one is said at once, with the place to write it."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest

from hoicli.cli import COMMANDS
from tests.commands import test_campaign as campaigns
from tests.commands import test_python as python
from tests.commands import test_same_bytes as same_bytes
from tests.hostile import combinations
from tests.hostile.dying import WRITERS
from tests.hostile.readers import READERS, READS_NOTHING, options_of
from tests.support.project import ROOT
from tests.support.readme import STUB, stub

PAGES = ROOT / "docs/commands"


def linked(file: str, link: str) -> set[str]:
    """The names of commands in the links of a file. link: the expression that has the name as its group."""
    return set(re.findall(link, (ROOT / file).read_text()))


def places() -> dict[str, Collection[str]]:
    """Each list of commands by what a command needs there, with the names that need nothing more."""
    silent = [name for name in COMMANDS if "--output" not in options_of(name)]
    return {
        "a line in GROUPS of hoicli/commands/__init__.py": COMMANDS,
        "its page docs/commands/NAME.md": {path.stem for path in PAGES.glob("*.md") if path.stem != "README"},
        "a link in docs/commands/README.md": linked("docs/commands/README.md", r"\[([a-z-]+)\]\(\1\.md\)"),
        "a link in README.md": linked("README.md", r"\[([a-z-]+)\]\(docs/commands/\1\.md\)"),
        "a line in .mkdocs.yml": linked(".mkdocs.yml", r"- commands/([a-z-]+)\.md"),
        "a call in CALLS of tests/commands/test_python.py": {call[0] for call in python.CALLS} | python.WITHOUT_CALL,
        "a campaign in CAMPAIGNS of tests/commands/test_campaign.py (or its name in NO_SIGNATURE there)": {
            *(name.split()[0] for name in campaigns.CAMPAIGNS), *campaigns.NO_SIGNATURE, *campaigns.OTHERS_ROWS,
        },
        "a call in CALLS of tests/commands/test_same_bytes.py (or its name in NO_IMAGES there)": {
            *same_bytes.CALLS, *same_bytes.NO_IMAGES,
        },
        "a reader in READERS of tests/hostile/readers.py (or its name in READS_NOTHING there)": {
            *(reader.command for reader in READERS), *READS_NOTHING,
        },
        "a writer in WRITERS of tests/hostile/dying.py": {*(writer.command for writer in WRITERS), *silent},
        "a line in BASE of tests/hostile/combinations.py": {name.replace("_", "-") for name in combinations.BASE},
    }  # fmt: skip


def faults(modules: Collection[str]) -> list[str]:
    """What is missing of each module, and what is left of commands that have none."""
    found = []
    for place, names in places().items():
        found += [f"{name} lacks {place}" for name in sorted({*modules} - {*names})]
        found += [f"{name} is no module of hoicli/commands, but has {place}" for name in sorted({*names} - {*modules})]
    return found


def modules() -> set[str]:
    return {path.stem.replace("_", "-") for path in Path(ROOT, "hoicli/commands").glob("[a-z]*.py")}


def test_a_command_is_in_every_list() -> None:
    if found := faults(modules()):
        pytest.fail("\n".join(found), pytrace=False)
    is_made = STUB.read_text() == stub()
    assert is_made, f"{STUB}: run `python -m tests.support.readme README.md`, which writes it"


def test_all_that_a_command_lacks_is_said() -> None:
    found = faults({*COMMANDS, "new"} - {"eval"})
    assert found[0] == "new lacks a line in GROUPS of hoicli/commands/__init__.py"
    assert [fault.split()[0] for fault in found] == ["new", "eval"] * len(places())
