from dataclasses import replace

from driver import ids
from driver.resources.dra import claims
from driver.scheduling.explain import holders
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes


def crowd() -> occupied_nodes.Crowd:
    return occupied_nodes.of_sizes({"node-a": 4})


def test_the_pods_of_a_node_are_its_tenants_with_what_they_hold() -> None:
    found = crowd()
    found.run("with", "node-a", "gpu-0", "gpu-1")
    found.run("without", "node-a")
    on = found.on("node-a")
    (lease,) = on["with"].claims
    assert [one.device.device for one in lease.results] == ["gpu-0", "gpu-1"]
    assert on["without"].claims == ()


def test_a_pod_elsewhere_that_holds_a_device_which_the_node_reaches_is_one_too() -> None:
    found = crowd()
    far = objects.a_far_slice(1)
    found.node("node-b", far)
    found.run("far", "node-b", {"device": "gpu-0", "pool": "fabric"})
    assert [one.node for one in found.on("node-a").values()] == ["node-b"]


def test_a_pod_on_its_way_is_one_too() -> None:
    found = crowd()
    pod = found.put(objects.pod("coming", "one"))
    found.hold("one", "node-a", "gpu-0", by=[pod])
    assert [*found.on("node-a")] == ["coming"]


def test_a_pod_that_ended_or_is_another_of_the_name_has_nothing_any_more() -> None:
    for other in (
        objects.pod("gone", "one", status={"phase": "Succeeded"}, nodeName="node-a"),
        replace(objects.pod("gone", "one"), uid=ids.PodUid("another")),
    ):
        found = crowd()
        before = objects.pod("gone", "one", nodeName="node-a")
        found.put(other)
        found.hold("one", "node-a", "gpu-0", by=[before])
        assert found.on("node-a") == {}


def test_a_claim_is_free_once_all_who_have_it_are_gone() -> None:
    found = crowd()
    both = [found.put(objects.pod(name, "one", nodeName="node-a")) for name in ("p", "q")]
    found.hold("one", "node-a", "gpu-0", by=both)
    on = found.on("node-a")
    assert holders.freed_claims([on["p"]]) == frozenset()
    assert holders.freed_claims([on["p"], on["q"]]) == {"default/one"}


def test_what_something_else_has_reserved_too_no_pod_frees() -> None:
    found = crowd()
    pod = found.put(objects.pod("p", "one", nodeName="node-a"))
    claim = found.hold("one", "node-a", "gpu-0", by=[pod])
    thing = claims.Consumer("example.com", "things", "x", "y")
    found.put_claim(replace(claim, consumers=(*claim.consumers, thing)))
    assert holders.freed_claims(found.on("node-a").values()) == frozenset()


def test_a_pod_holds_no_claim_that_it_names_without_reserving_it() -> None:
    found = crowd()
    user = found.put(objects.pod("user", "one", nodeName="node-a"))
    found.put(objects.pod("waits", "one", nodeName="node-a"))
    found.hold("one", "node-a", "gpu-0", by=[user])
    on = found.on("node-a")
    assert (len(on["user"].claims), len(on["waits"].claims)) == (1, 0)
