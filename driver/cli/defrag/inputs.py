"""Builds a defragmentation plan from flags, files and a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import errors, ids
from driver.cli import cluster_state, yaml_input
from driver.cli.defrag import shape
from driver.cli.simulation import dump, manifests, workloads
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.allocator import ownership, settings
from driver.scheduling.allocator import requests as requested
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.explain import defrag, holders, nearest_fit
from driver.scheduling.explain import step_budget as searching
from driver.scheduling.snapshot import cluster_state as cluster_states


@dataclass(frozen=True, slots=True)
class DefragOptions:
    """Shape to plan for, and sources, as given."""

    shape: shape.Shape
    files: tuple[str, ...]
    cluster: str | None
    policies: str
    namespace: str
    kubeconfig: Path | None = None


@dataclass(frozen=True, slots=True)
class DefragInputs:
    """Workload and world of the plan; `notes` are for people, `unreadable` could not be read."""

    world: defrag.DefragInput
    workload: allocator_types.Workload
    notes: tuple[str, ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NearestPlan:
    """Nearest fit, and why the pods in its way cannot be moved, by pod."""

    nearest: nearest_fit.NearestFit
    blocked: Mapping[ids.Key, str]


def load_inputs(defrag_options: DefragOptions) -> DefragInputs:
    """Read all of it.

    Raises:
        BadInput: something cannot be read, or it is not one pod that is planned for.
        ApiError: the cluster refused, or was not reached.
    """
    driver = defrag_options.shape.driver
    deciding = settings.Settings(
        ranking.parse_policies(defrag_options.policies), device_filter.ControllerRules(driver)
    )
    desired = _wanted(defrag_options)
    seen = cluster_state.read(defrag_options.cluster, defrag_options.kubeconfig)
    if not seen.dump.caches.nodes:
        _refuse(seen.dump.problems)
        raise errors.BadInput(defrag_options.cluster or "the cluster", "has no nodes")
    workload_set = workloads.build_workloads(desired, seen.dump)
    (task,) = workload_set.tasks
    if workload_set.missing:
        raise errors.BadInput("pod", next(iter(workload_set.missing.values())))
    caches = workload_set.caches
    pod_claims = {**caches.claims, **{claim.key: claim for claim in task.claims}}
    view = cluster_states.build(driver, caches)
    defrag_input = defrag.DefragInput(view, caches.claims.get, caches.pods.get, deciding)
    workload = _workload(view, task.pod, pod_claims)
    unseen = (*seen.unreadable, *(str(claim) for claim in seen.dump.problems))
    return DefragInputs(defrag_input, workload, (*desired.notes, *workload_set.notes), unseen)


def find_nearest(defrag_inputs: DefragInputs, plan: defrag.NoPlan) -> NearestPlan | None:
    """Return what would fit but cannot be moved."""
    defrag_input = defrag_inputs.world
    people = holders.HolderIndex(defrag_input.view, defrag_input.find_claim, defrag_input.find_pod)
    path = nearest_fit.find_nearest_fit(
        defrag_input.view,
        defrag_inputs.workload,
        plan.unschedulable,
        people,
        defrag_input.allocator_settings,
        searching.StepBudget(defrag.MAX_STEPS),
    )
    if path is None:
        return None
    pods_there = ((key, defrag_input.find_pod(key)) for key in path.leaving)
    return NearestPlan(
        path, {key: defrag.immovable_reason(pod) for key, pod in pods_there if pod is not None}
    )


def _wanted(defrag_options: DefragOptions) -> manifests.Manifests:
    """One pod, with what it needs."""
    if defrag_options.files and defrag_options.shape.is_set:
        raise errors.BadInput("shape", "is told twice", "either -f or flags")
    if not defrag_options.files:
        return _read(
            shape.documents(defrag_options.shape, defrag_options.namespace),
            defrag_options.namespace,
        )
    documents = [item for name in defrag_options.files for item in yaml_input.read(name)]
    desired = _read(documents, defrag_options.namespace)
    if not desired.workloads:
        desired = _read(
            [*documents, *_using(desired, defrag_options.files)], defrag_options.namespace
        )
    if len(desired.workloads) != 1:
        problem = f"holds {len(desired.workloads)} pods"
        raise errors.BadInput(", ".join(defrag_options.files), problem, "one to plan for")
    return desired


def _read(documents: Sequence[object], namespace: str) -> manifests.Manifests:
    desired = manifests.read(documents, namespace)
    _refuse(desired.problems)
    return desired


def _using(desired: manifests.Manifests, files: Iterable[str]) -> list[Any]:
    """A pod for the one claim, or the one template, that there is."""
    others = desired.others
    result = [
        *(
            ("resourceClaimName", claim.namespace, claim.name)
            for claim in others.caches.claims.values()
        ),
        *(
            ("resourceClaimTemplateName", claim.namespace, claim.name)
            for claim in others.templates.values()
        ),
    ]
    if len(result) != 1:
        problem = "holds no pod, and not one claim or template"
        raise errors.BadInput(", ".join(files), problem, "a Pod, a claim, or a template of one")
    ((field, namespace, name),) = result
    return [shape.claim_pod({field: name}, namespace)]


def _workload(
    view: cluster_states.ClusterState,
    pod: pods.Pod,
    resource_claims: Mapping[ids.Key, claims.Claim],
) -> allocator_types.Workload:
    lacking = [key for key in pod.claim_keys if key not in resource_claims]
    if lacking:
        raise errors.BadInput(f"pod {pod.key}", f"names claim {lacking[0]}, which is not there")
    pod_claims = [resource_claims[key] for key in pod.claim_keys]
    unsettled = tuple(claim for claim in pod_claims if claim.allocation is None)
    if not unsettled:
        raise errors.BadInput(f"pod {pod.key}", "asks no devices that are still to be allocated")
    blocked = requested.parse_requests(view, unsettled)
    if isinstance(blocked, allocator_types.Unschedulable):
        raise errors.BadInput(f"pod {pod.key}", f"{blocked.blocker}: {blocked.detail}")
    split = ownership.OwnershipResolver().split_claims(view, pod, unsettled)
    if isinstance(split, allocator_types.Unschedulable):
        raise errors.BadInput(f"pod {pod.key}", split.detail)
    if not split:
        problem = "asks devices that kube-scheduler allocates"
        raise errors.BadInput(f"pod {pod.key}", problem, "devices that the controller gives out")
    return split.workload(pod, tuple(claim for claim in pod_claims if claim.allocation is not None))


def _refuse(problems: Sequence[dump.ReadProblem]) -> None:
    if problems:
        first, *rest = (str(read_problem) for read_problem in problems)
        more = "".join(f"\n{read_problem}" for read_problem in rest)
        raise errors.BadInput("input", f"cannot be read: {first}{more}")
