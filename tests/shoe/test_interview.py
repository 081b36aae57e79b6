"""Language models as raters, against a server on this machine: nothing is lost, and nothing is asked twice."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hoicli.errors import DataError, UsageError
from hoicli.io.messages import kept_notes
from hoicli.shoe import client
from hoicli.shoe.client import Endpoint
from hoicli.shoe.interview import Answer, AnswerCache, Interview, Question, parse_rating
from tests.support.llm_stub import Asked, Fault, Response, Stub, dripping, rate, said, serving
from tests.support.project import MonkeyPatch, complaint, saved

QUESTIONS = [Question("v", f"a{number:03}.v.01", f"b{number:03}.v.01", "one thing", "another") for number in range(40)]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[AnswerCache]:
    found = AnswerCache(str(tmp_path / "answers.jsonl"))
    yield found
    found.close()


def interview(
    stub: Stub, cache: AnswerCache, *models: str, screen: str | None = None, skip: bool = False, jobs: int = 8
) -> Interview:
    return Interview(Endpoint(stub.url), cache, models or ["m"], screen, jobs=jobs, skip=skip)


def expected(*models: str) -> list[dict[str, int]]:
    return [{model: rate(model, question.a, question.b) for model in models} for question in QUESTIONS]


@pytest.mark.parametrize(("text", "rating"), [
    ('{"rating": 3}', 3), ("{'rating': '4'}", 4), ('{"rating": 2.0}', 2),
    ('```json\n{"rating": 0, "why": "no"}\n```', 0), ('<think>{"rating": 4}? No.</think>\n{"rating": 1}', 1),
    ('{"rating": 1} or rather {"rating": 1}', 1), (" 3\n", 3), ('{"rating": 1} or rather {"rating": 2}', None),
    ('<think>maybe {"rating": 1}', None), ('{"rating": 5}', None), ('{"rating": 2.5}', None), ("3 of 4", None),
    ("", None),
])  # fmt: skip
def test_what_counts_as_a_rating(text: str, rating: int | None) -> None:
    assert parse_rating(text) == rating


def test_every_question_is_asked_once_of_every_model(cache: AnswerCache) -> None:
    second = threading.Event()

    def together(stub: Stub, *_: object) -> None:
        """The first answer waits for a second question: a busy machine may not send two at once by itself."""
        if stub.most_at_once > 1:
            second.set()
        second.wait(60)

    with serving(together) as stub:
        asked = interview(stub, cache, "m1", "m2", jobs=4)
        assert asked.ratings(QUESTIONS) == expected("m1", "m2")
        assert asked.failures == []
        assert set(stub.asked.values()) == {1}
        assert len(stub.asked) == 80
        assert 1 < stub.most_at_once <= 4
        body = stub.requests[0]
        assert body["temperature"] == 0
        assert body.keys() == {"model", "messages", "temperature"}
        assert stub.headers[0]["path"] == "/v1/chat/completions"
        assert "Authorization" not in stub.headers[0]
        assert interview(stub, cache, "m1", "m2").ratings(QUESTIONS) == expected("m1", "m2")
        assert sum(stub.asked.values()) == 80


FAULTS = {
    "rate limit": Response(429, '{"error": {"message": "slow down"}}', Retry_After="0"),
    "overloaded": Response(503, "<html>busy</html>", Retry_After="nonsense"), "broken": Response(500, b"\xff\xfe"),
    "connection cut": Response(0), "no JSON": Response(200, "hello"),
    "nested without end": Response(200, "[" * 100_000), "no text": said(""), "no rating": said("They are alike."),
    "a number too high": said('{"rating": 7}'),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_goes_wrong_once_is_asked_again(cache: AnswerCache, fault: Response) -> None:
    def first_time(_: Stub, __: Asked, times: int) -> Response | None:
        return fault if times == 1 else None

    with serving(first_time) as stub:
        asked = interview(stub, cache)
        assert asked.ratings(QUESTIONS) == expected("m")
        assert asked.failures == []
        assert set(stub.answered.values()) == {1}
        assert set(stub.asked.values()) == {2}


def test_a_server_that_does_not_answer_in_time_is_asked_again(cache: AnswerCache, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 1.0)

    def slow(_: Stub, __: Asked, times: int) -> Response | None:
        return Response(200, "late", wait=600) if times == 1 else None

    with serving(slow) as stub:
        assert interview(stub, cache).ratings(QUESTIONS[:4]) == expected("m")[:4]
        assert min(stub.asked.values()) >= 2


ENDLESS = {
    "nothing": (b"", b""),
    "a status line": (b"HTTP/1.1 200 ", b"O"),
    "please go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nX-Wait: ", b"a"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Wait: a\r\n"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a body of no length": (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "an error's text": (b"HTTP/1.1 500 no\r\nContent-Length: 8000\r\n\r\n", b"a"),
}
"""What a server sends at first, and then again and again."""


@pytest.mark.parametrize("sent", ENDLESS.values(), ids=ENDLESS)
def test_a_timeout_covers_an_answer_that_does_not_end(
    cache: AnswerCache, sent: tuple[bytes, bytes], monkeypatch: MonkeyPatch
) -> None:
    """Of a part of it alone this would never end; and the first time is said, as the last is long after it."""
    monkeypatch.setattr(client, "TIMEOUT", 0.4)
    words = r"(no answer within 0.4 s|HTTP 500.*|the connection broke \(got more than 100 headers\)), 2 times"
    with dripping(*sent) as url, kept_notes() as notes, pytest.raises(DataError, match=words) as failed:
        Interview(Endpoint(url), cache, ["m"], jobs=1).ratings(QUESTIONS[:1])
    late = "no answer within" in str(failed.value)
    assert [note for note in notes if "no answer within 0.4 s; asking up to 2 times" in note] == notes[:late]
    assert len(notes) == late


def test_an_answer_in_chunks(cache: AnswerCache) -> None:
    text = b'{"choices": [{"message": {"content": "{\\"rating\\": 3}"}}]}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (text[:20], text[20:], b""))
    first = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    with dripping(first, b"") as url:
        assert Interview(Endpoint(url), cache, ["m"], jobs=1).ratings(QUESTIONS[:1]) == [{"m": 3}]


def test_half_a_character_hides_no_rating(cache: AnswerCache) -> None:
    content = '{"choices": [{"message": {"content": "{\\"rating\\": 3} \\ud800"}}]}'
    with serving(lambda *_: Response(200, content)) as stub:
        assert interview(stub, cache).ratings(QUESTIONS[:3]) == [{"m": 3}] * 3


def test_screening_saves_the_other_models_what_is_unrelated(cache: AnswerCache) -> None:
    with serving() as stub:
        found = interview(stub, cache, "m1", "s", "m2", screen="s").ratings(QUESTIONS)
        for question, scores in zip(QUESTIONS, found, strict=True):
            screened = rate("s", question.a, question.b)
            assert scores["s"] == screened
            assert scores.keys() == ({"s"} if screened == 0 else {"s", "m1", "m2"})
            assert stub.asked["m1", question.a, question.b] == (0 if screened == 0 else 1)
        # what a run without screening has asked before does not change the screened table
        interview(stub, cache, "m1", "m2").ratings(QUESTIONS)
        assert interview(stub, cache, "m1", "m2", screen="s").ratings(QUESTIONS) == found


def test_a_pair_that_the_screening_model_does_not_rate_is_asked_of_the_others(cache: AnswerCache) -> None:
    with serving(lambda _, asked, __: Response(404, "gone") if asked[0] == "s" else None) as stub:
        found = interview(stub, cache, "m1", screen="s", skip=True).ratings(QUESTIONS[:2])
    assert found == expected("m1")[:2]


def never(asked: Asked) -> Fault:
    return lambda _, what, __: said("I'd rather not") if what == asked else None


def test_a_bad_answer_is_asked_again_then_told_and_the_others_are_kept(cache: AnswerCache, tmp_path: Path) -> None:
    stubborn = ("m", QUESTIONS[7].a, QUESTIONS[7].b)
    with serving(never(stubborn)) as stub:
        asked = interview(stub, cache)
        found = asked.ratings(QUESTIONS)
        assert [reason for _, reason in asked.failures] == ['m on a007.v.01 and b007.v.01 (said "I\'d rather not")']
        assert found == [*expected("m")[:7], {}, *expected("m")[8:]]
        assert stub.asked[stubborn] == 3
        reminded = next(body for body in stub.requests if len(body["messages"]) == 4)["messages"]
        assert reminded[2] == {"role": "assistant", "content": "I'd rather not"}
        assert reminded[3]["content"].startswith("That was not the format.")
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert len(lines) == 39 + 3
    assert [line["answer"] for line in lines if line["rating"] is None] == ["I'd rather not"] * 3
    with serving() as stub:  # it has thought better of it
        assert interview(stub, cache).ratings(QUESTIONS) == expected("m")
        assert stub.asked == {stubborn: 1}


def test_a_server_that_stays_away_ends_the_run_and_what_was_answered_is_kept(cache: AnswerCache) -> None:
    def closes(stub: Stub, _: Asked, __: int) -> Response | None:
        return Response(503, "gone") if sum(stub.answered.values()) >= 10 else None

    with serving(closes) as stub:
        with pytest.raises(DataError, match=r"HTTP 503 \(gone\), 2 times; run again to go on"):
            interview(stub, cache, jobs=2).ratings(QUESTIONS)
        answered = dict(stub.answered)
        assert len(answered) == 10
        stub.fault = None
        assert interview(stub, cache).ratings(QUESTIONS) == expected("m")
        assert set(stub.answered.values()) == {1}
        stub.fault = lambda *_: Response(503, "gone")
        skipping = interview(stub, cache, "other", skip=True)
        assert skipping.ratings(QUESTIONS[:2]) == [{}, {}]
        assert all(reason.endswith("(HTTP 503 (gone), 2 times)") for _, reason in skipping.failures)


@pytest.mark.parametrize(("response", "words"), [
    (Response(401, '{"error": {"message": "no such key"}}'), "HTTP 401 (no such key): put a valid key"),
    (Response(404, '{"error": "what?"}'), "HTTP 404 (what?): check --base-url (usually it ends in /v1)"),
    (Response(400, "{}"), "HTTP 400 ({}): check --base-url (usually it ends in /v1) and --model m"),
    (Response(302, Location="http://127.0.0.1:9/"), "it redirects to http://127.0.0.1:9/; give the final address"),
])  # fmt: skip
def test_a_refusal_ends_the_run_at_once(cache: AnswerCache, response: Response, words: str) -> None:
    with serving(lambda *_: response) as stub:
        asked = Interview(Endpoint(stub.url, "secret"), cache, ["m"], jobs=1)
        said = complaint(DataError, asked.ratings, QUESTIONS)
        assert words in said
        assert said.startswith(f"{stub.url}/chat/completions: ")
        assert "secret" not in said
        assert "secret" not in repr(Endpoint(stub.url, "secret"))
        assert sum(stub.asked.values()) == 1
        assert stub.headers[0]["Authorization"] == "Bearer secret"


def test_answers_without_measure_are_refused(cache: AnswerCache) -> None:
    with serving(lambda *_: Response(200, b"x" * (client.LONGEST_ANSWER + 1))) as stub:
        with pytest.raises(DataError, match="more than 1,048,576 bytes"):
            interview(stub, cache, jobs=1).ratings(QUESTIONS[:1])
        assert sum(stub.asked.values()) == 2


@pytest.mark.parametrize("url", [
    "file:///etc/passwd", "localhost:8000", "http://", "ftp://host/v1", "http://host:0/v1", "http://host:65536/v1",
    "http://a..b/v1", f"http://{'a' * 64}.b/v1", "http://%00/v1", "http://[::1/v1", "http://h\u00f6st/v1",
    "http://a b/v1", "http://host:x/v1", "http://:80/v1",
])  # fmt: skip
def test_only_http(url: str) -> None:
    with pytest.raises(UsageError, match="--base-url"):
        Endpoint(url)


def answer(number: int, rating: int | None = 2, model: str = "m") -> Answer:
    return Answer(model, "setup", "v", f"a{number}.v.01", f"b{number}.v.01", rating)


def written(path: Path, *given: Answer) -> bytes:
    cache = AnswerCache(str(path))
    for one in given:
        cache.add(one)
    cache.close()
    return path.read_bytes()


def test_a_last_line_that_is_cut_anywhere_is_passed_over(tmp_path: Path) -> None:
    unusable = replace(answer(2, None), answer='as {"so": {}} and {} ')
    for last in (answer(2, 4), unusable):  # the latter has a } in many places
        whole = written(tmp_path / f"{last.rating}.jsonl", answer(1), last)
        first = whole.index(b"\n") + 1
        path = tmp_path / "cut.jsonl"
        for end in range(first, len(whole) + 1):
            path.write_bytes(whole[:end])
            cache = AnswerCache(str(path))
            complete = end >= len(whole) - 1
            assert cache.rating(answer(1).key) == 2
            assert cache.rating(answer(2).key) == (last.rating if complete else None)
            assert path.read_bytes() == whole[:end]
            cache.add(answer(3))
            cache.close()
            assert path.read_bytes() == whole[:end] + b"\n" * (first < end < len(whole)) + answer(3).line()
            again = AnswerCache(str(path))
            assert [again.rating(answer(number).key) for number in (1, 3)] == [2, 2]
            again.close()


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: a part of the line is written, then nothing."""
    path = tmp_path / "answers.jsonl"
    whole = written(path, answer(1))
    cache = AnswerCache(str(path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, limits[1]))
    try:
        for number in (2, 3):
            with pytest.raises(DataError, match=r"answers.jsonl: cannot be written \(File too large\); make room"):
                cache.add(answer(number))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    cache.add(answer(4))
    cache.close()
    assert path.read_bytes() == whole + answer(2).line()[:20] + b"\n" + answer(4).line()


