"""`hoicli shoe-eval`: open-vocabulary predictions, scored by how close in meaning they are."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import OUTPUT, READ
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream


@command(
    reads="predictions, ground truth with --gt, similarities with --sim",
    writes="result rows; with --reasons a line for every match and miss",
    examples=[
        ("hoicli shoe-sim --backend wordnet:wup --gt gt.jsonl preds.jsonl > sim.jsonl", "how alike the labels are"),
        ("hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl preds.jsonl", "soft mAP and mF1"),
        (
            "hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl --min-rank 0.5 --reasons why.jsonl preds.jsonl",
            "of the better half of all predictions (a reading), with reasons",
        ),
    ],
    see=["shoe-sim", "synsets", "agree"],
    old={"--explain": "--reasons"},
)
def shoe_eval(
    predictions: list[str] | None = options.PREDICTIONS,
    gt: str | None = options.GROUND_TRUTH,
    sim: list[str] | None = option(
        None, "--sim FILE", "Similarities of senses, as hoicli shoe-sim writes; repeatable.", mark=READ
    ),
    dataset: str = options.dataset(
        "The dataset whose table gives the ground truth its senses: hico, vcoco or swig; FILE.json: looked up."
    ),
    wordnet: str | None = options.WORDNET,
    delta: float = option(
        0.5,
        "--delta D",
        "An unmatched prediction counts against the most similar class, if it is at least this similar.",
    ),
    against: str = option(
        "image",
        "--against WHERE",
        "Where that class is sought: in the prediction's image (the paper's algorithms) or the dataset (its figure).",
        offer="shoe.names:AGAINST",
    ),
    combine: str = option(
        "mean",
        "--combine HOW",
        "Verb and object similarity become one by mean, geometric or min.",
        offer="shoe.names:COMBINE",
    ),
    verb_weight: float = option(0.5, "--verb-weight W", "The verb's weight in the mean; the object's is 1 - W."),
    ap: str = option(
        "envelope",
        "--ap AREA",
        "Area under precision and recall: envelope (best precision at a recall or beyond), 11-point, or step (no "
        "envelope).",
        offer="shoe.names:AREAS",
    ),
    min_score: float | None = option(
        None, "--min-score S", "mF1 and miss rates: only predictions that score at least S."
    ),
    min_rank: float | None = option(
        None,
        "--min-rank R",
        "mF1 and miss rates: only predictions that at least a share R of all do not outscore (0.5: the better half). "
        "A reading of ours: the paper does not define its confidence score rank, and its Table 2 has another.",
    ),
    single_hoi: bool = flag(
        "--single-hoi",
        "Only images with one human-object pair, where boxes of one label with IoU > 0.8 are one (the supplement's "
        "Table 2).",
    ),
    per_class: bool = flag("--per-class", "Add soft_ap, f1 and ap of every class."),
    reasons: str | None = option(
        None,
        "--reasons FILE",
        "Write why: a line for each ground truth and each unmatched prediction, with senses and similarities.",
        mark=OUTPUT,
    ),
    *,
    out: options.ResultRows,
) -> None:
    """Soft mAP and mF1 of open-vocabulary predictions: the SHOE metric.

    A prediction on the right boxes is worth how similar its verb and object are to the ground truth's, from 0 to 1.
    soft_map ranks by score; mf1, gt_miss_rate and prediction_miss_rate need no scores; map is plain mAP by equal
    spelling, with the same boxes and area. Values are in percent. Labels are free text, and a label may have any of its
    WordNet senses; `verb_synset` and `synsets` in a record name one.
    """
    from hoicli.evaluation.predictions import Predictions
    from hoicli.records.parsing import dump
    from hoicli.shoe.explanation import explain
    from hoicli.shoe.matching import ShoeSettings
    from hoicli.shoe.rows import shoe_rows
    from hoicli.shoe.run import run
    from hoicli.shoe.scores import scores_of
    from hoicli.wordnet.selection import choose, in_use

    gt = options.required(gt, "shoe-eval")
    if not sim:
        raise UsageError("shoe-eval: give similarities with --sim FILE; hoicli shoe-sim makes them")
    paths = options.inputs(predictions, "PREDS")
    settings = ShoeSettings(delta=delta, verb_weight=verb_weight, combine=combine, area=ap, against=against)
    tags, policy = out.tags(), out.policy()
    choose(wordnet)
    done = run(
        Predictions(paths),
        Stream([gt], "ground truth"),
        Stream(sim, "similarities"),
        settings,
        policy,
        dataset=dataset,
        min_score=min_score,
        min_rank=min_rank,
        single_hoi=single_hoi,
    )
    scores = scores_of(done.shoe, done.matching)
    policy.report()
    if reasons is not None:
        with open_output(reasons) as write:
            filters = {key: done.signature[key] for key in ("minscore", "minrank") if key in done.signature}
            for record in explain(done.shoe, done.matching, **filters):
                write(dump(record))
    out.write(shoe_rows(scores, subset=done.subset, settings=done.signature | in_use(), tags=tags, per_class=per_class))
