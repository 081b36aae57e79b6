"""Streams of thousands of small images, one line of which is bad: where it stands, and what that must come to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from hoicli.records.columns import BATCH

CLASSES = [("sit_on", "bench"), ("ride", "bicycle"), ("hold", "cup"), ("walk", "dog")]


def lines(count: int) -> tuple[list[bytes], list[bytes]]:
    """(ground truth, predictions) of `count` images with a triplet each; the lines have their ends."""
    rng = Random(7)
    truth, predictions = [], []
    for number in range(count):
        verb, label = CLASSES[number % len(CLASSES)]
        hoi: dict[str, object] = {"subject": 0, "object": 1, "verb": verb}
        record: dict[str, object] = {"image_id": f"image {number}", "boxes": [[0, 0, 90, 90], [50, 50, 200, 200]],
                  "labels": ["person", label], "hois": [hoi]}  # fmt: skip
        truth.append(json.dumps(record).encode() + b"\n")
        verb, label = CLASSES[(number + (rng.random() < 0.3)) % len(CLASSES)]
        moved = {**record, "boxes": [[rng.randrange(30), 0, 90, 90], [50, 50, 200, 200]], "labels": ["person", label],
                 "hois": [{**hoi, "verb": verb, "score": round(rng.random(), 4)}]}  # fmt: skip
        predictions.append(json.dumps(moved).encode() + b"\n")
    return truth, predictions


@dataclass(frozen=True)
class Bad:
    """A stream with one bad line: where it is (from 0), its bytes, the same without it, and how the message begins."""

    at: int
    data: bytes
    without: bytes
    message: str


def positions(count: int, cuts: list[int]) -> dict[str, int]:
    """Class of position -> number of a line (from 0). `cuts`: lines that begin a share of their own."""
    named = {
        "first": 0,
        "second": 1,
        "last of a batch": BATCH - 1,
        "first of a batch": BATCH,
        "second of a batch": BATCH + 1,
        "last of the second batch": 2 * BATCH - 1,
        "middle": count // 2,
        "last but one": count - 2,
        "last": count - 1,
    }
    for number, cut in enumerate(cuts, start=1):
        named |= {f"before cut {number}": cut - 1, f"at cut {number}": cut, f"after cut {number}": cut + 1}
    return named


def with_bad_line(good: list[bytes], at: int) -> Bad:
    """The line at a place without its verb: still JSON, and no record."""
    bad = good[at].replace(b'"verb"', b'"werb"')
    return Bad(at, _joined(good, at, bad), _joined(good, at, b""), "hois[0].verb: missing; ")


def doubled(good: list[bytes], at: int, of: int) -> Bad:
    """The line at a place is that of another image once more."""
    name = json.loads(good[of])["image_id"]
    return Bad(at, _joined(good, at, good[of]), _joined(good, at, b""), f"image_id: image {name!r} is at ")


def cut_last(good: list[bytes]) -> Bad:
    """The last line breaks off in the middle."""
    last = good[-1][: len(good[-1]) // 2]
    return Bad(len(good) - 1, _joined(good, len(good) - 1, last), b"".join(good[:-1]), "the line is cut off ")


def _joined(good: list[bytes], at: int, line: bytes) -> bytes:
    return b"".join(good[:at]) + line + b"".join(good[at + 1 :])


def cuts_of(good: list[bytes], offsets: list[int]) -> list[int]:
    """The numbers of the lines that begin at these offsets."""
    starts, at = {}, 0
    for number, line in enumerate(good):
        starts[at] = number
        at += len(line)
    return [starts[offset] for offset in offsets]
