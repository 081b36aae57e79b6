"""From paths to checked records: detect each file's format, read it, and check its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from math import isfinite
from operator import itemgetter
from typing import Any

from hoicli.converters.changes import Changes
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, list_words, run_step, write_listing
from hoicli.converters.formats import FORMATS, NUMBERED, NUMBERED_BY, Format, detect
from hoicli.converters.image_ids import identify_images
from hoicli.errors import DataError, Place, UsageError, arg
from hoicli.io.messages import Progress, note
from hoicli.io.opened_files import parts_of
from hoicli.records.caveats import LAST_PIXELS
from hoicli.records.image import problems
from hoicli.records.names import is_blank
from hoicli.records.parsing import Record, dump
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary


class Conversion:
    """One run of `convert`: `convert_files` reads, then `report` says what was read. _named_format: the format to read,
    None to detect it. _target: the format to write, None for records. _holds: what the files so far hold, such as
    "predictions". _any_names: whether the last file states its labels, so that they can be any."""

    def __init__(
        self,
        context: Context,
        source_format: str | None = None,
        dataset: str | None = None,
        *,
        fixed: bool = False,
        changes: Changes | None = None,
    ) -> None:
        """Check that the formats and options fit each other, and begin with all counts 0.

        context: the settings; its dataset changes to the files' own if `dataset` is None and not `fixed`.
        source_format: a name in FORMATS, None to detect each file's. dataset: the value of --dataset. fixed: whether a
        command works in the context's dataset only, so that files of another dataset are refused. Raises `UsageError`
        for a format that is only read or only written, and for an option that it does not have."""
        self._context = context
        self._named_format = None if source_format is None else FORMATS[source_format]
        self._target = FORMATS[context.target] if context.target else None
        if self._named_format and not self._named_format.reads:
            raise UsageError(f"{arg('from_', source_format)}: it is only written")
        if self._target and not self._target.writes:
            raise UsageError(f"{arg('to', context.target)}: it is only read")
        if self._named_format:
            self._check_options(self._named_format)
        self._dataset = dataset
        self._fixed = fixed
        self._changes = changes
        self._read: list[str] = []
        self._holds = ""
        self._any_names = False
        self._counts = {"images": 0, "boxes": 0, "triplets": 0, "pairs": 0}

    def convert_files(self, paths: list[str], progress: Progress) -> Iterator[tuple[str, Record, bytes]]:
        """Yield (file, record, its line of JSON) for each valid record in the files. Its numbers are finite, its
        indices in range, its image new, its texts can be JSON. An error goes to the context's policy."""
        file_of_image: dict[str, str] = {}
        for file, record in identify_images(self._read_files(paths), self._context, file_of_image.keys()):
            image_id = str(record["image_id"])
            place = Place.in_file(file, f"image {image_id}")
            try:
                self._check(record)
                if image_id in file_of_image:
                    raise DataError(self._describe_twice(file, file_of_image[image_id]))
                file_of_image[image_id] = file
                changed = self._changes.apply(record, self._context, place) if self._changes else record
                if changed is None:
                    continue
                record = changed
                line = dump(record)
            except DataError as error:
                self._context.policy.handle(DataError(error.problem, place=place, field=error.field, code=error.code))
                continue
            # predictions whose x2, y2 are last pixels: a written file has no place to say so
            if LAST_PIXELS in (record.get("caveats") or ()) and self._context.target:
                self._context.drop(f"the caveat {LAST_PIXELS}: boxes are written as they are", place)
            for kind, key in (("boxes", "boxes"), ("triplets", "hois"), ("pairs", "pairs")):
                self._counts[kind] += len(record.get(key, ()))
            self._counts["images"] += 1
            progress.advance()
            yield file, record, line
        if not self._counts["images"]:  # before a file that is written takes its name
            self._context.policy.report(some_left=False)

    def _describe_twice(self, file: str, first_file: str) -> str:
        """Return the message that an image of `file` is in `first_file` already, which may be the same."""
        path_may_help = self._context.id_rule in ("name", "number") or self._context.format == "vlm"
        advice = f", or give {arg('id_', 'path')}" if path_may_help else ""
        if first_file == file:
            return f"occurs twice in the source; keep one of the two{advice}"
        two_models = "for two models: hoicli compare, or one run each"
        return f"is in {first_file} already; keep one of the two{advice} (all files are read as one; {two_models})"

    def report(self) -> None:
        """Print to stderr what was assumed, converted and left out, and write the file of --left-out."""
        totals = ", ".join(f"{count:,} {what}" for what, count in self._counts.items() if count or what != "pairs")
        for text in (*self._context.notes, f"converted {', '.join(self._read)}: {totals}"):
            note(text)
        self._context.policy.report()
        for reason, (count, place) in self._context.dropped.items():
            words = self._context.dropped_words.get(reason)
            quoted = f": {list_words(words, 'left_out')}" if words else ""
            note(f"left out: {reason}: {count:,} (the first: {place}){quoted}")
        if self._context.left_out_file:
            write_listing(self._context.left_out_file, self._context.left_out)

    def _read_files(self, paths: list[str]) -> Iterator[tuple[str, Record]]:
        """Yield (file name, record) for each image of all paths, not checked yet. A format that needs several files
        (`Format.joint`) takes all later paths together with its first."""
        sources = [Source(part) for part in chain.from_iterable(parts_of(path) for path in paths)]
        while sources:
            source = sources.pop(0)
            file_format = self._choose_format(source)
            if file_format.joint:
                source.companions, sources = sources, []
            owner = f" of {file_format.owner}" if file_format.owner else ""
            self._read.append(f"{source.name} as {file_format.name}{owner} ({file_format.holds})")
            records = self._check_first_records(file_format, source, file_format.read(source, self._context))
            while (record := run_step(partial(next, records, None), source)) is not None:
                yield source.name, record

    def _choose_format(self, source: Source) -> Format:
        """Return the format of a file, from --from or detected, and set what the context says of it. Raises `DataError`
        or `UsageError` if it does not fit the files before it, the written format, or the options."""
        file_format = self._named_format or FORMATS[run_step(partial(detect, source), source)]
        self._context.format = file_format.name
        if self._holds not in ("", file_format.holds):
            problem = f"holds {file_format.holds} ({file_format.name}), and the path before it {self._holds}"
            raise DataError(f"{problem}; convert them one at a time", place=source.name)
        self._holds = file_format.holds
        self._settle_dataset(file_format, source)

        # Any label is accepted if the user named no dataset, and the files (read and written) state their labels.
        foreign_formats = [each for each in (file_format, self._target) if each and each.name != "records"]
        labels_stated = bool(foreign_formats) and all(each.named and not each.dataset for each in foreign_formats)
        self._context.open_names = self._dataset is None and labels_stated
        self._any_names = file_format.named and not file_format.dataset
        self._check_options(file_format)
        return file_format

    def _settle_dataset(self, file_format: Format, source: Source) -> None:
        """Set the context's vocabulary to the only one that the file's format or the written format belongs to. Raises
        `DataError` if --dataset names another one, or if the written format cannot hold it."""
        context, target = self._context, self._target
        bound_to = target.dataset if target else ""  # "": files of the written format can be of any dataset
        dataset = file_format.dataset or ("" if self._dataset else bound_to)
        # the format is of another dataset than the one in use: that is an error if somebody named the latter
        if dataset not in ("", context.vocabulary.name) and not _can_hold(file_format, context.vocabulary):
            problem_start = f"is of {dataset} ({file_format.name}), not"
            if self._fixed:
                problem = f"{problem_start} of {context.vocabulary.name}: {arg('dataset', dataset)}"
                raise DataError(problem, place=source.name, code="another-dataset")
            if self._dataset is not None:
                advice = f"leave {arg('dataset')} out, or choose with {arg('from_')}"
                raise DataError(f"{problem_start} {self._dataset}; {advice}", place=source.name, code="another-dataset")
            context.vocabulary = load(dataset)
        vocabulary = context.vocabulary
        # now the written format: one of any dataset holds all but V-COCO's roles
        if target is None or bound_to == vocabulary.name or not (bound_to or vocabulary.roles):
            return
        if not _can_hold(target, vocabulary):
            # "" is a format of any dataset; none of these holds roles
            fitting_datasets = {vocabulary.name} if vocabulary.roles else {vocabulary.name, ""}
            writable = (each for each in FORMATS.values() if each.writes)
            fitting = ", ".join(each.name for each in writable if each.dataset in fitting_datasets)
            problem = f"is of {vocabulary.name}, which {arg('to', target.name)} cannot hold; choose {fitting}"
            raise DataError(problem, place=source.name)

    def _numbers_are_assumed(self, file_format: Format) -> bool:
        """Return whether nobody said that a file's numbers are the dataset's: no dataset was named, or one without
        numbering. False for a format that states labels, and for datasets with roles (V-COCO)."""
        context, vocabulary = self._context, self._context.vocabulary
        if vocabulary.roles or file_format.numbers.isdisjoint({"verbs", "interactions"}):
            return False
        # what the dataset or an option says about numbers, of "verbs", "objects" and "interactions"
        numbered_kinds = {*vocabulary.numbering}
        numbered_kinds |= {kind for kind, option in NUMBERED_BY.items() if option in context.options}
        return self._dataset is None or (
            vocabulary.own and "verbs" in file_format.numbers and not file_format.numbers <= numbered_kinds
        )

    def _check_first_records(self, file_format: Format, source: Source, records: Iterator[Record]) -> Iterator[Record]:
        """Yield all records of a file. If its numbers are only assumed to be the dataset's, look at the first SAMPLE
        records before; raise `DataError` if they show that the file is of another dataset.

        records: those of the file. An error while the first are read is raised after those before it were yielded, as
        it would be without this look."""
        vocabulary = self._context.vocabulary
        first: list[Record] = []
        broken: DataError | None = None  # the error of a bad record
        try:
            for record in islice(records, SAMPLE if self._numbers_are_assumed(file_format) else 0):
                first.append(record)  # noqa: PERF402 (those before a broken one are kept)
        except DataError as error:
            broken = error
        by_pair = "verbs" in file_format.numbers  # else the file numbers interactions, of which every one exists
        can_judge = broken is None or broken.code == "unknown-label"  # other errors say nothing of the numbering
        predicted = file_format.holds == "predictions"
        doubt = _find_doubt(first, vocabulary, predicted=predicted, by_pair=by_pair) if can_judge else ""
        if doubt:
            causes = f"of another dataset (HOI-A's and HOI-W's files look so: {arg('dataset', 'hoia')})"
            if by_pair:
                causes += f", or counted otherwise ({arg('verb_base')}, {arg('object_order')})"
            fix = f"{arg('dataset', vocabulary.name)} takes them as they are"
            if vocabulary.own:
                fix = f"say what a number means in {vocabulary.path} (numbering)"
            raise DataError(f"{doubt}: {causes}? {fix}", place=source.name)
        yield from first
        if broken is not None:
            raise broken
        yield from records

    def _check_options(self, file_format: Format) -> None:
        """Check that a format has all options that the user gave; raise `UsageError` for the first other."""
        for name, value in self._context.options.items():
            if name not in file_format.options:
                fitting = ", ".join(each.name for each in FORMATS.values() if name in each.options)
                option = arg(name, None if value is True else value)
                raise UsageError(f"{option} is not for {file_format.name}, but for {fitting}")

    def _check(self, record: Record) -> None:
        """Raise `DataError` for the first problem of a record, such as a label that the dataset does not have."""
        vocabulary = None if self._context.open_names else self._context.vocabulary
        # The fast check does not look at labels. It suffices where they come from the dataset's own numbering.
        if _passes_fast_check(record) and not (self._any_names and vocabulary):
            return
        scored = any("score" in hoi for hoi in record["hois"])
        for problem in problems(record, vocabulary, scored=scored):
            raise problem.error("")


