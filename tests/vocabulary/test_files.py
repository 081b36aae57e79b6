"""Files of datasets: what they may say, and what is said of a bad one."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hoicli.commands.doctor import schema_text
from hoicli.errors import LONGEST_LIKE, DataError, UsageError
from hoicli.vocabulary.content_checks import FIELDS, check
from hoicli.vocabulary.dataset_content import shipped_content
from hoicli.vocabulary.datasets import DATASETS, load
from tests.support.costs import LARGER, require_linear
from tests.support.project import MonkeyPatch, complaint, dumped, saved

SITE: dict[str, Any] = {
    "name": "site",
    "subjects": ["worker", "visitor"],
    "verbs": ["wear", "hold", "none"],
    "objects": ["helmet", "hammer"],
    "interactions": [["wear", "helmet"], ["hold", "helmet"], ["hold", "hammer"], ["none", "hammer"]],
    "no_interaction": "none",
    "training_counts": [20, 3, 10, 9],
    "subsets": {"on_head": [["wear", "helmet"]], "tools": [2, 3]},
    "splits": {"new": [["hold", "hammer"]]},
    "split_aliases": {"nw": "new"},
    "aliases": {"hard hat": "helmet", "grasp": "hold"},
    "numbering": {
        "verbs": {"base": 1},
        "objects": {"ids": {"helmet": 7, "hammer": 9, "worker": 1, "visitor": 2}},
        "interactions": {"order": [["none", "hammer"], ["hold", "hammer"], ["hold", "helmet"], ["wear", "helmet"]]},
    },
    "box": "edges",
    "test_images": ["b", "a"],
}


def written(folder: Path, content: Any, name: str = "site.json") -> str:
    return str(dumped(folder / name, content))


def test_everything_a_file_may_say(tmp_path: Path) -> None:
    site = load(written(tmp_path, SITE))
    objects = ("helmet", "hammer", "worker", "visitor")
    assert (site.name, site.verbs, site.objects) == ("site", ("wear", "hold", "none"), objects)
    assert site.subjects == ("worker", "visitor")
    assert site.subject_ids == {2, 3}
    assert site.groups == {"rare": {1, 3}, "non_rare": {0, 2}}
    assert site.subsets == {"on_head": {0}, "tools": {2, 3}}
    assert [site.members(name) for name in ("full", "rare", "tools")] == [{0, 1, 2, 3}, {1, 3}, {2, 3}]
    assert site.unseen == {"new": {2}}
    assert site.split("NW") == "new"
    assert (site.object_ids["hard hat"], site.verb_ids["grasp"]) == (0, 1)
    assert site.numbering["verbs"] == {1: 0, 2: 1, 3: 2}
    assert site.numbering["objects"] == {7: 0, 9: 1, 1: 2, 2: 3}
    assert site.numbering["interactions"] == {0: 3, 1: 2, 2: 1, 3: 0}
    assert (site.box, site.test_images) == ("edges", ("b", "a"))
    assert site.no_interaction_ids == {3}
    assert site.own
    assert site.signed == f"site-{site.digest}"
    assert len(site.digest) == 8


def test_a_small_file_has_defaults(tmp_path: Path) -> None:
    small = {"name": "s", "verbs": ["hold"], "objects": ["cup", "person"], "interactions": {"cup": ["hold"]}}
    found = load(written(tmp_path, small))
    assert (found.objects, found.subjects, found.interactions) == (("cup", "person"), ("person",), (("hold", "cup"),))
    assert (found.groups, found.subsets, found.numbering, found.box) == ({}, {}, {}, "inclusive")


def test_groups_are_cut_from_counts_at_any_limits(tmp_path: Path) -> None:
    content = SITE | {"cuts": {"tail": 5, "medium": 10, "head": None}}
    assert load(written(tmp_path, content)).groups == {"tail": {1}, "medium": {3}, "head": {0, 2}}


def test_the_digest_is_of_what_counts(tmp_path: Path) -> None:
    same = {key: SITE[key] for key in reversed(SITE)} | {"about": "ours", "title": "Building sites", "source": "here"}
    other = SITE | {"box": "inclusive"}
    digests = [load(written(tmp_path, one, f"{n}.json")).digest for n, one in enumerate((SITE, same, other))]
    assert digests[0] == digests[1] != digests[2]


def test_a_file_may_be_compressed_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = saved(tmp_path / "site.json.gz", gzip.compress(json.dumps(SITE).encode()))
    first = load(str(path))
    assert first.name == "site"
    assert load(str(path)) is first
    path.write_bytes(gzip.compress(json.dumps(SITE | {"name": "other"}).encode()))
    assert load(str(path)).name == "other"


def test_another_file_at_the_same_path_and_time_is_another(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    for name, box in (("a", "edges"), ("b", "inclusive")):
        (tmp_path / name).mkdir()
        os.utime(written(tmp_path / name, SITE | {"box": box}), ns=(0, 0))
        monkeypatch.chdir(tmp_path / name)
        assert load("site.json").box == box


def test_a_pipe_is_read_once() -> None:
    for name in ("site", "other"):  # two pipes, one after the other, at one path
        reading, writing = os.pipe()
        with open(reading, "rb"), open(writing, "wb") as file:
            file.write(json.dumps(SITE | {"name": name}).encode())
            file.close()
            path = f"/dev/fd/{reading}"
            assert load(path) is load(path)
            assert load(path).name == name


@pytest.mark.long
def test_the_shipped_datasets_are_files_of_this_kind() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text("dataset")))
    for name in DATASETS:
        content = shipped_content(name)
        validator.validate(content)
        check(content, name)
        assert (load(name).digest, load(name).signed) == ("", name)


def test_the_schema_has_the_fields_of_the_code() -> None:
    schema = json.loads(schema_text("dataset"))
    assert list(schema["properties"]) == list(FIELDS)
    jsonschema.Draft202012Validator(schema).validate(SITE)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "hico"}, "name: 'hico' is a dataset of hoicli's own; choose another"),
    ({"name": "my site"}, 'name: "my site" is no name; give letters, digits'),
    ({"verb": []}, "verb: no field of a dataset; did you mean 'verbs'?"),
    ({"verbs": "hold"}, 'verbs: "hold" is no list of labels'),
    ({"verbs": []}, "verbs: [] is no list of labels; give at least one"),
    ({"verbs": ["hold", 3]}, "verbs[1]: 3 is no label; labels are strings"),
    ({"verbs": ["wear", "hold", "wear"]}, "verbs[2]: 'wear' is there already, at verbs[0]; each label once"),
    ({"verbs": ["hold", "a|gt:x"]}, 'verbs[1]: "a|gt:x" has a |, which parts the settings of signatures'),
    ({"objects": ["helmet", "hammer "]}, 'objects[1]: "hammer " is empty or has spaces around it'),
    ({"objects": "lvis"}, 'objects: "lvis" is no list of labels'),
    ({"objects": {"helmet": 3}}, "objects: an object of labels needs the WordNet 3.0 noun of each"),
    ({"subjects": ["worker", "worker"]}, "subjects[1]: 'worker' is there already"),
    ({"interactions": []}, "interactions: 0 of them; give 1 to 100,000 pairs of verb and object"),
    ({"interactions": [["wear"]]}, 'interactions[0]: ["wear"] is no pair'),
    ({"interactions": [["wears", "helmet"]]}, 'interactions[0]: unknown verb "wears"; list it in verbs'),
    ({"interactions": [["wear", "tie"]]}, 'interactions[0]: unknown object "tie"; list it in objects'),
    ({"interactions": [["wear", "helmet"], ["wear", "helmet"]]}, "interactions[1]: wear helmet is interaction 0"),
    ({"interactions": [[0, 9]]}, "interactions[0]: object 9, but there are 4, counted from 0"),
    ({"interactions": {"helmet": "wear"}}, 'interactions.helmet: "wear" is no list; give the object\'s verbs'),
    ({"no_interaction": "nothing"}, 'no_interaction: "nothing" is no verb of the dataset'),
    ({"groups": {"rare": [0, 1], "non_rare": [1, 2, 3]}}, "groups.non_rare: 1 is in 'rare', too"),
    ({"groups": {"rare": [0, 1]}}, "groups: hold hammer is in none; groups divide the classes"),
    ({"groups": {"rare": [["wear", "hammer"]]}}, 'groups.rare[0]: ["wear","hammer"] is none of `interactions`'),
    ({"groups": []}, "groups: [] is no object; give lists of classes by name"),
    ({"subsets": {"x": [4]}}, "subsets.x[0]: 4 is none of `interactions`, of which there are 4, counted from 0"),
    ({"subsets": {"x": [2, ["hold", "hammer"]]}}, 'subsets.x[1]: ["hold","hammer"] is there twice'),
    ({"subsets": {"full": [0]}}, "subsets.full: no name for classes; choose another than full, seen, unseen"),
    ({"splits": {"new": 3}}, "splits.new: 3 is no list of classes"),
    ({"split_aliases": {"n": "newer"}}, 'split_aliases.n: "newer" is none of `splits`'),
    ({"training_counts": [1, 2]}, "training_counts: must have a count for each of the 4 interactions"),
    ({"training_counts": [1, 2, 3, -1]}, "training_counts: must have a count for each of the 4 interactions"),
    ({"cuts": None}, "cuts: null; give ascending limits and null for the last"),
    ({"cuts": {"rare": 10}}, 'cuts: {"rare":10}; give ascending limits and null for the last'),
    ({"cuts": {"a": 10, "b": 5, "c": None}}, "cuts: "),
    ({"training_counts": [], "cuts": {"rare": None}}, "cuts: cut training_counts into groups: needs those"),
    ({"aliases": {"hat": "cap"}}, 'aliases.hat: "cap" is no verb and no object; name one'),
    ({"aliases": {"hammer": "helmet"}}, "aliases.hammer: is a label itself; drop the alias, or the label 'hammer'"),
    ({"aliases": ["hat"]}, 'aliases: ["hat"] is no object'),
    ({"numbering": "coco"}, 'numbering: "coco" is no object; say how verbs, objects, interactions are numbered'),
    ({"numbering": {"verb": {}}}, "numbering.verb: nothing that is numbered; give verbs, objects, interactions"),
    ({"numbering": {"verbs": {"order": ["wear", "hold"]}}}, "numbering.verbs.order: is no permutation of the 3 verbs"),
    ({"numbering": {"verbs": {"order": ["wear", "hold", "hold"]}}}, "numbering.verbs.order: is no permutation"),
    ({"numbering": {"verbs": {"base": -1}}}, "numbering.verbs.base: -1 is no number to count from; give 0 or 1"),
    ({"numbering": {"objects": {"ids": {"helmet": 1}}}}, "numbering.objects.ids: must have each of the objects once"),
    (
        {"numbering": {"verbs": {"ids": {"wear": 1, "hold": 1, "none": 2}}}},
        "numbering.verbs.ids: numbers are whole, 0 or more, each once",
    ),
    ({"box": "xywh"}, 'box: "xywh" is no convention of boxes; choose inclusive, inclusive-1, edges'),
    ({"test_images": ["a", "a"]}, "test_images: must be a list of image ids, each once"),
    ({"test_images": {"first": 1}}, "test_images: must be a list of image ids, each once"),
    ({"title": 3}, "title: 3 is no text; give a string, or leave it out"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_file_that_contradicts_itself(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path, SITE | change)
    assert complaint(DataError, load, path).startswith(f"{path}: {message}")


@pytest.mark.parametrize("field", ["name", "verbs", "objects", "interactions"])
def test_a_missing_field(tmp_path: Path, field: str) -> None:
    path = written(tmp_path, {key: value for key, value in SITE.items() if key != field})
    with pytest.raises(DataError, match=f"{field}: missing; hoicli vocab --from GT.jsonl -o FILE.json makes one"):
        load(path)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "is empty"), (b"{", "not JSON"), (b"[" * 1_000_000, "not JSON"),
    (b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000, "not JSON"),
    (b"[1]", "[1] is no object with the fields of a dataset"), (b"null", "null is no object"),
    (b"\xff\xfe\x00", "begins as UTF-16 does, but some of it is not"), (b"\x1f\x8bdamaged", "damaged gzip data"),
    (b'{"image_id":"a","boxes":[],"labels":[],"hois":[]}', "a record, not a dataset"),
    (b'{"image_id":"a","boxes":[]}\n{"image_id":"b","boxes":[]}\n', "these are records, not a dataset"),
    (b" " * (1 << 26) + b"  {}", "more than 64 MiB"),
])  # fmt: skip
def test_what_is_no_dataset(tmp_path: Path, data: bytes, message: str) -> None:
    path = saved(tmp_path / "bad.json", data)
    said = complaint(DataError, load, str(path))
    assert said.startswith(f"{path}:")
    assert message in said


def test_no_such_dataset(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown dataset 'hicodet': choose from hico, .* or give a FILE.json"):
        load("hicodet")
    with pytest.raises(DataError, match="no such file"):
        load(str(tmp_path / "none.json"))
    with pytest.raises(DataError, match="is a directory"):
        load(str(tmp_path))


CHANGES: dict[str, tuple[Callable[[list[str]], dict[str, Any]], str]] = {
    "unknown verb": (lambda _: {"interactions": [["a" * 189, "o"]]}, "interactions[0]: unknown verb"),
    "alias": (lambda _: {"interactions": [[0, 0]], "aliases": {"b": "a" * 189}}, "aliases.b: "),
    "order": (
        lambda verbs: {"interactions": [[0, 0]], "numbering": {"verbs": {"order": [*verbs[:0:-1], "b"]}}},
        "numbering.verbs.order: is no permutation of the {} verbs",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_fault_among_many_long_labels_is_found_soon(tmp_path: Path, monkeypatch: MonkeyPatch, name: str) -> None:
    """Each took more than 40 seconds: difflib among all labels, and a list searched once a label."""
    change, message = CHANGES[name]
    compared: list[str] = []
    compare = SequenceMatcher.set_seq1

    def counted(matcher: SequenceMatcher[str], label: str) -> None:
        compared.append(label)
        compare(matcher, label)

    monkeypatch.setattr(SequenceMatcher, "set_seq1", counted)

    def work(count: int) -> None:
        verbs = [f"{'a' * 190}{number}" for number in range(count)]
        path = written(tmp_path, {"name": "many", "objects": ["o"], "verbs": verbs, **change(verbs)})
        assert complaint(DataError, load, path).startswith(f"{path}: {message.format(count)}")

    require_linear(work, 20_000 // LARGER, 20_000)
    assert max(map(len, compared), default=0) <= LONGEST_LIKE
