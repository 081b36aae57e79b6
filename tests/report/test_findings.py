"""The sentences on top of a report: each true to the numbers that it is made of, and silent where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.evaluation.coverage import Coverage
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.selection import protocol_of, rows_of
from hoicli.report.document import Link
from hoicli.report.findings import findings
from hoicli.report.measured import Dump, Measured, Request
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import GT, PREDICTIONS, page_of

Row = dict[str, Any]
HICO = load("hico")


def mean(value: float | None, *, n: int = 600, ends: tuple[float, float] | None = None, boot: bool = False) -> Row:
    low, high = ends or (None, None)
    drawn = "|boot:1000|seed:0" if boot or ends else ""
    return {
        "metric": "mAP", "subset": "full", "value": value, "n": n, "ci_low": low, "ci_high": high, "protocol": "hico",
        "signature": f"protocol:hico{drawn}",
    }  # fmt: skip


def gains(base: float | None = 30.0, n: int = 600, **deltas: float | None) -> list[Row]:
    """diagnose's rows: the mAP without a fix, and what fixing each type adds."""
    common = {"subset": "full", "n": n, "protocol": "diag"}
    rows = [{"metric": "mAP", "oracle": "none", "value": base, **common}]
    return rows + [{"metric": "delta_mAP", "oracle": name, "value": value, **common} for name, value in deltas.items()]


def confused(
    truth: str, said: str, gain: float | None, *, count: int = 30, n: int = 100, kind: str = "verb"
) -> list[Row]:
    cell = {"kind": kind, "truth": truth, "predicted": said, "n": n, "unit": "triplets", "protocol": "diag"}
    return [
        {"metric": "confusion", "value": count, **cell},
        {"metric": "confusion_delta_mAP", "value": gain, **cell, "n": 600, "unit": "%"},
    ]


def ap(verb: str, value: float, n: int = 40) -> Row:
    return {"metric": "AP", "subset": "full", "verb": verb, "object": "cup", "value": value, "n": n}


def dump(name: str, *, evaluation: list[Row], diagnosis: list[Row] = [], confusions: list[Row] = [],  # noqa: B006
         classes: list[Row] = []) -> Dump:  # noqa: B006  # fmt: skip
    if name:
        evaluation = [{**row, "tags": {"model": name}} for row in evaluation]
        diagnosis = [{**row, "tags": {"model": name}} for row in diagnosis]
    return Dump(name, evaluation, [], classes, [], [], Coverage(), diagnosis=diagnosis, confusions=confusions)


def said(*dumps: Dump, differences: list[Row] | None = None, top: int = 10) -> list[tuple[str, str]]:
    """(the sentence without its link, where the link leads) of each finding."""
    request = Request(HICO, [rows_of(HICO)["hico"], protocol_of(HICO)], Filters(), None, {}, top)
    measured = Measured(request, dumps, differences or [], 1, 1, 0, 0)
    found = []
    for words in findings(measured):
        (link,) = (word for word in words if isinstance(word, Link))
        found.append(("".join(word if isinstance(word, str) else "" for word in words).removesuffix(" ()."), link.to))
    return found


ONE = "mAP (hico, full) is 30.00, the mean of 600 classes"


@pytest.mark.parametrize(
    ("row", "empty", "sentence"),
    [
        (mean(30.0), 0, f"{ONE}; --bootstrap 1000 would say how sure it is"),
        (mean(30.0), 586, f"{ONE}, 586 of them without ground truth; --bootstrap 1000 would say how sure it is"),
        (mean(30.0, ends=(28.5, 31.25)), 0, f"{ONE}; its 95 % interval over resampled images is 28.50 to 31.25"),
        (mean(30.0, boot=True), 0,
         f"{ONE}; how sure it is cannot be said, for fewer than two images have ground truth of them"),
        (mean(30.0, n=1), 0,
         "mAP (hico, full) is 30.00, the mean of 1 class; --bootstrap 1000 would say how sure it is"),
        (mean(None, n=0), 0, "mAP (hico, full) has no value: there is no class to average"),
    ],
)  # fmt: skip
def test_the_main_number_and_how_sure_it_is(row: Row, empty: int, sentence: str) -> None:
    classes = [ap(f"v{at}", 0.0, n=0) for at in range(empty)]
    assert said(dump("", evaluation=[row], classes=classes))[0] == (sentence, "protocols")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (gains(interaction=2.5, human_box=4.0, false_negative=9.0),
         "Fixing human box errors gives most: +4.00 mAP (diag, 600 classes), from 30.00"),
        (gains(interaction=4.0, missed_gt=4.0, duplicate=-1.0),
         "Fixing interaction errors or missed ground truth each give most: +4.00 mAP (diag, 600 classes), from 30.00"),
        (gains(interaction=0.0, duplicate=-0.5), "No type of error, fixed alone, would raise mAP (diag, 600 classes)"),
        (gains(interaction=0.004), "No type of error, fixed alone, would raise mAP (diag, 600 classes)"),
        (gains(n=1, duplicate=0.3), "Fixing duplicates gives most: +0.30 mAP (diag, 1 class), from 30.00"),
    ],
)  # fmt: skip
def test_the_error_that_gives_most(rows: list[Row], sentence: str) -> None:
    assert said(dump("", evaluation=[mean(30.0)], diagnosis=rows))[1] == (sentence, "error-types")


