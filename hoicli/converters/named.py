"""The published ground truth that has a name here: where its files are, how they are checked, and under which terms.

Addresses are the publishers' own, at a fixed commit. A checksum is "sha256:HEX", or "git:HEX": the id that git gives a
file's content, which is how a repository states what a file at a commit is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A file of an annotation set. file_name: its own name; checksum: of the download; most: the bytes at which a
    download is stopped; member: the file to take out of a downloaded zip archive, "" for no archive."""

    file_name: str
    url: str
    checksum: str
    most: int = 1 << 26
    member: str = ""


@dataclass(frozen=True)
class NamedTruth:
    """An annotation set: DATASET:PART. dataset: its vocabulary; source: who publishes it, for people; terms: its
    licence, as far as its publisher says; parts: what to download, in the order in which convert takes the files, none
    where no address serves the files as they are; digests: `records.fingerprint` of it, for each published
    form of which it is known."""

    name: str
    title: str
    dataset: str
    source: str
    terms: str
    parts: tuple[Part, ...] = ()
    digests: tuple[str, ...] = ()


_GITHUB = "https://raw.githubusercontent.com"
_HICODET = f"{_GITHUB}/fredzzhang/hicodet/e4e234045e0a4128995a2e45e841b3ebe64eda0b"
_VCOCO = f"{_GITHUB}/s-gupta/v-coco/489cc4db74f2f10ab4b134f67da3874afbf245ab/data"
_HICO_TERMS = "annotations: HICO-DET's authors, for research; this form of them: MIT (fredzzhang/hicodet)"
_VCOCO_TERMS = "V-COCO: BSD-2-Clause (s-gupta/v-coco); COCO's instances: CC BY 4.0"
_SWIG_SOURCE = "https://drive.google.com/open?id=1GxNP99J0KP6Pwfekij_M1Z0moHziX8QN, by hand"


def _coco(member: str) -> Part:
    """COCO's instances of 2014, from COCO's own storage."""
    return Part(
        member,
        "https://s3.amazonaws.com/images.cocodataset.org/annotations/annotations_trainval2014.zip",
        "sha256:031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
        most=1 << 28,
        member=f"annotations/{member}",
    )


def _vcoco(part: str, instances: str, verbs: str, ids: str) -> NamedTruth:
    """A part of V-COCO; verbs, ids: git's ids of its two files; instances: the part of COCO its images are of."""
    return NamedTruth(
        f"vcoco:{part}",
        f"V-COCO, {part} images, with every person and action",
        "vcoco",
        "https://github.com/s-gupta/v-coco, and COCO's annotations of 2014 (253 MB)",
        _VCOCO_TERMS,
        (
            Part(f"vcoco_{part}.json", f"{_VCOCO}/vcoco/vcoco_{part}.json", f"git:{verbs}"),
            _coco(f"instances_{instances}2014.json"),
            Part(f"vcoco_{part}.ids", f"{_VCOCO}/splits/vcoco_{part}.ids", f"git:{ids}"),
        ),
    )


NAMED: Mapping[str, NamedTruth] = {
    row.name: row
    for row in (
        NamedTruth(
            "hico:test",
            "HICO-DET, 9,658 test images",
            "hico",
            "https://github.com/fredzzhang/hicodet",
            _HICO_TERMS,
            (
                Part(
                    "instances_test2015.json",
                    f"{_HICODET}/instances_test2015.json",
                    "sha256:cfeaefcc1e006a0d7d205dfba95ac6614341995d18613e016ae650d278757daa",
                ),
            ),
            digests=("7cba1727",),
        ),
        NamedTruth(
            "hico:train",
            "HICO-DET, 37,633 training images",
            "hico",
            "https://github.com/fredzzhang/hicodet",
            _HICO_TERMS,
            (
                Part(
                    "instances_train2015.json",
                    f"{_HICODET}/instances_train2015.json",
                    "git:f5ced6f83027ffa5e7eb58df12c0ece6ed346978",
                ),
            ),
        ),
        _vcoco("test", "val", "c633fc3aeca04ed7b14c8b5bf7ff5b68bb9552f8", "d21ff6d2a17844d62fc6532145347be8c92b6617"),
        _vcoco("val", "train", "fbd0af34173838b506a5054e88d559e3dac217d0", "7ee718f17d34b5c88816b607f044e16393a37286"),
        _vcoco(
            "train", "train", "fa808965b680c2baee3bb5f9041335515ef0af5e", "ad772f302bd5f6b15a083f7a5cd0a002e62550db"
        ),
        _vcoco(
            "trainval", "train", "017b349e9097ad3a194a3591e549380942f94876", "98a7e9505db8e3e508757d14497c57a96599b6a5"
        ),
        *(
            NamedTruth(
                f"swig:{part}",
                f"SWIG-HOI, {part} images (swig_{part}_1000.json)",
                "swig",
                _SWIG_SOURCE,
                "SWIG-HOI's authors, for research",
            )
            for part in ("test", "val", "train", "trainval")
        ),
    )
}
"""The annotation sets that `hoicli data` knows."""


def digest_of(total: int) -> str:
    """Eight hexadecimal digits for annotations whose hashes have this sum (`records.fingerprint`)."""
    return hashlib.blake2b((total % (1 << 64)).to_bytes(8, "little"), digest_size=4).hexdigest()


def signed(total: int | None) -> dict[str, str]:
    """The setting that says in signatures which annotations numbers are of: a digest, after the name where it is that
    of a published set; nothing where the `total` of the hashes is not known (`records.fingerprint`)."""
    if total is None:
        return {}
    digest = digest_of(total)
    known = next((f"{row.name.replace(':', '-')}-" for row in NAMED.values() if digest in row.digests), "")
    return {"gt": f"{known}{digest}"}
