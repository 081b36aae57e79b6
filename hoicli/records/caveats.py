"""Caveats: facts about where records came from that affect numbers and that no other field of a record states.

`convert` writes them; the commands that evaluate read them, and match records keep them.
If a caveat concerns a protocol (`Protocol.depends_on`), the signature of its rows has it and tables state it below; if
it rules the protocol out (`Protocol.refuses`), there is no number. A new caveat is a row here and a line in formats/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hoicli.records.result_rows import settings_of


@dataclass(frozen=True)
class Caveat:
    """A row of `CAVEATS`.

    of: "truth", "predictions" or "both", the records it is about. setting: its (key, value) in signatures. words: what
    tables say below the numbers; "" if these are as exact as without it. lacks: why a protocol that refuses it has no
    number, and what to use instead.
    """

    name: str
    of: str
    setting: tuple[str, str]
    words: str = ""
    lacks: str = ""


DERIVED_LABELS, PAIRS_ONLY = "derived_labels", "pairs_only"
UNMARKED_PEOPLE, LAST_PIXELS = "unmarked_people", "last_pixels"
UNMARKED_AMBIGUOUS, WHOLE_IMAGE = "unmarked_ambiguous", "whole_image"
BY_TOKENS, ALL_ONES = "token_scores", "scores_of_1"

CAVEATS: Mapping[str, Caveat] = {
    row.name: row
    for row in (
        Caveat(
            DERIVED_LABELS,
            "truth",
            ("labels", "derived"),
            "image-level labels derived from the annotated pairs: not the official Known Object setting",
        ),
        Caveat(
            PAIRS_ONLY,
            "truth",
            ("truth", "pairs"),
            "the ground truth has only pairs with an object: actions and roles without one are missing",
            "the ground truth has only pairs with an object; convert the official files (vcoco_test.json with COCO's "
            "instances)",
        ),
        Caveat(
            UNMARKED_PEOPLE,
            "truth",
            ("people", "unmarked"),
            "the ground truth does not mark the people nobody annotated: predictions on them count as false",
        ),
        Caveat(LAST_PIXELS, "predictions", ("boxes", "last_pixels")),
        Caveat(
            UNMARKED_AMBIGUOUS,
            "truth",
            ("ambiguous", "unmarked"),
            "the ground truth does not mark ambiguous image-level labels: predictions of them count as false",
        ),
        Caveat(
            WHOLE_IMAGE,
            "both",
            ("boxes", "none"),
            lacks="it has labels or scores of whole images, without boxes; name --protocol hico-image or hico-image-ko",
        ),
        Caveat(
            BY_TOKENS,
            "predictions",
            ("scores", "verb_and_object_tokens"),
            "scores are the probabilities of the tokens of a triplet's verb and object in a model's answer",
        ),
        Caveat(
            ALL_ONES,
            "predictions",
            ("scores", "1"),
            "every score is 1: triplets and boxes rank in the order of the answers",
        ),
    )
}

_BIT = {name: 1 << place for place, name in enumerate(CAVEATS)}


def mask(names: Iterable[str]) -> int:
    """Return the caveats as a number with a bit for each (for `Scenes`, `Tally`). Raises `KeyError` for an unknown
    name."""
    bits = 0
    for name in names:
        bits |= _BIT[name]
    return bits


def read_caveats(value: Any) -> int:
    """Return the mask of a record's `caveats`, 0 without any. Raises `KeyError` or `TypeError` for an invalid value."""
    if value is None:
        return 0
    if type(value) is not list or not set(map(type, value)) <= {str}:
        raise TypeError
    return mask(value)


def names(bits: int) -> list[str]:
    """Return the caveats in a mask, in the order of CAVEATS."""
    return [name for name, bit in _BIT.items() if bits & bit]


def settings(bits: int) -> dict[str, str]:
    """Return the settings that the caveats in a mask add to a signature."""
    return dict(CAVEATS[name].setting for name in names(bits))


PUBLISHED = "as the paper prints it, on images that are not published: not comparable with values made here"
"""What tables say below a value out of a paper's table, whose signature names it as `published`."""


LACKING = "{} pairs of senses are not in the table of similarities and count 0: not comparable"
"""What tables say below a value of SHOE whose table of similarities lacked pairs."""


def lacking(settings: Mapping[str, str]) -> bool:
    """Return whether a value with these settings is SHOE's, and its table of similarities lacked pairs."""
    return "missing" in settings and settings.get("protocol") == "shoe"


def words_of(row: Mapping[str, Any]) -> list[str]:
    """Return what tables say below a result row: the words of the caveats in its signature, and the row's own note."""
    stated = settings_of(row)
    words = [LACKING.format(stated["missing"])] if lacking(stated) else []
    words += [caveat.words for caveat in CAVEATS.values() if caveat.words and caveat.setting in stated.items()]
    if type(row.get("note")) is str:
        return [*words, row["note"]]
    return [*words, PUBLISHED] if "published" in stated and row.get("comparable") is False else words


TRUTH, PREDICTIONS = (
    mask(row.name for row in CAVEATS.values() if row.of in (side, "both")) for side in ("truth", "predictions")
)
"""The masks of all caveats of ground truth, and of all of predictions."""
