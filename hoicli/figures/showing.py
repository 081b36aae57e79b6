"""What `hoicli show` draws, the images and triplets of ground truth and predictions, and where to: a folder of
pictures, or one sheet. Records may have any labels, and there may be no ground truth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, cycle
from pathlib import Path

from hoicli.errors import DataError, UsageError, arg
from hoicli.figures.overlays import INKS, TRUTH_INK, Layer, Overlay, Pair
from hoicli.io.outputs import atomic_folder, check_file, check_made_folder
from hoicli.io.streams import Stream
from hoicli.records.image import NULLS, problems, score_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.names import image_id_of, image_number, number_or_name
from hoicli.records.parsing import Record, dump, is_number, parse

LIST = "shown.jsonl"
"""The file in a folder of pictures that lists which picture is of which image, and which triplets are drawn on it."""
ENDINGS = (".jpg", ".jpeg", ".png")
"""The endings of image files that are found by image id."""


@dataclass
class Source:
    """Ground truth or the predictions of a model, as a stream of records. name: what pictures call it; scored: whether
    it has predictions; records_kept: the records of images that may be drawn, by image id (`read`)."""

    name: str
    stream: Stream
    scored: bool
    records_kept: dict[str, Record] = field(default_factory=dict)

    def read(self, image_ids: Sequence[str], limit: int | None, policy: ErrorPolicy) -> None:
        """Read and check all records, and keep those of images that may be drawn: the images in `image_ids`, or if that
        is empty the first `limit` by id (None for all).

        Raises `DataError` for a bad record, unless `policy` skips it, and for an empty stream."""
        register = ImageRegister()
        limit = None if image_ids else limit
        any_sound = False
        for line in self.stream.refuse_empty():  # the stream itself, unless it is empty
            with policy.item():
                record = parse(line)
                record_problems = problems(record, None, scored=self.scored, nulls=NULLS)
                for problem in chain(record_problems, () if self.scored else score_problems(record)):
                    raise problem.error(line.place)
                image_id = str(record["image_id"])
                register.add(image_id, line)
                any_sound = True
                if not image_ids or image_id in image_ids:
                    self.records_kept[image_id] = record
            if limit is not None and len(self.records_kept) > 2 * limit:  # so that memory is bounded
                self._keep_first(limit)
        if limit is not None:
            self._keep_first(limit)
        if not any_sound:
            policy.report(some_left=False)

    def _keep_first(self, count: int) -> None:
        """Drop all records but those of the first `count` images by id."""
        self.records_kept = {image_id: self.records_kept[image_id] for image_id in sorted(self.records_kept)[:count]}


def choose_images(
    sources: Sequence[Source], image_ids: Sequence[str], limit: int | None, top: int | None, folder: Path | None
) -> Iterator[Overlay]:
    """Yield the images to draw, each with what is drawn on it, from sources that were read. These are the images in
    `image_ids`, or if that is empty the first `limit` by id (None for all).

    top: how many predictions of each source are drawn on an image, the best; None for all. folder: of image files, None
    for blank sheets. Raises `DataError` for an image that no source has, and if there is nothing to draw."""
    known_ids = sorted(set(chain.from_iterable(source.records_kept for source in sources)))
    if image_ids:
        missing = [image_id for image_id in image_ids if image_id not in known_ids]
        if missing:
            raise DataError(f"no stream has image {missing[0]!r}; name images as the records do (image_id)")
        known_ids = list(dict.fromkeys(image_ids))
    if not known_ids:
        raise DataError("nothing to draw")
    files = cache(partial(_files_in, folder))  # a function: the folder is only read if a record does not name its file
    for image_id in known_ids[: None if image_ids else limit]:
        records = [source.records_kept.get(image_id) for source in sources]
        file_names = [record["file_name"] for record in records if record and type(record.get("file_name")) is str]
        sizes = [
            (float(record["width"]), float(record["height"]))
            for record in records
            if record and all(is_number(record.get(key)) and record[key] > 0 for key in ("width", "height"))
        ]
        file_name = next(iter(file_names), None) or files().get(image_id) or files().get(number_or_name(image_id))
        boxes = list(chain.from_iterable(record["boxes"] for record in records if record))
        yield Overlay(image_id, next(iter(sizes), None), list(_layers(sources, records, top)), file_name, boxes)


def _layers(sources: Sequence[Source], records: Sequence[Record | None], top: int | None) -> Iterator[Layer]:
    """Yield what each source has of one image. records: the image's record in each source, None if it has none; top:
    how many predictions of each source to draw, None for all. Triplets of the same pair of boxes are joined to one pair
    with several labels. An object box of zeros means there is no object, as in official V-COCO detections."""
    inks = cycle(INKS)
    for source, record in zip(sources, records, strict=True):
        labels_of_pairs: dict[tuple[int, int | None], list[str]] = {}  # by the indices of the boxes
        record = record or {"boxes": [], "hois": []}
        boxes, hois = record["boxes"], record["hois"]
        if source.scored:
            hois = sorted(hois, key=lambda hoi: -hoi["score"])[:top]  # equal scores in the record's order
        for hoi in hois:
            labels = labels_of_pairs.setdefault((hoi["subject"], hoi["object"]), [])
            labels.append(_triplet_label(hoi, record, scored=source.scored))
        pairs = []
        for (subject, object_), labels in labels_of_pairs.items():
            object_box = None if object_ is None or not any(boxes[object_]) else boxes[object_]
            pairs.append(Pair(boxes[subject], object_box, labels))
        yield Layer(source.name, next(inks) if source.scored else TRUTH_INK, pairs)


def _triplet_label(hoi: Record, record: Record, *, scored: bool) -> str:
    """Return what is written of a triplet: the subject unless it is a person, verb, role, object and, if `scored`, the
    score. hoi: the triplet, a dict in the record's `hois`."""
    subject = record["labels"][hoi["subject"]]
    object_ = None if hoi["object"] is None else record["labels"][hoi["object"]]
    named_subject = None if subject == "person" else subject
    names = " ".join(str(name) for name in (named_subject, hoi["verb"], hoi.get("role"), object_) if name)
    text = names.replace("_", " ")
    return f"{text} {hoi['score']:.2f}" if scored else text


