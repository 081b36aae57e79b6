"""hoicli: evaluate human-object interaction detectors, from the shell and from Python (see README.md and docs/).

    import hoicli
    hoicli.evaluate("gt.jsonl", "preds.jsonl", protocol="hico").to_dict()

Every command is a function, with the command's options as arguments: `eval` is `evaluate`, and `corrupt` is
`corrupt_records`, since `corrupt` is of one image. PROTOCOLS, CORRUPTIONS and DATASETS have what hoicli brings, by
name. Each name is imported when it is first used. What is wrong raises `hoicli.errors.DataError` (the data) or
`UsageError` (the call), both `HoicliError`, whose text is one line.
"""

from __future__ import annotations

from importlib import import_module

from hoicli.commands import COMMANDS as _COMMANDS
from hoicli.version import __version__ as __version__

_CALLED = {"eval": "evaluate", "corrupt": "corrupt_records"}
"""The commands whose function is not called as they are."""
_MODULES = {
    **{_CALLED.get(name, name).replace("-", "_"): f"commands.{name.replace('-', '_')}" for name in _COMMANDS},
    "corrupt": "api.corruption",
    "corrupt_grid": "api.corruption",
    "Evaluator": "api.evaluator",
    "triplets": "api.network_outputs.batches",
    "PROTOCOLS": "evaluation.protocols",
    "CORRUPTIONS": "corruption.catalogue",
    "DATASETS": "vocabulary.datasets",
}
"""The module, inside hoicli, that has each public name; `__init__.pyi`, which `python -m tests.support.readme` writes,
says the same to type checkers."""

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Import and return a name of the package when it is first used; keep it as an attribute. Raises `AttributeError`
    for a name that the package does not have."""
    if name == "errors":
        return import_module("hoicli.errors")  # which stays as an attribute
    if name not in _MODULES:
        raise AttributeError(f"module 'hoicli' has no attribute {name!r}")
    value = getattr(import_module(f"hoicli.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the package's public names, those not yet imported, too: for the Tab key."""
    return sorted([*__all__, "errors", "__version__", "__doc__"])
