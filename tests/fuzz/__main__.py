"""Every target for so many seconds, one after the other; or one input again (`--replay`).

What is learned stays in a folder outside the checkout, and the next run goes on from there.
"""

import argparse
import hashlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import targets

CACHE = Path.home() / ".cache" / "ration" / "fuzz"
_GRACE_S = 120
_STATS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+)")


def main(arguments: Sequence[str]) -> int:
    """0: nothing broke. 1: something did; how to see it again is printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets.TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--cache", type=Path, default=CACHE, help="what was learned and found")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="one input, for one TARGET")
    options = parser.parse_args(arguments)
    unknown = set(options.targets) - set(targets.TARGETS)
    if unknown or (options.replay is not None and len(options.targets) != 1):
        parser.error(
            f"expected {'one' if options.replay else 'some'} of {', '.join(targets.TARGETS)}"
        )
    if options.replay is not None:
        targets.TARGETS[options.targets[0]].hold(options.replay.read_bytes())
        return 0
    if importlib.util.find_spec("atheris") is None:
        parser.error("Atheris is not in this environment: make fuzz")
    chosen = options.targets or list(targets.TARGETS)
    print(f"{len(chosen)} targets, {options.seconds} s each; what is learned: {options.cache}")
    broken = [name for name in chosen if not _played(name, options.seconds, options.cache)]
    return 1 if broken else 0


def _played(name: str, seconds: int, cache: Path) -> bool:
    """Return whether nothing broke one target."""
    target = targets.TARGETS[name]
    corpus, seeds, path = cache / "corpus" / name, cache / "seeds" / name, cache / "found" / name
    for folder in (corpus, seeds, path):
        folder.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    previous = set(path.iterdir())
    command = [
        *(sys.executable, "-m", "tests.fuzz.led", name),
        *(str(corpus), str(seeds), f"-max_total_time={seconds}", f"-max_len={target.most}"),
        *(
            "-timeout=60",
            "-rss_limit_mb=4096",
            "-print_final_stats=1",
            f"-artifact_prefix={path}/",
        ),
    ]
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=seconds * 3 + _GRACE_S
    )
    tried = _STATS.search(ran.stderr)
    covered = _COVERED.findall(ran.stderr)
    inputs = f"{tried[1] if tried else '?'} inputs, {covered[-1] if covered else '?'} edges"
    if ran.returncode == 0:
        print(f"{name}: {inputs}, nothing found")
        return True
    _told(name, ran, sorted(set(path.iterdir()) - previous))
    return False


def _told(name: str, ran: "subprocess.CompletedProcess[str]", inputs: Sequence[Path]) -> None:
    """Print the failure, how to see it again, and the line for the regressions."""
    words = (ran.stdout + ran.stderr).splitlines()
    why = [line for line in words if re.match(r"\w*(Error|Exception|ERROR)\b|==\d+== ERROR", line)]
    print(f"{name}: BROKEN ({ran.returncode}): {why[0] if why else ' / '.join(words[-5:])}")
    for path in inputs:
        print(f"  again: python -m tests.fuzz {name} --replay {path}")
        print(f'  for tests/fuzz/regressions.py: "{name}": ({path.read_bytes()!r},)')


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
