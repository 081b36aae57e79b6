"""Result rows: one value for each line, with the signature of the settings that produced it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from hoicli.errors import DataError, DeclarationError, UsageError, arg, write_number
from hoicli.records.metrics import fault_of
from hoicli.records.oracles import ORACLES
from hoicli.version import __version__

Row = dict[str, Any]

Setting: TypeAlias = str | int | float | tuple[Any, ...]
"""A setting of a signature as the computation has it: a name, a number, or several."""
Settings: TypeAlias = Mapping[str, Setting]
"""Settings by the key that they have in signatures."""

SIGNATURE_KEYS = (
    *("protocol", "row", "iou", "slice", "data", "gt", "listed", "truth", "labels"),
    *("ambiguous", "people", "boxes", "images", "same", "boxscore", "scores"),
    *("recall", "split", "noint", "pairs", "among", "released", "repairs", "order", "topk", "det", "nms"),
    *("uncounted", "pairnms", "pairscore", "verbscore", "constraint", "extension"),
    *("sim", "raters", "prompt", "wordnet", "merge", "delta", "against", "combine", "verb", "ap", "ties"),
    *("unlabelled", "assign", "minsim", "minscore", "minrank", "filtered", "bins", "setting", "choose", "match"),
    *("boot", "ci", "swaps", "levels", "modelscale", "models", "group", "permutations", "seed"),
    *("of", "grid", "recipe", "missing", "refused", "failed", "published", "audit"),
    *("skipped", "version"),
)
"""Every key of a signature, in order. Settings of eval, diagnose and pairstats (the first three lines) appear only if
they differ from the defaults; those of SHOE, agreement and robustness always, as they have no standard values."""


def result_row(metric: str, /, **keys: Any) -> Row:
    """Return a result row with these keys. If it is of an oracle, its signature also gets the oracle's settings. Raises
    as `check_row` does."""
    row = {"metric": metric, **keys}
    if oracle := ORACLES.get(keys.get("oracle", "")):
        for key, value in oracle.settings.items():
            if key not in settings_of(row):
                row = also_signed(row, key, write_setting(value))
    check_row(row)
    return row


def check_row(row: Mapping[str, Any]) -> None:
    """Raise `DeclarationError` for a row that differs from its metric's declaration (`records.metrics`)."""
    settings = frozenset(key for key, _ in parse_signature(str(row.get("signature"))))
    fault = fault_of(str(row["metric"]), tuple(row), str(row.get("unit")), settings)
    value: float = row.get("value") or 0.0
    # differences between two models are not shares: a gain that one has and the other loses is more than 100 points
    if not fault and row["unit"] == "%" and value > 100 + 1e-6 and "p_bootstrap" not in row:
        fault = f"is {value:g} %; if it is no share, say its `units` in hoicli/records/metrics.py, and in the row"
    if fault:
        raise DeclarationError(f"a row of {row['metric']} {fault}")


BAR = "|"
"""The character between the settings of a signature; no value of a setting may contain it."""


def write_setting(value: Setting) -> str:
    """Return the text of a setting: a number as the shortest that reads back, several values with commas."""
    if isinstance(value, tuple):
        return ",".join(map(write_setting, value))
    return write_number(value) if isinstance(value, float) else str(value)


def signature(settings: Settings, *, inherited: str = "") -> str:
    """Return the signature of a result row: its settings as `key:value|key:value`, in the order of SIGNATURE_KEYS, with
    hoicli's version at the end, as in sacreBLEU. Two rows with one signature were made by the same computation.

    inherited: for a row computed from other rows, the settings that these share; they come first."""
    written = {key: write_setting(value) for key, value in settings.items()} | {"version": __version__}
    unknown = written.keys() - set(SIGNATURE_KEYS)
    if unknown:
        names = ", ".join(sorted(unknown))
        raise DeclarationError(f"a signature has {names}; add it to SIGNATURE_KEYS of hoicli/records/result_rows.py")
    for key, value in written.items():
        if BAR in value:
            raise DataError(f"{value!r} would read as two settings in a signature; rename it without |", place=key)
    own_text = joined_settings({key: written[key] for key in SIGNATURE_KEYS if key in written})
    return f"{inherited}|{own_text}" if inherited else own_text


def also_signed(row: Row, key: str, value: str) -> Row:
    """Return the row with one more setting in its signature, before the version; a row without a signature is returned
    as it is."""
    settings_text, _, version = row.get("signature", "").rpartition(BAR)
    if not settings_text:
        return row
    return {**row, "signature": f"{settings_text}|{key}:{value}|{version}"}


