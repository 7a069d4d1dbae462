"""Log lines of our processes: errors by their event, and lines that must never appear."""

import collections
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

NEVER_SAID = ("Traceback (most recent call last)", "Fatal Python error", "Segmentation fault")
FAILED = "claim failed"
"""A Prepare or an Unprepare that the kubelet is to make again, and why."""
EXPLAINED = re.compile(
    r"No space left on device|NVML error|GPU is lost|In use by|was busy for|\bMPS\b|mps"
    r"|API server: |^(GET|PUT|POST|PATCH|DELETE) /|timed out|reset by peer|refused"
)
"""Causes that are faults of a run; an answer that fails for another cause is a breach."""
_LONGEST = 300


@dataclass
class Told:
    """Since the last reading: errors by component and event, and what is never to be said."""

    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    unheard: list[str] = field(default_factory=list)


class Lines:
    """Reads a log on where it stopped."""

    def __init__(self, path: Callable[[], Path]) -> None:
        self._path = path
        self._at = 0

    def read(self) -> list[str]:
        """Return what is new, in whole lines."""
        path = self._path()
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return whole.decode(errors="replace").splitlines()


class Logs:
    """Judges what is new in logs, by component."""

    def __init__(self, paths: Mapping[str, Callable[[], Path]]) -> None:
        self._logs = {name: Lines(path) for name, path in paths.items()}

    def read(self) -> Told:
        """Return the lines of all logs."""
        reported = Told()
        for name, log in self._logs.items():
            judge(name.partition(".")[0], log.read(), reported)
        return reported


def judge(name: str, lines: Iterable[str], reported: Told) -> None:
    """Add what lines of a component say."""
    for line in lines:
        if any(name in line for name in NEVER_SAID):
            reported.unheard.append(f"{name}: {line[:_LONGEST]}")
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            _judge_entry(name, entry, reported)


def _judge_entry(name: str, entry: Mapping[str, object], reported: Told) -> None:
    event, why = entry.get("event"), str(entry.get("error", ""))
    if entry.get("level") in {"error", "critical"} or event == FAILED:
        reported.errors[f"{name}: {event}"] += 1
    if event == FAILED and not EXPLAINED.search(why):
        reported.unheard.append(f"{name}: {entry.get('call')} failed: {why[:_LONGEST]}")
