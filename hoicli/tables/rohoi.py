"""The paper's own tables as result rows (arXiv 2507.09111): to stand beside one's own, never to be ranked with them.

Its images are not published and its constants are not stated, so every row says that it is not comparable. Values are
as printed; Table 4's means of RLIPv2-ParSeDA average to 46.81, where Table 1 has 45.05.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoicli.corruption.catalogue import ROHOI, SEVERITIES, family_of
from hoicli.records.results import Row, signature

DATASETS = ("hico", "vcoco")
"""The datasets of Table 1."""

# Table 1: mAP full, MRI and CRI on HICO-DET; AP#2, MRI and CRI on V-COCO. AP#1 is not what its indices are of.
_TABLE_1 = """
QPIC (R50)      | 29.07 13.13 0.21 | 60.98 30.04 0.19
QPIC (R101)     | 29.90 14.45 0.22 | 60.74 32.05 0.19
UPT (R50)       | 31.66 17.77 0.23 | 64.47 35.92 0.15
UPT (R101)      | 32.31 17.44 0.24 | 66.20 33.80 0.14
CDN-B           | 31.78 15.41 0.22 | 64.42 34.30 0.19
CDN-L           | 32.07 17.05 0.24 | 65.89 37.65 0.20
DiffHOI         | 34.41 21.09 0.23 |
FGAHOI          | 29.81 16.05 0.22 |
GEN-VLKT-S      | 33.75 17.01 0.22 | 64.46 34.69 0.19
GEN-VLKT-L      | 34.95 18.93 0.23 | 65.93 37.45 0.20
QAHOI           | 28.47 15.07 0.25 | 58.70 29.33 0.20
SOV-STG-S       | 33.80 16.94 0.22 | 64.47 34.40 0.20
MUREN           | 32.88 16.32 0.23 | 69.88 37.10 0.18
RLIPv2-ParSeDA  | 38.60 24.58 0.28 | 70.76 45.05 0.24
SAMPL           | 39.16 24.25 0.29 | 71.13 48.83 0.27
"""

# Table 4: the means over severities on V-COCO, in the order of ROHOI.
_TABLE_4 = """
CDN-L          | 15.38 10.12 48.73 7.56 41.67 60.92 28.78 56.89 24.24 28.18 \
                 64.67 41.06 49.75 67.07 30.67 44.30 37.33 50.79 22.39 22.45
GEN-VLKT-L     | 14.64 9.90 48.27 7.74 40.50 60.63 28.37 56.31 20.40 28.52 \
                 64.94 40.48 50.48 67.48 32.42 44.21 38.27 51.15 21.11 23.24
MUREN          | 15.71 12.10 51.08 6.77 41.65 62.59 26.08 56.32 20.46 23.89 \
                 66.65 38.55 51.78 69.12 25.63 44.36 38.79 52.34 15.97 22.22
RLIPv2-ParSeDA | 25.31 17.84 57.82 12.99 50.91 66.72 50.58 64.68 40.11 38.34 \
                 68.39 55.99 54.61 69.82 45.93 59.14 48.14 53.01 26.12 29.73
SAMPL          | 26.63 19.03 58.56 13.87 52.46 68.06 52.66 65.81 42.24 46.69 \
                 69.22 57.31 62.04 70.77 47.89 60.72 48.99 53.21 29.90 30.49
"""


def table_1(dataset: str) -> dict[str, tuple[float, float, float]]:
    """Model -> (clean value, MRI, CRI) of Table 1, for those that have them. `dataset`: one of DATASETS."""
    found = {}
    for line in _TABLE_1.strip().splitlines():
        model, *columns = (part.strip() for part in line.split("|"))
        if columns[DATASETS.index(dataset)]:
            clean, index, composite = map(float, columns[DATASETS.index(dataset)].split())
            found[model] = clean, index, composite
    return found


def table_4() -> dict[str, dict[str, float]]:
    """Model -> corruption -> its mean over severities, percent, of Table 4: V-COCO, of five models."""
    lines = (line.split("|") for line in _TABLE_4.strip().splitlines())
    return {model.strip(): dict(zip(ROHOI, map(float, values.split()), strict=True)) for model, values in lines}


def published_rows(dataset: str, *, tags: Mapping[str, str] | None = None) -> list[Row]:
    """`clean`, `mri` and `cri` of every model, and on V-COCO its `mean` by corruption where Table 4 has them, in the
    order of the paper. All rows have `comparable` False, and the table in their signature; none has a rank."""
    subset = "24" if dataset == "vcoco" else "full"
    rows: list[Row] = []

    def add(table: int, model: str, metric: str, value: float, n: int, unit: str, part: Mapping[str, str]) -> None:
        settings = {"data": dataset, "of": f"mAP/{subset}", "published": f"rohoi-table-{table}"}
        named = {"protocol": "published", "tags": {"model": model, **(tags or {})}, "comparable": False}
        value_of = {"metric": metric, "subset": subset, **part, "value": value, "n": n, "unit": unit}
        rows.append({**value_of, **named, "signature": signature(settings)})

    cells = len(ROHOI) * len(SEVERITIES)
    for model, (clean, index, composite) in table_1(dataset).items():
        add(1, model, "clean", clean, 1, "%", {})
        add(1, model, "mri", index, cells, "%", {})
        add(1, model, "cri", composite, cells, "ratio", {})
    for model, means in table_4().items() if dataset == "vcoco" else ():
        for corruption, value in means.items():
            part = {"corruption": corruption, "family": family_of(corruption)}
            add(4, model, "mean", value, len(SEVERITIES), "%", part)
    return rows
