"""Small clusters with pods that may go or not, who waits, and all sets that may go and would do."""

import datetime as dt
import functools
import itertools
import random  # noqa: TID251 - a number makes the same world every time
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from driver.api import queues as api
from driver.resources import disruption_budgets
from driver.resources.core import node_selectors, pods
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import holders
from driver.scheduling.gangs import placement as gang_placement
from driver.scheduling.gangs import topology
from driver.scheduling.gangs import types as gang_types
from driver.scheduling.preemption import policy as preemption_policy
from driver.scheduling.preemption import types as preemption_types
from driver.scheduling.preemption import victims
from driver.scheduling.snapshot import cluster_state
from tests.properties import drawing, populated
from tests.support import snapshots
from tests.support.builders import objects

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
OWNER = pods.Owner("ReplicaSet", "web", "u")
QUEUES = ("", "batch", "vision")
MODES = typing.get_args(api.Reclaim) + ("Any",) * 3
Cost = tuple[int, int]


@dataclass
class World:
    """A cluster as it is, who waits, and what says who may go for them."""

    there: populated.World
    members: Sequence[allocator_types.Workload]
    preemptor: preemption_policy.Preemptor
    leaves: Mapping[str, preemption_policy.QueueState] = field(default_factory=dict)
    disruptions: Sequence[disruption_budgets.Budget] = ()

    def queue_state(self, pod: pods.Pod) -> preemption_policy.QueueState:
        """The queue that a pod's label names."""
        return self.leaves.get(pod.labels.get("queue", ""), preemption_policy.QueueState())

    @functools.cached_property
    def view(self) -> cluster_state.ClusterState:
        return self.there.view

    @property
    def ask(self) -> preemption_types.PreemptionRequest:
        return preemption_types.PreemptionRequest(self.view, self.members, snapshots.DECIDING)

    @property
    def right(self) -> preemption_policy.PreemptionPolicy:
        return preemption_policy.PreemptionPolicy(
            self.preemptor, self, disruption_budgets.BudgetIndex(self.disruptions), NOW
        )

    @functools.cached_property
    def book(self) -> victims.VictimIndex:
        victim_index = victims.VictimIndex()
        for claim in self.there.held.values():
            victim_index.set_claim(claim.key, claim)
        for pod in self.there.known.values():
            victim_index.set_pod(pod.key, pod)
        return victim_index


def faces(dice: random.Random, node: str) -> list[drawing.Raw]:
    """GPUs as they are published: whole, time-sliced, by MPS, in parts; one way at a time."""
    sets, devices = {}, []
    for number in range(dice.choice([1, 2, 2, 3])):
        name = f"gpu-{number}"
        sets[name] = {f"slice-{index}": "1" for index in range(4)}
        every = dict.fromkeys(sets[name], "1")
        devices.append(objects.drawing(name, name, **every))
        for sharing in ("mps", "time-slicing"):
            whole = objects.drawing(f"{name}-{sharing}", name, **every)
            devices.append({**whole, **objects.a_share_device(whole["name"], sharing)})
            devices[-1]["consumesCounters"] = whole["consumesCounters"]
        for first, size in ((0, 1), (1, 1), (2, 2), (0, 2)):
            taken = {f"slice-{index}": "1" for index in range(first, first + size)}
            part = objects.drawing(f"{name}-mig-{size}-{first}", name, **taken)
            devices.append(objects.with_values(part, type="mig"))
    return objects.counting(sets, devices, node)


def body(dice: random.Random) -> drawing.Raw:
    """Whole GPUs, parts, or a share of one."""
    kind = dice.choice(["gpu", "gpu-share", "gpu-share", "mig", "mps"])
    typed = "gpu-share" if kind == "mps" else kind
    text = f'device.attributes["{snapshots.DRIVER}"].type == "{typed}"'
    if kind == "mps":
        text = f'device.attributes["{snapshots.DRIVER}"].sharing == "mps"'
    result: drawing.Raw = {
        "deviceClassName": snapshots.ANY,
        "count": dice.choice([1, 1, 1, 2]) if kind in {"gpu", "mig"} else 1,
        "selectors": [{"cel": {"expression": text}}],
    }
    if typed == "gpu-share":
        result["capacity"] = {"requests": {"memory": dice.choice(["20Gi", "40Gi", "60Gi"])}}
    return result


def crowd(dice: random.Random, most: int) -> populated.World:
    """Workloads of all kinds that found places, until about nothing is left."""
    published = [face for node in drawing.NODES for face in faces(dice, node)]
    claim = objects.claim("claim-99", {"name": "r", "exactly": body(dice)})
    pod = populated.a_pod("pod-99", dice.choice("1126"), claim.name)
    world = populated.World(published, allocator_types.Workload(pod, (claim,)))
    for number in range(dice.randint(0, 1)):
        pod = populated.a_pod(f"plain-{number}", "5", nodeName=dice.choice(drawing.NODES))
        world.known[pod.key] = pod
    view, allocator = world.view, dra_allocator.Allocator(snapshots.DECIDING)
    for number in range(most):
        request: drawing.Raw = {"deviceClassName": snapshots.ANY, "count": 1}
        request = body(dice) if dice.random() < 0.7 else request
        claim = objects.claim(f"claim-{number}", {"name": "r", "exactly": request})
        come(dice, world, claim, view, allocator)
        for held in world.held.values():
            view.set_claim(held.key, held)
        for item in world.known.values():
            view.set_pod(item.key, item)
    return world


