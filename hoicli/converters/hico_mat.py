"""anno_bbox.mat of HICO-DET, with anno.mat for the image-level labels: the original files of its ground truth.

    bbox_test, bbox_train   struct arrays: filename, size{width, height, depth}, hoi[]{id, bboxhuman[], bboxobject[],
                            connection n x 2, invis}; a box is {x1, x2, y1, y2}, in this order
    anno_test, anno_train   600 x N: 1 (it happens in the image), -1, 0 or NaN; list_test, list_train: the N file names
    list_action             600 structs with nname (the object), vname (the verb) and more

Boxes are 1-based inclusive: 1 is subtracted from all four numbers. HOI ids (1-600) and connections (human, object) are
1-based. Fields are taken by name, the columns of anno.mat by file name, and list_action must agree with the vocabulary.
An interaction with invis = 1 has no visible instance: it becomes an image-level label and no triplet. Without anno.mat
the image-level labels are those of the annotated interactions, and the records have the caveat `derived_labels`.
anno.mat by itself is HICO's ground truth of whole images: records without boxes, with the caveat `whole_image`, whose
`ambiguous_hois` are the labels that are 0, neither positive nor negative.
`--part` picks one half of both files. Equal boxes of one label are merged; nothing else is left out.

anno_list.json of no_frills_hoi_det holds the same as one JSON list of both splits:

    {"global_id", "image_path_postfix": "test2015/HICO_test2015_00000001.jpg", "image_size": [H, W, C], "hois": [{"id",
     "human_bboxes", "object_bboxes", "connections", "invis"}], "pos_hoi_ids", "neg_hoi_ids"}

Its boxes are 0-based inclusive already and not shifted, HOI ids are the texts "001" to "600", and connections 0-based.

Read by the code of ywchao/ho-rcnn (evaluation/eval_one.m) and BigRedT/no_frills_hoi_det (data/hico/mat_to_json.py).
The readers raise `DataError`, with places in MATLAB's spelling: bbox_test(12).hoi(1).id counts from 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from hoicli.converters.containers.matfile import Cells, Numbers, Structs, load, variables
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, image_record, run_step
from hoicli.converters.numbers import corners, finite_list
from hoicli.errors import DataError, arg
from hoicli.records.caveats import DERIVED_LABELS, WHOLE_IMAGE
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary, normalise

BOX_VARIABLES = ("bbox_test", "bbox_train")
LABEL_VARIABLES = ("anno_test", "anno_train", "list_test", "list_train", "list_action")

Box = list[float]
T = TypeVar("T")


def sniff(source: Source) -> bool:
    """Return whether a file is a MATLAB file with one of the variables of anno_bbox.mat or anno.mat."""
    return source.kind == "mat" and not {*BOX_VARIABLES, *LABEL_VARIABLES}.isdisjoint(variables(source))


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of the context's split in HICO-DET's MATLAB files, also for images without a box.
    The two files may come in either order; anno.mat by itself gives records without boxes."""
    file_of = _files_by_variable([source, *source.companions])
    if file_of.keys().isdisjoint(BOX_VARIABLES):  # anno.mat by itself
        yield from _whole_images(file_of, source, context)
        return
    variable = f"bbox_{context.split}"
    rows = _images(file_of, variable, context)
    labels = _image_labels(file_of, context)

    def build(row: tuple[Any, Any, Any]) -> Record:
        """Return the record of an image. row: the values of the fields filename, size and hoi of its struct."""
        file_name, size, hoi_structs = row
        if labels is not None and file_name not in labels:
            listed = f"list_{context.split} of {file_of[f'list_{context.split}'].name}"
            raise DataError(f"{file_name!r} is not in {listed}; give two files of one release", field=".filename")
        image = _Image(context.vocabulary)
        hois = _rows(hoi_structs, ("id", "bboxhuman", "bboxobject", "connection", "invis"), ".hoi")
        for number, hoi in enumerate(hois, start=1):
            _add_hoi(image, hoi, f".hoi({number})")
        ((width, height),) = _rows(size, ("width", "height"), ".size")
        if labels is not None:
            return image.record(file_name, _number(width), _number(height), labels[file_name].happening)
        # without anno.mat the image-level labels are the annotated interactions; a caveat of the record says so
        derived_record = image.record(file_name, _number(width), _number(height), image.interactions)
        return {**derived_record, "caveats": [DERIVED_LABELS]}

    items = ((f"{variable}({number})", row) for number, row in enumerate(rows, start=1))
    yield from context.each(items, build, file_of[variable])


