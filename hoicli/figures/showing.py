"""Which images and triplets of some streams are drawn: records of any labels, with or without ground truth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from hoicli.errors import DataError, UsageError, arg
from hoicli.figures.overlays import INKS, TRUTH_INK, Layer, Overlay, Pair
from hoicli.io.streams import Line, Stream
from hoicli.records.image import problems, truth_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.names import image_id_of, image_number
from hoicli.records.parsing import Problem, Record, is_number, parse
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

ENDINGS = (".jpg", ".jpeg", ".png")
"""Of images that are looked up by their id."""


@dataclass(frozen=True)
class Choice:
    """What is drawn. image_ids: these images; else the first `count` by id, None for all. among: of these images only,
    None for any. top: so many best triplets of an image and stream, None for all; score: those of at least this score.
    verbs, objects: only these, empty for all."""

    image_ids: Sequence[str] = ()
    count: int | None = None
    top: int | None = None
    score: float | None = None
    verbs: Collection[str] = ()
    objects: Collection[str] = ()
    among: Collection[str] | None = None

    @property
    def filters(self) -> bool:
        """Whether images without a triplet that is drawn are left out."""
        return bool(self.verbs or self.objects or self.score is not None or self.among is not None)

    def draws(self, record: Record, *, scored: bool) -> bool:
        """Whether an image is among those asked for, with a triplet that is drawn."""
        among = self.among is None or str(record["image_id"]) in self.among
        return among and bool(self.triplets(record, scored=scored))

    def triplets(self, record: Record, *, scored: bool) -> list[Record]:
        """The triplets of a record that are drawn: predictions best first, ground truth as annotated."""
        hois = [hoi for hoi in record["hois"] if self._drawn(hoi, record["labels"], scored=scored)]
        if not scored:
            return hois
        hois.sort(key=lambda hoi: -hoi["score"])  # stable: equal scores in the record's order
        return hois[: self.top]

    def _drawn(self, hoi: Record, labels: Sequence[str | None], *, scored: bool) -> bool:
        if scored and self.score is not None and hoi["score"] < self.score:
            return False
        if self.verbs and hoi["verb"] not in self.verbs:
            return False
        return not self.objects or (hoi["object"] is not None and labels[hoi["object"]] in self.objects)


@dataclass
class Source:
    """A stream and what is kept of it: the records of its images by id."""

    name: str
    stream: Stream
    scored: bool
    kept: dict[str, Record] = field(default_factory=dict)

    def read(self, choice: Choice, vocabulary: Vocabulary | None, policy: ErrorPolicy) -> None:
        """Read all lines, and keep the records of the images that may be drawn.

        Raises `DataError` for a bad line, which `policy` may drop, and for an empty stream."""
        register, wanted = ImageRegister(), set(choice.image_ids)
        self.stream.first  # noqa: B018 (raises if the stream is empty)
        for line in self.stream:
            try:
                record = self._checked(line, vocabulary)
                image_id = str(record["image_id"])
                register.add(image_id, line)
            except DataError as error:
                policy.handle(error)
                continue
            asked = image_id in wanted if wanted else True
            if asked and (not choice.filters or choice.draws(record, scored=self.scored)):
                self.kept[image_id] = record
            if choice.count is not None and not wanted and len(self.kept) > 2 * choice.count:
                self._forget(choice.count)
        if choice.count is not None and not wanted:
            self._forget(choice.count)

    def _forget(self, count: int) -> None:
        """Keep the first `count` images by id."""
        self.kept = {image_id: self.kept[image_id] for image_id in sorted(self.kept)[:count]}

    def _checked(self, line: Line, vocabulary: Vocabulary | None) -> Record:
        """The record of a line. Without a vocabulary any label will do, and V-COCO's nulls, too."""
        record = parse(line)

        def problem(of: Vocabulary | None) -> Problem | None:
            found = problems(record, of, scored=True, besides=()) if self.scored else truth_problems(record, of)
            return next(iter(found), None)

        wrong = problem(vocabulary)
        if wrong is not None and (vocabulary is not None or problem(load("vcoco")) is not None):
            raise wrong.error(line.place)
        return record


