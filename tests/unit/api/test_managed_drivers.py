from typing import Any

import pytest

from driver import errors
from driver.api import managed_drivers


def read(*entries: dict[str, Any], **more: Any) -> managed_drivers.ManagedDrivers:
    return managed_drivers.read({"drivers": list(entries), **more}, "managed.yaml")


def test_a_driver_alone_is_managed_everywhere() -> None:
    (driver,) = read({"name": "gpu.example.com"}).drivers
    assert (driver.name, driver.nodeSelector, driver.pools) == ("gpu.example.com", None, None)


def test_the_document_may_name_its_kind() -> None:
    header = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "ManagedDrivers"}
    assert read({"name": "a"}, **header) == read({"name": "a"})


def test_pools_have_the_names_that_the_api_allows() -> None:
    (driver,) = read({"name": "a", "pools": ["node-a", "rack-1/switch.b"]}).drivers
    assert driver.pools == ("node-a", "rack-1/switch.b")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, ".name: Field required"),
        ({"name": "GPU"}, ".name: String should match pattern"),
        ({"name": "a" * 64}, ".name: String should have at most 63 characters"),
        ({"name": "b", "pool": "x"}, ".pool: is not a field"),
        ({"name": "b", "nodeSelector": ""}, ".nodeSelector: String should have at least 1"),
        ({"name": "b", "pools": []}, ".pools: Tuple should have at least 1 item"),
        ({"name": "b", "pools": ["A"]}, ".pools.0: String should match pattern"),
        ({"name": "b", "pools": ["a", "b", "a"]}, ".pools: pool a is listed twice"),
        ({"name": "a"}, "managed.yaml: drivers.1.name: a is listed twice"),
    ],
)
def test_an_invalid_entry_is_refused_with_its_field(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        read({"name": "a"}, entry)
    assert words in str(refused.value)


def test_a_document_without_drivers_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="drivers: Tuple should have at least 1 item"):
        read()
