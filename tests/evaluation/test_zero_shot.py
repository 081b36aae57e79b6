"""The zero-shot settings of HICO-DET by every name in use, under every protocol: unseen and seen are their classes."""

from __future__ import annotations

import pytest

from hoicli.evaluation.selection import TABLES
from hoicli.vocabulary.datasets import load
from tests.support.project import PAIR, Hoicli, parsed

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
