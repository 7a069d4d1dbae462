"""Nodes on demand through the decider: asked for once, kept for what they came for, given up."""

import pytest

from driver import errors, names
from tests.fakes.demanding import Cluster
from tests.support.builders import objects, shapes
from tests.support.builders.scheduler_objects import a_gang, a_queue


def test_a_pod_that_finds_no_gpu_has_one_node_asked_for_and_is_told() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    assert cluster.shapes_asked() == ["h100-8"]
    assert "1 node of shape h100-8" in cluster.told_of("NodesRequested")[0]
    waits = cluster.waiting_for("train")
    assert waits is not None
    assert waits.reason == "NodesRequested"


def test_it_is_asked_for_once_however_often_is_looked() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    for _ in range(5):
        cluster.settle(7.0)
    assert len(cluster.asked()) == 1
    assert len(cluster.told_of("NodesRequested")) == 1


def test_nothing_is_asked_for_what_has_a_place() -> None:
    cluster = Cluster()
    cluster.publish("node-0", 1)
    cluster.wait_for("train")
    cluster.settle()
    assert cluster.has("train")
    assert cluster.asked() == []


def test_once_its_node_is_complete_the_pod_is_allocated_and_requests_stop() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    node = cluster.bind()
    cluster.settle()
    assert not cluster.has("train")
    cluster.publish(node)
    cluster.settle()
    cluster.settle(2.0)
    assert cluster.asked() == []
    assert cluster.has("train")
    assert "there with 8 GPUs" in cluster.told_of("NodeArrived")[0]


def test_a_node_whose_pool_is_not_complete_is_waited_for() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    cluster.publish(cluster.bind(), resourceSliceCount=2)
    cluster.settle(5.0)
    assert len(cluster.asked()) == 1
    assert not cluster.has("train")


def test_nodes_that_arrived_for_a_gang_are_reserved_until_it_is_complete() -> None:
    cluster = Cluster(shapes.document("h100-1", 1))
    cluster.add(*a_gang(2))
    cluster.settle()
    assert cluster.shapes_asked() == ["h100-1", "h100-1"]
    cluster.publish(cluster.bind("new-0"), 1)
    cluster.settle()
    cluster.settle(2.0)
    assert len(cluster.asked()) == 1
    cluster.wait_for("late")
    cluster.settle()
    assert not cluster.has("late")
    cluster.publish(cluster.bind("new-1", "gang/"), 1)
    cluster.settle()
    cluster.settle(2.0)
    assert cluster.has("m0")
    assert cluster.has("m1")


def test_an_idle_node_of_a_gang_is_protected_while_the_others_are_in_flight() -> None:
    cluster = Cluster(shapes.document("h100-1", 1))
    cluster.put_node("idle", {shapes.INSTANCE: "h100-1"})
    cluster.publish("idle", 1)
    cluster.add(*a_gang(2))
    cluster.settle()
    assert len(cluster.asked()) == 1
    cluster.wait_for("late")
    cluster.settle()
    assert not cluster.has("late")
    assert cluster.server.nodes["idle"]["metadata"]["annotations"][names.KARPENTER_KEEP] == "true"
    cluster.publish(cluster.bind("new", "gang/"), 1)
    cluster.settle()
    cluster.settle(2.0)
    assert cluster.has("m0")
    assert cluster.has("m1")


def test_a_new_leader_asks_for_nothing_twice() -> None:
    cluster = Cluster()
    cluster.add(*a_gang(2))
    cluster.settle()
    before = cluster.asked()
    cluster.restart()
    cluster.settle()
    assert cluster.asked() == before


def test_a_node_that_does_not_arrive_is_given_up_with_a_backoff() -> None:
    cluster = Cluster(ttl="10m")
    cluster.wait_for("train")
    cluster.settle()
    cluster.settle(601.0)
    cluster.settle(2.0)
    assert cluster.asked() == []
    assert "no node of shape h100-8 has come after 10m" in cluster.told_of("NodeNotArrived")[0]
    cluster.settle(61.0)
    cluster.settle(2.0)
    assert len(cluster.asked()) == 1


def test_each_time_it_is_left_alone_for_longer() -> None:
    cluster = Cluster(ttl="1m")
    cluster.wait_for("train")
    cluster.settle()
    cluster.settle(61.0)
    cluster.settle(62.0)
    assert len(cluster.asked()) == 1
    cluster.settle(61.0)
    cluster.settle(62.0)
    assert cluster.asked() == []
    cluster.settle(62.0)
    cluster.settle(2.0)
    assert len(cluster.asked()) == 1


def test_a_node_that_comes_without_gpus_is_given_up_too() -> None:
    cluster = Cluster(ttl="10m")
    cluster.wait_for("train")
    cluster.settle()
    cluster.bind()
    cluster.settle(601.0)
    cluster.settle(2.0)
    assert cluster.asked() == []
    (told,) = cluster.told_of("NodeNotArrived", "Node")
    assert "node new-0 of shape h100-8 has published no GPU after 10m" in told


def test_a_node_that_is_no_longer_needed_is_not_awaited() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    cluster.remove_pod("train")
    cluster.settle()
    cluster.settle(11.0)
    cluster.settle(2.0)
    assert cluster.asked() == []


def test_a_placeholder_ended_by_its_node_is_deleted_and_requested_again() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    (pod,) = cluster.asked()
    cluster.server.change_pod(f"{cluster.namespace}/{pod['metadata']['name']}", phase="Failed")
    cluster.settle()
    cluster.settle(2.0)
    (another,) = cluster.asked()
    assert another["status"]["phase"] == "Pending"


