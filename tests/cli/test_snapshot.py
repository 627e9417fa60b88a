# SPDX-License-Identifier: Apache-2.0
"""`muster snapshot`: where it is written, what is said about it, and that half a file is none."""

from __future__ import annotations

import gzip
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import snapshot as module
from app.cli.client import Client, NoAnswerError
from app.cli.main import app
from app.cli.snapshot import Source, Write, write
from app.codec.snapshot import ListText, SnapshotInfo, Unseen, info_of, read
from app.domain.errors import ApiError, InputError
from tests.builders import make_node

INFO = SnapshotInfo(
    taken="t", redacted=True, counts={"nodes": 1, "pods": 0}, unseen=(Unseen("jobs.batch", "why"),)
)


def text(info: SnapshotInfo = INFO) -> bytes:
    lines = ListText()
    return lines.add([make_node("n1").json()]) + lines.end(info)


def source(info: SnapshotInfo = INFO) -> Source:
    def take(put: Write) -> SnapshotInfo:
        put(text(info))
        return info

    return take


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_a_file_is_for_its_owner_alone_and_reads_back(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text("an older one")
    path.chmod(0o644)
    assert write(source(), str(path))
    items = read(path)
    assert [item["kind"] for item in items] == ["Node", "SnapshotInfo"]
    assert info_of(items) == INFO
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "KIND         OBJECTS\nnodes        1\npods         0\njobs.batch   why\n"
        f"Written to {path}, 0.0 MB.\n"
    )


@pytest.mark.parametrize("output", [None, "-"])
def test_a_pipe_takes_the_list_and_nothing_else(
    output: str | None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert write(source(), output)
    assert capfdbinary.readouterr().out == text()


def test_a_terminal_is_not_flooded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert write(source(), None)
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"muster-snapshot-\d{8}-\d{6}\.json\.gz", path.name)
    assert path.name in capsys.readouterr().err
    assert info_of(read(path)) == INFO


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_without_nodes_or_pods_nothing_can_be_judged(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    info = SnapshotInfo(redacted=True, counts={"jobs.batch": 1}, unseen=(Unseen(kind, "not allowed"),))
    assert not write(source(info), str(tmp_path / "f.json"))
    assert (tmp_path / "f.json").exists()
    assert "Nodes or pods may be missing: what looks free here is an upper bound." in capsys.readouterr().err


def test_where_nothing_was_seen_there_is_no_file(tmp_path: Path) -> None:
    gaps = (Unseen("nodes", "not allowed to list it"), Unseen("pods", "not allowed to list it"))
    with pytest.raises(ApiError, match=r"^nothing could be read: not allowed to list it$"):
        write(source(SnapshotInfo(redacted=True, unseen=gaps)), str(tmp_path / "f.json"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["f.json", "f.json.gz"])
def test_what_breaks_off_leaves_no_file_and_the_old_one_as_it_was(tmp_path: Path, name: str) -> None:
    def broken(put: Write) -> SnapshotInfo:
        put(text()[:20])
        raise ApiError("gone")

    (tmp_path / name).write_text("old")
    with pytest.raises(ApiError, match="gone"):
        write(broken, str(tmp_path / name))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere/f.json: cannot write: No such file or directory"):
        write(source(), str(tmp_path / "nowhere" / "f.json"))
    with pytest.raises(InputError, match="cannot write: Is a directory"):
        write(source(), str(tmp_path))


# -- from a running Muster


class Server(http.server.ThreadingHTTPServer):
    """Answers every GET with `status` and `body`."""

    status, body = 200, text()
    asked: list[str]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Handler) as made:
        made.asked = []
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["snapshot", *args])


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_a_running_muster_gives_it_redacted(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "f.json.gz"
    assert run("--server", url(server), "-o", str(path)).exit_code == 0
    assert gzip.decompress(path.read_bytes()) == text()
    assert run("--server", url(server) + "/", "--keep-env", "-o", str(path)).exit_code == 0
    assert server.asked == [f"/snapshot?redacted=true&keep-env={keep}" for keep in ("false", "true")]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (429, b'{"error":"one at a time"}', "429: one at a time"),
        (404, b'{"detail":"Not Found"}', "404: .*Not Found"),
        (200, text()[:-3], "the snapshot broke off"),
        (200, b"", "the snapshot broke off"),
        (200, text(SnapshotInfo(counts={"nodes": 1})), "what came is not redacted"),
    ],
)
def test_what_is_no_redacted_snapshot_becomes_no_file(
    server: Server, tmp_path: Path, status: int, body: bytes, said: str
) -> None:
    server.status, server.body = status, body
    with pytest.raises(NoAnswerError, match=said):
        write(module.from_server(Client.of(url(server)), keep_environment=False), str(tmp_path / "f.json"))
    assert list(tmp_path.iterdir()) == []


def test_the_variable_names_the_server_and_a_kubeconfig_wins_over_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "f.json", tmp_path / "no-kubeconfig"
    monkeypatch.setenv("MUSTER_SERVER", url(server))
    assert run("-o", str(path)).exit_code == 0
    assert path.read_bytes() == text()
    assert str(other) in str(run("-o", str(path), "--kubeconfig", str(other)).exception)
    assert len(server.asked) == 1
    assert "leave --namespace" in str(run("-n", "x").exception), "not a file of some other cluster"


@pytest.mark.parametrize("given", ["127.0.0.1:8888", "ftp://x", "http://"])
def test_an_address_that_is_none_is_said_so(given: str) -> None:
    said = str(run("--server", given).exception)
    assert said == f"--server: {given} is not a URL like http://127.0.0.1:8888"


def test_nobody_there_is_one_line_and_no_file(tmp_path: Path) -> None:
    said = str(run("--server", "http://127.0.0.1:1", "-o", str(tmp_path / "f.json")).exception)
    assert re.fullmatch(r"http://127.0.0.1:1 did not answer GET /snapshot\S+: Connection refused", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [("-n", "x", "-A"), ("--server", "http://x", "-n", "x"), ("--server", "http://x", "--context", "c")],
)
def test_choices_that_exclude_each_other(args: tuple[str, ...]) -> None:
    assert isinstance(run(*args).exception, InputError)
