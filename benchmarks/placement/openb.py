"""The Alibaba trace `openb` (2023) and how its pods arrive, by the rule of the FGD paper.

1,213 nodes with 6,212 GPUs; pods are drawn from the list again until they ask 130 % of them, then
shuffled, placed one by one, and none leaves. The data is not part of this project.
"""

import os
import random
from dataclasses import dataclass
from pathlib import Path

from driver.cli.simulation import openb

Node = openb.Node
Pod = openb.Pod
FULL = openb.FULL
DEMAND = 1.3
TRACES = ("default", "multigpu50", "gpuspec33")
SEEDS = range(42, 52)
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Trace:
    """The nodes and a list of pods."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    @property
    def capacity(self) -> int:
        """GPU thousandths of all nodes."""
        return sum(node.gpus for node in self.nodes) * FULL


def folder() -> Path | None:
    """Where the traces are: `$RATION_TRACES`, or beside the checkout; None where they are not."""
    named = os.environ.get("RATION_TRACES")
    places = [Path(named)] if named else [_ROOT.parent / "shared" / "traces"]
    return next((one for one in places if (one / "openb_node_list_gpu_node.csv").is_file()), None)


def load(at: Path, name: str) -> Trace:
    """Read a trace. Raises BadInput."""
    nodes, pods = "openb_node_list_gpu_node.csv", f"openb_pod_list_{name}.csv"
    return Trace(
        openb.read_nodes((at / nodes).read_text(), nodes),
        tuple(row.pod for row in openb.read_pods((at / pods).read_text(), pods)),
    )


def arrivals(trace: Trace, seed: int) -> list[Pod]:
    """The pods in the order in which they come."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    found = list(trace.pods)
    asked = sum(pod.demand for pod in found)
    while asked < DEMAND * trace.capacity:
        found.append(draw.choice(trace.pods))
        asked += found[-1].demand
    draw.shuffle(found)
    return found


def usual(trace: Trace, part: float = 0.95) -> list[tuple[Pod, float]]:
    """The most frequent shapes that make up so much of the list, memory aside, with their parts."""
    counts: dict[Pod, int] = {}
    for pod in trace.pods:
        shape = pod._replace(memory=0)
        counts[shape] = counts.get(shape, 0) + 1
    found: list[tuple[Pod, float]] = []
    covered = 0.0
    for shape, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if covered >= part:
            break
        found.append((shape, count / len(trace.pods)))
        covered += count / len(trace.pods)
    return found
