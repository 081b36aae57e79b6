"""The key of an endpoint: checked before it is used, and seen nowhere, whatever a server sends back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.shoe.client import IN_ITS_PLACE, WITHHELD, Endpoint
from tests.support.llm_stub import Response, said, serving
from tests.support.project import Hoicli, MonkeyPatch, refusal, saved

KEY = "sk-Proj/4f9a+Zq2=LmX7c0"
URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _key(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return saved(tmp_path / "pairs.jsonl", '{"pos": "v", "a": "clean.v.01", "b": "wash.v.03"}\n')


def ask(url: str, pairs: Path, *more: object) -> list[object]:
    return ["shoe-sim", "--backend", "llm", "--base-url", url, "--pairs", pairs, "--model", "m", *more]


def without_punctuation(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "spaced out": " ".join,
    "on two lines": lambda key: key[:11] + "\r\n  " + key[11:],
    "a character an item": lambda key: json.dumps(list(key)),
    "its first two thirds": lambda key: key[: 2 * len(key) // 3],
    "its end": lambda key: key[-16:],
    "JSON escapes": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "JSON escapes here and there": lambda key: key.replace("P", "\\u0050").replace("/", "\\/").replace("Z", "\\u005A"),
    "JSON in JSON": lambda key: json.dumps("".join(f"\\u{ord(letter):04x}" for letter in key)),
    "percent": lambda key: quote(key, safe=""),
    "percent, all of it": lambda key: "".join(f"%{ord(letter):02X}" for letter in key),
    "HTML": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: b64encode(f"Authorization: Bearer {key}".encode()).decode(),
    "base64 of a user and the key": lambda key: b64encode(f"user:{key}\n".encode()).decode(),
    "base64 for addresses": lambda key: urlsafe_b64encode(f"a{key}".encode()).decode(),
    "base32": lambda key: b32encode(f"Bearer {key}".encode()).decode(),
    "hex": lambda key: f"Bearer {key}".encode().hex(),
    "hex in capitals with spaces": lambda key: key.encode().hex(" ").upper(),
    "a dump": lambda key: ", ".join(map(hex, key.encode())),
    "numbers": lambda key: str(list(f"x{key}".encode())),
    "a part in base64": lambda key: b64encode(key[3:-2].encode()).decode(),
    "two bytes a letter": lambda key: key.encode("utf-16-le").decode(),
}


def betrays(text: str, disguise: Callable[[str], str]) -> bool:
    """Whether a text has the key, or what the disguise made of it."""
    plain = without_punctuation(text)
    return any(without_punctuation(form) in plain for form in (KEY, disguise(KEY), repr(disguise(KEY))[1:-1]))


@pytest.mark.long
@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_a_key_that_comes_back(hoicli: Hoicli, tmp_path: Path, pairs: Path, disguise: Callable[[str], str]) -> None:
    """In an error of every form, in a header, and as the answer itself: not printed, and not in the cache."""
    cache = tmp_path / "answers.jsonl"
    echo = disguise(KEY)
    header = "".join(letter for letter in echo if letter.isprintable())
    responses = [
        Response(401, json.dumps({"error": {"message": f"Incorrect API key provided: {echo}. See the manual."}})),
        Response(400, f"<html>Authorization: Bearer {echo}</html>"),
        Response(403, json.dumps({"error": {"headers": {"Authorization": f"Bearer {echo}"}}})),
        Response(503, " " * 40 + "x" * 60 + f"Bearer {echo}"),  # where the line is cut
        Response(302, Location=f"http://127.0.0.1:9/?key={header}"),
        said(f"I was asked with {echo}"),
        said("x" * 1990 + echo),  # where the kept text is cut
        said(echo * 500),
    ]
    for response in responses:
        with serving(lambda *_, response=response: response) as stub:
            result = hoicli(*ask(stub.url, pairs, "--cache", cache))
            assert result.code == 1
            skipped = hoicli(*ask(stub.url, pairs, "--cache", cache, "--on-error", "skip"))
        for text in (result.out + result.err, skipped.out + skipped.err, cache.read_text()):
            assert not betrays(text, disguise), text
    assert cache.read_text().count('"rating":null') == 3 * 3 * 2


def test_what_is_shown_instead(hoicli: Hoicli, tmp_path: Path, pairs: Path) -> None:
    endpoint = Endpoint(URL, KEY)
    assert endpoint.hide_key(f"no such key: {KEY}, sorry") == f"no such key: {IN_ITS_PLACE}, sorry"
    assert endpoint.hide_key(f"no such key: {KEY.upper()}") == WITHHELD
    assert endpoint.hide_key("the model is not known") == "the model is not known"
    assert endpoint.hide_key("sk-Proj-***c0") == "sk-Proj-***c0"  # as servers name a key that they do not print
    assert Endpoint(URL).hide_key(KEY) == KEY
    with serving(lambda *_: Response(401, json.dumps({"error": {"message": f"bad key {KEY}"}}))) as stub:
        result = hoicli(*ask(stub.url, pairs))
    assert "HTTP 401 (bad key [key]): put a valid key into OPENAI_API_KEY" in result.err


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=5), st.text(max_size=30))
def test_a_short_key_hides_itself_and_no_other_word(key: str, text: str) -> None:
    """Servers on one's own machine want any key: `x`, `none`. They are in many words, not only in disguise."""
    assert Endpoint(URL, key).hide_key(text) == text.replace(key, IN_ITS_PLACE)


