"""Inside a node the devices that are chosen are the best there are, by the policies in order."""

import itertools
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driver.resources.dra import claims
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator, scoring
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.policies import base
from driver.scheduling.snapshot import cluster_state
from tests.fakes import simulated_pool
from tests.support import allocation, snapshots
from tests.support.builders import objects

MACHINES = sorted(path.stem for path in Path("simulator/profiles").glob("*.yaml"))
OWNER = slice_builder.Owner(allocation.NODE, "uid")
JUDGE = snapshots.DECIDING.policy_chain
OF = f'device.attributes["{snapshots.DRIVER}"]'
WHOLE = f'{OF}.type == "gpu"'


def node(machine: str) -> list[objects.Raw]:
    return slice_builder.render(
        simulated_pool.of_machine("node-a", "controller", machine), OWNER, 1
    )


PUBLISHED = {machine: node(machine) for machine in MACHINES}


def room_of(view: cluster_state.ClusterState) -> base.NodeCapacity:
    return node_capacity.compute_capacity(view, view.nodes[allocation.NODE])


def decided(view: cluster_state.ClusterState, claim: claims.Claim) -> base.Candidate:
    """A decision, as policies see it."""
    workload = allocation.workload(claim)
    answer = allocation.placed(dra_allocator.allocate(view, workload, snapshots.DECIDING))
    scene = scoring.scoring_context(view, allocation.NODE, room_of(view), workload.pod)
    problem = allocation.problem(view, claim)
    spots = {spot.id: spot for spot in problem.devices}
    usages = [
        scene.usage(spots[assignment.device], assignment.result.consumed)
        for assignment in answer.assignments
    ]
    return scene.candidate(usage for usage in usages if usage is not None)


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=20)
@given(data=st.data())
def test_a_set_of_gpus_is_the_best_of_all_sets(machine: str, data: st.DataObject) -> None:
    whole = [
        device["name"]
        for entry in PUBLISHED[machine]
        for device in entry["spec"].get("devices", ())
        if device["attributes"]["type"] == {"string": "gpu"}
    ]
    assume(whole)
    held = data.draw(st.sets(st.sampled_from(whole), max_size=len(whole) - 1))
    count = data.draw(st.integers(1, min(len(whole) - len(held), 8)))
    taken = [
        snapshots.holding(f"x-{index}", "node-a", name) for index, name in enumerate(sorted(held))
    ]
    view = snapshots.view(*PUBLISHED[machine], taken=taken)
    claim = objects.claim(
        "c", objects.a_request("gpu", count, WHOLE, deviceClassName=snapshots.ANY)
    )
    chosen = decided(view, claim)
    room = room_of(view)
    idle = [index for index, card in enumerate(room.gpus) if card.mode == base.IDLE]
    every = (
        base.Candidate(
            allocation.NODE,
            room,
            room.without(tuple(base.Usage(index, base.WHOLE) for index in places), 1000),
            tuple(base.Usage(index, base.WHOLE) for index in places),
        )
        for places in itertools.islice(itertools.combinations(idle, count), 3000)
    )
    assert JUDGE.scores(chosen) >= max(map(JUDGE.scores, every))


@settings(max_examples=60)
@given(
    taken=st.sets(st.integers(0, 6), max_size=3),
    expected=st.sampled_from(["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"]),
)
def test_a_mig_device_is_put_at_the_best_place_of_all(taken: set[int], expected: str) -> None:
    published = PUBLISHED["hgx-h100"]
    devices = [d["name"] for entry in published for d in entry["spec"].get("devices", ())]
    small = [name for name in devices if "mig-1g10gb-" in name and "me" not in name.split("-")]
    names = [small[index] for index in sorted(taken)]
    held = [snapshots.holding(f"x-{index}", "node-a", name) for index, name in enumerate(names)]
    view = snapshots.view(*published, taken=held)
    text = f'{OF}.type == "mig" && {OF}.profile == "{expected}"'
    claim = objects.claim("c", objects.a_request("m", 1, text, deviceClassName=snapshots.ANY))
    chosen = decided(view, claim)
    room = room_of(view)
    every = [
        base.Usage(index, base.MIG, mask=part.mask)
        for index, card in enumerate(room.gpus)
        if card.mode in {base.IDLE, base.MIG}
        for part in card.model.placements
        if part.profile == expected and part.mask & card.free_slices == part.mask
    ]
    best = max(
        JUDGE.scores(base.Candidate(allocation.NODE, room, room.without((usage,), 1000), (usage,)))
        for usage in every
    )
    assert JUDGE.scores(chosen) == best
