"""Labels to WordNet senses: what a free label may mean, and what a benchmark's label does mean.

`candidates` follows section 4 of the SHOE supplement: verbs are brought to their base form, compounds are looked up,
and what is found is pooled. In evaluation a prediction takes the candidate most similar to the ground truth's sense;
the ground truth has one sense, from the curated table data/senses.json (`ground_truth_sense`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any

from hoicli.errors import DataError
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary, normalise, replace_typography, strip_accents
from hoicli.wordnet.lexicon import Lexicon, open_embedded, open_wordnet

LONGEST = 12
"""How many words of a label are looked at; WordNet's longest lemmas have nine."""

ARTICLES = frozenset({"a", "an", "the"})
AUXILIARIES = frozenset({"am", "are", "be", "been", "being", "is", "to", "was", "were"})
NEGATIONS = frozenset({"no", "not"})
PARTICLES = frozenset({"away", "back", "down", "in", "off", "on", "out", "over", "up"})
FUNCTION_WORDS = ARTICLES | frozenset(
    {"and", "at", "by", "for", "from", "her", "his", "in", "its", "of", "on", "or", "their", "to", "with"}
)
"""Words that are no component of a compound by themselves, though WordNet has nouns so spelt (indium, ampere)."""

_SENSE = re.compile(r"\S+\.([nvasr])\.\d+")
_WORD = re.compile(r"(?<![\s_/-])([\s_/-]*)([^\s_/-]+)")  # a run of separators is tried from its start alone
_PUNCTUATION = " \t\r\n.,;:!?\"'()[]"

Forms = list[str]


@dataclass(frozen=True)
class CuratedSense:
    """The one sense of a benchmark's label; `why` explains it where it is not obvious, or another would fit better."""

    sense: str
    why: str | None = None


def candidates(label: str, pos: str) -> list[str]:
    """Return the names of the senses that a label may have, the likeliest first; none when WordNet has none of its
    words.

    pos: "n" or "v". A name of a sense gives that sense. Case, articles, and whether words are separated by spaces,
    underscores or hyphens do not matter.

    Nouns: the whole label as a lemma ("dining_table"), then its parts of several words, the longest and last first
    ("fire hydrant" of "red fire hydrant"), then its single words from the last, which is the head, to the first. Verbs:
    the first word that is a verb, with what follows it as long as that is a lemma ("pick_up", "hop_on"), then shorter,
    then the verb alone ("talk" of "talk_on_phone"), auxiliaries dropped. Within a lemma the order is WordNet's, by
    frequency; of a word's base forms the word itself comes first. A few lemmas have senses from the curated table after
    WordNet's ("text", "stop sign"), so that every label of a benchmark has its own sense among its candidates. Each
    sense is listed once.
    """
    return list(_candidates_with_lemmas(open_wordnet(), label, pos))


@lru_cache(maxsize=1 << 16)
def _candidates_with_lemmas(wordnet: Lexicon, label: str, pos: str) -> Mapping[str, str]:
    """Return `candidates`, each with the lemma of the label that has the sense ("dog", of "hot dog")."""
    named = _SENSE.fullmatch(label.strip())
    if named:
        try:
            name = wordnet.graph.names[wordnet.index(label.strip())]
        except KeyError:
            return {}
        return {name: name.rsplit(".", 2)[0]} if named[1] == pos else {}
    words = [(before, word) for before, word in _WORD.findall(replace_typography(label).lower().strip(_PUNCTUATION))][
        :LONGEST
    ]
    while len(words) > 1 and words[0][1] in ARTICLES:
        del words[0]
    lemmas = _noun_lemmas(wordnet, words) if pos == "n" else _verb_lemmas(wordnet, words)
    lemma_of: dict[str, str] = {}
    for lemma in lemmas:
        added = (_translate_sense(wordnet, sense) for sense in _table()["added"][pos].get(lemma, ()))
        for sense in (*wordnet.senses(lemma, pos), *added):
            if sense is not None:
                lemma_of.setdefault(sense, lemma)
    if not lemma_of and (plain := strip_accents(label)) != label:  # "café" is WordNet's cafe
        return _candidates_with_lemmas(wordnet, plain, pos)
    return lemma_of


@cache
def _translate_sense(wordnet: Lexicon, sense: str) -> str | None:
    """Return the sense, in the WordNet in use, that is a sense of the curated table, which has WordNet 3.0's."""
    return wordnet.translate(sense)


def ground_truth_sense(dataset: str, verb: str, object_: str | None) -> tuple[str | None, str | None]:
    """Return (sense of the verb, sense of the object) of an interaction of a dataset in CURATED.

    None for an action without object, for no_interaction, and for a label the dataset does not have. Names are the
    dataset's, with underscores or spaces.
    """
    curated_verb = verb_choice(dataset, verb, object_)
    curated_object = None if object_ is None else object_choice(dataset, object_)
    return curated_verb.sense if curated_verb else None, curated_object.sense if curated_object else None


CURATED = {"hico": "hico", "vcoco": "vcoco", "swig": "swig"}
CURATED |= dict.fromkeys(("hico-det-sg", "ambiguous-hoi", "pastanet-hoi"), "hico")
"""The datasets whose labels have curated senses, with the dataset these were made for: equal labels mean the same."""


def senses_of(vocabulary: Vocabulary) -> Callable[[str, str | None], tuple[str | None, str | None]]:
    """Return `ground_truth_sense` of a dataset. One without curated senses has those of its objects whose nouns it
    names, and None for all other labels: they are looked up like labels of predictions."""
    if vocabulary.name in CURATED:
        return partial(ground_truth_sense, vocabulary.name)
    return lambda _, name: (None, None if name is None else _noun(vocabulary, name))


def _noun(vocabulary: Vocabulary, name: str) -> str | None:
    """Return the sense, in the WordNet in use, of an object whose WordNet 3.0 noun the dataset names (n02084071)."""
    if (noun := vocabulary.noun_ids.get(name)) is None:
        return None
    try:
        return _translate_sense(open_wordnet(), _sense_of_number(noun))
    except KeyError:
        problem = f"{noun} is no noun of WordNet 3.0; correct it, or list the objects without nouns"
        raise DataError(problem, place=vocabulary.path, field=f"objects.{name}") from None


def _sense_of_number(noun: str) -> str:
    """Return the sense of WordNet 3.0 with a number (n02084071). Raises `KeyError` for another number."""
    graph = open_embedded().graph
    return graph.names[graph.row_at_offset(noun[0], int(noun[1:]))]


def verb_choice(dataset: str, verb: str, object_: str | None) -> CuratedSense | None:
    """Return the sense of a dataset's verb with an object (None: with any that the table does not name). V-COCO's
    actions are HICO-DET's verbs where both have them."""
    verbs, name, special_verbs = _table()["verbs"], normalise(verb), CURATED[dataset]
    shared = verbs["hico"] if special_verbs == "vcoco" and name in load("vcoco").verbs else {}
    return _choice(verbs[special_verbs].get(name) or shared.get(name), normalise(object_ or ""))


def object_choice(dataset: str, object_: str) -> CuratedSense | None:
    """Return the sense of a dataset's object. SWIG-HOI's are in its vocabulary, as WordNet 3.0 offsets."""
    name = normalise(object_)
    if dataset == "swig":
        noun = load("swig").noun_ids.get(name)
        return (
            None
            if noun is None
            else _choice({"sense": _sense_of_number(noun), "why": f"the dataset's noun_id, {noun}"})
        )
    return _choice(_table()["objects"]["coco"].get(name))


def _choice(entry: str | dict[str, Any] | None, object_: str = "") -> CuratedSense | None:
    """Return what an entry of the table chooses, in the WordNet in use; None where that has no such sense. object_: the
    object that a verb's entry is asked for."""
    if entry is None:
        return None
    entry = {"sense": entry} if isinstance(entry, str) else entry
    senses_with_object = [sense for sense, objects in entry.get("for", {}).items() if object_ in objects]
    own_sense = _translate_sense(open_wordnet(), senses_with_object[0] if senses_with_object else entry["sense"])
    better, why = entry.get("better", {}).get(object_), entry.get("why")
    if better and (better := _translate_sense(open_wordnet(), better)):
        why = f"{why}; {better} would fit better"
    return None if own_sense is None else CuratedSense(own_sense, why)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("data", "senses.json").read_text(encoding="utf-8"))
    return table


def _join_words(words: list[tuple[str, str]]) -> Forms:
    """Return spellings of consecutive words as one lemma: as given, with underscores, with hyphens, in one word."""
    plain = [word for _, word in words]
    as_given = words[0][1] + "".join(("-" if before == "-" else "_") + word for before, word in words[1:])
    return list(dict.fromkeys([as_given, "_".join(plain), "-".join(plain), "".join(plain)]))


