"""The restricted unpickler: what is data comes back equal, what is not is refused by name, and nothing ever runs."""

from __future__ import annotations

import builtins
import gc
import os
import pickle
import re
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoicli.converters.containers.unpickle import load_pickle
from hoicli.errors import DataError

PROTOCOLS = range(6)

SMALL = {
    "filename": "HICO_test2015_00000001.jpg", "boxes": [[1.5, 2.0, 3.25, 4.0], (1, 2**40, -3, None)], "ids": (1, 2),
    "raw": b"\x00\xff", "array": np.arange(4, dtype=np.float32).reshape(2, 2), "score": np.float32(0.5),
}  # fmt: skip


def load(data: bytes) -> Any:
    return load_pickle(data, "dump.pkl")


def refusal(data: bytes) -> str:
    """The message of the `DataError`: one line, beginning with the file."""
    with pytest.raises(DataError) as caught:
        load(data)
    message = str(caught.value)
    assert message.startswith("dump.pkl: ")
    assert message.isprintable()
    assert len(message) < 300
    return message


class Call:
    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


texts = st.text(max_size=8) | st.binary(max_size=8)
keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
leaves = keys | st.integers(min_value=-(2**300), max_value=2**300)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys | st.tuples(keys, keys), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values, st.sampled_from(PROTOCOLS))
def test_plain_containers_come_back_equal(value: Any, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dictionaries_of_collections_are_dicts(protocol: int) -> None:
    grouped = defaultdict(list, {17: [0.5], 3: []})
    nested: dict[str, Any] = defaultdict(dict, {"a": OrderedDict([("z", 1), ("y", 2)])})
    for value in (grouped, nested):
        read = load(pickle.dumps(value, protocol))
        assert type(read) is dict
        assert read == value
    assert type(load(pickle.dumps(nested, protocol))["a"]) is dict
    assert list(load(pickle.dumps(nested, protocol))["a"]) == ["z", "y"]


@pytest.mark.parametrize("module", ["utils", "__main__", "caches"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cache_template_is_a_dict(module: str, protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    template = type("CacheTemplate", (defaultdict,), {"__module__": module})
    home = ModuleType(module)
    home.CacheTemplate = template  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, home)
    data = pickle.dumps([template(None, {"image_id": 1, "hold_agent": 0.5})], protocol)
    read = load(data)
    assert read == [{"image_id": 1, "hold_agent": 0.5}]
    assert type(read[0]) is dict


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=">f8").reshape(3, 2),
    np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
    np.arange(24, dtype=np.uint8).reshape(2, 3, 4).transpose(1, 0, 2), np.arange(12, dtype=np.float16)[::3],
    np.array([True, False]), np.array(["HICO", "caf\xe9", ""]), np.array(["a", "bc"], dtype=">U2"),
    np.array([b"ab", b"c"]), np.zeros((0, 8)), np.array(2.5), np.array([np.nan, np.inf]),
]  # fmt: skip


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays(array: np.ndarray[Any, Any], protocol: int) -> None:
    data = pickle.dumps(array, protocol)
    versions = [data]
    if protocol < 4:  # names without a length before them: also as the other NumPy spells them
        versions += [data.replace(b"numpy._core.", b"numpy.core."), data.replace(b"numpy.core.", b"numpy._core.")]
    for version in versions:
        read = load(version)
        assert isinstance(read, np.ndarray)
        assert read.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(read, array)


SCALARS = [
    (np.float32(1.1), float(np.float32(1.1))), (np.float64(0.1), 0.1), (np.int64(-3), -3), (np.uint8(200), 200),
    (np.bool_(True), True), (np.str_("ab"), "ab"), (np.str_(""), ""),
    (np.frombuffer(b"\x3f\x80\x00\x00", ">f4")[0], 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("scalar", "plain"), SCALARS, ids=lambda value: repr(value))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scalars_are_python_values(scalar: Any, plain: Any, protocol: int) -> None:
    read = load(pickle.dumps(scalar, protocol))
    assert type(read) is type(plain)
    assert read == plain


PYTHON_2 = [
    (b"(dp0\nS'caf\\xe9'\np1\nI1\ns.", {"caf\xe9": 1}),
    (b"\x80\x02]q\x00U\x04HICOq\x01a.", ["HICO"]),
    (b"\x80\x02ccollections\nOrderedDict\n]](U\x01aK\x01ea\x85R.", {"a": 1}),
    (b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RU\x01a]s.", {"a": []}),
    (b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xff"
     b"J\xff\xff\xff\xffK\x00tbU\x04\x00\x00\xc0\x3f\x86R.", 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("data", "value"), PYTHON_2)
def test_python_2(data: bytes, value: Any) -> None:
    assert load(data) == value


def test_an_array_of_python_2() -> None:
    data = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02\x85cnumpy\ndtype\n"
        b"U\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\0\0\xc0\x3f\0\0\x80\xbftb."
    )
    assert load(data).tolist() == [1.5, -1.0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_command_does_not_run(protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    data = pickle.dumps([1, Call(os.system, f"touch {marker}")], protocol)
    wanted = r"wants (posix|nt)\.system, which hoicli does not build \(nothing was run\); save it again as "
    assert re.search(wanted, refusal(data))
    assert not marker.exists()
    pickle.loads(data)
    assert marker.exists(), "the payload is a real one"


CALLS = {
    "eval": Call(builtins.eval, "1"), "exec": Call(builtins.exec, ""), "getattr": Call(getattr, 1, "real"),
    "__import__": Call(__import__, "os"), "Popen": Call(subprocess.Popen, ["true"]), "load": Call(np.load, "a.npy"),
    "fromfile": Call(np.fromfile, "a.npy"), "open": Call(open, "a"), "complex": Call(complex, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), CALLS.items(), ids=CALLS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_are_refused_by_name(name: str, call: Call, protocol: int) -> None:
    message = refusal(pickle.dumps({"a": call}, protocol))
    assert re.search(rf"wants [\w.]+\.{name}, which hoicli does not build", message)


def test_old_protocols_and_dotted_names() -> None:
    assert "wants os.system," in refusal(b"cos\nsystem\n(S'true'\ntR.")
    assert "wants os.system," in refusal(b"(S'true'\nios\nsystem\n.")
    dotted = "list.__class__.__base__.__subclasses__"
    names = b"\x8c\x08builtins\x8c" + bytes([len(dotted)]) + dotted.encode()
    assert f"wants builtins.{dotted}," in refusal(b"\x80\x04" + names + b"\x93)R.")
    assert "wants numpy.ndarray.tofile," in refusal(b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.")


def test_nothing_is_imported() -> None:
    assert "this" not in sys.modules
    refusal(b"cthis\ns\n.")
    assert "this" not in sys.modules


def test_a_name_cannot_break_the_line() -> None:
    assert r"wants o\ns.x\x1b[31m" in refusal(b"\x80\x04\x8c\x03o\ns\x8c\x06x\x1b[31m\x93.")
    refusal(b"\x80\x04\x8c\x02os\x8d" + struct.pack("<Q", 10**6) + b"x" * 10**6 + b"\x93.")


@pytest.mark.parametrize("data", [b"ctorch._utils\n_rebuild_tensor_v2\n.", b"\x80\x02U\x07storageQ."])
def test_torch_is_told_what_to_do(data: bytes) -> None:
    assert refusal(data).endswith("(a tensor's .tolist())")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_object_and_structured_arrays(protocol: int) -> None:
    assert "dtype O8" in refusal(pickle.dumps(np.array([1, "a"], dtype=object), protocol))
    assert "dtype O8" in refusal(pickle.dumps(np.array([Call(eval, "1")]), protocol))
    assert "dtype V12" in refusal(pickle.dumps(np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]), protocol))
    assert "dtype M8" in refusal(pickle.dumps(np.array(["2015-01-01"], dtype="M8[D]"), protocol))


def global_name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def reduced(module: str, name: str, *arguments: Any) -> bytes:
    """Opcodes that call a name with plain arguments."""
    return global_name(module, name) + pickle.dumps(arguments, 2)[2:-1] + b"R"


F4 = reduced("numpy", "dtype", "f4", False, True)
RECONSTRUCT = global_name("numpy.core.multiarray", "_reconstruct")
EMPTY_ARRAY = RECONSTRUCT + global_name("numpy", "ndarray") + b"K\x00\x85U\x01b\x87R"


def state(shape: Any, raw: bytes, dtype: bytes = F4) -> bytes:
    return b"(K\x01" + pickle.dumps(shape, 2)[2:-1] + dtype + b"\x89" + pickle.dumps(raw, 3)[2:-1] + b"tb"


BUILDS = {
    "a name's attributes": (global_name("builtins", "list") + b"N}U\x06_buildK\x01s\x86b.", "wants"),
    "a name's dictionary": (global_name("builtins", "list") + b"}U\x06_buildK\x01sb.", "no readable pickle"),
    "a name's class": (global_name("builtins", "list") + b"N}U\x09__class__K\x01s\x86b.", "wants"),
    "a name as a class": (global_name("builtins", "list") + b")\x81.", "no readable pickle"),
    "a dtype with fields": (F4 + b"(K\x03U\x01<NU\x01a\x85}K\x04K\x01K\x00tb.", "structured"),
    "a dtype with no order": (F4 + b"(K\x03U\x01xNNNK\x04K\x01K\x00tb.", "structured"),
    "a dtype's attributes": (F4 + b"N}U\x04realK\x01s\x86b.", "structured"),
    "an array by its size": (reduced("numpy", "ndarray", (1 << 30,)) + b".", "numpy.ndarray"),
    "an array of no class": (RECONSTRUCT + global_name("builtins", "list") + b"K\x00\x85U\x01b\x87R.", "numpy array"),
    "too large a shape": (EMPTY_ARRAY + state((1 << 40, 1 << 40), b"1234") + b".", "do not fill"),
    "too small a shape": (EMPTY_ARRAY + state((1,), b"12345678") + b".", "do not fill"),
    "a negative shape": (EMPTY_ARRAY + state((-1, -1), b"1234") + b".", "do not fill"),
    "a huge empty shape": (EMPTY_ARRAY + state((0, 1 << 70), b"") + b".", "pickle"),
    "an array state of objects": (EMPTY_ARRAY + b"(K\x01K\x01\x85" + F4 + b"\x89]tb.", "numpy array"),
    "an array without a dtype": (EMPTY_ARRAY + b"(K\x01K\x01\x85N\x89U\x041234tb.", "numpy array"),
    "characters beyond the last": (
        EMPTY_ARRAY + state((1,), b"\xff\xff\xff\x7f", reduced("numpy", "dtype", "U1", False, True)) + b".",
        "characters",
    ),
    "a huge dtype": (reduced("numpy", "dtype", "U" + "9" * 30, False, True) + b".", "dtype"),
    "a dtype of many": (reduced("numpy", "dtype", "f4,f4", False, True) + b".", "dtype"),
    "a dtype of no text": (reduced("numpy", "dtype", 4) + b".", "dtype"),
    "a scalar of a part": (
        global_name("numpy.core.multiarray", "scalar") + F4 + b"U\x03abc\x86R.",
        "no readable pickle",
    ),
    "a scalar without a dtype": (reduced("numpy.core.multiarray", "scalar", "f4", "abcd") + b".", "scalar"),
    "another codec": (reduced("_codecs", "encode", "abc", "zlib") + b".", "codec"),
    "a list of something": (reduced("builtins", "list", "abc") + b".", "no readable pickle"),
    "bytes by their number": (reduced("builtins", "bytes", 1 << 40) + b".", "no readable pickle"),
}


@pytest.mark.parametrize(("data", "text"), BUILDS.values(), ids=BUILDS)
def test_building_blocks_take_nothing_odd(data: bytes, text: str) -> None:
    assert text in refusal(b"\x80\x02" + data)
    assert load(global_name("builtins", "list") + b")R.") == [], "and nothing of it stays"


SIZES = {
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"abc.",
    "bytes beyond any": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 63) + b"abc.",
    "short of bytes": b"\x80\x04B" + struct.pack("<I", 1000) + b"abc.",
    "text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"abc.",
    "text of Python 2": b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"abc.",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"abc.",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
    "frame beyond any": b"\x80\x04\x95" + struct.pack("<Q", (1 << 64) - 1) + b"N.",
    "long": b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.",
    "negative long": b"\x80\x04\x8b" + struct.pack("<i", -5) + b"abc.",
    "memo as text": b"Np99999999999999999999999\n.",
}
# elsewhere nothing bounds the memory, and from 3.15 on Python's memo is as large as what is in it
if sys.platform == "linux" and sys.version_info < (3, 15):
    SIZES["memo"] = b"\x80\x02Nr\xff\xff\xff\xff."
    SIZES["memo, ten digits"] = b"Np9999999999\n."


@pytest.mark.parametrize("data", SIZES.values(), ids=SIZES)
def test_sizes_beyond_the_file(data: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    assert re.search("cut off|asks for more memory|no readable pickle", refusal(data))
    assert capfd.readouterr().err == ""


def doubled(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value, value]
    return value


LOOP: list[Any] = []
LOOP.append({"a": LOOP})
TREES = {
    "lists of the same two lists": (doubled([1.5], 60), "repeats its parts so often"),
    "dictionaries": ({"a": [{"b": doubled({"c": 1}, 30)}]}, "repeats its parts so often"),
    "a list of numbers": ([[1.5] * 10_000] * 1000, "repeats its parts so often"),
    "an array": ([np.zeros(100_000)] * 1000, "repeats its parts so often"),
    "a tuple": (doubled((1, (2, 3)), 30), "repeats its parts so often"),
    "itself": (LOOP, "is nested more than 100 deep, or holds itself"),
}


@pytest.mark.parametrize(("tree", "said"), TREES.values(), ids=TREES)
@pytest.mark.parametrize("protocol", [2, 4])
def test_trees_beyond_the_file(tree: Any, said: str, protocol: int) -> None:
    """A few bytes that stand for a great many values, and would be converted as often as they stand."""
    assert said in refusal(pickle.dumps(tree, protocol))


def test_what_dumps_do_is_no_fault() -> None:
    assert "is nested more than 100 deep" in refusal(b"]" * 5000 + b"a" * 4999 + b".")
    box = [1.5, 2.5, 3.5, 4.5]
    value = [{"filename": f"{image}.jpg", "boxes": [box] * 1000, (image, (1, 2)): {(3,), 4}} for image in range(300)]
    assert load(pickle.dumps(value)) == value


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is bounded on Linux")
@pytest.mark.parametrize("data", [pickle.dumps([1]), b"\x80\x02Nr\xff\xff\xff\xff.", b"cos\nsystem\n."])
def test_the_limits_are_put_back(data: bytes) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(DataError):
        load(data)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert gc.isenabled()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_beginning_of_a_pickle(protocol: int) -> None:
    data = pickle.dumps(SMALL, protocol)
    for end in range(len(data)):
        refusal(data[:end])
    assert "is cut off, or" in refusal(data[:-1])
    assert "goes on for 1 bytes after its first object" in refusal(data + b"\n")


mutations = st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4)


@given(st.sampled_from(PROTOCOLS), mutations)
@example(2, [(0, b"\x80\x09")])
def test_mutations_give_a_value_or_one_error(protocol: int, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(pickle.dumps(SMALL, protocol))
    for position, replacement in changes:
        position %= len(data)
        data[position : position + len(replacement)] = replacement
    with suppress(DataError):
        load(bytes(data))


@given(st.binary(min_size=1, max_size=60))
def test_noise_gives_a_value_or_one_error(data: bytes) -> None:
    with suppress(DataError):
        load(data)
