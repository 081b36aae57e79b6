"""How often do 95 % intervals hold what they claim to hold? A real dump's images are taken for the population.

    python -m tests.support.interval_coverage gt.jsonl preds.jsonl [other.jsonl] [--protocol upt] [--sets 100] [--rounds
    256]

Test sets of as many images are drawn from it. The mAP to be expected of such a test set (with other.jsonl: the
difference to be expected) is the mean over many of them; each of `--sets` more gets an interval from its own resamples.
Printed is how many held the expected value: ours, and the plain percentiles of the resamples.
"""

from __future__ import annotations

import argparse

import numpy as np

from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.run import read_truth, tally_predictions
from hoicli.evaluation.tally import averaged, subset_classes
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Weights
from hoicli.resampling.intervals import interval, quantile
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import Rounds
from hoicli.vocabulary.datasets import load

COLUMNS = 32
SETS_FOR_THE_MEAN = 320


def drawn(rng: np.random.Generator, population: Ints, columns: int) -> Weights:
    """[images, columns] how often each image is in a test set drawn from the images that `population` counts."""
    images = np.repeat(np.arange(len(population)), population)
    sets = [np.bincount(rng.choice(images, len(population)), minlength=len(population)) for _ in range(columns)]
    return np.stack(sets, axis=1).astype(np.int32)


def scores(models: list[RankedLists], weights: Weights, members: dict[str, Ints]) -> dict[str, Floats]:
    """Subset -> [columns] the mAP of the one model, or the second's less the first's."""
    rounds = [Rounds(*model.ap(weights)) for model in models]
    means = [{name: side.means(chosen, models[0].unannotated) for name, chosen in members.items()} for side in rounds]
    return {name: means[-1][name] - (means[0][name] if len(models) > 1 else 0.0) for name in members}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.interval_coverage")
    parser.add_argument("gt")
    parser.add_argument("predictions", nargs="+")
    parser.add_argument("--protocol", default="upt")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=256)
    options = parser.parse_args()
    protocol = PROTOCOLS[options.protocol]
    vocabulary = load(protocol.dataset)
    truth = read_truth(Stream([options.gt], "ground truth"), vocabulary, ErrorPolicy())
    models = []
    for path in options.predictions:
        tally = tally_predictions(Predictions([path]), truth, [protocol], Filters(), ErrorPolicy())
        models.append(next(lists for _, _, lists in tally.ranked(vocabulary, sorted(truth.scenes.image_ids))))
    kept = averaged(truth.class_counts(protocol), vocabulary, protocol)
    members = {name: chosen[kept[chosen]] for name, chosen in subset_classes(vocabulary, protocol).items()}

    rng, everything = np.random.default_rng(1), np.ones(models[0].images, dtype=np.int64)
    many = [scores(models, drawn(rng, everything, COLUMNS), members) for _ in range(SETS_FOR_THE_MEAN // COLUMNS)]
    expected = {name: float(np.concatenate([part[name] for part in many]).mean()) for name in members}
    held = {name: [0, 0] for name in members}
    for _ in range(options.sets):
        test_set = drawn(rng, everything, 1)
        estimate = scores(models, test_set, members)
        parts = [
            scores(models, drawn(rng, test_set[:, 0].astype(np.int64), COLUMNS), members)
            for _ in range(options.rounds // COLUMNS)
        ]
        for name, value in expected.items():
            spread = np.concatenate([part[name] for part in parts])
            ours = interval(float(estimate[name][0]), spread, lowest=-1.0, highest=1.0)
            ordered = np.sort(spread)
            ends = [ours, (quantile(ordered, 0.025), quantile(ordered, 0.975))]
            for column, pair in enumerate(ends):
                held[name][column] += pair is not None and pair[0] <= value <= pair[1]
    print(f"of {options.sets} test sets, {options.rounds} resamples each, {protocol.name}:\n")
    print("| subset | expected | held by the interval | held by plain percentiles |\n| --- | ---: | ---: | ---: |")
    for name, (ours_held, plain_held) in held.items():
        print(f"| {name} | {100 * expected[name]:.2f} | {ours_held} | {plain_held} |")


if __name__ == "__main__":
    main()
