"""Try a DRA driver as a kubelet does: `python -m tests.blackbox --subject FILE`.

A real cluster comes up on this machine; the driver's plugin runs unmodified on its nodes, behind a
proxy that counts, delays, fails and cuts what the kubelet asks of it. All else is seen from
outside: pods, events, slices, the kubelet's metrics, what containers have. The cases are those of
Kubernetes' own DRA suites, and some of ours.

A subject file says who is tried and what it offers (docs/how-to/blackbox.md); a case that needs
what is not offered is skipped, and told so. Exit code 0: no case failed; 1: one did; 2: the
input is bad, or there is no cluster to be had.

  python -m tests.blackbox --subject minimal
  python -m tests.blackbox --subject my-driver.toml --cases BB-1 BB-2.3 -o markdown
  python -m tests.blackbox --list
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record
from hack.cluster import errors
from tests.blackbox import catalogue, report, run, subject

BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and tell; the exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.subject is None and not options.list:
        parser.error("--subject is missing; expected a subject file")
    try:
        cases = tuple(catalogue.chosen(catalogue.load(), options.cases))
        if options.list:
            _say(_listed(cases))
            return 0
        names = tuple(options.on)
        file = subject.find(options.subject)
        request = run.Asked(file, cases, options.nodes, options.kubernetes, names)
        outcome = run.go(request, _tell)
    except (LookupError, subject.BadSubjectError, errors.ClusterError) as e:
        sys.stderr.write(f"error: {e}\n")
        return BAD_INPUT
    _say(_told(outcome, options.output))
    if options.keep is not None:
        report.keep(options.keep, outcome, record.commit())
    return 0 if outcome.good else 1


def _listed(cases: Sequence[catalogue.Case]) -> str:
    rows = (
        f"{case.number:8}{case.title}\n        {case.origin}"
        + (f"; needs {', '.join(case.needs)}" if case.needs else "")
        for case in cases
    )
    return "\n".join(rows)


def _told(created: report.Report, output: str) -> str:
    if output == "json":
        return json.dumps(created.document(), indent=2)
    return created.markdown() if output == "markdown" else created.text()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.blackbox",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--subject", metavar="FILE", help="who is tried; or a name: ration, minimal, flawed"
    )
    parser.add_argument(
        "--cases", nargs="+", default=[], metavar="CASE", help="groups or numbers: BB-2 BB-4.1"
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=2,
        choices=range(1, 12),
        metavar="NODES",
        help="groups that run side by side, 1 to 11; two cores are enough for two",
    )
    parser.add_argument(
        "--on", nargs="+", default=[], metavar="NODE", help="nodes to use of a cluster that is up"
    )
    parser.add_argument(
        "--kubernetes",
        default=os.environ.get("K8S") or None,
        metavar="LINE",
        help="1.37, 1.36; K8S says the same",
    )
    parser.add_argument("-o", "--output", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the results there as well")
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