@dataclass(frozen=True)
class Shown:
    """An image to be drawn: its file in the folder of images, None where none is known, and what is drawn on it."""

    file_name: str | None
    overlay: Overlay


def chosen(sources: Sequence[Source], choice: Choice, folder: Path | None) -> Iterator[Shown]:
    """The images to draw, in the order of the choice, else by id; of sources that were read.

    Raises `DataError` for an image that no stream has, and where there is nothing to draw.
    """
    there = sorted({image_id for source in sources for image_id in source.kept})
    if choice.image_ids:
        missing = [image_id for image_id in choice.image_ids if image_id not in there]
        if missing and not choice.filters:
            raise DataError(f"no stream has image {missing[0]!r}; name images as the records do (image_id)")
        there = [image_id for image_id in dict.fromkeys(choice.image_ids) if image_id in there]
    if not there:
        asked = (
            f"; ask for less ({arg('score')}, {arg('verb')}, {arg('object_')}, {arg('single_hoi')})"
            if choice.filters
            else ""
        )
        raise DataError(f"nothing to draw{asked}")
    files = Files(folder)
    for image_id in there[: None if choice.image_ids else choice.count]:
        records = [source.kept.get(image_id) for source in sources]
        named = [record["file_name"] for record in records if record and type(record.get("file_name")) is str]
        sizes = [
            (float(record["width"]), float(record["height"]))
            for record in records
            if record and all(is_number(record.get(key)) and record[key] > 0 for key in ("width", "height"))
        ]
        yield Shown(
            next(iter(named), None) or files.of(image_id),
            Overlay(image_id, next(iter(sizes), None), list(_layers(sources, records, choice))),
        )


def _layers(sources: Sequence[Source], records: Sequence[Record | None], choice: Choice) -> Iterator[Layer]:
    """What each stream says of an image. An object's box of zeros, as official V-COCO lists have it, is none."""
    inks = cycle(INKS)
    for source, record in zip(sources, records, strict=True):
        pairs: dict[tuple[int, int | None], list[str]] = {}
        boxes = [] if record is None else record["boxes"]
        for hoi in [] if record is None else choice.triplets(record, scored=source.scored):
            pairs.setdefault((hoi["subject"], hoi["object"]), []).append(_label(hoi, record, scored=source.scored))
        made = [
            Pair(boxes[subject], None if object_ is None or not any(boxes[object_]) else boxes[object_], labels)
            for (subject, object_), labels in pairs.items()
        ]
        yield Layer(source.name, next(inks) if source.scored else TRUTH_INK, made)


def _label(hoi: Record, record: Record | None, *, scored: bool) -> str:
    label = None if hoi["object"] is None or record is None else record["labels"][hoi["object"]]
    words = " ".join(str(word) for word in (hoi["verb"], hoi.get("role"), label) if word)
    return f"{words.replace('_', ' ')} {hoi['score']:.2f}" if scored else words.replace("_", " ")


class Files:
    """The image files of a folder by image id: by name without ending, or by the number at the end of the name."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._found: dict[str | int, str] | None = None

    def of(self, image_id: str) -> str | None:
        """The file of an image, None where there is none."""
        if self._found is None:
            self._found = self._index()
        if image_id in self._found:
            return self._found[image_id]
        return self._found.get(int(image_id)) if image_id.isdecimal() and len(image_id) < 19 else None

    def _index(self) -> dict[str | int, str]:
        found: dict[str | int, str] = {}
        try:
            names = sorted(path.name for path in self._folder.iterdir()) if self._folder is not None else []
        except OSError as error:
            raise UsageError(f"{arg('images', self._folder)}: cannot be read ({error.strerror})") from None
        for name in names:
            if name.lower().endswith(ENDINGS):
                found.setdefault(image_id_of(name), name)
                if (number := image_number(image_id_of(name))) is not None:
                    found.setdefault(number, name)
        return found