def _whole_images(file_of: dict[str, Source], source: Source, context: Context) -> Iterator[Record]:
    """Yield the records of anno.mat by itself: image-level labels without boxes. file_of: the file of each variable."""
    labels = _image_labels(file_of, context) or {}
    context.announce(
        f"{source.name}: labels of whole images, without boxes ({arg('protocol', 'hico-image')}, hico-image-ko)"
    )

    def build(item: tuple[str, _Labels]) -> Record:
        """Return the record of an image. item: its file name and its labels."""
        file_name, image_labels = item
        happening, unclear = (_name_interactions(ids, context.vocabulary) for ids in image_labels)
        return image_record(file_name, (), (), (), image_hois=happening, ambiguous_hois=unclear, caveats=[WHOLE_IMAGE])

    items = ((f"list_{context.split}({number})", item) for number, item in enumerate(labels.items(), start=1))
    yield from context.each(items, build, source)


class _Labels(NamedTuple):
    """The image-level labels of an image, as ascending ids: what is seen in it, and what is not agreed on."""

    happening: list[int]
    ambiguous: list[int]


def _name_interactions(interactions: Iterable[int], vocabulary: Vocabulary) -> list[list[str]]:
    """Return interactions as lists of [verb, object], from their 0-based ids."""
    return [list(vocabulary.interactions[index]) for index in interactions]


class _Image:
    """Collects what HICO-DET annotates in one image. table: the boxes and triplets. interactions: the 0-based ids of
    all annotated interactions. invisible: those of the interactions that happen, but have no box."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Begin without annotations. vocabulary: the dataset that interactions are numbered in."""
        self.table, self.interactions, self.invisible = BoxTable(), set[int](), set[int]()
        self._vocabulary = vocabulary

    def interaction_id(self, number: Any, field: str) -> int:
        """Return the 0-based id of the interaction that the file calls `number`, from 1. Raises `DataError`."""
        return entry(range(len(self._vocabulary.interactions)), number, field, base=1)

    def add(
        self, interaction: int, people: list[Box], objects: list[Box], pairs: Iterable[tuple[str, Any]], base: int
    ) -> None:
        """Add the boxes and triplets of one interaction to the image. pairs: (place in the file, (index among people,
        index among objects)). base: of these indices."""
        verb, label = self._vocabulary.interactions[interaction]
        for field, (person, object_) in pairs:
            person_box = entry(people, person, field, base=base)
            self.table.pair(person_box, entry(objects, object_, field, base=base), label, verb=verb)
        for name, boxes in ((SUBJECT, people), (label, objects)):
            for box in boxes:  # boxes without a connection are kept, too
                self.table.add(box, name)

    def record(self, file_name: str, width: float, height: float, labels: Iterable[int]) -> Record:
        """Return the image's record. Its image-level labels are the interactions in `labels` (0-based ids) and the
        invisible ones. Raises `DataError` for an image with triplets but no such label."""
        image_hois = _name_interactions(sorted({*labels, *self.invisible}), self._vocabulary)
        if self.table.hois and not image_hois:
            raise DataError("has triplets, but by its labels nothing happens in it; give files of one release")
        size = {"width": width, "height": height}
        return image_record(file_name, head=size, **self.table.columns, image_hois=image_hois)


def _add_hoi(image: _Image, row: tuple[Any, ...], field: str) -> None:
    """Add one annotated interaction of anno_bbox.mat to an image. row: the values of its struct, as in `read`."""
    number, human_structs, object_structs, connection, invis = row
    interaction = image.interaction_id(_number(number), f"{field}.id")
    image.interactions.add(interaction)
    if _number(invis):
        image.invisible.add(interaction)
        return
    people, objects = _boxes(human_structs, f"{field}.bboxhuman"), _boxes(object_structs, f"{field}.bboxobject")
    pairs = enumerate(_pairs(connection, f"{field}.connection"), start=1)
    image.add(interaction, people, objects, ((f"{field}.connection({line},:)", pair) for line, pair in pairs), base=1)


def _boxes(value: Any, field: str) -> list[Box]:
    """Return the boxes of a MATLAB struct array, whose fields count pixels from 1, as 0-based [x1, y1, x2, y2]."""
    return [[_number(side) - 1 for side in box] for box in _rows(value, ("x1", "y1", "x2", "y2"), field)]


