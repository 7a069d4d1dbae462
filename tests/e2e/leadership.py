"""Leader of the controllers of the local cluster."""

from driver.kube import gvr
from tests.e2e import playground

CONTROLLERS = ("controller-0", "controller-1")


def holder(field: playground.Playground) -> str:
    lease = field.kube.get(gvr.LEASES, "ration-controller", "ration-system")
    return str(lease["spec"].get("holderIdentity") or "")


def leader(field: playground.Playground) -> str:
    """The component that holds the Lease now."""

    def found() -> str:
        return next((name for name in CONTROLLERS if holder(field).startswith(name)), "")

    return playground.until(found, 40, "a controller leads")
