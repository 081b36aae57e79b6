"""The answers that `convert --from vlm` reads: JSON in one of the shapes below, alone or in one code fence, and box
tokens. Everything else is refused. A new shape is a row here, and answers in fixtures/vlm/forms.jsonl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hoicli.converters.vlm.claims import Claims, NotReadError, Persons, claims_of
from hoicli.converters.vlm.names import names_person
from hoicli.converters.vlm.text import Spoken, final_part, values_in
from hoicli.converters.vlm.tokens import claims_of_tokens, kinds_in


@dataclass
class Reading:
    """What is read in an answer. `reports`: why parts are left out; `tokens`: the kind of its tokens, "" for none or
    several; `form`: json or tokens, "" for an answer that is refused."""

    claims: Claims = field(default_factory=Claims)
    reports: list[str] = field(default_factory=list)
    tokens: str = ""
    form: str = ""


@dataclass(frozen=True)
class Form:
    """A row of `--list-forms`."""

    name: str
    families: str
    example: str


FORMS = (
    Form(
        "json: triplets",
        "what hoicli prompts asks for; HOI-R1, hoi-benchmarks, any model that is asked so",
        '{"interactions": [{"person_box": [100, 200, 300, 400], "object_box": [250, 300, 500, 450], '
        '"object": "bicycle", "verbs": ["ride"]}]}\n'
        "[{'human': [100, 200, 300, 400], 'object': [250, 300, 500, 450], 'object class': 'bicycle', "
        "'verb class': 'ride'}]",
    ),
    Form(
        "json: triplets of named boxes",
        "Gemini",
        '[{"subject": {"label": "person", "box_2d": [100, 200, 300, 400]}, "predicate": "ride", '
        '"object": {"label": "bicycle", "box_2d": [250, 300, 500, 450]}}]',
    ),
    Form(
        "json: boxes by id",
        "R1-SGG",
        '{"objects": [{"id": "person.1", "bbox": [100, 200, 300, 400]}, {"id": "bicycle.1", "bbox": '
        '[250, 300, 500, 450]}], "relationships": [{"subject": "person.1", "predicate": "ride", '
        '"object": "bicycle.1"}]}',
    ),
    Form(
        "json: a person's box and an object's",
        "Qwen-VL; the verb beside one of the two, or in the question",
        '[{"bbox_2d": [100, 200, 300, 400], "label": "person"}, {"bbox_2d": [250, 300, 500, 450], '
        '"label": "bicycle", "action": "ride"}]',
    ),
    Form(
        "tokens: boxes",
        "InternVL, Qwen-VL, Qwen2-VL, Groma, Florence-2, PaliGemma: boxes with names, which give no triplet",
        "<ref>man</ref><box>[[100,200,300,400]]</box><ref>bicycle</ref><box>[[250,300,500,450]]</box>\n"
        "man<loc_100><loc_200><loc_300><loc_400>bicycle<loc_250><loc_300><loc_500><loc_450>\n"
        "<loc0205><loc0102><loc0410><loc0307> man ; <loc0307><loc0256><loc0461><loc0512> bicycle",
    ),
)
"""What is read, for `--list-forms`."""

NOT_READ = "an answer that is no JSON, and no box tokens"


def is_phrase(answer: str) -> bool:
    """Whether an answer is a few words, as for what a given pair does."""
    return len(answer) <= 200 and not set("[{<`").intersection(answer)


def read_answer(
    answer: Any, verbs: Sequence[str] = (), label: str | None = None, persons: Persons = names_person
) -> Reading:
    """What is read in an answer, a text or parsed already; without a form, the report says why it is refused. verbs,
    label: the verbs and the object of the question, for answers of boxes alone; persons: who may act, by name."""
    reading = Reading()
    report = reading.reports.append
    try:
        text = final_part(answer) if isinstance(answer, str) else Spoken.at("", 0)
        if kinds := kinds_in(text):
            reading.tokens = kinds.pop() if len(kinds) == 1 else ""
            reading.claims = claims_of_tokens(text, report, persons, tuple(verbs), label)
            reading.form = "tokens"
        else:
            values, cut = ([answer], False) if isinstance(answer, list | dict) else values_in(text)
            if cut:
                report("the unfinished end of an answer that was cut off")
            if not values:
                raise NotReadError("an answer that was cut off before anything whole" if cut else NOT_READ)
            reading.claims = claims_of(values, report, persons, verbs=verbs, label=label)
            reading.form = "json"
    except (NotReadError, ValueError) as refused:
        reading.claims, reading.reports = Claims(), [str(refused)]
    return reading
