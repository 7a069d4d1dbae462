"""Real Karpenter brings and takes away the nodes, on a cluster that is this module's own.

First what it does with placeholders as our controller makes them, in a namespace of others;
then what comes of work that waits. What makes a shape rest for a while comes last.
"""

import datetime as dt
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from driver import names
from driver.api import crd, node_shapes
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.scheduling.provisioning import node_template, placeholder
from hack.cluster import api
from tests.e2e import arrivals, manifest, on_demand, playground

# Where Karpenter and kwok are not built yet, the first test waits for that.
pytestmark = [pytest.mark.timeout(900)]
Raw = playground.Raw
POOL_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}
SOON_S = 1.0
QUIET_S = 8.0
KEPT_S = 35.0
"""Longer than Karpenter takes for a node that is empty."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    with on_demand.a_cluster() as result:
        yield result


@pytest.fixture
def supply(cluster: api.Cluster) -> Iterator[on_demand.Supply]:
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    result = on_demand.Supply(cluster, kube)
    yield result
    result.clear()


@pytest.fixture
def field(supply: on_demand.Supply) -> Iterator[playground.Playground]:
    ground = playground.Playground.open(supply.cluster, supply.kube)
    try:
        yield ground
    finally:
        supply.cluster.kubectl("-n", ground.namespace, "delete", "reservations", "--all")
        ground.close()


def asking(field: playground.Playground, *places: int, **guest: Any) -> list[str]:
    """Placeholders for nodes of the example's shape, by our hand; their names."""
    (shape,) = yaml.safe_load((on_demand.FOLDER / "install" / "values.yaml").read_text())[
        "controller"
    ]["nodes"]["shapes"]
    h100 = node_template.from_document(node_shapes.NodeShape.model_validate(shape), names.DRIVER)
    sizes = {"requests": {"cpu": "8", "memory": "32Gi"}}
    spec = {"containers": [{"name": "main", "resources": sizes}], "tolerations": [POOL_TAINT]}
    raw = {
        "metadata": {"name": "train", "namespace": "team", "uid": "u"},
        "spec": {**spec, **guest},
    }
    asks = [
        placeholder.NodeRequest(h100, ("pod/team/train",), index, (pods.parse(raw),))
        for index in places
    ]
    rendered = [placeholder.render(answer, field.namespace, "pause:1") for answer in asks]
    for pod in rendered:
        field.kube.create(gvr.PODS, pod, field.namespace)
    return [str(pod["metadata"]["name"]) for pod in rendered]


def seated(field: playground.Playground, names: list[str]) -> list[str]:
    """The nodes of pods, once they run."""
    return [str(field.running(name)["spec"]["nodeName"]) for name in names]


def test_each_placeholder_brings_one_node_of_its_own(
    supply: on_demand.Supply, field: playground.Playground
) -> None:
    on = seated(field, asking(field, 0, 1))
    assert len({*on}) == 2
    time.sleep(QUIET_S)
    assert {node["metadata"]["name"] for node in supply.nodes()} == {*on}
    assert supply.launched() == 2


def test_a_label_that_the_node_pool_does_not_give_brings_nothing(
    supply: on_demand.Supply, field: playground.Playground
) -> None:
    asking(field, 0, nodeSelector={"example.com/rack": "a"})
    time.sleep(QUIET_S)
    assert supply.launched() == 0


def test_a_node_without_its_placeholder_goes_unless_it_is_marked_and_takes_no_other(
    supply: on_demand.Supply, field: playground.Playground
) -> None:
    requested = asking(field, 0, 1)
    retained, left = seated(field, requested)
    field.cluster.kubectl("annotate", "node", retained, f"{names.KARPENTER_KEEP}=true")
    field.cluster.kubectl("label", "node", retained, f"{names.POOL_COMPLETE}=true")
    for name in requested:
        field.delete_pod(name)
    (only,) = supply.until_nodes(1, on_demand.GOES_S)
    assert only["metadata"]["name"] == retained
    (new,) = seated(field, asking(field, 0))
    assert new not in {retained, left}
    field.delete_pod(requested[0])
    time.sleep(KEPT_S)
    assert [node["metadata"]["name"] for node in supply.nodes()] == [retained]
    field.cluster.kubectl("annotate", "node", retained, f"{names.KARPENTER_KEEP}-")
    supply.until_nodes(0, on_demand.GOES_S)


