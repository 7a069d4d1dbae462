"""Run the suites one after the other, and say how long each took: `python -m benchmarks.suites`.

Those that want the local cluster come last, on one that is brought up for them and ended; the last
of them leaves its nodes there. A suite that fails ends it all.
"""

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import record

HERE: Mapping[str, str] = {
    "allocator": "allocator",
    "beside": "beside",
    "quality": "quality",
    "queues": "queues",
    "nodes": "nodes",
    "page": "page",
    "commands": "commands",
    "hold": "hold",
    "placement": "placement",
}
"""Module and arguments of each suite that needs no cluster."""
ON_CLUSTER: Mapping[str, str] = {
    "node": "node",
    "control_plane": "control_plane --gate",
    "control_plane_kwok": "control_plane --kwok --gate --pace 3 --pace-seconds 14",
    "herd": "herd",
    "control_plane_5000": "control_plane --nodes 5000 --keep --gate --pods 150 "
    "--pace 3 --pace-seconds 14",
}
_UP, _DOWN = "hack.cluster up --nodes 1 --controllers 2", "hack.cluster down"
_MINUTE_S = 60
Run = Callable[[str], float]
"""Runs a module with its arguments, and returns the seconds that it took."""


def main(arguments: Sequence[str] | None = None, run: Run | None = None) -> int:
    """Run suites; 1 when one failed. The table is printed anyway."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [*HERE, *ON_CLUSTER]
    parser.add_argument("suites", nargs="*", choices=(*names, []), help="all, if none is named")
    options = parser.parse_args(arguments)
    chosen = options.suites or names
    durations: dict[str, float] = {}
    try:
        for name, seconds in _each(chosen, run or _run):
            durations[name] = durations.get(name, 0.0) + seconds
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(error.cmd)}", file=sys.stderr)
        return 1
    finally:
        print(table(durations))
    return 0


def table(durations: Mapping[str, float]) -> str:
    """Return a line a suite with its minutes and seconds, and the total."""
    rows = [*durations.items(), ("total", sum(durations.values()))]
    return "\n".join(f"{name:20} {_clock(seconds):>8}" for name, seconds in rows)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE_S)
    return f"{minutes} m {rest:02} s"


def _each(chosen: Sequence[str], run: Run) -> Iterator[tuple[str, float]]:
    """Run each; yield its name and seconds. The cluster's start and end count as `cluster`."""
    for name, command in HERE.items():
        if name in chosen:
            yield name, run(f"benchmarks.{command}")
    clustered = {name: command for name, command in ON_CLUSTER.items() if name in chosen}
    if not clustered:
        return
    with contextlib.ExitStack() as ends:
        yield "cluster", run(_UP)
        ends.callback(run, _DOWN)
        for name, command in clustered.items():
            yield name, run(f"benchmarks.{command}")
        ends.pop_all()
    yield "cluster", run(_DOWN)


def _run(command: str) -> float:
    began = time.monotonic()
    words = [sys.executable, "-m", *command.split()]
    print(f"== {command}", flush=True)
    subprocess.run(words, cwd=record.ROOT, check=True)
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
