import collections
import itertools

import pytest

from driver import errors
from tests.chaos import draw

EVERY = frozenset(draw.Kind)


def drawn(count: int, seed: int = 7, first: int = 0) -> list[draw.Fault]:
    return list(itertools.islice(draw.faults(seed, EVERY, first), count))


def test_the_same_seed_draws_the_same_faults_and_another_others() -> None:
    assert drawn(200) == drawn(200)
    assert drawn(200) != drawn(200, seed=8)


def test_faults_from_a_number_on_are_those_of_the_whole_run() -> None:
    assert drawn(50, first=150) == drawn(200)[150:]


def test_a_bag_has_every_kind_by_its_weight() -> None:
    bag = collections.Counter(fault.kind for fault in drawn(len(EVERY) * 2 - 7))
    assert bag.keys() == EVERY
    assert {bag[kind] for kind in EVERY} == {1, 2}
    assert bag[draw.Kind.NODE_REBOOTED] == 1


def test_written_values_are_read_again() -> None:
    assert draw.parse(draw.render(drawn(20)), "faults.jsonl") == tuple(drawn(20))


def test_a_line_that_is_no_fault_is_refused_with_its_number() -> None:
    text = f'{draw.render(drawn(1))}{{"kind": "nothing"}}\n'
    with pytest.raises(errors.BadInput, match=r"faults.jsonl:2: is no fault"):
        draw.parse(text, "faults.jsonl")


def test_a_kind_that_is_none_is_refused_and_the_known_ones_are_named() -> None:
    assert draw.kinds("gpu-lost, ecc") == {draw.Kind.GPU_LOST, draw.Kind.ECC}
    with pytest.raises(errors.BadInput, match=r"--only: gpu-sold; expected plugin-killed"):
        draw.kinds("ecc,gpu-sold")
