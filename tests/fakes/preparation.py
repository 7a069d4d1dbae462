"""The use case behind the kubelet's calls, as a test wants it to behave."""

import threading
from collections.abc import Callable

from driver import ids
from driver.kubeletplugin import ports

Answer = ports.Prepared | ports.Refused
Behaviour = Callable[[], Answer]
PATIENCE_S = 20.0


def ref(name: str) -> ports.ClaimRef:
    """A claim whose UID is made of its name."""
    return ports.ClaimRef("default", name, ids.ClaimUid(f"uid-{name}"))


def prepared(claim_ref: ports.ClaimRef) -> ports.Prepared:
    """The one device of a claim."""
    cdi = f"gpu.ration.dev/claim={claim_ref.uid}-gpu-0"
    return ports.Prepared((ports.PreparedDevice("gpu", "node-a", "gpu-0", (cdi,)),))


class Preparation:
    """Prepares everything; `behave[name]` does something else, `hold` keeps a claim running."""

    def __init__(self) -> None:
        self.behave: dict[str, Behaviour] = {}
        self.held: dict[str, threading.Event] = {}
        self.begun: list[str] = []
        self.gone: list[str] = []
        self.unprepared: list[str] = []

    def hold(self, name: str) -> threading.Event:
        """Keep the claim's prepare running until the Event is set or its caller has gone."""
        self.held[name] = threading.Event()
        return self.held[name]

    def prepare(self, claim_ref: ports.ClaimRef, cancelled: ports.Cancelled) -> Answer:
        self.begun.append(claim_ref.name)
        held = self.held.get(claim_ref.name)
        for _ in range(int(PATIENCE_S / 0.01) if held else 0):
            assert held is not None
            if held.wait(0.01):
                break
            if cancelled():
                self.gone.append(claim_ref.name)
                break
        return self.behave.get(claim_ref.name, lambda: prepared(claim_ref))()

    def unprepare(self, claim_ref: ports.ClaimRef) -> ports.Refused | None:
        self.unprepared.append(claim_ref.name)
        answer = self.behave.get(claim_ref.name, lambda: prepared(claim_ref))()
        return answer if isinstance(answer, ports.Refused) else None

    def check(self, claim_ref: ports.ClaimRef) -> ports.Refused | None:
        answer = self.behave.get(claim_ref.name, lambda: prepared(claim_ref))()
        return answer if isinstance(answer, ports.Refused) else None
