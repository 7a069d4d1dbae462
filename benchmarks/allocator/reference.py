"""The reference: a Go program that runs kube-scheduler's allocator as kube-scheduler does."""

import json
from pathlib import Path
from typing import Any

from benchmarks.allocator import cases, fixtures
from tests.oracle import conversation, program

WORKERS = 2
ROOM = Path(__file__).parent / "reference"


class Reference(conversation.Conversation):
    """The running program with one cluster; a context manager."""

    def __init__(self) -> None:
        super().__init__(program.ensure(ROOM))
        self.refused = 0
        self.asked = 0

    def load(self, case: cases.Case) -> None:
        """Take a case's cluster; the nodes are the same as ours, not tainted for it."""
        document = {
            "template": case.shape("scheduler"),
            "nodes": [fixtures.node_name(number) for number in range(case.nodes)],
            "classes": fixtures.classes(),
            "claim": fixtures.claim("claim", case.asks),
            "taken": case.taken,
            "sample": case.sample,
            "workers": WORKERS,
            "seed": cases.SEED,
        }
        self._tell({"load": document})

    def run(self, count: int) -> list[float]:
        """Milliseconds of each of so many decisions."""
        told = self._tell({"run": count})
        self.refused += told["refused"]
        self.asked += told["asked"]
        return [micros / 1000 for micros in told["micros"]]

    def rss_mib(self) -> float:
        """What it holds in memory, once it has given back all it can."""
        return float(self._tell({"rss": True})["rssKiB"]) / 1024

    def _tell(self, question: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.ask(json.dumps(question) + "\n"))
        if "error" in told:
            raise RuntimeError(told["error"])
        return told
