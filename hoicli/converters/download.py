"""Downloads that count only if their checksum is right."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from hoicli.converters.named import Part
from hoicli.errors import DataError, UsageError
from hoicli.io.outputs import atomic_path
from hoicli.io.progress import Progress

PATIENCE = 60.0
"""Seconds without a byte after which a server counts as silent."""
PIECE = 1 << 18
_LATER = "try again later, or get the file by hand: hoicli data add NAME FILE"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: files come from the address that hoicli knows, or not at all."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def download(part: Part, folder: Path) -> Path:
    """The file of a part in `folder`, downloaded unless it is there.

    Raises `UsageError` for an address without encryption, `DataError` if the server cannot be reached, refuses,
    redirects or sends something else than the published file, of which nothing is kept.
    """
    target = folder / os.path.basename(urlsplit(part.url).path)
    if target.is_file() and checksum(target, part.checksum) == part.checksum:
        return target
    _check_address(part.url)
    with atomic_path(str(target), "data fetch") as temporary:
        with open(temporary, "wb") as file:
            _transfer(part, file)
        found = checksum(Path(temporary), part.checksum)
        if found != part.checksum:
            problem = f"is not the published file ({found}, not {part.checksum}); fetch it again, or get it by hand"
            raise DataError(problem, place=part.url)
    return target


def _check_address(url: str) -> None:
    """Raises `UsageError` unless the address is https, or of this machine."""
    address = urlsplit(url)
    local = address.hostname == "localhost"
    with suppress(ValueError):
        local = local or ipaddress.ip_address(address.hostname or "").is_loopback
    if address.scheme != "https" and not (address.scheme == "http" and local):
        raise UsageError(f"{url}: not https; whoever sits between could change the file")


def _transfer(part: Part, file: IO[bytes]) -> None:
    """Write what the server sends, up to `part.most` bytes."""
    headers = {"User-Agent": "hoicli", "Accept-Encoding": "identity"}
    request = urllib.request.Request(part.url, headers=headers)  # noqa: S310 (_check_address has seen the scheme)
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=PATIENCE) as response:
            length = response.headers.get("Content-Length", "")
            total = int(length) if re.fullmatch("[0-9]{1,18}", length) else None
            _copy(part, response, file, total)
    except urllib.error.HTTPError as error:
        with error:
            raise DataError(_refusal(error), place=part.url) from None
    except urllib.error.URLError as error:
        raise DataError(f"no connection ({error.reason}); {_LATER}", place=part.url) from None
    except TimeoutError:
        raise DataError(f"the server fell silent; {_LATER}", place=part.url) from None
    except (HTTPException, ConnectionError) as error:
        raise DataError(f"the connection broke ({type(error).__name__}); {_LATER}", place=part.url) from None


def _copy(part: Part, response: Any, file: IO[bytes], total: int | None) -> None:
    done = 0
    with Progress(f"fetch {part.file_name}", total=total, unit="B") as progress:
        while piece := response.read1(PIECE):
            done += len(piece)
            if done > part.most:
                raise DataError(f"sends more than {part.most:,} bytes, as the published file never is", place=part.url)
            file.write(piece)
            progress.advance(len(piece))
    if total is not None and done < total:
        raise DataError(f"the connection broke after {done:,} of {total:,} bytes; {_LATER}", place=part.url)


def _refusal(error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        where = error.headers.get("Location", "nowhere")
        return f"redirects to {where}; get the file there by hand, then hoicli data add NAME FILE"
    return f"HTTP {error.code}; {_LATER}"


def checksum(path: Path, like: str) -> str:
    """The checksum of a file, of the kind of `like`: "sha256:HEX", or "git:HEX" (git's id of a file's content)."""
    kind = like.partition(":")[0]
    if kind == "git":  # how git names contents, and no protection by itself: the address is https at a fixed commit
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"
