"""The requests of `prompts --batch`: a prompt, its picture, and the fields of a provider's protocol."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from hoicli.converters.vlm.batches import TYPES, Picture, batch_id, over_limits, request, request_fields
from hoicli.errors import DataError, UsageError
from hoicli.io.claims import reads
from hoicli.records.parsing import Record


@dataclass
class BatchMaker:
    """Makes the requests of a batch file, and counts them. `folder`: where the pictures are, or `url`: what comes
    before their file names."""

    provider: str
    model: str
    folder: Path | None
    url: str | None
    body: Mapping[str, Any]
    count: int = 0
    size: int = 0
    seen: set[str] = field(default_factory=set)

    @classmethod
    def checked(
        cls, provider: str, *, model: str | None, folder: str | None, url: str | None, body: str | None
    ) -> BatchMaker:
        """From the values of the options. Raises `UsageError` for bad or missing ones."""
        if not model:
            raise UsageError("--batch: name the --model to ask")
        if (folder is None) == (url is None):
            raise UsageError("--batch: a request needs its picture: give --images DIR, or --image-url URL")
        if url is not None and urlsplit(url).scheme not in ("http", "https", "gs"):
            raise UsageError(f"--image-url {url}: give https://HOST/FOLDER/ (for gemini also gs://BUCKET/FOLDER/)")
        path = None if folder is None else Path(folder)
        return cls(provider, model, path, url, request_fields(body))

    def requests(self, lines: Sequence[Record], place: str) -> list[Record]:
        """The requests of prompts' lines. Raises `DataError` for a line without a file name or whose picture cannot be
        read, and for the second of an image, or of a line's own custom_id."""
        try:
            return list(map(self._request, lines))
        except DataError as error:
            raise DataError(error.problem, place=place, field=error.field) from None

    def _request(self, line: Record) -> Record:
        key = "custom_id" if "custom_id" in line else "image_id"
        custom_id = batch_id(line[key])
        if custom_id in self.seen:
            raise DataError("occurs twice; a batch has one request for each id", field=key)
        self.seen.add(custom_id)
        messages = [{"role": "system", "content": line["system"]}, {"role": "user", "content": line["prompt"]}]
        body = dict(self.body)
        if "response_format" in line:
            body = {**_format(self.provider, line["response_format"]), **body}
        return request(self.provider, custom_id, self.model, messages, body, self._picture(line))

    def _picture(self, line: Record) -> Picture:
        name = line.get("file_name")
        if not isinstance(name, str) or not name:
            raise DataError("missing; a batch request needs its picture", field="file_name")
        kind = TYPES.get(Path(name).suffix.lower())
        if kind is None:
            raise DataError(f"{name!r} is no picture that providers take ({', '.join(TYPES)})", field="file_name")
        if self.url is not None:
            return Picture(kind, self.url.rstrip("/") + "/" + quote(name))
        folder = (self.folder or Path()).resolve()
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):  # names come from files of others, and what they name is sent away
            raise DataError(f"{name!r} leads out of --images", field="file_name")
        reads(path, kept=False)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{name!r} cannot be read in --images ({error.strerror})", field="file_name") from None
        return Picture(kind, data=base64.b64encode(data).decode())

    def counted(self, line: bytes) -> bytes:
        """The line, counted."""
        self.count += 1
        self.size += len(line)
        return line

    def problem(self) -> str | None:
        """What to do if the file is too large."""
        return over_limits(self.provider, self.count, self.size)


def _format(provider: str, response_format: Any) -> dict[str, Any]:
    """The schema of a reply as a provider's protocol takes it."""
    if provider == "openai":
        return {"response_format": response_format}
    schema = response_format["json_schema"]["schema"]
    if provider == "anthropic":
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {
        "generation_config": {
            "temperature": 0,
            "response_mime_type": "application/json",
            "response_json_schema": schema,
        }
    }
