"""What is installed is what is here: the wheel carries the schemas, the data and the type marker, and no tests; what
is locked and what the image of fixtures/scale/Dockerfile installs; and the site, with every link within it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hoicli.commands.doctor import kinds, schema_text
from hoicli.explorer.content import SCRIPTS
from hoicli.version import __version__
from hoicli.vocabulary.datasets import DATASETS
from tests.support.browsers import chromium
from tests.support.project import ROOT
from tests.support.readme import DOCS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_release_is_named_once() -> None:
    """The citation and the changelog's topmost release name the version that is here."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    topmost = re.search(r"^## (?!Unreleased\n)(\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert topmost is not None
    assert topmost[1] == __version__


@pytest.mark.long
def test_a_second_build_has_the_same_bytes(tmp_path: Path) -> None:
    """Of a copy whose files are younger and that other people may write."""
    built = []
    for number, name in enumerate(("one", "two")):
        folder = tmp_path / name
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist", "*-output")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for path in folder.rglob("*.py"):
            path.chmod(0o644 | number * 0o020)
            os.utime(path, (10**9 * (number + 1),) * 2)
        subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=folder, check=True, capture_output=True)
        built.append({path.name: path.read_bytes() for path in (folder / "dist").iterdir()})
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for kind in kinds():
            assert archive.read(f"hoicli/formats/{kind}.schema.json").decode() == schema_text(kind)
    vocabularies = {f"hoicli/vocabulary/{name}.json" for name in ("coco", *DATASETS)}
    wordnet = {
        f"hoicli/wordnet/data/{name}"
        for name in ("princeton/data.noun", "princeton/lexnames", "graph.npz", "senses.json")
    }
    assert {
        "hoicli/py.typed",
        "hoicli/data.sha256",
        "hoicli/wordnet/data/WORDNET-LICENSE",
        *(f"hoicli/explorer/page/{name}" for name in ("index.html", "page.css", *(f"{name}.js" for name in SCRIPTS))),
        *vocabularies,
        *wordnet,
    } <= names
    assert not any(name.startswith(("tests", "fixtures")) for name in names)


@pytest.mark.parametrize(("arguments", "words"), [
    (["doctor", "--schema", "match"], "match record"),
    (["vocab", "--list", "splits"], "rare_first"),
    (["vocab", "--senses", "ride horse"], "horse.n.01"),
])  # fmt: skip
def test_the_wheel_runs_by_itself(wheel: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Unpacked away from the checkout, the package finds its schemas and vocabularies."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from hoicli.cli import main; main()"
    python = [sys.executable, "-c", code, *arguments]
    process = subprocess.run(python, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert words in process.stdout


SCALE = ROOT / "fixtures/scale"
DOCKERFILE = (SCALE / "Dockerfile").read_text()


def test_the_lock_for_development_has_what_is_asked_for() -> None:
    """One or more versions of a package, by the Python that takes it."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 or later")
    requirements = pytest.importorskip("packaging.requirements")
    pins = re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", (ROOT / "tests/requirements.lock").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in map(requirements.Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]]):
        locked = [version for name, version in pins if name == wanted.name]
        assert locked, f"{wanted} is not in tests/requirements.lock: make lock"
        assert all(map(wanted.specifier.contains, locked)), f"{wanted}: make lock"


def test_the_lock_file_has_what_is_asked_for() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 or later")
    requirements = pytest.importorskip("packaging.requirements")
    blocks = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", (SCALE / "requirements.lock").read_text()))
    assert all(re.search(r"(?m)^    --hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    pins = [re.match(r"([a-z0-9-]+)==(\S+) ", block) for block in blocks]
    locked = {pin[1]: pin[2] for pin in pins if pin is not None}
    assert len(locked) == len(blocks)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = declared["project"]
    wanted = [*project["dependencies"], *declared["build-system"]["requires"]]
    for extra, names in project["optional-dependencies"].items():
        wanted += [] if extra.startswith("dev") else names
    for requirement in map(requirements.Requirement, wanted):
        assert locked.get(requirement.name), f"{requirement} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(locked[requirement.name]), f"{requirement}: make lock"
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"--python-version {version} " in (ROOT / "Makefile").read_text()


def test_the_dockerfile_copies_what_it_may_and_is_not_root() -> None:
    """.dockerignore lets through what is copied, and it is there."""
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    copied = [word for line in copies for word in line.split()]
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(allowed)
    assert all((ROOT / name).exists() for name in copied)
    assert DOCKERFILE.rindex("\nFROM ") < DOCKERFILE.index("\nUSER 65534:65534\n")
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.long
def test_the_image_runs_where_docker_is() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs Docker and its daemon")
    subprocess.run(["make", "image"], cwd=ROOT, check=True)


LOADED = re.compile(r'<(?:script|img|link rel="(?:stylesheet|icon|preconnect)")[^>]*(?:src|href)="?([^" >]+)')


@pytest.mark.long
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """mkdocs is strict: a broken link, or a page that the menu lacks, fails."""
    pytest.importorskip("material", reason="pip install mkdocs-material (it is in the extra dev)")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", ".mkdocs.yml", "-d", str(tmp_path)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "", "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    pages = {path.relative_to(tmp_path).with_suffix(".md") for path in tmp_path.rglob("*.html")}
    written = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    named = {path.with_name("index.md") if path.name == "README.md" else path for path in written}
    assert named <= pages
    assert {Path("tour.md"), Path("reference.md"), Path("formats/index.md")} <= pages
    for page in tmp_path.rglob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert loaded, page
        for address in loaded:
            assert not re.match(r"\w+:|//", address), f"{page} loads {address}"
            assert (page.parent / address.split("?")[0]).is_file() or page.name == "404.html", f"{page}: {address}"
    index = (tmp_path / "search/search_index.js").read_text(encoding="utf-8")  # which search reads without a server
    assert json.loads(index.removeprefix("var __index = "))["docs"]
    assert "assets/iframe-worker.js" in LOADED.findall((tmp_path / "index.html").read_text(encoding="utf-8"))
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert "hoicli.evaluate" in reference
    assert "Evaluator.update" in reference
    for address in (tmp_path.as_uri(), served_at(tmp_path)):
        assert "confusion" in found_by_search(address, "confusion")


def served_at(folder: Path) -> str:
    """Serve a folder over http while the tests run, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def found_by_search(address: str, words: str) -> str:
    """Return the first result of the site's search, as a browser shows it."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/index.html")
        page.set_default_timeout(60_000)
        page.locator(".md-search__input").click()
        page.keyboard.type(words)
        heading: str = page.locator(".md-search-result__item h1").first.inner_text()
        return heading
