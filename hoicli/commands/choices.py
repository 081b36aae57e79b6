"""The values an option can take, for shell completion: read from the tables that the commands themselves use.

Each function takes what was typed so far and gives values, or (value, description). They are called when somebody
presses Tab, so they import nothing that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Values = list[str | tuple[str, str]]
Completer = Callable[[], Values]


def one_of(*names: str) -> Completer:
    """These names."""
    return lambda: list(names)


def several(completer: Completer) -> Callable[[str], Values]:
    """Names with commas between: what is typed already stays, and is not offered again."""

    def values(incomplete: str) -> Values:
        before, comma, _ = incomplete.rpartition(",")
        used = before.split(",")
        return [
            (before + comma + name, text)
            for name, text in (each if isinstance(each, tuple) else (each, "") for each in completer())
            if name not in used
        ]

    return values


def formats() -> Values:
    """What `--format` takes."""
    from hoicli.tables.notations import FORMATS

    return list(FORMATS)


def datasets() -> Values:
    """The benchmarks."""
    from hoicli.vocabulary.datasets import DATASETS

    return list(DATASETS.items())


def vocabularies() -> Values:
    """The benchmarks, or open."""
    return [("open", "any words"), *datasets()]


def protocols() -> Values:
    """The protocols."""
    from hoicli.evaluation.protocols import PROTOCOLS

    return [("all", "all of the dataset"), *((row.name, row.title) for row in PROTOCOLS.values())]


def single_protocols() -> Values:
    """The protocols, where only one can be named."""
    return [value for value in protocols() if value[0] != "all"]


def oracles() -> Values:
    """The oracles of one type of error each."""
    from hoicli.figures.styles import GROUPED, ORACLES

    return [("all", "every one, in the paper's order"), *(name for name in ORACLES if name not in GROUPED)]


def counted_images() -> Values:
    """What `--count-images` takes."""
    from hoicli.evaluation.protocols import COUNTED_IMAGES

    return list(COUNTED_IMAGES)


def grids() -> Values:
    """What `eval --grid` takes."""
    from hoicli.evaluation.protocols import GRIDS

    return list(GRIDS)


def splits() -> Values:
    """The zero-shot splits, and the papers' names for them."""
    from hoicli.vocabulary.datasets import DATASETS, load

    found: dict[str, str] = {}
    for name in DATASETS:
        if name == "swig":  # has none, and takes a while to load
            continue
        vocabulary = load(name)
        found |= {split: f"{len(unseen)} unseen" for split, unseen in vocabulary.unseen.items()}
        found |= vocabulary.split_aliases
    return list(found.items())


def readable_formats() -> Values:
    """What `convert --from` takes."""
    from hoicli.converters.formats import FORMATS

    return [(row.name, row.description) for row in FORMATS.values() if row.reads]


def writable_formats() -> Values:
    """What `convert --to` takes."""
    from hoicli.converters.formats import FORMATS

    return [(row.name, row.description) for row in FORMATS.values() if row.writes]


def object_orders() -> Values:
    """What `convert --object-order` takes."""
    from hoicli.converters.numbers import OBJECT_ORDERS

    return list(OBJECT_ORDERS)


def coords() -> Values:
    """What `convert --coords` takes; resized: wants a size after it."""
    from hoicli.converters.vlm.frames import PLAIN

    return [*PLAIN, "qwen2.5", "resized:"]


def prompt_coords() -> Values:
    """What `prompts --coords` takes: boxes can be written in it without having the resized image."""
    return [name for name in coords() if name != "qwen2.5"]


def activations() -> Values:
    """What makes scores of logits."""
    from hoicli.converters.names import ACTIVATIONS

    return list(ACTIVATIONS)


def box_scores() -> Values:
    """What box_scores may be."""
    from hoicli.converters.names import BOX_SCORES

    return list(BOX_SCORES)


def _corruptions() -> Iterable[tuple[str, str]]:
    from hoicli.records.corruptions import FAMILY_OF

    return FAMILY_OF.items()


def corruptions() -> Values:
    """RoHOI's corruptions, with their families."""
    return [("all", "all twenty"), *_corruptions()]


def grid_corruptions() -> Values:
    """What `robust --corruptions` takes."""
    special = [("auto", "rohoi where more than half occur"), ("rohoi", "all twenty"), ("seen", "those that occur")]
    return [*special, *_corruptions()]


def severities() -> Values:
    """The severities of a corruption."""
    from hoicli.records.corruptions import SEVERITIES

    return ["all", *map(str, SEVERITIES)]


def grid_severities() -> Values:
    """What `robust --severities` takes."""
    from hoicli.records.corruptions import SEVERITIES

    return ["auto", "seen", *map(str, SEVERITIES)]


def rankings() -> Values:
    """What `robust --rank-by` takes."""
    from hoicli.robustness.rows import RANKED_BY

    return list(RANKED_BY)


def mask_levels() -> Values:
    """SAMPL's masking levels."""
    from hoicli.sampl.levels import RATIOS

    return [(name, str(ratio)) for name, ratio in RATIOS.items()]


def prompt_tasks() -> Values:
    """What a model can be asked."""
    from hoicli.converters.vlm.prompts import TASKS

    return list(TASKS)


def backends() -> Values:
    """Where similarities come from; table: wants a file after it."""
    from hoicli.similarity.rules import BACKENDS

    return [name.replace("FILE", "") for name in BACKENDS]


def merge_rules() -> Values:
    """How ratings become one."""
    from hoicli.similarity.rules import RULES

    return list(RULES)


def combinations() -> Values:
    """How two similarities become one."""
    from hoicli.shoe.names import COMBINE

    return list(COMBINE)


def against() -> Values:
    """Where the class of an unmatched prediction is sought."""
    from hoicli.shoe.names import AGAINST

    return list(AGAINST)


def areas() -> Values:
    """Areas under precision and recall."""
    from hoicli.shoe.names import AREAS

    return list(AREAS.items())


def schema_kinds() -> Values:
    """The record kinds."""
    from hoicli.records.schemas import kinds

    return list(kinds())


def shells() -> Values:
    """The shells there is completion for."""
    from hoicli.completion import SCRIPTS

    return list(SCRIPTS)
