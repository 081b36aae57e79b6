"""`hoicli eval`: the published numbers of a prediction dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands.common import (
    NMS,
    Alpha,
    Beta,
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    TopK,
    skips,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hoicli.evaluation import Tally
    from hoicli.matching import Filters
    from hoicli.protocols import Protocol
    from hoicli.scenes import ErrorPolicy
    from hoicli.vocabulary import Vocabulary

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    epilog="Example: hoicli eval --gt gt.jsonl --protocol hico,hico-ko --split rf-uc preds.jsonl; "
    "hoicli match --gt gt.jsonl preds.jsonl | hoicli eval"
)
def evaluate(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="hico, hico-ko, qpic, upt, diag, inp-cc, several with commas, or all (default).",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="NAME",
            help="Adds unseen and seen: rare_first (rf-uc), non_rare_first (nf-uc), unseen_object (uo), "
            "unseen_verb (uv), uc0 to uc4.",
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Adds a row per interaction: AP and max_recall.")
    ] = False,
    ignore_no_interaction: Annotated[
        bool,
        typer.Option(
            "--ignore-no-interaction", help="Leave the no_interaction classes out of every mean (520 of 600)."
        ),
    ] = False,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="Put a tag onto every row; repeatable.")
    ] = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the protocols do, in five lines each, and stop.")
    ] = False,
) -> None:
    """Every published mAP of a prediction dump: predictions with --gt, or the lines of hoicli match.

    Values are in percent; every row carries the signature of the settings that made it. Without --protocol all
    protocols of the dataset are printed side by side.
    """
    from hoicli.evaluation import means
    from hoicli.matching import Filters
    from hoicli.protocols import protocols
    from hoicli.report.tables import chosen_format, render
    from hoicli.results import Row, class_rows, evaluation_rows, parse_tags
    from hoicli.scenes import ErrorPolicy
    from hoicli.streams import open_output
    from hoicli.vocabulary import load

    chosen = protocols(protocol or ["all"])
    if explain:
        print("\n".join(row.explain() for row in chosen))
        return
    output_format = chosen_format(format_, output)
    vocabulary = load("hico")
    split_name = vocabulary.split(split) if split else None
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    filters = Filters.checked(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta)
    rows: list[Row] = []
    for tally, settings in _tallies(
        predictions or ["-"], gt, chosen if protocol else None, filters, policy, vocabulary
    ):
        settings |= {"data": vocabulary.name}
        if split_name:
            settings["split"] = split_name
        if ignore_no_interaction:
            settings["noint"] = "ignored"
        for row, results in tally.results(vocabulary):
            settings["protocol"] = row.name
            subsets = list(means(results, vocabulary, split=split_name, ignore_no_interaction=ignore_no_interaction))
            rows += evaluation_rows(row, subsets, settings=settings, tags=tags)
            if per_class:
                rows += class_rows(row, results, vocabulary, settings=settings, tags=tags)
    policy.report()
    with open_output(output) as write:
        write(render(rows, output_format))


def _tallies(
    paths: list[str],
    gt: str | None,
    chosen: list[Protocol] | None,
    filters: Filters,
    policy: ErrorPolicy,
    vocabulary: Vocabulary,
) -> Iterator[tuple[Tally, dict[str, str]]]:
    """(tally, settings for its signature) of predictions with ground truth, or of a match stream without."""
    from hoicli.pairing import check_streams, read_truth, tally_predictions
    from hoicli.protocols import protocols

    if gt is None:
        yield from _tallies_of_matches(paths, chosen, filters, policy, vocabulary)
        return
    check_streams(gt, paths)
    truth = read_truth(gt, vocabulary, policy)
    yield tally_predictions(paths, truth, chosen or protocols(["all"]), filters, policy), filters.signature()


def _tallies_of_matches(
    paths: list[str], chosen: list[Protocol] | None, filters: Filters, policy: ErrorPolicy, vocabulary: Vocabulary
) -> Iterator[tuple[Tally, dict[str, str]]]:
    from hoicli.errors import DataError, UsageError
    from hoicli.matches import read_matches
    from hoicli.pairing import no_garbage_collection
    from hoicli.protocols import PROTOCOLS
    from hoicli.streams import display_name, read_lines

    if filters.signature():
        raise UsageError("--top-k and --nms act before matching: give them to hoicli match, or predictions with --gt")
    with no_garbage_collection():
        stream = read_matches(read_lines(paths, label="matches"), vocabulary, policy)
    place = ", ".join(map(display_name, paths))
    if not stream.tallies:
        raise DataError("no match records in it; hoicli match writes them, predictions need --gt", place=place)
    wanted = [row.name for row in chosen] if chosen else [name for name in PROTOCOLS if name in stream.tallies]
    missing = [name for name in wanted if name not in stream.tallies]
    if missing:
        raise UsageError(f"--protocol {','.join(missing)}: the matches in {place} are of {', '.join(stream.tallies)}")
    for name in wanted:
        yield stream.tallies[name], dict(stream.settings or {})
