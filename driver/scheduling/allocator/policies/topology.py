"""topology: several GPUs connected as well as possible; NVLink, PCIe root, NUMA."""

import itertools

from driver.scheduling.allocator.policies import base, gpu_links


class Topology:
    """Scores the mean weight of a set's pairs; a single GPU has none."""

    name = "topology"

    def score(self, candidate: base.Candidate) -> int:
        """Return the percentage of the best possible pair weight."""
        gpus = _used_gpus(candidate)
        pairs = len(gpus) * (len(gpus) - 1) // 2
        if not pairs:
            return base.MAX_SCORE
        weight = gpu_links.total_weight(candidate.before.topology, gpus)
        return base.MAX_SCORE * weight // (gpu_links.BEST_PAIR * pairs)

    def explain(self, candidate: base.Candidate) -> str:
        """Return what connects the set."""
        gpus = _used_gpus(candidate)
        if len(gpus) < 2:  # noqa: PLR2004 - a pair
            return ""
        topology = candidate.before.topology
        weights = gpu_links.pair_weights(topology)
        if all(weights[i][j] > gpu_links.NVLINK for i, j in itertools.combinations(gpus, 2)):
            return f"{len(gpus)} GPUs connected by NVLink"
        locations = [topology.locations[gpu] for gpu in gpus]
        for relation, values in (
            ("under one PCIe root", {location.pcie_root for location in locations}),
            (
                f"of NUMA node {locations[0].numa_node}",
                {location.numa_node for location in locations},
            ),
        ):
            if len(values) == 1 and values not in ({""}, {base.UNKNOWN_NUMA}):
                return f"{len(gpus)} GPUs {relation}"
        return ""


class Islands:
    """Keeps well connected GPUs free: a single GPU is the worst connected one."""

    name = "islands"

    def score(self, candidate: base.Candidate) -> int:
        """Return a low score where idle GPUs lose good connections to the used ones."""
        opened = candidate.before.idle_gpus - candidate.after.idle_gpus
        if not opened:
            return base.MAX_SCORE
        lost = _idle_weight(candidate.before) - _idle_weight(candidate.after)
        most = gpu_links.BEST_PAIR * opened * (len(candidate.before.gpus) - 1)
        return base.MAX_SCORE - (base.MAX_SCORE * lost // most if most else 0)

    def explain(self, _candidate: base.Candidate) -> str:
        """Return nothing: the GPUs it chooses between are equal for the workload."""
        return ""


def _used_gpus(candidate: base.Candidate) -> tuple[int, ...]:
    return tuple(sorted({usage.gpu for usage in candidate.usages}))


def _idle_weight(capacity: base.NodeCapacity) -> int:
    idle = tuple(i for i, gpu in enumerate(capacity.gpus) if gpu.mode == base.IDLE)
    return gpu_links.total_weight(capacity.topology, idle)
