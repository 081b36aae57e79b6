"""Answers of vision-language models as predictions: text with JSON in it, tokens with boxes, or a bare phrase. All rows
about an image are combined. A row names its image (`file_name`, `image_id`, `image_path`, ...) and holds the answer
(`response`, `generated_text`, `text`, `raw_output`, `answer`, ..., as text or parsed already). `rows` lists the files.

`--coords` gives the convention of boxes, unless the row has it (`coords`, as `hoicli prompts` writes it), the container
always has pixels, or the boxes are in the tokens of InternVL and Qwen2-VL (0-1000); a note says so in the last two
cases. Boxes come out in pixels of the original image, as float edges, unclipped. `--boxes` gives a detector's boxes,
which answers then name by index.

What cannot be read is left out and counted; an image whose answers are refused has no record. A triplet has a score
only if the model gave one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.image_ids import known_size
from hoicli.converters.vlm.answer_keys import NamedSides, Place, numbers_of
from hoicli.converters.vlm.answer_rows import answer_in, failure_in, image_named_in, is_answers, logprobs_in, rows
from hoicli.converters.vlm.claims import Claim, Claims
from hoicli.converters.vlm.forms import is_phrase, read_answer
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, Size, find_frame, parse_frame, size_of
from hoicli.converters.vlm.spoken_names import PERSONS, label_of, names_person, verbs_of
from hoicli.converters.vlm.spoken_text import Tokens
from hoicli.converters.vlm.word_table import WordTable
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Stream
from hoicli.records.caveats import ALL_ONES, BY_TOKENS
from hoicli.records.image import problems
from hoicli.records.names import image_id_of, path_of
from hoicli.records.parsing import Record, parse
from hoicli.vocabulary.labels import SUBJECT

sniff = is_answers


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image about which a file of a model's answers has a readable one, in the order of first
    appearance. The error about a bad row goes to the context's policy: it is raised, or counted and skipped."""
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
    """What the answers read so far say about an image. table: its boxes. hois: the score, or None, of each triplet
    (index of the subject's box, of the object's box, verb). detections: its record in --boxes. is_read: whether some
    answer about it could be read. caveat: where its scores come from, "" if the answers state them."""

    image_id: str | int
    file_name: str | None
    size: Size | None
    table: BoxTable = field(default_factory=BoxTable)
    hois: dict[tuple[int, int, str], float | None] = field(default_factory=dict)
    detections: Record | None = None
    is_read: bool = False
    caveat: str = ""

    def record(self) -> Record:
        """Return the image's record, with the boxes and triplets of all its answers."""
        record: Record = {"image_id": self.image_id}
        if self.file_name is not None:
            record["file_name"] = self.file_name
        if self.size is not None:
            record["width"], record["height"] = self.size
        record["boxes"] = self.table.boxes
        record["labels"] = self.table.labels
        if self.detections is not None and len(self.detections.get("scores") or ()) == len(self.table.boxes):
            record["scores"] = self.detections["scores"]  # only while all boxes are the detector's
        elif self.caveat == ALL_ONES:  # --scores ones: each box has a score of 1, too
            record["scores"] = [1.0] * len(self.table.boxes)
        record["hois"] = [
            {"subject": subject, "object": object_, "verb": verb, **({} if score is None else {"score": score})}
            for (subject, object_, verb), score in self.hois.items()
        ]
        if self.caveat:
            record["caveats"] = [self.caveat]
        return record


class _NotPlacedError(Exception):
    """A triplet or a box has no usable place. Arguments: the reason to count and, if a word is left out, the word."""


