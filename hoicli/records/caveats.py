"""Caveats: facts about where records came from that affect numbers and that no other field of a record states.

`convert` writes them; the commands that evaluate read them, and match records keep them.
If a caveat concerns a protocol (`Protocol.depends_on`), the signature of its rows has it and tables state it below the
numbers; if it rules the protocol out (`Protocol.refuses`), there is no number. A new caveat is a row here and a line in
formats/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hoicli.io.row_tables import rows_by_name
from hoicli.records.result_rows import settings_of


@dataclass(frozen=True)
class Caveat:
    """A row of `CAVEATS`.

    name: as a record's `caveats` has it. of: which records it is about: "truth", "predictions" or "both". setting: its
    (key, value) in signatures. words: the sentence that tables print below the numbers; "" if they are as exact as
    without it. lacks: for a protocol that refuses it, why there is no number, and what to use instead."""

    name: str
    of: str
    setting: tuple[str, str]
    words: str = ""
    lacks: str = ""


DERIVED_LABELS = "derived_labels"
PAIRS_ONLY = "pairs_only"
UNMARKED_PEOPLE = "unmarked_people"
LAST_PIXELS = "last_pixels"
UNMARKED_AMBIGUOUS = "unmarked_ambiguous"
WHOLE_IMAGE = "whole_image"
BY_TOKENS = "token_scores"
ALL_ONES = "scores_of_1"

_ROWS = (
    Caveat(DERIVED_LABELS, "truth", ("labels", "derived"),
        "image-level labels derived from the annotated pairs: not the official Known Object setting"),
    Caveat(PAIRS_ONLY, "truth", ("truth", "pairs"),
        "the ground truth has only pairs with an object: actions and roles without one are missing",
        "the ground truth has only pairs with an object; convert the official files (vcoco_test.json with COCO's "
        "instances), or name --protocol vcoco-pvic, which is of such pairs (mAP only: no error types, no pair "
        "statistics)"),
    Caveat(UNMARKED_PEOPLE, "truth", ("people", "unmarked"),
        "the ground truth does not mark the people nobody annotated: predictions on them count as false"),
    Caveat(LAST_PIXELS, "predictions", ("boxes", "last_pixels")),
    Caveat(UNMARKED_AMBIGUOUS, "truth", ("ambiguous", "unmarked"),
        "the ground truth does not mark ambiguous image-level labels: predictions of them count as false"),
    Caveat(WHOLE_IMAGE, "both", ("boxes", "none"),
        lacks="it has labels or scores of whole images, without boxes; name --protocol hico-image or hico-image-ko"),
    Caveat(BY_TOKENS, "predictions", ("scores", "verb_and_object_tokens"),
        "scores are the probabilities of the tokens of a triplet's verb and object in a model's answer"),
    Caveat(ALL_ONES, "predictions", ("scores", "1"),
        "every score is 1: triplets and boxes rank in the order of the answers"),
)  # fmt: skip
CAVEATS: Mapping[str, Caveat] = rows_by_name("_ROWS (hoicli/records/caveats.py)", ((row.name, row) for row in _ROWS))

_BIT = {name: 1 << place for place, name in enumerate(CAVEATS)}
"""The bit of each caveat in a mask: a set of caveats is stored as one integer, so that those of all images are one
column, and those of many images are joined by a bitwise or."""


def mask(names: Iterable[str]) -> int:
    """Return a set of caveats as an integer with one bit for each. Raises `KeyError` for an unknown name."""
    bits = 0
    for name in names:
        bits |= _BIT[name]
    return bits


def read_caveats(value: Any) -> int:
    """Return the mask of the value of a record's field `caveats`, 0 for None. Raises `TypeError` for what is no list of
    texts, and `KeyError` for a name that is no caveat's."""
    if value is None:
        return 0
    if type(value) is not list or not set(map(type, value)) <= {str}:
        raise TypeError
    return mask(value)


def names(bits: int) -> list[str]:
    """Return the names of the caveats in a mask (see `mask`), in the order of CAVEATS."""
    return [name for name, bit in _BIT.items() if bits & bit]


def settings(bits: int) -> dict[str, str]:
    """Return the signature settings, key to value, that the caveats in a mask (see `mask`) add to a result row."""
    return dict(CAVEATS[name].setting for name in names(bits))


PUBLISHED = "as the paper prints it, on images that are not published: not comparable with values made here"
"""What tables say below a value out of a paper's table, whose signature names it as `published`."""


LACKING = "{} pairs of senses are not in the table of similarities and count 0: not comparable"
"""What tables say below a value of SHOE whose table of similarities lacked pairs."""


def lacks_similarities(settings: Mapping[str, str]) -> bool:
    """Return whether these are settings of a SHOE score that was computed without the similarities of some pairs."""
    return "missing" in settings and settings.get("protocol") == "shoe"


def words_of(row: Mapping[str, Any]) -> list[str]:
    """Return the sentences below a result row in tables: those of the caveats in its signature, and its `note`."""
    row_settings = settings_of(row)
    words = []
    if lacks_similarities(row_settings):
        words.append(LACKING.format(row_settings["missing"]))
    words += [caveat.words for caveat in CAVEATS.values() if caveat.words and caveat.setting in row_settings.items()]
    if type(row.get("note")) is str:
        words.append(row["note"])
    elif "published" in row_settings and row.get("comparable") is False:
        words.append(PUBLISHED)
    return words


TRUTH = mask(row.name for row in CAVEATS.values() if row.of in ("truth", "both"))
"""The mask of all caveats of ground truth."""
PREDICTIONS = mask(row.name for row in CAVEATS.values() if row.of in ("predictions", "both"))
"""The mask of all caveats of predictions."""
