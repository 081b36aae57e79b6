"""`hoicli shoe-eval`: open-vocabulary predictions, scored by how close in meaning they are."""

from __future__ import annotations

from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import LINES
from hoicli.interface.command import command
from hoicli.interface.option_values import tags_of, text_of, texts_of
from hoicli.interface.options import GroupedFiles, Numbers, Option, Unpack
from hoicli.interface.results import Records, Result

PANEL = "Options of SHOE's metrics"


@command(
    reads="predictions, ground truth with --gt, similarities with --sim",
    writes="result rows; with --reasons a line for every match and miss",
    examples="""
        hoicli shoe-sim --backend wordnet:wup --gt gt.jsonl preds.jsonl > sim.jsonl  # how similar the labels are
        hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl preds.jsonl  # soft mAP and mF1
        hoicli shoe-eval --gt gt.jsonl --sim lexical preds.jsonl  # in one command, without a language model
        hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl --delta 0.3:0.7:0.1 preds.jsonl
            # a sweep over what the paper leaves open
    """,
    see=["shoe-sim", "vocab", "agree"],
)
def shoe_eval(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    sim: options.Sim = None,
    *,
    dataset: Annotated[options.Path | None, options.dataset()] = None,
    wordnet: options.WordNet = None,
    ignore_no_interaction: bool = False,
    allow_missing: bool = False,
    bootstrap: Annotated[int | None, options.bootstrap("each of the five numbers")] = None,
    seed: options.Seed = 0,
    per_class: bool = False,
    reasons: Annotated[options.Path | None, Option("FILE", check=LINES)] = None,
    delta: Annotated[Numbers, Option("D", panel=PANEL)] = 0.5,
    against: Annotated[str, Option("WHAT", one_of="shoe.settings:AGAINST", panel=PANEL)] = "image",
    combine: Annotated[str, Option("HOW", one_of="shoe.settings:COMBINE", panel=PANEL)] = "mean",
    verb_weight: Annotated[float, Option("W", panel=PANEL)] = 0.5,
    ap: Annotated[str, Option("AREA", one_of="shoe.settings:AREAS", panel=PANEL)] = "envelope",
    assignment: Annotated[str, Option("HOW", one_of="shoe.settings:ASSIGNMENTS", panel=PANEL)] = "greedy",
    min_similarity: Annotated[float, Option("S", panel=PANEL)] = 0.0,
    min_score: Annotated[float | None, Option("S", panel=PANEL)] = None,
    min_rank: Annotated[float | None, Option("R", panel=PANEL)] = None,
    rank_of: Annotated[str, Option("WHAT", one_of="shoe.settings:RANKS", panel=PANEL)] = "all",
    filter_map: Annotated[bool, Option(panel=PANEL)] = False,
    single_hoi: Annotated[bool, Option(panel=PANEL)] = False,
    tag: options.Tag = None,
    **shared: Unpack[GroupedFiles],
) -> Result:
    """Soft mAP and mF1 of open-vocabulary predictions: the SHOE metric.

    A prediction on the right boxes earns the similarity of its verb and object to the ground truth's, from 0 to 1.
    soft_map ranks by score; mf1, gt_miss_rate and prediction_miss_rate need no scores; map is plain mAP of equally
    spelled labels, with the same box matching and area. Values are in percent. Labels are free text, and a label may
    have any of its WordNet senses; `verb_synset` and `synsets` in a record name one.

    Arguments:
        dataset: The dataset of the ground truth's labels, whose table has their senses: hico (default), vcoco, swig;
            for FILE.json, senses are looked up.
        ignore_no_interaction: Leave no_interaction out of ground truth and predictions: models that answer in words
            never say it.
        allow_missing: Count pairs of senses that the table of similarities lacks as 0, and say how many those are. By
            default they are an error.
        per_class: Add soft_ap, f1 and ap of every class.
        reasons: Explain the result in this file: a line for each ground truth and each unmatched prediction, with
            senses and similarities.
        delta: An unmatched prediction counts against the most similar class, if it is at least this similar. Several
            (0.3,0.5,0.7 or 0.3:0.7:0.1) give rows for each.
        against: Where the most similar class of an unmatched prediction is looked for. image: among the classes of its
            image's ground truth, as both algorithms of the paper say. dataset: among all of the dataset's, as in the
            paper's Figure 6.
        combine: How verb and object similarity are combined: mean, geometric or min.
        verb_weight: The verb's weight in the mean; the object's is 1 - W.
        ap: Area under the precision-recall curve: envelope (best precision at a recall or beyond), 11-point, or
            trapezoid (straight lines, from recall 0 and precision 1).
        assignment: greedy: ground truth takes predictions in the order of annotation (the paper's algorithms); optimal:
            the greatest total similarity of each image.
        min_similarity: The least similarity of a match. The paper's algorithms use none; its miss rates mention one.
        min_score: mF1 and miss rates: only predictions that score at least S.
        min_rank: mF1 and miss rates: only predictions that score at least as high as a share R of all predictions (0.5:
            the better half). This is our reading: the paper does not define its confidence score rank.
        rank_of: Other readings of --min-rank. all: the share is of all predictions. image: of those in the image. best:
            only predictions that score at least R times the best score of their image.
        filter_map: Apply --min-score and --min-rank to soft_map and map, too (as section 6.4 of the paper does; its
            algorithm does not).
        single_hoi: Only images with one human-object pair, where boxes of one label with IoU > 0.8 count as one (the
            supplement's Table 2).
    """
    from hoicli.interface.inputs import Inputs, require_truth, similarities_or_table
    from hoicli.resampling.draws import Resampling
    from hoicli.shoe.explanation import explain
    from hoicli.shoe.scores import evaluation_rows
    from hoicli.shoe.settings import ShoeOptions
    from hoicli.shoe.shoe_evaluation import Evaluation
    from hoicli.wordnet.lexicon import use_wordnet

    gt, dataset_name = require_truth(gt, "shoe-eval"), text_of(dataset)
    tables = similarities_or_table(sim, "shoe-eval")
    shoe_options = ShoeOptions(
        delta=",".join(texts_of(delta)),
        against=against,
        combine=combine,
        verb_weight=verb_weight,
        ap=ap,
        assignment=assignment,
        min_similarity=min_similarity,
        min_score=min_score,
        min_rank=min_rank,
        rank_of=rank_of,
        filter_map=filter_map,
        single_hoi=single_hoi,
        ignore_no_interaction=ignore_no_interaction,
        allow_missing=allow_missing,
    )
    if reasons is not None and shoe_options.tags:
        raise UsageError(f"{arg('reasons')}: reasons are for one {arg('delta')}; give only one")
    resampling = Resampling.from_rounds(bootstrap, seed)
    tags, inputs = tags_of(tag, *shoe_options.tags), Inputs(dataset_name, shared, within="hico", gt=gt)
    stream = inputs.predictions(predictions)
    use_wordnet(text_of(wordnet))
    evaluation = Evaluation(inputs.truth(gt), tables, shoe_options, inputs.policy, dataset=dataset_name or "hico")
    done = evaluation.run(stream)
    rows = list(evaluation_rows(done, tags, resampling, per_class=per_class))
    if reasons is not None:
        Records(explain(done.shoe, done.matching)).write(text_of(reasons) or "")
    return Result(rows)
