"""Batch files: requests for a provider to answer within a day at a lower price, and the file of results it gives back.

| provider | a request | a result |
| --- | --- | --- |
| openai | {custom_id, method, url, body} | {custom_id, response: {status_code, body}, error} |
| anthropic | {custom_id, params} | {custom_id, result: {type, message or error}} |
| gemini | {key, request} | {key, response} or {key, error}; Vertex AI: {request, response, status} |

As documented in OpenAI's Batch API reference (request input and output objects), in "Create a Message Batch" of
Anthropic's API reference, and in "Batch API" of Gemini's documentation. Results may come in any order.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoicli.errors import DataError, UsageError

PROVIDERS = ("openai", "anthropic", "gemini")
"""What `--batch` takes."""
LIMITS = {"openai": (50_000, 200_000_000), "anthropic": (100_000, 256_000_000), "gemini": (None, 2_000_000_000)}
"""Requests and bytes that a provider takes in a file."""
MAX_TOKENS = 4096
"""Anthropic's protocol needs a limit on an answer's tokens; `--body '{"max_tokens": N}'` sets another."""
TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif"}
"""The types of pictures that all three take."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CODED = "b64-"


@dataclass(frozen=True)
class Picture:
    """A picture in a request: its type, and its URL or its bytes in base64."""

    type: str
    url: str | None = None
    data: str = ""


def is_batch_id(text: str) -> bool:
    """Whether all three take a text as the id of a request, as it is."""
    return _PLAIN.fullmatch(text) is not None and not text.startswith(_CODED)


def batch_id(image_id: str | int) -> str:
    """An image's id as the id of a request: itself, or in base64 where it has characters that Anthropic's do not have.
    Raises `DataError` for one that is too long."""
    text = str(image_id)
    if is_batch_id(text):
        return text
    coded = _CODED + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    if len(coded) > 64:
        raise DataError("too long for the id of a batch request (64 characters; 45 with others than A-Z a-z 0-9 _ -)")
    return coded


def image_id_in(custom_id: str) -> str:
    """The image's id in the id of a request."""
    if not custom_id.startswith(_CODED):
        return custom_id
    code = custom_id.removeprefix(_CODED)
    try:
        return base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).decode()
    except (binascii.Error, ValueError):
        return custom_id


