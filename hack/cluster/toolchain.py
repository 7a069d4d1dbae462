"""Programs of the cluster, from the cache; filled from official releases or by building.

The cache lies outside the checkout and is named by what went in (go.mod, go.sum, flags), so two
checkouts share it and a changed pin never meets an old program. A lock lets one builder work while
others wait; programs appear by a rename, so a killed build leaves nothing that looks finished.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hack.cluster import errors, progress, releases, shell, versions


def cache_root() -> Path:
    """The cache folder of this user (XDG_CACHE_HOME)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ration"


def bytecode() -> Path:
    """Compiled Python of all checkouts; it says of which file and of when it is."""
    return cache_root() / "bytecode"


def folder(tools: versions.ToolSet) -> Path:
    """Where the programs of a set are once they are there."""
    parts = [
        (tools.folder / "go.mod").read_bytes(),
        (tools.folder / "go.sum").read_bytes(),
        " ".join(tools.flags()).encode(),
        releases.architecture().encode(),
    ]
    return cache_root() / "tools" / f"{tools.name}-{versions.cache_key(parts)}"


def missing(line: str) -> tuple[versions.ToolSet, ...]:
    """The sets of a line of Kubernetes ("1.37") that are not in the cache."""
    return tuple(tools for tools in versions.load().of(line) if not folder(tools).is_dir())


def ensure(line: str, steps: progress.Steps) -> dict[str, Path]:
    """Fill the cache for a line of Kubernetes, and find every program of it."""
    for tools in missing(line):
        keep(folder(tools), functools.partial(_fill, tools, steps))
    return {
        name: folder(tools) / name for tools in versions.load().of(line) for name in tools.binaries
    }


def program(name: str, steps: progress.Steps) -> Path:
    """One program of a set that is no line's own (`helm`, `kueue`), built if it is not there."""
    catalogue = versions.load()
    sets = (*catalogue.shared, *catalogue.optional)
    tools = next(one for one in sets if name in one.binaries)
    keep(folder(tools), functools.partial(_fill, tools, steps))
    return folder(tools) / name


def source(tools: versions.ToolSet) -> Path:
    """The sources of a set's module, read only, as Go keeps them: manifests and charts too."""
    words = ("go", "mod", "download", "-json", tools.module)
    answer = shell.run(words, cwd=tools.folder, env=_environment(tools))
    return Path(releases.json_field(answer, "Dir"))


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock file; the kernel frees it when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(place: Path, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, named NAME-KEY; `make` fills it if it is not there.

    One builder works while others wait, and the folder appears whole or not at all.
    """
    name = place.name.rpartition("-")[0]
    with lock(place.parent / f"{name}.lock"):
        if not place.is_dir():
            for leftover in place.parent.glob(f".{name}-*"):
                shutil.rmtree(leftover)
            with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{name}-") as scratch:
                part = Path(scratch) / "bin"
                part.mkdir()
                make(part)
                part.rename(place)
    return place


def _fill(tools: versions.ToolSet, steps: progress.Steps, part: Path) -> None:
    if not releases.fetch(tools, part):
        with steps.step(f"Build {tools.name} {tools.version}", tools.build_seconds) as advance:
            _build(tools, part, advance)


def _build(tools: versions.ToolSet, out: Path, advance: progress.Advance) -> None:
    go_mod = (tools.folder / "go.mod").read_text()
    if not versions.is_pinned(tools, go_mod):
        raise errors.ClusterError(
            f"{tools.folder.name}/go.mod does not require {tools.module} {tools.version}, as "
            "versions.toml says: run python -m hack.cluster pin, and commit what it writes"
        )
    environment = {**_environment(tools), "CGO_ENABLED": "0"}
    listing = shell.run(("go", "list", "-deps", "tool"), cwd=tools.folder, env=environment)
    total = len(listing.splitlines())
    command = ["go", "build", "-v", *tools.flags(), "-o", f"{out}/", "tool"]
    log = cache_root() / f"build-{tools.name}.log"
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, cwd=tools.folder, env=environment, stderr=subprocess.PIPE, text=True
        ) as build,
    ):
        for count, line in enumerate(build.stderr or (), 1):
            written.write(line)
            # Linking follows the last package and takes about a tenth of the time.
            advance(0.9 * min(count / total, 1.0))
    if build.returncode != 0:
        raise errors.CommandFailedError(tuple(command), build.returncode, log.read_text())
    for name, built in tools.built_as.items():
        (out / built).rename(out / name)


def pin(tools: versions.ToolSet) -> None:
    """Write go.mod and go.sum of a set from versions.toml."""
    tools.folder.mkdir(parents=True, exist_ok=True)
    upstream = ""
    if tools.staging is not None:
        with tempfile.TemporaryDirectory() as scratch:
            answer = shell.run(
                ("go", "mod", "download", "-json", f"{tools.module}@{tools.version}"),
                cwd=Path(scratch),
            )
            upstream = Path(releases.json_field(answer, "GoMod")).read_text()
    (tools.folder / "go.mod").write_text(versions.render_go_mod(tools, upstream))
    (tools.folder / "go.sum").unlink(missing_ok=True)
    shell.run(("go", "mod", "tidy"), cwd=tools.folder, env=_environment(tools))


def _environment(tools: versions.ToolSet) -> dict[str, str]:
    return {**os.environ, **tools.environment()}
