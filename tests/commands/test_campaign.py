"""One signature, one number: every option of every command that signs its rows is varied on worlds full of ties, and
so is every order that its files can be in; rows of one identity and signature have one value."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pytest

from hoicli.corruption.catalogue import ROHOI
from tests.commands.test_orders import HICO
from tests.support.campaign import Told, Words, command_of, rows_of, settings_tried, unknown_options
from tests.support.orders import ORDERS, reordered, tied_world
from tests.support.project import FIXTURES, Hoicli, MonkeyPatch, Record, parsed, written

LEFT = {
    "gt": "other ground truth has another digest",
    "predictions": "no digest of predictions is signed: a row is of what its command line names",
    "from_": "how a file is written, which is read alike in every form",
    "image_list": "the names that a file's numbers stand for",
    "on_error": "lines that are skipped are signed, and there are none here",
    "tag": "stands in the row itself",
    "by": "its fields stand in the row itself, as tags",
    "name": "names the models, whose predictions are not signed",
    "explain": "prints no values",
    "emit": "prints no rows",
    "reasons": "a file beside the rows",
    "plot_kind": "draws",
    "wordnet": "the digest of its files is signed; there is one here",
    "needed": "prints no rows",
    "fail_if_worse": "changes the exit code alone",
    "margin": "changes the exit code alone",
    "questions": "their digest is signed as that of ground truth",
}
"""The options that are not varied, and why."""

PREDICTIONS_ORDER = {
    "inter_map": "ties go to the prediction that is listed first, as in its source",
    "pair_precision": "the boxes of a pair are its best prediction's, the first of equal scores",
}
"""The metrics that read the order of predictions inside a record, where scores are equal; and why."""
RELEASED_ORDERS = {"--boxes": ("across",), "--as-released": ("boxes",)}
"""The orders that mean nothing for predictions where released code reads others: COCO's and VOC's that of boxes,
Diag-HOI's that of triplets."""


@dataclass(frozen=True)
class Campaign:
    """A command's calls: `files` end the command line, each of `contexts` is a set of options that the others are added
    to. known: values of options that do not offer any. orders: those inside a record that mean nothing for
    predictions."""

    files: Words
    contexts: Sequence[str] = ("",)
    known: Mapping[str, Words] = field(default_factory=dict)
    orders: Sequence[str] = ("boxes", "across")


