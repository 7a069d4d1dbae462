"""Reads a claim's allocation on this node, and resolves its devices and configurations."""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import errors, ids, names, reasons
from driver.api import decode, offerings
from driver.kubeletplugin import ports
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.plan import config as plan_config
from driver.kubeletplugin.prepare import device_resolver
from driver.kubeletplugin.records import tombstones as claim_tombstones
from driver.resources.dra import claims
from driver.resources.sharing import allocation_config as sharing


@dataclass(frozen=True, slots=True)
class NodeScope:
    """Results of `driver` in `pool` (the node's name) are ours.

    `rules` make MIG static on some GPUs: no instance is created there.
    """

    pool: str
    driver: str = names.DRIVER
    rules: offerings.NodeOfferings = offerings.NodeOfferings()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A claim's allocation on this node: results and their opaque documents."""

    results: tuple[claims.Result, ...]
    documents: tuple[decode.Document, ...]
    located: device_resolver.Located
    namespace: str
    pod_claim: str


class ClaimRequests:
    """Raises ApiError from the reader, NodeFault and DeviceFault from the node."""

    def __init__(
        self,
        scope: NodeScope,
        reader: ports.ClaimReader,
        gpus: discovery.Discovery,
        tombstones: claim_tombstones.Tombstones,
    ) -> None:
        self._scope = scope
        self._reader = reader
        self._resolver = device_resolver.DeviceResolver(scope.pool, scope.rules, gpus)
        self._tombstones = tombstones

    def read(self, ref: ports.ClaimRef) -> ClaimRequest | ports.Refused:
        """Read a claim; refused where it has no devices here that may be prepared."""
        claim = self._reader.read(ref)
        if claim.uid != ref.uid:
            return _refuse(
                reasons.Reason.CLAIM_REPLACED,
                f"claim {claim.key} has UID {claim.uid}, expected {ref.uid}",
            )
        if self._tombstones.is_marked(ref.uid) and all(
            consumer.is_hold for consumer in claim.consumers
        ):
            text = f"claim {claim.key} was unprepared on this node, and no pod has reserved it"
            return _refuse(reasons.Reason.CLAIM_ALREADY_UNPREPARED, text)
        if claim.allocation is None:
            return _refuse(
                reasons.Reason.CLAIM_NOT_ALLOCATED, f"claim {claim.key} has no allocation"
            )
        return self._read_allocation(claim, claim.allocation)

    def _read_allocation(
        self, claim: claims.Claim, allocation: claims.Allocation
    ) -> ClaimRequest | ports.Refused:
        """Return the claim's devices on this node."""
        results = [result for result in allocation.results if self._is_ours(result)]
        if not results:
            return _refuse(
                reasons.Reason.CLAIM_NOT_ALLOCATED,
                f"claim {claim.key} has no device of {self._scope.driver} on {self._scope.pool}",
            )
        try:
            by_request = sharing.allocation_configs(allocation, self._scope.driver)
            documents = tuple(by_request)
        except errors.BadInput as problem:
            return ports.Refused(reasons.Reason.CONFIG_INVALID, str(problem), permanent=True)
        located = self._resolver.locate(result.device.device for result in results)
        if isinstance(located, ports.Refused):
            return located
        return ClaimRequest(tuple(results), documents, located, claim.namespace, claim.pod_claim)

    def _is_ours(self, result: claims.Result) -> bool:
        device = result.device
        return (device.driver, device.pool) == (self._scope.driver, self._scope.pool)

    def resolve_configs(
        self, request: ClaimRequest, multi_user: Mapping[ids.GpuUuid, bool]
    ) -> tuple[plan_config.ConfiguredGrant, ...] | ports.Refused:
        """Return the devices with their configurations; the caller holds the GPUs.

        `multi_user` are the GPUs that other claims use.
        """
        grants = self._resolver.grant(request.results, request.located)
        if isinstance(grants, ports.Refused):
            return grants
        return plan_config.resolve_configs(
            grants, request.results, request.documents, request.namespace, multi_user
        )


def _refuse(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message)