def test_a_rating_beside_the_key_counts(hoicli: Hoicli, tmp_path: Path, pairs: Path) -> None:
    cache = tmp_path / "answers.jsonl"
    with serving(lambda *_: said(f'{KEY}: {{"rating": 3}}')) as stub:
        result = hoicli(*ask(stub.url, pairs, "--cache", cache))
    assert json.loads(result.out)["similarity"] == 0.75
    assert KEY not in result.out + result.err + cache.read_text()


def test_a_redirect_gets_nothing(hoicli: Hoicli, pairs: Path) -> None:
    with serving() as other, serving(lambda *_: Response(307, Location=f"{other.url}/chat/completions")) as stub:
        assert hoicli(*ask(stub.url, pairs)).code == 1
        assert stub.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert other.headers == []


@pytest.mark.parametrize("key", ["sk-one\r\nX-Other: 1", "sk one", "sk-\x00", "sk-\u20ac"])
def test_no_key_is_quoted(hoicli: Hoicli, tmp_path: Path, pairs: Path, monkeypatch: MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "OPENAI_API_KEY": key})  # NUL: the system itself would refuse it
    cache = tmp_path / "answers.jsonl"
    with serving() as stub:
        result = hoicli(*ask(stub.url, pairs, "--cache", cache))
        assert stub.requests == []
    assert (result.code, result.out, cache.exists()) == (2, "", False)
    assert result.err == (
        "hoicli: OPENAI_API_KEY: its key holds a space, a line break or another character that no key has (not shown "
        "here); put the key alone into the variable\n"
    )


@pytest.mark.parametrize("secret", ["user:hunter2@{host}/v1", "{host}/v1?api-key=hunter2", "{host}/v1#hunter2"])
def test_secrets_in_the_url_are_refused_and_not_quoted(hoicli: Hoicli, pairs: Path, secret: str) -> None:
    with serving() as stub:
        url = "http://" + secret.format(host=stub.url.removeprefix("http://").removesuffix("/v1"))
        for more in ((), ("--dry-run",)):
            said = refusal(hoicli(*ask(url, pairs, *more)), 2)
            assert "hoicli: --base-url: holds a user, a query or a fragment, which is not shown here" in said
            assert "hunter2" not in said
        assert stub.requests == []


