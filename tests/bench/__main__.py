"""`make bench`: one page of what the commands cost beside a floor and beside others' code.

    python -m tests.bench [--only hico,vcoco,boxes,shoe,corrupt,explore] [--repeat 3] [--folder bench-output]
                          [--truth instances_test2015.json --predictions cdn.json] [--peers DIR] [--docs]

Run it in the repository's root; progress goes to stderr, the page to stdout and FOLDER/bench.md. Without files, dumps
are made of the size and shape of the test sets, the same ones every time. --docs puts the tables into the documents.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator, Sequence
from compileall import compile_dir
from dataclasses import dataclass
from pathlib import Path

from tests.bench import boxes, corrupt, explore, hico, shoe, vcoco
from tests.bench.measuring import Options, Process, Table, apart, machine, measured_table, say, shown


@dataclass(frozen=True)
class Section:
    """A heading of the page. All but `processes` is done in a process of its own."""

    title: str
    prepare: Callable[[Options], None]
    processes: Callable[[Options], list[Process]]
    facts: Callable[[Options], str]
    table: Callable[[Options], Table] | None = None
    """What is measured otherwise than as whole processes."""


SECTIONS = {
    "hico": Section("HICO-DET", hico.prepare, hico.processes, hico.facts),
    "vcoco": Section("V-COCO", vcoco.prepare, vcoco.processes, vcoco.facts),
    "boxes": Section("Boxes", boxes.prepare, boxes.processes, boxes.facts),
    "shoe": Section("SHOE", shoe.prepare, shoe.processes, shoe.facts),
    "corrupt": Section("Corruptions", corrupt.prepare, corrupt.processes, corrupt.facts, corrupt.comparison),
    "explore": Section("Explorer", explore.prepare, explore.processes, explore.facts, explore.waiting),
}

LEGEND = """Whole processes, start-up included, the best of {repeat} runs (of one for peers and `corrupt`).

- *times its floor*: beside a process that only reads the same input
- *times ours*: a peer beside the hoicli command it stands for
- *peak MiB*: the process and its forks together, memory they share counted once
"""


PAGE = Path("docs/benchmarks.md")
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def page(names: Sequence[str], options: Options) -> tuple[str, dict[str, list[str]]]:
    """(the page in Markdown, each section's tables by its title); FOLDER/bench.md is written after every section."""
    for name in names:
        say(f"preparing {SECTIONS[name].title}")
        apart(SECTIONS[name].prepare, options)
    shapes: dict[str, list[str]] = {}
    parts = [f"# What hoicli costs\n\n{machine()}\n{LEGEND.format(repeat=options.repeat)}"]
    for name in names:
        section = SECTIONS[name]
        say(section.title)
        processes = section.processes(options)
        tables = [measured_table(processes, options.repeat)]
        if section.table:
            tables.append(apart(section.table, options))
        commands = "".join(f"{shown(process.command)}\n" for process in processes)
        shapes[section.title] = [table.markdown() for table in tables]
        body = "\n".join([*shapes[section.title], f"```sh\n{commands}```\n"])
        parts.append(f"## {section.title}\n\n{apart(section.facts, options)}\n\n{body}")
        (options.folder / "bench.md").write_text("\n".join(parts))
    return "\n".join(parts), shapes


def with_tables(text: str, tables: dict[str, list[str]]) -> str:
    """A page of benchmarks with these in the place of the tables under the headings of their titles."""
    for title, shapes in tables.items():
        heading, section = re.split(rf"(?<=^## {title}\n)", text, maxsplit=1, flags=re.MULTILINE)
        inside, *others = re.split(r"(?=^## )", section, maxsplit=1, flags=re.MULTILINE)
        new: Iterator[str] = iter(shapes)
        text = heading + TABLE.sub(lambda old, new=new: next(new, old[0]), inside) + "".join(others)
    return text


def main() -> None:
    started = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure hoicli's commands.")
    parser.add_argument("--only", default=",".join(SECTIONS), help="the sections, with commas between")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("bench-output"), help="for dumps and the page")
    parser.add_argument("--truth", type=Path, help="instances_test2015.json, with --predictions")
    parser.add_argument("--predictions", type=Path, help="a dump of CDN's")
    parser.add_argument("--peers", type=Path, help="a folder of released evaluators: tests/bench/released.py")
    parser.add_argument("--docs", action="store_true", help=f"put the tables into {PAGE}")
    given = vars(parser.parse_args())
    wanted = given.pop("docs")
    names = given.pop("only").split(",")
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"--only {','.join(sorted(unknown))}: choose from {', '.join(SECTIONS)}")
    if (given["truth"] is None) != (given["predictions"] is None):
        parser.error("--truth and --predictions go together")
    options = Options(**given)
    options.folder.mkdir(parents=True, exist_ok=True)
    compile_dir("hoicli", quiet=2)  # as pip does: else each process compiles what it imports where none may be written
    text, tables = page(names, options)
    print(text, end="")
    say(f"made in {(time.monotonic() - started) / 60:.1f} minutes")
    if wanted:
        PAGE.write_text(with_tables(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()
