"""The oracles of the diagnosis, each declared once, for all that applies, shows or explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoicli.errors import DeclarationError
from hoicli.io.row_tables import rows_by_name


@dataclass(frozen=True)
class Oracle:
    """A row of ORACLES: a repair of one type of error, after which average precision is computed again.

    repairs: a sentence that says what becomes of the errors. words: its name in figures; head: above its column in
    tables of papers. turn: its place, from 1, where oracles that repair one type of error each are applied one after
    another (Diag-HOI 3.2). None for others. settings: constants that sign its rows, by keys of
    `result_rows.SIGNATURE_KEYS`."""

    name: str
    repairs: str
    words: str
    head: str
    turn: int | None = None
    settings: Mapping[str, str | int | float] = field(default_factory=dict)


_ROWS = (
    Oracle("duplicate", "further predictions of a ground truth that is found already are dropped",
           "Duplicate", "Duplicate", turn=5),
    Oracle("interaction", "predictions with the right pair of boxes and a wrong verb get a verb of that pair, or "
           "are dropped", "Interaction", "Interaction", turn=6),
    Oracle("association", "predictions whose two boxes are right but do not interact get the right pair, or are "
           "dropped", "Association", "Association", turn=4),
    Oracle("object_box", "predictions with the right human box only get an object box and its verb, or are dropped",
           "Object box", "Object", turn=2),
    Oracle("human_box", "predictions with the right object box only get a human box and its verb, or are dropped",
           "Human box", "Human", turn=1),
    Oracle("both_boxes", "predictions with neither box right are dropped", "Both boxes", "Both", turn=3),
    Oracle("missed_gt", "ground truth that no prediction finds or could find after a fix is left out",
           "Missed GT", "Missed", turn=7),
    Oracle("false_positive", "everything but the true positives is dropped", "False positive", "All FP"),
    Oracle("false_negative", "only the ground truth that is found is counted", "False negative", "All FN"),
)  # fmt: skip
ORACLES: Mapping[str, Oracle] = rows_by_name("_ROWS (hoicli/records/oracles.py)", ((row.name, row) for row in _ROWS))
"""The oracles in the order of tables and figures."""

_WITH_TURN = [oracle for oracle in ORACLES.values() if oracle.turn]
IN_TURN = tuple(oracle.name for oracle in sorted(_WITH_TURN, key=lambda oracle: oracle.turn or 0))
"""The oracles that repair one type of error each, in the order of Diag-HOI section 3.2; together they repair all."""
OF_A_SIDE = tuple(name for name in ORACLES if name not in IN_TURN)
"""The oracles that repair all false positives, or all false negatives."""

_TURNS = [oracle.turn for oracle in ORACLES.values()]
if None in _TURNS[: len(IN_TURN)] or sorted(filter(None, _TURNS)) != [*range(1, len(IN_TURN) + 1)]:
    raise DeclarationError(
        "ORACLES in hoicli/records/oracles.py: turns must be 1, 2, ...; give a `turn` only to an oracle that repairs "
        "one error type: all in turn must give mAP 100. Others stand behind those, without a turn."
    )
