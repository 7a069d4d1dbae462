"""Both commands of README.md from nothing: `make fresh`, `python -m tests.fresh --dry-run`.

A clone of HEAD, a HOME with nothing in it, and the oldest Go that README.md names, which may fetch
no other. Everything that is fetched and built lies below --into; what the distribution installed
stays. A second round finds the first one's caches. Exit code 0: all ended well; 1: something did
not; 2: the folder is there already.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import record
from driver import clock
from hack.cluster import errors, shell, versions
from tests.fresh import caches, plan, results

ROOT = Path(__file__).parents[2]
_INTO = Path(tempfile.gettempdir()) / "ration-fresh"
_LONGEST = 160


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, keep, tell."""
    chosen = _parser().parse_args(arguments)
    place = plan.Place(chosen.into.resolve())
    steps = plan.steps(boot=not chosen.no_cluster)
    if chosen.dry_run:
        environment = plan.environment(os.environ, place, None)
        changed = {name: environment[name] for name in ("HOME", "GOTOOLCHAIN")}
        _say(*(f"{name}={value}" for name, value in changed.items()))
        _say(*(" ".join(words) for words in plan.clone(ROOT, record.commit(), place.checkout(1))))
        _say(*(step.text for step in steps))
        return 0
    if place.root.exists():
        sys.stderr.write(f"{place.root} is there: a lane begins with nothing; remove it\n")
        return 2
    go = _go(place, chosen.go)
    environment = plan.environment(os.environ, place, go)
    rounds = []
    for number in range(1, chosen.rounds + 1):
        rounds.append(_round(place, number, steps, environment))
        _say(*results.lines(rounds[-1]))
    told = shell.run(("go", "version"), env=environment, cwd=Path("/")).split()[2]
    found = results.Result(record.commit(), told, not chosen.no_cluster, tuple(rounds))
    results.keep(found, chosen.result)
    if not chosen.keep:
        shutil.rmtree(place.root)
    return 0 if all(one.is_green for one in rounds) else 1


def _go(place: plan.Place, given: Path | None) -> Path | None:
    """The folder of the oldest Go that builds a cluster, fetched as a module; None: the machine's.

    The machine's own is taken where it is that one, or where that one cannot be had.
    """
    if given is not None:
        return given
    oldest = versions.oldest_go(versions.load())
    found = versions.GoVersion.parse(shell.run(("go", "version"), cwd=Path("/")))
    if found == oldest:
        return None
    environment = {
        **os.environ,
        "GOTOOLCHAIN": f"go{oldest}",
        "GOMODCACHE": str(place.toolchain),
        "GOFLAGS": "-modcacherw",
    }
    try:
        root = shell.run(("go", "env", "GOROOT"), cwd=Path("/"), env=environment)
    except errors.ClusterError as error:
        _say(f"Go {oldest} cannot be had, so {found} is taken: {error}")
        return None
    return Path(root.strip()) / "bin"


def _round(
    place: plan.Place, number: int, steps: Sequence[plan.Step], environment: Mapping[str, str]
) -> results.Round:
    place.home.mkdir(parents=True, exist_ok=True)
    checkout = place.checkout(number)
    for words in plan.clone(ROOT, record.commit(), checkout):
        shell.run(words)
    before = caches.sizes(place.caches())
    ended: list[results.Ended] = []
    for step in steps:
        _say(f"{step.text} ...")
        ended.append(_run(step, checkout, place.log(number, step.name), environment))
        if ended[-1].code:
            break
    grown = caches.grown(before, caches.sizes(place.caches()))
    took = caches.timings(place.home / ".cache" / "ration" / "timings.json") if number == 1 else {}
    return results.Round("cold" if number == 1 else "warm", tuple(ended), grown, took)


def _run(
    step: plan.Step, checkout: Path, log: Path, environment: Mapping[str, str]
) -> results.Ended:
    log.parent.mkdir(parents=True, exist_ok=True)
    time = clock.SystemClock()
    began = time.monotonic()
    with log.open("w") as written:
        code = subprocess.run(
            step.words,
            cwd=checkout,
            env=environment,
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        ).returncode
    seconds = round(time.monotonic() - began)
    told = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return results.Ended(step.text, code, seconds, (told[-1] if told else "")[:_LONGEST])


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.fresh", description=(__doc__ or "").splitlines()[0]
    )
    made.add_argument("--into", type=Path, default=_INTO, help="a folder that is not there yet")
    made.add_argument("--go", type=Path, help="the folder of the go to take; default the oldest")
    made.add_argument("--rounds", type=int, default=2, help="the second one on warm caches")
    made.add_argument("--no-cluster", action="store_true", help="set up and build, boot nothing")
    made.add_argument("--keep", action="store_true", help="leave the folder, logs and caches in it")
    made.add_argument("--result", type=Path, default=results.PATH, help="the file to keep it in")
    made.add_argument("--dry-run", action="store_true", help="say what would be run")
    return made


def _say(*told: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in told))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
