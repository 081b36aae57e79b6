"""`shoe_sim`, `shoe_eval` and `agree`: how alike meanings are, what that makes of predictions, and how raters agree.

`hoicli.shoe` is a package, and one name is one thing: so these are called as their commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hoicli.agreement.ratings import read_ratings
from hoicli.agreement.rows import agreement_rows
from hoicli.agreement.scales import scales_of
from hoicli.agreement.settings import AgreementSettings
from hoicli.api.calling import Names, Thresholds, called, checked_tags, names_of, policy_of, typed_call
from hoicli.api.inputs import Given, HeldStream, Inputs, Path, held, paths_of
from hoicli.api.records import Records
from hoicli.api.results import Result
from hoicli.errors import UsageError
from hoicli.io.streams import Stream
from hoicli.resampling.draws import Resampling
from hoicli.shoe import needed
from hoicli.shoe.backends import offline_backend
from hoicli.shoe.pairs import OFFLINE, RULES
from hoicli.shoe.rating import PairLines, Work, merged_rows, rated_rows
from hoicli.shoe.rows import evaluation_rows
from hoicli.shoe.run import Evaluation
from hoicli.shoe.settings import ShoeOptions
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.selection import choose


@typed_call
def shoe_sim(
    gt: Given | None = None,
    preds: Given | None = None,
    *,
    backend: str | None = None,
    dataset: str | None = None,
    all_pairs: bool = False,
    pairs: Given | None = None,
    tables: Given | None = None,
    merge: str | None = None,
    wordnet: str | None = None,
    source_format: str | None = None,
    image_list: Path | None = None,
    on_error: str = "stop",
) -> Records:
    """Similarities of WordNet senses, `{"pos", "a", "b", "similarity"}` each, as `hoicli shoe-sim` writes them.

    gt, preds: ground truth and predictions, as in `evaluate` (paths or records): the pairs that `shoe_eval` looks up.
    Without them: the senses of a dataset's classes. pairs: lines of your own, of words or senses, to be rated in their
    order. backend: "wordnet:wup" (path, lch, lin, res, jcn), "lexical" or "table:FILE"; language models are asked by
    the command alone, whose tables are read here. tables, merge: tables joined by mean, median or majority. The others
    are the options of the same names: `hoicli help shoe-sim`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes, _wordnet(wordnet):
        policy = policy_of(on_error)
        if tables is not None or merge is not None:
            if tables is None or not all(other is None for other in (gt, preds, backend, dataset, pairs)):
                raise UsageError("--merge joins tables: give it the tables alone")
            if merge not in (None, *RULES):
                raise UsageError(f"--merge {merge}: choose from {', '.join(RULES)}")
            rows = list(merged_rows(_lines(tables, "tables"), merge or "mean", policy))
            policy.report()
            return Records(rows, notes)
        if backend is None or backend == "llm":
            raise UsageError("give a --backend (wordnet:wup, lexical, table:FILE); language models are the command's")
        if pairs is not None and (gt is not None or preds is not None):
            raise UsageError("--pairs rates lines of its own: give it no other files")
        if (pairs is None and (gt is None) != (preds is None)) or (pairs, gt, dataset) == (None, None, None):
            raise UsageError("give gt and preds, a --dataset, or lines of your own with --pairs")
        offline = offline_backend(backend, policy)
        if pairs is not None:
            work: Work = PairLines(_lines(pairs, "pairs"), policy, offline)
        elif gt is not None and preds is not None:
            inputs = Inputs.of(load(dataset or "hico"), dataset, on_error, source_format, image_list)
            truth, predictions = inputs.stream(gt, "gt", "ground truth"), inputs.predictions(preds, "preds")
            work = needed.evaluation_pairs(truth, predictions, dataset or "hico", policy, all_pairs=all_pairs)
        else:
            work = needed.dataset_pairs(dataset or "hico", all_pairs=all_pairs)
        rows = list(rated_rows(backend, offline, work, policy))
        policy.report()
    return Records(rows, notes)


