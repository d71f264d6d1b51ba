"""Files beside a game or behind a URL: whole, fetched once, and one sentence where that fails."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.server
import os
import threading
import time

import pytest

import gpuzoo
from gpuzoo import Asset
from gpuzoo.core import assets

CONTENT = b"level 1\n" * 20_000


def asset(source, content=CONTENT, **changes):
    digest = hashlib.sha256(content).hexdigest()
    return Asset(source, **{"size": len(content), "sha256": digest, "licence": "CC0-1.0", **changes})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "assets"


class Server:
    """Answers with ``body``, and counts its requests."""

    def __init__(self):
        outer = self
        self.body, self.requests, self.status, self.length, self.pause = CONTENT, 0, 200, None, 0.0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests += 1
                self.send_response(outer.status)
                self.send_header("Content-Length", str(outer.length or len(outer.body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # a client that has seen enough
                    for k in range(0, len(outer.body), 4096):
                        self.wfile.write(outer.body[k : k + 4096])
                        self.wfile.flush()
                        time.sleep(outer.pause)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/a/levels.txt"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_a_file_of_the_package(tmp_path):
    path = tmp_path / "levels.txt"
    path.write_bytes(CONTENT)
    levels = asset(path)
    assert levels.path() == path
    assert levels.read() == CONTENT


def test_a_file_of_the_package_that_is_damaged_or_missing(tmp_path):
    path = tmp_path / "levels.txt"
    with pytest.raises(FileNotFoundError, match=r"levels\.txt is missing: install the package again"):
        asset(path).path()
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(RuntimeError, match=f"has {len(CONTENT) - 1} bytes, not {len(CONTENT)} bytes"):
        asset(path).path()
    path.write_bytes(b"L" + CONTENT[1:])
    with pytest.raises(RuntimeError, match=hashlib.sha256(b"L" + CONTENT[1:]).hexdigest()):
        asset(path).path()


def test_a_url_is_fetched_once(server, cache):
    levels = asset(server.url)
    assert levels.read() == CONTENT
    assert levels.path().parent == cache
    assert levels.path().name.endswith("-levels.txt")
    assert asset(server.url).read() == CONTENT
    assert server.requests == 1
    assert os.listdir(cache) == [levels.path().name], "nothing is left of the way there"


def test_a_damaged_copy_is_fetched_again(server):
    path = asset(server.url).path()
    for damage in (b"", CONTENT[:-1] + b"!"):
        path.write_bytes(damage)
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns + 1))
        assert asset(server.url).read() == CONTENT
    assert server.requests == 3


def test_a_file_url(tmp_path):
    path = tmp_path / "levels.txt"
    path.write_bytes(CONTENT)
    assert asset(path.as_uri()).read() == CONTENT


@pytest.mark.parametrize("body", [b"", CONTENT[:-1], CONTENT[:-1] + b"!", CONTENT + b"!"])
def test_another_file_behind_the_url_is_refused(server, cache, body):
    server.body = body
    with pytest.raises(RuntimeError, match="it has changed or was damaged on the way; nothing was kept"):
        asset(server.url).path()
    assert os.listdir(cache) == []


def test_no_more_is_fetched_than_was_declared(server):
    server.body = b"x" * 10_000_000
    with pytest.raises(RuntimeError, match="gave more than 100 bytes"):
        asset(server.url, b"x" * 100).path()


def test_an_answer_that_breaks_off(server, cache):
    server.body, server.length = CONTENT[:5000], len(CONTENT)
    with pytest.raises(RuntimeError, match="gave 5000 bytes"):
        asset(server.url).path()
    assert os.listdir(cache) == []


def test_an_answer_that_takes_too_long(server, monkeypatch):
    monkeypatch.setattr(assets, "TIMEOUT", 0.2)
    monkeypatch.setattr(assets, "SLOWEST", 1e9)
    server.pause = 0.1
    began = time.monotonic()
    with pytest.raises(ConnectionError, match="too slow"):
        asset(server.url).path()
    assert time.monotonic() - began < 5


def test_offline(server, cache):
    server.server.shutdown()
    server.server.server_close()
    with pytest.raises(ConnectionError) as refused:
        asset(server.url).path()
    message = str(refused.value)
    assert message.startswith(f"cannot fetch {server.url} (")
    assert "or put a copy of the file at" in message
    place = message.rpartition("put a copy of the file at ")[2].rstrip(".")
    with open(place, "wb") as file:
        file.write(CONTENT)
    assert asset(server.url).read() == CONTENT, "it can be put there by hand"


def test_a_cache_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"cannot be written .*: set GPUZOO_CACHE_DIR to a folder that can"):
        asset(server.url).path()


def test_a_full_disk_is_not_told_as_a_missing_connection(server, cache, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\)") as refused:
        asset(server.url).path()
    assert not isinstance(refused.value, ConnectionError)
    assert os.listdir(cache) == []


def test_a_server_that_does_not_have_it(server):
    server.status = 404
    with pytest.raises(ConnectionError, match=r"cannot fetch .*Not Found"):
        asset(server.url).path()


@pytest.mark.parametrize(
    ("source", "changes", "words"),
    [
        ("ftp://example.org/a", {}, "a Path or a URL of http, https or file, not 'ftp:"),
        ("levels.txt", {}, "a Path or a URL"),
        ("https://example.org/a", {"size": 0}, "number of bytes, not 0"),
        ("https://example.org/a", {"sha256": "abc"}, "64 hexadecimal digits, not 'abc'"),
        ("https://example.org/a", {"licence": " "}, "under which licence"),
    ],
)
def test_what_a_declaration_must_say(source, changes, words):
    with pytest.raises(ValueError, match=words):
        asset(source, **changes)


def test_the_collections_own_files_are_whole():
    """Those in the package; nothing is fetched here."""
    for env_id in gpuzoo.ids():
        for one in gpuzoo.get(env_id).assets.values():
            if not isinstance(one.source, str):
                one.path()
