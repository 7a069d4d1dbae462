"""Run the gates: `python -m tests.gates`, or some: `--only 3,11`, `--having blackbox`.

Each gate is a list of commands, run one after the other as they stand in docs/explanation/gates.md;
what each ended with goes to tests/gates/results.json, from which `make docs` makes that page. All
of them take most of a day's work: hours, on two cores, as root. Exit code 0: all that were run are
green; 1: one is not; 2: there is no such gate.
"""

import argparse
import dataclasses
import signal
import sys
from collections.abc import Sequence

from benchmarks import record
from driver import clock
from tests.gates import results, running, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, keep, tell."""
    chosen = _parser().parse_args(arguments)
    try:
        gates = [_having(gate, chosen.having) for gate in _chosen(chosen.only)]
        gates = [gate for gate in gates if gate.commands]
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if chosen.list:
        _say("\n".join(_listed(gate) for gate in gates))
        return 0
    for entry in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell's background jobs are started deaf to one
        signal.signal(entry, signal.default_int_handler)
    minutes = sum(command.minutes for gate in gates for command in gate.commands)
    _say(f"{len(gates)} gates, about {minutes:.0f} minutes")
    good = True
    for gate in gates:
        for command in gate.commands:
            good = _run(gate, command) and good
    return 0 if good else 1


def _run(gate: table.Gate, command: table.Command) -> bool:
    """One command; whether it is green."""
    _say(f"gate {gate.number}: {command.text}")
    time = clock.SystemClock()
    began = time.monotonic()
    code, last = running.run(command)
    took_s = round(time.monotonic() - began)
    results.keep(results.Result(command.text, code, took_s, last, record.commit()))
    _say(f"  {'green' if code == 0 else f'NOT GREEN, exit code {code}'} after {took_s} s: {last}")
    return code == 0


def _chosen(only: str) -> list[table.Gate]:
    if not only:
        return list(table.GATES)
    gates = {str(gate.number): gate for gate in table.GATES}
    wrong = [word for word in only.split(",") if word not in gates]
    if wrong:
        raise ValueError(f"--only: no gate {', '.join(wrong)}; expected some of 1 to {len(gates)}")
    return [gates[word] for word in only.split(",")]


def _having(gate: table.Gate, words: str) -> table.Gate:
    commands = tuple(command for command in gate.commands if words in command.text)
    return dataclasses.replace(gate, commands=commands)


def _listed(gate: table.Gate) -> str:
    return "\n".join(
        [f"{gate.number}. {gate.asks}", *(f"   {command.text}" for command in gate.commands)]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gates", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", default="", help="numbers, with commas between; all without it")
    parser.add_argument("--having", default="", help="of these the commands that have this in them")
    parser.add_argument(
        "--list", action="store_true", help="say what would be run, and run nothing"
    )
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
