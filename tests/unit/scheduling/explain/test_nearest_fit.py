"""The nearest fit, as values and in words."""

from dataclasses import replace

import pytest

from driver import ids, names
from driver.resources import quantities
from driver.resources.core import pods
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import messages as explain_messages
from driver.scheduling.explain import nearest_fit, shortage, step_budget
from tests.fakes import simulated_pool
from tests.support import allocation, snapshots
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes


def near(
    crowd: occupied_nodes.Crowd,
    workload: allocator_types.Workload,
    most: int = nearest_fit.MAX_STEPS,
) -> nearest_fit.NearestFit:
    answer = allocation.refused(dra_allocator.allocate(crowd.view, workload, snapshots.DECIDING))
    fit = nearest_fit.find_nearest_fit(
        crowd.view, workload, answer, crowd.people, snapshots.DECIDING, step_budget.StepBudget(most)
    )
    assert fit is not None
    return fit


def told(crowd: occupied_nodes.Crowd, workload: allocator_types.Workload) -> str:
    return explain_messages.nearest_fit_message(near(crowd, workload))


def hgx(*nodes: str) -> occupied_nodes.Crowd:
    """Eight H100 each, with every face."""
    crowd = occupied_nodes.Crowd()
    for node in nodes:
        pool = simulated_pool.of_machine(node, "controller")
        owner = slice_builder.Owner(ids.NodeName(node), "uid")
        published = [dict(entry) for entry in slice_builder.render(pool, owner, 1)]
        crowd.node(node, *published, cpu="192", memory="2Ti")
    return crowd


def fill(crowd: occupied_nodes.Crowd, node: str, count: int, memory: str = "48Gi") -> None:
    """Shares of so much on the first GPUs of a node, the last one whole."""
    faces = [
        device.name
        for share in crowd.view.reachable_pools(ids.NodeName(node))
        for part, _ in share.slices
        for device in part.devices
        if device.name.endswith("-mps")
    ]
    for index, face in enumerate(faces[:count]):
        amounts = {"memory": memory, "compute": "50", "shares": "1"}
        crowd.run(f"{node}-{index}", node, objects.a_share(face, index + 1, **amounts))


def by_need(memory: str) -> allocator_types.Workload:
    request = {"requests": {"memory": memory}}
    return occupied_nodes.asks(
        objects.a_request(deviceClassName=names.CLASS_SLICE, capacity=request)
    )


def test_cordoned_gpus_are_not_reported_as_missing() -> None:
    cordoned = {"key": names.CORDONED_TAINT, "effect": "NoSchedule"}
    device = objects.a_device("gpu-0", taints=[objects.ALLOCATOR_TAINT, cordoned])
    crowd = occupied_nodes.of_sizes({"node-b": 4})
    crowd.node("node-a", objects.a_slice("node-a", [device, *map(objects.a_device, "abcd")]))

    def found(count: int) -> nearest_fit.NearestFit | None:
        workload = occupied_nodes.gpus(count)
        answer = allocation.refused(
            dra_allocator.allocate(crowd.view, workload, snapshots.DECIDING)
        )
        meter = step_budget.StepBudget(nearest_fit.MAX_STEPS)
        return nearest_fit.find_nearest_fit(
            crowd.view, workload, answer, crowd.people, snapshots.DECIDING, meter
        )

    assert found(5) is None
    assert found(6) is not None


def test_memory_is_told_of_the_device_that_has_most() -> None:
    crowd = hgx("node-b")
    fill(crowd, "node-b", 8)
    fit = near(crowd, by_need("40Gi"))
    assert fit.gap == shortage.CapacityGap(
        ids.NodeName("node-b"),
        "memory",
        quantities.parse("40Gi"),
        quantities.parse("32407Mi"),
        "gpu-0000-53-00-0-mps",
    )
    assert (fit.can_ever_fit, fit.is_optimal, fit.is_exhaustive) == (True, True, True)
    assert explain_messages.nearest_fit_message(fit) == (
        "Needs 40Gi of one GPU; best is node-b gpu-0000-53-00-0-mps: 32407Mi free; "
        "freeing pod default/node-b-0 would do"
    )


