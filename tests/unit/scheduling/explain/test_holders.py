from dataclasses import replace

from driver import ids
from driver.resources.dra import claims
from driver.scheduling.explain import holders
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes


def crowd() -> occupied_nodes.Crowd:
    return occupied_nodes.of_sizes({"node-a": 4})


def test_the_pods_of_a_node_are_its_tenants_with_what_they_hold() -> None:
    result = crowd()
    result.run("with", "node-a", "gpu-0", "gpu-1")
    result.run("without", "node-a")
    on = result.on("node-a")
    (lease,) = on["with"].claims
    assert [result.device.device for result in lease.results] == ["gpu-0", "gpu-1"]
    assert on["without"].claims == ()


def test_a_pod_elsewhere_that_holds_a_device_which_the_node_reaches_is_one_too() -> None:
    result = crowd()
    far = objects.a_far_slice(1)
    result.node("node-b", far)
    result.run("far", "node-b", {"device": "gpu-0", "pool": "fabric"})
    assert [device_holder.node for device_holder in result.on("node-a").values()] == ["node-b"]


def test_a_pod_on_its_way_is_one_too() -> None:
    result = crowd()
    pod = result.put(objects.pod("coming", "one"))
    result.hold("one", "node-a", "gpu-0", by=[pod])
    assert [*result.on("node-a")] == ["coming"]


def test_a_pod_that_ended_or_is_another_of_the_name_has_nothing_any_more() -> None:
    for other in (
        objects.pod("gone", "one", status={"phase": "Succeeded"}, nodeName="node-a"),
        replace(objects.pod("gone", "one"), uid=ids.PodUid("another")),
    ):
        result = crowd()
        previous = objects.pod("gone", "one", nodeName="node-a")
        result.put(other)
        result.hold("one", "node-a", "gpu-0", by=[previous])
        assert result.on("node-a") == {}


def test_a_claim_is_free_once_all_who_have_it_are_gone() -> None:
    result = crowd()
    both = [result.put(objects.pod(name, "one", nodeName="node-a")) for name in ("p", "q")]
    result.hold("one", "node-a", "gpu-0", by=both)
    on = result.on("node-a")
    assert holders.freed_claims([on["p"]]) == frozenset()
    assert holders.freed_claims([on["p"], on["q"]]) == {"default/one"}


def test_a_claim_reserved_by_others_is_not_freed_by_a_pod() -> None:
    result = crowd()
    pod = result.put(objects.pod("p", "one", nodeName="node-a"))
    claim = result.hold("one", "node-a", "gpu-0", by=[pod])
    thing = claims.Consumer("example.com", "things", "x", "y")
    result.put_claim(replace(claim, consumers=(*claim.consumers, thing)))
    assert holders.freed_claims(result.on("node-a").values()) == frozenset()


def test_a_pod_holds_no_claim_that_it_names_without_reserving_it() -> None:
    result = crowd()
    user = result.put(objects.pod("user", "one", nodeName="node-a"))
    result.put(objects.pod("waits", "one", nodeName="node-a"))
    result.hold("one", "node-a", "gpu-0", by=[user])
    on = result.on("node-a")
    assert (len(on["user"].claims), len(on["waits"].claims)) == (1, 0)
