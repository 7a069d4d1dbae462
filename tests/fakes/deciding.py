"""A controller's inside without threads: stores, queue and decider over claims in memory."""

import json
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import prometheus_client

from driver import clock, errors, ids, names
from driver.api import node_shapes
from driver.controller import config, metrics
from driver.controller.commit import reporter, write_pool
from driver.controller.informers import handlers, stores
from driver.controller.scheduler import build as scheduler_build
from driver.controller.scheduler import state as scheduler_state
from driver.kube import gvr, workqueue
from driver.kube.events import recorder
from driver.resources import disruption_budgets, pod_groups, queues, reservations
from driver.resources.core import namespaces, nodes, pods, volumes
from driver.resources.dra import claims, device_classes, slices, taint_rules
from driver.scheduling.lifecycle import backfill_plan
from driver.scheduling.provisioning import settings as provisioning_settings
from driver.scheduling.snapshot import allocation_hold, snapshot
from tests.fakes import clock as clocks
from tests.fakes import server_side
from tests.fakes.apiserver import patches
from tests.support import snapshots
from tests.support.builders import objects


class Inline(futures.Executor):
    """Runs what is submitted at once, on the caller's thread; while it is `slow`, at `catch_up`."""

    def __init__(self) -> None:
        self.slow = False
        self._later: list[Callable[[], Any]] = []

    def catch_up(self) -> None:
        """Run what was submitted while it was slow."""
        later, self._later, self.slow = self._later, [], False
        for act in later:
            act()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()

        def act() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except Exception as fault:  # noqa: BLE001 - as every executor: whoever asks the future hears of it
                done.set_exception(fault)

        if self.slow:
            self._later.append(act)
        else:
            act()
        return done


def on_demand_of(*shapes: node_shapes.NodeShape) -> provisioning_settings.ProvisionerSettings:
    """Nodes on demand, as the controller's settings say by default."""
    fields = {name: field.default for name, field in config.ControllerConfig.model_fields.items()}
    return provisioning_settings.ProvisionerSettings(
        node_shapes.NodeShapes(shapes=shapes),
        fields["namespace"],
        fields["placeholder_image"],
        fields["observed_shapes_configmap"],
        frozenset(fields["interruption_taints"]),
    )


_GOOD = {*("Allocated", "ReservationHeld", "ReservationUsed"), *("NodesRequested", "NodeArrived")}