def test_the_key_in_the_wrong_option_is_not_quoted(hoicli: Hoicli, pairs: Path) -> None:
    result = hoicli(*ask(f"{URL}/{KEY} ", pairs))
    assert result.code == 2
    assert KEY not in result.err
    assert IN_ITS_PLACE in result.err


def test_no_traceback_has_the_key(pairs: Path) -> None:
    """Not even where hoicli shows tracebacks, of every failure above that has one."""
    with serving(lambda *_: Response(401, f"no {KEY}")) as stub:
        for url, key in ((stub.url, KEY), (stub.url, f"{KEY}\nmore")):
            process = subprocess.run(
                [sys.executable, "-m", "hoicli", *map(str, ask(url, pairs))],
                env={**os.environ, "OPENAI_API_KEY": key, "HOICLI_DEBUG": "1"},
                capture_output=True,
                text=True,
            )
            assert process.returncode in (1, 2)
            assert KEY not in process.stdout + process.stderr
            assert "Traceback" not in process.stderr


def test_a_proxy_s_password_is_not_quoted(hoicli: Hoicli, pairs: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    for proxy in ("http://user:hunter2@127.0.0.1:9", "http://user:hunter2/4@127.0.0.1:9", "http:/user:hunter2@h"):
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy)
        result = hoicli(*ask("http://hoicli.invalid/v1", pairs))
        assert (result.code, result.err.count("\n")) == (1, 2)
        assert "hunter2" not in result.err
        assert "internal error" not in result.err


def test_the_cache_is_never_replaced(hoicli: Hoicli, tmp_path: Path, pairs: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serving() as stub:
        assert hoicli(*ask(stub.url, pairs, "--cache", "paid.jsonl")).code == 0
        paid = Path("paid.jsonl").read_bytes()
        Path("link.jsonl").symlink_to("paid.jsonl")
        Path("hard.jsonl").hardlink_to("paid.jsonl")
        Path("dangling.jsonl").symlink_to("new.jsonl")
        stub.requests.clear()
        for cache, output in (
            ("paid.jsonl", "paid.jsonl"),
            ("link.jsonl", "paid.jsonl"),
            ("paid.jsonl", "hard.jsonl"),
            ("new.jsonl", "dangling.jsonl"),
        ):
            for more in (("--model", "other"), ("--dry-run",)):
                said = refusal(hoicli(*ask(stub.url, pairs, "--cache", cache, "-o", output, *more)), 2)
                assert said == f"hoicli: --cache {cache}: is the output of -o already; give another file"
        assert stub.requests == []
        assert Path("paid.jsonl").read_bytes() == paid
        assert not Path("new.jsonl").exists()
        assert hoicli(*ask(stub.url, pairs, "--cache", "paid.jsonl", "-o", "other.jsonl")).code == 0


def test_a_server_that_is_down(hoicli: Hoicli, tmp_path: Path, pairs: Path) -> None:
    with serving() as stub:
        url = stub.url
    result = hoicli(*ask(url, pairs))
    first, second = result.err.splitlines()
    assert first == "hoicli: without --cache FILE a run that ends early loses its answers"
    assert second.startswith(f"{url}/chat/completions: no connection (")
    assert second.endswith(", 2 times; run again to go on")
    cached = hoicli(*ask(url, pairs, "--cache", tmp_path / "answers.jsonl"))
    assert cached.err.count("\n") == 1
    assert cached.err.endswith(", 2 times; run again to go on\n")


@pytest.mark.parametrize("options", [
    *(("--jobs", value) for value in ("100000", "0", "-1")),
    *(("--model", value) for value in ("a\x1b[2J", "\udcff", "")),
], ids=lambda options: " ".join(options)[:20])  # fmt: skip
def test_options_are_checked_before_work(hoicli: Hoicli, pairs: Path, options: tuple[str, str]) -> None:
    with serving() as stub:
        result = hoicli(*ask(stub.url, pairs), *options)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert len(result.err) < 1100
        assert options[0] in result.err
        assert not stub.asked
