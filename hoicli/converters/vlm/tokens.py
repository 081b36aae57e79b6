"""Answers in the box tokens of a family: boxes with names, and triplets where a sentence is nothing but a person, a
verb and an object. No other words are read: with any, the answer is refused.

| family | a box | its numbers |
| --- | --- | --- |
| InternVL, Qwen-VL | `<ref>man</ref><box>[[x1,y1,x2,y2]]</box>` or `(x1,y1),(x2,y2)` | thousandths |
| Qwen2-VL | `<|object_ref_start|>man<|object_ref_end|><|box_start|>(x1,y1),(x2,y2)<|box_end|>` | thousandths |
| Florence-2 | `man<loc_x1><loc_y1><loc_x2><loc_y2>` | the middle of a thousandth |
| PaliGemma | `<locy1><locx1><locy2><locx2> man`, with `;` between | of 1024, y first |
| Kosmos-2 | `<phrase>man</phrase><object><patch_index_n><patch_index_n></object>` | patches, 32 by 32 |
| Groma | `<p>man</p><roi><r0></roi>` | a box of --boxes, or numbers |
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hoicli.converters.vlm.claims import NO_PERSON, Claim, Claims, NotReadError, Persons
from hoicli.converters.vlm.keys import Place, Report, shown
from hoicli.converters.vlm.names import ARTICLES, PREPOSITIONS, is_name, label_of
from hoicli.converters.vlm.text import Spoken, span_of

_TAG = (
    r"(?:<(?:ref|p|phrase)>(?P<tag>[^<]{0,200})</(?:ref|p|phrase)>\s{0,4}|"
    r"<\|object_ref_start\|>(?P<qwen>[^<]{0,200})<\|object_ref_end\|>\s{0,4})?"
)
_TOKENS = (
    r"(?:<box>(?P<box>[^<]{0,20000})</box>|<\|box_start\|>(?P<points>[^<]{0,20000})<\|box_end\|>|"
    r"<roi>\s{0,4}(?:<r(?P<region>\d{1,4})>|(?P<roi>[^<]{0,200}))\s{0,4}</roi>|"
    r"(?P<loc>(?:<loc_\d{1,4}>){1,400})|(?P<bins>(?:<loc\d{4}>){1,400})|"
    r"<object>(?P<patch>(?:<patch_index_\d{1,4}>|</?delimiter_of_multi_objects/?>){1,400})</object>)"
)
_MENTION = re.compile(_TAG + _TOKENS)
_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{0,18})?")
_ARTICLE = r"\s*(?:(?:a|an|the)\b)?\s*"
_BESIDE = re.compile(rf"(?:[\s.,;]|</s>|\band\b)*{_ARTICLE}", re.IGNORECASE)
_START = re.compile(rf"\s*(?:<s>|<grounding>)*{_ARTICLE}", re.IGNORECASE)
_END = re.compile(rf"\s*(?:[.;\n]|</s>)(?:[\s.;]|</s>)*{_ARTICLE}", re.IGNORECASE)
_DOES = re.compile(rf"\s*(?:(?:is|are)\s+)?(?P<verb>[a-z]+ing(?:\s+(?:{'|'.join(sorted(PREPOSITIONS))}))*){_ARTICLE}")

BINS = 32
"""Kosmos-2's patches along each side of the picture."""
CONVENTIONS = {"box": "1000", "points": "1000", "loc": "1000", "bins": "relative", "patch": "relative"}
"""The convention of the boxes that a kind of tokens holds; Groma's have none."""


@dataclass
class _Mention:
    """A named place: its `label` ("" without one), its boxes or the number of a region, where it begins and ends, and
    what wrote it."""

    label: str
    places: list[Place]
    start: int
    end: int
    kind: str


def kinds_in(text: str) -> set[str]:
    """Which kinds of box tokens a text has."""
    return {_kind(match) for match in _MENTION.finditer(text)}


