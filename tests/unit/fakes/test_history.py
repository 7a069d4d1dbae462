"""The judge itself: it says no exactly where too much is given out."""

from typing import Any

from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.fakes import history, simulated_pool
from tests.support.builders import objects


def judge() -> history.History:
    pool = simulated_pool.of_machine("node-a", "controller")
    owner = slice_builder.Owner(simulated_pool.node_name("node-a"), "uid")
    return history.History(slices.parse(entry) for entry in slice_builder.render(pool, owner, 1))


GPU = "gpu-0000-53-00-0"


def holding(name: str, *devices: str, consumed: Any = None) -> dict[str, Any]:
    status = objects.allocated("node-a", *devices)
    if consumed:
        for result in status["allocation"]["devices"]["results"]:
            result |= {"consumedCapacity": consumed, "shareID": objects.uid_of(name)}
    return objects.a_claim(name, status=status)


def whats(result: history.History) -> set[str]:
    return {breach.what for breach in result.breaches}


def test_two_claims_on_one_gpu_are_a_breach_unless_one_follows_the_other() -> None:
    result = judge()
    result.see(1, holding("one", GPU))
    result.see(2, objects.a_claim("one"))
    result.see(3, holding("two", GPU))
    assert result.breaches == []
    result.see(4, holding("one", GPU))
    assert f"node-a/{GPU} is exclusive" in whats(result)
    assert result.breaches[0].holders == ("default/one", "default/two")
    assert result.counts["allocated"] == 3


def test_a_claim_with_the_same_device_twice_is_a_breach() -> None:
    result = judge()
    result.see(1, holding("one", GPU, GPU))
    assert f"node-a/{GPU} is exclusive" in whats(result)


def test_a_whole_gpu_beside_a_share_of_it_is_a_breach_of_its_counters() -> None:
    result = judge()
    result.see(1, holding("one", f"{GPU}-mps", consumed={"memory": "20Gi"}))
    result.see(2, holding("two", f"{GPU}-mps", consumed={"memory": "20Gi"}))
    assert result.breaches == []
    result.see(3, holding("three", GPU))
    assert any("counter" in description for description in whats(result))


def test_shares_beyond_the_memory_of_the_gpu_are_a_breach() -> None:
    result = judge()
    result.see(1, holding("one", f"{GPU}-mps", consumed={"memory": "50Gi"}))
    result.see(2, holding("two", f"{GPU}-mps", consumed={"memory": "50Gi"}))
    assert whats(result) == {f"node-a/{GPU}-mps: memory"}


def test_a_deleted_claim_holds_nothing() -> None:
    result = judge()
    result.see(1, holding("one", GPU))
    assert result.holders() == ("default/one",)
    result.see(2, holding("one", GPU), deleted=True)
    assert result.holders() == ()
    assert result.counts["deleted while allocated"] == 1
