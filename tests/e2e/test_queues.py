"""Queues, preemption and reservations on a real cluster of 16 GPUs, which is this module's own."""

import datetime as dt
import functools
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.api import crd
from driver.kube import client, gvr
from driver.resources.dra import claims
from hack.cluster import api
from hack.cluster import errors as cluster_errors
from tests.e2e import manifest, playground
from tests.e2e.conftest import ROOT, hack
from tests.e2e.leadership import CONTROLLERS, holder, leader

pytestmark = [pytest.mark.timeout(600)]
Raw = playground.Raw
SLEEP = "exec sleep 3600"


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    try:
        api.Cluster.load(ROOT)
    except cluster_errors.ClusterError:
        pass
    else:
        pytest.skip("a cluster is up, with machines of its own: make cluster-down")
    hack("up", "--nodes", "2", "--controllers", "2")
    try:
        yield api.Cluster.load(ROOT)
    finally:
        hack("down")


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    for name in CONTROLLERS:
        if cluster.pid(name) is None:
            cluster.start(name)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube)
    ground.create(playground.a_template("gpu", 1), playground.a_template("four", 4))
    cluster.kubectl("apply", "-f", "-", input=_PRIORITIES)
    try:
        yield ground
    finally:
        cluster.kubectl("-n", ground.namespace, "delete", "deployments,jobs,reservations", "--all")
        playground.until(lambda: not _owned(ground), 60, "what was made by others is gone")
        ground.close()
        cluster.kubectl("delete", "queues", "--all")


def _owned(ground: playground.Playground) -> list[Raw]:
    items = ground.kube.list(gvr.PODS, namespace=ground.namespace).items
    return [item for item in items if item["metadata"].get("ownerReferences")]


_PRIORITIES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: e2e-high}
value: 1000
"""


def a_queue(field: playground.Playground, name: str, **spec: Any) -> None:
    """It takes the pods with its name as label, of the test's namespace alone."""
    member = {"namespace": field.namespace, "labels": {"team": name}}
    kind = {"apiVersion": crd.VERSION, "kind": "Queue"}
    meta = {"name": f"{field.namespace}-{name}"}
    field.kube.create(gvr.QUEUES, {**kind, "metadata": meta, "spec": {"members": [member], **spec}})


def a_pod(template: str = "gpu", **spec: Any) -> Raw:
    pod = playground.a_pod("any", template=template, command=SLEEP, **spec)
    pod["spec"].pop("nodeSelector")
    return dict(pod["spec"])


def a_team(
    field: playground.Playground,
    name: str,
    replicas: int,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    """A Deployment: whatever of it is evicted is made again."""
    labels = {"team": name}
    meta = {"labels": labels, "annotations": annotations or {}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": meta, "spec": {**a_pod(), **spec}},
        },
    }
    field.kube.create(gvr.DEPLOYMENTS, body, field.namespace)


def running(field: playground.Playground, team: str) -> int:
    items = field.kube.list(
        gvr.PODS, namespace=field.namespace, label_selector=f"team={team}"
    ).items
    return sum(
        1
        for item in items
        if item["status"].get("phase") == "Running"
        and not item["metadata"].get("deletionTimestamp")
    )


def parts(field: playground.Playground, *teams: str) -> tuple[int, ...]:
    return tuple(running(field, team) for team in teams)


def given_twice(field: playground.Playground) -> list[Any]:
    parsed = [claims.parse(claim) for claim in field.claims()]
    devices = [
        result.device
        for parsed in parsed
        if parsed.allocation is not None
        for result in parsed.allocation.results
    ]
    return [device for device in devices if devices.count(device) > 1]


@pytest.mark.parametrize("first", ["a", "b", "both"])
def test_two_teams_share_one_to_three_from_any_start(
    field: playground.Playground, first: str
) -> None:
    for name, weight in (("a", 1), ("b", 3)):
        a_queue(field, name, weight=weight, reclaim="Any")
    teams = ["a", "b"] if first in {"a", "both"} else ["b", "a"]
    a_team(field, teams[0], 16)
    if first != "both":
        playground.until(lambda: running(field, teams[0]) == 16, 90, "the first team has all")
    a_team(field, teams[1], 16)
    playground.until(lambda: parts(field, "a", "b") == (4, 12), 120, "they share 4 to 12")
    for _ in range(10):
        time.sleep(1)
        assert parts(field, "a", "b") == (4, 12)
        assert given_twice(field) == []
    shown = field.cluster.kubectl("get", "queues")
    lines = {line.split()[0]: line.split() for line in shown.splitlines()}
    mine = lines[f"{field.namespace}-b"]
    assert "12" in mine
    assert mine[-2] == "True"


