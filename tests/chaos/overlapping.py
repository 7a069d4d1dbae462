"""Looks five times a second whether any part of a GPU is in two claims' records on its node."""

import threading
from collections.abc import Callable

from driver import clock
from tests.chaos import invariants, nodeside, patience, seen

EVERY_S = 0.2


class Overlapping:
    """`run` is a thread's target. `prepared` are all claims that were seen prepared."""

    def __init__(
        self,
        nodes: tuple[nodeside.NodeSide, ...],
        time: clock.Clock,
        say: Callable[[str], None],
    ) -> None:
        self._nodes = nodes
        self._time = time
        self._say = say
        self.prepared: set[str] = set()
        self.found = 0

    def run(self, stop: threading.Event) -> None:
        """Until told to stop."""
        memory = {_node.name: _node.look().gpus for _node in self._nodes}
        judge = patience.Patience()
        while not self._time.wait(stop, EVERY_S):
            problems: list[invariants.Problem] = []
            for node in self._nodes:
                held = node.held()
                self.prepared |= {held.uid for held in held if held.done}
                problems += invariants.overlaps(seen.Node(node.name, held, gpus=memory[node.name]))
            for breach in judge.look(self._time.monotonic(), problems):
                self.found += 1
                self._say(breach.text)
