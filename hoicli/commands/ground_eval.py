"""`hoicli ground-eval`: which pairs of an interaction a model finds when it is asked for them."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option


@command(
    reads="result files of hoi-benchmarks' grounding scripts; or records of answers, and ground truth with --gt",
    writes="result rows: AR, AR@0.5, AR@0.75, and AR of small, medium and large objects",
    examples=[
        ("hoicli ground-eval --match both --bootstrap 1000 grounded.json", "both boxes have to fit; with intervals"),
        (
            "hoicli ground-eval --as-released hoi-benchmarks grounded.json",
            "to the digit what recalculate_ground_metrics.py prints",
        ),
        ("hoicli ground-eval --gt gt.jsonl --top-k 5 preds.jsonl", "image records: the five best pairs of a question"),
    ],
    see=["choice-eval", "refer-eval", "recall", "convert"],
)
def ground_eval(
    results: list[str] | None = argument(
        None, "RESULTS...", "Result files, or records with --gt, read as one; - or nothing is stdin.", mark=READ
    ),
    gt: str | None = options.GROUND_TRUTH,
    match: str = option(
        "mean",
        "--match NAME",
        "mean: a pair is found if the mean of its boxes' IoUs reaches the threshold (the script's rule). both: if both "
        "IoUs do.",
        one_of="questions.grounding:MATCHES",
    ),
    top_k: int | None = option(None, "--top-k K", "Only the K first (best) predicted pairs of each question count."),
    as_released: str | None = option(
        None,
        "--as-released NAME",
        "The released scripts' figures to the digit: thresholds a little above 0.55, 0.6, ..., and 0 where there is "
        "nothing to find.",
        one_of="questions.rows:HOI_BENCHMARKS",
    ),
    bootstrap: int | None = options.bootstrap("every value"),
    seed: int = options.SEED,
    *,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """Average recall of the pairs that an interaction has in an image, as hoi-benchmarks (SIT-AIGCDesignLab) has it.

    A row of a result file asks for all pairs of an interaction, `gt_pairs`, and has those found, `predicted_pairs`. AR
    is the mean over IoU thresholds from 0.5 to 0.95 of the mean share found over questions; of a size of objects it is
    over the pairs. With --gt the questions are the interactions that the ground truth has in each image, and the pairs
    found are predictions of these, the best first. Values are in percent.
    """
    from hoicli.errors import UsageError
    from hoicli.io.streams import Stream
    from hoicli.questions.results import read_grounding
    from hoicli.questions.rows import grounding_rows
    from hoicli.resampling.draws import Resampling

    if top_k is not None and top_k < 1:
        raise UsageError(f"--top-k {top_k}: give a whole number of at least 1")
    resampling = Resampling.asked(bootstrap, seed)
    paths, tags, policy = options.inputs(results, "RESULTS"), out.tags(), out.policy()
    signed: dict[str, str] = {}
    if gt is None:
        asked = read_grounding(paths, policy)
    else:
        from hoicli.questions.records import grounding_of

        opening = dumps.opening(None, policy)
        truth = Stream([gt], "ground truth", opening.truth)
        asked, signed = grounding_of(truth, Stream(paths, "predictions", opening.predictions), policy)
    made = grounding_rows(
        asked, match, tags=tags, most=top_k, released=as_released, resampling=resampling, signed=signed
    )
    rows = list(made)
    policy.report()
    out.write(rows)