def test_karpenter_alone_creates_no_node_for_a_pod_with_claims(
    supply: on_demand.Supply, field: playground.Playground
) -> None:
    field.create(playground.a_template("gpu", deviceClassName="nobodys"))
    pod = playground.a_pod("train", template="gpu", tolerations=[POOL_TAINT], nodeSelector={})
    field.create(pod)
    time.sleep(QUIET_S)
    assert field.pod("train")["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert supply.launched() == 0


def machine(field: playground.Playground, name: str, template: str = "machine", **meta: Any) -> str:
    """A pod that takes all GPUs of a node; its name."""
    pod = playground.a_pod(name, template=template, nodeSelector={}, tolerations=[POOL_TAINT])
    pod["metadata"] |= meta
    field.create(pod)
    return name


def a_gang_of_two(field: playground.Playground) -> list[str]:
    labels, annotations = {names.GANG_LABEL: "train"}, {names.GANG_SIZE: "2"}
    return [
        machine(field, f"train-{index}", labels=labels, annotations=annotations)
        for index in range(2)
    ]


@pytest.fixture
def machines(field: playground.Playground) -> playground.Playground:
    """A namespace with the template of a whole machine."""
    field.create(playground.a_template("machine", 8))
    return field


def node_of(field: playground.Playground, name: str) -> str:
    return str(field.pod(name)["spec"].get("nodeName", ""))


def test_waiting_claims_take_the_fleet_from_nothing_to_two_nodes_and_back(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    names_of = [machine(machines, name) for name in ("one", "two")]
    with arrivals.arriving(supply.kube, SOON_S):
        for name in names_of:
            machines.told(name, "NodesRequested")
            machines.running(name)
    assert len({node_of(machines, name) for name in names_of}) == 2
    assert supply.launched() == 2
    playground.until(lambda: not supply.placeholders(), 20, "the placeholders are gone")
    for node in supply.nodes():
        assert node["metadata"]["labels"][names.POOL_COMPLETE] == "true"
        assert node["metadata"]["annotations"][names.KARPENTER_KEEP] == "true"
        assert node["metadata"]["annotations"][names.AUTOSCALER_KEEP] == "true"
    time.sleep(KEPT_S)
    assert len(supply.nodes()) == 2
    machines.delete_pod("one")
    supply.until_nodes(1, on_demand.GOES_S)
    machines.delete_pod("two")
    supply.until_nodes(0, on_demand.GOES_S)
    assert supply.launched() == 2


def test_a_gang_of_sixteen_gpus_brings_two_nodes_of_eight_and_starts_whole(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    members = a_gang_of_two(machines)
    with arrivals.arriving(supply.kube, SOON_S, 10.0):
        for name in members:
            machines.running(name, 90)
    assert len({node_of(machines, name) for name in members}) == 2
    assert supply.launched() == 2
    complete = max(map(made_at, slices(supply)))
    assert all(bound_at(machines.pod(name)) >= complete for name in members)
    for name in members:
        machines.delete_pod(name)


def slices(supply: on_demand.Supply) -> list[Raw]:
    """Return what the nodes of Karpenter's publish."""
    existing = {node["metadata"]["name"] for node in supply.nodes()}
    items = supply.kube.list(gvr.RESOURCE_SLICES).items
    return [item for item in items if item["spec"].get("nodeName") in existing]


def made_at(entry: Raw) -> dt.datetime:
    return dt.datetime.fromisoformat(entry["metadata"]["creationTimestamp"])


def bound_at(pod: Raw) -> dt.datetime:
    (when,) = [
        condition["lastTransitionTime"]
        for condition in pod["status"]["conditions"]
        if condition["type"] == "PodScheduled"
    ]
    return dt.datetime.fromisoformat(when)


def test_nothing_is_asked_for_what_could_never_fit_and_the_event_says_why(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    other = {
        "cel": {"expression": f'device.attributes["{names.DRIVER}"].productName == "NVIDIA B200"'}
    }
    machines.create(
        playground.a_template("nine", 9), playground.a_template("other", selectors=[other])
    )
    for template in ("nine", "other"):
        machine(machines, f"on-{template}", template)
    for template in ("nine", "other"):
        (message, *_) = machines.told(f"on-{template}", "NoNodeShapeFits", 30)
        assert "h100-8" in message
    time.sleep(QUIET_S)
    assert not supply.placeholders()
    assert supply.launched() == 0


def test_a_queue_at_its_limit_brings_no_node(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    queue = {
        "apiVersion": crd.VERSION,
        "kind": "Queue",
        "metadata": {"name": machines.namespace},
        "spec": {"limit": {"gpus": "8"}, "members": [{"namespace": machines.namespace}]},
    }
    supply.kube.create(gvr.QUEUES, queue)
    try:
        with arrivals.arriving(supply.kube, SOON_S):
            for name in ("first", "second"):
                machine(machines, name)
            machines.running("first")
            time.sleep(QUIET_S)
            assert not node_of(machines, "second")
            assert supply.launched() == 1
            machines.delete_pod("first")
            machines.running("second")
            assert supply.launched() == 1
        machines.delete_pod("second")
    finally:
        supply.kube.delete(gvr.QUEUES, machines.namespace)


def test_controllers_killed_while_nodes_are_on_their_way_ask_for_no_second(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    slow = {"nodeRegistrationDelay": "20s"}
    on_demand.change(supply.cluster, "kwoknodeclass", "default", slow)
    members = [machine(machines, f"train-{index}") for index in range(2)]
    try:
        playground.until(lambda: supply.launched() == 2, 40, "both are asked for")
        uids = {entry["metadata"]["uid"] for entry in supply.placeholders()}
        for name in on_demand.CONTROLLERS:
            supply.cluster.kill(name)
        assert not supply.nodes()
        for name in on_demand.CONTROLLERS:
            supply.cluster.start(name)
        with arrivals.arriving(supply.kube, SOON_S):
            supply.until_nodes(2)
            assert {entry["metadata"]["uid"] for entry in supply.placeholders()} <= uids
            for name in members:
                machines.running(name, 90)
        assert supply.launched() == 2
    finally:
        on_demand.change(
            supply.cluster, "kwoknodeclass", "default", {"nodeRegistrationDelay": "1s"}
        )
        for name in members:
            machines.delete_pod(name)


def test_work_is_held_to_the_node_that_was_brought_for_it(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    """A gang waits for its second node; on the first, which is complete, nobody else begins."""
    machines.create(playground.a_template("one"))
    members = a_gang_of_two(machines)
    with arrivals.arriving(supply.kube, SOON_S, 15.0):
        playground.until(lambda: slices(supply), 40, "the first is complete")
        machine(machines, "late", "one")
        time.sleep(QUIET_S)
        assert not node_of(machines, "late")
        for name in members:
            machines.running(name, 90)
        machines.running("late", 90)
    assert node_of(machines, "late") not in {node_of(machines, name) for name in members}
    for name in (*members, "late"):
        machines.delete_pod(name)


def test_a_reservation_brings_its_node_and_keeps_it_though_nothing_is_on_it(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    start = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=25)
    request = {"name": "gpus", "exactly": {"deviceClassName": names.CLASS_GPU, "count": 8}}
    body = {
        "apiVersion": crd.VERSION,
        "kind": "Reservation",
        "metadata": {"name": "nightly"},
        "spec": {
            "for": {"pod": "nightly"},
            "start": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ttl": "10m",
            "devices": {"requests": [request]},
        },
    }
    supply.kube.create(gvr.RESERVATIONS, body, machines.namespace)
    with arrivals.arriving(supply.kube, SOON_S):
        playground.until(lambda: phase(machines) == "Held", 90, "its devices are held")
    playground.until(lambda: not supply.placeholders(), 20, "the placeholder is gone")
    time.sleep(KEPT_S)
    (node,) = supply.nodes()
    assert node["metadata"]["annotations"][names.KARPENTER_KEEP] == "true"
    machine(machines, "nightly")
    assert machines.running("nightly")["spec"]["nodeName"] == node["metadata"]["name"]
    assert supply.launched() == 1
    machines.delete_pod("nightly")
    supply.kube.delete(gvr.RESERVATIONS, "nightly", machines.namespace)
    supply.until_nodes(0, on_demand.GOES_S)


def phase(field: playground.Playground) -> str:
    entry = field.kube.get(gvr.RESERVATIONS, "nightly", field.namespace)
    return str(entry.get("status", {}).get("phase", ""))


def test_the_examples_work_runs_as_it_stands(supply: on_demand.Supply) -> None:
    work = manifest.Manifest(supply.cluster, on_demand.FOLDER / "work.yaml")
    work.apply()
    try:
        with arrivals.arriving(supply.kube, SOON_S):
            playground.until(lambda: has_run(work), 90, "the server runs, the training is over")
        assert 2 <= supply.launched() <= 3
    except AssertionError as error:
        query = ("get", "pods,jobs,resourceclaims,events", "-n", work.namespace)
        raise AssertionError(f"{error}\n{supply.cluster.kubectl(*query)}") from error
    finally:
        work.delete()
    supply.until_nodes(0, on_demand.GOES_S)


def has_run(work: manifest.Manifest) -> bool:
    """Pods that are over may be gone with their nodes."""
    jobs, servers = (
        json.loads(work.cluster.kubectl("get", kind, "-n", work.namespace, "--output=json"))
        for kind in ("jobs", "deployments")
    )
    (train,), (serve,) = jobs["items"], servers["items"]
    done, ready = train["status"].get("succeeded"), serve["status"].get("readyReplicas")
    return (done, ready) == (2, 1)


def given_up(supply: on_demand.Supply, machines: playground.Playground) -> None:
    """A machine is asked for, and after its time is asked for no more."""
    machine(machines, "train")
    machines.told("train", "NodesRequested")
    # It may be left alone still for what came of it in the test before.
    (message, *_) = machines.told("train", "NodeNotArrived", on_demand.TTL_S + 90)
    assert "h100-8" in message
    playground.until(lambda: not supply.placeholders(), 10, "the placeholder is gone")
    playground.until(
        lambda: any("left alone" in event for event in machines.events("train", "NodesRequested")),
        10,
        "why none is asked for",
    )
    launched = supply.launched()
    time.sleep(QUIET_S)
    assert supply.launched() == launched
    assert not supply.placeholders()


def test_a_node_that_comes_without_gpus_is_given_up_and_goes(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    with arrivals.arriving(supply.kube, arrivals.NEVER):
        given_up(supply, machines)
        assert supply.launched() == 1
    supply.until_nodes(0, on_demand.GOES_S)


def test_a_node_that_never_comes_is_given_up(
    supply: on_demand.Supply, machines: playground.Playground
) -> None:
    on_demand.change(supply.cluster, "nodepool", "h100", {"limits": {"nodes": "0"}})
    try:
        given_up(supply, machines)
        assert supply.launched() == 0
    finally:
        on_demand.change(supply.cluster, "nodepool", "h100", {"limits": {"nodes": "4"}})
