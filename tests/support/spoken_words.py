"""How well words become classes of HICO-DET: `python -m tests.support.spoken_words [--wrong] [FILE.tsv ...]`.

A file has three or four columns: a word, its kind (verb or object), the class that it should become, empty for a word
that should be left out, and the object that a verb is said of. Prints, for each file and kind, the precision (of the
words that were mapped, the share that was mapped right) and the recall (of the words that have a class, the share that
was mapped right); with --wrong also each word that was not. Without an object a verb stands alone; in an answer the
object may decide.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hoicli.vocabulary.datasets import load
from hoicli.wordnet.spoken_words import SpokenWords

FOLDER = Path("fixtures/vlm")
LISTS = tuple(FOLDER / f"words_{name}.tsv" for name in ("tuned", "sealed", "blind", "fresh"))


@dataclass(frozen=True)
class Outcome:
    """What a word became: its class in the list and its class by hoicli, "" for none."""

    word: str
    kind: str
    expected: str
    mapped: str


def outcomes(path: Path) -> list[Outcome]:
    """Return what each word of a list becomes in HICO-DET."""
    words = SpokenWords(load("hico"))
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for word, kind, *expected in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if kind != "kind":
                label, object_ = (*expected, "", "")[:2]
                meaning = words.look_up_verb(word, object_ or None) if kind == "verb" else words.look_up_object(word)
                rows.append(Outcome(word, kind, label.strip(), meaning.label or ""))
    return rows


def shares(rows: Sequence[Outcome]) -> tuple[float, float]:
    right = sum(row.mapped == row.expected != "" for row in rows)
    return right / sum(row.mapped != "" for row in rows), right / sum(row.expected != "" for row in rows)


def table(paths: Sequence[Path]) -> str:
    lines = ["| list | words | precision | recall |", "| --- | --- | --- | --- |"]
    for path in paths:
        rows = outcomes(path)
        for kind in ("verb", "object"):
            of_kind = [row for row in rows if row.kind == kind]
            if not of_kind:
                continue
            precision, recall = shares(of_kind)
            lines.append(f"| `{path.name}`, {kind}s | {len(of_kind)} | {precision:.3f} | {recall:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lists", nargs="*", type=Path, default=LISTS, metavar="FILE.tsv")
    parser.add_argument("--wrong", action="store_true", help="print each word that was mapped wrongly or not at all")
    options = parser.parse_args()
    print(table(options.lists))
    for row in [row for path in options.lists for row in outcomes(path)] if options.wrong else ():
        if row.mapped != row.expected:
            print(f"{row.kind}\t{row.word}\texpected {row.expected or '-'}\tmapped to {row.mapped or '-'}")


if __name__ == "__main__":
    main()
