"""Tables that are shared: who rated, what they were asked, when; and what a table lacks."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.similarity_table import SimilarityTable
from tests.support.kernel import lines as as_lines
from tests.support.llm_stub import rate, serving
from tests.support.project import SHOE, Hoicli, parsed, saved
from tests.support.shoe import rows_of

PAIR = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01"}
TRUTH = ("--gt", SHOE / "gt.jsonl", SHOE / "predictions.jsonl")


def test_a_models_line_says_what_it_was_asked_and_when(hoicli: Hoicli, tmp_path: Path) -> None:
    """And a run that asks nothing anew writes the same bytes."""
    cache, table = tmp_path / "answers.jsonl", tmp_path / "sim.jsonl"
    with serving() as stub:
        given = ("shoe-sim", "--backend", "llm", "--base-url", stub.url, "--cache", cache)
        assert hoicli(*given, "--model", "m", *TRUTH, "-o", table).code == 0
        answers = parsed(cache.read_text())
        days = {answer["date"] for answer in answers}
        # a year ago, but for one
        aged = [{**answer, "date": "2025-11-22"} for answer in answers[1:]]
        cache.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in [answers[0], *aged]))
        again = parsed(hoicli(*given, "--model", "m", *TRUTH).out)
        both = parsed(hoicli(*given, "--model", "m", "--model", "n", *TRUTH).out)
        missing = saved(tmp_path / "missing.jsonl", orjson.dumps({"pos": "v", "a": "pet.v.01", "b": "touch.v.01"}))
        (named,) = parsed(hoicli(*given, "--model", "m", "--pairs", missing).out)
    assert len(days) == 1
    line = parsed(table.read_text())[0]
    assert (line["scores"], line["date"]) == ({"m": rate("m", line["a"], line["b"])}, min(days))
    assert line["prompt"] == answers[0]["setup"]
    assert {line["date"] for line in again} == {f"2025-11-22/{min(days)}"}
    assert {line["date"] for line in both} == {f"2025-11-22/{min(days)}"}
    assert list(both[0]["scores"]) == ["m", "n"]
    # of two senses, a line of --pairs is a line of a table
    assert (named["scores"], named["prompt"]) == ({"m": rate("m", "pet.v.01", "touch.v.01")}, line["prompt"])


def test_who_rated_a_table() -> None:
    lines = [
        {**PAIR, "scores": {"m": 4, "n": 1}, "similarity": 0.625, "prompt": "aa", "merge": "median"},
        {**PAIR, "b": "feed.v.01", "similarity": 0.5, "measure": "lexical+wordnet:wup", "prompt": "aa+bb"},
    ]
    table = SimilarityTable.read(as_lines(lines), ErrorPolicy())
    assert table.signature() == {
        "sim": table.digest(),
        "raters": "lexical+m+n+wordnet:wup",
        "prompt": "aa+bb",
        "merge": "mean+median",
    }
    bare = SimilarityTable.read(as_lines([{**PAIR, "similarity": 0.625}, {**lines[1]}]), ErrorPolicy())
    assert bare.digest() == table.digest()  # it is of the content


def test_what_a_table_lacks_is_written_to_be_rated(hoicli: Hoicli, tmp_path: Path) -> None:
    table, part, rest = (tmp_path / f"{name}.jsonl" for name in ("table", "part", "rest"))
    assert hoicli("shoe-sim", "--backend", "wordnet:path", *TRUTH, "-o", table).code == 0
    complete = hoicli("shoe-sim", "--check", table, *TRUTH)
    assert (complete.code, complete.out) == (0, "")
    assert complete.err.startswith(f"hoicli: {table}: ")
    assert "raters wordnet:path" in complete.err
    lines = table.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[::3]))
    lacking = hoicli("shoe-sim", "--check", part, *TRUTH, "-o", rest)
    lost = [{key: line[key] for key in PAIR} for at, line in enumerate(parsed("".join(lines))) if at % 3]
    assert parsed(rest.read_text()) == lost
    assert lacking.code == 1
    assert f"{part}: lacks {len(lost):,} pairs; rate them with hoicli shoe-sim --pairs, and add" in lacking.err
    rated = hoicli("shoe-sim", "--backend", "wordnet:path", "--pairs", rest)
    part.write_text(part.read_text() + rated.out)
    assert hoicli("shoe-sim", "--check", part, *TRUTH).code == 0
    evaluated = [hoicli("shoe-eval", "--sim", path, *TRUTH).out for path in (table, part)]
    assert evaluated[0] == evaluated[1]  # the same digest
    assert hoicli("shoe-sim", "--check", part, "--dataset", "vcoco").code == 1


@pytest.mark.parametrize("backend", ["lexical", "wordnet:lin"])
def test_models_of_one_backend_are_ranked_together(hoicli: Hoicli, tmp_path: Path, backend: str) -> None:
    """Whatever pairs each needs, in one command or by a table of its own; a table that was changed is another one."""
    first, second, both, rows = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "both", "rows"))
    words = (SHOE / "predictions.jsonl").read_text()
    first.write_text(words)
    second.write_text(words.replace("touching", "stroking").replace('"clean"', '"scrub"'))
    truth = ("--gt", SHOE / "gt.jsonl")
    lines: list[str] = []
    tables: dict[Path, Path] = {}
    for model in (first, second):
        tables[model] = tmp_path / f"sim-{model.name}"
        assert hoicli("shoe-sim", "--backend", backend, *truth, model, "-o", tables[model]).code == 0
        given = ("--quiet", "--format", "jsonl", "--tag", f"model={model.stem}", *truth, model)
        direct, by_table = (hoicli("shoe-eval", "--sim", sim, *given).out for sim in (backend, tables[model]))
        assert direct == by_table
        lines.append(direct)
    signatures = {row["signature"] for text in lines for row in rows_of(text).values()}
    assert len(signatures) == 1
    assert f"|sim:{backend}@wordnet3.0." in signatures.pop()
    rows.write_text("".join(lines))
    assert "not ranked" not in hoicli("table", rows).err
    # one table for both models has what both need
    assert hoicli("shoe-sim", "--backend", backend, *truth, first, second, "-o", both).code == 0
    parts = {line for table in tables.values() for line in table.read_text().splitlines()}
    assert sorted(parts) == sorted(both.read_text().splitlines())
    assert hoicli("shoe-eval", "--sim", both, *given).out == lines[1]
    changed = [{**line, "similarity": 0.5} for line in parsed(both.read_text())]
    both.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in changed))
    (signature,) = {row["signature"] for row in rows_of(hoicli("shoe-eval", "--sim", both, *given).out).values()}
    assert f"|raters:{backend}|" in signature
    assert "@wordnet" not in signature
