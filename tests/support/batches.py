"""What a provider gives back for a batch file: a line of results for a line of requests."""

from __future__ import annotations

from typing import Any


def prompt_in(line: dict[str, Any]) -> tuple[str, str]:
    """(id, the user's text) of a request, of any provider."""
    if "key" in line:
        return line["key"], next(part["text"] for part in line["request"]["contents"][0]["parts"] if "text" in part)
    content = next(
        message["content"] for message in (line.get("body") or line["params"])["messages"] if message["role"] == "user"
    )
    if isinstance(content, list):
        content = next(part["text"] for part in content if part["type"] == "text")
    return line["custom_id"], content


def result(provider: str, custom_id: str, text: str, logprobs: Any = None) -> dict[str, Any]:
    """A result with an answer."""
    if provider == "openai":
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": logprobs}
        body = {
            "object": "chat.completion",
            "choices": [choice],
            "usage": {"prompt_tokens": 200, "completion_tokens": 7},
        }
        return {"id": "r", "custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}
    if provider == "anthropic":
        content = [{"type": "text", "text": text}]
        message = {"type": "message", "content": content, "usage": {"input_tokens": 200, "output_tokens": 7}}
        return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}
    parts = [{"text": "let me think", "thought": True}, {"text": text}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 200, "candidatesTokenCount": 7}
    return {"key": custom_id, "response": {"candidates": [candidate], "usageMetadata": usage}}


def failed(provider: str, custom_id: str) -> dict[str, Any]:
    """A result without an answer: it expired, or had an error."""
    if provider == "openai":
        error = {"code": "batch_expired", "message": "This request could not be executed in time."}
        return {"id": "r", "custom_id": custom_id, "response": None, "error": error}
    if provider == "anthropic":
        return {"custom_id": custom_id, "result": {"type": "expired"}}
    return {"key": custom_id, "error": {"code": 13, "message": "Internal error."}}


FAILED = {"openai": "batch_expired", "anthropic": "expired", "gemini": "Internal error."}
"""Words of a failure's reason."""
