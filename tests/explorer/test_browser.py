"""The page in a real browser: seven jobs, its looks at two widths in light and dark, and that it stays by itself.

Needs the extra dev-browser and a Chromium (tests/support/browsers.py).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from hoicli.cli import run
from tests.support.browsers import chromium
from tests.support.explorers import (
    STRANGE,
    chunks_of,
    columns_of,
    facts_of,
    photographed,
    predictions_of,
    serving,
    write_scenes,
)  # fmt: skip
from tests.support.project import FIXTURES, PATIENCE, parsed, written

pytest.importorskip("playwright", reason="needs pip install 'hoicli[dev-browser]'")
pytest.importorskip("axe_playwright_python", reason="needs pip install 'hoicli[dev-browser]'")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

NAMES = ("VERSION {{TITLE}}", "<b>new_model</b>")
"""What the two models are called, as a hostile command line would."""
PART = "a:b_<i>"
"""What a file calls a part of the images."""
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`page`, a folder of two models with gains on parts, and page.html, the same as one file."""
    folder = tmp_path_factory.mktemp("explored")
    gt, one, two, images = map(str, write_scenes(folder))
    (folder / "scenes.tsv").write_text("".join(f"image_{at:03d}\t{PART if at % 3 else 'day'}\n" for at in range(8, 40)))
    slices = f"people,objects,{folder}/scenes.tsv"
    words = ["explore", "--gt", gt, one, two, "--name", ",".join(NAMES), "--slice", slices]
    assert run([*words, "--images", images, "-o", str(folder / "page")]) == 0
    assert run([*words, "-o", str(folder / "page.html")]) == 0
    return folder


