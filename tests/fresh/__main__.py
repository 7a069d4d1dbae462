"""Both commands of README.md from nothing: `make fresh`, `python -m tests.fresh --dry-run`.

A clone of HEAD, a HOME with nothing in it, and the oldest Go that README.md names, which may fetch
no other. Everything that is fetched and built lies below --into; what the distribution installed
stays. A second round finds the first one's caches. Exit code 0: all ended well; 1: something did
not; 2: the folder is there already.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record
from hack.cluster import errors, shell, versions
from tests.fresh import plan, results, running

ROOT = Path(__file__).parents[2]
_INTO = Path(tempfile.gettempdir()) / "ration-fresh"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, keep, tell."""
    chosen = _parser().parse_args(arguments)
    position = plan.Place(chosen.into.resolve())
    steps = plan.steps(boot=not chosen.no_cluster)
    # One commit for all rounds, whatever is committed here meanwhile.
    commit = record.commit()
    if chosen.dry_run:
        environment = plan.environment(os.environ, position, None)
        changed = {name: environment[name] for name in ("HOME", "GOTOOLCHAIN")}
        _say(*(f"{name}={value}" for name, value in changed.items()))
        _say(*(" ".join(words) for words in plan.clone(ROOT, commit, position.checkout(1))))
        _say(*(step.text for step in steps))
        return 0
    if position.root.exists():
        sys.stderr.write(f"{position.root} is there: a lane begins with nothing; remove it\n")
        return 2
    outcome = _go(position, chosen.go)
    environment = plan.environment(os.environ, position, outcome)
    rounds = []
    for number in range(1, chosen.rounds + 1):
        running.clone(ROOT, commit, position.checkout(number))
        rounds.append(running.run(position, number, steps, environment, _say))
        _say(*results.lines(rounds[-1]))
    word = shell.run(("go", "version"), env=environment, cwd=Path("/")).split()[2]
    result = results.Result(commit, word, not chosen.no_cluster, tuple(rounds))
    results.keep(result, chosen.result)
    good = all(item.is_green for item in rounds)
    if good and not chosen.keep:
        shutil.rmtree(position.root)
    else:
        _say(f"logs are in {position.root / 'logs'}")
    return 0 if good else 1


def _go(position: plan.Place, path: Path | None) -> Path | None:
    """The folder of the oldest Go that builds a cluster, fetched as a module; None: the machine's.

    The machine's own is taken where it is that one, or where that one cannot be had.
    """
    if path is not None:
        return path
    oldest = versions.oldest_go(versions.load())
    go_version = versions.GoVersion.parse(shell.run(("go", "version"), cwd=Path("/")))
    if go_version == oldest:
        return None
    environment = {
        **os.environ,
        "GOTOOLCHAIN": f"go{oldest}",
        "GOMODCACHE": str(position.toolchain),
        "GOFLAGS": "-modcacherw",
    }
    try:
        root = shell.run(("go", "env", "GOROOT"), cwd=Path("/"), env=environment)
    except errors.ClusterError as error:
        _say(f"Go {oldest} cannot be had, so {go_version} is taken: {error}")
        return None
    return Path(root.strip()) / "bin"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fresh", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--into", type=Path, default=_INTO, help="a folder that is not there yet")
    parser.add_argument("--go", type=Path, help="the folder of the go to take; default the oldest")
    parser.add_argument("--rounds", type=int, default=2, help="the second one on warm caches")
    parser.add_argument("--no-cluster", action="store_true", help="set up and build, boot nothing")
    parser.add_argument("--keep", action="store_true", help="leave the folder of a good end too")
    parser.add_argument("--result", type=Path, default=results.PATH, help="the file to keep it in")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")
    return parser


def _say(*messages: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in messages))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
