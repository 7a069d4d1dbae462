from driver import ids
from driver.scheduling.explain import without_pods
from tests.properties import drawing
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes

A = ids.NodeName("node-a")


def test_removed_pods_use_nothing_and_the_base_snapshot_is_unchanged() -> None:
    parts = [objects.drawing(f"part-{index}", "gpu-0", slots="2") for index in range(2)]
    crowd = occupied_nodes.Crowd()
    crowd.node("node-a", *objects.counting({"gpu-0": {"slots": "4"}}, parts))
    crowd.run("stays", "node-a", "part-0")
    crowd.run("goes", "node-a", "part-1")
    previous = drawing.shown(crowd.view)
    view = without_pods.WithoutPods(crowd.view, [crowd.on("node-a")["goes"]])
    (share,) = view.reachable_pools(A)
    assert view.used_devices(share.pool) == {"part-0"}
    assert [*view.remaining_counters(share.pool).values()] == [2_000_000_000]
    assert (view.usage[A].pod_count, view.usage[A].requests["cpu"]) == (1, 1000)
    assert drawing.shown(crowd.view) == previous


def test_a_port_that_another_has_too_stays_taken() -> None:
    """Such as two host networks that the same port was written for by hand."""
    crowd = occupied_nodes.of_sizes({"node-a": 0})
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    for name in ("p", "q"):
        crowd.run(name, "node-a", containers=ports)
    view = without_pods.WithoutPods(crowd.view, [crowd.on("node-a")["p"]])
    assert len(view.usage[A].ports) == 1
    assert A not in without_pods.WithoutPods(crowd.view, [*crowd.on("node-a").values()]).usage
