"""Ways to break a file: its bytes, its tokens, and the values inside it. All chance comes from the Random handed in."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import re
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tests.hostile import floods

Mutation = Callable[[Random, bytes], bytes]

DIGITS = "9" * 5000
DEEP = 100_000

TOKENS = [
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1e-999", b"-0.0", b"0", b"-1", b"1.5", b"2147483648",
    b"9007199254740993", b"9223372036854775808", b"18446744073709551616", DIGITS.encode(), b"null", b"true", b"[]",
    b"{}", b'""', b"[[[[", b"]]]]", b"[" * DEEP, b'{"a":' * DEEP, b"(" * 300, b"-" * 500, b'"\\ud800"', b'"\\u0000"',
    b'"\\u001b[31m"', b'"\\n"', b"\\", b"'", b'"', b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\r\n", b"\n",
    b"\r", b"\x1b[31m", b"\xe2\x80\xa8", b",", b":", b"//", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04",
    b"\x80\x04", b".", b"np.float64(", b"nan", b"inf", b"1+1", b"'a'*9", b"lambda:0", b"```json", b"<box>", b"</box>",
    b"(1,2),(3,4)", b"<|box_start|>", b" " * 10_000, b"x" * 200_000, b"a.n.", b"e5", b"0x10", b"1_0",
]  # fmt: skip
"""What is put into a file, or in the place of a number or a word of it."""

REPEATED = [
    b" ", b"\n", b"x", b"0", b"9", b"a.", b"a ", b"- ", b"-", b".", b"\\", b"\\'", b'\\"', b"'", b'"', b"' ", b"[",
    b"[1,", b"(", b"{", b"]", b"{'a':", b'{"a":', b"```", b"``` ", b"<box>", b"<ref>", b"/*", b"//", b"#",
    b"<think>", b"<answer>", b"a_", b"np.", b"1e", b"\xc3\xa9", b"\0", b",", b":", b"a:", b"1 ", b"\\u0041",
]  # fmt: skip
"""What is repeated."""

HUGE = [0, 1, 0x7F, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
"""What a length, a count or a tag is made."""

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 7, 599, 600, 1.5, -0.0, 0.1, 1e308, -1e308, 5e-324, 2**31, 2**53 + 1, 2**63, 2**64,
    10**30, 10**400, float("nan"), float("inf"), float("-inf"), "", "x", " ", "\0", "\ud800", "\u00e9", "e\u0301", "1",
    "27\n", "NaN", "-1", "\u0663", DIGITS, "x" * 100_000, "../../../etc/passwd", "/etc/passwd", "a\nb", "\x1b[31mred",
    "\u2028", [], {}, [[]], [None], [1, 2], [1, 2, 3, 4], [4, 3, 2, 1], [1e300, -1e300, 1e300, 1e308], [0] * 5000,
    {"": 0}, {"a": {"a": {}}}, [[[[[[[[]]]]]]]], "person", "no_interaction", ["person"], {"0": 1}, "hoicli", [True],
    "1000", "qwen2.5", "resized:0x0", "clean", "model", "dog.n.01", "ride.v.99",
]  # fmt: skip
"""What a value inside a file is made."""


def flip(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng: Random, data: bytes) -> bytes:
    end = len(data) - rng.randrange(1, 20) if rng.random() < 0.3 else rng.randrange(len(data) + 1)
    return data[: max(0, end)]


def remove(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice([1, 2, 4, 30, 1000]) :]


def duplicate(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.2:
        return data + data
    start = rng.randrange(len(data) + 1)
    size = rng.choice([1, 2, 4, 30, 1000])
    return data[: start + size] + data[start:]


def splice(rng: Random, data: bytes) -> bytes:
    start, there = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice([1, 4, 40, 400])]
    return data[:there] + piece + data[there + (len(piece) if rng.random() < 0.5 else 0) :]


def insert(rng: Random, data: bytes) -> bytes:
    at = rng.choice([0, len(data), rng.randrange(len(data) + 1)])
    return data[:at] + rng.choice(TOKENS) + data[at:]


def repeat(rng: Random, data: bytes) -> bytes:
    """A short piece of it, or what patterns look for, thousands of times over: what takes a parser quadratic time."""
    at = rng.randrange(len(data) + 1)
    piece = rng.choice([data[at : at + rng.randrange(1, 7)], *REPEATED])
    return data[:at] + piece * rng.choice([1000, 30_000]) + data[at:]


def overwrite(rng: Random, data: bytes) -> bytes:
    """Four bytes, where sizes stand in binary files, made a hostile number, in either order of bytes."""
    if len(data) < 8:
        return data
    at = rng.randrange(len(data) // 4) * 4 if rng.random() < 0.7 else rng.randrange(len(data) - 4)
    value = struct.pack(rng.choice("<>") + "I", rng.choice(HUGE))
    return data[:at] + value + data[at + 4 :]


def endings(rng: Random, data: bytes) -> bytes:
    """Other line ends, a byte order mark, another encoding."""
    ways: list[Callable[[], bytes]] = [
        lambda: data.replace(b"\n", b"\r\n"), lambda: data.replace(b"\n", b"\r"),
        lambda: data.replace(b"\n", b"\n\n"), lambda: data.rstrip(b"\n"), lambda: b"\xef\xbb\xbf" + data,
        lambda: data.decode("utf-8", "replace").encode("utf-16"), lambda: data.replace(b" ", b"\xc2\xa0"),
        lambda: data.replace(b"\n", b""),
    ]  # fmt: skip
    return rng.choice(ways)()


def noise(rng: Random, data: bytes) -> bytes:
    """Nothing of it: random bytes, nothing at all, one byte over and over."""
    return rng.choice([rng.randbytes(rng.randrange(2000)), b"", bytes([rng.randrange(256)]) * 5000])


BYTES: list[Mutation] = [flip, flip, truncate, remove, duplicate, splice, insert, repeat, overwrite, endings, noise]

_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\w+')


def token(rng: Random, data: bytes) -> bytes:
    """A number, a word or a string of a text made something else, once or a few times, or everywhere."""
    spans = [match.span() for match in _WORD.finditer(data)]
    if not spans:
        return insert(rng, data)
    if rng.random() < 0.1:
        start, end = rng.choice(spans)
        return data.replace(data[start:end], rng.choice(TOKENS)[:40])
    for start, end in sorted(rng.sample(spans, min(len(spans), rng.choice([1, 1, 3]))), reverse=True):
        data = data[:start] + rng.choice(TOKENS) + data[end:]
    return data


def value(rng: Random) -> Any:
    return copy.deepcopy(rng.choice(VALUES))


def _places(node: Any, found: list[tuple[Any, Any]], limit: int = 5000) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a value."""
    stack = [node]
    while stack and len(found) < limit:
        here = stack.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        for key in keys:
            found.append((here, key))
            stack.append(here[key])
    return found


