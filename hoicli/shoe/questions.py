"""The question to a language model about two senses, and the rating in its answer."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from hoicli.shoe.endpoint import Endpoint

WHAT = {"n": "objects", "v": "actions"}

SYSTEM = (
    "You compare word meanings for the evaluation of systems that describe photographs of people. "
    "Your whole reply is one JSON object and nothing else."
)
TASK = """\
Two {what} as WordNet defines them:

A. {a} -- {gloss_a}
B. {b} -- {gloss_b}

Think of a photograph that shows A. How well would B name the same thing? Go by the definitions, not by the words.
4: one can stand for the other
3: nearly the same, a small shade apart
2: clearly related, yet a careful observer keeps them apart
1: something in common, no more
0: nothing to do with each other

Reply with {{"rating": N}}, where N is 0, 1, 2, 3 or 4."""
REMINDER = 'That was not the format. Reply with {"rating": N} alone, N being a whole number from 0 to 4.'


@dataclass(frozen=True)
class Question:
    """Two senses of one part of speech, `a` before `b`, with their glosses."""

    pos: str
    a: str
    b: str
    gloss_a: str
    gloss_b: str

    def messages(self) -> list[dict[str, str]]:
        """The conversation that asks the question."""
        task = TASK.format(what=WHAT[self.pos], a=self.a, b=self.b, gloss_a=self.gloss_a, gloss_b=self.gloss_b)
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]

    def __str__(self) -> str:
        return f"{self.a} and {self.b}"


def parse_rating(text: str) -> int | None:
    """The rating in an answer, None where it has none, several different ones, or one outside 0..4.

    A model's reasoning (`<think>` to `</think>`), code fences and words around the object are ignored; "3" and 3.0 are
    3.
    """
    text = text.rsplit("</think>", 1)[-1]
    if "<think>" in text:
        return None
    found = {match.group(1) or match.group(2) for match in _RATING.finditer(text)}
    if not found and re.fullmatch(r"\s*[0-4]\s*", text):
        return int(text)
    return int(float(found.pop())) if len(found) == 1 else None


_RATING = re.compile(r"""["']rating["']\s*:\s*(?:["']([0-4](?:\.0+)?)["']|([0-4](?:\.0+)?))(?=\s*[,}])""")


def setup_of(endpoint: Endpoint) -> str:
    """Eight letters that identify the wording and the extra fields, so that answers to another wording are not
    reused."""
    text = json.dumps([SYSTEM, TASK, dict(endpoint.body)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
