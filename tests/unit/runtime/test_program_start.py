"""The collector rests while a program imports, and only then."""

import gc

import pytest

from driver.runtime import program_start


@pytest.fixture(autouse=True)
def restored_collector() -> object:
    yield
    gc.enable()
    gc.unfreeze()


def test_a_test_that_imports_it_keeps_its_collector() -> None:
    assert gc.isenabled()


def test_the_collector_runs_again_once_all_is_imported() -> None:
    gc.disable()
    program_start.finish_imports()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
