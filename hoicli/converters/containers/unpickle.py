"""Pickles as data: plain containers, numbers, text and NumPy arrays are built, everything else is refused by name.

A pickle is a program that names functions and calls them. `load_pickle` runs CPython's own (fast) unpickler, but the
program can use only the names in `_NAMES`, and gets a `_Name` for each: an immutable object that only builds plain
values. No module is imported, no attribute is followed, no class is exposed.

Read: dict, list, tuple, bytes, sets (from protocol 4 on); OrderedDict, defaultdict and every class called CacheTemplate
(the V-COCO caches of fredzzhang/upt and relatives, utils.py) as dict; NumPy arrays of bool, integers, floats up to 64
bits and fixed-size text, of NumPy 1 and 2; NumPy scalars as Python numbers. Protocols 0 to 5, Python 2 (text as
latin-1).

What it may cost: building it 1 GiB of memory or 64 bytes a byte (on Linux), and the tree it stands for a million values
or 4 a byte. The time is not bounded: a pickle made for it, with keys that take for ever to hash, may keep the processor
busy until it is killed, and one with a key of very many levels may end the interpreter; no code of it runs."""

from __future__ import annotations

import gc
import io
import math
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from hoicli.errors import DataError
from hoicli.io.memory import no_garbage_collection

MEMORY_FLOOR, MEMORY_RATIO = 1 << 30, 64
"""The memory for building: so many bytes, and so many more for each of the file. The densest content takes 50."""
VALUES, VALUES_PER_BYTE = 1 << 20, 4
"""The most values in the tree that a pickle stands for: so many, and so many more for each byte of the file. A part
that stands in several places counts in each. Dumps have 0.2 to 0.5 values a byte; a shared box takes two bytes."""
DEEPEST = 100
"""The most levels of containers within containers; a dump has six."""
PIECE = 1 << 14
"""How many containers are looked into at once."""


def load_pickle(data: bytes, name: str) -> Any:
    """Return the content of a pickle as plain values. Raises `DataError` (with `name` as its place) for a damaged or
    cut-off file, for sizes that the file cannot hold, and for anything but data, which is never imported or run."""
    try:
        return _load(data)
    except DataError as error:
        problem = error.problem
    except (MemoryError, OverflowError):
        problem = "asks for more memory than its size can justify; copy or write it again"
    except Exception as error:  # noqa: BLE001 (a damaged pickle raises nearly anything: pickle's documentation says so)
        what = _quote_text(str(error) or type(error).__name__)
        problem = f"is cut off, or no readable pickle ({what}); copy or write it again"
    raise DataError(problem, place=name, code="damaged")


def _quote_text(text: str) -> str:
    """Return text from a pickle as a message may show it: printable, on one line, cut to 80 characters."""
    printable = text[:200].encode("unicode_escape").decode()
    return printable if len(printable) <= 80 else printable[:77] + "..."


def _refuse(what: str) -> NoReturn:
    """Raise the `DataError` about a pickle that is no plain data. what: the thing that it asks for, for the message."""
    raise DataError(
        f"wants {what}, which hoicli does not build (nothing was run); "
        "save it again as lists, dictionaries, numbers, text and numpy arrays (a tensor's .tolist())"
    )


class _Machine(pickle.Unpickler):
    """CPython's unpickler, which looks names up in a table instead of importing them."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return what stands in for a class or function that the pickle names; refuse one that is not in _NAMES."""
        if global_name == "CacheTemplate":  # a dict of UPT's and related code, in a module of any name
            return _DICTIONARY
        replacement = _NAMES.get((module_name, global_name))
        if replacement is not None:
            return replacement
        return _refuse(_quote_text(f"{module_name}.{global_name}"))

    def persistent_load(self, pid: Any, /) -> Any:
        """Refuse an object that the pickle keeps elsewhere, under an id; the unpickler calls this."""
        _refuse("data outside of itself, as files of torch.save do")


