"""`hoicli shoe-sim`: how alike the senses of labels are, as a table for shoe-eval."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import APPENDED, READ, Read
from hoicli.commands.common import JOBS, GroundTruthOption, OnError, Output, WordNet, inputs, skips
from hoicli.commands.manual import page
from hoicli.similarity.rules import RULES, check_rule

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LLM = "Options of --backend llm (language models)"


@app.command(
    name="shoe-sim",
    cls=page(
        reads="predictions, and ground truth with --gt; or lines of pairs; or tables",
        writes="a line a pair of senses: {pos, a, b, similarity}",
        examples=[
            ("hoicli shoe-sim --backend lexical --gt gt.jsonl preds.jsonl > sim.jsonl", "offline, from WordNet"),
            (
                "hoicli shoe-sim --backend llm --model qwen3-32b --dry-run --price 0.3,1.2 --gt gt.jsonl preds.jsonl",
                "what asking a language model would cost",
            ),
            (
                "hoicli shoe-sim --backend llm --base-url http://localhost:8000/v1 --model qwen3-32b "
                "--cache answers.jsonl --gt gt.jsonl preds.jsonl > sim.jsonl",
                "ask it, every answer kept in a file",
            ),
            ("cat sim-a.jsonl sim-b.jsonl | hoicli shoe-sim --merge mean > sim.jsonl", "two models' tables as one"),
            (
                """echo '{"pos": "v", "a": "petting", "b": "stroke"}' """
                "| hoicli shoe-sim --backend wordnet:wup --pairs -",
                "words of your own",
            ),
        ],
        see=["shoe-eval", "synsets", "agree"],
    ),
)
def shoe_sim(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Prediction streams; with --merge, tables. - or nothing is stdin."),
        Read(only_with=("gt", "merge")),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="wordnet:path, wordnet:wup, wordnet:lch, wordnet:lin, wordnet:res, wordnet:jcn, lexical, llm, or "
            "table:FILE.",
            autocompletion=choices.backends,
        ),
        Read(prefix="table:"),
    ] = None,
    gt: GroundTruthOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="The benchmark whose labels the ground truth has (hico); without --gt: the senses of its classes "
            "among themselves.",
            autocompletion=choices.datasets,
        ),
    ] = None,
    all_pairs: Annotated[
        bool,
        typer.Option(
            "--all-pairs",
            help="Every ground-truth label with every predicted one, not only those that share an image; with "
            "--dataset alone, every label it has.",
        ),
    ] = False,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Rate these lines {pos, a, b} of words or senses, in their order; - is stdin.",
        ),
        READ,
    ] = None,
    wordnet: WordNet = None,
    merge: Annotated[
        str | None,
        typer.Option(
            "--merge",
            metavar="|".join(RULES),
            help="Join tables: each model's ratings side by side, and one similarity of them. Ties of a majority go to "
            "the model first by name.",
            autocompletion=choices.merge_rules,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="The endpoint, up to /v1; nothing else is ever contacted.",
            rich_help_panel=LLM,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="A model to ask; repeatable.", rich_help_panel=LLM),
    ] = None,
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="NAME",
            help="Ask this model first; what it rates 0 is not sent to the others.",
            rich_help_panel=LLM,
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="FILE",
            help="Every answer as it arrives; a run that ended early goes on from it.",
            rich_help_panel=LLM,
        ),
        APPENDED,
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            "--key-env",
            metavar="NAME",
            help="The environment variable with the key (default OPENAI_API_KEY).",
            rich_help_panel=LLM,
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", metavar="N", help="Questions under way at a time.", rich_help_panel=LLM),
        JOBS,
    ] = 8,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="S",
            help="Seconds to wait for an answer before asking again.",
            rich_help_panel=LLM,
        ),
    ] = 120.0,
    body: Annotated[
        str | None,
        typer.Option(
            "--body",
            metavar="JSON",
            help="More request fields, for example '{\"max_tokens\": 50}'.",
            rich_help_panel=LLM,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Ask nothing; count the questions, estimate their tokens and their cost.",
            rich_help_panel=LLM,
        ),
    ] = False,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="[MODEL=]IN,OUT",
            help="The price of a million tokens in and out, of all models or of one; repeatable.",
            rich_help_panel=LLM,
        ),
    ] = None,
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Similarities of WordNet senses: a line a pair, {pos, a, b, similarity}, sorted, each pair once.

    With --gt: the pairs that shoe-eval looks up for these predictions, the sense of each ground-truth label with every
    sense of the predicted labels of its image. With --dataset alone: the senses of its classes among themselves, or
    with --all-pairs whatever predictions in its labels can need. With --pairs: lines of your own, of words or senses.
    Similarity is 0 to 1; a sense is 1 with itself, which has no line.
    """
    from hoicli.errors import UsageError
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.shoe import wanted
    from hoicli.similarity import rating
    from hoicli.similarity.backends import offline_backend
    from hoicli.wordnet.selection import choose

    policy = ErrorPolicy(skip=skips(on_error))
    asked = base_url or model or screen or cache or key_env or body or dry_run or price
    if merge is not None or backend == "table":
        if gt is not None or pairs is not None or dataset is not None or asked or backend not in (None, "table"):
            raise UsageError("--merge joins tables: give it the tables alone")
        check_rule(merge or "mean")
        rating.merge(inputs(paths, "tables"), merge or "mean", policy, output)
        return
    if backend is None:
        raise UsageError("give a --backend (wordnet:wup, lexical, llm, ...), or --merge to join tables")
    if pairs is not None and (gt is not None or paths):
        raise UsageError("--pairs rates lines of its own: give it no other files")
    if pairs is None and gt is None and (paths or dataset is None):
        raise UsageError("give the ground truth with --gt FILE, a --dataset, or lines of your own with --pairs FILE")
    choose(wordnet)
    if backend == "llm":
        from hoicli.similarity.raters import Raters  # it brings an HTTP client along

        raters = Raters(
            base_url=base_url,
            named=tuple(model or ()),
            screen=screen,
            cache=cache,
            key_env=key_env,
            jobs=jobs,
            timeout=timeout,
            body=body,
            dry_run=dry_run,
            prices=tuple(price or ()),
        )
        offline = None
    elif asked:
        raise UsageError(f"--backend {backend} asks no model; --base-url, --model and the like go with llm")
    else:
        raters, offline = None, offline_backend(backend, policy)
    if pairs is not None:
        work: rating.Work = rating.PairLines(Stream([pairs], "pairs"), policy, offline)
    elif gt is not None:
        truth, predictions = Stream([gt], "ground truth"), Stream(inputs(paths, "PREDS"), "predictions")
        work = wanted.evaluation_pairs(truth, predictions, dataset or "hico", policy, all_pairs=all_pairs)
    else:
        work = wanted.dataset_pairs(dataset or "hico", all_pairs=all_pairs)
    if raters is not None:
        raters.run(work, policy, output)
    elif offline is not None:
        rating.rate_offline(backend, offline, work, policy, output)
