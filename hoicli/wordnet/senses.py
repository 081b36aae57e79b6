"""Labels to WordNet senses: what a free label may mean, and what a benchmark's label does mean.

`candidates` follows section 4 of the SHOE supplement: verbs are brought to their base form, compounds are looked up,
and what is found is pooled. In evaluation a prediction takes the candidate most similar to the ground truth's sense;
the ground truth has one sense, from the curated table data/senses.json (`ground_truth_sense`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any

from hoicli.errors import DataError
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary, normalise, strip_accents
from hoicli.wordnet.lexicon import Lexicon, open_embedded, open_wordnet
from hoicli.wordnet.phrases import ARTICLES, SplitLabel, spellings_of, split_name, split_verb

NEGATIONS = frozenset({"no", "not"})
PARTICLES = frozenset({"away", "back", "down", "in", "off", "on", "out", "over", "up"})
FUNCTION_WORDS = ARTICLES | frozenset(
    {"and", "at", "by", "for", "from", "her", "his", "in", "its", "of", "on", "or", "their", "to", "with"}
)
"""Words that are no component of a compound by themselves, though WordNet has nouns so spelt (indium, ampere)."""

_SENSE = re.compile(r"\S+\.([nvasr])\.\d+")


@dataclass(frozen=True)
class CuratedSense:
    """The one sense of a benchmark's label. why: a reason for the choice, where it is not obvious or another sense
    would fit better."""

    sense: str
    why: str | None = None


def candidates(label: str, pos: str) -> list[str]:
    """Return the names of the senses that a label may have, the likeliest first; none if WordNet has none of its words.

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
    return list(candidates_with_lemmas(open_wordnet(), label, pos))


@lru_cache(maxsize=1 << 16)
def candidates_with_lemmas(wordnet: Lexicon, label: str, pos: str) -> Mapping[str, str]:
    """Return {sense: the lemma in the label that has it ("dog", of "hot dog")} for all `candidates` of a label."""
    sense_name = _SENSE.fullmatch(label.strip())
    if sense_name:
        try:
            name = wordnet.graph.names[wordnet.index(label.strip())]
        except KeyError:
            return {}
        return {name: name.rsplit(".", 2)[0]} if sense_name[1] == pos else {}
    words = split_name(label) if pos == "n" else split_verb(wordnet, label)
    lemmas = _noun_lemmas(wordnet, words) if pos == "n" else _verb_lemmas(wordnet, words)
    lemma_of: dict[str, str] = {}
    for lemma in lemmas:
        for sense in senses_in(wordnet, lemma, pos):
            lemma_of.setdefault(sense, lemma)
    without_accents = strip_accents(label)
    if not lemma_of and without_accents != label:  # "café" is WordNet's cafe
        return candidates_with_lemmas(wordnet, without_accents, pos)
    return lemma_of


def senses_in(wordnet: Lexicon, lemma: str, pos: str) -> list[str]:
    """Return the names of all senses of a lemma: WordNet's, the most frequent first, then those that the curated table
    adds, as far as this WordNet has them."""
    added = (_translate_sense(wordnet, sense) for sense in _table()["added"][pos].get(lemma, ()))
    return [*wordnet.senses(lemma, pos), *(sense for sense in added if sense is not None)]


@cache
def _translate_sense(wordnet: Lexicon, sense: str) -> str | None:
    """Return the sense of a WordNet that corresponds to a sense of WordNet 3.0, whose senses the curated table has;
    None if there is none. Answers are cached."""
    return wordnet.translate(sense)


def ground_truth_sense(dataset: str, verb: str, object_: str | None) -> tuple[str | None, str | None]:
    """Return (sense of the verb, sense of the object) of an interaction, from a dataset's curated table.

    A sense is None for no_interaction, for the object of an action without one, and for a label that the dataset does
    not have. dataset: a key of CURATED; verb, object_: its names, with underscores or spaces.
    """
    curated_verb = verb_choice(dataset, verb, object_)
    curated_object = None if object_ is None else object_choice(dataset, object_)
    return curated_verb.sense if curated_verb else None, curated_object.sense if curated_object else None


