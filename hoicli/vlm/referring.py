"""Referring (the model is shown a pair and says what it does): the predicted phrase against the true one.

`exact_match` as hoi-benchmarks (SIT-AIGCDesignLab, commit 78ab063) has it: the same letters, in either case. Where its
scripts take BERTScore or a model as judge, `verb_similarity` is SHOE's similarity of the two verbs: that of the true
verb's sense and the sense of the predicted verb which is most similar to it (SHOE supplement, section 4). The object is
not part of it: its box was given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.rating import backend_of, rate, signed_measure
from hoicli.shoe.similarity_table import Pair, SensePairs, SimilarityTable, pair_of
from hoicli.vlm.result_files import Referring, asked_settings
from hoicli.vlm.task_scores import Measured, Shares
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import normalise
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import candidates, senses_of
from hoicli.wordnet.word_uses import denies

LONGEST_VERB = 3
"""The number of words of a dataset's longest verbs (`talk_on_phone`)."""

PhraseSenses = Mapping[tuple[str, str], tuple[str | None, list[str]]]
"""{(true phrase, predicted phrase): (the true verb's sense or None, the senses that the predicted verb may have)}."""


def measure_referring(
    rows: Sequence[Referring], sim: Stream | str, dataset: str | None, policy: ErrorPolicy, *, released: bool = False
) -> Measured:
    """Return exact_match and verb_similarity, whose n counts phrases. sim: a table of similarities, or the name of an
    offline measure; dataset: whose curated senses the true verbs have, None for WordNet's first senses; released: leave
    out requests that failed, as the released batch scripts do."""
    similarity, measure_name = similarities(read_senses(rows, dataset), sim, policy)
    rows_kept = [row for row in rows if not (released and row.failed)]
    images = {name: number for number, name in enumerate(sorted({row.image for row in rows_kept}))}
    values = {
        "exact_match": np.array([_plain(row.truth) == _plain(row.answer) for row in rows_kept], dtype=np.float64),
        "verb_similarity": np.array([similarity[row.truth, row.answer] for row in rows_kept], dtype=np.float64),
    }
    image = np.array([images[row.image] for row in rows_kept], dtype=np.int64)
    columns = {(metric, "full"): (value, np.ones_like(image)) for metric, value in values.items()}
    shares, n = [Shares(image, columns)], dict.fromkeys(columns, len(rows_kept))
    metric_settings = {"verb_similarity": {"data": dataset or "open", "sim": measure_name}}
    return Measured(len(images), n, shares, "hoi-referring", asked_settings(rows), metric_settings)


def _plain(phrase: str) -> str:
    """Return a phrase in the form in which phrases are compared: lower case, without space around it."""
    return phrase.lower().strip()


def read_senses(rows: Sequence[Referring], dataset: str | None) -> PhraseSenses:
    """Return the senses of each different true phrase and predicted phrase; an empty or denying prediction ("not
    riding") has none. dataset: whose verbs the true phrases have, None for WordNet's first senses."""
    find_sense = _first_sense if dataset is None else _sense_finder(dataset)
    senses = {}
    for truth, answer in sorted({(row.truth, row.answer) for row in rows}):
        answer_senses = candidates(answer, "v") if answer.strip() and not _denies(answer) else []
        senses[truth, answer] = find_sense(truth), answer_senses
    return senses


def needed_pairs(senses: PhraseSenses) -> list[Pair]:
    """Return the pairs of different senses that have to be rated to compare the phrases, sorted."""
    pairs = set[Pair]()
    for (truth, answer), (sense, answer_senses) in senses.items():
        if sense and _plain(truth) != _plain(answer):
            pairs.update(pair_of("v", sense, other) for other in answer_senses if other != sense)
    return sorted(pairs)


