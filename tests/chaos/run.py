"""One run: the load, faults one after the other, and after each the wait until all is well."""

import contextlib
import dataclasses
import functools
import itertools
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driver import errors
from driver.kube import gvr
from driver.resources.dra import slices
from hack.cluster import errors as cluster_errors
from simulator import control as machines
from tests.chaos import book, draw, faults, gather, invariants, load, logs, overlapping, patience
from tests.chaos import world as worlds
from tests.chaos.faults import deaths, gpus, network, objects, places
from tests.e2e import chronicle, playground

LOOK_S = 0.5
REST_S = 2.0
SAY_S = 8.0
MOST_SAVED = 20
LONGEST_S = 150.0
"""After a fault; what is not well by then is a breach, and the run goes on."""
DRAIN_S = 300.0
_NOT_DONE = (errors.ApiError, cluster_errors.ClusterError, machines.ControlError, StopIteration)
_MAY_END_LEADERS = frozenset(
    {
        *(draw.Kind.LEADER_FROZEN, draw.Kind.LEADER_PARTITIONED, draw.Kind.API_SERVER_KILLED),
        *(draw.Kind.ETCD_KILLED, draw.Kind.API_REFUSES, draw.Kind.API_DROPS),
        *(draw.Kind.API_HALF_OPEN, draw.Kind.STANDBY_FROZEN),
    }
)
"""Under which a leader that cannot renew its Lease ends itself, to be started again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of a run. `keep` is the folder for the state at a breach."""

    seed: int
    found: Iterable[draw.Fault]
    stop_at_first: bool
    keep: Path
    measure: load.Measure