class _AnswerReader:
    """Turns rows of answers into images, one row after another; `records` then yields the images' records. A claim is a
    triplet as an answer states it (`claims.Claim`); what of it cannot be used is left out and counted.

    _frame: the convention of boxes that --coords names, None without it. _subjects: the labels that a subject may have.
    _box_labels: the labels that a box keeps unchanged. _outside: how many of all _boxes lie far outside of their image.
    _refused: how many of all _answers could not be read."""

    def __init__(self, context: Context) -> None:
        """Take the options --scores, --coords, --to-vocabulary and --boxes; the caller sets `context.place` before each
        `add`. Raises `DataError` for a bad file of --boxes, and `UsageError` for an unknown convention."""
        self._context = context
        self._scores = context.options.get("scores")
        self._frame = parse_frame(context.options["coords"]) if "coords" in context.options else None
        self._words = WordTable(context)
        self._subjects = frozenset(context.vocabulary.subjects)
        # the user's own dataset may have names of persons, such as "man", among its objects
        self._box_labels = self._subjects.union(context.vocabulary.objects if context.vocabulary.own else ())
        self._detections = _detections(context.options.get("boxes"))
        self._images: dict[str, _Image] = {}
        self._answers = self._refused = 0
        self._boxes = self._outside = 0
        self._first_outside = ""

    def add(self, row: Any) -> None:
        """Add what the answer of a row states to its image; an answer that cannot be read is counted. Raises
        `DataError` for a row that names no image or has no answer, or whose question asked for no boxes."""
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
        claims = read_answer(answer, verbs, label, self._may_act)
        for reason, words in claims.reports:
            self._drop(reason, words, "" if claims.form else answer)
        if not claims.form:  # the answer is refused
            self._refused += 1
            return
        frame = find_frame(row, key, answer, claims.tokens, self._frame, self._context)
        if frame and frame.contradicts_scale(_boxes(claims)):
            self._refused += 1
            self._drop(f"an answer whose boxes have another scale than {arg('coords')}", answer=answer)
            return
        image.is_read |= key != "person_bbox" or bool(claims.triplets)  # a bare phrase must give a triplet
        self._choose_scores(image, claims, answer, logprobs_in(row) if self._scores == "tokens" else None)
        self._add_claims(image, claims, frame)

    def _choose_scores(self, image: _Image, claims: Claims, answer: Any, logprobs: Any) -> None:
        """Give the triplets of an answer the scores that --scores asks for, and its image the caveat that says so.
        Without --scores they keep those that the answer states. logprobs: those of the answer's tokens."""
        if self._scores == "tokens":
            claims.triplets = self._score_by_tokens(claims.triplets, answer, logprobs)
            if any(claim.score is not None for claim in claims.triplets):
                image.caveat = BY_TOKENS
        elif self._scores == "ones":
            claims.triplets = [replace(claim, score=1.0) for claim in claims.triplets]
            image.caveat = ALL_ONES

    def _add_claims(self, image: _Image, claims: Claims, frame: Frame | None) -> None:
        """Add the boxes and triplets that an answer states to its image; those whose box or name cannot be used are
        left out and counted. frame: the convention of the boxes' numbers, None if it is not known."""
        for number, (box, name) in claims.located.items():
            try:
                label = self._subject_label(name) if number in claims.acting else self._box_name(name)
                image.table.add(self._pixels(box, image, frame), label)
            except _NotPlacedError as error:
                self._drop(*error.args)
        for claim in claims.triplets:
            try:
                self._add_triplets(image, claim, frame)
            except _NotPlacedError as error:
                self._drop(*error.args)

    def records(self) -> Iterator[Record]:
        """Yield the record of each image with a readable answer, after all rows were added; notes say how many answers
        could not be read, and what looks wrong in the others."""
        self._words.report(self._context)
        if self._refused:
            share = f"{self._refused:,} of {self._answers:,} answers ({self._refused / self._answers:.2%})"
            option = "" if self._context.left_out_file else f" ({arg('left_out', like='FILE')} lists them)"
            self._context.announce(f"{share} could not be read: they give no record{option}")
        scores = list(chain.from_iterable(image.hois.values() for image in self._images.values()))
        if None in scores:
            missing = f"{scores.count(None):,} of {len(scores):,} triplets have no score"
            ones = f"({arg('scores', 'ones')})"
            self._context.announce(f"{missing}: good for mF1 (hoicli shoe-eval), mAP needs one on each {ones}")
        if self._outside:
            far_out = f"{self._outside:,} of {self._boxes:,} boxes reach over a tenth of a side out of their image"
            self._context.announce(f"{far_out} (the first: {self._first_outside}): is it another {arg('coords')}?")
        ids_differ = len({str(image.image_id) for image in self._images.values()}) == len(self._images)
        for image in self._images.values():
            # A folder in a file name serves to tell images apart: not needed if their ids do, or --id chooses them.
            if image.file_name is not None and ids_differ and not self._context.id_rule:
                image.file_name = image.file_name.replace("\\", "/").rsplit("/", 1)[-1]
            if image.is_read:
                yield image.record()

    def _image(self, row: dict[str, Any]) -> _Image:
        """Return the image that a row is about, made at its first row. With --boxes it starts with the boxes of its
        record there, which answers name by their index. Raises `DataError` if the row names none."""
        image_id, file_name = image_named_in(row)
        # an id that is only the file's base name may be that of other folders' files, too: then the path counts
        path = path_of(file_name) if file_name is not None and image_id == image_id_of(file_name) else ""
        id_text = str(image_id)
        image = self._images.get(path or id_text)
        if image is None:
            size = known_size({"image_id": image_id, "file_name": file_name}, self._context)
            image = _Image(image_id, file_name, size)
            self._images[path or id_text] = image
            boxes_record = self._detections.get(path) or self._detections.get(id_text)
            if boxes_record is not None:
                image.detections = boxes_record
                image.size = image.size or size_of(boxes_record)
                image.file_name = image.file_name or boxes_record.get("file_name")
                image.table.boxes += boxes_record["boxes"]
                image.table.labels += boxes_record["labels"]
        image.size = image.size or size_of(row)
        return image

    def _score_by_tokens(self, claims: Sequence[Claim], answer: Any, logprobs: Any) -> list[Claim]:
        """Return the claims split into one for each verb, each scored by the tokens that say it (docs/vlm.md); a claim
        whose words are not found among the tokens has no score, and is counted. answer: the answer's text. logprobs:
        what the row says about its tokens."""
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

    def _drop(self, reason: str, word: str = "", answer: Any = "") -> None:
        """Count a part of the current row as left out, for a reason that the summary states. word: the word that the
        summary quotes, "" for none. answer: the whole answer if it is refused, text or JSON."""
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        self._context.drop(reason, self._context.place, word=word, long_text=text)

    def _may_act(self, name: str) -> bool:
        """Return whether a name can be that of a triplet's subject: it is one of the dataset's subjects, or names a
        person ("man") and `person` is one of them."""
        return name in self._subjects or (SUBJECT in self._subjects and names_person(name))

    def _subject_label(self, name: str | None) -> str:
        """Return the label of a subject in the record. name: what the answer calls it, None if it does not say."""
        if name in self._subjects:
            return name
        label = SUBJECT if name is not None and SUBJECT in self._subjects else self._context.subject
        if name is not None:
            self._words.count_person("subject", name, label)
        return label

    def _add_triplets(self, image: _Image, claim: Claim, frame: Frame | None) -> None:
        """Add one triplet for each verb of a claim to its image, and its two boxes. Raises `_NotPlacedError`, and adds
        nothing, if a box or the object's name cannot be used. frame: the convention of boxes."""
        # of_box: the name is that of a box which the answer lists; acts: the subject's name, if the answer has one
        label_for = self._box_name if claim.of_box else self._object_name
        label = None if claim.label is None else label_for(label_of(claim.label))
        subject_place = self._locate(image, claim.subject, self._subject_label(claim.acts), frame)
        object_place = self._locate(image, claim.object, label, frame)
        subject = subject_place if isinstance(subject_place, int) else image.table.add(*subject_place)
        object_ = object_place if isinstance(object_place, int) else image.table.add(*object_place)
        for verb_text in claim.verbs:
            verb = self._words.verb(verb_text, image.table.labels[object_])
            if verb is None:
                self._drop("a verb outside the vocabulary", verb_text)
            elif (subject, object_, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[subject, object_, verb] = claim.score

    def _object_name(self, label: str) -> str:
        """Return an object's label for the record. Raises `_NotPlacedError` if --to-vocabulary leaves it out."""
        mapped = self._words.object(label)
        if mapped is None:
            raise _NotPlacedError("an object outside the vocabulary", label)
        return mapped

    def _box_name(self, name: str) -> str:
        """Return the label, for the record, of a box that the answer lists and that is no triplet's subject. A name of
        persons ("man") becomes `person`, unless it is a label of the dataset."""
        if name in self._box_labels or name not in PERSONS:
            return name if name in self._box_labels else self._object_name(name)
        self._words.count_person("object", name, SUBJECT)
        return self._object_name(SUBJECT)

    def _locate(
        self, image: _Image, place: Place, label: str | None, frame: Frame | None
    ) -> int | tuple[list[float], str]:
        """Return the box of a claim's subject or object: the index of one of --boxes, or (box in pixels, label). place:
        where the answer says it is. Ids of boxes that the answer itself lists were replaced before, so an integer is an
        index of --boxes. Raises `_NotPlacedError` for no usable place, `DataError` for an index without --boxes."""
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
        """Return a box of an answer as [x1, y1, x2, y2] in pixels, and count it if it lies far outside of its image.
        Raises `UsageError` if the convention (`frame`) is not known, and `_NotPlacedError` for what is no box."""
        if len(box) != 4:
            raise _NotPlacedError("a box that is not four numbers")
        if frame is None:
            problem = f"nothing says what the boxes' numbers mean; tell it with {arg('coords')}: {CONVENTIONS}"
            raise UsageError(f"{self._context.place}: {problem}")
        if isinstance(box, NamedSides) and frame.kind == "1000-yx":
            box = [box[1], box[0], box[3], box[2]]
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
    """Return (the key of a row's answer, the answer, the verbs that the row itself names, its object's label or None).
    The last two are of questions that ask only for boxes. A question may also give two boxes (person_bbox, object_bbox)
    and ask for the verb: then the answer, a bare phrase, becomes the triplet of these boxes."""
    key, answer = answer_in(row)
    person_box, object_box = (numbers_of(row.get(name)) for name in ("person_bbox", "object_bbox"))
    label = next((row[name] for name in ("object_category", "object") if isinstance(row.get(name), str)), None)
    verbs = verbs_of(row.get("action"), label) if isinstance(row.get("action"), str) else []
    if person_box and object_box and isinstance(answer, str) and is_phrase(answer):
        answer = [{"subject": person_box, "object": object_box, "object_class": label, "verb": answer}]
        key = "person_bbox"
    return key, answer, verbs, label


def _boxes(claims: Claims) -> list[list[float]]:
    """Return all boxes of an answer as four numbers each: those of its triplets, then those that it lists."""
    places = list(chain.from_iterable((claim.subject, claim.object) for claim in claims.triplets))
    listed = [box for box, _ in claims.located.values()]
    return [box for box in (*places, *listed) if isinstance(box, list) and len(box) == 4]


def _detections(path: str | None) -> dict[str, Record]:
    """Return the records of --boxes, if there are any, by image id. Raises `DataError` for a line that is no record."""
    detections_by_image: dict[str, Record] = {}
    for line in Stream([path], "boxes") if path is not None else ():
        record = parse(line)
        for problem in problems({"hois": [], **record}, None, scored=False):
            raise problem.error(line.place)
        detections_by_image[str(record["image_id"])] = record
    return detections_by_image