TRUTH = ("--gt", "gt.jsonl")
ONE, TWO = (*TRUTH, "preds.jsonl"), (*TRUTH, "preds.jsonl", "other.jsonl")
VCOCO = ("--dataset", "vcoco", "--gt", "vcoco_gt.jsonl", "vcoco_preds.jsonl")
SPLITS = ("rf-uc", "nf-uc", "uo", "uv", "uc0")
SLICES = ("objects", "distance", "distance:0.5:1", "distance:0.5:1.0000001", "people", "pairs", "slices.tsv")
NMS = ("0.7", "0.7000004", "0.5/1/0.5", "0.5/1/0.50000001", "0.5/0.5/0.5")
LIMITS = {"slice": SLICES, "nms": NMS, "iou": ("0.5", "0.5000001", "0.5:0.95:0.05", "0.4,0.6")}
NUMBERS = {**LIMITS, "split": SPLITS}
SOFT = "--metric soft_map,mAP --sim lexical"
SIMILARITIES = ("lexical", "wordnet", "exact")
CAMPAIGNS = {
    "eval": Campaign(
        ONE,
        ("", "--per-class", "--bootstrap 5", "--boxes", "--boxes --per-class --same 0.8", "--nms 0.7"),
        {**NUMBERS, "seed": ("1", "2"), "bootstrap": ("5", "6")},
    ),
    "recall": Campaign(
        ONE, ("", "--per-class --relative", "--train train.jsonl"), {"k": ("1,2", "3", "2")}, orders=ORDERS
    ),
    "diagnose": Campaign(ONE, ("", "--per-class", "--as-released", "--independent", "--progressive all"), LIMITS),
    "curves": Campaign(ONE, ("", "--per-class"), {**LIMITS, "interaction": ("ride bicycle", "hold bicycle")}),
    "confusion": Campaign(ONE, ("", "--top all"), {**LIMITS, "top": ("1", "2", "all")}),
    "pairstats": Campaign(
        ONE,
        ("", "--interactiveness", "--as-released", "--as-released --interactiveness", "--nms-sweep 0.5,0.9"),
        {"nms_sweep": ("0.5", "0.5000001", "0.5,0.9", "0.5/1/0.5"), "det_threshold": ("0.5", "0.5000001", "0.2,0.6")},
    ),
    "compare": Campaign(
        (*TWO, "--name", "a,b"),
        ("--bootstrap 5", "--bootstrap 0", "--bootstrap 5 --no-errors --per-class", f"--bootstrap 5 {SOFT}"),
        {**NUMBERS, "sim": SIMILARITIES, "seed": ("1", "2"), "bootstrap": ("0", "5", "6"), "top": ("1", "2", "all")},
    ),
    "claim": Campaign((*ONE, "50"), known={"split": SPLITS, "nms": NMS, "top_k": ("2", "2,3"), "top": ("1", "all")}),
    "audit": Campaign(
        (*TWO, "--name", "a,b"),
        ("", "--top all", "--top all --same 0.3 --sure 0"),
        {"nms": NMS, "top": ("1", "2", "all"), "votes": ("1", "2")},
    ),
    "robust": Campaign(
        ("rows.jsonl",),
        (
            *(
                "--metric mAP --subset full --protocol hico --unit percent",
                "--metric mAP --subset full --protocol hico",
            ),
            *("--metric mAP --subset full", "--metric mAP --protocol hico", "--subset full --protocol hico"),
            "--metric mAP --subset full --protocol hico --allow-missing",
        ),
        {
            "protocol": ("hico", "qpic"),
            "metric": ("mAP", "mean_max_recall"),
            "subset": ("full", "rare"),
            "corruption": (*list(ROHOI)[:3], ",".join(list(ROHOI)[:2])),
            "severity": ("1", "2", "1,2", "1,2,3,4,5"),
        },
    ),
    "shoe-eval": Campaign(
        ONE,
        (
            *("--sim lexical", "--sim wordnet --per-class", "--sim lexical --min-rank 0.5 --filter-map", "--sim exact"),
            "--sim lexical --bootstrap 5",
        ),
        {"sim": SIMILARITIES, "bootstrap": ("5", "6"), "seed": ("1", "2"), "delta": ("0.5", "0.5000001", "0.5,0.7")},
        orders=ORDERS,
    ),
    "agree": Campaign(
        ("ratings.jsonl",),
        ("", "--subsets", "--subsets --models m*", "--bootstrap 5", "--distribution --votes"),
        {
            "models": ("m*", "m1,m2", "m2,m1", "*2"),
            "group": ("size", "place"),
            "bootstrap": ("5", "6"),
            "levels": ("4", "5", "6", "7"),
            "seed": ("1", "2"),
            "again": ("again.jsonl",),
        },
    ),
    "vlm-eval": Campaign(
        ("answers.jsonl",),
        ("--questions scene.json", "--questions scene.json --bootstrap 5"),
        {"bootstrap": ("5", "6"), "seed": ("1", "2")},
    ),
    "vlm-eval ground": Campaign(("grounded.json",), ("--task ground --bootstrap 5", "--task ground")),
    "vlm-eval refer": Campaign(
        ("referred.json",), ("--task refer --sim lexical --bootstrap 5", "--task refer"), {"sim": SIMILARITIES}
    ),
    "eval vcoco": Campaign(VCOCO, ("", "--boxes", "--per-class"), LIMITS),
    "diagnose vcoco": Campaign(VCOCO, ("--per-class", "--independent"), LIMITS),
    "pairstats vcoco": Campaign(
        VCOCO,
        ("--interactiveness --verb-score triplet", "--verb-score triplet --nms-sweep 0.5,0.9"),
        {"nms_sweep": ("0.5", "0.5000001"), "det_threshold": ("0.5", "0.5000001")},
    ),
    "shoe-eval vcoco": Campaign(
        VCOCO, ("--sim lexical", "--sim wordnet"), {"sim": SIMILARITIES, "delta": ("0.5", "0.6")}, orders=ORDERS
    ),
}
"""The campaigns by command, with a word behind it where it has several."""
NO_SIGNATURE = {
    *("convert", "validate", "match", "data", "explore", "show", "corrupt", "mask", "curriculum", "shoe-sim"),
    *("prompts", "vocab", "doctor"),
}
"""Commands whose lines are no rows with a signature. `match` has settings of its own in place of one."""
OTHERS_ROWS = {"table"}
"""Commands that pass on the rows of others."""