def _load(data: bytes) -> Any:
    """Return the content of a pickle as plain values. Raises nearly any exception for damaged bytes."""
    # Refused the memory for a bytearray, CPython (3.11) complains on stderr beside raising MemoryError.
    quiet = redirect_stderr(io.StringIO())
    with quiet, no_garbage_collection(), _bounded_memory(MEMORY_FLOOR + MEMORY_RATIO * len(data)):
        stream = io.BytesIO(data)
        value = _Machine(stream, encoding="latin1").load()
        _require_tree(value, len(data))
    rest = len(data) - stream.tell()
    if rest:
        raise DataError(f"goes on for {rest:,} bytes after its first object; write one object with pickle.dump")
    return value


def _require_tree(value: Any, size: int) -> None:
    """Raise `DataError` for a value that is nested deeper than DEEPEST, or that stands for far more values than a
    pickle of `size` bytes can have. A list that stands in many places counts in each: converting takes as long."""
    container_types = {list, dict, tuple, set, frozenset, _Array}
    level, remaining = [value], VALUES + VALUES_PER_BYTE * size
    for _ in range(DEEPEST):  # level by level, from the outermost container inwards
        next_level: list[Any] = []
        for start in range(0, len(level), PIECE):
            inside = gc.get_referents(*level[start : start + PIECE])  # their items, keys and values
            containers = [part for part in inside if type(part) in container_types]
            remaining -= sum([part.size if type(part) is _Array else len(part) for part in containers])
            if remaining < 0:
                raise DataError("repeats its parts so often that no dump would; save it again without shared lists")
            next_level += filter(gc.is_tracked, containers)  # leaves out dictionaries of only numbers and text
        if not next_level:
            return
        level = next_level
    raise DataError(f"is nested more than {DEEPEST} deep, or holds itself; save it again as plain lists")


