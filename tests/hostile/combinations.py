"""Every pair of a command's options, given together, with values that fit and values that do not.

`python -m tests.hostile.combinations [--seed 0] [--share 1] [--only COMMAND,...] [--jobs 2]` runs each pair of options
of each command once, in forks of itself, and prints a line of JSON for each fault and one that counts. The values are
drawn by the seed: other seeds try others. --share tries one pair of so many.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from random import Random

from hoicli.cli import run
from hoicli.interface import choices
from hoicli.interface.checks import Count, Read, Written
from hoicli.interface.command import DECLARED, Command
from hoicli.interface.options import Argument, Option, Parameter
from tests.hostile.judge import standard_streams
from tests.support.project import EIGHT, FIXTURES, PATIENCE

BASE = {
    "agree": "--models sim --group differs ratings.csv",
    "audit": "--gt gt.jsonl predictions.jsonl",
    "claim": "--gt gt.jsonl predictions.jsonl 76.19/100/74.36",
    "compare": "--gt gt.jsonl predictions.jsonl other.jsonl",
    "confusion": "--gt gt.jsonl predictions.jsonl",
    "convert": "cdn.json",
    "corrupt": "gt.jsonl --images images --save-images OUT/made --corruption jpeg,rainbow --severity 1",
    "curriculum": "epochs.jsonl",
    "curves": "--gt gt.jsonl predictions.jsonl",
    "data": "",
    "diagnose": "--gt gt.jsonl predictions.jsonl",
    "doctor": "",
    "eval": "--gt gt.jsonl predictions.jsonl",
    "explore": "--gt gt.jsonl predictions.jsonl -o OUT/page",
    "mask": "gt.jsonl --images images --save-images OUT/made",
    "match": "--gt gt.jsonl --protocol hico predictions.jsonl",
    "pairstats": "--gt gt.jsonl predictions.jsonl",
    "prompts": "gt.jsonl",
    "recall": "--gt gt.jsonl predictions.jsonl",
    "robust": "rows.jsonl",
    "shoe_eval": "--gt gt.jsonl --sim lexical predictions.jsonl",
    "shoe_sim": "--gt gt.jsonl --backend lexical predictions.jsonl",
    "show": "--gt gt.jsonl --images images predictions.jsonl -o OUT/shown",
    "table": "eval.jsonl",
    "validate": "--gt gt.jsonl predictions.jsonl",
    "vlm_eval": "--questions scene.json answers.jsonl",
    "vocab": "",
}
"""A sound line of each command, to which two options are added."""
FILES = [
    *(EIGHT / name for name in ("gt.jsonl", "predictions.jsonl", "other.jsonl", "images", "expected/eval.jsonl")),
    *(FIXTURES / "foreign" / name for name in ("cdn.json", "logits.npz", "pairs.pkl")),
    *(FIXTURES / name for name in ("agree/ratings.csv", "agree/ratings_again.csv", "own/site.json", "shoe/sim.jsonl")),
    *(FIXTURES / name for name in ("robust/rows.jsonl", "robust/epochs.jsonl", "choice/scene.json")),
    *(FIXTURES / name for name in ("choice/answers.jsonl", "choice/detector.json")),
]
READABLE = {"again": "ratings_again.csv", "boxes": "detector.json", "dataset": "site.json", "pairs": "sim.jsonl"}
READABLE |= {"questions": "scene.json", "sim": "sim.jsonl", "preview": "images/HICO_test2015_00000001.jpg"}
"""Which file fits an option that reads one; the ground truth for all others."""
STREAMED = {"match", "validate", "doctor"}
"""Commands that print before they are done: what was found, or records of which the last says that they ended early."""
ODD = ["", "nan", "-1", "inf", "1e400", "é", "\n", "a=b", ",", "1,,2", "gt.jsonl", "-", "\udcff", "no file", "all"]
VALUES = {
    "KEY=VALUE": ["model=a", "protocol=hico", "subset=full"],
    "NAME": ["a", "a,b", "person", "ride bicycle", "mAP", "full", "model"],
    "KEY": ["model", "subset", "image_id"],
    "LABEL": ["bus", "ride", "hot dog"],
    "K": ["1", "2", "5"],
    "N": ["0", "1", "5", "all"],
    "S": ["0", "7"],
    "K/N": ["1/2", "2/2"],
    "": ["0.5", "0", "1", "0.25", "0.3,0.5", "0.5:0.95:0.05", "10,20", "1e308"],
}
"""Values of options that list none, by their metavar; "" for all others."""
SHELL = [
    *(Parameter(name, str, None, option, "") for name, option in {
        "format": Option("NAME", one_of=[(name, "") for name in ("table", "jsonl", "csv", "md", "latex", "html")]),
        "plot": Option("FILE.png", check=Written("io.outputs:check_figure")),
        "quiet": Option(""),
    }.items()),
]  # fmt: skip
"""What the shell adds to commands."""


def value(rng: Random, one: Parameter) -> str:
    """A value of an option: one time in sixteen one that fits nothing."""
    option, mark = one.option, one.option.check
    if rng.random() < 1 / 16:
        return rng.choice(ODD)
    if one.name in READABLE or one.name == "gt":
        return READABLE.get(one.name, "gt.jsonl")
    if isinstance(mark, Written):
        ending = ".png" if one.name == "plot" else rng.choice([".jsonl", ".jsonl.gz", ".csv", "", ".png"])
        return rng.choice([f"OUT/x{ending}"] * 6 + ["OUT/new/x", "predictions.jsonl", "images"])
    if names := [name for name, _ in choices.entries(option.one_of or option.offer)]:
        return ",".join(rng.sample(names, min(len(names), 2 if option.several and rng.random() < 0.3 else 1)))
    if isinstance(mark, Count):
        return str(rng.choice([mark.minimum, mark.minimum + 1, 2, 5, mark.minimum - 1, mark.maximum + 1]))
    if isinstance(mark, Read):
        return "images" if mark.folder else "gt.jsonl"
    return rng.choice(VALUES.get(option.metavar, VALUES[""]))


def lines(name: str, command: Command, seed: int, share: int) -> Iterator[list[str]]:
    """A command line for each pair of options: `share` of 3 leaves two of three out."""
    rows = command.listed is not None
    shell = [one for one in SHELL if one.name == "quiet" or (rows and (one.name != "plot" or command.plot))]
    options = [one for one in command.parameters if not isinstance(one.option, Argument)] + shell
    for number, pair in enumerate(combinations(options, 2)):
        rng = Random(f"{name}:{seed}:{number}")
        if (number + seed) % share:
            continue
        words = [name.replace("_", "-"), *BASE[name].split()]
        for one in pair:
            said = "--" + one.name.rstrip("_").replace("_", "-")
            plain = one.kind in (bool, "bool") or one.name == "quiet"
            if said in words and not one.option.several:  # the line's own gives way
                at = words.index(said)
                del words[at : at + 2]
            words += (
                [said.replace("--", "--no-") if one.default is True else said] if plain else [said, value(rng, one)]
            )
        yield words


def faults(words: Sequence[str], place: Path) -> tuple[int, list[str]]:
    """(exit code, what is wrong with how a line went). `place` is emptied; its folder `in` gets the files first."""
    inputs, out = place / "in", place / "out"
    shutil.rmtree(place, ignore_errors=True)
    out.mkdir(parents=True)
    inputs.mkdir()
    for path in FILES:
        (shutil.copytree if path.is_dir() else shutil.copy)(path, inputs / path.name)
    files = sorted(path for path in inputs.rglob("*") if path.is_file())
    before = [path.read_bytes() for path in files]
    process = os.fork() or _run([word.replace("OUT", str(out)) for word in words], place)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    after = [path.read_bytes() if path.is_file() else None for path in files]
    printed, said = ((place / name).read_bytes().decode("utf-8", "replace") for name in ("stdout", "stderr"))
    left = [path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()]
    odd = any(path not in files for path in inputs.rglob("*") if path.is_file())  # -o may be given an odd name
    own = "predictions.jsonl" in words[-3:] and words[0] != "validate"  # -o may name an input when nothing reads it
    wrong = {
        f"exit code {code}": code not in (0, 1, 2, 3),
        "a traceback": "Traceback" in said or "internal" in said,
        "a warning of Python": "Warning:" in said and ".py" in said,
        "no word": code in (1, 2) and not said.strip() and "--quiet" not in words,
        "a long line": code in (1, 2) and max(map(len, said.splitlines()), default=0) > 2000,
        f"left {left[:3]}": code in (1, 2) and bool(left) and not any("made" in name for name in left),
        "half a file": any(name.endswith(".part") for name in left),
        "stdout of a failure": code in (1, 2) and bool(printed) and words[0] not in STREAMED,
        "nothing came out": code == 0 and not (printed or left or odd or own or ("--top" in words and "0" in words)),
        # doctor's schemas name them, and an HTML page's script
        "no number": bool(re.search("NaN|Infinity", printed.partition("<script>")[0])) and words[0] != "doctor",
        "an input changed": after != before and not (code == 0 and own),
    }
    return code, [f"{fault}: {said[-300:]}" for fault, found in wrong.items() if found]


def _run(words: list[str], place: Path) -> int:
    """The line, in a fork; never returns."""
    code = 70
    try:
        signal.alarm(int(PATIENCE))
        os.chdir(place / "in")
        with standard_streams(place):
            code = run(words)
    finally:
        os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.combinations", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    from tests.support.forks import import_everything

    import_everything()
    own = {module.rpartition(".")[2]: command for module, command in DECLARED.items() if ".commands." in module}
    wanted = [name for name in own if not given.only or name in given.only.split(",")]
    cases = [words for name in wanted for words in lines(name, own[name], given.seed, given.share)]
    codes: Counter[int] = Counter()
    found = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.jobs) as pool:
        os.environ["XDG_CACHE_HOME"] = os.environ["HOICLI_DATA"] = f"{name}/cache"
        places = [Path(name) / str(number) for number in range(len(cases))]
        for place, words, (code, wrong) in zip(places, cases, pool.map(faults, cases, places), strict=True):
            shutil.rmtree(place)
            codes[code] += 1
            found += bool(wrong)
            if wrong:
                print(json.dumps({"words": words, "code": code, "faults": wrong}), flush=True)
    print(json.dumps({"lines": len(cases), "codes": dict(sorted(codes.items())), "faults": found}))
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