def come(
    dice: random.Random,
    world: populated.World,
    claim: claims.Claim,
    view: cluster_state.ClusterState,
    allocator: dra_allocator.Allocator,
) -> None:
    """A pod, or two with one claim, find a place or do not."""
    pod = populated.a_pod(f"{claim.name}-pod", "1", claim.name)
    workload = allocator_types.Workload(pod, (claim,))
    answer = allocator.decide(view, workload)
    if not isinstance(answer, allocator_types.Placement):
        return
    users = [pod]
    if dice.random() < 0.15:
        users.append(populated.a_pod(f"{claim.name}-also", "1", claim.name, nodeName=answer.node))
    (allocation,) = allocation_result.build_allocations(view, workload, answer, "").values()
    by = tuple(claims.Consumer("", "pods", user.name, user.uid) for user in users)
    world.held[claim.key] = replace(claim, allocation=allocation, consumers=by)
    world.known |= {user.key: user for user in users}


def life(dice: random.Random, pod: pods.Pod, odd: float) -> pods.Pod:
    """A pod as it runs: since when, whose it is, what it is part of."""
    age = dice.choice([0, 60, 600, 601, 3600, 7200])
    none, back = None, pods.Owner("DaemonSet", "web", "u")
    return replace(
        pod,
        priority=dice.choice([0, 0, 0, 5, 10]),
        owner=dice.choice([none, back]) if dice.random() < odd else OWNER,
        preemptible=dice.random() < 0.5,
        deleting=dice.random() < odd / 2,
        gang=dice.choice(["", "", "", "", "", "g", "h"]),
        labels={"app": dice.choice("ab"), "queue": dice.choice(QUEUES)},
        phase=dice.choice(["Running", "Running", "Running", "Pending"]),
        started=(NOW - dt.timedelta(seconds=age)).isoformat() if dice.random() < 0.9 else "",
        created=(NOW - dt.timedelta(seconds=age + 5)).isoformat(),
    )


def guards(dice: random.Random) -> list[disruption_budgets.Budget]:
    """At most two, of one namespace."""
    budgets = []
    for number in range(dice.choice([0, 0, 0, 1, 2])):
        apps = dice.choice([("a",), ("a",), ("b",), ()])
        selects = tuple(node_selectors.Expression("app", "In", (app,)) for app in apps)
        budgets.append(
            disruption_budgets.Budget("default", f"budget-{number}", selects, dice.randint(0, 4))
        )
    return budgets


def turns(dice: random.Random) -> dict[str, preemption_policy.QueueState]:
    """Queues, or none."""
    if dice.random() < 0.6:
        return {}
    return {
        name: preemption_policy.QueueState(
            name,
            preemptible=dice.random() < 0.95,
            reclaim=dice.choice(MODES),
            min_run_s=dice.choice([0.0, 0.0, 0.0, 601.0]),
            surplus=dice.choice([-500, 0, 1, 400, 1000, 2000, 2000, 3000, 9000, 9000]),
            is_idle=dice.random() < 0.1,
        )
        for name in QUEUES
    }


def rule(dice: random.Random, present: populated.World, *, gang: bool = False) -> World:
    """With one pod that waits, or a gang."""
    view = present.view
    bound = {
        node_holder.key: node_holder.node
        for name in view.nodes
        for node_holder in present.people(view).node_holders(name)
    }
    odd = dice.choice([0.0, 0.0, 0.1, 0.2])
    for key, node in sorted(bound.items()):
        present.known[key] = life(dice, replace(present.known[key], node=node), odd)
    leaves = turns(dice)
    preemptor = preemption_policy.Preemptor(
        dice.choice([0, 5, 10]) if dice.random() < odd else 100,
        dice.choice(QUEUES) if leaves else "",
        preempts=dice.random() >= odd / 2,
        is_within_fair_share=dice.random() >= odd,
    )
    members = waiting(dice) if gang else [present.asked]
    return World(present, members, preemptor, leaves, guards(dice))


def world(seed: int, *, gang: bool = False) -> World:
    """The world of a number."""
    dice = random.Random(seed)  # noqa: S311 - a seed is the point
    return rule(dice, crowd(dice, 9 if gang else 14), gang=gang)


@st.composite
def ruled(draw: st.DrawFn) -> World:
    """One that uses all of the language of DRA."""
    present = draw(populated.populated())
    return rule(random.Random(draw(st.integers(0, 1 << 32))), present)  # noqa: S311


def waiting(dice: random.Random) -> list[allocator_types.Workload]:
    """Two or three members, alike or not."""
    workloads = []
    request = body(dice)
    for number in range(dice.choice([2, 2, 3])):
        claim = objects.claim(f"new-{number}", {"name": "r", "exactly": request})
        pod = populated.a_pod(f"new-{number}", "1", claim.name)
        workloads.append(allocator_types.Workload(pod, (claim,)))
    if dice.random() < 0.3:
        claim = objects.claim("leader", {"name": "r", "exactly": body(dice)})
        workloads.append(
            allocator_types.Workload(populated.a_pod("leader", "2", claim.name), (claim,))
        )
    return workloads


