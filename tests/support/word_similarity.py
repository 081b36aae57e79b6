"""How well similarities agree with people's ratings of word pairs: `python -m tests.support.word_similarity FILE.csv
...`.

Prints Spearman's rank correlation for each measure of `wordnet:` and for `lexical`, by part of speech: of the two most
similar senses of the words, and of `word_similarities`. A file is CSV with a heading and columns word1, word2 and
similarity (or score, or else its last), as SimLex-999, SimVerb-3500, MEN and others come. The part of speech is a
column POS, a suffix of the words ("sun-n"), or what `--pos` says; SimLex-999 without the column is known by its length.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from hoicli.wordnet import lexical, measures
from hoicli.wordnet.graph import Graph
from hoicli.wordnet.lexicon import Lexicon, open_embedded

Floats = npt.NDArray[np.float64]
Rated = tuple[str, str, float]
"""Two words and people's rating of how alike they are."""

SIMLEX = (("a", 111), ("n", 666), ("v", 222))
"""SimLex-999 lists its adjectives, then its nouns, then its verbs."""

LETTERS = {"j": "a", "s": "a"}

ABLATIONS: dict[str, dict[str, Any]] = {
    "no glosses": {"GLOSS": 0.0},
    "no derivations": {"DERIVATION": 0.0},
    "no lemmas": {"LEMMAS": 0.0},
    "no antonyms": {"ANTONYM": 1.0},
}
"""What `lexical` is without each of its parts."""

Measure = Callable[[Graph, npt.NDArray[np.int64]], Floats]


def read_ratings(path: Path, pos: str | None = None) -> dict[str, list[Rated]]:
    """The pairs of a file by part of speech; pairs of unlike parts of speech are left out."""
    with path.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    simlex = [letter for letter, count in SIMLEX for _ in range(count)]
    given = simlex if pos is None and len(table) == len(simlex) else [pos or ""] * len(table)
    found: dict[str, list[Rated]] = {}
    for row, place in zip(table, given, strict=True):
        first, second = row["word1"], row["word2"]
        place = row.get("POS", place)
        if "-" in (first[-2:-1], second[-2:-1]):
            place = first[-1] if first[-2:] == second[-2:] else ""
            first, second = first[:-2], second[:-2]
        if place:
            letter = place[0].lower()
            rating = float(row.get("similarity") or row.get("score") or list(row.values())[-1])
            found.setdefault(LETTERS.get(letter, letter), []).append((first, second, rating))
    return found


def best_senses(wordnet: Lexicon, rated: Sequence[Rated], pos: str, measure: Measure) -> Floats:
    """[P] the similarity of each pair's two most similar senses, 0 where a word has none."""
    senses = {word: wordnet.word_senses(word, pos) for word in chain(*(row[:2] for row in rated))}
    pairs = [(a, b) for first, second, _ in rated for a in senses[first] for b in senses[second]]
    values = measure(wordnet.graph, np.array(pairs, np.int64).reshape(-1, 2))
    bounds = np.cumsum([0, *(len(senses[first]) * len(senses[second]) for first, second, _ in rated)])
    return np.array([values[start:stop].max(initial=0.0) for start, stop in pairwise(bounds.tolist())])


def words(wordnet: Lexicon, rated: Sequence[Rated], pos: str) -> Floats:
    """[P] the similarity of each pair's words, 0 where a word has no sense."""
    pairs = [(wordnet.word_senses(first, pos), wordnet.word_senses(second, pos)) for first, second, _ in rated]
    return np.nan_to_num(lexical.word_similarities(wordnet.graph, pairs))


def correlation(values: Floats, rated: Iterable[Rated]) -> float:
    return float(spearmanr(values, [rating for _, _, rating in rated]).statistic)


def opinions(wordnet: Lexicon, rated: Sequence[Rated], pos: str, *, ablate: bool) -> Iterator[tuple[str, Floats]]:
    """Each way of comparing words, and what it says of the pairs."""
    if pos in "nv":
        for name in measures.MEASURES:
            measure = partial(_classic, name)
            yield f"wordnet:{name}", best_senses(wordnet, rated, pos, measure)
    yield "lexical, best senses", best_senses(wordnet, rated, pos, lexical.similarities)
    yield "lexical, words", words(wordnet, rated, pos)
    for name, constants in ABLATIONS.items() if ablate else ():
        with patch.multiple(lexical, **constants):
            yield f"{name}, best senses", best_senses(wordnet, rated, pos, lexical.similarities)
            yield f"{name}, words", words(wordnet, rated, pos)


def _classic(name: str, graph: Graph, pairs: npt.NDArray[np.int64]) -> Floats:
    return measures.rescale(graph, name, pairs, measures.raw_similarities(graph, name, pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv")
    parser.add_argument("--pos", choices=("n", "v", "a", "r"), help="part of speech of a file that names none")
    parser.add_argument("--ablate", action="store_true", help="also lexical without each of its parts")
    options = parser.parse_args()
    wordnet = open_embedded()
    for path in options.files:
        ratings = read_ratings(path, options.pos)
        said: dict[str, dict[str, Floats]] = {}
        for pos, rated in ratings.items():
            for name, values in opinions(wordnet, rated, pos, ablate=options.ablate):
                said.setdefault(name, {})[pos] = values
        print(f"{path.name}: " + ", ".join(f"{len(rated):,} {pos}" for pos, rated in ratings.items()))
        for name in sorted(said, key=lambda name: name.startswith(("lexical", "no "))):
            columns = {pos: (pos,) for pos in said[name]} | {"n+v": ("n", "v"), "all": tuple(ratings)}
            for title, parts in columns.items():
                if set(parts) <= said[name].keys():
                    values = np.concatenate([said[name][pos] for pos in parts])
                    value = correlation(values, chain(*(ratings[pos] for pos in parts)))
                    columns[title] = (f"{title} {value:.3f}",)
                else:
                    columns[title] = ()
            print(f"  {name:<28}" + "  ".join(chain(*columns.values())))


if __name__ == "__main__":
    main()
