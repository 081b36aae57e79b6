"""RoHOI's published numbers, as `hoicli table --published` has them."""

from __future__ import annotations

from hoicli.tables.published import published_rows

DATASETS = {"hico": "robust", "vcoco": "robust-vcoco"}


def rohoi_indices(dataset: str) -> dict[str, tuple[float, float, float]]:
    """Model -> (clean value, MRI, CRI) of Table 1."""
    found: dict[str, dict[str, float]] = {}
    for row in published_rows(DATASETS[dataset]):
        if row["metric"] != "mean":
            found.setdefault(row["tags"]["model"], {})[row["metric"]] = row["value"]
    return {model: (values["clean"], values["mri"], values["cri"]) for model, values in found.items()}


def rohoi_means() -> dict[str, dict[str, float]]:
    """Model -> corruption -> its mean over severities, percent, of Table 4: V-COCO, of five models."""
    found: dict[str, dict[str, float]] = {}
    for row in published_rows("robust-vcoco"):
        if row["metric"] == "mean":
            found.setdefault(row["tags"]["model"], {})[row["corruption"]] = row["value"]
    return found
