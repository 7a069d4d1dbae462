"""Report of an uninstall: claims in use, the driver's holds, and the messages for both. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import ids, names
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.snapshot import allocation_hold


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a node has prepared, or may have, for a pod."""

    claim: ids.Key
    pod: pods.Pod


@dataclass(frozen=True, slots=True)
class DropHolds:
    """Take these holds off; the allocation is in use."""

    claim: claims.Claim
    holds: tuple[claims.Consumer, ...]


@dataclass(frozen=True, slots=True)
class ClearClaim:
    """Take the allocation back, with its holds: nobody was bound with it."""

    claim: claims.Claim


Pods = Mapping[str, pods.Pod]
"""Pods by UID."""


@dataclass(frozen=True, slots=True)
class Release:
    """The release to uninstall: the driver, and the chart's namespace and names.

    `selector` matches all its pods, without their component. `controller` is "" where none runs.
    `plugin` is "" without a kubelet plugin: nothing of the release prepares claims. `on_demand`:
    whether it requested nodes, and marked them. `allocator_rules`: whether it made DeviceTaintRules
    for other drivers' devices; `managed`: the drivers whose devices its controller allocated.
    """

    driver: str
    namespace: str
    selector: str
    plugin: str = ""
    controller: str = ""
    on_demand: bool = False
    allocator_rules: bool = False
    managed: tuple[str, ...] = ()

    @property
    def allocated_drivers(self) -> tuple[str, ...]:
        """Return the drivers whose devices the controller allocated."""
        return self.driver, *self.managed

    def component_pods(self, *components: str) -> str:
        """The label selector of some components' pods."""
        return f"{self.selector},app.kubernetes.io/component in ({','.join(components)})"


def claims_in_use(
    pod_claims: Iterable[claims.Claim], pod_list: Pods, driver: str
) -> tuple[ClaimUse, ...]:
    """Claims with devices of ours whose pod was bound and has not ended, by pod and claim.

    From the moment a pod is bound its kubelet may have its claims prepared, and it has until the
    pod is gone: only a driver can end that (KEP-4381).
    """
    found_uses = (
        ClaimUse(claim.key, pod)
        for claim in pod_claims
        if has_device_of(claim, (driver,))
        for pod in _consumers(claim, pod_list)
        if _is_bound(pod)
    )
    return tuple(sorted(found_uses, key=lambda use: (use.pod.key, use.claim)))


def _consumers(claim: claims.Claim, pod_list: Pods) -> Iterator[pods.Pod]:
    """Yield the pods that a claim is reserved for, those of a PodGroup included."""
    if allocation_hold.is_reserved_for_group(claim):
        yield from (
            pod
            for pod in pod_list.values()
            if claim.key in pod.claim_keys and allocation_hold.is_reserved_by(claim, pod)
        )
        return
    uids = (consumer.uid for consumer in claim.consumers if consumer.is_pod)
    yield from (pod_list[uid] for uid in uids if uid in pod_list)


def pending_releases(
    pod_claims: Iterable[claims.Claim], pod_list: Pods, drivers: Collection[str]
) -> Iterator[DropHolds | ClearClaim]:
    """Yield the writes that leave no hold on a claim; the built-in finalizer stays (D3, D5).

    `drivers`: those whose devices the controller allocated.
    """
    for claim in pod_claims:
        holds = tuple(consumer for consumer in claim.consumers if consumer.is_hold)
        if not (holds and has_device_of(claim, drivers)):
            continue
        users = (consumer for consumer in claim.consumers if not consumer.is_hold)
        if any(_stays(consumer, holds, pod_list) for consumer in users):
            yield DropHolds(claim, holds)
        else:
            yield ClearClaim(claim)


def has_device_of(claim: claims.Claim, drivers: Collection[str]) -> bool:
    """Return whether it was allocated a device of one of the drivers."""
    results = () if claim.allocation is None else claim.allocation.results
    return any(result.device.driver in drivers for result in results)


def _is_bound(pod: pods.Pod | None) -> bool:
    return pod is not None and pod.node is not None and not pod.finished


def _stays(user: claims.Consumer, holds: tuple[claims.Consumer, ...], pod_list: Pods) -> bool:
    """Return whether its allocation is kept: for a pod that is bound, or being bound."""
    if not user.is_pod:
        return True
    pod = pod_list.get(user.uid)
    if pod is None or pod.finished:
        return False
    return _is_bound(pod) or not any(
        allocation_hold.is_hold_of(consumer, pod) for consumer in holds
    )


def refusal_message(claim_uses: Iterable[ClaimUse], release: Release) -> str:
    """Return why the uninstall is refused, and what to do: each claim, its pod, both ways."""
    uses = tuple(claim_uses)
    by_namespace: dict[str, list[str]] = {}
    for pod in {claim_use.pod.key: claim_use.pod for claim_use in uses}.values():
        by_namespace.setdefault(pod.namespace, []).append(pod.name)
    deleting = "\n".join(
        f"  kubectl -n {namespace} delete pod {' '.join(of_it)}"
        for namespace, of_it in by_namespace.items()
    )
    return (
        f"Not uninstalled, and nothing was changed: {_count(uses)} in use, and only the driver "
        f"{release.driver} can end that:\n{_lines(uses)}\n"
        "Delete these pods, and the controllers that would recreate them, then uninstall again:"
        f"\n{deleting}\n"
        "Or leave them: once deleted they stay Terminating until a driver of this name answers on "
        "their node. For that, before you uninstall again:\n"
        f"  kubectl -n {release.namespace} annotate daemonset {release.plugin} "
        f"{names.UNINSTALL}={names.FORCE}"
    )


def forced_message(claim_uses: Iterable[ClaimUse], release: Release) -> str:
    """Return the pods that stay behind after a forced uninstall."""
    uses = tuple(claim_uses)
    if not uses:
        return "Uninstalling by force; no claim is in use."
    return (
        f"Uninstalling by force while {_count(uses)} in use. These pods run on; once deleted they "
        f"stay Terminating until a driver {release.driver} answers on their node:\n"
        f"{_lines(uses)}\n"
        "Their records and CDI specs stay on the nodes, so that installing again ends them."
    )


def gated_message(pod_list: Iterable[pods.Pod]) -> str:
    """Return the pods behind the scheduling gate, and how to free them; "" without any."""
    waiting = [pod.key for pod in pod_list if names.ALLOCATION_GATE in pod.gates]
    if not waiting:
        return ""
    patch = (
        f'{{"spec":{{"schedulingGates":[{{"$patch":"delete","name":"{names.ALLOCATION_GATE}"}}]}}}}'
    )
    return (
        f"These pods have the scheduling gate {names.ALLOCATION_GATE}, which is no longer removed: "
        f"{', '.join(sorted(waiting))}. Delete them, or free each:\n"
        f"  kubectl -n NAMESPACE patch pod NAME --type=strategic -p '{patch}'"
    )


def _count(uses: tuple[ClaimUse, ...]) -> str:
    count = len({claim_use.claim for claim_use in uses})
    return "1 claim is" if count == 1 else f"{count} claims are"


def _lines(uses: tuple[ClaimUse, ...]) -> str:
    return "\n".join(
        f"  pod {claim_use.pod.key} on {claim_use.pod.node}, claim {claim_use.claim}"
        for claim_use in uses
    )
