"""Referring: the phrase that a model gives for what a pair does, against the true one.

`exact_match` as hoi-benchmarks (SIT-AIGCDesignLab, commit 78ab063) has it: the same letters, in either case. Where its
scripts take BERTScore or a model as judge, `verb_similarity` is SHOE's similarity of the two verbs: that of the true
verb's sense and the sense of the predicted verb which is most similar to it (SHOE supplement, section 4). The object is
not part of it: its box was given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

from hoicli.converters.vlm.spoken_names import denies
from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.rating import rate
from hoicli.shoe.similarity_table import Pair, SimilarityTable, pair_of
from hoicli.vlm.result_files import Referring, asked_settings
from hoicli.vlm.task_scores import Measured, Shares
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import normalise
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import candidates, senses_of

LONGEST_VERB = 3
"""The number of words of a dataset's longest verbs (`talk_on_phone`)."""

Compared = Mapping[tuple[str, str], tuple[str | None, list[str]]]
"""For each different (true phrase, predicted phrase): the sense of the true verb, None if it has none, and the senses
that the predicted verb may have."""


def measure_referring(
    rows: Sequence[Referring], sim: Stream | str, dataset: str | None, policy: ErrorPolicy, *, released: bool = False
) -> Measured:
    """Return exact_match and verb_similarity, whose n counts phrases. sim: a table of similarities, or the name of an
    offline measure; dataset: whose senses the true verbs have. released: leave out requests that failed, as the
    released batch scripts do."""
    similar, measure_name = similarities(read_senses(rows, dataset), sim, policy)
    rows_kept = [row for row in rows if not (released and row.failed)]
    images = {name: number for number, name in enumerate(sorted({row.image for row in rows_kept}))}
    values = {
        "exact_match": np.array([_plain(row.truth) == _plain(row.answer) for row in rows_kept], dtype=np.float64),
        "verb_similarity": np.array([similar[row.truth, row.answer] for row in rows_kept], dtype=np.float64),
    }
    image = np.array([images[row.image] for row in rows_kept], dtype=np.int64)
    columns = {(metric, "full"): (value, np.ones_like(image)) for metric, value in values.items()}
    shares, n = [Shares(image, columns)], dict.fromkeys(columns, len(rows_kept))
    metric_settings = {"verb_similarity": {"data": dataset or "open", "sim": measure_name}}
    return Measured(len(images), n, shares, "hoi-referring", asked_settings(rows), metric_settings)


def _plain(phrase: str) -> str:
    return phrase.lower().strip()


def read_senses(rows: Sequence[Referring], dataset: str | None) -> Compared:
    """Return the senses that the similarity of the rows needs. dataset: whose verbs the true phrases have, None for the
    first sense that WordNet gives each of them."""
    sense = _first_sense if dataset is None else _sense_in(dataset)
    return {
        (truth, phrase): (sense(truth), candidates(phrase, "v") if phrase.strip() and not _denies(phrase) else [])
        for truth, phrase in sorted({(row.truth, row.answer) for row in rows})
    }


def needed_pairs(senses: Compared) -> list[Pair]:
    """Return the pairs of different senses that have to be rated, sorted."""
    to_rate = [(sense, pool) for (truth, phrase), (sense, pool) in senses.items() if _plain(truth) != _plain(phrase)]
    return sorted({pair_of("v", sense, other) for sense, pool in to_rate if sense for other in pool if other != sense})


def similarities(senses: Compared, sim: Stream | str, policy: ErrorPolicy) -> tuple[dict[tuple[str, str], float], str]:
    """Return the similarity of each (true phrase, predicted phrase), and the name of the measure in signatures (for a
    table its digest). Equal phrases have 1; a verb without a sense has 0, and the user is told how many there are.
    Raises `DataError` for a table that lacks a pair."""
    rated, measure = _rate_pairs(needed_pairs(senses), sim, policy)
    similar: dict[tuple[str, str], float] = {}
    senseless: list[str] = []
    for (truth, phrase), (sense, pool) in senses.items():
        if _plain(truth) == _plain(phrase):
            similar[truth, phrase] = 1.0
        elif sense is None or not pool:
            similar[truth, phrase] = 0.0
            senseless += [truth if sense is None else phrase] if phrase.strip() else []
        else:
            values = [1.0 if other == sense else rated[pair_of("v", sense, other)] for other in pool]
            similar[truth, phrase] = max(values)
    if senseless:
        count, first = f"{len(senseless):,}", senseless[0]
        note(f"phrases without a verb that WordNet knows, of similarity 0: {count} (the first: {first!r})")
    return similar, measure


def _rate_pairs(pairs: Sequence[Pair], sim: Stream | str, policy: ErrorPolicy) -> tuple[dict[Pair, float], str]:
    """Return the similarity of each pair of senses, and the name of the measure in signatures."""
    if isinstance(sim, str):
        return {pair: rating.similarity or 0.0 for pair, rating in zip(pairs, rate(sim, pairs), strict=True)}, sim
    table = SimilarityTable.read(sim, policy, open_wordnet().canonical)
    values = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs]).tolist()
    if missing := sum(map(math.isnan, values)):
        problem = f"{missing:,} of {len(pairs):,} pairs of senses are not in the similarity table"
        how = f"{arg('needed')} writes those that are needed, hoicli shoe-sim --pairs rates them"
        raise DataError(f"{problem}; {how}", place=sim.name, code="not-whole")
    return dict(zip(pairs, values, strict=True)), f"table-{table.digest()}"


def _denies(phrase: str) -> bool:
    """Return whether a phrase says what a pair does not do: `never riding` is no riding."""
    return normalise(phrase) != "no_interaction" and denies(re.findall(r"\w+(?:['\u2019]\w+)*", phrase.lower()))


@cache
def _first_sense(phrase: str) -> str | None:
    return next(iter(candidates(phrase, "v")), None)


def _sense_in(dataset: str) -> Callable[[str], str | None]:
    """Return a function that finds the sense of a true phrase: the curated sense of the longest of the dataset's verbs
    with which the phrase begins (in any form: `sitting on bench` has `sit_on`), with the object that the rest names;
    else WordNet's first sense."""
    vocabulary = load(dataset)
    curated, wordnet = senses_of(vocabulary), open_wordnet()

    @cache
    def sense(phrase: str) -> str | None:
        words = normalise(phrase).split("_")
        heads = dict.fromkeys((words[0], *wordnet.forms(words[0], "v")))
        for length, head in product(range(min(LONGEST_VERB, len(words)), 0, -1), heads):
            verb = "_".join((head, *words[1:length]))
            if verb in vocabulary.verb_ids:
                rest = "_".join(words[length:])
                sense_found, _ = curated(verb, rest or None)
                if sense_found is not None:
                    return sense_found
        return _first_sense(phrase)

    return sense
