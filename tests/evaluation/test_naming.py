"""Names of streams: short, and never the same twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import UsageError
from hoicli.evaluation.predictions import names_of_files


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["out/preds.jsonl"], ["preds"]),
        (["a/preds.jsonl", "b/other.jsonl.gz"], ["preds", "other"]),
        (["runs/a/preds.jsonl", "runs/b/preds.jsonl", "c/third.jsonl"], ["a/preds", "b/preds", "c/third"]),
        (["x/a/p.jsonl", "x/b/p.jsonl", "y/a/p.jsonl"], ["x/a/p", "x/b/p", "y/a/p"]),
        (["p.jsonl", "/tmp/p.jsonl"], ["p", "tmp/p"]),
        (["/p.jsonl", "./tmp/../q/p.jsonl"], ["/p", "q/p"]),
        (["p.jsonl", "p.json"], ["p.jsonl", "p.json"]),
        (["a/p.jsonl", "a/p.json", "b/p.jsonl"], ["a/p.jsonl", "a/p.json", "b/p.jsonl"]),
        (["-", "other.jsonl"], ["stdin", "other"]),
        (["-", "stdin.jsonl"], ["<stdin>", "stdin.jsonl"]),
        ([".hidden.jsonl"], [".hidden.jsonl"]),
    ],
)
def test_the_shortest_path_that_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert names_of_files(paths) == names


@pytest.mark.parametrize("paths", [["p.jsonl", "p.jsonl"], ["p.jsonl", "q", "./p.jsonl"], ["-", "-"]])
def test_a_path_given_twice_is_refused(paths: list[str]) -> None:
    with pytest.raises(UsageError, match="is given twice: names must differ; leave one out, or give each a name"):
        names_of_files(paths)


PARTS = st.sampled_from(["a", "b", "p", "p.json", "p.jsonl", ".p", "a.p", "-"])


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6, unique=True))
def test_names_differ_whatever_the_paths(paths: list[str]) -> None:
    names = names_of_files(paths)
    assert len(set(names)) == len(paths)
    assert all(names)
