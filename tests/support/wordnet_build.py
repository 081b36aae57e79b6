"""Compile the embedded WordNet 3.0 into hoicli/wordnet/data/graph.npz: `python -m tests.support.wordnet_build`, or see
with --check whether it is still what it holds.

data/princeton has Princeton's files (Debian: package wordnet-base) and lexnames, made of lexnames(5WN), which that
package lacks.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from hoicli.io.memory import no_garbage_collection
from hoicli.wordnet.array_making import compile_arrays
from hoicli.wordnet.graph import Files
from hoicli.wordnet.lexicon import GRAPH, PRINCETON
from hoicli.wordnet.reader import WordNetReader


def arrays() -> dict[str, Any]:
    with no_garbage_collection():
        return compile_arrays(WordNetReader(Files(PRINCETON)))


def differ() -> list[str]:
    """The arrays of the shipped file that are not those made anew."""
    made = arrays()
    with np.load(GRAPH) as shipped:
        both = [(name, made.get(name), shipped.get(name)) for name in {*made, *shipped}]
        return sorted(name for name, new, old in both if new is None or old is None or not np.array_equal(new, old))


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(", ".join(differ()) or None)
    np.savez_compressed(GRAPH, **arrays())
    print(f"{GRAPH}: {GRAPH.stat().st_size:,} bytes")
