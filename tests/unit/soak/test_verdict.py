import math

import pytest

from tests.soak import verdict

LEAK = 1 / verdict.CYCLES_PER_MIB
"""MiB a cycle: what is just allowed."""


def ran(
    cycles: int = 36_000,
    *,
    mib_a_cycle: float = 0.0,
    noise_mib: float = 0.1,
    files_a_cycle: float = 0.0,
    connections_a_cycle: float = 0.0,
    killed_at: int = 10_000,
) -> list[verdict.Sample]:
    """240 samples of a plugin that was killed once."""
    samples = []
    for number in range(1, 241):
        done = cycles * number // 240
        life = done - killed_at if done > killed_at else done
        wave = noise_mib * math.sin(number * 2.4)
        samples.append(
            verdict.Sample(
                float(number),
                done,
                2 if done > killed_at else 1,
                100 + life * mib_a_cycle + wave,
                20 + int(life * files_a_cycle) + number % 3,
                12 + int(life * connections_a_cycle),
                50,
            )
        )
    return samples


def says(samples: list[verdict.Sample], who: str = "plugin") -> dict[str, verdict.Says]:
    return {growth.name.split()[0]: growth.says for growth in verdict.growths(who, samples)}


def test_a_constant_series_is_flat() -> None:
    assert set(says(ran()).values()) == {verdict.Says.FLAT}


def test_memory_that_grows_by_twice_what_is_allowed_grows() -> None:
    assert says(ran(mib_a_cycle=2 * LEAK))["RSS"] is verdict.Says.GROWS


def test_memory_that_grows_by_half_of_what_is_allowed_is_flat() -> None:
    assert says(ran(mib_a_cycle=LEAK / 2))["RSS"] is verdict.Says.FLAT


def test_a_file_that_stays_open_every_five_thousand_cycles_grows() -> None:
    assert says(ran(files_a_cycle=1 / 5000))["open"] is verdict.Says.GROWS


def test_two_more_connections_are_flat_and_one_every_thousand_cycles_grows() -> None:
    assert says(ran(connections_a_cycle=2 / 18_000))["connections"] is verdict.Says.FLAT
    assert says(ran(connections_a_cycle=1 / 1000))["connections"] is verdict.Says.GROWS


def test_a_series_noisier_than_the_limit_has_no_verdict() -> None:
    assert says(ran(mib_a_cycle=LEAK, noise_mib=30.0))["RSS"] is verdict.Says.UNTOLD


def test_a_short_run_has_no_verdict() -> None:
    assert set(says(ran(cycles=500, killed_at=100)).values()) == {verdict.Says.UNTOLD}
    assert set(says([]).values()) == {verdict.Says.UNTOLD}


def test_only_the_last_process_once_it_is_warm_and_the_second_half_are_judged() -> None:
    assert min(sample.cycles for sample in verdict.judged(ran(killed_at=10_000))) == 18_000
    late = verdict.judged(ran(killed_at=30_000))
    assert min(sample.cycles for sample in late) >= 30_000 + verdict.WARM_UP
    assert {sample.pid for sample in late} == {2}


def test_a_leader_may_fill_its_caches_in_a_short_run_alone() -> None:
    filling, leaking, later = (
        ran(cycles=2 * half, killed_at=0, mib_a_cycle=mib / half)
        for half, mib in ((1_250, 3.0), (1_250, 5.0), (10_000, 3.0))
    )
    assert says(filling)["RSS"] is verdict.Says.GROWS
    assert says(filling, verdict.LEADER)["RSS"] is verdict.Says.FLAT
    assert says(leaking, verdict.LEADER)["RSS"] is verdict.Says.GROWS
    assert says(later, verdict.LEADER)["RSS"] is verdict.Says.GROWS


def test_a_line_is_fitted_without_an_error_and_noise_has_one() -> None:
    xs = [float(number) for number in range(100)]
    assert verdict.fit(xs, [3 + 2 * x for x in xs]) == pytest.approx((2.0, 0.0), abs=1e-6)
    slope, error = verdict.fit(xs, [3 + 2 * x + math.sin(2.4 * x) for x in xs])
    assert abs(slope - 2) < 2 * error
    assert 0 < error < 0.02


def test_neighbours_that_are_alike_widen_the_error() -> None:
    xs = [float(number) for number in range(100)]
    _, apart = verdict.fit(xs, [math.sin(2.4 * x) for x in xs])
    _, alike = verdict.fit(xs, [math.sin(0.2 * x) for x in xs])
    assert alike > 2 * apart
