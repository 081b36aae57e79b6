"""`hoicli claim`: which settings give the numbers that a paper prints."""

from __future__ import annotations

import os
from itertools import chain
from typing import Annotated

from hoicli.errors import UsageError
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import count_of, counts_of, names_of, tags_of, text_of, texts_of
from hoicli.interface.options import Argument, Counted, Numbers, Option, Unpack
from hoicli.interface.results import Result
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: mAP by each setting beside the number that is claimed",
    examples="""
        hoicli claim --gt gt.jsonl preds.jsonl 76.19/100/74.36  # which settings give this full, rare and non-rare mAP
        hoicli claim --gt gt.jsonl --nms 0.65,0.7 preds.jsonl full=76.2  # one number, thresholds of your own
        hoicli claim --gt gt.jsonl --split rf-uc preds.jsonl unseen=87.5/seen=74.3/full=76.2
            # the numbers of a zero-shot split
    """,
    see=["eval", "compare", "table"],
    exits={0: "done, whether a setting fits or none does"},
)
def claim(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    numbers: Annotated[str | None, Argument("NUMBERS")] = None,
    *,
    protocol: options.Protocols = None,
    dataset: options.DatasetOfProtocols = None,
    split: options.Split = None,
    nms: Annotated[Numbers, Option("T,T,...")] = "0.5,0.6,0.7,0.8,0.9,0.5/1/1",
    top_k: Annotated[Numbers, Option("K,K,...")] = "10,25,50,100,200",
    top: Annotated[int | str, Option("N")] = 10,
    tag: options.Tag = None,
    **shared: Unpack[Counted],
) -> Result:
    """Which settings give the numbers that a paper prints, from the paper's dump?

    Tries every protocol of the dataset's table, and without --protocol those that papers also report by (gen-vlkt,
    ggnet, ggnet-ko), with and without pair NMS, with and without a limit of triplets per image, with the no_interaction
    classes in the mean and without them. A setting fits if all its values print as claimed, rounded or
    cut off. It is written as options of hoicli eval, which prints the same values. Settings that fit come first, then
    the nearest. A sentence says what fits, and which published line has these numbers.

    Arguments:
        numbers: The numbers as printed, in percent: 46.06/43.72/46.76 is full, rare and non-rare; full=46.06/rare=43.72
            names subsets; one number without a name may be of any subset.
        nms: The thresholds of pair NMS to try, T or T/a/b as in eval. The defaults have CDN's exponents; the last is
            QAHOI's.
        top_k: The numbers of triplets per image to try.
        top: Show at least N settings (first those that fit, then the nearest), or all.
    """
    from hoicli.comparison.claimed import Claim, claim_sentence, is_number, try_settings
    from hoicli.evaluation.selection import also_reported, choose_protocols, names_asked_for
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.tables.published import published_lines_with

    truth = require_truth(gt, "claim")
    names, dataset_name = names_of(protocol), text_of(dataset)
    limit = count_of("top", top)
    if numbers is None or os.path.exists(numbers):
        raise UsageError("claim: give the numbers after the predictions, as 46.06/43.72/46.76")
    # numbers with spaces between: the shell takes all but the last as files of predictions
    paths = [path for path in predictions if isinstance(path, str)] if isinstance(predictions, list | tuple) else []
    numbers_as_paths = [path for path in paths if is_number(path) and not os.path.exists(path)]
    if numbers_as_paths:
        raise UsageError(f"claim: give the numbers as one word: {'/'.join([*numbers_as_paths, numbers])}")
    claimed, thresholds = Claim.parse(numbers), names_of(",".join(texts_of(nms)))
    top_ks = counts_of("top_k", top_k)
    chosen = choose_protocols(names, dataset_name)
    vocabulary, tags = load(dataset_name or chosen[0].dataset), tags_of(tag, "options")
    if not names:
        chosen += also_reported(vocabulary)
    inputs = Inputs(dataset_name, shared, within=vocabulary.path or vocabulary.name, gt=truth)
    stream = inputs.predictions(predictions).refuse_match_records("claim")
    settings = try_settings(
        claimed, stream, inputs.truth(truth), vocabulary, chosen, inputs.policy, nms=thresholds, top_k=top_ks,
        tags=tags, split=vocabulary.split(split) if split else None, named=names_asked_for(names),
        allow_uncounted=inputs.filters.allow_uncounted,
    )  # fmt: skip
    # the first ones fit: rounded or cut off (`rounding`, "" if they do not), all their values print as claimed
    fitting_count = sum(bool(tried.rounding) for tried in settings)
    shown_settings = settings[: None if limit is None else max(limit, fitting_count)]
    printed = published_lines_with((tried.printed for tried in settings), vocabulary.signed)
    above = [claim_sentence(claimed, settings), *(f"published with these numbers: {line}" for line in printed)]
    above += dict.fromkeys(tried.evaluated.note for tried in shown_settings if tried.evaluated.note)
    rows = list(chain.from_iterable(tried.rows() for tried in shown_settings))
    lines = [tried.line() for tried in shown_settings]
    return Result(rows, above=above, blocks=lambda notation: [rows if notation in ("jsonl", "csv") else lines])
