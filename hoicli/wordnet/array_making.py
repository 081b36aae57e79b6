"""The compiled arrays of a WordNet (`graph.Graph`, `graph.Lemmas`), made from one reading by nltk.

`python -m tests.support.wordnet_build` makes the arrays of the embedded WordNet 3.0; those of others are made when they
are first asked for (`lexicon`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hoicli.errors import DataError
from hoicli.records.kit import Ints
from hoicli.wordnet.graph import COUNTS, HYPERNYMS, POS, RELATIONS, Arrays, Graph
from hoicli.wordnet.measures import ancestors
from hoicli.wordnet.reader import WordNetReader

COMMONEST = 0.02
"""A word that occurs in the glosses of more than this share of synsets tells nothing: "of", "having", "genus"."""

DEEPEST = 255
"""The most steps from a synset up to its root; WordNet 3.0's longest way has 19."""

_WORD = re.compile(r"[a-z](?:[a-z'-]*[a-z])?")

Place = tuple[str, int]
"""Part of speech and byte offset, by which the files name a synset."""


class Entry(NamedTuple):
    """The parts of a synset that the compiled arrays are made from."""

    place: Place
    name: str
    words: list[str]  # in lower case
    tagged: int  # how often its senses were tagged in texts, plus 1
    pointers: dict[str, list[Place]]  # by the symbols of RELATIONS
    antonyms: list[tuple[str, Place, int]]  # (word, synset of its antonym, the antonym's number among that's words)
    gloss: tuple[set[str], set[str]]  # (words of lemmas and definition, further words of the examples)


def compile_arrays(reader: WordNetReader) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of `graph.Graph`, compiled from all synsets of a reader. Raises `DataError` if a synset is not
    at its byte offset, or if pointers lead nowhere, or up in a circle."""
    reader.check_offsets()
    entries = list(_read_entries(reader))
    rows = {entry.place: row for row, entry in enumerate(entries)}
    rows |= {("s", offset): row for (pos, offset), row in rows.items() if pos == "a"}  # files say "s" of satellites
    sizes = Counter(entry.place[0] for entry in entries)
    # the index files as nltk read them: {lemma: {part of speech: byte offsets of its synsets, main sense first}}
    places: dict[str, list[Place]] = {}
    for lemma, offsets_by_pos in reader._lemma_pos_offset_map.items():
        places[lemma] = list(chain.from_iterable(product((pos,), offsets_by_pos.get(pos, ())) for pos in POS))
    arrays = lemma_arrays(places, rows)

    # `_smallest` makes an array of the smallest type of integers that holds the numbers, `_text` one of lines of text
    number = {lemma: place for place, lemma in enumerate(sorted(reader.all_lemma_names()))}
    # the lemmas of each synset, as numbers
    words = [[number[word] for word in dict.fromkeys(entry.words) if word in number] for entry in entries]
    arrays |= {
        "sizes": np.array([sizes[pos] for pos in POS]),
        "names": _text(entry.name for entry in entries),
        "offset": _smallest([entry.place[1] for entry in entries]),
        "word_count": _smallest([len(numbers) for numbers in words]),
        "words": _smallest(list(chain.from_iterable(words))),
    }
    arrays |= _edge_arrays(entries, rows)
    arrays["antonyms"] = np.array(sorted(_antonyms(entries, rows, number)), np.int32).reshape(-1, 3).T
    arrays |= _gloss_arrays([entry.gloss for entry in entries])
    tag_counts = [entry.tagged for entry in entries] if reader.files.has(COUNTS) else None
    return arrays | _hierarchy_arrays(arrays, tag_counts)


def _edge_arrays(entries: list[Entry], rows: dict[Place, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of pointers between synsets: how many there are of each of RELATIONS, and for each pointer the
    rows of its two synsets. rows: {place: row of the synset}."""
    edges = []
    for symbol in RELATIONS.values():
        pairs: set[tuple[int, int]] = set()
        for row, entry in enumerate(entries):
            pairs.update((row, _row(rows, end)) for end in entry.pointers.get(symbol, ()))
        edges.append(sorted(pairs))
    arrays = {"edge_count": _smallest([len(pairs) for pairs in edges])}
    for side, key in enumerate(("edge_source", "edge_target")):
        arrays[key] = _smallest([pair[side] for pair in chain.from_iterable(edges)])
    return arrays


