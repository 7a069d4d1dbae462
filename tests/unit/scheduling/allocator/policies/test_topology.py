import itertools

from driver.scheduling.allocator.policies import base, topology
from tests.support.builders import node_capacities

TOPOLOGY, ISLANDS = topology.Topology(), topology.Islands()


def linked(*groups: tuple[int, ...], numa: int = 4) -> base.NodeTopology:
    """GPUs with NVLink inside each group; so many GPUs on each NUMA node, each of its own root."""
    peers = {index: sum(1 << j for j in group if j != index) for group in groups for index in group}
    return base.NodeTopology(
        tuple(base.GpuLocation(peers[peer], f"pci{peer}", peer // numa) for peer in sorted(peers))
    )


def score(wiring: base.NodeTopology, *places: int) -> int:
    previous = node_capacities.room(
        *[node_capacities.idle()] * len(wiring.locations), wiring=wiring
    )
    return TOPOLOGY.score(node_capacities.candidate(previous, *node_capacities.whole(*places)))


def test_a_set_inside_an_nvlink_island_is_better_than_one_across() -> None:
    islands = linked((0, 1, 4, 5), (2, 3, 6, 7))
    best = max(itertools.combinations(range(8), 4), key=lambda four: score(islands, *four))
    assert best in {(0, 1, 4, 5), (2, 3, 6, 7)}


def test_with_full_nvlink_a_single_numa_node_is_preferred() -> None:
    switched = linked(tuple(range(8)))
    assert score(switched, 0, 1, 2, 3) > score(switched, 0, 1, 2, 4) > score(switched, 0, 1, 4, 5)


def test_without_nvlink_a_common_root_is_better_than_a_common_numa_node() -> None:
    places = [base.GpuLocation(0, root, numa) for root, numa in (("a", 0), ("a", 0), ("b", 0))]
    tree = base.NodeTopology((*places, base.GpuLocation(0, "c", 1)))
    assert score(tree, 0, 1) > score(tree, 0, 2) > score(tree, 0, 3) > 0


def test_a_single_gpu_and_gpus_of_which_nothing_is_known_make_no_difference() -> None:
    assert score(linked((0, 1)), 0) == base.MAX_SCORE
    assert score(node_capacities.flat(4), 0, 1) == score(node_capacities.flat(4), 2, 3) == 0


def test_the_words_name_what_connects_the_set() -> None:
    def says(wiring: base.NodeTopology, *places: int) -> str:
        previous = node_capacities.room(
            *[node_capacities.idle()] * len(wiring.locations), wiring=wiring
        )
        return TOPOLOGY.explain(
            node_capacities.candidate(previous, *node_capacities.whole(*places))
        )

    assert says(linked((0, 1), (2, 3)), 0, 1) == "2 GPUs connected by NVLink"
    assert says(linked((0, 1), (2, 3)), 1, 2) == "2 GPUs of NUMA node 0"
    roots = base.NodeTopology((base.GpuLocation(0, "pci0", 0), base.GpuLocation(0, "pci0", 1)))
    assert says(roots, 0, 1) == "2 GPUs under one PCIe root"
    assert says(linked((0,), (1,), numa=1), 0, 1) == says(linked((0,)), 0) == ""


def kept(wiring: base.NodeTopology, busy: tuple[int, ...], index: int) -> int:
    cards = [
        node_capacities.TAKEN if index in busy else node_capacities.idle()
        for index in range(len(wiring.locations))
    ]
    previous = node_capacities.room(*cards, wiring=wiring)
    return ISLANDS.score(node_capacities.candidate(previous, *node_capacities.whole(index)))


def test_a_single_gpu_is_the_one_that_the_others_miss_least() -> None:
    pairs = linked((0, 1), (2, 3))
    scores = {entry: kept(pairs, (0,), entry) for entry in (1, 2, 3)}
    assert max(scores, key=scores.__getitem__) == 1
    assert scores[2] == scores[3]


def test_a_gpu_of_a_node_in_use_costs_less_than_an_idle_nodes() -> None:
    switched = linked(tuple(range(8)))
    assert kept(switched, (0, 1, 2, 3), 4) > kept(switched, (), 4)
    assert kept(switched, tuple(range(1, 8)), 0) == base.MAX_SCORE


def test_islands_has_no_words_of_its_own() -> None:
    assert (
        ISLANDS.explain(
            node_capacities.candidate(
                node_capacities.room(node_capacities.idle()), *node_capacities.whole(0)
            )
        )
        == ""
    )