def test_a_foreign_pod_with_our_label_requests_no_node() -> None:
    cluster = Cluster()
    theirs = objects.a_pod("theirs", "none-gpu")
    theirs["metadata"]["labels"] = {names.PLACEHOLDER_LABEL: "h100-8"}
    cluster.add(objects.a_claim("none-gpu", objects.a_request(count=99)), theirs)
    cluster.wait_for("train")
    cluster.settle()
    assert len(cluster.asked()) == 1


def test_a_reservation_has_what_came_for_it_before_all_others() -> None:
    cluster = Cluster(shapes.document("h100-1", 1))
    cluster.add(
        {
            "kind": "Reservation",
            "metadata": objects.meta("kept", creationTimestamp="2026-11-21T09:00:00Z"),
            "spec": {
                "for": {"pod": "night"},
                "count": 1,
                "devices": {"requests": [objects.a_request("gpu", 1)]},
            },
        }
    )
    cluster.settle()
    cluster.bind()
    cluster.wait_for("other")
    cluster.settle()
    cluster.publish("new-0", 1)
    cluster.settle()
    cluster.settle(2.0)
    assert not cluster.has("other")
    assert cluster.server.own["default/kept"]["status"]["phase"] == "Held"


def test_a_node_of_a_removed_shape_is_not_awaited() -> None:
    cluster = Cluster()
    cluster.wait_for("train")
    cluster.settle()
    cluster.restart(shapes.document("l4-1", 1))
    cluster.settle()
    cluster.settle(2.0)
    assert cluster.shapes_asked() == ["l4-1"]


def test_an_infeasible_pod_requests_no_node_and_says_so() -> None:
    cluster = Cluster()
    cluster.wait_for("train", gpus=9)
    cluster.settle()
    assert cluster.asked() == []
    assert "h100-8: 8 of 9 devices fit" in cluster.told_of("NoNodeShapeFits")[0]
    waits = cluster.waiting_for("train")
    assert waits is not None
    assert waits.reason == "NoNodeShapeFits"


def test_a_queue_at_its_limit_brings_no_node() -> None:
    cluster = Cluster(shapes.document("h100-1", 1))
    cluster.add(a_queue("small", limit={"gpus": "1"}))
    for name in ("one", "two"):
        cluster.wait_for(name, queue="small")
    cluster.settle()
    assert len(cluster.asked()) == 1


def test_a_placeholder_refused_by_the_api_server_is_reported_and_retried() -> None:
    cluster = Cluster()
    cluster.server.refuse["create"] = errors.Forbidden(403, "Forbidden", "quota")
    cluster.wait_for("train")
    cluster.settle()
    cluster.settle(2.0)
    assert (
        "could not be asked for: API server: 403 Forbidden: quota"
        in cluster.told_of("NodeNotArrived")[0]
    )
    cluster.settle(61.0)
    cluster.settle(2.0)
    assert len(cluster.asked()) == 1


def test_an_unanswered_request_is_repeated_without_an_event() -> None:
    cluster = Cluster()
    cluster.server.refuse["create"] = errors.ServerError(500, "InternalError", "etcd")
    cluster.wait_for("train")
    cluster.settle()
    cluster.settle(2.0)
    assert len(cluster.asked()) == 1
    assert cluster.told_of("NodeNotArrived") == []


@pytest.mark.parametrize("text", ["no base64", "bm90aGluZw=="])
def test_unreadable_observed_shapes_are_learned_again(text: str) -> None:
    cluster = Cluster()
    seen = f"{cluster.namespace}/ration-controller-node-shapes-seen"
    cluster.server.maps[seen] = {"binaryData": {"h100-8.json.gz": text}}
    cluster.put_node("old", {shapes.INSTANCE: "h100-8"})
    cluster.publish("old", 8)
    cluster.settle()
    assert cluster.server.maps[seen]["binaryData"]["h100-8.json.gz"] != text


def test_observed_shapes_survive_their_nodes_and_the_leader() -> None:
    cluster = Cluster(shapes.document("h100-8", 4))
    cluster.put_node("old", {shapes.INSTANCE: "h100-8"})
    cluster.publish("old", 8)
    cluster.wait_for("one")
    cluster.settle()
    cluster.settle(2.0)
    (told,) = cluster.told_of("NodeShapeContradicted", "Node")
    assert "shapes.0.gpus says 4, and node old publishes 8" in told
    cluster.restart()
    cluster.lose("old")
    cluster.wait_for("train", gpus=8)
    cluster.settle()
    cluster.settle(2.0)
    assert cluster.shapes_asked() == ["h100-8"]


def test_a_reservation_has_its_nodes_asked_for_ahead_of_its_start() -> None:
    cluster = Cluster(shapes.document("h100-8", 8, startup="5m"))
    cluster.add(
        {
            "kind": "Reservation",
            "metadata": objects.meta("nightly", creationTimestamp="2026-11-21T09:00:00Z"),
            "spec": {
                "for": {"pod": "night"},
                "start": cluster.later(3600.0),
                "count": 1,
                "devices": {"requests": [objects.a_request("gpu", 8)]},
            },
        }
    )
    cluster.settle()
    cluster.settle(3000.0)
    assert cluster.asked() == []
    cluster.settle(301.0)
    cluster.settle(6.0)
    assert len(cluster.asked()) == 1
    annotations = cluster.asked()[0]["metadata"]["annotations"]
    assert annotations[names.PLACEHOLDER_FOR] == "reservation/default/nightly"
