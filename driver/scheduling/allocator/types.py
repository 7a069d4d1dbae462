"""What is asked of the allocator, and its answers: a Placement, or a NoFit with its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driver import ids, reasons
from driver.resources.core import node_selectors, pods
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests

ReasonCounts = tuple[tuple[reasons.Reason, int], ...]
"""How many devices each reason keeps away, by reason."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod with its claims: the unit of decision (D4).

    `open` are the claims to allocate, `settled` those that are allocated already and so say where
    the pod can go. `avoid` are nodes to leave out, with the words to give for it. `bound`: the pod
    is on its node already, so that no filter of kube-scheduler counts any more.
    """

    pod: pods.Pod
    open_claims: tuple[claims.Claim, ...]
    allocated_claims: tuple[claims.Claim, ...] = ()
    avoided_nodes: Mapping[ids.NodeName, str] = field(default_factory=dict)
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """One device for one request, as `result` will say it (without a share's id).

    `claim` is the place of its claim among the open ones of the workload. `reach` is where the
    device can be used; `stays` means that its user has to stay on the node.
    """

    claim_index: int
    request: dra_requests.Request
    result: claims.Result
    reach: node_selectors.Reach
    pins_node: bool = False
    shared: bool = False

    @property
    def device(self) -> claims.DeviceId:
        """The device."""
        return self.result.device


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node that would have done.

    `scores` are the policies', 0 to 100, the first one first. Before them count `way`, how far down
    its alternatives the workload goes there, and `memory`, the bytes of GPU memory that requests by
    need would take; less of both is better.
    """

    node: ids.NodeName
    scores: Mapping[str, int]
    alternative: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the workload goes and what it gets. `why` is for people.

    `considered` are the best nodes, the chosen one first.
    """

    node: ids.NodeName
    assignments: tuple[DeviceAssignment, ...]
    explanation: str
    steps: int = 0
    scored_nodes: tuple[ScoredNode, ...] = ()

    def claim_assignments(self, place: int) -> tuple[DeviceAssignment, ...]:
        """The picks of one claim, in the order of its requests."""
        return tuple(pick for pick in self.assignments if pick.claim_index == place)


@dataclass(frozen=True, slots=True)
class NodeRejection:
    """Why a node does not do; equal for nodes that lack the same.

    With `node_reason` the node itself does not fit, and `detail` says why. Otherwise at most `fits`
    of `wanted` devices can be had at once, and `devices` counts why the others do not do; with
    `given_up` the search took too long, and it is not known that nothing fits.
    """

    node_reason: reasons.Reason | None = None
    detail: str = ""
    fits: int = 0
    requested: int = 0
    device_reasons: ReasonCounts = ()
    budget_exceeded: bool = False


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The answer no. `blocker` is a reason that holds on every node, such as a missing class."""

    blocker: reasons.Reason | None = None
    detail: str = ""
    rejections: Mapping[NodeRejection, Sequence[ids.NodeName]] = field(default_factory=dict)

    @property
    def reasons(self) -> frozenset[reasons.Reason]:
        """Every reason that keeps a node or a device away."""
        found = (self.blocker, *(one.node_reason for one in self.rejections))
        devices = (reason for one in self.rejections for reason, _ in one.device_reasons)
        return frozenset(one for one in (*found, *devices) if one is not None)

    @property
    def budget_exceeded(self) -> bool:
        """Whether a node might do after all: the search there ended at its budget."""
        return any(refusal.budget_exceeded for refusal in self.rejections)
