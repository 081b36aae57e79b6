"""The container reader: lists cut into items, Python literals read without evaluating them, nothing lost silently."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoicli.converters.containers.source import Source
from hoicli.converters.containers.text import items_of, literal
from hoicli.errors import DataError
from tests.support.costs import LARGER, require_linear
from tests.support.project import saved

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(alphabet="[]{}()\"'\\,: np.float32(")
)
LITERALS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def without_tuples(value: Any) -> Any:
    """What `literal` makes of it: lists."""
    if isinstance(value, list | tuple):
        return [without_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: without_tuples(item) for key, item in value.items()}
    return value


@given(LITERALS)
def test_literal_reads_what_repr_writes(value: Any) -> None:
    text = repr(value)
    assert repr(literal(text.encode())) == repr(without_tuples(ast.literal_eval(text)))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.text("()np.64float'"), max_size=6))
def test_literal_reads_numpy_scalars_among_anything(values: list[Any]) -> None:
    text = ", ".join(f"np.float64({value!r})" if isinstance(value, float) else repr(value) for value in values)
    assert repr(literal(f"[{text}]".encode())) == repr(values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("np.float32(1.5)", 1.5),
        ("{'a': np.int64(3), 'b': [np.float32(-0.5), np.float64(1e-07)]}", {"a": 3, "b": [-0.5, 1e-07]}),
        ("[numpy.uint8(7), np.bool_(True), np.str_('a')]", [7, True, "a"]),
        ("[inf, -inf, np.float32(inf)]", [float("inf"), float("-inf"), float("inf")]),
        ("{'filename': 'np.float32(1).jpg', 'x': np.float32(2.0)}", {"filename": "np.float32(1).jpg", "x": 2.0}),
        ("{'filename': 'a (1).jpg', 'x': np.float32(2.0)}", {"filename": "a (1).jpg", "x": 2.0}),
        ("[np.float32(2.0), ')']", [2.0, ")"]),
        ("""{"it's": 'a "b"'}""", {"it's": 'a "b"'}),
        (" [1] ", [1]),
    ],
)
def test_literal_examples(text: str, value: Any) -> None:
    assert literal(text.encode()) == value


def test_literal_reads_nan() -> None:
    values = literal(b"[nan, np.float64(nan)]")
    assert [value != value for value in values] == [True, True]


@pytest.mark.parametrize("text", [
    '__import__("os")', "np.load('x')", "np.array([1, 2])", "np.float32(1.5, 2)", "np.float32(x=1.5)",
    "os.float32(1.5)", "f(1)", "name", "a.b", "1 + 1", "[x for x in []]", "{1, 2}", "{**{}}", "{[1]: 2}",
    "{1: 2}", "-'a'", "-None", "1j", "...", "f'{1}'", "[1, 2", "", "'\\x'", "\x00",
    "[" * 100_000 + "]" * 100_000, "-" * 100_000 + "1", "+".join("1" * 100_000), "{'a': " * 100_000,
], ids=lambda text: text[:20])  # fmt: skip
def test_literal_refuses(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        literal(text.encode())


TRAPS = st.text(alphabet="[]{}()\"'\\,: a") | st.sampled_from(['{"a":', "{'a':", '{"a": 1}', "]", "}, {'a': ", "'['"])
VALUES = st.recursive(
    st.integers(-9, 9) | st.none() | TRAPS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc") | TRAPS, inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(
    st.dictionaries(st.sampled_from("abc") | TRAPS, VALUES, max_size=3)
    | st.builds(lambda value: {"a": value, "b": [{"a": 1}, {"a": value}]}, VALUES),
    max_size=5,
)


@given(ITEMS, st.sampled_from([None, 0, 2]), st.sampled_from([(", ", ": "), (",", ":")]))
@example([{"a": {"a": 1}}, {"a": 2}], None, (", ", ": "))  # the first key recurs at once: no item ends there
def test_items_of_a_list_agrees_with_json(items: list[Any], indent: int | None, separators: tuple[str, str]) -> None:
    text = json.dumps(items, indent=indent, separators=separators)
    assert [*items_of(text.encode(), 1, json.loads, to_end=True)] == items


@given(ITEMS)
def test_items_of_a_list_agrees_with_repr(items: list[Any]) -> None:
    text = f"{{'preds': {items!r}, 'gts': {items!r}}}"
    assert [*items_of(text.encode(), len("{'preds': ["), literal)] == items


@pytest.mark.parametrize(("text", "problem"), [
    (b'[{"a": 1}, {"a": 2}', "breaks off"), (b'[{"a": 1}, {"a": 2', "breaks off"),
    (b'[{"a": 1},]', "breaks off"), (b'[{"a": 1},, {"a": 2}]', "breaks off"),
    (b'[{"a": 1} {"a": 2}]', "neither a comma"), (b'[{"a": 1}][{"a": 2}]', "something follows"),
    (b"[", "breaks off"),
])  # fmt: skip
def test_items_of_a_list_says_what_is_wrong(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(items_of(text, 1, json.loads, to_end=True))


@pytest.mark.parametrize(("between", "items"), [(b"1", 200_000), (b"{}", 100_000), (b'{"k": [{"k": 0}]}', 10_000)])
def test_items_of_a_list_takes_time_by_the_size_alone(between: bytes, items: int) -> None:
    """Each item once searched up to a megabyte for the first item's key, and copied what was before it."""

    def work(count: int) -> None:
        text = b'[{"k": 0}' + (b", " + between) * count + b', {"k": 0}]'
        assert sum(1 for _ in items_of(text, 1, json.loads)) == count + 2

    require_linear(work, items // LARGER, items)


def test_a_long_list_of_text_has_one_end() -> None:
    for count in (1, 499, 500, 501, 3000):
        assert list(items_of(b"[[" + b"'[', " * count + b"0], 1]", 1, bytes)) == [b"[" + b"'[', " * count + b"0]", b"1"]
        with pytest.raises(ValueError, match="breaks off"):
            list(items_of(b"[[" + b"'', " * count + b"'", 1, bytes))


DETECTIONS = [
    {"filename": "a (1).jpg", "predictions": [{"bbox": [0.5, 1.0, 2.0, 3.5], "category_id": 0}], "hoi_prediction": []},
    {"filename": "it's.jpg", "predictions": [], "hoi_prediction": [{"subject_id": 0, "score": 0.25}]},
    {"filename": "b.jpg", "predictions": [], "hoi_prediction": []},
]


def read_all(path: Path) -> tuple[list[Any], DataError | None]:
    """The items of a file as far as they come, and the error that stopped them."""
    items: list[Any] = []
    source = Source(str(path))
    try:
        for field, item in source.items():
            assert field == f"[{len(items)}]"
            items.append(item)
    except DataError as error:
        return items, error
    return items, None


FORMS = {
    "json": json.dumps(DETECTIONS),
    "indented": json.dumps(DETECTIONS, indent=2),
    "text": json.dumps(str({"preds": DETECTIONS, "gts": DETECTIONS})),
    "clean text": json.dumps(str({"preds": DETECTIONS[::2], "gts": DETECTIONS[::2]})),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_items_or_an_error(form: str, tmp_path: Path) -> None:
    """Whole, and cut at every byte: all items are there, or an error says from which on they are not."""
    path = tmp_path / "dump"
    data = FORMS[form].encode()
    complete = DETECTIONS if form != "clean text" else DETECTIONS[::2]
    for length in range(len(data)):
        path.write_bytes(data[:length])
        items, error = read_all(path)
        assert items == complete[: len(items)]
        if error is None:
            assert len(items) == len(complete)
            assert "text" in form  # what follows the predictions is not needed; a JSON list has nothing behind it
        elif items:
            assert (error.place, error.field) == (str(path), f"[{len(items)}]")
    path.write_bytes(data)
    assert read_all(path) == (complete, None)


def test_errors_have_the_item_and_a_mend(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    rest = "and nothing after it was read; write the file again"
    for data, text in (
        (b'[{"a": 1}, {"a": 2', f"[1]: not readable (the list breaks off), {rest}"),
        (b'[{"a": 1}, {"a": tru}, {"a": 3}]', "[1]: not readable ("),
        (b'[{"a": "\\ud800"}]', "[0]: not readable ("),
        (b'[{"a": "\xd5a"}]', "[0]: not readable (not UTF-8: line 1 column 8 (char 7))"),
        (b"\"{'gts': []}\"", "is a JSON string without 'preds': [...]; the file may be cut off: write it again"),
        (b'{"a": []}', "holds no list (json-object); --from NAME chooses another format"),
        (b"", "is empty (0 bytes); write it again"),
        (b'"\\u12', "not JSON ("),
    ):
        path.write_bytes(data)
        _, error = read_all(path)
        assert str(error).startswith(f"{path}: {text}")


def test_deep_nesting_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path / "deep.json", '[{"a": ' + "[" * 100_000 + "]" * 100_000 + "}]")
    items, error = read_all(path)
    assert items == []
    assert error is not None
    assert error.field == "[0]"


def test_a_pickled_list_has_items_and_a_dictionary_none(tmp_path: Path) -> None:
    path = saved(tmp_path / "dump.pkl", pickle.dumps(DETECTIONS))
    assert read_all(path) == (DETECTIONS, None)
    path.write_bytes(pickle.dumps({"a": DETECTIONS}))
    assert Source(str(path)).first_item is None
    assert str(read_all(path)[1]) == f"{path}: holds no list (pickle); --from NAME chooses another format"
