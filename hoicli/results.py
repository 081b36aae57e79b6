"""Result rows: one value a line, each with the signature of the settings that made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hoicli import __version__
from hoicli.errors import UsageError

if TYPE_CHECKING:  # rows are words: reading or drawing them needs no NumPy
    from hoicli.evaluation import ClassResults, Mean
    from hoicli.protocols import Protocol
    from hoicli.vocabulary import Vocabulary

Row = dict[str, Any]

SIGNATURE_KEYS = (
    *("protocol", "data", "split", "noint", "pairs", "released", "topk", "det", "nms"),
    *("sim", "delta", "against", "combine", "verb", "ap", "minscore", "minrank"),
    *("levels", "permutations", "seed"),
    *("of", "grid", "missing"),
    "version",
)
"""Every key a signature may hold, in its order. Of eval's and diagnose's settings (the first line) only those that
differ from the defaults appear; of SHOE's, the agreement's and the robustness's all, as no default is canonical."""


def signature(settings: Mapping[str, str]) -> str:
    """`key:value|key:value`, always in the order of SIGNATURE_KEYS, as sacreBLEU prints them.

    Two rows with one signature were made by the same computation. The version is added here.
    """
    settings = {**settings, "version": __version__}
    unknown = settings.keys() - set(SIGNATURE_KEYS)
    if unknown:
        raise ValueError(f"unknown signature keys {sorted(unknown)}")
    return "|".join(f"{key}:{settings[key]}" for key in SIGNATURE_KEYS if key in settings)


def parse_tags(tags: list[str]) -> dict[str, str]:
    """`--tag key=value` options as a dictionary; raises `UsageError` that names every bad one."""
    bad = [tag for tag in tags if "=" not in tag or tag.startswith("=")]
    if bad:
        raise UsageError(f"--tag {', '.join(bad)}: write key=value, for example --tag model=cdn")
    return dict(tag.split("=", 1) for tag in tags)


def percent(value: float | None) -> float | None:
    """A fraction in percent; None stays None."""
    return None if value is None else 100.0 * float(value)


def evaluation_rows(
    protocol: Protocol, means: list[Mean], *, settings: Mapping[str, str], tags: Mapping[str, str]
) -> Iterator[Row]:
    """mAP and mean maximal recall of each subset, in percent; `n` is how many classes the mean is over.

    The value of an empty subset is null.
    """
    common = {"unit": "%", "protocol": protocol.name, "tags": dict(tags), "signature": signature(settings)}
    for metric, values in (
        ("mAP", [mean.ap for mean in means]),
        ("mean_max_recall", [mean.max_recall for mean in means]),
    ):
        for mean, value in zip(means, values, strict=True):
            yield {"metric": metric, "subset": mean.subset, "value": percent(value), "n": mean.classes, **common}


def class_rows(
    protocol: Protocol,
    results: ClassResults,
    vocabulary: Vocabulary,
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """AP and maximal recall of each class that the protocol averages, in percent; `n` is its ground-truth count.

    `subset` is the class's frequency group, or the smallest of the protocol's own subsets that has it.
    """
    common = {"unit": "%", "protocol": protocol.name, "tags": dict(tags), "signature": signature(settings)}
    group = vocabulary.group_of
    for subset in sorted(protocol.subsets, key=lambda name: -len(vocabulary.subsets[name])):
        group |= dict.fromkeys(vocabulary.subsets[subset], subset)
    for metric, values in (("AP", results.ap.tolist()), ("max_recall", results.max_recall.tolist())):
        for number, (verb, name) in enumerate(vocabulary.interactions):
            if results.in_mean[number]:
                yield {
                    "metric": metric,
                    "subset": group.get(number, "full"),
                    "verb": verb,
                    vocabulary.qualifier: name or None,
                    "value": percent(values[number]),
                    "n": int(results.positives[number]),
                    **common,
                }
