"""The judge itself: it says no exactly where too much is given out."""

from typing import Any

from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.fakes import history, simulated_pool
from tests.support.builders import objects


def judge() -> history.History:
    pool = simulated_pool.of_machine("node-a", "controller")
    owner = slice_builder.Owner(simulated_pool.node_name("node-a"), "uid")
    return history.History(slices.parse(one) for one in slice_builder.render(pool, owner, 1))


GPU = "gpu-0000-53-00-0"


def holding(name: str, *devices: str, consumed: Any = None) -> dict[str, Any]:
    status = objects.allocated("node-a", *devices)
    if consumed:
        for one in status["allocation"]["devices"]["results"]:
            one |= {"consumedCapacity": consumed, "shareID": objects.uid_of(name)}
    return objects.a_claim(name, status=status)


def whats(found: history.History) -> set[str]:
    return {one.what for one in found.breaches}


def test_two_claims_on_one_gpu_are_a_breach_unless_one_follows_the_other() -> None:
    found = judge()
    found.see(1, holding("one", GPU))
    found.see(2, objects.a_claim("one"))
    found.see(3, holding("two", GPU))
    assert found.breaches == []
    found.see(4, holding("one", GPU))
    assert f"node-a/{GPU} is exclusive" in whats(found)
    assert found.breaches[0].holders == ("default/one", "default/two")
    assert found.counts["allocated"] == 3


def test_a_claim_with_the_same_device_twice_is_a_breach() -> None:
    found = judge()
    found.see(1, holding("one", GPU, GPU))
    assert f"node-a/{GPU} is exclusive" in whats(found)


def test_a_whole_gpu_beside_a_share_of_it_is_a_breach_of_its_counters() -> None:
    found = judge()
    found.see(1, holding("one", f"{GPU}-mps", consumed={"memory": "20Gi"}))
    found.see(2, holding("two", f"{GPU}-mps", consumed={"memory": "20Gi"}))
    assert found.breaches == []
    found.see(3, holding("three", GPU))
    assert any("counter" in what for what in whats(found))


def test_shares_beyond_the_memory_of_the_gpu_are_a_breach() -> None:
    found = judge()
    found.see(1, holding("one", f"{GPU}-mps", consumed={"memory": "50Gi"}))
    found.see(2, holding("two", f"{GPU}-mps", consumed={"memory": "50Gi"}))
    assert whats(found) == {f"node-a/{GPU}-mps: memory"}


def test_a_deleted_claim_holds_nothing() -> None:
    found = judge()
    found.see(1, holding("one", GPU))
    assert found.holders() == ("default/one",)
    found.see(2, holding("one", GPU), deleted=True)
    assert found.holders() == ()
    assert found.counts["deleted while allocated"] == 1
