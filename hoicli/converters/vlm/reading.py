"""What vision-language models answered, as predictions: text with JSON in it, tokens with boxes, or a bare phrase.

Rows of an image are taken together. A row says which image it is about (`file_name`, `image_id`, `image_path`, ...)
and holds the answer (`response`, `generated_text`, `text`, `raw_output`, `answer`, ..., as text or parsed already).
Containers:

- JSONL or a list of such rows; OpenAI's batch output ({custom_id, response: {body: {choices}}}); {file name: answer}
- {outputs, preds, gt_paths} of cjw2021/HOI-R1, joined by position
- hoi-benchmarks grounding (SIT-AIGCDesignLab): action, object and predicted_pairs in pixels, or generated_text
- hoi-benchmarks action referring: person_bbox, object_bbox in pixels and a phrase in `prediction`
- {file name: [{obj_class, action, score, sub_bbox, obj_bbox}]} of oriol-rabasseda/mllms-zs-hoi, in pixels

What a box's numbers mean is asked for (`--coords`), unless the row says it (`coords`, as `hoicli prompts` writes it),
the container is one whose boxes are pixels, or the boxes stand in the tokens of InternVL and Qwen2-VL (0-1000); the
last two are announced. Boxes come out in pixels of the original image, as float edges, as the model gave them:
unclipped. `--boxes` gives a detector's boxes, which answers then name by index or by a label that only one box has.

Whatever cannot be read is left out and counted with its first place: a box that is not four numbers or whose corners
are the wrong way round, a verb that is a sentence, a triplet without an object, an answer without anything in it, in
which case its image has no record. A score is there only where the model gave one. Verbs are spelled as in records
(`sit_on`) and otherwise left alone; `--to-vocabulary` maps them, gerunds included, to the dataset's own and leaves out
the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.vlm.claims import PERSONS, Claim, Claims, Place, claims_of, numbers_of
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, parse_frame
from hoicli.converters.vlm.names import label_of, verbs_of
from hoicli.converters.vlm.rows import ANSWER_KEYS, FILE_KEYS, ID_KEYS, content, is_answers, rows
from hoicli.converters.vlm.spelling import Spelling
from hoicli.converters.vlm.text import Mention, mentions_in, values_in
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import read_lines
from hoicli.records.image import problems
from hoicli.records.names import image_id_of, image_number
from hoicli.records.parsing import Record, is_number, parse
from hoicli.vocabulary.labels import SUBJECT

Size = tuple[float, float]
"""(width, height)."""


def sniff(source: Source) -> bool:
    """Rows with answers in a list, HOI-R1's lists, or one row. JSON lines need --from vlm: records look like them."""
    return is_answers(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image that anything could be read of, in the order of first appearance."""
    reader = _Reader(source, context)
    for place, row in rows(source, context):
        try:
            reader.add(row, place)
        except DataError as error:
            context.policy.handle(DataError(error.problem, place=error.place or place, field=error.field))
        except RecursionError:
            context.policy.handle(DataError("is nested too deeply for an answer", place=place))
    yield from reader.records()


@dataclass
class _Image:
    """An image while its answers come in."""

    image_id: str | int
    file_name: str | None
    size: Size | None
    table: BoxTable = field(default_factory=BoxTable)
    hois: dict[tuple[int, int, str], float | None] = field(default_factory=dict)
    shown: Record | None = None
    read: bool = False


class _Reader:
    """Turns rows into images; `records` gives them."""

    def __init__(self, source: Source, context: Context) -> None:
        self._source = source
        self._context = context
        self._frame = parse_frame(context.coords) if context.coords is not None else None
        self._sizes = context.image_sizes
        self._detections = _detections(context)
        self._spelling = Spelling(context.vocabulary) if context.to_vocabulary else None
        self._images: dict[str, _Image] = {}
        self._announced: set[str] = set()
        self._noticed: dict[str, tuple[int, str]] = {}
        self._place = source.name
        self._boxes = 0
        self._outside = (0, "")

    def add(self, row: Any, place: str) -> None:
        """Take up a row. Raises `DataError` for one that is no row, or lacks what is needed to understand it."""
        self._place = place
        if not isinstance(row, dict):
            raise DataError("is no object; each answer is an object with its image and its text")
        image = self._image(row)
        key = next((key for key in ANSWER_KEYS if row.get(key) is not None), None)
        if key is None:
            raise DataError(f"has no answer; put the model's text under {ANSWER_KEYS[0]!r}")
        answer = content(row[key])
        given = [numbers_of(row.get(name)) for name in ("person_bbox", "object_bbox")]
        action = row.get("action") if isinstance(row.get("action"), str) else None
        label = next((row[name] for name in ("object_category", "object") if isinstance(row.get(name), str)), None)
        if given[0] and given[1] and isinstance(answer, str) and not values_in(answer).values:
            self._add_phrase(image, answer, given[0], given[1], label)
            return
        row_frame = self._row_frame(row, key)
        claims, tokens = self._claims(answer, action, label)
        if not claims.understood:
            self._drop("an answer in which nothing can be read")
            return
        image.read = True
        for claim in claims.triplets:
            self._add_claim(image, claim, claims, tokens or row_frame)
        if not claims.triplets and claims.things:
            self._notice("answers that tell of boxes only, which are kept without triplets")
            for box, name in claims.things:
                if (thing := self._thing(box, name, image, tokens or row_frame)) is not None:
                    image.table.add(*thing)

    def records(self) -> Iterator[Record]:
        """The images of which something was read."""
        for what, (count, place) in self._noticed.items():
            self._context.announce(f"{what}: {count:,} (the first: {place})")
        scored = [score is not None for image in self._images.values() for score in image.hois.values()]
        if any(scored) and not all(scored):
            missing = scored.count(False)
            self._context.announce(
                f"{missing:,} of {len(scored):,} triplets have no score, the others do: mAP needs one on each"
            )
        elif scored and not any(scored):
            self._context.announce("the answers give no scores: good for mF1 (hoicli shoe-eval), mAP needs them")
        outside, first = self._outside
        if outside:
            self._context.announce(
                f"{outside:,} of {self._boxes:,} boxes reach over a tenth of a side out of their image (the first: "
                f"{first}): is it another --coords?"
            )
        for image in self._images.values():
            if image.read:
                yield self._record(image)

    # Rows

    def _image(self, row: dict[str, Any]) -> _Image:
        """The image a row is about, made at its first row."""
        file_name = next((row[key] for key in FILE_KEYS if isinstance(row.get(key), str) and row[key]), None)
        given = next((row[key] for key in ID_KEYS if type(row.get(key)) in (str, int)), None)
        stem = image_id_of(file_name) if file_name is not None else None
        image_id: str | int
        if given is None and stem is None:
            raise DataError("names no image; put its file_name or image_id into the row")
        if stem is None or (isinstance(given, int) and image_number(stem) == given):
            image_id = given if given is not None else ""
        elif isinstance(given, str) and "image_id" in row:
            image_id = given
        else:  # a number that is not the image's is a row's number
            image_id = stem
        if isinstance(image_id, str) and image_id.lower().endswith((".jpg", ".jpeg", ".png", ".webp")):
            file_name = file_name or image_id
            image_id = image_id_of(image_id)
        image = self._images.get(str(image_id))
        if image is None:
            base = None if file_name is None else file_name.replace("\\", "/").rsplit("/", 1)[-1]
            image = self._images[str(image_id)] = _Image(image_id, base, self._sizes.get(str(image_id)))
            if self._detections is not None:
                self._show_boxes(image)
        image.size = image.size or _size_of(row)
        return image

    def _show_boxes(self, image: _Image) -> None:
        """Begin the image's boxes with those of --boxes, so that indices mean them."""
        shown = (self._detections or {}).get(str(image.image_id))
        if shown is not None:
            image.shown = shown
            image.size = image.size or _size_of(shown)
            image.file_name = image.file_name or shown.get("file_name")
            image.table.boxes += shown["boxes"]
            image.table.labels += shown["labels"]

    def _row_frame(self, row: dict[str, Any], key: str) -> Frame | None:
        """What the row itself, or the container it comes from, says of its boxes; None where nothing does."""
        if self._frame is not None:
            return self._frame
        if isinstance(row.get("coords"), str):
            return parse_frame(row["coords"], f"{self._place}: coords")
        if key == "predicted_pairs":
            return self._known("pixels", "predicted_pairs of hoi-benchmarks")
        if row.get("of_map") and isinstance(row["response"], list):
            first = row["response"][0] if row["response"] else None
            if isinstance(first, dict) and {"sub_bbox", "obj_bbox"} <= first.keys():
                return self._known("pixels", "sub_bbox and obj_bbox of mllms-zs-hoi")
        return None

    def _known(self, kind: str, what: str) -> Frame:
        if what not in self._announced:
            self._announced.add(what)
            self._context.announce(f"{what}: taken as {kind}; --coords says otherwise")
        return Frame(kind)

    def _claims(self, answer: Any, action: str | None, label: str | None) -> tuple[Claims, Frame | None]:
        """What an answer claims, and the frame of its boxes where its tokens tell."""
        verbs = verbs_of(action, label) if action is not None else []
        if not isinstance(answer, str):
            return claims_of([answer], self._drop, verbs=verbs, label=label), None
        mentions = mentions_in(answer)
        if mentions:
            claims = self._sentences(mentions, verbs if label is not None else [], label)
            return claims, self._frame or self._known("1000", "boxes in <box> or <|box_start|> tokens")
        found = values_in(answer)
        if found.cut:
            self._drop("the unfinished end of an answer that was cut off")
        if found.unended_thought and found.values:
            self._notice("answers whose thought has no end: the last list in it is taken")
        return claims_of(found.values, self._drop, verbs=verbs, label=label), None

    def _sentences(self, mentions: Sequence[Mention], verbs: list[str], label: str | None) -> Claims:
        """Of two things mentioned one after the other the first does to the second what the words between them say."""
        claims = Claims(understood=True)
        index = 0
        while index < len(mentions):
            first, rest = mentions[index], mentions[index + 1 :]
            said = verbs_of(first.after) or verbs
            if rest and said:
                claims.triplets.append(Claim(first.box, rest[0].box, label_of(rest[0].label) or label, tuple(said)))
                index += 2
                continue
            if len(first.box) == 4 and first.label:
                claims.things.append((first.box, label_of(first.label)))
            else:
                self._drop("a box without a name, or that is not four numbers")
            index += 1
        return claims

    def _add_phrase(
        self, image: _Image, answer: str, subject: list[float], thing: list[float], label: str | None
    ) -> None:
        """An action named for two boxes that the row gives, in pixels."""
        claims = claims_of([{"subject": subject, "object": thing, "object_class": label, "verb": answer}], self._drop)
        frame = self._frame or self._known("pixels", "person_bbox and object_bbox of the rows")
        for claim in claims.triplets:
            image.read = True
            self._add_claim(image, claim, claims, frame)

    # Claims

    def _add_claim(self, image: _Image, claim: Claim, claims: Claims, frame: Frame | None) -> None:
        label = self._object_name(claim.label) if claim.label is not None else None
        if claim.label is not None and label is None:
            self._drop("an object outside the vocabulary")
            return
        places = [
            self._located(image, place, name, claims, frame)
            for place, name in ((claim.subject, SUBJECT), (claim.object, label))
        ]
        if None in places:
            return
        subject, thing = (
            place if isinstance(place, int) else image.table.add(*place) for place in places if place is not None
        )
        for said in claim.verbs:
            verb = said if self._spelling is None else self._spelling.verb(said)
            if verb is None:
                self._drop("a verb outside the vocabulary")
            elif (subject, thing, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[subject, thing, verb] = claim.score

    def _object_name(self, name: str) -> str | None:
        spelled = label_of(name)
        return spelled if self._spelling is None else self._spelling.object(spelled)

    def _located(
        self, image: _Image, place: Place, label: str | None, claims: Claims, frame: Frame | None
    ) -> int | tuple[list[float], str] | None:
        """Where a claim's person or object is: the index of a box of the record, or a (box, label) to be added to it.

        None when there is neither, which is reported.
        """
        if isinstance(place, list):
            pixels = self._pixels(place, image, frame)
            if pixels is not None and label is None:
                self._drop("a triplet whose object has no name")
            return None if pixels is None or label is None else (pixels, label)
        if isinstance(place, int):
            return self._indexed(image, place, claims, frame)
        if isinstance(place, str):
            return self._named(image, [label_of(place), *([label] if label is not None else [])], claims, frame)
        self._drop("a triplet without a person or an object, or with a box that is not four numbers")
        return None

    def _indexed(
        self, image: _Image, index: int, claims: Claims, frame: Frame | None
    ) -> int | tuple[list[float], str] | None:
        if claims.listed:
            if 0 <= index < len(claims.things):
                return self._thing(*claims.things[index], image, frame)
        elif self._detections is None:
            raise DataError("names boxes by index; give the boxes that were shown with --boxes FILE")
        elif image.shown is not None and 0 <= index < len(image.shown["boxes"]):
            return index
        self._drop("a triplet with the index of a box that is not there")
        return None

    def _named(
        self, image: _Image, names: Sequence[str], claims: Claims, frame: Frame | None
    ) -> int | tuple[list[float], str] | None:
        """The one box with this name (the first of `names` that any has) in the answer itself, or in --boxes."""
        shown = image.shown["labels"] if image.shown is not None else ()
        for name in names:
            own = [(box, label) for box, label in claims.things if label_of(label) == name]
            if len(own) == 1:
                return self._thing(*own[0], image, frame)
            indices = [index for index, label in enumerate(shown) if label_of(label) == name]
            if len(indices) == 1 and not own:
                return indices[0]
        if self._detections is None and not claims.things:
            self._drop("a triplet without boxes (--boxes FILE gives a detector's)")
        else:
            self._drop("a triplet that names a label of no box, or of several")
        return None

    def _thing(self, box: list[float], name: str, image: _Image, frame: Frame | None) -> tuple[list[float], str] | None:
        """A located thing as a box of the record; a person is one whatever it is called."""
        label = SUBJECT if name in PERSONS else self._object_name(name)
        pixels = self._pixels(box, image, frame)
        if label is None:
            self._drop("an object outside the vocabulary")
        return None if pixels is None or label is None else (pixels, label)

    def _pixels(self, box: Sequence[float], image: _Image, frame: Frame | None) -> list[float] | None:
        """The box in pixels, or None for one that is none."""
        if len(box) != 4:
            self._drop("a box that is not four numbers")
            return None
        if frame is None:
            raise UsageError(
                f"{self._place}: nothing says what the boxes' numbers mean; tell it with --coords: {CONVENTIONS}"
            )
        pixels = frame.to_pixels(box, image.size)
        if pixels[2] < pixels[0] or pixels[3] < pixels[1]:
            self._drop("a box whose second corner lies before its first")
            return None
        self._boxes += 1
        if image.size is not None:
            (width, height), (x1, y1, x2, y2) = image.size, pixels
            if x1 < -0.1 * width or y1 < -0.1 * height or x2 > 1.1 * width or y2 > 1.1 * height:
                self._outside = (self._outside[0] + 1, self._outside[1] or f"{self._place}: {list(box)}")
        return pixels

    def _drop(self, reason: str) -> None:
        self._context.drop(reason, self._place)

    def _notice(self, what: str) -> None:
        """Count something that is read, but should be known."""
        count, first = self._noticed.get(what, (0, self._place))
        self._noticed[what] = (count + 1, first)

    def _record(self, image: _Image) -> Record:
        record: Record = {"image_id": image.image_id}
        if image.file_name is not None:
            record["file_name"] = image.file_name
        if image.size is not None:
            record["width"], record["height"] = image.size
        boxes, labels = image.table.boxes, image.table.labels
        record |= {"boxes": boxes, "labels": labels}
        if image.shown is not None and len(image.shown.get("scores") or ()) == len(boxes):
            record["scores"] = image.shown["scores"]
        record["hois"] = [
            {"subject": subject, "object": thing, "verb": verb, **({} if score is None else {"score": score})}
            for (subject, thing, verb), score in image.hois.items()
        ]
        return record


def _size_of(record: Record) -> Size | None:
    """Width and height of a row or a record, where it has both and they are sizes."""
    width, height = (record[key] if is_number(record.get(key)) else 0 for key in ("width", "height"))
    return (width, height) if width > 0 and height > 0 else None


def _detections(context: Context) -> dict[str, Record] | None:
    """The records of --boxes by image; None when it was not given."""
    if context.boxes is None:
        return None
    found: dict[str, Record] = {}
    for line in read_lines([context.boxes], label="boxes"):
        record = parse(line)
        for problem in problems({"hois": [], **record}, None, scored=False):
            raise problem.error(line.place)
        found[str(record["image_id"])] = record
    return found