@pytest.mark.parametrize("path", ["/dev/full", "/dev/zero", "{tmp}/pipe", "{tmp}"])
def test_what_can_hold_no_answers(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=f"--cache {path.format(tmp=tmp_path)}: "):
        AnswerCache(path.format(tmp=tmp_path))


@pytest.mark.parametrize(
    "content",
    [b'{"image_id": 1}', b"precious", b'{"model":"m","setup":"s","pos":"v","a":"a","b":"b","rating":5}\n', b"[]\n"],
)
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path / "precious.jsonl", content)
    with pytest.raises(DataError, match=r"precious.jsonl:1: no answer of a model .*is this the file for --cache"):
        AnswerCache(str(path))
    assert path.read_bytes() == content


def test_the_first_of_two_answers_counts(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    written(path, answer(1, None), answer(1, 3), answer(1, 0))
    assert AnswerCache(str(path)).rating(answer(1).key) == 3


def test_threads_share_a_file_that_another_run_may_not_have(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    cache = AnswerCache(str(path))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: cache.add(answer(number, 1)), range(100)))
    with pytest.raises(UsageError, match=r"--cache .*answers.jsonl: another run has it; wait for that one"):
        AnswerCache(str(path))
    cache.close()
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(answer(n, 1).line() for n in range(100))
