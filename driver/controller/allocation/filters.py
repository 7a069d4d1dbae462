"""What is judged beyond the API: whose a device is (D2, D23). Pure."""

from driver import names, reasons
from driver.controller.allocation import asked, offers


def rules(driver: str) -> offers.Rules:
    """What the controller judges by; the allocator's own taint it alone disregards."""

    def not_ours(spot: offers.Spot, _way: asked.Way) -> reasons.Reason | None:
        mine = spot.id.driver == driver and spot.device.tainted_for("controller")
        return None if mine else reasons.Reason.DEVICE_NOT_OURS

    return offers.Rules(driver, frozenset({names.ALLOCATOR_TAINT}), (not_ours,))
