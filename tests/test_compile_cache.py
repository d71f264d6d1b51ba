"""The cache of compiled programs: damage, folders that cannot be written, and what killed processes leave."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from toys.glide import Glide

from gpuzoo import Simulator
from gpuzoo.core import compiled as cache
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.compiled import compiled
from gpuzoo.core.nvrtc import cached_cubin

CODE = 'extern "C" int seven() { return 7; }\n'
CUBIN = 'extern "C" __global__ void f(int *x) { *x = 1; }'


def forget() -> None:
    """As in a new process."""
    cache._found.clear()
    for function in (cache._sweep, cache._temporary, cache._warn):
        function.cache_clear()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache"


def builder(content: bytes = b"program") -> tuple[list[Path], Callable[[Path], bytes]]:
    folders: list[Path] = []

    def build(folder: Path) -> bytes:
        assert list(folder.iterdir()) == []
        folders.append(folder)
        return content

    return folders, build


def test_a_program_is_built_once(root: Path) -> None:
    built, build = builder()
    paths = set()
    for _ in range(3):
        paths.add(compiled("cpu", "toy", ".so", "key", build))
        forget()
    assert len(built) == len(paths) == 1
    assert paths.pop().read_bytes() == b"program"
    assert compiled("cpu", "toy", ".so", "another key", build).parent == root / "cpu"
    assert len(built) == 2
    assert len(list((root / "cpu").iterdir())) == 4, "two programs with their checksums, and no work"


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: os.truncate(path, 3),
    "empty": lambda path: path.write_bytes(b""),
    "one bit": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "no checksum": lambda path: path.with_name(path.name + ".sha256").unlink(),
    "another checksum": lambda path: path.with_name(path.name + ".sha256").write_bytes(b"\xff\xfe"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_program_is_built_again(damage: str) -> None:
    built, build = builder()
    path = compiled("cpu", "toy", ".so", "key", build)
    DAMAGE[damage](path)
    forget()
    assert compiled("cpu", "toy", ".so", "key", build) == path
    assert len(built) == 2
    assert path.read_bytes() == b"program"
    forget()
    compiled("cpu", "toy", ".so", "key", build)
    assert len(built) == 2


def test_a_library_and_a_cubin_that_were_cut_off() -> None:
    """To load such a library kills the process: a file may be half on the disk after a power cut, whole in name."""
    whole = {}
    for make in (lambda: compile_host(CODE, "toy"), lambda: cached_cubin(CUBIN, "toy", "sm_80")):
        path = make()
        whole[path] = len(path.read_bytes())
        os.truncate(path, whole[path] // 2)
        forget()
        assert make() == path
        assert len(path.read_bytes()) == whole[path]
    library = compile_host(CODE, "toy")
    assert ctypes.CDLL(str(library)).seven() == 7
    assert os.access(compile_host("int main() {}", "toy", suffix=".exe"), os.X_OK)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux names open files there")
def test_what_is_written_is_on_the_disk_before_it_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the machine leaves the old file or the new one: contents first, then the name, then the folder."""
    events, sync, replace = [], os.fsync, os.replace

    def fsync(number: int) -> None:
        events.append(("sync", Path(os.readlink(f"/proc/self/fd/{number}"))))
        sync(number)

    def named(source: Path, target: Path) -> None:
        events.append(("name", Path(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", named)
    path = compiled("cpu", "toy", ".so", "key", builder()[1])
    assert [kind for kind, _ in events] == ["sync", "name", "sync"] * 2
    assert [p for kind, p in events if kind == "name"] == [path, path.with_name(path.name + ".sha256")]
    assert events[2][1] == events[5][1] == path.parent


def test_copies_of_a_game_share_a_program(root: Path, tmp_path: Path) -> None:
    """Two clones of a repository, say; each is told of its own file."""
    for clone in ("one", "two"):
        (tmp_path / clone).mkdir()
        path = Path(shutil.copy(Glide.source(), tmp_path / clone))
        path.write_text(path.read_text().replace("e.speed[k] = 0.f", "e.speed[k + 2] = 0.f"))
        game = type("Glide", (Glide,), {"source": classmethod(lambda cls, path=path: path)})
        sim = Simulator(game, 1, device="cpu", debug=True)
        with pytest.raises(IndexError, match=rf"^{re.escape(str(path))}:\d+: "):
            sim.reset(seed=0)
    assert len(list((root / "cpu").glob("*.so"))) == 1


# ---- a cache that cannot be written ----


@pytest.mark.parametrize("fault", ["the root is a file", "the folder is a file", "the disk is full"])
def test_it_goes_on_in_a_temporary_folder(fault: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "the root is a file":
        root.write_text("")
    elif fault == "the folder is a file":
        root.mkdir()
        (root / "cpu").write_text("")
    else:
        replace = os.replace

        def full(source: Path, target: Path) -> None:
            if root in Path(target).parents:
                raise OSError(28, "No space left on device")
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
    built, build = builder()
    with pytest.warns(UserWarning, match=r"cache folder .*cpu cannot be written \(.*GPUZOO_CACHE_DIR") as found:
        path = compiled("cpu", "toy", ".so", "key", build)
    assert len(found) == 1
    assert root not in path.parents
    assert path.read_bytes() == b"program"
    so_far = len(built)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert compiled("cpu", "toy", ".so", "key", build) == path
        assert len(built) == so_far
        other = compiled("cpu", "toy", ".so", "another key", build)
        assert other.parent == path.parent


def test_a_cache_that_cannot_be_written_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compiled("cpu", "toy", ".so", "key", builder()[1])
    forget()
    monkeypatch.setattr(Path, "mkdir", lambda *a, **k: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    built, build = builder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled("cpu", "toy", ".so", "key", build) == path
    assert not built


_TEMPORARY = """
import ctypes, os, sys, warnings
warnings.simplefilter("ignore")
from gpuzoo.core.backend_cpu import compile_host
path = compile_host('extern "C" int seven() { return 7; }', "toy")
assert ctypes.CDLL(str(path)).seven() == 7
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert path.exists()
print(path)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_temporary_folder_goes_with_the_process_that_made_it(root: Path) -> None:
    root.write_text("")
    done = subprocess.run([sys.executable, "-c", _TEMPORARY], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert "gpuzoo-cache-" in str(path)
    assert not path.parent.parent.exists()


# ---- what killed processes leave ----

_KILLED = """
import os, signal, sys
from gpuzoo.core.compiled import compiled
compiled("cpu", "toy", ".so", "key", lambda folder: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_leftovers_are_swept_after_some_hours(root: Path) -> None:
    assert subprocess.run([sys.executable, "-c", _KILLED], timeout=60).returncode < 0
    left = list((root / "cpu").iterdir())
    assert len(left) == 1
    (left[0] / "unit.cpp").write_text("half")
    folder = root / "cpu"
    for name in (".toy-1.so.0123abcd.part", "kept-0123.so", "notes"):
        (folder / name).write_text("half")
    (folder / "tmpabcd_123").mkdir()
    old = time.time() - cache.STALE - 60
    for path in folder.iterdir():
        os.utime(path, (old, old))
    (folder / "work-young").mkdir()
    (folder / ".toy-2.so.0123abcd.part").write_text("half")
    path = compiled("cpu", "toy", ".so", "key", builder()[1])
    kept = {path.name, path.name + ".sha256", "kept-0123.so", "notes", "work-young", ".toy-2.so.0123abcd.part"}
    assert {p.name for p in folder.iterdir()} == kept


def test_processes_that_build_the_same_at_once_do_not_disturb_each_other(root: Path) -> None:
    def build(folder: Path) -> bytes:
        others.append(compiled("cpu", "toy", ".so", "key", builder()[1]))
        (root / "cpu" / f".{others[0].name}.0123abcd.part").write_text("half")
        return b"program"

    others: list[Path] = []
    path = compiled("cpu", "toy", ".so", "key", build)
    assert path == others[0]
    assert path.read_bytes() == b"program"
    assert (root / "cpu" / f".{path.name}.0123abcd.part").exists()
