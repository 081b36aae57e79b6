"""Ground truth and predictions divided into groups by fields of the ground truth's records (`--by camera`): each group
is a test set of its own.

A prediction belongs to the group that its own fields name. If it lacks some of them, it belongs to the group of the
record with its `file_name`, or whose `file_name` is its image id, as in dumps of corrupted images (`jpeg/1/x` for
`jpeg/1/x.png`); else to the only group that has its image id and the fields that it has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hoicli.errors import DataError, arg, did_you_mean, write_number
from hoicli.io.messages import note
from hoicli.io.stored_lines import StoredLines
from hoicli.io.streams import Line, Stream
from hoicli.records.group_lines import GroupLines, read_fields
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ErrorPolicy, unknown_image
from hoicli.records.names import path_of
from hoicli.records.parsing import Record, json_type, parse

Key = tuple[str, ...]
"""The texts of the fields that name a group, in the order of `--by`."""
_OF_EVERY_IMAGE = ("image_id", "file_name", "width", "height")
"""Fields whose values differ between images, so that nobody groups by them."""
_SHOWN = 5
"""How many groups a message names."""


@dataclass
class Group:
    """One group. fields: the values that its records share, by field. truth: its lines of ground truth, None for match
    records without any; predictions: its lines of each model's predictions."""

    fields: Mapping[str, Any]
    truth: GroupLines | None = None
    predictions: list[GroupLines] = field(default_factory=list)

    @property
    def tags(self) -> dict[str, str]:
        """The values of the fields as text: the tags of the group's rows."""
        return {name: _text(value) for name, value in self.fields.items()}

    @property
    def name(self) -> str:
        """What messages call the group: `corruption=jpeg severity=3`."""
        return write_fields(self.tags)

    @property
    def sorting_key(self) -> list[tuple[float, str]]:
        """A key that sorts groups by their fields: numbers by size, before texts."""
        return [(_number(text), text) for text in self.tags.values()]


