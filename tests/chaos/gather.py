"""A look at the world: what invariants judge."""

import datetime as dt
import itertools
from typing import Any

from driver import errors, names
from driver.kube import gvr
from driver.resources.dra import claims, slices
from hack.cluster import control, layout, store
from tests.chaos import load, seen, world

DEAD_S = 3600.0
"""As old a Lease's holder counts that has ended."""


class Gatherer:
    """Used by one thread."""

    def __init__(self, source: world.World, work: load.Load) -> None:
        self._world = source
        self._load = work
        self._where = layout.Layout(world.ROOT)

    def look(self) -> seen.World:
        """Raises ApiError while the API server is away."""
        kube = self._world.kube
        # Hardware and records before the API: what the API has let go may still be on the node,
        # and never the other way round.
        return seen.World(
            nodes=tuple(node.look() for node in self._world.nodes),
            pods=self._load.pods(),
            claims=tuple(claims.parse(item) for item in kube.list(gvr.RESOURCE_CLAIMS).items),
            slices=tuple(
                slices.parse(item)
                for item in kube.list(
                    gvr.RESOURCE_SLICES, field_selector=f"spec.driver={names.DRIVER}"
                ).items
            ),
            conditions=self.readiness(),
            lease_age_s=self._lease_age(),
            nodes_ready=frozenset(
                item["metadata"]["name"] for item in kube.list(gvr.NODES).items if _is_ready(item)
            ),
        )

    def conditions(self) -> dict[str, str]:
        """Each component's, by name and node."""
        result = {}
        for component, node in store.running(self._where).components():
            name = component if node is None else f"{component}.{node}"
            result[name] = control.condition(self._where, component, node)
        return result

    def readiness(self) -> dict[str, str]:
        """Same as `conditions`, and of ours that run also whether they are ready."""
        conditions = self.conditions()
        for side, component in itertools.product(self._world.nodes, world.OURS):
            name = f"{component}.{side.name}"
            if conditions[name] == "running" and not self._world.is_ready(component, side.name):
                conditions[name] = "not ready"
        return conditions

    def _lease_age(self) -> float:
        """Clocks that were stepped may have it in the future: that is as old."""
        try:
            lease = self._world.kube.get(gvr.LEASES, "ration-controller", "ration-system")
        except errors.NotFound:
            return DEAD_S
        spec: Any = lease["spec"]
        holder = str(spec.get("holderIdentity") or "")
        own = next((name for name in world.CONTROLLERS if holder.startswith(name)), "")
        if not own or self._world.died.get(own, 0.0) > _moment(spec.get("acquireTime")):
            return DEAD_S
        return abs(self._world.time.now().timestamp() - _moment(spec.get("renewTime")))


def _moment(text: str | None) -> float:
    return dt.datetime.fromisoformat(text).timestamp() if text else 0.0


def _is_ready(node: gvr.Object) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )
