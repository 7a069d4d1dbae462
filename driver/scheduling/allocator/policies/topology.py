"""topology: several GPUs as well connected to each other as can be; NVLink, PCIe root, NUMA."""

import itertools

from driver.scheduling.allocator.policies import base, gpu_links


class Topology:
    """Scores the mean of a set's pairs; a single GPU is connected to nothing."""

    name = "topology"

    def score(self, candidate: base.Candidate) -> int:
        """In percent of the best that any pair could be."""
        cards = _used_gpus(candidate)
        pairs = len(cards) * (len(cards) - 1) // 2
        if not pairs:
            return base.MAX_SCORE
        weight = gpu_links.total_weight(candidate.before.topology, cards)
        return base.MAX_SCORE * weight // (gpu_links.BEST_PAIR * pairs)

    def explain(self, candidate: base.Candidate) -> str:
        """What connects the set."""
        cards = _used_gpus(candidate)
        if len(cards) < 2:  # noqa: PLR2004 - a pair
            return ""
        where = candidate.before.topology
        found = gpu_links.pair_weights(where)
        if all(found[i][j] > gpu_links.NVLINK for i, j in itertools.combinations(cards, 2)):
            return f"{len(cards)} GPUs connected by NVLink"
        places = [where.locations[card] for card in cards]
        for what, values in (
            ("under one PCIe root", {one.pcie_root for one in places}),
            (f"of NUMA node {places[0].numa_node}", {one.numa_node for one in places}),
        ):
            if len(values) == 1 and values not in ({""}, {base.UNKNOWN_NUMA}):
                return f"{len(cards)} GPUs {what}"
        return ""


class Islands:
    """Keeps GPUs that are well connected free, so a single one taken is the worst connected."""

    name = "islands"

    def score(self, candidate: base.Candidate) -> int:
        """Low where idle GPUs lose good connections to the ones taken."""
        lost = _idle_weight(candidate.before) - _idle_weight(candidate.after)
        opened = candidate.before.idle_gpus - candidate.after.idle_gpus
        most = gpu_links.BEST_PAIR * opened * (len(candidate.before.gpus) - 1)
        return base.MAX_SCORE - (base.MAX_SCORE * lost // most if most else 0)

    def explain(self, _candidate: base.Candidate) -> str:
        """Nothing: it chooses between GPUs of which none is better for the workload."""
        return ""


def _used_gpus(candidate: base.Candidate) -> tuple[int, ...]:
    return tuple(sorted({one.gpu for one in candidate.usages}))


def _idle_weight(room: base.NodeCapacity) -> int:
    idle = tuple(i for i, card in enumerate(room.gpus) if card.mode == base.IDLE)
    return gpu_links.total_weight(room.topology, idle)
