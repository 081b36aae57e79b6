"""Batches of `shoe-sim --backend llm`: the questions as a provider's file of requests, and its results."""

from __future__ import annotations

from collections.abc import Sequence

from hoicli.converters.vlm.batches import Result, over_limits, request, result_of
from hoicli.errors import DataError, UsageError
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import dump, parse
from hoicli.similarity.endpoint import Endpoint
from hoicli.similarity.interview import Interview
from hoicli.similarity.questions import Question


def export(
    path: str,
    provider: str,
    interview: Interview,
    endpoint: Endpoint,
    questions: Sequence[Question],
    models: Sequence[str],
    screen: str | None,
) -> None:
    """Write the questions without an answer as a provider's batch file. Raises `UsageError` for several models: a file
    is for one."""
    tasks = interview.tasks(questions, models, screen)
    asked = list(dict.fromkeys(model for model, _ in tasks))
    if len(asked) > 1:
        raise UsageError(f"--export-batch: a file is for one model; name one --model at a time ({', '.join(asked)})")
    size = 0
    with open_output(path) as write:
        for model, question in tasks:
            line = request(provider, interview.request_id(model, question), model, question.messages(), endpoint.body)
            data = dump(line)
            size += len(data)
            write(data)
    screening = "; the other models after these are imported" if screen is not None and asked == [screen] else ""
    note(f"{len(tasks):,} questions of {len(questions):,} for {asked[0] if asked else 'no model'}{screening}")
    if problem := over_limits(provider, len(tasks), size):
        note(problem)


class Results(dict[str, Result]):
    """Results by the ids of their requests. `again`: the places of those for a question that has an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.again: list[str] = []


def results_in(paths: Sequence[str], policy: ErrorPolicy) -> Results:
    """The results in files: of two with one id the first with an answer counts. Lines that are no results go to the
    policy."""
    found = Results()
    for line in Stream(list(paths), "results"):
        try:
            result = result_of(parse(line))
            if result is None or result.custom_id is None:
                raise DataError("no result of a batch (OpenAI's, Anthropic's or Gemini's, with its id)")
        except DataError as error:
            policy.handle(DataError(error.problem, place=line.place, field=error.field))
            continue
        known = found.get(result.custom_id)
        if known is not None and known.text is not None:
            found.again.append(line.place)
        else:
            found[result.custom_id] = result
    return found


def remarks_on(
    results: Results, interview: Interview, questions: Sequence[Question], models: Sequence[str], place: str
) -> list[str]:
    """How many results are of questions that this run does not have, or of one that has an answer. Raises `DataError`
    about `place` if none is of a question of this run."""
    ids = {interview.request_id(model, question) for model in models for question in questions}
    unasked = [custom_id for custom_id in results if custom_id not in ids]
    if unasked and len(unasked) == len(results):
        problem = f"none of the {len(results):,} results is for a question of this run (the first: {unasked[0][:64]!r})"
        raise DataError(f"{problem}; give the inputs, --model and --body of --export-batch", place=place)
    remarks = []
    if unasked:
        remarks.append(f"results for questions that nobody asked: {len(unasked):,} (the first: {unasked[0][:64]!r})")
    if again := results.again:
        remarks.append(f"results for a question that has one: {len(again):,} (the first: {again[0]}); the first counts")
    return remarks