def restructure(rng: Random, tree: Any, make: Callable[[Random], Any] = value) -> Any:
    """The tree with one to three of its places changed: replaced, dropped, doubled, renamed, moved, wrapped, grown."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = _places(tree, [])
        if not places:
            return make(rng)
        # by name first: a list of two hundred boxes would hide the one key beside it
        names = sorted({str(key) for container, key in places if isinstance(container, dict)})
        name = rng.choice([*names, ""]) if names else ""
        container, key = rng.choice([place for place in places if str(place[1]) == name] or places)
        how = rng.randrange(8)
        if how <= 2:
            container[key] = make(rng)
        elif how == 3:
            del container[key]
        elif how == 4 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif how == 4:
            container[str(rng.choice(VALUES))[:50]] = container.pop(key)
        elif how == 5:
            other, where = rng.choice(places)
            if where in other if isinstance(other, dict) else where < len(other):
                container[key] = copy.deepcopy(other[where])
        elif how == 6:
            container[key] = rng.choice([[container[key]], {"x": container[key]}, str(container[key])[:1000]])
        elif isinstance(container[key], list):
            container[key] = container[key] + [make(rng)]
        elif isinstance(container[key], dict):
            container[key] = {**container[key], str(rng.choice(VALUES))[:50]: make(rng)}
        elif isinstance(container[key], int | float):
            number = container[key]
            container[key] = rng.choice([-number, number + 1, number * 10**9, str(number)])
        else:
            container[key] = make(rng)
    return tree


def json_text(tree: Any, rng: Random) -> bytes:
    """JSON as Python writes it (NaN and lone surrogates included), sometimes with a key there twice."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        text = re.sub(rb'("\w+": (?:\d+|"[^"]*"))', rb"\1, \1", text, count=3)
    return text


def json_document(rng: Random, data: bytes) -> bytes:
    return json_text(restructure(rng, json.loads(data)), rng)