def similarities(
    senses: PhraseSenses, sim: Stream | str, policy: ErrorPolicy
) -> tuple[dict[tuple[str, str], float], str]:
    """Return {(true phrase, predicted phrase): similarity of their verbs}, and the name of the measure in signatures
    (for a table its digest). Equal phrases have 1; a verb without a sense has 0, and a note says how many there are.
    sim: a table of similarities, which must have all pairs, or the name of an offline measure."""
    rated, measure = _rate_pairs(needed_pairs(senses), sim, policy)
    similarity: dict[tuple[str, str], float] = {}
    senseless: list[str] = []
    for (truth, answer), (sense, answer_senses) in senses.items():
        if _plain(truth) == _plain(answer):
            similarity[truth, answer] = 1.0
        elif sense is None or not answer_senses:
            similarity[truth, answer] = 0.0
            if answer.strip():
                senseless.append(truth if sense is None else answer)
        else:
            values = [1.0 if other == sense else rated[pair_of("v", sense, other)] for other in answer_senses]
            similarity[truth, answer] = max(values)
    if senseless:
        count, first = f"{len(senseless):,}", senseless[0]
        note(f"phrases without a verb that WordNet knows, of similarity 0: {count} (the first: {first!r})")
    return similarity, measure


def _rate_pairs(pairs: Sequence[Pair], sim: Stream | str, policy: ErrorPolicy) -> tuple[dict[Pair, float], str]:
    """Return {pair of senses: similarity} and the name of the measure in signatures. sim: a table of similarities,
    which must have all pairs, or the name of an offline measure."""
    if isinstance(sim, str):
        ratings = zip(pairs, rate(sim, pairs), strict=True)
        return {pair: rating.similarity or 0.0 for pair, rating in ratings}, signed_measure(sim)
    table = SimilarityTable.read(sim, policy, open_wordnet().canonical)
    values = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs]).tolist()
    if missing := sum(map(math.isnan, values)):
        problem = f"{missing:,} of {len(pairs):,} pairs of senses are not in the similarity table"
        how = f"{arg('needed')} writes those that are needed, hoicli shoe-sim --pairs rates them"
        raise DataError(f"{problem}; {how}", place=sim.name, code="not-whole")
    backend = backend_of(table, [SensePairs.from_names("v", pairs)])
    name = f"table-{table.digest()}" if backend is None else signed_measure(backend)
    return dict(zip(pairs, values, strict=True)), name


def _denies(phrase: str) -> bool:
    """Return whether a phrase says what is not done ("never riding"); the class `no_interaction` is no such phrase."""
    return normalise(phrase) != "no_interaction" and denies(re.findall(r"\w+(?:['\u2019]\w+)*", phrase.lower()))


@cache
def _first_sense(phrase: str) -> str | None:
    """Return the first sense that WordNet gives the verb of a phrase, None without one."""
    return next(iter(candidates(phrase, "v")), None)


def _sense_finder(dataset: str) -> Callable[[str], str | None]:
    """Return a function that finds the sense of a true phrase. "sitting on bench" begins with a verb of the dataset,
    sit_on, and the rest names an object: the sense is that of the dataset's table for the longest such verb with this
    object. It is WordNet's first sense for a phrase that begins with no verb of the dataset."""
    vocabulary = load(dataset)
    curated, wordnet = senses_of(vocabulary), open_wordnet()

    @cache
    def find_sense(phrase: str) -> str | None:
        """Return the sense of a true phrase, None without one."""
        words = normalise(phrase).split("_")
        base_forms = dict.fromkeys((words[0], *wordnet.forms(words[0], "v")))  # sitting: sitting, sit
        for length, base_form in product(range(min(LONGEST_VERB, len(words)), 0, -1), base_forms):
            verb = "_".join((base_form, *words[1:length]))
            if verb in vocabulary.verb_ids:
                verb_sense, _ = curated(verb, "_".join(words[length:]) or None)
                if verb_sense is not None:
                    return verb_sense
        return _first_sense(phrase)

    return find_sense
