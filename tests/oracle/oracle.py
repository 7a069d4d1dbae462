"""kube-scheduler's own allocator, asked what it would do.

A Go program of this folder links the allocator of the scheduler (`structured` of
k8s.io/dynamic-resource-allocation) and answers one scenario at a time. It says what fits, nothing
about what the API server would refuse: objects are taken as they are, with the server's defaults
for a claim's allocation mode and count.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import conversation

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """May these claims be allocated on this node now, all of them or none?

    Objects are Kubernetes JSON of resource.k8s.io/v1. `allocated` are the claims that hold devices
    already; what they take is counted from their `status.allocation` as the scheduler counts it.
    `features` switches feature gates by name; those not named are as Kubernetes 1.37 has them.
    """

    slices: Sequence[Mapping[str, Any]]
    classes: Sequence[Mapping[str, Any]]
    claims: Sequence[Mapping[str, Any]]
    node: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocated: Sequence[Mapping[str, Any]] = ()
    taint_rules: Sequence[Mapping[str, Any]] = ()
    features: Mapping[str, bool] = field(default_factory=dict)

    def line(self) -> str:
        """The scenario as the program reads it."""
        document = {
            "slices": self.slices,
            "classes": self.classes,
            "claims": self.claims,
            "node": {"name": self.node, "labels": self.labels},
            "allocated": self.allocated,
            "taintRules": self.taint_rules,
            "features": self.features,
        }
        return json.dumps(document, separators=(",", ":")) + "\n"


@dataclass(frozen=True, slots=True)
class Device:
    """One allocated device; `consumed` maps a capacity to a quantity, "10Gi"."""

    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None = None
    consumed: Mapping[str, str] = field(default_factory=dict)
    admin_access: bool = False


@dataclass(frozen=True, slots=True)
class Allocated:
    """All fit. `allocations` are the claims' `status.allocation`, in the order of the claims."""

    allocations: tuple[Raw, ...]

    @property
    def devices(self) -> tuple[tuple[Device, ...], ...]:
        """The devices of each claim."""
        return tuple(
            tuple(_device(result) for result in allocation["devices"].get("results", ()))
            for allocation in self.allocations
        )

    def settle(self, claims: Sequence[Mapping[str, Any]]) -> tuple[Raw, ...]:
        """The claims with their allocations: `allocated` of the scenario that comes next."""
        return tuple(
            {**claim, "status": {**claim.get("status", {}), "allocation": allocation}}
            for claim, allocation in zip(claims, self.allocations, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Unallocated:
    """They do not fit on this node; the allocator seldom says why (empty: it did not)."""

    reason: str


Answer = Allocated | Unallocated


class OracleError(Exception):
    """The scenario is wrong, or the allocator gave up on it with an error.

    `where` is a path in the scenario (`slices[2]`), `allocator`, or `process` if the program ended.
    """

    def __init__(self, location: str, description: str) -> None:
        self.where = location
        self.what = description
        super().__init__(f"{location}: {description}")


class Oracle(conversation.Conversation):
    """The running program; a context manager. One question at a time.

    On two cores about 900 answers a second for one GPU of 21 devices, 110 for eight (140 KiB of
    slices, written anew for each question).
    """

    def allocate(self, scenario: Scenario) -> Answer:
        """Return what the scheduler's allocator answers; OracleError if it cannot."""
        try:
            return parse_answer(json.loads(self.ask(scenario.line())))
        except conversation.Ended as e:
            raise OracleError("process", str(e)) from e


def parse_answer(document: Raw) -> Answer:
    """An answer as the program writes it; raises OracleError where it is one."""
    match document:
        case {"allocations": [*allocations]}:
            return Allocated(tuple(allocations))
        case {"unallocated": str(reason)}:
            return Unallocated(reason)
        case {"error": {"where": str(where), "what": str(what)}}:
            raise OracleError(where, what)
        case _:
            raise OracleError("process", f"answered {document}")


def _device(result: Raw) -> Device:
    return Device(
        request=result["request"],
        driver=result["driver"],
        pool=result["pool"],
        device=result["device"],
        share_id=result.get("shareID"),
        consumed=result.get("consumedCapacity", {}),
        admin_access=result.get("adminAccess", False),
    )