def test_memory_that_no_gpu_has_is_told_so() -> None:
    crowd = hgx("node-a", "node-b")
    fill(crowd, "node-b", 8)
    fill(crowd, "node-a", 8)
    fit = near(crowd, by_need("141Gi"))
    assert (fit.can_ever_fit, fit.leaving) == (False, ())
    text = explain_messages.nearest_fit_message(fit)
    assert text.startswith("No GPU here has 141Gi: the most is 81559Mi, of node-")


def test_gpus_are_counted_on_the_node_that_costs_least() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4, "node-b": 4})
    for index in range(3):
        crowd.run(f"a{index}", "node-a", f"gpu-{index}")
    for index in range(2):
        crowd.run(f"b{index}", "node-b", f"gpu-{index}")
    fit = near(crowd, occupied_nodes.gpus(4))
    assert fit.gap == shortage.CountGap(ids.NodeName("node-b"), "GPU", 4, 2)
    assert explain_messages.nearest_fit_message(fit) == (
        "Needs 4 GPUs of one node; best is node-b: 2 free; "
        "freeing pods default/b0 and default/b1 would do"
    )


def test_requests_that_ask_the_same_are_counted_together() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("p", "node-a", "gpu-0", "gpu-1")
    two = [objects.a_request(name, 2) for name in ("left", "right")]
    assert near(crowd, occupied_nodes.asks(*two)).gap == shortage.CountGap(
        ids.NodeName("node-a"), "GPU", 4, 2
    )


def test_gpus_that_no_node_has_are_told_so() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4, "node-b": 8})
    assert told(crowd, occupied_nodes.gpus(16)) == (
        "No node here has 16 GPUs, used or not: the most is 8, of node-b"
    )


def test_a_device_kind_that_no_node_has_is_reported() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    assert told(crowd, by_need("1Gi")) == (
        "No node here has a device that is asked for, used or not"
    )


def test_a_mig_profile_is_called_by_its_name() -> None:
    crowd = hgx("node-a")
    fill(crowd, "node-a", 8)
    expected = f'device.attributes["{names.DRIVER}"].profile == "3g.40gb"'
    request = objects.a_request("r", 1, expected, deviceClassName=names.CLASS_MIG)
    assert told(crowd, occupied_nodes.asks(request)) == (
        "Needs 1 3g.40gb device of one node; best is node-a: 0 free; "
        "freeing pod default/node-a-0 would do"
    )


def test_cpu_of_the_node_is_told_where_that_is_short() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    asking = [{"name": "main", "resources": {"requests": {"cpu": "6500m"}}}]
    crowd.run("busy", "node-a", containers=asking)
    fit = near(crowd, occupied_nodes.asks(objects.a_request(), cpu="3"))
    assert fit.gap == shortage.NodeResourceGap(ids.NodeName("node-a"), "cpu", 3000, 1500)
    assert explain_messages.nearest_fit_message(fit) == (
        "Needs 3 CPUs; best is node-a: 1500m of CPU free; freeing pod default/busy would do"
    )


def test_cpu_that_no_node_has_is_told_so() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    assert told(crowd, occupied_nodes.asks(objects.a_request(), cpu="300")) == (
        "No node here with GPUs has 300 CPUs: the most is 8 CPUs, of node-a"
    )


def test_memory_of_the_node_is_no_memory_of_a_gpu() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    answer = {"name": "main", "resources": {"requests": {"memory": "64Gi"}}}
    claim = objects.claim("new-gpu", objects.a_request())
    workload = allocator_types.Workload(
        objects.pod("new", claim.name, containers=[answer]), (claim,)
    )
    text = told(crowd, workload)
    assert "has 64Gi of the node's memory: the most is 32Gi of the node's memory" in text


def test_devices_that_no_pod_frees_are_in_nobodys_way() -> None:
    """A claim that something else has reserved."""
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    crowd.hold("kept", "node-a", "gpu-0")
    fit = near(crowd, occupied_nodes.gpus())
    assert (fit.can_ever_fit, fit.leaving) == (True, ())
    assert (
        explain_messages.nearest_fit_message(fit)
        == "Needs 1 GPU of one node; best is node-a: 0 free"
    )


