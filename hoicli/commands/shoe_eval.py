"""`hoicli shoe-eval`: open-vocabulary predictions, scored by how close in meaning they are."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import OUTPUT
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.commands.scoring import SIM, Scoring, similarities
from hoicli.errors import UsageError
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream


@command(
    reads="predictions, ground truth with --gt, similarities with --sim",
    writes="result rows; with --reasons a line for every match and miss; with --plot a figure",
    examples=[
        ("hoicli shoe-sim --backend wordnet:wup --gt gt.jsonl preds.jsonl > sim.jsonl", "how alike the labels are"),
        ("hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl preds.jsonl", "soft mAP and mF1"),
        ("hoicli shoe-eval --gt gt.jsonl --sim lexical preds.jsonl", "in one command, where no model is asked"),
        (
            "hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl --delta 0.3:0.7:0.1 --plot deltas.svg preds.jsonl",
            "what the paper does not say, swept",
        ),
        (
            "hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl --min-rank 0.5 --reasons why.jsonl preds.jsonl",
            "of the better half of all predictions (a reading), with reasons",
        ),
    ],
    see=["shoe-sim", "vocab", "agree"],
)
def shoe_eval(
    predictions: list[str] | None = options.PREDICTIONS,
    gt: str | None = options.GROUND_TRUTH,
    sim: list[str] | None = SIM,
    dataset: str | None = options.dataset(
        "The dataset whose table gives the ground truth its senses: hico (default), vcoco, swig; FILE.json: looked up.",
        None,
    ),
    wordnet: str | None = options.WORDNET,
    ignore_no_interaction: bool = flag(
        "--ignore-no-interaction",
        "Leave out what is no_interaction, of ground truth and predictions: no model that answers in words says it.",
    ),
    bootstrap: int | None = options.bootstrap("every number"),
    seed: int = options.SEED,
    per_class: bool = flag("--per-class", "Add soft_ap, f1 and ap of every class."),
    reasons: str | None = option(
        None,
        "--reasons FILE",
        "Write why: a line for each ground truth and each unmatched prediction, with senses and similarities.",
        mark=OUTPUT,
    ),
    plot: str | None = options.figure("Draw soft_map and mf1 over the values of --delta: .png, .svg or .pdf."),
    *,
    scoring: Scoring,
    dumps: options.Dumps,
    drawing: Drawing,
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
    from hoicli.resampling.draws import Resampling
    from hoicli.shoe.explanation import explain
    from hoicli.shoe.rows import evaluation_rows
    from hoicli.shoe.run import Evaluation
    from hoicli.wordnet.selection import choose

    gt = options.required(gt, "shoe-eval")
    tables = similarities(sim, "shoe-eval")
    paths = options.inputs(predictions, "PREDS")
    asked = scoring.options(ignore_no_interaction=ignore_no_interaction)
    if reasons is not None and asked.tags:
        raise UsageError("--reasons: give one --delta, of which the reasons are")
    if plot is not None and not asked.tags:
        raise UsageError("--plot: draws the numbers over --delta; give several, for example --delta 0.3:0.7:0.1")
    look = drawing.look(plot)
    resampling = Resampling.asked(bootstrap, seed)
    tags, policy = out.tags(*asked.tags), out.policy()
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    choose(wordnet)
    truth = Stream([gt], "ground truth", opening.truth)
    evaluation = Evaluation(truth, tables, asked, policy, dataset=dataset or "hico")
    done = evaluation.run(Predictions(paths, opening.predictions))
    rows = list(evaluation_rows(done, tags, resampling, per_class=per_class))
    policy.report()
    if reasons is not None:
        with open_output(reasons) as write:
            filters = {key: done.signature[key] for key in ("minscore", "minrank") if key in done.signature}
            for record in explain(done.shoe, done.matching, **filters):
                write(dump(record))
    if plot is not None:
        from hoicli.figures.deltas import plot_deltas

        plot_deltas(rows, plot, look)
    out.write(rows)
