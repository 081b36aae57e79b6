"""The names of `hoicli` for type checkers; `__init__.py` imports each when it is first used."""

from hoicli.api.diagnosis import compare, diagnose
from hoicli.api.evaluation import evaluate
from hoicli.api.evaluator import Evaluator
from hoicli.api.images import corrupt
from hoicli.api.raters import agree, shoe_eval, shoe_sim
from hoicli.api.records import convert, read
from hoicli.version import __version__ as __version__

__all__ = [
    "Evaluator",
    "agree",
    "compare",
    "convert",
    "corrupt",
    "diagnose",
    "evaluate",
    "read",
    "shoe_eval",
    "shoe_sim",
]
