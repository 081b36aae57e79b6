"""The options of `shoe-sim --backend llm`, checked, and the run of the language models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from hoicli.errors import UsageError, arg
from hoicli.io.messages import note
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.records.results import Row
from hoicli.shoe.answers import AnswerCache
from hoicli.shoe.backends import synsets_of
from hoicli.shoe.endpoint import Endpoint, request_fields
from hoicli.shoe.interview import CHARACTERS_A_TOKEN, TOKENS_AN_ANSWER, Interview, failures_error
from hoicli.shoe.pairs import SCALE, Pair, Rated, days_of
from hoicli.shoe.questions import Question, setup_of
from hoicli.shoe.rating import Work
from hoicli.wordnet.selection import open_wordnet

LONGEST_TIMEOUT = 86_400
"""Seconds, a day."""


@dataclass(frozen=True)
class Raters:
    """The options of `--backend llm`. Raises `UsageError` for bad or conflicting ones."""

    base_url: str | None = None
    named: tuple[str, ...] = ()
    screen: str | None = None
    cache: str | None = None
    key_env: str | None = None
    jobs: int = 8
    timeout: float = 120.0
    body: str | None = None
    dry_run: bool = False
    prices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.models:
            raise UsageError(f"{arg('backend', 'llm')}: name a {arg('model')} to ask")
        if self.base_url is None and not self.dry_run:
            raise UsageError(
                f"{arg('backend', 'llm')}: give the endpoint with {arg('base_url')}, for example http://localhost:8000/v1"
            )
        if self.jobs < 1:
            raise UsageError(f"{arg('jobs', self.jobs)}: give more than 0")
        if not 0 < self.timeout <= LONGEST_TIMEOUT:
            raise UsageError(
                f"{arg('timeout', self.timeout)}: give seconds, more than 0 and at most {LONGEST_TIMEOUT:,}"
            )
        if not all(name and name.isprintable() for name in self.models):
            raise UsageError(f"{arg('model')}, {arg('screen')}: give a model's name, of characters that print")
        _ = self.endpoint, self._price  # both are checked before anything is asked

    @cached_property
    def models(self) -> tuple[str, ...]:
        """All models, the screening one first."""
        return tuple(dict.fromkeys((*([self.screen] if self.screen else ()), *self.named)))

    @cached_property
    def endpoint(self) -> Endpoint:
        """The server, with the key and the request fields."""
        key_env = self.key_env or "OPENAI_API_KEY"
        key = "" if self.base_url is None else os.environ.get(key_env, "").strip()
        if self.key_env is not None and not key and self.base_url is not None:
            # A value that does not look like a variable's name may be the key itself.
            named = f" {key_env}" if re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)*", key_env) else ""
            problem = f"{arg('key_env')}{named}: there is no such environment variable, or it is empty"
            raise UsageError(problem if named else f"{problem}; give the name of the variable, not the key")
        url = self.base_url or "http://localhost/v1"  # a dry run needs none
        endpoint = Endpoint(url, key or None, key_env, self.timeout)
        return replace(endpoint, body=request_fields(self.body, endpoint.shown))

    @cached_property
    def _price(self) -> dict[str, tuple[float, float]]:
        """Model -> (price of a million tokens in, price of a million out)."""
        table: dict[str, tuple[float, float]] = {}
        for text in sorted(self.prices, key=lambda text: "=" in text):  # one model's own price comes last
            model, _, numbers = text.rpartition("=")
            try:
                tokens_in, tokens_out = (float(part) for part in numbers.split(","))
            except ValueError:
                tokens_in = tokens_out = -1.0
            if not (0 <= tokens_in < 1e9 and 0 <= tokens_out < 1e9) or (model and model not in self.models):
                raise UsageError(f"{arg('price', text)}: give IN,OUT or MODEL=IN,OUT, the prices of a million tokens")
            table |= dict.fromkeys([model] if model else self.models, (tokens_in, tokens_out))
        return table

    @contextmanager
    def _interview(self, *, skip: bool) -> Iterator[tuple[Interview, AnswerCache]]:
        cache = AnswerCache(self.cache)
        try:
            if cache.cut:
                note(f"{self.cache}: lines that were cut off: {cache.cut:,}; their questions are asked again")
            yield Interview(self.endpoint, cache, jobs=self.jobs, skip=skip), cache
        finally:
            cache.close()

    def rated(self, work: Work, policy: ErrorPolicy) -> Iterator[Record]:
        """Ask the models: the lines of the rated pairs. Raises `DataError` after the last if questions have no usable
        answer: stdout then has the complete pairs, an output file is not written, and the cache has all answers."""
        if self.cache is None:
            note(f"without {arg('cache', like='FILE')} a run that ends early loses its answers")
        with self._interview(skip=policy.skip) as (interview, cache):
            yield from self._ask(interview, cache, work, policy)

    def _ask(self, interview: Interview, cache: AnswerCache, work: Work, policy: ErrorPolicy) -> Iterator[Record]:
        ratings = interview.ratings(questions(work.pairs), self.models, self.screen)
        prompt = setup_of(self.endpoint)
        days = {model: cache.days(model, prompt) for model in self.models}

        def mean(scores: dict[str, int]) -> Rated:
            date = days_of(day for model in scores for day in days[model])
            return Rated(sum(scores.values()) / (SCALE * len(scores)), scores, prompt=prompt, date=date)

        rated = [mean(scores) if scores else Rated(None, scores) for scores in ratings]
        failed = {(failure.question.pos, failure.question.a, failure.question.b) for failure in interview.failures}
        error = failures_error(interview.failures, kept=self.cache is not None) if failed else None
        if not policy.skip:  # a mean over only some of the models would mislead
            rated = [Rated(None) if pair in failed else found for pair, found in zip(work.pairs, rated, strict=True)]
        yield from work.rows(rated)
        if error is not None and not policy.skip:
            raise error
        note(f"{len(work.pairs):,} pairs, {', '.join(self.models)}; {interview.answers:,} answers in this run")
        policy.report()
        if error is not None:
            note(f"left out what models did not rate: {error}")

    def planned(self, work: Work) -> list[Row]:
        """Nothing is asked: one row for each model, with questions, tokens and cost."""
        with self._interview(skip=False) as (interview, _):
            rows: list[Row] = list(interview.plan(questions(work.pairs), self.models, self.screen))
        for row in rows:
            if row["model"] in self._price:
                tokens_in, tokens_out = self._price[row["model"]]
                row["cost"] = round((row["prompt_tokens"] * tokens_in + row["completion_tokens"] * tokens_out) / 1e6, 4)
        screened = f"; {self.screen} may save the others some" if self.screen else ""
        note(
            f"asked nothing. Estimates: {CHARACTERS_A_TOKEN} characters a token, {TOKENS_AN_ANSWER} tokens an answer "
            f"(more from a model that writes out its reasoning){screened}"
        )
        return rows


def questions(pairs: Sequence[Pair]) -> list[Question]:
    """The pairs with their glosses. Raises `DataError` for a sense that WordNet does not have."""
    wordnet = open_wordnet()
    gloss = {sense: wordnet.synset(wordnet.name(row)).definition() for sense, row in synsets_of(wordnet, pairs).items()}
    return [Question(pos, a, b, gloss[a], gloss[b]) for pos, a, b in pairs]
