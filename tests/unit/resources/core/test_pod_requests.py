from typing import Any

from driver.resources.core import pods
from tests.support.builders import objects


def container(name: str = "main", **requests: str) -> objects.Raw:
    return {"name": name, "resources": {"requests": requests}}


def sidecar(name: str, **requests: str) -> objects.Raw:
    return {**container(name, **requests), "restartPolicy": "Always"}


def a_pod(*containers: objects.Raw, status: Any = None, **spec: Any) -> pods.Pod:
    return objects.pod(containers=list(containers), status=status, nodeName="node-a", **spec)


def infeasible(**status: Any) -> objects.Raw:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    return {"phase": "Running", "conditions": [pending], **status}


def running(name: str = "main", **status: Any) -> objects.Raw:
    return {"phase": "Running", "containerStatuses": [{"name": name, **status}]}


def test_sidecars_run_beside_containers_and_later_init_steps() -> None:
    steps = [sidecar("proxy", cpu="1"), container("init", cpu="3"), sidecar("late", cpu="1")]
    assert a_pod(container(cpu="1"), initContainers=steps).requests == {"cpu": 4000}


def test_requests_of_the_whole_pod_go_before_those_of_containers() -> None:
    whole = {"requests": {"cpu": "3", "example.com/thing": "9"}}
    pod = a_pod(container(cpu="1", memory="1Gi"), resources=whole)
    assert pod.requests == {"cpu": 3000, "memory": 1 << 30}


def test_overhead_comes_on_top() -> None:
    assert a_pod(container(cpu="1"), overhead={"cpu": "250m"}).requests == {"cpu": 1250}


def test_parts_are_rounded_once_they_are_summed() -> None:
    pod = a_pod(container(memory="100m"), container("other", memory="100m"))
    assert pod.requests == {"memory": 1}


def test_a_pod_that_was_never_resized_takes_what_it_asks() -> None:
    assert a_pod(container(cpu="1"), status=running()).resized is None


def test_a_pod_being_resized_takes_the_most_of_what_is_said() -> None:
    larger = running(allocatedResources={"cpu": "2"}, resources={"requests": {"cpu": "3"}})
    assert a_pod(container(cpu="1"), status=larger).resized == {"cpu": 3000}
    smaller = running(allocatedResources={"cpu": "1"})
    assert a_pod(container(cpu="4"), status=smaller).resized is None


def test_a_resize_that_the_node_cannot_do_does_not_count() -> None:
    status = infeasible(**running(allocatedResources={"cpu": "1"}))
    assert a_pod(container(cpu="9"), status=status).resized == {"cpu": 1000}
    assert a_pod(container(cpu="9"), status=infeasible()).resized == {}


def test_a_resize_of_the_whole_pod_counts_as_its_status_says() -> None:
    status = {"phase": "Running", "resources": {"requests": {"cpu": "5"}}}
    whole = {"requests": {"cpu": "3"}}
    assert a_pod(container(cpu="1"), resources=whole, status=status).resized == {"cpu": 5000}


def test_claims_that_take_cpu_and_memory_of_the_node_count_on_top() -> None:
    claim = {
        "resourceClaimName": "cores",
        "containers": ["main", "other"],
        "mapping": [{"name": "cpu", "quantity": "4"}],
        "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}],
    }
    status = {"phase": "Running", "nodeAllocatableResourceClaimStatuses": [claim]}
    assert a_pod(container(cpu="1"), status=status).resized == {"cpu": 5000, "memory": 2 << 30}
    resized = {**status, **running(allocatedResources={"cpu": "2"})}
    taken = {"cpu": 6000, "memory": 2 << 30}
    assert a_pod(container(cpu="1"), status=resized).resized == taken


def test_claims_that_take_of_the_node_are_read_as_1_36_writes_them() -> None:
    claim = {"resourceClaimName": "cores", "resources": {"cpu": "4"}}
    status = {"phase": "Running", "nodeAllocatableResourceClaimStatuses": [claim]}
    assert a_pod(container(cpu="1"), status=status).resized == {"cpu": 5000}
