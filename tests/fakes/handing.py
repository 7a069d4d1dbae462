"""A node whose devices pass between allocators, with the parts of a plugin that decide on it.

The judge is told of every version of every slice, and knows nothing of how the plugin decides.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import prometheus_client

from driver import ids, names
from driver.api import offerings
from driver.kube import backoff
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.publish import handover, node_allocator, pool_builder, slice_plan
from driver.resources.core import nodes
from driver.resources.publish import slice_builder
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell

NODE = ids.NodeName("node-a")
OWNER = slice_builder.Owner(NODE, "node-uid")
APART_S = 30.0
EVERY_FACE = {
    "rules": [{"gpus": {}, "faces": ["whole", "mps", "time-slicing", "monitor"]}],
}
Raw = Mapping[str, Any]


class Unanswered(Exception):
    """A write that the API server did not take."""


def giver(device: Raw) -> str | None:
    """Return who gives this device out to claims, as any reader of its slice would say."""
    taints: dict[str, str] = {
        taint["key"]: taint.get("value", "") for taint in device.get("taints") or ()
    }
    if names.HANDOVER_TAINT in taints or names.MONITOR_TAINT in taints:
        return None
    return taints.get(names.ALLOCATOR_TAINT, "scheduler")


class Judge:
    """Judge whose `breaches` hold messages, or none."""

    def __init__(self, apart_s: float = APART_S) -> None:
        self._apart_s = apart_s
        self._now: dict[str, Raw] = {}
        self._given: dict[str, dict[str, tuple[float, int]]] = {}
        self.breaches: list[str] = []

    def see(self, name: str, result: Raw | None, at_s: float) -> None:
        """A slice was written, or is gone, at that moment."""
        for entry in self._now.values():
            self._note(entry, at_s)
        self._now = {key: obj for key, obj in self._now.items() if key != name}
        if not self._now:
            # Of a pool that is gone as a whole nobody can mix two generations.
            self._given = {
                device: {who: (last_s, 0) for who, (last_s, _) in previous.items()}
                for device, previous in self._given.items()
            }
        if result is not None:
            self._now[name] = result
            self._weigh(result, at_s)
            self._note(result, at_s)

    def _note(self, result: Raw, at_s: float) -> None:
        generation = result["spec"]["pool"]["generation"]
        for device in result["spec"].get("devices") or ():
            if (who := giver(device)) is not None:
                self._given.setdefault(device["name"], {})[who] = at_s, generation

    def _weigh(self, result: Raw, at_s: float) -> None:
        generation = result["spec"]["pool"]["generation"]
        for device in result["spec"].get("devices") or ():
            who, name = giver(device), device["name"]
            previous = self._given.get(name, {})
            for other, (last_s, total) in previous.items():
                if who is None or other == who:
                    continue
                if at_s - last_s < self._apart_s:
                    self.breaches.append(f"{name}: {who}'s {at_s - last_s} s after {other}'s")
                if generation <= total:
                    self.breaches.append(
                        f"{name}: {who}'s in generation {generation}, as {other}'s"
                    )


class Node:
    """A node, its slices at an API server, and the plugins that ever ran on it."""

    def __init__(self, folder: Path, gpus: int = 4) -> None:
        self.folder = folder
        self.clock = fake_clock.FakeClock()
        self.judge = Judge()
        self.told = plugin_shell.Events()
        self.metrics = metrics.Metrics(prometheus_client.CollectorRegistry())
        self.label: str | None = None
        self.gpus = plugin_shell.Gpus(plugin_shell.inventory(gpus))
        self.holding: set[ids.DeviceName] = set()
        self.objects: dict[str, slice_plan.Object] = {}
        self._version = 0
        self._left: int | None = None

    def node(self) -> nodes.Node:
        labels = {} if self.label is None else {names.ALLOCATOR_LABEL: self.label}
        return nodes.Node(NODE, "node-uid", labels)

    def fail_after(self, writes: int | None) -> None:
        """Accept that many more writes and refuse the rest; None: accept all."""
        self._left = writes

    def apply(self, writes: slice_plan.Writes) -> None:
        """One after the other. Raises Unanswered."""
        for deleted in writes.deletes:
            self._take(deleted["metadata"]["name"], None)
        for deleted in (*writes.updates, *writes.creates):
            self._take(deleted["metadata"]["name"], deleted)

    def wipe(self) -> None:
        """Wipe the slices as a kubelet does when it starts."""
        for name in list(self.objects):
            self._store(name, None)

    def allocators(self) -> set[str | None]:
        """Return who gives out devices; None: nobody does, of some."""
        return {
            giver(device)
            for obj in self.objects.values()
            for device in obj["spec"].get("devices") or ()
            if device["attributes"]["type"]["string"] != names.TYPE_MONITOR
        }

    def generation(self) -> int:
        return max(int(obj["spec"]["pool"]["generation"]) for obj in self.objects.values())

    def _take(self, name: str, obj: slice_plan.Object | None) -> None:
        if self._left == 0:
            raise Unanswered(name)
        if self._left is not None:
            self._left -= 1
        self._store(name, obj)

    def _store(self, name: str, obj: slice_plan.Object | None) -> None:
        self.judge.see(name, obj, self.clock.monotonic())
        self.objects.pop(name, None)
        if obj is not None:
            self._version += 1
            self.objects[name] = copy.deepcopy(obj)
            self.objects[name]["metadata"]["resourceVersion"] = str(self._version)


class Plugin:
    """Slices of one process of the plugin, step by step; a new one is a restart."""

    def __init__(self, on: Node, flag: str = "controller") -> None:
        self._on = on
        self.allocator = node_allocator.NodeAllocator(
            flag,
            on.folder / "allocator",
            node_allocator.Deps(plugin_events.EventReporter(on.told), on.metrics, on.clock),
        )
        rules = offerings.read(EVERY_FACE, "offerings")
        sources = pool_builder.Sources(
            on.gpus.look, rules, held_devices=lambda: frozenset(on.holding)
        )
        looking = backoff.Backoff(backoff.Pace(1.0, 1.0), lambda: 0.0)
        self._supply = pool_builder.PoolBuilder(sources, 0.0, looking, on.clock)
        self._generation = 0

    def turn(self) -> handover.AllocatorState:
        """Read the label, look, compare, write. Raises Unanswered."""
        on, node = self._on, self._on.node()
        self.allocator.update(node)
        self._supply.refresh()
        stored = list(on.objects.values())
        shown = self.allocator.choose_state(stored)
        pool = self._supply.build(
            pool_builder.PublishOptions(names.DRIVER, NODE, shown), stored
        ).pool
        assert pool is not None
        self.allocator.before_write(shown)
        self._generation = max(self._generation, slice_plan.highest_generation(stored))
        memory = slice_plan.WriteHistory(self._generation)
        on.apply(slice_plan.plan_writes(pool, OWNER, stored, memory))
        self.allocator.after_write(shown, node)
        return shown