CURATED = {"hico": "hico", "vcoco": "vcoco", "swig": "swig"}
CURATED |= dict.fromkeys(("hico-det-sg", "ambiguous-hoi", "pastanet-hoi"), "hico")
"""The datasets whose labels have curated senses, with the dataset these were made for: equal labels mean the same."""


def senses_of(vocabulary: Vocabulary) -> Callable[[str, str | None], tuple[str | None, str | None]]:
    """Return a function (verb, object or None) -> (sense of the verb, sense of the object) for the ground truth of a
    dataset: `ground_truth_sense` for one with curated senses. Another dataset has senses only for objects whose WordNet
    nouns its vocabulary names; all other labels get None, and are then looked up like labels of predictions."""
    if vocabulary.name in CURATED:
        return partial(ground_truth_sense, vocabulary.name)
    return lambda _, name: (None, None if name is None else _noun_sense(vocabulary, name))


def sense_of_verb(vocabulary: Vocabulary, verb: str, object_: str | None) -> str | None:
    """Return the sense of a dataset's verb with an object, None for the one with most objects: the curated one, else
    its first candidate; None for a verb without a sense."""
    if vocabulary.name in CURATED:
        choice = verb_choice(vocabulary.name, verb, object_)
        return choice.sense if choice else None
    return next(iter(candidates(verb, "v")), None)


def sense_of_object(vocabulary: Vocabulary, name: str) -> str | None:
    """Return the sense of a dataset's object: COCO's objects have curated ones, SWIG-HOI's have WordNet's numbers; else
    it is the first candidate. None for an object without a sense."""
    if name in vocabulary.coco_ids and (choice := object_choice("hico", name)):
        return choice.sense
    return _noun_sense(vocabulary, name) or next(iter(candidates(name, "n")), None)


def _noun_sense(vocabulary: Vocabulary, name: str) -> str | None:
    """Return the sense, in the WordNet in use, of an object for which the vocabulary has an id of a WordNet 3.0 noun
    ("n02084071"); None without an id. Raises `DataError` for an id that is no noun's."""
    noun_id = vocabulary.noun_ids.get(name)
    if noun_id is None:
        return None
    try:
        return _translate_sense(open_wordnet(), _sense_of_id(noun_id))
    except KeyError:
        problem = f"{noun_id} is no noun of WordNet 3.0; correct it, or list the objects without nouns"
        raise DataError(problem, place=vocabulary.path, field=f"objects.{name}") from None


def _sense_of_id(noun_id: str) -> str:
    """Return WordNet 3.0's sense of an id ("n02084071": part of speech and byte offset). Raises `KeyError` for none."""
    graph = open_embedded().graph
    return graph.names[graph.row_at_offset(noun_id[0], int(noun_id[1:]))]


def verb_choice(dataset: str, verb: str, object_: str | None) -> CuratedSense | None:
    """Return the curated sense of a dataset's verb with an object, None for a verb that the dataset does not have.
    object_: None for the sense with all objects for which the table names no other. An action of V-COCO without an
    entry of its own has the sense of HICO-DET's verb of that name."""
    table, name, curated_for = _table()["verbs"], normalise(verb), CURATED[dataset]
    entry = table[curated_for].get(name)
    if entry is None and curated_for == "vcoco" and name in load("vcoco").verbs:
        entry = table["hico"].get(name)
    return _choose_sense(entry, normalise(object_ or ""))


def object_choice(dataset: str, object_: str) -> CuratedSense | None:
    """Return the curated sense of a dataset's object, None for one that the dataset does not have. SWIG-HOI's
    vocabulary has ids of WordNet 3.0 nouns; all other datasets have COCO's objects."""
    name = normalise(object_)
    if dataset != "swig":
        return _choose_sense(_table()["objects"]["coco"].get(name))
    noun_id = load("swig").noun_ids.get(name)
    if noun_id is None:
        return None
    return _choose_sense({"sense": _sense_of_id(noun_id), "why": f"the dataset's noun_id, {noun_id}"})


