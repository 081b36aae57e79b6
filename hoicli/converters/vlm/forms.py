"""The forms of answers that `convert --from vlm` reads: a table, tried in its order. A new form is a row here, and
answers in fixtures/vlm/forms.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hoicli.converters.vlm.claims import Claims, claims_of
from hoicli.converters.vlm.frames import Frame
from hoicli.converters.vlm.lines import bracketed_rows, keyed_rows, separated_rows, table_rows
from hoicli.converters.vlm.sentences import CONVENTIONS, claims_of_sentences, plain_mentions, token_mentions
from hoicli.converters.vlm.text import Spoken, final_part, values_in


@dataclass
class Reading:
    """What a form makes of an answer. `reports`: (reason, readings) of what it leaves out; `notes`: what is worth a
    note; `frame`: the convention that its tokens imply, `source`: what these are; `declined`: why it is no answer."""

    claims: Claims = field(default_factory=Claims)
    reports: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    frame: Frame | None = None
    source: str = ""
    form: str = ""

    def report(self, reason: str, *readings: str) -> None:
        """Take a part that is left out."""
        self.reports.append((reason, readings))


@dataclass(frozen=True)
class Question:
    """What a row says about its question: the verbs and the object's name, for answers of boxes alone."""

    verbs: Sequence[str] = ()
    label: str | None = None


@dataclass(frozen=True)
class Form:
    """A row of `--list-forms`. read: takes an answer, and gives None for one that does not have the form."""

    name: str
    families: str
    example: str
    read: Callable[[str, Question], Reading | None]


def _tokens(answer: str, question: Question) -> Reading | None:
    text = final_part(answer)
    mentions = token_mentions(text)
    if not mentions:
        return None
    reading = Reading()
    verbs = question.verbs if question.label is not None else ()
    reading.claims = claims_of_sentences(text, mentions, reading.report, verbs, question.label)
    kinds = {mention.kind for mention in mentions} & CONVENTIONS.keys()
    if len({CONVENTIONS[kind] for kind in kinds}) == 1:
        reading.frame = Frame(CONVENTIONS[min(kinds)])
        names = {"box": "<box> or <|box_start|>", "loc": "<loc_>", "patch": "<patch_index_>"}
        reading.source = f"boxes in {names[min(kinds)]} tokens"
    return reading


def _json(answer: str, question: Question) -> Reading | None:
    found = values_in(answer)
    reading = Reading()
    reading.claims = claims_of(found.values, reading.report, verbs=question.verbs, label=question.label)
    if found.cut:
        reading.reports.insert(0, ("the unfinished end of an answer that was cut off", ()))
    if found.unended_thought and found.values:
        reading.notes.append("answers whose thought has no end: the last list in it is taken")
    return reading if reading.claims.understood else None


def _rows(read: Callable[[Spoken], list[object]]) -> Callable[[str, Question], Reading | None]:
    """The reader of a form whose lines give values."""

    def form(answer: str, question: Question) -> Reading | None:
        reading = Reading()
        rows = read(final_part(answer))
        reading.claims = claims_of(rows, reading.report, verbs=question.verbs, label=question.label)
        told = reading.claims.triplets or reading.claims.located or reading.reports
        return reading if rows and told else None

    return form


def _prose(answer: str, question: Question) -> Reading | None:
    text = final_part(answer)
    mentions = plain_mentions(text)
    if not mentions:
        return None
    reading = Reading()
    verbs = question.verbs if question.label is not None else ()
    reading.claims = claims_of_sentences(text, mentions, reading.report, verbs, question.label)
    return reading


_NOTHING = re.compile(
    r"\W*(?:(?:there\s+(?:is|are)\s+)?(?:no|not\s+any)\s+(?:\w+\s+){0,2}?(?:human[\s-]+object\s+)?(?:interactions?|pairs?|hois?)\b"
    r"|none\W*$|no\s*interaction\W*$)[^\[\]{}<>]{0,120}",
    re.IGNORECASE,
)


def _nothing(answer: str, _: Question) -> Reading | None:
    text = final_part(answer)
    if len(text) > 400 or _NOTHING.fullmatch(text) is None:
        return None
    return Reading(Claims(understood=True))


FORMS = (
    Form(
        "tokens",
        "InternVL, Qwen-VL, Qwen2-VL, Florence-2, Kosmos-2, Groma",
        "<ref>man</ref><box>[[100,200,300,400]]</box> is riding a <ref>bicycle</ref><box>[[250,300,500,450]]</box>",
        _tokens,
    ),
    Form(
        "json",
        "all: in prose, fences or lines; triplets, boxes with ids and relations, nested by person, lists",
        '[{"person_bbox": [100, 200, 300, 400], "object_bbox": [250, 300, 500, 450], "object": "bicycle", '
        '"verb": "ride"}]',
        _json,
    ),
    Form(
        "table",
        "GPT, Claude, Gemini: a Markdown table (a line a row)",
        "| person | verb | object |\n|---|---|---|\n"
        "| man [100, 200, 300, 400] | riding | bicycle [250, 300, 500, 450] |",
        _rows(table_rows),
    ),
    Form(
        "keys",
        "Claude, GPT, LLaVA: lines or lists of `key: value`, as in YAML",
        "- person: [100, 200, 300, 400]\n  verb: riding\n  object: bicycle\n  object_box: [250, 300, 500, 450]",
        _rows(keyed_rows),
    ),
    Form(
        "tuples",
        "LLaVA, Qwen-VL: a list of words and boxes in brackets",
        "(person, ride, bicycle, [100, 200, 300, 400], [250, 300, 500, 450])",
        _rows(bracketed_rows),
    ),
    Form(
        "csv",
        "GPT, Claude: separated by commas, semicolons or tabs, with a header or without",
        "person,100,200,300,400,riding,bicycle,250,300,500,450",
        _rows(separated_rows),
    ),
    Form(
        "prose",
        "Shikra, CogVLM, LLaVA, GPT, Claude: boxes in brackets beside the nouns",
        "A man [100, 200, 300, 400] is riding a bicycle [250, 300, 500, 450].",
        _prose,
    ),
    Form("nothing", "all: an answer that says there is none", "There are no interactions in this image.", _nothing),
)
"""The forms, in the order in which they are tried."""

_NO_ANSWERS = (
    ("points instead of boxes", re.compile(r"<points?\s[^>]{0,2000}>")),
    (
        "an answer that declines",
        re.compile(
            r"\b(?:i'?m|i\s+am)\s+(?:sorry|unable|not\s+able)\b|\b(?:i|we)\s+(?:cannot|can't|can\s?not|won't)\b|\bas\s+an\s+ai\b",
            re.IGNORECASE,
        ),
    ),
)
UNREADABLE = "an answer in which nothing can be read"


def read_answer(answer: str, question: Question) -> Reading:
    """The first form's reading that understands the answer; without one, a reading whose report says why."""
    for form in FORMS:
        reading = form.read(answer, question)
        if reading is not None and reading.claims.understood:
            reading.form = form.name
            return reading
    reading = Reading()
    text = answer[: 1 << 16].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    reading.report(next((reason for reason, pattern in _NO_ANSWERS if pattern.search(text)), UNREADABLE))
    return reading
