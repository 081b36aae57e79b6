"""What a pickle may cost: a few bytes never lead to hours of work, a signal is heard, and dumps are read as before."""

from __future__ import annotations

import pickle
import signal
import struct
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
    """Those of sixty levels have 2 ** 60 parts: once hashed, nothing is said before the sun goes out."""
    assert "uses a tuple of more than 100 parts as a key; save it with text as keys" in refusal(b"\x80\x04" + data)


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
    """By a clock that goes on a second whenever it is looked at: the look that finds the time over is the last one."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return float(looks)

    monkeypatch.setattr("hoicli.converters.containers.pickle_limits.time.thread_time", clock)
    monkeypatch.setattr(pickle_limits, "SECONDS", 5.0)
    monkeypatch.setattr(pickle_limits, "SECONDS_PER_MB", 0.0)
    assert "takes longer to build than its size can justify; " in refusal(made())
    assert looks == 7


def test_more_keys_than_pickle_brings_at_once() -> None:
    for end in (b"u", b"d"):
        pairs = b"".join(long(2**62 + number) + b"N" for number in range(20_000))
        data = b"\x80\x02" + b"}" * (end == b"u") + b"(" + pairs + end + b"."
        assert "brings 20,000 keys at once, pickle no more than 1,000; " in refusal(data)


@pytest.mark.parametrize("made", [WORK["integers that collide"], WORK["a text that equals a key"]], ids=["Python", "C"])
def test_a_signal_is_heard(made: Callable[[], bytes]) -> None:
    def stop(_: int, __: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    def loaded() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        load_pickle(data, "dump.pkl")

    data = made()
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            loaded()
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
    assert "repeats its parts so often that no dump would; " in refusal(pickle.dumps(value, protocol))


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
    assert not needs_care(data)
    assert needs_care(pickle.dumps([value, (1, "a")], protocol))
    assert needs_care(pickle.dumps([value, (1, 2, 3, 4)], protocol))
    assert needs_care(pickle.dumps([value, 2**63], protocol))
    assert needs_care(pickle.dumps([value, {1}], protocol)) == (protocol >= 4)  # before, sets are calls, which look


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numbers_and_arrays_of_numpy_need_no_care(protocol: int) -> None:
    arrays = [np.zeros(4, np.float32), np.ones((2, 300)), np.zeros((1, 2, 3), bool), np.array(1.5), np.array(["a"])]
    value = [*arrays, *map(np.float32, range(9)), np.float64(0.5), np.int64(2**62), np.str_("a"), np.bool_(True)]
    data = pickle.dumps([value, {"score": np.float32(0.5), "box": np.arange(4)}], protocol)
    assert not needs_care(data)
    loaded = load_pickle(data, "dump.pkl")
    assert [np.asarray(part).tolist() for part in loaded[0]] == [np.asarray(part).tolist() for part in value]


NESTED = b")" + b"\x85" * 3 + b"q\x010"
CALLS = {
    "a type of an array": b"cnumpy\ndtype\nX\x02\0\0\0f4h\x01\x86R",
    "the state of one": b"cnumpy\ndtype\nX\x02\0\0\0f4\x85R(K\x03X\x01\0\0\0<NNNJ\0\0\0\0J\0\0\0\0h\x01tb",
    "a number": b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\0\0\0U0\x85Rh\x01\x86R",
    "an array": b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85h\x01\x87R",
    "the state of an array": b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R"
    b"(h\x01K\x01\x85cnumpy\ndtype\nX\x02\0\0\0u1\x85R\x89C\x01ztb",
    "an array of a buffer": b"cnumpy.core.numeric\n_frombuffer\n(C\x01zcnumpy\ndtype\n"
    b"X\x02\0\0\0u1\x85RK\x01\x85h\x01tR",
    "its axes": b"cnumpy.core.numeric\n_frombuffer\n(C\x01zcnumpy\ndtype\nX\x02\0\0\0u1\x85RK\x01\x85C\x01Ch\x01tR",
    "a dictionary": b"ccollections\ndefaultdict\nh\x01\x85R",
    "bytes": b"c_codecs\nencode\nh\x01X\x06\0\0\0latin1\x86R",
    "the codec of bytes": b"c_codecs\nencode\nX\x01\0\0\0ah\x01\x86R",
    "a list": b"cbuiltins\nlist\nh\x01\x85R",
    "the state of a dictionary": b"}h\x01h\x01\x86b",
    "the state of a name": b"cnumpy\nndarray\nNh\x01\x86b",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_call_takes_a_tuple_with_others_in_it(call: bytes) -> None:
    """What is called with a tuple is not looked at before: so nothing that is called may be content with one."""
    assert load_pickle(b"\x80\x04" + NESTED + b"h\x01.", "dump.pkl") == ((((),),),)
    assert not needs_care(b"\x80\x04" + call + b".")
    refusal(b"\x80\x04" + NESTED + call + b".")


def test_plain_values_in_the_place_of_the_tuple_are_taken() -> None:
    """The calls above are refused for their tuple, and for no slip of the test."""
    for name in ("a type of an array", "the state of one", "a number", "an array", "an array of a buffer"):
        plain = {"an array": b"C\x01b", "a number": b"C\0", "an array of a buffer": b"X\x01\0\0\0C"}.get(name, b"K\0")
        load_pickle(b"\x80\x04" + CALLS[name].replace(b"h\x01", plain) + b".", "dump.pkl")


@pytest.mark.parametrize("size", [1, 63, 64, 200, 255, 256, 70_000])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_text_of_any_length_is_stepped_over(size: int, protocol: int) -> None:
    for content in ("\x86" * size, "t" * size, b"\x86" * size):
        data = pickle.dumps(content, protocol)
        assert not needs_care(data)
        assert load_pickle(data, "dump.pkl") == content
