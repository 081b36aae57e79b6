"""The plain-Python peers, as processes: the tests' slow evaluators, and nltk, on the same files.

python -m tests.bench.loops hico|types|vcoco GT PREDICTIONS
python -m tests.bench.loops shoe GT PREDICTIONS SIMILARITIES
python -m tests.bench.loops wup PAIRS CORPORA                    nltk's wup_similarity of every pair of senses
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

import orjson

from hoicli.vocabulary.datasets import load
from tests.support.project import Record


def records(path: str) -> list[Record]:
    with open(path, "rb") as stream:
        return [orjson.loads(line) for line in stream]


def hico(truth: str, predictions: str) -> None:
    from tests.support import reference

    reference.evaluate("hico", records(truth), records(predictions), list(load("hico").interactions))


def types(truth: str, predictions: str) -> None:
    """The error type of every prediction: what each of the oracles begins with."""
    from tests.support import reference

    by_id, interactions = {record["image_id"]: record for record in records(truth)}, load("hico").interactions
    for record in records(predictions):
        reference.error_types(by_id[record["image_id"]], record, interactions)


def vcoco(truth: str, predictions: str) -> None:
    from tests.support import vcoco_reference

    annotated, found = records(truth), records(predictions)
    for name in ("vcoco-agent", "vcoco-s1", "vcoco-s2"):
        vcoco_reference.evaluate(name, annotated, found, load("vcoco").roles_of)


def shoe(truth: str, predictions: str, similarities: str) -> None:
    """Soft mAP and mF1, looking a pair of labels up once."""
    from hoicli.wordnet.senses import candidates, ground_truth_sense
    from tests.support import shoe_reference

    table = {frozenset((row["a"], row["b"])): row["similarity"] for row in records(similarities)}
    verbs, objects = (cache(partial(candidates, pos=pos)) for pos in "vn")

    @cache
    def alike(verb: str, name: str | None, other_verb: str, other_name: str | None) -> float:
        verb_sense, sense = ground_truth_sense("hico", verb, name)
        of_verb = shoe_reference.similarity_of(verb, verb_sense, other_verb, None, verbs, table)
        of_object = shoe_reference.similarity_of(name, sense, other_name, None, objects, table)
        return shoe_reference.combined(of_verb, of_object, name is None and other_name is None, "mean", 0.5)

    def sigma(annotated: Record, item: Record, record: Record, hoi: Record) -> float:
        names = (shoe_reference.label_of(annotated, item), shoe_reference.label_of(record, hoi))
        return alike(item["verb"], names[0], hoi["verb"], names[1])

    shoe_reference.evaluate(records(truth), records(predictions), sigma, delta=0.5)


def wup(pairs: str, corpora: str) -> None:
    """As a script does it: WordNet loaded, both senses looked up, the measure asked."""
    import_module("nltk.data").path.insert(0, corpora)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no other languages
        wordnet = import_module("nltk.corpus.reader.wordnet").WordNetCorpusReader(f"{corpora}/corpora/wordnet", None)
    for row in records(pairs):
        wordnet.synset(row["a"]).wup_similarity(wordnet.synset(row["b"]))


PEERS: dict[str, Callable[..., None]] = {"hico": hico, "types": types, "vcoco": vcoco, "shoe": shoe, "wup": wup}

if __name__ == "__main__":
    PEERS[sys.argv[1]](*sys.argv[2:])
