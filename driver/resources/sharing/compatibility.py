"""On which terms a claim has a GPU that others have too, and whether theirs agree. Pure.

Amounts are counted by the allocator (KEP-5075); what cannot be had in two ways at once on one GPU
is looked at here: the way of sharing, the time slice, whose users may meet, whose namespaces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import names, reasons
from driver.api import v1alpha1
from driver.resources import quantities
from driver.resources.dra import claims
from driver.resources.sharing import multi_user as sharing_multi_user

_MIB = 1 << 20
_WEAK: Mapping[v1alpha1.Isolation, frozenset[str]] = {
    "hardware": frozenset({names.SHARING_MPS, names.SHARING_TIME_SLICING}),
    "limits": frozenset({names.SHARING_TIME_SLICING}),
    "none": frozenset(),
}
"""The ways of sharing that isolate less than is asked."""


@dataclass(frozen=True, slots=True)
class SharingTerms:
    """`memory_bytes` and `compute_percent` are what the claim was given of the GPU.

    `interval` is of time-slicing, `multi_user` of MPS: whether clients of several users may be
    served at once. `cross_namespace`: its class lets claims of other namespaces in (D18).
    """

    sharing: str
    namespace: str
    memory_bytes: int
    compute_percent: int
    interval: str = "Default"
    multi_user: bool = False
    cross_namespace: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Reason that two claims cannot share a GPU."""

    reason: reasons.Reason
    message: str


def check_isolation(
    result: claims.Result, sharing: str, need: v1alpha1.SliceConfig | None
) -> Conflict | None:
    """Return a conflict if the sharing isolates less than a request needs; else None."""
    if need is None or sharing not in _WEAK[need.isolation]:
        return None
    return Conflict(
        reasons.Reason.ISOLATION_TOO_WEAK,
        f"{result.device.device} is shared by {sharing}, and the configuration of request "
        f"{result.request} asks for isolation: {need.isolation}",
    )


def result_terms(
    result: claims.Result,
    sharing: str,
    namespace: str,
    config: v1alpha1.Config,
    server: sharing_multi_user.MpsServer = sharing_multi_user.ANY,
) -> SharingTerms | Conflict:
    """The terms of an allocated share; a Conflict where its GPU cannot be had on such.

    `server` is that of its GPU, should it be shared by MPS.
    """
    desired = config.sharing
    if desired is not None and _word(desired) != sharing:
        return Conflict(
            reasons.Reason.CONFIG_INVALID,
            f"{result.device.device} is shared by {sharing}, and the configuration of request "
            f"{result.request} is for {_word(desired)}",
        )
    if isinstance(desired, v1alpha1.MpsSharing) and (granted := _limits(desired.mps)):
        return Conflict(
            reasons.Reason.CONFIG_INVALID,
            f"the configuration of request {result.request} has {' and '.join(granted)}, for "
            f"devices of one claim; its part of {result.device.device} is what the claim's "
            "capacity says",
        )
    sliced = desired if isinstance(desired, v1alpha1.TimeSlicingSharing) else None
    requested = desired.mps.multiUser if isinstance(desired, v1alpha1.MpsSharing) else None
    if requested and server.missing_support:
        return Conflict(
            reasons.Reason.CONFIG_INVALID,
            f"the configuration of request {result.request} has multiUser: true, and the GPU of "
            f"{result.device.device} has {server.missing_support}",
        )
    by_mps = sharing == names.SHARING_MPS
    return SharingTerms(
        sharing=sharing,
        namespace=namespace,
        memory_bytes=_amount(result, names.CAP_MEMORY),
        compute_percent=_amount(result, names.CAP_COMPUTE),
        interval=sliced.timeSlicing.interval if sliced else "Default",
        multi_user=by_mps and server.serves_several(requested),
        cross_namespace=isinstance(config, v1alpha1.GpuConfig) and config.crossNamespace,
    )


def find_conflict(mine: SharingTerms, other: SharingTerms) -> Conflict | None:
    """Return why `mine` cannot join `other` on a GPU; None if it can."""
    if mine.sharing != other.sharing:
        text = f"it is shared by {other.sharing}"
        return Conflict(reasons.Reason.DEVICE_OVERLAP, text)
    if mine.namespace != other.namespace and not (mine.cross_namespace and other.cross_namespace):
        text = "that is of another namespace, and not both their classes let namespaces share"
        return Conflict(reasons.Reason.CROSS_NAMESPACE_SHARING, text)
    if mine.interval != other.interval:
        text = f"its time slice is {other.interval}, and {mine.interval} is asked"
        return Conflict(reasons.Reason.SHARING_CONFLICT, text)
    if mine.multi_user != other.multi_user:
        text = f"its daemon has multiUser: {str(other.multi_user).lower()}"
        return Conflict(reasons.Reason.SHARING_CONFLICT, text)
    return None


def mps_environment(sharing_terms: SharingTerms, config: v1alpha1.Config) -> dict[str, str]:
    """Return the environment that limits a client: it may only lower the server's limits.

    The GPU is the daemon's only one, so its index is 0 (NV-12).
    """
    served = config.sharing if isinstance(config.sharing, v1alpha1.MpsSharing) else None
    return {
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={sharing_terms.memory_bytes // _MIB}M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(sharing_terms.compute_percent),
        **client_environment(served.mps if served else v1alpha1.Mps()),
    }


def client_environment(mps: v1alpha1.Mps) -> dict[str, str]:
    """Return a client's environment beside its limits."""
    entries: dict[str, str] = {}
    if mps.priority == "BelowNormal":
        entries["CUDA_MPS_CLIENT_PRIORITY"] = "1"
    if mps.maxConnections is not None:
        entries["CUDA_DEVICE_MAX_CONNECTIONS"] = str(mps.maxConnections)
    return entries


def share_environment(device: str, terms: SharingTerms) -> dict[str, str]:
    """Return the claim's share for programs that respect it: it is not enforced."""
    key = device.upper().replace("-", "_")
    return {f"RATION_{key}": f"memory={terms.memory_bytes},compute={terms.compute_percent}"}


def _limits(mps: v1alpha1.Mps) -> list[str]:
    """The limits that a claim sets for a device of its own."""
    granted = {
        "a memory limit": mps.pinnedMemory is not None or bool(mps.pinnedMemoryPerDevice),
        "a thread percentage": mps.activeThreadPercentage is not None,
    }
    return [words for words, holds in granted.items() if holds]


def _word(sharing: v1alpha1.Sharing) -> str:
    return (
        names.SHARING_MPS
        if isinstance(sharing, v1alpha1.MpsSharing)
        else names.SHARING_TIME_SLICING
    )


def _amount(result: claims.Result, key: str) -> int:
    """Return a capacity in whole units, by its bare or its qualified name."""
    quantity = next(
        (item for name, item in result.consumed.items() if name.rpartition("/")[2] == key), None
    )
    return quantity.units if isinstance(quantity, quantities.Quantity) else 0
