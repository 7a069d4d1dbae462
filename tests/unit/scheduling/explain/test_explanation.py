import json

from driver import ids, reasons
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.explain import explainer, nearest_fit
from tests.support import allocation, snapshots
from tests.support.builders import objects

FLEET = snapshots.fleet({"node-a": 2, "node-b": 2, "node-c": 2, "node-d": 2})


def decided(count: int) -> allocator_types.Placement | allocator_types.Unschedulable:
    claim = objects.claim("c", objects.a_request("gpu", count))
    return dra_allocator.allocate(FLEET, allocation.workload(claim), snapshots.DECIDING)


def test_a_decision_tells_the_best_nodes_with_what_each_policy_says_of_them() -> None:
    placement_document = explainer.placement_document(allocation.placed(decided(1)))
    assert [entry["node"] for entry in placement_document["considered"]] == [
        "node-a",
        "node-b",
        "node-c",
    ]
    assert placement_document["considered"][0]["scores"] == {
        "mig-layout": 100,
        "topology": 100,
        "fragmentation": 56,
        "islands": 100,
        "pack": 0,
    }
    assert placement_document["why"].endswith("2 of 2 GPUs were free, 1 are left")


def test_a_refusal_tells_what_every_node_lacks() -> None:
    unschedulable_document = explainer.unschedulable_document(allocation.refused(decided(3)))
    assert unschedulable_document == {
        "refusals": [
            {
                "nodes": ["node-a", "node-b", "node-c", "node-d"],
                "fits": 2,
                "wanted": 3,
                "devices": {},
            }
        ]
    }


def test_a_reason_on_every_node_is_reported_once() -> None:
    answer = allocator_types.Unschedulable(
        reasons.Reason.DEVICE_CLASS_NOT_FOUND, "claim x: no class y"
    )
    assert explainer.unschedulable_document(answer) == {
        "reason": "DeviceClassNotFound",
        "detail": "claim x: no class y",
    }


def test_a_node_that_does_not_fit_itself_is_told_with_its_reason() -> None:
    refusal = allocator_types.NodeRejection(reasons.Reason.NODE_FULL, "asks 9000m cpu, 8000m free")
    unschedulable_document = explainer.unschedulable_document(
        allocator_types.Unschedulable(rejections={refusal: [ids.NodeName("node-a")]})
    )
    assert unschedulable_document["refusals"] == [
        {"nodes": ["node-a"], "reason": "NodeFull", "detail": "asks 9000m cpu, 8000m free"}
    ]
    assert json.loads(json.dumps(unschedulable_document)) == unschedulable_document


AT = "2026-01-01T00:00:00Z"


def test_all_of_a_placement_names_its_devices_and_the_nodes_beside_it() -> None:
    document = explainer.Explanation(ids.Key("default/p"), AT, decided(1)).document()
    assert (document["pod"], document["at"], document["node"]) == ("default/p", AT, "node-a")
    assert document["devices"] == [
        {"driver": snapshots.DRIVER, "pool": "node-a", "device": "gpu-0"}
    ]
    assert len(document["considered"]) == 3


def test_the_full_explanation_names_the_nearest_node_and_its_blockers() -> None:
    near = nearest_fit.NearestFit(
        ids.NodeName("node-b"), None, leaving=(ids.Key("a/x"),), is_optimal=True
    )
    document = explainer.Explanation(ids.Key("default/p"), AT, decided(3), near).document()
    assert document["refusals"][0]["wanted"] == 3
    assert document["nearest"] == {
        "node": "node-b",
        "summary": "Nearest is node-b; freeing pod a/x would suffice",
        "ever": True,
        "leaving": ["a/x"],
        "allSeen": True,
    }
    assert json.loads(json.dumps(document)) == document