def together(world: World) -> list[tuple[holders.DeviceHolder, ...]]:
    """Return what goes together: by gang, else alone."""
    view = world.view
    every = {
        node_holder.key: node_holder
        for name in view.nodes
        for node_holder in world.there.people(view).node_holders(name)
    }
    result: dict[object, list[holders.DeviceHolder]] = {}
    for key, device_holder in sorted(every.items()):
        result.setdefault(
            ("gang", device_holder.pod.gang) if device_holder.pod.gang else key, []
        ).append(device_holder)
    return [tuple(device_holders) for device_holders in result.values()]


def is_legal(world: World, leaving: Sequence[Sequence[holders.DeviceHolder]]) -> bool:
    """Return whether the policy allows it, written independently."""
    gone = [device_holder.pod for party in leaving for device_holder in party]
    for party in leaving:
        if not all(
            _may(world, device_holder.pod, max(each.pod.priority for each in party))
            for device_holder in party
        ):
            return False
    for budget in world.disruptions:
        if sum(budget.covers(pod) for pod in gone) > budget.allowed:
            return False
    if any(sum(disruption.covers(pod) for disruption in world.disruptions) > 1 for pod in gone):
        return False
    others = (leaf for name, leaf in world.leaves.items() if name != world.preemptor.queue)
    return all(_in_surplus(world, leaf, leaving) for leaf in others)


def _in_surplus(
    world: World,
    leaf: preemption_policy.QueueState,
    leaving: Sequence[Sequence[holders.DeviceHolder]],
) -> bool:
    """One after the other, the smallest first: something is left before each."""
    parties = [
        device_holders
        for device_holders in leaving
        if any(world.queue_state(each.pod) == leaf for each in device_holders)
    ]
    left = leaf.surplus
    for size in sorted(unit(world, party).thousandths for party in parties):
        if left <= 0:
            return False
        left -= size
    return True


def stays(pod: pods.Pod) -> bool:
    """Return whether its owner has it on its node again."""
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def _may(world: World, pod: pods.Pod, priority: int) -> bool:
    leaf, mine = world.queue_state(pod), world.preemptor
    again = pod.owner.kind != "DaemonSet" if pod.owner else pod.preemptible
    started = dt.datetime.fromisoformat(pod.started) if pod.started else NOW
    ran = (NOW - started).total_seconds() >= leaf.min_run_s
    if leaf.name == mine.queue:
        right = priority < mine.priority
    else:
        lower = priority < mine.priority or leaf.reclaim == "Any"
        right = mine.is_within_fair_share and lower and leaf.reclaim != "Never" and leaf.surplus > 0
    return right and again and ran and leaf.preemptible and mine.preempts and not pod.deleting


def unit(world: World, party: Sequence[holders.DeviceHolder]) -> victims.Victim:
    """The book's unit of these."""
    return world.book.all_victims(world.view)[world.book.victim_key(party[0].pod)]


def cost(world: World, leaving: Sequence[Sequence[holders.DeviceHolder]]) -> Cost:
    """Thousandths of GPUs times seconds, and pods."""
    lost = 0
    for party in leaving:
        if not all(world.queue_state(device_holder.pod).is_idle for device_holder in party):
            lost += unit(world, party).lost_at(NOW.timestamp())
    return lost, sum(map(len, leaving))


def least(world: World) -> Cost | None:
    """Return what the cheapest set costs that may go and does; None: there is none.

    Where a set does not do, no set does that it holds: fewer gone leave no more room.
    """
    parties = together(world)
    legal = [
        frozenset(gone)
        for size in range(len(parties), -1, -1)
        for gone in itertools.combinations(range(len(parties)), size)
        if is_legal(world, [parties[index] for index in gone])
    ]
    in_vain: list[frozenset[int]] = []
    for number, gone in enumerate(legal):
        largest = not any(gone < other for other in legal[:number])
        if largest and not does(world, [parties[number] for number in gone]):
            in_vain.append(gone)
    priced = sorted(
        (cost(world, [parties[number] for number in gone]), sorted(gone)) for gone in legal
    )
    for price, names in priced:
        gone = frozenset(names)
        if any(gone <= other for other in in_vain):
            continue
        if does(world, [parties[name] for name in names]):
            return price
        in_vain.append(gone)
    return None


def does(world: World, leaving: Sequence[Sequence[holders.DeviceHolder]]) -> bool:
    """Return whether all members fit once these are gone."""
    view = world.there.without([device_holder for party in leaving for device_holder in party])
    if len(world.members) == 1:
        nodes = view.nodes.values()
        return any(populated.fits(view, world.members[0], node) for node in nodes)
    near = topology.Topology()
    answer = gang_placement.place_gang(world.members, view, near, snapshots.DECIDING)
    return isinstance(answer, gang_types.GangPlacement)