def records(seed: int) -> dict[str, list[Record]]:
    """Ground truth, and predictions of two models, of three images and one without any triplet."""
    truth, found = tied_world(seed, HICO)
    others, chance = tied_world(seed + 1000, HICO), random.Random(seed)
    for record in found:  # as pairstats needs them
        record["scores"] = [chance.choice([0.2, 0.5, 0.9]) for _ in record["boxes"]]
        record["hois"] = [{**hoi, "verb_score": chance.choice([0.1, 0.6, 0.6])} for hoi in record["hois"]]
    alone = {**truth[0], "image_id": "alone", "hois": []}
    return {
        "gt": [*truth, alone],
        "preds": [*found, {**found[0], "image_id": "alone"}],
        "other": others[1],
        "train": others[0],
        **{f"vcoco_{name}": lines for name, lines in vcoco_records().items()},
    }


def vcoco_records() -> dict[str, list[Record]]:
    """V-COCO's sample, with predictions many of which have equal scores."""
    truth, found = (parsed((FIXTURES / f"vcoco/{name}.jsonl").read_text()) for name in ("ground_truth", "predictions"))
    for record in found:
        record["hois"] = [{**hoi, "score": round(hoi["score"], 1)} for hoi in record["hois"]]
    return {"gt": truth, "preds": found}


def rows_of_a_benchmark(chance: random.Random) -> Iterator[Record]:
    """Rows of a model's mAP, rare and full, by one protocol or two, on each corruption at each severity."""
    cells = [("clean", None), *((name, severity) for name in ROHOI for severity in range(1, 6))]
    for name, severity in cells:
        tags = {"corruption": name, **({} if severity is None else {"severity": str(severity), "recipe": "r"})}
        for metric in ("mAP", "mean_max_recall"):
            for subset in ("full", "rare"):
                for protocol in ("hico", "qpic"):
                    row = {"metric": metric, "subset": subset, "value": float(chance.choice([0, 0, 5, 50, 70])), "n": 5}
                    signature = f"protocol:{protocol}|data:hico|gt:0000abcd|version:1.0.0"
                    yield {**row, "unit": "%", "protocol": protocol, "tags": tags, "signature": signature}


def ratings(chance: random.Random) -> Iterator[Record]:
    """The ratings of people and models, some of them missing."""
    for item in range(8):
        given = {name: chance.choice([0, 1, 1, 2, 4]) for name in ("p1", "p2", "p3", "m1", "m2")}
        group = {"size": "large" if item % 2 else "small", "place": "in" if item % 3 else "out"}
        people = {name: given[name] for name in ("p1", "p2", "p3") if chance.random() < 0.9}
        yield {"item": f"i{item}", "ratings": people, **group}
        for name in ("m1", "m2"):
            yield {"item": f"i{item}", "rater": name, "kind": "model", "rating": given[name], **group}


def build(folder: Path, seed: int) -> dict[str, list[Record]]:
    """Write the files that calls name, and return those of images."""
    made = records(seed)
    for name, lines in made.items():
        written(folder / f"{name}.jsonl", lines)
    chance = random.Random(seed)
    written(folder / "rows.jsonl", rows_of_a_benchmark(chance))
    written(folder / "ratings.jsonl", ratings(chance))
    written(folder / "again.jsonl", ratings(chance))
    (folder / "slices.tsv").write_text("0\tone\n1\ttwo\n2\tone\n")
    for name in ("scene.json", "answers.jsonl", "grounded.json", "referred.json"):
        shutil.copyfile(FIXTURES / "choice" / name, folder / name)
    return made


def add(told: Told, hoicli: Hoicli, name: str, words: Words, why: str = "") -> bool:
    """Compare the rows of a call with those before; whether it was not refused."""
    rows = rows_of(hoicli(name.split()[0], *words, "--format", "jsonl"))
    if rows is not None:
        told.add((row for row in rows if not why or row["metric"] not in PREDICTIONS_ORDER), " ".join((*words, why)))
    return rows is not None


