"""`make mutants`: change a module in one small way, run its tests, see whether one fails; many times over.

    python -m tests.mutants MODULE... [--sample 40] [--seed 1] [--own] [--folder mutants-output]

Two stages, each up to the first test that fails: the tests of the module's room, then (but for --own), for what
survives these, all others. Of either only tests run that reach the changed statement: those that killed a mutant
before, then the shortest. All work is done on a copy. A mutant whose test hangs counts as killed. Those in
equivalent.jsonl are not run: they change nothing. FOLDER/MODULE.jsonl has a line a mutant.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.changes import Mutant, mutants, statement_lines
from tests.support.project import ROOT, SHARED, THERE

EQUIVALENT = Path(__file__).with_name("equivalent.jsonl")
_NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*-output", "build", "dist")
_LONGEST = 1800
"""Seconds a stage of one mutant may take."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, folder: Path, scratch: Path) -> None:
        self.root, self._scratch = scratch / "hoicli", scratch
        shutil.copytree(ROOT, self.root, ignore=_NOT_COPIED)
        self._killers, self._time = Counter[str](), time.time()
        self._touched_file = folder / "touched.json"
        kept = self._touched_file.read_text("utf-8") if self._touched_file.is_file() else "{}"
        self._touched: dict[str, dict[str, Any]] = json.loads(kept)

    def test_files(self, paths: Iterable[str]) -> list[str]:
        """The test modules at or below some paths."""
        places = [self.root / path for path in paths]
        found = [file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))]
        return sorted(file.relative_to(self.root).as_posix() for file in found)

    def run_tests(self, files: Sequence[str], **variables: Path) -> tuple[int, str]:
        """(exit code, output) of pytest on test modules of the copy; the code is negative if it was killed."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), "HOICLI_SHARED": str(SHARED if THERE else "")}
        environment |= {name: str(value) for name, value in variables.items()}
        plugins = ["-p", "tests.mutants.plugin", "--hypothesis-profile", "mutants", "-p", "no:cacheprovider"]
        stop = [] if "MUTANTS_RECORD" in variables else ["-x", "--tb", "no"]
        words = [sys.executable, "-m", "pytest", "--basetemp", str(self._scratch / "tests"), *plugins, *stop, *files]
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                words, cwd=self.root, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = process.wait(_LONGEST if "MUTANTS_TESTS" in variables else None)
            except subprocess.TimeoutExpired:
                code = -signal.SIGALRM
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its children, too
                process.wait()
            output.seek(0)
            return code, output.read().decode("utf-8", "replace")

    def touching(self, files: Sequence[str], module: str, lines: set[int] | None) -> dict[str, float]:
        """{test: seconds} of the tests that run some lines of a module (None: any of its lines), in their order."""
        self._measure(files)
        found = {
            test: seconds
            for file in files
            for test, (seconds, touched) in self._touched[file]["tests"].items()
            if module in touched and (lines is None or lines.intersection(touched[module]))
        }
        return dict(sorted(found.items(), key=lambda item: (-self._killers[item[0]], item[1])))

    def _measure(self, files: Sequence[str]) -> None:
        """Bring up to date what the tests of some modules take and run."""

        def digest(*sources: Path) -> str:
            return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()

        package = sorted(self.root.glob("hoicli/**/*.py"))
        digests = {file: digest(*package, self.root / file) for file in files}
        stale = [file for file in files if self._touched.get(file, {}).get("digest") != digests[file]]
        if not stale:
            return
        say(f"which lines the tests of {len(stale)} modules run ...")
        record = self._scratch / "record.json"
        code, output = self.run_tests(stale, MUTANTS_RECORD=record)
        if code not in (0, 1):
            raise SystemExit(f"pytest ended with {code}:\n{output}")
        if code:
            say("\n".join(line for line in output.splitlines() if line.startswith("FAILED")))
        recorded: dict[str, Any] = json.loads(record.read_text("utf-8"))
        for file in stale:
            tests = {test: found for test, found in recorded.items() if test.startswith(file + "::")}
            self._touched[file] = {"digest": digests[file], "tests": tests}
        self._touched_file.write_text(json.dumps(self._touched), encoding="utf-8")

    def outcome(self, module: str, mutant: Mutant, files: Sequence[str]) -> tuple[str, str]:
        """("killed", "timeout" or "survived", which test did it or how many did not) of a mutant under the tests of
        some modules."""
        path = self.root / module
        source = path.read_text("utf-8")
        tests = self.touching(files, module, statement_lines(source, mutant.line))
        if not tests:
            return "survived", "no test runs it"
        listed = self._scratch / "tests.json"
        listed.write_text(json.dumps(tests), encoding="utf-8")
        self._change(path, mutant.code)
        code, output = self.run_tests(sorted({test.partition("::")[0] for test in tests}), MUTANTS_TESTS=listed)
        self._change(path, source)
        if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return "survived", f"{len(tests)} tests"
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        by = failed[0].partition(" ")[2].partition(" - ")[0] if failed else f"exit code {code}"
        self._killers[by] += 1
        return "timeout" if code < 0 else "killed", by

    def _change(self, path: Path, text: str) -> None:
        """Compiled files are told from old ones by the second of the source."""
        path.write_text(text, encoding="utf-8")
        self._time += 2
        os.utime(path, (self._time, self._time))


def run(module: str, sample: int | None, seed: int, *, own: bool, folder: Path, bench: Bench) -> None:
    """Test mutants of a module, and write down each outcome as it is known."""
    stages = {"own": bench.test_files([f"tests/{Path(module).parts[1]}"])}
    if not own:
        stages["all"] = [file for file in bench.test_files(["tests"]) if file not in stages["own"]]
    reasons = {_key(row): row["reason"] for row in map(json.loads, EQUIVALENT.read_text("utf-8").splitlines())}
    counts: Counter[str] = Counter()
    with (folder / (module.removesuffix(".py").replace("/", ".") + ".jsonl")).open("w", encoding="utf-8") as results:
        for mutant in mutants((bench.root / module).read_text("utf-8"), sample, seed):
            row = {"module": module, "line": mutant.line, "before": mutant.before, "after": mutant.after}
            if _key(row) in reasons:
                row |= {"outcome": "equivalent", "by": reasons[_key(row)]}
            for stage, files in stages.items():
                if row.get("outcome", "survived") == "survived":
                    outcome, by = bench.outcome(module, mutant, files)
                    row |= {"outcome": outcome, "stage": stage, "by": by}
                    say(f"{outcome:8} {stage} {module}:{mutant.line}: {mutant.after.strip()[:100]!r} {by}")
            print(json.dumps(row), file=results, flush=True)
            counts[str(row["outcome"] if row["outcome"] in ("survived", "equivalent") else row["stage"])] += 1
    real = counts.total() - counts["equivalent"]
    shares = ", ".join(
        f"{name} {killed} ({killed / max(real, 1):.0%})"
        for name, killed in (("own tests", counts["own"]), ("whole suite", counts["own"] + counts["all"]))
    )
    print(f"{module}: {counts.total()} mutants, {counts['equivalent']} equivalent; killed by {shares}")


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    """What tells a change, wherever it has moved in its module."""
    return row["module"], row["before"], row["after"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="+", help="paths such as hoicli/diagnosis/repairs.py")
    parser.add_argument("--sample", type=int, help="so many mutants of each module (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="only the tests of the module's room")
    parser.add_argument("--folder", type=Path, default=Path("mutants-output"))
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that tests that run are ended, too
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.folder, Path(scratch))
        for module in options.modules:
            run(module, options.sample, options.seed, own=options.own, folder=options.folder, bench=bench)


if __name__ == "__main__":
    main()
