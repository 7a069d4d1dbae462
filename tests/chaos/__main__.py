"""Break a real cluster again and again under load: `python -m tests.chaos`, or `make chaos`.

It brings up a cluster of its own, with the driver as processes, and takes it down. Exit code 0:
every invariant held; 1: one did not; 2: what was asked makes no sense.
"""

import argparse
import contextlib
import itertools
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import record
from driver import errors
from hack.cluster import api, layout, store
from hack.cluster import errors as cluster_errors
from tests.chaos import draw, load, run, world

FAULTS, QUICK, SEED, AT_ONCE = 500, 12, 20261122, 20
KEEP = world.ROOT / ".cluster" / "chaos"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, record."""
    chosen = _parser().parse_args(arguments)
    try:
        faults = tuple(_faults(chosen))
    except (errors.BadInput, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    signal.signal(signal.SIGTERM, end)
    KEEP.mkdir(parents=True, exist_ok=True)
    (KEEP / f"{chosen.seed}.jsonl").write_text(draw.render(faults))
    request = run.Asked(chosen.seed, faults, chosen.stop_at_first, KEEP, load.Measure(chosen.pods))
    try:
        return chaos(request, record_it=len(faults) >= FAULTS)
    except cluster_errors.ClusterError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        say("ended by hand: all of it is down")
        return 1


def chaos(request: run.Asked, *, record_it: bool) -> int:
    """One run; its figures are kept with `record_it`."""
    with cluster() as up, tempfile.TemporaryDirectory() as folder:
        with world.opened(up, Path(folder)) as opened:
            item = run.Run(opened, request, say)
            try:
                item.go()
            finally:
                say(item.book.text())
        if record_it:
            say(f"written to {record.write('chaos', item.book.figures()).relative_to(world.ROOT)}")
    return 0 if item.book.good else 1


@contextlib.contextmanager
def cluster() -> Iterator[api.Cluster]:
    """A cluster of this run's own. Raises ClusterError when one is up already."""
    owner = store.owner(layout.Layout(world.ROOT))
    if owner is not None:
        raise cluster_errors.OwnedElsewhereError(owner)
    try:
        _hack("up", "--nodes", str(draw.NODES), "--controllers", str(len(world.CONTROLLERS)))
        yield api.Cluster.load(world.ROOT)
    finally:
        _hack("down")


def _hack(*arguments: str) -> None:
    command = [sys.executable, "-m", "hack.cluster", *arguments]
    subprocess.run(command, cwd=world.ROOT, check=True, stdout=subprocess.DEVNULL)


def _faults(chosen: argparse.Namespace) -> Iterator[draw.Fault]:
    if chosen.replay:
        yield from draw.parse(Path(chosen.replay).read_text(), chosen.replay)
        return
    among = draw.kinds(chosen.only) if chosen.only else frozenset(draw.Kind)
    count = QUICK if chosen.quick else chosen.faults
    yield from itertools.islice(draw.faults(chosen.seed, among, chosen.first), count)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--faults", type=int, default=FAULTS, help="how many")
    parser.add_argument("--seed", type=int, default=SEED, help="draws faults and pods")
    parser.add_argument(
        "--from", type=int, default=0, dest="first", help="the first fault's number"
    )
    parser.add_argument("--only", default="", help="kinds of faults, with commas between")
    parser.add_argument("--replay", default="", help="a file of faults, as a run has written it")
    parser.add_argument("--pods", type=int, default=AT_ONCE, help="how many pods at once")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first breach")
    parser.add_argument("--quick", action="store_true", help="a dozen; nothing is recorded")
    return parser


def say(line: str) -> None:
    """At once, also into a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def end(_signal: int, _frame: object) -> None:
    """End the run as Ctrl-C does: everything that was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
