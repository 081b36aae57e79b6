"""The names of `hoicli` for type checkers; `__init__.py` imports each when it is first used."""

from hoicli import errors as errors
from hoicli.api.corruption import corrupt as corrupt
from hoicli.api.corruption import corrupt_grid as corrupt_grid
from hoicli.api.evaluator import Evaluator as Evaluator
from hoicli.api.network_outputs.batches import triplets as triplets
from hoicli.commands.agree import agree as agree
from hoicli.commands.audit import audit as audit
from hoicli.commands.claim import claim as claim
from hoicli.commands.compare import compare as compare
from hoicli.commands.confusion import confusion as confusion
from hoicli.commands.convert import convert as convert
from hoicli.commands.corrupt import corrupt_records as corrupt_records
from hoicli.commands.curriculum import curriculum as curriculum
from hoicli.commands.curves import curves as curves
from hoicli.commands.data import data as data
from hoicli.commands.diagnose import diagnose as diagnose
from hoicli.commands.doctor import doctor as doctor
from hoicli.commands.eval import evaluate as evaluate
from hoicli.commands.explore import explore as explore
from hoicli.commands.mask import mask as mask
from hoicli.commands.match import match as match
from hoicli.commands.pairstats import pairstats as pairstats
from hoicli.commands.prompts import prompts as prompts
from hoicli.commands.recall import recall as recall
from hoicli.commands.robust import robust as robust
from hoicli.commands.shoe_eval import shoe_eval as shoe_eval
from hoicli.commands.shoe_sim import shoe_sim as shoe_sim
from hoicli.commands.show import show as show
from hoicli.commands.table import table as table
from hoicli.commands.validate import validate as validate
from hoicli.commands.vlm_eval import vlm_eval as vlm_eval
from hoicli.commands.vocab import vocab as vocab
from hoicli.corruption.catalogue import CORRUPTIONS as CORRUPTIONS
from hoicli.evaluation.protocols import PROTOCOLS as PROTOCOLS
from hoicli.version import __version__ as __version__
from hoicli.vocabulary.datasets import DATASETS as DATASETS

__all__: list[str]
