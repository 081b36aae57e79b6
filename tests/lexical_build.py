"""Compile the words of WordNet's glosses into hoicli/wordnet/data/glosses.bin: `python -m tests.lexical_build`.

Made from the embedded WordNet alone: every synset's lemmas, definition and examples as numbers of word stems. The same
index gives the same bytes wherever zlib compresses alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from hoicli.wordnet.lexical import GLOSSES, encode_glosses
from hoicli.wordnet.lexicon import POS, WordNet, open_wordnet

TARGET = Path(__file__).parents[1] / "hoicli" / "wordnet" / "data" / GLOSSES

COMMONEST = 0.02
"""A word of more than this part of all synsets tells nothing: "of", "having", "genus"."""

_WORD = re.compile(r"[a-z](?:[a-z'-]*[a-z])?")


def stems(wordnet: WordNet, synset: int) -> tuple[set[str], set[str]]:
    """(words of the lemmas and the definition, further words of the examples), each by its shortest lemma."""
    lemmas = " ".join([name for lemma in wordnet.lemmas(synset) for name in {lemma, lemma.replace("_", " ")}])
    strong = {_stem(wordnet, word) for word in _words(f"{lemmas} {wordnet.gloss(synset)}")}
    weak = {_stem(wordnet, word) for example in wordnet.examples(synset) for word in _words(example)}
    return strong, weak - strong


def compile_(wordnet: WordNet) -> bytes:
    """The content of glosses.bin. Words of one synset only, which nothing shares, are left out."""
    texts = [stems(wordnet, synset) for synset in range(wordnet.size)]
    spread = Counter(word for strong, weak in texts for word in strong | weak)
    kept = sorted(word for word, count in spread.items() if 1 < count <= COMMONEST * wordnet.size)
    number = {word: at for at, word in enumerate(kept)}
    numbered = [[sorted(number[word] for word in words if word in number) for words in text] for text in texts]
    return encode_glosses([strong for strong, _ in numbered], [weak for _, weak in numbered])


def _words(text: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(text.lower()))


@cache
def _stem(wordnet: WordNet, word: str) -> str:
    lemmas = {lemma for pos in POS for lemma in wordnet.morphy(word, pos)}
    return min(lemmas, key=lambda lemma: (len(lemma), lemma), default=word)


if __name__ == "__main__":
    data = compile_(open_wordnet())
    TARGET.write_bytes(data)
    print(f"{TARGET}: {len(data):,} bytes, {np.frombuffer(data[:8], '<u4').tolist()}")
