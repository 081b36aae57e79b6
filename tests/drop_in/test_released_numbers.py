"""The drop-in classes return and print what the released ones do, on the same worlds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hoicli.compat import cdn, gen_vlkt, inpcc, qahoi, qpic, sov_stg
from tests.drop_in import released, worlds
from tests.support.project import dumped

OURS = SimpleNamespace(
    tensors=lambda images: images, qpic=qpic, qpic_vcoco=qpic, cdn=cdn, gen_vlkt=gen_vlkt, gen_vlkt_vcoco=gen_vlkt,
    inpcc=inpcc, inpcc_swig=inpcc, qahoi=qahoi, sov_stg=sov_stg,
)  # fmt: skip
NUMBERS = json.loads(released.NUMBERS.read_text())
PEERS = os.environ.get("HOICLI_PEERS", "")


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


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")  # theirs
@pytest.mark.filterwarnings("ignore::hoicli.errors.HoicliWarning")  # in a few worlds most boxes fit nothing
@pytest.mark.skipif(not PEERS, reason="needs clones of released evaluators: HOICLI_PEERS=FOLDER")
@pytest.mark.parametrize("case", released.CASES)
def test_the_released_class_on_fifty_worlds(case: str, tmp_path: Path) -> None:
    theirs = released.released_classes(PEERS)
    for seed in range(100, 150):
        run_case = released.CASES[case]
        same(run_case(OURS, seed, str(tmp_path)), run_case(theirs, seed, str(tmp_path)))


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
    assert sum(map(len, evaluator.predictions.values())) == sum(
        len(rows) + len(rows[:1]) for rows in predictions.values()
    )
