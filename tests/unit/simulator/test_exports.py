"""Tests of what the simulated NVML exports, by driver."""

import pytest

from simulator import client, exports, library


def test_a_newer_driver_exports_all_that_an_older_one_does_and_more() -> None:
    older, newer = set(exports.exported(535)), set(exports.exported(580))
    assert older < newer
    assert newer - older >= {"nvmlDeviceGetAddressingMode", "nvmlDeviceGetRepairStatus"}


@pytest.mark.parametrize(("driver", "count"), [(535, 332), (550, 350)])
def test_the_library_exports_the_symbols_of_its_driver_version(driver: int, count: int) -> None:
    """Counted in 535.261.03 and 550.163.01."""
    assert len(exports.exported(driver)) == count


def test_a_driver_older_than_the_table_has_what_the_table_begins_with() -> None:
    assert exports.exported(450) == exports.exported(535)


def test_the_version_script_hides_what_it_does_not_name() -> None:
    script = exports.version_script(535)
    assert "    nvmlInit_v2;\n" in script
    assert "nvmlDeviceGetAddressingMode" not in script
    assert script.endswith("local:\n    *;\n};\n")


def test_every_call_of_the_model_is_a_function_of_the_header() -> None:
    spelled = {_plain(name) for name in exports.first_drivers()}
    calls = {
        name for name in dir(library.Library) if client.is_call(getattr(library.Library, name))
    }
    assert {call for call in calls if call.replace("_", "") not in spelled} == set()


def _plain(function: str) -> str:
    name = function.removeprefix("nvml")
    stem, _, tail = name.rpartition("_")
    return (stem if tail.startswith("v") and tail[1:].isdigit() else name).lower()
