"""What is asked of the allocator, and its answers: a Placement, or a NoFit with its reasons."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from driver import ids, reasons
from driver.resources import claims, pods


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod with its claims: the unit of decision (D4).

    `open` are the claims to allocate, `settled` those that are allocated already and so say where
    the pod can go. `avoid` are nodes to leave out, with the words to give for it.
    """

    pod: pods.Pod
    open: tuple[claims.Claim, ...]
    settled: tuple[claims.Claim, ...] = ()
    avoid: Mapping[ids.NodeName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pick:
    """One device for one request of one claim."""

    claim: ids.Key
    request: claims.Request
    device: claims.DeviceId


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the workload goes and what it gets. `why` is for people."""

    node: ids.NodeName
    picks: tuple[Pick, ...]
    why: str
    steps: int = 0

    def of_claim(self, key: ids.Key) -> tuple[Pick, ...]:
        """The picks of one claim, in the order of its requests."""
        return tuple(pick for pick in self.picks if pick.claim == key)


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why one node does not do.

    With `node_reason` the node itself does not fit, and `detail` says why. Otherwise `fits` of
    `wanted` devices were found, and `devices` counts why the others did not do.
    """

    node: ids.NodeName
    node_reason: reasons.Reason | None = None
    detail: str = ""
    fits: int = 0
    wanted: int = 0
    devices: Counter[reasons.Reason] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class NoFit:
    """The answer no. `blocker` is a reason that holds on every node, such as a missing class."""

    blocker: reasons.Reason | None = None
    detail: str = ""
    nodes: tuple[NodeRefusal, ...] = ()
    steps: int = 0
