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


def prepared(one: ports.ClaimRef) -> ports.Prepared:
    """The one device of a claim."""
    cdi = f"gpu.ration.dev/claim={one.uid}-gpu-0"
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

    def prepare(self, one: ports.ClaimRef, cancelled: ports.Cancelled) -> Answer:
        self.begun.append(one.name)
        held = self.held.get(one.name)
        for _ in range(int(PATIENCE_S / 0.01) if held else 0):
            assert held is not None
            if held.wait(0.01):
                break
            if cancelled():
                self.gone.append(one.name)
                break
        return self.behave.get(one.name, lambda: prepared(one))()

    def unprepare(self, one: ports.ClaimRef) -> ports.Refused | None:
        self.unprepared.append(one.name)
        answer = self.behave.get(one.name, lambda: prepared(one))()
        return answer if isinstance(answer, ports.Refused) else None

    def check(self, one: ports.ClaimRef) -> ports.Refused | None:
        answer = self.behave.get(one.name, lambda: prepared(one))()
        return answer if isinstance(answer, ports.Refused) else None
