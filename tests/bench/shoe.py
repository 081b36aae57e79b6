"""The page's SHOE part, on HICO-DET's dump: similarities from WordNet, and the metric that looks them up."""

from __future__ import annotations

from tests.bench import hico
from tests.bench.measuring import HOICLI, PYTHON, Options, Process


def prepare(options: Options) -> None:
    """HICO-DET's records, and WordNet's files for nltk."""
    from tests.support import wordnet_files

    hico.convert(options)
    wordnet_files.install(options.folder / "corpora" / "wordnet")


def processes(options: Options) -> list[Process]:
    """A cold start on the classes, then the dump."""
    truth, found = map(str, hico.records(options))
    classes, similarities = (str(options.folder / name) for name in ("class_pairs.jsonl", "similarities.jsonl"))
    floor = "floor: every line of the records"
    wup = (*HOICLI, "shoe-sim", "--backend", "wordnet:wup")
    nltk = (*PYTHON, "-m", "tests.bench.loops", "wup", classes, str(options.folder))
    loops = (*PYTHON, "-m", "tests.bench.loops", "shoe", truth, found, similarities)
    return [
        Process("shoe-sim --dataset hico", (*wup, "--dataset", "hico", "-o", classes)),
        Process("nltk on the same pairs of senses", nltk, ours="shoe-sim --dataset hico", once=True),
        Process(floor, (*PYTHON, "-m", "tests.bench.floor", "lines", found)),
        Process("shoe-sim --gt", (*wup, "--gt", truth, found, "-o", similarities), floor),
        Process("shoe-eval", (*HOICLI, "shoe-eval", "--gt", truth, "--sim", similarities, found), floor),
        Process("plain-Python algorithms", loops, floor, "shoe-eval", once=True),
    ]


def facts(options: Options) -> str:
    with (options.folder / "class_pairs.jsonl").open("rb") as stream:
        classes = sum(1 for _ in stream)
    with (options.folder / "similarities.jsonl").open("rb") as stream:
        pairs = sum(1 for _ in stream)
    return f"the dump of HICO-DET; {classes:,} pairs of senses among the 600 classes, {pairs:,} in the dump"
