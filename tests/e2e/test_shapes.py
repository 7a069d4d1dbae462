"""examples/shapes and examples/by-need, run as they stand; and policies that change the choice.

Several machines are needed, and the driver's settings are changed by its chart, so the cluster is
this module's own: eight H100 on NVLink, eight A100, and what single tests add.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kube import client, gvr
from hack.chart import helm
from hack.cluster import api, chart, layout
from hack.cluster import errors as cluster_errors
from tests.e2e import manifest, playground, promises, release
from tests.e2e.conftest import ROOT, hack

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
field = release.field
WHERE = layout.Layout(ROOT)
SHAPES = sorted((ROOT / "examples" / "shapes").glob("*.yaml"))
BY_NEED = ROOT / "examples" / "by-need" / "gpu-slice.yaml"
H100, A100 = "node-0", "node-a100"
PLAIN, BRIDGED = "a30-plain", "a30-with-bridges"
THEIRS = "by-scheduler"
GIB = promises.GIB


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    """One that this module alone uses: nodes that single tests add go with it."""
    try:
        api.Cluster.load(ROOT)
    except cluster_errors.ClusterError:
        pass
    else:
        pytest.skip("a cluster is up, with machines of its own: make cluster-down")
    hack("up", "--nodes", "1", "--machine", "hgx-h100", "--driver", "pods")
    try:
        configure()
        load = api.Cluster.load(ROOT)
        load.add_node(A100, machine="dgx-a100")
        yield load
    finally:
        hack("down")


@contextlib.contextmanager
def applied(cluster: api.Cluster, file: Path) -> Iterator[manifest.Manifest]:
    """A manifest, until the block ends."""
    item = manifest.Manifest(cluster, file)
    try:
        item.apply()
        yield item
    finally:
        item.delete()


@pytest.fixture(scope="module")
def published(cluster: api.Cluster) -> promises.Published:
    """The attributes of every device of the first two nodes, by node and name."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    return {
        (item["spec"]["pool"]["name"], device["name"]): {
            name: next(iter(value.values())) for name, value in device["attributes"].items()
        }
        for item in kube.list(gvr.RESOURCE_SLICES).items
        for device in item["spec"].get("devices", ())
    }


@pytest.mark.parametrize("file", SHAPES, ids=lambda file: file.stem)
def test_a_shape_runs_and_gets_what_its_head_promises(
    cluster: api.Cluster, published: promises.Published, file: Path
) -> None:
    with applied(cluster, file) as shape:
        pods = shape.settled()
        fields = {name: shape.told(name) for name in pods}
        for name, pod in pods.items():
            reported = fields[name]
            assert reported.node == pod["spec"]["nodeName"]
            assert len(reported.why.split()) > 2, reported.why
            attributes = [published[reported.node, device.name] for device in reported.devices]
            owners = {attribute.get("parentUUID") or attribute["uuid"] for attribute in attributes}
            seen = {
                uuid
                for container in manifest.containers(pod)
                for uuid in promises.gpus(shape, name, container)
            }
            assert seen == owners
        promise = promises.PROMISES.get(file.stem)
        if promise is not None:
            promise(shape, fields, published)


