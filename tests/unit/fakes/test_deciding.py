import pytest

from driver import errors, ids, names
from driver.kube import gvr
from tests.fakes import deciding

NAME = "node-h100-8-0"
BODY = {
    "metadata": {
        "name": NAME,
        "namespace": "ration-system",
        "labels": {names.PLACEHOLDER_LABEL: "h100-8"},
    },
    "spec": {"priorityClassName": names.PLACEHOLDER_PRIORITY, "containers": []},
}
KEY = ids.Key(f"ration-system/{NAME}")


def test_a_created_pod_is_listed_as_the_server_stores_it_until_deleted() -> None:
    world = deciding.World(1)
    world.server.create(gvr.PODS, dict(BODY), "ration-system")
    pod = world.stores.pods.get(KEY)
    assert pod is not None
    assert (pod.created, pod.priority, pod.preempts) == ("2026-11-21T09:00:00Z", -10, False)
    with pytest.raises(errors.AlreadyExists):
        world.server.create(gvr.PODS, dict(BODY), "ration-system")
    world.server.change_pod(KEY, "node-0", phase="Running")
    bound = world.stores.pods.get(KEY)
    assert bound is not None
    assert (bound.node, bound.phase, bound.uid) == ("node-0", "Running", pod.uid)
    world.server.delete(gvr.PODS, NAME, "ration-system", uid=pod.uid)
    assert world.stores.pods.get(KEY) is None
    with pytest.raises(errors.NotFound):
        world.server.delete(gvr.PODS, NAME, "ration-system", uid=pod.uid)


def test_a_pod_that_is_created_again_is_another() -> None:
    world = deciding.World(1)
    first = world.server.create(gvr.PODS, dict(BODY), "ration-system")
    world.server.delete(gvr.PODS, NAME, "ration-system", uid=first["metadata"]["uid"])
    world.clock.advance(1)
    second = world.server.create(gvr.PODS, dict(BODY), "ration-system")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    with pytest.raises(errors.Conflict):
        world.server.delete(gvr.PODS, NAME, "ration-system", uid=first["metadata"]["uid"])


def test_an_apply_to_a_node_is_visible_and_conflicts_are_reported() -> None:
    world = deciding.World(1)
    uid = world.server.nodes["node-0"]["metadata"]["uid"]

    def say(manager: str, value: str) -> None:
        meta = {"name": "node-0", "uid": uid, "labels": {"a": value}}
        world.server.apply(gvr.NODES, "node-0", {"metadata": meta}, manager=manager)

    say("one", "1")
    node = world.stores.nodes.get(ids.Key("node-0"))
    assert node is not None
    assert node.labels == {"kubernetes.io/hostname": "node-0", "a": "1"}
    with pytest.raises(errors.Conflict):
        say("two", "2")
