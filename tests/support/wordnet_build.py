"""Compile the embedded WordNet 3.0 into hoicli/wordnet/data/graph.npz: `python -m tests.support.wordnet_build`.

data/princeton has Princeton's files (Debian: package wordnet-base) and lexnames, made of lexnames(5WN), which that
package lacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hoicli.io.workers import no_garbage_collection
from hoicli.wordnet.compilation import compiled
from hoicli.wordnet.files import Files
from hoicli.wordnet.lexicon import GRAPH, PRINCETON
from hoicli.wordnet.reader import WordNetReader


def arrays() -> dict[str, Any]:
    """What the file holds, made anew."""
    with no_garbage_collection():
        return compiled(WordNetReader(Files(PRINCETON)))


if __name__ == "__main__":
    np.savez_compressed(GRAPH, **arrays())
    print(f"{GRAPH}: {GRAPH.stat().st_size:,} bytes")
