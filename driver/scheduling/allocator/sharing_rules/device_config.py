"""Which configuration each device of a workload would have, as Prepare will read it (D13). Pure."""

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
"""All of a device that its configuration depends on: its kind, and whether it is a share."""


class DeviceConfigs:
    """Of one workload; claims are named by their place among the open ones."""

    def __init__(self, view: snapshot.Snapshot, workload: allocator_types.Workload) -> None:
        self._view = view
        self._workload = workload
        self._documents: dict[tuple[int, str], tuple[decode.Document, ...]] = {}
        self._configs: dict[tuple[int, str, _DeviceKey], v1alpha1.Config | errors.BadInput] = {}

    def get(
        self, claim: int, way: dra_requests.Request, device: slices.Device
    ) -> v1alpha1.Config | errors.BadInput:
        """The configuration of a device for a way, or what is wrong with it."""
        look = kind, shared = _device_key(device)
        key = claim, way.name, look
        if key not in self._configs:
            try:
                documents = self._subrequest_documents(claim, way)
                self._configs[key] = decode.winner(documents, way.name, kind, shared=shared)
            except errors.BadInput as error:
                self._configs[key] = error
        return self._configs[key]

    def slice_config(self, claim: int, way: dra_requests.Request) -> v1alpha1.SliceConfig | None:
        """What a way needs a part of a GPU to be, where it leaves open which kind it gets.

        None too where configuration cannot be read; `of` says so.
        """
        try:
            return decode.need(self._subrequest_documents(claim, way), way.name)
        except errors.BadInput:
            return None

    def sharing_terms(
        self, claim: int, way: dra_requests.Request, device: slices.Device
    ) -> compatibility.Terms | compatibility.Conflict:
        """On which terms a way would have a share of a device; its amounts are not told.

        Raises:
            BadInput: the configuration cannot be read; `of` says so.
        """
        config = self.get(claim, way, device)
        if isinstance(config, errors.BadInput):
            raise config
        driver = self._view.driver
        result = claims.Result(way.name, claims.DeviceId(driver, "", device.name))
        namespace = self._workload.open_claims[claim].namespace
        sharing = sharing_kind(device)
        weak = compatibility.too_weak(result, sharing, self.slice_config(claim, way))
        return weak or compatibility.of_result(
            result, sharing, namespace, config, mps_server(device)
        )

    def claim_mps(
        self, claim: int, way: dra_requests.Request, device: slices.Device
    ) -> v1alpha1.Mps | None:
        """The settings of the claim's own MPS daemon, where the device is to be under one."""
        config = self.get(claim, way, device)
        if way.admin_access or sharing_kind(device) or isinstance(config, errors.BadInput):
            return None
        return config.sharing.mps if isinstance(config.sharing, v1alpha1.MpsSharing) else None

    def _subrequest_documents(
        self, claim: int, way: dra_requests.Request
    ) -> tuple[decode.Document, ...]:
        key = claim, way.name
        if key not in self._documents:
            self._documents[key] = tuple(self._read(self._workload.open_claims[claim], way))
        return self._documents[key]

    def _read(self, claim: claims.Claim, way: dra_requests.Request) -> Iterator[decode.Document]:
        device_class = self._view.classes.get(way.device_class)
        for raw in device_class.configs if device_class else ():
            yield from self._document(raw, (way.name,), from_class=True)
        for one in claim.spec.configs:
            yield from self._document(one.opaque, one.requests, from_class=False)

    def _document(
        self, opaque: fields.Raw, requests: tuple[str, ...], *, from_class: bool
    ) -> Iterator[decode.Document]:
        if opaque.get("driver") == self._view.driver:
            parameters = fields.mapping(opaque, "parameters")
            found = decode.config(parameters, "parameters", from_class=from_class)
            yield decode.Document(found, "parameters", requests)


def result_config(
    allocation: claims.Allocation, result: claims.Result, device: slices.Device, driver: str
) -> v1alpha1.Config | None:
    """The configuration of a device that a claim has; None where it cannot be read any more."""
    kind, shared = _device_key(device)
    try:
        found = allocation_config.of_allocation(allocation, driver)
        return decode.winner(found, result.request, kind, shared=shared)
    except errors.BadInput:
        return None


def is_mig(device: slices.Device) -> bool:
    """Whether a device is a part of a GPU."""
    return device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG


def _device_key(device: slices.Device) -> _DeviceKey:
    return "MigDeviceConfig" if is_mig(device) else "GpuConfig", bool(sharing_kind(device))


def sharing_kind(device: slices.Device) -> str:
    """How a device is shared, `mps` or `time-slicing`; empty where it is not."""
    if device.attributes.get(names.ATTR_TYPE) != names.TYPE_SHARE:
        return ""
    return str(device.attributes.get(names.ATTR_SHARING, ""))


def mps_server(device: slices.Device) -> multi_user.Server:
    """The MPS server that a device's GPU can have, as its attributes say."""
    shown = device.attributes
    return multi_user.Server(
        multi_user.major(str(shown.get(names.ATTR_DRIVER_VERSION, ""))),
        _parse_version(shown.get(names.ATTR_CUDA_CAPABILITY)),
    )


def _parse_version(version: attributes.Value | None) -> tuple[int, int]:
    major, minor, *_ = [*str(version or "99.0.0").split("."), "0"]
    return int(major), int(minor)