def _antonyms(entries: list[Entry], rows: dict[Place, int], number: Mapping[str, int]) -> set[tuple[int, int, int]]:
    """Return (place of the part of speech in POS, number of a lemma, number of its antonym) for all antonyms, both ways
    round. number: {lemma: its number}; words without one are left out."""
    antonyms: set[tuple[int, int, int]] = set()
    for entry in entries:
        for word, end, place in entry.antonyms:
            antonym = entries[_row(rows, end)].words[place]
            if word in number and antonym in number:
                part_of_speech = POS.index(entry.place[0])
                antonyms.add((part_of_speech, number[word], number[antonym]))
                antonyms.add((part_of_speech, number[antonym], number[word]))
    return antonyms


def lemma_arrays(table: Mapping[str, Iterable[Place]], rows: dict[Place, int]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of `graph.Lemmas`. table: {lemma: places of its synsets}; rows: {place: row of the synset}.
    Raises `DataError` for a place without a synset."""
    lemmas = sorted(table)
    senses = [[_row(rows, place) for place in table[lemma]] for lemma in lemmas]
    return {
        "lemmas": _text(lemmas),
        "sense_count": _smallest([len(lemma_senses) for lemma_senses in senses]),
        "senses": _smallest(list(chain.from_iterable(senses))),
    }


def _pointers_of(synset: Any) -> tuple[dict[str, list[Any]], list[tuple[str, Any, int]]]:
    """Return two things about one of nltk's synsets: its pointers, {symbol of the relation: places of synsets}, where
    those of its single words count, too; and its antonyms, (word, place of the antonym's synset, the antonym's number
    among the words of that)."""
    pointers = {symbol: list(targets) for symbol, targets in synset._pointers.items()}
    antonyms = []
    for (word, symbol), targets in synset._lemma_pointers.items():
        pointers.setdefault(symbol, []).extend((kind, offset) for kind, offset, _ in targets)
        if symbol == "!":  # WordNet's symbol of antonyms
            antonyms += [(word.lower(), (kind, offset), place) for kind, offset, place in targets]
    return pointers, antonyms


def _read_entries(reader: WordNetReader) -> Iterator[Entry]:
    """Yield an `Entry` for every synset of a reader, in the order of the rows."""
    tagged = _tag_counts(reader)

    @cache
    def stem(word: str) -> str:
        """Return the shortest lemma, of any part of speech, of which a word may be a form; else the word."""
        lemmas = set(chain.from_iterable(reader.forms(word, pos) for pos in POS))
        return min(lemmas, key=lambda lemma: (len(lemma), lemma), default=word)

    for pos in POS:
        for synset in reader.all_synsets(pos):
            pointers, antonyms = _pointers_of(synset)
            keys = {lemma.key() for lemma in synset.lemmas()}
            words = [name.lower() for name in synset.lemma_names()]
            yield Entry(
                place=(pos, synset.offset()),
                name=synset.name(),
                words=words,
                tagged=1 + sum(tagged[key] for key in keys),  # + 1, as usual for information content: none has 0
                pointers=pointers,
                antonyms=antonyms,
                gloss=_gloss(words, synset.definition(), synset.examples(), stem),
            )
        reader._synset_offset_cache.clear()  # else nltk keeps the whole WordNet, hundreds of megabytes


def _gloss(
    words: list[str], definition: str, examples: list[str], stem: Callable[[str], str]
) -> tuple[set[str], set[str]]:
    """Return (words of lemmas and definition, further words of examples), all reduced by `stem`. words: the lemmas."""
    lemmas = " ".join([*words, *(word.replace("_", " ") for word in words)])
    definition_words, example_words = (
        {stem(match[0]) for match in _WORD.finditer(text.lower())}
        for text in (f"{lemmas} {definition}", "\n".join(examples))
    )
    return definition_words, example_words - definition_words


def _tag_counts(reader: WordNetReader) -> Counter[str]:
    """Return {sense key: how often that sense was tagged in texts (the semantic concordances)}; {} without counts."""
    if not reader.files.has(COUNTS):
        return Counter()
    with reader.open(COUNTS) as lines:
        return Counter({key: int(count) for key, _, count in map(str.split, lines)})


def _gloss_arrays(glosses: list[tuple[set[str], set[str]]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the words in glosses (the gloss of each `Entry`), numbered. Words of a single synset, which
    no two can share, and words of too many synsets are left out."""
    synset_count = Counter(chain.from_iterable(definition | examples for definition, examples in glosses))
    words = sorted(word for word, count in synset_count.items() if 1 < count <= COMMONEST * len(glosses))
    number = {word: place for place, word in enumerate(words)}
    # the definitions of all synsets, then the examples of all synsets
    word_sets = [definition for definition, _ in glosses] + [examples for _, examples in glosses]
    numbers = [sorted(number[word] for word in word_set if word in number) for word_set in word_sets]
    return {
        "gloss_count": _smallest([len(word_numbers) for word_numbers in numbers]),
        "gloss_words": _smallest(list(chain.from_iterable(numbers))),
    }


def _hierarchy_arrays(arrays: Arrays, tag_counts: list[int] | None) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of nouns and verbs that follow from what is above them: "min_depth", "max_depth" and, with
    `tag_counts` [synsets], "concordance" (see `Graph`). Raises `DataError` for pointers up to another part of speech or
    in a circle."""
    graph = Graph(arrays)
    size = graph.ranges["v"].stop  # nouns and verbs come first; adjectives and adverbs have no hierarchy
    bounds = [graph.ranges[pos].start for pos in POS[1:]]  # a row's place among these tells its part of speech
    sources, targets = graph.edges(*HYPERNYMS)
    if (np.searchsorted(bounds, sources, "right") != np.searchsorted(bounds, targets, "right")).any():
        raise DataError("a synset is below one of another part of speech")
    in_hierarchy = sources < size
    depths = {
        "max_depth": _depths(sources[in_hierarchy], targets[in_hierarchy], size, np.maximum),
        "min_depth": _depths(sources[in_hierarchy], targets[in_hierarchy], size, np.minimum),
    }
    if tag_counts is None:
        return depths
    # the count of synset i goes to itself and to all of its ancestors, above.node[above.start[i] : above.start[i + 1]]
    above = ancestors(graph, np.arange(size), root=False)
    weights = np.repeat(np.array(tag_counts[:size]), np.diff(above.start))
    total = np.bincount(above.node, weights=weights, minlength=size)
    return depths | {"concordance": _smallest(total.astype(np.int64))}


def _depths(sources: Ints, targets: Ints, size: int, choose: np.ufunc) -> npt.NDArray[Any]:
    """Return [size]: the steps of each synset up to a root, by the longest (np.maximum) or the shortest way
    (np.minimum). sources, targets: rows of synsets, and of their hypernyms. Raises `DataError` for a circle."""
    has_hypernym = np.zeros(size, bool)
    has_hypernym[sources] = True
    depth = np.zeros(size, np.int64)
    for _ in range(DEEPEST):  # until nothing changes: a step down the hierarchy each time
        # A synset's depth starts from a number that `choose` replaces by any other; a root stays at 0.
        deeper = np.where(has_hypernym, 0 if choose is np.maximum else DEEPEST, 0)
        choose.at(deeper, sources, depth[targets] + 1)
        if (deeper == depth).all():
            return _smallest(depth)
        depth = deeper
    raise DataError(f"a synset is above itself, or has more than {DEEPEST} steps above it")


def _row(rows: dict[Place, int], place: Place) -> int:
    """Return the row of the synset at a place; raise `DataError` if there is none."""
    try:
        return rows[place]
    except KeyError:
        raise DataError(f"there is no synset {place[0]}{place[1]:08d}, though something points at it") from None


def _smallest(values: Any) -> npt.NDArray[Any]:
    """Return an array of numbers, none below 0, in the smallest whole-number type that holds them."""
    numbers = np.asarray(values, np.int64)
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _text(lines: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return lines of text as an array of bytes, as `Graph` stores them."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)
