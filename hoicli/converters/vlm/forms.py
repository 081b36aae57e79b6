"""The answers that `convert --from vlm` reads: JSON in one of the shapes below, alone or in one code fence, and box
tokens. Everything else is refused. A new shape comes with answers in fixtures/vlm/forms.jsonl.

Boxes in tokens are triplets where the row names the verb and the object. No other words may stand beside them:

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
from collections.abc import Sequence
from typing import Any

from hoicli.converters.vlm.answer_keys import NotReadError, Place
from hoicli.converters.vlm.claims import NO_PERSON, Claim, Claims, Persons
from hoicli.converters.vlm.spoken_names import is_name, label_of, names_person
from hoicli.converters.vlm.spoken_text import Spoken, final_part, values_in


def is_phrase(answer: str) -> bool:
    """Return whether an answer is only a few words, as is usual where the question gives both boxes."""
    return len(answer) <= 200 and not set("[{<`").intersection(answer)


def read_answer(
    answer: Any, verbs: Sequence[str] = (), label: str | None = None, persons: Persons = names_person
) -> Claims:
    """Return the triplets and boxes that an answer states. If it cannot be read they have no `form`, and the only
    report says why.

    answer: text, or JSON that was parsed already. verbs, label: the verbs and the object that the question names, for
    answers that are only boxes. persons: the function that tells whether a name may be that of a subject."""
    claims = Claims(persons, verbs, label)
    try:
        # _SIGN: any box token; _MENTION: tokens of one kind with the name beside them, of which `_kind` tells the kind
        text = final_part(answer) if isinstance(answer, str) else Spoken.starting_at("", 0)
        kinds = {_kind(match) for match in _MENTION.finditer(text)} if _SIGN.search(text) else set()
        if kinds:
            claims.tokens = kinds.pop() if len(kinds) == 1 else ""
            _read_tokens(text, claims)
            claims.form = "tokens"
        else:
            values, is_cut_off = ([answer], False) if isinstance(answer, list | dict) else values_in(text)
            if is_cut_off:
                claims.report("the unfinished end of an answer that was cut off")
            if not values:
                what = "was cut off before anything whole" if is_cut_off else "is no JSON, and no box tokens"
                raise NotReadError(f"an answer that {what}")
            claims.read_all(values)
            claims.form = "json"
    except (NotReadError, ValueError) as refused:
        return Claims(persons, reports=[(str(refused), "")])
    return claims


_SIGN = re.compile(r"<(?:box>|\|box_start\||roi>|loc_?\d)")
_MENTION = re.compile(
    r"(?:<(?:ref|p)>(?P<tag>[^<]{0,200})</(?:ref|p)>\s{0,4}|"
    r"<\|object_ref_start\|>(?P<qwen>[^<]{0,200})<\|object_ref_end\|>\s{0,4}|"
    r"(?P<before>[^\W\d_][\w '-]{0,60})(?=<loc_))?"
    r"(?:(?:<box>|<\|box_start\|>)(?P<box>[^<]{0,20000})(?:</box>|<\|box_end\|>)|"
    r"<roi>\s{0,4}(?:<r(?P<region>\d{1,4})>|(?P<roi>[^<]{0,200}))\s{0,4}</roi>|"
    r"(?P<loc>(?:<loc_\d{1,4}>){1,400})|(?P<bins>(?:<loc\d{4}>){1,400})(?P<after>[^<;]{0,200}))"
)
_BETWEEN = re.compile(r"(?:[\s.,;]|</?s>|\b(?:and|an?|the)\b)*", re.IGNORECASE)
"""What may stand between the boxes and their names."""
OTHER_WORDS = "an answer with box tokens and other words than their names"


def _read_tokens(text: str, claims: Claims) -> None:
    """Add what an answer in box tokens states. If the question named the verbs and the object, boxes come in pairs,
    person and object, and each is a triplet; else they are only listed with their names. Raises `NotReadError` if the
    answer has other words than names."""
    # _BETWEEN: what may stand between mentions (tokens with their name); words are not among it
    if not _BETWEEN.fullmatch(_MENTION.sub(" ; ", text)):
        raise NotReadError(OTHER_WORDS)
    mentions = [_named_places(match) for match in _MENTION.finditer(text)]  # each a name with its boxes
    if claims.verbs and claims.label is not None and len(mentions) % 2 == 0:
        for (subject, person_places), (object_, object_places) in zip(mentions[::2], mentions[1::2], strict=True):
            if len(person_places) == len(object_places) == 1 and (not subject or claims.persons(subject)):
                (person_box,), (object_box,) = person_places, object_places
                label, verbs = object_ or claims.label, tuple(claims.verbs)
                claims.triplets.append(Claim(subject=person_box, object=object_box, label=label, verbs=verbs))
            else:
                claims.report(NO_PERSON)
        return
    for name, places in mentions:
        for place in places:
            claims.add_box(place, name)


def _kind(match: re.Match[str]) -> str:
    """Return the kind of box tokens in a match of _MENTION, which is the name of the group that has the numbers."""
    return next(kind for kind in ("box", "region", "roi", "loc", "bins") if match[kind] is not None)


def _named_places(match: re.Match[str]) -> tuple[str, list[Place]]:
    """Return (name, places) of what a match of _MENTION (box tokens, and a name beside them) is about: the name, ""
    without one, and its boxes, or for Groma the index of one of --boxes. Names stand in a tag, before the tokens
    (Florence-2) or behind them (PaliGemma). Other words before the tokens raise `NotReadError`."""
    kind = _kind(match)
    name_texts = [match[group] for group in ("tag", "qwen", "before", "after") if match[group]]
    label = label_of(name_texts[0] if name_texts else "")
    if match["before"] and not is_name(label):
        raise NotReadError(OTHER_WORDS)
    if kind == "region":
        return label, [int(match[kind])]
    numbers = [float(digits) for digits in re.findall(r"-?\d{1,9}(?:\.\d{0,18})?", match[kind])]
    if kind == "loc":  # the middle of a thousandth, as the model's processor has it
        numbers = [number + 0.5 for number in numbers]
    boxes = [numbers[index : index + 4] for index in range(0, len(numbers), 4)] or [[]]
    if kind == "bins":  # y first, in 1024ths
        boxes = [[box[index] / 1024 for index in (1, 0, 3, 2)] if len(box) == 4 else [] for box in boxes]
    return label, [*boxes]