@pytest.fixture
def opened(browser: Browser, made: Path) -> Iterator[Open]:
    """Opens a view of a page from disk; whatever it says in its console or asks of elsewhere fails the test."""
    complaints: list[str] = []
    contexts = []

    def go(address: str = "", page_of: Path | str = made / "page", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        inside = page_of.as_uri() if isinstance(page_of, Path) else page_of
        page.on("request", lambda request: None if request.url.startswith(inside) else complaints.append(request.url))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(f"{inside}{'/index.html' if isinstance(page_of, Path) and page_of.is_dir() else ''}{address}")
        drawn(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


SETTLED = "addressOf(stateOf(location.hash)) === addressOf(state) && !document.querySelector('[aria-busy]')"


def drawn(page: Page, settled: str = SETTLED) -> None:
    """Wait for the view of the address; playwright cannot poll by itself, as the page's policy forbids eval."""
    page.wait_for_selector("html[data-drawn]")
    end = time.monotonic() + PATIENCE
    while not page.evaluate(settled):
        assert time.monotonic() < end, "the page draws nothing"
        page.wait_for_timeout(20)


def visit(page: Page, address: str) -> None:
    page.evaluate("address => { location.hash = address; }", address)
    drawn(page)


def status(page: Page) -> str:
    drawn(page)
    return str(page.inner_text("#status"))


def pick(page: Page, name: str, value: str) -> None:
    field = page.locator(f"#filters [name={name}]")
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
    drawn(page)


def count(text: str) -> int:
    return int(re.match(r"[\d,]+", text)[0].replace(",", ""))  # type: ignore[index]


def lines(page: Page, caption: str) -> list[list[str]]:
    of = page.locator(".table").evaluate_all(
        """(tables, words) => tables.filter(table => table.firstChild.textContent.startsWith(words)).map(table =>
           Array.from(table.querySelectorAll("tbody tr"), row => Array.from(row.cells, cell => cell.textContent)))""",
        caption,
    )
    assert len(of) == 1, caption
    return list(of[0])


def tiles(page: Page) -> dict[str, str]:
    """Label -> value of the numbers in large print."""
    return dict(page.locator(".headlines > div").evaluate_all(
        "found => found.map(one => [one.querySelector('dt').textContent, one.querySelector('dd').textContent])"
    ))  # fmt: skip


def shown(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "\u2013"
    text = f"{value:+.2f}" if signed else f"{value:.2f}"
    return text.replace("-", "\u2212") if text.strip("+-0.") else text.strip("+-")


class Rows:
    """What the commands say of the two models: `of[model][slice, part]` -> {(metric, subset, class, type): value}."""

    def __init__(self, folder: Path) -> None:
        self.of: list[dict[tuple[str, str], dict[Any, Any]]] = [{}, {}]
        for model, name in enumerate(("one", "two")):
            for command, slices in (("eval", "people,objects"), ("diagnose", "people")):
                words = f"--protocol diag --per-class --slice {slices},{folder}/scenes.tsv --gt {folder}/gt.jsonl"
                for row in rows_of(folder, command, *words.split(), folder / f"{name}.jsonl"):
                    view = self.of[model].setdefault((row["tags"].get("slice", ""), row["tags"].get("part", "")), {})
                    kind = row.get("error") or row.get("oracle") or ""
                    if "verb" in row:
                        pair = f"{row['verb']} {row['object']}"
                        view[row["metric"], "", pair, "" if kind == "none" else kind] = row["value"]
                        view["n", "", pair, ""] = row["n"]
                        view.setdefault(("subset", row["subset"]), set()).add(pair)
                    else:
                        view[row["metric"], row["subset"], "", "" if kind == "none" else kind] = row["value"]


def rows_of(folder: Path, *words: object) -> list[dict[str, Any]]:
    path = folder / "rows.jsonl"
    assert run([*map(str, words), "--format", "jsonl", "-o", str(path)]) == 0
    return parsed(path.read_text())


@pytest.fixture(scope="module")
def rows(made: Path) -> Rows:
    return Rows(made)


@pytest.mark.long
def test_the_summary_shows_its_facts(opened: Open, made: Path) -> None:
    """Cell by cell; test_content.py compares these with the commands' rows."""
    for of in (made / "page", made / "page.html"):
        page, facts = opened("", of), facts_of(of)
        assert page.inner_text("h1") == facts["title"] == f"{NAMES[0]} and {NAMES[1]} on HICO-DET"
        assert page.title() == f"{facts['title']} - hoicli"
        assert tiles(page) == {label: value for label, value, _ in facts["tiles"]}
        assert len(facts["tables"]) == 6
        for table in facts["tables"]:
            wanted = [[cell[0] if isinstance(cell, list) else cell for cell in line] for line in table["lines"]]
            assert lines(page, table["caption"]) == wanted
            shown_heads = page.get_by_role("region", name=table["caption"]).locator("thead").all_inner_texts()[0]
            for name in NAMES:
                assert name in shown_heads or name in {line[0] for line in wanted}, table["caption"]
        said = page.locator(".findings li").all_inner_texts()
        shown = [[cell[0] if isinstance(cell, list) else cell for cell in line] for line in facts["findings"]]
        assert said == ["".join(line).strip() for line in shown]
    for address in {link.get_attribute("href") for link in page.locator("main a").all()}:
        visit(page, address or "")
        assert page.locator(".problem").count() == 0


def test_the_worst_rare_class_and_its_errors_on_pictures(opened: Open, made: Path, rows: Rows) -> None:
    page = opened()
    page.get_by_role("link", name="Classes", exact=True).click()
    pick(page, "slice", "subset:rare")
    of = rows.of[0]["", ""]
    rare = {name: of["AP", "", name, ""] for name in of["subset", "rare"]}
    assert status(page) == f"{len(rare)} classes with ground truth, by protocol diag"
    worst = min(rare, key=rare.__getitem__)
    found = lines(page, "AP of each class")
    assert [line[0] for line in found] == sorted(rare, key=rare.__getitem__)
    assert found[0][:3] == [worst, str(of["n", "", worst, ""]), shown(rare[worst])]
    page.get_by_role("button", name=f"AP {NAMES[1]}").click()
    drawn(page)
    best = max(rows.of[1]["", ""]["AP", "", name, ""] for name in rare)
    assert lines(page, "AP of each class")[0][3] == shown(best)
    page.get_by_role("link", name=worst, exact=True).click()
    drawn(page)
    assert tiles(page)[f"AP, {NAMES[0]}"] == shown(rare[worst])
    chart = page.get_by_role("img", name=f"Precision over recall of {worst}")
    points = chart.locator("polyline").evaluate_all("lines => lines.map(line => line.getAttribute('points'))")
    verb, name = worst.split()
    said = [row for row in predictions_of(made / "page") if (row[2], row[3]) == (verb, name)]
    hits = [place for place, row in enumerate(said, start=1) if row[4] == "true_positive"]
    curve = [(found / of["n", "", worst, ""], found / rank) for found, rank in enumerate(hits, start=1)]
    assert len(points) == 2
    assert [tuple(map(float, point.split(","))) for point in points[0].split()] == [
        pytest.approx((46 + 360 * x, 10 + 248 * (1 - y)), abs=0.06) for x, y in curve
    ]
    page.get_by_role("link", name="All of its errors").click()
    wrong = [row for row in said if row[4] != "true_positive"]
    assert count(status(page)) == len(wrong) + of["count", "", worst, "missed_gt"]
    assert page.evaluate("scrollY") == 0
    kinds = dict(facts_of(made / "page")["types"])
    types = dict(line[:2] for line in lines(page, "Its predictions by type"))
    assert types == {words: str(of["count", "", worst, kind]) for kind, words in kinds.items()}
    page.get_by_role("button", name="Association").click()
    drawn(page)
    cards = page.locator("article.card p:nth-of-type(1)").all_inner_texts()
    assert cards == [f"Association: {worst}"] * min(24, of["count", "", worst, "association"])
    for truth in page.locator("article.card .truth").all_inner_texts():  # every card says what would have been right
        assert re.fullmatch(r"nearest truth: \w+ \w+|no ground truth touches it", truth)
    facts = page.locator("article.card .facts").first.inner_text()
    page.locator("article.card a").first.click()
    drawn(page)
    assert page.inner_text("h2.name") == facts.rpartition("; ")[2]
    shown_as = page.locator("figure.large").first.inner_text()
    assert f"Association: {worst}" in shown_as
    assert facts.split(", ")[0] in shown_as
    assert page.locator("figure.large image").count() == 2


def test_what_one_finds_and_the_other_does_not(opened: Open, made: Path) -> None:
    page = opened()
    page.get_by_role("link", name="Compare", exact=True).click()
    drawn(page)
    every = [predictions_of(made / "page", f"model{model}") for model in (0, 1)]
    models = [[row for row in of if row[4] == "true_positive"] for of in every]
    found = [{(row[1], row[6]) for row in rows} for rows in models]
    wanted = [len(found[0] - found[1]), len(found[1] - found[0]), len(found[0] & found[1])]
    wanted.append(facts_of(made / "page")["triplets"] - sum(wanted))
    assert [count(text.rsplit(" ", 1)[1]) for text in page.locator(".sides button").all_inner_texts()] == wanted
    page.get_by_role("button", name=f"{NAMES[1]} right, {NAMES[0]} wrong").click()
    assert status(page) == f"{wanted[1]} ground-truth triplets: {NAMES[1]} right, {NAMES[0]} wrong"
    halves = page.locator(".card .halves > div > p:nth-of-type(2)").all_inner_texts()
    assert len(halves) == 2 * min(12, wanted[1])
    assert all(("True positive" in text) == (number % 2 == 1) for number, text in enumerate(halves))
    pick(page, "from", "0.6")
    sure = [{(row[1], row[6]) for row in rows if -row[0] >= 0.6} for rows in models]
    assert count(status(page)) == len(sure[1] - sure[0])
    page.locator(".card .halves a").first.click()
    drawn(page)
    assert page.locator("figure.large").count() == 2


SLICES = ("people:3-5", "objects:small", f"scenes:{PART}", "subset:rare", "")


@pytest.mark.parametrize("of", ["people:2", *(pytest.param(each, marks=pytest.mark.long) for each in SLICES)])
def test_a_slice_holds_for_every_number(opened: Open, made: Path, rows: Rows, of: str) -> None:
    slice_, _, part = of.partition(":")
    views = [each["", ""] if slice_ in ("subset", "") else each[slice_, part] for each in rows.of]
    gains = [each["", ""] if slice_ == "objects" else view for each, view in zip(rows.of, views, strict=True)]
    kinds = {words: kind for kind, words in facts_of(made / "page")["types"] if kind != "true_positive"}
    left = [errors_in(made / "page", model, slice_, part) for model in (0, 1)]
    everything = " (gains: of all data)" if slice_ == "objects" else ""
    chosen = "wash" if slice_ == "subset" else "hold"
    page = opened("#view=classes")
    pick(page, "slice", of)
    for verb in ("", chosen):
        pick(page, "verb", verb)

        def fits(name: str, verb: str = verb) -> bool:
            return name.startswith(verb) and (slice_ != "subset" or name in views[0]["subset", part])

        def counted(model: int, kind: str, fits: Callable[[str], bool] = fits) -> int:
            return sum(number for (name, each), number in left[model].items() if each == kind and fits(name))

        names = [key[2] for key in views[0] if key[0] == "AP" and key[3] == "" and fits(key[2])]
        assert count(status(page)) == len(names) > 0
        # the large print
        wanted = {}
        for subset in ("full", "rare", "non_rare"):
            inside = [name for name in names if subset == "full" or name in views[0].get(("subset", subset), ())]
            for model, view in zip(NAMES, views, strict=True):
                if inside:
                    value = mean(view["AP", "", name, ""] for name in inside)
                    wanted[f"mAP {subset.replace('_', '-')}, {model}"] = shown(value)
                    if verb == "" and slice_ != "subset":
                        assert value == pytest.approx(view["mAP", subset, "", ""])
        assert tiles(page) == wanted
        # the errors by type
        of_gains = (
            [key[2] for key in gains[0] if key[0] == "AP" and key[3] == "" and fits(key[2])] if everything else names
        )
        table = lines(page, "Errors of each type, and what fixing the type would add to the mAP of "
                            f"{len(of_gains)} class{'es' if len(of_gains) > 1 else ''}{everything}")  # fmt: skip
        assert len(table) == len(kinds)
        for words, *cells in table:
            kind = kinds[words]
            for at, (view, gain) in enumerate(zip(views, gains, strict=True)):
                errors, change = counted(at, kind), gain_of(gain, of_gains, kind)
                if slice_ in ("people", "scenes", "") and verb == "":  # diagnose knows slices of images
                    assert errors == view["count", "full", "", kind]
                    assert change == pytest.approx(gain["delta_mAP", "full", "", kind])
                assert cells[2 * at : 2 * at + 2] == [f"{errors:,}", shown(change, signed=True)], (words, verb)
        # each class
        table = lines(page, f"AP of each class{everything}")
        assert sorted(line[0] for line in table) == sorted(names)
        for name, truth, first, second, differ, most, *_ in table:
            one, two = (view["AP", "", name, ""] for view in views)
            best = max(gains[0]["delta_AP", "", name, kind] for kind in kinds.values())
            assert (truth, first, second) == (str(views[0]["n", "", name, ""]), shown(one), shown(two))
            assert differ == shown(two - one, signed=True)
            assert most == (shown(best, signed=True) if best > 0 else "\u2013")
    name = names[0]
    page.get_by_role("link", name=name, exact=True).click()
    drawn(page)
    assert of == "" or f"slice: {of}" in page.inner_text("#chips")
    assert tiles(page) == {
        label: text
        for model, view, found in zip(NAMES, views, left, strict=True)
        for label, text in ((f"AP, {model}", shown(view["AP", "", name, ""])),
                            (f"found, {model}", str(found[name, "true_positive"])))
    }  # fmt: skip
    assert f"of {views[0]['n', '', name, '']} annotated" in page.inner_text(".headlines")
    if slice_ == "subset":  # a class that the slice leaves out
        visit(page, f"#view=class&class=139&slice={of}")
        assert "Nothing is left" in page.inner_text("main")
        assert tiles(page) == {}
    visit(page, f"#view=errors&slice={of}&verb={chosen}")
    for words, here, worth in lines(page, "Types"):
        assert here == f"{counted(0, kinds[words]):,}"
        assert worth == shown(gain_of(gains[0], of_gains, kinds[words]), signed=True)
    for told in page.locator("article.card").all_inner_texts():
        words, of_class = re.findall(r"^(.+): (.+)$", told, re.MULTILINE)[0]
        best = gains[0].get(("delta_AP", "", of_class, kinds[words]), 0)
        assert re.findall(r"(\S+) AP;", told) == ([shown(best, signed=True)] if best else [])
    visit(page, f"#view=compare&slice={of}&verb={chosen}")
    sides = sum(count(text.rsplit(" ", 1)[1]) for text in page.locator(".sides button").all_inner_texts())
    assert sides == sum(views[0]["n", "", each, ""] for each in names)
    for of_class, _, _, *rated in lines(page, "Classes where they differ most"):
        assert rated == [shown(each["AP", "", of_class, ""]) for each in views]


def gain_of(view: dict[Any, Any], names: list[str], kind: str) -> float | None:
    """What fixing a type adds to the mAP of some classes, of which those without ground truth left leave the mean."""
    gone = {name: view["count", "", name, kind] if kind == "missed_gt" else 0 for name in names}
    after = [view["AP", "", name, kind] for name in names if view["n", "", name, ""] > gone[name]]
    return mean(after) - mean(view["AP", "", name, ""] for name in names) if after else None


def errors_in(page: Path, model: int, slice_: str, part: str) -> Counter[tuple[str, str]]:
    """How many (class, type) a part of the data has, from the page's columns of predictions and ground truth."""
    chunks = chunks_of(page)
    facts, own, truth = chunks["facts"], f"model{model}", columns_of(page, "truth")
    known = {each["name"]: each for each in facts["slices"]}.get(slice_)
    names = [f"{facts['verbs'][verb]} {name}" for verb, name in facts["classes"]]
    kept = []
    for prefix in (own, "truth"):
        image, number = chunks[f"{prefix}.image"], chunks[f"{prefix}.interaction"]
        if known is None:
            kept.append(np.isin(number, dict(facts["subsets"]).get(part, range(len(names)))))
        elif known["members"] is None:  # the only slice of triplets
            kept.append(chunks[f"{prefix}.part0"] == known["parts"].index(part))
        else:
            kept.append(np.isin(image, known["members"][known["parts"].index(part)]))
    never = len(facts["types"]) - 1
    missed = kept[1] & (chunks[f"{own}.state"] == never)
    pairs = [*zip(chunks[f"{own}.interaction"][kept[0]], chunks[f"{own}.error"][kept[0]], strict=True),
             *((number, never) for number in truth["interaction"][missed])]  # fmt: skip
    return Counter((names[number], facts["types"][kind][0]) for number, kind in pairs)


@pytest.mark.long
def test_filters_by_score_iou_and_slice(opened: Open, made: Path) -> None:
    page = opened("#view=errors&sort=score")
    everything = predictions_of(made / "page")
    for low, high, iou, below in ((0.5, None, None, None), (0.2, 0.3, 0.5, None), (None, 0.7, 0.25, 0.5)):
        for name, value in zip(("from", "to", "iou", "iouto"), (low, high, iou, below), strict=True):
            pick(page, name, "" if value is None else str(value))
        left = [
            row for row in everything
            if row[4] != "true_positive" and -row[0] >= (low or 0) and -row[0] < (high or 9)
            and max(0, min(row[7])) >= 10_000 * (iou or 0) and max(0, min(row[7])) < 10_000 * (below or 9)
        ]  # fmt: skip
        assert count(status(page)) == len(left) > 0
        texts = page.locator(".card .facts").all_inner_texts()
        scores = [float(re.findall(r"score ([\d.]+)", text)[0]) for text in texts]
        assert scores == [pytest.approx(-row[0], abs=6e-4) for row in left[:24]]
        assert page.locator(".caption", has_text=re.compile("Types.*all scores and IoU")).count() == 1
    pick(page, "slice", "objects:medium")
    assert 0 < count(status(page)) < len(left)
    pick(page, "verb", "no such verb")
    assert "Nothing is left" in page.inner_text("main")
    page.get_by_role("button", name="Clear them").click()
    errors = sum(row[4] != "true_positive" for row in everything)
    missed = next(count(line[1]) for line in lines(page, "Types") if line[0] == "Missed GT")
    assert count(status(page)) == errors + missed
    assert page.input_value("#filters [name=verb]") == ""


@pytest.mark.long
def test_active_filters_stand_in_every_view(opened: Open) -> None:
    """Each with a way to remove it, and with a word where the view cannot follow it."""
    wanted = {"class": "139", "type": "association", "verb": "ride", "from": "0.2", "slice": "people:2"}
    address = "&".join(f"{name}={value}" for name, value in wanted.items())
    page = opened(f"#view=errors&{address}")
    for view in ("summary", "classes", "class", "errors", "images", "image", "compare"):
        visit(page, f"#view={view}&{address}")
        chips = page.locator("#chips li:has(> button[aria-label])")
        names = [name for name in wanted if not (view == "class" and name == "class")]
        assert chips.count() == len(names), view
        offered = page.locator("#filters label:not([hidden])").evaluate_all("all => all.map(one => one.dataset.filter)")
        for name, text in zip(names, chips.all_inner_texts(), strict=True):
            follows = name in offered or (name == "class" and view not in ("summary", "classes"))
            assert ("not used in this view" in text) != follows, (view, name)
    while chips.count():
        before = chips.count()
        chips.first.get_by_role("button").click()
        drawn(page)
        assert chips.count() == before - 1
    assert page.url.endswith("#view=compare")


def test_a_view_is_sent_by_its_address(opened: Open) -> None:
    page = opened("#view=errors")
    pick(page, "type", "human_box")
    pick(page, "verb", "ride")
    pick(page, "from", "0.25")
    pick(page, "sort", "low")
    page.locator("article.card a").nth(1).click()
    drawn(page)
    page.keyboard.press("l")
    drawn(page)
    address = page.url.partition("#")[2]
    assert address.startswith("view=image&image=image_0")
    other = opened(f"#{address}")
    assert other.inner_text("main") == page.inner_text("main")
    assert other.inner_html("figure.large >> nth=0") == page.inner_html("figure.large >> nth=0")
    assert other.inner_text("#chips") == page.inner_text("#chips")


def test_back_and_forward(opened: Open) -> None:
    """Filters, the text of fields and the place come back; a new view begins at its top."""
    page = opened("#view=errors", viewport={"width": 1000, "height": 500})
    pick(page, "verb", "hold")
    page.locator("#filters [name=object]").press_sequentially("cup")
    drawn(page)
    links = page.locator("article.card a")
    links.nth(9).scroll_into_view_if_needed()
    place, first = page.evaluate("scrollY"), page.inner_text("main")
    assert place > 300
    links.nth(9).click()
    drawn(page)
    assert page.evaluate("scrollY") == 0
    page.evaluate("scrollTo(0, 150)")
    page.wait_for_timeout(400)  # where it was scrolled to is kept a moment later
    page.go_back()
    drawn(page)
    fields = [page.locator(f"#filters [name={name}]") for name in ("verb", "object")]
    assert ([field.input_value() for field in fields], page.evaluate("scrollY")) == (["hold", "cup"], place)
    assert page.inner_text("main") == first
    page.go_forward()
    drawn(page)
    assert (page.url.count("view=image&"), page.evaluate("scrollY")) == (1, 150)
    page.go_back()
    drawn(page)
    page.keyboard.press("4")
    drawn(page)
    assert page.evaluate("scrollY") == 0
    fields[0].fill("ride")  # while it is typed, the field has the focus
    drawn(page)
    page.go_back()
    drawn(page)
    assert ([field.input_value() for field in fields], page.evaluate("scrollY")) == (["hold", "cup"], place)
    page.go_forward()
    drawn(page)
    assert [field.input_value() for field in fields] == ["ride", "cup"]
    chips = page.locator("#chips li:has(> button[aria-label])")
    assert chips.all_inner_texts()[0].startswith("verb: ride")
    page.reload()
    drawn(page)
    assert [field.input_value() for field in fields] == ["ride", "cup"]


@pytest.mark.long
def test_the_summary_prints_on_four_pages(opened: Open, tmp_path: Path) -> None:
    gt, one, two = (str(FIXTURES / f"sample/{name}.jsonl.gz") for name in ("gt", "baseline", "ours"))
    assert run(["explore", "--gt", gt, one, two, "-o", str(tmp_path / "page.html")]) == 0
    page = opened("", tmp_path / "page.html")
    assert [len(table["lines"]) for table in facts_of(tmp_path / "page.html")["tables"]][3:5] == [10, 10]
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    pages = re.findall(rb"/Type\s*/Page\b", pdf)
    assert 1 <= len(pages) <= 4
    boxes = re.findall(rb"/MediaBox\s*\[([^]]*)\]", pdf)
    assert {tuple(map(round, map(float, box.split()))) for box in boxes} == {(0, 0, 595, 842)}


@pytest.mark.long
def test_the_keys_go_through_the_images(opened: Open) -> None:
    page = opened("#view=images&type=object_box&page=999")
    last = page.locator(".card p a").all_inner_texts()[-1]
    visit(page, "#view=images&type=object_box")
    order = page.locator(".card p a").all_inner_texts()
    page.locator(".card p a").first.click()
    drawn(page)
    seen = [page.inner_text("h2.name")]
    for key in ("j", "ArrowRight", "k", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        drawn(page)
        seen.append(page.inner_text("h2.name"))
    assert seen == [order[0], order[1], order[2], order[1], order[0], last]
    assert page.locator("figure.large").count() == 3  # the ground truth, and what each model makes of it
    page.keyboard.press("n")  # the first prediction
    drawn(page)
    for key, what in (("b", "g"), ("g", "g.gt"), ("h", "g.pr")):
        boxes = page.locator(f"figure.large {what} rect")
        assert boxes.count() > 0
        page.keyboard.press(key)
        drawn(page)
        assert boxes.count() == 0
        page.keyboard.press(key)
        drawn(page)
    words = page.locator("figure.large g.pr text").first.text_content() or ""
    assert re.fullmatch(r"\w+ \w+, 0\.\d{3}(, IoU 0\.\d\d/0\.\d\d)?", words)
    page.keyboard.press("s")
    drawn(page)
    assert page.locator("figure.large g.pr text").first.text_content() == words.partition(",")[0]
    listed = page.locator("[data-key^=row-0]")
    page.keyboard.press("n")
    drawn(page)
    chosen = page.locator("[data-key^=row-0][aria-pressed=true]").get_attribute("data-key")
    assert chosen == listed.nth(1 % listed.count()).get_attribute("data-key")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    for key in ("b", "j", "m", "u", "x", "/"):
        assert page.get_by_role("dialog").locator("kbd", has_text=key).count() >= 1
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    drawn(page)
    assert page.locator(".card p a").all_inner_texts() == order
    page.keyboard.press("/")
    page.keyboard.type("1")  # in a field a key is a letter
    assert "view=images" in page.url


@pytest.mark.long
@pytest.mark.parametrize("name", ["page", "page.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(opened: Open, made: Path, width: int, scheme: str, name: str) -> None:
    """axe-core finds nothing, and nothing is wider than the screen."""
    page, wrong = opened("", made / name, viewport={"width": width, "height": 844}, color_scheme=scheme), []
    for address in ("", "#view=classes&slice=people:2", "#view=errors&verb=ride&from=0.6", "#view=class&class=139",
                    "#view=images", "#view=image&hide=a", "#view=compare&side=both&type=duplicate",
                    "#view=image&image=nope", "#view=errors&verb=none&class=9999", "help"):  # fmt: skip
        if address == "help":
            page.keyboard.press("?")
        else:
            visit(page, address)
        found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]})
        wrong += [(address, one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]]
        wide = page.evaluate("document.documentElement.scrollWidth")
        wrong += [(address, "wide", wide)] if wide > width else []
    assert wrong == []


FORGED = {
    "view=toString": ["view \u201ctoString"],
    "view=classes&by=__proto__": ["order \u201c__proto__"],
    "view=errors&slice=frequency:toString": ["slice \u201cfrequency:toString"],
    "view=classes&slice=people:constructor": ["slice \u201cpeople:constructor"],
    "view=class&class=9999": ["class \u201c9999"],
    "view=errors&type=__proto__,duplicate": ["type of error \u201c__proto__,duplicate"],
    "view=image&image=nope": ["image \u201cnope"],
    "view=image&image=__proto__&row=7": ["image \u201c__proto__"],
    "view=errors&page=-4": ["page \u201c-4"],
    "view=errors&from=abc&model=c&sort=valueOf": ["number \u201cabc", "model \u201cc", "sort \u201cvalueOf"],
    "view=compare&side=constructor": ["side \u201cconstructor"],
    "%zz": ["filter \u201c%zz"],
    "view=image&row=-99999&hide=__proto__": [],
    "__proto__=1&constructor=2": ["filter \u201c__proto__", "filter \u201cconstructor"],
}


@pytest.mark.long
def test_an_address_of_what_does_not_exist(opened: Open) -> None:
    page = opened()
    for address, what in FORGED.items():
        visit(page, f"#{address}")
        said = page.locator(".problem").all_inner_texts()
        assert sorted(text.partition("\u201d")[0] for text in said) == sorted(f"There is no {each}" for each in what)
        assert page.locator("main > *").count() > 0
        page.get_by_role("link", name="Classes", exact=True).click()
        assert status(page) == "10 classes with ground truth, by protocol diag"
        assert page.locator(".problem").count() == 0
    assert opened("#view=class&class=9999").locator(".problem").count() == 1


@pytest.mark.long
def test_hostile_names_are_text(opened: Open, made: Path, tmp_path: Path) -> None:
    page = opened("#view=images")
    name = f"image_007{STRANGE}".replace("\u202e", "\\u202e")
    page.get_by_role("link", name=name, exact=True).click()
    drawn(page)
    assert page.inner_text("h2.name") == name
    assert page.locator("script").count() == 1
    assert "image not at hand" in (page.text_content("figure.large >> nth=0") or "")
    assert page.locator("figure.large image").count() == 0
    # ids that look alike are images of their own, with addresses of their own
    ids = ["a\x01b", "a\\x01b", "a\\u0001b", "x" * 600]
    record = {"boxes": [[0, 0, 9, 9], [0, 0, 19, 19]], "labels": ["person", "cup"]}
    hoi = {"subject": 0, "object": 1, "verb": "hold"}
    gt = written(tmp_path / "gt.jsonl", [{**record, "image_id": each, "width": 20 + at, "height": 20, "hois": [hoi]}
                                         for at, each in enumerate(ids)])  # fmt: skip
    preds = written(tmp_path / "p.jsonl", [{**record, "image_id": each, "hois": [{**hoi, "verb": "wash", "score": 0.5}]}
                                           for each in ids])  # fmt: skip
    assert run(["explore", "--gt", str(gt), str(preds), "-o", str(tmp_path / "page.html")]) == 0
    page = opened("#view=images", tmp_path / "page.html")
    assert page.locator(".card p a").count() == len(ids)
    sizes = set()
    for place in range(len(ids)):
        page.locator(".card p a").nth(place).click()
        drawn(page)
        sizes.add(page.locator("main .facts").first.inner_text())
        assert opened(f"#{page.url.partition('#')[2]}", tmp_path / "page.html").inner_text("main") == page.inner_text(
            "main"
        )
        page.go_back()
        drawn(page)
    assert sizes == {f"without file_name, {20 + at} \u00d7 20 pixels" for at in range(len(ids))}


@pytest.mark.long
@pytest.mark.parametrize("how", ["file", "serve"])
@pytest.mark.parametrize("sized", [True, False])
def test_pictures_lie_as_their_boxes_were_drawn(opened: Open, tmp_path: Path, how: str, sized: bool) -> None:
    """In the pixels as they are stored, whichever way Exif says that the camera was held."""
    from PIL import Image

    gt, preds, colours = photographed(tmp_path, sized=sized)
    width, height = (sum(each) // 2 for each in zip(*colours, strict=True))
    words = ["--gt", str(gt), str(preds), "--images", str(tmp_path / "images")]

    def check(of: Path | str) -> None:
        page = opened("", of)
        for turned in range(1, 9):
            visit(page, f"#view=image&image=turned_{turned}&hide=b")
            drawn(page, f"document.querySelector('.large svg').getAttribute('viewBox') === '0 0 {width} {height}'")
            scene = page.locator("figure.large svg").first
            scene.evaluate("scene => scene.querySelector('image').decode()")
            shot = Image.open(BytesIO(scene.screenshot())).convert("RGB")
            unit = min(shot.width / width, shot.height / height)
            left, top = (shot.width - width * unit) / 2, (shot.height - height * unit) / 2
            for (x, y), colour in colours.items():
                seen = shot.getpixel((int(left + x * unit), int(top + y * unit)))
                assert seen == pytest.approx(colour, abs=30), (turned, x, y)

    if how == "file":
        assert run(["explore", *words, "-o", str(tmp_path / "page")]) == 0
        check(tmp_path / "page")
    else:
        with serving(words) as (url, _):
            check(url)