def _files_in(folder: Path | None) -> dict[str | int, str]:
    """Return the names of the image files in a folder (None: there is none) by image id: by the name without its
    ending, and also by the number at its end (42 for COCO_val2014_000000000042.jpg). Raises `UsageError` if the folder
    cannot be read."""
    file_of_image: dict[str | int, str] = {}
    try:
        names = sorted(path.name for path in folder.iterdir()) if folder is not None else []
    except OSError as error:
        raise UsageError(f"{arg('images', folder)}: cannot be read ({error.strerror})") from None
    for name in names:
        if name.lower().endswith(ENDINGS):
            file_of_image.setdefault(image_id_of(name), name)
            if (number := image_number(image_id_of(name))) is not None:
                file_of_image.setdefault(number, name)
    return file_of_image


def is_sheet(path: str) -> bool:
    """Return whether -o names one sheet (.png), and not a folder of pictures. Raises `UsageError` for the ending of
    another kind of file."""
    ending = Path(path).suffix.lower()
    if path == "-" or ending in (".html", ".htm", ".jpg", ".jpeg", ".svg", ".pdf", ".jsonl", ".gz"):
        raise UsageError(f"-o {path}: give a name in .png for one sheet, or a folder for pictures")
    return ending == ".png"


def check_shown(path: str, option: str) -> None:
    """Raise `UsageError` if the sheet or the folder `path` cannot be written, such as a folder with other files than
    pictures of an earlier run, and without Pillow. option: the option that named it."""
    (check_file if is_sheet(path) else check_made_folder)(path, option)
    if find_spec("PIL") is None:
        raise UsageError("show needs Pillow: pip install 'hoicli[images]'", code="missing-package")


def picture_names(image_ids: Sequence[str]) -> list[str]:
    """Return a file name for each image, made from its id. An id may hold anything, so only letters, digits and ._- are
    kept. All names differ, also on file systems that ignore case."""
    taken: set[str] = set()
    names = []
    for image_id in image_ids:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", image_id)[:100].lstrip(".") or "image"
        name, number = stem, 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        names.append(f"{name}.png")
    return names


def write_pictures(path: str, overlays: Sequence[Overlay], pictures: Iterable[bytes]) -> None:
    """Write a folder with a PNG file for each image and the file LIST, completely or not at all. overlays: the images;
    pictures: the bytes of their PNG files, in the same order. Raises `UsageError` for a folder with other files."""
    check_made_folder(path, "-o")
    names = picture_names([overlay.image_id for overlay in overlays])
    with atomic_folder(path) as folder:
        lines = []
        for name, overlay, data in zip(names, overlays, pictures, strict=True):
            (folder / name).write_bytes(data)
            labels_of_layers = {}
            for layer in overlay.layers:
                labels_of_layers[layer.name] = list(chain.from_iterable(pair.labels for pair in layer.pairs))
            lines.append(dump({"image_id": overlay.image_id, "file": name, "drawn": labels_of_layers}))
        (folder / LIST).write_bytes(b"".join(lines))