def _can_hold(file_format: Format, vocabulary: Vocabulary) -> bool:
    """Return whether files of a format that belongs to one dataset can be of another dataset, too: `vocabulary`. They
    can be of the user's own, if they state its labels or number them. They can be of another shipped one that has the
    same verbs, objects and interactions, or that declares what the file's numbers of verbs and objects mean."""
    if vocabulary.roles:  # V-COCO's verbs have roles, for which only its own formats have a place
        return False
    if vocabulary.own and (file_format.numbers or file_format.named):
        return True
    if not file_format.dataset or not file_format.reads:
        return False
    format_vocabulary = load(file_format.dataset)
    if all(getattr(format_vocabulary, kind) == getattr(vocabulary, kind) for kind in NUMBERED):
        return True
    declares_numbers = (
        file_format.numbers == {"verbs", "objects"} and file_format.numbers <= vocabulary.numbering.keys()
    )
    return declares_numbers and not format_vocabulary.roles


def _passes_fast_check(record: Record) -> bool:
    """Return whether a record is good for sure: boxes have four numbers, all are finite, triplets point at boxes, and
    so on. A record that fails it may be valid nevertheless, and is then checked in full."""
    hois, boxes = record["hois"], record["boxes"]
    try:
        # A sum is finite only if all its numbers are, and summing is faster than a look at each.
        numbers = sum(map(sum, boxes)) + record.get("width", 1) + record.get("height", 1)
        for key in ("score", "verb_score"):
            numbers += sum(map(dict.get, hois, repeat(key), repeat(0.0)))
        indices = {*range(len(boxes))}
        in_range = indices.issuperset(map(itemgetter("subject"), hois))
        in_range = in_range and {None, *indices}.issuperset(map(itemgetter("object"), hois))
        has_size = record.get("width", 1) > 0 and record.get("height", 1) > 0
        kinds = {*map(type, chain.from_iterable(boxes)), *map(type, (record.get("width"), record.get("height")))}
        has_id = not is_blank(record["image_id"])
        boxes_fit = {4}.issuperset(map(len, boxes)) and bool not in kinds  # True would count as 1
        return has_id and isfinite(numbers) and in_range and has_size and boxes_fit
    except (TypeError, OverflowError):
        return False


