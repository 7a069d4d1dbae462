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

_IGNORED_TAINTS = frozenset({names.ALLOCATOR_TAINT})


class ControllerRules:
    """Of the controller; it remembers the terms of claims that have shares."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self._terms = shared_settings.ShareTerms(driver)

    def for_workload(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> "_ControllerFilters":
        """Made for each workload."""
        return _ControllerFilters(self.driver, self._terms, view, workload)


class _ControllerFilters:
    def __init__(
        self,
        driver: str,
        known: shared_settings.ShareTerms,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
    ) -> None:
        self._driver = driver
        self._terms = known
        self._view = view
        self._workload = workload
        self._configs = device_config.DeviceConfigs(view, workload)

    def device_filter(self, claim: int) -> candidates.DeviceFilter:
        """Of each device for a claim of the workload, whatever else is chosen."""
        return candidates.DeviceFilter(
            _IGNORED_TAINTS,
            functools.partial(self._check_device, claim),
            lambda way: self._configs.slice_config(claim, way.request) is not None,
        )

    def constraints(
        self,
        wants: Sequence[allocator_requests.RequestSpec],
        spots: Sequence[candidates.NodeDevice],
    ) -> Sequence[tied.Constraint]:
        """Between the devices that are chosen."""
        return (
            *container_mps.constraints(self._view, self._workload, wants, spots, self._configs),
            *shared_settings.constraints(wants, spots, self._configs),
        )

    def rejection(
        self,
        picks: Sequence[allocator_types.DeviceAssignment],
        spots: Sequence[candidates.NodeDevice],
    ) -> str:
        """Why a claim's own MPS daemon cannot have the devices that were chosen for it."""
        by_id = {spot.id: spot.device for spot in spots}
        for claim in range(len(self._workload.open_claims)):
            mine = [(by_id[one.device], one.request) for one in picks if one.claim_index == claim]
            found = [
                (_mps_device(device), settings)
                for device, way in mine
                if (settings := self._configs.claim_mps(claim, way, device)) is not None
            ]
            try:
                claim_mps.of_devices(found)
            except errors.BadInput as error:
                return str(error)
        return ""

    def _check_device(
        self, claim: int, spot: candidates.NodeDevice, way: allocator_requests.SubRequest
    ) -> reasons.Reason | None:
        device = spot.device
        if spot.id.driver != self._driver or not device.tainted_for("controller"):
            return reasons.Reason.DEVICE_NOT_OURS
        config = self._configs.get(claim, way.request, device)
        if isinstance(config, errors.BadInput):
            return reasons.Reason.CONFIG_INVALID
        if device.attributes.get(names.ATTR_TYPE) != names.TYPE_SHARE:
            return None
        mine = self._configs.sharing_terms(claim, way.request, device)
        if isinstance(mine, compatibility.Conflict):
            return mine.reason
        for holder in spot.holders:
            other = self._terms.get(holder, device)
            conflict = compatibility.conflict(mine, other) if other is not None else None
            if conflict is not None:
                return conflict.reason
        return None


def _mps_device(device: slices.Device) -> claim_mps.Device:
    """What its attributes and capacity say."""
    shown = device.attributes
    memory = device.capacity.get(names.CAP_MEMORY)
    return claim_mps.Device(
        name=device.name,
        uuid=str(shown.get(names.ATTR_UUID, device.name)),
        size=memory.value.units if memory else 0,
        is_mig=device_config.is_mig(device),
        server=device_config.mps_server(device),
    )
