"""What `shoe-sim` and `shoe-eval` can be asked for: the names of settings, what each can be, and how signatures say it.
Nothing is computed here, so help and shell completion read these tables without NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from hoicli.errors import UsageError, arg, write_number
from hoicli.records.kinds import MEAN
from hoicli.records.metrics import metrics_of

OFFLINE = (*(f"wordnet:{name}" for name in ("path", "wup", "lch", "lin", "res", "jcn")), "lexical")
"""Backends that need neither a network nor a file."""

BACKENDS = (*OFFLINE, "llm", "table")

RULES = ("mean", "median", "majority")
"""Rules that combine several ratings; majority: the most frequent, of several that of the first model."""

METRICS = {metric.name: metric.says for metric in metrics_of("shoe-eval") if metric.kinds == (MEAN,)}
"""SHOE's metrics, in the order of rows."""

COMBINE = ("mean", "geometric", "min")
"""Ways to combine the similarities of verb and object; the paper uses the (weighted) mean."""

AREAS = {
    "envelope": "area under the precision envelope: each recall step times the best precision at that recall or beyond",
    "11-point": "mean over recall 0, 0.1, ..., 1 of the best precision at that recall or beyond",
    "trapezoid": "straight lines between the curve's points, from recall 0 with precision 1 on",
}
"""What "area under the curve" (Algorithm 1, line 39) can mean."""

ASSIGNMENTS = {
    "greedy": "ground truth chooses class by class (the paper's algorithms)",
    "optimal": "the greatest total similarity of each image",
}
"""How predictions are given to ground truth."""

AGAINST = {
    "image": "the classes that are annotated in the image (the paper's algorithms)",
    "dataset": "all classes of the dataset (the paper's Figure 6)",
}
"""The classes among which that of an unmatched prediction is looked for."""

RANKS = {
    "all": "of-all-predictions",
    "image": "of-its-image's-predictions",
    "best": "of-its-image's-best-score",
}
"""What `--min-rank` is a share of: the predictions that do not score higher among these, or (best) that score."""


@dataclass(frozen=True)
class ShoeOptions:
    """The options of `hoicli shoe-eval`, by their names. Raises `UsageError` for values that they cannot have.

    delta: the similarity from which an unmatched prediction counts against a class, as text that may list several (the
    paper does not publish it; 0.5 is ours). verb_weight: the verb's weight in the combined similarity; the object has
    the rest. against, combine, ap, assignment, rank_of: one of AGAINST, COMBINE, AREAS, ASSIGNMENTS, RANKS.
    min_similarity: the least similarity of a match. min_score, min_rank: which predictions mF1 and the miss rates are
    over; filter_map: whether soft mAP and mAP are, too. single_hoi: use only images with one human-object pair.
    ignore_no_interaction: leave out triplets of that verb, of ground truth and predictions. allow_missing: count pairs
    of senses that the table of similarities lacks as 0; otherwise they are an error."""

    delta: str = "0.5"
    against: str = "image"
    combine: str = "mean"
    verb_weight: float = 0.5
    ap: str = "envelope"
    assignment: str = "greedy"
    min_similarity: float = 0.0
    min_score: float | None = None
    min_rank: float | None = None
    rank_of: str = "all"
    filter_map: bool = False
    single_hoi: bool = False
    ignore_no_interaction: bool = False
    allow_missing: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` for values that an option cannot have, alone or beside the others."""
        _ = self.deltas  # parsing them checks them
        for option in ("verb_weight", "min_similarity", "min_rank"):
            value = getattr(self, option)
            if value is not None and not 0 <= value <= 1:
                raise UsageError(f"{arg(option, value)}: give a number from 0 to 1")
        if self.min_score is not None and not isfinite(self.min_score):
            raise UsageError(f"{arg('min_score', self.min_score)}: give a finite number")
        if self.rank_of != "all" and self.min_rank is None:
            raise UsageError(f"{arg('rank_of', self.rank_of)}: goes with {arg('min_rank')}; give that, too")
        if self.filter_map and not self.filters:
            problem = f"goes with {arg('min_score')} or {arg('min_rank')}; give one of them"
            raise UsageError(f"{arg('filter_map')}: {problem}")
        if self.combine == "min" and self.verb_weight != 0.5:
            raise UsageError(f"{arg('verb_weight')}: the minimum of two similarities has no weights; leave it out")

    @cached_property
    def deltas(self) -> tuple[float, ...]:
        """Return the values of delta; each has rows of its own."""
        from hoicli.evaluation.views import parse_thresholds

        return parse_thresholds([self.delta], option="delta", what="similarity", minimum=0).values

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the names of the columns that these options add to result rows: delta, if it has several values."""
        return ("delta",) if len(self.deltas) > 1 else ()

    @property
    def filters(self) -> bool:
        """Return whether any prediction may be left out for its score."""
        return self.min_score is not None or self.min_rank is not None

    def signature(self) -> dict[str, str]:
        """Return {name: text} of the settings that say how matches are made and what they are worth. They are written
        even if they are the defaults, as there is no standard, but `verb` (the verb's weight) is left out where the
        minimum has no weights, `assign` and `minsim` where they follow the paper."""
        # of several deltas, each is evaluated with options that have it alone
        signed = {"delta": write_number(self.deltas[0]), "against": self.against, "combine": self.combine}
        if self.combine != "min":
            signed["verb"] = write_number(self.verb_weight)
        # of equally similar predictions the one of the higher score is matched first, then that of the lower values
        signed |= {"ap": self.ap, "ties": "higher-score,values"}
        if self.assignment != "greedy":
            signed["assign"] = self.assignment
        if self.min_similarity:
            signed["minsim"] = write_number(self.min_similarity)
        return signed

    def filter_signature(self) -> dict[str, str]:
        """Return {name: text} of the settings that say which predictions count; a rank is "a-reading" of the paper."""
        signed = {} if self.min_score is None else {"minscore": write_number(self.min_score)}
        if self.min_rank is not None:
            signed["minrank"] = f"{write_number(self.min_rank)}-{RANKS[self.rank_of]}(a-reading)"
        return signed | ({"filtered": "soft_map+map+mf1"} if self.filter_map else {})
