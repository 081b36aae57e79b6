"""Answers in the box tokens of a family: boxes with names, or sentences that are nothing but a person, a verb and an
object, which give triplets. No other words are read: with any, the answer is refused.

| family | a box | its numbers |
| --- | --- | --- |
| InternVL, Qwen-VL | `<ref>man</ref><box>[[x1,y1,x2,y2]]</box>` or `(x1,y1),(x2,y2)` | thousandths |
| Qwen2-VL | `<|object_ref_start|>man<|object_ref_end|><|box_start|>(x1,y1),(x2,y2)<|box_end|>` | thousandths |
| Florence-2 | `man<loc_x1><loc_y1><loc_x2><loc_y2>` | the middle of a thousandth |
| PaliGemma | `<locy1><locx1><locy2><locx2> man`, with `;` between | of 1024, y first |
| Groma | `<p>man</p><roi><r0></roi>` | a box of --boxes, or numbers |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hoicli.converters.vlm.claims import NO_BOX, NO_PERSON, Claim, Claims, NotReadError, Persons
from hoicli.converters.vlm.keys import Place, Report
from hoicli.converters.vlm.names import PREPOSITIONS, is_name, label_of
from hoicli.converters.vlm.text import Span, Spoken, span_of

_SIGN = re.compile(r"<(?:box>|\|box_start\||roi>|loc_?\d)")
_MENTION = re.compile(
    r"(?:<(?:ref|p)>(?P<tag>[^<]{0,200})</(?:ref|p)>\s{0,4}|"
    r"<\|object_ref_start\|>(?P<qwen>[^<]{0,200})<\|object_ref_end\|>\s{0,4}|"
    r"(?P<before>[^\W\d_][\w '-]{0,60})(?=<loc_))?"
    r"(?:(?:<box>|<\|box_start\|>)(?P<box>[^<]{0,20000})(?:</box>|<\|box_end\|>)|"
    r"<roi>\s{0,4}(?:<r(?P<region>\d{1,4})>|(?P<roi>[^<]{0,200}))\s{0,4}</roi>|"
    r"(?P<loc>(?:<loc_\d{1,4}>){1,400})|(?P<bins>(?:<loc\d{4}>){1,400})(?P<after>[^<;]{0,200}))"
)
_ARTICLE = r"\s*(?:(?:a|an|the)\b)?\s*"
_START = re.compile(rf"\s*(?:<s>)*{_ARTICLE}", re.IGNORECASE)
_BESIDE = re.compile(rf"(?:[\s.,;]|</s>|\band\b)*{_ARTICLE}", re.IGNORECASE)
_END = re.compile(rf"\s*(?:[.;\n]|</s>)(?:[\s.;]|</s>)*{_ARTICLE}", re.IGNORECASE)
_DOES = re.compile(rf"\s*(?:(?:is|are)\s+)?(?P<verb>[a-z]+ing(?:\s+(?:{'|'.join(sorted(PREPOSITIONS))}))*){_ARTICLE}")


@dataclass(frozen=True)
class _Mention:
    """A named place: its `label` ("" without one), its boxes or the number of a region, and where it stands."""

    label: str
    places: list[Place]
    start: int
    end: int


def kinds_in(text: str) -> set[str]:
    """Which kinds of box tokens a text has."""
    return {_kind(match) for match in _MENTION.finditer(text)} if _SIGN.search(text) else set()


def claims_of_tokens(
    text: Spoken, report: Report, persons: Persons, verbs: tuple[str, ...] = (), label: str | None = None
) -> Claims:
    """The claims of an answer in tokens; `verbs`, `label`: those of the question, for boxes in pairs. Raises
    `NotReadError` for an answer that has other words."""
    mentions = [_mention(match) for match in _MENTION.finditer(text)]
    bounds = [0, *(at for mention in mentions for at in (mention.start, mention.end)), len(text)]
    start, *gaps, end = (text[one:other] for one, other in zip(bounds[::2], bounds[1::2], strict=True))
    said = [_DOES.fullmatch(gap) for gap in gaps[::2]]
    told = len(mentions) % 2 == 0 and all(said)
    between, ends = (gaps[1::2], _END) if told else (gaps, _BESIDE)
    if not (_START.fullmatch(start) and all(map(ends.fullmatch, between)) and (not end or ends.fullmatch(end))):
        raise NotReadError("an answer with box tokens and other words than their names")
    claims = Claims()
    pairs = list(zip(mentions[::2], mentions[1::2], strict=False))
    if told:
        for (first, second), does in zip(pairs, said, strict=True):
            if problem := _problem(first, second, persons):
                report(problem)
            elif does is not None:
                verb = "_".join(does["verb"].split())
                spans = (_span(text, first.end, second.start, verb),)
                named = _span(text, second.start, second.end, second.label)
                places = first.places[0], second.places[0]
                claims.triplets.append(Claim(*places, second.label, (verb,), spans=spans, label_span=named))
    elif verbs and label is not None and len(mentions) % 2 == 0:
        for first, second in pairs:
            if len(first.places) == len(second.places) == 1 and (not first.label or persons(first.label)):
                claims.triplets.append(Claim(first.places[0], second.places[0], second.label or label, verbs))
            else:
                report(NO_PERSON)
    else:
        for mention in mentions:
            for place in mention.places:
                if isinstance(place, list) and len(place) == 4 and is_name(mention.label):
                    claims.located.append((place, mention.label))
                else:
                    report(NO_BOX)
    return claims


def _problem(first: _Mention, second: _Mention, persons: Persons) -> str:
    """Why a sentence is no triplet, "" if it is one."""
    if not persons(first.label):
        return NO_PERSON
    if not is_name(second.label) or not is_name(first.label):
        return NO_BOX
    several = len(first.places) > 1 or len(second.places) > 1
    return "a noun with several boxes in a triplet, of which any may be meant" if several else ""


def _span(text: Spoken, start: int, end: int, words: str) -> Span | None:
    return span_of(Spoken.at(text[start:end], text.start + start), words)


def _kind(match: re.Match[str]) -> str:
    return next(kind for kind in ("box", "region", "roi", "loc", "bins") if match[kind] is not None)


def _mention(match: re.Match[str]) -> _Mention:
    """A mention. Florence-2's names stand before the tokens and PaliGemma's behind, without a tag of their own."""
    kind = _kind(match)
    label = label_of(next(filter(None, (match[part] for part in ("tag", "qwen", "before", "after"))), ""))
    if match["before"] and not is_name(label):
        raise NotReadError("an answer with box tokens and other words than their names")
    if kind == "region":
        return _Mention(label, [int(match[kind])], match.start(), match.end())
    numbers = [float(found) for found in re.findall(r"-?\d{1,9}(?:\.\d{0,18})?", match[kind])]
    if kind == "loc":  # the middle of a thousandth, as the model's processor has it
        numbers = [number + 0.5 for number in numbers]
    boxes = [numbers[at : at + 4] for at in range(0, len(numbers), 4)] or [[]]
    if kind == "bins":
        boxes = [[box[at] / 1024 for at in (1, 0, 3, 2)] if len(box) == 4 else [] for box in boxes]
    return _Mention(label, [*boxes], match.start(), match.end())
