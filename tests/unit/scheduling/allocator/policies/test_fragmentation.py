import gc
import random  # noqa: TID251 - the same every time
from collections import Counter

import pytest

from driver.scheduling.allocator.policies import base, fragmentation, workload_mix
from tests.support.builders import node_capacities

EIGHT = workload_mix.build_mix([(workload_mix.WorkloadShape(base.WHOLE, 8), 1.0)])
HALVES = workload_mix.build_mix([(workload_mix.WorkloadShape(base.MPS, 1, 500, cpu=4000), 1.0)])


def score(
    usual: workload_mix.WorkloadMix, previous: base.NodeCapacity, *taken: base.Usage, cpu: int = 0
) -> int:
    policy = fragmentation.Fragmentation(usual)
    return policy.score(node_capacities.candidate(previous, *taken, cpu=cpu))


def test_a_node_that_is_usually_asked_whole_is_left_whole() -> None:
    whole = node_capacities.room(*[node_capacities.idle()] * 8)
    broken = node_capacities.room(node_capacities.TAKEN, *[node_capacities.idle()] * 7)
    assert score(EIGHT, whole, *node_capacities.whole(1)) < score(
        EIGHT, broken, *node_capacities.whole(1)
    )


def test_a_share_goes_where_what_is_left_can_still_be_used() -> None:
    quarter = base.Usage(0, base.MPS, 250)
    retained = score(HALVES, node_capacities.room(node_capacities.shared(750)), quarter)
    spoilt = score(HALVES, node_capacities.room(node_capacities.shared(500)), quarter)
    assert retained > spoilt


def test_gpus_without_the_cpus_that_are_usually_asked_are_of_no_use() -> None:
    node = node_capacities.room(node_capacities.shared(500), node_capacities.idle(), cpu=5000)
    share = base.Usage(0, base.MPS, 500)
    assert score(HALVES, node, share, cpu=2000) < score(HALVES, node, share, cpu=1000)


@pytest.mark.parametrize(
    ("demand", "card", "fits"),
    [
        (workload_mix.WorkloadShape(base.WHOLE), node_capacities.idle(), True),
        (workload_mix.WorkloadShape(base.WHOLE), node_capacities.shared(1000), False),
        (workload_mix.WorkloadShape(base.MPS, 1, 250), node_capacities.shared(250), True),
        (workload_mix.WorkloadShape(base.MPS, 1, 250), node_capacities.shared(249), False),
        (
            workload_mix.WorkloadShape(base.MPS, 1, 250),
            node_capacities.shared(900, base.TIME_SLICING),
            False,
        ),
        (workload_mix.WorkloadShape(base.MIG, 1, 500), node_capacities.cut(0b11110000), True),
        (workload_mix.WorkloadShape(base.MIG, 1, 500), node_capacities.cut(0b00111100), False),
        (workload_mix.WorkloadShape(base.MIG, 1, 125), node_capacities.shared(900), False),
        (
            workload_mix.WorkloadShape(base.WHOLE, products=frozenset({"T4"})),
            node_capacities.idle(),
            False,
        ),
        (
            workload_mix.WorkloadShape(base.WHOLE, products=frozenset({"T4"})),
            node_capacities.idle(node_capacities.T4),
            True,
        ),
    ],
)
def test_a_shape_fits_a_card_as_it_is_used_now(
    demand: workload_mix.WorkloadShape, card: base.GpuState, *, fits: bool
) -> None:
    assert demand.fits(card) is fits


def test_amounts_of_cpu_between_which_no_shape_differs_are_one_step() -> None:
    shapes = workload_mix.build_mix(
        (workload_mix.WorkloadShape(base.MPS, cpu=cpu), 1) for cpu in (1000, 4000)
    )
    steps = [shapes.cpu_step(cpu, 8000)[0] for cpu in (0, 999, 1000, 3999, 4000, 9000)]
    assert steps == [0, 0, 1, 1, 2, 2]
    served = [shapes.cpu_step(cpu, 1500)[1] for cpu in (0, 1249, 1250, 2500, 5000)]
    assert served == [0, 0, 500, 1000, 1500]


