"""Answers of vision-language models as predictions: text with JSON in it, tokens with boxes, or a bare phrase. All rows
about an image are combined. A row names its image (`file_name`, `image_id`, `image_path`, ...) and holds the answer
(`response`, `generated_text`, `text`, `raw_output`, `answer`, ..., as text or parsed already). `rows` lists the files.

`--coords` gives the convention of boxes, unless the row has it (`coords`, as `hoicli prompts` writes it), the container
always has pixels, or the boxes are in the tokens of InternVL and Qwen2-VL (0-1000); a note says so in the last two
cases. Boxes come out in pixels of the original image, as float edges, unclipped. `--boxes` gives a detector's boxes,
which answers then name by index or by a label that only one box has.

Unreadable parts are left out and counted with their first place: a box that is not four numbers or whose second corner
lies before its first, a verb that is a sentence, a triplet without an object, an empty answer (then its image has no
record). A triplet has a score only if the model gave one. Verbs are spelled as in records (`sit_on`) and otherwise
unchanged; `--to-vocabulary` maps them, gerunds included, to the dataset's own and leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.vlm.claims import Claim, Claims
from hoicli.converters.vlm.forms import is_phrase, read_answer
from hoicli.converters.vlm.frames import Frame, parse_frame, size_of
from hoicli.converters.vlm.keys import numbers_of
from hoicli.converters.vlm.logprobs import RULE, Tokens, logprobs_in, scored
from hoicli.converters.vlm.names import verbs_of
from hoicli.converters.vlm.placing import AnsweredImage, Placer
from hoicli.converters.vlm.rows import answer_in, failure_in, image_named_in, is_answers, rows
from hoicli.errors import DataError, arg
from hoicli.io.streams import Stream
from hoicli.records.image import problems
from hoicli.records.names import image_id_of, path_of
from hoicli.records.parsing import Record, parse


def sniff(source: Source) -> bool:
    """Rows with answers, as a list or as lines, or HOI-R1's lists."""
    return is_answers(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image with a readable answer, in the order of first appearance."""
    reader = _AnswerReader(context)
    for place, row in rows(source, context):
        context.place = place
        try:
            reader.add(row)
        except DataError as error:
            context.policy.handle(DataError(error.problem, place=error.place or place, field=error.field))
        except RecursionError:
            context.policy.handle(DataError("is nested too deeply for an answer", place=place))
    yield from reader.records()


class _AnswerReader:
    """Turns rows into images, row by row (`context.place` is the current row); `records` yields them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._frame = parse_frame(context.coords) if context.coords is not None else None
        self._detections = _detections(context)
        self._placer = Placer(context)
        self._images: dict[str, AnsweredImage] = {}
        self._paths: dict[str, str] = {}
        self._announced: set[str] = set()

    def add(self, row: Any) -> None:
        """Add a row. Raises `DataError` for a bad row, or one that lacks a needed key."""
        if not isinstance(row, dict):
            raise DataError("is no object; each answer is an object with its image and its text")
        if why := failure_in(row):
            self._drop(f"a batch result without an answer ({why})")
            return
        image = self._image(row)
        key, answer = answer_in(row)
        person, other = (numbers_of(row.get(name)) for name in ("person_bbox", "object_bbox"))
        label = next((row[name] for name in ("object_category", "object") if isinstance(row.get(name), str)), None)
        verbs = verbs_of(row.get("action"), label) if isinstance(row.get("action"), str) else []
        if person and other and isinstance(answer, str) and is_phrase(answer):
            answer = [{"subject": person, "object": other, "object_class": label, "verb": answer}]
            key = "person_bbox"
        reading = read_answer(answer, verbs, label, self._placer.acts)
        for reason in reading.reports:
            self._drop(reason)
        if not reading.form:
            return
        claims, frame = reading.claims, self._convention(row, key, answer, reading.tokens)
        if frame is not None and frame.contradicts_scale(_boxes(claims)):
            self._drop(f"an answer whose boxes have another scale than {arg('coords')}")
            return
        image.read |= key != "person_bbox" or bool(claims.triplets)
        if self._context.scores == "tokens":
            claims.triplets = self._by_tokens(claims.triplets, answer, logprobs_in(row))
            image.token_scores |= any(claim.score is not None for claim in claims.triplets)
        self._placer.add_answer(image, claims, frame)

    def records(self) -> Iterator[Record]:
        """The images with a readable answer."""
        given = [score is not None for image in self._images.values() for score in image.hois.values()]
        if given and not all(given):
            missing = f"{given.count(False):,} of {len(given):,} triplets have no score"
            self._context.announce(f"{missing}: good for mF1 (hoicli shoe-eval), mAP needs one on each")
        self._placer.announce()
        yield from (image.record() for image in self._images.values() if image.read)

    def _image(self, row: dict[str, Any]) -> AnsweredImage:
        """The image of a row, created at its first row; with --boxes it begins with these."""
        image_id, file_name = image_named_in(row)
        path = path_of(file_name) if file_name is not None and image_id == image_id_of(file_name) else ""
        if "/" in path and (first := self._paths.setdefault(str(image_id), path)) != path:
            problem = f"{path} has the name of {first}, whose answers these would become; give both an image_id"
            raise DataError(problem)
        image = self._images.get(str(image_id))
        if image is None:
            base = None if file_name is None else file_name.replace("\\", "/").rsplit("/", 1)[-1]
            image = AnsweredImage(image_id, base, self._context.image_sizes.get(str(image_id)))
            self._images[str(image_id)] = image
            if str(image_id) in self._detections:
                image.show(self._detections[str(image_id)])
        image.size = image.size or size_of(row)
        return image

    def _convention(self, row: dict[str, Any], key: str, answer: Any, tokens: str) -> Frame | None:
        """The convention of an answer's boxes: that of tokens which count bins, else that of --coords, of the row, or
        of its container; None if none has one."""
        if tokens in ("loc", "bins"):
            self._announce_once(f"boxes in <{tokens}> tokens: taken as their model writes them")
            return Frame("1000" if tokens == "loc" else "relative")
        if self._frame is not None:
            return self._frame
        if tokens == "box":
            return self._known("1000", "boxes in <box> or <|box_start|> tokens")
        if key == "person_bbox":
            return self._known("pixels", "person_bbox and object_bbox of the rows")
        if isinstance(row.get("coords"), str):
            return parse_frame(row["coords"], f"{self._context.place}: coords")
        if key == "predicted_pairs":
            return self._known("pixels", "predicted_pairs of hoi-benchmarks")
        first = answer[0] if isinstance(answer, list) and answer else None
        if isinstance(first, dict) and {"sub_bbox", "obj_bbox"} <= first.keys():
            return self._known("pixels", "sub_bbox and obj_bbox of mllms-zs-hoi")
        return None

    def _known(self, kind: str, what: str) -> Frame:
        """The frame of boxes whose convention is known; a note says so once."""
        self._announce_once(f"{what}: taken as {kind}; {arg('coords')} says otherwise")
        return Frame(kind)

    def _announce_once(self, what: str) -> None:
        if what not in self._announced:
            self._announced.add(what)
            self._context.announce(what)

    def _by_tokens(self, claims: Sequence[Claim], answer: Any, logprobs: Any) -> list[Claim]:
        """The claims with the scores of their tokens, or without scores, and counted, where there are none."""
        try:
            tokens = Tokens(answer, logprobs)
        except ValueError:
            self._drop("the scores of an answer without log-probabilities of its tokens (its triplets are kept)")
            return [replace(claim, score=None) for claim in claims]
        self._announce_once(f"{arg('scores')} tokens: the score of a triplet is {RULE}")
        found = scored(claims, tokens)
        for claim in found:
            if claim.score is None:
                self._drop("the score of a triplet whose words are not found among the tokens (it is kept)")
        return found

    def _drop(self, reason: str) -> None:
        """Count a part that is left out."""
        self._context.drop(reason, self._context.place)


def _boxes(claims: Claims) -> list[list[float]]:
    """The boxes of an answer."""
    places = [place for claim in claims.triplets for place in (claim.subject, claim.object)]
    return [box for box in (*places, *(box for box, _ in claims.located)) if isinstance(box, list) and len(box) == 4]


def _detections(context: Context) -> dict[str, Record]:
    """The records of --boxes by image."""
    found: dict[str, Record] = {}
    for line in Stream([context.boxes], "boxes") if context.boxes is not None else ():
        record = parse(line)
        for problem in problems({"hois": [], **record}, None, scored=False):
            raise problem.error(line.place)
        found[str(record["image_id"])] = record
    return found
