"""Use of a managed driver: who allocates its devices changes, and a gang has one of them."""

from driver import names
from driver.kube import gvr
from hack.cluster import api, chart
from tests.e2e import managed_devices, playground, release

DRIVER = "gpu.example.com"
MANAGED = managed_devices.managed(DRIVER)


def flags(cluster: api.Cluster) -> tuple[str, ...]:
    """Return the chart's flags: with a managed driver where its rules have an effect."""
    return () if cluster.kubernetes == "1.36" else (MANAGED,)


def a_driver_passes_to_the_controller_and_back(
    field: playground.Playground, node: str, others: tuple[str, ...]
) -> None:
    """DeviceTaintRules: create, patch, delete. ResourceClaims/driver, of the managed driver.

    `others` are the flags of the release without the driver. A rule is there again afterwards, for
    uninstalling to delete.
    """
    with managed_devices.unprepared(field.kube, node, DRIVER, "gpu", 2):
        until_taint(field, names.ALLOCATOR_TAINT)
        a_gang_has_a_device(field)
        chart.install(release.WHERE, *others, MANAGED, managed_devices.NOWHERE)
        until_taint(field, None)
        chart.install(release.WHERE, *others, MANAGED)
        until_taint(field, names.ALLOCATOR_TAINT)


def until_taint(field: playground.Playground, key: str | None) -> None:
    """Wait until the driver's rule has a taint of that key; None: until it is gone."""
    playground.until(
        lambda: managed_devices.rule_taint(field.kube, DRIVER) == key, 150, f"the rule has {key}"
    )


def a_gang_has_a_device(field: playground.Playground) -> None:
    """Wait for the condition that lets the gang's pod be bound; nothing prepares the device."""
    field.create(playground.a_claim("example", deviceClassName=DRIVER))
    pod = release.a_pod("example", claims=("example",))
    pod["metadata"]["labels"] = {names.GANG_LABEL: "example"}
    pod["metadata"]["annotations"] = {names.GANG_SIZE: "1"}
    field.create(pod)

    def ready() -> bool:
        entries = field.claim("example").get("status", {}).get("devices") or ()
        return any(
            condition["type"] == names.GANG_READY
            for entry in entries
            if entry["driver"] == DRIVER
            for condition in entry.get("conditions") or ()
        )

    playground.until(ready, 90, "the gang's condition is written")
    field.delete_pod("example")
    field.kube.delete(gvr.RESOURCE_CLAIMS, "example", field.namespace)
