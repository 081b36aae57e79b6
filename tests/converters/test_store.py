"""Named ground truth: added once, found by every command, told apart by its digest; and downloads from a server on
this machine that behaves well, and in every other way."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.converters import named, store
from hoicli.converters.named import NAMED, NamedTruth
from hoicli.converters.store import checksum, download
from hoicli.errors import DataError
from tests.support.llm_stub import dripping
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, MonkeyPatch, complaint, records_of, refusal

OTHER_LABELS = FIXTURES / "own/label_studio.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    monkeypatch.setenv("HOICLI_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_set_that_was_added_is_ground_truth_everywhere(hoicli: Hoicli, folder: Path) -> None:
    added = hoicli("data", "add", "hico:test", GT)
    path = folder / "hico" / "test.jsonl"
    assert added.out.strip() == str(path)
    assert added.err.endswith("hoicli: hico:test: 8 images, gt:5e0e30fe; the published set has 9,658 images\n")
    assert records_of(hoicli("data", "list"))[0]["path"] == str(path)
    for command in (["eval", "--protocol", "hico"], ["match"], ["diagnose"], ["pairstats"], ["validate"]):
        by_name = hoicli(*command, "--gt", "hico:test", PREDICTIONS)
        assert by_name.code == hoicli(*command, "--gt", GT, PREDICTIONS).code
        assert by_name.out == hoicli(*command, "--gt", GT, PREDICTIONS).out


def test_a_name_that_is_a_file_is_the_file(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine:val").write_text("")
    assert named.locate_truth("mine:val") == "mine:val"


@pytest.mark.parametrize(("arguments", "said"), [
    (["eval", "--gt", "hico:test", PREDICTIONS], "hico:test is not here yet: hoicli data fetch hico:test"),
    (["eval", "--gt", "hico:tes", PREDICTIONS], "hico:tes: no such file, and no ground truth of "
     "that name was added; hoicli data list"),
    (["data", "fetch", "hico:tset"], "hico:tset: no published ground truth has this name; hoicli data list"),
    (["data", "add", "test", GT], "'test' is no name of ground truth; give DATASET:PART"),
    (["data", "add", "../x:y", GT], "'../x:y' is no name of ground truth"),
    (["data", "add", "hico:test"], "data add hico:test: give the files to convert"),
    (["data", "fetch", "hico:test", GT], "data fetch: FILE, --from and --dataset go with hoicli"),
])  # fmt: skip
def test_a_wrong_call_says_what_to_do(hoicli: Hoicli, arguments: list[Any], said: str) -> None:
    assert refusal(hoicli(*arguments), 2).startswith(f"hoicli: {said}")


def test_a_relative_folder_is_refused(hoicli: Hoicli, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("HOICLI_DATA", "data")
    assert hoicli("data", "list").err == "hoicli: HOICLI_DATA=data: give an absolute path\n"


def test_what_is_no_ground_truth_is_not_added(hoicli: Hoicli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text(GT.read_text()[:700])
    for name, said in (
        (str(PREDICTIONS), "holds predictions"),
        ("empty.jsonl", "empty"),
        ("broken.jsonl", ":"),
        (str(OTHER_LABELS), f"{OTHER_LABELS}: image site_0004: labels[0]: unknown object 'visitor'; "),
    ):
        assert said in refusal(hoicli("data", "add", "mine:val", tmp_path / name))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_the_name_says_which_part_of_a_file_with_two(hoicli: Hoicli, folder: Path) -> None:
    files = [FIXTURES / "foreign" / name for name in ("anno_bbox.mat", "anno.mat")]
    for name, other, first in (("hico:test", "train", "test2015"), ("hico:train", "test", "train2015")):
        added = hoicli("data", "add", name, *files)
        assert added.code == 0, added.err
        assert (
            f"taking bbox_{name[5:]}, the {name[5:]} split; hoicli data add hico:{other} takes the other" in added.err
        )
        assert f"HICO_{first}_" in (folder / "hico" / f"{name[5:]}.jsonl").read_text()


def test_the_list_names_every_set_and_those_of_the_user(hoicli: Hoicli, folder: Path) -> None:
    hoicli("data", "add", "mine-a:val", GT)
    rows = [orjson.loads(line) for line in hoicli("data", "list", "--format", "jsonl").out.splitlines()]
    assert [row["name"] for row in rows] == [*NAMED, "mine-a:val"]
    assert rows[-1]["path"] == str(folder / "mine-a" / "val.jsonl")
    assert all(row["terms"] and row["from"] and row["path"] is None for row in rows[:-1])


def test_a_published_digest_has_a_name(hoicli: Hoicli, hico_test: Path) -> None:
    assert hoicli("data", "add", "hico:test", hico_test).err.endswith(": 9,658 images, gt:hico-test-7cba1727\n")


CONTENT = (GT).read_bytes()
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@dataclass
class Server:
    """Serves CONTENT. stop_after: bytes after which a response ends; status: what it answers instead of 200."""

    url: str = ""
    stop_after: int | None = None
    status: int = 200
    location: str = ""

    def row(self, checksum: str = SHA) -> NamedTruth:
        return NamedTruth("hico:few", "a few images", f"{self.url}/files/gt.jsonl", checksum)


@pytest.fixture
def server(monkeypatch: MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            if state.status == 200:
                self.wfile.write(CONTENT[: state.stop_after])

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state.url = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield state
        running.shutdown()


def test_a_file_is_fetched_and_added(server: Server, hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setenv("HOICLI_DATA", str(tmp_path))
    monkeypatch.setitem(NAMED, "hico:few", server.row())
    fetched = hoicli("data", "fetch", "hico:few")
    assert fetched.code == 0, fetched
    assert fetched.out.strip() == str(tmp_path / "hico" / "few.jsonl")
    assert [path.name for path in (tmp_path / "hico").iterdir()] == ["few.jsonl"]


def test_gits_id_of_a_file_is_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert checksum(tmp_path / "hello", "git:") == "git:ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


@pytest.mark.parametrize(("stop_after", "checksum"), [(300, SHA), (None, "sha256:" + "0" * 64)])
def test_a_part_of_the_file_is_refused(server: Server, tmp_path: Path, stop_after: int | None, checksum: str) -> None:
    server.stop_after = stop_after
    with pytest.raises(DataError, match="is not the published file"):
        download(server.row(checksum), tmp_path)


def test_what_does_not_end_is_stopped(server: Server, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LARGEST", 600)
    with pytest.raises(DataError, match="sends more than 600 bytes"):
        download(server.row(), tmp_path)


@pytest.mark.parametrize(("change", "said"), [
    ({"status": 302, "location": "https://elsewhere.example/x"}, "no download (HTTP Error 302: Found); try"),
    ({"status": 404}, "no download (HTTP Error 404: Not Found); try again later"),
])  # fmt: skip
def test_a_server_that_refuses(server: Server, tmp_path: Path, change: dict[str, object], said: str) -> None:
    for name, value in change.items():
        setattr(server, name, value)
    assert complaint(DataError, download, server.row(), tmp_path).startswith(f"{server.url}/files/gt.jsonl: {said}")


def test_a_silent_server(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(store, "PATIENCE", 0.2)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/set.bin"
        with pytest.raises(DataError, match="timed out"):
            download(NamedTruth("a:b", "", url, SHA), tmp_path)


@pytest.mark.parametrize("again", [b"HTTP/1.1 100 Continue\r\n\r\n", b"H"], ids=["please go on", "a status line"])
def test_a_server_that_does_not_come_to_its_file(tmp_path: Path, monkeypatch: MonkeyPatch, again: bytes) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with dripping(b"", again) as url, pytest.raises(DataError, match="timed out"):
        download(NamedTruth("a:b", "", f"{url}/set.bin", SHA), tmp_path)


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^https://127\.0\.0\.1:9/set\.bin: no download \(.*try again later"):
        download(NamedTruth("a:b", "", "https://127.0.0.1:9/set.bin", SHA), tmp_path)


def test_every_published_address_is_https_at_a_fixed_place_with_a_checksum() -> None:
    for row in NAMED.values():
        assert row.url.startswith("https://")
        assert row.checksum.partition(":")[0] in ("sha256", "git")
        assert "/main/" not in row.url
        assert "/master/" not in row.url