def test_a_pod_that_would_be_back_on_the_same_node_is_in_nobodys_way() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    for kind in ("DaemonSet", "Node"):
        pod = crowd.run("agent", "node-a", "gpu-0")
        crowd.put(replace(pod, owner=pods.Owner(kind, "agent", "u")))
        assert near(crowd, occupied_nodes.gpus()).leaving == ()


def test_devices_that_do_not_go_together_are_no_number() -> None:
    crowd = occupied_nodes.Crowd()
    devices = [
        objects.with_values(objects.a_device(f"gpu-{index}"), numa=index // 2) for index in range(4)
    ]
    crowd.node("node-a", objects.a_slice("node-a", devices))
    crowd.run("p", "node-a", "gpu-0")
    crowd.run("q", "node-a", "gpu-2")
    rule = objects.matching(f"{names.DRIVER}/numa")
    claim = objects.claim("new-gpu", objects.a_request(count=2), constraints=[rule])
    workload = allocator_types.Workload(objects.pod("new", claim.name), (claim,))
    assert told(crowd, workload) == "Nearest is node-a; freeing pod default/p would do"
    rule = objects.differing(f"{names.DRIVER}/numa")
    claim = objects.claim("new-gpu", objects.a_request(count=3), constraints=[rule])
    workload = allocator_types.Workload(objects.pod("new", claim.name), (claim,))
    assert told(crowd, workload).startswith("No node here would do")


def test_without_a_shortage_of_devices_there_is_no_nearest_fit() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    crowd.view.set_node(ids.NodeName("node-a"), objects.node("node-a", unschedulable=True))
    workload = occupied_nodes.gpus()
    answer = allocation.refused(dra_allocator.allocate(crowd.view, workload, snapshots.DECIDING))
    args = (
        crowd.view,
        workload,
        answer,
        crowd.people,
        snapshots.DECIDING,
        step_budget.StepBudget(nearest_fit.MAX_STEPS),
    )
    assert nearest_fit.find_nearest_fit(*args) is None


def test_a_class_that_is_missing_leaves_nothing_to_add() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1})
    workload = occupied_nodes.asks(objects.a_request(deviceClassName="none"))
    answer = allocation.refused(dra_allocator.allocate(crowd.view, workload, snapshots.DECIDING))
    args = (
        crowd.view,
        workload,
        answer,
        crowd.people,
        snapshots.DECIDING,
        step_budget.StepBudget(nearest_fit.MAX_STEPS),
    )
    assert nearest_fit.find_nearest_fit(*args) is None


@pytest.mark.parametrize("most", [0, 50, 200, nearest_fit.MAX_STEPS])
def test_steps_are_bounded_whatever_the_size(most: int) -> None:
    crowd = occupied_nodes.of_sizes({f"node-{index:03}": 4 for index in range(40)})
    for number in range(40):
        for gpu in range(1 + number % 4):
            crowd.run(f"p{number}-{gpu}", f"node-{number:03}", f"gpu-{gpu}")
    fit = near(crowd, occupied_nodes.gpus(4), most)
    assert fit.is_exhaustive is (most == nearest_fit.MAX_STEPS)
    if not fit.leaving:
        assert not fit.is_optimal


def test_many_pods_are_not_all_named() -> None:
    leaving = [f"ns/p{index}" for index in range(7)]
    assert (
        explain_messages.freed_message(leaving)
        == "freeing pods ns/p0, ns/p1, ns/p2, ns/p3 and 3 more would do"
    )
    assert explain_messages.freed_message(leaving[:2]) == "freeing pods ns/p0 and ns/p1 would do"
    assert explain_messages.freed_message(leaving[:1]) == "freeing pod ns/p0 would do"


def test_a_long_refusal_is_cut_and_the_nearest_fit_stays_whole() -> None:
    """An event's note has 1024 bytes."""
    joined = explain_messages.join_sentence("ä" * 1000, "Nearest is node-b")
    assert joined.endswith("ä... Nearest is node-b")
    assert 1022 <= len(joined.encode()) <= 1024
    assert (
        explain_messages.join_sentence("No node fits", "Nearest is x")
        == "No node fits. Nearest is x"
    )
    assert explain_messages.join_sentence("No node fits", "") == "No node fits"
