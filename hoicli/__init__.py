"""hoicli: evaluate human-object interaction detectors, from the shell and from Python (see README.md and docs/).

    import hoicli
    hoicli.evaluate("gt.jsonl", "preds.jsonl", protocol="hico").to_dict()

Each name is imported when it is first used. What is wrong raises `hoicli.errors.DataError` (the data) or `UsageError`
(the call), both `HoicliError`, whose text is one line. The functions of `hoicli shoe-sim` and `shoe-eval` are called
as the commands.
"""

from __future__ import annotations

from importlib import import_module

from hoicli.version import __version__ as __version__

_MODULES = {
    "evaluate": "evaluation",
    "Evaluator": "evaluator",
    "diagnose": "diagnosis",
    "compare": "diagnosis",
    "read": "records",
    "convert": "records",
    "shoe_sim": "raters",
    "shoe_eval": "raters",
    "agree": "raters",
    "corrupt": "images",
}
"""The module of `hoicli.api` that has each name; `__init__.pyi` says the same to type checkers."""

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'hoicli' has no attribute {name!r}")
    found = getattr(import_module(f"hoicli.api.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "__doc__"])
