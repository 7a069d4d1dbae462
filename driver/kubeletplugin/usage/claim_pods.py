"""Which pods a claim is of, as the API server says: read when there is a pod to be told apart.

A pod's claims are its own from its first process on, so what was said of a pod and a claim once
stays true; and a failure of the API server says nothing.
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
    """Of a claim: its pods, by their names, and those that were asked about."""

    pods: dict[ids.PodUid, str] = field(default_factory=dict)
    resolved: set[ids.PodUid] = field(default_factory=set)


class ClaimPods:
    """Of one thread."""

    def __init__(self, reader: ports.ClaimReader) -> None:
        self._reader = reader
        self._claims: dict[ids.ClaimUid, _ClaimState] = {}
        self._silent = False

    def start_round(self, records: Iterable[checkpoint.Record]) -> None:
        """A look begins: forget claims without a record, and hope that the server answers."""
        there = {record.uid for record in records}
        self._claims = {uid: known for uid, known in self._claims.items() if uid in there}
        self._silent = False

    def resolve(self, of: Iterable[ports.ClaimRef], pods: Collection[ids.PodUid]) -> bool:
        """Have it known which of `pods` each of the claims is of; whether it is."""
        settled = True
        for ref in of:
            known = self._claims.setdefault(ref.uid, _ClaimState())
            if not known.resolved.issuperset(pods):
                settled = self._resolve_claim(ref, known, pods) and settled
        return settled

    def pods(self, of: Iterable[ports.ClaimRef]) -> Mapping[ids.ClaimUid, Mapping[ids.PodUid, str]]:
        """The pods of claims with their `namespace/name`, as far as they are known."""
        return {ref.uid: self._claims.get(ref.uid, _ClaimState()).pods for ref in of}

    def _resolve_claim(
        self, ref: ports.ClaimRef, known: _ClaimState, pods: Collection[ids.PodUid]
    ) -> bool:
        if self._silent:
            return False
        answer: staleness.ReadResult
        try:
            answer = self._reader.read(ref)
        except errors.RationError as e:
            answer = e
        if isinstance(answer, claims.Claim) and answer.uid == ref.uid:
            known.pods |= {
                ids.PodUid(one.uid): f"{ref.namespace}/{one.name}"
                for one in answer.consumers
                if one.is_pod
            }
        elif not staleness.is_gone(ref, answer):  # of a claim that is gone there are no more pods
            # A server that is away would let every claim wait; the next look asks again.
            self._silent = isinstance(answer, errors.Unreachable)
            name = f"{ref.namespace}/{ref.name}"
            _log.warning("the pods of a claim are not known", claim=name, error=str(answer))
            return False
        known.resolved.update(pods)
        return True
