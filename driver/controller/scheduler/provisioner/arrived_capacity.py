"""What waits for nodes has its places on those that are there kept for it, until it has them all.

What is kept lies on the picture by a key that no claim can have, as with Reservations: the others
of a gang are yet to come, and nobody else is to take the first nodes meanwhile, nor an autoscaler
one that is idle.
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
    """On the decider's thread. What it remembers may be lost: the next look finds it again."""

    def __init__(self, world: state.SchedulerContext) -> None:
        self._context = world
        self._held: set[str] = set()

    def has(self, wish: str) -> bool:
        """Whether devices are kept for a wish."""
        return wish in self._held

    def view_for(self, wish: str) -> snapshot.Snapshot:
        """The picture as what they are kept for sees it."""
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
        """Keep the places that wishes have on nodes that are there; of those arriving, all.

        Of wishes that wait for a node yet, or for which one came: the others have no places there.
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
    """Every GPU of a pool, by its first face."""
    cards: dict[int, str] = {}
    for name, face in pool_layout.get_layout(pool).faces.items():
        cards.setdefault(face.gpu, name)
    for name in cards.values():
        yield claims.Result("brought", claims.DeviceId(pool.driver, pool.name, name))
