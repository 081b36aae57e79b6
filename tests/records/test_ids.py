"""Image ids in one buffer, and a register of where they were seen: what a list, a dictionary and a set would say."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import DataError
from hoicli.io.streams import Item, Line
from hoicli.records import ids, intake
from hoicli.records.ids import MISSING, ImageIds, Texts
from hoicli.records.intake import ImageRegister

TEXTS = st.text(st.characters(codec=None), max_size=5)  # also lone surrogates, NUL, and the empty text


@given(st.lists(st.lists(TEXTS, max_size=9), max_size=5))
def test_texts_are_a_list(parts: list[list[str]]) -> None:
    found, whole = Texts(), [text for part in parts for text in part]
    for number, part in enumerate(parts):
        found.extend(Texts(part) if number % 2 else part)
    assert list(found) == whole == found == [found[row] for row in range(len(whole))]
    assert found[-2:] == whole[-2:]
    assert found[::3] == whole[::3]
    assert found != [*whole, ""]
    with pytest.raises(IndexError):
        found[len(whole)]


@given(st.lists(TEXTS, unique=True, max_size=60), st.lists(TEXTS, max_size=20), st.integers(0, 60))
def test_places_are_those_of_a_dictionary(texts: list[str], others: list[str], cut: int) -> None:
    found = ImageIds(texts[:cut])
    assert [found.add(text) for text in texts] == list(range(len(texts)))
    place = {text: row for row, text in enumerate(texts)}
    wanted = [*others, *texts]
    assert found.places(wanted).tolist() == [place.get(text, MISSING) for text in wanted]
    assert [found.place(text) for text in wanted] == found.places(wanted).tolist()
    assert [text in found for text in others] == [text in place for text in others]


def test_texts_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "hash", lambda text: len(text), raising=False)
    texts = [f"{number:03}" for number in range(100)]
    found = ImageIds(texts)
    assert found.places(["999", *reversed(texts), "7"]).tolist() == [MISSING, *reversed(range(100)), MISSING]
    assert found.place("007") == 7
    assert "7" not in found


def test_a_table_takes_few_bytes() -> None:
    found = ImageIds(f"image_{number:07}" for number in range(50_000))
    assert len(found._table) * found._table.itemsize < 20 * len(found)


def test_ids_are_found_in_a_process_with_other_hashes() -> None:
    """Each process hashes text in its own way; what was pickled in one is read in another."""
    code = (
        "import pickle, sys; ids = pickle.load(sys.stdin.buffer); "
        "print(list(ids), ids.places(['b', 'x', 'a']).tolist(), ids.place('a'), ids.add('c'), 'c' in ids)"
    )
    sent = pickle.dumps(ImageIds(["a", "b"]))
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code]
        done = subprocess.run(run, input=sent, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert done.stdout.decode().split("\n")[0] == "['a', 'b'] [1, -1, 0] 0 2 True", done.stderr


def test_records_from_python_are_as_many_as_one_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_NUMBER_BITS", 60)  # so that there can be seven files
    items = [Item("preds", 1, b"", str(number)) for number in range(50)]
    register = ImageRegister()
    for batch in (items[:25], items[25:]):
        assert register.add_all([f"i{item.index}" for item in batch], list(batch))
    with pytest.raises(DataError) as error:
        register.add("i30", items[49])
    assert str(error.value) == "preds[49]: image_id: image 'i30' is at preds[30] already; keep one line an image"


@pytest.mark.parametrize("known", [None, ["a", "b", "c"], ImageIds(["a", "b", "c"])])
def test_a_register_knows_the_line_of_each_image(known: list[str] | None) -> None:
    register = ImageRegister(known)
    lines = [Line("x.jsonl", 3, b""), Line("y.jsonl", 1 << 40, b"")]
    assert register.add_all(["b", "a"], lines)
    assert not register.add_all(["c", "a"], lines)
    assert not register.add_all(["c", "c"], lines)
    register.add("b", lines[0])  # the same line, read again
    register.add("c", Item("gt", 1, b"", "7"))
    for image_id, where in (("b", "x.jsonl:3"), ("a", f"y.jsonl:{1 << 40}"), ("c", r"gt\[7\]")):
        with pytest.raises(DataError, match=f"is at {where} already"):
            register.add(image_id, Line("z.jsonl", 1, b""))
    if known:
        assert not register.add_all(["d"], lines[:1])
        with pytest.raises(DataError, match="not in the ground truth"):
            register.add("d", lines[0])
