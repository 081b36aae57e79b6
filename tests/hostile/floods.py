"""Small files that stand for a great deal of work: each is a class of input that once took hours, or gigabytes."""

from __future__ import annotations

import io
import json
import pickle
import re
import struct
import zipfile
import zlib
from random import Random
from typing import Any

import numpy as np


def shared(rng: Random, data: bytes) -> bytes:
    """A pickle with one of its lists in many places, or in itself; whatever class it may name is a dictionary."""
    from tests.hostile.mutations import Unpickler

    tree = Unpickler(io.BytesIO(data)).load()
    part: Any = rng.choice([tree, [1.5], {"score": 0.5}, np.zeros(1000), (1, 2)])
    for _ in range(rng.choice([3, 20, 60])):
        part = [part] * rng.choice([2, 3, 200])
    if isinstance(tree, dict):
        tree[rng.choice([*tree, "x"])] = part
    else:
        tree[rng.randrange(len(tree) + 1) :] = [part]
    return pickle.dumps(tree, protocol=rng.randrange(6))


LABELS = ("cup", "person", "bench")


def answers(rng: Random, data: bytes) -> bytes:
    """Rows whose text makes a reader begin anew over and over, or look for every name in every box."""
    count = rng.choice([300, 20_000])
    number = ",".join("1" * count)
    located = [{"label": f"cup{at}", "box": [1, 2, 3, 4]} for at in range(count // 10)]
    named = [{"subject": "person", "object": f"cup{at}", "verb": "hold"} for at in range(count // 10)]
    text = rng.choice(
        [
            '{"a":' * rng.choice([5, 30]) + '{"b":[' + number + '],"c":"x',
            '{"a": ' * rng.choice([5, 30]) + "[" + number + " x", json.dumps(located + named),
            json.dumps([{"subject": [1, 2, 3, 4], "object": [1, 2, 3, 4], "verb": "a" + " " * count + "b"}]),
            "<box></box>" * count, "<ref>cup</ref><box>1,2,3,4</box> holds " * (count // 4), "```json\n[" * count,
            "[[1] x " * count,
        ]
    )  # fmt: skip
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = json.dumps({**json.loads(lines[at]), "response": rng.choice(["", "```json\n"]) + text}).encode()
    return b"\n".join(lines)


def crowds(rng: Random, data: bytes) -> bytes:
    """A record of hundreds of boxes one in another, each of its own label, all in interactions; or with labels that
    nobody knows."""
    count = rng.choice([100, 300, 1100])
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    nested = [[300 - each % 300, 220 - each % 220, 310 + each, 230 + each] for each in range(count)]
    hois = [{"subject": each, "object": count - 1 - each, "verb": f"q{each}", "score": 0.5} for each in range(count)]
    labels = [rng.choice([rng.choice(LABELS), f"l{each}"]) for each in range(count)]
    lines[at] = json.dumps({**json.loads(lines[at]), "boxes": nested, "labels": labels, "hois": hois}).encode()
    return b"\n".join(lines)


def escapes(rng: Random, data: bytes) -> bytes:
    """Text in text with thousands of strings that JSON does not write so, or with keys that collide."""
    text = json.loads(data)
    many = rng.choice([50, 20_000])
    keys = ", ".join(f"{at * (2**61 - 1)}: 0" for at in range(1, many))
    texts = ("[" + r"'\\', " * many + "1]", "'" + r"\\" * many + "'", '["' + 'it\'s", "' * many + '"]', f"{{{keys}}}")
    made = rng.choice(texts)
    at = rng.choice([match.start() for match in re.finditer(r"\{", text)] or [0]) + 1
    return json.dumps(text[:at] + f"'x': {made}, " + text[at:]).encode()


def cells(rng: Random, data: bytes) -> bytes:
    """A MATLAB file with a variable of its own name that is millions of nothing, compressed, padded."""
    from hoicli.converters.hico_mat import BOX_VARIABLES

    nothing = struct.pack("<II", 14, 0)
    empty = struct.pack("<II", 14, 48) + struct.pack("<IIIIIIiiIIII", 6, 8, 6, 0, 5, 8, 0, 0, 1, 0, 9, 0)
    spelled = rng.choice([nothing, empty, nothing + empty]) * rng.choice([1000, 300_000])
    name = rng.choice([b"all_boxes", *(name.encode() for name in BOX_VARIABLES)])
    count = rng.choice([1, len(spelled) // 8, 2**31 - 1])
    shape = struct.pack("<IIIIIIii", 6, 8, rng.choice([1, 1, 2]), 0, 5, 8, count, rng.choice([1, 1, 2**31 - 1]))
    content = shape + struct.pack("<II", 1, len(name)) + name + b"\0" * (-len(name) % 8) + spelled
    packed = zlib.compress(struct.pack("<II", 14, len(content)) + content, 9) + bytes(rng.choice([0, 100_000]))
    return data[:128] + struct.pack("<II", 15, len(packed)) + packed


def zeros(rng: Random, data: bytes) -> bytes:
    """An archive of nothing but zeros, which compress a thousand times, and perhaps a false word on their size."""
    queries, images = rng.choice([(100, 1), (3000, 1), (20_000, 1), (100, 200)])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice([8, 8, 8, 12, 14])) as archive, np.load(io.BytesIO(data)) as arrays:
        for name in arrays.files:
            width = arrays[name].shape[2:]
            array = (
                np.zeros((images, queries, *width), arrays[name].dtype) if width else arrays[name][:1].repeat(images, 0)
            )
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    content = made.getvalue()
    for signature, offset in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        if rng.random() < 0.3:
            at = content.index(signature) + offset
            content = content[:at] + struct.pack("<I", rng.choice([10**6, 10**9, 0xFFFFFFFE])) + content[at + 4 :]
    return content
