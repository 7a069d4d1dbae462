"""The simulated library's symbols, as a program that links or asks for them sees them."""

import ctypes

import pytest

from simulator import codes, compiler, exports

OLD, NEW = 550, 580


@pytest.fixture(params=[OLD, NEW])
def driver(request: pytest.FixtureRequest) -> int:
    major: int = request.param
    return major


@pytest.fixture
def loaded(driver: int) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiler.library(driver)))


# Covers SIM-1.
def test_the_library_has_the_symbols_of_its_driver_and_no_others(
    driver: int, loaded: ctypes.CDLL
) -> None:
    """go-nvlib asks dlsym whether a function is there, and takes it for one of this driver."""
    has = {name for name in exports.first_drivers() if hasattr(loaded, name)}
    assert has == set(exports.exported(driver))


def test_a_function_that_is_not_simulated_says_that_nothing_is_started(loaded: ctypes.CDLL) -> None:
    assert loaded.nvmlDeviceGetBoardId(None, None) == codes.Return.UNINITIALIZED
