"""Input of the allocator, and its results: a Placement, or Unschedulable with its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driver import ids, reasons
from driver.resources.core import node_selectors, pods
from driver.resources.dra import claims
from driver.resources.dra import requests as dra_requests

ReasonCounts = tuple[tuple[reasons.Reason, int], ...]
"""Number of rejected devices per reason."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod with its claims: the unit of decision (D4).

    `open_claims` are to be allocated, `allocated_claims` are allocated already and so limit the
    nodes. `scheduler_claims` are kube-scheduler's to allocate on the node that is chosen here: it
    has to have devices for them too. `avoided_nodes` are left out, with their messages. `is_bound`:
    the pod is on its node already, so that kube-scheduler's filters do not count any more.
    """

    pod: pods.Pod
    open_claims: tuple[claims.Claim, ...]
    allocated_claims: tuple[claims.Claim, ...] = ()
    avoided_nodes: Mapping[ids.NodeName, str] = field(default_factory=dict)
    is_bound: bool = False
    scheduler_claims: tuple[claims.Claim, ...] = ()

    @property
    def unallocated_claims(self) -> tuple[claims.Claim, ...]:
        """Claims without devices, the controller's first; `claim_index` counts them."""
        return (*self.open_claims, *self.scheduler_claims)


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """One device for one request, as `result` will record it (without a share's id).

    `claim_index` is the claim among the unallocated ones of the workload. `reach` is where the
    device can be used; `pins_node` means that its user has to stay on the node.
    """

    claim_index: int
    request: dra_requests.Request
    result: claims.Result
    reach: node_selectors.DeviceReach
    pins_node: bool = False
    shared: bool = False

    @property
    def device(self) -> claims.DeviceId:
        """The device."""
        return self.result.device


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A feasible node.

    `scores` are the policies', 0 to 100, in order. Before them count `alternative`, the sum of the
    positions of selected alternatives, and `memory`, the bytes of GPU memory of requests by need;
    less of both is better.
    """

    node: ids.NodeName
    scores: Mapping[str, int]
    alternative: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Node and devices of a workload. `explanation` is for people.

    `scored_nodes` are the best nodes, the chosen one first. `scheduler_assignments` are devices
    that kube-scheduler may choose for its own claims on the node; its choice may differ.
    """

    node: ids.NodeName
    assignments: tuple[DeviceAssignment, ...]
    explanation: str
    steps: int = 0
    scored_nodes: tuple[ScoredNode, ...] = ()
    scheduler_assignments: tuple[DeviceAssignment, ...] = ()

    @property
    def all_assignments(self) -> tuple[DeviceAssignment, ...]:
        """Assignments of all unallocated claims, whoever allocates them."""
        return (*self.assignments, *self.scheduler_assignments)

    def claim_assignments(self, claim_index: int) -> tuple[DeviceAssignment, ...]:
        """Return the assignments of one claim, in the order of its requests."""
        return tuple(
            assignment
            for assignment in self.all_assignments
            if assignment.claim_index == claim_index
        )


@dataclass(frozen=True, slots=True)
class NodeRejection:
    """Reasons of an infeasible node; equal for nodes that lack the same.

    With `node_reason` the node itself does not fit, and `detail` says why. Otherwise at most `fits`
    of `requested` devices fit at once, and `device_reasons` counts why the others do not; with
    `budget_exceeded` the search ended early, and a solution may exist. `unsupported_fields` are the
    API fields for which devices are rejected.
    """

    node_reason: reasons.Reason | None = None
    detail: str = ""
    fits: int = 0
    requested: int = 0
    device_reasons: ReasonCounts = ()
    budget_exceeded: bool = False
    unsupported_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """No placement. `blocker` is a reason that holds on every node, such as a missing class."""

    blocker: reasons.Reason | None = None
    detail: str = ""
    rejections: Mapping[NodeRejection, Sequence[ids.NodeName]] = field(default_factory=dict)

    @property
    def reasons(self) -> frozenset[reasons.Reason]:
        """Every reason that rejects a node or a device."""
        node_reasons = (self.blocker, *(entry.node_reason for entry in self.rejections))
        device_reasons = (reason for entry in self.rejections for reason, _ in entry.device_reasons)
        return frozenset(entry for entry in (*node_reasons, *device_reasons) if entry is not None)

    @property
    def budget_exceeded(self) -> bool:
        """True if a node may be feasible after all: the search there ended at its budget."""
        return any(rejection.budget_exceeded for rejection in self.rejections)