def test_lower_alternatives_are_allocated_when_better_ones_are_taken(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    """A corner of one GPU keeps it from being had whole, and leaves room for a part of it."""
    corner = 'device.attributes["gpu.ration.dev"].profile == "1g.10gb"'
    selectors = [{"cel": {"expression": corner}}]
    small = playground.a_claim("small", deviceClassName="gpu-mig.ration.dev", selectors=selectors)
    file = ROOT / "examples" / "shapes" / "first-available.yaml"
    field.create(playground.a_claim("seven", count=7), small)
    occupy(field, H100, "seven", "small")
    with applied(cluster, file) as shape:
        shape.settled()
        assert promises.alternatives(shape) == ["gpu/two-a100"] * 2
        assert shape.told("fine-tuning").node == A100
    field.create(playground.a_claim("seven-too", count=7))
    occupy(field, A100, "seven-too")
    with applied(cluster, file) as shape:
        shape.settled()
        assert promises.alternatives(shape) == ["gpu/part"]
        (device,) = shape.told("fine-tuning").devices
        assert "-mig-3g40gb-" in device.name


def occupy(field: playground.Playground, node: str, *claims: str, **pod: Any) -> None:
    """Have a pod for each claim, on one node, until they run."""
    for name in claims:
        spec = {"nodeSelector": playground.on(node), "command": "exec sleep 3600", **pod}
        field.create(playground.a_pod(name, claims=(name,), **spec))
    for name in claims:
        field.running(name)


def test_parts_by_need_are_of_the_kind_that_isolates_enough(cluster: api.Cluster) -> None:
    with applied(cluster, BY_NEED) as example:
        pods = example.settled()
        fields = {name: example.told(name) for name in pods}
        kinds = {name: [device.kind for device in entry.devices] for name, entry in fields.items()}
        assert kinds["inference"] == ["mps"]
        assert kinds["tenant"] == ["mig"]
        assert kinds["notebook"] in (["mps"], ["time-slicing"])
        limits = example.sees("inference", "main")
        assert limits["devices"][0]["limit"] == 20 * GIB
        assert limits["mps"]["threadPercentage"] == 40
        apart = example.sees("tenant", "main")["devices"]
        assert [entry["uuid"][:4] for entry in apart] == ["MIG-"]
        assert apart[0]["allocated"] >= 19 * GIB


def test_under_kube_scheduler_a_part_by_need_is_a_mig_device(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    """Though shares are published there too, and would take less."""
    mine = {"ration.dev/allocator": "scheduler"}
    cluster.add_node(THEIRS, allocator="scheduler", labels=mine, taints=(playground.TAINT,))
    shares = playground.until(lambda: shared_faces(field, THEIRS), 60, "shares are published")
    assert {share["allocator"]["string"] for share in shares} == {"scheduler"}
    for isolation in ("hardware", "limits", "none"):
        field.create(by_need(isolation))
    occupy(field, THEIRS, "hardware", "limits", "none")
    for isolation in ("hardware", "limits", "none"):
        device = field.device_of(isolation)
        assert device is not None
        assert (device[0], manifest.Given(device[1], {}).kind) == (THEIRS, "mig")
        assert field.events(isolation, "Allocated") == []


def by_need(isolation: str) -> dict[str, Any]:
    """A claim for 4Gi, apart from others so well."""
    amount = {"requests": {"memory": "4Gi"}}
    claim = playground.a_claim(isolation, deviceClassName="gpu-slice.ration.dev", capacity=amount)
    parameters = {
        "apiVersion": "resource.ration.dev/v1alpha1",
        "kind": "SliceConfig",
        "isolation": isolation,
    }
    opaque = {"driver": "gpu.ration.dev", "parameters": parameters}
    claim["spec"]["devices"]["config"] = [{"opaque": opaque}]
    return claim


def shared_faces(field: playground.Playground, node: str) -> list[Any]:
    """The attributes of what is shared of a node."""
    return [
        device["attributes"]
        for item in field.kube.list(gvr.RESOURCE_SLICES).items
        if item["spec"].get("nodeName") == node
        for device in item["spec"].get("devices", ())
        if device["attributes"]["type"]["string"] == "gpu-share"
    ]


def configure(*values: str) -> None:
    """Have the release say so, and wait until no controller of before is left.

    kube-scheduler may share GPUs, too, where it allocates: that it does not is to be seen.
    """
    always = ("controller.replicas=1", "kubeletPlugin.shareDomain=cluster")
    chart.install(WHERE, *(f"--set={name}" for name in (*always, *values)))
    pair = ("-n", helm.NAMESPACE, "-l", "app.kubernetes.io/component=controller")
    query = ("get", "pods", *pair, "--output=name")
    running = api.Cluster.load(ROOT)
    playground.until(lambda: len(running.kubectl(*query).split()) == 1, 60, "one controller runs")


@pytest.fixture(scope="module")
def pairs(cluster: api.Cluster) -> None:
    """Two nodes of four A30: of one of them an NVLink bridge joins the first two, and the last."""
    playground.add_node(cluster, PLAIN, machine="a30")
    playground.add_node(cluster, BRIDGED, machine="a30-bridged")


@pytest.mark.usefixtures("pairs")
@pytest.mark.parametrize(
    ("policies", "pair", "why", "singles", "each"),
    [
        pytest.param(
            "pack",
            (PLAIN, ["gpu-0000-28-00-0", "gpu-0000-39-00-0"]),
            "the fullest node that still fits",
            [PLAIN, PLAIN],
            "the fullest node that still fits",
            id="pack",
        ),
        pytest.param(
            "spread",
            (PLAIN, ["gpu-0000-28-00-0", "gpu-0000-39-00-0"]),
            "the emptiest node",
            [PLAIN, BRIDGED],
            "the emptiest node",
            id="spread",
        ),
        pytest.param(
            r"topology\,pack",
            (BRIDGED, ["gpu-0000-39-00-0", "gpu-0000-4a-00-0"]),
            "2 GPUs connected by NVLink",
            [PLAIN, PLAIN],
            "the fullest node that still fits",
            id="topology first",
        ),
    ],
)
def test_the_policies_in_the_charts_values_decide_and_the_event_says_so(
    field: playground.Playground,
    policies: str,
    pair: tuple[str, list[str]],
    why: str,
    singles: list[str],
    each: str,
) -> None:
    """The first GPU of both nodes is taken, so the first two that are free are of no pair."""
    configure(f"controller.policies={policies}")
    for name in (PLAIN, BRIDGED):
        field.create(playground.a_claim(name))
        occupy(field, name, name)
    reported = ask(field, "pair", 2)
    assert (reported.node, [device.name for device in reported.devices]) == pair
    assert why in reported.why
    field.delete_pod("pair")
    asks = [ask(field, name, 1) for name in ("one", "two")]
    assert [entry.node for entry in asks] == singles
    assert all(each in entry.why for entry in asks)


def ask(field: playground.Playground, name: str, count: int) -> manifest.Told:
    """A pod for so many GPUs, of either node; what the event says once it runs."""
    field.create(
        playground.a_claim(name, count),
        playground.a_pod(name, claims=(name,), command="exec sleep 3600"),
    )
    field.running(name)
    notes = field.told(name, "Allocated")
    return manifest.read(notes[-1].removeprefix("Allocated: "))
