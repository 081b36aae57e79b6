"""The page in a real browser: its five jobs, its looks at two widths in light and dark, and that it stays by itself.

Needs the extra dev-browser and a Chromium: /usr/bin/chromium, one on the PATH, or playwright's own.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hoicli.cli import run
from tests.support.explorers import STRANGE, facts_of, predictions_of, write_scenes
from tests.support.project import PATIENCE

pytest.importorskip("playwright", reason="needs pip install 'hoicli[dev-browser]'")
pytest.importorskip("axe_playwright_python", reason="needs pip install 'hoicli[dev-browser]'")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, sync_playwright

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-first-run")  # fmt: skip
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(
        filter(None, map(shutil.which, ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome"))), None
    )
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        except Error as error:
            pytest.skip(
                f"needs a Chromium (apt install chromium, or playwright install chromium): {error.message[:80]}"
            )
        yield started
        started.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`page`, an explorer of two models, and `bare`, of one without pictures; of few images `small`."""
    folder, few = (tmp_path_factory.mktemp(name) for name in ("explored", "few"))
    gt, one, two, images = map(str, write_scenes(folder))
    assert run(["explore", "--gt", gt, one, two, "--images", images, "-o", str(folder / "page")]) == 0
    assert run(["explore", "--gt", gt, one, "-o", str(folder / "bare")]) == 0
    gt, one, two, images = map(str, write_scenes(few, images=5))
    assert run(["explore", "--gt", gt, one, two, "--images", images, "-o", str(folder / "small")]) == 0
    return folder