# Whether a file's numbers belong to a dataset, judged from its first records with that dataset's names. Several
# datasets share one layout (HOI-A's and HOI-W's ground truth looks like HICO-DET's in the HOI-A layout), and every
# number of the smaller one is also one of the larger: with the wrong names, "smoke cigarette" becomes "adjust car".

SAMPLE = 200
"""The number of images that are checked; the value is ours."""
IMAGE_NAMES = {"hico": re.compile(r"HICO_(test|train)2015_\d{8}")}
"""The pattern of a dataset's image names, if they identify it."""


def _find_doubt(records: Sequence[Record], vocabulary: Vocabulary, *, predicted: bool, by_pair: bool) -> str:
    """Return the evidence that a file, read with the vocabulary's numbers, is of another dataset; "" for none.

    by_pair: whether the file numbers verbs and objects separately; else only the images' names are evidence. Ground
    truth is of this dataset if more than half of its triplets are among its interactions. Of predictions only the best
    of each image counts, and it is enough if more than half of the images have the dataset's names."""
    names = IMAGE_NAMES.get(vocabulary.name)
    named_count = sum(names is not None and names.fullmatch(str(record["image_id"])) is not None for record in records)
    checked = []
    for record in records:
        hois = record["hois"]
        if predicted and hois:
            hois = [max(hois, key=lambda hoi: float(hoi["score"]))]
        checked += [(record, hoi) for hoi in hois]
    unknown = [(record, hoi) for record, hoi in checked if _names(record, hoi) not in vocabulary.interaction_ids]
    own_images = 2 * named_count > len(records)
    own_pairs = by_pair and 2 * len(unknown) < len(checked)
    if not checked or own_pairs or (own_images and (predicted or not by_pair)):
        return ""
    reasons = []
    if by_pair:
        (record, hoi), kind = unknown[0], "best predictions" if predicted else "triplets"
        example = f"{' '.join(_names(record, hoi))} in {record['image_id']}"
        reasons.append(f"{len(unknown):,} of the first {len(checked):,} {kind} are no interaction ({example})")
    if not own_images and names is not None:
        reasons.append(f"the images have other names ({records[0]['image_id']})")
    return f"read with {vocabulary.title}'s numbers, {' and '.join(reasons)}"


def _names(record: Record, hoi: dict[str, Any]) -> tuple[str, str]:
    """Return (verb, object label) of a triplet."""
    return hoi["verb"], record["labels"][hoi["object"]]
