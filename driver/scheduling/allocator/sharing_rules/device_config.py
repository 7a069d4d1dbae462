"""Effective configuration of each device of a workload, as Prepare will read it (D13). Pure."""

from collections.abc import Iterator

from driver import errors, names
from driver.api import decode, v1alpha1
from driver.resources import fields
from driver.resources.dra import attributes, claims, slices
from driver.resources.dra import requests as dra_requests
from driver.resources.sharing import allocation_config, compatibility, multi_user
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot

_DeviceKey = tuple[decode.Kind, bool]
"""Fields of a device that its configuration depends on: its kind, and the share flag."""


class DeviceConfigs:
    """Configurations of our devices of one workload; claims are indexes of unallocated ones."""

    def __init__(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> None:
        self._view = view
        self._workload = workload
        self.driver = view.driver
        self._documents: dict[tuple[int, str], tuple[decode.Document, ...]] = {}
        self._configs: dict[tuple[int, str, _DeviceKey], v1alpha1.Config | errors.BadInput] = {}

    def get(
        self, claim: int, subrequest: dra_requests.Request, device: slices.Device
    ) -> v1alpha1.Config | errors.BadInput:
        """Return the configuration of a device for a subrequest, or what is wrong with it."""
        key = kind, shared = _device_key(device)
        cache_key = claim, subrequest.name, key
        if cache_key not in self._configs:
            try:
                documents = self._subrequest_documents(claim, subrequest)
                self._configs[cache_key] = decode.select_config(
                    documents, subrequest.name, kind, shared=shared
                )
            except errors.BadInput as error:
                self._configs[cache_key] = error
        return self._configs[cache_key]

    def slice_config(
        self, claim: int, subrequest: dra_requests.Request
    ) -> v1alpha1.SliceConfig | None:
        """Return the SliceConfig of a subrequest by need; None without one.

        None too if configuration cannot be read; `get` reports it.
        """
        try:
            return decode.find_slice_config(
                self._subrequest_documents(claim, subrequest), subrequest.name
            )
        except errors.BadInput:
            return None

    def sharing_terms(
        self, claim: int, subrequest: dra_requests.Request, device: slices.Device
    ) -> compatibility.SharingTerms | compatibility.Conflict:
        """Return the terms of a subrequest's share of a device, without its amounts.

        Raises:
            BadInput: the configuration cannot be read; `get` reports it.
        """
        config = self.get(claim, subrequest, device)
        if isinstance(config, errors.BadInput):
            raise config
        result = claims.Result(subrequest.name, claims.DeviceId(self.driver, "", device.name))
        namespace = self._workload.unallocated_claims[claim].namespace
        sharing = sharing_kind(device)
        weak = compatibility.check_isolation(result, sharing, self.slice_config(claim, subrequest))
        return weak or compatibility.result_terms(
            result, sharing, namespace, config, mps_server(device)
        )

    def claim_mps(
        self, claim: int, subrequest: dra_requests.Request, device: slices.Device
    ) -> v1alpha1.Mps | None:
        """Return the settings of the claim's own MPS daemon, if the device is to be under one."""
        config = self.get(claim, subrequest, device)
        if subrequest.admin_access or sharing_kind(device) or isinstance(config, errors.BadInput):
            return None
        return config.sharing.mps if isinstance(config.sharing, v1alpha1.MpsSharing) else None

    def _subrequest_documents(
        self, claim: int, subrequest: dra_requests.Request
    ) -> tuple[decode.Document, ...]:
        key = claim, subrequest.name
        if key not in self._documents:
            asking = self._workload.unallocated_claims[claim]
            self._documents[key] = tuple(self._read(asking, subrequest))
        return self._documents[key]

    def _read(
        self, claim: claims.Claim, subrequest: dra_requests.Request
    ) -> Iterator[decode.Document]:
        device_class = self._view.classes.get(subrequest.device_class)
        for raw in device_class.configs if device_class else ():
            yield from self._document(raw, (subrequest.name,), from_class=True)
        for config in claim.spec.configs:
            yield from self._document(config.opaque, config.requests, from_class=False)

    def _document(
        self, opaque: fields.Raw, requests: tuple[str, ...], *, from_class: bool
    ) -> Iterator[decode.Document]:
        if opaque.get("driver") == self.driver:
            parameters = fields.mapping(opaque, "parameters")
            config = decode.decode_config(parameters, "parameters", from_class=from_class)
            yield decode.Document(config, "parameters", requests)


def result_config(
    allocation: claims.Allocation, result: claims.Result, device: slices.Device, driver: str
) -> v1alpha1.Config | None:
    """Return the configuration of an allocated device; None if it cannot be read any more."""
    kind, shared = _device_key(device)
    try:
        documents = allocation_config.allocation_configs(allocation, driver)
        return decode.select_config(documents, result.request, kind, shared=shared)
    except errors.BadInput:
        return None


def is_mig(device: slices.Device) -> bool:
    """Return whether a device is a part of a GPU."""
    return device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG


def _device_key(device: slices.Device) -> _DeviceKey:
    return "MigDeviceConfig" if is_mig(device) else "GpuConfig", bool(sharing_kind(device))


def sharing_kind(device: slices.Device) -> str:
    """Return how a device is shared, `mps` or `time-slicing`; empty if it is not."""
    if device.attributes.get(names.ATTR_TYPE) != names.TYPE_SHARE:
        return ""
    return str(device.attributes.get(names.ATTR_SHARING, ""))


def mps_server(device: slices.Device) -> multi_user.MpsServer:
    """Return the MPS server that a device's GPU can have, by its attributes."""
    shown = device.attributes
    return multi_user.MpsServer(
        multi_user.major(str(shown.get(names.ATTR_DRIVER_VERSION, ""))),
        _parse_version(shown.get(names.ATTR_CUDA_CAPABILITY)),
    )


def _parse_version(version: attributes.Value | None) -> tuple[int, int]:
    major, minor, *_ = [*str(version or "99.0.0").split("."), "0"]
    return int(major), int(minor)
