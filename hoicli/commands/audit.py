"""`hoicli audit`: what to look at in the ground truth, and what mAP would be without it."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import READ_NAMED, Count
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option, separated, top_of
from hoicli.errors import UsageError
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="ground truth, and predictions of any number of models",
    writes="result rows: candidates of each kind, and the mAP of each model without them",
    examples=[
        ("hoicli audit --gt gt.jsonl", "boxes of one person or object that were drawn twice"),
        ("hoicli audit --gt gt.jsonl preds.jsonl other.jsonl", "also what both models contradict, and what both miss"),
        (
            "hoicli audit --gt gt.jsonl --top 20 preds.jsonl other.jsonl > rows.jsonl",
            "the twenty of each kind to look at",
        ),
        (
            "hoicli audit --gt gt.jsonl --kind near_duplicate --top all | jq -c 'select(.value >= 0.9)'",
            "all boxes that are nearly the same",
        ),
    ],
    see=["validate", "confusion", "show"],
)
def audit(
    predictions: list[str] | None = argument(
        None, "PREDS...", "Streams of predictions, one for each model; none: only duplicates.", mark=READ_NAMED
    ),
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(f"{options.A_DATASET}.", None),
    protocol: str | None = option(
        None,
        "--protocol NAME",
        "Whose rules say what is right, and whose mAP is given: the dataset's main protocol (default), or another.",
        offer=choices.single_protocols,
    ),
    name: list[str] | None = options.NAMES,
    kind: list[str] | None = option(
        None,
        "--kind NAME",
        "near_duplicate, contradicted, missing_label; several with commas (default: all that there is input for).",
        offer="validation.audit:KINDS",
        several=True,
    ),
    same: float = option(
        0.7, "--same T", "Two boxes of one label with this IoU are one: two annotated ones, and those of two models."
    ),
    votes: int | None = option(
        None, "--votes N", "How many models must say so (default: all of them).", mark=Count(1, 1000)
    ),
    confident: float = option(
        0.5,
        "--confident T",
        "A model is sure at a score that this share of a class's true positives do not exceed.",
    ),
    dismissed: float = option(
        0.9,
        "--dismissed T",
        "A model says no at a score that exceeds at most this share of a class's false positives.",
    ),
    known: float = option(20.0, "--known T", "A model is heard about classes in which its AP is at least this."),
    top: str = option(
        "100", "--top N", "Write the N surest candidates of each kind, or all; all of them count in mAP."
    ),
    *,
    filtering: options.Filtering,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """What to look at in the ground truth: boxes drawn twice, triplets that models contradict, labels they miss.

    near_duplicate: two boxes of one label overlap by --same. contradicted: a model has another class on the pair with
    confidence, and the annotated one not at all or no higher than its false positives. missing_label: models put a
    class on one pair with confidence, and nothing of it is annotated there. Each row is a candidate, not an error.
    mAP is given as it is and with duplicates merged, contradicted triplets removed, missing ones added.
    """
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocol_files import chosen_protocols
    from hoicli.evaluation.run import read_truth
    from hoicli.evaluation.selection import main_protocol
    from hoicli.validation.audit import DUPLICATE, KINDS, Audit
    from hoicli.validation.audit_rows import AuditRows
    from hoicli.validation.opinions import Rules

    gt = options.required(gt, "audit")
    most = top_of(top)
    paths = predictions or []
    kinds = _kinds(separated(kind), KINDS if paths else (DUPLICATE,), KINDS)
    rules = Rules(same, votes, confident, dismissed, known / 100)
    rules.of(len(paths))
    rows = chosen_protocols([protocol], dataset) if protocol else []
    if len(rows) > 1:
        raise UsageError(f"--protocol {protocol}: name one")
    row = rows[0] if rows else None
    vocabulary = load(dataset or (row.dataset if row else "hico"))
    row = row or main_protocol(vocabulary)
    if paths and row.whole_image:
        raise UsageError(f"--protocol {row.name}: has no boxes; name another, or give the ground truth alone")
    policy, tags = out.policy(), out.tags("model", "annotations")
    opening = dumps.opening(dataset, policy, within=vocabulary.path or vocabulary.name)
    models = Predictions.named(paths, separated(name), opening.predictions) if paths else []
    for model in models:
        model.unmatched("audit")
    filters, lines = filtering.filters(), Stream([gt], "ground truth", opening.truth)
    truth = read_truth(lines, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    audit = Audit(truth, row, rules, [(model.model, model) for model in models], filters, policy)
    made = AuditRows(audit, kinds, tags)
    found = list(made.candidates(most))
    policy.report()
    out.write([*found, *made.means()])


def _kinds(named: list[str], there: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that --kind names, all there are without it. Raises `UsageError` for one that there is not."""
    for each in named:
        if each not in known:
            raise UsageError(f"--kind {each}: choose from {', '.join(known)}")
        if each not in there:
            raise UsageError(f"--kind {each}: is what models say; give their predictions")
    return tuple(each for each in there if not named or each in named)