def claims_of_tokens(
    text: Spoken, report: Report, persons: Persons, verbs: tuple[str, ...] = (), label: str | None = None
) -> Claims:
    """The claims of an answer in tokens; `verbs`, `label`: those of the question, for boxes in pairs. Raises
    `NotReadError` for an answer that has other words."""
    mentions, ends = [], [0]
    for match in _MENTION.finditer(text):
        mentions.append(_mention(match, text, ends[-1]))
        ends.append(mentions[-1].end)
    gaps = [text[end : mention.start] for end, mention in zip(ends, mentions, strict=False)]
    rest = text[ends[-1] :]
    if mentions and mentions[0].kind == "bins":  # PaliGemma's names follow the boxes
        for mention, after in zip(mentions, [*gaps[1:], rest], strict=True):
            mention.label = label_of(after.strip().removesuffix(";"))
        gaps, rest = [gaps[0], *("" for _ in gaps[1:])], ""
    claims = Claims(understood=True)
    said_of = {number: _DOES.fullmatch(gap) for number, gap in enumerate(gaps) if number}
    told = any(said_of.values())  # then every sentence has an end; else boxes stand in a list
    used: set[int] = set()
    for number, gap in enumerate([*gaps, rest]):
        does = said_of.get(number)
        if does is None:
            between = _START if number == 0 or (told and number == len(gaps) and not gap) else _END if told else _BESIDE
            if not between.fullmatch(gap):
                raise NotReadError("an answer with box tokens and other words than their names")
        elif number - 1 in used:
            raise NotReadError("an answer with box tokens and a sentence of more than two of them")
        else:
            used |= {number - 1, number}
            said = Spoken.at(does["verb"], text.start + ends[number] + does.start("verb"))
            claim = _claim(mentions[number - 1], mentions[number], said, report, persons)
            if claim is not None:
                start, end = mentions[number].start, mentions[number].end
                named = span_of(Spoken.at(text[start:end], text.start + start), claim.label or "")
                claims.triplets.append(replace(claim, label_span=named))
    if not used and verbs and label is not None and len(mentions) % 2 == 0:
        for first, second in zip(mentions[::2], mentions[1::2], strict=True):
            if len(first.places) == len(second.places) == 1 and (not first.label or persons(first.label)):
                claims.triplets.append(Claim(first.places[0], second.places[0], second.label or label, verbs))
            else:
                report(NO_PERSON)
        return claims
    for number, mention in enumerate(mentions):
        for place in mention.places if number not in used else ():
            if isinstance(place, list) and len(place) == 4 and is_name(mention.label):
                claims.located.append((place, mention.label))
            else:
                report("a box without a name, or that is not four numbers")
    return claims


def _claim(first: _Mention, second: _Mention, said: Spoken, report: Report, persons: Persons) -> Claim | None:
    """The triplet of a sentence; None, and reported, if it is none."""
    if not persons(first.label):
        report(NO_PERSON)
    elif not is_name(second.label) or not is_name(first.label):
        report("a box without a name, or that is not four numbers")
    elif len(first.places) > 1 or len(second.places) > 1:
        many = first if len(first.places) > 1 else second
        readings = [f"{said}: {shown(many.label, place)}" for place in many.places[:2]]
        report("a noun with several boxes in a triplet, of which any may be meant", *readings)
    else:
        verb = "_".join(said.split())
        return Claim(first.places[0], second.places[0], second.label, (verb,), spans=(span_of(said, verb),))
    return None


def _kind(match: re.Match[str]) -> str:
    kinds = ("box", "points", "region", "roi", "loc", "bins", "patch")
    return next(kind for kind in kinds if match[kind] is not None)


def _mention(match: re.Match[str], text: str, after: int) -> _Mention:
    """A mention; a name before Florence-2's tokens, which are not tagged, is that of the words since `after`."""
    label, start, kind = match["tag"] or match["qwen"] or "", match.start(), _kind(match)
    if not label and kind == "loc":
        words = re.split(r"[.;\n]|</?s>", text[after:start])[-1]
        label, start = words, start - len(words)
        if " is " in words or len([word for word in words.split() if word.lower() not in ARTICLES]) > 3:
            raise NotReadError("an answer with box tokens and other words than their names")
    return _Mention(label_of(label), _places(match, kind), start, match.end(), kind)


def _places(match: re.Match[str], kind: str) -> list[Place]:
    written = match[kind]
    if kind == "region":
        return [int(written)]
    if kind == "patch":
        parts = written.split("delimiter_of_multi_objects")
        return [_of_patches([int(found) for found in re.findall(r"\d+", part)]) for part in parts]
    numbers = [float(found) for found in _NUMBER.findall(written)]
    if kind == "loc":  # the middle of a thousandth, as the model's processor has it
        numbers = [int(found) + 0.5 for found in re.findall(r"\d+", written)]
    fours = [numbers[at : at + 4] for at in range(0, len(numbers), 4)] or [[]]
    if kind == "bins":
        fours = [[box[at] / 1024 for at in (1, 0, 3, 2)] if len(box) == 4 else [] for box in fours]
    return [*fours]


def _of_patches(corners: list[int]) -> Place:
    """Kosmos-2's box of two patches as fractions: from middle to middle, or whole patches in one row or column."""
    if len(corners) != 2 or max(corners) >= BINS * BINS:
        return []
    (top, left), (bottom, right) = (divmod(corner, BINS) for corner in corners)
    inset = 0.0 if left == right or top == bottom else 0.5
    return [(left + inset) / BINS, (top + inset) / BINS, (right + 1 - inset) / BINS, (bottom + 1 - inset) / BINS]
