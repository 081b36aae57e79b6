"""What a ground truth says of its images, as columns: a million of them take some hundred MiB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hoicli.records.kit import Bools, Floats, Growing, Ints, find, starts_of
from hoicli.records.triplets import Numbered
from hoicli.validation.batches import Checked, Size, TripletClass, ascending


@dataclass(frozen=True)
class Facts:
    """N images: their numbers by id; size [N] numbers of `sizes`, -1 where not known; box_start, box_count [N] where
    the boxes of each are among `boxes`; annotated: image * len(classes) + class of every class annotated in an image,
    ascending, where `classes` numbers them; some [N] whether there are any."""

    ids: Mapping[str, int]
    sizes: Sequence[Size]
    size: Ints
    boxes: Floats
    box_start: Ints
    box_count: Ints
    classes: Mapping[TripletClass, int]
    annotated: Ints
    some: Bools

    def size_of(self, image: int) -> Size | None:
        """The size of an image, None where it or the image (-1) is not known."""
        number = -1 if image < 0 else int(self.size[image])
        return None if number < 0 else self.sizes[number]

    def has(self, images: Ints, classes: Ints) -> Bools:
        """Whether the class is annotated in the image, a number of `classes` or -1 in one of `ids`; any shape."""
        keys = images * len(self.classes) + classes
        there: Bools = find(self.annotated, keys.ravel())[1].reshape(keys.shape) & (classes >= 0)
        return there


@dataclass
class Annotations:
    """Gathers the facts of a ground truth, batch by batch; of an image that occurs twice the last ones count."""

    sizes: Numbered[tuple[Size, tuple[type, ...]]] = field(default_factory=Numbered)
    classes: Numbered[TripletClass] = field(default_factory=Numbered)
    records: Growing = field(default_factory=lambda: Growing(image=np.int64, size=np.int64, boxes=np.int64))
    boxes: Growing = field(default_factory=lambda: Growing(box=np.float64))
    pairs: Growing = field(default_factory=lambda: Growing(record=np.int64, class_=np.int64))
    count: int = 0
    """Records."""

    def add(self, batch: Checked, images: Ints, classes: Sequence[Sequence[TripletClass]]) -> None:
        """A batch, the numbers of its images, and by place in `batch.classes` what each class counts as."""
        kept = [-1 if size is None else self.sizes[size, tuple(map(type, size))] for size in batch.sizes]
        counts = np.diff(batch.box_start)
        self.records.add(image=images, size=np.array(kept, dtype=np.int64), boxes=counts)
        self.boxes.add(box=batch.boxes.ravel())
        place = batch.classes[1]
        for names in classes:
            numbers = self.classes.of(names)
            pairs = ascending(batch.image_of_hoi * len(self.classes) + numbers[place])
            record, class_ = np.divmod(pairs, max(len(self.classes), 1))
            self.pairs.add(record=record + self.count, class_=class_)
        self.count += len(images)

    def merge(self, other: Annotations, offset: int) -> None:
        """Add what another part gathered of other images, whose numbers there begin at `offset` here."""
        sizes, classes = self.sizes.of(list(other.sizes)), self.classes.of(list(other.classes))
        size, records, pairs = other.records["size"], other.records, other.pairs
        self.records.add(image=records["image"] + offset, size=np.append(sizes, -1)[size], boxes=records["boxes"])
        self.boxes.add(box=other.boxes["box"])
        self.pairs.add(record=pairs["record"] + self.count, class_=classes[pairs["class_"]])
        self.count += other.count

    def facts(self, ids: Mapping[str, int]) -> Facts:
        """All of it; `ids`: the numbers of the images."""
        image, counts = self.records["image"], self.records["boxes"]
        last = np.zeros(len(ids), dtype=np.int64)
        last[image] = np.arange(len(image))
        record, class_ = self.pairs["record"], self.pairs["class_"]
        kept = last[image[record]] == record
        annotated = ascending(image[record[kept]] * len(self.classes) + class_[kept])
        some = np.zeros(len(ids), dtype=bool)
        some[image[record[kept]]] = True
        return Facts(
            ids=ids,
            sizes=[size for size, _ in self.sizes],
            size=self.records["size"][last],
            boxes=self.boxes["box"].reshape(-1, 4),
            box_start=starts_of(counts)[last],
            box_count=counts[last],
            classes=self.classes,
            annotated=annotated,
            some=some,
        )
