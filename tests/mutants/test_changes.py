"""Mutants are what they are said to be (the extra dev-mutants makes them)."""

from __future__ import annotations

import ast

import pytest

pytest.importorskip("mutmut", reason="needs pip install 'hoicli[dev-mutants]'")

from tests.mutants.changes import mutants, statement_lines

SOURCE = '''"""A module."""
LIMIT = 3
Values = list[int]


def over(values: list[int], limit: int = LIMIT) -> list[int]:
    """Those over a limit."""
    if limit < 0 or not (
        values
    ):
        return []
    return [
        value
        for value in values
        if value > limit
    ]
'''


def test_each_mutant_is_a_program_with_one_place_changed() -> None:
    lines = SOURCE.splitlines()
    found = mutants(SOURCE)
    assert {mutant.after.strip() for mutant in found} >= {"LIMIT = 4", "if value >= limit"}
    assert "Values" not in {mutant.before.split(" ")[0] for mutant in found}, "types are not tested"
    for mutant in found:
        ast.parse(mutant.code)
        assert mutant.after != mutant.before == "\n".join(lines[mutant.line - 1 :][: len(mutant.before.splitlines())])
        assert '"""' not in mutant.before, "words are not tested"


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    few = mutants(SOURCE, 4, seed=1)
    assert len(few) == 4
    assert few == mutants(SOURCE, 4, seed=1) != mutants(SOURCE, 4, seed=2)
    assert mutants(SOURCE, 1000) == mutants(SOURCE)


@pytest.mark.parametrize(
    ("line", "lines"), [(2, None), (6, None), (8, {8, 9, 10}), (9, {8, 9, 10}), (11, {11}), (15, {12, 13, 14, 15, 16})]
)
def test_the_lines_of_a_statement(line: int, lines: set[int] | None) -> None:
    assert statement_lines(SOURCE, line) == lines
