"""Read what a machine with NVIDIA GPUs really does, and keep it: one JSON line a fact.

    python -m hack.hardware --level read --out DIR      changes nothing (about 6 minutes)
    python -m hack.hardware --level mps --out DIR       and MPS daemons of its own (10 more)
    python -m hack.hardware --level own --out DIR       and MIG, compute mode, time slices, reset
    python -m hack.hardware pack FILE                   one file to carry, with what it needs
    python -m hack.hardware page DIR...                 what came back, row by row

Only --level own changes settings, each undone by its own step; it is for a machine that is yours
alone. Each step is a process with a time limit, so what hangs costs its own facts. DIR holds
facts.jsonl, raw outputs, and all of it in hardware.tar.gz.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from driver import errors
from driver.runtime.files import driver_search
from hack.hardware import machine, runner, steps


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 where a step did not come to its end, 2 for bad arguments."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {"step": _step, "pack": _pack, "page": _page}
    try:
        if words and words[0] in commands:
            return commands[words[0]](words[1:])
        return _run(words)
    except errors.RationError as e:
        sys.stderr.write(f"{e}\n")
        return 2


def _run(words: Sequence[str]) -> int:
    parser = _parser("python -m hack.hardware")
    parser.description = __doc__
    parser.add_argument(
        "--level",
        choices=steps.LEVELS,
        default="read",
        help="how far to go; each includes the ones before (read)",
    )
    parser.add_argument(
        "--step", action="append", default=[], help="this step only; may be given again"
    )
    parser.add_argument("--list", action="store_true", help="print the steps and run none")
    options = parser.parse_args(words)
    unknown = set(options.step) - {step.name for step in steps.ALL}
    if unknown:
        raise errors.BadInput("--step", f"no step {min(unknown)!r}", "a name of --list")
    chosen = steps.upto(options.level, options.step)
    if options.list:
        for step in chosen:
            sys.stdout.write(f"{step.level:5} {step.name:14} {step.summary}\n")
        return 0
    target = _machine(options)
    failed = runner.Runner(target, runner.this_program(), _print).run(chosen)
    _print(f"{len(chosen) - failed} of {len(chosen)} steps; see {target.out / runner.ARCHIVE}")
    return 1 if failed else 0


def _step(words: Sequence[str]) -> int:
    parser = _parser("python -m hack.hardware step")
    parser.add_argument("name")
    parser.add_argument("--undo", action="store_true")
    options = parser.parse_args(words)
    return runner.child(options.name, _machine(options), undo=options.undo)


def _pack(words: Sequence[str]) -> int:
    from hack.hardware import pack  # noqa: PLC0415 - not in the packed file

    parser = argparse.ArgumentParser(prog="python -m hack.hardware pack")
    parser.add_argument("file", type=Path, help="the file to write, a Python zip application")
    parser.add_argument(
        "--python", default="3.12", help="the version of Python that is there (3.12)"
    )
    options = parser.parse_args(words)
    size = pack.write(options.file, options.python)
    _print(f"{options.file}: {size / 1e6:.1f} MB; run it there: python3 {options.file.name} --help")
    return 0


def _page(words: Sequence[str]) -> int:
    from hack.hardware import page  # noqa: PLC0415 - not in the packed file

    parser = argparse.ArgumentParser(prog="python -m hack.hardware page")
    parser.add_argument("folders", type=Path, nargs="+", help="output folders of runs")
    options = parser.parse_args(words)
    sys.stdout.write(page.render(page.read(options.folders)))
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="the folder for output (hardware-DATE-TIME)")
    parser.add_argument(
        "--driver-root",
        default=driver_search.AUTO,
        help="where the NVIDIA driver is installed; auto: the usual places (auto)",
    )
    parser.add_argument("--host-root", type=Path, default=Path("/"), help="the host's root (/)")
    return parser


def _machine(options: argparse.Namespace) -> machine.Machine:
    setting = options.driver_root
    root = setting if setting == driver_search.AUTO else Path(setting)
    out = (options.out or runner.default_folder()).absolute()
    return machine.Machine(out, root, options.host_root)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
