"""Scores of triplets from the probabilities of an answer's tokens (`--scores tokens`).

The score of a triplet is the probability with which the model said its words: the product of the probabilities of the
tokens that hold a letter of its verb or of its object's name, where this triplet says them. A token counts whole, once,
even if it holds other letters. Boxes, keys and punctuation do not count; the object does not where the answer names it
by a number. The supplement of SHOE (section 1) ranks vision-language models by "token probabilities" and does not say
of which tokens: this choice is ours. Longer names have lower scores, so compare scores of one vocabulary.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from hoicli.converters.vlm.claims import Claim
from hoicli.converters.vlm.text import Span

RULE = "the product of the probabilities of the tokens of its verb and of its object's name"
"""The rule, for the note of a conversion."""


def logprobs_in(row: dict[str, Any]) -> Any:
    """The log-probabilities of a row's answer: its own `logprobs`, or those of the first choice of a chat
    completion."""
    if row.get("logprobs") is not None:
        return row["logprobs"]
    holder: Any = row
    for _ in range(3):
        choices = holder.get("choices") if isinstance(holder, dict) else None
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return choices[0].get("logprobs")
        holder = (holder.get("response") or holder.get("body")) if isinstance(holder, dict) else None
    return None


class Tokens:
    """The tokens of an answer with their log-probabilities, by the bytes they spell. Raises `ValueError` if they do not
    spell the answer, or have no log-probabilities."""

    def __init__(self, answer: Any, said: Any) -> None:
        """said: OpenAI's {content: [{token, logprob, bytes}]}, or such a list."""
        if isinstance(said, dict):
            said = said.get("content")
        if not isinstance(answer, str) or not isinstance(said, list) or not said:
            raise ValueError
        pieces, self._logs = zip(*map(_piece, said), strict=True)
        if not b"".join(pieces).startswith(_encoded(answer)):  # an end token may follow
            raise ValueError
        self._ends = list(accumulate(map(len, pieces)))
        self._answer = answer

    def score(self, spans: Sequence[Span]) -> float:
        """The probability of the tokens that hold a character of the spans."""
        held: set[int] = set()
        for span in spans:
            first, last = (len(_encoded(self._answer[:end])) for end in span)
            held.update(range(bisect_right(self._ends, first), bisect_left(self._ends, last) + 1))
        return math.exp(math.fsum(self._logs[number] for number in held))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _piece(item: Any) -> tuple[bytes, float]:
    """The bytes of a token (its `bytes`, which also tell of half a character, or its text), and its log-probability."""
    if not isinstance(item, dict):
        raise ValueError
    given, text, log = item.get("bytes"), item.get("token"), item.get("logprob")
    if isinstance(log, bool) or not isinstance(log, int | float) or not -math.inf < log <= 1e-3:
        raise ValueError
    if isinstance(given, list) and all(type(number) is int for number in given):
        return bytes(given), min(float(log), 0.0)
    if given is not None or not isinstance(text, str):
        raise ValueError
    return _encoded(text), min(float(log), 0.0)


def scored(claims: Sequence[Claim], tokens: Tokens) -> list[Claim]:
    """The claims with the scores of their tokens, one for each verb; None for a verb whose place is not known."""
    found = []
    for claim in claims:
        label = [claim.label_span] if claim.label_span is not None else []
        for verb, span in zip(claim.verbs, claim.spans or (None,) * len(claim.verbs), strict=True):
            score = None if span is None else tokens.score([span, *label])
            found.append(replace(claim, verbs=(verb,), spans=(span,), score=score))
    return found