def request_fields(text: str | None, shown: Callable[[str], str] = str) -> dict[str, Any]:
    """The value of `--body`. Raises `UsageError` for anything but a JSON object of finite numbers; `shown` makes its
    text fit to be printed."""
    try:
        value = json.loads("{}" if text is None else text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        line = " ".join(str(text)[:1000].split())
        line = line if len(line) <= 120 else line[:117] + "..."
        raise UsageError(f"--body {shown(line)}: give a JSON object, for example '{{\"max_tokens\": 50}}'")
    return value


def request(
    provider: str,
    custom_id: str,
    model: str,
    messages: Sequence[Mapping[str, str]],
    body: Mapping[str, Any],
    picture: Picture | None = None,
) -> dict[str, Any]:
    """A line of a batch file. messages: as in OpenAI's protocol, with text alone; the `picture` comes before the first
    text of the user. body: further fields of the request. Gemini's files do not name the model: it is chosen where the
    batch is started."""
    system = "\n".join(message["content"] for message in messages if message["role"] == "system")
    talk = [message for message in messages if message["role"] != "system"]
    if provider == "openai":
        said: list[dict[str, Any]] = [{"role": message["role"], "content": message["content"]} for message in talk]
        if picture is not None:
            url = picture.url or f"data:{picture.type};base64,{picture.data}"
            text = {"type": "text", "text": said[0]["content"]}
            said[0]["content"] = [{"type": "image_url", "image_url": {"url": url}}, text]
        first = [{"role": "system", "content": system}] if system else []
        whole = {"model": model, "messages": [*first, *said], "temperature": 0, **body}
        return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": whole}
    if provider == "anthropic":
        said = [{"role": message["role"], "content": message["content"]} for message in talk]
        if picture is not None:
            source = (
                {"type": "url", "url": picture.url}
                if picture.url
                else {"type": "base64", "media_type": picture.type, "data": picture.data}
            )
            said[0]["content"] = [{"type": "image", "source": source}, {"type": "text", "text": said[0]["content"]}]
        params = {"model": model, "max_tokens": MAX_TOKENS, "messages": said, "temperature": 0, **body}
        return {"custom_id": custom_id, "params": {**params, **({"system": system} if system else {})}}
    contents: list[dict[str, Any]] = [
        {"role": "model" if message["role"] == "assistant" else "user", "parts": [{"text": message["content"]}]}
        for message in talk
    ]
    if picture is not None:
        part = (
            {"file_data": {"mime_type": picture.type, "file_uri": picture.url}}
            if picture.url
            else {"inline_data": {"mime_type": picture.type, "data": picture.data}}
        )
        contents[0]["parts"].insert(0, part)
    whole = {"contents": contents, "generation_config": {"temperature": 0}, **body}
    return {
        "key": custom_id,
        "request": {**whole, **({"system_instruction": {"parts": [{"text": system}]}} if system else {})},
    }


def over_limits(provider: str, requests: int, size: int) -> str | None:
    """What to do about a file that is too large for its provider; None for one that is not."""
    most, bytes_ = LIMITS[provider]
    if (most is None or requests <= most) and size <= bytes_:
        return None
    many = f"{most:,} requests and {bytes_:,} bytes" if most is not None else f"{bytes_:,} bytes"
    return f"{provider} takes {many} in a file; this has {requests:,} and {size:,}: split it by lines (split -l)"


@dataclass(frozen=True)
class Result:
    """A line of a file of results: the id of its request, and the answer's `text` or the `problem` instead of one;
    tokens where they are counted, and the answer's tokens with their log-probabilities as the provider has them."""

    custom_id: str | None
    text: str | None = None
    problem: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    logprobs: Any = None


NO_MESSAGE = "an error without a message"


def result_of(row: Any) -> Result | None:
    """The result in a line, None for a line that is none. A result without an answer says why in a few words."""
    if not isinstance(row, dict):
        return None
    custom_id = row.get("custom_id", row.get("key"))
    named = custom_id if isinstance(custom_id, str) else None
    if named is not None and isinstance(row.get("result"), dict):
        return _of_anthropic(named, row["result"])
    if "custom_id" in row and named is not None and ({"response", "error"} & row.keys()):
        response = row.get("response")
        if row.get("error") or (isinstance(response, dict) and {"body", "status_code"} & response.keys()):
            return _of_openai(named, response, row.get("error"))
    if ("key" in row and named is not None) or "request" in row:
        response = row.get("response")
        if isinstance(response, dict) and {"candidates", "promptFeedback", "prompt_feedback"} & response.keys():
            return _of_gemini(named, response)
        if row.get("error") or (row.get("status") and not response):
            return Result(named, problem=_words(row.get("error") or row.get("status")) or NO_MESSAGE)
    return None


def _of_openai(custom_id: str, response: Any, error: Any) -> Result:
    if error:
        return Result(custom_id, problem=_words(error) or NO_MESSAGE)
    body = response.get("body") if isinstance(response, dict) else None
    body = body if isinstance(body, dict) else {}
    status = response.get("status_code", 200)
    if status != 200:
        return Result(custom_id, problem=f"HTTP {_words(status)} {_words(body.get('error'))}".strip())
    choice = _first(body.get("choices"))
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    if text is None and isinstance(body.get("output"), list):  # /v1/responses
        parts = [part for item in body["output"] if isinstance(item, dict) for part in _dicts(item.get("content"))]
        text = _joined(parts) if parts else None
    counts = _counts(body.get("usage"), ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    if not isinstance(text, str):
        return Result(custom_id, problem=f"no text ({_words(choice.get('finish_reason') or 'empty')})")
    return Result(custom_id, text, "", counts[0], counts[1], choice.get("logprobs"))


def _of_anthropic(custom_id: str, result: dict[str, Any]) -> Result:
    message = result.get("message")
    if result.get("type") != "succeeded" or not isinstance(message, dict):
        return Result(custom_id, problem=_words(result.get("error")) or _words(result.get("type")) or "no message")
    counts = _counts(message.get("usage"), ("input_tokens",), ("output_tokens",))
    parts = _dicts(message.get("content"))
    return (
        Result(custom_id, _joined(parts), "", counts[0], counts[1]) if parts else Result(custom_id, problem="no text")
    )


def _of_gemini(custom_id: str | None, response: dict[str, Any]) -> Result:
    candidate = _first(response.get("candidates"))
    content = candidate.get("content")
    parts = _dicts(content.get("parts")) if isinstance(content, dict) else []
    usage = response.get("usageMetadata", response.get("usage_metadata"))
    counts = _counts(
        usage, ("promptTokenCount", "prompt_token_count"), ("candidatesTokenCount", "candidates_token_count")
    )
    if not parts:
        feedback = response.get("promptFeedback", response.get("prompt_feedback"))
        why = candidate.get("finishReason") or (feedback.get("blockReason") if isinstance(feedback, dict) else None)
        return Result(custom_id, problem=f"no text ({_words(why or 'empty')})")
    return Result(custom_id, _joined(parts), "", counts[0], counts[1], candidate.get("logprobsResult"))


def _first(value: Any) -> dict[str, Any]:
    return next(iter(_dicts(value)), {})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _joined(parts: Sequence[Mapping[str, Any]]) -> str:
    """The text of an answer's parts, without thoughts."""
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))


def _counts(usage: Any, *names: Sequence[str]) -> list[int | None]:
    found = []
    for each in names:
        count = next((usage[name] for name in each if name in usage), None) if isinstance(usage, dict) else None
        found.append(count if type(count) is int and 0 <= count < 1 << 40 else None)
    return found


def _words(value: Any) -> str:
    """A provider's error on one short line."""
    for _ in range(3):
        if isinstance(value, dict):
            parts = [
                value[key] for key in ("code", "type", "status", "message") if isinstance(value.get(key), str | int)
            ]
            value = (
                value["error"] if isinstance(value.get("error"), dict) else ": ".join(map(str, parts[:2] + parts[3:]))
            )
    return " ".join(str(value or "")[:200].split())
