"""Judges what was seen of pods and claims, look by look. Pure; moments are seconds, handed in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver import ids
from driver.devices import faces
from driver.resources.core import pods
from driver.resources.dra import claims
from driver.scheduling.lifecycle import bound_pods
from driver.scheduling.snapshot import snapshot

REPAIR_BOUND_S = bound_pods.REPAIR_BOUND_S
STUCK_S = 60.0
STEP_S = 5.0


@dataclass(frozen=True, slots=True)
class Breach:
    """Something that must not be: `kind`, the object, and the words for a person."""

    kind: str
    key: str
    words: str


@dataclass(slots=True)
class Judge:
    """Remembers since when each pod has been as it is; breaches are told once."""

    breaches: dict[tuple[str, str], Breach] = field(default_factory=dict)
    bound_after: dict[ids.PodUid, float] = field(default_factory=dict)
    """Seconds from the first look at a pod to its binding."""
    away_seconds: dict[ids.PodUid, float] = field(default_factory=dict)
    """How long each pod that was ever bound away from its claim was so."""
    _first: dict[ids.PodUid, float] = field(default_factory=dict)
    _away: dict[ids.PodUid, float] = field(default_factory=dict)

    def look(
        self, now: float, seen: Iterable[pods.Pod], held: Mapping[ids.Key, claims.Claim]
    ) -> None:
        """Take one look at all pods and claims of the campaign."""
        live = [pod for pod in seen if not pod.deleting and not pod.finished and pod.claims]
        for pod in live:
            begun = self._first.setdefault(pod.uid, now)
            if pod.node is None:
                if now - begun > STUCK_S:
                    self._breach("stuck", pod.key, f"waits for {now - begun:.0f} s")
                continue
            self.bound_after.setdefault(pod.uid, now - begun)
            self._judge_bound(now, pod, held)
        self._judge_devices(held.values())

    def _judge_bound(self, now: float, pod: pods.Pod, held: Mapping[ids.Key, claims.Claim]) -> None:
        nodes = {_node_of(held.get(key)) for key in pod.claim_keys}
        if nodes == {pod.node} and len(pod.claim_keys) == len(pod.claims):
            self._away.pop(pod.uid, None)
            return
        since = self._away.setdefault(pod.uid, now)
        self.away_seconds[pod.uid] = now - since
        if now - since > REPAIR_BOUND_S:
            elsewhere = ", ".join(sorted(str(node) for node in nodes))
            words = f"bound to {pod.node}, claims on {elsewhere} for {now - since:.0f} s"
            self._breach("bound away", pod.key, words)

    def _judge_devices(self, held: Iterable[claims.Claim]) -> None:
        """A whole GPU is one claim's alone, whatever face of it another has; a MIG part as well."""
        users: dict[tuple[str, str], dict[str, ids.Key]] = {}
        for claim in held:
            for result in claim.allocation.results if claim.allocation else ():
                if result.admin_access:
                    continue
                gpu = str(faces.gpu_name(result.device.device))
                face = result.device.device + result.share_id
                others = users.setdefault((result.device.pool, gpu), {})
                whole = face == gpu or gpu in others
                if face in others or (whole and others):
                    words = f"{face} of {result.device.pool}, beside {sorted(others.values())}"
                    self._breach("given twice", claim.key, words)
                others[face] = claim.key

    @property
    def never_bound(self) -> int:
        """Count the pods that went without having been bound."""
        return len(self._first.keys() - self.bound_after.keys())

    def end_round(self, held: Iterable[claims.Claim]) -> None:
        """Judge what is left once every workload of a round is gone."""
        for claim in held:
            if claim.allocation is not None or claim.consumers:
                self._breach("held for nobody", claim.key, f"reservedFor {claim.consumers}")

    def _breach(self, kind: str, key: str, words: str) -> None:
        self.breaches[kind, key] = Breach(kind, key, words)


def _node_of(claim: claims.Claim | None) -> ids.NodeName | None:
    return snapshot.pinned_node(claim) if claim is not None else None


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which a share of the values lies; 0 without any."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def histogram(values: Iterable[float]) -> dict[str, int]:
    """Count values by steps of STEP_S: `0-5`, `5-10` ..."""
    counts: dict[int, int] = {}
    for value in values:
        step = int(value // STEP_S)
        counts[step] = counts.get(step, 0) + 1
    width = int(STEP_S)
    return {f"{step * width}-{(step + 1) * width}": counts[step] for step in sorted(counts)}
