"""The judge of allocators: it says no exactly where the wrong one allocated."""

from typing import Any

from driver import names
from driver.resources.dra import slices
from tests.fakes import allocator_history
from tests.support.builders import objects

DRIVER = "gpu.example.com"
RULES = {"handover": names.HANDOVER_TAINT, "allocator": names.ALLOCATOR_TAINT}


def judge() -> allocator_history.AllocatorHistory:
    published = objects.a_slice("node-a", [objects.a_device("gpu-0", taints=[])], DRIVER)
    return allocator_history.AllocatorHistory([slices.parse(published)])


def rule(taint: str, pool: str = "") -> dict[str, Any]:
    selector = {"driver": DRIVER, **({"pool": pool} if pool else {})}
    spec = {"deviceSelector": selector, "taint": {"key": RULES[taint], "effect": "NoSchedule"}}
    return {"metadata": {"name": f"rule-{pool}"}, "spec": spec}


def allocated(name: str, manager: str) -> dict[str, Any]:
    device = {"device": "gpu-0", "driver": DRIVER}
    claim = objects.a_claim(name, status=objects.allocated("node-a", device))
    fields: dict[str, Any] = {"f:status": {"f:allocation": {}}}
    claim["metadata"]["managedFields"] = [{"manager": manager, "fieldsV1": fields}]
    return claim


def test_each_allocator_may_give_what_is_its_own_at_that_version() -> None:
    history = judge()
    history.see(1, allocated("first", "kube-scheduler"))
    history.see(2, objects.a_claim("first"))
    history.see(5, allocated("second", "ration-controller"))
    # The rules are heard of later, and count from their versions on.
    history.see_rule(3, rule("handover"), 10.0)
    history.see_rule(4, rule("allocator"), 40.0)
    assert (history.wrong(), history.late(), history.breaches) == ([], [], [])
    assert (history.by("scheduler"), history.by("controller")) == (1, 1)


def test_an_allocation_of_the_others_device_is_wrong() -> None:
    history = judge()
    history.see_rule(1, rule("allocator"), 0.0)
    history.see(2, allocated("first", "kube-scheduler"))
    (wrong,) = history.wrong()
    assert wrong == "default/first version 2: node-a/gpu-0 by scheduler, controller's"


def test_in_a_handover_the_next_allocator_is_wrong_and_the_last_one_late() -> None:
    history = judge()
    history.see_rule(1, rule("handover"), 10.0)
    history.now_s = 12.5
    history.see(2, allocated("late", "kube-scheduler"))
    history.see(3, objects.a_claim("late"))
    history.see(4, allocated("early", "ration-controller"))
    (late,) = history.late()
    assert (late.claim, late.after_s) == ("default/late", 2.5)
    (wrong,) = history.wrong()
    assert wrong.startswith("default/early version 4")


def test_a_pools_rule_counts_for_that_pool_and_while_it_exists() -> None:
    history = judge()
    history.see_rule(1, rule("allocator", "node-b"), 0.0)
    history.see(2, allocated("first", "kube-scheduler"))
    history.see(3, objects.a_claim("first"))
    history.see_rule(4, rule("allocator", "node-a"), 0.0)
    history.see_rule(5, rule("allocator", "node-a"), 0.0, deleted=True)
    history.see(6, allocated("second", "kube-scheduler"))
    assert history.wrong() == []