@dataclass
class Told:
    """Events, as told; `last` is the newest of each object, by kind and name."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)
    last: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def event(
        self,
        regarding: recorder.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: recorder.ObjectRef | None = None,
    ) -> None:
        assert related is None
        assert warning is (reason not in _GOOD)
        self.lines.append((regarding.kind, reason, message))
        self.last[regarding.kind, regarding.name] = reason, message


class World:
    """A controller's inside, without threads: stores, queue, decider."""

    def __init__(
        self,
        *gpus_by_node: int,
        evict_over_share: bool = False,
        demanded: provisioning_settings.ProvisionerSettings | None = None,
        backfill: backfill_plan.BackfillRules | None = None,
    ) -> None:
        self.clock = clocks.FakeClock()
        self.stale = False
        self.pool = Inline()
        self.server = server_side.Server()
        self.told = Told()
        self.pods: dict[str, dict[str, Any]] = {}
        self.stores = stores.empty()
        self.items = workqueue.WorkQueue[write_pool.WorkItem](
            self.clock, lambda: 0.0, write_pool.RETRIES
        )
        self.saying = reporter.Reporter(self.told, self.server, self.clock)
        self._read()
        handlers.EventHandlers(self.items, on_demand=demanded is not None).attach(self.stores)
        self.registry = prometheus_client.CollectorRegistry()
        self.metrics = metrics.Metrics(self.registry)
        self._settings = scheduler_state.SchedulerSettings(
            names.DRIVER,
            snapshots.DECIDING,
            lambda: self.stale,
            evict_over_share=evict_over_share,
            on_demand=demanded,
            backfill=backfill or backfill_plan.BackfillRules(),
        )
        self.decider = self.make_decider()
        self.stores.classes.apply(objects.a_class())
        for index, count in enumerate(gpus_by_node or (2,)):
            self.server.nodes[f"node-{index}"] = objects.a_node(f"node-{index}")
            self.stores.nodes.apply(self.server.nodes[f"node-{index}"])
            self.stores.slices.apply(objects.a_slice(f"node-{index}", count))

    def make_decider(self) -> scheduler_build.Scheduler:
        """One that remembers nothing yet."""
        outputs = scheduler_build.Outputs(
            self.server, self.pool, self.pool, self.saying, self.metrics
        )
        return scheduler_build.build(self.stores, self.items, outputs, self._settings, self.clock)

    def _read(self) -> None:
        result = self.stores
        result.nodes.set_parser(nodes.parse, _bad)
        result.slices.set_parser(slices.parse, _bad)
        result.classes.set_parser(device_classes.parse, _bad)
        result.claims.set_parser(claims.parse, _bad)
        result.pods.set_parser(pods.parse, _bad)
        result.volume_claims.set_parser(volumes.parse_claim, _bad)
        result.volumes.set_parser(volumes.parse_volume, _bad)
        result.namespaces.set_parser(namespaces.parse, _bad)
        result.taint_rules.set_parser(taint_rules.parse, _bad)
        result.queues.set_parser(queues.parse, _bad)
        result.reservations.set_parser(reservations.parse, _bad)
        self.server.show = self._show
        self.server.show_pod = self._show_pod
        self.server.show_node = lambda node: self.stores.nodes.apply(json.loads(json.dumps(node)))
        self.server.said_of_pods = self._said_of_pods
        self.server.read_pod = self._read_pod
        self.server.now = lambda: clock.rfc3339(self.clock.now())
        result.budgets.set_parser(disruption_budgets.parse, _bad)
        result.native_pod_groups.set_parser(pod_groups.parse, _bad)

    def add(self, *raw: dict[str, Any]) -> None:
        for entry in raw:
            if entry.get("kind") in {"Queue", "Reservation"}:
                self.server._keep_own(str(gvr.object_key(entry)), entry)
            elif entry.get("kind") == "PodDisruptionBudget":
                self.stores.budgets.apply(self._newer(entry))
            elif {"minMember", "schedulingPolicy"} & {*entry["spec"]}:
                self.stores.native_pod_groups.apply(self._newer(entry))
            elif "containers" in entry["spec"]:
                self.pods[entry["metadata"]["name"]] = entry
                self.stores.pods.apply(self._newer(entry))
            else:
                key = f"default/{entry['metadata']['name']}"
                self.server.claims[key] = self._newer(entry)
                self.stores.claims.apply(self.server.claims[key])

    def _newer(self, entry: dict[str, Any]) -> dict[str, Any]:
        return self.server.newer(entry)

    def remove_pod(self, name: str) -> None:
        self.pods.pop(name, None)
        self.stores.pods.apply(self._newer(objects.a_pod(name)), deleted=True)

    def _show(self, obj: dict[str, Any], *, deleted: bool) -> None:
        target = self.stores.queues if obj["kind"] == "Queue" else self.stores.reservations
        target.apply(json.loads(json.dumps(obj)), deleted=deleted)

    def _show_pod(self, obj: dict[str, Any], *, deleted: bool) -> None:
        self.stores.pods.apply(json.loads(json.dumps(obj)), deleted=deleted)

    def _read_pod(self, name: str) -> dict[str, Any]:
        if name not in self.pods:
            raise errors.NotFound(404, "NotFound", name)
        return self.pods[name]

    def _said_of_pods(self, name: str, body: dict[str, Any]) -> None:
        if name not in self.pods:
            raise errors.NotFound(404, "NotFound", name)
        self.add(patches.strategic(self.pods[name], body))

    def waiting_for(self, name: str = "pod") -> pods.PendingCondition | None:
        """Return what a pod's condition says, once all that is due is written."""
        while self.saying.write_next():
            continue
        return pods.parse(self.pods[name]).pending

    def change_pod(self, name: str, **status: Any) -> None:
        """Change a pod as others do: `node` is its spec.nodeName, the rest its status."""
        pod = self.pods[name]
        node = status.pop("node", None)
        spec = {**pod["spec"], **({"nodeName": node} if node else {})}
        self.add({**pod, "spec": spec, "status": {**pod["status"], **status}})

    def scheduled(self, name: str = "pod", node: str = "node-0", *texts: str) -> None:
        """Do as kube-scheduler does: reserve the pod's claims (PreBind), then bind it."""
        entry = claims.render_consumer(allocation_hold.pod_entry(objects.pod(name)))
        for claim in texts or ("claim",):
            body = {"status": {"reservedFor": [entry]}}
            raw = self.server.claims[f"default/{claim}"]
            self.add(patches.strategic(raw, body))
        self.change_pod(name, node=node)

    def settle(self, seconds: float = 1.0) -> None:
        """Let time pass and the decider work until it has nothing more to do."""
        self.clock.advance(seconds)
        for _ in range(50):
            if not self.turn():
                return
            self.clock.advance(0.1)
        raise AssertionError("the decider never comes to rest")

    def turn(self) -> bool:
        """Have the decider process all that is due, and write; return whether anything was."""
        batch = []
        while len(self.items):
            item = self.items.get(0.0)
            assert item is not None
            batch.append(item)
        if batch:
            self.decider.loop.process(batch)
        return bool(batch)

    def claim(self, name: str = "claim") -> claims.Claim:
        return claims.parse(self.server.claims[f"default/{name}"])

    def put_node(
        self, name: str, labels: dict[str, str] | None = None, /, **spec: Any
    ) -> dict[str, Any]:
        """A Node as others have it now: its spec, and labels of theirs beside what was applied."""
        node = objects.a_node(name, **spec)
        meta = self.server.nodes.get(name, node)["metadata"]
        meta = {**meta, "labels": {**meta["labels"], **(labels or {})}}
        return self.server.keep_node({**node, "metadata": meta})

    def cordon(self, node: str) -> None:
        self.put_node(node, unschedulable=True)

    def node_of(self, name: str = "claim") -> str | None:
        """The node that a claim's allocation is for."""
        return snapshot.pinned_node(self.claim(name))

    def device(self, name: str = "claim") -> str | None:
        allocation = self.claim(name).allocation
        return allocation.results[0].device.device if allocation else None


def _bad(key: ids.Key, error: errors.BadInput) -> None:
    raise AssertionError(f"{key}: {error}")