@contextmanager
def _bounded_memory(extra: int) -> Iterator[None]:
    """Let the process grow by at most `extra` bytes while this block of code runs; more raises MemoryError. The
    operating system has to watch over this: a pickle of ten bytes can make the unpickler allocate a table of four
    billion places (its memo) before it calls any code here. Other systems than Linux do not tell."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError):
        yield
        return
    limits = [limit for limit in (soft_limit, hard_limit, used + extra) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))


class _Name:
    """What a pickle gets in place of a class or function that it names: an object that can only be called, and then
    builds a plain value. The pickle cannot change it (pickle's instruction BUILD would set attributes)."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., Any]) -> None:
        """build: the function that a call runs."""
        object.__setattr__(self, "_build", build)  # since `__setattr__` refuses

    def __call__(self, *args: Any) -> Any:
        """Return the plain value for the arguments that the pickle gives."""
        return self._build(*args)  # type: ignore[attr-defined]

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        """Refuse to set any attribute."""
        _refuse("to change what a name means")


def _factory(kind: type) -> _Name:
    """Return what a pickle gets for the name of a built-in type: a call without arguments builds an empty one."""
    return _Name(lambda: kind())


def _dictionary(items: Any = None, /) -> dict[Any, Any]:
    """Return a dict in place of a defaultdict (items: its factory) or OrderedDict (Python 2's list of [key, value])."""
    if type(items) is tuple:
        _refuse("an odd dictionary")
    return dict(items) if type(items) is list else {}


def _encode_latin(text: str, encoding: str) -> bytes:
    """Return text in latin-1, as which protocols 0 to 2 write bytes. Refuse any other encoding."""
    if encoding not in ("latin1", "latin-1"):
        _refuse(f"the codec {_quote_text(encoding)}")
    return text.encode("latin-1")


class _Dtype:
    """A NumPy dtype while a pickle builds it: a call gives its code ("f4"), the state that follows its byte order."""

    __slots__ = ("real",)

    def __init__(self, code: Any = None, *_: Any) -> None:
        """Take the code; refuse all but booleans, integers, floats up to 64 bits, and text of a fixed size."""
        if type(code) is not str:
            _refuse("an odd numpy dtype")
        if re.fullmatch(r"[biuSU]\d{1,9}|f[248]", code) is None:  # of objects, O8
            _refuse(f"a numpy array of dtype {_quote_text(code)}")
        self.real: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take the byte order from the state, (version, order, subarray, names, fields, ...); refuse a structure."""
        _, byte_order, *structure = state[:5]
        if byte_order not in ("<", ">", "=", "|") or any(part is not None for part in structure):
            _refuse("a structured numpy array")
        self.real = self.real.newbyteorder(byte_order)


class _Array(np.ndarray[Any, Any]):
    """An array that checks its state before setting it. It behaves like any ndarray; `tolist()` gives plain values."""

    __slots__ = ()

    def __setstate__(self, state: Any, /) -> None:
        """Set shape, type and content from the state, (version, shape, dtype, Fortran order, bytes), after a check that
        the bytes fill the shape and are possible. Raises `DataError` otherwise."""
        _, shape, dtype, fortran, raw = state
        if type(raw) is str:  # Python 2's bytes
            raw = raw.encode("latin-1")
        if (type(dtype), type(raw), type(shape)) != (_Dtype, bytes, tuple):
            _refuse("an odd numpy array")
        possible = all(type(side) is int and side >= 0 for side in shape)
        if not possible or math.prod(shape) * dtype.real.itemsize != len(raw):
            raise DataError(f"holds a numpy array whose {len(raw):,} bytes do not fill its shape; write it again")
        if dtype.real.kind == "U" and raw:  # four bytes a character
            codes = np.frombuffer(raw, np.dtype("u4").newbyteorder(dtype.real.byteorder))
            if codes.max() > sys.maxunicode:
                raise DataError("holds a numpy array of impossible characters; write it again")
        super().__setstate__((1, shape, dtype.real, bool(fortran), raw))  # type: ignore[arg-type]


def _empty_array(kind: Any, shape: Any, *_: Any) -> _Array:
    """Return an empty array, which the pickle then fills by its state, in place of NumPy's `_reconstruct`."""
    if kind is not _NDARRAY or shape != (0,):
        _refuse("an odd numpy array")
    return _Array((0,), np.uint8)


def _array_of_buffer(buffer: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """Return an array of protocol 5 in place of NumPy's `_frombuffer`. order: "C", "F", or "K" with `axes`."""
    if type(order) is not str:
        _refuse("an odd numpy array")
    array = _Array((0,), np.uint8)
    array.__setstate__((1, shape, dtype, order == "F", bytes(memoryview(buffer))))
    return array if axes is None else array.transpose(axes)


def _scalar(dtype: Any, raw: Any) -> Any:
    """Return a NumPy scalar as a Python value. raw: its bytes, which Python 2 wrote as text."""
    if type(dtype) is not _Dtype or type(raw) not in (bytes, str):
        _refuse("an odd numpy scalar")
    if dtype.real.itemsize == 0:  # numpy.str_("")
        return dtype.real.type().item()
    return np.frombuffer(raw if type(raw) is bytes else raw.encode("latin-1"), dtype.real).item()


_DICTIONARY = _Name(_dictionary)
_NDARRAY = _Name(lambda *_: _refuse("numpy.ndarray called by itself"))

_NAMES: dict[tuple[str, str], _Name] = {
    ("collections", "OrderedDict"): _DICTIONARY,
    ("collections", "defaultdict"): _DICTIONARY,
    ("_codecs", "encode"): _Name(_encode_latin),
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Name(_Dtype),
}
for _module in ("builtins", "__builtin__"):
    _NAMES |= {(_module, kind.__name__): _factory(kind) for kind in (list, dict, tuple, int, float, bool, str, bytes)}
for _core in ("numpy.core", "numpy._core"):
    _NAMES[f"{_core}.multiarray", "_reconstruct"] = _Name(_empty_array)
    _NAMES[f"{_core}.multiarray", "scalar"] = _Name(_scalar)
    _NAMES[f"{_core}.numeric", "_frombuffer"] = _Name(_array_of_buffer)
