"""Two controllers behind a proxy that breaks things, claims that come and go, and the history."""

import dataclasses
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver import clock
from driver.kube import gvr
from driver.resources.dra import slices
from tests.fakes import history, waiting
from tests.fakes.apiserver import server as api_server
from tests.fakes.faultproxy import plan, proxy
from tests.support.builders import objects

HERE = Path(__file__).parents[3]
TIME = clock.SystemClock()
NODES, GPUS = 2, 3
CLAIMS, PODS = gvr.RESOURCE_CLAIMS, gvr.PODS
READS: plan.Odds = (
    (0.03, plan.Answer(429, "TooManyRequests", retry_after_s=1)),
    (0.03, plan.ResetBefore()),
    (0.03, plan.Slow(0.3)),
)
WRITES: plan.Odds = (
    *READS,
    (0.03, plan.Answer(500, "InternalError")),
    (0.01, plan.HalfOpen(2)),
    (0.1, plan.ResetAfter()),
    (0.1, plan.Answer(409, "Conflict")),
)
STORM = plan.Seeded(
    20261121,
    {
        plan.Kind.PATCH: WRITES,
        plan.Kind.REPLACE: ((0.03, plan.ResetAfter()), (0.03, plan.Answer(503, "Unavailable"))),
        plan.Kind.LIST: READS,
        plan.Kind.WATCH: (*READS, (0.1, plan.Answer(410, "Expired"))),
    },
    (
        (0.01, plan.Lose()),
        (0.03, plan.Duplicate()),
        (0.05, plan.Replay()),
        (0.002, plan.Expire()),
        (0.02, plan.Trickle(0.3)),
        (0.002, plan.Cut()),
    ),
    bookmark_loss=0.3,
)


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        running.put(gvr.DEVICE_CLASSES, objects.a_class())
        for index in range(NODES):
            running.put(gvr.NODES, objects.a_node(f"node-{index}"))
            running.put(gvr.RESOURCE_SLICES, objects.a_slice(f"node-{index}", GPUS))
        yield running


@pytest.fixture
def controllers(api: api_server.ApiServer, tmp_path: Path) -> Iterator[proxy.FaultProxy]:
    """Two processes whose only way to the server is the proxy."""
    running: list[subprocess.Popen[str]] = []
    with proxy.FaultProxy(api.url, STORM) as between:
        command = [
            sys.executable,
            "-m",
            "driver.controller",
            f"--kubeconfig={between.kubeconfig(tmp_path)}",
            "--relist-seconds=10",
            "--web-address=",
        ]
        for index in range(2):
            with (tmp_path / f"log-{index}").open("w") as log:
                running.append(subprocess.Popen(command, cwd=HERE, stderr=log, text=True))
        yield between
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(20)


@dataclasses.dataclass
class Cluster:
    """What scheduler, kubelet and controller-manager do, as fast as they can."""

    api: api_server.ApiServer
    left: list[str]
    lively: dict[str, int] = dataclasses.field(default_factory=dict)

    def turn(self) -> bool:
        """One round; whether everything has come and gone."""
        while self.left and len(self.lively) < 2 * NODES * GPUS:
            name = self.left.pop()
            self.lively[name] = 0
            self.api.put(CLAIMS, objects.a_claim(name))
            self.api.put(PODS, objects.a_pod(f"pod-{name}", name))
        for name in list(self.lively):
            self._step(name)
        return not self.left and not self.lively

    def _step(self, name: str) -> None:
        claim = self.api.read(CLAIMS, name, "default")
        pod = self.api.read(PODS, f"pod-{name}", "default")
        if claim is None or not (claim.get("status") or {}).get("allocation"):
            return
        self.lively[name] += 1
        match self.lively[name]:
            case 2:
                spec = {**(pod or {})["spec"], "nodeName": node_of(claim)}
                self.api.put(PODS, {**(pod or {}), "spec": spec})
            case 10:
                self.api.remove(PODS, f"pod-{name}", "default")
                self.api.remove(CLAIMS, name, "default")
                del self.lively[name]
            case _:
                pass


def node_of(claim: dict[str, Any]) -> str:
    return str(claim["status"]["allocation"]["devices"]["results"][0]["pool"])


def judged(api: api_server.ApiServer) -> history.History:
    """The whole history of the claims, in the server's order."""
    judge = history.History(slices.parse(one) for one in api.all(gvr.RESOURCE_SLICES))
    for change in api.storage.history:
        if change.kind == (CLAIMS.group, CLAIMS.plural):
            judge.see(change.version, change.new or change.old or {}, deleted=change.new is None)
    return judge


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_claims_come_and_go_in_a_storm_and_no_gpu_is_given_twice(
    api: api_server.ApiServer, controllers: proxy.FaultProxy
) -> None:
    names = [f"c{number}" for number in range(120)]
    cluster, began = Cluster(api, names), TIME.monotonic()
    pause = threading.Event()
    for _ in itertools.takewhile(lambda _: TIME.monotonic() - began < 120, itertools.count()):
        if cluster.turn():
            break
        pause.wait(0.05)
    judge = judged(api)
    told = f"{TIME.monotonic() - began:.0f} s, {dict(judge.counts)}, {dict(controllers.faults)}"
    sys.stdout.write(f"\n{told}\n")
    assert judge.breaches == []
    assert cluster.lively == {}
    assert judge.counts["allocated"] >= 120
    assert controllers.faults["ResetAfter"] > 10
    waiting.until(lambda: not judge.holders())