def test_a_priority_gang_takes_borrowed_gpus_and_a_budget_is_respected(
    field: playground.Playground,
) -> None:
    a_queue(field, "batch")
    a_queue(field, "prod", deserved={"gpus": 8})
    a_team(field, "batch", 16)
    playground.until(lambda: running(field, "batch") == 16, 90, "batch has all")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "batch"},
        "spec": {"minAvailable": 8, "selector": {"matchLabels": {"team": "batch"}}},
    }
    field.kube.create(gvr.PDBS, budget, field.namespace)
    time.sleep(2)
    members = []
    for number in range(4):
        pod = playground.a_pod(f"gang-{number}", template="gpu", command=SLEEP)
        pod["spec"] |= {"priorityClassName": "e2e-high"}
        pod["spec"].pop("nodeSelector")
        pod["metadata"]["labels"] = {"team": "prod", names.GANG_LABEL: "gang"}
        pod["metadata"]["annotations"] = {names.GANG_SIZE: "4"}
        members.append(pod)
    field.create(*members)
    for number in range(4):
        field.running(f"gang-{number}", within_s=90)
    assert running(field, "batch") == 12
    words = "\n".join(event["note"] for event in _events(field) if event["reason"] == "Preempted")
    assert f"for gang {field.namespace}/gang" in words
    assert "more than its fair share" in words
    assert given_twice(field) == []


def _events(field: playground.Playground) -> list[Raw]:
    return list(field.kube.list(gvr.EVENTS, namespace=field.namespace).items)


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 1.0, 2.5])
def test_a_preemption_is_completed_by_the_next_leader(
    field: playground.Playground, delay_s: float
) -> None:
    a_team(field, "low", 16)
    playground.until(lambda: running(field, "low") == 16, 90, "the less important run")
    first, term = leader(field), holder(field)
    pod = playground.a_pod("high", template="four", command=SLEEP, priorityClassName="e2e-high")
    pod["spec"].pop("nodeSelector")
    field.create(pod)
    time.sleep(delay_s)
    field.cluster.kill(first)
    playground.until(lambda: holder(field) not in {term, ""}, 30, "another controller leads")
    field.running("high", within_s=90)
    time.sleep(3)
    assert running(field, "low") == 12
    assert given_twice(field) == []
    left = field.kube.list(gvr.RESERVATIONS, namespace=field.namespace).items
    assert left == []
    field.cluster.start(first)


def test_a_reservation_is_honoured_at_its_time_and_short_work_ran_before(
    field: playground.Playground,
) -> None:
    starts = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=40)
    kind = {"apiVersion": crd.VERSION, "kind": "Reservation"}
    spec = {
        "for": {"pod": "nightly"},
        "start": starts.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "ttl": "10m",
        "count": 4,
        "devices": {
            "requests": [{"name": "g", "exactly": {"deviceClassName": names.CLASS_GPU, "count": 4}}]
        },
    }
    body = {**kind, "metadata": {"name": "nightly"}, "spec": spec}
    field.kube.create(gvr.RESERVATIONS, body, field.namespace)
    playground.until(
        lambda: (
            field.kube.get(gvr.RESERVATIONS, "nightly", field.namespace)
            .get("status", {})
            .get("phase")
            == "Held"
        ),
        20,
        "the devices are held",
    )
    short = playground.a_pod("short", template="four", command="sleep 10")
    short["spec"] |= {"activeDeadlineSeconds": 25, "restartPolicy": "Never"}
    long = playground.a_pod("long", template="four", command=SLEEP)
    for pod in (short, long):
        pod["spec"].pop("nodeSelector")
    field.create(long, short)
    field.running("short", within_s=15)
    assert field.pod("long")["status"]["phase"] == "Pending"
    playground.until(
        lambda: field.pod("short")["status"]["phase"] == "Succeeded", 40, "the short one is over"
    )
    while dt.datetime.now(dt.UTC) < starts:
        time.sleep(0.5)
    nightly = playground.a_pod("nightly", template="four", command=SLEEP)
    nightly["spec"].pop("nodeSelector")
    field.create(nightly)
    field.running("nightly", within_s=30)
    assert field.pod("long")["status"]["phase"] == "Pending"


