"""The drop-in classes return and print what the released ones do, on the same worlds; and dumps that released code
wrote, and what it printed of them, through the command and with its own options."""

from __future__ import annotations

import json
import pickle
import re
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.compat import cdn, gen_vlkt, inpcc, qahoi, qpic, sov_stg
from hoicli.vocabulary.datasets import load
from tests.bench import released as bench
from tests.bench import vcoco as official
from tests.drop_in import released, released_networks, worlds
from tests.drop_in.released import PEERS, runs_released_code
from tests.support.project import Hoicli, dumped, parsed, records_of

OURS = SimpleNamespace(
    tensors=lambda images: images, qpic=qpic, qpic_vcoco=qpic, cdn=cdn, gen_vlkt=gen_vlkt, gen_vlkt_vcoco=gen_vlkt,
    inpcc=inpcc, inpcc_swig=inpcc, qahoi=qahoi, sov_stg=sov_stg,
)  # fmt: skip
NUMBERS = json.loads(released.NUMBERS.read_text())

NUMBER = re.compile(r"\d+\.\d+|nan")


def same(ours: Any, theirs: Any) -> None:
    """What is returned and printed is the same, numbers to nine digits: theirs are sums in another order."""
    (our_values, our_text), (their_values, their_text) = ours, theirs
    assert our_values == pytest.approx(their_values, abs=1e-9, nan_ok=True)
    assert NUMBER.sub("", our_text) == NUMBER.sub("", their_text)
    our_numbers, their_numbers = (list(map(float, NUMBER.findall(text))) for text in (our_text, their_text))
    assert our_numbers == pytest.approx(their_numbers, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", worlds.SEEDS)
@pytest.mark.parametrize("case", released.CASES)
def test_what_the_released_class_returned_and_printed(case: str, seed: int, tmp_path: Path) -> None:
    same(released.CASES[case](OURS, seed, str(tmp_path)), NUMBERS[case][seed])


@runs_released_code
@pytest.mark.parametrize("case", released.CASES)
def test_the_released_class_on_a_hundred_worlds(case: str, tmp_path: Path) -> None:
    theirs = released.released_classes(PEERS)
    for seed in range(100, 200):
        run_case = released.CASES[case]
        same(run_case(OURS, seed, str(tmp_path)), run_case(theirs, seed, str(tmp_path)))


OUTPUTS = json.loads(released_networks.NUMBERS.read_text())


def same_numbers(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Equal numbers, to nine digits; boxes and scores of UPT's caches exactly."""
    assert ours.keys() == theirs.keys()
    if isinstance(next(iter(theirs.values())), list):
        assert {key: sorted(rows) for key, rows in ours.items()} == {key: sorted(rows) for key, rows in theirs.items()}
    else:
        assert ours == pytest.approx(theirs, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", released_networks.CASES)
def test_triplets_are_what_released_code_made_of_the_outputs(case: str, seed: int) -> None:
    """`hoicli.triplets` beside released post-processing, evaluators and caches."""
    same_numbers(released_networks.CASES[case](None, seed), OUTPUTS[case][seed])


@runs_released_code
@pytest.mark.parametrize("case", released_networks.CASES)
def test_released_code_on_the_outputs_of_thirty_worlds(case: str) -> None:
    code, run_case = released_networks.released_code(PEERS), released_networks.CASES[case]
    for seed in range(100, 130):
        same_numbers(run_case(None, seed), run_case(code, seed))


@runs_released_code
@pytest.mark.parametrize("seed", range(112))
def test_v_coco_s_vsrl_eval(seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Agents are computed in single precision there."""
    official.make_dump(tmp_path, 80, seed)  # as many as give every action some truth
    vsrl, instances, ids, cache = (str(tmp_path / name) for name in official.FILES)
    people, rng = pickle.loads(Path(cache).read_bytes()), np.random.default_rng(seed)
    for person in people:  # what it does not say would have a score of 0, like others
        for verb, roles in load("vcoco").roles_of.items():
            person.setdefault(f"{verb}_agent", rng.random() / 100)
            for role in roles:
                person.setdefault(f"{verb}_{role}", [*person["person_box"], rng.random() / 100])
    Path(cache).write_bytes(pickle.dumps(people))
    truth, found = list(hoicli.convert([vsrl, instances, ids])), list(hoicli.convert(cache, dataset="vcoco"))
    capfd.readouterr()
    bench.vcoco(PEERS, vsrl, instances, ids, cache)
    sections = capfd.readouterr().out.split("---------Reporting ")[1:]
    rows = hoicli.evaluate(truth, found, dataset="vcoco", per_class=True).rows
    for section, protocol in zip(sections, ("vcoco-agent", "vcoco-s1", "vcoco-s2"), strict=True):
        theirs = {name: float(value) for name, value in re.findall(r"(\S+): AP = (\S+)", section)}
        ours = {
            "-".join(part for part in (row["verb"], row.get("role")) if part): row["value"] or 0
            for row in rows
            if (row["metric"], row["protocol"]) == ("AP", protocol)
        }
        assert ours.keys() <= theirs.keys()
        for name, value in ours.items():
            assert value == pytest.approx(np.nan_to_num(theirs[name]), abs=1e-4), (protocol, name)


def test_rows_of_inp_cc_are_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotations, predictions = worlds.annotated_world(3, "hico")
    path = dumped(tmp_path / "annotations.json", annotations)
    evaluator = inpcc.HICOEvaluator(str(path), str(tmp_path), "rare_first", True)
    evaluator.update({**{str(image): rows[:1] for image, rows in predictions.items()}, **predictions})
    evaluator.accumulate()
    evaluator.summarize()
    values = {row["subset"]: f"{row['value']:.2f}" for row in evaluator.rows}
    names = {"zero-shot": "unseen", "seen": "seen", "full": "full"}
    wanted = "".join(f"{name} mAP: {values[subset]}\n" for name, subset in names.items())
    assert capsys.readouterr().out == wanted
    # of an image that is given under two forms of its id, nothing is lost
    kept = sum(len(rows) + len(rows[:1]) for rows in predictions.values())
    assert sum(map(len, evaluator.predictions.values())) == kept


Values = dict[tuple[str, str], float | None]
LISTED = {
    "cdn_numpy2.json.gz", "gen_vlkt_12.json.gz", "gen_vlkt_official_mat.tar.gz", "hico_gt.jsonl",
    "qpic_preds_without_names.pkl", "qpic_vcoco_q7.pickle.gz", "qpic_vcoco_q7.printed.txt",
    "upt_instances_test2015.json", "upt_matlab.tar.gz", "vcoco_instances_vcoco_all_2014.json",
    "vcoco_test.ids", "vcoco_test.json", "vcoco_test_vcoco.json",
}  # fmt: skip
"""All files there are: a new one needs a test here."""


@pytest.fixture
def dumps(shared: Path) -> Path:
    return shared / "golden/released-dumps"


def printed_in_readme(dumps: Path, file: str) -> dict[str, str]:
    """The numbers in a file's row of the README by the name before each, `mAP` for one without a name."""
    [row] = [line for line in (dumps / "README.md").read_text().splitlines() if line.startswith(f"| {file} |")]
    text = row.rstrip("| ").rpartition("|")[2].partition("(")[0].replace("--eval ", "mAP ")
    numbers = re.findall(r"([A-Za-z][A-Za-z -]*?) (nan|\d+\.\d+)(?:,|$|\s)", text)
    return {name.strip(): number for name, number in numbers}


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    [inside] = folder.iterdir()
    return inside


def values(hoicli: Hoicli, *arguments: object) -> Values:
    """The values in fractions, by metric and subset."""
    rows = records_of(hoicli("eval", "--format", "jsonl", *arguments))
    return {(row["metric"], row["subset"]): None if row["value"] is None else row["value"] / 100 for row in rows}


def meets(value: float | None, printed: str) -> None:
    """A value is the printed number, to all of its digits."""
    if printed == "nan":
        assert value is None
        return
    digits = len(printed.partition(".")[2])
    assert value == pytest.approx(float(printed), abs=1e-9 if digits > 9 else 0.5001 * 10**-digits)


def test_every_file_is_tested(dumps: Path) -> None:
    assert {path.name for path in dumps.iterdir()} - {"README.md"} == LISTED


@pytest.mark.parametrize(
    ("file", "protocol"),
    [("cdn_numpy2.json.gz", "qpic"), ("qpic_preds_without_names.pkl", "qpic"), ("gen_vlkt_12.json.gz", "gen-vlkt")],
)
def test_query_lists(hoicli: Hoicli, dumps: Path, file: str, protocol: str) -> None:
    """CDN's and GEN-VLKT's results.json, and the list of QPIC's evaluator, whose order --gt has."""
    options = ("--gt", dumps / "hico_gt.jsonl", "--protocol", protocol, "--metric", "mean_max_recall")
    found = values(hoicli, *options, dumps / file)
    printed = printed_in_readme(dumps, file)
    assert printed.keys() >= {"mAP"}
    keys = {"mAP": ("mAP", "full"), "rare": ("mAP", "rare"), "mean max recall": ("mean_max_recall", "full")}
    for name, number in printed.items():
        meets(found.get(keys[name]), number)


def test_rows_for_the_official_evaluation(hoicli: Hoicli, dumps: Path, tmp_path: Path) -> None:
    """Nothing is printed, but the numbers are those of the predictions that they were made of."""
    options = ("--gt", dumps / "hico_gt.jsonl", "--protocol", "hico,hico-ko")
    rows = unpacked(dumps / "gen_vlkt_official_mat.tar.gz", tmp_path)
    found, expected = (values(hoicli, *options, path) for path in (rows, dumps / "gen_vlkt_12.json.gz"))
    assert found == pytest.approx(expected, abs=1e-12)
    assert 0.01 < (found["mAP", "full"] or 0) < 1


@pytest.mark.parametrize("truth", ["hico_gt.jsonl", "upt_instances_test2015.json"])
def test_upt_s_matlab_files(hoicli: Hoicli, dumps: Path, tmp_path: Path, truth: str) -> None:
    folder = unpacked(dumps / "upt_matlab.tar.gz", tmp_path)
    found = values(hoicli, "--gt", dumps / truth, "--protocol", "upt", folder)
    printed = printed_in_readme(dumps, "upt_matlab.tar.gz")
    assert set(printed) == {"mAP", "rare", "non-rare"}
    for name, subset in {"mAP": "full", "rare": "rare", "non-rare": "non_rare"}.items():
        meets(found["mAP", subset], printed[name])


TRUTH = ("vcoco_test.json", "vcoco_instances_vcoco_all_2014.json", "vcoco_test.ids")
MEANS = {"Agent AP": ("vcoco-agent", "full"), "Role [scenario_1] AP": ("vcoco-s1", "25"),
         "Role [scenario_2] AP": ("vcoco-s2", "25")}  # fmt: skip


def test_vsrl_eval_s_three_tables(hoicli: Hoicli, dumps: Path) -> None:
    """QPIC's list for V-COCO, of which vsrl_eval.py printed AP and the number of annotations of each class."""
    text = (dumps / "qpic_vcoco_q7.printed.txt").read_text()
    tables = re.split(r"-+Reporting \w+ AP \(%\)-+\n", text)[1:]
    means = re.findall(r"Average (.+) = (\d+\.\d+)", text)
    assert [name for name, _ in means] == list(MEANS)
    truth = ",".join(str(dumps / name) for name in TRUTH)
    protocols = ",".join(protocol for protocol, _ in MEANS.values())
    options = ("--gt", truth, "--protocol", protocols, "--per-class", "--format", "jsonl")
    rows: list[dict[str, Any]] = records_of(hoicli("eval", *options, dumps / "qpic_vcoco_q7.pickle.gz"))
    for table, (name, mean) in zip(tables, means, strict=True):
        protocol, subset = MEANS[name]
        of_protocol = [row for row in rows if row["protocol"] == protocol]
        [value] = [row["value"] for row in of_protocol if (row["metric"], row["subset"]) == ("mAP", subset)]
        meets(value, mean)
        classes = {f"{row['verb']}{(row['role'] and '-' + row['role']) or ''}": row for row in of_protocol
                   if row["metric"] == "AP"}  # fmt: skip
        printed = re.findall(r"(\S+): AP = (\d+\.\d+) \(#pos = (\d+)\)", table)
        assert len(printed) == {"vcoco-agent": 26}.get(protocol, 25)
        for class_name, ap, count in printed:
            meets(classes[class_name]["value"], ap)
            assert classes[class_name]["n"] == int(count), class_name


def test_qpic_s_ground_truth_of_v_coco(hoicli: Hoicli, dumps: Path) -> None:
    """Made by QPIC's script of the official files: the same images and, of what has an object, the same pairs."""
    official = hoicli("convert", *(dumps / name for name in TRUTH))
    result = hoicli("convert", dumps / "vcoco_test_vcoco.json")
    assert "as qpic-vcoco (ground truth)" in result.err
    expected, found = parsed(official.out), parsed(result.out)
    assert [record["image_id"] for record in found] == [record["image_id"] for record in expected]

    def pairs(record: dict[str, Any]) -> list[tuple[Any, ...]]:
        hois = [hoi for hoi in record["hois"] if hoi["object"] is not None and hoi["verb"] != "point"]
        boxes = [[round(side, 2) for side in box] for box in record["boxes"]]
        return sorted((hoi["verb"], hoi["role"], *boxes[hoi["subject"]], *boxes[hoi["object"]]) for hoi in hois)

    for one, other in zip(found, expected, strict=True):
        assert pairs(one) == pairs(other)
