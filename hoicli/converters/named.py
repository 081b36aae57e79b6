"""The published ground truth that has a name here: where its file is, how it is checked, and under which terms.

Addresses are the publishers' own, at a fixed commit. A checksum is "sha256:HEX", or "git:HEX": the id that git gives a
file's content, which is how a repository states what a file at a commit is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

_HICODET = "https://raw.githubusercontent.com/fredzzhang/hicodet/e4e234045e0a4128995a2e45e841b3ebe64eda0b"


@dataclass(frozen=True)
class NamedTruth:
    """An annotation set: DATASET:PART. url, checksum: of its file; digest: `records.fingerprint` of it, where that is
    known; source: who publishes it, for people; terms: its licence, as far as its publisher says."""

    name: str
    title: str
    url: str
    checksum: str
    digest: str = ""
    source: str = "https://github.com/fredzzhang/hicodet"
    terms: str = "annotations: HICO-DET's authors, for research; this form of them: MIT (fredzzhang/hicodet)"


NAMED: Mapping[str, NamedTruth] = {
    row.name: row
    for row in (
        NamedTruth(
            "hico:test",
            "HICO-DET, 9,658 test images",
            f"{_HICODET}/instances_test2015.json",
            "sha256:cfeaefcc1e006a0d7d205dfba95ac6614341995d18613e016ae650d278757daa",
            "7cba1727",
        ),
        NamedTruth(
            "hico:train",
            "HICO-DET, 37,633 training images",
            f"{_HICODET}/instances_train2015.json",
            "git:f5ced6f83027ffa5e7eb58df12c0ece6ed346978",
        ),
    )
}
"""The annotation sets that `hoicli data fetch` downloads."""


def digest_of(total: int) -> str:
    """Eight hexadecimal digits for annotations whose hashes have this sum (`records.fingerprint`)."""
    return hashlib.blake2b((total % (1 << 64)).to_bytes(8, "little"), digest_size=4).hexdigest()


def signed(total: int | None) -> dict[str, str]:
    """The setting that says in signatures which annotations numbers are of: a digest, after the name where it is that
    of a published set; nothing where the `total` of the hashes is not known (`records.fingerprint`)."""
    if total is None:
        return {}
    digest = digest_of(total)
    known = next((f"{row.name.replace(':', '-')}-" for row in NAMED.values() if digest == row.digest), "")
    return {"gt": f"{known}{digest}"}
