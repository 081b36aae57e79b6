"""What `convert` changes in ground truth: it leaves out a split's unseen classes, or scales boxes to another size."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hoicli.converters.context import Context
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.parsing import Record, is_number
from hoicli.vocabulary.labels import Vocabulary

_IN_PIXELS = frozenset({"segmentations", "masks", "pixelated"})
"""Fields of records, beside boxes, that are in pixels of the image: what `mask` reads and writes."""


@dataclass(frozen=True)
class Changes:
    """The changes that options of `convert` ask for. split: a zero-shot split whose unseen classes are left out, "" for
    none. whole_pairs: whether the other triplets of a pair of boxes with an unseen class are left out, too. size: that
    boxes are scaled to, None to leave them."""

    split: str = ""
    whole_pairs: bool = False
    size: tuple[int, int] | None = None

    @classmethod
    def from_options(cls, split: str | None, whole_pairs: bool, resize: int | str | None) -> Changes:
        """Return the changes for --split, --whole-pairs and --resize. Raises `UsageError` for bad ones."""
        if whole_pairs and not split:
            raise UsageError(f"{arg('whole_pairs')}: goes with {arg('split')}, which names the unseen classes")
        if resize is None:
            return cls(split or "", whole_pairs)
        numbers = re.fullmatch(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?", str(resize), re.ASCII)
        if not numbers:
            raise UsageError(f"{arg('resize', resize)}: give a side of the pictures in pixels, or two as in 768x512")
        width, height = numbers[1], numbers[2] or numbers[1]
        return cls(split or "", whole_pairs, (int(width), int(height)))

    def apply(self, record: Record, context: Context, place: str) -> Record | None:
        """Return the record with the changes, None if it has no triplet left. What is left out is counted in the
        context. Raises `DataError` for predictions, and for an image without a size that is to be scaled."""
        if not self.split and self.size is None:
            return record
        if any("score" in hoi for hoi in record.get("hois", ())):
            option = arg("split") if self.split else arg("resize")
            raise DataError(f"predictions; {option} changes ground truth alone", field="hois")
        if self.size is not None:
            for key in sorted(_IN_PIXELS & record.keys()):
                context.drop(f"{key} (in pixels of the original image)", place)
            record = _resize({key: value for key, value in record.items() if key not in _IN_PIXELS}, self.size)
        return self._leave_out_unseen(record, context, place) if self.split else record

    def _leave_out_unseen(self, record: Record, context: Context, place: str) -> Record | None:
        """Return the record without triplets and image-level labels of unseen classes; None if no triplet is left."""
        name = context.vocabulary.split(self.split)
        unseen = context.vocabulary.unseen[name]
        ids = [_class_id(context.vocabulary, hoi["verb"], record["labels"][hoi["object"]]) for hoi in record["hois"]]
        pairs = {
            (hoi["subject"], hoi["object"]) for hoi, number in zip(record["hois"], ids, strict=True) if number in unseen
        }
        hois = []
        for hoi, number in zip(record["hois"], ids, strict=True):
            if number in unseen:
                context.drop(f"triplets of unseen classes of {name}", place)
            elif self.whole_pairs and (hoi["subject"], hoi["object"]) in pairs:
                context.drop(f"other triplets of pairs with unseen classes of {name}", place)
            else:
                hois.append(hoi)
        if not hois:
            context.drop("images without a triplet of a seen class", place)
            return None
        record = {**record, "hois": hois}
        for key in ("image_hois", "ambiguous_hois"):
            if key in record:
                record[key] = [pair for pair in record[key] if _class_id(context.vocabulary, *pair) not in unseen]
        return record


def _class_id(vocabulary: Vocabulary, verb: str, label: str) -> int | None:
    """Return the id of a class of the dataset, None for labels that are none of its classes."""
    try:
        return vocabulary.interaction_id(verb, label)
    except KeyError:
        return None


def _resize(record: Record, size: tuple[int, int]) -> Record:
    """Return the record with each box scaled from the image's size to `size`, width and height each by its own factor,
    and cut off to whole pixels (jiuntian/interactdiffusion id_prepare_inference.ipynb)."""
    width, height = (record.get(key) or 0 for key in ("width", "height"))
    if not (is_number(width) and is_number(height) and width > 0 and height > 0):
        raise DataError(f"missing; {arg('resize')} scales boxes from the image's size", field="width, height")
    sides = (width, height, width, height)
    targets = (*size, *size)

    def scale(box: list[float]) -> list[int]:
        """Return a box in pixels of the new size."""
        return [int(target * x / side) for x, side, target in zip(box, sides, targets, strict=True)]

    boxes = list(map(scale, record["boxes"]))
    return {**record, "width": size[0], "height": size[1], "boxes": boxes}
