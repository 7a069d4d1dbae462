from typing import Any

import pytest

from driver.cli.simulation import dump, manifests
from tests.support.builders import objects

Raw = objects.Raw


def a_template(**spec: Any) -> Raw:
    return {"spec": {"containers": [{"name": "main"}], **spec}}


def workload(kind: str, version: str = "apps/v1", name: str = "web", **spec: Any) -> Raw:
    return {"kind": kind, "apiVersion": version, "metadata": {"name": name}, "spec": spec}


def names_of(*documents: Any) -> list[str]:
    result = manifests.read(documents)
    assert not result.problems, [str(problem) for problem in result.problems]
    return [workload_pod.pod.name for workload_pod in result.workloads]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Sandbox"])
def test_replicas_are_as_many_pods_of_whatever_has_a_pods_template(kind: str) -> None:
    assert names_of(workload(kind, template=a_template(), replicas=3)) == [
        "web-0",
        "web-1",
        "web-2",
    ]
    assert names_of(workload(kind, template=a_template())) == ["web-0"]
    assert names_of(workload(kind, template=a_template(), replicas=0)) == []


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"completions": 5}, 1),
    ],
)
def test_a_job_is_as_many_pods_as_run_at_once(spec: Raw, count: int) -> None:
    job = workload("Job", "batch/v1", template=a_template(), **spec)
    assert len(names_of(job)) == count
    cron = workload("CronJob", "batch/v1", jobTemplate={"spec": job["spec"]}, schedule="* * * * *")
    assert len(names_of(cron)) == count


def test_a_job_set_is_the_pods_of_all_its_jobs() -> None:
    job = {"spec": {"parallelism": 2, "template": a_template()}}
    several = [
        {"name": "workers", "replicas": 2, "template": job},
        {"name": "head", "template": job},
    ]
    assert names_of(
        workload("JobSet", "jobset.x-k8s.io/v1alpha2", "run", replicatedJobs=several)
    ) == [
        "run-workers-0-0",
        "run-workers-0-1",
        "run-workers-1-0",
        "run-workers-1-1",
        "run-head-0-0",
        "run-head-0-1",
    ]


def test_a_leader_worker_set_is_groups_of_a_leader_and_workers() -> None:
    gpu = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "eight"}]}
    group = {"size": 3, "leaderTemplate": a_template(), "workerTemplate": a_template(**gpu)}
    entry = workload("LeaderWorkerSet", "lws/v1", "llm", replicas=2, leaderWorkerTemplate=group)
    workload_pods = manifests.read([entry]).workloads
    assert [(pod.pod.name, len(pod.templates)) for pod in workload_pods] == [
        ("llm-0", 0),
        ("llm-0-1", 1),
        ("llm-0-2", 1),
        ("llm-1", 0),
        ("llm-1-1", 1),
        ("llm-1-2", 1),
    ]
    del group["leaderTemplate"]
    assert all(pod.templates == {"gpu": "eight"} for pod in manifests.read([entry]).workloads)


def test_a_pod_is_one_by_its_own_name_or_one_that_is_drawn() -> None:
    named = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "one"}, **a_template()}
    drawn = {**named, "metadata": {"generateName": "run-"}}
    assert names_of(named, drawn, drawn) == ["one", "run-1", "run-2"]


def test_a_list_is_read_as_its_items_and_pods_keep_file_order() -> None:
    second = workload("Job", "batch/v1", "b", template=a_template())
    first = workload("Deployment", name="a", template=a_template())
    assert names_of({"kind": "List", "apiVersion": "v1", "items": [second, first]}) == [
        "b-0",
        "a-0",
    ]


def test_a_daemon_set_is_left_out_with_a_note() -> None:
    result = manifests.read([workload("DaemonSet", template=a_template())])
    assert (result.workloads, result.notes) == (
        (),
        ("DaemonSet web: has a pod on each node, left out",),
    )


def test_objects_unrelated_to_gpus_are_skipped_with_a_note() -> None:
    result = manifests.read([{"kind": "Service"}, {"kind": "Service"}, {"kind": "ConfigMap"}])
    assert result.notes == (
        "2 Service: has no pod template, left out",
        "1 ConfigMap: has no pod template, left out",
    )


def test_objects_created_beside_pods_are_kept() -> None:
    claim = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", **objects.a_claim()}
    assert [*manifests.read([claim]).others.caches.claims] == ["default/claim"]


def test_requests_that_are_not_told_are_the_limits() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    containers = [{"name": "main", "resources": resources}]
    job = workload("Deployment", template={"spec": {"containers": containers}})
    (workload_pod,) = manifests.read([job]).workloads
    assert workload_pod.pod.requests == {"cpu": 1000, "memory": 1 << 30}


def test_namespaces_are_as_told_and_pods_of_two_may_share_a_name() -> None:
    job = workload("Job", "batch/v1", template=a_template())
    other = {**job, "metadata": {"name": "web", "namespace": "team"}}
    workload_pods = manifests.read([job, other], namespace="mine").workloads
    assert [workload_pod.pod.key for workload_pod in workload_pods] == ["mine/web-0", "team/web-0"]
    assert len({workload_pod.pod.uid for workload_pod in workload_pods}) == 2


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (
            workload("Deployment", template={"spec": {}}),
            (
                "Deployment web: spec.template.spec.containers: is missing; "
                "expected a list of containers"
            ),
        ),
        (
            workload("Deployment", template=a_template(), replicas="3"),
            "Deployment web: spec.replicas: is str; expected an integer",
        ),
        (
            workload("Deployment", template=a_template(), replicas=-1),
            "Deployment web: spec.replicas: is -1; expected 0 to 100000",
        ),
        (
            workload("Job", template=a_template(resourceClaims=[{"resourceClaimName": "x"}])),
            "Job web: spec.template.spec.resourceClaims[0].name: is missing; expected a string",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {}, **a_template()},
            "Pod (without a name): metadata.name: is missing; expected a string",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": "none"},
            "Pod p: spec: is str; expected an object",
        ),
        ("kind", "object (without a name): is str; expected an API object"),
    ],
)
def test_unreadable_objects_are_reported_with_kind_name_and_field(obj: Any, words: str) -> None:
    result = manifests.read([obj])
    assert [str(problem) for problem in result.problems] == [words]


def test_two_pods_of_one_name_are_a_problem() -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, **a_template()}
    result = manifests.read([pod, pod])
    assert [str(problem) for problem in result.problems] == [
        "Pod default/p: makes a pod of a name twice"
    ]
    assert isinstance(result.others, dump.Dump)
