"""Pods of claims, read from the API server when a pod has to be identified.

A pod's claims are fixed before its first process starts, so a known answer for a pod and a claim
stays valid. A failure of the API server answers nothing. The pods of a claim that is reserved for a
PodGroup are never known: no entry of the claim names them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from driver import errors, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint, staleness
from driver.resources.dra import claims

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _ClaimState:
    """A claim's pods, by UID with their names, and the pods already resolved.

    `for_group`: the claim is reserved for a PodGroup.
    """

    pods: dict[ids.PodUid, str] = field(default_factory=dict)
    resolved: set[ids.PodUid] = field(default_factory=set)
    for_group: bool = False


class ClaimPods:
    """Used by one thread."""

    def __init__(self, reader: ports.ClaimReader) -> None:
        self._reader = reader
        self._claims: dict[ids.ClaimUid, _ClaimState] = {}
        self._silent = False

    def start_round(self, records: Iterable[checkpoint.Record]) -> None:
        """Start a round: forget claims without a record, and retry the server."""
        recorded = {record.uid for record in records}
        self._claims = {uid: state for uid, state in self._claims.items() if uid in recorded}
        self._silent = False

    def resolve(self, refs: Iterable[ports.ClaimRef], pods: Collection[ids.PodUid]) -> bool:
        """Resolve which of `pods` belong to each claim; return whether all are resolved."""
        resolved = True
        for ref in refs:
            state = self._claims.setdefault(ref.uid, _ClaimState())
            if not state.resolved.issuperset(pods):
                resolved = self._resolve_claim(ref, state, pods) and resolved
        return resolved

    def pods(
        self, refs: Iterable[ports.ClaimRef]
    ) -> Mapping[ids.ClaimUid, Mapping[ids.PodUid, str]]:
        """Return the known pods of claims with their `namespace/name`."""
        return {ref.uid: self._claims.get(ref.uid, _ClaimState()).pods for ref in refs}

    def _resolve_claim(
        self, ref: ports.ClaimRef, state: _ClaimState, pods: Collection[ids.PodUid]
    ) -> bool:
        if self._silent or state.for_group:
            return False
        result: staleness.ReadResult
        try:
            result = self._reader.read(ref)
        except errors.RationError as e:
            result = e
        if isinstance(result, claims.Claim) and any(
            consumer.is_pod_group for consumer in result.consumers
        ):
            state.for_group = True
            return False
        if isinstance(result, claims.Claim) and result.uid == ref.uid:
            state.pods |= {
                ids.PodUid(consumer.uid): f"{ref.namespace}/{consumer.name}"
                for consumer in result.consumers
                if consumer.is_pod
            }
        elif not staleness.is_gone(ref, result):  # of a claim that is gone there are no more pods
            # If the server is away, every claim would wait; the next round retries.
            self._silent = isinstance(result, errors.Unreachable)
            name = f"{ref.namespace}/{ref.name}"
            _log.warning("the pods of a claim are not known", claim=name, error=str(result))
            return False
        state.resolved.update(pods)
        return True
