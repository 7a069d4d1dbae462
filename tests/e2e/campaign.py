"""One run of a campaign: load, kubelets, rogue and chronicle together, and what became of it."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from driver.kube import gvr
from driver.resources.core import pods
from tests.e2e import chronicle, fleet, kubelets, load, playground, replicas

_TOLD = (
    "allocated",
    "allocation not written",
    "write refused",
    "allocation cleared",
    "no fit",
    "turn failed",
    "lease lost",
    "watch broken",
    "watch had lost events",
    "not listed anew",
)
"""Lines of the controllers' logs that are counted."""
_PACE_S = 30.0


class Campaign:
    """One run: everything that is set up, what goes on in the background, and what is told."""

    def __init__(
        self,
        ground: playground.Playground,
        nodes: fleet.Fleet,
        ours: replicas.Replicas,
        seed: int,
    ) -> None:
        self.seed = seed
        self.ground = ground
        self.nodes = nodes
        self.ours = ours
        kube, namespace = ground.kube, ground.namespace
        self.kubelets = kubelets.Kubelets(kube, namespace, self.seed)
        self.load = load.Load(kube, namespace, nodes.zones, self.seed)
        self.rogue = load.Rogue(kube, namespace, self.seed, every_s=2.0)
        self.chronicle = chronicle.Chronicle(kube, nodes.published())
        self.stop = threading.Event()
        self.pace: list[int] = []
        self.began = time.monotonic()
        self.transitions = ours.transitions()
        self._threads: list[threading.Thread] = []
        self.broken: list[BaseException] = []

    def start(self) -> None:
        self.chronicle.start()
        self.kubelets.start()
        self.behind(self._tidying)

    def behind(self, run: Callable[..., object], *arguments: object) -> None:
        """Do something beside the load; what it raises fails the test."""

        def guarded() -> None:
            try:
                run(*arguments)
            except BaseException as error:
                self.broken.append(error)
                raise

        self._threads.append(threading.Thread(target=guarded, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)
        self.load.close()
        self.kubelets.stop()
        self.chronicle.stop()

    def _tidying(self) -> None:
        while not self.stop.wait(0.1):
            values = self.kubelets.pods.snapshot().values()
            self.load.tidy({entry["metadata"]["name"]: pods.parse(entry) for entry in values})
            if self.elapsed_s() > _PACE_S * (len(self.pace) + 1):
                done = self.chronicle.judge.counts["allocated"]
                self.pace.append(done - sum(self.pace))

    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def drained(self, within_s: float) -> None:
        """Wait until every pod has come and gone."""
        try:
            playground.until(lambda: not self.load.live, within_s, "every pod comes and goes")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._stuck()}") from None

    def _stuck(self) -> str:
        lines = []
        for entry in self.kubelets.pods.snapshot().values():
            name = entry["metadata"]["name"]
            events = self.ground.events(name)
            lines.append(
                f"{name}: {entry['spec'].get('nodeName')} {entry['status']}\n  {events[-3:]}"
            )
        return "\n".join(lines[:8])

    def judged(self) -> None:
        """All claims are over, and at no version was anything given out beyond what there is."""
        kube = self.ground.kube
        playground.until(lambda: not self._left(), 60, "the claims are gone or free")
        version = int(kube.list(gvr.RESOURCE_CLAIMS).version)
        # Bookmarks are rare: a write of our own moves the chronicle on.
        last = playground.a_claim("the-last-word")
        self.ground.create(last)
        playground.until(lambda: self.chronicle.reaches(version), 30, "the whole history is told")
        kube.delete(gvr.RESOURCE_CLAIMS, "the-last-word", self.ground.namespace)
        assert self.chronicle.gap is None
        assert self.broken == []
        assert self.load.failures == []
        assert self.chronicle.judge.breaches == []
        assert self.chronicle.judge.counts["changed in place"] == 0

    def _left(self) -> list[str]:
        return [
            claim["metadata"]["name"]
            for claim in self.ground.claims()
            if (claim.get("status") or {}).get("allocation")
            or (claim.get("status") or {}).get("reservedFor")
            or claim["metadata"]["name"].startswith("p")
        ]

    def tell(self, description: str) -> None:
        judge = self.chronicle.judge
        words = self.ours.logs()
        logged = {name: words.count(f'"event": "{name}"') for name in _TOLD}
        sys.stdout.write(
            f"\n{description}: seed {self.seed}, {self.elapsed_s():.0f} s\n"
            f"  made: {dict(self.load.made)}\n"
            f"  history: {dict(judge.counts)}, breaches {len(judge.breaches)}\n"
            f"  allocations each {_PACE_S:.0f} s: {self.pace}\n"
            f"  pods: {dict(self.kubelets.seen)}, ran {len(self.kubelets.ran)}\n"
            f"  rogue: cleared {self.rogue.cleared}, came too late {self.rogue.missed}\n"
            f"  faults: {self.ours.faults()}\n"
            f"  requests: {self.ours.requests()}\n"
            f"  leaders: {self.ours.transitions() - self.transitions} changes, "
            f"{self.ours.kills} killed, {self.ours.starts} starts, "
            f"{self.ours.rotations} token rotations\n"
            f"  log: {logged}\n"
        )


@contextlib.contextmanager
def begun(
    ground: playground.Playground,
    nodes: fleet.Fleet,
    ours: replicas.Replicas,
    allocators: dict[str, str],
    seed: int,
) -> Iterator[Campaign]:
    """Nodes with their allocators, and the controllers; all is taken away in the end."""
    try:
        nodes.open(allocators)
        with ours:
            campaign = Campaign(ground, nodes, ours, seed)
            campaign.start()
            try:
                yield campaign
            finally:
                campaign.close()
    finally:
        nodes.close()
