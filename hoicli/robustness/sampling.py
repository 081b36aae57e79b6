"""Cells evaluated from their predictions, and how sure the indices are that come of them.

The images of a benchmark are the same in every cell and for every model: only their pixels differ. So a resample draws
images once, and every cell of every model is evaluated on the same ones (`resampling.draws`: the draws depend on the
seed and the number of images alone, and images are in the order of their ids). The indices of a round are then
computed from its cells as the indices themselves are, and what is hard about an image cancels out of a difference
between models.
Of a round only the mean of each cell is kept: 8 bytes a cell and model, 0.8 MB for 101 cells and 1000 rounds.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hoicli.converters.opening import Opening
from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocol_files import chosen_protocols, explicit
from hoicli.evaluation.rows import Evaluated, Wanted
from hoicli.evaluation.run import tallies
from hoicli.evaluation.selection import main_protocol
from hoicli.io.messages import display_name, kept_notes
from hoicli.io.progress import Progress
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import FEWEST_IMAGES, interval, p_resampled
from hoicli.resampling.rounds import resampled
from hoicli.robustness.gathering import Cell, Gathering
from hoicli.robustness.grids import CLEAN_CELL, Grid
from hoicli.robustness.rows import Key, grid_signature, values_of
from hoicli.robustness.selection import VCOCO_PROTOCOL
from hoicli.vocabulary.datasets import load

COMPARED = ("clean", "mri", "cri", "relative_drop")
"""Of these are the differences between two models."""
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "relative_drop": (-math.inf, 100.0),
    "sigma": (0.0, 50.0),
    "cri": (0.0, math.inf),
    "cri_term": (0.0, math.inf),
}
"""The least and the largest value of a metric, where not 0 and 100."""


@dataclass
class Samples:
    """What the rounds gave: (protocol, metric's subset) -> model -> cell -> [R] percent, NaN where a round has none."""

    resampling: Resampling
    rounds: dict[tuple[str, str], dict[str, dict[Cell, Floats]]] = field(default_factory=dict)

    def of(self, grid: Grid) -> dict[Key, Floats] | None:
        """Metric and part -> its value on each round; None unless every cell of the grid has rounds."""
        cells = self.rounds.get((grid.protocol, grid.subset), {}).get(grid.model, {})
        needed = [*grid.cells, *([CLEAN_CELL] if grid.clean is not None else [])]
        if grid.metric != "mAP" or any(cell not in cells for cell in needed):
            return None
        found: dict[Key, list[float]] = {}
        columns = {cell: cells[cell].tolist() for cell in needed}
        for at in range(self.resampling.rounds):
            drawn = {cell: values[at] for cell, values in columns.items()}
            clean = drawn.pop(CLEAN_CELL, None)
            for key, value in values_of(replace(grid, clean=clean, cells=drawn)):
                found.setdefault(key, []).append(math.nan if value is None else value)
        return {key: np.array(values) for key, values in found.items()}


def evaluate_cells(
    gathering: Gathering,
    opening: Opening,
    policy: ErrorPolicy,
    *,
    protocol: str | None,
    dataset: str | None,
    resampling: Resampling | None,
) -> Samples | None:
    """Evaluate the cells that were read, as `hoicli eval` does, and add their rows; with `resampling`, their rounds.

    protocol: a name or a file, None for the dataset's main one, on V-COCO the benchmark's. Raises what evaluating does,
    `UsageError` for several protocols, and `DataError` where cells have different images.
    """
    usual = VCOCO_PROTOCOL if dataset == "vcoco" else main_protocol(load(dataset or "hico")).name
    names = [protocol or usual]
    chosen = chosen_protocols(names, dataset)
    if len(chosen) != 1:
        raise UsageError(f"{arg('protocol', protocol)}: cells are evaluated by one protocol; choose one")
    vocabulary = load(dataset or chosen[0].dataset)
    samples = None if resampling is None else Samples(resampling)
    images: tuple[list[str], str] | None = None
    notes: Counter[str] = Counter()
    with Progress("cells", total=len(gathering.cells), unit="cell") as bar:
        for cell in gathering.cells:
            place = cell.line.place
            with kept_notes() as said:
                truth = None if cell.gt is None else Stream([cell.gt], "ground truth", opening.truth)
                found = tallies(
                    Predictions([cell.predictions], opening.predictions), truth, chosen, Filters(), policy,
                    named=explicit(names) if protocol else frozenset(), vocabulary=vocabulary,
                )  # fmt: skip
                for tally, known, settings in found:
                    ids = tally.image_ids
                    if images is None:
                        images = ids, place
                    if ids != images[0]:
                        odd = min(set(ids) ^ set(images[0]))
                        problem = f"image {odd} is not in both this cell and that of {images[1]}"
                        advice = "all cells are of the same images: give each the ground truth of all"
                        raise DataError(f"{problem}; {advice}", place=place, field="gt")
                    for row_of, results, lists in tally.ranked(known, ids):
                        signed = {**settings, "data": known.signed, **tally.settings(row_of)}
                        cell.check_truth(signed.get("gt", ""))
                        evaluated = Evaluated.of(row_of, known, Wanted(), results, signed, cell.tags)[0]
                        name, where = gathering.name_of(cell.tags, cell.line), gathering.cell_of(cell.tags, cell.line)
                        for row in evaluated.rows():
                            gathering.add(row, cell.line)
                        if samples is None:
                            continue
                        (rounds,) = resampled([lists], samples.resampling, place)
                        for subset, members in evaluated.members.items():
                            if lists.images_of_truth(members) >= FEWEST_IMAGES:
                                of_kind = samples.rounds.setdefault((row_of.name, subset), {}).setdefault(name, {})
                                of_kind.setdefault(where, 100 * rounds.means(members, lists.unannotated))
            notes.update(dict.fromkeys(said, 1))
            bar.advance()
    files: dict[tuple[str, str], list[str]] = {}
    for cell in gathering.cells:
        key = gathering.name_of(cell.tags, cell.line), os.path.realpath(cell.predictions)
        files.setdefault(key, []).append(cell.line.place)
    gathering.remarks += [
        f"{' and '.join(places[:2])} have the same predictions, {display_name(file)}"
        for (_, file), places in files.items()
        if len(places) > 1
    ]
    gathering.remarks += [
        text if times == 1 else f"{text} (and so in {times - 1} more cells)" for text, times in notes.items()
    ]
    return samples


def intervals(grids: Sequence[Grid], samples: Samples) -> dict[str, dict[Key, tuple[float, float] | None]]:
    """Model -> metric and part -> its 95 % interval."""
    found: dict[str, dict[Key, tuple[float, float] | None]] = {}
    for grid in grids:
        drawn = samples.of(grid)
        for key, value in values_of(grid) if drawn is not None else ():
            lowest, highest = _BOUNDS.get(key[0], (0.0, 100.0))
            ends = None
            if drawn is not None and value is not None:
                ends = interval(value, drawn[key], lowest=lowest, highest=highest)
            found.setdefault(grid.model, {})[key] = ends
    return found


def difference_rows(
    grids: Sequence[Grid], samples: Samples, baseline: str, model_tag: str, *, tags: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Each model but the baseline against it: `mri_diff` and the like, `to` less `from`, with the interval of the
    difference on the same resamples, and `p_bootstrap`. Nothing where a cell has no rounds."""
    first = next((grid for grid in grids if grid.model == baseline), None)
    if first is None:  # its cells are of another protocol
        return
    before, drawn_before = dict(values_of(first)), samples.of(first)
    for grid in grids:
        after, drawn = dict(values_of(grid)), samples.of(grid) if grid is not first else None
        if drawn is None or drawn_before is None:
            continue
        for metric in COMPARED:
            key: Key = metric, ()
            one, other = before[key], after[key]
            value = ends = p = None
            if one is not None and other is not None:
                value, rounds = other - one, drawn[key] - drawn_before[key]
                most = math.inf if metric in ("cri", "relative_drop") else 100.0
                ends, p = interval(value, rounds, lowest=-most, highest=most), p_resampled(value, rounds)
            low, high = ends or (None, None)
            yield {
                "metric": f"{metric}_diff", "subset": grid.subset, "from": one, "to": other, "value": value,
                "n": len(grid.cells), "ci_low": low, "ci_high": high, "p_bootstrap": p,
                "unit": "ratio" if metric == "cri" else "%", "protocol": grid.protocol,
                "tags": {**grid.tags, model_tag: grid.model, "baseline": baseline, **(tags or {})},
                "signature": grid_signature(grid, samples.resampling.signature()),
            }  # fmt: skip
