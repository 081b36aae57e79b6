"""How often do 95 % intervals hold what they are about? Test sets are drawn from a world that is known.

    python -m tests.support.interval_coverage [--images 30,60,100,300] [--classes 40] [--worlds 2000] [--rounds 200]

A world has classes as unequal as Zipf's law, images with several triplets (some of one class), images that are hard for
everything in them, and detectors whose scores depend on the image. Every test set is a new draw of images. Counted is
how often the interval holds what is to be expected of test sets of this size with the same classes: the mean, over the
classes that this one has, of each class's mean over all worlds that have it. Two detectors that are alike differ by 0.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.comparison import Difference, PairedRounds, difference
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import HIDDEN, HIDDEN_OF_MEANS, Rounds, Weighted, resample, swap_outputs
from hoicli.resampling.sums import ImageSums, sum_by_image
from hoicli.shoe.scores import f1_of
from hoicli.shoe.triplet_matching import UNIT

PLAIN, ALIKE, BETTER = range(3)
"""The three detectors of a world; the last is better."""
HIDDEN_OF = {"SHOE, soft mAP": HIDDEN_OF_MEANS}
"""What `Rounds.means` takes where that is not HIDDEN."""


class Truth(NamedTuple):
    """image and class_ [P] of the triplets, hard [N] of each image, common [C] the share of each class."""

    image: Ints
    class_: Ints
    hard: Floats
    common: Floats


def truth_of(rng: np.random.Generator, images: int, classes: int) -> Truth:
    common = 1 / np.arange(1, classes + 1)
    common /= common.sum()
    image = np.repeat(np.arange(images), 1 + rng.poisson(1.0, images))
    class_ = rng.choice(classes, len(image), p=common)
    twice = rng.random(len(image)) < 0.3  # several people do the same
    image, class_ = (np.concatenate([of, of[twice]]) for of in (image, class_))
    return Truth(image, class_, rng.normal(size=images), common)


def detector(rng: np.random.Generator, truth: Truth, quality: float) -> dict[str, Weighted]:
    """A detector's numbers: mAP, soft mAP and mF1. `quality`: how far its true positives' scores stand out."""
    images, classes = len(truth.hard), len(truth.common)
    found = rng.random(len(truth.image)) < 1 / (1 + np.exp(-(quality - 0.3 + 0.8 * truth.hard[truth.image])))
    false = rng.integers(0, images, 4 * images), rng.choice(classes, 4 * images, p=(truth.common + 1 / classes) / 2)
    image, class_ = np.append(truth.image[found], false[0]), np.append(truth.class_[found], false[1])
    hit = np.arange(len(image)) < found.sum()
    score = rng.normal(size=len(image)) + quality * hit + 0.7 * rng.normal(size=images)[image]
    gain = np.where(hit, (rng.uniform(0.5, 1, len(image)) * UNIT).astype(np.int64), 0)
    order = np.lexsort((-score, class_))
    columns = hit[order], image[order], np.searchsorted(class_[order], np.arange(classes + 1))
    asked = truth.image, truth.class_, images
    shape = classes, images
    parts = [sum_by_image(class_, image, worth, shape) for worth in (gain, UNIT * (score > 0.5) * ~hit)]
    counted = (UNIT * ~found, np.ones_like(truth.image))
    parts += [sum_by_image(truth.class_, truth.image, worth, shape) for worth in counted]
    return {
        "mAP": RankedLists(*columns, *asked, PROTOCOLS["hico"].grid, score=score[order]),
        "SHOE, soft mAP": RankedLists(*columns, *asked, (), gain=gain[order], unit=UNIT, score=score[order]),
        "SHOE, mF1": ImageSums(parts[:3], parts[3], f1_of),
    }


class Case(NamedTuple):
    """One interval: its estimate, its ends, the classes it is over, their values, and the p of a difference."""

    found: Difference
    members: Ints
    values: Floats


def cases(seed: int, images: int, classes: int, rounds: int) -> dict[str, Case]:
    rng, asked = np.random.default_rng([seed, images, classes]), Resampling(rounds, seed)
    truth, made = truth_of(rng, images, classes), {}
    detectors = [detector(rng, truth, quality) for quality in (1.5, 1.5, 1.9)]
    for name in detectors[0]:
        models = [numbers[name] for numbers in detectors]
        drawn = resample(models, asked, "")
        whole = [model.ap(np.ones((images, 1), dtype=np.int32)) for model in models]
        values, there = np.stack([of[:, 0] for of, _ in whole]), whole[PLAIN][1][:, 0]
        swaps = swap_outputs(models[PLAIN], models[ALIKE], asked, "")
        for subset, first in (("", 0), (", rarer half of classes", classes // 2)):
            members = first + np.flatnonzero(there[first:])
            over = len(np.unique(truth.image[np.isin(truth.class_, members)]))
            never, hidden = np.zeros(classes, dtype=bool), HIDDEN_OF.get(name, HIDDEN)
            means = [each.means(members, never, hidden) for each in drawn]
            plain, alike, better = (float(of[members].mean()) if len(members) else None for of in values)
            if over < 2 or plain is None:
                continue
            ends = interval(plain, means[PLAIN], over, lowest=0.0, highest=1.0)
            made[name + subset] = Case(Difference(0.0, plain, ends), members, values[PLAIN])
            for what, after, which in (("equal", alike, ALIKE), ("better", better, BETTER)):
                paired = PairedRounds((drawn[PLAIN], drawn[which]), (swaps[0], swaps[1]))
                swap = paired.differences(partial(Rounds.means, members=members, unannotated=never))[1]
                change = difference(plain, after, means[which] - means[PLAIN], swap, over, largest=1.0)
                made[f"{name}{subset}, difference ({what})"] = Case(change, members, values[which] - values[PLAIN])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.interval_coverage")
    for name, default in (("images", "30,60,100,300"), ("classes", "40"), ("worlds", "2000"), ("rounds", "200")):
        parser.add_argument(f"--{name}", default=default)
    options = parser.parse_args()
    classes, worlds, rounds = int(options.classes), int(options.worlds), int(options.rounds)
    sizes = [int(size) for size in options.images.split(",")]
    held: dict[str, list[str]] = defaultdict(list)
    for images in sizes:
        every: dict[str, list[Case]] = defaultdict(list)
        for seed in range(worlds):
            for name, case in cases(seed, images, classes, rounds).items():
                every[name].append(case)
        for name, of in every.items():
            count, total = np.zeros(classes), np.zeros(classes)
            for case in of:
                np.add.at(count, case.members, 1)
                np.add.at(total, case.members, case.values[case.members])
            expected = np.zeros(classes) if name.endswith("(equal)") else total / np.maximum(count, 1)
            ends = [(case.found.ci, expected[case.members].mean()) for case in of if case.found.ci]
            inside = [low <= wanted <= high for (low, high), wanted in ends]
            held[name].append(f"{100 * np.mean(inside):.1f}")
            for key in ("p", "p_bootstrap") if name.endswith("(equal)") else ():
                chances = [p for case in of if (p := getattr(case.found, key)) is not None]
                if chances:
                    held[f"{name}: {key} < 0.05"].append(f"{100 * np.mean(np.array(chances) < 0.05):.1f}")
    print(f"{worlds:,} worlds, {classes} classes, {rounds} rounds:\n")
    print(f"| % of intervals that hold it | {' | '.join(f'{size} images' for size in sizes)} |")
    print(f"| --- |{' ---: |' * len(sizes)}")
    for name, shares in held.items():
        print(f"| {name} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
