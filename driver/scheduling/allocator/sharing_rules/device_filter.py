"""What the controller judges beyond the API: whose a device is, and what Prepare would refuse.

A device has to be ours to allocate (D2, D23); claims of different namespaces, or that do not agree
on what is one setting for a GPU, do not meet on one (D18); a container has one MPS daemon at most,
and no GPU outside it (D10). Pure.
"""

import functools
from collections.abc import Sequence

from driver import errors, names, reasons
from driver.resources.dra import slices
from driver.resources.sharing import claim_mps, compatibility
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.constraints import base as tied
from driver.scheduling.allocator.sharing_rules import container_mps, device_config, shared_settings
from driver.scheduling.snapshot import snapshot

_DISREGARDED = frozenset({names.ALLOCATOR_TAINT})


class Rules:
    """Of the controller; it remembers the terms of claims that have shares."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self._known = shared_settings.Terms(driver)

    def of(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> "_Verdicts":
        """Made for each workload."""
        return _Verdicts(self.driver, self._known, view, workload)


class _Verdicts:
    def __init__(
        self,
        driver: str,
        known: shared_settings.Terms,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
    ) -> None:
        self._driver = driver
        self._known = known
        self._view = view
        self._workload = workload
        self._configs = device_config.Configs(view, workload)

    def judge(self, claim: int) -> candidates.Judge:
        """Of each device for a claim of the workload, whatever else is chosen."""
        return candidates.Judge(
            _DISREGARDED,
            functools.partial(self._why_not, claim),
            lambda way: self._configs.need(claim, way.request) is not None,
        )

    def pacts(
        self, wants: Sequence[allocator_requests.Want], spots: Sequence[candidates.Spot]
    ) -> Sequence[tied.Pact]:
        """Between the devices that are chosen."""
        return (
            *container_mps.pacts(self._view, self._workload, wants, spots, self._configs),
            *shared_settings.pacts(wants, spots, self._configs),
        )

    def objection(
        self, picks: Sequence[allocator_types.Pick], spots: Sequence[candidates.Spot]
    ) -> str:
        """Why a claim's own MPS daemon cannot have the devices that were chosen for it."""
        by_id = {spot.id: spot.device for spot in spots}
        for claim in range(len(self._workload.open)):
            mine = [(by_id[one.device], one.request) for one in picks if one.claim == claim]
            found = [
                (_of_daemon(device), settings)
                for device, way in mine
                if (settings := self._configs.own_daemon(claim, way, device)) is not None
            ]
            try:
                claim_mps.of_devices(found)
            except errors.BadInput as error:
                return str(error)
        return ""

    def _why_not(
        self, claim: int, spot: candidates.Spot, way: allocator_requests.Way
    ) -> reasons.Reason | None:
        device = spot.device
        if spot.id.driver != self._driver or not device.tainted_for("controller"):
            return reasons.Reason.DEVICE_NOT_OURS
        config = self._configs.of(claim, way.request, device)
        if isinstance(config, errors.BadInput):
            return reasons.Reason.CONFIG_INVALID
        if device.attributes.get(names.ATTR_TYPE) != names.TYPE_SHARE:
            return None
        mine = self._configs.terms(claim, way.request, device)
        if isinstance(mine, compatibility.Conflict):
            return mine.reason
        for holder in spot.holders:
            other = self._known.of(holder, device)
            conflict = compatibility.conflict(mine, other) if other is not None else None
            if conflict is not None:
                return conflict.reason
        return None


def _of_daemon(device: slices.Device) -> claim_mps.Device:
    """What its attributes and capacity say."""
    shown = device.attributes
    memory = device.capacity.get(names.CAP_MEMORY)
    return claim_mps.Device(
        name=device.name,
        uuid=str(shown.get(names.ATTR_UUID, device.name)),
        size=memory.value.units if memory else 0,
        is_mig=device_config.is_mig(device),
        server=device_config.server_of(device),
    )
