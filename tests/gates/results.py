"""Results of the last run of each command of a gate, in results.json beside this file."""

import dataclasses
import json
from pathlib import Path

PATH = Path(__file__).with_name("results.json")


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """`command`: as in the table. `last`: the last line it printed. `commit`: what was run."""

    command: str
    code: int
    seconds: int
    last: str
    commit: str


def stored(path: Path = PATH) -> dict[str, Result]:
    """Return the stored results by command; empty where nothing was ever run."""
    if not path.exists():
        return {}
    found = [Result(**one) for one in json.loads(path.read_text())]
    return {one.command: one for one in found}


def keep(result: Result, path: Path = PATH) -> None:
    """In the place of the one before."""
    found = stored(path) | {result.command: result}
    ordered = [dataclasses.asdict(found[name]) for name in sorted(found)]
    path.write_text(json.dumps(ordered, indent=2) + "\n")
