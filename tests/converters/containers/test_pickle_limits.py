"""What a pickle may cost: a few bytes never lead to hours of work, a signal is heard, and dumps are read as before."""

from __future__ import annotations

import pickle
import signal
import struct
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.converters.containers import pickle_limits
from hoicli.converters.containers.pickle_limits import needs_care
from hoicli.converters.containers.unpickle import load_pickle
from hoicli.errors import DataError

PROTOCOLS = range(6)


def refusal(data: bytes) -> str:
    with pytest.raises(DataError) as caught:
        load_pickle(data, "dump.pkl")
    message = str(caught.value)
    assert message.startswith("dump.pkl: ")
    assert message.isprintable()
    return message


def long(number: int) -> bytes:
    raw = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def framed(content: bytes) -> bytes:
    return b"\x95" + struct.pack("<Q", len(content)) + content


# Tuples as keys

TWICE = b"2\x86"
KEYS = {
    "a pair of pairs of pairs": b"})" + TWICE * 60 + b"K\x01s.",
    "the same, many items": b"}()" + TWICE * 60 + b"K\x01u.",
    "the same, in a dictionary of protocol 0": b"()" + TWICE * 60 + b"K\x01d.",
    "the same, in a set": b"\x8f()" + TWICE * 60 + b"\x90.",
    "the same, in a frozenset": b"()" + TWICE * 60 + b"\x91.",
    "the same, in a set of Python 2": b"c__builtin__\nset\n])" + TWICE * 60 + b"a\x85R.",
    "the same, in an ordered dictionary": b"ccollections\nOrderedDict\n]])" + TWICE * 60 + b"aK\x01aa\x85R.",
    "the same, in a call of protocol 0": b"(])" + TWICE * 60 + b"aibuiltins\nfrozenset\n.",
    "by the memo": b"})q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"K\x01s.",
    "three tuples of a thousand": b"})" + (b"q\x00(" + b"h\x00" * 1000 + b"t") * 3 + b"K\x01s.",
    "a tuple of a hundred thousand, over and over": b"}(" + b"N" * 100_000 + b"tq\x00N" + b"sh\x00N" * 1000 + b"s.",
    "frozensets in frozensets": b"}" + b"(K\x01" * 200 + b"\x91" * 200 + b"Ns.",
    "a hundred thousand levels": b"})" + b"\x85" * 100_000 + b"Ns.",
}


@pytest.mark.parametrize("data", KEYS.values(), ids=KEYS)
def test_keys_that_take_for_ever_to_hash(data: bytes) -> None:
    started = time.process_time()
    assert "uses a tuple of more than 100 parts as a key; save it with text as keys" in refusal(b"\x80\x04" + data)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_small_tuples_are_keys(protocol: int) -> None:
    value = {((1, 2), "a"): frozenset([(3, 4), frozenset()]), tuple(range(90)): {(1, 2), (3,)}, (): set()}
    assert load_pickle(pickle.dumps(value, protocol), "dump.pkl") == value


def test_tuples_that_are_no_keys() -> None:
    value = tuple((image, (1.5,) * 200) for image in range(200))
    assert load_pickle(pickle.dumps(value), "dump.pkl") == value


# Work


def collisions(count: int) -> bytes:
    pairs = [long(number * (2**61 - 1)) + b"N" for number in range(1, count)]
    return b"\x80\x02}" + b"".join(b"(" + b"".join(pairs[at : at + 1000]) + b"u" for at in range(0, count, 1000)) + b"."


LONG_TEXT = b"x" * 1_000_000
WORK: dict[str, Callable[[], bytes]] = {
    "integers that collide": lambda: collisions(20_000),
    "a text that equals a key": lambda: b"}" + text(LONG_TEXT) + b"Ns" + text(LONG_TEXT) + b"q\x000"
    + b"h\x00Ns" * 100_000 + b".",
    "the same, in one frame": lambda: b"\x80\x04" + framed(b"}" + text(LONG_TEXT) + b"Ns" + text(LONG_TEXT)
    + b"q\x000" + b"h\x00Ns" * 100_000 + b"."),
    "a huge number over and over": lambda: b"\x80\x02}\x8b" + struct.pack("<i", 10**6) + b"\x7f" * 10**6 + b"q\x00N"
    + b"sh\x00N" * 100_000 + b"s.",
}  # fmt: skip


