"""Command lines: the contract of eval's rows, streams and pipes, exit codes, and one line for each thing gone wrong."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hoicli import __version__
from hoicli.cli import COMMANDS
from hoicli.commands.doctor import schema_text
from hoicli.io.opened_files import MARK
from hoicli.records.result_rows import ROW_KEYS
from tests.diagnosis.test_person_first import PAIR as OF_VCOCO
from tests.support.kernel import share_out
from tests.support.project import GT, OTHER, PAIR, PATIENCE, PREDICTIONS, Hoicli, parsed, refusal, saved, without_gt


def test_the_signature_tells_settings_apart(hoicli: Hoicli) -> None:
    def signature(*options: str) -> object:
        return without_gt(parsed(hoicli("eval", "--protocol", "hico", *options, *PAIR).out)[0]["signature"])

    assert signature() == f"protocol:hico|data:hico|version:{__version__}"
    changed = signature("--top-k", "5", "--nms", "0.7", "--split", "UV", "--ignore-no-interaction")
    options = "split:unseen_verb|noint:ignored|topk:5|nms:0.7/1/0.5"
    assert changed == f"protocol:hico|data:hico|{options}|version:{__version__}"


@pytest.mark.parametrize("words", [
    ("eval", "--per-class"), ("diagnose", "--per-class"), ("recall",),
    ("pairstats", "--nms-sweep", "0.5", "--verb-score", "triplet"),
], ids=lambda words: words[0])  # fmt: skip
def test_a_large_file_in_shares_gives_the_same_bytes(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    marked = saved(tmp_path / "marked.jsonl", MARK + PREDICTIONS.read_bytes())
    alone, forks = hoicli(*words, "--gt", GT, PREDICTIONS), Mock(wraps=os.fork)
    share_out(monkeypatch)
    monkeypatch.setattr("os.fork", forks)
    assert hoicli(*words, "--gt", GT, marked) == alone
    assert forks.call_count == 4


@pytest.mark.long
def test_processes_that_take_turns_match_as_one_does(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same lines, same faults with the same places, and the same lines before a fault; also when a fork dies."""
    many = {}
    for name, source in (("gt", GT), ("preds", PREDICTIONS)):
        own = source.read_text().splitlines()
        lines = [line.replace("HICO_test2015", f"{copy}_HICO") for copy in range(90) for line in own]
        (tmp_path / name).write_text("\n".join(lines))
        many[name] = lines
    broken, twice = tmp_path / "broken", tmp_path / "twice"
    lines = many["preds"]
    broken.write_text("\n".join([*lines[:299], lines[299].replace('"score"', '"skore"'), *lines[300:]]))
    twice.write_text("\n".join([*lines[:520], lines[3], *lines[520:]]))
    runs = [(tmp_path / "preds",), (broken,), (broken, "--on-error", "skip"), (twice,), (tmp_path / "preds", twice)]

    def results() -> list[tuple[int, str, str]]:
        command = ("match", "--protocol", "hico,upt", "--gt", tmp_path / "gt")
        return [(ran.code, ran.out, ran.err) for ran in (hoicli(*command, *run) for run in runs)]

    alone = results()
    assert [code for code, _, _ in alone] == [0, 1, 0, 1, 1]
    assert f"{broken}:300: hois[0].score" in alone[1][2]
    assert len(alone[1][1].splitlines()) == 2 * 256 + 1  # the last says that it stopped
    share_out(monkeypatch)
    assert results() == alone
    monkeypatch.setattr("pickle.dump", lambda *_, **__: os._exit(1))  # by which a fork sends a result
    assert results()[:2] == alone[:2]


@pytest.mark.parametrize(("command", "options", "matched", "files"), [
    ("eval", "", "", PAIR),
    ("eval", "--nms 0.7 --top-k 4", "", PAIR),
    ("curves", "", "--protocol hico", PAIR),
    ("diagnose", "", "--protocol all", PAIR),
    ("diagnose", "", "", OF_VCOCO),
])  # fmt: skip
def test_matches_give_what_the_predictions_give(
    hoicli: Hoicli, tmp_path: Path, command: str, options: str, matched: str, files: tuple[object, ...]
) -> None:
    """Alone, and with the ground truth once more."""
    matches = tmp_path / "matches.jsonl.gz"
    assert hoicli("match", *options.split(), *matched.split(), "-o", matches, *files).code == 0
    expected = hoicli(command, "--per-class", *options.split(), *files).out
    assert hoicli(command, "--per-class", matches).out == expected != ""
    assert hoicli(command, "--per-class", "--gt", files[-2], matches).out == expected


