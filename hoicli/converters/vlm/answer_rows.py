"""Files of answers: their detection, and their rows one at a time. A row is an object that names its image and has the
model's answer, under one of the keys below. Containers:

- JSONL or a list of such rows; {file name: answer}; the results of OpenAI's batches, whose ids name the images
- {outputs, preds, gt_paths} of cjw2021/HOI-R1, joined by position
- hoi-benchmarks grounding (SIT-AIGCDesignLab): action, object and predicted_pairs in pixels, or generated_text
- hoi-benchmarks action referring: person_bbox, object_bbox in pixels and a phrase in `prediction`
- {file name: [{obj_class, action, score, sub_bbox, obj_bbox}]} of oriol-rabasseda/mllms-zs-hoi, in pixels
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.errors import DataError, Place
from hoicli.records.intake import ErrorPolicy
from hoicli.records.names import PICTURE_ENDINGS, image_id_of, image_number
from hoicli.records.parsing import parse

ANSWER_KEYS = (
    "response", "generated_text", "answer", "predicted_pairs", "text", "output", "output_text", "completion", "content",
    "prediction", "predicted_action", "raw_output", "caption", "generation", "choices",
)  # fmt: skip
"""The keys of a row's answer, of which the first counts: `prediction` before `raw_output`, cut to 200 characters."""
FILE_KEYS = ("file_name", "filename", "image_path", "img_path", "image_file", "image", "img", "path")
ID_KEYS = ("image_id", "img_id", "custom_id", "id")


def is_answers(source: Source) -> bool:
    """Return whether a file has a model's answers: rows with an answer (and no `boxes`), or HOI-R1's three lists."""
    if source.kind == "json-list":
        return is_row(source.first_item)
    return source.kind in ("json-lines", "json-object") and (is_row(source.first_line()) or _is_hoi_r1(source))


def _is_hoi_r1(source: Source) -> bool:
    """Return whether a file is HOI-R1's: a dictionary with the lists outputs, preds and gt_paths."""
    return source.kind != "json-lines" and {"outputs", "gt_paths"} <= source.mapping.keys()


def is_row(item: Any) -> bool:
    """Return whether a JSON value names its image and has an answer, and is no record or image of another format."""
    keys_of_other_formats = {"hois", "boxes", "hoi_prediction", "annotations", "box_annotations"}
    if not isinstance(item, dict) or keys_of_other_formats & item.keys():
        return False
    return any(key in item for key in ANSWER_KEYS) and any(key in item for key in (*FILE_KEYS, *ID_KEYS))


def failure_in(row: Mapping[str, Any]) -> str:
    """Return why the row of a failed request has no answer, in a few words; "" for any other row. Only results of
    OpenAI's Batch API can fail: {custom_id, response: {status_code, body}, error}."""
    response = row["response"] if isinstance(row.get("response"), dict) else {}
    status, error = response.get("status_code", 200), row.get("error")
    if "custom_id" not in row or (status == 200 and not error):
        return ""
    error = error or response.get("body")
    for key in ("error", "message"):  # a body has {"error": {"message": text}}, an error {"message": text}
        error = error.get(key, error) if isinstance(error, dict) else error
    error_text = " ".join(str(error or "")[:200].split())
    return error_text if status == 200 else f"HTTP {str(status)[:20]} {error_text}".strip()


def _file_name(row: Mapping[str, Any]) -> str | None:
    """Return the file name of the image that a row is about, or None."""
    return next((row[key] for key in FILE_KEYS if isinstance(row.get(key), str) and row[key]), None)


def image_named_in(row: dict[str, Any]) -> tuple[str | int, str | None]:
    """Return (image id, file name or None) of the image that a row is about. The id is the file name's stem, unless the
    row states an `image_id`, or a number that ends the file name. Raises `DataError` if the row names no image."""
    file_name = _file_name(row)
    stated_id = next((row[key] for key in ID_KEYS if type(row.get(key)) in (str, int)), None)
    stem = image_id_of(file_name) if file_name is not None else None
    image_id: str | int
    if stated_id is None and stem is None:
        raise DataError("names no image; put its file_name or image_id into the row")
    if stem is None or (isinstance(stated_id, int) and image_number(stem) == stated_id):  # there is no other, or fits
        image_id = stated_id if stated_id is not None else ""  # never "": without a stem, the row states an id
    elif isinstance(stated_id, str) and "image_id" in row:
        image_id = stated_id
    else:  # a number or `id` that does not fit is that of the row or the question, and not of the image
        image_id = stem
    if isinstance(image_id, str) and PurePosixPath(image_id).suffix.lower() in PICTURE_ENDINGS:
        return image_id_of(image_id), file_name or image_id
    return image_id, file_name


