"""Tests that nobody could allocate what the reference refuses, but for its deviations; and back."""

from collections import Counter

from tests.oracle import deviations, differential, exhaustive, scenarios

SEEDS = range(300)


def test_the_reference_allocates_exactly_where_some_way_is_right(
    judging: differential.Judges,
) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        world, answers = judging.reference.play(scenarios.draft(seed))
        for node in world.cluster.nodes:
            solution = exhaustive.solution(world, node, judging.believed)
            if solution is None:
                continue
            can = node in answers.fitting
            if solution is False:
                assert not can, f"seed {seed}: {node}"
            elif not can:
                why = deviations.of_refusal(world, solution, answers.errors.get(node))
                assert why, f"seed {seed}: {node}: {solution}"
            seen["yes" if can else "no"] += 1
    assert min(seen["yes"], seen["no"]) > 100
