"""Runs steps one after the other, each a process with a limit of its own, and keeps their facts."""

import contextlib
import datetime as dt
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hack.hardware import facts, machine, steps

ARCHIVE = "hardware.tar.gz"
_UNDO_S = 120.0


class Runner:
    """Writes facts as they come; `say` tells the progress."""

    def __init__(
        self, target: machine.Machine, command: tuple[str, ...], say: Callable[[str], None]
    ) -> None:
        self._machine = target
        self._command = command
        self._say = say

    def run(self, chosen: Iterable[steps.Step]) -> int:
        """Run steps; how many did not come to their end."""
        self._machine.out.mkdir(parents=True, exist_ok=True)
        chosen = tuple(chosen)
        failed = 0
        with (self._machine.out / facts.FILE).open("a") as lines:
            for number, step in enumerate(chosen, 1):
                self._say(f"{number:3} of {len(chosen)}  {step.name}: {step.summary}")
                problem = self._step(step, lines.write)
                if problem:
                    failed += 1
                    self._say(f"            {problem}")
                lines.flush()
        self._pack()
        return failed

    def _step(self, step: steps.Step, write: Callable[[str], object]) -> str:
        """Run a step and its undo; why it did not end by itself, "" where it did."""
        problem = ""
        for line in self._lines(step.name, step.limit_s):
            if isinstance(line, facts.Fact):
                write(self._complete(line, step))
                continue
            problem = line
            write(self._complete(facts.Fact(f"step.{step.name}", problem=line), step))
        if step.undo is not None:
            for line in self._lines(step.name, _UNDO_S, "--undo"):
                if isinstance(line, str):
                    problem = f"not undone: {line}"
                    write(self._complete(facts.Fact(f"undo.{step.name}", problem=line), step))
        return problem

    def _complete(self, fact: facts.Fact, step: steps.Step) -> str:
        """Render a fact with where and when it was seen."""
        where = {
            "step": step.name,
            "driver": self._machine.version,
            "simulated": self._machine.is_simulated,
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        }
        return json.dumps({**json.loads(fact.line()), **where}) + "\n"

    def _lines(self, name: str, limit_s: float, *more: str) -> Iterator[facts.Fact | str]:
        """Yield a child's facts; last, in words, how it failed, if it did."""
        words = [*self._command, "step", name, *self._places(), *more]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as child:
            try:
                output, problems = child.communicate(timeout=limit_s)
                ended = "" if child.returncode == 0 else f"exit status {child.returncode}"
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                output, problems = child.communicate()
                ended = f"killed after {limit_s:.0f} s"
        for line in output.splitlines():
            with contextlib.suppress(ValueError, TypeError):
                yield facts.Fact(**_fields(line))
        if ended:
            kept = self._machine.keep(f"{name}-stderr.txt", problems)
            yield f"{ended}: {' '.join(problems.split()[-20:])} ({kept})"

    def _places(self) -> tuple[str, ...]:
        target = self._machine
        out = f"--out={target.out}"
        return (out, f"--driver-root={target.setting}", f"--host-root={target.host}")

    def _pack(self) -> None:
        """Put all into one file, which travels."""
        out = self._machine.out
        with tarfile.open(out / ARCHIVE, "w:gz") as archive:
            for path in sorted(out.iterdir()):
                if path.name != ARCHIVE:
                    archive.add(path, path.name)


def child(name: str, target: machine.Machine, *, undo: bool) -> int:
    """Be the process of a step: print its facts, each as it comes."""
    step = steps.by_name(name)
    if undo:
        if step.undo is not None:
            step.undo(target)
        return 0
    for fact in step.act(target):
        sys.stdout.write(f"{fact.line()}\n")
        sys.stdout.flush()
    return 0


def _fields(line: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(line)
    return fields


def this_program() -> tuple[str, ...]:
    """The command that runs this package again: as a module, or as the one file it came in."""
    packed = os.environ.get("RATION_HARDWARE_FILE")
    return (sys.executable, packed) if packed else (sys.executable, "-m", "hack.hardware")


def default_folder() -> Path:
    """Where output goes unless told: by date and time, below here."""
    return Path(f"hardware-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}")
