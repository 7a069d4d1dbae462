from typing import Any

import pytest

from driver import names
from driver.resources.core import pods
from tests.support.builders import objects


def requests_of(**spec: Any) -> dict[str, int]:
    return dict(objects.pod(**spec).requests)


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def test_containers_are_summed() -> None:
    assert requests_of(containers=[container("1"), container("500m")]) == {"cpu": 1500}


def test_an_init_step_counts_when_it_asks_more_than_all_that_runs_later() -> None:
    spec = {"containers": [container("1")], "initContainers": [container("3"), container("2")]}
    assert requests_of(**spec) == {"cpu": 3000}


def test_a_sidecar_runs_beside_the_containers_and_later_init_steps() -> None:
    sidecar = container("1", restartPolicy="Always")
    spec = {"containers": [container("1")], "initContainers": [sidecar, container("2")]}
    assert requests_of(**spec) == {"cpu": 3000}


def test_overhead_comes_on_top() -> None:
    assert requests_of(containers=[container("1")], overhead={"cpu": "250m"}) == {"cpu": 1250}


def test_a_template_claim_is_unknown_until_its_name_is_recorded() -> None:
    raw = objects.a_pod()
    raw["spec"]["resourceClaims"] = [
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "coming", "resourceClaimTemplateName": "t"},
        {"name": "unneeded", "resourceClaimTemplateName": "t"},
    ]
    raw["status"]["resourceClaimStatuses"] = [
        {"name": "made", "resourceClaimName": "pod-made-x"},
        {"name": "unneeded"},
    ]
    assert pods.parse(raw).claims == (
        pods.PodClaim("made", "pod-made-x"),
        pods.PodClaim("coming", None),
        pods.PodClaim("unneeded", ""),
    )


def test_the_schedulers_words_are_read_from_its_condition() -> None:
    verdict = objects.pod(status=objects.refused("no room")).verdict
    assert verdict.refused
    assert verdict.message == "no room"
    gated = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    }
    assert not objects.pod(status=gated).verdict.refused


def test_the_moment_of_a_refusal_is_that_of_the_last_manager_of_its_message() -> None:
    raw = objects.a_pod(status=objects.refused("no room"))
    assert pods.parse(raw).verdict.written == ""
    other = {"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}, "time": "2027"}
    raw["metadata"]["managedFields"] = [
        objects.scheduled_by("kube-scheduler", "2026-11-21T09:00:09Z"),
        objects.scheduled_by("second-scheduler", "2026-11-21T09:00:11Z"),
        other,
    ]
    assert pods.parse(raw).verdict.written == "2026-11-21T09:00:11Z"
    raw["status"] = {}
    assert pods.parse(raw).verdict.written == ""


@pytest.mark.parametrize(
    ("annotations", "movable"), [(None, False), ({"a": "b"}, False), ({names.DEFRAG: "true"}, True)]
)
def test_a_pod_may_be_moved_where_its_annotation_says_so(
    annotations: dict[str, str] | None, *, movable: bool
) -> None:
    raw = objects.a_pod()
    raw["metadata"]["annotations"] = annotations
    assert pods.parse(raw).movable is movable


def test_the_run_time_is_the_least_declared() -> None:
    pod = objects.a_pod("a", activeDeadlineSeconds=600)
    assert pods.parse(pod).max_runtime_s == 600
    pod["metadata"]["annotations"] = {names.MAX_RUN_TIME: "5m"}
    assert pods.parse(pod).max_runtime_s == 300


@pytest.mark.parametrize("text", ["", "soon", "5 minutes"])
def test_a_run_time_that_cannot_be_read_declares_none(text: str) -> None:
    pod = objects.a_pod("a")
    pod["metadata"]["annotations"] = {names.MAX_RUN_TIME: text}
    assert pods.parse(pod).max_runtime_s is None


def test_annotations_on_sharing_and_faults_are_read() -> None:
    pod = objects.a_pod("a", preemptionPolicy="Never")
    pod["metadata"]["annotations"] = {names.PREEMPTIBLE: "true", names.ON_FAULT: "replace"}
    parsed = pods.parse(pod)
    assert (parsed.preempts, parsed.preemptible, parsed.on_fault) == (False, True, "replace")
    assert pods.parse(objects.a_pod("b")).preempts
