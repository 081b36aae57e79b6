"""What a call returns: the rows that the command prints, and other views of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hoicli.errors import UsageError
from hoicli.records.results import Row, tag_column
from hoicli.tables.notations import render

if TYPE_CHECKING:
    import pandas

_PART_OF = ("verb", "object", "role", "image_id")
"""Keys of rows about a class or an image."""


@dataclass(frozen=True)
class Result:
    """The rows of an evaluation, as the command writes them with `--format jsonl`.

    rows: one value each, in percent where `unit` is "%"; value None where there is nothing to average; `signature` says
    what made it. notes: what the command would say on stderr, one line each. Printing a result shows the command's
    table.
    """

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    classes: Callable[[], Sequence[Row]] | None = field(default=None, repr=False, compare=False)
    """Computes the rows of classes where `rows` has none; None if they have to be asked for."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For a pickle: with the rows of classes, in place of the predictions that they are made of."""
        classes = None if self.classes is None else partial(list[Row], self.classes())
        return type(self), (self.rows, self.notes, classes)

    def to_dict(self, *, drop_none: bool = True) -> dict[str, float | None]:
        """`{"hico/mAP/full": 31.2, ...}` for a tracker: PROTOCOL/METRIC/SUBSET of each value that is about no single
        class or image; what else tells values apart comes behind it (an error type, an oracle, `iou:0.75`,
        `objects:small`), and a model's name in front. Values that there are not (nothing to average) are left out,
        since trackers refuse None; drop_none: False keeps them."""
        found: dict[str, float | None] = {}
        for row in self.rows:
            if not any(key in row for key in _PART_OF) and not (drop_none and row["value"] is None):
                found[_key(row)] = row["value"]
        return found

    @property
    def per_class(self) -> list[Row]:
        """The rows about single classes: AP and max_recall of an evaluation, counts and AP of a diagnosis. Raises
        `UsageError` where the call has to ask for them (`per_class=True`)."""
        found = [row for row in self.rows if "verb" in row]
        if found:
            return found
        if self.classes is None:
            raise UsageError("per_class: no rows of classes were made; call again with per_class=True")
        return list(self.classes())

    def to_frame(self) -> pandas.DataFrame:
        """The rows as a pandas data frame, a column for each key and each tag. Raises `UsageError` without pandas."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_frame needs pandas: pip install pandas") from None
        flat = []
        for row in self.rows:
            tags = {tag_column(key): value for key, value in row.get("tags", {}).items()}
            flat.append({key: value for key, value in row.items() if key != "tags"} | tags)
        return pandas.DataFrame(flat)

    def __str__(self) -> str:
        return render(self.rows, "table").decode().rstrip("\n")

    __repr__ = __str__


def _key(row: Row) -> str:
    tags: dict[str, Any] = row.get("tags", {})
    parts = [tags.get("model"), row["protocol"], row["metric"], row["subset"]]
    parts += [row.get(key) for key in ("error", "reason", "step", "oracle")]
    parts += [f"iou:{tags['iou']}"] if "iou" in tags else []
    parts += [f"{tags['slice']}:{tags['part']}"] if "part" in tags else []
    return "/".join(str(part) for part in parts if part is not None)
