"""When a node's devices count as published."""

import pytest

from hack.cluster import driver


@pytest.mark.parametrize("counts", ["1", "3 3 3", " 2 2\n"])
def test_a_pool_with_as_many_slices_as_each_says_is_whole(counts: str) -> None:
    assert driver.is_whole(counts)


@pytest.mark.parametrize("counts", ["", "5", "5 5", "1 1", "3 2 3"])
def test_a_partly_published_pool_is_not_whole(counts: str) -> None:
    assert not driver.is_whole(counts)