def _text(value: Any) -> str:
    """Return the text of a field's value, as JSON writes it, but without quotation marks."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return write_number(value) if isinstance(value, float) else str(value)


def _number(text: str) -> float:
    """Return the number that a text spells; infinity if it spells none."""
    try:
        number = float(text)
    except ValueError:
        return math.inf
    return math.inf if math.isnan(number) else number


def _group_fields(fields: Record, by: Sequence[str], line: Line) -> dict[str, Any]:
    """Return the values of the fields in `by`. Raises `DataError` for one that is missing or empty, and for one that is
    neither text nor number."""
    for name in by:
        value = fields.get(name)
        if value is None or value == "":
            advice = did_you_mean(name, parse(line), f"{arg('by')} groups the records by it, so each needs it")
            raise DataError(f"missing; {advice}", place=line.place, field=name)
        if not isinstance(value, str | int | float):
            problem = f"{json_type(value)}; {arg('by')} takes fields that are a text, a number, true or false"
            raise DataError(problem, place=line.place, field=name)
    return {name: fields[name] for name in by}


class Grouping:
    """Divides streams into groups by the fields `by`: first the ground truth, if there is any, then each model's
    predictions. Bad lines go to the policy."""

    def __init__(self, by: Sequence[str], policy: ErrorPolicy) -> None:
        """Start without groups."""
        self._by = tuple(by)
        self._policy = policy
        self._groups: dict[Key, Group] = {}
        self._groups_of_image: dict[str, dict[Key, int]] = {}
        """For each image the groups that it is in, each with the number of its line of ground truth."""
        self._paths: list[tuple[str, str, Key]] = []
        """The file name, the image id and the group of each record of the ground truth that has a file name."""
        self._models: list[tuple[str, dict[Key, GroupLines]]] = []
        """For each model the name of its stream, and its lines by group."""

    def add_truth(self, stream: Stream) -> None:
        """Divide the ground truth; its groups are those that predictions may be of. Raises `DataError` for an empty
        stream."""
        stored = StoredLines(stream)
        for number, line in enumerate(stored):
            with self._policy.item():
                record = read_fields(line, ("file_name", *self._by))
                key = self._register_group(record, line)
                group = self._groups[key]
                if group.truth is None:
                    group.truth = GroupLines(f"{stream.name} ({group.name})", stored)
                group.truth.numbers.append(number)
                image_id = str(record["image_id"])
                first = self._groups_of_image.setdefault(image_id, {}).setdefault(key, number)
                if first != number:  # the group has an earlier record of this image
                    self._refuse_repeated(line, next(stored.read([first])))
                if type(record.get("file_name")) is str:
                    self._paths.append((record["file_name"], image_id, key))
        if not self._groups:
            self._policy.report(some_left=False)
            raise DataError("no ground truth in it", place=stream.name, code="empty")

    def _refuse_repeated(self, line: Line, first: Line) -> None:
        """Raise `DataError` for a second record of an image in one group, if it differs from the first one in a field
        by which both could be told apart; the message advises to group by this field, too."""
        fields = parse(line)
        first_fields = parse(first)
        names = []
        for name, value in fields.items():
            may_group = name not in _OF_EVERY_IMAGE and isinstance(value, str | int)
            if may_group and first_fields.get(name, value) != value:
                names.append(name)
        if names:
            problem = f"image {str(fields['image_id'])!r} is {first.where} already, with another {' and '.join(names)}"
            advice = f"group by it, too: {arg('by', ','.join([*self._by, *names]))}"
            raise DataError(f"{problem}; {advice}", place=line.place, field="image_id", code=DUPLICATE_IMAGE)

    def add_predictions(self, stream: Stream) -> None:
        """Divide the predictions, or the match records, of one model. Raises `DataError` for an empty stream."""
        stored = StoredLines(stream)
        has_truth = bool(self._groups_of_image)
        lines_by_key: dict[Key, GroupLines] = {}
        for number, line in enumerate(stored):
            with self._policy.item():
                record = read_fields(line, self._by)
                truth_id = None
                if has_truth:
                    key, truth_id = self._find_group(record, line)
                else:
                    key = self._register_group(record, line)
                if key not in lines_by_key:
                    lines_by_key[key] = GroupLines(f"{stream.name} ({self._groups[key].name})", stored)
                lines_by_key[key].numbers.append(number)
                if truth_id is not None:
                    lines_by_key[key].image_ids[number] = truth_id
        if not lines_by_key:
            self._policy.report(some_left=False)
            raise DataError(f"no {stream.label} in it", place=stream.name, code="empty")
        self._models.append((stream.name, lines_by_key))

    def _register_group(self, record: Record, line: Line) -> Key:
        """Return the key of the group that a record's fields name; the group is made if it is new. Raises `DataError`
        if the record lacks a field."""
        fields = _group_fields(record, self._by, line)
        key = tuple(map(_text, fields.values()))
        if key not in self._groups:
            self._groups[key] = Group(fields)
        return key

    def _find_group(self, record: Record, line: Line) -> tuple[Key, str | None]:
        """Return the key of a prediction's group, and the id that the ground truth has for its image, None if that is
        the prediction's own. Raises `DataError` if the record names none of the groups, or may belong to several."""
        stated = {name: _text(record[name]) for name in self._by if record.get(name) is not None}
        image_id = str(record["image_id"])
        key = tuple(stated.values())
        if len(stated) == len(self._by):
            if key not in self._groups:
                all_groups = _list_groups(self._groups.values())
                problem = f"no group of the ground truth has {write_fields(stated)}; it has {all_groups}"
                raise DataError(problem, place=line.place, field=self._by[0], code=UNKNOWN_IMAGE)
            if key in self._groups_of_image.get(image_id, [key]):  # an unknown image is refused when it is read
                return key, None
        truth_id, keys = self._locate_image(image_id, line)
        if not keys:
            problem = f"{unknown_image(image_id, self._groups_of_image)}; give the set it belongs to"
            raise DataError(problem, place=line.place, field="image_id", code=UNKNOWN_IMAGE)
        fitting = [key for key in keys if all(key[self._by.index(name)] == text for name, text in stated.items())]
        if not fitting:
            groups = _list_groups(self._groups[key] for key in keys)
            problem = f"{write_fields(stated)}, but its image is in {groups}"
            raise DataError(problem, place=line.place, field=next(iter(stated)))
        if len(fitting) > 1:
            advice = f"copy {' and '.join(self._by)}, or file_name, from its record into the prediction"
            problem = f"{image_id!r} is in {len(fitting)} groups of the ground truth; {advice}"
            raise DataError(problem, place=line.place, field="image_id")
        other_id = None if truth_id == image_id else truth_id
        return fitting[0], other_id

    def _locate_image(self, image_id: str, line: Line) -> tuple[str, Collection[Key]]:
        """Return the id that the ground truth has for a prediction's image, and the keys of the groups in which the
        image may be: by the prediction's file name if the ground truth has that once, else by the prediction's image
        id, which may be a file name."""
        file_name = read_fields(line, ["file_name"]).get("file_name")
        truth_image = self._image_by_path.get(path_of(file_name)) if type(file_name) is str else None
        if truth_image is None and image_id not in self._groups_of_image:
            truth_image = self._image_by_path.get(path_of(image_id))
        if truth_image is None:
            return image_id, self._groups_of_image.get(image_id, ())
        truth_id, key = truth_image
        return truth_id, [key]

    @cached_property
    def _image_by_path(self) -> dict[str, tuple[str, Key] | None]:
        """The image id and the group of each record of the ground truth, by its file name without picture ending; None
        if several have it."""
        image_by_path: dict[str, tuple[str, Key] | None] = {}
        for file_name, image_id, key in self._paths:
            path = path_of(file_name)
            image_by_path[path] = None if path in image_by_path else (image_id, key)
        return image_by_path

    def finish(self, *, lacking_allowed: bool = False) -> list[Group]:
        """Return the groups in the order of their values, with the lines of all models. lacking_allowed: whether groups
        without predictions are left out without a word.

        Otherwise raises `DataError` for groups that have no predictions of a model (more likely, a run of the detector
        is missing), or leaves them out with a note if the policy skips what is bad."""
        for name, lines_by_key in self._models:
            lacking = [group for key, group in self._groups.items() if key not in lines_by_key]
            if lacking and not lacking_allowed:
                problem = f"no predictions for {len(lacking)} of {len(self._groups)} groups: {_list_groups(lacking)}"
                if not self._policy.skip:
                    advice = f"run the detector on their images, or pass {arg('on_error', 'skip')} to leave them out"
                    raise DataError(f"{problem}; {advice}", place=name, code="not-whole")
                note(f"left out: {name}: {problem}")
        for key, group in self._groups.items():
            group.predictions = [lines_by_key[key] for _, lines_by_key in self._models if key in lines_by_key]
        whole = [group for group in self._groups.values() if len(group.predictions) == len(self._models)]
        if not whole:
            names = ", ".join(name for name, _ in self._models)
            problem = "no group has predictions of every model; give all models the same groups"
            raise DataError(problem, place=names, code="not-whole")
        return sorted(whole, key=lambda group: group.sorting_key)


def _list_groups(groups: Iterable[Group]) -> str:
    """Return groups in words for a message: the first few in their order, and how many more there are."""
    names = [group.name for group in sorted(groups, key=lambda group: group.sorting_key)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def write_fields(fields: Mapping[str, str]) -> str:
    """Return fields and their values for a message: `corruption=jpeg severity=3`."""
    return " ".join(f"{name}={text}" for name, text in fields.items())
