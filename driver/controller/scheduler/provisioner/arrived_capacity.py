"""Holds arrived capacity for the demand it was provisioned for, until all of it is there.

The devices are reserved in the view by a key that no claim can have, as with Reservations: other
pods must not take the first nodes of a gang meanwhile, nor an autoscaler remove an idle one.
"""

from collections.abc import Iterable, Mapping, Sequence

from driver import ids
from driver.controller.scheduler import state
from driver.resources.dra import claims, pools
from driver.scheduling.allocator.capacity import pool_layout
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.provisioning import demand as provisioning_demand
from driver.scheduling.reservations import device_plan, term
from driver.scheduling.reservations import overlay as reservation_overlay
from driver.scheduling.snapshot import snapshot


class ArrivedCapacity:
    """On the decider's thread. State may be lost: the next reconcile finds it again."""

    def __init__(self, world: state.SchedulerContext) -> None:
        self._context = world
        self._held: set[str] = set()

    def has(self, wish: str) -> bool:
        """Return whether devices are held for a demand."""
        return wish in self._held

    def view_for(self, wish: str) -> snapshot.Snapshot:
        """Return the view without what is held for the demand itself."""
        if wish not in self._held:
            return self._context.view
        return reservation_overlay.WithoutReservations(
            self._context.view, [provisioning_demand.provisioned_key(wish)]
        )

    def refresh(
        self,
        seats: Mapping[str, Sequence[gang_types.MemberPlacement]],
        brought: Mapping[str, Iterable[ids.NodeName]],
        arriving: Mapping[ids.NodeName, pools.Pool],
    ) -> None:
        """Hold the places of demands on existing nodes; on arriving nodes all devices.

        Only for demands that still wait for a node, or for which one arrived.
        """
        allocations: dict[str, claims.Allocation] = {}
        for wish in {**seats, **brought}:
            node_names = frozenset(brought.get(wish, ()))
            present = [seat for seat in seats.get(wish, ()) if self._exists(seat)]
            if not node_names and len(present) == len(seats.get(wish, ())):
                continue
            held = term.held_allocation(device_plan.held_devices(self._context.view, present))
            whole = [
                seat
                for name in node_names & arriving.keys()
                for seat in _whole_gpus(arriving[name])
            ]
            results = (*(held.results if held else ()), *whole)
            if results:
                allocations[wish] = claims.Allocation(results)
        for wish in self._held - allocations.keys():
            self._context.view.set_reserved_devices(provisioning_demand.provisioned_key(wish), None)
        for wish, allocation in allocations.items():
            self._context.view.set_reserved_devices(
                provisioning_demand.provisioned_key(wish), allocation
            )
        self._held = {*allocations}

    def _exists(self, member_placement: gang_types.MemberPlacement) -> bool:
        return member_placement.placement.node in self._context.view.nodes


def _whole_gpus(pool: pools.Pool) -> Iterable[claims.Result]:
    """Yield every GPU of a pool by its first face."""
    cards: dict[int, str] = {}
    for name, face in pool_layout.get_layout(pool).faces.items():
        cards.setdefault(face.gpu, name)
    for name in cards.values():
        yield claims.Result("brought", claims.DeviceId(pool.driver, pool.name, name))