def _bases(wordnet: Lexicon, form: str, pos: str) -> Forms:
    """Return the lemmas that a word may be a form of, those that only our table has ("text") last."""
    added = _table()["added"][pos]
    endings = wordnet.reader.MORPHOLOGICAL_SUBSTITUTIONS[pos]
    forms = [form, *(form[: -len(old)] + new for old, new in endings if form.endswith(old))]
    return list(
        dict.fromkeys([*wordnet.forms(form, pos), *(other_form for other_form in forms if other_form in added)])
    )


def _noun_lemmas(wordnet: Lexicon, words: list[tuple[str, str]]) -> Forms:
    """Return the lemmas of a label's nouns: of parts of several words, then of single words from the last."""
    count = len(words)
    spans = [words[begin : begin + size] for size in range(count, 1, -1) for begin in range(count - size, -1, -1)]
    single = [[word] for word in reversed(words) if word[1] not in FUNCTION_WORDS or len(words) == 1]
    return [lemma for span in spans + single for form in _join_words(span) for lemma in _bases(wordnet, form, "n")]


def _verb_lemmas(wordnet: Lexicon, words: list[tuple[str, str]]) -> Forms:
    """Return the lemmas of the first verb of a label, with the words that follow it, the longest first."""
    if not words or words[0][1] in NEGATIONS:
        return []
    while len(words) > 1 and words[0][1] in AUXILIARIES and _bases(wordnet, words[1][1], "v"):
        words = words[1:]
    for begin in range(len(words)):
        spans = [words[begin:stop] for stop in range(len(words), begin, -1)]
        if words[-1][1] in PARTICLES and len(spans) > 2:  # "pick the apple up"
            spans.insert(-1, [words[begin], (" ", words[-1][1])])
        lemmas = list(chain.from_iterable(_verb_forms(wordnet, span) for span in spans))
        if lemmas:
            return lemmas
    return []


def _verb_forms(wordnet: Lexicon, words: list[tuple[str, str]]) -> Forms:
    """Return the lemmas that consecutive words are, inflected at the end ("hand-feeding") or start ("picking up")."""
    bases = _bases(wordnet, words[0][1], "v") if len(words) > 1 else []
    forms = [
        form
        for form in chain.from_iterable(_join_words([(" ", base), *words[1:]]) for base in bases)
        if wordnet.senses(form, "v")
    ]
    forms += list(chain.from_iterable(_bases(wordnet, form, "v") for form in _join_words(words)))
    return list(dict.fromkeys(forms))


# For `vocab --senses`


def sense_rows(label: str, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield a row for each sense that a verb, an object or both (the verb first) may have. Of a label of the dataset,
    taken as ground truth, the sense that it has in a curated table is `chosen`, and `why` says so where it is not
    obvious."""
    curated = vocabulary.name if vocabulary.name in CURATED else None
    verb, rest = _parts(label, vocabulary)
    object_ = label if verb is None else rest
    if curated and verb == label and object_choice(curated, label):  # train, tie: both a verb and an object
        object_ = label
    curated_object = object_choice(curated, object_) if curated and object_ else None
    if verb is not None or curated_object is None:
        curated_verb = verb_choice(curated, verb or label, rest) if curated else None
        yield from _rows_of(verb or label, "v", curated_verb)
    if object_:
        yield from _rows_of(object_, "n", curated_object)


def _parts(label: str, vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    """Return (the dataset's longest verb that a label begins with, the rest); (None, None) if it begins with none."""
    words, longest = normalise(label).split("_"), max(len(normalise(verb).split("_")) for verb in vocabulary.verbs)
    for stop in range(min(len(words), longest), 0, -1):
        if "_".join(words[:stop]) in vocabulary.verb_ids:
            return "_".join(words[:stop]), "_".join(words[stop:]) or None
    return None, None


def _rows_of(label: str, pos: str, choice: CuratedSense | None) -> Iterator[dict[str, Any]]:
    wordnet = open_wordnet()
    for sense, lemma in _candidates_with_lemmas(wordnet, label, pos).items():
        synset = wordnet.reader.synset(sense)
        chosen = choice is not None and sense == choice.sense
        why = None if lemma == normalise(label) else f"from {lemma!r}"
        if choice is not None and chosen:
            why = choice.why
        yield {
            "label": label,
            "pos": pos,
            "sense": sense,
            "gloss": synset.definition(),
            "lemmas": synset.lemma_names(),
            "chosen": chosen,
            "why": why,
        }
