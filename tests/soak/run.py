"""One run: a node, lanes of pods on it, troubles beside them, samples, and what remains."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driver import clock
from driver.kube import gvr
from tests.fakes import battering, waiting
from tests.soak import draw, lanes, ledger, room, samples, servers, troubles

ROOT = Path(__file__).parents[2]
LANES = 6
SAMPLES = 240
"""Of a run with a rate; one with none is looked at every two seconds."""
LONGEST_S, SHORTEST_S, USUAL_S = 30.0, 0.5, 2.0
CLEAN_S = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """Options: a trouble every so many seconds, 0 for none."""

    cycles: int
    rate: float
    trouble_s: float
    seed: int

    @property
    def sample_s(self) -> float:
        """Return how often to look."""
        if not self.rate:
            return USUAL_S
        return min(LONGEST_S, max(SHORTEST_S, self.cycles / self.rate / SAMPLES))


class Run:
    """`go` returns when all cycles are over, or something broke."""

    def __init__(self, request: Asked, served: servers.Served, say: Callable[[str], None]) -> None:
        self._asked = request
        self._served = served
        self._say = say
        self._time = clock.SystemClock()
        self.book = ledger.Ledger(ledger.Pace(request.cycles, request.rate), self._time.monotonic)
        self.server = ""
        self.sampler = samples.Sampler({})

    def go(self) -> None:
        """Set up, run, look at what remains, and end all of it."""
        with self._served() as server:
            self.server = server.words
            self._say(f"seed {self._asked.seed}; {server.words}")
            with battering.battered(server.kube, server.kubeconfig, servers.NODE) as node:
                self.sampler = samples.Sampler(
                    {
                        "plugin": lambda: node.processes[-1].pid,
                        "supervisor": lambda: node.supervisors[-1].pid,
                    }
                )
                self._run(server, node)
                self._remains(server, node)
                if self.book.broken:
                    self._say(f"the plugin's last words:\n{_tail(node.log)}")

    def _run(self, server: servers.Server, node: battering.Battered) -> None:
        ground = lanes.Ground(
            node, room.Room(node.published()), threading.Lock(), self.book, self._time
        )
        stop = threading.Event()
        breaking = self._breaking(server, node, stop)
        running = [
            threading.Thread(target=lanes.Lane(ground, number, self._asked.seed).run, daemon=True)
            for number in range(LANES)
        ]
        for thread in (*breaking, *running):
            thread.start()
        while any(thread.is_alive() for thread in running):
            self._time.wait(stop, self._asked.sample_s)
            self._look(server)
        stop.set()
        for thread in breaking:
            thread.join()
        self._look(server)

    def _breaking(
        self, server: servers.Server, node: battering.Battered, stop: threading.Event
    ) -> list[threading.Thread]:
        if not self._asked.trouble_s:
            return []
        breaks = draw.Breaks(self._asked.seed, tuple(draw.Trouble))
        created = troubles.Troubles(node, server, self.book, breaks, self._time)
        return [
            threading.Thread(target=created.run, args=(self._asked.trouble_s, stop), daemon=True)
        ]

    def _look(self, server: servers.Server) -> None:
        book = self.book
        self.sampler.look(book.elapsed_s, book.done)
        if server.fake is not None:
            server.fake.forget()
        self._say(
            f"{book.elapsed_s:6.0f} s  {book.done:6d} of {self._asked.cycles}  "
            f"plugin {self.sampler.last('plugin')}  "
            f"troubles {book.troubles.total()}  tried again {book.refused.total()}"
        )

    def _remains(self, server: servers.Server, node: battering.Battered) -> None:
        """Both processes live, and nothing of any claim is left anywhere."""
        for who, process in (
            ("plugin", node.processes[-1]),
            ("supervisor", node.supervisors[-1]),
        ):
            if process.poll() is not None:
                self.book.breach(f"the {who} ended by itself: {process.returncode}")
        try:
            waiting.until(lambda: not node.left() and not node.daemons(), CLEAN_S)
        except AssertionError:
            self.book.breach(f"left on the node: {node.left()}, MPS daemons {node.daemons()}")
        items = server.kube.list(gvr.RESOURCE_CLAIMS).items
        names = [item["metadata"]["name"] for item in items]
        if mine := [name for name in names if name.startswith("lane-")]:
            self.book.breach(f"claims left in the API: {mine}")
        if lost := self.book.lost():
            self.book.breach(f"{lost} cycles are lost: {dict(self.book.stages)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:])
