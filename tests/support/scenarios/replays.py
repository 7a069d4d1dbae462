"""Desks and tasks for tests: small clusters, pods with a claim each."""

from dataclasses import replace
from typing import Any

from driver import ids
from driver.cli.simulation import replay, scheduler, turns
from driver.resources.dra import claims
from tests.support import snapshots
from tests.support.builders import objects


def a_desk(
    sizes: dict[str, int], *existing: claims.Claim, every_pod: bool = False, **caches: Any
) -> scheduler.SimulatedScheduler:
    """Nodes by name with so many GPUs each, and claims of the cluster."""
    nodes = [objects.node(name) for name in sizes]
    slices = [objects.a_parsed_slice(name, count) for name, count in sizes.items() if count]
    cached_objects = snapshots.caches(nodes, slices, existing, **caches)
    return scheduler.SimulatedScheduler.from_caches(
        snapshots.DRIVER, cached_objects, snapshots.DECIDING, every_pod=every_pod
    )


def a_task(
    name: str, gpus: int = 1, time_s: float = 0.0, lasts: float | None = None, **pod: Any
) -> replay.Task:
    """A pod with a claim of its own for whole GPUs."""
    priority = pod.pop("priority", 0)
    created = replace(objects.pod(name, f"{name}-gpu", **pod), priority=priority)
    claim = objects.claim(f"{name}-gpu", objects.a_request(count=gpus))
    return replay.Task(created, (claim,), time_s, lasts)


def a_job(
    name: str,
    leaf: str = "",
    *,
    pods: int = 1,
    gpus: int = 1,
    time_s: float = 0.0,
    lasts: float = 1.0,
    priority: int = 0,
) -> turns.Job:
    """A queue's job of so many pods with so many GPUs each."""
    tasks = []
    for number in range(pods):
        task = a_task(f"{name}-{number}", gpus, time_s=time_s, priority=priority)
        (entry,) = task.pod.claims
        # As of a template: the same name in each pod.
        pod = replace(task.pod, claims=(replace(entry, name="gpu"),))
        tasks.append(replace(task, pod=pod))
    return turns.Job(name, leaf, (*tasks,), lasts)


def a_pod_alone(name: str, time_s: float = 0.0, **spec: Any) -> replay.Task:
    """A pod without a claim."""
    pod = objects.pod(name, resourceClaims=[], **spec)
    return replay.Task(pod, (), time_s)


def devices(result: scheduler.Answer | None) -> list[str]:
    """Return what a pod got, by name."""
    assert isinstance(result, scheduler.BoundPod), result
    return [assignment.device.device for assignment in result.placement.assignments]


def run(
    simulated_scheduler: scheduler.SimulatedScheduler,
    *tasks: replay.Task,
    rule: replay.ReplayRule | None = None,
) -> dict[str, replay.TaskFate]:
    """Return what became of each pod, by name."""
    report = replay.Replay(simulated_scheduler, rule).run(tasks)
    return {fate.task.pod.name: fate for fate in report.fates}


def node_of(fate: replay.TaskFate) -> ids.NodeName | None:
    return fate.answer.placement.node if isinstance(fate.answer, scheduler.BoundPod) else None