@typed_call
def shoe_eval(
    gt: Given,
    preds: Given,
    sim: Given,
    *,
    dataset: str | None = None,
    wordnet: str | None = None,
    delta: Thresholds = 0.5,
    against: str = "image",
    combine: str = "mean",
    verb_weight: float = 0.5,
    ap: str = "envelope",
    assignment: str = "greedy",
    min_similarity: float = 0.0,
    min_score: float | None = None,
    min_rank: float | None = None,
    rank_of: str = "all",
    filter_map: bool = False,
    single_hoi: bool = False,
    ignore_no_interaction: bool = False,
    bootstrap: int | None = None,
    seed: int = 0,
    per_class: bool = False,
    source_format: str | None = None,
    image_list: Path | None = None,
    on_error: str = "stop",
    tags: Mapping[str, str] | None = None,
) -> Result:
    """Soft mAP and mF1 of open-vocabulary predictions, in percent, as `hoicli shoe-eval` prints them.

    gt, preds: as in `evaluate`, paths or records, whose labels are free text. sim: similarities, as `shoe_sim` returns
    or writes them, or the name of a backend that asks no model ("lexical"). The others are the options of the same
    names: `hoicli help shoe-eval`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes, _wordnet(wordnet):
        several = delta if isinstance(delta, list | tuple) else () if delta is None else (delta,)
        asked = ShoeOptions(
            delta=",".join(map(str, several)),
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
        )
        resampling = Resampling.asked(bootstrap, seed)
        policy, own_tags = policy_of(on_error), checked_tags(tags, *asked.tags)
        inputs = Inputs.of(load(dataset or "hico"), dataset, on_error, source_format, image_list)
        truth = inputs.stream(gt, "gt", "ground truth")
        table = sim if isinstance(sim, str) and sim in OFFLINE else _lines(sim, "sim", "similarities")
        evaluation = Evaluation(truth, table, asked, policy, dataset=dataset or "hico")
        done = evaluation.run(inputs.predictions(preds, "preds"))
        rows = list(evaluation_rows(done, own_tags, resampling, per_class=per_class))
        policy.report()
    return Result(rows, notes)


@typed_call
def agree(
    ratings: Given,
    *,
    levels: int = 5,
    models: Names = None,
    humans: Names = None,
    subsets: bool = False,
    merge: str | None = None,
    model_scale: str | Sequence[str] | None = None,
    group: str | None = None,
    distribution: bool = False,
    votes: bool = False,
    again: Given | None = None,
    bootstrap: int | None = None,
    permutations: int = 10_000,
    seed: int = 0,
    on_error: str = "stop",
    tags: Mapping[str, str] | None = None,
) -> Result:
    """How well raters agree, and models with people, as `hoicli agree` prints it.

    ratings: a path (JSONL or CSV), or records `{"item", "rater", "rating"}` or `{"item", "ratings": {rater: rating}}`,
    from 0 to levels - 1. again: the same, given a second time. models, humans: names or patterns (`gpt*`). model_scale:
    "0,1", "NAME=0,1" or a list of these. The others are the options of the same names: `hoicli help agree`.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    with called() as notes:
        policy, own_tags = policy_of(on_error), checked_tags(tags)
        if merge not in (None, *RULES):
            raise UsageError(f"--merge {merge}: choose from {', '.join(RULES)}")
        settings = AgreementSettings.checked(
            levels=levels, permutations=permutations, seed=seed, merge=merge, bootstrap=bootstrap, subsets=subsets,
            distribution=distribution, votes=votes, group=group,
        )  # fmt: skip
        table = read_ratings(
            _lines(ratings, "ratings"),
            levels=levels,
            policy=policy,
            models=names_of(models),
            humans=names_of(humans),
            scales=scales_of([model_scale] if isinstance(model_scale, str) else model_scale or ()),
            group=settings.group,
        )
        second = None
        if again is not None:
            second = read_ratings(
                _lines(again, "again"), levels=levels, policy=policy, group=settings.group, first=table
            )
        rows = agreement_rows(table, settings, again=second, tags=own_tags)
        done = list(rows)
        policy.report()
    return Result(done, notes)


def _lines(given: Given, argument: str, label: str = "") -> Stream:
    """The lines of files, or records as lines, that are about no image."""
    paths = paths_of(given, argument)
    if paths is not None:
        return Stream(paths, label or argument)
    return HeldStream(held(given, argument, None), argument, label or argument)


@contextmanager
def _wordnet(name: str | None) -> Iterator[None]:
    """In the block this WordNet is in use."""
    choose(name)
    try:
        yield
    finally:
        choose(None)