def json_lines(rng: Random, data: bytes) -> bytes:
    """Lines of JSON with other values in one or two of them, or a line gone, there twice, or elsewhere."""
    lines = data.splitlines()
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(lines))
        how = rng.randrange(10)
        if how == 0:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif how == 1 and len(lines) > 1:
            del lines[at]
        elif how == 2:
            rng.shuffle(lines)
        else:
            lines[at] = json_text(restructure(rng, json.loads(lines[at])), rng)
            if len(lines[at]) < 2:
                break
    return b"\n".join(lines) + b"\n" * rng.randrange(2)


def json_string(rng: Random, data: bytes) -> bytes:
    """A JSON document that is one string holding a Python literal: its tokens changed."""
    return json.dumps(token(rng, json.loads(data).encode()).decode("utf-8", "replace")).encode()


_DTYPES = ["f4", "f8", "i8", "i4", "u1", "U3", "S4", "?", ">f8", "f2", "c8", "M8[s]", "O"]
_SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (4,), (0, 4), (2, 0), (1, 8), (3, 4), (2, 2, 2), (1, 1, 4), (600,)]


def array(rng: Random) -> np.ndarray[Any, Any]:
    """A small array of an odd shape or type, perhaps not finite."""
    made = np.full(rng.choice(_SHAPES), rng.choice([0, 1, 7])).astype(rng.choice(_DTYPES))
    if made.dtype.kind == "f" and made.size:
        made.flat[rng.randrange(made.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e4, -0.0])
    return made


def _pickle_value(rng: Random) -> Any:
    odd = [np.float32(rng.choice([0.5, np.nan])), np.int64(-1), b"bytes", {1, 2}, (1, 2), 1 + 2j, {(1, 2): 3}]
    return rng.choice([value(rng), value(rng), array(rng), *odd])


class Unpickler(pickle.Unpickler):
    """For the fixtures, which are ours: one of them names a class that only its project has."""

    def find_class(self, module: str, name: str, /) -> Any:
        return dict if name == "CacheTemplate" else super().find_class(module, name)


def pickled(rng: Random, data: bytes) -> bytes:
    """A pickle with other values in it, arrays among them, in any protocol."""
    tree = restructure(rng, Unpickler(io.BytesIO(data)).load(), _pickle_value)
    if rng.random() < 0.05 and isinstance(tree, list | dict):  # it holds itself
        tree.append(tree) if isinstance(tree, list) else tree.update(me=tree)
    return pickle.dumps(tree, protocol=rng.randrange(6))


PICKLE_PIECES = [
    b"\x8a\xff" + b"\x7f" * 20, b"r\xff\xff\xff\xff", b"\x8e" + b"\xff" * 7 + b"\x7f",
    b"\x96\x00\x00\x00\x00\xff\0\0\0", b"cos\nsystem\n", b"(" * 1000, b"0", b"\x85" * 1000, b"]" * 1000, b"}", b"R",
    b"b", b"o", b"Q", b"h\xff", b"B\xff\xff\xff\x7f", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"N", b"\x94",
    b"I" + b"9" * 5000 + b"\n", b"F1e999\n", b"a", b"s", b"u", b"e",
]  # fmt: skip


