"""Soak one plugin: `python -m tests.soak`, or `make soak`.

The plugin's process, its sockets, the MPS supervisor and the machine's library are real; the
kubelet is played. The API server is a real one with its own etcd, which `--quick` does without.
Exit code 0: nothing was lost or left over and nothing grew; 1: something was, or did.
"""

import argparse
import dataclasses
import signal
import sys
from collections.abc import Callable, Sequence

from benchmarks import record
from tests.soak import report, run, servers

CYCLES, RATE, TROUBLE_S, SEED = 36_000, 10.0, 60.0, 20261122
QUICK = run.Asked(cycles=240, rate=10.0, trouble_s=2.5, seed=SEED)
"""With a rate: as fast as it goes, a fast machine is done before anything goes wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, record."""
    chosen = _parser().parse_args(arguments)
    request = run.Asked(chosen.cycles, chosen.rate, chosen.trouble_seconds, chosen.seed)
    if chosen.quick:
        request = dataclasses.replace(QUICK, seed=chosen.seed)
    signal.signal(signal.SIGTERM, _end)
    if chosen.quick:
        return soak(request, servers.stand_in, keep=False, say=_print)
    return soak(request, servers.real, keep=True, say=_print)


def soak(
    request: run.Asked, served: servers.Served, *, keep: bool, say: Callable[[str], None]
) -> int:
    """One run; `keep` its figures."""
    item = run.Run(request, served, say)
    item.go()
    reported = report.Report.of(item, request)
    say(reported.text)
    if keep:
        say(f"written to {record.write('soak', reported.figures()).relative_to(run.ROOT)}")
    return 0 if reported.good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--cycles", type=int, default=CYCLES, help="how many claims in all")
    parser.add_argument(
        "--rate", type=float, default=RATE, help="claims a second; 0: as fast as it goes"
    )
    parser.add_argument(
        "--trouble-seconds", type=float, default=TROUBLE_S, help="a trouble so often; 0: none"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="draws claims and troubles")
    parser.add_argument("--quick", action="store_true", help="a minute of it; nothing is recorded")
    return parser


def _end(_signal: int, _frame: object) -> None:
    """End the run as Ctrl-C does: everything that was started is stopped."""
    raise KeyboardInterrupt


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
