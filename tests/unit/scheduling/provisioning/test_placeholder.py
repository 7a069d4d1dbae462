"""The pod by which a node is asked for."""

from typing import Any

from driver import names
from driver.resources.core import pods
from driver.scheduling.provisioning import placeholder
from driver.scheduling.snapshot import node_usage
from tests.support.builders import objects, shapes

SHAPE = shapes.a_shape(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])


def rendered(*guests: dict[str, Any], index: int = 0) -> dict[str, Any]:
    parsed = tuple(pods.parse(guest) for guest in guests or (objects.a_pod("train"),))
    answer = placeholder.NodeRequest(SHAPE, ("pod/team/train",), index, parsed)
    return placeholder.render(answer, "ration-system", "pause:1")


def affinity(pod: dict[str, Any]) -> list[dict[str, Any]]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    result: dict[str, Any] = pod["spec"]["affinity"]["nodeAffinity"][required]
    return list(result["nodeSelectorTerms"])


def test_it_claims_nothing_and_is_of_the_lowest_priority() -> None:
    spec = rendered()["spec"]
    assert "resourceClaims" not in spec
    assert spec["priorityClassName"] == names.PLACEHOLDER_PRIORITY
    assert spec["terminationGracePeriodSeconds"] == 0
    assert spec["automountServiceAccountToken"] is False


def test_it_asks_what_its_guests_ask_together_but_nothing_of_a_device_plugin() -> None:
    asks = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    guest = objects.a_pod("train", containers=[{"name": "m", "resources": {"requests": asks}}])
    (container,) = rendered(guest, guest)["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "3000m", "memory": str(2 << 30)}


def test_it_goes_where_its_guest_may_go_and_to_no_node_that_is_complete() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    expected = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": expected}
    guest = objects.a_pod(
        "train", affinity={"nodeAffinity": required}, nodeSelector={"disk": "ssd"}
    )
    pod = rendered(guest)
    new = {"key": names.POOL_COMPLETE, "operator": "DoesNotExist", "values": []}
    assert affinity(pod)[0]["matchExpressions"] == [zone, new]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd", **SHAPE.labels}


def test_cluster_autoscalers_picture_of_a_node_does_although_it_is_labelled_complete() -> None:
    """Its own label is on no node, so that kube-scheduler puts nothing there by this."""
    _, alternative = affinity(rendered())
    (only,) = alternative["matchExpressions"]
    assert only["key"] == "cluster-autoscaler.kubernetes.io/template-node"


def test_it_tolerates_what_its_guests_do_and_the_taints_of_its_shape() -> None:
    own = {"key": "team", "operator": "Exists"}
    result = rendered(
        objects.a_pod("train", tolerations=[own]), objects.a_pod("b", tolerations=[own])
    )
    keys = [toleration["key"] for toleration in result["spec"]["tolerations"]]
    assert keys == ["nvidia.com/gpu", "team"]


def test_there_is_one_on_a_node() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    (apart,) = rendered()["spec"]["affinity"]["podAntiAffinity"][required]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchExpressions"][0]["key"] == names.PLACEHOLDER_LABEL


def test_no_autoscaler_takes_its_node_for_unused() -> None:
    annotations = rendered()["metadata"]["annotations"]
    assert annotations[names.KARPENTER_KEEP] == "true"
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_each_requested_node_of_a_demand_has_its_own_stable_name() -> None:
    first, second = (rendered(index=entry)["metadata"]["name"] for entry in (0, 1))
    assert first != second
    assert first == rendered()["metadata"]["name"]


def test_the_purpose_of_a_placeholder_is_read_back() -> None:
    document = rendered()
    item = placeholder.Placeholder(pods.parse(document))
    assert (item.shape, item.demand) == ("h100-8", "pod/team/train")


def test_a_pod_with_the_label_elsewhere_is_none() -> None:
    pod = pods.parse(rendered())
    assert node_usage.is_placeholder(pod, "ration-system")
    assert not node_usage.is_placeholder(pod, "team")
