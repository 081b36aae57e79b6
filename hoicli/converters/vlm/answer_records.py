"""Answers of vision-language models as predictions: text with JSON in it, tokens with boxes, or a bare phrase. All rows
about an image are combined. A row names its image (`file_name`, `image_id`, `image_path`, ...) and holds the answer
(`response`, `generated_text`, `text`, `raw_output`, `answer`, ..., as text or parsed already). `rows` lists the files.

`--coords` gives the convention of boxes, unless the row has it (`coords`, as `hoicli prompts` writes it), the container
always has pixels, or the boxes are in the tokens of InternVL and Qwen2-VL (0-1000); a note says so in the last two
cases. Boxes come out in pixels of the original image, as float edges, unclipped. `--boxes` gives a detector's boxes,
which answers then name by index.

Unreadable parts are left out and counted with their first place: a box that is not four numbers or whose second corner
lies before its first, a verb that is a sentence, a triplet without an object, an empty answer (then its image has no
record). A triplet has a score only if the model gave one. Verbs are spelled as in records (`sit_on`) and otherwise
unchanged; `--to-vocabulary` maps them, gerunds included, to the dataset's own and leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.image_ids import known_size
from hoicli.converters.vlm.answer_rows import answer_in, failure_in, image_named_in, is_answers, logprobs_in, rows
from hoicli.converters.vlm.claims import Claim, Claims, Place, numbers_of
from hoicli.converters.vlm.forms import is_phrase, read_answer
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, Size, parse_frame, size_of
from hoicli.converters.vlm.spoken_names import PERSONS, Spelling, label_of, names_person, verbs_of
from hoicli.converters.vlm.spoken_text import Tokens
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Stream
from hoicli.records.caveats import ALL_ONES, BY_TOKENS
from hoicli.records.image import problems
from hoicli.records.names import image_id_of, path_of
from hoicli.records.parsing import Record, is_number, parse
from hoicli.vocabulary.labels import SUBJECT

sniff = is_answers


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image with a readable answer, in the order of first appearance."""
    reader = _AnswerReader(context)
    for place, row in rows(source, context):
        context.place = place
        try:
            reader.add(row)
        except DataError as error:
            context.policy.handle(error.add_place(place))
        except RecursionError:
            context.policy.handle(DataError("is nested too deeply for an answer", place=place))
    yield from reader.records()


@dataclass
class _Image:
    """An image while its answers are read. table: its boxes. hois: the score of each triplet (subject, object, verb).
    detections: its record in --boxes. read: whether some answer about it could be read. caveat: where its scores come
    from, "" if the answers state them."""

    image_id: str | int
    file_name: str | None
    size: Size | None
    table: BoxTable = field(default_factory=BoxTable)
    hois: dict[tuple[int, int, str], float | None] = field(default_factory=dict)
    detections: Record | None = None
    read: bool = False
    caveat: str = ""

    def record(self) -> Record:
        """Return the image's record."""
        record: Record = {"image_id": self.image_id}
        if self.file_name is not None:
            record["file_name"] = self.file_name
        if self.size is not None:
            record["width"], record["height"] = self.size
        record |= {"boxes": self.table.boxes, "labels": self.table.labels}
        if self.detections is not None and len(self.detections.get("scores") or ()) == len(self.table.boxes):
            record["scores"] = self.detections["scores"]
        elif self.caveat == ALL_ONES:
            record["scores"] = [1.0] * len(self.table.boxes)
        record["hois"] = [
            {"subject": subject, "object": object_, "verb": verb, **({} if score is None else {"score": score})}
            for (subject, object_, verb), score in self.hois.items()
        ]
        return {**record, "caveats": [self.caveat]} if self.caveat else record


class _NotPlacedError(Exception):
    """A triplet or a box has no usable place; the message is the reason under which it is counted."""