def iterate_list(source: Source, policy: ErrorPolicy) -> Iterator[tuple[str, Any]]:
    """Yield (place in the file, item) for each item of a file's list. The error about a list that breaks off goes to
    the policy, after the items before: it is raised, or counted."""
    with policy.item():
        for position, item in source.items():
            yield Place.in_file(source.name, position), item


def parsed_lines(source: Source, policy: ErrorPolicy) -> Iterator[tuple[str, Any]]:
    """Yield (place in the file, parsed value) for each JSON line. The error about a line that is no JSON goes to the
    policy: it is raised, or counted and skipped."""
    for line in source.lines():
        with policy.item():
            yield line.place, parse(line)


def rows_in(source: Source, policy: ErrorPolicy) -> Iterator[tuple[str, Any]] | None:
    """Return (place in the file, row) for each row of a file that is a list or JSON lines; None for any other file."""
    if source.is_list:
        return iterate_list(source, policy)
    if source.kind == "json-lines" or is_row(source.first_line()):
        return parsed_lines(source, policy)
    return None


def rows(source: Source, context: Context) -> Iterator[tuple[str, Any]]:
    """Return (place in the file, row) for each answer in a file, whatever its container: rows, HOI-R1's lists, or an
    object of answers by file name. Raises `DataError` for a file without answers."""
    if (listed_rows := rows_in(source, context.policy)) is not None:
        return listed_rows
    if _is_hoi_r1(source):
        return _hoi_r1(source, context)
    if not source.mapping:
        raise DataError(f"holds no answers ({source.describe()}); give JSONL or a list of rows", place=source.name)
    by_name = source.mapping.items()
    return ((f"{source.name}: {name[:80]}", {"file_name": name, "response": value}) for name, value in by_name)


def answer_in(row: Mapping[str, Any]) -> tuple[str, Any]:
    """Return (key, answer) of a row: the first of ANSWER_KEYS that has a value, and the answer under it, which is text
    or JSON that was parsed already. Raises `DataError` for a row without any of these keys."""
    keys = sorted((key for key in ANSWER_KEYS if key in row), key=lambda key: row[key] is None)  # null comes last
    if not keys:
        raise DataError(f"has no answer; put the model's text under {ANSWER_KEYS[0]!r}")
    return keys[0], _content(row[keys[0]])


def _hoi_r1(source: Source, context: Context) -> Iterator[tuple[str, Any]]:
    """Yield (place in the file, row) for each answer of HOI-R1, whose file has two lists: the answers (`outputs`), and
    the ground truth or names of their images (`gt_paths`). A second answer about an image is left out and counted."""
    outputs, images = source.mapping["outputs"], source.mapping["gt_paths"]
    if not isinstance(outputs, list) or not isinstance(images, list) or len(outputs) != len(images):
        raise DataError("outputs and gt_paths are not lists of one length; write the file again", place=source.name)
    names_before: set[str] = set()
    for index, (output, image) in enumerate(zip(outputs, images, strict=True)):
        place = f"{source.name}: outputs[{index}]"
        row = dict(image) if isinstance(image, dict) else {"file_name": image}
        name = _file_name(row)
        if name in names_before:
            context.drop("an answer about an image that was answered before", place)
            continue
        if name is not None:
            names_before.add(name)
        yield place, {**row, "response": output}


def _content(answer: Any) -> Any:
    """Return the text of an answer that is wrapped in a chat completion ({choices: [{message: {content: text}}]}) or in
    the response of a batch ({body: completion}); any other answer unchanged."""
    for _ in range(6):  # no wrapping has more levels
        if isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], dict):
            keys: tuple[str, ...] = ("message", "text", "generated_text")
            holder = answer[0]
        else:
            keys, holder = ("body", "choices", "message", "content"), answer
        key = next((key for key in keys if isinstance(holder, dict) and key in holder), None)
        if key is None:
            return answer
        answer = holder[key]
    return answer


def logprobs_in(row: dict[str, Any]) -> Any:
    """Return what a row says about the log-probabilities of its answer's tokens: its `logprobs`, else those of the
    first choice of its chat completion; None if it says nothing."""
    if row.get("logprobs") is not None:
        return row["logprobs"]
    holder: Any = row
    for _ in range(3):  # the row itself, its response, and the response's body
        choices = holder.get("choices") if isinstance(holder, dict) else None
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return choices[0].get("logprobs")
        holder = (holder.get("response") or holder.get("body")) if isinstance(holder, dict) else None
    return None