def _choose_sense(entry: str | dict[str, Any] | None, object_: str = "") -> CuratedSense | None:
    """Return the sense that an entry of the curated table names for a label, translated to the WordNet in use; None
    without an entry, and if that WordNet lacks the sense.

    An entry is a sense's name, or {"sense": name, "why": reason, "for": {another sense: the objects with which a verb
    has that one}, "better": {object: a sense that would fit better}}. object_: a verb's object.
    """
    if entry is None:
        return None
    entry = {"sense": entry} if isinstance(entry, str) else entry
    senses_with_object = [sense for sense, objects in entry.get("for", {}).items() if object_ in objects]
    sense = _translate_sense(open_wordnet(), senses_with_object[0] if senses_with_object else entry["sense"])
    better, why = entry.get("better", {}).get(object_), entry.get("why")
    if better and (better := _translate_sense(open_wordnet(), better)):
        why = f"{why}; {better} would fit better"
    return None if sense is None else CuratedSense(sense, why)


@cache
def _table() -> dict[str, Any]:
    """Return the curated table, data/senses.json: {"verbs": {dataset: {verb: entry}}, "objects": {"coco": {object:
    entry}}, "added": {part of speech: {lemma: senses that it has besides WordNet's}}}."""
    table: dict[str, Any] = json.loads(files(__package__).joinpath("data", "senses.json").read_text(encoding="utf-8"))
    return table


def base_forms(wordnet: Lexicon, form: str, pos: str) -> list[str]:
    """Return the lemmas of which a word may be a form: WordNet's, then those that only the curated table has."""
    added = _table()["added"][pos]  # {lemma: its senses} that hoicli's own table has beside WordNet's
    endings = wordnet.reader.MORPHOLOGICAL_SUBSTITUTIONS[pos]
    possible_bases = [form, *(form[: -len(old)] + new for old, new in endings if form.endswith(old))]
    added_bases = [base for base in possible_bases if base in added]
    return list(dict.fromkeys([*wordnet.forms(form, pos), *added_bases]))


def _noun_lemmas(wordnet: Lexicon, words: SplitLabel) -> list[str]:
    """Return the lemmas of a label's nouns: of its parts of several words, the longest and last first, then of its
    single words from the last to the first. A lemma may be repeated."""
    parts: list[SplitLabel] = []
    for size in range(len(words), 1, -1):
        parts += [words[begin : begin + size] for begin in range(len(words) - size, -1, -1)]
    parts += [[word] for word in reversed(words) if word[1] not in FUNCTION_WORDS or len(words) == 1]
    spellings = chain.from_iterable(map(spellings_of, parts))
    return list(chain.from_iterable(base_forms(wordnet, spelling, "n") for spelling in spellings))


def _verb_lemmas(wordnet: Lexicon, words: SplitLabel) -> list[str]:
    """Return the lemmas of the first verb of a label, with as many of the following words as a lemma has, the longest
    first; none for a negation ("not riding")."""
    if not words or words[0][1] in NEGATIONS:
        return []
    for begin in range(len(words)):
        parts = [words[begin:stop] for stop in range(len(words), begin, -1)]
        if words[-1][1] in PARTICLES and len(parts) > 2:  # "pick the apple up" has pick_up before pick
            parts.insert(-1, [words[begin], (" ", words[-1][1])])
        lemmas = list(chain.from_iterable(_verb_base_forms(wordnet, part) for part in parts))
        if lemmas:
            return lemmas
    return []


def _verb_base_forms(wordnet: Lexicon, words: SplitLabel) -> list[str]:
    """Return the verbs of which consecutive words may be a form, inflected in the first word ("picking up") or at the
    end ("hand-feeding")."""
    lemmas: list[str] = []
    for base in base_forms(wordnet, words[0][1], "v") if len(words) > 1 else ():
        lemmas += [lemma for lemma in spellings_of([(" ", base), *words[1:]]) if wordnet.senses(lemma, "v")]
    for spelling in spellings_of(words):
        lemmas += base_forms(wordnet, spelling, "v")
    return list(dict.fromkeys(lemmas))
