"""Environment that one run hands the pytest process of one group of cases."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

VARIABLE = "RATION_BLACKBOX"


@dataclass(frozen=True, slots=True)
class Session:
    """`subject` is a file, `out` where results go, a line each; `cases` are the ids to run."""

    subject: str
    node: str
    out: str
    cases: tuple[str, ...] = ()

    @classmethod
    def found(cls) -> Self | None:
        """The one in the environment, if there is one."""
        text = os.environ.get(VARIABLE)
        if not text:
            return None
        read = json.loads(text)
        return cls(**{**read, "cases": tuple(read["cases"])})

    def environment(self) -> dict[str, str]:
        """Return the environment of the child process."""
        return {**os.environ, VARIABLE: json.dumps(asdict(self))}

    def note(self, line: dict[str, object]) -> None:
        """Write a result down."""
        with Path(self.out).open("a") as file:
            file.write(json.dumps(line) + "\n")