def test_a_file_appears_whole_or_not_at_all(hoicli: Hoicli, tmp_path: Path) -> None:
    bad = saved(tmp_path / "bad.jsonl", PREDICTIONS.read_text() + '{"image_id": 1}\n')
    target = saved(tmp_path / "matches.jsonl", "what was there before\n")
    assert hoicli("match", "--gt", GT, "-o", target, bad).code == 1
    assert target.read_text() == "what was there before\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "matches.jsonl"]
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    for path in (first, second):
        assert hoicli("match", "-o", path, *PAIR).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).decode() == hoicli("match", *PAIR).out


def test_upt_counts_in_all_images_unless_a_file_says_otherwise(hoicli: Hoicli, tmp_path: Path) -> None:
    """fredzzhang/hicodet HICODet skips the images in `empty`: what is predicted there never counts."""
    gt, predictions, own = tmp_path / "gt.jsonl", tmp_path / "predictions.jsonl", tmp_path / "own.json"
    fly: dict[str, Any] = {"subject": 0, "object": 1, "verb": "fly"}
    boxes = {"boxes": [[0, 0, 9, 9], [20, 20, 39, 39]], "labels": ["person", "kite"]}
    kite: dict[str, Any] = {"image_id": "0", **boxes, "hois": [fly]}
    empty = {"image_id": "empty", "boxes": [[0, 0, 9, 9]], "labels": ["person"], "hois": []}
    found = [{**kite, "image_id": name, "hois": [{**fly, "score": score}]} for name, score in (("0", 1), ("empty", 2))]
    for path, records in ((gt, [kite, empty]), (predictions, found)):
        saved(path, "\n".join(map(json.dumps, records)))
    own.write_text('{"name": "paired", "like": "upt", "images": "interactions"}')
    rows = parsed(hoicli("eval", "--per-class", "--protocol", f"upt,diag,{own}", "--gt", gt, predictions).out)
    aps = {row["protocol"]: row["value"] for row in rows if (row["metric"], row.get("object")) == ("AP", "kite")
           and row["verb"] == "fly"}  # fmt: skip
    assert aps == pytest.approx({"upt": 50, "diag": 100, "paired": 100})


def test_the_names_of_tags_are_not_those_of_rows(hoicli: Hoicli) -> None:
    """As columns of a CSV file, or of a table, a tag called `value` would be taken for the value."""
    properties = json.loads(schema_text("result"))["properties"]
    # What only audit's candidates have may be a tag elsewhere; beside them its column is `tags.KEY`.
    columns = {key for key, says in properties.items() if not says.get("description", "").startswith("audit: ")}
    columns.add("note")
    assert columns - {"corruption", "severity", "family"} == set(ROW_KEYS)
    for key in ROW_KEYS:
        result = hoicli("eval", "--tag", "model=m", "--tag", f"{key}=99", *PAIR)
        problem = f"--tag {key}: rows have a {key} of their own; choose another name"
        assert (result.code, result.out, result.err) == (2, "", f"hoicli: {problem}\n")
    refusal(hoicli("compare", "--tag", "model=m", "--gt", GT, PREDICTIONS, OTHER), 2)
    refusal(hoicli("diagnose", "--tag", "model=m", "--gt", GT, PREDICTIONS, OTHER), 2)
    assert hoicli("diagnose", "--tag", "model=m", "--gt", GT, PREDICTIONS).code == 0


@pytest.mark.parametrize(("content", "message"), [
    (b"", "no predictions in it"),
    (b" \n", "no predictions in it"),
    (b'{"image_id": "x", "boxes": [], "labels": [], "hois": []}\n',
     "1: image_id: 'x' is not in the ground truth (which names images as 'HICO_test2015_00000001'); "),
    (b'[{"filename": "a.jpg"}]', " not a format hoicli knows (a list of filename); `hoicli convert --list` names"),
    (b'[{"image_id": "a", "boxes": [], "labels": [], "hois": []}]', "jq -c '.[]' FILE"),
    (b'[{"filename": "a.jpg", "predictions": [{"bbox": [0, 0, 9, 9], "category_id": 4}], "hoi_prediction": '
     b'[{"subject_id": 0, "object_id": 0, "category_id": 5, "score": 1}]}, {"filename": "b.jpg", "predictions": '
     b'[{"bbox": [0, 0, 9, 9], "category_id": 4}], "hoi_prediction": ['
     b'{"subject_id": 0, "object_id": 0, "category_id": 5}]}]',
     " [1].hoi_prediction[0].score: nothing (null, or missing) is no score; every interaction of b.jpg needs"),
    (b'{\n  "image_id": 1\n}', "1: a JSON object over several lines; a record is one line (jq -c .)"),
    (pickle.dumps([{"filename": "x" * 100}])[:50], " is cut off, or no readable pickle (pickle data was"),
    (b'[{"filename": "a.jpg", "predictions": [', " [0]: not readable (the list breaks off)"),
    (b'{"annotations": [], "classes"', "1: not JSON (unexpected end of data"),
    (b"\x80\x04]q\x00.", " not a format hoicli knows (nothing in this pickle tells its format)"),
    (b"\x1f\x8b\x08\x00broken", "damaged gzip data"),
    (b'{"image_id": "HICO_test2015_00000001", "boxes": [[0, 0, 1, 1]], "la', "1: the line is cut off (no closing"),
])  # fmt: skip
def test_a_bad_stream_is_one_clear_line(hoicli: Hoicli, tmp_path: Path, content: bytes, message: str) -> None:
    path = saved(tmp_path / "p.jsonl", content)
    sound = content.startswith(b'{"image_id": "x"')  # as ground truth
    for words in (("--gt", GT, path), *([] if sound else [("--gt", path, PREDICTIONS)])):
        said = refusal(hoicli("eval", *words))
        assert said.startswith(f"{path}:")
        assert message in said or (words[1] == path and not content.strip())