def _pairs(value: Any, field: str) -> list[tuple[float, float]]:
    """Return (human's number, object's number) of each row of a connection matrix [n, 2]. Raises `DataError`."""
    if not isinstance(value, Numbers) or (value.data and value.shape[1:] != (2,)):
        raise DataError("is no n x 2 matrix; fetch the file again", field=field)
    numbers = value.flat()  # MATLAB stores a matrix column by column: first all humans, then all objects
    half = len(numbers) // 2
    return list(zip(numbers[:half], numbers[half:], strict=True))


def _number(value: Any) -> float:
    """Return the number in a 1 x 1 matrix. MATLAB's numbers are doubles, so 640.0 becomes 640."""
    (number,) = value.flat()
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _rows(value: Any, names: Sequence[str], field: str) -> list[tuple[Any, ...]]:
    """Return the structs of a MATLAB struct array as tuples of the values of the fields `names`; an empty list for
    MATLAB's []. field: where the array is, for messages. Raises `DataError` if a field is missing."""
    if isinstance(value, Numbers) and not value.data:
        return []
    present = value.names if isinstance(value, Structs) else ()
    missing = [name for name in names if name not in present]
    if missing:
        has = f"only {', '.join(map(repr, present))}" if present else "it is no struct"
        raise DataError(f"has no field {missing[0]!r} ({has}); is this HICO-DET's file?", field=field)
    if present == tuple(names):
        return list(value.rows)
    columns = [present.index(name) for name in names]
    return [tuple([row[index] for index in columns]) for row in value.rows]


def _files_by_variable(sources: list[Source]) -> dict[str, Source]:
    """Return the file of each MATLAB variable. Raises `DataError` for a file without any, and for repeated ones."""
    file_of: dict[str, Source] = {}
    for source in sources:
        variable_names = variables(source) if source.kind == "mat" else {}
        variables_here = {name: source for name in variable_names if name in BOX_VARIABLES or name in LABEL_VARIABLES}
        if not variables_here:
            raise DataError("is neither anno_bbox.mat nor anno.mat; convert it by itself", place=source.name)
        if twice := variables_here.keys() & file_of.keys():
            name = min(twice)
            raise DataError(f"{name} is in {file_of[name].name} too; give each file once", place=source.name)
        file_of |= variables_here
    return file_of


def _images(file_of: dict[str, Source], name: str, context: Context) -> list[tuple[Any, ...]]:
    """Return (filename, size, hoi) of each image in a variable. Raises `DataError` if no file has the variable."""
    if name not in file_of:
        other = next(other for other in BOX_VARIABLES if other in file_of)
        split = other.removeprefix("bbox_")
        raise DataError(
            f"has no {name}, only {other}; {context.how_to_take(split)} takes it", place=file_of[other].name
        )
    return _load_variable(file_of, name, lambda value: _rows(value, ("filename", "size", "hoi"), name))


def _image_labels(file_of: dict[str, Source], context: Context) -> dict[str, _Labels] | None:
    """Return the image-level labels of each image of the split by file name; None without anno.mat, as a note says.
    Raises `DataError` for an anno.mat that lacks a variable, or whose interactions are not the dataset's."""
    split, other = ("test", "train") if context.split == "test" else ("train", "test")
    taken = f"anno_{split}" if file_of.keys().isdisjoint(BOX_VARIABLES) else f"bbox_{split}"
    context.announce(f"taking {taken}, the {split} split; {context.how_to_take(other)} takes the other")
    label_file = next((file_of[name] for name in LABEL_VARIABLES if name in file_of), None)
    if label_file is None:
        context.announce(
            "no anno.mat: image-level labels come from the annotated interactions and may be incomplete; "
            "give both files, as anno_bbox.mat,anno.mat"
        )
        return None
    list_name, anno_name = f"list_{split}", f"anno_{split}"
    for name in ("list_action", list_name, anno_name):
        if name not in file_of:
            raise DataError(f"has no {name}; give the anno.mat of HICO-DET", place=label_file.name)
    # the rows of the labels are the dataset's interactions in its order, which this list has to show
    check_list = partial(_check_actions, vocabulary=context.vocabulary)  # returns None
    _load_variable(file_of, "list_action", check_list)
    files = _load_variable(file_of, list_name, lambda value: _file_names(value, list_name))
    shape = (len(context.vocabulary.interactions), len(files))
    return _load_variable(file_of, anno_name, lambda value: _labels(value, files, shape, anno_name))


