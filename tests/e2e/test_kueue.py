"""Real Kueue in front of the driver, on a cluster of 16 GPUs that is this module's own.

Kueue says which Jobs and pods may start, by counts of our classes; which devices they get is ours.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from driver import names
from driver.kube import client, gvr
from hack.cluster import api, kueue
from hack.cluster import errors as cluster_errors
from tests.e2e import playground
from tests.e2e.conftest import ROOT, hack

# Where Kueue is not built yet, the first test waits for that.
pytestmark = [pytest.mark.timeout(900)]
Raw = playground.Raw
QUOTA = "ration.dev/gpu"
KUEUES_GATES = {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
WORKLOADS = gvr.Resource("kueue.x-k8s.io", "v1beta2", "workloads", namespaced=True)
QUIET_S = 3.0
COUNTER, COUNTED = "multiprocessors", "ration.dev/multiprocessors"
CONFIGURATION = {
    "integrations": {"frameworks": ["batch/job", "pod"]},
    "featureGates": {"KueueDRAIntegrationPartitionableDevices": True},
    "resources": {
        "deviceClassMappings": [
            {"name": QUOTA, "deviceClassNames": [names.CLASS_GPU]},
            {
                "name": COUNTED,
                "deviceClassNames": [names.CLASS_MIG],
                "sources": [
                    {
                        "counter": {
                            "name": COUNTER,
                            "driver": names.DRIVER,
                            "deviceSelector": {
                                "cel": {"expression": f"device.driver == '{names.DRIVER}'"}
                            },
                        }
                    }
                ],
            },
        ]
    },
}
_PRIORITIES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    with contextlib.suppress(cluster_errors.ClusterError):
        api.Cluster.load(ROOT)
        pytest.skip("a cluster is up, with machines of its own: make cluster-down")
    try:
        kueue.fetch()
    except cluster_errors.CommandFailedError as error:
        pytest.skip(f"Kueue cannot be built here: {error}")
    hack("up", "--nodes", "2", "--controllers", "1")
    try:
        load = api.Cluster.load(ROOT)
        load.start_kueue(CONFIGURATION)
        load.kubectl("apply", "-f", "-", input=_PRIORITIES)
        yield load
    finally:
        hack("down")


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    """A namespace whose pods also wait behind our gate: both gates in all that follows."""
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    ground = playground.Playground.open(cluster, kube, **{names.GATE_LABEL: "true"})
    sizes = {"gpu": 1, "four": 4, "eight": 8}
    ground.create(*(playground.a_template(name, count) for name, count in sizes.items()))
    try:
        yield ground
    finally:
        cluster.kubectl("-n", ground.namespace, "delete", "jobs", "--all")
        ground.close()
        cluster.kubectl("delete", "clusterqueue", ground.namespace, "--wait=false")


def a_quota(field: playground.Playground, gpus: int, multiprocessors: int = 0) -> None:
    """A ClusterQueue of so many GPUs, and the namespace's way to it."""
    text = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {field.namespace}}}
spec:
  namespaceSelector: {{}}
  preemption: {{withinClusterQueue: LowerPriority}}
  resourceGroups:
    - coveredResources: [cpu, {QUOTA}, {COUNTED}]
      flavors:
        - name: any
          resources:
            - {{name: cpu, nominalQuota: "100"}}
            - {{name: {QUOTA}, nominalQuota: "{gpus}"}}
            - {{name: {COUNTED}, nominalQuota: "{multiprocessors}"}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: team, namespace: {field.namespace}}}
