"""NVML calls about how GPUs are connected: PCIe topology, P2P, NVLink."""

from simulator import client, codes, device_calls, machine, profile

_CAPABILITIES, _SLI = 6, 4
_ERROR_COUNTERS = 5


class LinkCalls(client.Client):
    """Topology, P2P and NVLink."""

    @client.call
    def device_get_topology_common_ancestor(
        self, device1: client.Handle, device2: client.Handle
    ) -> int:
        """`nvmlGpuTopologyLevel_t`; a GPU with itself is INTERNAL."""
        return _ancestor(self._gpu(device1), self._gpu(device2))

    @client.call
    def device_get_p2p_status(
        self, device1: client.Handle, device2: client.Handle, index: int
    ) -> int:
        """`nvmlGpuP2PStatus_t`: all of it over NVLink, else only under one host bridge."""
        one, other = self._gpu(device1), self._gpu(device2)
        if index not in set(codes.P2PIndex):
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        if self._linked(one, other):
            return codes.P2PStatus.OK
        near = _ancestor(one, other) <= codes.TopologyLevel.HOSTBRIDGE
        if near and index != codes.P2PIndex.NVLINK:
            return codes.P2PStatus.OK
        return codes.P2PStatus.NOT_SUPPORTED

    @client.call
    def device_get_nv_link_state(self, device: client.Handle, link: int) -> bool:
        """Whether the link is active."""
        self._nvlink(device, link)
        return True

    @client.call
    def device_get_nv_link_version(self, device: client.Handle, link: int) -> int:
        """`nvmlNvlinkVersion_t`: NVLink 4 is 6."""
        return codes.NVLINK_VERSION[self._nvlink(device, link).generation]

    @client.call
    def device_get_nv_link_remote_device_type(self, device: client.Handle, link: int) -> int:
        """The other GPU of a bridge, else a switch."""
        self._nvlink(device, link)
        other = self._across(self._gpu(device))
        return codes.NVLINK_REMOTE_SWITCH if other is None else codes.NVLINK_REMOTE_GPU

    @client.call
    def device_get_nv_link_capability(
        self, device: client.Handle, link: int, capability: int
    ) -> bool:
        """`nvmlNvLinkCapability_t`: P2P, system memory and atomics of both; no SLI."""
        self._nvlink(device, link)
        if not 0 <= capability < _CAPABILITIES:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return capability != _SLI

    @client.call
    def device_get_nv_link_error_counter(
        self, device: client.Handle, link: int, counter: int
    ) -> int:
        """None: nothing on the links fails here."""
        self._nvlink(device, link)
        if not 0 <= counter < _ERROR_COUNTERS:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return 0

    @client.call
    def device_get_nv_link_remote_pci_info(
        self, device: client.Handle, link: int
    ) -> device_calls.PciInfo:
        """The GPU or switch at the other end; NVML leaves a switch's subsystem 0."""
        self._nvlink(device, link)
        other = self._across(self._gpu(device))
        if other is not None:
            ids = other.product.pci_ids
            return device_calls.pci_info(other.slot.pci, ids.device, ids.subsystem)
        switches = self.machine.profile.nvswitches
        if switches is None:  # a profile whose NVLinks end nowhere is refused when it is read
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        address = switches.addresses[link % len(switches.addresses)]
        return device_calls.pci_info(address, switches.pci_device_id, 0)

    def _across(self, gpu: machine.Gpu) -> machine.Gpu | None:
        """The GPU at the other end of its bridge; None: its links end at switches."""
        if gpu.slot.bridge is None:
            return None
        bridged = (one for one in self.machine.gpus if one.slot.bridge == gpu.slot.bridge)
        return next(one for one in bridged if one is not gpu)

    def _linked(self, one: machine.Gpu, other: machine.Gpu) -> bool:
        """Whether NVLink joins two GPUs, directly or by switches."""
        if one.slot.bridge is not None:
            return self._across(one) is other
        return one.product.nvlink is not None and other.product.nvlink is not None

    def _nvlink(self, device: client.Handle, link: int) -> profile.NvLink:
        nvlink = self._gpu(device).product.nvlink
        if nvlink is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        if not 0 <= link < nvlink.links:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return nvlink


def _ancestor(one: machine.Gpu, other: machine.Gpu) -> int:
    if one.slot.pci == other.slot.pci:
        return codes.TopologyLevel.INTERNAL
    if one.slot.host_bridge == other.slot.host_bridge:
        return codes.TopologyLevel.HOSTBRIDGE
    if one.slot.numa == other.slot.numa:
        return codes.TopologyLevel.NODE
    return codes.TopologyLevel.SYSTEM
