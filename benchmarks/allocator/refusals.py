"""Requests that cannot be met: how long until we say so, and why."""

from benchmarks import record
from benchmarks.allocator import cases, fixtures, ours, reference

STARTS, STRETCHES, AGAIN = 3, 4, 50
"""Stretches of refusals in succession are of a start; each is done within a tenth of a second."""
NEARLY_ROUNDS, NEARLY = 10, 10
"""Ours of a round; the reference takes a decision after them."""


def impossible() -> list[record.Figure]:
    """Nine GPUs where no node has more than eight: at first, then as nodes change.

    Before the first decision the controller computes the states of all nodes: that stands apart.
    All of it is processor time.
    """
    asks = fixtures.gpus(9)
    case = cases.Case("", 5_000, fixtures.gpus(), fixtures.whole, 1, 1)
    prepared, first, again = [], [], []
    calibrations = record.Calibrations([])
    for _ in range(STARTS):
        mine = ours.Ours(case)
        prepared.append(mine.prepare().busy)
        first.append(mine.refuse(asks).busy)
        for _ in calibrations.between(range(STRETCHES)):
            again += [_refuse_again(mine, asks) for _ in range(AGAIN)]
    name = "impossible request (9 GPUs), 5,000 nodes"
    return [
        calibrations.add_to(record.figure(f"{name}, again", "ms", again, seed=cases.SEED)),
        record.figure(f"{name}, first of its shape", "ms", first, seed=cases.SEED),
        record.figure("states of 5,000 nodes, at a start", "ms", prepared, seed=cases.SEED),
    ]


def _refuse_again(mine: ours.Ours, asks: fixtures.Raw) -> float:
    """Refuse it once more after another decision; return the processor time in ms."""
    mine.run(1)
    return mine.refuse(asks).busy


def nearly_possible(other: reference.Reference) -> list[record.Figure]:
    """Seven of eight GPUs are free on every node, eight are asked, of one product: ms a node."""
    asks = fixtures.gpus(8)
    same = "gpu.ration.dev/productName"
    asks["constraints"] = [{"requests": ["gpu"], "matchAttribute": same}]
    nodes = 100
    taken = tuple(
        (fixtures.GPU_CLASS, fixtures.node_name(number), f"gpu-{number % 8}")
        for number in range(nodes)
    )
    case = cases.Case("", nodes, asks, fixtures.whole, 1, 1, in_use=taken)
    mine = ours.Ours(case)
    first: list[float] = []
    theirs: list[float] = []
    other.load(case)
    for turn in range(NEARLY_ROUNDS):
        shapes = [fixtures.renamed(asks, f"gpu-{turn}-{number}") for number in range(NEARLY)]
        first += [mine.refuse(shape).wall / nodes for shape in shapes]
        theirs += [ms / nodes for ms in other.run(1)]
    other.refused = 0
    name = "8 GPUs of one product, 7 free on every node: a node"
    return [record.figure(name, "ms", first, theirs, seed=cases.SEED)]