spec: {{clusterQueue: {field.namespace}}}
"""
    field.cluster.kubectl("apply", "-f", "-", input=text)


def a_job(field: playground.Playground, name: str, template: str = "gpu", **spec: Any) -> None:
    """A Job in the queue; it asks to run at once, and Kueue makes it wait."""
    priority = spec.pop("priority", "low")
    created = playground.a_pod(name, template=template)["spec"]
    created.pop("nodeSelector")
    created |= {"restartPolicy": "Never", **spec.pop("pod", {})}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {**QUEUE, "kueue.x-k8s.io/priority-class": priority},
        },
        "spec": {"template": {"spec": created}, **spec},
    }
    field.kube.create(gvr.JOBS, body, field.namespace)


def pods(field: playground.Playground, job: str) -> list[Raw]:
    label = f"batch.kubernetes.io/job-name={job}"
    return field.kube.list(gvr.PODS, namespace=field.namespace, label_selector=label).items


def running(field: playground.Playground, *jobs: str) -> list[Raw]:
    return [
        pod
        for job in jobs
        for pod in pods(field, job)
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def suspended(field: playground.Playground, job: str) -> bool:
    return bool(field.kube.get(gvr.JOBS, job, field.namespace)["spec"].get("suspend"))


def workload(field: playground.Playground, owner: str) -> Raw:
    """Return what Kueue keeps of a Job or a pod."""

    def found() -> Raw | None:
        every = field.kube.list(WORKLOADS, namespace=field.namespace).items
        return next(
            (entry for entry in every if entry["metadata"]["ownerReferences"][0]["name"] == owner),
            None,
        )

    answer = playground.until(found, 20, f"Kueue has a Workload of {owner}")
    assert answer is not None
    return answer


def told(field: playground.Playground, owner: str, kind: str) -> str:
    """The message of a condition that Kueue gave the Workload."""
    values = workload(field, owner).get("status", {}).get("conditions", ())
    return next((value["message"] for value in values if value["type"] == kind), "")


def given(field: playground.Playground) -> dict[str, list[tuple[str, str]]]:
    """The devices of each pod that has some, as (pool, name)."""
    return {
        claim["metadata"]["ownerReferences"][0]["name"]: [
            (result["pool"], result["device"])
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        for claim in field.claims()
        if claim.get("status", {}).get("allocation")
    }


def held(field: playground.Playground) -> int:
    """Return how many GPUs the namespace has; none of them twice."""
    every = [device for devices in given(field).values() for device in devices]
    assert len(every) == len(set(every))
    return len(every)


def gates(field: playground.Playground, name: str) -> set[str]:
    return {entry["name"] for entry in field.pod(name)["spec"].get("schedulingGates", ())}


def end(field: playground.Playground, *jobs: str) -> None:
    field.cluster.kubectl("-n", field.namespace, "delete", "job", *jobs)


def test_jobs_that_kueue_admits_pass_straight_through(field: playground.Playground) -> None:
    a_quota(field, 16)
    a_job(field, "pair", parallelism=2, completions=2)
    a_job(field, "four", "four")
    playground.until(lambda: len(running(field, "pair", "four")) == 3, 60, "both Jobs run")
    assert held(field) == 6
    by_pod = given(field)
    for pod in running(field, "pair", "four"):
        name = pod["metadata"]["name"]
        assert len(field.uuids(name)) == len(by_pod[name])
        assert gates(field, name) == set()
        resource_claim_statuses = pod["status"]["resourceClaimStatuses"]
        assert [
            resource_claim_status["name"] for resource_claim_status in resource_claim_statuses
        ] == ["made"]
    counted = workload(field, "pair")["status"]["admission"]["podSetAssignments"][0]
    assert counted["resourceUsage"][QUOTA] == "2"


def test_the_fifth_gpu_of_a_quota_of_four_waits_until_one_is_given_back(
    field: playground.Playground,
) -> None:
    a_quota(field, 4)
    first = [f"job-{number}" for number in range(4)]
    for name in first:
        a_job(field, name)
    playground.until(lambda: len(running(field, *first)) == 4, 60, "four run")
    a_job(field, "fifth")
    playground.until(
        lambda: "insufficient unused quota" in told(field, "fifth", "QuotaReserved"),
        20,
        "Kueue says why it waits",
    )
    time.sleep(QUIET_S)
    assert suspended(field, "fifth")
    assert pods(field, "fifth") == []
    assert held(field) == 4
    end(field, "job-0")
    playground.until(lambda: len(running(field, "fifth")) == 1, 60, "the fifth runs")
    # Kueue gives the quota back with the Job; the Job's pod may have its GPU a little longer.
    playground.until(lambda: held(field) == 4, 20, "they have four GPUs")
    assert len(running(field, *first[1:])) == 3


def test_kueues_gate_and_ours_stack_and_each_takes_only_its_own_away(
    field: playground.Playground,
) -> None:
    a_quota(field, 4)
    a_job(field, "holder", "four")
    playground.until(lambda: running(field, "holder"), 60, "the quota is taken")
    pod = playground.a_pod("plain", template="gpu")
    pod["metadata"]["labels"] = QUEUE
    pod["spec"].pop("nodeSelector")
    field.create(pod)
    ours = {names.ALLOCATION_GATE}
    both = KUEUES_GATES | ours
    assert gates(field, "plain") == both
    playground.until(
        lambda: told(field, "plain", "QuotaReserved"), 20, "Kueue knows the pod and has it wait"
    )
    time.sleep(QUIET_S)
    assert gates(field, "plain") == both
    assert "plain" not in given(field)
    with without_controller(field.cluster):
        end(field, "holder")
        playground.until(lambda: gates(field, "plain") == ours, 60, "Kueue takes its own away")
        time.sleep(QUIET_S)
        assert gates(field, "plain") == ours
        assert "plain" not in given(field)
    field.running("plain")
    assert gates(field, "plain") == set()
    assert len(field.uuids("plain")) == 1


@contextlib.contextmanager
def without_controller(cluster: api.Cluster) -> Iterator[None]:
    for controller in cluster.controllers():
        cluster.stop(controller)
    try:
        yield
    finally:
        for controller in cluster.controllers():
            cluster.start(controller)


def test_gpus_of_a_workload_preempted_by_kueue_go_to_the_preemptor(
    field: playground.Playground,
) -> None:
    a_quota(field, 16)
    low = ["low-0", "low-1"]
    for name in low:
        a_job(field, name, "eight")
    playground.until(lambda: len(running(field, *low)) == 2, 60, "the fleet is full")
    previous = {entry["metadata"]["uid"] for entry in running(field, *low)}
    a_job(field, "high", "eight", priority="high")
    playground.until(lambda: running(field, "high"), 90, "the more important Job runs")
    assert len(field.uuids(running(field, "high")[0]["metadata"]["name"])) == 8
    assert held(field) == 16
    (left,) = running(field, *low)
    assert left["metadata"]["uid"] in previous
    (gone,) = [name for name in low if suspended(field, name)]
    assert "Preempted to accommodate" in told(field, gone, "Preempted")
    end(field, "high")
    playground.until(lambda: len(running(field, *low)) == 2, 60, "it comes back")
    assert held(field) == 16


def test_kueue_keeps_uncountable_workloads_suspended_with_a_message(
    field: playground.Playground,
) -> None:
    a_quota(field, 4)
    either = {"name": "a", "deviceClassName": names.CLASS_GPU}
    choice = playground.a_template("choice")
    choice["spec"]["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": [either]}]
    every = playground.a_template("every")
    every["spec"]["spec"]["devices"]["requests"] = [
        {"name": "gpu", "exactly": {"deviceClassName": names.CLASS_GPU, "allocationMode": "All"}}
    ]
    field.create(
        playground.a_claim("mine"),
        choice,
        every,
        playground.a_template("part", deviceClassName="gpu-mps.ration.dev"),
    )
    named = {"resourceClaims": [{"name": "made", "resourceClaimName": "mine"}]}
    a_job(field, "named", pod=named)
    a_job(field, "choosing", "choice")
    a_job(field, "all", "every")
    a_job(field, "unmapped", "part")
    words = {
        "named": "does not support use of resource claims",
        "choosing": "FirstAvailable device selection is not supported",
        "all": "AllocationMode 'All' is not supported",
        "unmapped": "DeviceClass gpu-mps.ration.dev is not mapped",
    }
    for name, word in words.items():
        refused(field, name, word)
    time.sleep(QUIET_S)
    for name in words:
        assert suspended(field, name)
        assert pods(field, name) == []
    assert held(field) == 0


def refused(field: playground.Playground, job: str, word: str) -> None:
    playground.until(
        lambda: word in told(field, job, "QuotaReserved"), 20, f"{job} is told {word!r}"
    )


def test_parts_are_charged_by_a_counter_that_the_driver_publishes(
    field: playground.Playground,
) -> None:
    seventh, half = (charge(field, profile) for profile in ("1g.10gb", "3g.40gb"))
    assert 0 < seventh < half
    a_quota(field, 4, multiprocessors=half + seventh)
    for name, profile in (("seventh", "1g.10gb"), ("half", "3g.40gb")):
        expression = f"device.attributes['{names.DRIVER}'].profile == '{profile}'"
        selectors = [{"cel": {"expression": expression}}]
        field.create(
            playground.a_template(name, deviceClassName=names.CLASS_MIG, selectors=selectors)
        )
    a_job(field, "one", "seventh")
    a_job(field, "two", "half")
    playground.until(lambda: len(running(field, "one", "two")) == 2, 90, "both parts run")
    a_job(field, "three", "seventh")
    playground.until(
        lambda: "insufficient unused quota" in told(field, "three", "QuotaReserved"),
        20,
        "the quota is used up",
    )
    used = [
        workload(field, job)["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]
        for job in ("one", "two")
    ]
    assert [entry[COUNTED] for entry in used] == [str(seventh), str(half)]
    end(field, "two")
    playground.until(lambda: len(running(field, "one", "three")) == 2, 60, "then it fits")


def charge(field: playground.Playground, profile: str) -> int:
    """Return what the driver publishes that a part of a profile takes of the counter."""
    devices = [
        device
        for item in field.kube.list(gvr.RESOURCE_SLICES).items
        for device in item["spec"].get("devices", ())
        if device.get("attributes", {}).get("profile", {}).get("string") == profile
    ]
    counters = devices[0]["consumesCounters"][0]["counters"]
    return int(counters[COUNTER]["value"])
