"""Claims as they will be once decisions in flight are written: whose devices they have."""

from dataclasses import replace

from driver import ids
from driver.controller import hold, state
from driver.resources import claims


class Underway:
    """On the decider's thread. Advice that did not know them would name the wrong pods."""

    def __init__(self, shared: state.State) -> None:
        self._known = shared

    def claim(self, key: ids.Key) -> claims.Claim | None:
        """The cached claim, with what is being written, reserved for each pod that it is for."""
        claim = self._known.stores.claims.get(key)
        if claim is None:
            return None
        if key in self._known.memory.writing:
            for decision in self._known.memory.in_flight.values():
                if key in decision.made:
                    entries = (*claim.consumers, hold.pod_entry(decision.pod))
                    users = tuple(dict.fromkeys(entries))
                    return replace(claim, allocation=decision.made[key], consumers=users)
        return self._reserved(claim)

    def _reserved(self, claim: claims.Claim) -> claims.Claim:
        """A claim with our hold alone is its pod's before kube-scheduler says so."""
        if any(entry.is_pod for entry in claim.consumers):
            return claim
        pods = (
            self._known.stores.pods.get(ids.Key(f"{claim.namespace}/{entry.name}"))
            for entry in claim.consumers
            if entry.is_hold
        )
        users = [hold.pod_entry(pod) for pod in pods if pod and hold.stands(claim, pod)]
        return replace(claim, consumers=(*claim.consumers, *users)) if users else claim