def add_to_setting(row: Row, key: str, number: int) -> Row:
    """Return the row with a number added to the value of a setting in its signature; a signature without the setting
    gets it."""
    old_value = settings_of(row).get(key)
    if old_value is None:
        return also_signed(row, key, f"{number}")
    new_value = int(old_value) + number
    return {**row, "signature": row["signature"].replace(f"|{key}:{old_value}|", f"|{key}:{new_value}|")}


def joined_settings(settings: Mapping[str, str]) -> str:
    """Return settings in the form of a signature, `key:value|key:value`; a setting without a value is its key alone."""
    return "|".join(f"{key}:{value}" if value else key for key, value in settings.items())


def settings_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings in a row's signature, in order, without the version; empty for a row without a signature."""
    return {key: value for key, value in parse_signature(str(row.get("signature") or "")) if key != "version"}


@lru_cache(maxsize=4096)
def parse_signature(text: str) -> tuple[tuple[str, str], ...]:
    """Return the (key, value) of each setting in a signature, in order, with the version."""
    pairs = (part.partition(":") for part in text.split("|") if part)
    return tuple((key, value) for key, _, value in pairs)


def row_ends(protocol: str, tags: Mapping[str, str], settings: Settings) -> Row:
    """Return the last keys of a result row: `protocol`, `tags` (from --tag), and the `signature` of the protocol and
    the settings."""
    return {"protocol": protocol, "tags": dict(tags), "signature": signature({"protocol": protocol, **settings})}


ROW_KEYS = (
    *("metric", "subset", "value", "n", "unit", "protocol", "tags", "signature", "note"),
    *("oracle", "error", "step", "reason", "image_id", "nms", "det_threshold", "constraint", "setting"),
    *("threshold", "rank", "recall", "bin_low", "bin_high", "kind", "truth", "predicted"),
    *("verb", "object", "role"),
    *("raters", "item_group", "level", "rating", "majority"),
    *("ci_low", "ci_high", "p", "p_bootstrap", "q", "from", "to", "comparable", "source", "cite"),
    *("claimed", "digits_off", "fits"),
)
"""Keys of rows (formats/result.schema.json) and CSV's column of notes, which no tag may have as its name. Without
`corruption`, `severity` and `family`: these are keys of robust's rows, and tags of eval's."""


def parse_tags(tags: list[str], *, taken: Collection[str] = ()) -> dict[str, str]:
    """Return the values of `--tag key=value` by key. Raises `UsageError` for a tag without a key or =, for a repeated
    key, for one that rows have, and for text that is no UTF-8."""
    bad = [tag for tag in tags if "=" not in tag or tag.startswith("=")]
    if bad:
        raise UsageError(f"{arg('tag', ', '.join(bad))}: write key=value, for example {arg('tag', 'model=cdn')}")
    try:
        "".join(tags).encode()  # raises for an argument that is no UTF-8
    except UnicodeEncodeError:
        raise UsageError(f"{arg('tag', ', '.join(tags))}: no UTF-8, so no row can hold it; write it in UTF-8") from None
    tags_found = dict(tag.split("=", 1) for tag in tags)
    if len(tags_found) < len(tags):
        raise UsageError(f"{arg('tag', ', '.join(tags))}: one name has two values; keep one")
    reserved = [key for key in tags_found if key in ROW_KEYS or key in taken]
    if reserved:
        raise UsageError(
            f"{arg('tag', ', '.join(reserved))}: rows have a {reserved[0]} of their own; choose another name"
        )
    return tags_found


def tag_column(key: str) -> str:
    """Return the name of the column for the tag `key` in a table that also has columns for the keys of rows."""
    return f"tags.{key}" if key in ROW_KEYS else key


def percent(value: float | None) -> float | None:
    """Return a fraction in percent; None stays None."""
    return None if value is None else 100.0 * float(value)


CHANCES = ("p", "p_bootstrap", "q")
"""Keys of compare's rows that say how likely a difference is by chance."""


def interval_keys(interval: tuple[float, float] | None) -> Row:
    """Return the keys `ci_low` and `ci_high` of a result row, in percent. interval: its limits as fractions, None for
    keys without a value."""
    low, high = interval or (None, None)
    return {"ci_low": percent(low), "ci_high": percent(high)}