def test_the_words_say_how_much_becomes_useless() -> None:
    policy = fragmentation.Fragmentation(EIGHT)
    spoilt = node_capacities.candidate(
        node_capacities.room(*[node_capacities.idle()] * 8), *node_capacities.whole(0)
    )
    words = "the least waste: 7.00 of a GPU becomes unusable for the workload mix"
    assert policy.explain(spoilt) == words
    better = node_capacities.candidate(
        node_capacities.room(node_capacities.TAKEN, node_capacities.idle()),
        *node_capacities.whole(1),
    )
    assert policy.explain(better) == "no GPU becomes unusable for the workload mix"


def test_gpus_without_cpus_for_them_are_left_to_pods_that_need_few() -> None:
    usual = workload_mix.WorkloadMix((), cpu_per_gpu=4000)
    scarce, ample = (
        node_capacities.room(node_capacities.idle(), node_capacities.idle(), cpu=cpu)
        for cpu in (8000, 80_000)
    )
    assert score(usual, scarce, *node_capacities.whole(0), cpu=8000) < score(
        usual, ample, *node_capacities.whole(0), cpu=8000
    )
    assert score(usual, scarce, *node_capacities.whole(0), cpu=4000) == score(
        usual, ample, *node_capacities.whole(0), cpu=4000
    )


def test_a_kind_that_others_need_is_kept_for_them() -> None:
    usual = workload_mix.WorkloadMix((), scarce={"T4": 2.0})
    expected = score(
        usual,
        node_capacities.room(node_capacities.idle(node_capacities.T4)),
        *node_capacities.whole(0),
    )
    plain = score(usual, node_capacities.room(node_capacities.idle()), *node_capacities.whole(0))
    assert expected < plain


def cards() -> int:
    return sum(type(obj) is base.GpuState for obj in gc.get_objects())


def test_old_node_capacities_are_evicted_from_the_cache() -> None:
    policy = fragmentation.Fragmentation(HALVES)
    previous = cards()
    for left in range(1, 2000):
        seen = node_capacities.room(
            node_capacities.shared(left), node_capacities.shared(left, base.TIME_SLICING)
        )
        policy.score(node_capacities.candidate(seen, base.Usage(0, base.MPS, 1)))
    assert cards() - previous < 4000


def useless_by_definition(
    mix: workload_mix.WorkloadMix, step: tuple[int, int], gpus: tuple[base.GpuState, ...]
) -> float:
    """The sum over the shapes, one by one, of the idle thousandths that they cannot use."""
    counted = [(gpu, number) for gpu, number in Counter(gpus).items() if gpu.remaining]
    idle = sum(gpu.remaining * number for gpu, number in counted)
    position, served = step
    total = 0.0
    for demand, weight in mix.shapes:
        fitting = [(gpu, number) for gpu, number in counted if demand.fits(gpu)]
        served_gpus = sum(number for _, number in fitting)
        is_served = demand.gpu_count and served_gpus >= demand.gpu_count
        used = sum(gpu.remaining * number for gpu, number in fitting)
        is_served = is_served and demand.cpu in mix.cpus[:position]
        total += weight * (idle - used if is_served else idle)
    return total + 0.5 * (idle - served)


def test_useless_capacity_is_the_sum_over_the_shapes_to_the_last_digit() -> None:
    draw = random.Random(7)  # noqa: S311 - no secret
    shapes = [
        workload_mix.WorkloadShape(base.WHOLE, 1, cpu=1000),
        workload_mix.WorkloadShape(base.WHOLE, 2, cpu=8000),
        workload_mix.WorkloadShape(base.MPS, 1, 250),
        workload_mix.WorkloadShape(base.MPS, 1, 700, 2000, frozenset({"T4"})),
        workload_mix.WorkloadShape(base.MIG, 1, 110, 4000),
        workload_mix.WorkloadShape(base.IDLE, 0, 0, 3000),
    ]
    kinds = [
        node_capacities.TAKEN,
        node_capacities.idle(),
        node_capacities.idle(node_capacities.T4),
        node_capacities.cut(0b11110000),
        node_capacities.shared(-300),
        *(node_capacities.shared(left) for left in (200, 300, 750)),
    ]
    for _ in range(200):
        mix = workload_mix.build_mix((shape, draw.random()) for shape in shapes)
        useless = fragmentation.UselessCapacity(mix)
        gpus = tuple(draw.choices(kinds, k=draw.randrange(9)))
        step = mix.cpu_step(draw.randrange(9000), 8000)
        assert useless(step, gpus) == useless_by_definition(mix, step, gpus)
