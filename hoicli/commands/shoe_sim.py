"""`hoicli shoe-sim`: how alike the senses of labels are, as a table for shoe-eval."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import APPENDED, READ, Read
from hoicli.interface.command import command
from hoicli.interface.option_values import numbers_of, text_of, texts_of
from hoicli.interface.options import Files, Given, Names, Option, Piped, Unpack
from hoicli.interface.results import Records, Result, instead
from hoicli.io.messages import note

if TYPE_CHECKING:
    from hoicli.records.result_rows import Row

LLM = "Options of --backend llm (language models)"


@command(
    reads="predictions, and ground truth with --gt; or lines of pairs; or tables",
    writes="one line for each pair of senses: {pos, a, b, similarity}",
    examples="""
        hoicli shoe-sim --backend lexical --gt gt.jsonl preds.jsonl > sim.jsonl  # offline, from WordNet
        hoicli shoe-sim --backend llm --model qwen3-32b --dry-run --price 0.3,1.2 --gt gt.jsonl preds.jsonl
            # what asking a language model would cost
        hoicli shoe-sim --backend llm --base-url http://localhost:8000/v1 --model qwen3-32b --cache answers.jsonl
            --gt gt.jsonl preds.jsonl > sim.jsonl  # ask it, every answer kept in a file
        cat sim-a.jsonl sim-b.jsonl | hoicli shoe-sim --merge mean > sim.jsonl  # join the tables of two models
        echo '{"pos": "v", "a": "petting", "b": "stroke"}' | hoicli shoe-sim --backend wordnet:wup --pairs -
            # words of your own
    """,
    see=["shoe-eval", "vocab", "agree"],
    exits={1: "the data is wrong, or the table of --check lacks pairs; one line on stderr says more"},
)
def shoe_sim(
    gt: options.Truth = None,
    predictions: Annotated[Given | None, Piped("FILE...", check=Read(only_with=("gt", "merge")))] = None,
    *,
    backend: Annotated[str | None, Option("NAME", one_of="shoe.settings:BACKENDS")] = None,
    dataset: Annotated[options.Path | None, options.dataset()] = None,
    all_senses: bool = False,
    against: Annotated[str, Option("WHAT", one_of="shoe.settings:AGAINST")] = "image",
    pairs: Annotated[Given | None, Option("FILE", check=READ)] = None,
    wordnet: options.WordNet = None,
    merge: Annotated[str | None, Option(one_of="shoe.settings:RULES")] = None,
    check: Annotated[Given | None, Option("FILE", repeated=True, check=READ)] = None,
    base_url: Annotated[str | None, Option("URL", panel=LLM)] = None,
    model: Annotated[Names, Option("NAME", repeated=True, panel=LLM)] = None,
    screen: Annotated[str | None, Option("NAME", panel=LLM)] = None,
    cache: Annotated[str | None, Option("FILE", check=APPENDED, panel=LLM)] = None,
    jobs: Annotated[int, Option("N", check=options.JOBS, panel=LLM)] = 8,
    dry_run: Annotated[bool, Option(panel=LLM)] = False,
    price: Annotated[str | None, Option("IN,OUT", panel=LLM)] = None,
    **shared: Unpack[Files],
) -> Records:
    """How similar senses are, for shoe-eval: a line for each pair, from WordNet or from language models.

    With --gt: the pairs that shoe-eval needs for these predictions, the sense of each ground-truth label with every
    sense of the predicted labels of its image. With --dataset alone: the senses of its classes among themselves. With
    --pairs: lines of your own, of words or senses. Similarity is 0 to 1; a sense and itself are 1 and have no line. A
    line says where it comes from: `scores` of models with the digest of the `prompt` and the `date`, or the `measure`
    (hoicli doctor --schema similarity).

    Arguments:
        predictions: Predictions of one model or several, a file or more each: one table is for all. With --merge,
            tables. - or nothing is stdin.
        backend: wordnet:path, wordnet:wup, wordnet:lch, wordnet:lin, wordnet:res, wordnet:jcn, lexical, llm (whose key
            is in OPENAI_API_KEY), or table, which is --merge mean.
        dataset: The dataset of the ground truth's labels (default: hico); without --gt, the senses of its classes are
            rated among themselves.
        all_senses: With --dataset alone: rate its senses with every sense that a prediction may have, for one table
            that serves many models. That is all verbs of WordNet; of objects, what its labels may mean, and what is
            above and just below. For hico these are some 1.9 million pairs.
        against: The pairs for shoe-eval with this --against. image: what is compared in some image. dataset: the senses
            of all classes of the dataset with those of all predicted labels.
        pairs: Rate these lines {pos, a, b} of words or senses, in their order; - is stdin.
        merge: Join tables into one: a line has all models' ratings and one similarity.
        check: Write the pairs that this table lacks, as lines for --pairs, and rate none; repeatable.
        base_url: The endpoint, up to /v1; nothing else is ever contacted.
        model: A model to ask; repeatable.
        screen: Ask this model first; what it rates 0 is not sent to the others.
        cache: Keep every answer in this file as it arrives; an interrupted run continues from it.
        jobs: How many questions to ask at a time.
        dry_run: Ask nothing; count the questions, estimate their tokens and their cost.
        price: The price of a million input and output tokens, for --dry-run.
    """
    from hoicli.interface.inputs import Inputs, lines, streams_of
    from hoicli.wordnet.lexicon import use_wordnet

    dataset_name = text_of(dataset)
    inputs = Inputs(dataset_name, shared, within="hico", gt=gt)
    policy = inputs.policy
    model_options = base_url or model or screen or cache or dry_run or price
    if merge is not None or backend == "table":
        has_other_inputs = any(option is not None for option in (gt, pairs, dataset, check))
        if has_other_inputs or model_options or backend not in (None, "table"):
            raise UsageError(f"{arg('merge')} joins tables: give it the tables alone")
        from hoicli.shoe.table_joining import merged_rows

        tables = lines(predictions, "predictions", "tables", "tables")
        return Records(policy.report_at_end(merged_rows(tables, merge or "mean", policy), some_left=True))

    # what does not go together
    if check is not None and (backend is not None or pairs is not None or model_options):
        how = f"give it {arg('gt')} and predictions, or a {arg('dataset')}, alone"
        raise UsageError(f"{arg('check')} rates nothing: {how}")
    if backend is None and check is None:
        how = f"(wordnet:wup, lexical, llm, ...), or {arg('merge')} to join tables"
        raise UsageError(f"give a {arg('backend')} {how}")
    if model_options and backend != "llm":
        which = f"{arg('base_url')}, {arg('model')} and the like go with llm"
        raise UsageError(f"{arg('backend', backend)} asks no model; {which}")
    if pairs is not None and (gt is not None or predictions is not None):
        raise UsageError(f"{arg('pairs')} rates lines of its own: give it no other files")
    if pairs is None and gt is None and (predictions is not None or dataset is None):
        how = f"a {arg('dataset')}, or lines of your own with {arg('pairs', like='FILE')}"
        raise UsageError(f"give the ground truth with {arg('gt', like='FILE')}, {how}")
    if all_senses and (pairs is not None or gt is not None):
        raise UsageError(f"{arg('all_senses')}: goes with a {arg('dataset')} alone; leave the files out")
    names = [*([screen] if screen else []), *texts_of(model)]
    if backend == "llm" and not all(name and name.isprintable() for name in names or [""]):
        raise UsageError(f"{arg('backend', 'llm')}: name a {arg('model')} to ask, in printable characters")
    if backend == "llm" and base_url is None and not dry_run:
        problem = f"give the endpoint with {arg('base_url')}, for example http://localhost:8000/v1"
        raise UsageError(f"{arg('backend', 'llm')}: {problem}")
    prices = _prices(price)
    if backend == "llm":
        from hoicli.shoe.client import KEY_NAME, Endpoint  # it brings an HTTP client along

        endpoint = Endpoint(base_url or "http://localhost/v1", os.environ.get(KEY_NAME, "").strip() or None)

    # the pairs to rate, then their ratings: by --check none, offline all at once, or one by one as models answer
    use_wordnet(text_of(wordnet))
    from hoicli.shoe.rating import PairLines, TableWork, dataset_pairs, evaluation_pairs, missing_rows, rate

    offline = None if backend == "llm" else backend
    if pairs is not None:
        work: TableWork = PairLines(lines(pairs, "pairs", "pairs", "pairs"), policy, offline)
    elif gt is not None:
        models = [inputs.predictions(source) for source in streams_of(predictions, "PREDS")]
        work = TableWork(evaluation_pairs(inputs.truth(gt), models, dataset_name or "hico", policy, against))
    else:
        work = TableWork(dataset_pairs(dataset_name or "hico", all_senses=all_senses))
    if check is not None:
        rows, error = missing_rows(lines(check, "check", "tables", "tables"), work.pairs, policy)
        return Records(policy.report_at_end(rows, some_left=True), failed=error)
    if offline is not None:
        return Records(policy.report_at_end(work.rows(rate(offline, work.pairs)), some_left=True))
    from hoicli.shoe.interview import AnswerCache, Interview

    def similarity_lines() -> Iterator[Row]:
        """Ask the models and yield a row for each pair; with --dry-run, only the rows of what that would cost."""
        with closing(AnswerCache(cache)) as answers:
            interview = Interview(endpoint, answers, names, screen, jobs=jobs, skip=policy.skip)
            yield from interview.plan_rows(work, prices) if dry_run else interview.rate_pairs(work, policy)

    if cache is None and not dry_run:
        note(f"without {arg('cache', like='FILE')} a run that ends early loses its answers")
    return instead(Result(list(similarity_lines()))) if dry_run else Records(similarity_lines())


def _prices(text: str | None) -> tuple[float, float] | None:
    """Return the prices of a million input tokens and of a million output tokens from the text of --price, "IN,OUT";
    None without one. Raises `UsageError` for anything else."""
    prices = numbers_of("price", text)
    if text is not None and (len(prices) != 2 or not all(0 <= price < 1e9 for price in prices)):
        raise UsageError(f"{arg('price', text)}: give IN,OUT, the prices of a million tokens")
    return (prices[0], prices[1]) if prices else None