def pickle_machine(rng: Random, data: bytes) -> bytes:
    """Instructions where none belong."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PICKLE_PIECES) + data[at + rng.choice([0, 0, 1, 5]) :]


def npz(rng: Random, data: bytes) -> bytes:
    """An archive with other arrays, other headers, members that are no arrays, or a member there twice."""
    import warnings
    import zipfile

    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(sorted(arrays))
    how = rng.randrange(7)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = array(rng)
    elif how == 2 and arrays[name].ndim:
        arrays[name] = arrays[name][: rng.randrange(len(arrays[name]) + 1)]
    elif how == 3:
        arrays[name] = np.asfortranarray(arrays[name].astype(rng.choice(_DTYPES[:6]), copy=True))
    elif how == 4 and arrays[name].size:
        changed = arrays[name].copy()
        changed.flat[rng.randrange(changed.size)] = (
            rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30])
            if changed.dtype.kind == "f"
            else np.array(rng.choice([-1, 0, 2**40])).astype(changed.dtype)
        )
        arrays[name] = changed
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", rng.choice([0, 8, 8, 12, 14])) as made:
        warnings.simplefilter("ignore")
        for key, content in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, content)
            member = buffer.getvalue()
            if key == name and how == 5:  # the header says something else than follows
                claims = [
                    f"({10**12}, 4)", "(-1,)", "(1e3,)", "(2**40,)", "()", "(" + "(" * 500, f"({10**12},) ", "(0, 9)",
                    f"(0, {10**18})", f"({10**18}, 0)", "(True,)",
                ]  # fmt: skip
                member = re.sub(rb"\(\d[\d, ]*\)", rng.choice(claims).encode(), member, count=1)
            if key == name and how == 6:
                member = rng.choice([token, flip, truncate, overwrite])(rng, member)
            made.writestr(key + ".npy", member)
            if key == name and rng.random() < 0.05:
                made.writestr(key + ".npy", member)
    return target.getvalue()


def mat(rng: Random, data: bytes) -> bytes:
    """Sizes, types and numbers inside the variables of a MATLAB file, compressed ones too."""
    header, position = data[:128], 128
    order = "<" if data[126:128] == b"IM" else ">"
    elements = []
    while position + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, position)
        elements.append((kind, data[position + 8 : position + 8 + size]))
        position += 8 + size
    chosen = rng.randrange(len(elements))
    made = [header]
    for number, (kind, content) in enumerate(elements):
        if number == chosen:
            inside = zlib.decompress(content) if kind == 15 else content
            for _ in range(rng.choice([1, 1, 2, 4])):
                inside = rng.choice([overwrite, overwrite, overwrite, flip, truncate, duplicate, remove])(rng, inside)
            content = zlib.compress(inside) if kind == 15 else inside
        size = rng.choice(HUGE) if number == chosen and rng.random() < 0.05 else len(content)
        made.append(struct.pack(order + "II", kind, size) + content)
    return b"".join(made)


def png(rng: Random, data: bytes) -> bytes:
    """A PNG whose chunks have other content but a good checksum, are gone, or are there twice."""
    chunks, position = [], 8
    while position + 12 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        chunks.append((data[position + 4 : position + 8], data[position + 8 : position + 8 + size]))
        position += 12 + size
    at = rng.randrange(len(chunks))
    name, content = chunks[at]
    how = rng.randrange(6)
    if how <= 2:
        chunks[at] = name, rng.choice([flip, overwrite, truncate, insert])(rng, content)
    elif how == 3:
        del chunks[at]
    elif how == 4:
        chunks.insert(at, chunks[at])
    else:  # announces another size
        sides = struct.pack(">II", *(rng.choice([0, 1, 40, 29_999, 30_001, 2**31 - 1, 2**32 - 1]) for _ in range(2)))
        chunks[0] = chunks[0][0], sides + chunks[0][1][8:]
    made = [data[:8]]
    for name, content in chunks:
        made.append(struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content)))
    return b"".join(made)


def text_lines(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = str(rng.choice(VALUES)).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


STRUCTURE: dict[str, list[Mutation]] = {
    "json": [json_document, json_document, json_document, token],
    "jsonl": [json_lines, json_lines, json_lines, token],
    "records": [json_lines, json_lines, json_lines, token, floods.crowds],
    "answers": [json_lines, json_lines, json_lines, token, floods.answers],
    "json-string": [json_string, json_string, token, floods.escapes],
    "pickle": [pickled, pickled, pickle_machine, floods.shared], "npz": [npz, npz, floods.zeros],
    "mat": [mat, mat, floods.cells], "npy": [overwrite, flip], "png": [png], "jpeg": [overwrite, flip],
    "text": [text_lines, token],
}  # fmt: skip
"""Of each kind of file, what changes it and leaves it one of its kind."""


def compressed(rng: Random, data: bytes) -> bytes:
    packed = gzip.compress(data, compresslevel=1)
    ways: list[Callable[[], bytes]] = [
        lambda: packed, lambda: packed[: rng.randrange(2, len(packed))], lambda: flip(rng, packed),
        lambda: packed + packed, lambda: packed + b"\0" * 20, lambda: packed + b"rest",
        lambda: gzip.compress(packed), lambda: b"\x1f\x8b" + data, lambda: b"\x28\xb5\x2f\xfd" + data,
    ]  # fmt: skip
    return rng.choice(ways)()


def broken(rng: Random, data: bytes, kind: str) -> tuple[bytes, str]:
    """(the file broken in some way, or now and then left whole; the name of the way)."""
    chance = rng.random()
    if chance < 0.02:
        return data, "whole"
    way = rng.choice(STRUCTURE[kind] if chance < 0.6 else BYTES)
    made, name = way(rng, data), way.__name__
    if rng.random() < 0.06:
        return compressed(rng, made), f"{name} compressed"
    return made, name
