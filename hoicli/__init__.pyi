"""The names of `hoicli` for type checkers; `__init__.py` imports each when it is first used."""

from hoicli.api.evaluation import compare as compare
from hoicli.api.evaluation import diagnose as diagnose
from hoicli.api.evaluation import evaluate as evaluate
from hoicli.api.evaluator import Evaluator as Evaluator
from hoicli.version import __version__ as __version__