class Run:
    """`go` returns when the faults are over and everything has gone, or at the first breach."""

    def __init__(self, world: worlds.World, request: Asked, say: Callable[[str], None]) -> None:
        self._world = world
        self._asked = request
        self._say = say
        self._time = world.time
        ground = playground.Playground.open(
            world.cluster, world.kube, **{"resource.kubernetes.io/admin-access": "true"}
        )
        self.ground = ground
        self.load = load.Load(
            world.kube, ground.namespace, request.seed, request.measure, world.time
        )
        self.book = book.Book(request.seed)
        self._stop = threading.Event()
        self._fault: draw.Fault | None = None
        self._gather = gather.Gatherer(world, self.load)
        self._watch = overlapping.Overlapping(world.nodes, world.time, self._breach)
        self._patience = patience.Patience()
        parsed = [slices.parse(item) for item in world.kube.list(gvr.RESOURCE_SLICES).items]
        self._chronicle = chronicle.Chronicle(world.kube, parsed)
        self._logs = logs.Logs(dict(_logs(world)))
        self._acts: dict[draw.Kind, faults.Act] = {}
        for family in (
            deaths.Deaths(world),
            gpus.Gpus(world),
            places.Places(world),
            network.Network(world),
            objects.Objects(self.load),
        ):
            self._acts |= family.acts()
        self.beside: list[Callable[[threading.Event], None]] = [self.load.run, self._watch.run]

    @property
    def prepared(self) -> int:
        """Return how many claims were seen prepared."""
        return len(self._watch.prepared)

    def go(self) -> None:
        """All of it."""
        began = self._time.monotonic()
        self._chronicle.start()
        threads = [
            threading.Thread(target=self._kept, args=(function,), daemon=True)
            for function in self.beside
        ]
        for thread in threads:
            thread.start()
        try:
            for fault in self._asked.found:
                self._one(fault)
                if self.book.broken and self._asked.stop_at_first:
                    break
            self._fault = None
            self._end(threads)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(10)
            self._chronicle.stop()
            self._account(began)

    def _kept(self, run: Callable[[threading.Event], None]) -> None:
        """A thread of ours that ends by a failure ends the run's good name."""
        try:
            run(self._stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self._breach(f"the run's own thread ended: {type(error).__name__}: {error}")

    def _one(self, fault: draw.Fault) -> None:
        self._rest(fault.pause_s)
        self._hear(calm=True)
        self._fault = fault
        began = self._time.monotonic()
        try:
            self._acts[fault.kind](fault)
        except _NOT_DONE as error:
            self.book.skipped[f"{fault.kind}: {type(error).__name__}: {error}"[:160]] += 1
        over = self._time.monotonic()
        self._settle(over)
        took = self._time.monotonic() - over
        self.book.recovered(fault.kind, took)
        self._hear(calm=False)
        self._say(
            f"{fault.number:4} {fault.kind:26} node-{fault.node} {over - began:5.1f} s, "
            f"well after {took:5.1f} s; pods {self.load.counts.made['pods']}, "
            f"prepared {self.prepared}, breaches {len(self.book.broken)}"
        )

    def _rest(self, seconds: float) -> None:
        """Pause between faults while problems are still observed."""
        until = self._time.monotonic() + seconds
        while (left := until - self._time.monotonic()) > 0:
            self._time.wait(self._stop, min(left, REST_S))
            self._look()

    def _settle(self, since: float) -> None:
        """Until all is well that the next fault has to wait for."""
        statement = since
        while waits := [problem for problem in self._look() if problem.rule.world]:
            now = self._time.monotonic()
            if now - since > LONGEST_S:
                return
            if now - statement > SAY_S:
                statement = now
                self._say(
                    "     waits for " + "; ".join(f"{w.rule} {w.subject} {w.words}" for w in waits)
                )
            self._time.wait(self._stop, LOOK_S)

    def _look(self) -> list[invariants.Problem]:
        """The problems of now; breaches are told."""
        self._revive()
        blind = False
        try:
            problems = list(invariants.problems(self._gather.look(), self._world.baseline))
        except errors.ApiError as error:
            problems = [invariants.Problem(invariants.Rule.PROCESS, "API server", str(error))]
            blind = True
        for late in self._patience.look(self._time.monotonic(), problems, blind=blind):
            self._breach(late.text)
        return problems

    def _revive(self) -> None:
        """Restart processes that ended by themselves, as the kubelet would."""
        for name, state in self._gather.conditions().items():
            component, _, node = name.partition(".")
            if state not in {"dead", "stopped"}:
                continue
            self.book.revived[f"{component} in {self._fault.kind if self._fault else 'calm'}"] += 1
            ours = component in {*worlds.CONTROLLERS, *worlds.OURS}
            may_end = self._fault is not None and self._fault.kind in _MAY_END_LEADERS
            if ours and not (component in worlds.CONTROLLERS and may_end):
                self._breach(f"{name} ended by itself")
            if component in worlds.CONTROLLERS:
                self._world.died_now(component)
            self._world.cluster.start(component, node or None)

    def _hear(self, *, calm: bool) -> None:
        reported = self._logs.read()
        (self.book.calm if calm else self.book.errors).update(reported.errors)
        for line in reported.unheard:
            self._breach(line)

    def _breach(self, words: str) -> None:
        broken = book.Broken(self._fault, words)
        self.book.broken.append(broken)
        self._say(f"BREACH: {broken.text}\n  again: {self._again()}")
        if len(self.book.broken) <= MOST_SAVED:
            self._save(len(self.book.broken), broken)

    def _again(self) -> str:
        number = 0 if self._fault is None else self._fault.number
        base = f"python -m tests.chaos --seed {self._asked.seed}"
        return f"{base} --from {max(0, number - 5)} --faults {min(number, 5) + 1}"

    def _save(self, number: int, broken: book.Broken) -> None:
        folder = self._asked.keep / f"{self._asked.seed}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "breach").write_text(f"{broken.text}\n{self._again()}\n")
        with contextlib.suppress(OSError, errors.ApiError, ValueError):
            shutil.copytree(worlds.ROOT / ".cluster/logs", folder / "logs", dirs_exist_ok=True)
            shot = dataclasses.asdict(dataclasses.replace(self._gather.look(), slices=()))
            (folder / "seen.txt").write_text(_spread(shot))

    def _end(self, threads: list[threading.Thread]) -> None:
        """Everything goes, and nothing stays."""
        self._say("no more faults: all pods go")
        since = self._time.monotonic()
        self._stop.set()
        for thread in threads:
            thread.join(10)
        never = threading.Event()
        left: list[invariants.Problem] = []
        while self._time.monotonic() - since < DRAIN_S:
            gone = self.load.drain()
            left = self._look()
            if gone and not left and not self._remains():
                break
            self._time.wait(never, LOOK_S)
        else:
            words = [f"{problem.rule} {problem.subject} {problem.words}" for problem in left]
            self._breach(f"in the end there is left: {self._remains()} {words}")
        self._hear(calm=True)
        self._judge_history(never)

    def _remains(self) -> list[str]:
        names = [
            f"{held.name} on {side.name}" for side in self._world.nodes for held in side.held()
        ]
        with contextlib.suppress(errors.ApiError):
            names += [claim["metadata"]["name"] for claim in self.ground.claims()]
        return names

    def _judge_history(self, never: threading.Event) -> None:
        """At no version of any claim was anything given out twice."""
        kube = self._world.kube
        self.ground.create(playground.a_claim("the-last-word"))
        version = int(kube.list(gvr.RESOURCE_CLAIMS).version)
        kube.delete(gvr.RESOURCE_CLAIMS, "the-last-word", self.ground.namespace)
        for _ in range(100):
            if self._chronicle.reaches(version):
                break
            self._time.wait(never, 0.3)
        else:
            self._breach(f"the history of claims ends at {self._chronicle.version}, not {version}")
        if self._chronicle.gap is not None:
            self._breach(f"the history of claims has a gap: {self._chronicle.gap}")
        judge = self._chronicle.judge
        for breach in judge.breaches:
            self._breach(
                f"given out twice at version {breach.version}: {breach.what}: {breach.holders}"
            )
        self.book.overlaps = len(judge.breaches) + self._watch.found
        self.book.history.update(judge.counts)

    def _account(self, began: float) -> None:
        self.book.seconds = self._time.monotonic() - began
        self.book.prepared = self._watch.prepared
        for proxy in self._world.proxies.values():
            self.book.cut.update(proxy.broken)
        self.book.pods = self.load.counts.made["pods"]
        self.book.works = dict(sorted(self.load.counts.ended.items()))
        for words in self.load.failures[:5]:
            self._breach(f"the load failed: {words}")


def _logs(world: worlds.World) -> Iterator[tuple[str, Callable[[], Path]]]:
    for name in worlds.CONTROLLERS:
        yield name, functools.partial(world.cluster.log_path, name)
    for side, component in itertools.product(world.nodes, worlds.OURS):
        path = functools.partial(world.cluster.log_path, component, side.name)
        yield f"{component}.{side.name}", path


def _spread(value: object) -> str:
    return "\n".join(repr(value)[index : index + 160] for index in range(0, len(repr(value)), 160))
