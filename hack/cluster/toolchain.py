"""Programs of the cluster, from the cache; filled from official releases or by building.

The cache lies outside the checkout and is named by what went in (go.mod, go.sum, flags), so two
checkouts share it and a changed pin never meets an old program. A lock lets one builder work while
others wait; programs appear by a rename, so a killed build leaves nothing that looks finished.
"""

import concurrent.futures
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hack.cluster import errors, progress, releases, shell, supply, versions

_AT_ONCE = 2
_FETCH_S = 20.0


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
    """Fill the cache for a line of Kubernetes, and find every program of it.

    Raises ClusterError where a set cannot be had; the others are there then.
    """
    supply_all(versions.load().of(line), steps)
    return programs(line)


def programs(line: str) -> dict[str, Path]:
    """Every program of a line of Kubernetes, where it is once its set is there."""
    return {
        name: folder(tools) / name for tools in versions.load().of(line) for name in tools.binaries
    }


def program(name: str, steps: progress.Steps) -> Path:
    """One program of a set that is no line's own (`helm`, `kueue`), had if it is not there."""
    catalogue = versions.load()
    sets = (*catalogue.shared, *catalogue.optional)
    tools = next(one for one in sets if name in one.binaries)
    supply_all((tools,), steps)
    return folder(tools) / name


def supply_all(sets: Sequence[versions.ToolSet], steps: progress.Steps) -> None:
    """Have those sets that are not there; ClusterError, a line each, of those that cannot be."""
    choices = choose([tools for tools in sets if not folder(tools).is_dir()])
    fill([choice for choice in choices if not choice.refusal], steps)
    refusals = [choice.refusal for choice in choices if choice.refusal]
    if refusals:
        raise errors.ClusterError("\n".join(refusals))


def choose(sets: Sequence[versions.ToolSet]) -> tuple[supply.Choice, ...]:
    """How each set is had on this machine, by the way that RATION_PROGRAMS says, else AUTO."""
    chosen = _way(os.environ.get("RATION_PROGRAMS", ""))
    sites = frozenset() if chosen is supply.Way.BUILD else releases.answering(sets)
    go = _go() if sets else supply.Go(None)
    return tuple(
        supply.choose(
            tools,
            (tools.folder / "go.mod").read_text(),
            chosen,
            go,
            answers=tools.name in sites,
            environ=os.environ,
        )
        for tools in sets
    )


def fill(choices: Sequence[supply.Choice], steps: progress.Steps) -> None:
    """Have the sets, two at a time, the longest first: one fetches or links while another compiles.

    Raises what the first that failed raised, once all others are there.
    """
    longest_first = sorted(choices, key=lambda choice: -choice.tools.build_seconds)
    with concurrent.futures.ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        futures = [
            pool.submit(keep, folder(choice.tools), functools.partial(_fill, choice, steps))
            for choice in longest_first
        ]
    for future in futures:
        future.result()


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


def _fill(choice: supply.Choice, steps: progress.Steps, part: Path) -> None:
    tools = choice.tools
    if choice.way is supply.Way.RELEASE:
        with steps.step(f"Fetch {tools.name} {tools.version}", _FETCH_S) as advance:
            releases.fetch(tools, part, advance)
    else:
        with steps.step(f"Build {tools.name} {tools.version}", tools.build_seconds) as advance:
            _build(tools, part, advance)


def _way(text: str) -> supply.Way:
    try:
        return supply.Way(text or supply.Way.AUTO)
    except ValueError as error:
        expected = ", ".join(supply.Way)
        raise errors.ClusterError(f"RATION_PROGRAMS={text}: expected one of {expected}") from error


def _go() -> supply.Go:
    if shutil.which("go") is None:
        return supply.Go(None)
    # Outside any module, so that a pinned toolchain of this checkout cannot answer.
    found = versions.GoVersion.parse(shell.run(("go", "version"), cwd=Path("/")))
    return supply.Go(found, shell.run(("go", "env", "GOTOOLCHAIN"), cwd=Path("/")).strip())


def _build(tools: versions.ToolSet, out: Path, advance: progress.Advance) -> None:
    go_mod = (tools.folder / "go.mod").read_text()
    if not versions.is_pinned(tools, go_mod):
        raise errors.ClusterError(
            f"{tools.folder.name}/go.mod does not require {tools.module} {tools.version}, as "
            "versions.toml says: run python -m hack.cluster pin, and commit what it writes"
        )
    environment = {**_environment(tools), "CGO_ENABLED": "0"}
    advance(0.0, "fetching sources")
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
            built = min(count, total)
            told = "linking" if built == total else f"{built} of {total} packages"
            advance(0.9 * built / total, told)
    if build.returncode != 0:
        raise errors.CommandFailedError(tuple(command), build.returncode, log.read_text())
    for name, program_built in tools.built_as.items():
        (out / program_built).rename(out / name)


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
    return {**os.environ, **tools.environment(os.environ)}
