"""Mutants of a module: its source with one small change each. mutmut knows the changes, its runner is left aside: it
tests all mutants of a project with all tests that reach them, and here a sample is wanted, tested in two stages."""

from __future__ import annotations

import ast
import difflib
import random
import re
from dataclasses import dataclass

import libcst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

_NAME_OF_A_TYPE = re.compile(r"\w+ = (TypeVar\(|(Callable|Literal|Mapping|NDArray|Sequence|dict|list|tuple)\[)")


@dataclass(frozen=True)
class Mutant:
    """A changed source; `before` and `after` are the lines that differ, from `line` (1 is the first) on."""

    code: str
    line: int
    before: str
    after: str


def mutants(source: str, count: int | None = None, seed: int = 0) -> list[Mutant]:
    """`count` mutants drawn at random (None: all) in the order of the source; the same for the same seed. Names of
    types (`Key = TypeVar("Key")`, `Floats = NDArray[np.float64]`) are left alone: nothing that runs uses them."""
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(source)).visit(visitor)
    named = [line for line, text in enumerate(source.splitlines(), start=1) if _NAME_OF_A_TYPE.match(text)]
    places = list(range(len(visitor.mutations)))
    random.Random(seed).shuffle(places)
    found: list[tuple[int, Mutant]] = []
    for place in places:
        if count is not None and len(found) == count:
            break
        change = visitor.mutations[place]
        changed = module.deep_replace(change.original_node, change.mutated_node)
        code = libcst.ensure_type(changed, libcst.Module).code
        mutant = Mutant(code, *_difference(source, code))
        if mutant.line not in named:
            found.append((place, mutant))
    return [mutant for _, mutant in sorted(found, key=lambda item: item[0])]


def _difference(source: str, code: str) -> tuple[int, str, str]:
    before, after = source.splitlines(), code.splitlines()
    blocks = [block for block in difflib.SequenceMatcher(a=before, b=after).get_opcodes() if block[0] != "equal"]
    start, end, start_after, end_after = blocks[0][1], blocks[-1][2], blocks[0][3], blocks[-1][4]
    return start + 1, "\n".join(before[start:end]), "\n".join(after[start_after:end_after])


def statement_lines(source: str, line: int) -> set[int] | None:
    """The lines of the statement at a line, or of the head of one that has a body: a test that reaches the change has
    run one of them. None outside of functions: what runs when a module is imported, no test in particular runs."""
    best = {line}
    inside = False
    for node in ast.walk(ast.parse(source)):  # outer statements first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            head_end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= max(head_end, node.lineno):
                best = set(range(node.lineno, head_end + 1)) | {line}
            elif isinstance(node, ast.FunctionDef) and head_end < line <= (node.end_lineno or 0):
                inside = True
    return best if inside else None