@pytest.mark.parametrize(("arguments", "message"), [
    (("eval", "--protocol", "hoco,upt,x"), "hoicli: --protocol: unknown 'hoco', 'x'; choose from all,"),
    (("eval", "--split", "rare_last"), "hoicli: --split rare_last: hico has uc0, uc1,"),
    (("eval", "--split", "rfuc"),
     "hoicli: --split rfuc: hico has uc0, uc1, uc2, uc3, uc4, rare_first, "
     "non_rare_first, unseen_object, unseen_verb, unseen_action; did you mean rf-uc?"),
    (("eval", "--split", "rare"),
     "hoicli: --split rare: hico has uc0, uc1, uc2, uc3, uc4, rare_first, non_rare_first, unseen_object, "
     "unseen_verb, unseen_action; rare is no split but a subset, and has rows anyway (the split is "
     "rare_first)\n"),
    (("eval", "--slice", "people:6+"),
     "hoicli: --slice people:6+: give ascending numbers above 0 as cuts, for example people:1:2:3:6\n"),
    (("eval", "--gt", "none.jsonl", "--protocol", "vcoco-s1", "--metric", "mPD", "none.jsonl"),
     "hoicli: --metric mPD: the classes of vcoco-s1 are no verbs with objects; leave it out\n"),
    (("claim", "--gt", str(GT), str(GT), "30.33", "21.10", "33.09"),
     "hoicli: claim: give the numbers as one word: 30.33/21.10/33.09\n"),
    (("eval", "--tag", "model"), "hoicli: --tag model: write key=value, for example --tag model=cdn\n"),
    (("eval", "--tag", "a=b", "--tag", "a=c"), "hoicli: --tag a=b, a=c: one name has two values; keep one\n"),
    (("eval", "--top-k", "0"), "hoicli: --top-k 0: give a whole number of at least 1\n"),
    (("eval", "--gt", "-", "-"), "hoicli: stdin (-) can be read only once: give the ground truth or the predictions"),
    (("eval", "--gt", "/dev/stdin", "-"), "hoicli: stdin (-) can be read only once: give the ground truth"),
    (("match", "-"), "hoicli: match: give the ground truth with --gt FILE\n"),
    (("eval", "--nonsense"), "hoicli eval: no option --nonsense (hoicli eval --help shows how)\n"),
    (("shoe-eval", "--gt", str(GT), "--sim", "lexical", "--combine", "min", "--verb-weight", "0.9"),
     "hoicli: --verb-weight: the minimum of two similarities has no weights; leave it out\n"),
    (("shoe-eval", "--gt", str(GT), "--sim", "lexical", "--rank-of", "image", "--min-score", "0.3"),
     "hoicli: --rank-of image: goes with --min-rank; give that, too\n"),
    (("agree", "--group", ""), "hoicli: --group: is empty; give a value, or leave it out (an unset variable?)\n"),
    (("eval", "--gt"), "hoicli eval: Option '--gt' requires an argument. (hoicli eval --help shows how)\n"),
])  # fmt: skip
def test_a_wrong_call_is_one_clear_line(hoicli: Hoicli, arguments: tuple[str, ...], message: str) -> None:
    assert f"{refusal(hoicli(*arguments), 2)}\n".startswith(message)


def test_predictions_where_matches_are_wanted(hoicli: Hoicli) -> None:
    result = hoicli("eval", PREDICTIONS)
    assert (result.code, result.err) == (1, f"{PREDICTIONS}:1: not a match record; give the ground truth with --gt\n")


