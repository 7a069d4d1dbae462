"""What uninstalling meets: claims in use, holds of ours, and the words for both. Pure."""

from collections.abc import Iterable, Iterator, Mapping
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
    """What there is to uninstall: the driver, and where and under which names the chart has it.

    `selector` is of all its pods, without their component. `controller` is "" where none runs.
    `on_demand`: whether it asked for nodes, and marked them.
    """

    driver: str
    namespace: str
    selector: str
    plugin: str = ""
    controller: str = ""
    on_demand: bool = False

    def component_pods(self, *components: str) -> str:
        """The label selector of some components' pods."""
        return f"{self.selector},app.kubernetes.io/component in ({','.join(components)})"


def claims_in_use(found: Iterable[claims.Claim], there: Pods, driver: str) -> tuple[ClaimUse, ...]:
    """Claims with devices of ours whose pod was bound and has not ended, by pod and claim.

    From the moment a pod is bound its kubelet may have its claims prepared, and it has until the
    pod is gone: only a driver can end that (KEP-4381).
    """
    found_uses = (
        ClaimUse(claim.key, there[one.uid])
        for claim in found
        if is_ours(claim, driver)
        for one in claim.consumers
        if one.is_pod and _is_bound(there.get(one.uid))
    )
    return tuple(sorted(found_uses, key=lambda one: (one.pod.key, one.claim)))


def pending_releases(
    found: Iterable[claims.Claim], there: Pods, driver: str
) -> Iterator[DropHolds | ClearClaim]:
    """What to do so that no claim carries a hold of ours; the built-in finalizer stays (D3, D5)."""
    for claim in found:
        holds = tuple(one for one in claim.consumers if one.is_hold)
        if not (holds and is_ours(claim, driver)):
            continue
        users = (one for one in claim.consumers if not one.is_hold)
        if any(_stays(one, holds, there) for one in users):
            yield DropHolds(claim, holds)
        else:
            yield ClearClaim(claim)


def is_ours(claim: claims.Claim, driver: str) -> bool:
    """Whether it was given a device of this driver."""
    results = () if claim.allocation is None else claim.allocation.results
    return any(one.device.driver == driver for one in results)


def _is_bound(pod: pods.Pod | None) -> bool:
    return pod is not None and pod.node is not None and not pod.finished


def _stays(user: claims.Consumer, holds: tuple[claims.Consumer, ...], there: Pods) -> bool:
    """Whether the allocation is kept for it: a pod that is bound, or that kube-scheduler binds."""
    if not user.is_pod:
        return True
    pod = there.get(user.uid)
    if pod is None or pod.finished:
        return False
    return _is_bound(pod) or not any(allocation_hold.is_hold_of(one, pod) for one in holds)


def refusal_message(found: Iterable[ClaimUse], release: Release) -> str:
    """Why it is not uninstalled, and what to do: each claim, its pod, the two ways on."""
    uses = tuple(found)
    by_namespace: dict[str, list[str]] = {}
    for pod in {one.pod.key: one.pod for one in uses}.values():
        by_namespace.setdefault(pod.namespace, []).append(pod.name)
    deleting = "\n".join(
        f"  kubectl -n {namespace} delete pod {' '.join(of_it)}"
        for namespace, of_it in by_namespace.items()
    )
    return (
        f"Not uninstalled, and nothing was changed: {_count(uses)} in use, and only the driver "
        f"{release.driver} can end that:\n{_lines(uses)}\n"
        f"Delete these pods, and what would make them anew, then uninstall again:\n{deleting}\n"
        "Or leave them: once deleted they stay Terminating until a driver of this name answers on "
        "their node. For that, before you uninstall again:\n"
        f"  kubectl -n {release.namespace} annotate daemonset {release.plugin} "
        f"{names.UNINSTALL}={names.FORCE}"
    )


def forced_message(found: Iterable[ClaimUse], release: Release) -> str:
    """Which pods stay behind when it is uninstalled all the same."""
    uses = tuple(found)
    if not uses:
        return "Uninstalling by force; no claim is in use."
    return (
        f"Uninstalling by force while {_count(uses)} in use. These pods run on; once deleted they "
        f"stay Terminating until a driver {release.driver} answers on their node:\n"
        f"{_lines(uses)}\n"
        "Their records and CDI specs stay on the nodes, so that installing again ends them."
    )


def gated_message(found: Iterable[pods.Pod]) -> str:
    """Which pods wait behind our scheduling gate, and how they are freed; "" where none does."""
    waiting = [one.key for one in found if names.ALLOCATION_GATE in one.gates]
    if not waiting:
        return ""
    patch = (
        f'{{"spec":{{"schedulingGates":[{{"$patch":"delete","name":"{names.ALLOCATION_GATE}"}}]}}}}'
    )
    return (
        f"These pods wait behind the scheduling gate {names.ALLOCATION_GATE}, which nobody takes "
        f"away any more: {', '.join(sorted(waiting))}. Delete them, or free each:\n"
        f"  kubectl -n NAMESPACE patch pod NAME --type=strategic -p '{patch}'"
    )


def _count(uses: tuple[ClaimUse, ...]) -> str:
    count = len({one.claim for one in uses})
    return "1 claim is" if count == 1 else f"{count} claims are"


def _lines(uses: tuple[ClaimUse, ...]) -> str:
    return "\n".join(f"  pod {one.pod.key} on {one.pod.node}, claim {one.claim}" for one in uses)
