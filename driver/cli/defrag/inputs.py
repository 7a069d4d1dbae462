"""From flags, files and a cluster to a plan."""

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
class Asked:
    """What to plan for, and where, as it was said."""

    shape: shape.Shape
    files: tuple[str, ...]
    cluster: str | None
    policies: str
    namespace: str
    kubeconfig: Path | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What to plan for, in which world; `notes` are for people, `unseen` was not to be read."""

    world: defrag.DefragInput
    workload: allocator_types.Workload
    notes: tuple[str, ...]
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """Where it comes nearest, and why the pods in the way are not to be moved, by pod."""

    nearest: nearest_fit.NearestFit
    stay: Mapping[ids.Key, str]


def find(asked: Asked) -> Found:
    """Read all of it.

    Raises:
        BadInput: something cannot be read, or it is not one pod that is planned for.
        ApiError: the cluster refused, or was not reached.
    """
    driver = asked.shape.driver
    deciding = settings.Settings(
        ranking.parse_policies(asked.policies), device_filter.ControllerRules(driver)
    )
    wanted = _wanted(asked)
    seen = cluster_state.read(asked.cluster, asked.kubeconfig)
    if not seen.dump.caches.nodes:
        _refuse(seen.dump.problems)
        raise errors.BadInput(asked.cluster or "the cluster", "has no nodes")
    made = workloads.make(wanted, seen.dump)
    (task,) = made.tasks
    if made.lacking:
        raise errors.BadInput("pod", next(iter(made.lacking.values())))
    caches = made.caches
    known = {**caches.claims, **{one.key: one for one in task.claims}}
    view = cluster_states.build(driver, caches)
    there = defrag.DefragInput(view, caches.claims.get, caches.pods.get, deciding)
    workload = _workload(view, task.pod, known)
    unseen = (*seen.unseen, *(str(one) for one in seen.dump.problems))
    return Found(there, workload, (*wanted.notes, *made.notes), unseen)


def near(found: Found, plan: defrag.NoPlan) -> Near | None:
    """What would do that is not to be moved."""
    there = found.world
    people = holders.HolderIndex(there.view, there.find_claim, there.find_pod)
    where = nearest_fit.find_nearest_fit(
        there.view,
        found.workload,
        plan.unschedulable,
        people,
        there.allocator_settings,
        searching.StepBudget(defrag.MAX_STEPS),
    )
    if where is None:
        return None
    pods_there = ((key, there.find_pod(key)) for key in where.leaving)
    return Near(
        where, {key: defrag.immovable_reason(pod) for key, pod in pods_there if pod is not None}
    )


def _wanted(asked: Asked) -> manifests.Manifests:
    """One pod, with what it needs."""
    if asked.files and asked.shape.is_told:
        raise errors.BadInput("shape", "is told twice", "either -f or flags")
    if not asked.files:
        return _read(shape.documents(asked.shape, asked.namespace), asked.namespace)
    documents = [one for name in asked.files for one in yaml_input.read(name)]
    wanted = _read(documents, asked.namespace)
    if not wanted.wanted:
        wanted = _read([*documents, *_using(wanted, asked.files)], asked.namespace)
    if len(wanted.wanted) != 1:
        problem = f"holds {len(wanted.wanted)} pods"
        raise errors.BadInput(", ".join(asked.files), problem, "one to plan for")
    return wanted


def _read(documents: Sequence[object], namespace: str) -> manifests.Manifests:
    wanted = manifests.read(documents, namespace)
    _refuse(wanted.problems)
    return wanted


def _using(wanted: manifests.Manifests, files: Iterable[str]) -> list[Any]:
    """A pod for the one claim, or the one template, that there is."""
    others = wanted.others
    found = [
        *(("resourceClaimName", one.namespace, one.name) for one in others.caches.claims.values()),
        *(
            ("resourceClaimTemplateName", one.namespace, one.name)
            for one in others.templates.values()
        ),
    ]
    if len(found) != 1:
        problem = "holds no pod, and not one claim or template"
        raise errors.BadInput(", ".join(files), problem, "a Pod, a claim, or a template of one")
    ((field, namespace, name),) = found
    return [shape.using({field: name}, namespace)]


def _workload(
    view: cluster_states.ClusterState, pod: pods.Pod, known: Mapping[ids.Key, claims.Claim]
) -> allocator_types.Workload:
    lacking = [key for key in pod.claim_keys if key not in known]
    if lacking:
        raise errors.BadInput(f"pod {pod.key}", f"names claim {lacking[0]}, which is not there")
    found = [known[key] for key in pod.claim_keys]
    unsettled = tuple(one for one in found if one.allocation is None)
    if not unsettled:
        raise errors.BadInput(f"pod {pod.key}", "asks no devices that are still to be allocated")
    blocked = requested.parse_requests(view, unsettled)
    if isinstance(blocked, allocator_types.Unschedulable):
        raise errors.BadInput(f"pod {pod.key}", f"{blocked.blocker}: {blocked.detail}")
    mine = ownership.OwnershipResolver().managed_claims(view, pod, unsettled)
    if isinstance(mine, allocator_types.Unschedulable):
        raise errors.BadInput(f"pod {pod.key}", mine.detail)
    if not mine:
        problem = "asks devices that kube-scheduler allocates"
        raise errors.BadInput(f"pod {pod.key}", problem, "devices that the controller gives out")
    return allocator_types.Workload(
        pod, mine, tuple(one for one in found if one.allocation is not None)
    )


def _refuse(problems: Sequence[dump.Problem]) -> None:
    if problems:
        first, *rest = (str(one) for one in problems)
        more = "".join(f"\n{one}" for one in rest)
        raise errors.BadInput("input", f"cannot be read: {first}{more}")
