"""`hoicli shoe-sim`: how alike the senses of labels are, as a table for shoe-eval."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import APPENDED, READ, Read
from hoicli.commands.choices import backends
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError
from hoicli.io.streams import Stream

LLM = "Options of --backend llm (language models)"


@command(
    reads="predictions, and ground truth with --gt; or lines of pairs; or tables",
    writes="one line for each pair of senses: {pos, a, b, similarity}",
    examples=[
        ("hoicli shoe-sim --backend lexical --gt gt.jsonl preds.jsonl > sim.jsonl", "offline, from WordNet"),
        ("hoicli shoe-sim --check sim.jsonl --gt gt.jsonl preds.jsonl", "has a shared table all that these need?"),
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
    see=["shoe-eval", "vocab", "agree"],
)
def shoe_sim(
    paths: list[str] | None = argument(
        None,
        "FILE...",
        "Prediction streams; with --merge, tables. - or nothing is stdin.",
        mark=Read(only_with=("gt", "merge")),
    ),
    backend: str | None = option(
        None,
        "--backend NAME",
        "wordnet:path, wordnet:wup, wordnet:lch, wordnet:lin, wordnet:res, wordnet:jcn, lexical, llm, or table:FILE.",
        offer=backends,
        mark=Read(prefix="table:"),
    ),
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(
        "The dataset whose labels the ground truth has (hico); without --gt: the senses of its classes among "
        "themselves.",
        None,
    ),
    all_pairs: bool = flag(
        "--all-pairs",
        "Every ground-truth label with every predicted one, not only those that share an image; with --dataset alone, "
        "every label it has.",
    ),
    pairs: str | None = option(
        None, "--pairs FILE", "Rate these lines {pos, a, b} of words or senses, in their order; - is stdin.", mark=READ
    ),
    wordnet: str | None = options.WORDNET,
    merge: str | None = option(
        None,
        "--merge",
        "Join tables: each model's ratings side by side, and one similarity of them. Ties of a majority go to "
        "the model whose name is first in the alphabet.",
        one_of="shoe.pairs:RULES",
    ),
    check: list[str] | None = option(
        None,
        "--check FILE",
        "Write the pairs that this table lacks, as lines for --pairs, and rate none; repeatable. Exits 1 if it lacks "
        "any.",
        mark=READ,
    ),
    base_url: str | None = option(
        None, "--base-url URL", "The endpoint, up to /v1; nothing else is ever contacted.", panel=LLM
    ),
    model: list[str] | None = option(None, "--model NAME", "A model to ask; repeatable.", panel=LLM),
    screen: str | None = option(
        None, "--screen NAME", "Ask this model first; what it rates 0 is not sent to the others.", panel=LLM
    ),
    cache: str | None = option(
        None,
        "--cache FILE",
        "Keep every answer in this file as it arrives; a run that ended early goes on from it.",
        mark=APPENDED,
        panel=LLM,
    ),
    key_env: str | None = option(
        None, "--key-env NAME", "The environment variable with the key (default OPENAI_API_KEY).", panel=LLM
    ),
    jobs: int = option(8, "--jobs N", "Questions under way at a time.", mark=options.JOBS, panel=LLM),
    timeout: float = option(120.0, "--timeout S", "Seconds to wait for an answer before asking again.", panel=LLM),
    body: str | None = option(
        None, "--body JSON", "More request fields, for example '{\"max_tokens\": 50}'.", panel=LLM
    ),
    dry_run: bool = flag(
        "--dry-run", "Ask nothing; count the questions, estimate their tokens and their cost.", panel=LLM
    ),
    price: list[str] | None = option(
        None,
        "--price [MODEL=]IN,OUT",
        "The price of a million tokens in and out, of all models or of one; repeatable.",
        panel=LLM,
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.OUT,
    *,
    dumps: options.Dumps,
) -> None:
    """Similarities of WordNet senses: one line for each pair, {pos, a, b, similarity}, sorted.

    With --gt: the pairs that shoe-eval looks up for these predictions, the sense of each ground-truth label with every
    sense of the predicted labels of its image. With --dataset alone: the senses of its classes among themselves, or
    with --all-pairs every pair that predictions in its labels can need. With --pairs: lines of your own, of words or
    senses. Similarity is 0 to 1; a sense is 1 with itself, which has no line. A line says where it is from: `scores` of
    models with the digest of the `prompt` and the `date`, or the `measure` (hoicli doctor --schema similarity).
    """
    from hoicli.shoe import needed, rating
    from hoicli.shoe.backends import offline_backend
    from hoicli.wordnet.selection import choose

    policy = options.policy(on_error)
    asked = base_url or model or screen or cache or key_env or body or dry_run or price
    if merge is not None or backend == "table":
        others = gt is not None or pairs is not None or dataset is not None or check
        if others or asked or backend not in (None, "table"):
            raise UsageError("--merge joins tables: give it the tables alone")
        tables = Stream(options.inputs(paths, "tables"), "tables")
        rating.write_rows(rating.merged_rows(tables, merge or "mean", policy), output)
        policy.report()
        return
    if check and (backend is not None or pairs is not None or asked):
        raise UsageError("--check rates nothing: give it --gt and predictions, or a --dataset, alone")
    if backend is None and not check:
        raise UsageError("give a --backend (wordnet:wup, lexical, llm, ...), or --merge to join tables")
    if pairs is not None and (gt is not None or paths):
        raise UsageError("--pairs rates lines of its own: give it no other files")
    if pairs is None and gt is None and (paths or dataset is None):
        raise UsageError("give the ground truth with --gt FILE, a --dataset, or lines of your own with --pairs FILE")
    choose(wordnet)
    if backend == "llm":
        from hoicli.shoe.raters import Raters  # it brings an HTTP client along

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
        raters, offline = None, None if backend is None else offline_backend(backend, policy)
    if pairs is not None:
        work: rating.Work = rating.PairLines(Stream([pairs], "pairs"), policy, offline)
    elif gt is not None:
        opening = dumps.opening(dataset, policy, within=dataset or "hico")
        truth = Stream([gt], "ground truth", opening.truth)
        predictions = Stream(options.inputs(paths, "PREDS"), "predictions", opening.predictions)
        work = needed.evaluation_pairs(truth, predictions, dataset or "hico", policy, all_pairs=all_pairs)
    else:
        work = needed.dataset_pairs(dataset or "hico", all_pairs=all_pairs)
    if check:
        rating.write_missing(Stream(check, "tables"), work.pairs, policy, output)
    elif raters is not None:
        raters.run(work, policy, output)
    elif backend is not None and offline is not None:
        rating.write_rows(rating.rated_rows(backend, offline, work, policy), output)
        policy.report()
