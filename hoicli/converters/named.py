"""The published ground truth that has a name here: where its file is, how it is checked, and under which terms.

Addresses are the publishers' own, at a fixed commit. A checksum is "sha256:HEX", or "git:HEX": the id that git gives a
file's content, which is how a repository states what a file at a commit is.

The user's copies are in the folder $HOICLI_DATA, else hoicli/data in the user's cache folder ($XDG_CACHE_HOME,
~/.cache), which holds DATASET/PART.jsonl of every set (`converters.store` makes them)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hoicli.errors import UsageError
from hoicli.io.row_tables import rows_by_name
from hoicli.records.result_rows import Setting

OneSetting = TypeVar("OneSetting", bound=Setting)

LISTED = "listed"
"""The setting that names the order in which ground truth lists its items: released code takes the first of several."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}:[a-z0-9][a-z0-9._-]{0,60}")
"""How a set is called: DATASET:PART. A path that looks so and exists is a path."""

_HICODET = "https://raw.githubusercontent.com/fredzzhang/hicodet/e4e234045e0a4128995a2e45e841b3ebe64eda0b"


@dataclass(frozen=True)
class NamedTruth:
    """A published annotation set. name: DATASET:PART. title: a description for people. url, checksum: those of its
    file. digest: eight hexadecimal digits that stand for its annotations (`records.fingerprint`), "" if they are not
    known. orders: the digests of the orders in which it lists the triplets of each class, the boxes of each label, and
    (for Diag-HOI's code) all triplets. source: who publishes it. terms: its licence, as far as its publisher says.
    images: how many it has, 0 if that is not known."""

    name: str
    title: str
    url: str
    checksum: str
    digest: str = ""
    orders: tuple[str, ...] = ()
    source: str = "https://github.com/fredzzhang/hicodet"
    terms: str = "annotations: HICO-DET's authors, for research; this form of them: MIT (fredzzhang/hicodet)"
    images: int = 0


_ROWS = (
    NamedTruth("hico:test", "HICO-DET, 9,658 test images", f"{_HICODET}/instances_test2015.json",
        "sha256:cfeaefcc1e006a0d7d205dfba95ac6614341995d18613e016ae650d278757daa", "7cba1727",
        ("4aacf01a", "29ccab97", "f7d73915"), images=9_658),
    NamedTruth("hico:train", "HICO-DET, 37,633 training images", f"{_HICODET}/instances_train2015.json",
        "git:f5ced6f83027ffa5e7eb58df12c0ece6ed346978", images=37_633),
)  # fmt: skip
NAMED: Mapping[str, NamedTruth] = rows_by_name("_ROWS (hoicli/converters/named.py)", ((row.name, row) for row in _ROWS))
"""The annotation sets that `hoicli data fetch` downloads."""


def digest_of(total: int) -> str:
    """Return eight hexadecimal digits that stand for annotations. total: the sum of their hashes."""
    return hashlib.blake2b((total % (1 << 64)).to_bytes(8, "little"), digest_size=4).hexdigest()


def truth_settings(total: int | None, order: int = 0) -> dict[str, str]:
    """Return the settings by which a result's signature says what ground truth it was computed on.

    `gt` is the digest of the annotations, after the name of the set if they are a published one's (hico-test-7cba1727).
    `listed` is the digest of the order of its items, in signatures of protocols whose results depend on that order; it
    is left out if the order is the published set's. total: the sum of the annotations' hashes, None for no settings."""
    if total is None:
        return {}
    digest = digest_of(total)
    published = next((row for row in NAMED.values() if digest == row.digest), None)
    return also_listed({"gt": f"{published.name.replace(':', '-')}-{digest}" if published else digest}, order)


def also_listed(settings: Mapping[str, OneSetting], order: int) -> dict[str, OneSetting | str]:
    """Return the settings of a signature with one more order of the ground truth's items in `listed`.

    A signature has one `listed` for all orders that a result depends on: the digest of the old `listed`, read as a
    number, plus the new order. order: the sum of the hashes of the order; 0 changes nothing."""
    if not order:
        return dict(settings)
    digest_before = int(str(settings.get(LISTED, "0")), 16)
    digest = digest_of(digest_before + order)
    others: dict[str, OneSetting | str] = {key: value for key, value in settings.items() if key != LISTED}
    truth_setting = str(settings.get("gt"))  # of a published set such as hico-test-7cba1727
    published_sets = (row for row in NAMED.values() if row.digest and truth_setting.endswith(f"-{row.digest}"))
    return others if any(digest in row.orders for row in published_sets) else {**others, LISTED: digest}


def folder() -> Path:
    """Return the folder that holds the user's copies of ground truth, whether or not it exists: $HOICLI_DATA, else
    hoicli/data in the user's cache folder. Raises `UsageError` if HOICLI_DATA is a relative path."""
    data_folder = os.environ.get("HOICLI_DATA", "")
    if data_folder:
        if not os.path.isabs(data_folder):
            raise UsageError(f"HOICLI_DATA={data_folder}: give an absolute path")
        return Path(data_folder)
    cache_folder = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache_folder) if os.path.isabs(cache_folder) else Path.home() / ".cache") / "hoicli" / "data"


def path_of(name: str) -> Path:
    """Return where the user's copy of a set is kept, whether or not it exists. name: DATASET:PART, as hico:test."""
    dataset, _, part = name.partition(":")
    return folder() / dataset / f"{part}.jsonl"


def locate_truth(text: str) -> str:
    """Return the path that the value of --gt means: that of the user's copy if the value is the name of a set
    (hico:test), else the value itself. Raises `UsageError`, with the command that adds it, for a set without a copy."""
    if NAME.fullmatch(text) is None or os.path.exists(text):
        return text
    path = path_of(text)
    if path.is_file():
        return str(path)
    if text not in NAMED:
        problem = f"{text}: no such file, and no ground truth of that name was added"
        raise UsageError(f"{problem}; hoicli data list shows what there is")
    raise UsageError(
        f"{text} is not here yet: hoicli data fetch {text} downloads it, hoicli data add {text} FILE takes your copy"
    )
