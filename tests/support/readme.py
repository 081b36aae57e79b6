"""README.md's commands and what they print: `python -m tests.support.readme` runs them all and writes the outputs anew.

In a block marked `console`, a line that begins with `$ ` is a command for `sh`, run in a folder where `fixtures` and
`formats` are those of the repository and files made by earlier commands stay; what follows up to the next command is
its standard output and error together. tests/project/test_readme.py holds the file to it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """The commands of a README, in order."""
    return [line[2:] for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("$ ")]


def rewritten(text: str) -> str:
    """The README with the outputs that its commands have now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shown in ("fixtures", "formats"):
            (folder / shown).symlink_to(ROOT / shown)
        scripts = folder / ".bin"
        scripts.mkdir()
        hoicli = scripts / "hoicli"
        hoicli.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hoicli "$@"\n')
        hoicli.chmod(0o755)
        return _BLOCK.sub(lambda block: _run_block(block.group(), folder, scripts), text)


def _run_block(block: str, folder: Path, scripts: Path) -> str:
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    parts = []
    for command in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
        process = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        output = process.stdout if not process.stdout or process.stdout.endswith("\n") else process.stdout + "\n"
        parts.append(f"$ {command}\n{output}")
    return "".join(parts)


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text()))
