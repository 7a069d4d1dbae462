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
    results = [Result(**load) for load in json.loads(path.read_text())]
    return {result.command: result for result in results}


def keep(result: Result, path: Path = PATH) -> None:
    """In the place of the one before."""
    results = stored(path) | {result.command: result}
    ordered = [dataclasses.asdict(results[name]) for name in sorted(results)]
    path.write_text(json.dumps(ordered, indent=2) + "\n")
