"""Which rows apply to which dataset, and what the options change of them; the zero-shot settings of HICO-DET by every
name in use, under every protocol."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.protocols import NO_SHIFT, PROTOCOLS
from hoicli.evaluation.selection import (
    TABLES,
    adapt_protocol,
    choose_protocols,
    diagnosed_protocol,
    main_protocol,
    protocols_for,
)
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, PAIR, Hoicli, complaint, parsed

HICO_ROWS = ["hico", "hico-ko", "qpic", "upt", "diag", "inp-cc"]
V_COCO_ROWS = ["vcoco-agent", "vcoco-s1", "vcoco-s2", "vcoco-qpic"]


@pytest.mark.parametrize(("dataset", "rows", "main", "diagnosed", "classes"), [
    ("hico", HICO_ROWS, "hico", "diag", ""),
    ("hico-det-sg", HICO_ROWS, "hico", "diag", ""),
    ("vcoco", V_COCO_ROWS, "vcoco-s1", "vcoco-s1", "25"),
    ("swig", ["swig"], "swig", "diag", "evaluated"),
    ("hoia", ["hoia"], "hoia", "diag", ""),
    ("hoiw", ["hoia"], "hoia", "diag", ""),
    ("ambiguous-hoi", ["ambiguous-hoi"], "ambiguous-hoi", "diag", "ambiguous"),
])  # fmt: skip
def test_the_table_of_each_dataset(dataset: str, rows: list[str], main: str, diagnosed: str, classes: str) -> None:
    vocabulary = load(dataset)
    assert set(rows) <= protocols_for(vocabulary).keys()
    assert main_protocol(vocabulary).name == main
    row = diagnosed_protocol(vocabulary)
    assert (row.name, row.classes, row.dataset) == (diagnosed, classes, dataset)
    assert {row.dataset for row in protocols_for(vocabulary).values()} == {dataset}
    assert [row.name for row in choose_protocols(["all"], dataset)] == rows
    assert [row.name for row in choose_protocols([], dataset)] == rows


def test_another_dataset_takes_the_rules_of_triplets_and_not_the_shifts_of_files() -> None:
    swig = load("swig")
    row = adapt_protocol(PROTOCOLS["diag"], swig)  # moves the ground truth alone
    assert (row.prediction_shift, row.truth_shift, row.last_pixel_shift) == (NO_SHIFT, NO_SHIFT, NO_SHIFT)
    assert row.subsets == ("full", "zero_shot", "rare", "non_rare", "evaluated")
    assert (row.classes, row.drop_no_interaction) == ("", False)
    assert row.remark.startswith("the rules of hico, boxes as recorded; the paper's AP")
    alike = replace(PROTOCOLS["hico"], prediction_shift=(1.0,) * 4, truth_shift=(1.0,) * 4, remark="")
    kept = adapt_protocol(alike, load("hico-det-sg"))
    assert (kept.prediction_shift, kept.truth_shift) == ((1.0,) * 4, (1.0,) * 4)
    assert kept.remark == "the rules of hico, boxes as recorded"
    assert kept.subsets == ()
    assert adapt_protocol(PROTOCOLS["diag"], load("hico-det-sg")).drop_no_interaction


@pytest.mark.parametrize(
    ("name", "classes"), [("vcoco-agent", "agent"), ("vcoco-s1", "roles"), ("vcoco-qpic", "every_action")]
)
def test_another_dataset_with_roles_has_its_own_sets_of_classes(name: str, classes: str) -> None:
    row = adapt_protocol(PROTOCOLS[name], load("vcoco"))
    assert (row.classes, row.subsets) == (classes, ())


@pytest.mark.parametrize(("names", "dataset", "found"), [
    ([], None, HICO_ROWS),
    (["all"], None, HICO_ROWS),
    (["vcoco-s2"], None, ["vcoco-s2"]),
    (["vcoco-s2,all"], None, ["vcoco-s2", "vcoco-agent", "vcoco-s1", "vcoco-qpic"]),
    (["upt, hico", "upt"], None, ["upt", "hico"]),
    (["upt", "all"], "hico", ["upt", "hico", "hico-ko", "qpic", "diag", "inp-cc"]),
    (["hico-image"], None, ["hico-image"]),
])  # fmt: skip
def test_named_rows_once_in_order_of_first_mention(names: list[str], dataset: str | None, found: list[str]) -> None:
    assert [row.name for row in choose_protocols(names, dataset)] == found


@pytest.mark.parametrize(("names", "dataset", "start", "end"), [
    (["hicoo,zz"], None, "--protocol: unknown 'hicoo', 'zz'; choose from all, hico,", " (did you mean 'hico'?)"),
    (["qqqqqq"], None, "--protocol: unknown 'qqqqqq'; choose from all, hico,", list(PROTOCOLS)[-1]),
    (["hico,vcoco-s1"], None, "--protocol vcoco-s1: of vcoco, not hico; name protocols of one dataset", ""),
    (["hico"], "vcoco", "--protocol hico: of hico, not vcoco; name protocols of one dataset", ""),
])  # fmt: skip
def test_unknown_rows(names: list[str], dataset: str | None, start: str, end: str) -> None:
    said = complaint(UsageError, choose_protocols, names, dataset)
    assert said.startswith(start)
    assert said.endswith(end)


def test_unknown_rows_of_a_file_are_told_those_it_has() -> None:
    with pytest.raises(UsageError) as error:
        choose_protocols(["vcoco-s1,swig"], load(str(FIXTURES / "own/site.json")))
    assert str(error.value).startswith(f"--protocol vcoco-s1, swig: of vcoco, not site; choose from {HICO_ROWS[0]}, ")


HICO = load("hico")
NAMES = {
    "rare_first": ("RF-UC", "rf-uc", "UC-RF", "uc_rf", "rare-first"),
    "non_rare_first": ("NF-UC", "nf-uc", "UC-NF", "uc_nf", "non-rare-first"),
    "unseen_object": ("UO", "uo", "unseen-object"),
    "unseen_verb": ("UV", "uv", "Unseen_Verb"),
    "unseen_action": ("UA", "ua", "unseen-action"),
    **{f"uc{number}": (f"UC{number}",) for number in range(5)},
}


def test_every_split_is_named_here() -> None:
    assert NAMES.keys() == HICO.unseen.keys()


@pytest.mark.parametrize(("split", "alias"), [(split, alias) for split in NAMES for alias in NAMES[split]])
def test_names_for_one_split_give_the_same_bytes(hoicli: Hoicli, split: str, alias: str) -> None:
    result = hoicli("eval", "--split", alias, *PAIR)
    assert result.code == 0
    assert result.out == hoicli("eval", "--split", split, *PAIR).out
    assert f"|split:{split}|" in parsed(result.out)[0]["signature"]


@pytest.mark.parametrize("split", NAMES)
def test_the_means_are_of_their_classes(hoicli: Hoicli, split: str) -> None:
    """Under each protocol, the mean of unseen is that of the per-class values of the split's unseen interactions."""
    found = parsed(hoicli("eval", "--split", split, "--per-class", "--metric", "hm", *PAIR).out)
    unseen = {HICO.interactions[number] for number in HICO.unseen[split]}
    for protocol in TABLES["hico"]:
        mine = [row for row in found if row["protocol"] == protocol]
        means = {row["subset"]: row for row in mine if row["metric"] == "mAP"}
        classes = {(row["verb"], row["object"]): row["value"] for row in mine if row["metric"] == "AP"}
        for subset, members in (("unseen", unseen & classes.keys()), ("seen", classes.keys() - unseen)):
            assert means[subset]["n"] == len(members)
            value = sum(classes[pair] for pair in members) / len(members) if members else None
            assert means[subset]["value"] == (None if value is None else pytest.approx(value, abs=1e-9))
        assert means["unseen"]["n"] + means["seen"]["n"] == means["full"]["n"]
        [harmonic] = [row for row in mine if row["metric"] == "hm"]
        values = [means[subset]["value"] for subset in ("unseen", "seen")]
        assert harmonic["n"] == means["full"]["n"]
        assert harmonic["value"] == harmonic_mean(values)
        assert f"|split:{split}|" in harmonic["signature"]


def harmonic_mean(values: list[float | None]) -> object:
    """The mean as `hm` has it: none without one of the values, 0 if one is 0."""
    if None in values:
        return None
    return 0.0 if 0.0 in values else pytest.approx(len(values) / sum(1 / value for value in values if value), abs=1e-9)


def test_a_harmonic_mean_needs_a_split(hoicli: Hoicli) -> None:
    result = hoicli("eval", "--metric", "hm", *PAIR)
    problem = "of unseen and seen classes; name the split with --split"
    assert (result.code, result.err) == (2, f"hoicli: --metric hm: {problem}\n")


def test_unseen_actions_hold_out_22_verbs_whole() -> None:
    unseen = HICO.unseen["unseen_action"]
    verbs = {HICO.interactions[number][0] for number in unseen}
    assert (len(unseen), len(verbs)) == (100, 22)
    assert unseen == {number for number, (verb, _) in enumerate(HICO.interactions) if verb in verbs}


def test_a_dataset_without_them_says_so(hoicli: Hoicli) -> None:
    result = hoicli("eval", "--dataset", "swig", "--split", "RF-UC", *PAIR)
    assert (result.code, result.err) == (2, "hoicli: --split RF-UC: swig has no zero-shot splits\n")
