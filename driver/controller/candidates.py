"""What waits for its turn: a pod, or a gang of pods, whose claims are to be allocated now. Pure."""

from dataclasses import dataclass

from driver.controller import writers
from driver.controller.allocation import outcome
from driver.controller.gangs import roster
from driver.resources import pods


@dataclass(frozen=True, slots=True)
class Candidate:
    """`workloads` are placed together or not at all; `gang` None: one pod by itself."""

    item: writers.Item
    workloads: tuple[outcome.Workload, ...]
    gang: roster.Gang | None = None

    @property
    def first(self) -> pods.Pod:
        """The pod that stands for all."""
        return self.workloads[0].pod

    @property
    def priority(self) -> int:
        """The highest of its pods; higher goes first."""
        return self.gang.priority if self.gang else self.first.priority

    @property
    def since(self) -> str:
        """Since when it waits (RFC 3339)."""
        return self.gang.since if self.gang else self.first.created
