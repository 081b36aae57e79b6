"""The options of `shoe-sim --backend llm` checked, and language models put to work by them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hoicli.errors import UsageError
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, dump
from hoicli.similarity.answers import AnswerCache
from hoicli.similarity.backends import LanguageModels, questions
from hoicli.similarity.endpoint import Endpoint
from hoicli.similarity.interview import CHARACTERS_A_TOKEN, TOKENS_AN_ANSWER, Interview, failures_error
from hoicli.similarity.pairs import Rated
from hoicli.similarity.rating import Work
from hoicli.tables.notations import chosen_format, render

Price = tuple[float, float]
"""Of a million tokens in, and of a million out."""


@dataclass(frozen=True)
class ModelOptions:
    """The options of `--backend llm` as they were given; `checked` makes `Raters` of them."""

    base_url: str | None = None
    models: tuple[str, ...] = ()
    screen: str | None = None
    cache: str | None = None
    key_env: str | None = None
    jobs: int = 8
    timeout: float = 120.0
    body: str | None = None
    dry_run: bool = False
    prices: tuple[str, ...] = ()

    def checked(self) -> Raters:
        """The raters. Raises `UsageError` for whatever does not fit."""
        models = tuple(dict.fromkeys((*([self.screen] if self.screen else ()), *self.models)))
        if not models:
            raise UsageError("--backend llm: name a --model to ask")
        if self.base_url is None and not self.dry_run:
            raise UsageError("--backend llm: give the endpoint with --base-url, for example http://localhost:8000/v1")
        if self.jobs < 1 or not self.timeout > 0:
            raise UsageError(f"--jobs {self.jobs}, --timeout {self.timeout:g}: give more than 0")
        key_env = self.key_env or "OPENAI_API_KEY"
        key = "" if self.dry_run else os.environ.get(key_env, "").strip()
        if self.key_env is not None and not key and not self.dry_run:
            # What does not look like the name of a variable may be the key itself.
            named = f" {key_env}" if re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)*", key_env) else ""
            problem = f"--key-env{named}: there is no such environment variable, or it is empty"
            raise UsageError(problem if named else f"{problem}; give the name of the variable, not the key")
        url = self.base_url or "http://localhost/v1"  # a dry run needs none
        endpoint = Endpoint(url, key or None, key_env, self.timeout)
        endpoint = replace(endpoint, body=_json_object(self.body, endpoint))
        return Raters(self, models, endpoint, self._priced(models))

    def _priced(self, models: Sequence[str]) -> dict[str, Price]:
        """The price of each model that has one."""
        table: dict[str, Price] = {}
        for text in sorted(self.prices, key=lambda text: "=" in text):  # one model's own price comes last
            model, _, numbers = text.rpartition("=")
            try:
                tokens_in, tokens_out = (float(part) for part in numbers.split(","))
            except ValueError:
                tokens_in = tokens_out = -1.0
            if not (0 <= tokens_in < 1e9 and 0 <= tokens_out < 1e9) or (model and model not in models):
                raise UsageError(f"--price {text}: give IN,OUT or MODEL=IN,OUT, the prices of a million tokens")
            table |= dict.fromkeys([model] if model else models, (tokens_in, tokens_out))
        return table


def _json_object(text: str | None, endpoint: Endpoint) -> dict[str, Any]:
    """What `--body` says. Raises `UsageError` for anything but a JSON object."""
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"--body {endpoint.shown(text)}: give a JSON object, for example '{{\"max_tokens\": 50}}'")
    return value


@dataclass(frozen=True)
class Raters:
    """Models to ask, the screening one first, and how."""

    options: ModelOptions
    models: tuple[str, ...]
    endpoint: Endpoint
    prices: Mapping[str, Price]

    def run(self, work: Work, policy: ErrorPolicy, output: str) -> None:
        """Ask and write, or with `--dry-run` count. Raises `DataError` when questions stay without a usable answer:
        stdout then has the complete pairs, a file does not appear, and the cache has all answers."""
        options = self.options
        cache = AnswerCache(options.cache)
        try:
            if cache.mended is not None:
                note(cache.mended)
            interview = Interview(self.endpoint, cache, jobs=options.jobs, skip=policy.skip)
            if options.dry_run:
                self._count(interview, work, output)
            else:
                if options.cache is None:
                    note("without --cache FILE a run that ends early loses its answers")
                self._ask(interview, work, policy, output)
        finally:
            cache.close()

    def _ask(self, interview: Interview, work: Work, policy: ErrorPolicy, output: str) -> None:
        rated = LanguageModels(interview, self.models, self.options.screen).rate(work.pairs)
        failed = {(failure.question.pos, failure.question.a, failure.question.b) for failure in interview.failures}
        error = failures_error(interview.failures, kept=self.options.cache is not None) if failed else None
        if not policy.skip:  # the mean of some of the models is not what was asked for
            rated = [Rated(None) if pair in failed else found for pair, found in zip(work.pairs, rated, strict=True)]
        with open_output(output) as write:
            for record in work.rows(rated):
                write(dump(record))
            if error is not None and not policy.skip:
                raise error
        used = interview.usage
        tokens = f": {used.prompt:,} tokens in, {used.completion:,} out" if used.prompt or used.completion else ""
        note(f"{len(work.pairs):,} pairs, {', '.join(self.models)}; {used.answers:,} answers in this run{tokens}")
        policy.report()
        if error is not None:
            note(f"left out what models did not rate: {error}")

    def _count(self, interview: Interview, work: Work, output: str) -> None:
        """A row a model: questions, tokens and cost."""
        rows: list[Record] = []
        for plan in interview.plan(questions(work.pairs), self.models, self.options.screen):
            record: Record = {
                "model": plan.model,
                "pairs": plan.pairs,
                "questions": plan.to_ask,
                "prompt_tokens": plan.prompt_tokens,
                "completion_tokens": plan.completion_tokens,
            }
            if plan.model in self.prices:
                record["cost"] = round(plan.cost(self.prices[plan.model]), 4)
            rows.append(record)
        with open_output(output) as write:
            write(render(rows, chosen_format("auto", output)))
        screened = f"; {self.options.screen} may save the others some" if self.options.screen else ""
        note(
            f"asked nothing. Estimates: {CHARACTERS_A_TOKEN} characters a token, {TOKENS_AN_ANSWER} tokens an answer "
            f"(more from a model that thinks aloud){screened}"
        )