def test_without_a_class_there_is_nothing_to_fix() -> None:
    rows = gains(None, n=0, interaction=None)
    assert [to for _, to in said(dump("", evaluation=[mean(None, n=0)], diagnosis=rows))] == ["protocols"]


COST = "repaired alone, it would give +0.40 mAP (diag)"


@pytest.mark.parametrize(
    ("rows", "sentence", "to"),
    [
        (confused("hold", "carry", 0.1) + confused("ride", "sit_on", 0.4),
         f"The costliest confusion is sit_on for ride, in 30 of 100 triplets; {COST}", "confusions-verb"),
        (confused("cup", "bowl", 0.4, count=1, n=9, kind="object"),
         f"The costliest confusion is bowl for cup, in 1 of 9 triplets, too few to say much; {COST}",
         "confusions-object"),
        (confused("hold", "carry", 0.4) + confused("ride", "sit_on", 0.4),
         f"One of the 2 costliest confusions is carry for hold, in 30 of 100 triplets; {COST}", "confusions-verb"),
    ],
)  # fmt: skip
def test_the_worst_confusion(rows: list[Row], sentence: str, to: str) -> None:
    known = dump("", evaluation=[mean(30.0)], diagnosis=gains(interaction=1.0), confusions=rows)
    assert said(known)[2] == (sentence, to)


@pytest.mark.parametrize("rows", [[], confused("hold", "carry", None), confused("hold", "carry", -0.2)])
def test_where_no_confusion_costs_anything_the_weakest_class_is_named(rows: list[Row]) -> None:
    classes = [ap("hold", 20.0), ap("wash", 5.0), ap("lick", 0.0, n=3), ap("ride", 0.0, n=0)]
    known = dump("", evaluation=[mean(30.0)], diagnosis=gains(interaction=1.0), confusions=rows, classes=classes)
    weakest = "The weakest of 2 classes with at least 10 annotated triplets is wash cup, with an AP of 5.00"
    assert said(known)[2] == (weakest, "weakest")
    assert said(known, top=0)[2] == (weakest, "classes")  # there is no table of the weakest
    alike = dump("", evaluation=[mean(30.0)], classes=[ap("hold", 0.0), ap("wash", 0.0), ap("ride", 1.0)])
    assert said(alike)[1] == ("2 of 3 classes with at least 10 annotated triplets share the lowest AP, 0.00", "weakest")


def test_several_models() -> None:
    values = {"old": 30.0, "new": 31.0, "third": 31.0}
    diagnosis = {"old": gains(interaction=4.0), "new": gains(interaction=0.0), "third": gains(both_boxes=0.5)}
    dumps = [dump(name, evaluation=[mean(value)], diagnosis=diagnosis[name]) for name, value in values.items()]
    found = said(*dumps)
    assert found == [
        ("new and third have the highest mAP (hico, full), 31.00; old 30.00", "protocols"),
        ("To fix first, by the gain in mAP (diag, 600 classes): of old interaction errors (+4.00); of new nothing, "
         "alone; of third errors of both boxes (+0.50)", "error-types"),
    ]  # fmt: skip
    alike = [dump(name, evaluation=[mean(30.0)]) for name in ("a", "b")]
    assert said(*alike) == [("a and b have the same mAP (hico, full), 30.00", "protocols")]
    assert said(*(dump(name, evaluation=[mean(None, n=0)]) for name in ("a", "b"))) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gt", GT, PREDICTIONS),
        ("--gt", GT, "--top", "0", PREDICTIONS),
        ("--gt", GT, "--bootstrap", "20", PREDICTIONS, FIXTURES / "other.jsonl"),
        ("--dataset", "swig", "--gt", FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl"),
        ("--dataset", "vcoco", "--gt", FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"),
    ],
    ids=["hico", "top 0", "two", "swig", "vcoco"],
)
def test_every_finding_leads_to_its_table(arguments: tuple[object, ...], hoicli: Hoicli) -> None:
    page = page_of(hoicli, *arguments)  # Page refuses a link to what is not there
    links = [attributes["href"] for attributes in page.all("a")]
    sections = {f"#{attributes['id']}" for attributes in page.all("section")}
    found = links[: -len(sections)]
    assert len(found) == len(page.all("li")) - len(sections) == 3
    assert hoicli("report", *arguments, "--format", "md").out.count("(see ") == 3
