"""`hoicli refer-eval`: the phrases that a model gives for what pairs do."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ, Read
from hoicli.commands.choices import offline_backends
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError


@command(
    reads="result files of hoi-benchmarks' action referring scripts",
    writes="result rows: exact match, and the similarity of the verbs; with --needed, pairs of senses",
    examples=[
        ("hoicli refer-eval --dataset hico referred.json", "exact match, and similarity by hoicli's own measure"),
        (
            "hoicli refer-eval --dataset hico --needed referred.json > pairs.jsonl",
            "what a language model would have to rate",
        ),
        (
            "hoicli shoe-sim --backend lexical --pairs pairs.jsonl > sim.jsonl",
            "rate it (with --backend llm: by language models)",
        ),
        ("hoicli refer-eval --dataset hico --sim table:sim.jsonl referred.json", "the similarity by that table"),
    ],
    see=["ground-eval", "choice-eval", "shoe-sim", "shoe-eval"],
)
def refer_eval(
    results: list[str] | None = argument(
        None, "RESULTS...", "Result files, read as one; - or nothing is stdin.", mark=READ
    ),
    sim: str = option(
        "lexical",
        "--sim NAME",
        "What says how alike two senses are: lexical, wordnet:wup and the like, or table:FILE from shoe-sim (SHOE has "
        "language models rate them).",
        offer=offline_backends,
        mark=Read(prefix="table:"),
    ),
    dataset: str | None = options.dataset(
        "The dataset whose verbs the true phrases have (hico, swig): they have its senses; without, WordNet's first.",
        None,
    ),
    needed: bool = flag("--needed", "Write the pairs of senses that the similarity needs, for shoe-sim --pairs."),
    as_released: str | None = option(
        None,
        "--as-released NAME",
        "The batch scripts' exact match: requests that failed are left out, not wrong.",
        one_of="questions.rows:HOI_BENCHMARKS",
    ),
    bootstrap: int | None = options.bootstrap("every value"),
    seed: int = options.SEED,
    *,
    out: options.ResultRows,
) -> None:
    """How well phrases for what a person does with an object fit: exact match, and the similarity of the verbs.

    A row of a result file has two phrases, `ground_truth` and `prediction` (riding bicycle). exact_match: they are
    equal, but for case and spaces at the ends. verb_similarity: the mean of SHOE's similarity of their verbs, where the
    released scripts take BERTScore or a model as judge. Values are in percent.
    """
    from hoicli.io.outputs import open_output
    from hoicli.questions.referring import Phrases
    from hoicli.questions.results import read_referring
    from hoicli.questions.rows import referring_rows
    from hoicli.records.parsing import dump
    from hoicli.resampling.draws import Resampling
    from hoicli.similarity.backends import offline_backend
    from hoicli.vocabulary.datasets import load
    from hoicli.wordnet.selection import choose

    if sim == "llm":
        raise UsageError(
            "--sim llm: have shoe-sim ask (--needed, then shoe-sim --backend llm --pairs), and give its table"
        )
    resampling = Resampling.asked(bootstrap, seed)
    paths, tags, policy = options.inputs(results, "RESULTS"), out.tags(), out.policy()
    choose(None)
    if not sim.removeprefix("table:") or (not sim.startswith("table:") and sim not in offline_backends()):
        raise UsageError(f"--sim {sim}: choose from {', '.join(offline_backends())}FILE")
    backend = offline_backend(sim, policy)
    if dataset is not None:
        load(dataset)
    asked = read_referring(paths, policy)
    phrases = Phrases.of(asked, dataset)
    if needed:
        with open_output(out.output) as write:
            for line in phrases.lines():
                write(dump(line))
        policy.report()
        return
    similar = phrases.similarities(backend)
    rows = list(
        referring_rows(
            asked, similar, sim, dataset=dataset, tags=tags, released=as_released, resampling=resampling, policy=policy
        )
    )
    policy.report()
    out.write(rows)
