"""Events and the sets that wait for them; sets end with the node process, as with a driver."""

import collections
from dataclasses import dataclass, field
from enum import IntFlag

from simulator import codes

MAX_QUEUED = 512
"""A set that nobody empties keeps the newest events only."""


class EventType(IntFlag):
    """`nvmlEventType*`."""

    SINGLE_BIT_ECC = 0x1
    DOUBLE_BIT_ECC = 0x2
    PSTATE = 0x4
    XID = 0x8
    CLOCK = 0x10
    POWER_SOURCE = 0x80
    MIG_CONFIG = 0x100
    ECC_STORM = 0x200
    DRAM_RETIREMENT = 0x400
    DRAM_RETIREMENT_FAILURE = 0x800
    NON_FATAL_POISON = 0x1000
    FATAL_POISON = 0x2000
    GPU_UNAVAILABLE = 0x4000
    RECOVERY_ACTION = 0x8000


PLAIN = EventType.PSTATE | EventType.XID | EventType.CLOCK | EventType.POWER_SOURCE
ECC = EventType.SINGLE_BIT_ECC | EventType.DOUBLE_BIT_ECC
NEWER = (
    EventType.ECC_STORM
    | EventType.DRAM_RETIREMENT
    | EventType.DRAM_RETIREMENT_FAILURE
    | EventType.NON_FATAL_POISON
    | EventType.FATAL_POISON
    | EventType.GPU_UNAVAILABLE
    | EventType.RECOVERY_ACTION
)
NEWER_SINCE = 575
"""Driver major from which `NEWER` is supported. Assumed: no source says."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the GPU at `pci`, or to one instance of it."""

    pci: str
    type: EventType
    data: int = 0
    gpu_instance: int = codes.WHOLE_GPU
    compute_instance: int = codes.WHOLE_GPU

    @property
    def is_whole(self) -> bool:
        """Whether it concerns the GPU and not one instance."""
        return self.gpu_instance == codes.WHOLE_GPU


@dataclass(slots=True)
class EventSet:
    """What one client waits for: event types by PCI address."""

    privileged: bool
    masks: dict[str, int] = field(default_factory=dict)
    queue: collections.deque[Event] = field(
        default_factory=lambda: collections.deque(maxlen=MAX_QUEUED)
    )

    def offer(self, event: Event) -> None:
        """Queue it if registered for; whoever is not root gets whole-GPU events only."""
        wanted = self.masks.get(event.pci, 0) & event.type
        if wanted and (self.privileged or event.is_whole):
            self.queue.append(event)
