"""The options of SHOE's metrics; compare --metric has its --sim alone."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hoicli.commands.checks import Read
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError

if TYPE_CHECKING:
    from hoicli.io.streams import Stream
    from hoicli.shoe.settings import ShoeOptions

PANEL = "Options of SHOE's metrics"

SIM = option(
    None,
    "--sim FILE|NAME",
    "Similarities of senses: tables that hoicli shoe-sim writes, repeatable; or one of its backends that ask no model "
    "(lexical, wordnet:wup, ...), which rates what these files need.",
    offer="shoe.pairs:OFFLINE",
    mark=Read(besides="shoe.pairs:OFFLINE"),
)


def similarities(sim: list[str] | None, command: str) -> Stream | str:
    """What --sim names: tables, or an offline backend. Raises `UsageError` for neither, for both, and for a backend
    that is none or has to ask."""
    from difflib import get_close_matches

    from hoicli.io.streams import Stream
    from hoicli.shoe.pairs import OFFLINE

    if not sim:
        raise UsageError(f"{command}: give similarities with --sim FILE; hoicli shoe-sim makes them")
    named = [name for name in sim if name in OFFLINE]
    if named and len(sim) > 1:
        raise UsageError(f"--sim {named[0]}: rates every pair itself; give it alone, or tables")
    for name in sim:
        a_name = name == "llm" or name.startswith("wordnet:") or get_close_matches(name, OFFLINE, 1)
        if name not in OFFLINE and a_name and not os.path.exists(name):
            raise UsageError(f"--sim {name}: give tables, or one of {', '.join(OFFLINE)}; hoicli shoe-sim asks models")
    return named[0] if named else Stream(sim, "similarities")


@dataclass(frozen=True)
class Scoring:
    """How matches are made and what they are worth."""

    delta: str = option(
        "0.5",
        "--delta D",
        "An unmatched prediction counts against the most similar class, if it is at least this similar. Several "
        "(0.3,0.5,0.7 or 0.3:0.7:0.1): rows of each.",
        panel=PANEL,
    )
    against: str = option(
        "image",
        "--against WHERE",
        "Where that class is sought: in the prediction's image (the paper's algorithms) or the dataset (its figure).",
        offer="shoe.settings:AGAINST",
        panel=PANEL,
    )
    combine: str = option(
        "mean",
        "--combine HOW",
        "Verb and object similarity become one by mean, geometric or min.",
        offer="shoe.settings:COMBINE",
        panel=PANEL,
    )
    verb_weight: float = option(
        0.5, "--verb-weight W", "The verb's weight in the mean; the object's is 1 - W.", panel=PANEL
    )
    ap: str = option(
        "envelope",
        "--ap AREA",
        "Area under precision and recall: envelope (best precision at a recall or beyond), 11-point, step (no "
        "envelope), or trapezoid (straight lines, from recall 0 and precision 1).",
        offer="shoe.settings:AREAS",
        panel=PANEL,
    )
    assignment: str = option(
        "greedy",
        "--assignment HOW",
        "greedy: ground truth takes predictions in the order of annotation (the paper's algorithms); optimal: the "
        "greatest total similarity of each image, which shows what that order costs.",
        offer="shoe.settings:ASSIGNMENTS",
        panel=PANEL,
    )
    min_similarity: float = option(
        0.0,
        "--min-similarity S",
        "The least similarity of a match. The paper's algorithms have none; its miss rates speak of one.",
        panel=PANEL,
    )
    min_score: float | None = option(
        None, "--min-score S", "mF1 and miss rates: only predictions that score at least S.", panel=PANEL
    )
    min_rank: float | None = option(
        None,
        "--min-rank R",
        "mF1 and miss rates: only predictions that at least a share R of all do not outscore (0.5: the better half). "
        "A reading of ours: the paper does not define its confidence score rank, and its Table 2 has another.",
        panel=PANEL,
    )
    rank_of: str = option(
        "all",
        "--rank-of WHAT",
        "Another reading of --min-rank: the share is of all predictions, of those in its image, or of those of its "
        "class; best: at least R times the best score of its image.",
        offer="shoe.settings:RANKS",
        panel=PANEL,
    )
    filter_map: bool = flag(
        "--filter-map",
        "--min-score and --min-rank choose the predictions of soft_map and map, too (section 6.4 of the paper; its "
        "algorithm does not).",
        panel=PANEL,
    )
    single_hoi: bool = flag(
        "--single-hoi",
        "Only images with one human-object pair, where boxes of one label with IoU > 0.8 are one (the supplement's "
        "Table 2).",
        panel=PANEL,
    )

    def options(self, *, ignore_no_interaction: bool = False) -> ShoeOptions:
        """What the library takes; raises `UsageError` for an impossible value."""
        from hoicli.shoe.settings import ShoeOptions

        return ShoeOptions(**asdict(self), ignore_no_interaction=ignore_no_interaction)