class _AnswerReader:
    """Turns rows of answers into images, one row after another (`context.place` is the current row); `records` then
    yields the images' records."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._scores = context.options.get("scores")
        self._frame = parse_frame(context.options["coords"]) if "coords" in context.options else None
        self._spelling = Spelling(context.vocabulary) if "to_vocabulary" in context.options else None
        self._subjects = frozenset(context.vocabulary.subjects)
        self._own = self._subjects.union(context.vocabulary.objects if context.vocabulary.own else ())
        self._detections = _detections(context.options.get("boxes"))
        self._images: dict[str, _Image] = {}
        self._boxes = self._answers = self._refused = 0
        self._outside, self._first_outside = 0, ""

    def add(self, row: Any) -> None:
        """Add the answer of a row to its image. Raises `DataError` for a bad row, or one that lacks a needed key."""
        if not isinstance(row, dict):
            raise DataError("is no object; each answer is an object with its image and its text")
        if row.get("task") == "choice" or isinstance(row.get("options"), dict):
            raise DataError("answers a multiple-choice question, without boxes; hoicli vlm-eval reads it")
        if why := failure_in(row):
            self._drop(f"a batch result without an answer ({why})")
            return
        image = self._image(row)
        key, answer, verbs, label = _answer_with_names(row)
        self._answers += 1
        claims = read_answer(answer, verbs, label, self._acts)
        for reason in claims.reports:
            self._drop(reason)
        if not claims.form:
            self._refused += 1
            return
        frame = self._convention(row, key, answer, claims.tokens)
        if frame and frame.contradicts_scale(_boxes(claims)):
            self._refused += 1
            self._drop(f"an answer whose boxes have another scale than {arg('coords')}")
            return
        image.read |= key != "person_bbox" or bool(claims.triplets)  # a bare phrase must give a triplet
        self._choose_scores(image, claims, answer, logprobs_in(row) if self._scores == "tokens" else None)
        self._add_claims(image, claims, frame)

    def _choose_scores(self, image: _Image, claims: Claims, answer: Any, logprobs: Any) -> None:
        """Give the claims of an answer the scores that --scores asks for; without it they keep those that the answer
        states. logprobs: what the row says of the answer's tokens."""
        if self._scores == "tokens":
            claims.triplets = self._score_by_tokens(claims.triplets, answer, logprobs)
            if any(claim.score is not None for claim in claims.triplets):
                image.caveat = BY_TOKENS
        elif self._scores == "ones":
            claims.triplets = [replace(claim, score=1.0) for claim in claims.triplets]
            image.caveat = ALL_ONES

    def _add_claims(self, image: _Image, claims: Claims, frame: Frame | None) -> None:
        """Add the boxes and the triplets that an answer claims to its image; those without a usable place are left out
        and counted. frame: the convention of the boxes."""
        for index, (box, name) in enumerate(claims.located):
            try:
                label = self._actor(name) if index in claims.acting else self._box_name(name)
                image.table.add(self._pixels(box, image, frame), label)
            except _NotPlacedError as error:
                self._drop(str(error))
        for claim in claims.triplets:
            try:
                self._add_triplets(image, claim, frame)
            except _NotPlacedError as error:
                self._drop(str(error))

    def records(self) -> Iterator[Record]:
        """Yield the record of each image with a readable answer."""
        if self._refused:
            share = f"{self._refused:,} of {self._answers:,} answers ({self._refused / self._answers:.2%})"
            self._context.announce(f"{share} could not be read: they give no record")
        have_scores = [
            score is not None for score in chain.from_iterable(image.hois.values() for image in self._images.values())
        ]
        if have_scores and not all(have_scores):
            missing = f"{have_scores.count(False):,} of {len(have_scores):,} triplets have no score"
            ones = f"({arg('scores', 'ones')})"
            self._context.announce(f"{missing}: good for mF1 (hoicli shoe-eval), mAP needs one on each {ones}")
        if self._outside:
            far_out = f"{self._outside:,} of {self._boxes:,} boxes reach over a tenth of a side out of their image"
            self._context.announce(f"{far_out} (the first: {self._first_outside}): is it another {arg('coords')}?")
        ids_differ = len({str(image.image_id) for image in self._images.values()}) == len(self._images)
        for image in self._images.values():
            if image.file_name is not None and ids_differ and not self._context.id_rule:
                image.file_name = image.file_name.replace("\\", "/").rsplit("/", 1)[-1]
            if image.read:
                yield image.record()

    def _image(self, row: dict[str, Any]) -> _Image:
        """Return the image of a row, created at its first row; with --boxes it starts with their record's boxes."""
        image_id, file_name = image_named_in(row)
        path = path_of(file_name) if file_name is not None and image_id == image_id_of(file_name) else ""
        id_text, detections = str(image_id), self._detections
        image = self._images.get(path or id_text)
        if image is None:
            size = known_size({"image_id": image_id, "file_name": file_name}, self._context)
            image = _Image(image_id, file_name, size)
            self._images[path or id_text] = image
            if (shown := detections.get(path) or detections.get(id_text)) is not None:
                image.detections = shown
                image.size = image.size or size_of(shown)
                image.file_name = image.file_name or shown.get("file_name")
                image.table.boxes += shown["boxes"]
                image.table.labels += shown["labels"]
        image.size = image.size or size_of(row)
        return image

    # Conventions and scores

    def _convention(self, row: dict[str, Any], key: str, answer: Any, tokens: str) -> Frame | None:
        """Return the convention of an answer's boxes: that of tokens which count bins, else that of --coords, of the
        row, or of its container; None if none of them says it. key: the row's key of the answer. tokens: the kind of
        box tokens. Raises `UsageError` if the row states another convention than --coords."""
        if tokens in ("loc", "bins"):
            self._context.announce(f"boxes in <{tokens}> tokens: taken as their model writes them")
            return Frame("1000" if tokens == "loc" else "relative")
        name = "coords" if isinstance(row.get("coords"), str) else "box_scale"
        row_coords, scale = (row["coords"], None) if name == "coords" else (None, row.get("box_scale"))
        frame_text = _resized_coords(scale) if scale else row_coords
        own_frame = None if frame_text is None else parse_frame(frame_text, f"{self._context.place}: {name}")
        if self._frame is not None:
            if own_frame not in (None, self._frame):
                problem = f"{frame_text}, but the option is {arg('coords', self._context.options['coords'])}"
                raise UsageError(f"{self._context.place}: {name}: {problem}; leave the option out, or mend the rows")
            return self._frame
        if tokens == "box":
            return self._note_frame("1000", "boxes in <box> or <|box_start|> tokens")
        if key == "person_bbox":
            return self._note_frame("pixels", "person_bbox and object_bbox of the rows")
        if own_frame is not None and name == "box_scale":
            self._context.announce("box_scale of R1-SGG's rows: taken as the size of the copy that boxes are pixels of")
        if own_frame is not None:
            return own_frame
        if key == "predicted_pairs":
            return self._note_frame("pixels", "predicted_pairs of hoi-benchmarks")
        first = answer[0] if isinstance(answer, list) and answer else None
        if isinstance(first, dict) and {"sub_bbox", "obj_bbox"} <= first.keys():
            return self._note_frame("pixels", "sub_bbox and obj_bbox of mllms-zs-hoi")
        return None

    def _note_frame(self, kind: str, what: str) -> Frame:
        """Return the convention of boxes that is known from the row's shape (`what`); a note says so once."""
        self._context.announce(f"{what}: taken as {kind}; {arg('coords')} says otherwise")
        return Frame(kind)

    def _score_by_tokens(self, claims: Sequence[Claim], answer: Any, logprobs: Any) -> list[Claim]:
        """Return the claims split into one for each verb, scored by the tokens of its words. A claim whose words are
        not found among the tokens has no score, and is counted.

        The score of a triplet is the probability with which the model said its words, where this triplet says them.
        Boxes, keys and punctuation do not count; the object does not where the answer names it by a number. The
        supplement of SHOE (section 1) ranks vision-language models by "token probabilities" and does not say of which
        tokens: this choice is ours. Longer names have lower scores, so compare scores of one vocabulary.
        """
        try:
            tokens = Tokens(answer, logprobs)
        except ValueError:
            self._drop("the scores of an answer without log-probabilities of its tokens (its triplets are kept)")
            return [replace(claim, score=None) for claim in claims]
        rule = "the product of the probabilities of the tokens of its verb and of its object's name"
        self._context.announce(f"{arg('scores')} tokens: the score of a triplet is {rule}")
        scored_claims = []
        for claim in claims:
            label = [] if claim.label_span is None else [claim.label_span]
            for verb, span in zip(claim.verbs, claim.spans or (None,) * len(claim.verbs), strict=True):
                score = None if span is None else tokens.score([span, *label])
                scored_claims.append(replace(claim, verbs=(verb,), score=score))
                if score is None:
                    self._drop("the score of a triplet whose words are not found among the tokens (it is kept)")
        return scored_claims

    def _drop(self, reason: str) -> None:
        """Count a part of the current row that is left out."""
        self._context.drop(reason, self._context.place)

    # Boxes and names

    def _acts(self, name: str) -> bool:
        """Whether a name may act: it is one of the dataset's subjects, or a person's if `person` is one of them."""
        return name in self._subjects or (SUBJECT in self._subjects and names_person(name))

    def _actor(self, name: str | None) -> str:
        """Return the label of a subject. name: what the answer calls it, None if it does not say."""
        if name in self._subjects:
            return name
        return SUBJECT if name is not None and SUBJECT in self._subjects else self._context.subject

    def _add_triplets(self, image: _Image, claim: Claim, frame: Frame | None) -> None:
        """Add one triplet for each verb of a claim, and its two boxes; no box is added unless both have a place."""
        label_for = self._box_name if claim.of_box else self._object_name
        label = None if claim.label is None else label_for(label_of(claim.label))
        claimed = (claim.subject, self._actor(claim.acts)), (claim.object, label)
        placed = [self._place_claim(image, *place, frame) for place in claimed]
        subject, object_ = (place if isinstance(place, int) else image.table.add(*place) for place in placed)
        for verb_text in claim.verbs:
            verb = verb_text if self._spelling is None else self._spelling.verb(verb_text)
            if verb is None:
                self._drop("a verb outside the vocabulary")
            elif (subject, object_, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[subject, object_, verb] = claim.score

    def _object_name(self, label: str) -> str:
        """Return an object's label, with --to-vocabulary as the dataset spells it."""
        spelled = label if self._spelling is None else self._spelling.object(label)
        if spelled is None:
            raise _NotPlacedError("an object outside the vocabulary")
        return spelled

    def _box_name(self, name: str) -> str:
        """Return the label of a box that does not act. Names of persons, but not the dataset's, become `person`."""
        return name if name in self._own else self._object_name(SUBJECT if name in PERSONS else name)

    def _place_claim(
        self, image: _Image, place: Place, label: str | None, frame: Frame | None
    ) -> int | tuple[list[float], str]:
        """Return where a claim's subject or object is: the index of one of --boxes, or its box in pixels with its
        label. (The boxes that the answer itself lists were looked up before.)"""
        if isinstance(place, list):
            pixels = self._pixels(place, image, frame)
            if label is None:
                raise _NotPlacedError("a triplet whose object has no name")
            return pixels, label
        if not isinstance(place, int):
            raise _NotPlacedError("a triplet without a person or an object, or with a box that is not four numbers")
        if "boxes" not in self._context.options:
            option_text = arg("boxes", like="FILE")
            raise DataError(f"names boxes by index; give the boxes that were shown with {option_text}")
        if image.detections is None or not 0 <= place < len(image.detections["boxes"]):
            raise _NotPlacedError("a triplet with the index of a box that is not there")
        return place

    def _pixels(self, box: Sequence[float], image: _Image, frame: Frame | None) -> list[float]:
        """Return a box in pixels. Raises `UsageError` if the convention of its numbers is unknown."""
        if len(box) != 4:
            raise _NotPlacedError("a box that is not four numbers")
        if frame is None:
            problem = f"nothing says what the boxes' numbers mean; tell it with {arg('coords')}: {CONVENTIONS}"
            raise UsageError(f"{self._context.place}: {problem}")
        x1, y1, x2, y2 = pixels = frame.scale_to_pixels(box, image.size)
        if x2 < x1 or y2 < y1:
            raise _NotPlacedError("a box whose second corner lies before its first")
        self._boxes += 1
        width, height = image.size or (float("inf"), float("inf"))
        if x1 < -0.1 * width or y1 < -0.1 * height or x2 > 1.1 * width or y2 > 1.1 * height:
            self._outside += 1
            self._first_outside = self._first_outside or f"{self._context.place}: {list(box)}"
        return pixels


def _answer_with_names(row: dict[str, Any]) -> tuple[str, Any, list[str], str | None]:
    """Return the key of a row's answer, the answer, and the verbs and the object's label that the row itself names. A
    bare phrase in a row with two boxes becomes the triplet of these boxes."""
    key, answer = answer_in(row)
    person_box, object_box = (numbers_of(row.get(name)) for name in ("person_bbox", "object_bbox"))
    label = next((row[name] for name in ("object_category", "object") if isinstance(row.get(name), str)), None)
    verbs = verbs_of(row.get("action"), label) if isinstance(row.get("action"), str) else []
    if person_box and object_box and isinstance(answer, str) and is_phrase(answer):
        answer = [{"subject": person_box, "object": object_box, "object_class": label, "verb": answer}]
        key = "person_bbox"
    return key, answer, verbs, label


def _boxes(claims: Claims) -> list[list[float]]:
    """Return all boxes of an answer: those of its triplets, then those that it lists."""
    places = list(chain.from_iterable((claim.subject, claim.object) for claim in claims.triplets))
    return [box for box in (*places, *(box for box, _ in claims.located)) if isinstance(box, list) and len(box) == 4]


def _resized_coords(copy: Any) -> str:
    """Return, as `--coords` writes it, R1-SGG's [width, height] of the copy in whose pixels its boxes are."""
    sides = copy if isinstance(copy, list) and all(map(is_number, copy)) else [copy]
    return "resized:" + "x".join(f"{side:.0f}" if is_number(side) else str(side) for side in sides)


def _detections(path: str | None) -> dict[str, Record]:
    """Return the records of the file of --boxes by image id."""
    detections_by_image: dict[str, Record] = {}
    for line in Stream([path], "boxes") if path is not None else ():
        record = parse(line)
        for problem in problems({"hois": [], **record}, None, scored=False):
            raise problem.error(line.place)
        detections_by_image[str(record["image_id"])] = record
    return detections_by_image
