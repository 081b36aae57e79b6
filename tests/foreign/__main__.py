"""Write all foreign fixtures: python -m tests.foreign."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import orjson

import tests.foreign
from tests.support.project import EIGHT, FIXTURES, ROOT


def main() -> None:
    """Every module of this package makes its own file, from the records of tests/eight, or of its FOLDER in fixtures/.

    A module says otherwise with GROUND_TRUTH (the name of those records) and PLACE (a folder beside them).
    """
    for module in iter_modules(tests.foreign.__path__):
        if module.name.startswith("_"):
            continue
        maker = import_module(f"tests.foreign.{module.name}")
        folder = FIXTURES / maker.FOLDER if hasattr(maker, "FOLDER") else EIGHT
        truth, predictions = (
            [orjson.loads(line) for line in (folder / name).read_bytes().splitlines()]
            for name in (getattr(maker, "GROUND_TRUTH", "gt.jsonl"), "predictions.jsonl")
        )
        path = FIXTURES / getattr(maker, "FOLDER", "") / getattr(maker, "PLACE", "foreign") / maker.FILE
        maker.make(truth, predictions, path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