def _check_actions(actions: Any, vocabulary: Vocabulary) -> None:
    """Raise `DataError` unless list_action has the interactions of the vocabulary in the same order."""
    rows = _rows(actions, ("vname", "nname"), "list_action")
    actions_listed = [" ".join(normalise(str(text)) for text in texts) for texts in rows]
    expected = [" ".join(pair) for pair in vocabulary.interactions]
    if actions_listed != expected:
        first_different = next(
            hoi for hoi, (action, other) in enumerate(zip_longest(actions_listed, expected), start=1) if action != other
        )
        problem = f"is not interaction {first_different} of {vocabulary.name}; give the anno.mat of HICO-DET"
        raise DataError(problem, field=f"list_action({first_different})")


def _file_names(value: Any, field: str) -> list[str]:
    """Return the file names in a MATLAB cell array. Raises `DataError` for other content and for a repeated name."""
    names: list[str] = value.items if isinstance(value, Cells) else []
    if not names or {*map(type, names)} != {str}:
        raise DataError("is no list of file names; fetch the file again", field=field)
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise DataError(f"{twice!r} occurs twice, so its column is not known; fetch the file again", field=field)
    return names


def _labels(matrix: Any, files: list[str], shape: tuple[int, int], field: str) -> dict[str, _Labels]:
    """Return the image-level labels of each image, by file name. matrix: [interactions, images], in which 1 means that
    the interaction happens in the image, 0 that it is ambiguous, -1 that it does not happen, and NaN that nobody
    looked."""
    if not isinstance(matrix, Numbers) or matrix.shape != shape:
        problem = f"is no matrix of {shape[0]} interactions by {shape[1]} names ({field.replace('anno', 'list')})"
        raise DataError(f"{problem}; fetch the file again", field=field)
    by_image = matrix.array().T
    happening, ambiguous = by_image == 1, by_image == 0
    return {
        name: _Labels(happening[image].nonzero()[0].tolist(), ambiguous[image].nonzero()[0].tolist())
        for image, name in enumerate(files)
    }


def _load_variable(file_of: dict[str, Source], name: str, understand: Callable[[Any], T]) -> T:
    """Return what the function `understand` makes of a MATLAB variable. Its errors get the name of the file."""
    return run_step(lambda: understand(load(file_of[name], name)), file_of[name], "")


def read_list(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of the context's split in anno_list.json. Raises `DataError` if there is none."""
    images_in_split = Counter[bool]()  # how many images are of the context's split (True), and of the other (False)

    def build(item: dict[str, Any]) -> Record | None:
        """Return the record of an image, or None for one of the other split."""
        path = item.get("image_path_postfix")
        in_split = not isinstance(path, str) or path.startswith(context.split)  # what is no path is refused below
        images_in_split[in_split] += 1
        if not in_split:
            return None
        height, width = item["image_size"][:2]
        image = _Image(context.vocabulary)
        _add_listed_pairs(image, item["hois"])
        numbers = enumerate(item["pos_hoi_ids"])
        positive = [image.interaction_id(number, f".pos_hoi_ids[{index}]") for index, number in numbers]
        first_folder, _, path_below = item["image_path_postfix"].partition("/")
        return image.record(path_below or first_folder, width, height, positive)

    yield from context.each(source.items(), build, source)
    option = context.how_to_take("train" if context.split == "test" else "test")
    taken, others = images_in_split[True], images_in_split[False]
    if others and not taken:
        problem = f"none of its {others:,} images is of the {context.split} split (image_path_postfix); see {option}"
        raise DataError(problem, place=source.name)
    if others:
        context.announce(f"taking the {context.split} split: {taken:,} images; {option} takes the other {others:,}")


def _add_listed_pairs(image: _Image, hois: list[dict[str, Any]]) -> None:
    """Add the boxes and triplets of an image in anno_list.json; an interaction that is invisible has none."""
    for index, hoi in enumerate(hois):
        field = f".hois[{index}]"
        interaction = image.interaction_id(hoi["id"], f"{field}.id")
        if hoi["invis"]:
            image.invisible.add(interaction)
            continue
        people, objects = (_listed_boxes(hoi[key], f"{field}.{key}") for key in ("human_bboxes", "object_bboxes"))
        pairs = [(f"{field}.connections[{position}]", pair) for position, pair in enumerate(hoi["connections"])]
        image.add(interaction, people, objects, pairs, base=0)


def _listed_boxes(boxes: list[Any], field: str) -> list[Box]:
    """Return a list of boxes in anno_list.json after a check that each has four finite numbers."""
    return [finite_list(corners(box, f"{field}[{index}]"), f"{field}[{index}]") for index, box in enumerate(boxes)]
