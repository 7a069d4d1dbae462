"""Facts that a machine showed: a JSON object a line, with the raw output that each is read off."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import errors

FILE = "facts.jsonl"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact by its id, as of `rows`.

    `value` is what JSON can hold. `problem` says why there is no value; `raw` is a file below the
    output folder, `gpu` a UUID where the fact is that of one GPU.
    """

    fact: str
    value: Any = None
    problem: str = ""
    raw: str = ""
    gpu: str = ""

    def line(self) -> str:
        """Render as JSON; empty fields are left out."""
        fields = {"problem": self.problem, "raw": self.raw, "gpu": self.gpu}
        kept = {name: text for name, text in fields.items() if text}
        return json.dumps({"fact": self.fact, "value": self.value, **kept})


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of facts. Raises BadInput with the line that is none."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        try:
            fact = json.loads(line)
        except ValueError as e:
            raise errors.BadInput(where, str(e), "a JSON object a line") from e
        if not isinstance(fact, dict) or not isinstance(fact.get("fact"), str):
            raise errors.BadInput(where, "names no fact", '{"fact": ID, "value": ...}')
        yield fact
