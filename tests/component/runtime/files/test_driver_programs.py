"""Programs in a file system of their own, which lacks what it lacks and may be read only."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.runtime.files import driver_programs, mounts
from simulator import compiler

HERE = Path(__file__).parents[4]
TOOLS = ("sh", "ls", "cat", "stat", "readlink")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")


@pytest.fixture(scope="module")
def shared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a loader, libraries and some programs: no /dev, no /proc, and no more folders."""
    root = tmp_path_factory.mktemp("made")
    programs = [Path(shutil.which(name) or name) for name in TOOLS]
    listed = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout
    libraries = {Path(word) for word in listed.split() if word.startswith("/lib")}
    for source in {*programs, *libraries, *compiler.system()}:
        copy = root / source.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    (root / "mark").write_text("of the driver's root\n")
    return root


@pytest.fixture(params=["read and written", "read only"])
def root(shared_root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    if request.param == "read and written":
        yield shared_root
        return
    path = tmp_path / "read-only"
    path.mkdir()
    subprocess.run(["mount", "--bind", shared_root, path], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
        yield path
    finally:
        unmount(path)


def unmount(path: Path) -> None:
    subprocess.run(["umount", path], check=True)


def run(root: Path, script: str, **shown: Path) -> str:
    """Return the output of a shell in the root; `shown` maps variables to our folders."""
    sh = str(shutil.which("sh"))
    program = driver_programs.Program(root, sh, {"PATH": "/usr/bin:/bin"})
    places = {str(path): path for path in shown.values()}
    environment = {**program.environment, **{name: str(path) for name, path in shown.items()}}
    command = [program.path, "-c", script]
    return program.call(
        lambda: subprocess.check_output(command, env=environment, cwd="/", text=True), places
    )


def test_a_program_has_its_own_root_and_the_kernels_folders(root: Path) -> None:
    assert run(root, "cat /mark") == "of the driver's root\n"
    assert run(root, "readlink /proc/self/exe; ls -d /dev/null /sys/bus").split()[1:] == [
        "/dev/null",
        "/sys/bus",
    ]


def test_a_folder_of_ours_has_its_path_there_too(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "far/below/pipe"
    folder.mkdir(parents=True)
    (folder / "control").write_text("ours")
    assert run(root, 'cat "$PIPE/control"; echo back > "$PIPE/answer"', PIPE=folder) == "ours"
    assert (folder / "answer").read_text() == "back\n"


def test_a_mount_of_ours_is_shown_over_the_folder_that_the_root_has_there(
    shared_root: Path, tmp_path: Path
) -> None:
    """Mount as a pod's mounts, which may not have come back to it by way of the host."""
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    seen = shared_root / tmp_path.relative_to("/")
    seen.mkdir(parents=True)
    subprocess.run(["mount", "--bind", tmp_path, seen], check=True)
    try:
        mounts.mount_tmpfs(pipe, 1 << 20)
        (pipe / "control").write_text("on the mount")
        assert run(shared_root, 'cat "$PIPE/control"', PIPE=pipe) == "on the mount"
    finally:
        unmount(seen)
        unmount(pipe)
        shutil.rmtree(shared_root / tmp_path.parts[1])


def test_the_root_and_our_own_mounts_stay_as_they_are(root: Path, tmp_path: Path) -> None:
    previous = sorted(path.name for path in root.iterdir()), mounts.list_mounts(), Path("/").stat()
    (tmp_path / "pipe").mkdir()
    run(root, "ls /", PIPE=tmp_path / "pipe")
    after = sorted(path.name for path in root.iterdir()), mounts.list_mounts(), Path("/").stat()
    assert previous == after


def test_siblings_of_a_new_path_stay_visible(root: Path, tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    names = set(run(root, "ls /", PIPE=tmp_path / "pipe").split())
    own = {path.name for path in root.iterdir()}
    assert names == own | {"dev", "proc", "sys", tmp_path.parts[1]}
    link = "readlink /lib64 || true"
    assert run(root, link, PIPE=tmp_path / "pipe") == run(root, link)


def test_siblings_that_are_removed_meanwhile_do_not_fail_the_start(
    shared_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove them between the reading of a new path's parent, /tmp say, and its covering."""
    (shared_root / "folder").mkdir()
    (shared_root / "file").touch()
    open_path = os.open

    def open_and_remove(path: Path, flags: int, mode: int = 0o777, **folder: int) -> int:
        handle = open_path(path, flags, mode, **folder)
        if flags & os.O_PATH and path == shared_root / "folder":
            path.rmdir()
        if flags & os.O_PATH and path == shared_root / "file":
            path.unlink()
        return handle

    monkeypatch.setattr(os, "open", open_and_remove)
    (tmp_path / "pipe").mkdir()
    names = set(run(shared_root, "ls /", PIPE=tmp_path / "pipe").split())
    assert {"mark", "dev"} <= names
    assert not {"folder", "file"} & names


def test_a_program_that_cannot_be_started_is_told(root: Path) -> None:
    program = driver_programs.Program(root, "/nowhere", {})
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        program.call(lambda: subprocess.run(["/nowhere"], check=True))


def test_without_the_right_to_mount_it_says_what_is_missing(shared_root: Path) -> None:
    code = (
        "from pathlib import Path; from driver.runtime.files import driver_programs as d; "
        f"d.Program(Path({str(shared_root)!r}), '/x', {{}}).call(lambda: None)"
    )
    weak = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    command = (*weak, sys.executable, "-c", code)
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert f"enter {shared_root}: Operation not permitted: only root with all cap" in done.stderr
