"""The controller's rules beyond the API: ownership of devices, and what Prepare would refuse.

A device has to be ours to allocate (D2, D23); claims of different namespaces, or with conflicting
settings of one GPU, do not share it (D18); a container has at most one MPS daemon, and no GPU
outside it (D10). Pure.
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
_SCHEDULER_FILTER = candidates.DeviceFilter(ignores_unknown_fields=True)
"""Devices as kube-scheduler judges them for its own claims."""


class ControllerRules:
    """Rules of the controller; caches the terms of claims with shares."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self._terms = shared_settings.ShareTerms(driver)

    def for_workload(
        self, view: snapshot.Snapshot, workload: allocator_types.Workload
    ) -> "_ControllerFilters":
        """Return the filters of a workload."""
        return _ControllerFilters(self.driver, self._terms, view, workload)


class _ControllerFilters:
    def __init__(
        self,
        driver: str,
        terms: shared_settings.ShareTerms,
        view: snapshot.Snapshot,
        workload: allocator_types.Workload,
    ) -> None:
        self._driver = driver
        self._terms = terms
        self._view = view
        self._workload = workload
        self._configs = device_config.DeviceConfigs(view, workload)

    @property
    def checks_solutions(self) -> bool:
        """Return whether a claim may have an MPS daemon of its own: configuration says so."""
        return any(
            claim.spec.configs
            or any(
                self._view.classes[name].configs
                for request in claim.spec.requests
                for subrequest in request.alternatives_or_self
                if (name := subrequest.device_class) in self._view.classes
            )
            for claim in self._workload.open_claims
        )

    def device_filter(self, claim: int) -> candidates.DeviceFilter:
        """Return the filter of single devices for a claim of the workload."""
        if claim >= len(self._workload.open_claims):
            return _SCHEDULER_FILTER
        return candidates.DeviceFilter(
            _IGNORED_TAINTS,
            functools.partial(self._check_device, claim),
            lambda subrequest: self._configs.slice_config(claim, subrequest.request) is not None,
        )

    def constraints(
        self,
        requests: Sequence[allocator_requests.RequestSpec],
        devices: Sequence[candidates.NodeDevice],
    ) -> Sequence[tied.Constraint]:
        """Return the constraints between the chosen devices."""
        return (
            *container_mps.constraints(
                self._view, self._workload, requests, devices, self._configs
            ),
            *shared_settings.constraints(requests, devices, self._configs),
        )

    def rejection(
        self,
        assignments: Sequence[allocator_types.DeviceAssignment],
        node_devices: Sequence[candidates.NodeDevice],
    ) -> str:
        """Return why a claim's own MPS daemon cannot have its devices; "" if it can."""
        by_id = {node_device.id: node_device.device for node_device in node_devices}
        for claim in range(len(self._workload.open_claims)):
            claim_devices = [
                (by_id[assignment.device], assignment.request)
                for assignment in assignments
                if assignment.claim_index == claim and assignment.device.driver == self._driver
            ]
            daemon_devices = [
                (_mps_device(device), settings)
                for device, subrequest in claim_devices
                if (settings := self._configs.claim_mps(claim, subrequest, device)) is not None
            ]
            try:
                claim_mps.claim_mps_server(daemon_devices)
            except errors.BadInput as error:
                return str(error)
        return ""

    def _check_device(
        self,
        claim: int,
        node_device: candidates.NodeDevice,
        subrequest: allocator_requests.SubRequest,
    ) -> reasons.Reason | None:
        device = node_device.device
        if not device.is_tainted_for("controller"):
            return reasons.Reason.DEVICE_NOT_MANAGED
        if node_device.id.driver != self._driver:
            return None
        config = self._configs.get(claim, subrequest.request, device)
        if isinstance(config, errors.BadInput):
            return reasons.Reason.CONFIG_INVALID
        if device_config.sharing_kind(device):
            return self._share_rejection(claim, node_device, subrequest)
        return None

    def _share_rejection(
        self,
        claim: int,
        node_device: candidates.NodeDevice,
        subrequest: allocator_requests.SubRequest,
    ) -> reasons.Reason | None:
        """Return why a claim cannot have a share beside the device's holders (D18)."""
        device = node_device.device
        terms = self._configs.sharing_terms(claim, subrequest.request, device)
        if isinstance(terms, compatibility.Conflict):
            return terms.reason
        for holder in node_device.holders:
            other = self._terms.get(holder, device)
            conflict = compatibility.find_conflict(terms, other) if other is not None else None
            if conflict is not None:
                return conflict.reason
        return None


def _mps_device(device: slices.Device) -> claim_mps.Device:
    """Return a device by its attributes and capacity."""
    shown = device.attributes
    memory = device.capacity.get(names.CAP_MEMORY)
    return claim_mps.Device(
        name=device.name,
        uuid=str(shown.get(names.ATTR_UUID, device.name)),
        size=memory.value.units if memory else 0,
        is_mig=device_config.is_mig(device),
        server=device_config.mps_server(device),
    )
