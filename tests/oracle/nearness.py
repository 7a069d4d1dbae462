"""The nearest places that a gang can have, by integer programming (HiGHS).

The model knows GPUs alone: nodes with so many free, members of several sizes. A cost counts the
blocks, racks and nodes that are entered, a hundred to one: the same order as the product's.
"""

import random  # noqa: TID251 - a drawing that anyone can repeat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import highspy

from driver.scheduling.gangs import types as gang_types
from tests.support.builders import gangs

BLOCK, RACK, NODE = 10_000, 100, 1
MEMBERS = 16


@dataclass(frozen=True)
class Case:
    """Free GPUs of nodes by block and rack; the sizes of the gang's members."""

    free: tuple[tuple[tuple[int, ...], ...], ...]
    sizes: tuple[int, ...]
    required: bool

    def nodes(self) -> Iterator[tuple[int, int, int, int]]:
        """Block, rack, number and free GPUs of each node."""
        for b, block in enumerate(self.free):
            for r, rack in enumerate(block):
                for n, count in enumerate(rack):
                    yield b, r, n, count


def draw(seed: int) -> Case:
    """Eight nodes in one to three blocks; alike members, every third time with a leader."""
    source = random.Random(seed)  # noqa: S311 - it is not about secrets
    free: list[list[list[int]]] = []
    for _ in range(8):
        fresh_block = not free or (len(free) < 3 and source.random() < 0.3)
        if fresh_block:
            free.append([])
        if fresh_block or source.random() < 0.45:
            free[-1].append([])
        free[-1][-1].append(source.randint(0, 8))
    size = source.choice([1, 1, 2, 3, 4])
    most = max(sum(n // size for block in free for rack in block for n in rack), 1)
    sizes = [size] * source.randint(1, min(most, MEMBERS))
    if seed % 3 == 0:
        sizes[0] = source.choice([0, 1, 5])
    frozen = tuple(tuple(tuple(rack) for rack in block) for block in free)
    return Case(frozen, tuple(sizes), source.random() < 0.3)


def cost(entered: Sequence[tuple[int, int, int]]) -> int:
    """Return the cost of the nodes that are entered."""
    return (
        BLOCK * len({b for b, _, _ in entered})
        + RACK * len({(b, r) for b, r, _ in entered})
        + NODE * len({*entered})
    )


def ours(case: Case) -> int | None:
    """The cost of our places; None where not all members have one."""
    members = [gangs.member(f"m-{index:02}", size) for index, size in enumerate(case.sizes)]
    required = gangs.BLOCK if case.required else None
    answer = gangs.place(gangs.racks(case.free), members, required, gangs.RACK)
    if isinstance(answer, gang_types.GangUnschedulable):
        return None
    words = [str(placement.node).split("-") for placement in answer.placements]
    return cost([(int(b), int(r), int(n)) for _, b, r, n in words])


def optimum(case: Case) -> int | None:
    """The lowest cost there is; None where not all members have a place.

    With `required` all are in one block.
    """
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("threads", 1)
    existing = [*case.nodes()]
    blocks = {b: solver.addBinary(obj=BLOCK) for b, *_ in existing}
    racks = {(b, r): solver.addBinary(obj=RACK) for b, r, *_ in existing}
    kinds = sorted({*case.sizes})
    counts = {}
    for b, r, n, free in existing:
        node = solver.addBinary(obj=NODE)
        solver.addConstr(node <= racks[b, r])
        here = {size: solver.addIntegral(lb=0, ub=MEMBERS) for size in kinds}
        counts[b, r, n] = here
        solver.addConstr(sum(size * entry for size, entry in here.items()) <= free * node)
        for item in here.values():
            solver.addConstr(item <= MEMBERS * node)
    for (b, _), rack in racks.items():
        solver.addConstr(rack <= blocks[b])
    for size in kinds:
        placed = sum(here[size] for here in counts.values())
        solver.addConstr(placed == case.sizes.count(size))
    if case.required:
        solver.addConstr(sum(blocks.values()) <= 1)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return round(solver.getObjectiveValue())
