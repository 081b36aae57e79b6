"""vcoco_results.pkl: the official list as UPT pickles it, dictionaries of a class of its own that lack keys."""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.foreign.vcoco_official import people

FOLDER = "vcoco"
GROUND_TRUTH = "ground_truth.jsonl"
FILE = "vcoco_results.pkl"


class CacheTemplate(defaultdict):  # type: ignore[type-arg]
    """A dictionary that fills in what is missing, known to a reader by its name alone."""


CacheTemplate.__module__ = "utils"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Scores are NumPy's, role boxes arrays, person boxes lists, as UPT's code makes them."""
    content = []
    for record in predictions:
        for person in people(record):
            template = CacheTemplate()
            for key, value in person.items():
                if isinstance(value, float):
                    template[key] = np.float64(value)
                else:
                    template[key] = value if key in ("image_id", "person_box") else np.array(value)
            content.append(template)
    path.write_bytes(_pickled(content))


def _pickled(content: list[CacheTemplate]) -> bytes:
    """As if CacheTemplate lived in UPT's utils.py."""
    import sys
    import types

    module = types.ModuleType("utils")
    module.CacheTemplate = CacheTemplate  # type: ignore[attr-defined]
    before = sys.modules.get("utils")
    sys.modules["utils"] = module
    try:
        return pickle.dumps(content, protocol=4)
    finally:
        if before is None:
            del sys.modules["utils"]
        else:
            sys.modules["utils"] = before