def test_room_is_made_by_moving_pods_that_may_be_moved(
    field: playground.Playground,
) -> None:
    """One GPU is taken on each node: of one of them the eight become free together."""
    for name, other in (("left", "node-1"), ("right", "node-0")):
        field.cluster.kubectl("cordon", other)
        a_team(field, name, 1, {names.DEFRAG: "true"})
        playground.until(functools.partial(running, field, name), 60, f"{name} runs")
        field.cluster.kubectl("uncordon", other)
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "driver.cli", "defrag", "--apply", "--gpus", "8"),
            *("--for", "pod/large", "-n", field.namespace),
            *("--kubeconfig", str(field.cluster.kubeconfig)),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert printed.returncode == 0, printed.stdout + printed.stderr
    assert "is gone, 0 to go" in printed.stderr
    eight = playground.a_template("eight", 8)
    large = playground.a_pod("large", template="eight", command=SLEEP)
    large["spec"].pop("nodeSelector")
    field.create(eight, large)
    field.running("large", within_s=60)
    playground.until(
        lambda: parts(field, "left", "right") == (1, 1), 60, "the moved one runs again"
    )


def test_a_user_who_cannot_evict_pods_cannot_cause_evictions(
    field: playground.Playground,
) -> None:
    """To make Reservations is a right of its own, to name pods in one takes another."""
    account = f"system:serviceaccount:{field.namespace}:default"
    field.cluster.kubectl("apply", "-f", "-", input=_RIGHTS.format(namespace=field.namespace))
    body = _EVICTING.format(namespace=field.namespace)
    with pytest.raises(cluster_errors.CommandFailedError, match="has to have the right to evict"):
        field.cluster.kubectl("create", "--as", account, "-f", "-", input=body)
    plain = body.replace("evicting:", "count: 1 #")
    field.cluster.kubectl("create", "--as", account, "-f", "-", input=plain)


_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{namespace: {namespace}, name: reserving}}
rules: [{{apiGroups: [ration.dev], resources: [reservations], verbs: [create]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{namespace: {namespace}, name: reserving}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reserving}}
subjects: [{{kind: ServiceAccount, name: default, namespace: {namespace}}}]
"""
_EVICTING = """
apiVersion: ration.dev/v1alpha1
kind: Reservation
metadata: {{namespace: {namespace}, name: sly}}
spec:
  for: {{pod: mine}}
  evicting: [{{namespace: {namespace}, name: others, uid: "1"}}]
"""


def test_invalid_queues_and_reservations_name_the_field_and_disturb_nothing_else(
    field: playground.Playground,
) -> None:
    a_queue(field, "fine")
    kind = {"apiVersion": crd.VERSION, "kind": "Queue"}
    first, second = f"{field.namespace}-one", f"{field.namespace}-two"
    for name, parent in ((first, second), (second, first)):
        field.kube.create(
            gvr.QUEUES, {**kind, "metadata": {"name": name}, "spec": {"parent": parent}}
        )
    unknown = {"name": "g", "exactly": {"deviceClassName": "none.example.com"}}
    body = {
        "apiVersion": crd.VERSION,
        "kind": "Reservation",
        "metadata": {"name": "odd"},
        "spec": {"for": {"pod": "any"}, "devices": {"requests": [unknown]}},
    }
    field.kube.create(gvr.RESERVATIONS, body, field.namespace)

    def refused(resource: gvr.Resource, name: str, namespace: str | None = None) -> str:
        status = field.kube.get(resource, name, namespace).get("status", {})
        results = [entry for entry in status.get("conditions", ()) if entry["type"] == "Accepted"]
        return str(results[0]["message"]) if results and results[0]["status"] == "False" else ""

    words = playground.until(lambda: refused(gvr.QUEUES, first), 20, "the circle is told")
    assert words.startswith("spec.parent: the queue is its own ancestor")
    words = playground.until(
        lambda: refused(gvr.RESERVATIONS, "odd", field.namespace), 20, "the class is told"
    )
    path = "spec.devices.requests[0].exactly.deviceClassName"
    assert words == f"{path}: DeviceClass none.example.com does not exist"
    a_team(field, "fine", 2)
    playground.until(lambda: running(field, "fine") == 2, 60, "others run")


@pytest.mark.parametrize("name", ["two-teams", "gang", "reservation"])
def test_the_examples_run_as_they_stand(cluster: api.Cluster, name: str) -> None:
    item = manifest.Manifest(cluster, ROOT / "examples" / "teams" / f"{name}.yaml")
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    expected = {"two-teams": 4, "gang": 4, "reservation": 1}[name]

    def started() -> bool:
        items = kube.list(gvr.PODS, namespace=item.namespace).items
        return (
            sum(pod["status"].get("phase") in {"Running", "Succeeded"} for pod in items) == expected
        )

    cluster.kubectl("apply", "-f", str(item.file))
    try:
        playground.until(started, 90, f"all pods of {name} run")
    finally:
        item.delete()