@pytest.mark.parametrize("command", [
    ("eval",), ("match",), ("diagnose",), ("pairstats",), ("recall",), ("curves",), ("confusion",),
    ("audit",),
    ("compare", "--name", "a,b", PREDICTIONS), ("shoe-sim", "--backend", "wordnet:wup"),
    ("shoe-eval", "--sim", "lexical"),
], ids=lambda command: str(command[0]))  # fmt: skip
def test_predictions_given_as_ground_truth(hoicli: Hoicli, command: tuple[object, ...]) -> None:
    """Every detector would find itself: mAP 100."""
    result = hoicli(*command, "--gt", PREDICTIONS, PREDICTIONS)
    problem = "ground truth has no scores, so these are predictions; give the ground truth here (swapped?)"
    text = f"{PREDICTIONS}:1: hois[0].score: {problem}"
    assert (result.code, result.err) == (1, f"{text}\n")
    stopped = json.dumps({"error": f"match stopped: {text}"}, separators=(",", ":")) + "\n"
    assert result.out == (stopped if command == ("match",) else "")


def test_the_list_of_commands_has_them_all(hoicli: Hoicli) -> None:
    listing = hoicli("--help").out
    for name, line in COMMANDS.items():
        assert f"\n  {name} " in listing
        assert line.split()[0] in listing


def test_a_mistake_in_a_table_of_hoicli_says_what_to_write(hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    """To who is adding to it: there is nobody to report it to."""
    monkeypatch.setattr("hoicli.records.result_rows.SIGNATURE_KEYS", ("version",))
    result = hoicli("eval", "--gt", GT, PREDICTIONS)
    said = "hoicli: internal error: a signature has data, gt, listed, protocol"
    assert result.err.splitlines()[-1] == f"{said}; add it to SIGNATURE_KEYS of hoicli/records/result_rows.py"


def test_progress_shows_on_a_terminal_only(tmp_path: Path) -> None:
    """On a pseudo-terminal stderr gets a bar when the work is long; stdout is the same as ever."""
    pty = pytest.importorskip("pty")
    records = tmp_path / "many.jsonl"
    line = json.loads(PREDICTIONS.read_text().splitlines()[0])
    with records.open("w") as stream:
        for number in range(6000):
            stream.write(json.dumps({**line, "image_id": number}) + "\n")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "hoicli", "validate", str(records)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            part = os.read(controller, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(controller)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"checked 6,000 lines" in seen
    assert b"\r" not in out


@pytest.mark.parametrize("command", ["eval", "match", "recall", "validate", "shoe-eval --sim lexical"])
def test_two_models_are_no_shards_of_one_dump(command: str, hoicli: Hoicli) -> None:
    """An image in two files names both lines, and what to do with two models; in one file one of the lines goes."""
    one, other = PREDICTIONS, OTHER
    result = hoicli(*command.split(), "--gt", GT, one, other)
    assert result.code == 1
    said = result.out + result.err
    assert f"{other}:1: image_id: image 'HICO_test2015_00000001' is at {one}:1 already" in said
    assert "keep one line an image in all files, which are read as one; for two models: hoicli compare" in said


def test_several_files_are_models_elsewhere(hoicli: Hoicli) -> None:
    files = ("--gt", GT, PREDICTIONS, OTHER)
    for command in ("diagnose", "curves", "confusion", "pairstats", "audit", "compare"):
        result = hoicli(command, *files, "--format", "jsonl")
        assert result.code == 0
        models = {json.loads(line).get("tags", {}).get("model") for line in result.out.splitlines()}
        assert models >= ({"other"} if command == "compare" else {"predictions", "other"})


@pytest.mark.parametrize("words", [
    "eval --gt GT", "pairstats --gt GT", "mask", "prompts", "corrupt --records-only",
    "show --gt GT --images . -o DIR", "convert --from records -o OUT",
    "convert --from records --to coco-rel -o OUT",
])  # fmt: skip
def test_skipping_everything_is_an_error(hoicli: Hoicli, tmp_path: Path, words: str) -> None:
    """And leaves nothing: its numbers and pictures would be of no predictions."""
    bad = saved(tmp_path / "bad.jsonl", "{bad\n")
    places = {"GT": str(GT), "DIR": str(tmp_path / "shown"), "OUT": str(tmp_path / "out.jsonl")}
    said = refusal(hoicli(*(places.get(word, word) for word in words.split()), "--on-error", "skip", bad))
    assert said.startswith("hoicli: nothing is left: skipped 1 ")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


@pytest.mark.parametrize("words", ["eval --gt GT", "pairstats --gt GT", "mask", "prompts", "corrupt --records-only"])
def test_nothing_is_no_input(hoicli: Hoicli, words: str) -> None:
    """In a pipe it is what a step before this one leaves when it failed."""
    said = refusal(hoicli(*(str(GT) if word == "GT" else word for word in words.split()), "/dev/null"))
    assert said.startswith("/dev/null: no ")
