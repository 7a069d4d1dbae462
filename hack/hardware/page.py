"""Renders what came back from machines: for each row of the evidence page, what was seen of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from driver import errors
from hack.hardware import facts, rows

_SHOWN = 160
_HEAD = """# What hardware showed

Each row of [what we know of the hardware](hardware-evidence.md) beside what machines showed of it:
the value, or in italics why there is none. Made by `python -m hack.hardware page`.
"""


def read(folders: Iterable[Path]) -> list[Mapping[str, Any]]:
    """Read the facts of output folders. Raises BadInput for one that has none."""
    seen: list[Mapping[str, Any]] = []
    for folder in folders:
        path = folder / facts.FILE
        if not path.is_file():
            raise errors.BadInput(str(folder), f"has no {facts.FILE}", "an output folder of a run")
        seen.extend(facts.read(path))
    return seen


def render(seen: Sequence[Mapping[str, Any]], evidence: Path = rows.EVIDENCE) -> str:
    """Render a table of rows, then what no step decides."""
    names = rows.names(evidence.read_text())
    decided = [(row, [fact for fact in seen if rows.decides(row, fact["fact"])]) for row in names]
    lines = [_HEAD, _machines(seen), "| Fact | Seen |", "|---|---|"]
    lines += [f"| {row} | {_cell(values)} |" for row, values in decided if values]
    missing = [row for row, values in decided if not values]
    lines += [
        "",
        f"## Not seen ({len(missing)} of {len(names)})",
        "",
        "| Fact | Why |",
        "|---|---|",
    ]
    lines += [f"| {row} | {_why(row)} |" for row in missing]
    return "\n".join(lines) + "\n"


def _machines(seen: Sequence[Mapping[str, Any]]) -> str:
    """Name drivers, GPUs and days; simulated machines by that word."""
    gpus = {
        (fact["value"], fact["driver"], fact["at"][:10], fact["simulated"])
        for fact in seen
        if fact["fact"] == "nvml.gpu"
    }
    words = [
        f"- {name}, driver {driver}, {day}{' (simulated: nothing here is seen on hardware)' * fake}"
        for name, driver, day, fake in sorted(gpus)
    ]
    return "\n".join([*words, ""])


def _cell(values: Sequence[Mapping[str, Any]]) -> str:
    texts = dict.fromkeys(_text(fact) for fact in values)
    return "<br>".join(texts)


def _text(fact: Mapping[str, Any]) -> str:
    if fact.get("problem"):
        text = f"*{fact['problem']}*"
    else:
        text = f"`{json.dumps(fact['value'])[:_SHOWN]}`"
    return f"{fact['fact']}: {text}".replace("|", "\\|").replace("\n", " ")


def _why(row: str) -> str:
    prefix = rows.begins(row, rows.OPEN)
    return rows.OPEN[prefix] if prefix else "its step was not run"