@pytest.fixture
def opened(browser: Browser, made: Path) -> Iterator[Open]:
    """Opens a view of a page from disk; whatever it says in its console or asks of elsewhere fails the test."""
    complaints: list[str] = []
    contexts = []

    def go(address: str = "", name: str = "page", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options) if "viewport" not in options \
            else browser.new_context(**options)  # fmt: skip
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        inside = (made / name).as_uri()
        page.on("request", lambda request: None if request.url.startswith(inside) else complaints.append(request.url))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(f"{inside}/index.html{address}")
        drawn(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


SETTLED = "addressOf(stateOf(location.hash)) === addressOf(state) && !document.querySelector('[aria-busy]')"


def drawn(page: Page) -> None:
    """Wait for the view of the address; playwright cannot poll by itself, as the page's policy forbids eval."""
    page.wait_for_selector("html[data-drawn]")
    end = time.monotonic() + PATIENCE
    while not page.evaluate(SETTLED):
        assert time.monotonic() < end, "the page draws nothing"
        page.wait_for_timeout(20)


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


# The five jobs


def test_the_worst_class_and_its_curve(opened: Open, made: Path) -> None:
    page = opened()
    assert status(page) == "8 classes with ground truth"
    facts = facts_of(made / "page")
    ap = {at: value for at, value in enumerate(facts["models"][0]["ap"]) if value is not None}
    worst = min(ap, key=lambda at: (ap[at], -facts["positives"][at], at))
    verb, name = facts["classes"][worst]
    table = page.get_by_role("region", name="AP of each class")
    first = table.locator("tbody tr").first
    assert first.locator("th").inner_text() == f"{facts['verbs'][verb]} {name}"
    assert first.locator("td").nth(1).inner_text().startswith(f"{ap[worst]:.2f}")
    table.get_by_role("button", name="AP B").click()
    best = max(value for value in facts["models"][1]["ap"] if value is not None)
    assert table.locator("tbody tr td").nth(2).inner_text() == f"{best:.2f}"
    page.get_by_role("link", name=f"{facts['verbs'][verb]} {name}", exact=True).click()
    drawn(page)
    assert page.locator(".headlines .big").first.inner_text() == f"{ap[worst]:.2f}"
    chart = page.get_by_role("img", name=f"Precision over recall of {facts['verbs'][verb]} {name}")
    lines = chart.locator("polyline").evaluate_all("lines => lines.map(line => line.getAttribute('points'))")
    rows = [row for row in predictions_of(made / "page") if (row[2], row[3]) == (facts["verbs"][verb], name)]
    hits = [place for place, row in enumerate(rows, start=1) if row[4] == "true_positive"]
    points = [(found / facts["positives"][worst], found / rank) for found, rank in enumerate(hits, start=1)]
    drawn_points = [tuple(map(float, point.split(","))) for point in lines[0].split()]
    assert len(lines) == 2
    assert drawn_points == [pytest.approx((46 + 360 * x, 10 + 248 * (1 - y)), abs=0.06) for x, y in points]
    page.get_by_role("link", name="All of its errors").click()
    assert count(status(page)) == sum(row[4] != "true_positive" for row in rows) + facts["models"][0]["class_counts"][
        "missed_gt"][worst]  # fmt: skip


def test_every_association_error_of_a_verb(opened: Open, made: Path) -> None:
    page = opened("#view=errors")
    pick(page, "verb", "hold")
    pick(page, "type", "association")
    rows = [row for row in predictions_of(made / "page") if row[2] == "hold" and row[4] == "association"]
    assert status(page) == f"{len(rows)} errors in {len({row[1] for row in rows})} images of A"
    assert page.locator("article.card").count() == min(24, len(rows)) > 0
    assert set(page.locator("article.card p:nth-of-type(1)").all_inner_texts()) <= {
        f"Association: hold {name}" for name in ("bicycle", "horse", "cup")
    }
    for truth in page.locator("article.card .truth").all_inner_texts():  # every card says what would have been right
        assert re.match(r"(nearest truth|truth, which it could become): \w+ \w+$|no ground truth touches it$", truth)
    pick(page, "verb", "no such verb")
    assert "Nothing is left" in page.inner_text("main")
    page.get_by_role("button", name="Clear them").click()
    missed = facts_of(made / "page")["models"][0]["counts"]["missed_gt"]["full"]
    errors = sum(row[4] != "true_positive" for row in predictions_of(made / "page"))
    assert count(status(page)) == errors + missed
    assert page.input_value("#filters [name=verb]") == ""


def test_by_score_iou_and_slice(opened: Open, made: Path) -> None:
    page = opened("#view=errors&sort=score")
    everything = predictions_of(made / "page")
    for low, high, iou, below in ((0.5, None, None, None), (0.2, 0.3, 0.5, None), (None, 0.7, 0.25, 0.5)):
        for name, value in zip(("from", "to", "iou", "iouto"), (low, high, iou, below), strict=True):
            pick(page, name, "" if value is None else str(value))
        rows = [
            row for row in everything
            if row[4] != "true_positive" and -row[0] >= (low or 0) and -row[0] < (high or 9)
            and max(0, min(row[7])) >= 10_000 * (iou or 0) and max(0, min(row[7])) < 10_000 * (below or 9)
        ]  # fmt: skip
        assert count(status(page)) == len(rows) > 0
        scores = [
            float(re.findall(r"score ([\d.]+)", text)[0]) for text in page.locator(".card .facts").all_inner_texts()
        ]
        assert scores == [pytest.approx(-row[0], abs=6e-4) for row in rows[:24]]
    pick(page, "slice", "objects:medium")
    assert 0 < count(status(page)) <= len(rows)


def test_what_one_finds_and_the_other_does_not(opened: Open, made: Path) -> None:
    page = opened()
    page.get_by_role("link", name="Compare").click()
    drawn(page)
    models = [
        [row for row in predictions_of(made / "page", f"model{model}") if row[4] == "true_positive"] for model in (0, 1)
    ]
    found = [{(row[1], row[6]) for row in rows} for rows in models]
    wanted = [len(found[0] - found[1]), len(found[1] - found[0]), len(found[0] & found[1])]
    assert [count(text.rsplit(" ", 1)[1]) for text in page.locator(".sides button").all_inner_texts()][:3] == wanted
    page.get_by_role("button", name="B right, A wrong").click()
    assert status(page) == f"{wanted[1]} ground-truth triplets: B right, A wrong"
    halves = page.locator(".card .halves > div > p:first-of-type").all_inner_texts()
    assert all(("True positive" in text) == (number % 2 == 1) for number, text in enumerate(halves))
    pick(page, "from", "0.6")
    sure = [{(row[1], row[6]) for row in rows if -row[0] >= 0.6} for rows in models]
    assert count(status(page)) == len(sure[1] - sure[0])
    page.locator(".card .halves a").first.click()
    drawn(page)
    assert page.locator("figure.large").count() == 2


def test_a_view_is_sent_by_its_address(opened: Open) -> None:
    page = opened("#view=errors")
    pick(page, "type", "human_box")
    pick(page, "verb", "ride")
    pick(page, "from", "0.25")
    pick(page, "sort", "low")
    page.locator("article.card a").nth(1).click()
    drawn(page)
    page.keyboard.press("l")
    address = page.url.partition("#")[2]
    assert address.startswith("view=image&image=image_0")
    other = opened(f"#{address}")
    assert other.inner_text("main") == page.inner_text("main")
    assert other.inner_html("figure.large") == page.inner_html("figure.large")
    page.go_back()
    drawn(page)
    assert page.input_value("#filters [name=verb]") == "ride"
    assert page.locator("article.card").count() > 1
    for odd in (
        "#view=none&class=99999&model=z&from=abc&page=-4",
        "#%zz",
        "#view=image&image=nobody&row=7",
        "#view=class",
    ):
        assert status(opened(odd))


# Keys


def test_the_keys_go_through_the_images(opened: Open) -> None:
    page = opened("#view=images&type=object_box")
    order = page.locator("tbody th").all_inner_texts()
    page.locator("tbody th a").first.click()
    drawn(page)
    seen = [page.inner_text("h2.name")]
    for key in ("j", "ArrowRight", "k", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        drawn(page)
        seen.append(page.inner_text("h2.name"))
    assert seen == [order[0], order[1], order[2], order[1], order[0], order[-1]]
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
    assert page.locator("tbody th").all_inner_texts() == order
    page.keyboard.press("/")
    page.keyboard.type("1")  # in a field a key is a letter
    assert "view=images" in page.url


# Looks, and that it stays by itself


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(opened: Open, made: Path, width: int, scheme: str) -> None:
    """axe-core finds nothing, and nothing is wider than the screen."""
    number = next(at for at, value in enumerate(facts_of(made / "small")["positives"]) if value)
    views = ("", "#view=errors&verb=ride", f"#view=class&class={number}", "#view=images", "#view=image&hide=a")
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    page = opened("", "small", **options)
    for address in (*views, "#view=compare&side=both", "help"):
        if address == "help":
            page.keyboard.press("?")
        else:
            page.evaluate("address => { location.hash = address; }", address)
        drawn(page)
        found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]})
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_hostile_names_are_text(opened: Open) -> None:
    page = opened("#view=images")
    name = f"image_007{STRANGE}".replace("\u202e", "\\u202e")
    page.get_by_role("link", name=name, exact=True).click()
    drawn(page)
    assert page.inner_text("h2.name") == name
    assert page.locator("script").count() == 1
    assert "image not at hand" in page.inner_text("figure.large >> nth=0")
    assert page.locator("figure.large image").count() == 0
    assert opened("#view=image&image=image_010").locator("figure.large image").count() == 2
