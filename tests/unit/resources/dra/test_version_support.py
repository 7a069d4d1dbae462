import pytest

from driver.resources.dra import version_support


@pytest.mark.parametrize(
    "version", ["v1.36.4", "v1.36.5", "v1.37.1", "v1.36.4-gke.100", "v2.0.0", "?"]
)
def test_from_the_minimum_version_on_everything_is_published(version: str) -> None:
    assert version_support.check_version(version) is None


@pytest.mark.parametrize("version", ["v1.36.3", "v1.35.9", "v1.36.3+k3s1"])
def test_below_the_floor_the_version_is_said(version: str) -> None:
    assert version_support.check_version(version) == f"Kubernetes is {version}, below 1.36.4"


def test_only_fields_that_sharing_needs_turn_it_off() -> None:
    assert version_support.check_dropped_fields(["spec.devices[0].taints"]) is None
    lost = [
        "spec.devices[0].consumesCounters",
        "spec.sharedCounters",
        "spec.devices[1].consumesCounters",
    ]
    assert (
        version_support.check_dropped_fields(lost)
        == "the API server drops consumesCounters, sharedCounters"
    )