@pytest.mark.parametrize("made", WORK.values(), ids=WORK)
def test_work_that_no_size_justifies(made: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle_limits, "SECONDS", 0.05)
    monkeypatch.setattr(pickle_limits, "SECONDS_PER_MB", 0.0)
    data = made()
    started = time.process_time()
    assert "takes longer to build than its size can justify; " in refusal(data)
    assert time.process_time() - started < 3


def test_more_keys_than_pickle_brings_at_once() -> None:
    for end in (b"u", b"d"):
        pairs = b"".join(long(2**62 + number) + b"N" for number in range(20_000))
        data = b"\x80\x02" + b"}" * (end == b"u") + b"(" + pairs + end + b"."
        assert "brings 20,000 keys at once, pickle no more than 1,000; " in refusal(data)


@pytest.mark.parametrize("made", [WORK["integers that collide"], WORK["a text that equals a key"]], ids=["Python", "C"])
def test_a_signal_is_heard(made: Callable[[], bytes]) -> None:
    def stop(_: int, __: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    data = made()
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            load_pickle(data, "dump.pkl")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# What stands in many places


def doubled(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value, value]
    return value


SHARED = {
    "lists of the same two lists": doubled([1.5], 60),
    "dictionaries": {"a": [{"b": doubled({"c": 1}, 30)}]},
    "one image's list, many times": [{"hoi_prediction": [{"score": 0.5}] * 2000}] * 2000,
    "a list of numbers": [[1.5] * 10_000] * 1000,
    "an array": [np.zeros(100_000)] * 1000,
    "a tuple": doubled((1, (2, 3)), 30),
}


@pytest.mark.parametrize("value", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("protocol", [2, 4])
def test_parts_that_stand_in_many_places(value: Any, protocol: int) -> None:
    if isinstance(value, list) and isinstance(value[0], dict):  # the lists themselves are shared, not their items alone
        shared = value[0]["hoi_prediction"]
        value = [{"hoi_prediction": shared} for _ in value]
    started = time.process_time()
    assert "repeats its parts so often that no dump would; " in refusal(pickle.dumps(value, protocol))
    assert time.process_time() - started < 3


def test_what_is_nested_without_end() -> None:
    loop: list[Any] = []
    loop.append({"a": loop})
    assert "is nested more than 100 deep, or holds itself; " in refusal(pickle.dumps(loop))
    assert "is nested more than 100 deep, or holds itself; " in refusal(b"]" * 5000 + b"a" * 4999 + b".")


def test_a_shared_box_is_no_fault() -> None:
    box = [1.5, 2.5, 3.5, 4.5]
    value = [{"filename": f"{image}.jpg", "boxes": [box] * 1000} for image in range(300)]
    assert load_pickle(pickle.dumps(value), "dump.pkl") == value


# The look through the instructions

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**54), 2**54)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=300)
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_only_some_pickles_need_care(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    if b"_codecs" not in data:  # bytes in protocol 2 are a call, with a tuple
        assert not needs_care(data)
    assert needs_care(pickle.dumps([value, (1, 2)], protocol))
    assert needs_care(pickle.dumps([value, 2**63], protocol))
    assert needs_care(pickle.dumps([value, {1}], protocol))


@pytest.mark.parametrize("size", [1, 63, 64, 200, 255, 256, 70_000])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_text_of_any_length_is_stepped_over(size: int, protocol: int) -> None:
    for content in ("\x86" * size, "t" * size, b"\x86" * size):
        data = pickle.dumps(content, protocol)
        assert needs_care(data) == (b"_codecs" in data)
        assert load_pickle(data, "dump.pkl") == content