def vary_options(told: Told, hoicli: Hoicli, name: str, contexts: Sequence[str]) -> dict[str, set[Words]]:
    """Call a command with each value of each option; the values of each that were not refused."""
    campaign, taken = CAMPAIGNS[name], dict[str, set[Words]]()
    for context in contexts:  # some need one of the options that are added
        add(told, hoicli, name, (*context.split(), *campaign.files))
        for option, words in settings_tried(name, dict(campaign.known), LEFT):
            if words[0] not in context.split() and add(told, hoicli, name, (*context.split(), *words, *campaign.files)):
                taken.setdefault(option, set()).add(words)
    return taken


def vary_orders(
    told: Told, hoicli: Hoicli, name: str, contexts: Sequence[str], made: dict[str, list[Record]], chance: random.Random
) -> None:
    """Call a command with its files' lines, triplets and boxes in other orders, and with its predictions in two."""
    campaign = CAMPAIGNS[name]
    for context in contexts:
        words = (*context.split(), *campaign.files)
        if not add(told, hoicli, name, words, "as they are"):
            continue
        orders = next((orders for option, orders in RELEASED_ORDERS.items() if option in words), campaign.orders)
        for file in [word for word in words if word.endswith(".jsonl")]:
            path = Path(file)
            before = path.read_text()
            lines = before.splitlines(keepends=True)
            chance.shuffle(lines)
            path.write_text("".join(lines))
            assert add(told, hoicli, name, words, f"lines of {file}")
            for order in ORDERS if file.endswith("gt.jsonl") else orders if path.stem in made else ():
                written(path, [reordered(record, order, chance) for record in made[path.stem]])
                assert add(told, hoicli, name, words, f"{order} of {file}")
            path.write_text(before)
        if campaign.files == ONE:
            lines = Path("preds.jsonl").read_text().splitlines(keepends=True)
            Path("first.jsonl").write_text("".join(lines[:2]))
            Path("rest.jsonl").write_text("".join(lines[2:]))
            assert add(told, hoicli, name, (*context.split(), *TRUTH, "rest.jsonl", "first.jsonl"), "two files")


def test_every_option_is_in_a_campaign() -> None:
    for name, campaign in CAMPAIGNS.items():
        unknown = unknown_options(name, dict(campaign.known), LEFT)
        assert not unknown, f"{name}: add values of {unknown} to `known` of its campaign here, or the reason to LEFT"
        assert campaign.known.keys() <= {one.name for one in command_of(name).parameters}, name
    own = {one.name for name in CAMPAIGNS for one in command_of(name).parameters}
    assert LEFT.keys() <= own


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_one_signature_has_one_value(hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    made, told = build(tmp_path, 0), Told()
    contexts = CAMPAIGNS[name].contexts
    vary_options(told, hoicli, name, contexts[:1])
    vary_orders(told, hoicli, name, contexts[:1], made, random.Random(name))
    assert told.faults == []
    assert told.met > 5


@pytest.mark.long
@pytest.mark.parametrize("command", dict.fromkeys(name.split()[0] for name in CAMPAIGNS))
def test_nor_have_they_in_other_worlds_and_with_several_options(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    chance, tried, taken = random.Random(command), set[str](), set[str]()
    for name, campaign in CAMPAIGNS.items():
        if name.split()[0] != command:
            continue
        tried |= {option for option, _ in settings_tried(name, dict(campaign.known), LEFT)}
        taken |= {word[2:].replace("-", "_") for context in campaign.contexts for word in context.split()}
        for seed in range(2):
            made, told = build(tmp_path, seed), Told()
            values = vary_options(told, hoicli, name, campaign.contexts)
            vary_orders(told, hoicli, name, campaign.contexts, made, chance)
            every = sorted(chain.from_iterable(values.values()))
            for _ in range(30):
                words = tuple(chain.from_iterable(chance.choices(every, k=2)))
                add(told, hoicli, name, (*words, *chance.choice(campaign.contexts).split(), *campaign.files))
            assert told.faults == []
            taken |= values.keys()
    assert tried <= taken


def test_a_difference_is_found() -> None:
    told = Told()
    row = {"metric": "mAP", "value": 1.0, "n": 2, "signature": "protocol:hico"}
    told.add([row, {**row, "signature": "protocol:hico|topk:5", "value": 2.0}], "first")
    told.add([{**row, "note": "said"}], "second")
    assert (told.rows, told.met, told.faults) == (3, 1, [])
    told.add([{**row, "value": 1.0000001}], "third")
    told.add([{**row, "n": 3}], "fourth")
    assert [json.loads(fault.splitlines()[-1])["metric"] for fault in told.faults] == ["mAP", "mAP"]
